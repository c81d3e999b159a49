# SPDX-License-Identifier: MIT
"""PyTorch on the CPU: scaled_dot_product_attention, flash and math backends forced.

    run_torch.py CAPTURED OUT          CAPTURED: what capture_smollm2.py wrote

Every group is rounded once from fp32 to fp32, bf16, fp16 and attended causally over all its
positions.  OUT holds GROUP.NAME.DTYPE, and says who computed each NAME.
PyTorch's bits depend on the CPU's vector width and on the number of threads; both are printed.
"""

import platform
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import peers
import tensors

BACKENDS = {
    "torch_cpu_flash": (SDPBackend.FLASH_ATTENTION, "flash"),
    "torch_cpu_math": (SDPBackend.MATH, "math"),
}


def attend(backend, q, k, v):
    """One causal attention; the key head is repeated by PyTorch itself."""
    with sdpa_kernel([backend]):
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=peers.SCALE, enable_gqa=True
        )


def main():
    captured, out = sys.argv[1:]
    made, made_by = {}, {}
    vector = torch.backends.cpu.get_cpu_capability()
    print(f"PyTorch {torch.__version__}, {vector}, {torch.get_num_threads()} threads")
    for name, (backend, word) in BACKENDS.items():
        made_by[name] = (
            f"PyTorch {torch.__version__.split('+')[0]} scaled_dot_product_attention,"
            f" {word} backend; CPU, {platform.machine()} {vector}"
        )
        for group, dtype, qkv in peers.inputs(captured):
            q, k, v = (peers.to_torch(x) for x in qkv)
            y = attend(backend, q, k, v)
            made[f"{group}.{name}.{dtype}"] = peers.from_torch(y)
    tensors.save(out, made, "runs", made_by)


if __name__ == "__main__":
    main()
