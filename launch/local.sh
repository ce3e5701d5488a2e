#!/usr/bin/env bash
# Train on the devices of this machine, installing t2t first where needed: bash launch/local.sh CONFIG [--train.steps 1000 ...]
# The same command continues a run that was interrupted.
set -euo pipefail
bash "$(dirname "${BASH_SOURCE[0]}")/setup.sh" metrics
exec "$(dirname "${BASH_SOURCE[0]}")/../.venv/bin/t2t" train "$@"
