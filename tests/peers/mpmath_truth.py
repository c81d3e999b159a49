# SPDX-License-Identifier: MIT
"""A second truth: attention of a case in integers and mpmath, compared bit by bit with ours.

    attest truth CASE -o TRUTH
    mpmath_truth.py [--rows N] CASE TRUTH [CASE TRUTH ...]

Shares nothing with the C program: its own reader, visibility, scores and rounding.  Inputs are
integers times a power of two, so scores are exact; weights exp(s - M) are integers in units of
2^-BITS, each hardly more than one unit off (mpmath with 40 guard bits: assumed).  out = U/L and
lse = M + ln(L) are rounded to fp64 from both ends of an interval that holds them, at 320 bits and
then at more until the two ends agree.  Reads TRUTH's out and lse (F64), and rows (n,3) of (b,h,i)
where it has them.
Does not do: masks, bias, windows, paging, or a sum that is exactly a tie (ties.py); it refuses
fields it does not know, and a row it cannot decide is a failure.
"""

import argparse
import sys
from fractions import Fraction

import mpmath
import numpy as np

import tensors

KNOWN_FIELDS = {"spec", "name", "scale", "layout", "causal", "results", "source", "recipe", "seed"}
KNOWN_TENSORS = {"q", "k", "v", "kv_len"}
BITS = [320, 640, 1280]


# -- The question ---------------------------------------------------------------------------------


def exact(x):
    """An array of floats as integers, and the unit that they count: x = integer * unit."""
    shift = {"float64": 1074, "float32": 149, "bfloat16": 133, "float16": 24}[x.dtype.name]
    flat = [int(Fraction(float(e)) * 2**shift) for e in x.ravel()]
    whole = np.empty(len(flat), object)
    whole[:] = flat
    return whole.reshape(x.shape), Fraction(1, 2**shift)


class Case:
    """q, k, v in exact integers, and who sees whom."""

    def __init__(self, path):
        found, about = tensors.load(path, "attest")
        inputs = {n: x for n, x in found.items() if not n.startswith(("out", "lse"))}
        strange = (set(inputs) - KNOWN_TENSORS) | (set(about) - KNOWN_FIELDS)
        if strange or about.get("layout", "bhsd") != "bhsd":
            sys.exit(f"{path}: not served here: {sorted(strange) or about['layout']}")
        (self.q, q_unit), (self.k, k_unit) = exact(inputs["q"]), exact(inputs["k"])
        self.v, self.v_unit = exact(inputs["v"])
        self.unit = Fraction(about["scale"]) * q_unit * k_unit
        self.causal = about.get("causal")
        self.kv_len = inputs.get("kv_len")

    def visible(self, b, i):
        """How many keys row i of sequence b sees: keys 0, 1, ... up to that number."""
        sq, length = self.q.shape[2], self.k.shape[2]
        if self.kv_len is not None:
            length = int(self.kv_len[b])
        corner = {None: length, "top-left": 0, "bottom-right": length - sq}[self.causal]
        return max(0, min(length, corner + i + 1))

    def row(self, b, h, i):
        """The exact scores of one row (Fractions) and the values it sees (integers)."""
        n, g = self.visible(b, i), h * self.k.shape[1] // self.q.shape[1]
        scores = self.k[b, g, :n] @ self.q[b, h, i]
        return [s * self.unit for s in scores], self.v[b, g, :n]


# -- The answer -----------------------------------------------------------------------------------


def to_mpf(x):
    """A dyadic Fraction as mpf; the caller's precision rounds it."""
    return mpmath.mpf(x.numerator) / x.denominator


def to_fraction(x):
    """An mpf, exactly."""
    sign, mantissa, exponent, _ = x._mpf_
    whole = -int(mantissa) if sign else int(mantissa)
    return Fraction(whole) * Fraction(2) ** exponent


def weights(scores, top, bits):
    """exp(s - top) in units of 2^-bits; |err| < 1 + 2^-20 units, and none where s = top."""
    units = []
    with mpmath.workprec(bits + 40):
        for s in scores:
            units.append(int(mpmath.floor(mpmath.ldexp(mpmath.exp(to_mpf(s - top)), bits))))
    return units


def rounded(low, high):
    """The double that every number in [low, high] rounds to, or None.  int / int is correctly
    rounded in Python, subnormal results included."""
    ends = [x.numerator / x.denominator for x in (low, high)]
    return ends[0] if ends[0] == ends[1] else None


def round_out(units, loose, values, unit):
    """out of one row: sum w v / sum w, of which `loose` weights are less than 1.5 units off."""
    total, answers = sum(units), []
    for column in values.T:
        middle = Fraction(sum(w * int(v) for w, v in zip(units, column)), total)
        # A weight off by t units moves the mean by at most t |v - mean| / total, t < 1.5.
        error = Fraction(3 * loose * max(abs(int(v)) for v in column), total)
        answers.append(rounded((middle - error) * unit, (middle + error) * unit))
    return answers


def round_lse(units, loose, top, bits):
    """top + ln(sum w), of which `loose` weights are inexact; exact with a single key."""
    if len(units) == 1:
        return rounded(top, top)
    with mpmath.workprec(bits + 40):
        log = to_fraction(mpmath.log(mpmath.ldexp(mpmath.mpf(sum(units)), -bits)))
    slack = Fraction(2 * loose + 1, 2**bits)  # |d ln l| <= |dl|, as l >= 1; and the logarithm's own
    return rounded(top + log - slack, top + log + slack)


def answer(scores, values, unit):
    """out (a list) and lse of one row; None where even the most bits do not decide."""
    if not scores:
        return [0.0] * values.shape[1], -np.inf
    top = max(scores)
    loose = sum(s != top for s in scores)
    for bits in BITS:
        units = weights(scores, top, bits)
        out = round_out(units, loose, values, unit)
        lse = round_lse(units, loose, top, bits)
        if None not in out and lse is not None:
            break
    return out, lse


# -- The comparison -------------------------------------------------------------------------------


def same_bits(got, want):
    """Whether two lists of doubles are the same bits; None is never the same."""
    if any(x is None for x in want):
        return False
    return np.asarray(got, np.float64).tobytes() == np.asarray(want, np.float64).tobytes()


def judged_rows(shape, truth):
    """(b, h, i) of every row that the truth file answers."""
    if "rows" in truth:
        return [tuple(int(x) for x in row) for row in truth["rows"]]
    return list(np.ndindex(*shape[:3]))


def compare(case_path, truth_path, limit):
    """(passed, failed) over the rows of one case, at most `limit` of them, evenly spread."""
    case = Case(case_path)
    truth, _ = tensors.load(truth_path, "attest")
    rows = judged_rows(case.q.shape, truth)
    out = truth["out"].reshape(len(rows), -1)
    lse = truth["lse"].reshape(len(rows))
    chosen = range(len(rows)) if limit >= len(rows) else np.linspace(0, len(rows) - 1, limit)
    passed = failed = 0
    for r in (int(x) for x in chosen):
        want_out, want_lse = answer(*case.row(*rows[r]), case.v_unit)
        if same_bits(out[r], want_out) and same_bits([lse[r]], [want_lse]):
            passed += 1
        else:
            failed += 1
            print(f"{case_path} {list(rows[r])}: {difference(out[r], want_out, lse[r], want_lse)}")
    return passed, failed


def difference(out, want_out, lse, want_lse):
    """One line: the first element that differs, in hex."""
    pairs = [(f"out[{c}]", out[c], w) for c, w in enumerate(want_out)] + [("lse", lse, want_lse)]
    for what, got, want in pairs:
        if not same_bits([got], [want]):
            expected = "undecided" if want is None else float(want).hex()
            return f"{what} {float(got).hex()}, expected {expected}"
    return "the same"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=sys.maxsize, help="at most this many a case")
    parser.add_argument("files", nargs="+", help="CASE TRUTH pairs")
    args = parser.parse_args()
    if len(args.files) % 2:
        parser.error("files come in pairs: CASE TRUTH")
    counts = [
        compare(case, truth, args.rows) for case, truth in zip(args.files[::2], args.files[1::2])
    ]
    passed, failed = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
