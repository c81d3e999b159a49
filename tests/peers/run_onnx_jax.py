# SPDX-License-Identifier: MIT
"""onnxruntime (Attention, opset 23) and JAX (jax.nn.dot_product_attention) on the CPU.

    run_onnx_jax.py CAPTURED OUT       CAPTURED: what capture_smollm2.py wrote

OUT holds GROUP.NAME.DTYPE and says who computed each NAME.  onnxruntime's CPU kernel serves fp32
and fp16, not bf16.  Scale 1/8 is the default of both for D = 64, and exact.
"""

import platform
import sys

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import peers
import tensors

ONNX_TYPES = {"fp32": TensorProto.FLOAT, "fp16": TensorProto.FLOAT16}


def onnx_model(dtype, shapes):
    """A graph of one causal Attention node; it is given q, k, v as (B,H,S,D)."""
    info = {n: helper.make_tensor_value_info(n, ONNX_TYPES[dtype], s) for n, s in shapes.items()}
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
    graph = helper.make_graph([node], "attention", [info[n] for n in "qkv"], [info["y"]])
    opset = [helper.make_opsetid("", 23)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()


def run_onnx(dtype, q, k, v):
    """y of the CPU execution provider."""
    shapes = {"q": q.shape, "k": k.shape, "v": v.shape, "y": q.shape}
    session = onnxruntime.InferenceSession(
        onnx_model(dtype, shapes), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"q": q, "k": k, "v": v})[0]


def run_jax(q, k, v):
    """JAX wants (B,S,H,D); the answer comes back as (B,H,S,D)."""
    q, k, v = (jnp.asarray(x.transpose(0, 2, 1, 3)) for x in (q, k, v))
    y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return np.ascontiguousarray(np.asarray(y).transpose(0, 2, 1, 3))


def main():
    captured, out = sys.argv[1:]
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}, JAX {jax.__version__}")
    cpu = f"CPU, {platform.machine()}"
    made_by = {
        "onnxruntime_cpu": f"onnxruntime {onnxruntime.__version__} Attention (opset 23); {cpu}",
        "jax_cpu": f"JAX {jax.__version__} jax.nn.dot_product_attention; {cpu}",
    }
    made = {}
    for group, dtype, qkv in peers.inputs(captured):
        made[f"{group}.jax_cpu.{dtype}"] = run_jax(*qkv)
        if dtype in ONNX_TYPES:
            made[f"{group}.onnxruntime_cpu.{dtype}"] = run_onnx(dtype, *qkv)
    tensors.save(out, made, "runs", made_by)


if __name__ == "__main__":
    main()
