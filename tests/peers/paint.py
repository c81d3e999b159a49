# SPDX-License-Identifier: MIT
"""The generator's painting a second time, in NumPy, held equal to the bytes of generated files.

    paint.py DIR...     directories that `attest generate` wrote

Rebuilds q, k, v of every case whose tensors are plain normals and compares them with the file's; and
checks every file's SHA-256 against MANIFEST.json.  Without directories: prints the numbers that
tests/check_generate.c expects.  Does not do: labels of exact cases, added scores.
"""

import hashlib
import json
import pathlib
import sys
import textwrap

import numpy as np

SEED = 0x123456789ABCDEF0  # of the printed numbers


# The formula of docs/generator.md: ten lines.
def philox(x, key):
    x, key = [v.astype(np.uint64) for v in x], list(key)
    for _ in range(10):
        a, b = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        low, k = np.uint64(0xFFFFFFFF), [np.uint64(v) for v in key]
        x = [(b >> np.uint64(32)) ^ x[1] ^ k[0], b & low, (a >> np.uint64(32)) ^ x[3] ^ k[1], a & low]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return x


def words(seed, stream, n):
    n = np.atleast_1d(np.asarray(n, np.uint64))
    low, high = n & np.uint64(0xFFFFFFFF), n >> np.uint64(32)
    one = np.ones_like(n)
    return sum((philox([low, high, one * np.uint64(stream), one * np.uint64(k)],
                       (seed % 2**32, seed // 2**32)) for k in (0, 1)), [])


def normal(seed, stream, n):
    w = [v.astype(np.int64) for v in words(seed, stream, n)]
    total = sum((v & 0xFFFF) + (v >> 16) for v in w[:6])
    return ((total - 393210) * 2**32 + w[6] - 2**31).astype(np.float64) * 2.0**-48


def integer(seed, stream, n, lo, hi):
    w = words(seed, stream, n)[7]
    return lo + (w * np.uint64(hi - lo + 1) >> np.uint64(32)).astype(np.int64)


PLAIN = {"smoke-normal": "qkv", "smoke-decode": "qkv", "smoke-peaked": "kv", "smoke-mean": "qk",
         "masks-bottom-right": "qkv", "masks-top-left": "qkv", "masks-window": "qkv",
         "masks-both-sides": "qkv", "masks-boolean": "qkv", "masks-bias": "qkv",
         "extreme-zero": "kv", "workloads-prefill": "qkv", "workloads-decode": "qkv",
         "exact-needle": "v", "exact-diagonal": "v", "extreme-low": "v", "scores-scale": "kv",
         "scores-softcap": "kv", "scores-order": "kv", "scores-alibi": "qkv", "scores-alibi-both": "qkv",
         "scores-sink": "qkv", "scores-sink-above": "qkv", "scores-sink-alone": "qkv",
         "scores-descale-tensor": "qkv", "scores-descale-head": "qkv", "scores-descale-row": "qkv",
         "dropout-draw": "qkv", "dropout-wide": "qkv", "dropout-keep": "qkv", "batches-rows": "q",
         "batches-offsets": "qkv", "batches-pages": "q", "infinities-values": "qk", "infinities-hidden": "q"}


def expected(recipe, name, shape, dtype):
    stream = recipe["stream"] + "qkv".index(name) + 1
    return normal(recipe["seed"], stream, np.arange(np.prod(shape))).reshape(shape).astype(dtype)


def check_case(path, recipe):
    from safetensors.numpy import load_file
    case, equal = load_file(path), 0
    for name in PLAIN.get(recipe["case"], ""):
        if name not in case:
            continue
        want = expected(recipe, name, case[name].shape, case[name].dtype)
        if want.tobytes() != case[name].tobytes():
            sys.exit(f"{path}: tensor {name}: differs from the formula")
        equal += 1
    return equal


def check_directory(directory):
    text = (directory / "MANIFEST.json").read_bytes()
    equal = files = 0
    for case in json.loads(text)["cases"]:
        for entry in case["files"]:
            data = (directory / entry["file"]).read_bytes()
            if hashlib.sha256(data).hexdigest() != entry["sha256"] or len(data) != entry["bytes"]:
                sys.exit(f"{directory / entry['file']}: not what MANIFEST.json says")
            files += 1
        equal += check_case(directory / case["files"][0]["file"], case["recipe"])
    print(f"{directory}: {files} files as the manifest says, {equal} tensors equal to the formula; "
          f"pin {hashlib.sha256(text).hexdigest()}")
    return equal


def check_documentation():
    """The Python of docs/generator.md paints the same numbers."""
    text = (pathlib.Path(__file__).parents[2] / "docs/generator.md").read_text()
    start = text.index("    def philox")
    space = {}
    exec(textwrap.dedent(text[start:text.index("\n\n", start)]), space)
    for n in (0, 1, 5 << 32):
        if space["normal"](SEED, 33, n) != normal(SEED, 33, n)[0]:
            sys.exit("docs/generator.md: its Python paints other numbers")


def main():
    check_documentation()
    import ml_dtypes  # noqa: F401  (bf16 and fp8 in safetensors.numpy)
    if len(sys.argv) == 1:
        print([float(normal(SEED, 33, n)[0]).hex() for n in (0, 1, 5 << 32)],
              int(integer(SEED, 33, 7, -100, 100)[0]))
    elif sum(check_directory(pathlib.Path(d)) for d in sys.argv[1:]) == 0:
        sys.exit("no tensor was compared")


if __name__ == "__main__":
    main()
