# SPDX-License-Identifier: MIT
"""What check-onnx notices: each wrong reading of an ONNX test, or wrong arithmetic, must fail one.

    mutants.py ATTEST OUT              ATTEST: the program; OUT: a folder for the case files

A wrong reading replaces one function of convert.py; only files that it changes are judged.  A wrong
arithmetic judges files as they are.  Two made cases show that the fields `key` and `total` of the
arithmetic are needed: levelled() and many_keys().  Exit 0: every mutant fails a case, and the made
cases pass under the preset.
Does not do: readings that no ONNX test tells apart.  The three masks that are shorter than Skv come
with lengths that hide the same keys, so that padding them as visible changes nothing.
"""

import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

import ml_dtypes
import numpy as np
from onnx.reference.ops.op_attention import _compute_attention

import convert
from convert import tensors

NAMES = ("offsets", "additive", "window", "keys", "question")
READ = {name: getattr(convert, name) for name in NAMES}


# -- Wrong readings -------------------------------------------------------------------------------


def bottom_right_without_cache(test, B, Sq):
    cached = {"past_key", "nonpad_kv_seqlen"} & test.inputs.keys()
    other = 0 if cached else convert.keys(test, "k").shape[2] - Sq
    return READ["offsets"](test, B, Sq) + other


def past_ignored(test, B, Sq):
    return READ["offsets"](test, B, Sq) * ("past_key" not in test.inputs)


def offset_never_negative(test, B, Sq):
    return np.maximum(READ["offsets"](test, B, Sq), 0)


def past_behind(test, letter):
    return np.roll(READ["keys"](test, letter), test.inputs["Q"].shape[-2], axis=2)


def rank_3_is_batch(mask, Skv):
    return READ["additive"](mask[:2, None] if mask.ndim == 3 else mask, Skv)


def inverted_mask(mask, Skv):
    return READ["additive"](~mask if mask.dtype == np.bool_ else mask, Skv)


def wider_left(attributes):
    left, right = READ["window"](attributes)
    return left + (left >= 0), right


def right_unbounded(attributes):
    left, right = READ["window"](attributes)
    return left, right if right == 0 else -1


def heads_inside(x, heads):
    """(B,S,H*D) cut as if it were (B,H,S,D) in memory."""
    return x if x.ndim == 4 else x.reshape(x.shape[0], heads, x.shape[1], -1)


def without(*names):
    """The question, tensors and fields dropped."""

    def question(test):
        parts = READ["question"](test)
        return tuple({k: x for k, x in part.items() if k not in names} for part in parts)

    question.__name__ = "without_" + "_".join(names)
    return question


def one_over_d(test):
    case, about = READ["question"](test)
    default = "scale" not in test.attributes
    return case, about | ({"scale": 1 / case["q"].shape[3]} if default else {})


READINGS = [
    ("offsets", bottom_right_without_cache),
    ("offsets", past_ignored),
    ("offsets", offset_never_negative),
    ("keys", past_behind),
    ("additive", rank_3_is_batch),
    ("additive", inverted_mask),
    ("window", wider_left),
    ("window", right_unbounded),
    ("heads_first", heads_inside),
    ("question", one_over_d),
    ("question", without("bias")),
    ("question", without("mask")),
    ("question", without("kv_len")),
    ("question", without("softcap")),
]


# -- Wrong arithmetics ---------------------------------------------------------------------------

ARITHMETICS = {
    "float16": ["fp16-inside-fp32", "fp16-p", "fp16-p-normalised"],
    "bfloat16": ["bf16-inside-fp32", "bf16-p", "bf16-p-normalised", "bf16-sp"],
}


def made(name, q, k, v, scale, bias=None):
    """A case of our own with the reference's answer."""
    arrays = {"q": q, "k": k, "v": v} | ({} if bias is None else {"bias": bias})
    out = _compute_attention(q, k, v, attn_mask=bias, scale=scale)[0]
    arith = convert.ARITH[q.dtype.name]
    about = {"spec": 1, "name": name, "scale": scale, "results": {"": {"arith": arith}}}
    return arrays | {"out": out}, about


def levelled(dtype):
    """Scores of +s and -s, the bias making up for it, and a scale whose root rounds badly: the
    roundings of q, k and both roots all show."""
    rng = np.random.default_rng(11)
    scales = [float(dtype(x)) for x in rng.uniform(0.3, 1, 400)]
    scale = max(scales, key=lambda c: abs(float(dtype(np.sqrt(c))) ** 2 / c - 1))
    q = rng.uniform(4, 8, (1, 1, 2000, 1)).astype(dtype)
    k = (np.array([1, -1]).reshape(1, 1, 2, 1) * rng.uniform(6, 7) / scale).astype(dtype)
    s = q.astype(float) * float(k[0, 0, 0, 0]) * scale
    bias = np.concatenate((0 * s, 2 * s), axis=3).astype(dtype)
    v = np.array([1, -1]).reshape(1, 1, 2, 1).astype(dtype)
    return made(f"levelled_{np.dtype(dtype).name}", q, k, v, scale, bias)


def many_keys():
    """100 keys of nearly one weight: past 64, a sum in bf16 loses half of what is added."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.uniform(1, 2, (1, 1, n, 4)).astype(ml_dtypes.bfloat16) for n in (50, 100, 100))
    return made("many_keys_bfloat16", q, k, v, 0.03125)


FIELDS = [
    (levelled(np.float32), "key=default"),
    (levelled(np.float16), "key=default"),
    (many_keys(), "total=default"),
]


# -- Judging -------------------------------------------------------------------------------------


def fails(attest, path, *flags):
    """Exit 1 is a fail; 2, a case that is none, is noticed too."""
    done = subprocess.run([attest, "judge", path, *flags], capture_output=True)
    return done.returncode in (1, 2)


def misread(attest, folder, tests, name, replacement):
    """How many tests fail of those whose files a wrong reading changes; both numbers."""
    changed = failed = 0
    for test in tests:
        right = [path.read_bytes() for path in convert.write(folder, test)]
        with mock.patch.object(convert, name, replacement):
            paths = convert.write(folder, test)
        differ = [path for path, was in zip(paths, right) if path.read_bytes() != was]
        changed += bool(differ)
        failed += any(fails(attest, path) for path in differ)
    return failed, changed


def miscounted(attest, folder, tests, dtype, arith):
    """How many tests of a dtype fail under another arithmetic, of how many."""
    these = [test for test in tests if test.inputs["Q"].dtype.name == dtype]
    files = [convert.write(folder, test) for test in these]
    failed = [any(fails(attest, path, "--arith", arith) for path in paths) for paths in files]
    return sum(failed), len(these)


def needed(attest, folder, case, about, change):
    """A made case passes under its preset and fails with a field changed."""
    path = folder / (about["name"] + ".safetensors")
    tensors.save(path, case, "attest", about)
    preset = about["results"][""]["arith"]
    return not fails(attest, path) and fails(attest, path, "--arith", f"{preset},{change}"), preset


def main():
    attest, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    tests, alive = convert.collect(), 0
    for name, replacement in READINGS:
        failed, changed = misread(attest, folder, tests, name, replacement)
        alive += failed == 0
        print(f"{failed:3} of {changed:2} tests fail  {name}: {replacement.__name__}")
    for dtype, ariths in ARITHMETICS.items():
        for arith in ariths:
            failed, count = miscounted(attest, folder, tests, dtype, arith)
            alive += failed == 0
            print(f"{failed:3} of {count:2} tests fail  {dtype} held to {arith}")
    for (case, about), change in FIELDS:
        shown, preset = needed(attest, folder, case, about, change)
        alive += not shown
        print(f"{'needed' if shown else 'NOT SHOWN':>20}  {preset} without {change.split('=')[0]}")
    count = len(READINGS) + sum(map(len, ARITHMETICS.values())) + len(FIELDS)
    print(f"{count} mutants, {alive} not noticed")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
