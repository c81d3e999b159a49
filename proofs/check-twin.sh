# shellcheck shell=bash
# Sourced by check.sh: the C against its Coq twin, bit for bit.  Flocq's arithmetic
# costs 0.1 ms a set at 32 bits and 0.5 ms at 64; LONG=1 takes a million of each.
# SPDX-License-Identifier: MIT
seed=${SEED:-20240601} LONG=${LONG:-}
if cp -u "$source"/twin.c "$source"/twin_check.ml . &&
    ocamlfind ocamlopt -w -a -O3 twin.mli twin.ml twin_check.ml -o twin_check >twin.log 2>&1; then
    ok "the twin in OCaml"
else
    bad "the twin in OCaml"
    tail -3 twin.log
fi
for bits in 32 64; do
    sets=${SETS:-1000000}
    [ "$bits$LONG" != 64 ] || sets=$((sets / 10))
    if ${CC:-cc} -O2 -std=c11 -ffp-contract=off -D_POSIX_C_SOURCE=200809L -DAT_BITS=$bits -I"$headers" \
        twin.c -o twin$bits -lm && ./twin$bits $seed "$sets" | ./twin_check $bits >twin$bits.log; then
        ok "C and Flocq, $bits bits, seed $seed: $(tail -1 twin$bits.log)"
    else
        bad "C and Flocq, $bits bits, seed $seed"
        cat twin$bits.log
    fi
done
