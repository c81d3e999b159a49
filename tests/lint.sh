#!/bin/sh
# What the compiler does not check: format, layering (docs/style.md), no tolerance constants, no
# callbacks to the outside, licence lines, citation keys. SPDX-License-Identifier: MIT
set -u
bad=0
report() { # title, findings
    [ -z "$2" ] && return
    echo "lint: $1"
    echo "$2" | sed 's/^/    /'
    bad=1
}
sources=$(git ls-files '*.c' '*.h' '*.cu' '*.cuh')

if command -v clang-format >/dev/null 2>&1; then
    report "not as clang-format leaves it" \
        "$(for f in $sources; do clang-format "$f" | cmp -s - "$f" || echo "$f"; done)"
else
    echo "lint: clang-format not found, format not checked"
fi

includes() { git grep -hoE "^#include \"[^\"]+\"" -- "$@" | sort -u | sed 's/#include "\(.*\)"/\1/'; }
ours() { for f in $(includes "$1"); do [ -n "$(git ls-files "*/$f" | grep -vE "$2")" ] && echo "$1 includes $f"; done; }
report "include/ includes something of ours" "$(ours include '^include/')"
report "tiled/ reaches past include/" "$(ours tiled '^(include|tiled)/')"
report "gpu/ reaches past include/" "$(ours gpu '^(include|gpu)/')"
report "ref/ reaches past include/" "$(ours ref '^(include|ref)/')"
report "oracle/ reaches past include/ and ref/" "$(ours oracle '^(include|ref|oracle)/')"
report "truth shares floating-point code with an engine" \
    "$(git grep -nE '#include "at_(row|math)\.h"' -- 'ref/truth*.c' ref/format.c ref/bound*.c ref/compare.c)"
report "the library prints, exits or reads the environment" \
    "$(git grep -nE '\b(printf|fprintf|puts|exit|abort|getenv)\(' -- include ref tiled gpu/*.cu gpu/*.cuh oracle)"
report "a tolerance constant" \
    "$(git grep -nE '(<=?|>=?) *\(?(float|double)?\)? *[0-9.]*[1-9][0-9.]*e-[0-9]+|\b(rtol|atol|tolerance) *= *[0-9]' \
        -- '*.c' '*.h' '*.cu' '*.cuh' | grep -v 'published rule')"
report "no licence line" \
    "$(for f in $sources $(git ls-files '*.sh' '*.py' '*.v' Makefile '*.mk'); do
           grep -q 'SPDX-License-Identifier: MIT' "$f" || echo "$f"; done)"
report "a function past 60 lines (a kernel: 80)" "$(awk '
    FNR==1 {prev=""; open=0}
    /^\{/ || /^[a-zA-Z_].*\) *\{ *$/ {open=FNR; name=($0 ~ /^\{/) ? prev : $0; next}
    /^\}/ && open {n=FNR-open; most=(FILENAME ~ /\.cuh?$/) ? 80 : 60
                   if (n>most) printf "%s:%d %d lines: %s\n", FILENAME, open, n, name; open=0}
    {if ($0 !~ /^[ \t]*$/) prev=$0}' $sources)"
report "a file past 400 lines" "$(wc -l $sources | awk '$2!="total" && $1>400 {print $2": "$1}')"
references=$(grep -oE '^- \*\*[A-Za-z0-9]+\*\*' docs/references.md | tr -d -- '-* ')
report "a citation key without its reference, or a reference without its use" "$(
    for key in $(git grep -hoE '[[;,] ?[A-Z][A-Za-z]{1,14}[0-9]{2}[a-z]?[],;]' -- $sources '*.v' 'docs/*.md' \
                     ':!docs/references.md' | tr -d '[],; ' | sort -u); do
        case $key in *[a-z]*) echo "$references" | grep -qx "$key" || echo "$key: no reference" ;; esac
    done
    for key in $references; do
        git grep -q "$key" -- $sources '*.v' 'docs/*.md' ':!docs/references.md' || echo "$key: not used"
    done)"

if [ "${TIDY:-1}" = 1 ] && command -v clang-tidy >/dev/null 2>&1; then
    report "clang-tidy" "$(clang-tidy --quiet $(git ls-files 'ref/*.c' 'oracle/*.c' 'attest/*.c') -- \
        -std=c11 -D_POSIX_C_SOURCE=200809L -Iinclude -Iref -Ioracle -Iattest -Igpu -Itiled 2>/dev/null | grep -E 'warning|error')"
fi
[ "$bad" = 0 ] && echo "lint: clean"
exit $bad
