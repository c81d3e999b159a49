"""Times the kernels beside PyTorch's in one run: interleaved rounds, medians of the rounds' times.

    gpu_bench.py LIB OUT.json [prefill32 prefill16 decode batch]

Each round runs every contender once, after the L2 cache was flushed: by writing 1 GiB ("dirty": its
lines must be written back while the kernel runs) or by reading it ("clean"). The same flush keeps the
queue filled, so that the host's launch time is not measured. SPDX-License-Identifier: MIT"""
import ctypes as C
import json
import math
import statistics
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend as SB
from torch.nn.attention import sdpa_kernel

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
dev = "cuda"
lib = C.CDLL(sys.argv[1])
F32, F16, BF16 = 2, 3, 4  # enum at_dtype
code = {torch.float32: F32, torch.float16: F16, torch.bfloat16: BF16}
PREFILL, DECODE, MMA, WGMMA = range(4)
BACKENDS = {"flash": SB.FLASH_ATTENTION, "cudnn": SB.CUDNN_ATTENTION,
            "efficient": SB.EFFICIENT_ATTENTION, "math": SB.MATH}
results = []


class Note(C.Structure):
    _fields_ = [("kernel", C.c_char * 64), ("trouble", C.c_char * 256), ("grid", C.c_uint * 3),
                ("block", C.c_uint), ("shared", C.c_uint), ("registers", C.c_int),
                ("launches", C.c_int)]


lib.bench_note.restype = C.POINTER(Note)
big = torch.zeros(2**28, dtype=torch.float32, device=dev)
flushes = {"dirty": big.zero_, "clean": big.sum}


class Ours:
    """One of our kernels on tensors of the device; call it to launch."""

    def __init__(self, kind, q, k, v, out, causal=False, lens=None, bc=64, splits=1):
        B, Hq, Sq, D = q.shape
        size = (C.c_int64 * 6)(B, Hq, k.shape[1], Sq, k.shape[2], D)
        lens_c = (C.c_int64 * B)(*lens) if lens is not None else None
        self.job = C.c_void_p()
        self.keep = (q, k, v, out)
        p = [C.c_void_p(x.data_ptr()) for x in (q, k, v, out)]
        status = lib.bench_open(kind, code[q.dtype], code[out.dtype], size, *p,
                                C.c_double(1 / math.sqrt(D)), int(causal), lens_c, C.c_int64(bc),
                                C.c_int64(splits), C.byref(self.job))
        if status == 0:
            status = lib.bench_go(self.job)
        note = lib.bench_note().contents
        if status:
            raise RuntimeError(f"status {status}: {note.trouble.decode()}")
        torch.cuda.synchronize()
        self.evidence = dict(kernel=note.kernel.decode(), grid=list(note.grid), block=note.block,
                             shared=note.shared, registers=note.registers, launches=note.launches)

    def __call__(self):
        if lib.bench_go(self.job):
            raise RuntimeError(lib.bench_note().contents.trouble.decode())

    def close(self):
        lib.bench_close(self.job)


def measure(contenders, rounds, flush):
    times = {name: [] for name in contenders}
    for f in contenders.values():
        f()
        f()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for name, f in contenders.items():
            flushes[flush]()
            a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            a.record()
            f()
            b.record()
            torch.cuda.synchronize()
            times[name].append(a.elapsed_time(b))
    return times


def peer(backend, q, k, v, **how):
    def f():
        with sdpa_kernel(BACKENDS[backend]):
            return F.scaled_dot_product_attention(q, k, v, **how)
    try:
        f()
        torch.cuda.synchronize()
        return f
    except Exception as e:  # this backend does not take this problem
        print(f"  torch {backend}: not here ({str(e).splitlines()[0][:90]})")
        return None


def table(what, contenders, base, work, unit, rounds=9, flush="dirty"):
    """work / milliseconds, scaled by the caller to `unit`; ratio: base's time over ours, by rounds."""
    times = measure(contenders, rounds, flush)
    print(f"{what} (L2 {flush}, {rounds} rounds)")
    for name, t in times.items():
        ms = statistics.median(t)
        ratio = statistics.median(b / x for b, x in zip(times[base], t))
        f = contenders[name]
        results.append(dict(what=what, flush=flush, name=name, ms=ms, times=t, rate=work / ms, unit=unit,
                            base=base, ratio=ratio, evidence=getattr(f, "evidence", None)))
        print(f"  {name:28s} {ms:9.4f} ms  {work / ms:8.2f} {unit}  {ratio:6.3f} x {base}", flush=True)


def truth(q, k, v, rows, causal):
    """Rows of head 0 in fp64."""
    s = q[0, 0, rows].double() @ k[0, 0].double().T / math.sqrt(q.shape[-1])
    if causal:
        for n, r in enumerate(rows):
            s[n, r + 1:] = -math.inf
    return torch.softmax(s, -1) @ v[0, 0].double()


def accuracy(what, outs, t, rows):
    for name, o in outs.items():
        e = (o[0, 0, rows].double() - t).abs().max().item()
        results.append(dict(what=what, name=name, max_error=e))
        print(f"  max error on {len(rows)} rows, {name}: {e:.2e}")


def prefill(dtype, heads, kinds, base):
    N, rows = 8192, [0, 1, 4095, 8191]
    for D in (128, 64):
        q, k, v = (torch.randn(1, heads, N, D, device=dev, dtype=dtype) for _ in range(3))
        for causal in (False, True):
            what = f"prefill {str(dtype)[6:]} {heads} heads {N}x{N} d{D} {'causal' if causal else 'full'}"
            c, outs = {}, {}
            for b in BACKENDS:
                if b == "math" and dtype != torch.float32:
                    continue
                f = peer(b, q, k, v, is_causal=causal)
                if f:
                    c[f"torch {b}"] = f
                    outs[f"torch {b}"] = f()
            for name, kind, bc in kinds(D):
                o = torch.full_like(q, math.nan)
                c[name] = Ours(kind, q, k, v, o, causal, bc=bc)
                outs[name] = o
            flops = 4 * heads * N * N * D * (0.5 if causal else 1)
            table(what, c, base, flops / 1e9, "TFLOP/s", 7)
            torch.cuda.synchronize()
            accuracy(what, outs, truth(q, k, v, rows, causal), rows)
            for x in c.values():
                if isinstance(x, Ours):
                    x.close()


def decode():
    for dtype in (torch.bfloat16, torch.float32):
        q = torch.randn(1, 32, 1, 128, device=dev, dtype=dtype)
        k, v = (torch.randn(1, 8, 8192, 128, device=dev, dtype=dtype) for _ in range(2))
        grouped = q.view(1, 8, 4, 128)
        c, outs = {}, {}
        for b in BACKENDS:
            for form, f in (("gqa", peer(b, q, k, v, enable_gqa=True)), ("rows", peer(b, grouped, k, v))):
                if f:
                    c[f"torch {b} {form}"] = f
        half = torch.empty_like(v)
        c["copy of k to v's size"] = lambda: half.copy_(k)
        for splits in (16, 32, 64):
            o = torch.full((1, 32, 1, 128), math.nan, device=dev)
            c[f"gpu-decode {splits} splits"] = Ours(DECODE, q, k, v, o, splits=splits)
            outs[f"gpu-decode {splits} splits"] = o
        bytes_read = 2 * k.numel() * k.element_size()
        for flush in flushes:
            table(f"decode {str(dtype)[6:]} 1x8192 32 over 8 d128", c, next(iter(c)), bytes_read / 1e9,
                  "TB/s", 25, flush)
        s = q[0, 0].double() @ k[0, 0].double().T / math.sqrt(128)
        accuracy(f"decode {str(dtype)[6:]}", outs, torch.softmax(s, -1) @ v[0, 0].double(), [0])


def batch():
    g = torch.Generator().manual_seed(1)
    lens = torch.randint(128, 8193, (64,), generator=g)
    lens[0] = 8192
    lens = lens.tolist()
    for dtype in (torch.bfloat16, torch.float32):
        q = torch.randn(64, 32, 1, 128, device=dev, dtype=dtype)
        k, v = (torch.randn(64, 8, 8192, 128, device=dev, dtype=dtype) for _ in range(2))
        mask = (torch.arange(8192)[None] < torch.tensor(lens)[:, None])[:, None, None].to(dev)
        c = {}
        for b in ("cudnn", "efficient"):
            for form, x, how in (("gqa", q, dict(enable_gqa=True)), ("rows", q.view(64, 8, 4, 128), {})):
                f = peer(b, x, k, v, attn_mask=mask, **how)
                if f:
                    c[f"torch {b} {form} padded"] = f
        for splits in (8, 16, 32):
            o = torch.full((64, 32, 1, 128), math.nan, device=dev)
            c[f"gpu-decode {splits} splits"] = Ours(DECODE, q, k, v, o, lens=lens, splits=splits)
        useful = 2 * sum(lens) * 8 * 128 * k.element_size()
        table(f"batch decode {str(dtype)[6:]} 64 sequences 128..8192", c, next(iter(c)), useful / 1e9,
              "TB/s useful", 7)
        s = (q[5, 0].double() @ k[5, 0, :lens[5]].double().T) / math.sqrt(128)
        t = torch.softmax(s, -1) @ v[5, 0, :lens[5]].double()
        print(f"  sequence 5: max error {(o[5, 0].double() - t).abs().max().item():.2e}")
        del q, k, v, c, mask


def main():
    parts = sys.argv[3:] or ["prefill32", "prefill16", "decode", "batch"]
    x, y = torch.empty(2**30, dtype=torch.uint8, device=dev), torch.empty(2**30, dtype=torch.uint8, device=dev)
    a, b = (torch.randn(8192, 8192, device=dev) for _ in range(2))
    h = a.bfloat16(), b.bfloat16()
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    table("copy", {"1 GiB": lambda: y.copy_(x)}, "1 GiB", 2 * 2**30 / 1e9, "TB/s")
    table("GEMM 8192", {"fp32": lambda: a @ b, "bf16": lambda: h[0] @ h[1]}, "fp32", 2 * 8192**3 / 1e9,
          "TFLOP/s", 5)
    del x, y, a, b, h
    if "prefill32" in parts:
        prefill(torch.float32, 8, lambda D: [("gpu, 64 keys", PREFILL, 64), ("gpu, 128 keys", PREFILL, 128)],
                "torch efficient")
    if "prefill16" in parts:
        prefill(torch.bfloat16, 32, lambda D: [("gpu-mma", MMA, 64), ("gpu-wgmma", WGMMA, 64)], "torch flash")
    if "decode" in parts:
        decode()
    if "batch" in parts:
        batch()
    with open(sys.argv[2], "w") as f:
        json.dump(results, f, indent=1)


main()
