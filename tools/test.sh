#!/bin/bash
# Run the tests, by two processes side by side, in the order in which they are cheapest to fail (tests/support/lanes.py
# says which ones are not run beside others). With --soak: the long ones, in full, by five processes, since most of them
# wait, and in the order in which they take longest; an interrupted run continues where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest=.venv/bin/pytest

if [ "${1:-}" = --soak ]; then
    exec "$pytest" --hypothesis-profile=desk --numprocesses 5 --max-worker-restart 0 --resume build/soak/passed -m soak --durations=30 tests/e2e tests/conformance tests/integration/lives tests/fuzz tests/clients tests/chaos tests/integration tests/compat tests/unit tests/acceptance
fi
# the order of sets, too, is the same in each run
export PYTHONHASHSEED=0
exec "$pytest" --numprocesses 2 --max-worker-restart 0 -m "not soak and not kubeadm" --durations=15 tests/unit tests/compat tests/fuzz tests/conformance tests/e2e tests/chaos tests/clients tests/integration tests/acceptance
