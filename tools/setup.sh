#!/bin/bash
# Make the virtual environment in $1: pinned and hash-checked dependencies, then the package itself in place.
set -euo pipefail
venv=${1:?usage: tools/setup.sh VENV}
cd "$(dirname "$0")/.."

python=""
for candidate in python3.11 python3.12 python3.13 python3.14 python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "ironbell needs Python 3.11 or newer; none was found on the PATH" >&2
    exit 1
fi

if ! "$venv/bin/python" -c 'import pip' 2>/dev/null || ! grep -qsF "$PWD/$venv/" "$venv/bin/pip"; then
    rm -rf "$venv"
    if ! said=$("$python" -m venv "$venv" 2>&1); then
        # Debian splits ensurepip off into a package of its own.
        echo "$said" >&2
        rm -rf "$venv"
        tools/packages.sh --only python3-venv
        "$python" -m venv "$venv"
    fi
fi
echo "Installing pinned dependencies into $venv ..."
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
