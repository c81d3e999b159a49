#!/usr/bin/env python3
# Writes the blocks of an annotation file into a header as comments, nothing else:
#
#     annotate.py HEADER BLOCKS > ANNOTATED
#
# `NAME` goes before the function of that name, `NAME loop` before its next loop.
# SPDX-License-Identifier: MIT
import re
import sys


def blocks(path):
    found = []
    for line in open(path):
        if line.startswith("#"):
            continue
        if not line.startswith(" "):
            found.append([line.split(), []])
        else:
            found[-1][1].append(line.strip())
    return [(" ".join(words), "/*@ " + "\n    ".join(text) + " */\n") for words, text in found]


def main(header, path):
    waiting, function = blocks(path), None
    for line in open(header):
        start = re.match(r"AT_FN .*?\b(at_\w+)\(", line)
        if start:
            function = start[1]
        want = function if start else f"{function} loop" if re.match(r" *for \(", line) else None
        given = [text for name, text in waiting if name == want]
        # A loop takes one block; a function all of its own, definitions first.
        for text in given if start else given[:1]:
            sys.stdout.write(text)
            waiting.remove((want, text))
        sys.stdout.write(line)
    if waiting:
        sys.exit("annotate.py: no place for " + ", ".join(name for name, _ in waiting))


main(*sys.argv[1:])
