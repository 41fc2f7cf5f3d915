#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid logs: what cells printed, of cells that were run by hand.

bats_require_minimum_version 1.5.0

load ../await

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    cd "$BATS_TEST_TMPDIR"
    unset "${!SLURM_@}"
    export HPCGRID_REPORTS=$BATS_TEST_TMPDIR/reports
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "talk",
 "site": {"name": "here", "launcher": "", "default": "cpu", "hardware": {"cpu": {"gpus_per_node": 0}}},
 "workload": {"command": ["sh", "-c", "seq $0; echo warned $1 >&2; exit $2", "{{n}}", "{{n}}", "{{code}}"], "launch": []},
 "axes": {"job": [{"n": 3, "code": 0}, {"n": 40, "code": 7}, {"n": 5, "code": 1}]}}
END
    run_dir=$HPCGRID_REPORTS/talk/001
    "$hpcgrid" plan m.json --out "$run_dir" >plan.txt
    chmod 700 "$run_dir"
}

teardown() { nothing_left; }

# one LINE [RESTARTS]: run that cell as a job would.
one() { SLURM_ARRAY_TASK_ID=$1 SLURM_RESTART_COUNT=${2:-0} "$run_dir/batches/1.sh" || true; }
logs() { run --separate-stderr "$hpcgrid" logs "$@"; }

@test "without a cell: the ends of what failed printed, and where it lies" {
    for i in 0 1 2; do one $i; done
    logs talk
    [ "$status" = 0 ]
    [ "$output" = "$(seq 21 40; echo warned 40; seq 5; echo warned 5)" ]
    [[ "$stderr" == *"hpcgrid: n=40: attempt 0.0, failed: exit code 7"* ]]
    [[ "$stderr" == *"$run_dir/cells/1-000/"*".0.0/err.log"* ]]
}

@test "cells by id, its beginning or a selector; whole, by stream" {
    for i in 0 1 2; do one $i; done
    id=$(basename "$(grep -l 'warned 3$' "$run_dir"/cells/*/*.0.0/err.log | xargs dirname)" .0.0)
    logs talk "$id"
    [ "$output" = "$(seq 3; echo warned 3)" ]
    logs talk "${id%?????}" --err
    [ "$output" = "warned 3" ]
    logs talk n=40 --out --lines 0
    [ "$output" = "$(seq 40)" ]
    logs m.json n=40 --out -n 2
    [ "$output" = "$(seq 39 40)" ]
}

@test "a log arrives byte for byte, but steers no terminal" {
    printf 'a\033]0;T\007b\r10 %%\r\n\tc\302\233m\000\n' >log
    sed -i "s|seq \$0|cat $PWD/log|" "$run_dir/plan.json"
    one 1
    "$hpcgrid" logs talk n=40 --out | cmp - log
    script -qec "$hpcgrid logs talk n=40 --out" /dev/null </dev/null | tr -d '\r' | tail -n 3 >shown
    printf 'a\\x1b]0;T\\x07b\n10 %%\n\tc\\x9bm\\x00\n' | diff - shown
}

@test "the newest attempt, or the one that is asked for" {
    one 1
    sed -i 's/seq $0/echo again/' "$run_dir/plan.json"
    one 1 1
    logs talk n=40 --out
    [ "$output" = again ]
    logs talk n=40 --out --attempt 0.0 -n 1
    [ "$output" = 40 ]
    logs talk n=40 --attempt 3.0
    [ "$output" = "" ]
    [[ "$stderr" == *"there is no such attempt"* ]]
}

@test "nothing to show is said, and a wrong cell is an error" {
    logs talk
    [ "$status" = 0 ]
    [[ "$stderr" == *"no cell has failed"* ]]
    logs talk n=3
    [[ "$stderr" == *"nothing has started yet"* ]]
    logs talk nobody
    [ "$status" = 3 ]
    [[ "$stderr" == *"no cell of $run_dir matches"* ]]
    logs talk 'n=3|5' --follow
    [ "$status" = 2 ]
    logs nowhere
    [ "$status" = 4 ]
}

@test "follow ends when the attempt has ended" {
    mkfifo gate
    sed -i "s/seq \$0/echo one; read x <gate; echo two/" "$run_dir/plan.json"
    one 0 3>&- &
    began() { grep -qs one "$run_dir"/cells/*/*.0.0/out.log; }
    await began
    "$hpcgrid" logs talk n=3 --out --follow >seen 2>log 3>&- &
    await grep -q one seen
    echo go >gate
    wait
    [ "$(paste -sd, seen)" = one,two ]
}

# on_terminal OPTIONS...: what logs of the cell n=3 writes to a terminal
on_terminal() { script -qec "$hpcgrid logs talk n=3 --out $*" /dev/null </dev/null; }

@test "on a terminal a character stays whole that is written in two parts, or lies where two reads meet" {
    mkfifo gate
    printf 'one Stra\303' >half
    printf '\237e \342\202' >rest
    sed -i "s/seq \$0/cat half; read x <gate; cat rest/" "$run_dir/plan.json"
    one 0 3>&- &
    began() { grep -qs one "$run_dir"/cells/*/*.0.0/out.log; }
    await began
    on_terminal --follow >seen 3>&- &
    await grep -q 'one Stra' seen
    echo go >gate
    wait
    # half a character at the very end is shown as what it is
    [ "$(tail -n 1 seen | tr -d '\r')" = $'one Straße \xe2''\x82' ]
    { printf '%065535d' 0; echo 'ß.'; } >"$(echo "$run_dir"/cells/*/*.0.0/out.log)"
    [ "$(on_terminal -n 0 | tail -n 1 | tr -d '\r\n' | tail -c 4)" = '0ß.' ]
}
