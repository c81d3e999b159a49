#!/usr/bin/env bash
# Runtime errors of at_row.h and at_math.h, the real headers, by Frama-C's EVA: check-eva.sh BITS.
# SPDX-License-Identifier: MIT
set -u
bits=$1
if ! command -v frama-c >/dev/null; then
    echo "skip  EVA, $bits bits: Frama-C is not installed (tests/setup.sh prove-c)"
elif frama-c -eva -eva-precision 2 -eva-auto-loop-unroll 64 -warn-special-float none \
    -cpp-extra-args="-I$HEADERS -DAT_BITS=$bits -D__GNUC__=12" "$HERE/row_eva.c" >"eva$bits.log" 2>&1 &&
    grep -q '^\[eva:summary\]' "eva$bits.log" && grep -q '0 alarms generated' "eva$bits.log"; then
    echo "ok    EVA, $bits bits: 0 alarms, $(grep -oE '[0-9]+ statements reached[^.]*' "eva$bits.log" | head -1)"
else
    echo "FAIL  EVA, $bits bits"
    grep -E 'alarm|error|Error' "eva$bits.log" | head -5
    exit 1
fi
