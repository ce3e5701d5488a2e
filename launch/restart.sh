#!/usr/bin/env bash
# Run a command again when it ends before it is done: bash launch/restart.sh [OPTIONS] COMMAND ...
#     --restarts 10   crashes in a row after which it is given up
#     --wait 5        seconds before the first restart after a crash; each further one waits twice as long, at most 300
#     --steady 600    seconds after which a run that crashes counts as the first of a row again
#     --codes DIR     where the processes of the command note their exit codes (launch/note.sh), if it has several
# By the exit code of the command (docs/how-to/errors.md):
#     0           done
#     2           the command or its config is wrong: never again
#     130, 143    interrupted, and saved: again, as often as it happens
#     others      a crash: again, up to --restarts times
# SIGTERM and Ctrl-C to this script go to the command, after which both end with its code: the machine is to be free.
set -uo pipefail
# shellcheck source=launch/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
set -m # children of their own group, that hear of Ctrl-C through this script alone

restarts=10 wait=5 steady=600 codes=""
while [ $# -gt 0 ]; do
    case "$1" in
        --restarts) restarts="$(value "$@")" && shift 2 || exit 2 ;;
        --wait) wait="$(value "$@")" && shift 2 || exit 2 ;;
        --steady) steady="$(value "$@")" && shift 2 || exit 2 ;;
        --codes) codes="$(value "$@")" && shift 2 || exit 2 ;;
        --) shift && break ;;
        -*) refuse "there is no option $1; there are --restarts, --wait, --steady and --codes" ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || refuse "no command is given: bash launch/restart.sh [--restarts 10] COMMAND ..."
[[ "$restarts$wait$steady" =~ ^[0-9]+$ ]] || refuse "--restarts, --wait and --steady must be whole numbers"

child="" stopping=0
stop() {
    stopping=1
    [ -z "$child" ] || kill -s "$1" "$child" 2>/dev/null
}
trap 'stop TERM' TERM
trap 'stop INT' INT

# The exit code of the child, also where signals interrupt the waiting.
await() {
    wait "$child"
    while kill -0 "$child" 2>/dev/null; do wait "$child"; done
    wait "$child"
}

crashes=0 pause="$wait"
while true; do
    [ -z "$codes" ] || { mkdir -p "$codes" && rm -f "$codes"/*; }
    began=$SECONDS
    "$@" &
    child=$!
    await
    code=$?
    child=""
    noted=()
    [ -z "$codes" ] || mapfile -t noted < <(cat "$codes"/* 2>/dev/null)
    [ ${#noted[@]} = 0 ] || code="$(verdict "${noted[@]}")"
    if [ "$code" = 0 ] || [ "$code" = 2 ] || [ $stopping = 1 ]; then
        exit "$code"
    fi
    if [ $((SECONDS - began)) -ge "$steady" ]; then
        crashes=0 pause="$wait"
    fi
    if [ "$code" = 130 ] || [ "$code" = 143 ]; then
        echo "interrupted and saved (exit code $code): going on" >&2
        sleep 1 &
    else
        crashes=$((crashes + 1))
        if [ "$crashes" -gt "$restarts" ]; then
            echo "crash $crashes in a row (exit code $code): giving up after $restarts restarts" >&2
            exit "$code"
        fi
        echo "crash $crashes (exit code $code): again in $pause seconds, at most $((restarts - crashes)) times more" >&2
        sleep "$pause" &
        pause=$((pause * 2 > 300 ? 300 : pause * 2))
    fi
    sleeping=$!
    wait "$sleeping"
    if [ $stopping = 1 ]; then
        kill "$sleeping" 2>/dev/null
        exit "$code"
    fi
done
