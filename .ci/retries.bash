# A test that failed runs once more, alone, when all parts have ended: for deploy/test, which sources this after
# .ci/parts.bash. It takes `run_tests`, and `unstable_file`, which keeps the names for whoever looks after the run.

# More tests than this that fail at first are no accident.
unstable_max=3

# The tests that run again, the logs in which something failed, and those in which it failed for good.
retried=()
logs=()
failed=()
# Tests that failed and then passed, and tests that failed twice.
unstable=()
broken=()

# The tests that failed, as a log names them: "a claim", or `name(label:)`.
failed_tests() {
    sed -nE 's/^✘ Test (".*"|[^" ]+\(.*\)) (with [0-9]+ test cases? )?failed after [0-9.]+ seconds.*$/\1/p' "$1"
}

# The pattern that such a test alone matches, where its name is not used twice.
pattern_of() {
    local name=$1 end=
    if [[ $name == \"*\" ]]; then
        name=${name#\"}
        # A claim is a raw identifier, and what it takes follows.
        name="\`${name%\"}\`"
        end='\('
    fi
    printf '[./]%s%s' "$(sed 's/[][\\.*^$+?(){}|]/\\&/g' <<< "$name")" "$end"
}

# Whether a part, with this status and log, only has tests that failed: it was not ended, its program did not crash, and
# all that went wrong is a test's.
has_only_failures() {
    local status=$1 log=$2
    [[ $status -eq 1 ]] && grep -qE '^✘ Test run with [0-9]+ tests?.* failed after' "$log" \
        && ! grep -qE '^✘ (Suite .*|.*«unknown».*|Unknown test) recorded an issue' "$log" \
        && [[ -n $(failed_tests "$log") ]]
}

# Notes how a part has ended: what of it runs again, or that it has failed.
note_part() {
    local status=$1 log=$2 name
    [[ $status -ne 0 ]] || return 0
    logs+=("$log")
    if has_only_failures "$status" "$log"; then
        while IFS= read -r name; do retried+=("$name"); done < <(failed_tests "$log")
    else
        failed+=("$log")
    fi
}

# Runs the tests again that have failed, each alone and one after the other.
retry_failed() {
    local index name log status
    if [[ ${#retried[@]} -gt $unstable_max ]]; then
        say "${#retried[@]} tests failed, more than $unstable_max; none runs again"
        broken=("${retried[@]}")
        failed=("${logs[@]}")
        return
    fi
    for index in "${!retried[@]}"; do
        name=${retried[index]}
        log=$scratch/again-$index.log
        say "once more, alone: $name"
        begin "again-$index" "$tests_pool" run_tests --filter "$(pattern_of "$name")"
        status=0
        status_of "again-$index" || status=$?
        # A pattern that matches nothing passes, too.
        if [[ $status -eq 0 ]] && grep -qF "✔ Test $name " "$log"; then
            unstable+=("$name")
            printf 'unstable: %s\n' "$name" >> "$unstable_file"
        else
            broken+=("$name")
            logs+=("$log")
            failed+=("$log")
        fi
    done
}

# Names what failed at first and what failed twice: among the last lines of a run.
tell_unstable() {
    [[ ${#broken[@]} -eq 0 ]] || printf 'failed: %s\n' "${broken[@]}"
    [[ ${#unstable[@]} -eq 0 ]] || {
        printf 'unstable: %s\n' "${unstable[@]}"
        say "they failed once, then passed alone; their names are in $unstable_file"
    }
}

# Runs a command the given number of times, and counts what was unstable or failed. The command is deploy/test
# without its rounds. Fails when a round did.
run_rounds() {
    local count=$1 folder=$root/.build/rounds round status bad=0
    shift
    rm -rf -- "$folder"
    mkdir -p -- "$folder"
    for ((round = 1; round <= count; round++)); do
        status=0
        "$@" > "$folder/$round.log" 2>&1 || status=$?
        [[ $status -eq 0 ]] || bad=$((bad + 1))
        say "round $round of $count: status $status, $folder/$round.log"
    done
    say "$bad of $count rounds failed; in how many rounds each test was unstable or failed:"
    cat -- "$folder"/*.log | { grep -E '^(unstable|failed): ' || echo 'no test'; } | sort | uniq -c | sort -rn
    [[ $bad -eq 0 ]]
}
