# SPDX-License-Identifier: MIT
"""Captured activations and third-party outputs in, case files out (docs/formats.md).

    make_cases.py --smollm2 FILE --minilm FILE --out DIR  --runs FILE...       outputs of run_*.py
    make_cases.py --smollm2 FILE --minilm FILE --out DIR  --committed DIR      of existing cases

FILEs are what capture_smollm2.py and capture_minilm.py wrote.  One case has one input dtype: the
fp32 capture is rounded once to it, so a bf16 output is judged on the bf16 inputs it was given.
Kept are the first 160 of 512 positions: two tiles of 64 keys and a partial one.  Under a causal
mask those rows never see a later key, and the outputs, computed on all 512, are cut alike.
"""

import argparse
import os
import sys

import tensors

GROUPS = ["L00G2", "L07G2", "L18G2"]
ROWS = 160
MINILM_CASE = "minilm_L0H2_fp32"

# What each output is held to, and why: the strictest arithmetic believed to describe it.
ARITH = {
    "fp32": {
        "torch_cpu_flash": ("fp32", "fp32 throughout, order of summation unknown"),
        "onnxruntime_cpu": ("fp32", "fp32 throughout, order of summation unknown"),
        "jax_cpu": ("fp32", "fp32 throughout, order of summation unknown"),
        "h200_efficient": ("3xtf32", "fp32 products by three TF32 products: v*1 is not v"),
        "h200_math": ("fp32", "fp32 throughout, TF32 off, order of summation unknown"),
    },
    "bf16": {
        "torch_cpu_flash": ("bf16-p-exp400", "P in bf16; inexact exp, exp(0) is not 1 (inferred)"),
        "torch_cpu_math": ("bf16-inside-fp32", "converted to fp32, the textbook, rounded once"),
        "jax_cpu": ("bf16-p-normalised", "P divided by its sum in fp32, then rounded to bf16"),
        "h200_flash": ("bf16-p", "P in bf16; exp2 with scale and shift fused, ex2.approx"),
        "h200_cudnn": ("bf16-p", "P in bf16; exp2 with scale and shift fused, ex2.approx"),
        "h200_flex": ("bf16-p", "P in bf16; exp2 with scale and shift fused, ex2.approx"),
    },
    "fp16": {
        "torch_cpu_math": ("fp16-inside-fp32", "converted to fp32, the textbook, rounded once"),
        "onnxruntime_cpu": ("fp16-sp", "scores and P stored in fp16"),
        "h200_flash": ("fp16-p", "P in fp16; exp2 with scale and shift fused, ex2.approx"),
    },
}

SMOLLM2 = (
    "SmolLM2-135M-Instruct (Apache-2.0), 4-bit weights dequantised, forward pass in float64,"
    " rounded once to fp32{also}; CC0-1.0 text; group {group}: layer and key head;"
    f" the first {ROWS} of 512 positions, which see no later key"
)
MINILM = (
    "all-MiniLM-L6-v2 (Apache-2.0), layer 0, head 2, computed in float64 and rounded once to fp32;"
    " the first four paragraphs of CC0-1.0, padded to the longest"
)


def smollm2_about(group, dtype, made_by):
    """The metadata of one case; made_by says who computed each result."""
    results = {
        name: {"arith": arith, "why": why, "from": made_by[name]}
        for name, (arith, why) in ARITH[dtype].items()
    }
    also = "" if dtype == "fp32" else f", then once to {dtype}"
    return {
        "spec": 1,
        "name": f"smollm2_{group}_{dtype}",
        "scale": 0.125,
        "layout": "bhsd",
        "causal": "bottom-right",
        "results": results,
        "source": SMOLLM2.format(also=also, group=group),
    }


def smollm2_case(captured, group, dtype, outputs):
    """q, k, v rounded to dtype, and the outputs by name, all cut to the positions kept."""
    to = tensors.SHORT[dtype]
    case = {c: captured[f"{group}.{c}"][:, :, :ROWS].astype(to) for c in "qkv"}
    for name in ARITH[dtype]:
        out = outputs[f"{group}.{name}.{dtype}"]
        if out.dtype != to:
            sys.exit(f"{group}.{name}.{dtype}: dtype {out.dtype}, expected {to}")
        case["out." + name] = out[:, :, :ROWS]
    return case


def minilm_case(path):
    """The padded head: every row is a question, keys at or past kv_len are hidden."""
    case, about = tensors.load(path, "capture")
    return case, {
        "spec": 1,
        "name": MINILM_CASE,
        "scale": about["scale"],
        "layout": "bhsd",
        "source": MINILM,
    }


# -- Where outputs come from ----------------------------------------------------------------------


def outputs_of_runs(paths):
    """GROUP.NAME.DTYPE -> array, and NAME -> who made it, from the files of run_*.py."""
    outputs, made_by = {}, {}
    for path in paths:
        found, about = tensors.load(path, "runs")
        outputs.update(found)
        made_by.update(about)
    return outputs, made_by


def outputs_of_cases(folder):
    """The same from existing case files (outputs that need an H200 or 2 GB of packages)."""
    outputs, made_by = {}, {}
    for group in GROUPS:
        for dtype in ARITH:
            path = os.path.join(folder, f"smollm2_{group}_{dtype}.safetensors")
            found, about = tensors.load(path, "attest")
            for name, result in about["results"].items():
                outputs[f"{group}.{name}.{dtype}"] = found["out." + name]
                made_by[name] = result["from"]
    return outputs, made_by


# -- The program ----------------------------------------------------------------------------------


def write(folder, case, about):
    """One case file; says its size."""
    path = os.path.join(folder, about["name"] + ".safetensors")
    tensors.save(path, case, "attest", about)
    print(f"{path}: {os.path.getsize(path)} bytes")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smollm2", required=True)
    parser.add_argument("--minilm", required=True)
    parser.add_argument("--out", required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--runs", nargs="+")
    source.add_argument("--committed")
    return parser.parse_args()


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    captured, _ = tensors.load(args.smollm2, "capture")
    runs = outputs_of_runs(args.runs) if args.runs else outputs_of_cases(args.committed)
    outputs, made_by = runs
    for group in GROUPS:
        for dtype in ARITH:
            case = smollm2_case(captured, group, dtype, outputs)
            write(args.out, case, smollm2_about(group, dtype, made_by))
    write(args.out, *minilm_case(args.minilm))


if __name__ == "__main__":
    main()
