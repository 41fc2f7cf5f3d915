#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid trace: runs whose cells were run by hand, held against their results.

bats_require_minimum_version 1.5.0

load ../await

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    cd "$BATS_TEST_TMPDIR"
    unset "${!SLURM_@}"
    export HPCGRID_REPORTS=$BATS_TEST_TMPDIR/reports
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "times",
 "site": {"name": "here", "launcher": "", "default": "cpu", "hardware": {"cpu": {"gpus_per_node": 0}}},
 "workload": {"command": ["sh", "-c", "printf '{\"init_s\": 0.00001, \"train_s\": 0.00002}' >$HPCGRID_RESULT; [ $0 != 3 ]", "{{i}}"], "launch": []},
 "axes": {"i": [1, 2, 3, 4]}}
END
    run_dir=$HPCGRID_REPORTS/times/001
    "$hpcgrid" plan m.json --out "$run_dir" >/dev/null
    chmod 700 "$run_dir"
}

teardown() { nothing_left; }

# one LINE NODES [RESTARTS]: run that cell as a job would.
one() { SLURM_JOB_ID=1$1 SLURM_JOB_NODELIST=$2 SLURM_ARRAY_TASK_ID=$1 SLURM_RESTART_COUNT=${3:-0} "$run_dir/batches/1.sh" || true; }
trace() { run --separate-stderr "$hpcgrid" trace "$@"; }
# events JQ: of the trace in t.json
events() { jq -c ".traceEvents | $1" t.json; }

@test "attempts stand on their nodes as long as their results say" {
    one 0 'n-[01-02]'
    one 1 'n-01'
    one 2 'gpu'
    one 2 'gpu' 1
    trace times --out t.json
    [ "$status" = 0 ]
    [ -z "$output" ]
    [[ "$stderr" == *"4 attempts; open it in https://ui.perfetto.dev"* ]]
    jq -s 'map({(.id + " " + .attempt): [.status, (.wall_s * 1e6 | round)]}) | add' "$run_dir"/cells/*/*/result.json >want
    events 'map(select(.args.folder) | {(.args.cell + " " + .args.attempt): [.cat, (.dur | round)]}) | add' | jq . >got
    diff <(jq -S . want) <(jq -S . got)
    # node by node; what lies under the attempt fills it
    events '(map(select(.name == "process_name") | {(.pid | tostring): .args.name}) | add) as $name |
        map(select(.args.folder) | $name[.pid | tostring]) | group_by(.) | map([.[0], length])' >got
    [ "$(cat got)" = '[["gpu",2],["n-01",2],["n-02",1]]' ]
    events '(map(select(.cat == "phase") | .dur) | add) - (map(select(.args.folder) | .dur) | add) | fabs < 0.1' | grep -qx true
    # to the nanosecond: Perfetto drops what overlaps
    events 'map(select(.ph == "X" and .tid and .cat != "queued") | {pid, tid, from: (.ts * 1000 | round), to: ((.ts * 1000 | round) + (.dur * 1000 | round)), cat}) |
        group_by([.pid, .tid]) | all(sort_by(.from, -.to) | . as $s | [range(1; length)] |
            all($s[.] as $b | $s[. - 1] as $a | $b.from >= $a.to or $b.to <= $a.to))' | grep -qx true
    events 'map(select(.name == "train") | .dur | round) | unique' | grep -qxF '[20]'
    events 'map(select(.ph == "C" and .name == "cells")) | last.args' | grep -qxF '{"ok":2,"bad attempts":2}'
    events 'map(select(.ph == "C" and .name == "attempts")) | last.args' | grep -qxF '{"queued":0,"running":0}'
    events '.[] | select(.args.folder) | .args.folder' | sort -u | tr -d '"' >folders
    while read -r folder; do [ -e "$folder/result.json" ]; done <folders
    [ "$(wc -l <folders)" = 4 ]
    # times count from the first
    jq -e '.baseTimeNanoseconds > 1.7e18 and ([.traceEvents[].ts | numbers] | min == 0)' t.json
}

@test "only the cells that are asked for; standard output without --out" {
    for i in 0 1 2; do one $i n1; done
    trace times -s i=2..3
    [ "$(jq -c '[.traceEvents[] | select(.args.folder) | .args.parameters.i] | sort' <<<"$output")" = '[2,3]' ]
    trace times -s 'i='
    [ "$status" = 2 ]
}

@test "what is no file is written into, never replaced by one" {
    for i in 0 1 2; do one $i n1; done
    mkfifo pipe
    cat pipe >got 3>&- &
    trace times --out pipe
    [ "$status" = 0 ]
    [ -p pipe ]
    wait $!
    trace times
    diff got <(echo "$output")
}

@test "attempts beside each other on a node have a thread each" {
    local both=()
    jq --arg dir "$PWD" '.name = "pair" | .workload.command = ["sh", "-c", "echo >\"$0/began.$1\"; until [ -e \"$0/go\" ]; do sleep 0.05; done", $dir, "{{i}}"]' \
        m.json >pair.json
    run_dir=$HPCGRID_REPORTS/pair/001
    "$hpcgrid" plan pair.json --out "$run_dir" >/dev/null
    chmod 700 "$run_dir"
    one 0 n1 3>&- & both+=($!)
    one 1 n1 3>&- & both+=($!)
    await test -e began.1 -a -e began.2
    touch go
    wait "${both[@]}"
    trace pair --out t.json
    [ "$(events 'map(select(.args.folder) | [.pid, .tid]) | sort')" = '[[1,1],[1,2]]' ]
    [ "$(events 'map(select(.name == "attempts") | .args.running) | max')" = 2 ]
}

@test "what has no end yet, and what does not count, is told so" {
    one 0 n1
    one 1 n1
    rm "$(ls "$run_dir"/cells/*/*.0.0/result.json | head -1)"
    sed -i 's/"wall_s": /&1/' "$(ls "$run_dir"/cells/*/*.0.0/result.json | head -1)"
    trace times --out t.json
    [ "$status" = 0 ]
    [[ "$stderr" == *"results that do not count: 1 "* ]]
    [ "$(events 'map(select(.args.folder) | [.cat, .args.end])')" = '[["no result","not known"],["no result","not known"]]' ]
}

@test "a claim that is damaged says nothing, one that cannot be read ends the command" {
    one 0 n1
    claim=$(echo "$run_dir"/cells/*/*/claim.json)
    echo '{' >"$claim"
    trace times --out t.json
    [ "$status" = 0 ]
    rm "$claim" t.json
    ln -s claim.json "$claim" # ELOOP
    trace times --out t.json
    [ "$status" = 4 ]
    [[ "$stderr" == *"cannot read "*"/claim.json"* ]]
    [ ! -e t.json ]
}

@test "a run that has not begun is said to be one, and leaves no file" {
    trace times --out t.json
    [ "$status" = 4 ]
    [[ "$stderr" == *"times/001: nothing has run yet (4 cells)"* ]]
    [ ! -e t.json ]
    [ ! -e t.json.part ]
    trace nothing
    [ "$status" = 4 ]
    one 0 n1
    trace times --out /nonexistent/t.json
    [ "$status" = 4 ]
    [[ "$stderr" == *"cannot write /nonexistent/t.json"* ]]
    trace times --out /dev/full/x
    [ "$status" = 4 ]
}

# ranks CELL: two ranks' traces, the second begins 1.5 ms later
ranks() {
    local r dir
    dir=$(echo "$run_dir"/cells/*/*"$1"*.0.0)
    for r in 0 1; do
        printf '{"schemaVersion": 1, "baseTimeNanoseconds": %d, "droppedSpans": 0,\n"distributedInfo": {"rank": %d},\n"traceEvents": [' \
            $((1780000000000000000 + r * 1500000)) $r
        printf '\n{"ph": "M", "name": "process_name", "pid": %d, "tid": 0, "args": {"name": "rank %d on x"}}' $r $r
        printf ',\n{"ph": "X", "cat": "cpu_op", "name": "a \\"ts\\" b", "pid": %d, "tid": 1, "ts": 0.250, "dur": 2.000}' $r
        printf ',\n{"ph": "X", "cat": "cpu_op", "name": "c", "pid": %d, "tid": 1, "ts": 7.000, "dur": 1.000, "args": {"step": 1}}' $r
        printf '\n]}\n'
    done | awk -v dir="$dir" '/^{"schema/ { n++ } { print >(dir "/t" n) }'
    gzip -c "$dir/t1" >"$dir/trace.0.json.gz"
    gzip -c "$dir/t2" >"$dir/trace.1.json.gz"
    id=$(basename "$dir" .0.0)
}

@test "the traces of a cell's ranks are one, on one clock" {
    one 0 n1
    ranks ''
    trace times --cell "$id" --out t.json
    [ "$status" = 0 ]
    [ "$(jq -c '[.ranks, .baseTimeNanoseconds == 1780000000000000000]' t.json)" = '[2,true]' ]
    [ "$(events 'map(select(.ts) | [.pid, .name, .ts + 0, .dur + 0])')" = \
        '[[0,"a \"ts\" b",0.25,2],[0,"c",7,1],[1,"a \"ts\" b",1500.25,2],[1,"c",1507,1]]' ]
    [ "$(events 'map(select(.ph == "M") | .args.name)')" = '["rank 0 on x","rank 1 on x"]' ]
    trace times
    [ "$(jq -c '[.traceEvents[] | select(.args.traces).args.traces]' <<<"$output")" = '[2]' ]
    run -0 --separate-stderr bash -c "$(jq -r '.traceEvents[] | select(.args.see).args.see' <<<"$output" | sed "s,^hpcgrid,'$hpcgrid',")"
    [ "$(jq .ranks <<<"$output")" = 2 ]
}

@test "a rank's trace that is damaged is named, and nothing is left behind" {
    one 0 n1
    ranks ''
    file=$(echo "$run_dir"/cells/*/*.0.0/trace.1.json.gz)
    cp "$file" good
    head -c 100 good >"$file"
    trace times --cell "$id" --out t.json
    [ "$status" = 3 ]
    [[ "$stderr" == *"trace.1.json.gz"* ]]
    [ ! -e t.json ] && [ ! -e t.json.part ]
    zcat good | head -n 4 | gzip >"$file"
    trace times --cell "$id" --out t.json
    [[ "$stderr" == *"trace.1.json.gz was cut short"* ]]
    { zcat good | head -n 4; echo 'nonsense'; } | gzip >"$file"
    trace times --cell "$id"
    [ "$status" = 3 ]
    [[ "$stderr" == *"trace.1.json.gz: line 5 is not as hpcgrid-worker writes it"* ]]
    echo nonsense | gzip >"$file"
    trace times --cell "$id"
    [[ "$stderr" == *"trace.1.json.gz: line 1 is not as hpcgrid-worker writes it"* ]]
}

@test "what cannot be drawn of a cell is told with the next step" {
    one 0 n1
    id=$(basename "$run_dir"/cells/*/* .0.0)
    trace times --cell "$id"
    [ "$status" = 4 ]
    [[ "$stderr" == *"has no trace"*'"trace": true'* ]]
    trace times --cell "$id" --attempt 7.7
    [ "$status" = 4 ]
    trace times --cell "$id" --attempt x
    [ "$status" = 2 ]
    trace times --cell nobody
    [ "$status" = 3 ]
    [[ "$stderr" == *'has 0 cells with id "nobody"'* ]]
    trace times --cell "${id%?????????????}"
    [ "$status" = 3 ]
    [[ "$stderr" == *'has 4 cells whose id begins with'* ]]
    trace times --attempt 0.0
    [ "$status" = 2 ]
    trace times --cell "$id" -s i=1
    [ "$status" = 2 ]
}

@test "report --profile prints the operators of a traced cell, and how two cells differ" {
    rm -r "$run_dir"
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "times", "site": {"name": "here", "launcher": "", "default": "cpu", "hardware": {"cpu": {"gpus_per_node": 0}}},
 "workload": {"program": "hpcgrid-worker", "model": "rnn", "dataset": "mnist-slice", "steps": 5, "eval": false, "trace": true, "launch": []},
 "axes": {"batch_size": [16, 32]}, "repeats": 2}
END
    "$hpcgrid" plan m.json --out "$run_dir" >/dev/null
    chmod 700 "$run_dir"
    for i in 0 1 2; do one $i n1; done
    report() { "$hpcgrid" report times --profile "$@" || [ $? -eq 1 ]; }
    run report
    [[ "$output" == *"error: 3 results have a profile"*"choose one, or two to compare, with --where: batch_size=16, run 1; "* ]]
    # one cell: what its result says
    report -w 'batch_size=16, run 1' --format json >one.json
    jq -se '.[0].ops as $o | [.[1:][] | select(.cell.batch_size == 16 and .cell.repeat == 1) | .profile.steps == 3 and .profile.ops == ($o | map(del(.self_share)))] == [true]' \
        one.json "$run_dir"/cells/*/*/result.json
    jq -se 'map(([.ops[].self_share] | add - 1 | fabs < 1e-9) and (.ops | map(.self_s) | . == (sort | reverse))) == [true]' one.json
    report -w 'batch_size=16, run 1' >text
    head -1 text | grep -qx 'batch_size=16, run 1, 3 steps recorded on rank 0, [0-9.]* ms in operators'
    grep -qE '^op +self +self time +total +total time +per call +calls$' text
    grep -qE "^$(jq -r '.ops[0].name' one.json) +[0-9.]+ % +[0-9.]+ (us|ms|s) +[0-9.]+ % +[0-9.]+ (us|ms|s) +[0-9.]+ (us|ms|s) +$(jq -r '.ops[0].calls' one.json)\$" text
    report -w 'batch_size=16, run 1' --format csv >one.csv
    [ "$(wc -l <one.csv)" = $(($(jq '.ops | length' one.json) + 1)) ]
    head -1 one.csv | tr -d "\r" | grep -qx op,self_share,self_s,total_share,total_s,per_call_s,calls
    # two: per step, the largest difference first
    report -w 'run 1' --format json >two.json
    jq -se 'map(.per_step and (.cells | map(.name)) == ["batch_size=16, run 1", "batch_size=32, run 1"] and (.ops[0] | .difference_s == .b.self_s - .a.self_s)
        and (.ops | map(.difference_s | fabs) | . == (sort | reverse))) == [true]' two.json
    report -w 'run 1' | grep -qE '^op +A self +self time .* B self .* B - A self time$'
    [ "$(jq --slurpfile one one.json '[.ops[] | .name as $n | .a.self_s * 3 - ($one[0].ops[] | select(.name == $n) | .self_s) | fabs < 1e-9] | length > 3 and all' two.json)" = true ]
    run report --ranks
    [[ "$output" == *"--csv, --pivot, --ranks and --profile exclude each other"* ]]
}

@test "tensorboard starts TensorBoard on the run, or prints the command" {
    one 0 n1
    mkdir bin
    printf '#!/bin/sh\nprintf "%%s|" "$@"; exit 7\n' >bin/tensorboard
    chmod +x bin/tensorboard
    PATH=$PWD/bin:$PATH run --separate-stderr "$hpcgrid" tensorboard times -- --port 6007
    [ "$status" = 7 ]
    [ "$output" = "--logdir|$run_dir/cells|--port|6007|" ]
    [[ "$stderr" == *"no event files in $run_dir/cells yet"* ]]
    touch "$(echo "$run_dir"/cells/*/*.0)/events.out.tfevents.1"
    PATH=$PWD/bin:$PATH run --separate-stderr "$hpcgrid" tensorboard times --print
    [ "$status" = 0 ]
    [ "$output" = "tensorboard --logdir $run_dir/cells" ]
    [ -z "$stderr" ]
    run --separate-stderr env PATH=/nonexistent "$hpcgrid" tensorboard times
    [ "$status" = 0 ]
    [ "$output" = "tensorboard --logdir $run_dir/cells" ]
    [[ "$stderr" == *"tensorboard is not in PATH"* ]]
}
