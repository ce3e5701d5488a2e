# Sourced by the launchers: words that they share.

# shellcheck shell=bash

# Ends with the exit code of a wrong command, which nobody tries again.
refuse() {
    echo "error: $*" >&2
    exit 2
}

# Shows a command as it could be typed, and runs it unless dry_run is 1.
run() {
    printf '+'
    printf ' %q' "$@"
    printf '\n'
    [ "${dry_run:-0}" = 1 ] || "$@"
}

# The value of an option: value "$@" is $2, or an error that names $1.
value() {
    [ $# -ge 2 ] || refuse "$1 needs a value"
    printf '%s' "$2"
}

# A positive whole number, or an error that names the option.
number() {
    [[ "$2" =~ ^[1-9][0-9]*$ ]] || refuse "$1 is '$2'; it must be a positive whole number"
    printf '%s' "$2"
}

# What all processes of a run came to, from their exit codes: 2 where a config is wrong, else the first crash, else 143
# where one was interrupted and has saved, else 0. Processes that are told to stop because another has crashed end with
# 143 too, and srun gives the largest code alone.
verdict() {
    local code crash=0 interrupted=0
    for code in "$@"; do
        case "$code" in
            0) ;;
            2) echo 2 && return ;;
            130 | 143) interrupted=143 ;;
            *) [ "$crash" != 0 ] || crash="$code" ;;
        esac
    done
    if [ "$crash" != 0 ]; then echo "$crash"; else echo "$interrupted"; fi
}
