#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A run belongs to the folder that it was planned in, and to the cluster that has its jobs: copies, moves, links, and a
# scheduler that is away. The agent is a shell script, as in 50-run.bats.

bats_require_minimum_version 1.5.0

load ../await
load ../agent

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    # what a shell would read
    HERE="$BATS_TEST_TMPDIR/it's a \"folder\" of \$HOME; exec --run x"
    mkdir "$HERE"
    cd "$HERE" || return 1
    unset "${!SLURM_@}" HPCGRID_REPORTS
    agent "$BATS_TEST_TMPDIR"
    cat >m.json <<'END2'
{"hpcgrid": 1, "name": "m", "site": {"launcher": "srun", "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
 "workload": {"command": ["true"], "time": "5m"}, "axes": {"i": {"range": [1, 4]}}}
END2
}

teardown() { nothing_left; }

refuse() { printf '{"error":{"code":"%s","errno":%d,"message":"%s","site":""}}' "$2" "$3" "$4" >"$ANSWERS/$1"; }
asked() { jq -r .op "$ASKED" | grep -c "^$1\$" || true; }
# table STATE EXIT: what Slurm says of the four tasks of the last submission
table() {
    answer poll "$(jq -sc --arg state "$1" --argjson exit "$2" 'map(select(.op == "submit")) | last | {jobs: [{key: .job.key, job_id: 17,
        tasks: .job.array, state: $state, reason: "None", nodes: "", restarts: 0, exit_status: $exit, submit_s: 1, start_s: 0, end_s: 0}]}' "$ASKED")"
}
inventory() { find "$1" -printf '%P %m %y %T@\n' | sort && find "$1" -type f -print0 | sort -z | xargs -0 md5sum; }
counts() { "$hpcgrid" status "$1" --no-poll --json 2>/dev/null | jq -c .counts; }

# refused RUN TEXT: every command that writes to a run or tells Slurm of its jobs says this, changes nothing and tells nobody
refused() {
    local words
    inventory reports >"$BATS_TEST_TMPDIR/before"
    cp "$ASKED" "$BATS_TEST_TMPDIR/asked.before"
    for words in resume watch retry cancel hold release collect "fsck --repair"; do
        # shellcheck disable=SC2086
        run --separate-stderr timeout 60 "$hpcgrid" $words "$1"
        echo "$words: $status $output $stderr"
        [ "$status" = 4 ]
        [[ "$stderr" == "hpcgrid: error: $2"* ]]
    done
    inventory reports >"$BATS_TEST_TMPDIR/after"
    diff "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
    cmp "$ASKED" "$BATS_TEST_TMPDIR/asked.before"
}

@test "a copy is refused by every command that writes or submits, and can be read" {
    "$hpcgrid" submit m.json >/dev/null
    local run_dir=$PWD/reports/m/001 copy=$PWD/reports/m/002 next
    next="continue with that one, or begin a new run: hpcgrid run MATRIX --new; a copy can only be read (status, report, logs)"
    cp -a "$run_dir" "$copy"
    refused m/002 "$copy is a copy of $run_dir, where its jobs would run"$'\n'"  $next"
    for words in "run" "submit"; do # the newest of its name
        run --separate-stderr "$hpcgrid" $words m.json
        [ "$status" = 4 ]
        [[ "$stderr" == "hpcgrid: error: $copy is a copy of $run_dir, where its jobs would run"$'\n'"  $next" ]]
    done
    [ "$(asked submit)" = 1 ]
    run --separate-stderr "$hpcgrid" status m/002 --no-poll
    [ "$status" = 0 ]
    [ "$stderr" = "hpcgrid: warning: $copy is a copy of $run_dir, where its jobs would run; here it can only be read (status, report, logs)" ]
    [[ "$output" == *"4 cells: pending 4"* ]]
    [[ "$output" != *resume* ]]
    inventory "$copy" >"$BATS_TEST_TMPDIR/before"
    run --separate-stderr "$hpcgrid" report m/002
    [ "$status" = 1 ]
    [[ "$stderr" == *"warning: $copy is a copy of $run_dir,"* ]]
    [[ "$output" == *"partial: 0 of 4 cells complete"* ]]
    inventory "$copy" >"$BATS_TEST_TMPDIR/after"
    diff "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
    run --separate-stderr "$hpcgrid" fsck m/002 --json
    [ "$status" = 1 ]
    [ "$(jq -c '.findings | map([.severity, .code, .file, .next])' <<<"$output")" = "$(jq -cn --arg next "$next" '[["warning", "copy", "plan.json", $next]]')" ]
    # the original is as it was, and a new run may begin
    run --separate-stderr "$hpcgrid" status m/001 --no-poll
    [ -z "$stderr" ]
    run --separate-stderr "$hpcgrid" submit m.json --new
    [ "$output" = "$PWD/reports/m/003" ]
    table PENDING 0
    "$hpcgrid" hold m/001
}

@test "a copy is known by its scripts, too: plans of an older version name no folder" {
    "$hpcgrid" submit m.json >/dev/null
    jq 'del(.folder)' reports/m/001/plan.json >plan && cp plan reports/m/001/plan.json
    "$hpcgrid" submit m.json >/dev/null # at home it is written down
    [ "$(jq -r .folder reports/m/001/plan.json)" = "$PWD/reports/m/001" ]
    cp plan reports/m/001/plan.json
    cp -a reports/m/001 reports/m/002
    refused m/002 "$PWD/reports/m/002 is a copy of $PWD/reports/m/001, where its jobs would run"
    run --separate-stderr "$hpcgrid" fsck m/002 --json
    [ "$(jq -c '.findings | map([.code, .file]) | unique' <<<"$output")" = '[["copy","batches/1.sh"],["copy","plan.json"]]' ]
}

@test "a moved run is refused with its jobs, and goes on once it is back or a link leads to it" {
    "$hpcgrid" submit m.json >/dev/null
    local run_dir=$PWD/reports/m/001 away=$PWD/reports/line$'\n'"break" text
    mv "$run_dir" "$away"
    text="$away was moved or copied: its jobs would run in $run_dir (which is not there)"
    refused "$away" "${text//$'\n'/$'\n'  }; by its journal 4 pending and 0 running: those that start or end before it is back will fail"$'\n'"  move it back and \`hpcgrid resume\` it, or begin a new run: hpcgrid run MATRIX --new; here it can only be read (status, report, logs)"
    run --separate-stderr "$hpcgrid" status "$away" --no-poll
    [ "$status" = 0 ]
    [ "$stderr" = "hpcgrid: warning: $text; here it can only be read (status, report, logs)" ]
    run --separate-stderr "$hpcgrid" fsck "$away" --json
    [ "$(jq -c '.findings | map([.severity, .code, .file])' <<<"$output")" = '[["warning","script-folder","plan.json"]]' ]
    # something else is in its place
    mkdir "$run_dir"
    run --separate-stderr "$hpcgrid" resume "$away"
    [ "$status" = 4 ]
    [[ "$stderr" == *"would run in $run_dir (which is another folder now); by its journal 4 pending"* ]]
    rmdir "$run_dir"
    table PENDING 0
    ln -s "$away" "$run_dir"
    run --separate-stderr "$hpcgrid" hold "$away"
    [ "$status" = 0 ]
    run --separate-stderr "$hpcgrid" release "$away"
    [ "$status" = 0 ]
    rm "$run_dir"
    mv "$away" "$run_dir"
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 0 ]
    [ -z "$(grep warning <<<"$stderr")" ]
    ln -s "$run_dir" link
    run --separate-stderr "$hpcgrid" cancel link
    [ "$status" = 0 ]
    [ "$(asked submit)" = 1 ]
}

@test "what Slurm could not start while the folder was away is submitted again by the next driver, once" {
    "$hpcgrid" submit m.json >/dev/null
    rmdir reports/m/001/logs
    table FAILED 53
    run --separate-stderr "$hpcgrid" status m --cells
    [[ "$output" == *"FAILED: Slurm could not open the job's output or working directory (its exit code 53): was the run's folder moved?"* ]]
    [[ "$output" != *"ignal 53"* ]]
    # the next ones of the agent fail, too
    sed -i '/jq -c --slurp/a\    [ "$op" != submit ] || jq -c --argjson job "$(jq -c .job <<<"$line")" ".ok.jobs[0].key = \\$job.key" "$ANSWERS/poll" >"$ANSWERS/new" \&\& [ ! -s "$ANSWERS/new" ] || mv "$ANSWERS/new" "$ANSWERS/poll"' "$HPCGRID_SLURM_AGENT"
    run --separate-stderr timeout 60 "$hpcgrid" resume m
    echo "$stderr"
    [ "$status" = 1 ]
    [ "$(asked submit)" = 2 ]
    [ -d reports/m/001/logs ]
    [ "$(jq -r 'select(.op == "submit") | .job.args[1]' "$ASKED" | sort -u)" = 1 ] # under the old claim
    [ "$(counts m)" = '{"failed":4}' ]
    [[ "$stderr" == *": failed: the job ended without a result (FAILED: Slurm could not open the job's output or working directory (its exit code 53): was the run's folder moved?)"* ]]
}

@test "a run is not driven in another cluster than that of its jobs" {
    "$hpcgrid" submit m.json >/dev/null
    [ "$(jq -r 'select(.kind == "open") | .cluster' reports/m/001/events.jsonl)" = script ]
    limits Script
    "$hpcgrid" submit m.json >/dev/null
    limits other
    inventory reports >"$BATS_TEST_TMPDIR/before"
    for words in "resume m" "watch m" "retry m" "cancel m" "hold m" "release m" "submit m.json" "run m.json"; do
        # shellcheck disable=SC2086
        run --separate-stderr timeout 60 "$hpcgrid" $words
        echo "$words: $stderr"
        [ "$status" = 4 ]
        [[ "$stderr" == *"error: $PWD/reports/m/001 was submitted to cluster Script, and this is cluster other"$'\n'"  continue where Script is the cluster (SLURM_CONF), or begin a new run: hpcgrid run MATRIX --new" ]]
    done
    inventory reports >"$BATS_TEST_TMPDIR/after"
    diff <(grep -v '^m/001 ' "$BATS_TEST_TMPDIR/before") <(grep -v '^m/001 ' "$BATS_TEST_TMPDIR/after") # locks came and went
    [ "$(asked submit)" = 1 ]
    [ "$(asked cancel)" = 0 ]
}

@test "a run of which nothing was submitted has no past: it is planned anew where it is" {
    refuse probe refused 2000 "no such account"
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 4 ]
    [ -e reports/m/001/plan.json ]
    mv reports moved
    answer probe '{"start_s":0,"nodes":""}'
    limits other
    run --separate-stderr "$hpcgrid" resume "$PWD/moved/m/001" # its scripts are of another place
    [ "$status" = 4 ]
    run --separate-stderr "$hpcgrid" submit m.json --reports moved
    [ "$status" = 0 ]
    [ "$output" = "$PWD/moved/m/001" ]
    [ "$(jq -r .folder moved/m/001/plan.json)" = "$PWD/moved/m/001" ]
    [ "$(jq -r 'select(.op == "submit") | .job.work_dir' "$ASKED")" = "$PWD/moved/m/001" ]
}

@test "every command says the same of a run without plan.json" {
    "$hpcgrid" submit m.json >/dev/null
    rm reports/m/001/plan.json
    local text="$PWD/reports/m/001 has no plan.json" words
    local next="restore it from a backup, or begin a new run: hpcgrid run MATRIX --new"
    for words in "resume m" "watch m" "retry m" "collect m" "report m" "run m.json" "submit m.json"; do
        # shellcheck disable=SC2086
        run --separate-stderr timeout 60 "$hpcgrid" $words
        echo "$words: $stderr"
        [ "$status" = 4 ]
        [ "$stderr" = "hpcgrid: error: $text"$'\n'"  $next" ] || [ "${stderr#*$'\n'}" = "hpcgrid: error: $text"$'\n'"  $next" ]
    done
    [ "$(asked submit)" = 1 ]
    run --separate-stderr "$hpcgrid" fsck m
    [ "$status" = 1 ]
    [[ "$output" == "plan.json: error: $text"$'\n'"  $next"$'\n'* ]]
    # one that was stopped before it had a plan
    mkdir reports/m/002
    run --separate-stderr "$hpcgrid" resume m
    [ "$stderr" = "hpcgrid: error: $PWD/reports/m/002 has no plan.json"$'\n'"  it was interrupted before anything was submitted: \`hpcgrid run MATRIX\` starts it again" ]
    run --separate-stderr "$hpcgrid" fsck m
    [[ "$output" == *"plan.json: error: $PWD/reports/m/002 has no plan.json"$'\n'"  it was interrupted before anything was submitted: \`hpcgrid run MATRIX\` starts it again"* ]]
    run --separate-stderr "$hpcgrid" submit m.json
    [ "$status" = 0 ]
}

@test "whoever comes back to a run waits for a scheduler that does not answer, but not for what is missing here" {
    local pid words
    "$hpcgrid" submit m.json >/dev/null
    refuse limits env 1800 "Unable to contact slurm controller"
    for words in resume watch retry; do
        : >log # the one before said the same; what starts now opens it later
        "$hpcgrid" $words m >out 2>log 3>&- &
        pid=$!
        await grep -q "Slurm does not answer (Unable to contact slurm controller); jobs continue; waiting (Ctrl-C stops this)" log
        "$hpcgrid" status m --no-poll 2>&1 | grep -q "driven by process $pid on "
        kill -INT $pid
        status=0
        wait $pid || status=$?
        [ "$status" = 130 ]
        grep -qF "to continue: hpcgrid resume $PWD/reports/m/001" log
        [ -z "$(compgen -G 'reports/m/001/lock.*')" ]
    done
    : >log
    "$hpcgrid" resume m >out 2>log 3>&- &
    pid=$!
    await grep -q "Slurm does not answer" log
    table CANCELLED 0
    limits script
    await gone $pid
    status=0
    wait $pid || status=$?
    cat log
    [ "$status" = 1 ]
    grep -q "Slurm answers again" log
    [ "$(counts m)" = '{"cancelled":4}' ]
    # nothing here that waiting would bring
    refuse limits env 0 "no slurm.conf found: SLURM_CONF is not set"
    run --separate-stderr timeout 60 "$hpcgrid" resume m
    [ "$status" = 4 ]
    [[ "$stderr" == *"no slurm.conf found"* ]]
    HPCGRID_SLURM_AGENT=/nonexistent run --separate-stderr timeout 60 "$hpcgrid" resume m
    [ "$status" = 4 ]
    HPCGRID_SLURM_AGENT=/bin/false run --separate-stderr timeout 60 "$hpcgrid" resume m
    [ "$status" = 4 ]
    # nor is cancel made to wait
    refuse limits env 1800 "Unable to contact slurm controller"
    run --separate-stderr timeout 60 "$hpcgrid" cancel m
    [ "$status" = 0 ]
}
