#!/usr/bin/env bash
# Kernels against the reference, and the MFU of three models with each kernel, on the first GPU of this machine.
#     bash benchmarks/gpu.sh [FOLDER]              under 10 minutes on one H200; tables and mfu.json in FOLDER (mfu)
#     bash benchmarks/gpu.sh [FOLDER] --tiny       seconds, also on a CPU: whether it works
# Needs an environment with t2t and JAX for CUDA, in .venv or active: pip install -e . 'jax[cuda12]'
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder="${1:-mfu}"
shift || true
mkdir -p "$folder"
python=python
if [ -x .venv/bin/python ]; then python=.venv/bin/python; fi
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
export XLA_PYTHON_CLIENT_MEM_FRACTION=0.92
export JAX_COMPILATION_CACHE_DIR="${JAX_COMPILATION_CACHE_DIR:-$PWD/$folder/compiled}"

status=0
"$python" -m benchmarks.gpu --check 2>&1 | tee "$folder/check.txt" || status=1
"$python" -m benchmarks.gpu --minutes 7 --output "$folder/mfu.json" "$@" 2>&1 | tee "$folder/mfu.txt" || status=1
exit "$status"
