# SPDX-License-Identifier: MIT
"""Is my attention kernel wrong, or is that rounding?  A verdict inside any test-suite.

    import attest_attention
    attest_attention.check(kernel(q, k, v), q, k, v, causal="bottom-right", scale=0.125, arith="bf16-p")

Needs the `attest` binary (beside this file, or ATTEST=/path/to/it, or on PATH), which judges in a process of
its own, and PyTorch (any device, dtype, strides) or NumPy (bf16, fp8: ml_dtypes).  See docs/embedding.md.
"""
import itertools, json, math, os, pathlib, random, re, shutil, struct, subprocess, tempfile, time

DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
          "float8_e5m2": "F8_E5M2", "bool": "BOOL", "uint8": "U8", "int32": "I32", "int64": "I64"}
ARITH = {"F64": "fp64", "F32": "fp32", "F16": "fp16-p", "BF16": "bf16-p", "F8_E4M3": "fp8-p", "F8_E5M2": "fp8-p"}

def stored(x):
    """Dtype as safetensors calls it, extents, and the bytes of a contiguous copy on the host."""
    name = str(x.dtype).split(".")[-1]
    if name not in DTYPES:
        raise TypeError(f"attest: dtype {name}, expected one of {', '.join(DTYPES)}")
    if hasattr(x, "detach"):  # PyTorch: NumPy does not know all of its dtypes, but bytes
        import torch
        return DTYPES[name], list(x.shape), x.detach().contiguous().reshape(-1).view(torch.uint8).cpu().numpy().data
    import numpy as np
    return DTYPES[name], list(x.shape), np.ascontiguousarray(x).reshape(-1).view(np.uint8).data

def case_file(tensors, about):
    """A case that is gone when closed: in memory where there is room, else in the temporary folder."""
    parts = {name: stored(x) for name, x in tensors.items() if x is not None}
    entries, at = {"__metadata__": {"attest": json.dumps(about)}}, 0
    for name, (dtype, shape, data) in parts.items():
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    head = json.dumps(entries).encode().ljust(len(json.dumps(entries)) + 7 & -8)  # aligned: mapped, not read
    for place in ["/dev/shm"] * os.access("/dev/shm", os.W_OK) + [None]:
        file = tempfile.NamedTemporaryFile(prefix=f"attest-{os.getpid()}-", suffix=".safetensors", dir=place)
        try:
            for part in struct.pack("<Q", len(head)), head, *(data for _, _, data in parts.values()):
                file.write(part)
            file.flush()
            return file
        except OSError:
            file.close()
            if place is None:
                raise

def run(*arguments):
    """Exit status and text of the program, which gets this worker's share of the cores."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attest")
    found = os.environ.get("ATTEST") or (beside if os.access(beside, os.X_OK) else shutil.which("attest"))
    if not found:
        raise FileNotFoundError(f"attest: no binary at {beside}, in ATTEST or on PATH")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    env = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ, "OMP_WAIT_POLICY": "passive",
           "OMP_NUM_THREADS": str(max(1, cores // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))))}
    done = subprocess.run([found, *arguments], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        raise ValueError(done.stderr.strip() or f"attest: ended with status {done.returncode}")
    return done.returncode, done.stdout

def suspects(out, q, k, v, rows, about, mask, bias):
    """(n,3): the worst rows by a plain fp64 pass on the device, rows at borders, any rows.  Ranks, never judges."""
    import torch
    out, q, k, v = (x.transpose(1, 2) if about["layout"] == "bshd" else x for x in (out, q, k, v))
    (B, H, S, _), (G, K) = q.shape, k.shape[1:3]
    shift = K - S if about.get("causal") == "bottom-right" else 0
    left, right = about.get("left", -1), 0 if "causal" in about else about.get("right", -1)
    j, bad = torch.arange(K, device=q.device), torch.empty(B, H, S, dtype=torch.float64, device=q.device)
    step = max(1, 2**25 // max(1, K))
    for b, h, i in itertools.product(range(B), range(H), range(0, S, step)):
        at, key, value = (b, h, slice(i, i + step)), k[b, h * G // H].double(), v[b, h * G // H].double()
        p = torch.arange(i, min(i + step, S), device=q.device)[:, None] + shift
        hidden = (j > p + (right if right >= 0 else S + K)) | (j < p - (left if left >= 0 else S + K))
        hidden = hidden if mask is None else hidden | (mask.expand(B, H, S, K)[at] == 0)
        s = q[at].double() @ key.T * about["scale"] + (0 if bias is None else bias.expand(B, H, S, K)[at].double())
        w = torch.softmax(s.masked_fill(hidden, -math.inf), -1).nan_to_num(0)
        bad[at] = ((w @ value - out[at].double()).abs() / (w @ value.abs() + 1e-300)).nan_to_num(math.inf).amax(-1)
    draw, ends = random.Random(1), [i for i in range(S) if i in (0, S - 1) or i % 64 in (0, 63)]
    chosen = set(bad.flatten().topk(min(rows // 2, bad.numel())).indices.tolist())
    for some in [n * S + i for n in range(B * H) for i in ends], range(B * H * S):
        chosen.update(draw.sample(some, min(rows // 4, len(some))))
    return torch.tensor([[t // S // H, t // S % H, t % S] for t in sorted(chosen)])

def check(out, q, k, v, *, lse=None, causal=None, scale=None, mask=None, bias=None, window=None, layout="bhsd",
          arith=None, rows=256, **more):
    """AssertionError with the report, and the worst row kept as a case, unless out (and lse, if given) lie where
    a kernel of that arithmetic can put them; else the report.

    causal "bottom-right" or "top-left" (True where they are the same); window (left, right) inclusive, -1 unbounded;
    mask true where visible; scale 1/sqrt(D) unless said; rows "all" or how many; arith as of `attest list arith`, else
    by the dtype of out fp32, bf16-p, ..; more: other tensors and fields of docs/formats.md (kv_len, sink, softcap)."""
    about = {"spec": 1, "layout": layout, "scale": float(q.shape[-1] ** -0.5 if scale is None else scale)}
    if causal is True and (layout == "thd" or q.shape[layout.find("s") - 4] != k.shape[layout.find("s") - 4]):
        raise ValueError('attest: causal=True and Sq may differ from Skv, expected "bottom-right" or "top-left"')
    if causal:
        about["causal"] = "bottom-right" if causal is True else causal
    if window is not None:
        about.update({"left": window[0]} if causal and window[1] == 0 else {"left": window[0], "right": window[1]})
    about.update((name, x) for name, x in more.items() if not hasattr(x, "dtype"))
    tensors = {"q": q, "k": k, "v": v, "mask": mask, "bias": bias, "out": out, "lse": lse}
    tensors.update((name, x) for name, x in more.items() if hasattr(x, "dtype"))
    flags = ["--rows", str(rows)]
    if getattr(getattr(q, "device", None), "type", "cpu") != "cpu" and layout in ("bhsd", "bshd") and rows != "all":
        flags, tensors["rows"] = [], suspects(*(x.detach() for x in (out, q, k, v)), rows, about, mask, bias)
    return judge(tensors, about, arith, flags)

def judge(tensors, about, arith, flags=()):
    """The verdict on a case; a failure's worst row stays in the folder ATTEST_REPRO, by default attest-repro."""
    folder = os.path.abspath(os.environ.get("ATTEST_REPRO", "attest-repro"))
    test = re.sub(r"\W+", "-", os.environ.get("PYTEST_CURRENT_TEST", "check").split(" ")[0]).strip("-")[-80:]
    repro = os.path.join(folder, f"{test}-{time.time_ns():x}.safetensors")
    arith = arith or ARITH[DTYPES[str(tensors["out"].dtype).split(".")[-1]]]
    with case_file(tensors, {"name": test, **about}) as case, tempfile.TemporaryDirectory() as temporary:
        worst = os.path.join(temporary, "worst.safetensors")
        status, text = run("judge", case.name, "--arith", arith, "--save-repro", worst, *flags)
        if status == 0:
            return text
        os.makedirs(folder, exist_ok=True)
        shutil.move(worst, repro)
    text = re.sub(r"(?m)^  repeat .*$", lambda _: f"  repeat   attest judge {repro}", text)
    raise AssertionError(f"attest: {'undecided' if status == 3 else 'FAILS'}; the worst row: {repro}\n{text}")

class Case:
    """A file's case: tensors (q, k, v, ..; PyTorch's where it is there, else NumPy's), about (scale, causal, ..)."""
    def __init__(self, path):
        try:
            import torch as to
        except ImportError:
            import numpy as to
        data = bytearray(pathlib.Path(path).read_bytes())
        start, names = 8 + struct.unpack("<Q", data[:8])[0], {short: name for name, short in DTYPES.items()}
        entries, self.tensors = json.loads(data[8:start]), {}
        self.about = json.loads(entries.pop("__metadata__")["attest"])
        for name, e in entries.items():
            raw, word = data[slice(*(start + x for x in e["data_offsets"]))], names[e["dtype"]]
            dtype = getattr(to, word, None) or getattr(__import__("ml_dtypes"), word)
            self.tensors[name] = to.frombuffer(raw, dtype=dtype).reshape(e["shape"])
        self.name, self.q, self.k, self.v = self.about.get("name"), *(self.tensors[name] for name in "qkv")
    def check(self, out, lse=None, arith=None):
        return judge({**self.tensors, "out": out, "lse": lse}, self.about, arith)

def cases(shape, dtype="bf16", tile=64, causal=None, suite="exact"):
    """The exact suite painted for (B, Hq, Hkv, Sq, Skv, D, Dv): Case after Case."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--dtype", dtype, "--tile", str(tile), "-o", folder] + (["--causal", causal] if causal else [])
        run("generate", suite, "--shape", ",".join(map(str, shape)), *flags)
        names = [case["name"] for case in json.loads(pathlib.Path(folder, "MANIFEST.json").read_text())["cases"]]
        for path in (os.path.join(folder, name + ".safetensors") for name in names):
            run("show", path, "--write-case", path + ".full")  # paints what is only a recipe
            yield Case(path + ".full")
