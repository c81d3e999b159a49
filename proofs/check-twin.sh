#!/usr/bin/env bash
# The C against its Coq twin, bit for bit, in check.sh's build folder. Flocq's arithmetic costs 0.1 ms
# a set at 32 bits and 0.5 ms at 64; LONG=1 takes a million of each.
#
#     check-twin.sh              compiles the twin
#     check-twin.sh BITS rows    pushes, tiles, merges, outputs and exponentials (SETS, SEED)
#     check-twin.sh BITS exp     the exponential alone
#
# SPDX-License-Identifier: MIT
set -u
seed=${SEED:-20240601} sets=${SETS:-1000000} bits=${1:-} what=${2:-rows}
if [ -z "$bits" ]; then
    if cp "$HERE"/twin.c "$HERE"/twin_check.ml . &&
        ocamlfind ocamlopt -w -a -O3 twin.mli twin.ml twin_check.ml -o twin_check >twin.log 2>&1; then
        echo "ok    the twin in OCaml"
        exit
    fi
    echo "FAIL  the twin in OCaml"
    tail -3 twin.log
    exit 1
fi
[ "$bits${LONG:-}" != 64 ] || sets=$((sets / 10))
set -o pipefail
name=twin$bits$what
if ${CC:-cc} -O2 -std=c11 -ffp-contract=off -D_POSIX_C_SOURCE=200809L -DAT_BITS="$bits" -I"$HEADERS" \
    twin.c -o "$name" -lm && "./$name" "$seed" "$sets" "$what" | ./twin_check "$bits" >"$name.log"; then
    echo "ok    C and Flocq, $bits bits, $what, seed $seed: $(tail -1 "$name.log")"
else
    echo "FAIL  C and Flocq, $bits bits, $what, seed $seed"
    cat "$name.log"
    exit 1
fi
