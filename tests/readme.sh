#!/bin/sh
# The examples of README.md, run: a line "    $ command" must print the indented lines under it.
# Closes with a Check summary, as the suites do. SPDX-License-Identifier: MIT
set -u
checks=0 failures=0
program=${ATTEST:-build/attest}
examples=$(mktemp) got=$(mktemp)
trap 'rm -f "$examples" "$got"' EXIT
# command TAB expected line, for each expected line
awk '/^    \$ / {command = substr($0, 7); next}
     /^    / && command != "" {print command "\t" substr($0, 5); next}
     {command = ""}' README.md >"$examples"
last=
while IFS="$(printf '\t')" read -r command line; do
    if [ "$command" != "$last" ]; then
        sh -c "$(echo "$command" | sed "s#^build/attest#$program#")" >"$got" 2>&1
        last=$command
    fi
    checks=$((checks + 1))
    # shells differ in the leading blanks that read keeps: compare without them
    sed 's/^ *//; s/ *$//' "$got" | grep -qxF -- "$(echo "$line" | sed 's/^ *//; s/ *$//')" && continue
    failures=$((failures + 1))
    echo "README.md: '$command' does not print: $line"
done <"$examples"
[ "$checks" -gt 0 ] || failures=1
echo "$((checks ? 100 * (checks - failures) / checks : 0))%: Checks: $checks, Failures: $failures, Errors: 0"
[ "$failures" = 0 ]
