#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid-slurm against a real slurmctld: slurm/README.md is the contract.

load box
load requests
load rest

setup_file() {
    box_lacks >/dev/null && return 0
    # the timeout is for a controller that is busy; tests that freeze it have a box of their own
    box_up a100:2x2 MaxArraySize=1001 MaxJobCount=5000 MessageTimeout=30 AuthInfo=ttl=90
}

teardown_file() {
    box_down
}

setup() {
    box_setup
    FILE_BOX=$BOX
    requests_setup
}

teardown() {
    box_tell
    middleman_stop
    if [ "$BOX" != "$FILE_BOX" ]; then
        box_down
        return
    fi
    box_clear
}

ask() { agent "$@"; }

# bats test_tags=commands
@test "every answer has the id of its request, and bad requests are answered" {
    agent '{"id":"a","op":"hello"}' 'nonsense' '[1]' '{"id":7,"op":"dance"}' '{"id":8}' '{"id":9,"op":"quit"}' '{"id":10,"op":"hello"}' >got
    [ "$(jq -c .id got | tr '\n' ' ')" = '"a" null null 7 8 9 ' ]
    [ "$(jq -r '.error.code // "ok"' got | tr '\n' ' ')" = "ok bug bug bug bug ok " ]
    [ "$(head -1 got | jq .ok.protocol)" = 1 ]
}

# bats test_tags=commands
@test "limits are the controller's" {
    agent '{"id":1,"op":"limits"}' | jq -c '.ok | del(.version)' >got
    diff got - <<'END'
{"max_array_size":1001,"max_jobs":5000,"min_job_age_s":300,"ambiguous_s":90,"message_timeout_s":30,"accounting":false,"cluster":"box"}
END
}

@test "an array of 1,000 is one message, and its tasks run" {
    run submit '.array = "0-999" | .running_max = 20'
    [ "$(jq .rpcs <<<"$output")" = 1 ]
    id=$(jq .ok.job_id <<<"$output")
    [ "$id" -gt 0 ]
    box_wait 90 eval '[ "$(poll | jq "[.[] | select(.state != \"PENDING\")] | length")" -ge 20 ]'
    poll >got
    # One record for the rest, one for each task that has started; together every index once.
    [ "$(jq '[.[] | select(.state == "PENDING")] | length <= 2' got)" = true ]
    [ "$(jq '[.[].tasks | split(",")[] | split("-") | if length == 2 then [range(.[0] | tonumber; (.[1] | tonumber) + 1)][] else .[0] | tonumber end] | sort == [range(1000)]' got)" = true ]
    [ "$(jq -c '[.[].job_id] | unique' got)" = "[$id]" ]
    agent "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id}" | is_ok
}

# bats test_tags=commands
@test "a scattered rest of 500 tasks is told in full" {
    id=$(submit '.array = "0-999" | .args = ["sleep", "1000"] | .licenses = "core:1" | .extra = ["--hold"]' | jq .ok.job_id)
    odd=$(seq -s, 1 2 999)
    run agent "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id,\"tasks\":\"$odd\"}"
    echo "$output"
    [ "$(jq -c '[.ok.gone, .rpcs]' <<<"$output")" = "[false,1]" ]
    [ "$(poll | jq -r '.[] | select(.state == "PENDING") | .tasks')" = "$(seq -s, 0 2 998)" ]
}

# bats test_tags=commands
@test "an array that is cancelled before any task has started stays known" {
    id=$(submit '.array = "0-99" | .extra = ["--hold"]' | jq .ok.job_id)
    agent "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id}" | is_ok
    [ "$(poll | jq -c '[.[] | [.tasks, .state]]')" = '[["0-99","CANCELLED"]]' ]
}

@test "cancelled by its tasks it stays known, too, but Slurm forgets which they were" {
    id=$(submit '.array = "0-99" | .extra = ["--hold"]' | jq .ok.job_id)
    agent "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id,\"tasks\":\"0-99\"}" | is_ok
    [ "$(poll | jq -c '[.[] | [.tasks, .state]]')" = '[["","CANCELLED"]]' ]
}

# bats test_tags=commands
@test "hold keeps tasks from starting, and lets go of what its user may" {
    id=$(submit '.array = "0-999" | .running_max = 2 | .args = ["sleep", "1000"]' | jq .ok.job_id)
    box_wait 90 eval '[ "$(poll | jq "[.[] | select(.state == \"RUNNING\")] | length")" = 2 ]'
    hold() { agent "{\"id\":1,\"op\":\"hold\",\"job_id\":${3:-$id},\"held\":$1${2:+,\"tasks\":\"$2\"}}"; }
    held() { poll | jq -r --arg reason "$1" '.[] | select(.state == "PENDING" and .reason == $reason) | .tasks'; }
    [ "$(hold true "" | jq -c '[.ok, .rpcs]')" = '[{"gone":false},1]' ]
    [ "$(held JobHeldUser)" = 2-999 ]
    [ "$(poll | jq -r '[.[] | select(.state == "RUNNING")] | length')" = 2 ]
    odd=$(seq -s, 3 2 999)
    [ "$(hold false "0-2,$odd" | jq -c '[.ok, .rpcs]')" = '[{"gone":false},1]' ]
    [ "$(held JobHeldUser)" = "$(seq -s, 4 2 998)" ]
    [ "$(hold true 0-999,1000 | jq -c .ok)" = '{"gone":false}' ]
    [ "$(poll | jq '[.[] | select(.state == "PENDING" and .reason != "JobHeldUser")] | length')" = 0 ]
    agent "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id}" | is_ok
    box_wait 90 all_ended
    [ "$(hold true "" | jq -c .ok)" = '{"gone":false}' ]
    [ "$(hold false "" 999999 | jq -c .ok)" = '{"gone":true}' ]
    [ "$(hold 1 "" | jq -r .error.code)" = bug ]
    [ "$(hold true 1-a | jq -r .error.code)" = bug ]
}

# bats test_tags=commands
@test "states, exit codes and times of tasks come back" {
    printf '#!/bin/bash\nexit $((SLURM_ARRAY_TASK_ID * 3))\n' >run.sh
    submit '.array = "0-1"' | is_ok
    box_wait 90 all_ended
    poll | jq -c 'sort_by(.tasks)[] | [.tasks, .state, .exit_status / 256, .restarts, .start_s >= .submit_s, .end_s >= .start_s]' >got
    diff got - <<'END'
["0","COMPLETED",0,0,true,true]
["1","FAILED",3,0,true,true]
END
}

# bats test_tags=commands
@test "the key travels in comment, name and output" {
    id=$(submit '.extra = ["--hold"]' | jq .ok.job_id)
    scontrol show job "$id" >got
    grep -q "JobName=cell.hg-$KEY\$" got
    grep -q "Comment=hg-$KEY *\$" got
    grep -q "StdOut=.*/hg-${KEY}_" got
    # A site may rewrite two of them.
    scontrol update "jobid=$id" comment=x name=y
    [ "$(poll | jq length)" = 1 ]
}

# bats test_tags=commands
@test "tasks that share one output file all add to it, and are found by its name" {
    printf '#!/bin/bash\necho "task $SLURM_ARRAY_TASK_ID"\n' >run.sh
    echo before >"hg-$KEY.out"
    id=$(submit '.array = "0-3" | .output = "'"$PWD/hg-$KEY.out"'" | .extra = ["--hold"]' | jq .ok.job_id)
    scontrol update "jobid=$id" comment=x name=y
    [ "$(poll | jq -c '[.[].tasks]')" = '["0-3"]' ]
    scontrol release "$id"
    box_wait 90 all_ended
    [ "$(sort "hg-$KEY.out" | paste -sd,)" = "before,task 0,task 1,task 2,task 3" ]
}

# bats test_tags=commands
@test "a poll is one question: nobody is asked for a federation" {
    sdiag -r
    [ "$(agent '{"id":1,"op":"poll"}' '{"id":2,"op":"poll"}' '{"id":3,"op":"poll"}' |
        jq -sc 'map(has("ok") and .cpu_s > 0)')" = '[true,true,true]' ]
    sdiag >got
    sed -n '/message type/,/^$/p' got
    grep -q 'REQUEST_JOB_USER_INFO .* count:3 \|REQUEST_JOB_INFO .* count:[36] ' got # squeue asks in its own way
    [ "$(grep -c FED_INFO got)" = 0 ]
}

@test "jobs without a key are nobody's business" {
    sbatch -H -D "$PWD" -o /dev/null --wrap true >/dev/null
    [ "$(agent '{"id":2,"op":"poll"}' | jq -c '[.ok.jobs[] | select(.state == "PENDING")]')" = "[]" ]
}

# bats test_tags=commands
@test "fields reach the job as sbatch would send them" {
    core=core:$(nproc) # the box has no more of them
    id=$(submit '. + {nodes: 2, tasks_per_node: 2, cpus_per_task: 32, gres: "gpu:a100:2", mem_mib: 4096, time_s: 3600,
        partition: "a100", constraint: "a100", licenses: "'"$core"'", requeue: true, extra: ["--hold", "--exclude=a100-9", "--nice=7"]}
        | del(.extra[1])' | jq .ok.job_id)
    other=$(sbatch --parsable -H -N 2 --ntasks-per-node=2 -c 32 --gres=gpu:a100:2 --mem=4096 -t 60 -p a100 -C a100 -L "$core" \
        --requeue --nice=7 -o "$PWD/hg-${KEY}_%a.out" -D "$PWD" -J "cell.hg-$KEY" --comment "hg-$KEY" run.sh true)
    # What differs by nature: the id, when it was looked at, what was typed, and in which session.
    clean() {
        scontrol show job "$1" | grep -v 'Priority=\|Time=\|LastSchedEval\|Command=\|SubmitLine=' |
            sed 's/JobId=[0-9]*//; s/AllocNode:Sid=.*//'
    }
    diff <(clean "$id") <(clean "$other")
}

@test "the job's environment holds no secret of the caller" {
    export MY_API_KEY=canary WANDB_API_KEY=canary LC_TIME=C
    printf '#!/bin/bash\nenv >env.txt\n' >run.sh
    submit '. + {nodes: 1, tasks_per_node: 2, cpus_per_task: 3}' | is_ok
    box_wait 90 all_ended
    run grep -c canary env.txt
    [ "$output" = 0 ]
    for line in SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=2 SLURM_CPUS_PER_TASK=3 "SLURM_SUBMIT_DIR=$PWD" "SLURM_CONF=$SLURM_CONF" LC_TIME=C; do
        grep -qx "$line" env.txt
    done
    sbatch -W -N 1 --ntasks-per-node=2 -c 3 -o /dev/null --wrap 'env >sbatch.txt' >/dev/null
    # the agent always appends; whether a job sees that depends on Slurm's release
    names() { sed -n '/^SLURM_OPEN_MODE=/!s/^\(SLURM_[A-Z_]*\)=.*/\1/p' "$1" | sort; }
    diff <(names env.txt) <(names sbatch.txt)
}

@test "USR1 comes to the steps before the time limit" {
    # Slurm looks at limits every 30 s, counts in minutes and may be early: with a lead of 58 s of 60 the signal comes at its
    # next look. Should that be before the step can hear it, it dies of it, or never gets it: once more then.
    printf '#!/bin/bash\nsrun bash -c '\''trap "echo told; exit 0" USR1; echo ready; for i in $(seq 350); do sleep 0.1; done'\''\n' >run.sh
    for try in 1 2 3 4 5; do
        submit '. + {time_s: 60, signal_lead_s: 58}' | is_ok
        box_wait 120 all_ended
        grep -qx told hg-"${KEY}"_*.out && break
        cat hg-"${KEY}"_*.out
        KEY=$try${KEY:1}
    done
    grep -qx told hg-"${KEY}"_*.out
}

# bats test_tags=commands
@test "refusals are for good and name what was asked" {
    cases() {
        echo '2000|.partition = "nope"|partition nope'
        echo '2014|.gres = "gpu:a100:9"|gres'
        echo '2072|.gres = "tpu:1"|gres'
        echo '2081|.array = "0-5000"|'
        echo '2048|.licenses = "gold:1"|'
        echo '0|.extra = ["--export=ALL"]|--export: use'
        echo '0|.work_dir = "/nonexistent"|work_dir "/nonexistent": is not a folder'
        echo '0|.output = "/nonexistent/hg-" + .key|folder of the output "/nonexistent": is not a folder'
        echo '0|.script = "/nonexistent"|script: cannot read /nonexistent'
        echo '0|.name = "a\nb"|control character'
    }
    while IFS='|' read -r number change text; do
        run submit "$change"
        echo "$change: $output"
        [ "$(jq -r .error.code <<<"$output")" = refused ]
        [ "$(jq -r .error.errno <<<"$output")" = "$number" ]
        [[ "$(jq -r .error.message <<<"$output")" == *"$text"* ]]
    done < <(cases)
}

# bats test_tags=commands
@test "a job object that breaks the protocol is told so" {
    for change in 'del(.key)' '.key = "12"' '.output = "/tmp/x"' '.nodes = "2"' '.partitoin = "x"' '.array = "0-3%2"'; do
        run submit "$change"
        echo "$change: $output"
        [ "$(jq -r .error.code <<<"$output")" = bug ]
        [ "$(jq -r .rpcs <<<"$output")" = 0 ]
    done
}

# bats test_tags=commands
@test "probe says whether a job could run, and submits nothing" {
    run agent "{\"id\":1,\"op\":\"probe\",\"job\":$(job '.nodes = 2 | .gres = "gpu:a100:2"')}"
    [ "$(jq -r .ok.nodes <<<"$output")" = "a100-[1-2]" ]
    run agent "{\"id\":1,\"op\":\"probe\",\"job\":$(job '.nodes = 3 | .partition = "a100"')}"
    [ "$(jq -r .error.code <<<"$output")" = refused ]
    [ "$(poll)" = "[]" ]
}

# bats test_tags=commands
@test "a full job table is: again" {
    for i in 1 2 3 4 5 6; do
        KEY=$i${KEY:1}
        run submit '.array = "0-999" | .extra = ["--hold"]'
        [ "$(jq .ok <<<"$output")" != null ] || break
    done
    echo "$output"
    [ "$(jq -r .error.code <<<"$output")" = again ]
    [[ "$(jq -r .error.message <<<"$output")" == *MaxJobCount* ]]
}

# bats test_tags=commands
@test "cancel: what has ended is fine, what is unknown is gone" {
    id=$(submit '.array = "0-3"' | jq .ok.job_id)
    box_wait 90 all_ended
    [ "$(agent "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id}" | jq -c .ok)" = '{"gone":false}' ]
    [ "$(agent "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id,\"tasks\":\"0-1\"}" | jq -c .ok)" = '{"gone":false}' ]
    [ "$(agent '{"id":1,"op":"cancel","job_id":999999}' | jq -c .ok)" = '{"gone":true}' ]
}

@test "history is refused where nothing is accounted" {
    run agent '{"id":1,"op":"history","keys":["x"],"since_s":0}'
    [ "$(jq -r .error.code <<<"$output")" = env ]
    [ "$(jq -r .error.message <<<"$output")" = "this cluster has no accounting" ]
}

# bats test_tags=commands
@test "partitions and nodes" {
    [ "$(agent '{"id":1,"op":"partitions"}' | jq -c '[.ok.partitions[] | [.name, .default, .up, .nodes]]')" = \
        '[["box",true,true,"a100-[1-2]"],["a100",false,true,"a100-[1-2]"]]' ]
    [ "$(agent '{"id":1,"op":"nodes"}' | jq -c '[.ok.nodes[] | [.name, .cpus, .gres]]')" = \
        '[["a100-1",64,"gpu:a100:2"],["a100-2",64,"gpu:a100:2"]]' ]
}

# freezable: a box of the test's own that gives up soon
freezable() {
    box_up cpu:1x0 MessageTimeout=3 AuthInfo=ttl=8
    [ "$BOX" != "$FILE_BOX" ]
}

@test "a frozen slurmctld: the submission is ambiguous, and may appear later under its key" {
    freezable
    pid=$(box_pid slurmctld)
    kill -STOP "$pid"
    run submit '.extra = ["--hold"]'
    kill -CONT "$pid"
    [ "$(jq -r .error.code <<<"$output")" = ambiguous ]
    box_wait 90 eval '[ "$(poll | jq length)" = 1 ]'
}

@test "a slurmctld that wakes up after the credential's life takes the submission no more" {
    freezable
    pid=$(box_pid slurmctld)
    kill -STOP "$pid"
    run submit '.extra = ["--hold"]'
    answer=$output
    dead=$(($(date +%s) + 10)) # by then the credential is older than its 8 s
    run agent '{"id":2,"op":"poll"}'
    box_wait 90 eval '[ "$(date +%s)" -ge $dead ]'
    kill -CONT "$pid"
    [ "$(jq -r .error.code <<<"$answer")" = ambiguous ]
    [ "$(jq -r .error.code <<<"$output")" = again ]
    box_wait 90 eval 'agent "{\"id\":2,\"op\":\"poll\"}" | is_ok'
    [ "$(poll)" = "[]" ]
}

@test "no slurmctld: env, soon, and it works again afterwards" {
    freezable
    kill -KILL "$(box_pid slurmctld)"
    SECONDS=0
    run submit
    waited=$SECONDS
    box_heal
    [ "$(jq -r .error.code <<<"$output")" = env ]
    [[ "$(jq -r .error.hint <<<"$output")" == *"is slurmctld running"* ]]
    [ $waited -lt 45 ]
    submit '.extra = ["--hold"]' | is_ok
}

# bats test_tags=commands
@test "no munged: env, and the message names munge" {
    kill -KILL "$(box_pid munged)"
    SECONDS=0
    run submit
    waited=$SECONDS
    box_heal
    [ $waited -lt 45 ]
    [ "$(jq -r .error.code <<<"$output")" = env ]
    [[ "$(jq -r .error.message <<<"$output")" == "munge does not answer at $BOX_DIR/munge/sock"* ]]
    [[ "$(jq -r .error.hint <<<"$output")" == *"is munged running"* ]]
}

@test "a frozen munged: env, soon, and the message names munge" {
    freezable
    pid=$(box_pid munged)
    kill -STOP "$pid"
    SECONDS=0
    run submit
    waited=$SECONDS
    kill -CONT "$pid"
    echo "$output"
    [ $waited -lt 45 ]
    [ "$(jq -r .error.code <<<"$output")" = env ]
    [[ "$(jq -r .error.message <<<"$output")" == "munge does not answer at $BOX_DIR/munge/sock within"* ]]
    [ "$(jq -r .rpcs <<<"$output")" = 0 ]
    submit '.extra = ["--hold"]' | is_ok
}

# bats test_tags=commands
@test "a controller whose words are not understood: unfit, and by itself hpcgrid goes another way" {
    local mode command
    mkdir bin
    for command in sbatch squeue scancel scontrol sacct; do # these belong to the site
        printf '#!/bin/sh\nSLURM_CONF=%s exec %s "$@"\n' "$SLURM_CONF" "$(command -v $command)" >bin/$command
    done
    chmod +x bin/*
    for mode in drop page; do
        UPSTREAM=$T middleman $mode "" 1000
        sed "s/^SlurmctldPort=.*/SlurmctldPort=${URL##*:}/" "$SLURM_CONF" >other.conf
        SLURM_CONF=$PWD/other.conf run agent '{"id":1,"op":"limits"}'
        echo "$output"
        [ "$(jq -c '[.error.code, .error.unfit]' <<<"$output")" = '["again",true]' ]
        SLURM_CONF=$PWD/other.conf run submit
        [ "$(jq -c '[.error.code, .error.unfit]' <<<"$output")" = '["ambiguous",null]' ]
        jq -n --arg name $mode '{hpcgrid: 1, name: $name, site: {hardware: {cpu: {partition: "box", gpus_per_node: 0}}, default: "cpu"},
            workload: {command: ["true"], launch: [], time: "5m"}, axes: {i: [1, 2]}}' >m.json
        HPCGRID_SLURM_AGENT='' HPCGRID_TRANSPORT=auto SLURM_CONF=$PWD/other.conf PATH=$PWD/bin:$PATH "$HPCGRID" run m.json
        [ "$("$HPCGRID" status $mode --json | jq -c '[.counts, .transport]')" = '[{"ok":2},"cli"]' ]
        middleman_stop
    done
}

@test "no slurm.conf: env, and not after a minute as libslurm has it" {
    request="{\"id\":1,\"op\":\"submit\",\"job\":$(job)}"
    for conf in -uSLURM_CONF SLURM_CONF=/nonexistent/slurm.conf; do
        if [ "$conf" = -uSLURM_CONF ] && [ -e /etc/slurm/slurm.conf ]; then continue; fi
        SECONDS=0
        run env "$conf" "$AGENT" <<<"$request"
        [ $SECONDS -lt 30 ]
        [ "$(jq -r .error.code <<<"$output")" = env ]
        [[ "$(jq -r .error.message <<<"$output")" == *SLURM_CONF* ]]
    done
}

# bats test_tags=commands
@test "a slurm.conf that libslurm cannot live with is told before it ends the program" {
    echo 'ClusterName=' >bad.conf
    SLURM_CONF=$PWD/bad.conf run agent '{"id":5,"op":"limits"}'
    echo "$output"
    [ "$(jq -c .id <<<"$output")" = 5 ]
    [ "$(jq -r .error.code <<<"$output")" = env ]
}
