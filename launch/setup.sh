#!/usr/bin/env bash
# Create .venv, or reuse it, and install t2t in it with the extras named: bash launch/setup.sh [metrics,hf,...]
# A second run with the same extras and an unchanged pyproject.toml installs nothing and needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

extras="${1:-metrics}"

if [ ! -x .venv/bin/python ]; then
    for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11; do
        if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            break
        fi
        python=""
    done
    if [ -z "$python" ]; then
        echo "t2t needs Python 3.11, 3.12 or 3.13: install one, or name it: PYTHON=/path/to/python3.12 bash $0" >&2
        exit 2
    fi
    echo "creating .venv with $("$python" --version)"
    "$python" -m venv .venv || {
        rm -rf .venv
        echo "'$python -m venv' failed; on Debian and Ubuntu: apt install python3-venv" >&2
        exit 2
    }
fi

stamp=".venv/installed-${extras//,/-}"
state="$(cat pyproject.toml setup.py | .venv/bin/python -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())')"
if [ "$(cat "$stamp" 2>/dev/null)" != "$state" ]; then
    echo "installing t2t[$extras] into .venv (2-6 minutes, 3 GB)"
    .venv/bin/python -m pip install --quiet --upgrade pip
    .venv/bin/python -m pip install --progress-bar off --editable ".[$extras]" | { grep --line-buffered -E '^(Collecting|  Downloading|Installing|Successfully)' || true; }
    echo "$state" >"$stamp"
fi
