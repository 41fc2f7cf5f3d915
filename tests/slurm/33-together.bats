#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Cells that share a job: one after another on the same node, each with its own claim, attempt and result, whatever ends the job.

bats_require_minimum_version 1.5.0
load box

setup_file() {
    box_lacks >/dev/null && return 0
    box_up cpu:2x0 MessageTimeout=10 AuthInfo=ttl=8
}

teardown_file() {
    box_down
}

setup() {
    box_setup
    mkdir ran
}

teardown() {
    box_tell
    touch go
    box_clear
    scontrol update nodename=ALL state=resume 2>/dev/null || true
}

# matrix NAME JQ: each cell adds a line "job node" to ran/<name>.<i>; cell 2 waits for the file "go".
matrix() {
    jq -n --arg dir "$PWD" --arg name "$1" '{hpcgrid: 1, name: $name,
        site: {launcher: "srun", hardware: {cpu: {partition: "cpu", gpus_per_node: 0, backend: "cpu"}}, default: "cpu"},
        workload: {command: ["sh", "-c",
            "echo $SLURM_JOB_ID $SLURMD_NODENAME >>\"$0\"; [ $1 != 2 ] || until [ -e \"$2/go\" ]; do sleep 0.1; done",
            ($dir + "/ran/" + $name + ".{{i}}"), "{{i}}", $dir], launch: [], time: "5m"},
        axes: {i: {range: [1, 8]}}, together: 4} | '"${2:-.}" >"$1.json"
}

# ran NAME I LINES
ran() { [ "$(cat "ran/$1.$2" 2>/dev/null | wc -l)" = "$3" ]; }
# behind NAME N: of cells 1 to 4, so many running ones come after others
behind() { [ "$("$HPCGRID" status "$1" -s i=1..4 --json | jq .behind)" = "$2" ]; }
# start NAME: until cell 2 is at work
start() {
    matrix "$1"
    "$HPCGRID" run "$1.json" >out 2>log 3>&- &
    PID=$!
    box_wait 60 ran "$1" 2 1
}
id() { "$HPCGRID" status "$1" -s "i=$2" --cells --json | jq -r '.list[0].id'; }
pending() { [ "$(squeue -h -t pending -o %A | wc -l)" -gt 0 ]; }
is() { [ "$("$HPCGRID" status "$1" --json | jq -c .counts)" = "$2" ]; }
# results NAME JQ: of all of them
results() { find "reports/$1/001/cells" -name result.json -exec cat {} + | jq -rs "$2"; }

@test "pairs run in one job, turn about, and one that fails or takes too long leaves the next its run" {
    matrix pairs '.workload.command = ["sh", "-c", "case $0$1 in b2) exit 7;; b3) sleep 99;; esac", "{{impl}}", "{{repeat}}"]
        | .workload.time = 2 | .axes = {impl: ["a", "b"]} | .repeats = 3 | .together = ["impl"]'
    run "$HPCGRID" check pairs.json
    [ "$status" = 0 ]
    run --separate-stderr "$HPCGRID" run pairs.json
    [ "$status" = 1 ]
    is pairs '{"ok":4,"failed":1,"timeout":1}'
    [ "$("$HPCGRID" status pairs --json | jq .receipt.submit)" = 1 ]
    results pairs '[.[] | {j: .slurm.job_id, r: .cell.repeat}] | group_by(.r) | map(unique | length) | unique == [1]' | grep true
    results pairs 'map(.slurm.job_id) | unique | length == 3' | grep true
    results pairs 'sort_by(.ranks[0].start_s) | group_by(.cell.repeat) | map(map(.cell.impl) | add) == ["ab", "ba", "ab"]' | grep true
}

@test "after the automatic limit of a job the cell at work gets twice as long, and those behind it a job like the first" {
    matrix auto '.workload.time = "auto" | .axes.i.range = [1, 4]'
    touch go
    "$HPCGRID" run auto.json
    rm go
    "$HPCGRID" run auto.json --new >out 2>log 3>&- &
    PID=$!
    box_wait 60 ran auto 2 2
    [ "$(squeue -h -o %l)" = 5:00 ]
    scontrol update "jobid=$(squeue -h -o %A)" endtime=now # Slurm counts limits in minutes
    box_wait 90 ran auto 2 3
    touch go
    wait $PID || { cat log && return 1; }
    is auto '{"ok":4}'
    grep -qF '1 cell run again after TIMEOUT, "auto" limits doubled' log
    jq -c 'select(.kind == "intent") | [.tasks, .time_s]' reports/auto/002/events.jsonl | sort | diff - <(printf '%s\n' '["0-3",null]' '["1",600]' '["2-3",null]')
    for i in 1 3 4; do ran auto $i 2; done
}

@test "when the job dies, finished cells stay, what was at work has failed, and only the rest is sent again" {
    local i
    start dies
    box_wait 60 behind dies 2
    kill -9 "$(jq .pid "reports/dies/001/cells/1-000/$(id dies 2)".1.0/claim.json)"
    wait $PID || true
    is dies '{"ok":7,"failed":1}'
    for i in 1 2 3 4 5 6 7 8; do ran dies $i 1; done
    [ "$(cut -d' ' -f1 ran/dies.3)" = "$(cut -d' ' -f1 ran/dies.4)" ]
    [ "$(cut -d' ' -f1 ran/dies.3)" != "$(cut -d' ' -f1 ran/dies.2)" ]
    touch go
    "$HPCGRID" retry dies
    "$HPCGRID" resume dies
    is dies '{"ok":8}'
    [ "$(cat ran/dies.* | wc -l)" = 9 ]
    "$HPCGRID" fsck dies
}

@test "a job that Slurm requeues from a dead node goes on where it was" {
    start node
    scontrol update nodename="$(cut -d' ' -f2 ran/node.2)" state=down reason=test
    box_wait 60 pending
    touch go
    # else Slurm waits two minutes
    squeue -h -t pending -o %A | sort -u | while read -r id; do scontrol update jobid="$id" starttime=now; done
    wait $PID
    is node '{"ok":8}'
    ran node 1 1
    [ "$(cat ran/node.2 | wc -l)" -le 2 ]
    "$HPCGRID" fsck node
}

@test "cancelling one cell of a job leaves the others" {
    start one
    "$HPCGRID" cancel one -s i=3
    touch go
    wait $PID || true
    is one '{"ok":7,"cancelled":1}'
    ran one 1 1
    ran one 2 2
    ran one 3 0
    ran one 4 1
}

@test "pairs on nodes of different speed have a narrower interval than the same runs taken alone" {
    matrix speed '.workload.command = ["sh", "-c",
            "n=${SLURMD_NODENAME#cpu-}; echo took $((1000 * n * n * (10 + $0) + 9 * $1 * $0))", "{{impl}}", "{{repeat}}"]
        | .workload.results = {train_s: "took (\\d+)"}
        | .workload.sbatch = "--exclusive" | .axes = {impl: [1, 2]} | .repeats = 4 | .together = ["impl"] | .baseline = {impl: 1}
        | .report = {rows: ["impl"], metric: "train_s"}'
    "$HPCGRID" run speed.json
    [ "$(results speed 'map(.slurm.nodes) | unique | length')" = 2 ]
    width='[.tables[].points[] | select(.row.impl == 2)][0].speedup_interval | .[1] / .[0]'
    "$HPCGRID" collect speed
    paired=$("$HPCGRID" report speed --format json | jq "$width")
    alone=$(jq 'del(.results[].slurm)' reports/speed/001/tables/results.json >alone.json && "$HPCGRID" report alone.json --format json | jq "$width")
    [ "$("$HPCGRID" report speed --format json | jq '[.tables[].points[] | select(.row.impl == 2)][0].pairs')" = 4 ]
    "$HPCGRID" report speed | grep 'pairs of runs that shared a job'
    jq -en "$paired < $alone and $paired < 1.2"
}
