# SPDX-License-Identifier: MIT
"""Safetensors by hand: the same tensors and metadata give the same bytes, every time.

A file is an 8-byte little-endian header length, the header (JSON, padded with spaces to a multiple
of 8), and the tensors' bytes back to back.  Tensors are ordered by element size, largest first,
then by name; that is also what the safetensors library writes.  Written here because the sha256 of
a case is committed, and so must not depend on a library's version.
Does not do: dtypes beyond those of the table, lazy reading, files that are not ours to trust.
"""

import json
import struct

import ml_dtypes
import numpy as np

DTYPES = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "U8": np.dtype(np.uint8),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
SHORT = {"fp32": DTYPES["F32"], "bf16": DTYPES["BF16"], "fp16": DTYPES["F16"]}


def order(tensors):
    """Names of the tensors as they stand in the file."""
    return sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))


def header(tensors, metadata):
    """The padded header; offsets count from its end."""
    entries, at = {"__metadata__": metadata}, 0
    for name in order(tensors):
        x = tensors[name]
        end = at + x.nbytes
        entries[name] = {"dtype": NAMES[x.dtype], "shape": list(x.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    return text + b" " * (-len(text) % 8)


def save(path, tensors, key, about):
    """Write tensors (name -> array) and one metadata entry: `key`, the JSON of `about`."""
    head = header(tensors, {key: json.dumps(about)})
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(head)))
        out.write(head)
        for name in order(tensors):
            out.write(np.ascontiguousarray(tensors[name]).tobytes())


def load(path, key):
    """The tensors of a file, and the JSON of its metadata entry `key` ({} where it has none)."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    entries, base = json.loads(data[8 : 8 + length]), 8 + length
    about = json.loads(entries.pop("__metadata__", {}).get(key, "{}"))
    return {name: array(data, base, entry) for name, entry in entries.items()}, about


def array(data, base, entry):
    """One tensor out of a file's bytes."""
    begin, end = entry["data_offsets"]
    raw = data[base + begin : base + end]
    return np.frombuffer(raw, DTYPES[entry["dtype"]]).reshape(entry["shape"])
