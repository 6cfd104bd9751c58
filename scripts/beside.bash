# Work that goes on beside other work, and whose words are printed when it has ended, so that those
# of two are never mixed. Sourced.
# shellcheck shell=bash

log=$(mktemp)
beside=
# Ends what goes on beside, with all that it has started.
finish() {
    [[ -z $beside ]] || kill -- "-$beside" 2>/dev/null || true
    rm -f "$log"
}
trap finish EXIT

# Starts a command beside what comes next, in a process group of its own.
start_beside() {
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    beside=$!
    set +m
}

# Waits for it, prints what it said, and answers its status.
end_beside() {
    local status=0
    wait "$beside" || status=$?
    beside=
    cat "$log"
    return "$status"
}
