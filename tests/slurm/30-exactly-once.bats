#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# No cell is lost and none runs twice, whatever dies when. Held against Slurm's own table and against what the cells
# themselves wrote. HPCGRID_KILLS=N: so many kills in the long sweep (6).

bats_require_minimum_version 1.5.0
load box

setup_file() {
    box_lacks >/dev/null && return 0
    # short arrays: many submissions to be interrupted in; short credentials: doubts are settled in seconds
    # and ended jobs are kept for good, because they are counted
    box_up cpu:2x0 MaxArraySize=8 MessageTimeout=10 AuthInfo=ttl=8 MinJobAge=30000
}

teardown_file() {
    box_down
}

setup() {
    box_setup
    mkdir ran
    FILE_BOX=$BOX
    BEFORE=$(tasks)
}

teardown() {
    box_tell
    if [ "$BOX" != "$FILE_BOX" ]; then
        box_down # of a test that failed before it took its own box down
        return 0
    fi
    box_clear
}

# Tasks that the controller knows, ended ones included.
tasks() { squeue -h -r -t all -o %i | wc -l; }

# matrix NAME CELLS [JQ]: cells that each add a line to ran/<i>
matrix() {
    jq -n --arg dir "$PWD" --arg name "$1" --argjson n "$2" '{hpcgrid: 1, name: $name,
        site: {launcher: "srun", hardware: {cpu: {partition: "cpu", gpus_per_node: 0, backend: "cpu"}}, default: "cpu"},
        workload: {command: ["sh", "-c", "echo ran >>\"$0\"", ($dir + "/ran/" + $name + ".{{i}}")], launch: [], time: "5m"},
        axes: {i: {range: [1, $n]}}} | '"${3:-.}" >"$1.json"
}

# Every cell of NAME ran exactly once, and Slurm was given so many tasks and no more.
ran_once() {
    local i
    [ "$(find ran -name "$1.*" | wc -l)" = "$2" ] || { echo "$1: $(find ran -name "$1.*" | wc -l) of $2 ran"; return 1; }
    for i in ran/"$1".*; do
        [ "$(wc -l <"$i")" = 1 ] || { echo "$i: $(wc -l <"$i") times"; return 1; }
    done
    [ "$(find reports/"$1"/001/cells -mindepth 2 -maxdepth 2 -name '*.[0-9]*.[0-9]*' | wc -l)" = "$2" ]
}

# Every cell of NAME came home: one good result, and no start without an attempt of its own. A controller that was killed has
# nodes end what it forgot when they register: then, and only then, a cell begins again.
came_home() {
    local id ids good started
    ids=$(find reports/"$1"/001/cells -mindepth 2 -maxdepth 2 -name '*.[0-9]*.[0-9]*' | sed 's/\.[0-9]*\.[0-9]*$//' | sort -u)
    [ "$(wc -l <<<"$ids")" = "$2" ] || { echo "$1: $(wc -l <<<"$ids") of $2 cells began"; return 1; }
    for id in $ids; do
        good=$(cat "$id".*/result.json | jq -s 'map(select(.status == "ok")) | length')
        [ "$good" = 1 ] || { echo "$id: $good good results"; ls "$id".*; return 1; }
    done
    [ "$(find ran -name "$1.*" | wc -l)" = "$2" ] || { echo "$1: $(find ran -name "$1.*" | wc -l) of $2 ran"; return 1; }
    started=$(cat ran/"$1".* | wc -l)
    [ "$started" -le "$(find reports/"$1"/001/cells -mindepth 2 -maxdepth 2 -name '*.[0-9]*.[0-9]*' | wc -l)" ] ||
        { echo "$1: started $started times"; wc -l ran/"$1".*; return 1; }
}

# Wait for the end of a process; its exit code
ends() { wait "$1"; }

# NAME has begun: its first submission is on its way. What dies before that is said at once and not waited for.
begun() { grep -qs '"kind":"intent"' "reports/$1/001/events.jsonl"; }

@test "a sweep is a few submissions, and every cell runs once" {
    matrix plain 40
    run --separate-stderr "$HPCGRID" run plain.json
    [ "$status" = 0 ]
    ran_once plain 40
    [ "$(tasks)" = $((BEFORE + 40)) ]
    run --separate-stderr "$HPCGRID" status plain --json
    [ "$(jq -c '[.counts, .receipt.submit]' <<<"$output")" = '[{"ok":40},5]' ]
    # once more: nothing runs again
    run --separate-stderr "$HPCGRID" run plain.json
    [ "$status" = 0 ]
    [ "$(tasks)" = $((BEFORE + 40)) ]
    # the matrix grows: only what is new runs
    matrix plain 44
    run --separate-stderr "$HPCGRID" run plain.json
    [ "$status" = 0 ]
    ran_once plain 44
    [ "$(tasks)" = $((BEFORE + 44)) ]
}

@test "hpcgrid killed again and again at random moments of a 200-cell sweep" {
    local kills=${HPCGRID_KILLS:-6} n pid
    matrix killed 200
    for ((n = 0; n < kills; n++)); do
        "$HPCGRID" run killed.json >/dev/null 2>log 3>&- &
        pid=$!
        sleep "0.$((RANDOM % 40 + 10))"
        kill -9 $pid 2>/dev/null || true
        wait $pid || true
    done
    "$HPCGRID" resume killed
    ran_once killed 200
    [ "$(tasks)" = $((BEFORE + 200)) ]
}

@test "the agent killed at random moments of a submission" {
    local n pid agent
    matrix agent 120
    "$HPCGRID" run agent.json >/dev/null 2>log 3>&- &
    pid=$!
    box_wait 90 begun agent
    for n in 1 2 3 4 5; do
        sleep "0.0$((RANDOM % 9 + 1))"
        agent=$(pgrep -P $pid hpcgrid-slurm || true)
        [ -z "$agent" ] || kill -9 "$agent" 2>/dev/null || true
    done
    ends $pid || { cat log; false; }
    ran_once agent 120
    [ "$(tasks)" = $((BEFORE + 120)) ]
}

@test "hpcgrid killed before its n-th write, every n" {
    local n=0 i names=() pids=()
    command -v strace >/dev/null || skip "strace is not installed"
    [ -z "${HPCGRID_ONE_IN:-}" ] || n=$((RANDOM % HPCGRID_ONE_IN))
    while true; do
        n=$((n + ${HPCGRID_ONE_IN:-2}))
        matrix "w$n" 10
        # writes of the journal, of plan and lock files, and of the questions to the agent
        strace -o /dev/null -e trace=write -e inject=write:signal=KILL:when=$n "$HPCGRID" submit "w$n.json" >/dev/null 2>&1 && break
        names+=("w$n")
    done
    [ ${#names[@]} -ge 5 ]
    for i in "${names[@]}"; do
        "$HPCGRID" run "$i.json" >"$i.out" 2>&1 3>&- &
        pids+=($!)
    done
    for i in "${pids[@]}"; do ends "$i"; done
    for i in "${names[@]}"; do ran_once "$i" 10; done
    box_wait 90 box_idle
    [ "$(tasks)" = $((BEFORE + 10 * (${#names[@]} + 1))) ]
}

@test "a frozen controller: the answer is lost, the job is not" {
    local pid
    box_up cpu:2x0 MaxArraySize=8 MessageTimeout=4 AuthInfo=ttl=8
    [ "$BOX" != "$FILE_BOX" ]
    matrix middle 120
    "$HPCGRID" run middle.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 begun middle
    kill -STOP "$(box_pid slurmctld)"
    sleep 6
    kill -CONT "$(box_pid slurmctld)"
    ends $pid
    ran_once middle 120
    [ "$(tasks)" = 120 ]
    box_down
    BOX=
}

# A site's own sbatch in front of Slurm's: the first submits and is killed before it can say so, the second is killed
# before it has submitted, all others write around the id.
@test "through sbatch: one that dies with its answer, one that dies without having asked, hpcgrid killed" {
    local pid real
    export HPCGRID_TRANSPORT=cli
    real=$(command -v sbatch)
    mkdir bin
    cat >bin/sbatch <<END
#!/bin/bash
case " \$* " in
*" --parsable "*) ;;
*) exec "$real" "\$@" ;;
esac
if mkdir "$PWD/one" 2>/dev/null; then
    "$real" "\$@" >/dev/null
    kill -9 \$\$
elif mkdir "$PWD/two" 2>/dev/null; then
    kill -9 \$\$
fi
echo "Welcome to the cluster."
exec "$real" "\$@"
END
    chmod 755 bin/sbatch
    matrix words 40
    PATH=$PWD/bin:$PATH "$HPCGRID" run words.json >/dev/null 2>log 3>&- &
    pid=$!
    box_wait 90 [ -d two ]
    sleep "0.$((RANDOM % 40 + 10))"
    kill -9 $pid
    wait $pid || true
    # the rest another way: a submission is known by its key
    export HPCGRID_TRANSPORT=slurm
    "$HPCGRID" resume words
    ran_once words 40
    [ "$(tasks)" = $((BEFORE + 40)) ]
    [ "$(jq -r 'select(.kind == "open") | .transport' reports/words/001/events.jsonl | tr '\n' ' ')" = "cli slurm " ]
    grep -q '"kind":"ambiguous"' reports/words/001/events.jsonl
}

# A controller that is killed comes back with the jobs of its last saved state, of earlier tests too: running for ever, out
# of scancel's reach. So each kill has a box of its own.
@test "the controller killed within two seconds of a submission" {
    local n pid
    for n in 1 2; do
        box_up cpu:2x0 MaxArraySize=8 MessageTimeout=4 AuthInfo=ttl=8
        [ "$BOX" != "$FILE_BOX" ]
        matrix "lost$n" 16
        "$HPCGRID" run "lost$n.json" >out 2>log 3>&- &
        pid=$!
        box_wait 90 begun "lost$n"
        sleep "$((n - 1)).$((RANDOM % 8 + 1))"
        kill -9 "$(box_pid slurmctld)"
        sleep 1
        box_heal
        ends $pid || { cat log; false; }
        came_home "lost$n" 16
        box_down
        BOX=
    done
}

@test "through sbatch: the controller killed in the middle of a sweep" {
    local pid
    export HPCGRID_TRANSPORT=cli
    box_up cpu:2x0 MaxArraySize=8 MessageTimeout=4 AuthInfo=ttl=8
    [ "$BOX" != "$FILE_BOX" ]
    matrix words 24
    "$HPCGRID" run words.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 begun words
    sleep "0.$((RANDOM % 80 + 10))"
    kill -9 "$(box_pid slurmctld)"
    sleep 1
    box_heal
    ends $pid || { cat log; false; }
    came_home words 24
    run "$HPCGRID" status words
    [[ "$output" == *" by cli"* ]]
    box_down
    BOX=
}
