#!/usr/bin/env bash
# The C against its Coq twin, bit for bit, in check.sh's build folder; integers are Zarith's.
#
#     check-twin.sh        compiles the twin
#     check-twin.sh BITS   a million operand sets, a million more for the exponential alone (SETS, SEED)
#
# SPDX-License-Identifier: MIT
set -u
seed=${SEED:-20240601} sets=${SETS:-1000000} bits=${1:-}
if [ -z "$bits" ]; then
    if cp "$HERE"/twin.c "$HERE"/twin_check.ml . &&
        ocamlfind ocamlopt -package zarith -linkpkg -w -a -O3 twin.mli twin.ml twin_check.ml -o twin_check >twin.log 2>&1; then
        echo "ok    the twin in OCaml"
        exit
    fi
    echo "FAIL  the twin in OCaml"
    tail -3 twin.log
    exit 1
fi
status=0
${CC:-cc} -O2 -std=c11 -ffp-contract=off -D_POSIX_C_SOURCE=200809L -DAT_BITS="$bits" -I"$HEADERS" \
    twin.c -o "twin$bits" -lm || status=1
for what in rows exp; do
    if ( set -o pipefail; "./twin$bits" "$seed" "$sets" $what | ./twin_check "$bits" >"twin$bits.log" ); then
        echo "ok    C and Flocq, $bits bits, $what, seed $seed: $(tail -1 "twin$bits.log")"
    else
        echo "FAIL  C and Flocq, $bits bits, $what, seed $seed"
        cat "twin$bits.log"
        status=1
    fi
done
exit $status
