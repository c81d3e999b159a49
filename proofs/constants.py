#!/usr/bin/env python3
# Reads the constants of at_exp32 and at_exp64 out of include/at_math.h for the proofs.
#
#     constants.py HEADER BUILD     prints BUILD/Constants.v and completes the .g files
#
# The C text must have the shape that Exp32.v and Exp64.v reason about, constant by constant; a
# changed shape is an error here, a changed constant is for the proofs to judge.
# SPDX-License-Identifier: MIT
import re
import struct
import sys
from pathlib import Path

NUMBER = r"([-0-9a-fA-FxXpP.+/ ]+?)f?"
REDUCE = """AT_FN {T} at_reduce{B}({T} x, {T} shift, {T} *k) {{
    *k = {fma}(x, @, shift);
    {T} n = *k - shift;
    {T} r = {fma}(n, @, x);
    return {fma}(n, @, r);
}}"""
EXP = """AT_FN {T} at_exp{B}({T} x) {{
    const {T} shift = @;
    {T} k, r = at_reduce{B}(x < @ ? @ : x, shift, &k);
    {T} power = at_{T}(at_bits{B}(k) << {S});
    return {fma}(at_q{B}(r), r, @) * power * @;
}}"""


def horner(degree):
    steps = ["    {T} q = {fma}(@, r, @);"] if degree == 6 else ["    {T} q = @;"] + ["    q = {fma}(q, r, @);"]
    steps += ["    q = {fma}(q, r, @);"] * (degree - 3)
    return "\n".join(["AT_FN {T} at_q{B}({T} r) {{"] + steps + ["    return {fma}(q, r, @);", "}}"])


def constants(text, shape, words):
    """The numbers at the @ of a shape, which the text must have, blanks and comments apart."""
    pattern = re.escape(re.sub(r"\s+", " ", shape.format(**words)))
    pattern = pattern.replace(r"\ ", r"\s*").replace("@", NUMBER)
    found = re.search(pattern, text)
    if not found:
        sys.exit("at_math.h: no longer the text that the proof is about:\n" + shape.format(**words))
    return list(found.groups())


def rounded(text, bits):
    """What a C constant expression is worth in the type."""
    hexed = re.sub(r"-?0x[0-9a-fA-F.]+p[-+]?[0-9]+", lambda m: repr(float.fromhex(m[0])), text)
    value = float(eval(re.sub(r"(?<=[0-9.])f\b", "", hexed)))
    return struct.unpack("f", struct.pack("f", value))[0] if bits == 32 else value


def dyadic(x):
    """x = m 2^e, m odd."""
    m, d = x.as_integer_ratio()
    e = 1 - d.bit_length()
    while m and m % 2 == 0:
        m, e = m // 2, e + 1
    return m, e


def main(header, build):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", Path(header).read_text(), flags=re.S)
    text = re.sub(r"\s+", " ", text)
    here = Path(__file__).parent
    coq = ["(* Printed by constants.py from include/at_math.h. *)",
           "From Coq Require Import ZArith.", "From Gappa Require Import Gappa_library."]
    for bits, degree, words in (
        (32, 6, dict(T="float", B=32, S=23, fma="fmaf")),
        (64, 13, dict(T="double", B=64, S=52, fma="fma")),
    ):
        q = constants(text, horner(degree), words)
        l2e, nhi, nlo = constants(text, REDUCE, words)
        shift, least, least2, one, back = constants(text, EXP, words)
        values = {"c%d" % (degree - i): rounded(c, bits) for i, c in enumerate(q)}
        if values.pop("c1") != 1 or rounded(one, bits) != 1 or least != least2:
            sys.exit("at_math.h: e^r = 1 + r (1 + r ...) and one least argument are expected")
        values.update(L2E=rounded(l2e, bits), NHI=rounded(nhi, bits), NLO=rounded(nlo, bits),
                      SHIFT=rounded(shift, bits), LEAST=rounded(least, bits), BACK=rounded(back, bits))
        gappa = ["@rnd = float<ieee_%d, ne>;" % bits]
        for name, x in values.items():
            m, e = dyadic(x)
            coq.append("Notation %s_%d := (Float2 (%d) (%d))." % (name, bits, m, e))
            if name not in ("LEAST", "BACK"):
                gappa.append("%s = %s;" % (name, x.hex() if x != int(x) else int(x)))
        for source in sorted(here.glob("exp%d_*.g" % bits)):
            (Path(build) / source.name).write_text("\n".join(gappa) + "\n" + source.read_text())
    (Path(build) / "Constants.v").write_text("\n".join(coq) + "\n")


main(*sys.argv[1:])
