#!/usr/bin/env bash
# Train on TPU slices of a GKE cluster: bash launch/gke/gke.sh [OPTIONS] CONFIG [--train.steps 1000 ...]
#     --name NAME             of the JobSet, and of what kubectl shows; t2t if not given
#     --image IMAGE           built from launch/gke/Dockerfile
#     --accelerator LABEL     tpu-v5-lite-podslice (v5e), tpu-v5p-slice, tpu-v6e-slice ...; the first if not given
#     --topology 4x4          of a slice, as its node pool has it
#     --hosts 4               machines of a slice
#     --chips 4               chips of a machine
#     --slices 1              slices that train together; each is a node pool
#     --claim CLAIM           claim of a volume that all pods may write (ReadWriteMany, such as Filestore), for runs
#     --restarts 10           crashes after which the run ends
#     --spot                  the node pools are of spot VMs
#     --xpk CLUSTER           let xpk submit it, to a cluster that xpk has made; then --type v5litepod-16 says what a slice
#                             is, and a volume that xpk knows takes the place of --claim
#     --dry-run               print the manifest and the commands
# The run is watched with kubectl logs -f -l jobset.sigs.k8s.io/jobset-name=NAME, stopped with kubectl delete jobset NAME.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# shellcheck source=launch/lib.sh
source "$here/../lib.sh"

name=t2t image="" accelerator=tpu-v5-lite-podslice topology=4x4 hosts=4 chips=4 slices=1 claim="" restarts=10 spot=0
cluster="" type="" dry_run=0
while [ $# -gt 0 ]; do
    case "$1" in
        --name) name="$(value "$@")" && shift 2 || exit 2 ;;
        --image) image="$(value "$@")" && shift 2 || exit 2 ;;
        --accelerator) accelerator="$(value "$@")" && shift 2 || exit 2 ;;
        --topology) topology="$(value "$@")" && shift 2 || exit 2 ;;
        --claim) claim="$(value "$@")" && shift 2 || exit 2 ;;
        --xpk) cluster="$(value "$@")" && shift 2 || exit 2 ;;
        --type) type="$(value "$@")" && shift 2 || exit 2 ;;
        --hosts) hosts="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --chips) chips="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --slices) slices="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --restarts) restarts="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --spot) spot=1 && shift ;;
        --dry-run) dry_run=1 && shift ;;
        -*) refuse "there is no option $1 before CONFIG; the first lines of launch/gke/gke.sh list them" ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || refuse "no config is given: bash launch/gke/gke.sh [OPTIONS] CONFIG ..."
[[ "$name" =~ ^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$ ]] || refuse "--name is '$name'; it must be at most 40 lower case letters, digits and hyphens"
[ -n "$image" ] || refuse "--image is needed: build one from launch/gke/Dockerfile"
[[ "$image$accelerator$topology$claim" != *[\"\\@\ ]* ]] || refuse "a quote, a space, a backslash or @ stands in an option"
[[ "$topology" =~ ^[0-9]+(x[0-9]+){1,2}$ ]] || refuse "--topology is '$topology'; it must be such as 4x4 or 2x2x4"
product=1
for size in ${topology//x/ }; do product=$((product * size)); done
[ -n "$cluster" ] || [ $product = $((hosts * chips)) ] ||
    refuse "a slice of $topology has $product chips, but --hosts $hosts with --chips $chips are $((hosts * chips))"

if [ -n "$cluster" ]; then
    [ -n "$type" ] || refuse "--xpk needs --type, such as v5litepod-16"
    # xpk's JobSet knows no exit codes: restart.sh does, in each pod, and JobSet starts again what was taken away.
    words="bash launch/restart.sh --restarts $restarts$(printf ' %q' t2t train "$@" --distributed auto)"
    run xpk workload create --cluster "$cluster" --workload "$name" --tpu-type "$type" --num-slices "$slices" \
        --docker-image "$image" --max-restarts 1000 --termination-grace-period-seconds 300 --command "$words"
    exit
fi
[ -n "$claim" ] || refuse "--claim is needed: all pods write one run directory (docs/how-to/launch.md)"

# Words as a list of JSON, which is YAML too.
list() {
    local word out=""
    for word in "$@"; do
        [[ "$word" != *[$'\n\t']* ]] || refuse "a line break or a tab stands in '$word'"
        word="${word//\\/\\\\}"
        out+="${out:+, }\"${word//\"/\\\"}\""
    done
    printf '[%s]' "$out"
}

manifest() {
    local line arguments
    arguments="$(list train "$@" --distributed auto)" || exit 2
    while IFS= read -r line; do
        case "$line" in *"# @SPOT@") [ $spot = 1 ] || continue && line="${line% # @SPOT@}" ;; esac
        line="${line//@NAME@/$name}"
        line="${line//@RESTARTS@/$restarts}"
        line="${line//@SLICES@/$slices}"
        line="${line//@HOSTS@/$hosts}"
        line="${line//@ACCELERATOR@/$accelerator}"
        line="${line//@TOPOLOGY@/$topology}"
        line="${line//@IMAGE@/$image}"
        line="${line//@CHIPS@/$chips}"
        line="${line//@CLAIM@/$claim}"
        case "$line" in *@ARGUMENTS@*) line="${line%@ARGUMENTS@*}$arguments" ;; esac
        printf '%s\n' "$line"
    done <"$here/jobset.yaml"
}

made="$(manifest "$@")"
if [ $dry_run = 1 ]; then
    printf '%s\n' "$made"
    echo "# submitted with"
    run kubectl apply -f -
else
    printf '%s\n' "$made" | kubectl apply -f -
fi
