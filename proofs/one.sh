#!/usr/bin/env bash
# One step of check.sh, in its build folder, unless nothing that it was made from has changed:
#
#     one.sh coq FILE NEEDED...     coqc FILE.v
#     one.sh gappa FILE_gappa       a certificate of FILE.g, and Coq's word on it
#
# SPDX-License-Identifier: MIT
set -u
kind=$1 file=$2
shift 2
export TIMEFORMAT=%R
coq() { coqc -q -w -all "$1.v"; }
# Gappa's status, and that the file says something: an unproved goal leaves an empty one.
gappa_coq() {
    gappa -Bcoq "${1%_gappa}.g" >"$1.v" && grep -q '^Lemma l1 : s1 -> False' "$1.v" && coq "$1"
}
if [ "$kind" = gappa ]; then from="${file%_gappa}.g" make=gappa_coq; else from=$file.v make=coq; fi
key=$(cat "$from" "${@/%/.stamp}" 2>/dev/null | sha256sum | cut -c1-64)
if [ -f "$file.vo" ] && [ "$(cat "$file.stamp" 2>/dev/null)" = "$key" ]; then
    echo "ok    $kind $file (unchanged)"
elif seconds=$( { time $make "$file" >"$file.log" 2>&1; } 2>&1); then
    echo "$key" >"$file.stamp"
    echo "ok    $kind $file, $seconds s"
else
    rm -f "$file.vo" "$file.stamp"
    echo "FAIL  $kind $file"
    tail -5 "$file.log"
    exit 1
fi
