# shellcheck shell=bash
# Sourced by check.sh: runtime errors of at_row.h and at_math.h, the real headers, by Frama-C's EVA.
# SPDX-License-Identifier: MIT
if command -v frama-c >/dev/null; then
    for bits in 32 64; do
        if frama-c -eva -eva-precision 2 -eva-auto-loop-unroll 64 -warn-special-float none \
            -cpp-extra-args="-I$headers -DAT_BITS=$bits -D__GNUC__=12" "$source/row_eva.c" >eva$bits.log 2>&1 &&
            grep -q '^\[eva:summary\]' eva$bits.log && grep -q '0 alarms generated' eva$bits.log; then
            ok "EVA, $bits bits: 0 alarms, $(grep -oE '[0-9]+ statements reached[^.]*' eva$bits.log | head -1)"
        else
            bad "EVA, $bits bits"
            grep -E 'alarm|error|Error' eva$bits.log | head -5
        fi
    done
else
    echo "skip  Frama-C is not installed: runtime errors of the C not checked (tests/setup.sh prove-c)"
fi
