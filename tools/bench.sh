#!/bin/bash
# Run every benchmark in bench/, one after the other, with short settings; what needs root is skipped without it.
set -uo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
status=0

run() {
    echo
    echo "== bench/$1 ${*:2}"
    "$python" "bench/$1" "${@:2}" || { echo "bench/$1 failed"; status=1; }
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        run "$@"
    else
        echo
        echo "== bench/$1: skipped, it needs root for network namespaces or disks"
    fi
}

run store.py
run kernel.py
run apiserver.py
as_root dhcp.py --seconds 2
as_root tftp.py --rounds 2
run http_artefacts.py --rounds 2
as_root image2disk.py
run walks.py
# Real firmware, whole installations: minutes each where there is no KVM.
as_root boot.py
exit "$status"
