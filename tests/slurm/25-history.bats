#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A box with accounting, and what the database says of jobs that have left the controller's table.

load box
load rest

setup_file() {
    box_accounting_lacks >/dev/null && return 0
    box_up cpu:2x0 --accounting MinJobAge=2 AuthInfo=cred_expire=5
}

teardown_file() {
    box_down
}

teardown() {
    box_tell
    rest_stop
}

setup() {
    box_setup
    if what=$(box_accounting_lacks); then skip "$what"; fi
    KEY=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
    BEGIN=$(($(date +%s) - 60))
    printf '#!/bin/bash\nexec "$@"\n' >run.sh
}

submit() {
    jq -nc --arg key "$KEY" --arg dir "$PWD" '{id: 1, op: "submit", job: ({key: $key, name: "cell", script: ($dir + "/run.sh"),
        work_dir: $dir, output: ($dir + "/hg-" + $key + ".out"), args: ["true"]} | '"${1:-.}"')}' | "$AGENT"
}
history() { agent "{\"id\":2,\"op\":\"history\",\"keys\":[\"$KEY\"],\"since_s\":$BEGIN}" | jq -c '.ok.jobs'; }

# bats test_tags=commands
@test "limits say that there is accounting" {
    [ "$(agent '{"id":1,"op":"limits"}' | jq .ok.accounting)" = true ]
}

account() { agent "{\"id\":3,\"op\":\"account\",\"cluster\":\"${1:-box}\"}" | jq -c .ok; }

# bats test_tags=commands
@test "the user's default account and qos are known, on this cluster only" {
    sacctmgr -i add account physics >log
    sacctmgr -i add user "$(id -un)" account=physics defaultaccount=physics >log
    sacctmgr -i modify user "$(id -un)" where account=physics set qos=normal defaultqos=normal >log
    [ "$(account)" = '{"account":"physics","qos":"normal"}' ]
    [ "$(account elsewhere)" = '{"account":"","qos":""}' ]
}

# bats test_tags=commands
@test "every task of an array is found by its key, with its end" {
    printf '#!/bin/bash\nexit $SLURM_ARRAY_TASK_ID\n' >run.sh
    id=$(submit '.array = "0-2"' | jq .ok.job_id)
    box_wait 90 eval '[ "$(history | jq "[.[] | select(.end_s > 0)] | length")" = 3 ]'
    history | jq -c --argjson id "$id" 'sort_by(.tasks)[] | [.job_id == $id, .tasks, .state, .exit_status / 256, .end_s >= .start_s]' >got
    diff got - <<'END'
[true,"0","COMPLETED",0,true]
[true,"1","FAILED",1,true]
[true,"2","FAILED",2,true]
END
}

# v0.0.38 calls every exit code 0; who asks over a Unix socket needs no token.
@test "slurmrestd tells the same, but for exit codes" {
    rest_need
    rest_start rest_auth/local accounts
    URL=unix:$REST_SOCKET
    printf '#!/bin/bash\nexit $SLURM_ARRAY_TASK_ID\n' >run.sh
    submit '.array = "0-2"' | is_ok
    box_wait 90 eval '[ "$(history | jq "[.[] | select(.end_s > 0)] | length")" = 3 ]'
    rest "{\"id\":2,\"op\":\"history\",\"keys\":[\"$KEY\"],\"since_s\":$BEGIN}" >answer
    cat answer
    diff <(jq -c '.ok.jobs | sort_by(.tasks)[] | del(.exit_status)' answer) <(history | jq -c 'sort_by(.tasks)[] | del(.exit_status)')
    [ "$(rest '{"id":1,"op":"limits"}' | jq '.ok.accounting and .ok.cluster == "box"')" = true ]
    [ "$(rest '{"id":3,"op":"account","cluster":"box"}' | jq '.ok | has("account") and has("qos")')" = true ] # v0.0.38 names no default
}

@test "a job that was requeued is told once, with the count of its restarts" {
    id=$(submit '.args = ["sleep", "1000"] | .requeue = true' | jq .ok.job_id)
    box_wait 90 eval '[ "$(squeue -h -j "$id" -o %T)" = RUNNING ]'
    scontrol requeue "$id"
    # Slurm would wait two minutes: the first node may still hold the first run's credential for revoked.
    box_wait 90 eval 'scontrol update "jobid=$id" excnodelist=cpu-1 starttime=now 2>errors'
    box_wait 90 eval '[ "$(squeue -h -j "$id" -o "%T %N")" = "RUNNING cpu-2" ]'
    scancel "$id"
    box_wait 90 eval '[ "$(history | jq -c "[.[] | [.state, .restarts]]")" = "[[\"CANCELLED\",1]]" ]'
}

@test "a job that is cancelled before it runs again is told as requeued" {
    id=$(submit '.args = ["sleep", "1000"] | .requeue = true' | jq .ok.job_id)
    box_wait 90 eval '[ "$(squeue -h -j "$id" -o %T)" = RUNNING ]'
    scontrol requeue "$id"
    scancel "$id"
    box_wait 90 eval '[ "$(history | jq -c "[.[] | [.state, .restarts]]")" = "[[\"REQUEUED\",0]]" ]'
}

# bats test_tags=commands
@test "other keys and other times are not told" {
    submit | is_ok
    # a job that has not ended belongs to all later times
    box_wait 90 eval '[ "$(history | jq "map(select(.end_s > 0)) | length")" = 1 ]'
    [ "$(agent "{\"id\":2,\"op\":\"history\",\"keys\":[\"00000000000000000000000000000000\"],\"since_s\":$BEGIN}" | jq -c .ok.jobs)" = "[]" ]
    [ "$(agent "{\"id\":2,\"op\":\"history\",\"keys\":[\"$KEY\"],\"since_s\":$(($(date +%s) + 3600))}" | jq -c .ok.jobs)" = "[]" ]
}

@test "a slurmdbd that is gone is an error, not an empty answer" {
    kill -KILL "$(box_pid slurmdbd)"
    run agent "{\"id\":2,\"op\":\"history\",\"keys\":[\"$KEY\"],\"since_s\":$BEGIN}"
    answer=$output
    box_heal
    echo "$answer"
    [ "$(jq -r .ok <<<"$answer")" = null ]
    [[ "$(jq -r .error.code <<<"$answer")" =~ ^(env|again)$ ]]
    submit | is_ok
    box_wait 90 eval '[ "$(history | jq length)" = 1 ]'
}
