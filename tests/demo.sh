#!/bin/sh
# make demo: our engines, nine third-party kernels and three planted faults, on the activations of a
# trained transformer. Table on the terminal, the same as JSON lines, and a picture.
# FULL=1 judges every row; else 96 of each case, drawn as printed by `attest judge`.
# SPDX-License-Identifier: MIT
set -u
build=${BUILD:-build}
attest=$build/attest data=tests/data/real to=$build/demo
rows=96
[ -n "${FULL:-}" ] && rows=all
mkdir -p "$to"
rm -f "$to"/demo.json "$to"/demo.dat
start=$(date +%s) wrong=0

head() {
    printf '\n%s\n' "$1"
    printf '%-20s %-26s %-18s %-5s %8s %6s  %-28s %-10s %-9s %s\n' case result 'held to' verdict \
        ratio failed 'and fails, one rung stricter' assert_close allclose worst
}
# expected exit status, then the command
row() {
    want=$1
    shift
    "$attest" "$@" --rows $rows --brief --append "$to/demo.json"
    got=$?
    [ $got = "$want" ] || { echo "demo: attest $* ended with $got, expected $want"; wrong=1; }
}
# error and allowance of every row, for the picture
profile() { "$attest" "$@" --rows all --brief --profile "$to/demo.dat" >/dev/null; }

printf 'attest demo: rows judged of each case: %s (both ends, tile borders, then drawn; FULL=1 for all)\n' "$rows"
printf 'A ratio of 1 is the edge of what the stated arithmetic can do; 0 is the correctly rounded number.\n'
printf 'assert_close, allclose: elements that the defaults of PyTorch and NumPy call wrong.\n'

head 'Our engines: scalar (tiles, splits, merge trees) and the textbook'
for group in L00G2 L07G2 L18G2; do
    case=$data/smollm2_${group}_fp32.safetensors
    row 0 check scalar "$case" --tile 64
    row 0 check scalar "$case" --tile 1
    row 0 check scalar "$case" --splits 0,1,7,100 --merge tree
    row 0 check scalar "$case" --splits 5 --merge random:7
    row 0 check standard "$case"
done
row 0 check scalar $data/minilm_L0H2_fp32.safetensors --tile 16

head 'Third-party outputs, each held to the strictest arithmetic that describes it'
for group in L00G2 L07G2 L18G2; do
    for dtype in fp32 bf16 fp16; do
        row 0 judge "$data/smollm2_${group}_$dtype.safetensors"
    done
done

head 'Planted faults in our scalar engine'
row 1 check scalar $data/smollm2_L00G2_fp32.safetensors --fault lost-rescale-u@1
row 1 check scalar $data/smollm2_L18G2_fp32.safetensors --fault lost-key@63,head=2
row 1 check scalar $data/smollm2_L00G2_fp32.safetensors --fault causal-off-by-one

if command -v gnuplot >/dev/null 2>&1; then
    profile check scalar $data/smollm2_L00G2_fp32.safetensors --tile 64
    profile judge $data/smollm2_L07G2_bf16.safetensors --only h200_flash
    profile check scalar $data/smollm2_L18G2_fp32.safetensors --fault lost-key@63,head=2
    gnuplot -e "data='$to/demo.dat'; to='$to/demo'" docs/figures/demo.gp &&
        printf '\nPicture: %s/demo.svg, %s/demo.png. ' "$to" "$to"
else
    printf '\nNo gnuplot, no picture. '
fi
printf 'The table as JSON lines: %s/demo.json. %d s.\n' "$to" $(($(date +%s) - start))
printf '\nYour own kernel: save q, k, v and its out in one file, as safetensors, then\n'
printf '    %s judge dump.safetensors --causal bottom-right --scale 0.125 --layout bshd\n' "$attest"
printf '    %s judge dump.safetensors --causal bottom-right --scale 0.125 --layout bshd --arith bf16-p\n' "$attest"
exit $wrong
