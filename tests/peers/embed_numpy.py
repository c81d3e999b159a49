# SPDX-License-Identifier: MIT
"""attest_attention.py with NumPy alone, no pytest: each function below is a test whose name is true.

Run by tests/embed.sh, which says where the program is (ATTEST); closes with a Check summary.
"""

import os
import re
import sys
import tempfile
import traceback

import numpy as np

sys.path.insert(0, os.environ.get("MODULE", os.path.join(os.path.dirname(__file__), "..", "..", "attest")))
sys.dont_write_bytecode = True
import attest_attention  # noqa: E402


def paint(*shape, seed=1):
    """Numbers of variance 1 in fp32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def attend(q, k, v, scale, hidden=None):
    """Plain attention in fp64 of (B,H,S,D): out and lse, rounded once to fp32."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x.astype(np.float64), group, 1) for x in (k, v))
    s = q.astype(np.float64) @ k.swapaxes(-1, -2) * scale
    if hidden is not None:
        s = np.where(hidden, -np.inf, s)
    m = s.max(-1, keepdims=True)
    p = np.exp(s - m)
    total = p.sum(-1, keepdims=True)
    return (p / total @ v).astype(np.float32), (m + np.log(total))[..., 0].astype(np.float32)


def fails(*arguments, **named):
    """The report of a check that must fail."""
    try:
        attest_attention.check(*arguments, **named)
    except AssertionError as report:
        return str(report)
    raise SystemExit("a wrong output passed")


Q, K, V = paint(1, 4, 9, 8), paint(1, 2, 11, 8, seed=2), paint(1, 2, 11, 6, seed=3)
FUTURE = np.triu(np.ones((9, 11), bool), 3)


def a_right_output_passes_with_its_lse():
    out, lse = attend(Q, K, V, 0.25, FUTURE)
    text = attest_attention.check(out, Q, K, V, lse=lse, scale=0.25, causal="bottom-right")
    assert "rows judged 36 of 36" in text and "fp32" in text


def a_wrong_output_fails_with_the_place_and_a_case_that_repeats_it():
    out, _ = attend(Q, K, V, 0.25)
    out[0, 3, 5, 2] += 0.001
    text = fails(out, Q, K, V, scale=0.25)
    assert "worst    out[0,3,5,2]" in text and "0x1." in text
    repro = re.search(r"the worst row: (.*)", text)[1]
    assert f"repeat   attest judge {repro}" in text
    assert attest_attention.run("judge", repro)[0] == 1


def a_wrong_lse_and_a_nan_fail():
    out, lse = attend(Q, K, V, 0.25)
    lse[0, 1, 4] += 0.001
    assert "worst    lse[0,1,4]" in fails(out, Q, K, V, lse=lse, scale=0.25)
    out[0, 0, 0, 0] = np.nan
    assert "worst    out[0,0,0,0]" in fails(out, Q, K, V, scale=0.25)


def strides_and_bshd_are_taken_as_they_are():
    out, _ = attend(Q, K, V, 8**-0.5)
    attest_attention.check(*(x.swapaxes(1, 2) for x in (out, Q, K, V)), layout="bshd")
    twice = np.repeat(Q, 2, 3)[..., ::2]
    attest_attention.check(out, twice, K, V)


def mask_bias_window_and_lengths_reach_the_score():
    mask = np.random.default_rng(4).random((9, 11)) < 0.7
    mask[:, 0] = True
    attest_attention.check(attend(Q, K, V, 0.25, ~mask)[0], Q, K, V, scale=0.25, mask=mask)
    bias = np.where(mask, 0, -np.inf).astype(np.float32)
    attest_attention.check(attend(Q, K, V, 0.25, ~mask)[0], Q, K, V, scale=0.25, bias=bias)
    i, j = np.arange(9)[:, None], np.arange(11)
    attest_attention.check(attend(Q, K, V, 0.25, (j > i) | (j < i - 2))[0], Q, K, V, scale=0.25,
                           causal="top-left", window=(2, 0))
    attest_attention.check(attend(Q, K, V, 0.25, (j > i + 1) | (j < i - 2))[0], Q, K, V, scale=0.25, window=(2, 1))
    attest_attention.check(attend(Q, K, V, 0.25, j >= 7)[0], Q, K, V, scale=0.25, kv_len=np.array([7]))
    assert "FAILS" in fails(attend(Q, K, V, 0.25)[0], Q, K, V, scale=0.25, softcap=1.0)


def a_corner_that_is_not_said_is_refused():
    for wrong in {"causal": True}, {"causal": True, "layout": "thd"}, {"causal": "middle"}, {"frobnicate": 1}:
        try:
            attest_attention.check(Q, Q, K, K, **wrong)
        except ValueError as why:
            assert str(why).startswith("attest: ")
        else:
            raise SystemExit(f"{wrong} passed")


def an_undecided_verdict_is_no_pass():
    huge = Q * np.float32(1e30)
    assert "undecided" in fails(attend(Q, K, V, 0.25)[0], huge, K * np.float32(1e30), V, scale=0.25)


def nothing_is_left_in_memory_or_beside():
    before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    attest_attention.check(attend(Q, K, V, 0.25)[0], Q, K, V, scale=0.25)
    after = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    assert not {name for name in after - before if name.startswith(f"attest-{os.getpid()}-")}


def a_worker_has_its_share_of_the_cores():
    threads = []
    keep = attest_attention.subprocess.run
    attest_attention.subprocess.run = lambda *a, env, **k: threads.append(env["OMP_NUM_THREADS"]) or keep(*a, env=env, **k)
    os.environ["PYTEST_XDIST_WORKER_COUNT"] = "1000"
    attest_attention.check(attend(Q, K, V, 0.25)[0], Q, K, V, scale=0.25)
    del os.environ["PYTEST_XDIST_WORKER_COUNT"]
    attest_attention.subprocess.run = keep
    assert threads == ["1"]


def the_exact_suite_passes_and_one_step_beside_it_does_not():
    n = wrong = 0
    for case in attest_attention.cases((1, 2, 1, 40, 40, 16, 16), dtype="fp32", tile=16):
        array = {name: np.asarray(x) for name, x in case.tensors.items()}
        if set(array) & {"kv_len", "q_len", "mask", "bias"}:
            continue
        i, j = np.arange(40)[:, None], np.arange(40)
        left, right = (x if x >= 0 else 40 for x in (case.about.get("left", -1), case.about.get("right", -1)))
        hidden = (j < i - left) | (j > i + right)
        out = attend(array["q"], array["k"], array["v"], case.about["scale"], hidden)[0]
        case.check(out)
        n += 1
        out[0, 1, 7] = np.nextafter(out[0, 1, 7], np.float32(9))
        try:
            case.check(out)
        except AssertionError:
            wrong += 1
    assert n >= 4 and wrong == n, (n, wrong)


def main():
    """Runs every test above."""
    tests = [x for x in globals().values() if callable(x) and getattr(x, "__module__", "") == "__main__"]
    tests = [x for x in tests if x.__name__ not in ("paint", "attend", "fails", "main")]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ATTEST_REPRO"] = folder
        for test in tests:
            try:
                test()
            except (Exception, SystemExit):
                bad += 1
                print(f"{test.__name__}: failed")
                traceback.print_exc(file=sys.stdout)
    print(f"{100 * (len(tests) - bad) // len(tests)}%: Checks: {len(tests)}, Failures: {bad}, Errors: 0")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
