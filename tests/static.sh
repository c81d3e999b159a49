#!/bin/sh
# The static binary and attest_attention.py, alone in an empty folder: everything works there, but
# that it loads no shared object. SPDX-License-Identifier: MIT
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "${1:-build/attest-static}" "$folder/attest"
cp attest/attest_attention.py "$folder"
said=$("$folder/attest" check ./my.so tests/data/real/minilm_L0H2_fp32.safetensors 2>&1) && exit 1
case $said in
*"engine ./my.so: this is legal but not served here: this binary is static"*) ;;
*) echo "static: $said"; exit 1 ;;
esac
"$folder/attest" check scalar tests/data/real/minilm_L0H2_fp32.safetensors --rows 8 >/dev/null
for python in ${CHECK_PYTHON:-python3 /usr/bin/python3}; do
    "$python" -c 'import numpy' 2>/dev/null || continue
    cp tests/peers/embed_numpy.py "$folder"
    cd "$folder"
    env -u ATTEST MODULE="$folder" PATH="$PATH" PYTHONDONTWRITEBYTECODE=1 "$python" embed_numpy.py
    exit
done
echo "skipped: attest_attention.py beside the static binary: no python3 with numpy"
