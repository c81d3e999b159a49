#!/usr/bin/env bash
# Installs the Debian packages named, those that are missing, or prints the one command to type.
# SPDX-License-Identifier: MIT
set -euo pipefail
missing=()
for p in "$@"; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0
install=(apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}")
if [ "$(id -u)" = 0 ]; then
    "${install[@]}"
elif command -v sudo >/dev/null; then
    sudo "${install[@]}"
else
    echo "the proofs need: sudo ${install[*]}" >&2
    exit 2
fi
