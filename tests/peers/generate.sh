#!/bin/sh
# Generates at a user's shape, holds the painting to NumPy, and judges a correct and two faulty results
# both with `attest check` and in ten lines of NumPy: they must agree. SPDX-License-Identifier: MIT
set -eu
attest=$1 at=$2
rm -rf "$at"
mkdir -p "$at"
"$attest" generate exact --shape 2,8,2,300,300,128,128 --dtype bf16 --causal bottom-right --tile 64 -o "$at/exact"
"$attest" generate full --shape 1,4,2,20,70,32,16 --dtype fp16 --causal bottom-right --tile 16,24 -o "$at/full"
env $PYTHON tests/peers/paint.py "$at/full" tests/data/vectors/smoke tests/data/vectors/exact
agree=0 differ=0
both() { # suite, fault or "", expected status
    rm -rf "$at/got"
    mkdir -p "$at/got"
    for case in "$at/$1"/*-p.safetensors; do
        name=$(basename "$case"); name=${name%%.*}.safetensors
        "$attest" run scalar "$at/$1/$name" ${2:+--fault "$2"} -o "$at/got/$name"
    done
    ours=0 theirs=0
    "$attest" check scalar "$at/$1"/* ${2:+--fault "$2"} >"$at/check" || ours=$?
    env $PYTHON tests/peers/ten_lines.py "$at/got" "$at/$1" >"$at/numpy" || theirs=$?
    echo "$1, ${2:-no fault}: attest check $ours, NumPy $theirs, expected $3"
    grep -m1 -A1 FAILS "$at/check" || true
    grep -m1 first "$at/numpy" || true
    if [ "$ours$theirs" = "$3$3" ]; then agree=$((agree + 1)); else differ=$((differ + 1)); fi
}
both exact "" 0
both exact lost-key@63 1
both exact lost-key@64 1
both exact head-modulo 1
both full "" 0
both full page-identity 1
both full sink-twice 1
echo "numpy: $agree agree, $differ differ"
[ "$differ" = 0 ]
