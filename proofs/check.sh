#!/usr/bin/env bash
# Checks every proof: constants from include/at_math.h, Gappa's certificates, Coq, frozen statements,
# axioms against a whitelist, the C against its Coq twin, Frama-C where it is installed.
#
#     proofs/check.sh                 everything; closes with `N passed, 0 failed`
#     HEADERS=dir BUILD=dir ONLY=1    for the mutants: another include/, no axioms, stop at a failure
#
# SPDX-License-Identifier: MIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=${SOURCE:-$here}
headers=${HEADERS:-$here/../include}
build=${BUILD:-$here/../build/proofs}
only=${ONLY:-}
pass=0 fail=0
ok() { pass=$((pass + 1)); echo "ok    $*"; }
bad() {
    fail=$((fail + 1))
    echo "FAIL  $*"
    [ -z "$only" ] || finish
}
finish() {
    echo "$pass passed, $fail failed"
    [ "$fail" = 0 ]
    exit
}
for tool in coqc gappa python3 ocamlfind cc; do
    command -v $tool >/dev/null || {
        echo "proofs need $tool: make prove-setup" >&2
        exit 2
    }
done
export COQ_COLORS=0 TIMEFORMAT=%R
mkdir -p "$build"
cp -u "$source"/*.v "$build"
cd "$build"

# What a file was made from, so that a second run checks only what changed.
stamp() { cat "$@" 2>/dev/null | sha256sum | cut -c1-64; }
fresh() { [ -f "$1.vo" ] && [ "$(cat "$1.stamp" 2>/dev/null)" = "$2" ]; }

compile() { # file, and the files it needs
    local file=$1 key seconds
    shift
    key=$(stamp "$file.v" "${@/%/.stamp}")
    if fresh "$file" "$key"; then
        ok "coqc $file (unchanged)"
        return
    fi
    if seconds=$( { time coqc -q -w -all "$file.v" >"$file.log" 2>&1; } 2>&1); then
        echo "$key" >"$file.stamp"
        ok "coqc $file, $seconds s"
    else
        rm -f "$file.vo" "$file.stamp"
        bad "coqc $file"
        tail -5 "$file.log"
    fi
}

# -- The constants that ship ------------------------------------------------------------------
if python3 "$source/constants.py" "$headers/at_math.h" .; then
    ok "constants of at_exp32 and at_exp64 read from at_math.h"
else
    bad "constants of at_math.h"
    finish
fi

# -- Gappa: its status, and that the file says something (an unproved goal leaves an empty one) --
certificates="exp32_red exp32_neg exp32_pos exp64_red exp64_neg exp64_pos"
certify() {
    local key
    key=$(stamp "$1.g")
    if fresh "${1}_gappa" "$key"; then
        ok "gappa $1 (unchanged)"
    elif gappa -Bcoq "$1.g" >"${1}_gappa.v" 2>"$1.log" && grep -q '^Lemma l1 : s1 -> False' "${1}_gappa.v" &&
        coqc -q -w -all "${1}_gappa.v" >>"$1.log" 2>&1; then
        echo "$key" >"${1}_gappa.stamp"
        ok "gappa $1"
    else
        rm -f "${1}_gappa.vo" "${1}_gappa.stamp"
        bad "gappa $1"
        tail -3 "$1.log"
    fi
}
for g in $certificates; do certify "$g"; done

# -- Coq -------------------------------------------------------------------------------------
compile Exact
compile Sums
compile Rounding Sums
compile RangeFree Sums Rounding
compile Bound Sums Rounding
compile RowBound Sums Rounding RangeFree Bound
compile Formats Sums Rounding RangeFree
compile Range Sums Rounding Formats
compile Ieee Sums Rounding Formats Range
compile Constants
compile ExpScale Sums
compile Exp32 Sums ExpScale Constants exp32_red_gappa exp32_neg_gappa exp32_pos_gappa
compile Exp64 Sums ExpScale Constants exp64_red_gappa exp64_neg_gappa exp64_pos_gappa
compile Binary32 Sums Rounding RangeFree Formats Range Exp32 Ieee
compile Twin Constants Ieee
compile ExpIeee Sums Formats Range Ieee ExpScale Constants Exp32 Binary32 Twin
compile Backward Exact
files="Exact Sums Rounding RangeFree Bound RowBound Formats Range Ieee Exp32 Exp64 Binary32 Twin ExpIeee Backward"
compile Statements Constants $files

# -- Nothing assumed --------------------------------------------------------------------------
if grep -nE '\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Unset Guard|bypass_check)\b' "$source"/*.v; then
    bad "something is assumed"
else
    ok "no Admitted, no Axiom, no Parameter"
fi

# -- The axioms of every statement --------------------------------------------------------------
# The real numbers of Coq's library; classical logic; the kernel's machine integers, which only
# Interval's computations use.
reals='ClassicalDedekindReals\.sig_not_dec|ClassicalDedekindReals\.sig_forall_dec'
reals="$reals|FunctionalExtensionality\.functional_extensionality_dep|Classical_Prop\.classic"
machine='(PrimInt63|Uint63)\.[A-Za-z0-9_]+'
with_interval=" SExp32 SExp64 SBinary32 SExpIeee "
# The definitions hold by reflexivity. Interval's and Gappa's libraries take seconds to walk: their theorems are asked about together.
units() {
    awk -v heavy="$with_interval" '/Definitions/ { next } {split($1, p, "."); m = p[1]
        if (index(heavy, " " m " ")) { all[m] = all[m] ? "conj (@Statements." $1 ") (" all[m] ")" : "@Statements." $1 } else print $1, "@Statements." $1 }
        END { for (m in all) print m, all[m] }' claimed
}
axioms() {
    local t term names allowed
    awk '/^Module /{sub(/\.$/, "", $2); m=$2} /^Theorem /{print m "." $2}' Statements.v >claimed
    units >units
    { echo "Require Statements."
      while read -r t term; do
          echo "Definition unit_${t//./_} := $term."
          echo "Redirect \"axioms.$t\" Print Assumptions unit_${t//./_}."
      done <units
    } >Axioms.v
    coqc -q -w -all Axioms.v >Axioms.log 2>&1 || { bad "Print Assumptions"; tail -3 Axioms.log; return; }
    while read -r t term; do
        allowed="$reals"
        case "$with_interval" in *" $t "*) allowed="$reals|$machine" ;; esac
        names=$(grep -oE "^[A-Za-z_][A-Za-z0-9_.']*" "axioms.$t.out" | grep -vxE 'Axioms|Closed' || true)
        if [ -n "$(echo "$names" | grep -vxE "$allowed" | tr -d '\n')" ]; then
            bad "axioms of $t: $(echo "$names" | grep -vxE "$allowed" | tr '\n' ' ')"
        else
            ok "axioms of $t: $(echo "$names" | sed -E 's/^(PrimInt63|Uint63)\..*/machine integers/; s/.*\.//' |
                sort -u | paste -sd' ' | sed 's/^$/none/')"
        fi
        rm -f "axioms.$t.out"
    done <units
    # The README's table claims exactly what the frozen file states.
    if diff <(grep -oE '`[A-Za-z0-9]+\.[A-Za-z_0-9]+`' "$source/README.md" | tr -d '`' | grep -vE '\.(v|c|sh|py|mk)$' | sort -u) \
            <(grep -v Definitions claimed | sed 's/^S//' | sort -u) >claims.diff; then
        ok "README.md names every stated theorem, and no other"
    else
        bad "README.md and Statements.v differ: $(grep '^[<>]' claims.diff | tr '\n' ' ')"
    fi
}
[ -n "$only" ] || axioms

for part in "$source"/check-*.sh; do
    [ -f "$part" ] && [ -z "$only" ] && . "$part"
done
finish
