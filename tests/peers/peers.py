# SPDX-License-Identifier: MIT
"""What the third-party runs share: the inputs in each dtype, and the way into PyTorch and back."""

import tensors

SCALE = 0.125
DTYPES = ["fp32", "bf16", "fp16"]


def groups(captured):
    """Names of the groups in a captured file, in order."""
    return sorted({name.split(".")[0] for name in captured})


def inputs(path):
    """(group, dtype, [q, k, v]) for every group and dtype, rounded once from the captured fp32."""
    captured, _ = tensors.load(path, "capture")
    for group in groups(captured):
        for dtype in DTYPES:
            to = tensors.SHORT[dtype]
            yield group, dtype, [captured[f"{group}.{c}"].astype(to) for c in "qkv"]


def to_torch(x):
    """A PyTorch tensor of the same dtype: through fp32, which holds bf16 and fp16 exactly."""
    import torch

    return torch.from_numpy(x.astype("float32")).to(getattr(torch, x.dtype.name))


def from_torch(x):
    """The array of a PyTorch tensor, dtype kept."""
    import torch

    short = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
    return x.float().cpu().numpy().astype(tensors.SHORT[short[x.dtype]])
