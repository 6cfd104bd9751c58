# Compares what tests say natively and under `tidemark run`. Sourced by scripts that name:
#
# - TIDEMARK, the command; MEMORY, its budget; TIME_LIMIT_S, for one run of one test.
# - REASONS, verdicts that are meant to differ: test | pattern of the verdict | reason.
# - `verdicts FILE`, a function that prints what is to be compared of an output.
# shellcheck shell=bash

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 2
}

# Runs one test; its output goes to a file, its exit status to the same file's last line.
run_one() {
    local output=$1 status=0
    shift
    timeout --kill-after=10 "$TIME_LIMIT_S" "$@" >"$output" 2>&1 </dev/null || status=$?
    printf 'ok status %s\n' "$status" >>"$output"
}

# Prints why a verdict of a test may differ; nothing if it may not.
reason_for() {
    local test=$1 line=$2 known pattern reason
    while IFS='|' read -r known pattern reason; do
        pattern=${pattern# }
        if [[ ${known// /} == "$test" && $line =~ ${pattern% } ]]; then
            printf '%s\n' "${reason# }"
            return
        fi
    done <<<"$REASONS"
}

compared=0
unexplained=0

# Runs a test both ways in the current folder and prints each verdict that differs:
# NAME, the folder for outputs, the command.
compare_one() {
    local test=$1 outputs=$2 natively under line reason reasons= count
    shift 2
    natively=$outputs/$test.native under=$outputs/$test.under
    run_one "$natively" "$@"
    run_one "$under" "$TIDEMARK" run --memory "$MEMORY" -- "$@"
    count=$(verdicts "$natively" | wc -l)
    compared=$((compared + count))
    printf '%-20s %4d verdicts\n' "$test" "$count"
    while IFS= read -r line; do
        [[ $line =~ ^[\<\>] ]] || continue
        reason=$(reason_for "$test" "$line")
        if [[ -z $reason ]]; then
            printf '    %s\n' "$line"
            unexplained=$((unexplained + 1))
        elif [[ $reasons != *"$reason"* ]]; then
            reasons+=$reason
            printf '    differs: %s\n' "$reason"
        fi
    done < <(diff <(verdicts "$natively") <(verdicts "$under"))
}

# Prints the sum; fails if a verdict differs without a reason.
conclude() {
    printf '%d verdicts compared, %d differ without a reason\n' "$compared" "$unexplained"
    [[ $unexplained == 0 ]]
}
