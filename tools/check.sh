#!/bin/bash
# What is quick to run after each edit: lint and types beside the unit tests, which two processes share. Two cores do it
# in less than three minutes. What the tests print comes after what lint prints, so that both stay readable.
set -uo pipefail
cd "$(dirname "$0")/.."
output=$(mktemp)
trap 'rm -f "$output"; kill $(jobs -p) 2>/dev/null' EXIT

.venv/bin/pytest -q -p no:cacheprovider --numprocesses 2 tests/unit >"$output" 2>&1 &
tests=$!

status=0
echo "lint:"
make --no-print-directory lint || { status=1; echo "lint failed"; }
wait $tests || { status=1; failed=" failed"; }
printf '\nunit tests%s:\n' "${failed-}"
cat "$output"
exit $status
