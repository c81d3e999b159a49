# SPDX-License-Identifier: MIT
"""Ties: answers that are exact fractions, where a truth that only adds digits never ends.

    ties.py [ATTEST]                   ATTEST: the program, default build/attest

Each case is written with Python's fractions, answered by `attest truth CASE -o OUT` within a time
limit, and compared bit by bit.  One query q = (1, 1), scale 1: key j's score is the sum of its two
components.  Expected values are Fractions, rounded once; Python's int / int rounds correctly.
The values named in fp32 and bf16 are ties of those formats, and exact in fp64; the fp64 cases are
ties of the truth's own output.
"""

import subprocess
import sys
import tempfile
from fractions import Fraction as F
from pathlib import Path

import ml_dtypes
import numpy as np

import tensors

LIMIT_S = 20
DTYPES = {"fp64": np.float64, "fp32": np.float32, "bf16": ml_dtypes.bfloat16}
ULP = F(1, 2**52)  # of 1 in fp64
TINY = F(1, 2**300)  # stands for a weight of e^-500: only its sign matters

# name, dtype, scores (pairs are summed), values, expected out, expected lse (None: not rational)
CASES = [
    ("fp32 midpoint, two equal keys", "fp32", [0, 0], [1, 1 + F(1, 2**23)], 1 + F(1, 2**24), None),
    ("fp64 midpoint, even below", "fp64", [0, 0], [1, 1 + ULP], 1 + ULP / 2, None),
    ("fp64 midpoint, even above", "fp64", [0, 0], [1 + ULP, 1 + 2 * ULP], 1 + 3 * ULP / 2, None),
    ("fp64 midpoint in two groups", "fp64", [0, 0, -3, -3], [1, 1 + ULP] * 2, 1 + ULP / 2, None),
    ("bf16 midpoint, one key", "fp32", [F(5, 4)], [1 + F(1, 2**8)], 1 + F(1, 2**8), F(5, 4)),
    ("one key in bf16", "bf16", [F(3, 2)], [1 + F(1, 2**7)], 1 + F(1, 2**7), F(3, 2)),
    ("lse midpoint, one key", "fp64", [(1, ULP / 2)], [3], F(3), 1 + ULP / 2),
    ("constant V", "fp32", [0, 1, -2, 7], [F(np.float32(0.1).item())] * 4, None, None),
    ("constant V in fp64", "fp64", [0, 1, -2, 7], [F(0.1)] * 4, None, None),
    ("+-1 cancels", "fp32", [0, 0], [1, -1], F(0), None),
    ("+-1 cancels in every group", "fp32", [2, -5, 2, -5], [1, -1, -1, 1], F(0), None),
    ("midpoint, e^-500 above", "fp64", [0, 0, -500], [1, 1 + ULP, 2], 1 + ULP / 2 + TINY, None),
    ("midpoint, e^-500 below", "fp64", [0, 0, -500], [1, 1 + ULP, 0], 1 + ULP / 2 - TINY, None),
    ("midpoint, e^-500 alike", "fp64", [0, 0, -500, -500], [1, 1 + ULP] * 2, 1 + ULP / 2, None),
    ("fp32, e^-500 above", "fp32", [0, 0, -500], [1, 1 + F(1, 2**23), 2], 1 + F(1, 2**24), None),
]


def rounded(x):
    """A Fraction as the nearest double, ties to even."""
    return x.numerator / x.denominator


def column(values, dtype):
    """Fractions as an array of the dtype; they must be exact there."""
    array = np.array([float(x) for x in values]).astype(DTYPES[dtype])
    assert [F(float(x)) for x in array] == list(values)
    return array


def write(path, name, dtype, scores, values):
    """The case file: q (1,1,1,2), k (1,1,n,2), v (1,1,n,1)."""
    pairs = [s if isinstance(s, tuple) else (s, 0) for s in scores]
    case = {
        "q": column([1, 1], dtype).reshape(1, 1, 1, 2),
        "k": column([x for pair in pairs for x in pair], dtype).reshape(1, 1, -1, 2),
        "v": column(values, dtype).reshape(1, 1, -1, 1),
    }
    tensors.save(path, case, "attest", {"spec": 1, "name": name, "scale": 1.0})


def truth(attest, case, out):
    """Tensors of `attest truth`, or the sentence that says why there are none."""
    command = [attest, "truth", str(case), "-o", str(out)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return None, f"no answer within {LIMIT_S} s"
    except OSError as error:
        return None, str(error)
    if done.returncode != 0:
        return None, f"exit {done.returncode}: {done.stderr.strip()}"
    return tensors.load(out, "attest")[0], None


def fault(found, name, want):
    """What is wrong with one number of the answer, or None."""
    got = float(found[name].ravel()[0])
    if want is None or got.hex() == want.hex():
        return None
    return f"{name} {got.hex()}, expected {want.hex()}"


def run(attest, folder, number, case):
    """None, or what is wrong with the program's answer to one case."""
    name, dtype, scores, values, out, lse = case
    path = folder / f"tie_{number:02}.safetensors"
    write(path, name, dtype, scores, values)
    found, why = truth(attest, path, folder / f"truth_{number:02}.safetensors")
    if found is None:
        return why
    out = values[0] if out is None else out
    wrong = fault(found, "out", rounded(F(out)))
    return wrong or fault(found, "lse", None if lse is None else rounded(F(lse)))


def main():
    attest = sys.argv[1] if len(sys.argv) > 1 else "build/attest"
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES):
            wrong = run(attest, Path(folder), number, case)
            failed += wrong is not None
            print(f"FAIL  {case[0]}: {wrong}" if wrong else f"pass  {case[0]}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
