#!/usr/bin/env bash
# Train on Cloud TPU VMs, one slice or several: bash launch/tpu_vm.sh ACTION --name NAME --zone ZONE [OPTIONS] [CONFIG ...]
#     run      up, setup, train and watch; after a preemption all of it again, until the run is done. What most want.
#     up       ask for the TPUs (a queued resource) and wait until they are there
#     setup    copy this clone to every host and install t2t
#     train    start the run on every host, in the background; it starts again after a crash (launch/restart.sh)
#     watch    wait for the end of the run, and end with its exit code; 143 where the TPUs were taken away
#     logs     what the first host has written lately
#     stop     tell the run to save and to end
#     down     give the TPUs back: they cost money until then
# Options:
#     --type v5litepod-16     what a slice is; see gcloud compute tpus accelerator-types list
#     --runtime VERSION       software of the VMs; the usual one of the type if not given
#     --slices N              slices that train together, joined by the data centre's network; 1 if not given
#     --spot                  take what may be preempted, for less
#     --reserved              take it from a reservation
#     --project P             if it is not gcloud's own
#     --share SERVER:/PATH    a directory of NFS (Filestore) that all hosts mount, for runs: needed by several hosts
#     --restarts 10           crashes in a row after which a run is given up
#     --poll 30               seconds between two looks
#     --dry-run               print all commands and run none
# gcloud must be installed and logged in.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
# shellcheck source=launch/lib.sh
source "$root/launch/lib.sh"

action="${1:-}"
case "$action" in
    run | up | setup | train | watch | logs | stop | down) shift ;;
    *) refuse "'$action' is no action: run, up, setup, train, watch, logs, stop or down" ;;
esac
name="" zone="" type=v5litepod-16 runtime="" slices=1 project="" share="" restarts=10 poll=30 dry_run=0 kind=()
while [ $# -gt 0 ]; do
    case "$1" in
        --name) name="$(value "$@")" && shift 2 || exit 2 ;;
        --zone) zone="$(value "$@")" && shift 2 || exit 2 ;;
        --type) type="$(value "$@")" && shift 2 || exit 2 ;;
        --runtime) runtime="$(value "$@")" && shift 2 || exit 2 ;;
        --slices) slices="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --project) project="$(value "$@")" && shift 2 || exit 2 ;;
        --share) share="$(value "$@")" && shift 2 || exit 2 ;;
        --restarts) restarts="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --poll) poll="$(number "$1" "$(value "$@")")" && shift 2 || exit 2 ;;
        --spot | --reserved) kind=("$1") && shift ;;
        --dry-run) dry_run=1 && shift ;;
        -*) refuse "there is no option $1 before CONFIG; the first lines of launch/tpu_vm.sh list them" ;;
        *) break ;;
    esac
done
[ -n "$name" ] && [ -n "$zone" ] || refuse "--name and --zone are needed"
[[ "$name" =~ ^[a-z][-a-z0-9]*$ ]] || refuse "--name is '$name'; it must be of lower case letters, digits and hyphens"
case "$action" in run | train) [ $# -gt 0 ] || refuse "no config is given: bash launch/tpu_vm.sh $action ... CONFIG" ;; esac

if [ -z "$runtime" ]; then
    case "$type" in
        v2-* | v3-* | v4-*) runtime=tpu-ubuntu2204-base ;;
        v5litepod-*) runtime=v2-alpha-tpuv5-lite ;;
        v5p-*) runtime=v2-alpha-tpuv5 ;;
        v6e-*) runtime=v2-alpha-tpuv6e ;;
        *) refuse "the software of '$type' is not known here: name it with --runtime" ;;
    esac
fi
case "$slices $type" in
    "1 v2-8" | "1 v3-8" | "1 v4-8" | "1 v5p-8" | "1 v5litepod-"[148] | "1 v6e-"[148]) ;; # one host
    *) [ -n "$share" ] || case "$action" in run | setup | train)
        refuse "$slices x $type are several hosts, which must see one run directory: --share SERVER:/PATH (docs/how-to/launch.md)" ;;
    esac ;;
esac

where=(--zone "$zone")
[ -z "$project" ] || where+=(--project "$project")
queue=(gcloud compute tpus queued-resources)
if [ "$slices" = 1 ]; then
    nodes=("$name") ask=(--node-id "$name")
else
    nodes=() ask=(--node-count "$slices" --node-prefix "$name")
    for ((i = 0; i < slices; i++)); do nodes+=("$name-$i"); done
fi

on_hosts() { # NODE WORKER COMMAND
    run gcloud compute tpus tpu-vm ssh "$1" "${where[@]}" --worker "$2" --command "$3"
}

# The state of the request, NONE where there is none.
state() {
    local now
    now="$(gcloud compute tpus queued-resources describe "$name" "${where[@]}" --format 'value(state.state)' 2>/dev/null)" || now=NONE
    echo "$now"
}

up() {
    local now=NONE
    [ $dry_run = 1 ] || now="$(state)"
    case "$now" in FAILED | SUSPENDED | SUSPENDING) down && now=NONE || return 1 ;; esac
    if [ "$now" = NONE ]; then
        run "${queue[@]}" create "$name" "${where[@]}" --accelerator-type "$type" --runtime-version "$runtime" \
            "${ask[@]}" "${kind[@]+"${kind[@]}"}" || return 1
    fi
    [ $dry_run = 0 ] || { echo "# wait until its state is ACTIVE" && return; }
    while true; do
        now="$(state)"
        case "$now" in
            ACTIVE) return ;;
            FAILED | SUSPENDED)
                echo "the request has the state $now: gcloud compute tpus queued-resources describe $name ${where[*]}" >&2
                return 1
                ;;
        esac
        echo "$(date +%T) $name is $now"
        sleep "$poll"
    done
}

setup() {
    local folder node install
    folder="$(mktemp -d)"
    [ $dry_run = 1 ] || (cd "$root" && git ls-files -z | tar --null -T - -czf "$folder/t2t.tgz") || return 1
    # t2t needs Python 3.11, the images have 3.10. On a host that has all of it this takes seconds.
    install="mkdir -p t2t && tar xzf t2t.tgz -C t2t && cd t2t && { command -v python3.11 python3.12 python3.13 >/dev/null || { sudo apt-get update -qq && sudo apt-get install -y -qq python3.11 python3.11-venv; }; }"
    if [ -n "$share" ]; then
        install+=" && { command -v mount.nfs >/dev/null || { sudo apt-get update -qq && sudo apt-get install -y -qq nfs-common; }; } && sudo mkdir -p /mnt/t2t && { mountpoint -q /mnt/t2t || sudo mount $(printf %q "$share") /mnt/t2t; } && sudo mkdir -p /mnt/t2t/runs && sudo chmod a+rwx /mnt/t2t/runs && ln -sfn /mnt/t2t/runs runs"
    fi
    install+=" && bash launch/setup.sh metrics,tpu"
    for node in "${nodes[@]}"; do
        run gcloud compute tpus tpu-vm scp "$folder/t2t.tgz" "$node:t2t.tgz" "${where[@]}" --worker all || return 1
        on_hosts "$node" all "$install" || return 1
    done
    rm -rf "$folder"
}

# Ends a run on all hosts, and waits until it has saved.
halt() {
    local node
    for node in "${nodes[@]}"; do
        on_hosts "$node" all "pkill -TERM -f '[l]aunch/restart.sh'; timeout 300 bash -c 'while pgrep -f [l]aunch/restart.sh; do sleep 1; done' >/dev/null" || return 1
    done
}

train() {
    local node words start
    halt || return 1
    words="bash launch/restart.sh --restarts $restarts$(printf ' %q' .venv/bin/t2t train "$@" --distributed auto); echo \$? >train.code"
    start="cd t2t && rm -f train.code stopped && { nohup bash -c $(printf %q "$words") >train.log 2>&1 </dev/null & echo \$! >train.pid; }"
    for node in "${nodes[@]}"; do on_hosts "$node" all "$start" || return 1; done
}

look="cd t2t && if [ -e train.code ]; then cat train.code; [ ! -e stopped ] || echo stopped; elif kill -0 \$(cat train.pid); then echo running; else echo lost; fi"

# Waits for the end of the run; taken is 1 where TPUs or hosts have ended it.
watch() {
    local said
    taken=0
    [ $dry_run = 0 ] || { echo "# look every $poll seconds at its state, and on the first host: $look" && return; }
    while true; do
        [ "$(state)" = ACTIVE ] || { taken=1 && return 143; }
        said="$(gcloud compute tpus tpu-vm ssh "${nodes[0]}" "${where[@]}" --worker 0 --command "$look" 2>/dev/null | tr '\n' ' ')" || true
        case "$said" in
            lost* | "130 " | "143 ") taken=1 && return 143 ;;
            [0-9]*) return "${said%% *}" ;;
        esac
        sleep "$poll"
    done
}

down() { run "${queue[@]}" delete "$name" "${where[@]}" --force --quiet; }

# The whole way, again and again while TPUs are taken away.
run_all() {
    local code
    while true; do
        code=0
        up || return 1
        if setup && train "$@"; then
            watch || code=$?
        elif [ "$(state)" = ACTIVE ]; then
            return 1
        else
            taken=1
        fi
        if [ $dry_run = 1 ]; then down && return; fi
        if [ $taken = 0 ]; then
            echo "the run has ended with exit code $code; the TPUs cost money until: bash launch/tpu_vm.sh down --name $name --zone $zone" >&2
            return $code
        fi
        echo "$(date +%T) taken away: asking again" >&2
        sleep "$poll"
    done
}

case "$action" in
    run) run_all "$@" ;;
    up) up ;;
    setup) setup ;;
    train) train "$@" ;;
    watch) watch ;;
    logs) on_hosts "${nodes[0]}" 0 "tail -n 40 t2t/train.log" ;;
    stop) for node in "${nodes[@]}"; do on_hosts "$node" all "touch t2t/stopped"; done && halt ;;
    down) down ;;
esac
