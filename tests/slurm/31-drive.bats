#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# submit, run, status, watch, cancel, resume against a real Slurm: limits, people, and what is wrong before the start.

bats_require_minimum_version 1.5.0
load box

setup_file() {
    box_lacks >/dev/null && return 0
    box_up cpu:2x0 MaxArraySize=11 MaxJobCount=80 MinJobAge=3 MessageTimeout=5 AuthInfo=ttl=10
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
    tmux -S socket kill-server 2>/dev/null || true
    tmux -S follower kill-server 2>/dev/null || true
    if [ -n "${OWN_BOX:-}" ]; then
        "$HPCGRID" box down "$OWN_BOX"
        return
    fi
    touch go
    box_clear
}

# matrix NAME CELLS SECONDS [JQ]: cells that mark when they begin and end, in ran/<name>.<i>; "held" cells end when there
# is a file "go"
matrix() {
    jq -n --arg dir "$PWD" --arg name "$1" --argjson n "$2" --arg nap "$3" '{hpcgrid: 1, name: $name,
        site: {launcher: "srun", hardware: {cpu: {partition: "cpu", gpus_per_node: 0, backend: "cpu"}}, default: "cpu"},
        workload: {command: ["sh", "-c",
            "echo begin >>\"$0\"; if [ $1 = held ]; then until [ -e \"$2/go\" ]; do sleep 0.2; done; else sleep $1; fi; echo end >>\"$0\"",
            ($dir + "/ran/" + $name + ".{{i}}"), $nap, $dir], launch: [], time: "5m"},
        axes: {i: {range: [1, $n]}}} | '"${4:-.}" >"$1.json"
}

running() { squeue -h -r -t running -o %i | wc -l; }
some_run() { [ "$(running)" -gt 0 ]; }
# Ended jobs fill the table, too.
table_empty() { [ "$(squeue -h -r -t all -o %i | wc -l)" = 0 ]; }
count() { "$HPCGRID" status "$1" --json | jq -r ".counts.$2 // 0"; }
# is NAME COUNTS: what status says, such as {"pending":1}
is() { [ "$("$HPCGRID" status "$1" --json | jq -c .counts)" = "$2" ]; }

@test "a sweep larger than MaxArraySize and MaxJobCount runs whole" {
    box_wait 90 table_empty
    matrix wide 150 0
    run --separate-stderr "$HPCGRID" submit wide.json --json
    [ "$status" = 0 ]
    [ "$(jq .waiting <<<"$output")" -gt 0 ]
    [ "$(jq '.submissions | length' <<<"$output")" -ge 6 ]
    run --separate-stderr "$HPCGRID" resume wide
    echo "$stderr"
    [ "$status" = 0 ]
    [ "$(grep -c end ran/wide.* | grep -c ':1$')" = 150 ]
}

@test "limits.running holds over all arrays together" {
    local most=0 now pid
    matrix few 36 0.3 '.limits.running = 3'
    "$HPCGRID" run few.json >out 2>log 3>&- &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        now=$(running)
        [ "$now" -le "$most" ] || most=$now
        sleep 0.05
    done
    wait $pid
    [ "$most" -ge 1 ]
    [ "$most" -le 3 ]
    [ "$(count few ok)" = 36 ]
}

@test "what the tasks of a submission say stands in one file, with their numbers" {
    local log
    matrix lost 2 0 '.workload.sbatch = "--hold"'
    "$HPCGRID" submit lost.json
    touch reports/lost/001/cells # nobody can claim an attempt
    scontrol release "$(squeue -h -o %F | head -1)"
    box_wait 90 box_idle
    log=(reports/lost/001/logs/*)
    [ ${#log[@]} = 1 ]
    [[ "$(basename "${log[0]}")" =~ ^hg-[0-9a-f]{32}\.out$ ]]
    cat "${log[0]}"
    [ "$(sed -n 's/^hpcgrid: error: task \([0-9]*\): cannot .*/\1/p' "${log[0]}" | sort | paste -sd,)" = 0,1 ]
}

# cancelled NAME N: cancel waits some seconds for the end of jobs; what has not ended by then is written down by the next
cancelled() {
    [ "$(count "$1" cancelled)" = "$2" ] || { "$HPCGRID" cancel "$1" -s 'i=1..5' && false; }
}

@test "cancel ends jobs and keeps what waits from being submitted" {
    box_wait 90 table_empty
    matrix stop 100 held
    "$HPCGRID" submit stop.json
    [ "$(count stop waiting)" -gt 0 ]
    run --separate-stderr "$HPCGRID" cancel stop -s 'i=1..5'
    echo "$stderr"
    [ "$status" = 0 ]
    box_wait 90 cancelled stop 5
    run --separate-stderr "$HPCGRID" cancel stop
    [ "$status" = 0 ]
    box_wait 90 cancelled stop 100
    box_wait 90 box_idle
    run --separate-stderr "$HPCGRID" resume stop
    [ "$status" = 1 ]
    [ -z "$(squeue -h)" ]
}

@test "the end of a large run is a few lines, not its tables" {
    matrix long 600 0 '.report = {rows: ["i"]}'
    "$HPCGRID" submit long.json
    "$HPCGRID" cancel long
    run --separate-stderr "$HPCGRID" resume long
    echo "$output$stderr"
    [ "$status" = 1 ]
    [[ "${lines[0]}" == "long/001 · partial: "*" of 600 cells complete ("*"cancelled"*")" ]]
    [[ "${lines[-1]}" == "the tables are long: hpcgrid report $PWD/reports/long/001, or report.html in $PWD/reports/long/001/tables" ]]
    [ "${#lines[@]}" -le 3 ]
    [ "$(wc -l <reports/long/001/tables/report.txt)" -gt 500 ]
    run "$HPCGRID" report long # asked for, it is printed
    [ "${#lines[@]}" -gt 500 ]
}

@test "the end of a very large run takes no more memory than its lines" {
    matrix many 50100 0
    "$HPCGRID" submit many.json
    "$HPCGRID" cancel many
    mkdir -p reports/many/001/tables
    echo old >reports/many/001/tables/report.html # of a time when it was smaller
    run --separate-stderr "$HPCGRID" resume many
    echo "$output$stderr"
    [ "$status" = 1 ]
    [[ "${lines[0]}" == "many/001 · partial: "*" of 50100 cells complete ("*"cancelled"*")" ]]
    [[ "${lines[-2]}" == "too many cells for tables; a line of each: $PWD/reports/many/001/tables/results.csv" ]]
    [[ "${lines[-1]}" == "tables anyway, with about 200 MB of memory: hpcgrid report $PWD/reports/many/001" ]]
    [ "$(ls reports/many/001/tables)" = results.csv ]
    cmp reports/many/001/tables/results.csv <("$HPCGRID" report many --format csv)
}

@test "cancel while another hpcgrid drives the run" {
    local pid
    box_wait 90 table_empty
    matrix shared 60 held
    "$HPCGRID" run shared.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 some_run
    run --separate-stderr "$HPCGRID" run shared.json # a second driver
    [ "$status" = 4 ]
    [[ "$stderr" == *"is being driven by process $pid on "* ]]
    run --separate-stderr "$HPCGRID" status shared
    [[ "$output" == *"driven by process $pid on "* ]]
    "$HPCGRID" cancel shared
    status=0
    wait $pid || status=$?
    [ "$status" = 1 ]
    [ "$(count shared cancelled)" = 60 ]
}

@test "a held sweep starts nothing more until it is released" {
    local pid job
    box_wait 90 table_empty
    matrix calm 30 held '.limits.running = 2' # two arrays of one at a time; the rest is not submitted
    "$HPCGRID" run calm.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 eval '[ "$(running)" = 2 ]'
    job=$(squeue -h -t running -o %F | sort -n | head -1)
    scontrol hold "${job}_9" # whoever runs a box is its administrator
    run --separate-stderr "$HPCGRID" hold calm --json
    echo "$stderr"
    [ "$status" = 0 ]
    [ "$(jq -c '[.held, .waiting > 0, .told > 0, .running]' <<<"$output")" = '[true,true,true,2]' ]
    touch go
    box_wait 90 is calm '{"waiting":8,"pending":20,"ok":2}'
    [ "$(running)" = 0 ]
    "$HPCGRID" status calm --no-poll | grep -q "28 held: hpcgrid release $PWD/reports/calm/001 lets them start"
    box_wait 90 grep -q "28 cells are held; \`hpcgrid release $PWD/reports/calm/001\` lets them start" log
    run --separate-stderr "$HPCGRID" submit calm.json # another may look, not drive
    [ "$status" = 4 ]
    kill -INT $pid
    wait $pid || true
    run --separate-stderr "$HPCGRID" submit calm.json
    [ "$status" = 0 ]
    [[ "$stderr" == *"held, not submitted: 8; "* ]]
    "$HPCGRID" resume calm >out 2>log 3>&- &
    pid=$!
    run --separate-stderr "$HPCGRID" release calm -s i=1..5
    [ "$status" = 0 ]
    box_wait 90 eval '[ "$(count calm ok)" -ge 5 ]'
    run --separate-stderr "$HPCGRID" release calm
    echo "$stderr"
    [ "$status" = 1 ]
    [[ "$stderr" == *"held by an administrator, who alone may release them: 1 "* ]]
    box_wait 90 is calm '{"pending":1,"ok":29}'
    kill -0 $pid
    scontrol release "${job}_9"
    wait $pid
    [ "$(grep -c begin ran/calm.* | grep -c ':1$')" = 30 ]
    "$HPCGRID" trace calm --out t.json # all of it as a trace: queued, run, done
    jq -e '.traceEvents | (map(select(.args.folder) | .args | select(.queued_s > 0)) | length == 30)
        and (map(select(.name == "cells" and .ph == "C")) | last.args == {ok: 30, "bad attempts": 0})
        and (map(select(.name == "process_name").args.name) | index("cpu-1") and index("queue, batch 1"))' t.json
    run --separate-stderr "$HPCGRID" release calm
    [ "$status" = 0 ]
    [[ "$stderr" == *"nothing is held"* ]]
}

@test "Ctrl-C leaves jobs running and says how to come back" {
    local pid
    matrix back 6 held
    "$HPCGRID" run back.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 some_run
    kill -INT $pid
    status=0
    wait $pid || status=$?
    [ "$status" = 130 ]
    grep -q "hpcgrid resume $PWD/reports/back/001" log
    [ "$(squeue -h -r | wc -l)" = 6 ]
    touch go
    run --separate-stderr "$HPCGRID" watch back
    [ "$status" = 0 ]
    [ "$(grep -c end ran/back.* | grep -c ':1$')" = 6 ]
}

@test "a task that somebody cancels in Slurm is not sent again" {
    local pid
    matrix gone 4 held '.limits.running = 1'
    "$HPCGRID" run gone.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 some_run
    scancel "$(squeue -h -o %A | head -1)_3"
    touch go
    status=0
    wait $pid || status=$?
    cat log
    [ "$status" = 1 ]
    [ "$(count gone cancelled)" = 1 ]
    [ "$(count gone ok)" = 3 ]
}

@test "cells that end badly are told, and run again only when asked" {
    matrix bad 6 0 '.workload.command = ["sh", "-c", "[ $1 != 3 -a $1 != 5 ] || [ -e \"$0/fixed\" ]", $dir, "{{i}}"]'
    run --separate-stderr "$HPCGRID" run bad.json --notify 'echo "$HPCGRID_EVENT $HPCGRID_CELL $HPCGRID_OK/$HPCGRID_CELLS $(head -1)" >>told; exit 5'
    [ "$status" = 1 ]
    [[ "$stderr" == *": failed: "* ]]
    [[ "$stderr" == *"warning: --notify: exit code 5"* ]]
    [ "$(wc -l <told)" = 2 ]
    grep -qE "^failure i=[35] [0-4]/6 bad/001: i=[35]: failed: exit code 1$" told
    grep -qx "end  4/6 bad/001: finished, 4 of 6 cells have a good result" told
    run --separate-stderr "$HPCGRID" run bad.json --json
    [ "$status" = 1 ]
    [ "$(jq '.run == $ENV.PWD + "/reports/bad/001" and .cells == 6 and .counts == {ok: 4, failed: 2} and (.stopped or .complete | not)
        and [.failed[] | [.name, .state, .reason]] == [["i=3", "failed", "exit code 1"], ["i=5", "failed", "exit code 1"]]' <<<"$output")" = true ]
    [ -s reports/bad/001/tables/report.html ]
    [ "$(count bad failed)" = 2 ]
    touch fixed
    run --separate-stderr "$HPCGRID" run bad.json --rerun-failed -s i=1..2
    [ "$status" = 1 ]
    run --separate-stderr "$HPCGRID" retry bad --status timeout,oom
    [ "$status" = 1 ]
    [[ "$stderr" == *"no cell to run again"* ]]
    [ "$(find reports/bad/001/cells -name 'claim.json' | wc -l)" = 6 ]
    run --separate-stderr "$HPCGRID" run bad.json --rerun-failed -s i=3
    [ "$status" = 1 ]
    [[ "$stderr" == *"1 cell runs again"* ]]
    run --separate-stderr "$HPCGRID" retry bad --status failed --json
    [ "$status" = 0 ]
    [ "$(jq -c '[.complete, .failed]' <<<"$output")" = '[true,[]]' ]
    [ "$(count bad ok)" = 6 ]
    [ "$(find reports/bad/001/cells -name 'claim.json' | wc -l)" = 8 ]
}

@test "the end of a run names other code, cells that cannot run and cells that the matrix has no more" {
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    matrix code 2 0 '.workload.command = ["sh", "step.sh"] | .axes.gpus_per_node = [0, 2] | .report = {rows: ["i"]}'
    git init -q .
    echo 'sleep 0' >step.sh
    git add step.sh code.json
    git commit -qm first
    run --separate-stderr "$HPCGRID" run code.json
    [[ "${lines[0]}" == "code/001 · 2 of 2 cells complete; 2 more cannot run" ]]
    [[ "$output" == *"2 GPUs per node requested, cpu has none"* ]]
    [ "$status" = 0 ]
    first=$(git rev-parse HEAD)
    sed -i 's/0/0.1/' step.sh
    jq '.axes.i = [2, 3] | .axes.gpus_per_node = 0' code.json >new.json && mv new.json code.json
    run --separate-stderr "$HPCGRID" run code.json
    echo "$output"
    [ "$status" = 0 ]
    [[ "${lines[0]}" == "code/001 · 3 of 3 cells complete; 1 is no longer in the matrix" ]]
    [[ "$output" == *"ran other code than the first place: ${first:0:10}-dirty (first place ${first:0:10})"* ]]
    [[ "$output" == *"no longer in the matrix"*"ok "*"i 1 (2)"* ]]
    run "$HPCGRID" report code --strict
    [ "$status" = 1 ]
}

@test "a site and a matrix are corrected in the middle of a sweep" {
    local pid
    matrix mend 5 0 '.limits.running = 1 | .site.env.MARK = "old" | .workload.command = ["sh", "-c",
        "echo $MARK >>\"$0\"; case $1 in 2) [ -e \"$2/fixed\" ] || { echo no luck >&2; exit 3; };; 3) until [ -e \"$2/go\" ]; do sleep 0.2; done;; esac; echo end >>\"$0\"",
        ($dir + "/ran/mend.{{i}}"), "{{i}}", $dir]'
    "$HPCGRID" run mend.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 test -e ran/mend.3
    kill -INT $pid
    wait $pid || true
    is mend '{"pending":2,"running":1,"ok":1,"failed":1}'
    jq '.site.env.MARK = "new" | .site.hardware.cpu.backend = "cuda" | .workload.time = "10m" | del(.limits) | .axes.i = [1, 2, 3, 4]' mend.json >new.json
    mv new.json mend.json
    "$HPCGRID" run mend.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 grep -qs end ran/mend.4 # while the third goes on
    box_wait 90 eval '[ "$(squeue -h -t running -o %l)" = 5:00 ]'
    touch go
    status=0
    wait $pid || status=$?
    cat log
    [ "$status" = 1 ]
    grep -q '1 cell failed: exit code 3: ' log
    grep -q 'it printed last: no luck' log
    is mend '{"ok":3,"failed":1,"removed":1}'
    [ "$(jq -c 'select(.kind == "recalled") | .tasks' reports/mend/001/events.jsonl)" = '"3"' ]
    touch fixed
    jq '.workload.time = "1h"' mend.json >new.json && mv new.json mend.json
    run --separate-stderr "$HPCGRID" retry mend
    echo "$output$stderr"
    [ "$status" = 0 ]
    [[ "$stderr" == *'workload.time "10m" → "1h"'* ]]
    [ "$(cd ran && for i in mend.*; do echo "$i $(xargs <"$i")"; done | paste -sd,)" = 'mend.1 old end,mend.2 old new end,mend.3 old end,mend.4 new end' ]
    [ "$(jq -r '.batches[].backend' reports/mend/001/plan.json)" = cuda ]
    "$HPCGRID" fsck mend
}

@test "the matrix says how often what failed runs again" {
    # the first cell is well the third time, the others never
    matrix often 3 0 '.retry = {FAILED: 2} | .workload.command[2] = "echo begin >>\"$0\"; test $(grep -c begin \"$0\")${0##*.} = 31"'
    run --separate-stderr "$HPCGRID" run often.json
    echo "$stderr"
    [ "$status" = 1 ]
    # all at once, or as they end
    [ "$(sed -n 's/.* \([0-9]*\) cells\{0,1\} run again after FAILED$/\1/p' <<<"$stderr" | awk "{ n += \$1 } END { print n }")" = 6 ]
    [ "$(count often failed)" = 2 ]
    [ "$(count often ok)" = 1 ]
    [ "$(cat ran/often.* | wc -l)" = 9 ]
    run --separate-stderr "$HPCGRID" run often.json
    [ "$status" = 1 ]
    [ "$(cat ran/often.* | wc -l)" = 9 ]
}

@test "an automatic time limit follows from an earlier run, and is doubled after a timeout" {
    # the second run hangs at first; its end is brought forward, as Slurm counts limits in minutes
    matrix auto 1 0 '.workload.time = "auto" | .workload.command[2] = "echo begin >>\"$0\"; [ ! -e \"$2/hang\" ] || { rm \"$2/hang\"; exec sleep 300; }"'
    run --separate-stderr "$HPCGRID" run auto.json
    [ "$status" = 0 ]
    [[ "$stderr" == *'"auto" limits: 1 cell without a measured run, with the partition'"'"'s default limit; after TIMEOUT twice as long, at most 2 times'* ]]
    touch hang
    "$HPCGRID" run auto.json --new >out 2>log 3>&- &
    box_wait 60 some_run
    [ "$(squeue -h -o %l)" = 5:00 ]
    box_wait 60 [ ! -e hang ]
    scontrol update "jobid=$(squeue -h -o %A)" endtime=now
    wait $! || { cat log && return 1; }
    grep -qF '"auto" limits: 1 cell as runs of the same configuration took (run 001), so that 999 of 1000 end in time, at least 5 min;' log
    grep -qF '1 cell run again after TIMEOUT, "auto" limits doubled' log
    [ "$(jq -c 'select(.kind == "intent").time_s' reports/auto/002/events.jsonl | xargs)" = "null 600" ]
    [ "$(count auto ok)" = 1 ]
    "$HPCGRID" fsck auto
}

@test "adaptive repeats go on in rounds until they are narrow, also when their driver is killed" {
    local pid
    matrix rounds 2 0 '.workload.command = ["sh", "-c", "echo x >>\"$0.$1\"; echo t=$((100 + ($1 - 1) * ($2 * 37 % 80)))", ($dir + "/ran/rounds"), "{{i}}", "{{repeat}}"] |
        .workload.results = {train_s: "t=([0-9]+)"} | .repeats = {until: "5%", min: 3, max: 8}'
    run --separate-stderr "$HPCGRID" submit rounds.json
    [ "$status" = 0 ]
    [[ "$stderr" == *"pending 6 · not_needed 10"* ]]
    [[ "$stderr" == *"decides which of 10 more are needed"* ]]
    "$HPCGRID" resume rounds >out 2>log 3>&- &
    pid=$!
    box_wait 90 grep -q 'more run' log
    kill -KILL $pid
    wait $pid || true
    run --separate-stderr "$HPCGRID" resume rounds
    echo "$output"
    [ "$status" = 0 ]
    [[ "$output" == *"stopped at the maximum of 8 runs"* ]]
    [ "$(wc -l <ran/rounds.1)" = 3 ]
    [ "$(wc -l <ran/rounds.2)" = 8 ]
    is rounds '{"ok":11,"not_needed":5}'
    run --separate-stderr "$HPCGRID" run rounds.json # nothing is left to do
    [ "$status" = 0 ]
    is rounds '{"ok":11,"not_needed":5}'
    "$HPCGRID" fsck rounds
}

@test "a requeued cell is pending again, not failed" {
    local pid
    matrix fall 1 held '.axes = {"i": [1]}'
    "$HPCGRID" run fall.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 some_run
    box_wait 90 test -e ran/fall.1
    scontrol requeue "$(squeue -h -o %A | head -1)_0"
    box_wait 90 is fall '{"pending":1}'
    kill -INT $pid
    wait $pid || true
    "$HPCGRID" cancel fall
}

@test "what is wrong is said before anything is submitted" {
    local conf=$SLURM_CONF
    matrix wrong 3 0 '.site.hardware.cpu.partition = "cpus"'
    run --separate-stderr "$HPCGRID" run wrong.json
    echo "$stderr"
    [ "$status" = 4 ]
    [[ "$stderr" == *"batch 1 (3 cells, hardware cpu of site inline) would be refused: "*artition*"did you mean"* ]]
    [[ "$stderr" == *"it requests partition cpus (hardware.cpu.partition of the site)"* ]]
    [ -z "$(squeue -h)" ]

    matrix wrong 3 0 '.site.reservation = "mine"'
    run --separate-stderr "$HPCGRID" run wrong.json
    echo "$stderr"
    [ "$status" = 4 ]
    [[ "$stderr" == *"it requests reservation mine (reservation of the site)"* ]]
    [[ "$stderr" != *"partition cpu ("* ]]
    matrix wrong 3 0 '.site.licenses = "gold:1"'
    run --separate-stderr "$HPCGRID" run wrong.json
    echo "$stderr"
    [[ "$stderr" == *"it requests licenses gold:1 (licenses of the site)"* ]]
    matrix wrong 3 0 '.workload.mem = "900T"'
    run --separate-stderr "$HPCGRID" run wrong.json
    echo "$stderr"
    [[ "$stderr" == *", mem_mib 943718400 (mem of the matrix), "* ]]

    matrix fine 3 0
    SECONDS=0
    SLURM_CONF=/nonexistent run --separate-stderr "$HPCGRID" run fine.json
    [ "$status" = 4 ]
    [ $SECONDS -lt 30 ] # libslurm itself would look for one for a minute
    [ ! -e reports/fine ]

    run --separate-stderr "$HPCGRID" run fine.json --reports /proc/nowhere
    [ "$status" = 4 ]
    [[ "$stderr" == *"/proc/nowhere"* ]]

    printf '{"hpcgrid": 1, "axes": {"nodes": [0]}}' >broken.json
    run --separate-stderr "$HPCGRID" run broken.json
    [ "$status" = 3 ]
    [ ! -e reports/broken ]

    kill -9 "$(box_pid munged)"
    run --separate-stderr "$HPCGRID" run fine.json
    box_heal
    echo "$stderr"
    [ "$status" = 4 ]
    [[ "$stderr" == *unge* ]]
    [ ! -e reports/fine ]
    export SLURM_CONF=$conf
}

# A controller that is killed comes back with the jobs of its last saved state, of earlier tests too: it has a box of its
# own.
@test "a controller that is down is said at once, and waited for once jobs are out" {
    local pid
    box_up cpu:2x0 MaxArraySize=11 MessageTimeout=5 AuthInfo=ttl=10
    OWN_BOX=$BOX
    matrix away 4 held
    "$HPCGRID" run away.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 some_run
    kill -9 "$(box_pid slurmctld)"
    matrix early 2 0
    run --separate-stderr "$HPCGRID" run early.json
    echo "$stderr"
    [ "$status" = 4 ]
    [ ! -e reports/early ]
    touch go
    sleep 2 # for the cells to end behind its back
    box_heal
    wait $pid
    [ "$(count away ok)" = 4 ]
}

@test "whoever comes back to a run while the controller is down waits for it" {
    local pid controller
    box_up cpu:2x0 MaxArraySize=11 MessageTimeout=5 AuthInfo=ttl=10
    OWN_BOX=$BOX
    matrix later 4 held
    "$HPCGRID" submit later.json
    box_wait 90 some_run
    controller=$(box_pid slurmctld)
    kill "$controller" # it saves what it knows
    box_wait 90 eval '[ ! -e "/proc/$controller" ]'
    "$HPCGRID" resume later >out 2>log 3>&- &
    pid=$!
    box_wait 90 grep -q "Slurm does not answer (.*); jobs continue; waiting (Ctrl-C stops this)" log
    touch go
    SLURM_CONF=/nonexistent run --separate-stderr "$HPCGRID" resume later
    [ "$status" = 4 ]
    [[ "$stderr" == *"is being driven by process $pid on "* ]]
    box_heal
    wait $pid
    grep -q "Slurm answers again" log
    [ "$(count later ok)" = 4 ]
    [ "$(grep -c begin ran/later.* | grep -c ':1$')" = 4 ]
    SLURM_CONF=/nonexistent run --separate-stderr timeout 60 "$HPCGRID" resume later # no waiting brings that
    [ "$status" = 4 ]
    [[ "$stderr" == *"SLURM_CONF names /nonexistent"* ]]
}

@test "whoever comes back to a run while munge is down waits for it" {
    local pid
    matrix unsigned 4 held
    "$HPCGRID" submit unsigned.json
    box_wait 90 some_run
    kill -9 "$(box_pid munged)"
    "$HPCGRID" resume unsigned >out 2>log 3>&- &
    pid=$!
    box_wait 90 grep -q "Slurm does not answer (munge does not answer at .*); jobs continue; waiting (Ctrl-C stops this)" log
    touch go
    box_heal
    wait $pid
    grep -q "Slurm answers again" log
    [ "$(count unsigned ok)" = 4 ]
}

# Everything that lies in a run: names, times, contents.
inventory() { find "$1" -printf '%P %y %s %T@\n' | sort && find "$1" -type f -print0 | sort -z | xargs -0 md5sum; }

@test "a copy of a run is not driven" {
    local words
    matrix twin 4 0 '.workload.command[2] += "; exit 3"'
    run --separate-stderr "$HPCGRID" run twin.json
    [ "$status" = 1 ]
    [ "$(count twin failed)" = 4 ]
    cp -a reports/twin/001 reports/twin/002
    inventory reports >before
    for words in retry resume watch cancel; do
        run --separate-stderr "$HPCGRID" $words twin/002
        echo "$stderr"
        [ "$status" = 4 ]
        [[ "$stderr" == *"$PWD/reports/twin/002 is a copy of $PWD/reports/twin/001, where its jobs would run"* ]]
    done
    run --separate-stderr "$HPCGRID" run twin.json --rerun-failed
    [ "$status" = 4 ]
    inventory reports >after
    diff before after
    [ "$(cat ran/twin.* | grep -c begin)" = 4 ]
    box_idle
    rm -r reports/twin/002
    run --separate-stderr "$HPCGRID" retry twin
    [ "$status" = 1 ]
    [ "$(cat ran/twin.* | grep -c begin)" = 8 ]
}

@test "a run that was moved while jobs wait is named, and comes home once it is back" {
    local pid away=$PWD/away
    box_wait 90 table_empty
    matrix move 5 held '.limits.running = 1'
    "$HPCGRID" run move.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 is move '{"pending":4,"running":1}'
    box_wait 90 grep -q '"RUNNING"' reports/move/001/events.jsonl
    box_wait 90 eval '[ "$(cat ran/move.* 2>/dev/null)" = begin ]'
    mv reports/move/001 "$away" # under the hands of its driver
    status=0
    wait $pid || status=$?
    [ "$status" = 4 ]
    grep -q "$PWD/reports/move/001 is not there any more: was it moved?" log
    for words in "resume $away" "cancel $away" "retry $away"; do
        # shellcheck disable=SC2086
        run --separate-stderr "$HPCGRID" $words
        echo "$stderr"
        [ "$status" = 4 ]
        [[ "$stderr" == *"$away was moved or copied: its jobs would run in $PWD/reports/move/001 (which is not there); by its journal 4 pending and 1 running: those that start or end before it is back will fail"* ]]
    done
    scontrol update JobId="$(squeue -h -o %F | head -1)" ArrayTaskThrottle=5 # the others cannot start there
    box_wait 90 eval '[ "$(squeue -h -r | wc -l)" = 1 ]'
    run --separate-stderr "$HPCGRID" status "$away" --cells
    [ "$status" = 0 ]
    [ "$(grep -c "FAILED: Slurm could not open the job's output or working directory (its exit code 53): was the run's folder moved?" <<<"$output")" = 4 ]
    mv "$away" reports/move/001
    touch go
    run --separate-stderr "$HPCGRID" resume move
    echo "$stderr"
    [ "$status" = 0 ]
    [ "$(count move ok)" = 5 ]
    [ "$(grep -c begin ran/move.* | grep -c ':1$')" = 5 ]
}

@test "nodes that have not registered with a new controller are waited for" {
    local pid nodes
    box_up cpu:2x0 MessageTimeout=5 AuthInfo=ttl=10
    OWN_BOX=$BOX
    nodes="$(box_pid slurmd-cpu-1) $(box_pid slurmd-cpu-2)"
    # shellcheck disable=SC2086
    kill -STOP $nodes
    kill -9 "$(box_pid slurmctld)"
    box_heal 3>&- & # it waits for the nodes, too
    unknown() { [ "$(agent '{"id":1,"op":"nodes"}' | jq -c '[.ok.nodes[].state]')" = '["UNKNOWN","UNKNOWN"]' ]; }
    box_wait 90 unknown
    matrix soon 3 0
    "$HPCGRID" run soon.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 is soon '{"pending":3}' # what the probe refuses, Slurm takes
    # shellcheck disable=SC2086
    kill -CONT $nodes
    wait $pid
    [ "$(count soon ok)" = 3 ]
    wait
}

@test "run --box starts a box, uses it and takes it away" {
    local name
    unset SLURM_CONF
    matrix own 4 0 '.site = "box" | .workload.hardware = "cpu"'
    run --separate-stderr "$HPCGRID" run own.json
    [ "$status" = 4 ]
    [[ "$stderr" == *"run --box"* ]]
    run --separate-stderr "$HPCGRID" run --box own.json
    echo "$stderr"
    [ "$status" = 0 ]
    name=$(sed -n 's/.*box \(own-[^ ]*\) is up.*/\1/p' <<<"$stderr")
    [ -n "$name" ]
    [ -z "$("$HPCGRID" box list | grep "^$name ")" ]
    [ ! -e reports/own/001/box.json ]
}

@test "a box outlives Ctrl-C, and resume finds it and takes it away" {
    local pid name
    unset SLURM_CONF
    matrix keep 3 held '.site = "box" | .workload.hardware = "cpu"'
    "$HPCGRID" run --box keep.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 eval '"$HPCGRID" status keep --json 2>/dev/null | grep -q "\"running\":"'
    kill -INT $pid
    status=0
    wait $pid || status=$?
    [ "$status" = 130 ]
    name=$(sed -n 's/.*box \(keep-[^ ]*\) is up.*/\1/p' log)
    "$HPCGRID" box list | grep -q "^$name "
    touch go
    run --separate-stderr "$HPCGRID" resume keep
    echo "$stderr"
    [ "$status" = 0 ]
    [ "$(grep -c end ran/keep.* | grep -c ':1$')" = 3 ]
    [ -z "$("$HPCGRID" box list | grep "^$name ")" ]
}

screen() { tmux -S socket capture-pane -p; }
shows() { screen | grep -qF -- "$1"; }
followed() { tmux -S follower capture-pane -p | grep -qF -- "$1"; }
keys() { tmux -S socket send-keys -- "$@"; }
again_ran() { [ "$(jq -r 'select(.kind == "again" or .kind == "result") | .kind + "." + (.status // "")' reports/seen/001/events.jsonl | tail -2 | paste -sd' ')" = "again. result.failed" ]; }

@test "run on a terminal shows the matrix, and its keys retry, hold, release and cancel cells" {
    box_wait 90 table_empty
    matrix seen 1 held '.axes = {kind: ["good", "bad", "held"], i: [1, 2]} | .report = {rows: ["i"], columns: ["kind"]}
        | .workload.command[2] = "case $1 in bad) echo boom >&2; exit 3;; held) until [ -e \"$2/go\" ]; do sleep 0.2; done;; esac"
        | .workload.command[4] = "{{kind}}"'
    PATH=$(dirname "$HPCGRID"):$PATH tmux -u -S socket -f /dev/null new-session -d -x 100 -y 24 \
        'LC_ALL=C.UTF-8 hpcgrid run seen.json; echo "rc=$?"; exec cat' 3>&-
    box_wait 90 shows '1 o    F   r'
    box_wait 90 shows '2 o    F   r'
    # another terminal follows the journal
    PATH=$(dirname "$HPCGRID"):$PATH tmux -u -S follower -f /dev/null new-session -d -x 100 -y 24 'hpcgrid watch seen 2>&1; echo "rc=$?"; exec cat' 3>&-
    box_wait 90 followed '1 o    F   r'
    tmux -S follower send-keys q
    box_wait 90 followed rc=130
    tmux -S follower kill-server
    keys Right
    box_wait 90 shows 'kind=bad i=1: failed: exit code 3'
    box_wait 90 shows boom
    keys t
    box_wait 90 shows 'retry: 1 cell runs again'
    box_wait 90 again_ran
    box_wait 90 shows '1 o    F   r'
    keys Right h
    box_wait 90 shows 'hold: '
    keys r
    box_wait 90 shows 'release: '
    keys c
    box_wait 90 shows 'cancel 1 cell? y or n'
    keys y
    box_wait 90 shows '1 o    F   C'
    touch go
    box_wait 90 shows 'rc=1'
    tmux -S socket kill-server
    is seen '{"ok":3,"failed":2,"cancelled":1}'
}
