#!/usr/bin/env bash
# The axioms behind the theorems of Statements.v against a whitelist, in check.sh's build folder:
#
#     axioms.sh MODULE     of all theorems of one module together: its libraries take seconds to walk
#     axioms.sh others     of each theorem of the modules that have no target of their own
#
# The definitions hold by reflexivity, and are not asked. SPDX-License-Identifier: MIT
set -u
alone=" SExp32 SExp64 SExpIeee "
# The real numbers of Coq's library; classical logic; the kernel's machine integers, which only
# Interval's computations use.
allowed='ClassicalDedekindReals\.sig_not_dec|ClassicalDedekindReals\.sig_forall_dec'
allowed="$allowed|FunctionalExtensionality\.functional_extensionality_dep|Classical_Prop\.classic"
[ "$1" = others ] || allowed="$allowed|(PrimInt63|Uint63)\.[A-Za-z0-9_]+"

units() { # a name and a term, for what is asked together
    awk -v alone="$alone" -v which="$1" '
        /^Module /{sub(/\.$/, "", $2); m = $2}
        /^Theorem / && m !~ /Definitions/ {
            if (which == m) all = all ? "conj (@Statements." m "." $2 ") (" all ")" : "@Statements." m "." $2
            if (which == "others" && !index(alone, " " m " ")) print m "." $2, "@Statements." m "." $2
        }
        END { if (all) print which, all }' Statements.v
}
units "$1" >"units.$1"
{
    echo "Require Statements."
    while read -r name term; do
        echo "Definition unit_${name//./_} := $term."
        echo "Redirect \"axioms.$name\" Print Assumptions unit_${name//./_}."
    done <"units.$1"
} >"Axioms_$1.v"
coqc -q -w -all "Axioms_$1.v" >"Axioms_$1.log" 2>&1 || {
    echo "FAIL  Print Assumptions, $1"
    tail -3 "Axioms_$1.log"
    exit 1
}
status=0
while read -r name _; do
    found=$(grep -oE "^[A-Za-z_][A-Za-z0-9_.']*" "axioms.$name.out" | grep -vxE 'Axioms|Closed')
    rm -f "axioms.$name.out"
    other=$(echo "$found" | grep -vxE "$allowed|")
    if [ -n "$other" ]; then
        echo "FAIL  axioms of $name: $(echo "$other" | tr '\n' ' ')"
        status=1
    else
        echo "ok    axioms of $name: $(echo "$found" | sed -E 's/^(PrimInt63|Uint63)\..*/machine integers/; s/.*\.//' |
            sort -u | paste -sd' ' | sed 's/^$/none/')"
    fi
done <"units.$1"
exit $status
