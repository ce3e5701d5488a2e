#!/usr/bin/env bash
# Run a command as several processes of one machine that train together: bash launch/processes.sh N COMMAND ...
# GPUs are shared out equally. The first process speaks; the lines of others begin with their number. Where one fails the
# others are told to stop, and killed when they have not ended a minute later (five where it was interrupted, for saving).
set -uo pipefail
# shellcheck source=launch/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
set -m

count="$(number N "${1:-}")" || exit 2
shift
[ $# -gt 0 ] || refuse "no command is given: bash launch/processes.sh N COMMAND ..."

gpus=()
if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then
    IFS=, read -ra gpus <<<"$CUDA_VISIBLE_DEVICES"
elif [ -z "${CUDA_VISIBLE_DEVICES+set}" ] && command -v nvidia-smi >/dev/null; then
    mapfile -t gpus < <(nvidia-smi --query-gpu=index --format=csv,noheader 2>/dev/null)
fi
share=$((${#gpus[@]} / count))
[ $((share * count)) = ${#gpus[@]} ] || refuse "${#gpus[@]} GPUs cannot be shared equally by $count processes"

# A port that is free now; JAX listens there in the first process.
port="${T2T_PORT:-}"
while [ -z "$port" ]; do
    port=$((20000 + RANDOM % 20000))
    ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || port=""
done
export JAX_COORDINATOR_ADDRESS="127.0.0.1:$port" JAX_NUM_PROCESSES="$count"

children=() codes=() asked=0
tell() {
    asked=1
    local child
    for child in "${children[@]}"; do kill -s "$1" "$child" 2>/dev/null; done
}
trap 'tell TERM' TERM
trap 'tell INT' INT

for ((i = 0; i < count; i++)); do
    (
        export JAX_PROCESS_ID=$i
        if [ "$share" != 0 ]; then
            CUDA_VISIBLE_DEVICES="$(IFS=, && echo "${gpus[*]:i*share:share}")"
            export CUDA_VISIBLE_DEVICES
        fi
        if [ $i = 0 ]; then exec "$@"; else exec "$@" > >(sed -u "s/^/[$i] /") 2> >(sed -u "s/^/[$i] /" >&2); fi
    ) &
    children+=($!)
    codes+=("")
done

ended=0 deadline=""
while [ $ended -lt "$count" ]; do
    for ((i = 0; i < count; i++)); do
        [ -z "${codes[i]}" ] || continue
        if kill -0 "${children[i]}" 2>/dev/null; then
            [ -z "$deadline" ] || [ $SECONDS -lt "$deadline" ] || kill -s KILL "${children[i]}" 2>/dev/null
            continue
        fi
        wait "${children[i]}"
        codes[i]=$?
        ended=$((ended + 1))
        if [ "${codes[i]}" != 0 ] && [ -z "$deadline" ]; then
            case "${codes[i]}" in
                130 | 143) deadline=$((SECONDS + 300)) ;;
                *) deadline=$((SECONDS + 60)) ;;
            esac
            [ $asked = 1 ] || tell TERM
        fi
    done
    [ $ended = "$count" ] || sleep 0.2
done
exit "$(verdict "${codes[@]}")"
