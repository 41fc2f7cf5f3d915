#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# "together": which cells share a job, what it requests, what runs where no Slurm is needed, and ratios of pairs.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    cd "$BATS_TEST_TMPDIR" || return 1
}

# matrix [JQ]: two values of impl by two of size, three times
matrix() {
    jq -n '{hpcgrid: 1, name: "x", workload: {command: ["sh", "-c", "exit $0", "{{code}}"], launch: [], time: "2m", code: 0},
        axes: {impl: ["a", "b"], size: [1, 2]}, repeats: 3, together: ["impl"]} | '"${1:-.}" >x.json
}

# Cells of each job of the plan, such as "a1.1 b1.1": impl, size, repeat.
jobs() {
    rm -rf planned
    "$hpcgrid" plan x.json -o planned >/dev/null
    for b in planned/batches/*.cells.jsonl; do
        jq -r '.cell | "\(.impl)\(.size).\(.repeat)"' "$b" |
            xargs -n "$(sed -n 's/.*--together \([0-9]*\).*/\1/p' "${b%.cells.jsonl}.sh" | grep . || echo 1)"
    done
}

@test "cells that differ in these keys only share a job, turn about by repeat" {
    matrix
    [ "$(jobs)" = "a1.1 b1.1
a2.1 b2.1
b1.2 a1.2
b2.2 a2.2
a1.3 b1.3
a2.3 b2.3" ]
    run "$hpcgrid" plan x.json
    [[ "$output" == "x on box: 12 cells in 1 batch, one after another in 6 jobs"* ]]
    [[ "$output" == *"    1     12     6  cpu "*" 00:04:00 "* ]]
    [[ "$output" == *"submissions  1"* ]]
    [ "$("$hpcgrid" plan x.json --json | jq -c '.batches[0] | [.jobs, .together, .job.time_s, .device_hours]')" = '[6,2,240,0.4]' ]
    run "$hpcgrid" explain x.json impl=a,size=2,repeat=2
    [[ "$output" == *"number 2 of 2, one after another:"*"1. impl=b size=2, run 2"*"2. impl=a size=2, run 2"* ]]
}

@test "what derive makes of the keys may differ, and repeats may share a job, too" {
    matrix '.derive = {mode: "if .impl == \"a\" then 1 else 2 end", time: "60 * .mode"} | del(.workload.time)
        | .together = ["impl", "repeat"]'
    [ "$(jobs)" = "a1.1 b1.1 b1.2 a1.2 a1.3 b1.3
a2.1 b2.1 b2.2 a2.2 a2.3 b2.3" ]
    [ "$("$hpcgrid" plan x.json --json | jq '.batches[0].job.time_s')" = 540 ]
}

@test "a number fills jobs in the order of the matrix, and the rest is a smaller one" {
    matrix '.together = 5'
    [ "$("$hpcgrid" plan x.json --json | jq -c '[.batches[] | [.cells, .jobs, .job.time_s]]')" = '[[10,2,600],[2,1,300]]' ] || {
        "$hpcgrid" plan x.json
        false
    }
    matrix '.together = 1'
    [ "$(jobs | wc -l)" = 12 ]
}

@test "cells that are not selected share no job" {
    matrix '.repeats = 1'
    [ "$("$hpcgrid" plan x.json -s impl=a --json | jq -c '[.batches[] | [.cells, .together]]')" = '[[2,1]]' ]
}

@test "what cannot share a job is an error with its place" {
    local text
    while IFS=@ read -r change text; do
        matrix "$change"
        run "$hpcgrid" check x.json
        [ "$status" = 3 ] && [[ "$output" == *"$text"* ]] || { echo "$change: $output" && false; }
    done <<'END'
.together = ["imp"]@error: /together/0: no cell has "imp"
.together = []@error: /together: the list of keys is empty
.together = [1]@error: /together/0: expected a key, found an integer
.together = "impl"@error: /together: expected a list of keys or an integer, found a string
.together = 1001@error: /together: 1001 is out of range; 1 to 1000
.axes.nodes = [1, 2] | .together = ["nodes"]@error: /together: cells that would share a job request different resources: sh-cpu-1x1
.derive = {mem: "if .impl == \"a\" then \"1G\" else \"2G\" end"}@mem=1024, sh-cpu-1x1
.site = {hardware: {cpu: {partition: "p", gpus_per_node: 0, max_time: "3m"}}, default: "cpu"}@2 cells that share a job request 00:04:00 in all, a job on cpu may have 3m
END
    matrix '.axes = {case: [{impl: "a", k: 1}, {impl: "b", k: 2}]}'
    run "$hpcgrid" plan x.json
    [[ "$output" == *"warning: /together: no two cells differ in these keys only"* ]]
}

@test "a job runs its cells one after another; one that fails, or is not among its cells, leaves the next its run" {
    matrix '.axes.code = [0, 3] | .repeats = 1 | .axes |= del(.size) | .workload.code = 0 | .together = 4'
    "$hpcgrid" plan x.json -o run >/dev/null
    SLURM_ARRAY_TASK_ID=0 run bash run/batches/1.sh --submission 1 --cells 0-1,3
    [ "$status" = 3 ]
    [ "$(cat run/cells/*/*/result.json | jq -sc 'map([.cell.impl, .cell.code, .status]) | sort')" = '[["a",0,"ok"],["a",3,"failed"],["b",3,"failed"]]' ]
    SLURM_ARRAY_TASK_ID=0 run bash run/batches/1.sh --submission 1 --offset 0
    [ "$(cat run/cells/*/*/result.json | jq -s length)" = 4 ]
    [[ "$output" == *"task 0: nothing to do for this copy of the job: it has a good result, of attempt 1.0"* ]]
}

@test "a cell that shares its job is warned before its own time limit, ended there, and leaves the next its run" {
    matrix '.axes = {n: {range: [1, 40]}} | .repeats = 1 | .together = 40 | .workload = {launch: [], time: 2, sbatch: "--signal=USR1@1",
        command: ["sh", "-c", "case $0 in 1) trap \"exit 9\" USR1;; 2) trap : USR1;; 3) exit;; esac; while :; do sleep 0.1; done", "{{n}}"]}'
    run "$hpcgrid" plan x.json -o run
    [[ "$output" != *warning* ]]
    SLURM_ARRAY_TASK_ID=0 run bash run/batches/1.sh --submission 1 --cells 0-2
    [ "$status" = 9 ]
    [ "$(cat run/cells/*/*/result.json | jq -sc 'map([.cell.n, .status, .exit_code]) | sort')" = '[[1,"failed",9],[2,"timeout",143],[3,"ok",0]]' ] || {
        cat run/cells/*/*/result.json | jq -sc 'map([.cell.n, .status, .exit_code, .signal]) | sort'
        false
    }
}

# runs N: 300 cases that each ran N times as a and as b, 5 % faster, on nodes that differ by 20 %; noise 2 %
runs() {
    awk -v n="$1" 'function gauss() { return sqrt(-2 * log(1 - rand())) * cos(6.283185307 * rand()) }
        BEGIN { srand(5); for (c = 1; c <= 300; c++) for (r = 1; r <= n; r++) { node = 10 * exp(0.2 * gauss())
            for (b = 0; b < 2; b++) printf "{\"status\": \"ok\", \"cell\": {\"impl\": %d, \"case\": %d, \"repeat\": %d}, \"slurm\": {\"job_id\": %d},"\
                " \"train_s\": %.9g}\n", b, c, r, 100 * c + r, node * exp(0.02 * gauss()) / (b ? 1.05 : 1) } }' |
        jq -s '{schema: "hpcgrid-results/1", baseline: {impl: 0}, report: {rows: ["case"], columns: ["impl"], metric: "train_s"}, results: .}'
}

# Of the intervals of b: how many hold 1.05, and their mean width.
intervals() {
    "$hpcgrid" report "$1" --format json | jq -c '[.tables[].points[] | select(.column.impl == 1) | .speedup_interval]
        | [(map(select(.[0] <= 1.05 and 1.05 <= .[1])) | length), (map(.[1] / .[0] - 1) | add / length)]'
}

@test "the interval of pairs holds what it says, and is narrower than without the pairs" {
    runs 4 >paired.json
    jq 'del(.results[].slurm)' paired.json >alone.json
    run jq -n --argjson p "$(intervals paired.json)" --argjson a "$(intervals alone.json)" \
        '{$p, $a, ok: ($p[0] >= 273 and $p[0] <= 296 and $p[1] < $a[1] / 3)}'
    echo "$output"
    [ "$(jq .ok <<<"$output")" = true ]
    "$hpcgrid" report paired.json | grep 'speedups are of pairs of runs that shared a job'
}
