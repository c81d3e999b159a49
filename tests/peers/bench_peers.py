# SPDX-License-Identifier: MIT
"""The tiled engine beside what a user would pick instead, on the CPU: same arrays, same threads.

    bench_peers.py --library attest.so [--rounds R] [--quick] [--only TEXT] [--json FILE]

THREADS in the environment: for all of them; default every core.

Each peer answers in its best forms; a ratio is peer time / our time of one round (> 1: ours is
faster), and what is printed is the median of the rounds. Errors are against fp64 on sampled rows.
PyTorch's operator is named by its own profiler. Peers sleep between calls, so that one OpenMP
runtime's spinning workers do not cost the next. Not here: GPUs.
"""

import argparse
import ctypes
import ctypes.util
import json
import math
import os
import platform
import statistics
import sys
import time

THREADS = int(os.environ.get("THREADS", os.cpu_count()))
os.environ["OPENBLAS_NUM_THREADS"] = str(THREADS)  # read when NumPy is imported
os.environ["KINETO_LOG_LEVEL"] = "9"

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper
from torch.nn.attention import SDPBackend, sdpa_kernel


class Problem:
    """q (B,Hq,Sq,D); k, v (1,Hkv,sum of lengths,D): one sequence, or several one after another."""

    def __init__(self, name, lengths, Hq, Hkv, Sq, D, causal=False):
        random = np.random.default_rng(7)
        draw = lambda *shape: random.standard_normal(shape, dtype=np.float32)
        self.name, self.causal, self.D = name, causal, D
        self.lengths = np.array(lengths, dtype=np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)
        B, N = len(lengths), int(sum(lengths))
        self.q, self.scale = draw(B, Hq, Sq, D), 1 / math.sqrt(D)
        self.k, self.v = draw(1, Hkv, N, D), draw(1, Hkv, N, D)
        self.shape = np.array([B, Hq, Hkv, Sq, N, D], dtype=np.int64)
        self.group = Hq // Hkv

    def sequence(self, b):
        """q (1,Hq,Sq,D), and k, v (1,Hkv,n,D) of one sequence, in place."""
        part = slice(self.starts[b], self.starts[b] + self.lengths[b])
        return self.q[b : b + 1], self.k[:, :, part], self.v[:, :, part]

    def grouped(self, b):
        """The heads of a group as query rows of their key head: (1,Hkv,group*Sq,D)."""
        q, k, v = self.sequence(b)
        return q.reshape(1, k.shape[1], self.group * q.shape[2], self.D), k, v

    def truth(self, out, rows=256):
        """Largest error of out (B,Hq,Sq,D) on sampled rows."""
        random, worst = np.random.default_rng(1), 0.0
        B, Hq, Hkv, Sq = (int(x) for x in self.shape[:4])
        for _ in range(rows):
            b, h, i = random.integers(B), random.integers(Hq), random.integers(Sq)
            q, k, v = (x.astype(np.float64) for x in self.sequence(b))
            n = i + 1 if self.causal else k.shape[2]
            g = h // self.group
            s = self.scale * (k[0, g, :n] @ q[0, h, i])
            p = np.exp(s - s.max())
            worst = max(worst, np.abs(out[b, h, i] - p @ v[0, g, :n] / p.sum()).max())
        return worst


# -- Ours -------------------------------------------------------------------------------------


def ours(problem, library, threads):
    """A call without arguments that fills and returns out."""
    out = np.empty_like(problem.q)
    address = lambda x: x.ctypes.data_as(ctypes.c_void_p)
    many = len(problem.lengths) > 1
    arguments = [address(x) for x in (problem.q, problem.k, problem.v, out, problem.shape)]
    arguments += [ctypes.c_double(problem.scale), int(problem.causal), threads]
    arguments += [address(problem.starts), address(problem.lengths)] if many else [None, None]

    def call():
        status = library.peers_forward(*arguments)
        if status:
            sys.exit(f"attest: status {status}")
        return out

    return call


# -- PyTorch ----------------------------------------------------------------------------------


def torch_calls(problem):
    """scaled_dot_product_attention, flash, once per sequence; and with PyTorch's own grouping."""
    scale, causal = problem.scale, problem.causal
    sequences = range(len(problem.lengths))
    attend = torch.nn.functional.scaled_dot_product_attention

    def form(arrays, grouped):
        tensors = [[torch.from_numpy(x) for x in arrays(b)] for b in sequences]

        def call():
            with torch.inference_mode(), sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
                y = [attend(*t, is_causal=causal, scale=scale, enable_gqa=grouped) for t in tensors]
            return np.concatenate([x.numpy() for x in y]).reshape(problem.q.shape)

        return call

    calls = {"PyTorch flash": form(problem.grouped if not causal else problem.sequence, False)}
    if problem.group > 1:
        calls["PyTorch flash, enable_gqa"] = form(problem.sequence, True)
    return calls


def torch_operator(call):
    """The attention operator that a call reached, by the profiler."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    names = [e.key for e in profile.key_averages() if "attention" in e.key]
    return max(names, key=len)


# -- onnxruntime ------------------------------------------------------------------------------


def session(kind, inputs, outputs, threads, **attributes):
    """One node of com.microsoft; dimensions are free."""
    info = lambda n, rank, t: helper.make_tensor_value_info(n, t, [f"{n}{k}" for k in range(rank)])
    types = {"i": TensorProto.INT32, "f": TensorProto.FLOAT}
    node = helper.make_node(
        kind, [x[0] for x in inputs], outputs, domain="com.microsoft", **attributes
    )
    given = [info(n, rank, types[t]) for n, rank, t in inputs if n]
    made = [info(n, 3 if k == 0 else 4, TensorProto.FLOAT) for k, n in enumerate(outputs)]
    graph = helper.make_graph([node], "attention", given, made)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def flat(q):
    """(1,H,S,D) as onnxruntime's (1,S,H*D)."""
    return np.ascontiguousarray(q.transpose(0, 2, 1, 3)).reshape(1, q.shape[2], -1)


def unflat(y, heads, problem):
    """And back, to one sequence of (Hq,Sq,D)."""
    y = y.reshape(y.shape[1], heads, problem.D).transpose(1, 0, 2)
    return y.reshape(problem.q.shape[1:])


def onnx_mha(problem, threads):
    """MultiHeadAttention; the heads of a group are query rows; k and v stay (1,H,n,D)."""
    heads = problem.k.shape[1]
    run = session(
        "MultiHeadAttention",
        [("q", 3, "f"), ("k", 4, "f"), ("v", 4, "f")],
        ["y"],
        threads,
        num_heads=heads,
        scale=problem.scale,
        unidirectional=int(problem.causal),
    )
    feeds = []
    for b in range(len(problem.lengths)):
        q, k, v = problem.grouped(b)
        feeds.append({"q": flat(q), "k": np.ascontiguousarray(k), "v": np.ascontiguousarray(v)})

    def call():
        return np.stack([unflat(run.run(["y"], f)[0], heads, problem) for f in feeds])

    return call


def onnx_gqa(problem, threads):
    """GroupQueryAttention: causal by itself. Prefill: keys given; decode: all but one are past."""
    B, Hq, Hkv, Sq, _, D = (int(x) for x in problem.shape)
    names = [("q", 3, "f"), ("k", 3, "f"), ("v", 3, "f"), ("pk", 4, "f"), ("pv", 4, "f")]
    names += [("n", 1, "i"), ("t", 0, "i")]
    run = session(
        "GroupQueryAttention",
        names,
        ["y", "nk", "nv"],
        threads,
        num_heads=Hq,
        kv_num_heads=Hkv,
        scale=problem.scale,
    )
    bindings = []
    for b in range(B):
        q, k, v = problem.sequence(b)
        n = k.shape[2]
        value = lambda x: onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(x))
        last = n - 1 if Sq == 1 else 0
        given = {"q": value(flat(q)), "k": value(flat(k[:, :, last:])), "v": value(flat(v[:, :, last:]))}
        given["n"], given["t"] = value(np.array([n - 1], np.int32)), value(np.array(n, np.int32))
        past = [k.copy(), v.copy()] if Sq == 1 else [k[:, :, :0].copy(), v[:, :, :0].copy()]
        given["pk"], given["pv"] = value(past[0]), value(past[1])
        binding = run.io_binding()
        for name, x in given.items():
            binding.bind_ortvalue_input(name, x)
        binding.bind_output("y")
        for name, source in (("nk", "pk"), ("nv", "pv")):
            if Sq == 1:  # past and present share one buffer
                binding.bind_ortvalue_output(name, given[source])
            else:
                binding.bind_output(name)
        bindings.append((binding, given))

    def call():
        y = []
        for binding, _ in bindings:
            run.run_with_iobinding(binding)
            y.append(unflat(binding.get_outputs()[0].numpy(), Hq, problem))
        return np.stack(y)

    return call


# -- NumPy, oneDNN ----------------------------------------------------------------------------


def onednn_product():
    """a @ b, or a @ b.T if turned, of float32 rows by oneDNN's sgemm; None without its library."""
    name = ctypes.util.find_library("dnnl")
    if not name:
        return None
    sgemm, size, pointer = ctypes.CDLL(name).dnnl_sgemm, ctypes.c_int64, ctypes.c_void_p
    matrix = [pointer, size]
    sgemm.argtypes = [ctypes.c_char] * 2 + [size] * 3 + [ctypes.c_float, *matrix, *matrix]
    sgemm.argtypes += [ctypes.c_float, *matrix]

    def product(a, b, turned):
        c = np.empty((len(a), len(b) if turned else b.shape[1]), np.float32)
        place = lambda x: (x.ctypes.data, x.strides[0] // x.itemsize)
        sizes = (*c.shape, a.shape[1])
        status = sgemm(b"N", b"T" if turned else b"N", *sizes, 1, *place(a), *place(b), 0, *place(c))
        if status:
            sys.exit(f"oneDNN: status {status}")
        return c

    return product


def numpy_product(a, b, turned):
    return a @ (b.T if turned else b)


def materialised_call(problem, product):
    """S and P materialised, 1024 query rows at a time; the softmax is NumPy's."""

    def attend(q, k, v):
        q, k, v, out = q[0], k[0], v[0], np.empty_like(q[0])
        for g in range(k.shape[0]):
            for i in range(0, q.shape[1], 1024):
                rows = slice(i, min(i + 1024, q.shape[1]))
                n = rows.stop if problem.causal else k.shape[1]
                s = product(q[g, rows] * np.float32(problem.scale), k[g, :n], True)
                if problem.causal:
                    s[:, i:n][np.triu_indices(n - i, 1)] = -np.inf
                s -= s.max(1, keepdims=True)
                np.exp(s, out=s)
                out[g, rows] = product(s, v[g, :n], False) / s.sum(1, keepdims=True)
        return out

    def call():
        y = [attend(*problem.grouped(b)) for b in range(len(problem.lengths))]
        return np.stack(y).reshape(problem.q.shape)

    return call


# -- The rounds -------------------------------------------------------------------------------


def timed(call):
    """Seconds of one call by the wall and by the processor, others' spinning workers asleep."""
    time.sleep(0.25)
    start = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def compare(problem, library, threads, rounds, blas=True):
    """One table; returns its records."""
    calls = {"attest": ours(problem, library, threads), **torch_calls(problem)}
    prefill = int(problem.shape[3]) > 1
    if not problem.causal:
        calls["onnxruntime MultiHeadAttention"] = onnx_mha(problem, threads)
    if problem.causal or not prefill:
        calls["onnxruntime GroupQueryAttention"] = onnx_gqa(problem, threads)
    if blas:
        calls["NumPy (OpenBLAS)"] = materialised_call(problem, numpy_product)
        if onednn_product():  # Debian: libdnnl2
            calls["oneDNN sgemm"] = materialised_call(problem, onednn_product())
    errors = {name: problem.truth(call()) for name, call in calls.items()}  # and warm-up
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(timed(call))
    operator = torch_operator(calls["PyTorch flash"])
    print(f"\n{problem.name}; PyTorch ran {operator}", flush=True)
    records = []
    for name in calls:
        pairs = list(zip(times[name], times["attest"]))
        ratio = sorted(t[0] / o[0] for t, o in pairs)
        cpu_ratio = statistics.median(t[1] / o[1] for t, o in pairs)
        record = {
            "problem": problem.name,
            "name": name,
            "ms": 1e3 * statistics.median(t[0] for t in times[name]),
            "cpu_ratio": cpu_ratio,
            "ratio": statistics.median(ratio),
            "low": ratio[0],
            "high": ratio[-1],
            "error": float(errors[name]),
        }
        records.append(record)
        print(
            f"  {name:34} {record['ms']:9.2f} ms   {record['ratio']:5.2f} of ours"
            f" ({record['low']:.2f} .. {record['high']:.2f}), cpu {cpu_ratio:5.2f}   max error {record['error']:.1e}",
            flush=True,
        )
    return records


def problems(quick):
    """Prefill full and causal, decode, batch decode; the sizes of performance.md."""
    for n in (2048,) if quick else (2048, 8192):
        for d in (64, 128):
            for causal in (False, True):
                word = "causal" if causal else "full"
                yield Problem(f"prefill {word} N {n} D {d}", [n], 1, 1, n, d, causal)
    yield Problem("decode 1 x 8192, 32 heads over 8, D 128", [8192], 32, 8, 1, 128)
    mixed = [int(128 * 64 ** (b / 15)) for b in range(16)]
    yield Problem("batch 16 x 128..8192, 32 heads over 8, D 128", mixed, 32, 8, 1, 128)


def sweep(path, library, rounds):
    """Full prefill, D 64, N 256 .. 16384: the columns of docs/figures/cpu.dat but the last, appended."""
    for n in (256, 512, 1024, 2048, 4096, 8192, 16384):
        problem = Problem(f"prefill full N {n} D 64", [n], 1, 1, n, 64)
        records = compare(problem, library, THREADS, rounds, blas=n <= 4096)
        ratio = [f"{r['cpu_ratio']:.3g}" for r in records[1:]] + ["-"] * (n > 4096)
        memory = library.peers_workspace(problem.shape.ctypes.data_as(ctypes.c_void_p), THREADS)
        with open(path, "a", encoding="utf-8") as file:
            file.write(" ".join([str(n), f"{records[0]['ms']:.4g}", *ratio, str(memory)]) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--sweep")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    library = ctypes.CDLL(options.library)
    library.peers_engine.restype = ctypes.c_char_p
    library.peers_workspace.restype = ctypes.c_int64
    engine = library.peers_engine().decode()
    print(
        f"attest {engine}; PyTorch {torch.__version__} ({torch.backends.cpu.get_cpu_capability()}),"
        f" onnxruntime {onnxruntime.__version__}, NumPy {np.__version__}, onnx {onnx.__version__};"
        f" {platform.machine()}, {THREADS} threads, {options.rounds} rounds"
    )
    if options.sweep:
        sweep(options.sweep, library, options.rounds)
        return
    for problem in problems(options.quick):
        if options.only in problem.name:
            for record in compare(problem, library, THREADS, options.rounds):
                if options.json:
                    with open(options.json, "a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
