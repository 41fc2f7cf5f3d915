#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# submit, status, resume and cancel without a Slurm: the agent is a shell script (tests/agent.bash).

bats_require_minimum_version 1.5.0
load ../await
load ../agent

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    cd "$BATS_TEST_TMPDIR" || return 1
    unset HPCGRID_REPORTS SLURM_CONF
    agent "$PWD"
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "m", "site": {"launcher": "srun", "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
 "workload": {"command": ["true"], "time": "5m"}, "axes": {"i": {"range": [1, 4]}}}
END
}

teardown() { nothing_left; }

refuse() { printf '{"error":{"code":"%s","errno":1,"message":"%s","site":"%s"}}' "$2" "$3" "${4:-}" >"$1"; }
asked() { jq -r .op asked | grep -c "^$1\$" || true; }
counts() { "$hpcgrid" status m --no-poll --json | jq -c .counts; }

@test "submit sends one array and prints the run's folder; status reads the journal" {
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 0 ]
    [ "$output" = "$PWD/reports/m/001" ]
    [ "$(asked submit)" = 1 ]
    jq -e 'select(.op == "submit") | .job as $j | $j.array == "0-3" and $j.args[:4] == ["--submission", "1", "--offset", "0"] and $j.args[4] == "--request"
        and ($j.output | contains("hg-" + $j.key)) and ($j.key | test("^[0-9a-f]{32}$"))' asked
    [ "$(counts)" = '{"pending":4}' ]
    # the same again finds them and sends nothing
    answer poll "$(jq -c 'select(.op == "submit") | {jobs: [{key: .job.key, job_id: 17, tasks: "0-3", state: "PENDING",
        reason: "Priority", nodes: "", restarts: 0, exit_status: 0, submit_s: 1, start_s: 0, expected_s: 4000000000, end_s: 0}]}' asked)"
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 0 ]
    [ "$(asked submit)" = 1 ]
    run --separate-stderr "$hpcgrid" status m
    [[ "$output" == *"4 wait: Priority (others are before it)"$'\n'"  Slurm expects the next start in "*"(2096-10-02T07:06:40Z)"* ]]
    [[ "$output" == *"left: at most 20m 00s, 1 at a time (nothing runs yet): 4 cells by the time limit, at most"* ]]
    [[ "$output" == *"receipt: submit 1 · poll "* ]]
}

# ran BATCH N: the first N cells of a batch, as its jobs would run them
ran() {
    for ((i = 0; i < $2; i++)); do SLURM_ARRAY_TASK_ID=$i "$hpcgrid" exec --run reports/m/001 --batch "$1" --submission 1; done
}
# listing NAME: of the report of m
listing() { "$hpcgrid" report m --format json | jq -c --arg name "$1" '.listings[] | select(.name == $name) | [.rows[] | del(.cell)], .notes'; }

@test "a report names the cells that cannot run, and results of cells that the matrix has no more" {
    jq '.workload.launch = [] | .axes = {i: [1, 2, 3], nodes: [1, 2], gpus_per_node: [0, 4]} | .report = {rows: ["i"], columns: ["nodes"]}' m.json >a.json
    mv a.json m.json
    "$hpcgrid" submit m.json
    ran 1 3
    ran 2 3
    "$hpcgrid" report m >out
    grep -qF 'm/001 · 6 of 6 cells complete; 6 more cannot run' out
    [ "$(listing skipped | head -1 | jq -c '[length, (map(.reason) | unique)]')" = '[5,["4 GPUs per node requested, cpu has none"]]' ]
    [ "$(listing skipped | tail -1)" = '["and 1 more"]' ]
    # people read names, programs ids
    grep -qxF '1x4 i=1  4 GPUs per node requested, cpu has none' out
    "$hpcgrid" report m --format json | jq -se '.[0] | .listings[] | select(.name == "skipped") | .rows[0].cell | test("-1x4-[0-9a-f]{12}$")'
    "$hpcgrid" status m --no-poll --cells | grep -qxE '1x1 i=1  (pending|submitted|waiting) *'
    id=$(jq -r 'select(.cell.i == 2 and .cell.nodes == 2).id' reports/m/001/batches/*.cells.jsonl)
    "$hpcgrid" status m --no-poll --ids -s "id=$id" | grep -qE "^2x1 i=2  [a-z]+ +$id$"
    [ "$(listing removed)" = "" ]
    # a selection removes nothing from the matrix; an edit does
    "$hpcgrid" submit m.json -s i=1
    [ "$("$hpcgrid" report m --format json | jq -c '[.skipped, .removed]')" = '[2,null]' ]
    jq '.axes = {i: [1, 2], nodes: [1, 2]}' m.json >a.json && mv a.json m.json
    run --separate-stderr "$hpcgrid" submit m.json
    [[ "$stderr" == *"cells of this run that the matrix has no more: 2 (2 with good results, which stay)"* ]]
    "$hpcgrid" report m >out
    grep -qF 'm/001 · 6 of 6 cells complete; 2 are no longer in the matrix' out
    grep -qF '¹ no longer in the matrix' out
    [ "$(listing removed | head -1)" = '[{"result":"ok","differs":"i 3 (1)"},{"result":"ok","differs":"i 3 (1)"}]' ]
    run -1 "$hpcgrid" report m --strict --format json
    [ "$(jq -c '[.refused, ([.tables[].points[] | select(.refused) | .row.i] | unique)]' <<<"$output")" = '[2,[3]]' ]
    # what comes back into the matrix is no exception any more
    jq '.axes.i = [1, 2, 3]' m.json >a.json && mv a.json m.json
    "$hpcgrid" submit m.json
    "$hpcgrid" report m | grep -qxF 'm/001 · 6 of 6 cells complete'
}

@test "results of another command do not stand in the place of the matrix's cells" {
    jq '.workload.launch = [] | .axes.i = [1, 2]' m.json >a.json && mv a.json m.json
    "$hpcgrid" submit m.json
    ran 1 2
    jq '.workload.command = ["sleep", "0"]' m.json >a.json && mv a.json m.json
    "$hpcgrid" submit m.json
    ran 2 2
    "$hpcgrid" report m --format json >out
    jq -e '.cells == 2 and .complete and .removed == 2 and all(.tables[].points[]; .of == 1)
        and [.listings[0].rows[] | [.result, .differs]] == [["replaced", "command, launch, env or files"], ["replaced", "command, launch, env or files"]]' out
    [ "$("$hpcgrid" report m --format csv | tr -d '\r' | awk -F, 'NR > 1 { print $4 }' | xargs)" = "false false true true" ]
    "$hpcgrid" collect m
    "$hpcgrid" report reports/m/001/tables/results.json --format json | jq -se --slurpfile run out '.[0].tables == $run[0].tables'
}

# queued REASON: what Slurm says of the three tasks that were submitted
queued() {
    answer poll "$(jq -c --arg reason "$1" 'select(.op == "submit") | {jobs: [{key: .job.key, job_id: 17, tasks: "0-2", state: "PENDING",
        reason: $reason, nodes: "", restarts: 0, exit_status: 0, submit_s: 1, start_s: 0, end_s: 0}]}' asked)"
}
told() { jq -c 'select(.op == "hold") | [.job_id, .tasks, .held]' asked | sort -u; }

@test "hold keeps back what waits, tells Slurm what is queued, and release undoes it" {
    answer limits "$(jq -c '.ok | .max_jobs = 4' limits)" # three of the four cells go out
    answer hold '{"gone":false}'
    "$hpcgrid" submit m.json
    queued Priority
    run --separate-stderr "$hpcgrid" hold m -s i=1..2
    [ "$status" = 0 ]
    [ "$(told)" = '[17,"0-1",true]' ]
    [ "$("$hpcgrid" status m --no-poll --json | jq .held)" = 2 ]
    run --separate-stderr "$hpcgrid" hold m --json
    [ "$(jq -c 'del(.run)' <<<"$output")" = '{"held":true,"waiting":1,"told":3,"denied":0,"running":0}' ]
    [ "$("$hpcgrid" status m --no-poll --json --cells | jq -c '[.held, .counts, (.list | map(.held) | all)]')" = '[4,{"waiting":1,"pending":3},true]' ]
    "$hpcgrid" status m --no-poll | grep -qxF "  4 held: hpcgrid release $PWD/reports/m/001 lets them start"
    # what is held already is told nothing
    queued JobHeldUser
    : >told.before && jq -c . asked >told.before
    run --separate-stderr "$hpcgrid" hold m
    [ "$(asked hold)" = "$(jq -r .op told.before | grep -c '^hold$')" ]
    # tasks that Slurm shows one by one are told together
    jq -c '.ok.jobs |= [.[0] + ({tasks: ("0", "1", "2"), reason: "Priority"})]' poll >poll.new && mv poll.new poll
    : >asked.all && cat asked >>asked.all && jq -c 'select(.op == "submit")' asked.all >asked
    "$hpcgrid" hold m
    [ "$(jq -c 'select(.op == "hold") | .tasks' asked | sort -u)" = '"0-2"' ]
    cat asked.all >asked
    queued JobHeldUser
    # room is of no use to what is held
    answer limits "$(jq -c '.ok | .max_jobs = 100' limits)"
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$(asked submit)" = 1 ]
    [[ "$stderr" == *"held, not submitted: 1; \`hpcgrid release $PWD/reports/m/001\` lets them start"* ]]
    run --separate-stderr "$hpcgrid" release m
    [ "$status" = 0 ]
    [[ "$stderr" == *"released in Slurm: 3; to be submitted: 1"*"\`hpcgrid resume $PWD/reports/m/001\`"* ]]
    [ "$(told | tail -1)" = '[17,"0-2",true]' ]
    told | grep -qxF '[17,"0-2",false]'
    [ "$("$hpcgrid" status m --no-poll --json | jq .held)" = 0 ]
    "$hpcgrid" submit m.json
    [ "$(asked submit)" = 2 ]
}

@test "what only an administrator may release is reported, and not tried" {
    answer hold '{"gone":false}'
    "$hpcgrid" submit m.json -s 'i=1..3'
    queued JobHeldAdmin
    run --separate-stderr "$hpcgrid" release m
    [ "$status" = 1 ]
    [[ "$stderr" == *"held by an administrator, who alone may release them: 3 (squeue shows JobHeldAdmin)"* ]]
    [ "$(asked hold)" = 0 ]
}

@test "a hold that Slurm did not hear is noted, and carried out by the next process that drives the run" {
    answer hold '{"gone":false}'
    "$hpcgrid" submit m.json -s 'i=1..3'
    queued Priority
    cp poll poll.well
    refuse poll env "Unable to contact slurm controller"
    run --separate-stderr "$hpcgrid" hold m
    [ "$status" = 4 ]
    [[ "$stderr" == *"the request is noted in the run; the process that drives it, or the next \`hpcgrid resume\`, carries it out"* ]]
    [ "$("$hpcgrid" status m --no-poll --json | jq .held)" = 3 ]
    [ "$(asked hold)" = 0 ]
    cp poll.well poll
    "$hpcgrid" submit m.json -s 'i=1..3'
    [ "$(told)" = '[17,"0-2",true]' ]
    run --separate-stderr "$hpcgrid" hold m -s i=77
    [ "$status" = 2 ]
    [ "$stderr" = "hpcgrid: error: no cell has i=77
  known: 1, 2, 3" ]
    for command in hold release cancel retry status trace logs; do
        option=-s
        [ $command != logs ] || option=
        run --separate-stderr "$hpcgrid" $command m $option xx=9
        [ "$status" = 2 ]
        [[ "$stderr" == *'error: no cell has "xx"'*"known: "*nodes* ]]
        run --separate-stderr "$hpcgrid" $command m $option i=77,nodes
        [ "$status" = 2 ]
        [[ "$stderr" == *"error: no cell has i=77"*"known: 1, 2, 3"* ]]
    done
    run --separate-stderr "$hpcgrid" hold nothing
    [ "$status" = 4 ]
}

@test "a folder whose name is not valid UTF-8 cannot hold a run, but one that was brought there is read" {
    "$hpcgrid" submit m.json
    foreign=$(printf 'f\377')
    mkdir "$foreign"
    cp m.json "$foreign"
    for words in "plan $foreign/m.json" "plan m.json --out $foreign/p" "submit $foreign/m.json" "submit m.json --reports $foreign"; do
        run "$hpcgrid" $words
        echo "$words: $output"
        [ "$status" -eq 4 ]
        [[ "$output" == *"hpcgrid: error: the folder "*" cannot hold a run: its name is not valid UTF-8"* ]]
        [ -z "$(find "$foreign" -mindepth 1 -type f ! -name m.json ! -name lock)" ]
    done
    [ "$(grep -c '"op":"submit"' asked)" = 1 ]
    rm -rf "$foreign"
    cp -r reports "$foreign"
    "$hpcgrid" status "$foreign"/*/001 --no-poll --json | jq -se '.[0] | .counts != {} and (.run | endswith("/001"))'
    run --separate-stderr "$hpcgrid" report "$foreign"/*/001 --format json
    [ "$status" -eq 1 ]
    jq -e '.cells > 0' <<<"$output"
}

@test "what is meant for a closed stream does not go into the journal" {
    for closed in "2>&-" "<&- 2>&-" ">&- 2>&-" "<&- >&- 2>&-"; do
        rm -rf reports
        bash -c "\"\$1\" submit m.json $closed" - "$hpcgrid" || [[ $? -eq 4 && $closed == *">&- 2"* ]] # its folder could not be printed
        echo "$closed"
        jq -e .crc reports/m/001/events.jsonl >/dev/null
        [ "$(counts)" = '{"pending":4}' ]
    done
}

@test "a refusal is said with the site's own words, and nothing is submitted" {
    refuse probe refused "Invalid account" "ask the help desk for an account"
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 4 ]
    [[ "$stderr" == *"batch 1 (4 cells, hardware cpu of site inline) would be refused: Invalid account: ask the help desk for an account"* ]]
    [[ "$stderr" == *"it requests partition cpu (hardware.cpu.partition of the site), "*", time_s 300 (time of the matrix)"* ]]
    jq '.site += {qos: "gold"} | .site.hardware.cpu += {account: "a"}' m.json >site.json
    about() {
        printf '{"error":{"code":"refused","errno":1,"message":"no","site":"","about":"%s"}}' "$1" >probe
        run --separate-stderr "$hpcgrid" submit site.json
        echo "$stderr"
        [[ "$stderr" == *"  $2" ]]
    }
    about qos "it requests qos gold (qos of the site)"
    about account,qos "it requests account a (hardware.cpu.account of the site), qos gold (qos of the site)"
    about reservation "it requests no reservation (reservation of the site)"
    about time_s "it requests time_s 300 (time of the matrix)"
    [ "$(asked submit)" = 0 ]
}

@test "a refusal that no probe foresaw ends the batch, and resume tries again" {
    refuse submit refused "no more today"
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 4 ]
    [ "$(counts)" = '{"refused":4}' ]
    answer submit '{"job_id":18,"site":""}'
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 0 ]
    [ "$(counts)" = '{"pending":4}' ]
}

@test "an agent that dies in a submission leaves it in doubt, never sent twice" {
    : >submit.die
    export HPCGRID_NOW=2000000000
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 0 ]
    [ "$(counts)" = '{"ambiguous":4}' ]
    [[ "$stderr" == *"not known whether submitted: 4; "* ]]
    rm submit.die
    answer submit '{"job_id":18,"site":""}'
    run --separate-stderr "$hpcgrid" submit m.json # at once: it might still come
    [ "$(asked submit)" = 1 ]
    HPCGRID_NOW=2000000060 # ambiguous_s and a margin
    run --separate-stderr "$hpcgrid" submit m.json
    [[ "$stderr" == *"did not arrive"* ]]
    [ "$(asked submit)" = 2 ]
    [ "$(jq -r 'select(.op == "submit") | .job.key' asked | sort -u | wc -l)" = 2 ]
    [ "$(jq -r 'select(.op == "submit") | .job.args[1]' asked | sort -u)" = 1 ]
    [ "$(counts)" = '{"pending":4}' ]
}

@test "Slurm that is away: said at once, no folder made" {
    refuse limits env "Unable to contact slurm controller"
    run --separate-stderr "$hpcgrid" run m.json
    [ "$status" = 4 ]
    [[ "$stderr" == *"Unable to contact slurm controller"* ]]
    [ ! -e reports ]
    HPCGRID_SLURM_AGENT=/nonexistent run --separate-stderr "$hpcgrid" run m.json
    [ "$status" = 4 ]
    [[ "$stderr" == *"/nonexistent"* ]]
    [ ! -e reports ]
}

@test "a full disk stops it before the request" {
    command -v strace >/dev/null || skip "strace is not installed"
    "$hpcgrid" submit m.json -s 'i=1' >/dev/null
    [ "$(asked submit)" = 1 ]
    : >asked
    local n
    for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        cp -r reports kept
        strace -o /dev/null -e trace=fsync -e inject=fsync:error=ENOSPC:when=$n+ "$hpcgrid" submit m.json >out 2>err && break
        [ "$(asked submit)" = 0 ] || {
            # the journal failed behind the request: what it had meant stands there
            "$hpcgrid" status m --no-poll --json | jq -se '.[0] | .counts.intended == 3'
            break
        }
        grep -q "No space left on device" err
        rm -rf reports
        mv kept reports
    done
    [ "$n" -gt 3 ]
}

@test "a cut last line is left out, a damaged one is named" {
    "$hpcgrid" submit m.json >/dev/null
    cp reports/m/001/events.jsonl good
    truncate -s -5 reports/m/001/events.jsonl
    [ "$(counts)" = '{"intended":4}' ] || [ "$(counts)" = '{"pending":4}' ]
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 0 ]
    [[ "$stderr" == *"/reports/m/001/events.jsonl: the last line was cut short and is dropped"* ]]
    sed '3s/intent/intemt/' good >reports/m/001/events.jsonl
    run --separate-stderr "$hpcgrid" status m --no-poll
    [ "$status" = 3 ]
    [[ "$stderr" == *"reports/m/001/events.jsonl:3:1: error: the line is damaged"* ]]
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 3 ]
}

@test "cancel without a driver: what waits is not sent, what is queued is cancelled" {
    "$hpcgrid" submit m.json -s 'i=1..2' >/dev/null
    answer poll "$(jq -c 'select(.op == "submit") | {jobs: [{key: .job.key, job_id: 17, tasks: "0-1", state: "PENDING",
        reason: "Priority", nodes: "", restarts: 0, exit_status: 0, submit_s: 1, start_s: 0, end_s: 0}]}' asked)"
    run --separate-stderr "$hpcgrid" cancel m --json
    [ "$status" = 0 ]
    jq -e --arg run "$PWD/reports/m/001" '. == {run: $run, waiting: 0, live: 2}' <<<"$output"
    [ "$(jq -r 'select(.op == "cancel") | "\(.job_id) \(.tasks)"' asked | sort -u)" = "17 0-1" ]
    [ "$(counts)" = '{"cancelled":2}' ]
    "$hpcgrid" status m --no-poll --cells --color=always | grep -c $'\033\\[33mcancelled' | grep -qx 3
    [ -z "$(ls reports/m/001/cancel.* 2>/dev/null)" ]
}

@test "commands that read all cells of a run show how far they are" {
    sed -i 's/"command"/"launch": [], &/' m.json
    "$hpcgrid" submit m.json >/dev/null
    ran 1 4
    for command in "fsck m" "collect m" "collect m --compact" "report m --format csv --out x.csv"; do
        HPCGRID_BAR_S=0 TERM=xterm script -qec "$hpcgrid $command" /dev/null </dev/null >screen || true
        grep -qa '% of 4 cells, ' screen || { echo "$command"; cat -v screen; return 1; }
    done
}

# polled_again: twice since the last time that this was true
polled_again() { [ "$(asked poll)" -ge $((${polls:=$(asked poll)} + 2)) ] && unset polls; }

@test "nohup keeps a run driven when its terminal is gone" {
    "$hpcgrid" submit m.json -s 'i=1..3'
    queued Priority
    nohup "$hpcgrid" resume m >out 2>log 3>&- &
    pid=$!
    await polled_again
    kill -HUP $pid
    await polled_again
    kill -TERM $pid
    rc=0
    wait $pid || rc=$?
    [ $rc = 143 ]
}

@test "cells that Slurm holds are told to the person, once" {
    "$hpcgrid" submit m.json >/dev/null
    answer poll "$(jq -c 'select(.op == "submit") | {jobs: [{key: .job.key, job_id: 17, tasks: "0-3", state: "PENDING",
        reason: "JobHeldAdmin", nodes: "", restarts: 0, exit_status: 0, submit_s: 1, start_s: 0, end_s: 0}]}' asked)"
    "$hpcgrid" resume m --notify 'cat >>told; env | grep ^HPCGRID_EVENT >>told' 2>log 3>&- &
    pid=$!
    await grep -q EVENT told
    await polled_again
    kill -TERM $pid
    wait $pid || [ $? = 143 ]
    diff told - <<END
m/001: cells wait for a person: JobHeldAdmin
pending 4

held by an administrator

hpcgrid status $PWD/reports/m/001
HPCGRID_EVENT=attention
END
}

@test "following an attempt that left no result ends when the journal says that it is over" {
    "$hpcgrid" submit m.json >/dev/null
    "$hpcgrid" cancel m 2>/dev/null
    [ "$(counts)" = '{"cancelled":4}' ]
    id=$("$hpcgrid" status m --no-poll --ids -s i=2 | grep -o '[^ ]*-cpu-1x1-[0-9a-f]*')
    mkdir -p "reports/m/001/cells/1-000/$id.1.0"
    echo last words >"reports/m/001/cells/1-000/$id.1.0/out.log"
    run --separate-stderr timeout 60 "$hpcgrid" logs m "$id" --follow
    [ "$status" = 0 ]
    [ "$output" = "last words" ]
}

@test "retry takes up again what ended as its words say" {
    "$hpcgrid" submit m.json >/dev/null
    "$hpcgrid" cancel m -s 'i=1..2' 2>/dev/null
    answer poll '{"jobs":[]}'
    run --separate-stderr "$hpcgrid" retry m --status oom,canceled
    [ "$status" = 2 ]
    [[ "$stderr" == *'--status: unknown word "canceled"'*'did you mean "cancelled"?'* ]]
    run --separate-stderr "$hpcgrid" retry m --status ''
    [ "$status" = 2 ]
    run --separate-stderr "$hpcgrid" retry nothing
    [ "$status" = 4 ]
}

@test "selectors pick cells in submit and status" {
    run --separate-stderr "$hpcgrid" submit m.json -s 'i=2..3' --json
    [ "$status" = 0 ]
    [ "$(jq -c '[.cells, .waiting, .submissions[0].cells]' <<<"$output")" = '[2,0,2]' ]
    run --separate-stderr "$hpcgrid" status m --no-poll -c -s 'i=3'
    [ "$(grep -c '^i=[0-9]  ' <<<"$output")" = 1 ]
    run --separate-stderr "$hpcgrid" submit m.json -s 'j=2'
    [ "$status" = 2 ]
    run --separate-stderr "$hpcgrid" submit m.json --new
    [ "$output" = "$PWD/reports/m/002" ]
}

@test "a run that is not there" {
    run --separate-stderr "$hpcgrid" status nothing
    [ "$status" = 4 ]
    [[ "$stderr" == *'"nothing" has no run yet'* ]]
    for c in status report; do
        run --separate-stderr "$hpcgrid" $c nothing.json
        [ "$status" = 4 ]
        [ "$stderr" = "hpcgrid: error: there is no file nothing.json" ]
    done
}

@test "data that the worker does not find are said before anything is made" {
    cat >worker <<'END'
#!/bin/sh
[ "$1 $2" = "check --cell" ] || exit 2
echo "$(jq -r .dataset "$3") $HPCGRID_DATA $PWD" >>"$ASKED.worker"
[ "$(jq -r .dataset "$3")" = mnist ] || exit 0
echo "hpcgrid-worker: error: data: no such folder" >&2
exit 3
END
    chmod +x worker
    jq '.workload = {program: "hpcgrid-worker", model: "rnn", epochs: 1} | .axes = {dataset: ["mnist-slice", "mnist"], seed: [1, 2, 3]}
        | .site.env = {HPCGRID_DATA: "/site/data"}' m.json >w.json
    export HPCGRID_WORKER=$PWD/worker HPCGRID_DATA=/of/this/shell
    run --separate-stderr "$hpcgrid" submit w.json
    echo "$stderr"
    [ "$status" = 3 ]
    [[ "$stderr" == *"error: cell dataset=mnist seed=1: data: no such folder"* ]]
    [ ! -e reports ]
    [ ! -s asked ]
    # once for each data set, as a job would see it
    diff asked.worker - <<END
mnist-slice /site/data $PWD
mnist /site/data $PWD
END
    run --separate-stderr "$hpcgrid" check w.json
    [ "$status" = 3 ]
    [[ "$stderr" != *"of this shell"* ]]
    jq 'del(.site.env)' w.json >v.json
    run --separate-stderr "$hpcgrid" check v.json
    [ "$status" = 3 ]
    [[ "$stderr" == *'HPCGRID_DATA of this shell does not reach jobs: put it into "env" of the workload or of the site'* ]]
    run --separate-stderr "$hpcgrid" submit w.json -s 'dataset=mnist-slice'
    [ "$status" = 0 ]
    run --separate-stderr "$hpcgrid" submit w.json --no-data-check
    [ "$status" = 0 ]
}

# licenses CPUS: what a cell of these CPUs asks for at the site box
licenses() {
    jq ".site = \"box\" | .axes = {hardware: \"cpu\", cpus_per_task: $1}" m.json >box.json
    rm -rf x
    "${@:2}" "$hpcgrid" plan box.json --out x >/dev/null
    sed -n 's/^#SBATCH --licenses=//p' x/batches/1.sh
}

@test "a cell asks for as many cores as the box has that it goes to, else as many as it may use" {
    printf '%s\n' '# Licenses=core:9' 'ClusterName=box' 'Licenses=hardcore:7,core:3 # ours' >slurm.conf
    [ "$(SLURM_CONF=slurm.conf licenses 2)" = core:2 ]
    [ "$(SLURM_CONF=slurm.conf licenses 64)" = core:3 ]
    cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    [ "$(licenses 64 taskset -c "$cpu")" = core:1 ]
    printf '%s\n' 'Licenses=gold:1' >slurm.conf
    [ "$(SLURM_CONF=slurm.conf licenses 64 taskset -c "$cpu")" = core:1 ]
}

memory_kb() { sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$pid/status"; }
grown_less() { [ $(($(memory_kb) - before)) -lt "$1" ]; }
polled() { [ "$(asked poll)" -ge "$1" ]; }

@test "between two questions the driver holds no memory of what Slurm's table had" {
    local pid before polls
    if ldd "$hpcgrid" | grep -q 'lib[at]san'; then skip "a sanitizer keeps what is freed"; fi
    answer limits '{"max_array_size":10001,"max_jobs":10000,"min_job_age_s":300,"ambiguous_s":1,"message_timeout_s":1,"accounting":false,"version":"22.05.8","cluster":"script"}'
    jq '.axes.i.range[1] = 4000' m.json >many.json && mv many.json m.json
    "$hpcgrid" submit m.json
    jq -c 'select(.op == "submit") | .job.key as $key | {ok: {jobs: [range(4000) | {key: $key, job_id: (17 + .), tasks: "\(.)", state: "RUNNING", reason: "None",
        nodes: "n1", restarts: 0, exit_status: 0, submit_s: 1, start_s: 2, expected_s: 0, end_s: 0}]}}' asked >running
    polls=$(asked poll)
    "$hpcgrid" resume m 3>&- 2>log &
    pid=$!
    await polled $((polls + 2))
    before=$(memory_kb)
    mv running poll
    await polled $((polls + 5))
    await grown_less 4096 || { kill -INT $pid; return 1; } # an answer takes 9 MB
    kill -INT $pid
    wait $pid || true
}
