#!/bin/sh
# Runs Check suites one after the other and closes with "N passed, N failed[, N skipped]".
# A suite that ends without its Check summary counts as one failure. A line that begins with
# "skipped:" counts as skipped. SPDX-License-Identifier: MIT
set -u
# Tests ask for more threads than there are cores: threads that spin would take nine tenths.
export OMP_WAIT_POLICY=passive
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for suite; do
    start=$(date +%s)
    "$suite" >"$log" 2>&1
    status=$?
    summary=$(grep -E '^[0-9]+%: Checks: [0-9]+, Failures: [0-9]+, Errors: [0-9]+' "$log" | tail -1)
    set -- $(echo "$summary" | sed 's/[^0-9]\{1,\}/ /g')
    if [ -z "$summary" ]; then
        failed=$((failed + 1))
        echo "FAILED without a summary (status $status): $suite"
        cat "$log"
        continue
    fi
    bad=$(($3 + $4))
    passed=$((passed + $2 - bad)) failed=$((failed + bad))
    skipped=$((skipped + $(grep -c '^skipped:' "$log")))
    [ "$bad" = 0 ] && [ "$status" != 0 ] && failed=$((failed + 1))
    echo "$(basename "$suite"): $summary ($(($(date +%s) - start)) s)"
    if [ "$bad" != 0 ]; then cat "$log"; else grep -vE '^(Running suite|[0-9]+%:)' "$log"; fi
done
line="$passed passed, $failed failed"
[ "$skipped" != 0 ] && line="$line, $skipped skipped"
echo "$line"
[ "$failed" = 0 ] && [ "$passed" != 0 ]
