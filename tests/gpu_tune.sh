#!/bin/bash
# For the measuring turns: every variant built side by side, checked, timed beside PyTorch in one
# process each. Under 100 s on one H200 with 16 cores. Results under $OUT.
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/.."
OUT=${OUT:-build/tune}
BUILD=${BUILD:-/tmp/tune}
PYTHON=${PYTHON:-python3}
mkdir -p "$OUT"
start=$SECONDS
declare -A variant=(
    [a]=""
    [b]="-DTUNE_STAGE=1 -DTUNE_LOOSE -DTUNE_DOT=4 -DTUNE_TIGHT=6"
    [c]="-DTUNE_LOOSE -DTUNE_DOT=1 -DTUNE_TIGHT=8"
)
for v in a b c; do
    mkdir -p "$BUILD/$v/stub"
    echo 'typedef struct no_mpfr *mpfr_ptr;' > "$BUILD/$v/stub/mpfr.h"
    target=$BUILD/$v/libgpu_bench.so
    [ $v = a ] && target=all
    make -f tests/gpu_alone.mk -j8 BUILD="$BUILD/$v" EXTRA="${variant[$v]}" $target > "$OUT/build-$v.txt" 2>&1 &
done
wait
for v in a b c; do
    grep -A2 "Compiling entry" "$OUT/build-$v.txt" | grep -E "Compiling|spill|Used" > "$OUT/registers-$v.txt"
    ls "$BUILD/$v/libgpu_bench.so" || grep -m3 -i error "$OUT/build-$v.txt"
done
echo "built: $((SECONDS - start)) s"
{
    timeout 20 "$BUILD/a/gpu_check" bits 0 500 | tail -2
    timeout 20 "$BUILD/a/gpu_check" long | tail -2
} 2>&1 | cut -c1-200
for v in a b c; do
    echo "variant $v: ${variant[$v]}"
    timeout 25 "$PYTHON" tests/gpu_bench.py "$BUILD/$v/libgpu_bench.so" "$OUT/bench-$v.json" > "$OUT/bench-$v.txt" 2>&1 ||
        tail -3 "$OUT/bench-$v.txt"
    grep -E "^[a-z].*L2|  gpu|flash gqa|cudnn gqa|torch (flash|efficient) " "$OUT/bench-$v.txt" | grep -vE "max error|not here"
    [ $((SECONDS - start)) -lt 78 ] || break
done
[ $((SECONDS - start)) -gt 76 ] || timeout 20 "$BUILD/a/gpu_check" tensor | tail -1
echo "$((SECONDS - start)) s"
