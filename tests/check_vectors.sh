#!/bin/sh
# The same bytes from every compiler: all suites built by gcc and clang at -O0 and -O3, with and without
# OpenMP, must have one pin. AArch64 through qemu-user compares the painted numbers alone, because a
# cross MPFR is no Debian package: truth there is not compared. Ends with the counts.
# SPDX-License-Identifier: MIT
set -eu
build=${BUILD:-build}/vectors
rm -rf "$build"
mkdir -p "$build"
passed=0 failed=0 skipped=0
judge() { # what, got, want
    if [ "$2" = "$3" ]; then passed=$((passed + 1)); echo "  $1: $2"
    else failed=$((failed + 1)); echo "  $1: $2, expected $3"; fi
}
pin() { # attest, directory, flags
    attest=$1 dir=$2
    shift 2
    nice "$attest" generate full -o "$dir" --causal bottom-right --shape 1,4,2,9,40,16,8 --tile 8 "$@" | tail -1 |
        cut -d' ' -f2
}
for dtype in fp64 fp32 bf16 fp8-e4m3; do
    eval "want_${dtype%-*}=$(pin "${BUILD:-build}/attest" "$build/here-$dtype" --dtype $dtype)"
done
for variant in "gcc -O0 1" "gcc -O3 0" "clang -O0 0" "clang -O3 0"; do
    set -- $variant
    command -v "$1" >/dev/null || { echo "skipped: $1 is not there"; skipped=$((skipped + 1)); continue; }
    nice make -s -j2 CC="$1" CFLAGS="$2" OPENMP="$3" BUILD="$build/$1$2" "$build/$1$2/attest"
    for dtype in fp64 fp32 bf16 fp8-e4m3; do
        eval "want=\$want_${dtype%-*}"
        judge "$1 $2 OPENMP=$3 $dtype" "$(pin "$build/$1$2/attest" "$build/$1$2-$dtype" --dtype $dtype)" "$want"
    done
done
paint() { # compiler, flags, how to run: the painted numbers' hash
    "$1" $2 -std=c11 -ffp-contract=off -Iinclude -Ioracle -o "$build/paint" tests/paint_main.c oracle/paint.c
    shift 2
    "$@" "$build/paint"
}
want=$(paint gcc -O2)
for how in "gcc -O0" "clang -O3" "aarch64-linux-gnu-gcc -O0" "aarch64-linux-gnu-gcc -O3"; do
    set -- $how
    run=
    case $1 in aarch64*) run=qemu-aarch64 ;; esac
    if ! command -v "$1" >/dev/null || { [ -n "$run" ] && ! command -v $run >/dev/null; }; then
        echo "skipped: painted numbers, $how is not there"; skipped=$((skipped + 1)); continue
    fi
    static=; [ -n "$run" ] && static=-static
    judge "painted numbers, $how" "$(paint "$1" "$2 $static" $run)" "$want"
done
echo "vectors: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
