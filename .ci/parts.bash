# Steps of a run, and parts that run side by side: for deploy/test, which sources this.
# It takes `scratch`, a folder of the run's own, which goes with all that is still running when the run ends.

say() { printf 'test: %s\n' "$*"; }

# Sets `processors` to the seconds that processors worked for what this shell has started and waited for.
# Not in a command substitution: that is a shell of its own, which has started nothing.
read_processors() {
    local file=$scratch/times.$BASHPID
    times > "$file"
    processors=$(awk 'NR == 2 { gsub(/s/, ""); for (i = 1; i <= 2; i++) { split($i, t, "m"); sum += t[1] * 60 + t[2] } }
        END { printf "%.0f", sum }' "$file")
}

# What each step and each part took, a line each.
costs=()
add_cost() { costs+=("$(printf '%-22s %6s s %6s s' "$@")"); }

step_start=$SECONDS
processors=0
step_ended() {
    local before=$processors
    read_processors
    add_cost "$1" "$((SECONDS - step_start))" "$((processors - before))"
    step_start=$SECONDS
}

tell_costs() {
    [[ ${#costs[@]} -gt 0 ]] || return 0
    say "$(printf '%-22s %8s %8s' "what it took" clock processors)"
    printf '      %s\n' "${costs[@]}"
    printf '      %-22s %6s s\n' "in all" "$SECONDS"
}

# A pool holds a byte for each part that may run at once: more would only take the processors from each other,
# and a test that waits beside too many others waits too long.
mkfifo -- "$scratch/tests-pool" "$scratch/builds-pool"
exec {tests_pool}<> "$scratch/tests-pool" {builds_pool}<> "$scratch/builds-pool"
printf '%*s' "$((2 * $(nproc)))" '' >&"$tests_pool"
printf ' ' >&"$builds_pool"

# What a process has started and what that has started, also in process groups of their own, as SwiftPM's compilers.
descendants() {
    local child
    for child in $(cat "/proc/$1/task"/*/children 2> /dev/null); do
        echo "$child"
        descendants "$child"
    done
}

# What is running, by its process group, and its name.
parts=()
groups=()
end_parts() {
    local index left
    for index in "${!groups[@]}"; do
        # The number of a part that has ended may be another process's by now.
        left=
        [[ -e $scratch/${parts[index]}.end ]] || left=$(descendants "${groups[index]}")
        kill -- $left "-${groups[index]}" 2> /dev/null || true
    done
    rm -rf -- "$scratch"
}
trap end_parts EXIT

# Starts a part of the run as soon as its pool allows one and those of the pool before it have started; what it
# prints is kept. A part that exceeds its time is ended with all that it has started; its status is 124 then, as of
# timeout(1).
part_seconds=$((${PORTCULLIS_PART_MINUTES:-45} * 60))
declare -A last_of=()
begin() {
    local part=$1 pool=$2 before
    before=${last_of[$pool]:-}
    last_of[$pool]=$part
    shift 2
    mkfifo -- "$scratch/$part.begun" "$scratch/$part.over"
    # A process group of its own, so that it ends with all that it has started.
    set -m
    {
        set +m
        self=$BASHPID
        status=0
        # Those who read a pool at once get its bytes in any order. A loop that sleeps, of each part that waits, would
        # take a tenth of a processor from those that run. Whoever has opened both ends reads what is written from then
        # on; what has begun before has a log.
        if [[ -n $before ]]; then
            exec {turn}<> "$scratch/$before.begun"
            [[ -e $scratch/$before.log ]] || read -r -N 1 -u "$turn"
            exec {turn}>&-
        fi
        read -r -N 1 -u "$pool"
        start=$SECONDS
        : > "$scratch/$part.log"
        printf ' ' 1<> "$scratch/$part.begun"
        exec {over}<> "$scratch/$part.over"
        {
            found=0
            (exec {over}>&- {tests_pool}>&- {builds_pool}>&-; "$@") < /dev/null > "$scratch/$part.log" 2>&1 || found=$?
            printf ' ' >&"$over"
            exit "$found"
        } &
        work=$!
        # The end is told, but for one that was killed.
        until read -r -N 1 -t 2 -u "$over" || ! kill -0 "$work" 2> /dev/null; do
            if ((SECONDS - start >= part_seconds)); then
                printf '124 %s 0\n' "$((SECONDS - start))" > "$scratch/$part.end"
                printf '\nended: it took longer than %s min (PORTCULLIS_PART_MINUTES)\n' "$((part_seconds / 60))" \
                    >> "$scratch/$part.log"
                printf ' ' >&"$pool"
                kill -KILL -- $(descendants "$self") "-$self"
            fi
        done
        wait "$work" || status=$?
        read_processors
        printf '%s %s %s\n' "$status" "$((SECONDS - start))" "$processors" > "$scratch/$part.end"
        printf ' ' >&"$pool"
    } &
    set +m
    groups+=($!)
    parts+=("$part")
}

# Waits for a part and tells how it ended: the last line of its log that says something.
status_of() {
    local part=$1 index status seconds processors
    for index in "${!parts[@]}"; do
        [[ ${parts[index]} != "$part" ]] || wait "${groups[index]}" || true
    done
    read -r status seconds processors < "$scratch/$part.end"
    add_cost "$part" "$seconds" "$processors"
    say "$part, $seconds s: $(grep -v '^[[:space:]]*$' "$scratch/$part.log" | tail -n 1)"
    return "$status"
}
