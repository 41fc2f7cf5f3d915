#!/usr/bin/env bats
# The node side without Slurm: a plan written by hand, SLURM_* set by hand, commands that misbehave.

bats_require_minimum_version 1.5.0
load ../await
load ../plan

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    cd "$BATS_TEST_TMPDIR" || return 1
    run_dir=$BATS_TEST_TMPDIR/reports/x/001
    mkdir -p -m 0700 "$run_dir/batches"
    unset "${!SLURM_@}"
    export SLURM_ARRAY_TASK_ID=0
}

teardown() { nothing_left; }

# plan WORKLOAD [CELL]: a run of one batch with three cells, all like CELL.
plan() {
    local cell=${2:-'{"hardware":"cpu","nodes":1,"tasks_per_node":1,"size":3,"_note":"n"}'}
    cat >"$run_dir/plan.json" <<END
{"schema": "hpcgrid-plan/3", "name": "x", "run_key": "0123456789abcdef0123456789abcdef",
 "workload": $1,
 "site": {"name": "here", "launcher": [], "env": {"SITE_SAYS": "hello"}, "network_gbit_s": {"a100": 800, "cpu": 200}},
 "batches": [{"number": 1, "cells": 3, "hardware": "cpu", "gpu": ${gpu:-false}, "job": {"nodes": 1, "tasks_per_node": ${tasks:-1}, "cpus_per_task": ${cpus:-1}, "time_s": ${time_s:-0}}}]}
END
    for id in c-0 c-1 c-2; do
        printf '{"id":"%s","baseline":null,"added":false,"cell":%s}\n' $id "$cell"
    done >"$run_dir/batches/1.cells.jsonl"
    index_cells "$run_dir"
}

node() {
    "$hpcgrid" exec --run "$run_dir" --batch 1 "$@"
}

# The same in the background; $pid is the program's own.
start_node() {
    "$hpcgrid" exec --run "$run_dir" --batch 1 3>&- &
    pid=$!
}

# Sanitizers want all addresses for themselves and cannot be traced.
plain_build() { ! ldd "$hpcgrid" | grep -q 'lib[at]san'; }

# The value of a member at the top level of a JSON file of ours, as it stands.
member() {
    sed -n "s/^  \"$2\": \(.*[^,]\),\{0,1\}$/\1/p" "$1"
}

result() {
    member "$run_dir/cells/1-000/c-0.0.0/result.json" "$1"
}

sh_workload() { # a shell script as workload; no quotes or backslashes inside
    printf '{"command": ["sh", "-c", "%s"], "launch": [], "cwd": "/"}' "$1"
}

@test "a command without a result file is ok with its wall time" {
    plan "$(sh_workload 'echo out; echo err >&2')"
    node
    [ "$(result status)" = '"ok"' ]
    [ "$(result exit_code)" = 0 ]
    [ "$(result attempt)" = '"0.0"' ]
    [ "$(cat "$run_dir/cells/1-000/c-0.0.0/out.log")" = out ]
    [ "$(cat "$run_dir/cells/1-000/c-0.0.0/err.log")" = err ]
    grep -q '"wall_s": [0-9]' "$run_dir/cells/1-000/c-0.0.0/result.json"
    [ "$(stat -c %a "$run_dir/cells/1-000/c-0.0.0")" = 700 ]
}

@test "what an attempt leaves is its claim, its cell, its result and what it printed" {
    left() { find "$run_dir/cells/1-000/c-$1" -mindepth 1 -printf '%f\n' | sort | xargs; }
    plan "$(sh_workload 'echo {} >$HPCGRID_RESULT; ls $HPCGRID_RESULT')"
    node
    [ "$(left 0.0.0)" = "cell.json claim.json out.log result.json" ]
    plan "$(sh_workload 'echo {} >$HPCGRID_RESULT; exit 3')"
    SLURM_ARRAY_TASK_ID=1 run -3 node
    [ "$(left 1.0.0)" = "cell.json claim.json result.json workload.json" ]
    plan "$(sh_workload 'echo nonsense >$HPCGRID_RESULT; echo >&2')"
    SLURM_ARRAY_TASK_ID=2 run -1 node
    [ "$(left 2.0.0)" = "cell.json claim.json err.log result.json workload.json" ]
}

@test "offset and task id choose the line" {
    plan "$(sh_workload 'exit 0')"
    SLURM_ARRAY_TASK_ID=1 node --offset 1
    [ -e "$run_dir/cells/1-000/c-2.0.0/result.json" ]
    [ "$(ls "$run_dir/cells/1-000")" = c-2.0.0 ]
    SLURM_ARRAY_TASK_ID=3 run node
    [ "$status" -eq 4 ] || [ "$status" -eq 3 ]
    [[ "$output" == *"has no line 4"* ]]
}

@test "a copy that comes when the cell has a good result leaves with 0" {
    plan "$(sh_workload 'echo ran')"
    node --submission 7
    run node --submission 7
    [ "$status" -eq 0 ]
    [[ "$output" == *"it has a good result, of attempt 7.0"* ]]
    SLURM_RESTART_COUNT=1 run node --submission 7 # requeued by a controller that noticed its end late
    [ "$status" -eq 0 ]
    run node --submission 8
    [[ "$output" == *"it has a good result, of attempt 7.0"* ]]
    [ "$(ls "$run_dir/cells/1-000")" = c-0.7.0 ]
    [ "$(cat "$run_dir/cells/1-000/c-0.7.0/out.log")" = ran ]
    ls -A "$run_dir/cells/1-000/c-0.7.0" | grep '^\.claim' && return 1
    grep -q '"pid"' "$run_dir/cells/1-000/c-0.7.0/claim.json"
}

# at_work [SECONDS]: begin attempt 7.0 of a workload that goes on until the file "go" is there, with a heartbeat each second (or
# so many). $pid: exec's own.
at_work() {
    plan "$(sh_workload "echo at work; until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.1; done")"
    sed -i 's/"name": "here"/&, "heartbeat_s": '"${1:-1}"'/' "$run_dir/plan.json"
    "$hpcgrid" exec --run "$run_dir" --batch 1 --submission 7 3>&- &
    pid=$!
    dir=$run_dir/cells/1-000/c-0.7.0
    await grep -qs work "$dir/out.log"
}

# Nobody on this machine can say whether the owner of a claim lives.
of_another_machine() { sed -i 's/"\(boot\|machine\)": "[^"]*"/"\1": "another"/' "$dir/claim.json"; }

@test "a copy that finds another one at work leaves, and says so" {
    at_work
    for count in 0 1; do # the same task started twice; requeued from a node that was cut off
        SLURM_RESTART_COUNT=$count run node --submission 7
        [ "$status" -eq 0 ]
        [[ "$output" == *"attempt 7.0 is running (process $pid on "* ]]
    done
    run node --submission 8
    [[ "$output" == *"attempt 7.0 is running"* ]]
    [ -e "$dir/left.json" ]
    touch "$BATS_TEST_TMPDIR/go"
    wait $pid
    [ "$(ls "$run_dir/cells/1-000")" = c-0.7.0 ]
    [ "$(member "$dir/result.json" status)" = '"ok"' ]
}

@test "a copy takes over from one that was killed on this machine" {
    at_work
    kill -9 $pid
    wait $pid || true
    touch "$BATS_TEST_TMPDIR/go"
    node --submission 7
    [ -e "$dir/claim.taken.json" ]
    [ "$(member "$run_dir/cells/1-000/c-0.7.1/result.json" status)" = '"ok"' ]
}

@test "of another machine a heartbeat tells: one that moves is left alone" {
    at_work
    of_another_machine
    run node --submission 7
    [ "$status" -eq 0 ]
    [[ "$output" == *"attempt 7.0 is running"* ]]
    touch "$BATS_TEST_TMPDIR/go"
    wait $pid
    [ "$(ls "$run_dir/cells/1-000")" = c-0.7.0 ]
}

@test "what cannot be read of an attempt at work is not taken for absent" {
    need_strace
    at_work
    for call in "openat $dir/claim.json" "openat $dir" "getdents64 ${dir%/*}"; do
        run timeout 60 strace -qq -o "$BATS_TEST_TMPDIR/trace" -P "${call#* }" -e "trace=${call% *}" -e "inject=${call% *}:error=EIO:when=1" \
            "$hpcgrid" exec --run "$run_dir" --batch 1 --submission 7 3>&-
        echo "$call: $status $output"
        grep -q INJECTED "$BATS_TEST_TMPDIR/trace"
        [[ "$output" == *"is running"* || "$output" == *"cannot read folder"* ]] || return 1
    done
    [ "$(ls "$run_dir/cells/1-000")" = c-0.7.0 ]
    touch "$BATS_TEST_TMPDIR/go"
    wait $pid
}

@test "... one that stands still for four of its intervals is taken over from" {
    local since
    at_work 0.25
    kill -9 $pid
    wait $pid || true
    of_another_machine
    touch "$BATS_TEST_TMPDIR/go"
    since=$(date +%s%N)
    node --submission 7
    [ $(($(date +%s%N) - since)) -ge 1000000000 ]
    [ -e "$dir/claim.taken.json" ]
    [ "$(member "$run_dir/cells/1-000/c-0.7.1/result.json" status)" = '"ok"' ]
}

@test "one that was cut off and taken for dead ends when it notices" {
    at_work
    mv "$dir/claim.json" "$dir/claim.taken.json"
    wait $pid || true
    [ "$(member "$dir/result.json" status)" = '"cancelled"' ]
    grep -q "another copy of the job took the cell over" "$dir/result.json"
}

# woke N: exec has woken up so often since the test knows it; it does so each second, to give a sign of life.
woke() { [ $(($(sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/$pid/status) - before)) -ge "$1" ]; }

@test "a cell whose run is moved away and back works on" {
    local before=0
    at_work
    mv "$run_dir" "$run_dir.away"
    before=$(sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/$pid/status)
    await woke 5
    mv "$run_dir.away" "$run_dir"
    touch "$BATS_TEST_TMPDIR/go"
    wait $pid
    [ "$(member "$dir/result.json" status)" = '"ok"' ]
}

@test "a copy told to end while it waits leaves nothing" {
    at_work
    kill -STOP $pid
    of_another_machine
    sed -i 's/"heartbeat_s": 1/"heartbeat_s": 300/' "$run_dir/plan.json"
    "$hpcgrid" exec --run "$run_dir" --batch 1 --submission 8 2>log 3>&- &
    local copy=$!
    await grep -qs '^SigBlk:.*\(4a03\|0a01\)$' /proc/$copy/status # TERM is blocked, or waited for: it has begun
    kill $copy
    wait $copy
    grep -q "received SIGTERM before it began" log
    [ "$(ls "$run_dir/cells/1-000")" = c-0.7.0 ]
    kill -CONT $pid
    touch "$BATS_TEST_TMPDIR/go"
    wait $pid
}

@test "an attempt that received SIGTERM is begun again, one that failed is not" {
    at_work
    kill $pid
    wait $pid || true
    [ "$(member "$dir/result.json" status)" = '"cancelled"' ]
    [ "$(member "$dir/result.json" ending)" = "" ]
    plan "$(sh_workload 'exit 3')"
    run node --submission 7
    [ "$status" -eq 3 ]
    [ "$(member "$run_dir/cells/1-000/c-0.7.1/result.json" status)" = '"failed"' ]
    run node --submission 7
    [ "$status" -eq 0 ]
    [[ "$output" == *"attempt 7.1 has ended: failed"* ]]
    [ "$(ls "$run_dir/cells/1-000" | wc -l)" -eq 2 ]
}

@test "a copy of another name that came and ended while this one claimed is not run again" {
    need_strace
    plan "$(sh_workload "echo ran >>$BATS_TEST_TMPDIR/count")"
    strace -qq -o "$BATS_TEST_TMPDIR/trace" -e trace=link -e inject=link:delay_enter=5000000 \
        "$hpcgrid" exec --run "$run_dir" --batch 1 --submission 8 2>"$BATS_TEST_TMPDIR/log" 3>&- &
    await eval "ls -A $run_dir/cells/1-000/c-0.8.0 | grep -q claim" # it has looked around
    node --submission 7
    wait
    grep -q "it has a good result, of attempt 7.0" "$BATS_TEST_TMPDIR/log"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/count")" -eq 1 ]
}

@test "twenty copies at once run the workload once" {
    plan "$(sh_workload "echo ran >>$BATS_TEST_TMPDIR/count")"
    for i in $(seq 20); do node --submission 1 2>/dev/null 3>&- & done
    wait
    [ "$(wc -l <"$BATS_TEST_TMPDIR/count")" -eq 1 ]
    [ "$(member "$run_dir/cells/1-000/c-0.1.0/result.json" status)" = '"ok"' ]
}

@test "a higher restart count is a new attempt" {
    plan "$(sh_workload 'exit 1')"
    run node --submission 1
    SLURM_RESTART_COUNT=1 run node --submission 1
    [ -e "$run_dir/cells/1-000/c-0.1.0/result.json" ]
    [ "$(member "$run_dir/cells/1-000/c-0.1.1/result.json" attempt)" = '"1.1"' ]
}

# An early USR1 would end a program that is still being loaded; hpcgrid-worker lets it come when it is ready.
@test "hpcgrid-worker starts with USR1 held, a foreign program does not" {
    local script="$BATS_TEST_TMPDIR/worker"
    printf '#!/bin/sh\nexec grep ^SigBlk /proc/self/status\n' >"$script"
    chmod 755 "$script"
    plan '{"program": "hpcgrid-worker", "launch": [], "cwd": "/"}'
    HPCGRID_WORKER=$script run node # a training without a result has failed
    [ "$(cat "$run_dir/cells/1-000/c-0.0.0/out.log")" = $'SigBlk:\t0000000000000200' ]
    plan "{\"command\": [\"$script\"], \"launch\": [], \"cwd\": \"/\"}"
    node --submission 1
    [ "$(cat "$run_dir/cells/1-000/c-0.1.0/out.log")" = $'SigBlk:\t0000000000000000' ]
}

@test "a failure passes its exit code on and keeps the last words" {
    plan "$(sh_workload 'echo it broke >&2; exit 42')"
    run node
    [ "$status" -eq 42 ]
    [ "$(result status)" = '"failed"' ]
    [ "$(result exit_code)" = 42 ]
    grep -q '"message": "exit code 42"' "$run_dir/cells/1-000/c-0.0.0/result.json"
    grep -q '"tail": "it broke"' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "a workload that is killed gives 128 + n and the signal's name" {
    plan "$(sh_workload 'kill -9 $$')"
    run node
    [ "$status" -eq 137 ]
    [ "$(result status)" = '"failed"' ]
    grep -q '"message": "signal 9 (Killed)"' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "a crash leaves no core file, unless the command wants one" {
    ulimit -c unlimited 2>/dev/null || skip "core files are not allowed here"
    plan "$(sh_workload 'ulimit -Sc; ulimit -Hc')"
    node
    [ "$(cat "$run_dir/cells/1-000/c-0.0.0/out.log")" = "0
unlimited" ]
}

@test "a missing command, no permission and a missing folder say so" {
    plan '{"command": ["no-such-program-here"], "launch": [], "cwd": "/"}'
    run -127 node
    grep -q '"message": "cannot start no-such-program-here: No such file or directory"' "$run_dir/cells/1-000/c-0.0.0/result.json"

    plan '{"command": ["/etc/passwd"], "launch": [], "cwd": "/"}'
    run node --submission 1
    [ "$status" -eq 126 ]
    grep -q 'cannot start /etc/passwd: Permission denied' "$run_dir/cells/1-000/c-0.1.0/result.json"

    plan '{"command": ["true"], "launch": [], "cwd": "/no/such/folder"}'
    run node --submission 2
    [ "$status" -eq 126 ]
    grep -q 'cannot go to folder /no/such/folder' "$run_dir/cells/1-000/c-0.2.0/result.json"

    plan '{"command": ["true"], "launch": [], "cwd": "/", "env": {"A=B": "C"}}' # no program is to blame
    run node --submission 3
    [ "$status" -eq 4 ]
    grep -q '"message": "cannot set A=B: Invalid argument"' "$run_dir/cells/1-000/c-0.3.0/result.json"
}

@test "pipes where files are expected end nothing but the cell" {
    plan "$(sh_workload 'mkfifo $HPCGRID_RESULT; rm $HPCGRID_ATTEMPT/out.log; mkfifo $HPCGRID_ATTEMPT/out.log')"
    start_node
    await gone "$pid"
    [ "$(result status)" = '"failed"' ]
    grep -q 'cannot read .*/workload.json: it is not a regular file' "$run_dir/cells/1-000/c-0.0.0/result.json"

    rm "$run_dir/cells/1-000/c-0.0.0/result.json"
    mkfifo "$run_dir/cells/1-000/c-0.0.0/result.json"
    echo '{}' >"$run_dir/matrix.json"
    run timeout 60 "$hpcgrid" logs "$run_dir" c-0
    [ "$status" != 124 ]
}

@test "a launcher that is not there is an error in the result" {
    plan '{"command": ["true"], "launch": ["no-such-launcher", "-x"], "cwd": "/"}'
    run node
    [ "$status" -eq 4 ]
    [ "$(result status)" = '"failed"' ]
    grep -q '"message": "launcher: cannot start no-such-launcher: No such file or directory"' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "a launcher of one's own gets the rank's words and numbers the ranks" {
    cat >"$BATS_TEST_TMPDIR/launch" <<'END'
#!/bin/sh
# two ranks, numbered as mpirun does
shift 2
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$@" || exit
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_SIZE=2 exec "$@"
END
    chmod +x "$BATS_TEST_TMPDIR/launch"
    tasks=2 cpus=3 plan "{\"command\": [\"sh\", \"-c\", \"echo \$RANK/\$WORLD_SIZE/\$LOCAL_RANK \$OMP_NUM_THREADS \$SITE_SAYS\"], \"launch\": [\"$BATS_TEST_TMPDIR/launch\", \"a\", \"{{size}}\"], \"cwd\": \"/\"}"
    node
    [ "$(cat "$run_dir/cells/1-000/c-0.0.0/out.log")" = "0/2/0 3 hello
1/2/1 3 hello" ]
    jq -e '.ranks | map(.rank) == [0, 1] and all(.user_s >= 0 and .max_rss_bytes > 0)' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "the first rank to fail is named, not those that were ended for its sake" {
    cat >"$BATS_TEST_TMPDIR/launch" <<'END'
#!/bin/sh
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 "$@"
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$@"
exit 9
END
    chmod +x "$BATS_TEST_TMPDIR/launch"
    tasks=2 plan "{\"command\": [\"sh\", \"-c\", \"[ \$RANK = 1 ] && exit 5; kill -9 \$\$\"], \"launch\": [\"$BATS_TEST_TMPDIR/launch\"], \"cwd\": \"/\"}"
    run node
    [ "$status" -eq 9 ]
    grep -q '"message": "exit code 5"' "$run_dir/cells/1-000/c-0.0.0/result.json"
    grep -q '"rank": 1' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "what the workload writes is merged; exec's own keys cannot be forged" {
    plan "$(sh_workload 'cp /dev/stdin $HPCGRID_RESULT <'"$BATS_TEST_TMPDIR"'/w')"
    echo '{"train_s": 12.5, "eval": {"f1": 88.5}, "status": "ok", "id": "forged", "wall_s": 1e9, "attempt": "9.9",
           "ranks": [{"rank": 0, "peak": 7, "user_s": -1}], "env": {"host": "forged", "cudnn": "9"}, "comparable": {"seq_len": 384}}' >"$BATS_TEST_TMPDIR/w"
    node
    file=$run_dir/cells/1-000/c-0.0.0/result.json
    [ "$(result train_s)" = 12.5 ]
    [ "$(result id)" = '"c-0"' ]
    [ "$(result attempt)" = '"0.0"' ]
    grep -q '"f1": 88.5' "$file"
    grep -q '"peak": 7' "$file"
    grep -q '"cudnn": "9"' "$file"
    grep -q '"seq_len": 384' "$file"
    if grep -q forged "$file"; then return 1; fi
    if grep -q '"user_s": -1' "$file"; then return 1; fi
    [[ "$(result wall_s)" != 1e9 ]]
}

# bad TEXT MESSAGE: a result file with this text must fail the cell with this message.
bad() {
    rm -rf "$run_dir/cells"
    printf '%s' "$1" >"$BATS_TEST_TMPDIR/w"
    run node
    [ "$status" -eq 1 ]
    [ "$(result status)" = '"failed"' ]
    grep -qF "$2" "$run_dir/cells/1-000/c-0.0.0/result.json" || { cat "$run_dir/cells/1-000/c-0.0.0/result.json"; return 1; }
}

@test "result files that are broken fail the cell and say where" {
    plan "$(sh_workload 'cp '"$BATS_TEST_TMPDIR"'/w $HPCGRID_RESULT')"
    bad '{"train_s": 1' 'line 1, column'
    bad '' 'result'
    bad '[1]' 'is not an object'
    bad '{"train_s": 1, "train_s": 2}' 'given twice'
    bad '{"train_s": 1e999}' 'a number too large'
    bad '{"train_s": "12"}' '\"train_s\" must be a number, it is a string'
    bad '{"train_s": -1}' '\"train_s\" must be above 0'
    bad '{"epoch_s": [1, "x"]}' '\"epoch_s\" must be a list of numbers'
    bad "$(printf '[%.0s' $(seq 100))" 'nested more than 64 levels deep'
    bad "$(printf '{"a":"\377"}')" 'not valid UTF-8'
}

@test "result files that are too large are not read into memory" {
    plan "$(sh_workload 'head -c 17000000 /dev/zero >$HPCGRID_RESULT')"
    run node
    [ "$status" -eq 1 ]
    grep -q 'is larger than 16777216 bytes' "$run_dir/cells/1-000/c-0.0.0/result.json"

    rm -rf "$run_dir/cells"
    { printf '{"a":['; yes '{},' | head -n 1100000 | tr -d '\n'; printf '{}]}'; } >"$BATS_TEST_TMPDIR/w"
    plan "$(sh_workload 'cp '"$BATS_TEST_TMPDIR"'/w $HPCGRID_RESULT')"
    limit=unlimited
    plain_build && limit=400000
    run bash -c 'ulimit -v $1; shift; exec "$@"' - $limit "$hpcgrid" exec --run "$run_dir" --batch 1
    [ "$status" -eq 1 ]
    grep -q 'holds more than 1000000 values' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "an attempt has a result with the reason wherever memory runs out" {
    plain_build || skip "a sanitizer needs all addresses"
    plan "$(sh_workload 'cp '"$BATS_TEST_TMPDIR"'/w $HPCGRID_RESULT')"
    { printf '{"a":['; yes '{},' | head -n 40000 | tr -d '\n'; printf '{}]}'; } >"$BATS_TEST_TMPDIR/w"
    attempt=$run_dir/cells/1-000/c-0.0.0 short=0
    for limit in $(seq 4000 250 200000); do # KiB, from too little for the program's libraries to enough for the whole result
        rm -rf "$run_dir/cells"
        said=$(ulimit -v $limit && node 2>&1) && break
        [ -e "$attempt/claim.json" ] || continue
        jq -e '.status == "failed"' "$attempt/result.json"
        [[ "$said" == *": error: out of memory"* ]] || continue # a rank has its end in the result
        jq -e '.error.message == "out of memory" and .id == "c-0" and .cell.size == 3 and .wall_s >= 0' "$attempt/result.json"
        node 2>&1 | grep "attempt 0.0 has ended: failed"
        short=$((short + 1))
    done
    [ "$(result status)" = '"ok"' ]
    [ $short -ge 10 ]
}

@test "NaN becomes null and diverged" {
    plan "$(sh_workload 'cp '"$BATS_TEST_TMPDIR"'/w $HPCGRID_RESULT')"
    echo '{"final_loss": NaN, "train_s": 3, "epoch_s": [1, -Infinity], "note": "NaN stays \" NaN here"}' >"$BATS_TEST_TMPDIR/w"
    node
    [ "$(result status)" = '"ok"' ]
    [ "$(result final_loss)" = null ]
    [ "$(result diverged)" = true ]
    grep -qF '"NaN stays \" NaN here"' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "numbers are read from the output: the last match counts" {
    plan '{"command": ["sh", "-c", "echo loss=3; echo loss=0.5; echo took 12.25 s >&2"], "launch": [], "cwd": "/",
           "results": {"final_loss": "loss=([0-9.]+)", "train_s": "took ([\\d.]+) s"}}'
    node
    [ "$(result final_loss)" = 0.5 ]
    [ "$(result train_s)" = 12.25 ]
}

@test "an expression that matches nothing, or no number, fails the cell" {
    plan '{"command": ["sh", "-c", "echo loss=x"], "launch": [], "cwd": "/", "results": {"train_s": "took ([0-9]+)"}}'
    run node
    [ "$status" -eq 1 ]
    grep -q 'nothing in the output matches results/train_s' "$run_dir/cells/1-000/c-0.0.0/result.json"
    plan '{"command": ["sh", "-c", "echo loss=x"], "launch": [], "cwd": "/", "results": {"train_s": "loss=(.)"}}'
    run node --submission 1
    grep -q 'results/train_s found \\"x\\", which is not a number' "$run_dir/cells/1-000/c-0.1.0/result.json"
}

@test "a job that the scheduler suspended says for how long" {
    plan "$(sh_workload 'mkfifo \"$HPCGRID_ATTEMPT/gate\"; read x <\"$HPCGRID_ATTEMPT/gate\"')"
    start_node
    await test -p "$run_dir/cells/1-000/c-0.0.0/gate"
    kill -CONT $pid
    kill -TSTP $pid
    await taken $pid 20
    kill -STOP $pid
    kill -CONT $pid
    echo go >"$run_dir/cells/1-000/c-0.0.0/gate"
    await gone $pid
    [ "$(result status)" = '"ok"' ]
    jq -e '.suspended_s > 0 and .suspended_s <= .wall_s' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "TERM is passed on and the result says why" {
    plan '{"command": ["bash", "-c", "trap '"'echo told; exit 3'"' TERM; echo ready; while :; do sleep 0.05; done"], "launch": [], "cwd": "/"}'
    start_node
    await grep -q ready "$run_dir/cells/1-000/c-0.0.0/out.log"
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    [ "$code" -eq 3 ]
    [ "$(result status)" = '"cancelled"' ]
    grep -q told "$run_dir/cells/1-000/c-0.0.0/out.log"
}

@test "why a job received SIGTERM is read from what Slurm wrote" {
    for why in "TIME LIMIT:timeout:the time limit was reached" "PREEMPTION:cancelled:preempted by another job" "JOB REQUEUE:cancelled:requeued"; do
        rm -rf "$run_dir/cells"
        plan '{"command": ["bash", "-c", "trap '"'echo error: STEP 1.0 ON n1 CANCELLED AT 12:00 DUE TO ${why%%:*} >&2; exit 3'"' TERM; echo ready; while :; do sleep 0.05; done"], "launch": [], "cwd": "/"}'
        start_node
        await grep -q ready "$run_dir/cells/1-000/c-0.0.0/out.log"
        kill -TERM $pid
        wait $pid || true
        grep -q "\"message\": \"${why##*:}\"" "$run_dir/cells/1-000/c-0.0.0/result.json"
        why=${why%:*}
        [ "$(result status)" = "\"${why##*:}\"" ]
    done
}

@test "TERM at the time limit is a timeout, and a workload that ignores it leaves a result before KILL" {
    time_s=1 plan '{"command": ["bash", "-c", "trap : TERM; echo ready; while :; do sleep 0.05; done"], "launch": [], "cwd": "/"}'
    start_node
    sleep 1
    await grep -q ready "$run_dir/cells/1-000/c-0.0.0/out.log"
    kill -TERM $pid
    await test -e "$run_dir/cells/1-000/c-0.0.0/result.json"
    [ "$(result status)" = '"timeout"' ]
    kill -KILL $pid
    wait $pid || true
    [ "$(result status)" = '"timeout"' ]
}

@test "when exec is killed, rank and workload and its children are gone" {
    plan '{"command": ["sh", "-c", "echo $$; sleep 1000 & echo $!; wait"], "launch": [], "cwd": "/"}'
    start_node
    both() { [ "$(wc -l <"$run_dir/cells/1-000/c-0.0.0/out.log")" -eq 2 ]; }
    await both
    kill -KILL $pid
    wait $pid || true
    for p in $(cat "$run_dir/cells/1-000/c-0.0.0/out.log"); do
        await gone "$p"
    done
}

# An attempt as its ranks find it.
begun() {
    plan "$(sh_workload 'exit 0')"
    node
}

# at CALL COMMAND...: TERM comes to the command at its first such system call
at() {
    local call=$1
    shift
    timeout 90 strace -qq -o "$BATS_TEST_TMPDIR/trace" -e "trace=$call" -e "inject=$call:signal=TERM:when=1" "$@"
}

need_strace() {
    command -v strace >/dev/null || skip "strace is not installed"
    plain_build || skip "a sanitizer cannot be traced"
    strace -f -o /dev/null true 2>/dev/null || skip "strace may not trace here"
}

@test "SIGTERM while it claims, prepares or starts: exec leaves a result that says so" {
    need_strace
    plan "$(sh_workload 'echo began; sleep 1000 & echo $! >$HPCGRID_ATTEMPT/child; wait')"
    for call in link rename,renameat,renameat2 '?clone,?clone3,?fork,?vfork'; do
        rm -rf "$run_dir/cells"
        run at "$call" "$hpcgrid" exec --run "$run_dir" --batch 1 3>&-
        echo "$call: $status $output"
        [ "$status" -ne 124 ]
        [ ! -e "$run_dir/cells/1-000/c-0.0.0/child" ] || await gone "$(cat "$run_dir/cells/1-000/c-0.0.0/child")"
        [ "$(result status)" = '"cancelled"' ]
        grep -q '"message": "the job received SIGTERM"' "$run_dir/cells/1-000/c-0.0.0/result.json"
        [ "${call::1}" = '?' ] || [ ! -e "$run_dir/cells/1-000/c-0.0.0/out.log" ]
    done
}

@test "a rank that is told to end before its program is there to hear it tells the program" {
    need_strace
    begun
    for call in uname '?clone,?clone3,?fork,?vfork'; do
        run at "$call" "$hpcgrid" exec --rank --attempt "$run_dir/cells/1-000/c-0.0.0" -- sleep 1000 3>&-
        echo "$call: $status $output"
        [ "$status" -eq 143 ]
    done
    [ "$(member "$run_dir/cells/1-000/c-0.0.0/rank.0.json" signal)" = 15 ]
}

@test "a program that is told late, for it was not there, is told with its children" {
    need_strace
    begun
    run at '?clone,?clone3,?fork,?vfork,kill' -e inject=kill:delay_enter=300000 setsid "$hpcgrid" exec --rank \
        --attempt "$run_dir/cells/1-000/c-0.0.0" -- sh -c "sleep 100 >/dev/null 2>&1 & echo \$! >$BATS_TEST_TMPDIR/child; wait" 3>&-
    [ "$status" -eq 143 ]
    grep -q DELAYED "$BATS_TEST_TMPDIR/trace"
    await gone "$(cat "$BATS_TEST_TMPDIR/child")"
}

@test "ranks that are dead of TERM before exec is told are cancelled, not failed" {
    plan "$(sh_workload 'kill -TERM $$')"
    export SLURM_JOB_ID=1
    start_node
    await test -e "$run_dir/cells/1-000/c-0.0.0/rank.0.json"
    kill -TERM $pid
    code=0
    wait $pid || code=$?
    [ "$code" -eq 143 ]
    [ "$(result status)" = '"cancelled"' ]
    # one that failed by itself is not waited for: the others were told for its sake
    cat >"$BATS_TEST_TMPDIR/launch" <<'END'
#!/bin/sh
OMPI_COMM_WORLD_RANK=1 "$@"
OMPI_COMM_WORLD_RANK=0 "$@"
exit 143
END
    chmod +x "$BATS_TEST_TMPDIR/launch"
    tasks=2 plan "{\"command\": [\"sh\", \"-c\", \"[ \$RANK = 1 ] && exit 5; kill -TERM \$\$\"], \"launch\": [\"$BATS_TEST_TMPDIR/launch\"], \"cwd\": \"/\"}"
    rm -rf "$run_dir/cells"
    run node
    [ "$status" -eq 143 ]
    grep -q '"message": "exit code 5"' "$run_dir/cells/1-000/c-0.0.0/result.json"
    plan "$(sh_workload 'kill -TERM $$')"
    # by hand nobody tells it: it was the workload's own doing
    unset SLURM_JOB_ID
    run node --submission 1
    [ "$status" -eq 143 ]
    [ "$(member "$run_dir/cells/1-000/c-0.1.0/result.json" status)" = '"failed"' ]
}

@test "checkpoint written, run me again: 75 is a timeout that can go on" {
    plan "$(sh_workload 'exit 75')"
    run node
    [ "$status" -eq 75 ]
    [ "$(result status)" = '"timeout"' ]
    [ "$(result checkpoint)" = true ]
}

@test "values reach the workload byte for byte" {
    nasty='a\"b\u0027$(touch '$BATS_TEST_TMPDIR'/canary)`touch '$BATS_TEST_TMPDIR'/canary`\\\\ \n\t -x ; | ~ ~ \u2212 \ud83d\ude00 %s {{size}}'
    plan '{"command": ["sh", "-c", "printf %s \"$1\" >\"$HPCGRID_ATTEMPT/a\"; printf %s \"$HPCGRID_V\" >\"$HPCGRID_ATTEMPT/b\"; printf %s \"$E\" >\"$HPCGRID_ATTEMPT/c\"; cat \"$HPCGRID_CELL\" >\"$HPCGRID_ATTEMPT/d\"", "-", "{{v}}"],
           "launch": [], "cwd": "/", "env": {"E": "{{v}}"}, "files": {"f": "{{v}}"}}' '{"hardware":"cpu","v":"'"$nasty"'"}'
    node
    dir=$run_dir/cells/1-000/c-0.0.0
    want=$(printf 'a"b'\''$(touch %s/canary)`touch %s/canary`\\\\ \n\t -x ; | ~ ~ \xe2\x88\x92 \xf0\x9f\x98\x80 %%s {{size}}' "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR")
    for f in a b c f; do
        [ "$(cat "$dir/$f")" = "$want" ] || { od -c "$dir/$f"; return 1; }
    done
    [ ! -e "$BATS_TEST_TMPDIR/canary" ]
}

@test "a result names the network that the site states and the variables that choose it" {
    plan '{"command": ["true"], "launch": [], "cwd": "/", "env": {"UCX_TLS": "tcp", "NCCL_IB_HCA": "mlx5_1", "OTHER": "x"}}'
    NCCL_SOCKET_IFNAME=ib0 NCCL_IB_HCA=mlx5_0 NCCL_DEBUG=INFO UCX_LOG_LEVEL=info XNCCL_A=1 node
    jq -ce '.env | with_entries(select(.key | test("NCCL|UCX|OTHER|network")))' "$run_dir/cells/1-000/c-0.0.0/result.json" |
        diff - <(echo '{"NCCL_IB_HCA":"mlx5_1","NCCL_SOCKET_IFNAME":"ib0","UCX_TLS":"tcp","network_gbit_s":200}')
}

@test "the workload finds its cell, without notes" {
    plan "$(sh_workload 'cat $HPCGRID_CELL; echo $HPCGRID_SIZE $HPCGRID__NOTE. $HPCGRID_RUN $RANK/$WORLD_SIZE $MASTER_ADDR')"
    node
    out=$(cat "$run_dir/cells/1-000/c-0.0.0/out.log")
    [[ "$out" == *'"size": 3'* ]]
    [[ "$out" != *note* ]]
    [[ "$out" == *"3 . $run_dir 0/1 127.0.0.1"* ]]
}

@test "lists and flags reach argparse as it reads them" {
    cat >"$BATS_TEST_TMPDIR/train.py" <<'END'
import argparse
p = argparse.ArgumentParser()
p.add_argument("--hidden", nargs="+", type=int)
p.add_argument("--amp", action="store_true")
p.add_argument("--fast", action="store_true")
print(vars(p.parse_args()))
END
    plan '{"command": ["python3", "'"$BATS_TEST_TMPDIR"'/train.py", ["--hidden", "{{hidden...}}"], "{{amp?--amp}}", "{{fast?--fast}}"], "launch": [], "cwd": "/"}' \
        '{"hardware":"cpu","nodes":1,"tasks_per_node":1,"hidden":[64,32],"amp":true,"fast":false}'
    node
    [ "$(cat "$run_dir/cells/1-000/c-0.0.0/out.log")" = "{'hidden': [64, 32], 'amp': True, 'fast': False}" ]
    rm -r "$run_dir/cells"
    plan '{"command": ["true", "{{hidden...}}"], "launch": [], "cwd": "/"}' '{"hardware":"cpu","nodes":1,"tasks_per_node":1,"hidden":64}'
    node || true
    grep -q '{{hidden...}}: .*hidden.* of this cell is an integer, not a list' "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "hpcgrid-worker gets placeholders in its parameters filled in" {
    plan '{"program": "hpcgrid-worker", "launch": [], "cwd": "/"}' \
        '{"hardware":"cpu","nodes":1,"tasks_per_node":1,"model":"rnn","dataset":"mnist-slice","steps":1,"eval":false,"checkpoint":"{{dir}}/kept-{{id}}.safetensors","init":"{{seed}}"}'
    node
    [ -s "$run_dir/cells/1-000/c-0.0.0/kept-c-0.safetensors" ]
    if grep -q init "$run_dir/cells/1-000/c-0.0.0/cell.json"; then return 1; fi
}

@test "a box's node has no address, and none is asked for" {
    plan "$(sh_workload 'echo $MASTER_ADDR $OMPI_MCA_btl')"
    for cluster in box x; do # a name that has one, if it is asked for
        SLURM_CLUSTER_NAME=$cluster SLURM_JOB_ID=1 SLURM_JOB_NODELIST=localhost node
        cat "$run_dir"/cells/1-000/c-*/out.log >"$BATS_TEST_TMPDIR/$cluster"
        rm -r "$run_dir"/cells/1-000/c-*
    done
    diff <(cd "$BATS_TEST_TMPDIR" && cat box x) <(printf '%s\n' '127.0.0.1 tcp,self' localhost)
}

@test "jobs of two boxes that have the same number get different ports" {
    plan "$(sh_workload 'echo $MASTER_PORT')"
    for box in 1 2; do
        SLURM_CLUSTER_NAME=box SLURM_JOB_ID=1 SLURM_JOB_NODELIST=cpu-1 node
        cat "$run_dir"/cells/1-000/c-*/out.log >>ports
        rm -r "$run_dir"/cells/1-000/c-*
    done
    cat ports
    [ "$(sort -u ports | wc -l)" -eq 2 ]
}

@test "a command that starts ranks of its own does not find itself one" {
    tasks=4 plan "$(sh_workload 'echo [$RANK$WORLD_SIZE]')"
    node
    [ "$(cat "$run_dir/cells/1-000/c-0.0.0/out.log")" = "[]" ]
}

# A repository with a script, and the result's "code" of a cell that runs there. code [MEMBER]
code_repository() {
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_GLOBAL=/dev/null
    repo=$BATS_TEST_TMPDIR/repo
    git init -q "$repo"
    mkdir "$repo/exp"
    echo 'echo 1' | tee "$repo/train.sh" "$repo/exp/other.sh" >"$repo/exp/data.txt"
    ln -s train.sh "$repo/link"
    echo '{}' >"$repo/exp/m.json"
    git -C "$repo" add -A
    git -C "$repo" commit -qm first
    printf -v workload '{"command": ["sh", "../train.sh", "data.txt"], "launch": [], "cwd": "%s", "matrix": "%s"}' "$repo/exp" "$repo/exp/m.json"
}
code() {
    rm -rf "$run_dir/cells"
    plan "$workload"
    node
    jq -c ".code${1:-}" "$run_dir/cells/1-000/c-0.0.0/result.json"
}

@test "a result says which code ran: revision, whether its files were changed, and a hash of them" {
    code_repository
    clean=$(code)
    jq -e --arg r "$(git -C "$repo" rev-parse HEAD)" --arg h "$(git hash-object "$repo/train.sh")" '.revision == $r and .dirty == false
        and (.hash | length == 32) and .files == [{name: "../train.sh", hash: $h}]' <<<"$clean"
    # contents count, not times; the matrix and files that are not tracked do not
    touch -d '2001-01-01' "$repo/train.sh" "$repo/exp/data.txt"
    echo '{"edited": 1}' >"$repo/exp/m.json"
    echo new >"$repo/log"
    [ "$(code)" = "$clean" ]
    git -C "$repo" add exp/m.json
    git -C "$repo" update-index --index-version 4
    [ "$(code)" = "$clean" ]
    git clone -q "$repo" "$BATS_TEST_TMPDIR/clone"
    hash=$(code .hash)
    workload=${workload//$repo/$BATS_TEST_TMPDIR/clone}
    [ "$(code .hash)" = "$hash" ]
    workload=${workload//$BATS_TEST_TMPDIR\/clone/$repo}
    # another size, the same size, a link, a file that is gone; staged or not
    for edit in 'echo "echo 22" >train.sh' 'echo "echo 2" >train.sh' 'ln -sf exp/other.sh link' 'rm exp/other.sh'; do
        (cd "$repo" && eval "$edit")
        dirty=$(code)
        jq -e --argjson clean "$clean" '.revision == $clean.revision and .dirty and .hash != $clean.hash' <<<"$dirty"
        git -C "$repo" add -u
        [ "$(code)" = "$dirty" ]
        git -C "$repo" reset -q --hard
        [ "$(code)" = "$clean" ]
    done
    # a commit that changes no file is another revision of the same code
    git -C "$repo" commit -q --allow-empty -m second
    [ "$(code .hash)" = "$hash" ]
    [ "$(code .revision)" != "$(jq .revision <<<"$clean")" ]
}

@test "which code ran is found out without git, in a linked work tree, and where there is no repository" {
    code_repository
    clean=$(code)
    bin=$BATS_TEST_TMPDIR/bin
    mkdir "$bin"
    for tool in sh awk cat jq rm; do ln -s "$(command -v $tool)" "$bin"; done
    PATH=$bin code | jq -se --argjson clean "$clean" '.[0] == ($clean | del(.dirty))' # is anything staged? only git knows
    echo 'echo 22' >"$repo/train.sh"
    PATH=$bin code | jq -se --argjson clean "$clean" '.[0] | .dirty and .hash != $clean.hash'
    git -C "$repo" checkout -q -- .
    git -C "$repo" worktree add -q "$BATS_TEST_TMPDIR/linked" -b side
    workload=${workload//$repo/$BATS_TEST_TMPDIR/linked}
    [ "$(code)" = "$clean" ]
    rm "$BATS_TEST_TMPDIR/linked/.git"
    [ "$(code)" = "$(jq -c '{files}' <<<"$clean")" ]
    echo 'garbage' >"$repo/.git/index"
    workload=${workload//$BATS_TEST_TMPDIR\/linked/$repo}
    code | jq -se '.[0] | (.revision | length == 40) and .hash == null and .dirty == null and (.unknown | startswith("looked at 0 of 0"))'
    plan "$(sh_workload 'exit 0')" && rm -rf "$run_dir/cells" && node
    [ "$(result code)" = "" ]
}

@test "a GPU's cell on a machine without is a rehearsal; too many threads are oversubscribed" {
    [ ! -e /proc/driver/nvidia/gpus ] || skip "there is a GPU here"
    gpu=true cpus=100000 plan "$(sh_workload 'exit 0')"
    node
    [ "$(result rehearsal)" = true ]
    [ "$(result oversubscribed)" = true ]
    plan "$(sh_workload 'exit 0')"
    SLURM_ARRAY_TASK_ID=1 node
    [ "$(member "$run_dir/cells/1-000/c-1.0.0/result.json" rehearsal)" = false ]
    [ "$(member "$run_dir/cells/1-000/c-1.0.0/result.json" oversubscribed)" = false ]
}

@test "a batch script's own failure stands in the result" {
    plan "$(sh_workload 'echo must not run')"
    HPCGRID_ERROR='module load failed: cuda/99' run node
    [ "$status" -eq 4 ]
    grep -q '"message": "module load failed: cuda/99"' "$run_dir/cells/1-000/c-0.0.0/result.json"
    [ ! -s "$run_dir/cells/1-000/c-0.0.0/out.log" ]
}

@test "a run folder that everybody can write is refused" {
    plan "$(sh_workload 'exit 0')"
    chmod 0777 "$run_dir"
    run node
    [ "$status" -eq 4 ]
    [[ "$output" == *"can be written by everybody"* ]]
}

@test "killed at any system call, exec leaves no result or a whole one" {
    command -v strace >/dev/null || skip "strace is not installed"
    plain_build || skip "a sanitizer cannot be traced"
    plan "$(sh_workload 'exit 0')"
    strace -f -o /dev/null true 2>/dev/null || skip "strace may not trace here"
    for call in write rename fsync openat link; do
        for n in $(seq 1 400); do
            rm -rf "$run_dir/cells"
            run strace -qq -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$n "$hpcgrid" exec --run "$run_dir" --batch 1
            [ "$status" -ne 0 ] || break
            file=$run_dir/cells/1-000/c-0.0.0/result.json
            [ ! -e "$file" ] || [ "$(tail -c 2 "$file")" = "}" ]
        done
        [ "$n" -gt 1 ] && [ "$n" -lt 400 ]
        echo "$call: $((n - 1)) points"
        [ "$(result status)" = '"ok"' ]
    done
}

@test "a full disk at any write leaves no result or a whole one, and is said" {
    command -v strace >/dev/null || skip "strace is not installed"
    plain_build || skip "a sanitizer cannot be traced"
    plan "$(sh_workload 'exit 0')"
    strace -f -o /dev/null true 2>/dev/null || skip "strace may not trace here"
    for call in write fsync rename openat link mkdir; do
        for n in $(seq 1 200); do
            rm -rf "$run_dir/cells"
            run strace -qq -o "$BATS_TEST_TMPDIR/trace" -e trace=$call -e inject=$call:error=ENOSPC:when=$n "$hpcgrid" exec --run "$run_dir" --batch 1
            grep -q INJECTED "$BATS_TEST_TMPDIR/trace" || break
            file=$run_dir/cells/1-000/c-0.0.0/result.json
            if [ "$status" -eq 0 ]; then
                [ "$(result status)" = '"ok"' ]
            elif [ -e "$file" ]; then
                [ "$(tail -c 2 "$file")" = "}" ]
                [ "$status" -eq 4 ] || [ "$status" -eq 1 ]
                # the one thing that can fail behind a good result is to make its name durable
                grep -q '"status": "failed"' "$file" || [[ "$output" == *"cannot "*" folder"* ]] || { echo "$call $n: $status $output"; return 1; }
            else
                [[ "$output" == *"No space left on device"* ]] || { echo "$call $n: $status $output"; return 1; }
                [ "$status" -eq 4 ]
            fi
        done
        [ "$n" -gt 1 ] && [ "$n" -lt 200 ]
    done
}

# Run cell 0 on a disk of 256 KiB, mounted where the run lies for this command alone; its result comes to $BATS_TEST_TMPDIR.
on_small_disk() {
    local own=-m
    [ "$(id -u)" -eq 0 ] || own=-mrU
    unshare $own bash -c 'set -e
        cp -a "$1" "$2/plain" && mount -t tmpfs -o size=256k tmpfs "$1" && cp -a "$2/plain/." "$1"
        rc=0; "$3" exec --run "$1" --batch 1 || rc=$?
        cp "$1/cells/1-000/c-0.0.0/result.json" "$2/result.json"; exit $rc' - "$run_dir" "$BATS_TEST_TMPDIR" "$hpcgrid"
}

@test "a full disk stands in the cell's result" {
    unshare -m true 2>/dev/null || unshare -mrU true 2>/dev/null || skip "this user may not mount a disk here"
    plan "$(sh_workload "cat /dev/zero >$run_dir/zeros || true")"
    run on_small_disk
    echo "$output"
    [ "$status" -eq 4 ]
    [[ "$output" == *"No space left on device"* ]]
    [ "$(member "$BATS_TEST_TMPDIR/result.json" status)" = '"failed"' ]
    grep -q '"message": "the result is lost: cannot write .*No space left on device' "$BATS_TEST_TMPDIR/result.json"
}

@test "mpirun as the launcher: ranks are numbered as it does" {
    command -v mpirun >/dev/null || skip "mpirun is not installed"
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    tasks=3 plan '{"command": ["sh", "-c", "echo $RANK/$WORLD_SIZE $LOCAL_RANK $HPCGRID_SIZE"], "launch": ["mpirun", "--oversubscribe"], "cwd": "/"}'
    node
    [ "$(sort "$run_dir/cells/1-000/c-0.0.0/out.log")" = "0/3 0 3
1/3 1 3
2/3 2 3" ]
    jq -e '.ranks | map(.rank) == [0, 1, 2]' "$run_dir/cells/1-000/c-0.0.0/result.json"
}
