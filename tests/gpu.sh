#!/bin/bash
# Everything that needs a GPU, in one run of at most eight minutes: builds, checks, sanitizes, times,
# and leaves it all under $OUT (default build/gpu). Needs nvcc, a C and C++ compiler, a device; no
# MPFR, no network. Peers are timed where python3 has PyTorch with CUDA.
#
#     tests/gpu.sh [build] [bits] [long] [tensor] [sanitize] [bench]      default: all
# SPDX-License-Identifier: MIT
set -u
cd "$(dirname "$0")/.."
OUT=${OUT:-build/gpu}
BUILD=${BUILD:-build/gpu-build}
PYTHON=${PYTHON:-python3}
parts=${*:-build bits long tensor sanitize bench}
mkdir -p "$OUT" "$BUILD/stub"
failed=0
start=$SECONDS

# ref/ref.h names an MPFR type in two prototypes; nothing here calls them.
echo 'typedef struct no_mpfr *mpfr_ptr;' > "$BUILD/stub/mpfr.h"

want() { case " $parts " in *" $1 "*) return 0 ;; esac; return 1; }

# part NAME SECONDS COMMAND...: its output to $OUT/NAME.txt, one line here.
part() {
    local name=$1 limit=$2 begin=$SECONDS
    shift 2
    { echo "\$ $*"; timeout "$limit" "$@"; rc=$?; echo "exit $rc"; } > "$OUT/$name.txt" 2>&1
    rc=$(tail -1 "$OUT/$name.txt" | sed 's/exit //')
    [ "$rc" = 0 ] || failed=$((failed + 1))
    echo "$name: exit $rc, $((SECONDS - begin)) s: $(grep -v '^exit ' "$OUT/$name.txt" | tail -1 | cut -c1-160)"
}

machine() {
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv
    nvcc --version | tail -2
    cc --version | head -1
    uname -sr
    nproc
    echo "command: tests/gpu.sh $parts"
}
machine > "$OUT/machine.txt" 2>&1
cat "$OUT/machine.txt"

if want build; then
    part build 300 make -f tests/gpu_alone.mk -j"$(nproc)" BUILD="$BUILD"
    grep -A2 -E "Compiling entry|Used|spill" "$OUT/build.txt" | grep -E "Compiling|stack|Used" > "$OUT/registers.txt"
fi
check=$BUILD/gpu_check
if want bits; then
    part bits-fp32 120 "$check" bits 0 500
    part bits-wide 120 "$check" bits 500 700 wide
    part refuse 60 "$check" refuse
fi
if want long; then
    part long 120 "$check" long
fi
if want tensor; then
    part tensor 120 "$check" tensor
    mkdir -p "$OUT/cases"
    part dump 60 "$check" dump "$OUT/cases"
fi
if want sanitize; then
    for tool in memcheck racecheck initcheck synccheck; do
        problems=small
        [ $tool = racecheck ] && problems=race # slow: tiny problems
        part "$tool" 100 compute-sanitizer --tool $tool --error-exitcode 9 "$check" $problems &
    done
    wait
    for tool in memcheck racecheck initcheck synccheck; do # counted here: a job's count is its own
        tail -1 "$OUT/$tool.txt" | grep -q '^exit 0$' || failed=$((failed + 1))
        grep -h "SUMMARY" "$OUT/$tool.txt"
    done
fi
if want bench && "$PYTHON" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
    part bench 240 "$PYTHON" tests/gpu_bench.py "$BUILD/libgpu_bench.so" "$OUT/bench.json"
    grep -E "x torch|max error|not here|^[a-z]|TB/s" "$OUT/bench.txt"
fi
echo "$failed parts failed, $((SECONDS - start)) s, results under $OUT"
[ "$failed" = 0 ]
