#!/usr/bin/env bash
# The rows of at_row.h, of any length, by Frama-C's WP with runtime errors: check-wp.sh BITS.
# The header is the one that ships, with comments written into it; that they are no more is checked.
# Numbers are real numbers here: SMT solvers choke on floats, and no index or pointer depends on one.
# SPDX-License-Identifier: MIT
set -u
bits=$1
functions=at_larger,at_weight,at_worth,at_take,at_join,at_out,at_lse,at_dot
functions=$functions,at_row_clear,at_row_add,at_row_take,at_row_push,at_row_merge,at_row_sink
if ! command -v frama-c >/dev/null || ! command -v why3 >/dev/null; then
    echo "skip  WP, $bits bits: Frama-C or Why3 is not installed (tests/setup.sh prove-c)"
    exit
fi
mkdir -p "wp$bits"
code() { ${CC:-cc} -fpreprocessed -dD -E -P "$1"; }
if ! python3 "$HERE/annotate.py" "$HEADERS/at_row.h" "$HERE/row.acsl" >"wp$bits/at_row.h" ||
    ! cmp <(code "$HEADERS/at_row.h") <(code "wp$bits/at_row.h"); then
    echo "FAIL  WP, $bits bits: at_row.h with its annotations is not at_row.h"
    exit 1
fi
export WHY3CONFIG=$PWD/wp$bits/why3.conf
why3 config detect >"wp$bits.log" 2>&1
# Frama-C says 0 whatever it proved: its last line counts.
frama-c -wp -wp-rte -wp-model Typed+Real -warn-special-float none -wp-prover cvc4 -wp-timeout 20 -wp-par 1 -wp-fct "$functions" \
    -cpp-extra-args="-Iwp$bits -I$HEADERS -DAT_BITS=$bits -D__GNUC__=12" "$HERE/row_wp.c" >>"wp$bits.log" 2>&1
goals=$(grep -oE 'Proved goals: +[0-9]+ / [0-9]+' "wp$bits.log" | tail -1 | tr -s ' ')
if [ -n "$goals" ] && [ "$(echo "$goals" | awk '{print ($3 == $5 && $5 > 0)}')" = 1 ]; then
    echo "ok    WP, $bits bits: $goals"
else
    echo "FAIL  WP, $bits bits: ${goals:-no goals}"
    grep -E 'Timeout|Unknown|Failed|error' "wp$bits.log" | head -10
    exit 1
fi
