#!/bin/bash
# Run the tests in the order in which they are cheapest to fail. With --soak: the long ones, in full.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest=.venv/bin/pytest

if [ "${1:-}" = --soak ]; then
    exec "$pytest" --hypothesis-profile=desk -m soak tests
fi
# the order of sets, too, is the same in each run
export PYTHONHASHSEED=0
exec "$pytest" -m "not soak and not kubeadm" --durations=15 tests/unit tests/compat tests/conformance tests/clients tests/integration tests/acceptance tests/chaos tests/fuzz tests/e2e
