#!/usr/bin/env bash
# Five faults, one at a time, in copies of the sources: each must make check.sh fail.
# Closes with `N passed, 0 failed`.  SPDX-License-Identifier: MIT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../build/proofs}
[ -f "$build/Statements.vo" ] || { echo "make prove comes first" >&2; exit 2; }
pass=0 fail=0

mutant() { # what is wrong, file, text, replacement
    local work headers=$here/../include
    work=$(mktemp -d)
    mkdir "$work/source"
    cp "$here"/*.v "$here"/*.g "$here"/*.py "$work/source"
    cp -r "$build" "$work/build"
    rm -f "$work"/build/*.v
    case $2 in
    at_math.h)
        mkdir "$work/include"
        cp "$headers/$2" "$work/include"
        headers=$work/include
        set -- "$1" "$work/include/$2" "$3" "$4"
        ;;
    *) set -- "$1" "$work/source/$2" "$3" "$4" ;;
    esac
    grep -qF -- "$3" "$2" || { echo "FAIL  $1: the text is not there"; fail=$((fail + 1)); return; }
    python3 -c 'import sys; p, a, b = sys.argv[1:]; s = open(p).read(); open(p, "w").write(s.replace(a, b, 1))' \
        "$2" "$3" "$4"
    if SOURCE=$work/source HEADERS=$headers BUILD=$work/build ONLY=1 "$here/check.sh" >"$work/log" 2>&1; then
        echo "FAIL  $1: nothing noticed"
        fail=$((fail + 1))
    else
        echo "ok    $1: $(grep -m1 '^FAIL' "$work/log" || tail -1 "$work/log")"
        pass=$((pass + 1))
    fi
    rm -rf "$work"
}

mutant "u is not rescaled" Rounding.v "times etau fA kA uA rA" "rA = uA"
mutant "l is not rescaled" Formats.v "(m, take a lx (fst t), take a ux (snd t))" "(m, take 1 lx (fst t), take a ux (snd t))"
mutant "n^epsa is dropped" RangeFree.v "Hi N k c * exp (epsa * ln (INR n)) - 1" "Hi N k c - 1"
mutant "a constant is halved" Sums.v "((Kl + Ku) * V + V * El + Eu)" "((Kl + Ku) / 2 * V + V * El + Eu)"
mutant "a coefficient of at_math.h is off by 2^-18" at_math.h "0x1.5554a4p-3f" "0x1.5556a4p-3f"
echo "$pass passed, $fail failed"
[ "$fail" = 0 ]
