# SPDX-License-Identifier: MIT
"""The two wheels that carry a trained transformer: take a member out, refuse any other bytes."""

import hashlib
import sys
import zipfile


def sha256(data):
    """Hexadecimal digest of bytes."""
    return hashlib.sha256(data).hexdigest()


def demand(what, data, digest):
    """The data, if they have the digest; otherwise the program ends and says what it found."""
    found = sha256(data)
    if found != digest:
        sys.exit(f"{what}: sha256 {found}, expected {digest}")
    return data


def member(wheel, name, digest):
    """Bytes of one file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return demand(f"{wheel}: {name}", archive.read(name), digest)


def read_text(path):
    """The text that goes in: CC0-1.0 as Debian's base-files ships it."""
    digest = "a2010f343487d3f7618affe54f789f5487602331c0a8d03f49e9a7c547cf0499"
    with open(path, "rb") as file:
        return demand(path, file.read(), digest).decode("utf-8")
