#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A site or a matrix that is corrected in the middle of a sweep: what becomes of cells that are finished, failed and queued. The agent is a Slurm
# of one node that runs a task when it is submitted; what is running meanwhile is in tests/slurm/31-drive.bats.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    cd "$BATS_TEST_TMPDIR" || return 1
    unset HPCGRID_REPORTS "${!SLURM_@}"
    export HPCGRID_SLURM_AGENT=$PWD/agent TASKS=$PWD/tasks
    : >tasks
    cat >agent <<'END'
#!/bin/bash
# The cells whose lines (from 0) stand in $TASKS.stay wait in the queue. $TASKS has a line for each task: job, key, index, state, exit status.
answer() { printf '{"id":%s,"rpcs":1,"ok":%s}\n' "$id" "$1"; }
indices() { tr , '\n' <<<"$1" | awk -F- '{ for (i = $1; i <= $NF; i++) print i }'; }
jobs() {
    awk '{ printf "%s{\"key\":\"%s\",\"job_id\":%s,\"tasks\":\"%s\",\"state\":\"%s\",\"reason\":\"None\",\"nodes\":\"\",\"restarts\":0,\"exit_status\":%s,\"submit_s\":1,\"start_s\":0,\"end_s\":0}",
        (NR > 1 ? "," : ""), $2, $1, $3, $4, $5 }' "$TASKS"
}
# perform SUBMIT-LINE TASK-LINE: one task, as its job was submitted
perform() {
    local args job key i rest code=0
    mapfile -t args < <(jq -r '.job | .script, .args[]' <<<"$1")
    read -r job key i rest <<<"$2"
    SLURM_ARRAY_TASK_ID=$i bash "${args[@]}" >>"$TASKS.log" 2>&1 </dev/null || code=$?
    echo "$job $key $i $([ $code = 0 ] && echo COMPLETED || echo FAILED) $((code << 8))"
}
start_pending() {
    local task
    mv "$TASKS" "$TASKS.old"
    while read -r task; do
        if [[ $task == *" PENDING "* ]]; then perform "$(sed -n "${task%% *}p" "$TASKS.jobs")" "$task"; else echo "$task"; fi
    done <"$TASKS.old" >"$TASKS"
}
submit() {
    local job key array offset i
    read -r key array offset < <(jq -r '.job | "\(.key) \(.array) \(.args[3])"' <<<"$line")
    printf '%s\n' "$line" >>"$TASKS.jobs"
    job=$(wc -l <"$TASKS.jobs")
    for i in $(indices "$array"); do
        if grep -qw $((i + offset)) "$TASKS.stay" 2>/dev/null; then
            echo "$job $key $i PENDING 0"
        else
            perform "$line" "$job $key $i"
        fi
    done >>"$TASKS"
    answer "{\"job_id\":$job,\"site\":\"\"}"
}
cancel() {
    local i job tasks
    read -r job tasks < <(jq -r '"\(.job_id) \(.tasks)"' <<<"$line")
    for i in $(indices "$tasks"); do sed -i "s/^\($job [^ ]* $i \)PENDING/\1CANCELLED/" "$TASKS"; done
    answer '{"gone":false}'
}
if [ "${1:-}" = start ]; then start_pending && exit; fi
while read -r line; do
    [[ $line =~ \"id\":([0-9]+) ]] && id=${BASH_REMATCH[1]}
    [[ $line =~ \"op\":\"([a-z]+)\" ]]
    case ${BASH_REMATCH[1]} in
    limits) answer '{"max_array_size":1001,"max_jobs":10000,"min_job_age_s":300,"ambiguous_s":1,"message_timeout_s":1,"accounting":false,"version":"22.05.8","cluster":"script"}' ;;
    probe) answer '{"start_s":0,"nodes":""}' ;;
    poll)
        [ $((++polls)) -lt 3 ] || [ -e "$TASKS.stay" ] || start_pending
        answer "{\"jobs\":[$(jobs)]}"
        ;;
    *) ${BASH_REMATCH[1]} ;;
    esac
done
END
    chmod +x agent
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "m",
 "site": {"launcher": "env", "env": {"MARK": "old"}, "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
 "workload": {"command": ["sh", "step.sh", "{{i}}"], "time": "5m"}, "axes": {"i": [1, 2, 3]}}
END
    echo '[ $1 != 2 ] || [ -e fixed ] || { echo "step $1: no luck" >&2; exit 3; }; echo $MARK >>ran.$1' >step.sh
    echo 2 >tasks.stay
}

# begin: cell 1 is finished, cell 2 has failed, cell 3 is queued; kept, for `again` to begin from
begin() {
    "$hpcgrid" submit m.json 2>/dev/null
    "$hpcgrid" submit m.json 2>/dev/null
    [ "$("$hpcgrid" status m --no-poll --json | jq -c .counts)" = '{"pending":1,"ok":1,"failed":1}' ]
    rm tasks.stay
    mkdir kept
    cp -a reports tasks tasks.jobs m.json step.sh ran.1 kept
}
again() {
    rm -rf reports ran.* fixed
    cp -a kept/* .
}
counts() { "$hpcgrid" status m --no-poll --json | jq -c '.counts | to_entries | map("\(.key) \(.value)") | join(" ")' -r; }
# what each cell's runs were marked with, "-" for none; and how many submissions there were
ran() { for i in 1 2 3 4; do cat ran.$i 2>/dev/null | paste -sd+ || true; done | sed 's/^$/-/' | paste -sd' '; }
correct() { jq "$1" m.json >new.json && mv new.json m.json; }

@test "what is corrected in a site or a matrix holds for all cells that have no good result" {
    local what change runs jobs look
    begin
    while IFS='|' read -r what change runs jobs look; do
        again
        eval "$change"
        "$hpcgrid" submit m.json >out 2>err
        ./agent start
        echo "--- $what: $(ran) | $(wc -l <tasks.jobs) | $(counts)"
        cat err
        [ "$(ran)" = "$(xargs <<<"$runs")" ]
        [ "$(wc -l <tasks.jobs)" = "$(xargs <<<"$jobs")" ]
        eval "$look"
        [[ $(<err) == *"changed since this run was planned: "* ]]
    done <<'END'
environment       | correct '.site.env.MARK = "new"'            | old - new -     | 1 | grep -q 'site.env.MARK "old" → "new"' err
backend           | correct '.site.hardware.cpu.backend = "cuda"' | old - old -   | 1 | [ "$(jq -r '.batches[0].backend' reports/m/001/plan.json)" = cuda ]
launcher          | correct '.site.launcher = "env MORE=1"'     | old - old -     | 1 | [ "$(jq -c .site.launcher reports/m/001/plan.json)" = '["env","MORE=1"]' ]
partition         | correct '.site.hardware.cpu.partition = "p"' | old - old -    | 2 | [ "$(tail -1 tasks.jobs | jq -c '[.job.partition, .job.array, .job.args[1]]')" = '["p","0","1"]' ]
modules           | correct '.site.modules = ["m"]'             | old - - -       | 2 | grep -q 'module load' reports/m/001/batches/1.sh
time              | correct '.workload.time = "1h"'             | old - old -     | 2 | grep -q 'workload.time "5m" → "1h"' err
time of one cell  | correct '.axes.i = [1, 2]'; correct '.include = [{"i": 3, "time": "1h"}]' | old - old - | 2 | [ "$(tail -1 tasks.jobs | jq .job.time_s)" = 3600 ]
sbatch options    | correct '.workload.sbatch = "--exclusive"'  | old - old -     | 2 | [ "$(tail -1 tasks.jobs | jq -c .job.extra)" = '["--exclusive"]' ]
limits            | correct '.limits.running = 1'               | old - old -     | 1 | :
command           | correct '.workload.command += ["x"]'        | old+old - old - | 2 | grep -q 'has no more: 3 (1 with good results, which stay; 2 that will not run)' err
variable          | correct '.workload.env.MARK = "new"'        | old+new - new - | 2 | grep -q '3 new cells' err
value removed     | correct '.axes.i = [1, 2]'                  | old - - -       | 1 | grep -q CANCELLED tasks
failed removed    | correct '.axes.i = [1, 3]'                  | old - old -     | 1 | [ "$(counts)" = 'pending 1 ok 1 removed 1' ]
finished removed  | correct '.axes.i = [2, 3]'                  | old - old -     | 1 | [ "$(counts)" = 'pending 1 ok 1 failed 1' ]
value added       | correct '.axes.i = [1, 2, 3, 4]'            | old - old old   | 2 | [[ $(<err) != *"submitted again"* ]]
axis added        | correct '.axes.j = [1]'                     | old+old - old - | 2 | :
derived value     | correct '.derive.k = ".i * 2"'              | old+old - old - | 2 | :
repeats           | correct '.repeats = 2'                      | old+old - old+old - | 2 | :
baseline          | correct '.baseline = {"i": 1}'              | old - old -     | 1 | [ "$(jq -s 'map(.baseline != null) | all' reports/m/001/batches/1.cells.jsonl)" = true ]
program           | sed -i 's/luck/more luck/; s/.MARK/new/' step.sh | old - new -  | 1 | grep -q 'step.sh' err
END
}

@test "resume and retry take a correction, or say what differs" {
    begin
    correct '.site.hardware.cpu.partition = "p" | .axes.i += [4]'
    run -1 --separate-stderr "$hpcgrid" resume m
    echo "$stderr"
    [[ "$stderr" == *"site.hardware.cpu.partition \"cpu\" → \"p\""*"cells of the matrix that this run does not have: 1; "* ]]
    [ "$(ran) $(counts)" = "old - old - ok 2 failed 1" ]
    [[ "$stderr" == *"1 cell failed: exit code 3: "*"it printed last: step 2: no luck"*"more: hpcgrid logs $PWD/reports/m/001 "* ]]
    touch fixed
    correct '.workload.time = "1h"'
    run -0 --separate-stderr "$hpcgrid" retry m
    echo "$output$stderr"
    [[ "$output" == *"m/001 · 3 of 3 cells complete"* ]] # results are those of before the correction, too
    [ "$(ran) $(counts)" = "old old old - ok 3" ]
    [ "$(tail -1 tasks.jobs | jq -c '[.job.partition, .job.time_s]')" = '["p",3600]' ]
    # other cells in their places are another sweep
    again
    correct '.workload.command += ["x"]'
    md5sum reports/m/001/*.* >before
    for words in resume retry; do
        run -3 --separate-stderr "$hpcgrid" $words m
        echo "$stderr"
        [[ "$stderr" == *"m.json: error: the matrix has other cells than this run: 3 of 3 are gone, 3 are new (workload.command "*"\`hpcgrid run "* ]]
        md5sum --quiet -c before
    done
    # so is one that cannot be read
    echo '{' >m.json
    run -3 --separate-stderr "$hpcgrid" retry reports/m/001
    [[ "$stderr" == *"m.json:"*"the run's matrix was changed, and is not valid"* ]]
    rm m.json # the run's folder has what it needs
    touch fixed
    "$hpcgrid" retry reports/m/001
    [ "$(ran) $(counts)" = "old old old - ok 3" ]
}

@test "an account of the shell in which a run began is not a correction in another" {
    SBATCH_ACCOUNT=mine "$hpcgrid" submit m.json
    rm tasks.stay
    run -1 --separate-stderr "$hpcgrid" resume m
    echo "$stderr"
    [[ "$stderr" != *changed* ]]
    [ "$(jq -r .job.account tasks.jobs)" = mine ]
}

@test "cells of one array cannot request different things" {
    begin
    correct '.include = [{"i": 3, "sbatch": "--exclusive"}] | .axes.i = [1, 2]'
    run -3 --separate-stderr "$hpcgrid" run m.json
    echo "$stderr"
    [[ "$stderr" == *"batch 1 of this run is one job array, and its cells now request different resources: "*' sbatch="--exclusive"'* ]]
    [ "$(wc -l <tasks.jobs) $(counts)" = "1 pending 1 ok 1 failed 1" ]
    again # what is finished is no obstacle
    correct '.include = [{"i": 1, "sbatch": "--exclusive"}] | .axes.i = [2, 3]'
    run -1 "$hpcgrid" run m.json
    [ "$(ran) $(wc -l <tasks.jobs)" = "old - old - 1" ]
}

@test "a job that was submitted before a correction, or for a cell that is gone, leaves what has changed alone" {
    begin
    "$hpcgrid" exec --help >/dev/null
    task() { SLURM_ARRAY_TASK_ID=2 "$hpcgrid" exec --run reports/m/001 --batch 1 --submission 1 --request "$1"; }
    run task 0123456789abcdef
    [[ "$status $output" == "0 "*"the site or the matrix was corrected after it was submitted"* ]]
    jq '.batches[0].removed = "1-2"' reports/m/001/plan.json >plan && cp plan reports/m/001/plan.json
    run task "$(jq -r '.batches[0].request' plan)"
    [[ "$status $output" == "0 "*"the matrix has no such cell any more"* ]]
    [ ! -e ran.3 ]
}

@test "a cell that comes back into the matrix runs once" {
    begin
    correct '.axes.i = [1]'
    "$hpcgrid" run m.json
    [ "$(ran) $(counts)" = "old - - - ok 1 removed 2" ]
    touch fixed
    correct '.axes.i = [1, 2, 3]'
    "$hpcgrid" run m.json
    [ "$(ran) $(counts)" = "old old old - ok 3" ]
    [ "$(find reports/m/001/cells -name result.json | wc -l)" = 4 ]
}

@test "many failures are a few lines, by cause" {
    rm tasks.stay
    echo '[ $1 -gt 2 ] && echo "rank $1: CUDA out of memory" >&2; echo "slurmstepd-a1: error: *** STEP 1.0 ON a1 CANCELLED ***
srun: error: a1: task 0: Exited" >&2; exit 7' >step.sh
    correct '.axes.i = {"range": [1, 12]} | .workload.command = ["sh", "step.sh", "{{i}}"]'
    run -1 --separate-stderr "$hpcgrid" run m.json
    echo "$stderr"
    [[ "$stderr" == *"10 cells failed: exit code 7: "*" and 7 more"*"it printed last: rank 3: CUDA out of memory"*"2 cells failed: exit code 7: "*"run them again with: hpcgrid retry "* ]]
    [ "$(wc -l <<<"$stderr")" -lt 30 ]
}
