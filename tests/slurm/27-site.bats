#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sites put a program of their own between users and slurmctld (job_submit/lua). What it says must reach the user, and
# what it rewrites or delays must not lose a submission.

load box

setup_file() {
    box_lacks >/dev/null && return 0
    box_up cpu:1x0 MessageTimeout=8 AuthInfo=ttl=90
    box_lua 'return slurm.SUCCESS'
    echo 'JobSubmitPlugins=lua' >>"$SLURM_CONF"
    kill -KILL "$(box_pid slurmctld)"
    box_heal
}

teardown_file() {
    box_down
}

setup() {
    box_setup
    KEY=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
    printf '#!/bin/bash\nexec "$@"\n' >run.sh
}

submit() {
    jq -nc --arg key "$KEY" --arg dir "$PWD" '{id: 1, op: "submit", job: {key: $key, name: "cell", script: ($dir + "/run.sh"),
        work_dir: $dir, output: ($dir + "/hg-" + $key + ".out"), args: ["true"], extra: ["--hold"]}}' | "$AGENT"
}
poll() { agent '{"id":2,"op":"poll"}' | jq -c --arg key "$KEY" '[.ok.jobs[] | select(.key == $key)]'; }

# bats test_tags=commands
@test "a refusal comes in the site's own words" {
    box_lua 'slurm.log_user("No job without a budget.\nAsk at the desk, room 101.") return slurm.ERROR'
    run submit
    echo "$output"
    [ "$(jq -r .error.code <<<"$output")" = refused ]
    [[ "$(jq -r .error.message <<<"$output")" == *"the site's submit plugin refused it"* ]]
    [[ "$(jq -r .error.site <<<"$output")" == *"No job without a budget."*"Ask at the desk, room 101."* ]]
    [ "$(poll)" = "[]" ]
}

# bats test_tags=commands
@test "a remark about a job that is accepted comes along" {
    box_lua 'slurm.log_user("This partition is slow today.") return slurm.SUCCESS'
    run submit
    [[ "$(jq -r .ok.site <<<"$output")" == *"This partition is slow today."* ]]
}

# bats test_tags=commands
@test "a job whose name and comment the site rewrites is still found" {
    box_lua 'job.name = "renamed" job.comment = "site policy 7" return slurm.SUCCESS'
    id=$(submit | jq .ok.job_id)
    [ "$(scontrol show job "$id" | grep -c "JobName=renamed\$\|Comment=site policy 7")" = 2 ]
    [ "$(poll | jq -c '[.[].job_id]')" = "[$id]" ]
}

# bats test_tags=commands
@test "a submit limit is: again, whatever Slurm calls it" {
    box_lua 'return 2050'
    run submit
    [ "$(jq -c '[.error.code, .error.errno]' <<<"$output")" = '["again",2050]' ]
    [[ "$(jq -r .error.message <<<"$output")" == *"a limit of the account or QOS was reached"* ]]
    [[ "$(jq -r .error.hint <<<"$output")" == *"will never be accepted"* ]]
}

@test "a plugin that is slower than the message timeout makes it ambiguous, and the job appears" {
    box_lua 'local now = os.time() while os.time() < now + 10 do end return slurm.SUCCESS'
    run submit
    [ "$(jq -r .error.code <<<"$output")" = ambiguous ]
    box_wait 90 eval '[ "$(poll | jq length)" = 1 ]'
}
