# SPDX-License-Identifier: MIT
"""PyTorch on an NVIDIA GPU (an H200 for the committed cases): four backends and flex_attention.

    run_h200.py CAPTURED OUT           CAPTURED: what capture_smollm2.py wrote

Backends are forced, so that nothing falls back in silence; one that does not serve a dtype is
printed and left out.  TF32 is off.  The key head is copied for each query head: not every backend
takes grouped heads.  OUT holds GROUP.NAME.DTYPE and says who computed each NAME.
"""

import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import peers
import tensors

BACKENDS = {
    "h200_flash": (SDPBackend.FLASH_ATTENTION, "flash"),
    "h200_cudnn": (SDPBackend.CUDNN_ATTENTION, "cuDNN"),
    "h200_efficient": (SDPBackend.EFFICIENT_ATTENTION, "memory-efficient"),
    "h200_math": (SDPBackend.MATH, "math, TF32 off,"),
}


def sdpa(backend):
    """A causal attention with one backend of scaled_dot_product_attention."""

    def attend(q, k, v):
        with sdpa_kernel([backend]):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, scale=peers.SCALE
            )

    return attend


def flex():
    """A causal attention with flex_attention, compiled to a Triton kernel."""
    compiled = torch.compile(flex_attention)

    def attend(q, k, v):
        n = q.shape[2]
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cuda")
        return compiled(q, k, v, block_mask=mask, scale=peers.SCALE)

    return attend


def engines():
    """NAME -> (attend, who it is)."""
    device = f"one {torch.cuda.get_device_name(0)}"
    found = {}
    for name, (backend, word) in BACKENDS.items():
        what = f"PyTorch {torch.__version__} scaled_dot_product_attention, {word} backend; {device}"
        found[name] = (sdpa(backend), what)
    what = f"PyTorch {torch.__version__} flex_attention, compiled (Triton); {device}"
    found["h200_flex"] = (flex(), what)
    return found


def to_gpu(qkv):
    """q, k, v on the GPU, the key head copied for each query head."""
    q, k, v = (peers.to_torch(x).cuda() for x in qkv)
    shape = (-1, q.shape[1], -1, -1)
    return q, k.expand(shape).contiguous(), v.expand(shape).contiguous()


def main():
    captured, out = sys.argv[1:]
    torch.backends.cuda.matmul.allow_tf32 = False
    made, made_by = {}, {}
    for name, (attend, what) in engines().items():
        made_by[name] = what
        for group, dtype, qkv in peers.inputs(captured):
            try:
                made[f"{group}.{name}.{dtype}"] = peers.from_torch(attend(*to_gpu(qkv)))
            except RuntimeError as error:
                print(f"{group} {name} {dtype}: not served: {str(error).splitlines()[0]}")
    tensors.save(out, made, "runs", made_by)


if __name__ == "__main__":
    main()
