# SPDX-License-Identifier: MIT
"""A kernel author's whole test in NumPy: a dozen lines, on the files that `attest generate` wrote.

    ten_lines.py GOT DIR [ARITH]    GOT/CASE.safetensors: out, and lse where it is tested

Does not do: anything that the interval files do not say.
"""

import pathlib
import sys

import ml_dtypes  # noqa: F401  (bf16 in safetensors.numpy)
import numpy as np
from safetensors.numpy import load_file

failed = 0
for path in sorted(pathlib.Path(sys.argv[2]).glob("*." + "".join(sys.argv[3:4] or "*") + ".safetensors")):
    want = load_file(path)
    got = load_file(f"{sys.argv[1]}/{path.name.split('.')[0]}.safetensors")["out"]
    if "rows" in want:  # some rows have an interval
        got = got[tuple(want["rows"].T)]
    lo, hi, kind = want["out_lo"], want["out_hi"], want["kind"]
    got = got.astype(lo.dtype)  # the kernel's last rounding, where it was not made yet
    truth = load_file(path.parent / f"{path.name.split('.')[0]}.safetensors")["truth_out"]
    good = ((got >= lo) & (got <= hi)) | (np.isnan(got) & ((kind == 1) | (kind >= 4)))
    good |= (got == truth) & ((kind == 5) | (kind == 6))  # an infinity that may underflow away
    first = "" if good.all() else f", first at {[int(x) for x in np.argwhere(~good)[0]]}"
    print(f"{path.name}: {(~good).sum()} of {good.size} elements fail{first}")
    failed += not good.all()
sys.exit(failed > 0)
