# SPDX-License-Identifier: MIT
"""attest_attention.py as its users have it: PyTorch tensors, pytest, several workers.

Run by `make check-python`.  ATTEST says where the program is.  On a machine with CUDA the same tests
run on the device too, where rows are ranked first.  What an older PyTorch cannot express is skipped:
before 2.1 it has no fp8, before 2.5 no fused kernel for grouped heads.
"""

import os
import re
import sys
import time

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "attest"))
import attest_attention  # noqa: E402

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Kept cases of failures go where pytest cleans up."""
    monkeypatch.setenv("ATTEST_REPRO", str(tmp_path))


def paint(*shape, dtype=torch.float32, device="cpu", seed=1):
    """Numbers of variance 1, from a seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).to(device)


def attend(q, k, v, scale, hidden=None):
    """Plain attention in fp64 of (B,H,S,D), rounded once to the dtype of q: out, and lse in fp32 or fp64."""
    k, v = (x.double().repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    s = q.double() @ k.transpose(-1, -2) * scale
    s = s if hidden is None else s.masked_fill(hidden, -torch.inf)
    lse = torch.logsumexp(s, -1)
    return (torch.softmax(s, -1) @ v).to(q.dtype), lse if q.dtype == torch.float64 else lse.float()


def gqa(device, dtype=torch.bfloat16):
    """q, k, v as (B,S,H,D), of which no stride is that of a contiguous tensor; 4 query heads, 2 key heads."""
    qkv = paint(2, 70, 8, 64, dtype=dtype, device=device)  # one projection, as models have it
    return qkv[:, :, :4], qkv[:, :, 4:6], qkv[:, :, 6:]


def fused(q, k, v):
    """PyTorch's own kernel on (B,S,H,D), causal."""
    y = torch.nn.functional.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)), is_causal=True, enable_gqa=True)
    return y.transpose(1, 2)


def textbook(q, k, v):
    """Unfused attention on (B,S,H,D), causal: sums in fp32 (PyTorch 1.13's own are in bf16), scores and weights in q's dtype."""
    dtype, (q, k, v) = q.dtype, (x.transpose(1, 2).float() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
    s = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).to(dtype).masked_fill(hidden, -torch.inf)
    return (torch.softmax(s, -1).float() @ v).to(dtype).transpose(1, 2)


HAS_FUSED = tuple(int(x) for x in torch.__version__.split(".")[:2]) >= (2, 5)
KERNELS = [
    pytest.param(fused, "bf16-p", id="fused", marks=pytest.mark.skipif(not HAS_FUSED, reason="this PyTorch has no enable_gqa")),
    pytest.param(textbook, "bf16-sp", id="textbook"),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel, arith", KERNELS)
def test_pytorchs_bf16_gqa_from_a_strided_bshd_tensor_passes(kernel, arith, device):
    q, k, v = gqa(device)
    assert not q.is_contiguous()
    text = attest_attention.check(kernel(q, k, v), q, k, v, causal=True, layout="bshd", arith=arith)
    assert "rows judged" in text


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel, arith", KERNELS)
def test_one_planted_fault_fails_with_the_report_and_a_case_that_repeats_it(kernel, arith, device, capsys):
    q, k, v = gqa(device)
    out = kernel(q, k, v).clone()
    out[1, 37, 2] = kernel(q, k, v.roll(1, 1))[1, 37, 2]
    with pytest.raises(AssertionError, match=r"worst +out\[1,2,37,\d+\]") as failure:
        attest_attention.check(out, q, k, v, causal=True, layout="bshd", arith=arith, rows=80 if device == "cuda" else "all")
    with capsys.disabled():
        print(f"\n{failure.value}")
    repro = re.search(r"the worst row: (\S+)", str(failure.value))[1]
    assert "one_planted_fault" in repro
    status, text = attest_attention.run("judge", repro, "--arith", arith)
    assert status == 1 and "rows judged 1 of 1" in text


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_every_float_dtype_and_requires_grad(dtype, device):
    q, k, v = (paint(1, 2, 33, 16, dtype=dtype, device=device, seed=s).requires_grad_() for s in (1, 2, 3))
    out, lse = attend(q, k, v, 0.25)
    attest_attention.check(out, q, k, v, lse=lse, scale=0.25, arith=None if dtype == torch.float64 else "fp32")


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_fp8_inputs_with_descale(dtype):
    if not hasattr(torch, dtype):
        pytest.skip(f"PyTorch {torch.__version__} has no {dtype}")
    q, k, v = (paint(1, 2, 20, 16, seed=s).to(getattr(torch, dtype)) for s in (1, 2, 3))
    descale = torch.tensor([0.5]).reshape(1, 1, 1)
    out, _ = attend(q.float(), k.float() * 0.5, v.float(), 0.25)
    attest_attention.check(out.bfloat16(), q, k, v, scale=0.25, k_descale=descale, arith="bf16-p")


def test_mask_bias_and_window():
    q, k, v = (paint(2, 2, 30, 16, seed=s) for s in (1, 2, 3))
    mask = torch.rand(30, 30, generator=torch.Generator().manual_seed(4)) < 0.8
    mask.fill_diagonal_(True)
    i, j = torch.arange(30)[:, None], torch.arange(30)
    attest_attention.check(attend(q, k, v, 0.25, ~mask)[0], q, k, v, scale=0.25, mask=mask)
    bias = torch.zeros(1, 2, 30, 30).masked_fill(~mask, -torch.inf)
    attest_attention.check(attend(q, k, v, 0.25, ~mask)[0], q, k, v, scale=0.25, bias=bias)
    attest_attention.check(attend(q, k, v, 0.25, (j > i) | (j < i - 5))[0], q, k, v, scale=0.25, causal=True, window=(5, 0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_the_ranking_finds_one_wrong_row_of_thousands(layout, device):
    q, k, v = paint(2, 4, 700, 32, device=device), *(paint(2, 2, 750, 32, device=device, seed=s) for s in (2, 3))
    mask = torch.rand(750, device=device) < 0.9
    mask[0] = True
    i, j = torch.arange(700, device=device)[:, None], torch.arange(750, device=device)
    out, _ = attend(q, k, v, 0.2, (j > i + 50) | (j < i + 50 - 300) | ~mask)
    out[1, 3, 421, 7] += 0.001
    about = {"scale": 0.2, "layout": layout, "causal": "bottom-right", "left": 300}
    given = [x.transpose(1, 2) if layout == "bshd" else x for x in (out, q, k, v)]
    rows = attest_attention.suspects(*given, 40, about, mask, None).tolist()
    assert [1, 3, 421] in rows and 20 <= len(rows) <= 40
    assert all(b < 2 and h < 4 and i < 700 for b, h, i in rows)
    out[0, 0, 5, 0] = torch.nan
    assert [0, 0, 5] in attest_attention.suspects(*given, 4, about, mask, None).tolist()


def test_the_exact_suite_holds_a_kernel_to_equality():
    for case in attest_attention.cases((1, 2, 1, 48, 48, 16, 16), dtype="bf16", tile=16, causal="top-left"):
        if set(case.tensors) & {"kv_len", "q_len", "mask", "bias"}:
            continue
        i, j = torch.arange(48)[:, None], torch.arange(48)
        left = case.about.get("left", -1)
        out = attend(case.q, case.k, case.v, case.about["scale"], (j > i) | (j < i - (left if left >= 0 else 48)))[0]
        case.check(out)
        out[0, 1, 20] = out[0, 1, 20] * (1 + 2**-7) + 2**-7
        with pytest.raises(AssertionError, match="FAILS"):
            case.check(out)


# -- What it costs ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 4, 128, 128, 64), (2, 8, 2048, 2048, 128)], ids=str)
def test_overhead_of_a_call(shape, capsys, monkeypatch):
    """All but the verdict: one row is judged, which sees one key.  The least of some calls, what attest has of it,
    and this process's own time on a processor, which others on the machine do not stretch."""
    B, H, S, K, D = shape
    q, k, v = (paint(B, H, n, D, dtype=torch.bfloat16, seed=n) for n in (S, K, K))
    run, spent, clock = attest_attention.run, [], time.perf_counter

    def timed(*arguments):
        start = clock()
        try:
            return run(*arguments)
        finally:
            inside.append(clock() - start)

    monkeypatch.setattr(attest_attention, "run", timed)
    for _ in range(7):
        inside, start, busy = [], clock(), time.process_time()
        attest_attention.check(v, q, k, v, window=(0, 0), rows=1)
        spent.append((clock() - start, sum(inside), time.process_time() - busy))
    with capsys.disabled():
        call, program, busy = (f"{1e3 * x:.0f} ms" for x in min(spent))
        print(f"\noverhead of a call, {shape} bf16: {call}, of which attest runs {program}; {busy} of a processor here")


@pytest.mark.skipif("CONFIGURATIONS" not in os.environ, reason="CONFIGURATIONS says how many")
def test_configurations(capsys):
    """CONFIGURATIONS random shapes of S <= 2048 in bf16, ROWS rows each: the processor time of all, and of attest."""
    draw, start, mine = torch.Generator().manual_seed(7), os.times(), 0.0
    pick = lambda *x: x[int(torch.randint(len(x), (1,), generator=draw))]
    for n in range(int(os.environ["CONFIGURATIONS"])):
        S, K, D, H, causal = pick(1, 17, 64, 200, 512, 1000, 2048), pick(64, 129, 512, 1000, 2048), pick(32, 64, 128), pick(1, 2), n % 2
        q, k, v = (paint(1, h, s, D, dtype=torch.bfloat16, seed=n) for h, s in ((2 * H, S), (H, K), (H, K)))
        hidden = torch.arange(K) > torch.arange(S)[:, None] + K - S if causal and S <= K else None
        kept = os.times()
        out = attend(q, k, v, D**-0.5, hidden)[0]
        mine += os.times().user - kept.user
        attest_attention.check(out, q, k, v, causal="bottom-right" if hidden is not None else None, rows=int(os.environ["ROWS"]))
    end = os.times()
    with capsys.disabled():
        print(f"\n{n + 1} configurations, {os.environ['ROWS']} rows each: user {end.children_user - start.children_user:.1f} s in attest, "
              f"{end.user - start.user - mine:.1f} s in this process, {end.elapsed - start.elapsed:.1f} s wall")
