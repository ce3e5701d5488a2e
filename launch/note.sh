#!/usr/bin/env bash
# Run a command and note its exit code in a directory that all processes of a run see: bash launch/note.sh DIR COMMAND ...
# srun gives the largest code of its tasks, which hides a wrong config (2) behind the tasks that it ends (143).
set -uo pipefail
directory="$1"
shift
"$@" &
child=$!
trap 'kill -s TERM $child 2>/dev/null' TERM
wait "$child"
while kill -0 "$child" 2>/dev/null; do wait "$child"; done
wait "$child"
code=$?
mkdir -p "$directory" && echo "$code" >"$directory/${SLURM_PROCID:-$$}"
exit "$code"
