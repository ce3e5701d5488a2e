#!/usr/bin/env bash
# Train under Slurm: bash launch/slurm.sh [OPTIONS] CONFIG [--train.steps 1000 ...], on a login node, in a clone that the
# nodes see too, with t2t installed in it (bash launch/setup.sh metrics,cuda). The same command continues a run.
#     --nodes N             machines; 1 if not given
#     --gpus G              GPUs of each; 8 if not given, 0 for CPUs alone
#     --per gpu|node        one process for each GPU, or one for all of a node; gpu if not given
#     --time 24:00:00       limit of the job; three minutes before it the run is saved and the job queued again
#     --name NAME           of the job; the name of the config if not given
#     --sbatch '--OPTION'   any further option of sbatch, such as '--partition=long' or '--account=me'; may be repeated
#     --prepare 'COMMAND'   a line that the job runs first, such as 'module load cuda'
#     --restarts 10         crashes in a row after which the job ends (launch/restart.sh)
#     --dry-run             print the job and the command that would submit it
# T2T_COMMAND names a t2t that is installed elsewhere.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=launch/lib.sh
source "$root/launch/lib.sh"

nodes=1 gpus=8 per=gpu limit=24:00:00 name="" prepare="" restarts=10 dry_run=0 further=()
while [ $# -gt 0 ]; do
    case "$1" in
        --nodes) nodes="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --gpus) gpus="$(value "$@")" && shift 2 || exit 2 ;;
        --per) per="$(value "$@")" && shift 2 || exit 2 ;;
        --time) limit="$(value "$@")" && shift 2 || exit 2 ;;
        --name) name="$(value "$@")" && shift 2 || exit 2 ;;
        --sbatch) further+=("$(value "$@")") && shift 2 || exit 2 ;;
        --prepare) prepare="$(value "$@")" && shift 2 || exit 2 ;;
        --restarts) restarts="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --dry-run) dry_run=1 && shift ;;
        -*) refuse "there is no option $1 before CONFIG; the first lines of launch/slurm.sh list them" ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || refuse "no config is given: bash launch/slurm.sh [OPTIONS] CONFIG ..."
[[ "$gpus" =~ ^[0-9]+$ ]] || refuse "--gpus is '$gpus'; it must be a whole number, 0 for CPUs alone"
[ "$per" = gpu ] || [ "$per" = node ] || refuse "--per is '$per'; it must be gpu or node"
[ "$gpus" != 0 ] || per=node
name="${name:-t2t-$(basename "$1" .py)}"
tasks=$([ "$per" = gpu ] && echo "$gpus" || echo 1)

t2t=("$root/.venv/bin/t2t")
[ -z "${T2T_COMMAND:-}" ] || read -ra t2t <<<"$T2T_COMMAND"
[ $dry_run = 1 ] || command -v "${t2t[0]}" >/dev/null ||
    refuse "${t2t[0]} is not there: install it with bash launch/setup.sh metrics,cuda, or name one in T2T_COMMAND"

# JAX asks Slurm who the others are, and takes for each process the GPU of its number: one process of a node needs all
# to be named. Binding them with --gpus-per-task would leave each process one GPU with the number 0.
options=("--job-name=$name" "--nodes=$nodes" "--ntasks-per-node=$tasks" "--time=$limit" "--output=$name-%j.log")
options+=(--open-mode=append --requeue --signal=B:TERM@180)
[ "$gpus" = 0 ] || options+=("--gpus-per-node=$gpus")
options+=("${further[@]+"${further[@]}"}")
devices=""
if [ "$per" = node ] && [ "$gpus" != 0 ]; then devices="export JAX_LOCAL_DEVICE_IDS=$(seq -s , 0 $((gpus - 1)))"; fi

# shellcheck disable=SC2016 # the job expands its own variables
job() {
    echo '#!/usr/bin/env bash'
    printf '#SBATCH %s\n' "${options[@]}"
    printf '\ncd %q\n' "$root"
    [ -z "$prepare" ] || echo "$prepare"
    [ -z "$devices" ] || echo "$devices"
    cat <<'END'
codes="$PWD/.slurm/$SLURM_JOB_ID"
END
    printf 'bash launch/restart.sh --restarts %q --codes "$codes" \\\n' "$restarts"
    printf '    srun --kill-on-bad-exit=1 --gpu-bind=none bash launch/note.sh "$codes" \\\n   '
    printf ' %q' "${t2t[@]}" train "$@" --distributed auto
    cat <<'END'
 &
loop=$!
trap 'kill -s TERM "$loop"' TERM
wait "$loop"
while kill -0 "$loop" 2>/dev/null; do wait "$loop"; done
wait "$loop"
code=$?
rm -rf "$codes"
# Interrupted and saved, because Slurm takes the nodes: the same job goes on when there are some again.
[ $code != 143 ] || scontrol requeue "$SLURM_JOB_ID"
exit $code
END
}

if [ $dry_run = 1 ]; then
    job "$@"
    echo
    run sbatch "<the script above>"
else
    job "$@" | sbatch
fi
