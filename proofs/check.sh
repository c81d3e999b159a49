#!/usr/bin/env bash
# Checks every proof: constants from include/at_math.h, Gappa's certificates, Coq, frozen statements,
# axioms against a whitelist, the C against its Coq twin, Frama-C where it is installed (order.mk).
#
#     proofs/check.sh                 everything, two steps at a time; closes with `N passed, 0 failed`
#     HEADERS=dir BUILD=dir ONLY=1    for the mutants: another include/, Coq alone, stop at a failure
#
# SPDX-License-Identifier: MIT
set -uo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
source=${SOURCE:-$HERE}
HEADERS=${HEADERS:-$HERE/../include}
build=${BUILD:-$HERE/../build/proofs}
export HERE HEADERS ONLY=${ONLY:-} COQ_COLORS=0
for tool in coqc gappa python3 ocamlfind cc make; do
    command -v $tool >/dev/null || {
        echo "proofs need $tool: make prove-setup" >&2
        exit 2
    }
done
mkdir -p "$build" && cp -u "$source"/*.v "$build" && cd "$build" || exit 2
ok() { echo "ok    $*"; }
bad() { echo "FAIL  $*"; }
# Every `Name.theorem` that a text cites in backquotes or in a comment.
cited() { grep -ohE '\b(Exact|Sums|Rounding|Score|Softcap|Ordered|RangeFree|Bound|RowBound|Formats|Range|Ieee|Capstone|Exp|Exp32|Exp64|Twin|ExpIeee|Backward)\.[a-zA-Z][A-Za-z_0-9]+' "$@" |
    grep -vE '\.(v|c|sh|py|mk)$' | sort -u; }

steps() {
    # The constants that ship.
    if python3 "$source/constants.py" "$HEADERS/at_math.h" .; then
        ok "constants of at_exp32 and at_exp64 read from at_math.h"
    else
        bad "constants of at_math.h"
        return
    fi
    # Nothing assumed.
    if grep -nE '\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Unset Guard|bypass_check)\b' "$source"/*.v; then
        bad "something is assumed"
    else
        ok "no Admitted, no Axiom, no Parameter"
    fi
    MAKEFLAGS='' make -s -j2 -O $([ -n "$ONLY" ] || echo -k) -f "$HERE/order.mk" || bad "a step failed"
    [ -z "$ONLY" ] || return
    # The README's table claims exactly what the frozen file states; other texts cite nothing else.
    awk '/^Module /{sub(/\.$/, "", $2); m = $2} /^Theorem / && m !~ /Definitions/ {sub(/^S/, "", m); print m "." $2; m = "S" m}' \
        Statements.v | sort -u >claimed
    if diff <(cited "$HERE/README.md") claimed >claims.diff; then
        ok "README.md names every stated theorem, and no other"
    else
        bad "README.md and Statements.v differ: $(grep '^[<>]' claims.diff | tr '\n' ' ')"
    fi
    if cited "$HERE"/../docs/*.md "$HERE"/../include/*.h "$HERE"/../ref/*.[ch] | comm -23 - claimed >uncited && [ ! -s uncited ]; then
        ok "docs, include and ref cite stated theorems only"
    else
        bad "cited, but not in Statements.v: $(tr '\n' ' ' <uncited)"
    fi
}
steps | tee steps.log
fail=$(grep -c '^FAIL' steps.log)
echo "$(grep -c '^ok' steps.log) passed, $fail failed"
[ "$fail" = 0 ]
