#!/bin/sh
# Installs the Debian packages of the named groups where they are missing: as root or through sudo,
# otherwise prints the one command to type and exits 1. SPDX-License-Identifier: MIT
set -u

packages() {
    case $1 in
    core) echo "gcc g++ make pkg-config libc6-dev libmpfr-dev libjansson-dev libmd-dev" ;;
    check) echo "check" ;;
    demo) echo "gnuplot-nox" ;;
    lint) echo "clang clang-format clang-tidy" ;;
    clang) echo "clang libomp-dev" ;;
    python) echo "python3 python3-venv" ;;
    numpy) echo "python3 python3-numpy" ;;
    torch) echo "python3 python3-numpy python3-torch python3-pytest python3-pytest-xdist" ;;
    prove) echo "python3 coq ocaml-findlib libcoq-flocq libcoq-interval libcoq-coquelicot gappa libcoq-gappa" ;;
    prove-c) echo "frama-c-base why3 cvc4" ;;
    aarch64) echo "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" ;;
    *) echo "setup: unknown group $1" >&2; exit 2 ;;
    esac
}

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup: not a Debian system; these must be there: $(for g; do packages "$g"; done | tr '\n' ' ')"
    exit 0
fi
missing=
for group; do
    for name in $(packages "$group"); do
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $name"
    done
done
[ -z "$missing" ] && exit 0

install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
    as=
elif command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    as=sudo
else
    echo "setup: missing packages; please type (as root): apt-get update && $install" >&2
    exit 1
fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
wait='-o DPkg::Lock::Timeout=600'
# The list may be old: try it, refresh it only if that fails.
$as apt-get $wait install -y --no-install-recommends $missing >/dev/null 2>&1 ||
    { $as apt-get $wait -q update >/dev/null &&
      $as apt-get $wait install -y --no-install-recommends $missing >/dev/null; } ||
    { echo "setup: failed; please type (as root): apt-get update && $install" >&2; exit 1; }
