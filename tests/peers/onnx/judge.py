# SPDX-License-Identifier: MIT
"""The ONNX Attention node tests, judged: every expected value under the arithmetic that made it.

    judge.py ATTEST OUT                ATTEST: the program; OUT: a folder for the case files

A test passes when `attest judge` passes each of its files (convert.py) and its present cache is the
past and the new keys, bit for bit.  The closing line counts every test of the release once:
passed + failed + skipped = TESTS.  Exit 0: none failed and the count is right.
"""

import subprocess
import sys
import warnings
from pathlib import Path

import convert

TESTS = 93  # of onnx 1.23.2, opsets 23, 24, 25, without the *_expanded twins
# What no case file can say: name -> reason.  None is known.
SKIPPED = {}


def judged(attest, path):
    """None, or the program's report on a case that did not pass."""
    done = subprocess.run([attest, "judge", str(path)], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def faults(attest, folder, test):
    """(file, what is wrong) of one test."""
    cache = convert.present_fault(test)
    if cache:
        yield test.name, cache
    for path in convert.write(folder, test):
        report = judged(attest, path)
        if report:
            yield path, report


def main():
    attest, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")  # onnx's exporters divide by zero on purpose
    passed, failed, skipped = 0, 0, 0
    for test in convert.collect():
        if test.name in SKIPPED:
            skipped += 1
            print(f"skip  {test.name}: {SKIPPED[test.name]}")
            continue
        wrong = list(faults(attest, folder, test))
        failed += bool(wrong)
        passed += not wrong
        for where, what in wrong:
            print(f"FAIL  {where}: {what}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if passed + failed + skipped != TESTS:
        print(f"expected {TESTS} tests in onnx {convert.onnx.__version__}")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
