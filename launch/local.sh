#!/usr/bin/env bash
# Train on the devices of this machine, installing t2t first where needed: bash launch/local.sh CONFIG [--train.steps 1000 ...]
# The same command continues a run that was interrupted. Before CONFIG may stand:
#     --processes N     train as so many processes, which share the GPUs (launch/processes.sh); 1 is the usual way
#     --cpu-devices K   let each process have K devices of its CPU, to try a mesh
#     --restarts R      start again after a crash or an interruption (launch/restart.sh), after so many crashes no more
#     --dry-run         print what would be done
# T2T_COMMAND names a t2t that is installed already; nothing is installed then.
set -euo pipefail
here="$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=launch/lib.sh
source "$here/lib.sh"

processes=1 restarts=0 dry_run=0 devices=""
while [ $# -gt 0 ]; do
    case "$1" in
        --processes) processes="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --restarts) restarts="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --cpu-devices) devices="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --dry-run) dry_run=1 && shift ;;
        -*) refuse "there is no option $1; before CONFIG may stand --processes, --restarts, --cpu-devices and --dry-run" ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || refuse "no config is given: bash launch/local.sh CONFIG ..."

if [ -n "${T2T_COMMAND:-}" ]; then
    read -ra t2t <<<"$T2T_COMMAND"
else
    if [ $dry_run = 1 ]; then run bash "$here/setup.sh" metrics; else bash "$here/setup.sh" metrics; fi
    t2t=("$here/../.venv/bin/t2t")
fi
command=("${t2t[@]}" train "$@")
[ "$processes" = 1 ] || command=(bash "$here/processes.sh" "$processes" "${command[@]}")
[ "$restarts" = 0 ] || command=(bash "$here/restart.sh" --restarts "$restarts" "${command[@]}")
if [ -n "$devices" ]; then
    command=(env JAX_PLATFORMS=cpu "XLA_FLAGS=${XLA_FLAGS:-} --xla_force_host_platform_device_count=$devices" "${command[@]}")
fi
if [ $dry_run = 1 ]; then run "${command[@]}"; else exec "${command[@]}"; fi
