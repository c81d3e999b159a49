# SPDX-License-Identifier: MIT
"""The ONNX Attention node tests in, case files out (docs/formats.md).

    convert.py OUT                     OUT: a folder for one file, or two, a test

The wheel carries no test data: the tests are made anew by onnx's own exporters, inputs from a seed
that onnx sets, expected values by its reference (onnx/reference/ops/op_attention.py).  Those
values are a third party's output, to be judged under the arithmetic that they have; never truth.
What ONNX says otherwise than we do:
    past_key, past_value   k, v are past and new keys in one; row 0 stands at the length of the past
    nonpad_kv_seqlen       kv_len; row 0 stands at it - Sq, which may be negative
    attn_mask              bool: mask; float: bias; shorter than Skv: the rest is hidden
    rank 3                 (B,S,H*D): layout bshd
    qk_matmul_output       a second case: see probabilities() and scores()
Does not do: the *_expanded twins, which are the same tests with the operator written out.
"""

import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tensors  # noqa: E402  tests/peers/tensors.py

# inputs, outputs: name in the operator's schema -> array; absent ones are not in it.
Test = namedtuple("Test", "name opset attributes inputs outputs")

ARITH = {"float32": "onnx-fp32", "float16": "onnx-fp16", "bfloat16": "onnx-bf16"}
WHY = (
    "numpy in the input dtype: q and k each times sqrt(scale) rounded to it, scores, softmax and"
    " weights stored in it, weights divided before P V"
)
RAW, CAPPED, BIASED, WEIGHTS = range(4)  # qk_matmul_output_mode


# -- What onnx hands over --------------------------------------------------------------------------


def array(x):
    """An exporter gives an array or a TensorProto."""
    return numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else np.asarray(x)


def arrays(values, graph):
    """Name in the graph -> array."""
    return {g.name: array(x) for g, x in zip(graph, values)}


def slots(formal, actual, values):
    """Schema name -> array: a node names its inputs by position, and leaves one out as ''."""
    return {f.name: values[a] for f, a in zip(formal, actual) if a}


def test_of(case):
    """The Test in a case whose only node is Attention; None: an expanded twin."""
    graph = case.model.graph
    if [n.op_type for n in graph.node] != ["Attention"]:
        return None
    (node,) = graph.node
    (opset,) = [o.version for o in case.model.opset_import if o.domain in ("", "ai.onnx")]
    schema = onnx.defs.get_schema("Attention", opset)
    given, made = case.data_sets[0]
    return Test(
        case.name,
        opset,
        {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute},
        slots(schema.inputs, node.input, arrays(given, graph.input)),
        slots(schema.outputs, node.output, arrays(made, graph.output)),
    )


def collect():
    """All tests, in onnx's order."""
    found = (test_of(case) for case in collect_testcases("Attention"))
    return [test for test in found if test]


# -- The same question, said our way --------------------------------------------------------------


def heads_first(x, heads):
    """(B,S,H*D) as (B,H,S,D); rank 4 is that already."""
    if x.ndim == 4:
        return x
    B, S, width = x.shape
    return x.reshape(B, S, heads, width // heads).transpose(0, 2, 1, 3)


def query(test, x):
    """An array with q's heads, q itself or the output, as (B,Hq,Sq,.)."""
    return heads_first(x, test.attributes.get("q_num_heads"))


def keys(test, letter):
    """k or v as (B,Hkv,Skv,.), the past in front."""
    new = heads_first(test.inputs[letter.upper()], test.attributes.get("kv_num_heads"))
    past = test.inputs.get({"k": "past_key", "v": "past_value"}[letter])
    return new if past is None else np.concatenate((past, new), axis=2)


def additive(mask, Skv):
    """attn_mask as the tensor bias or mask; keys past its end are hidden."""
    boolean = mask.dtype == np.bool_
    short = [(0, 0)] * (mask.ndim - 1) + [(0, Skv - mask.shape[-1])]
    mask = np.pad(mask, short, constant_values=False if boolean else -np.inf)
    return {"mask": mask.astype(np.uint8)} if boolean else {"bias": mask}


def window(attributes):
    """left and right; causal is right = 0, which no right bound widens."""
    left = attributes.get("left_window_size", -1)
    right = attributes.get("right_window_size", -1)
    return left, 0 if attributes.get("is_causal") else right


def offsets(test, B, Sq):
    """Where row 0 of each sequence stands."""
    lengths = test.inputs.get("nonpad_kv_seqlen")
    if lengths is not None:
        return lengths - Sq
    past = test.inputs.get("past_key")
    return np.full(B, 0 if past is None else past.shape[2])


def question(test):
    """Tensors and metadata of the case without a result, rows as bhsd."""
    q, k, v = query(test, test.inputs["Q"]), keys(test, "k"), keys(test, "v")
    case = {"q": q, "k": k, "v": v}
    if "attn_mask" in test.inputs:
        case |= additive(test.inputs["attn_mask"], k.shape[2])
    if "nonpad_kv_seqlen" in test.inputs:
        case["kv_len"] = test.inputs["nonpad_kv_seqlen"]
    # ONNX computes the default from the head size, in double; sqrt(scale) is rounded later.
    scale = test.attributes.get("scale", 1 / np.sqrt(q.shape[3]))
    left, right = window(test.attributes)
    about = {"spec": 1, "name": test.name, "scale": float(scale), "left": left, "right": right}
    if (left, right) != (-1, -1):
        case["offset"] = offsets(test, q.shape[0], q.shape[2]).astype(np.int64)
    if test.attributes.get("softcap"):
        about["softcap"] = test.attributes["softcap"]
    about["source"] = f"ONNX node test (Apache-2.0), Attention opset {test.opset}"
    return case, about


# -- Cases: one for Y, one for qk_matmul_output ---------------------------------------------------


def held_to(test):
    """What every result of this test is held to."""
    arith = ARITH[test.inputs["Q"].dtype.name]
    made_by = f"onnx {onnx.__version__} reference implementation, numpy {np.__version__}"
    return {"": {"arith": arith, "why": WHY, "from": made_by}}


def attention(test):
    """Y.  A rank-3 test stays in its order of memory."""
    case, about = question(test)
    case["out"] = query(test, test.outputs["Y"])
    about |= {"layout": "bhsd", "results": held_to(test)}
    if test.inputs["Q"].ndim == 3:
        about["layout"] = "bshd"
        case |= {name: case[name].transpose(0, 2, 1, 3) for name in ("q", "k", "v", "out")}
    return case, about


def probabilities(test):
    """The weights themselves are the output where v is the identity."""
    case, about = question(test)
    B, Hkv, Skv, _ = case["k"].shape
    case["v"] = np.broadcast_to(np.eye(Skv, dtype=case["q"].dtype), (B, Hkv, Skv, Skv))
    case["out"] = test.outputs["qk_matmul_output"]
    return case, about | {"results": held_to(test)}


def scores(test, mode):
    """A score is the lse of a row that sees one key: sequence b*Skv + j holds key j of b alone.
    Raw and capped scores know no bias, mask or bound.  v and out are zeros: they answer nothing."""
    case, about = question(test)
    B, _, Skv, _ = case["k"].shape
    Hq, Sq = case["q"].shape[1:3]
    alone = lambda x: x.transpose(0, 2, 1, 3)[:, :, :, None].reshape(B * Skv, -1, 1, x.shape[3])
    columns = lambda x: np.moveaxis(x, 3, 1).reshape(B * Skv, Hq, Sq, 1)
    case |= {"q": case["q"].repeat(Skv, axis=0), "k": alone(case["k"])}
    case["v"] = np.zeros_like(case["k"][..., :1])
    case["out"] = np.zeros_like(case["q"][..., :1])
    case["lse"] = columns(test.outputs["qk_matmul_output"])[..., 0]
    if mode == BIASED:
        for name in {"bias", "mask"} & case.keys():
            case[name] = columns(np.broadcast_to(case[name], (B, Hq, Sq, Skv)))
        if "kv_len" in case:
            case["kv_len"] = (np.arange(Skv) < case["kv_len"][:, None]).astype(np.int64).ravel()
        if "offset" in case:
            case["offset"] = (case["offset"][:, None] - np.arange(Skv)).ravel()
    else:
        case = {name: case[name] for name in ("q", "k", "v", "out", "lse")}
        about |= {"left": -1, "right": -1}
    return case, about | {"results": held_to(test)}


def cases(test):
    """The cases that hold every output of a test but the present cache: that is k and v."""
    yield attention(test)
    if "qk_matmul_output" in test.outputs:
        mode = test.attributes.get("qk_matmul_output_mode", RAW)
        case, about = probabilities(test) if mode == WEIGHTS else scores(test, mode)
        yield case, about | {"name": about["name"] + "_qk"}


def present_fault(test):
    """What is wrong with the cache that comes out, or None: past and new keys, bit for bit."""
    for letter, name in (("k", "present_key"), ("v", "present_value")):
        want = test.outputs.get(name)
        if want is not None and want.tobytes() != keys(test, letter).tobytes():
            return f"{name} is not the past and the new keys in one"
    return None


def write(folder, test):
    """Paths of the test's case files."""
    paths = []
    for case, about in cases(test):
        path = Path(folder) / (about["name"] + ".safetensors")
        tensors.save(path, case, "attest", about)
        paths.append(path)
    return paths


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tests = collect()
    files = sum(len(write(folder, test)) for test in tests)
    print(f"{len(tests)} tests, {files} case files in {folder}")


if __name__ == "__main__":
    main()
