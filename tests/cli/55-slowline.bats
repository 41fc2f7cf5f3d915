#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The full screen of watch over 300 cells, some of them failed, behind a line of 2 kB/s (slowline.c): whole screens at the smallest and
# a large size, in UTF-8 and without it, and how many bytes keys cost.

bats_require_minimum_version 1.5.0
load ../await
load ../agent
load ../screen

RATE=2000

# 10 x 3 places of 10 cells: all of "fine" are good, 3 of "bad" have failed, the rest of it waits, "long" runs. "fine" prints 200 wide lines.
setup_file() {
    unset "${!SLURM_@}" HPCGRID_REPORTS NO_COLOR TMUX
    cd "$BATS_FILE_TMPDIR" || return 1
    export PATH=$HPCGRID_BUILD/orchestrator:$HPCGRID_BUILD/tests:$PATH
    agent "$PWD"
    # letters that differ from line to line, so that a step in the log is a new screen
    awk 'BEGIN { srand(1); for (i = 1; i <= 200; i++) { printf "step %d ", i; for (k = 0; k < 180; k++) printf "%c", 97 + int(26 * rand()); print "" } }' >log
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "m", "site": {"launcher": "srun", "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
 "workload": {"command": ["sh", "-c", "if [ $0 = bad ]; then echo 'größer: naïve' >&2; exit 3; fi; cat log", "{{kind}}"], "time": "5m", "launch": []},
 "axes": {"kind": ["fine", "bad", "long"], "lr": {"geometric": [0.001, 0.512, 2]}}, "repeats": 10, "report": {"rows": ["lr"], "columns": ["kind"]}}
END
    hpcgrid submit m.json
    for i in $(lines fine) $(lines bad | head -30); do
        SLURM_ARRAY_TASK_ID=$i hpcgrid exec --run reports/m/001 --batch 1 --submission 1 || [ $? = 3 ]
    done
    answer poll "$(jq -c --arg long "$(lines long | paste -sd,)" --arg bad "$(lines bad | tail -n +31 | paste -sd,)" 'select(.op == "submit")
        | .job.key as $key | {jobs: [[$long, "RUNNING", ""], [$bad, "PENDING", "Priority"]] | map({key: $key, job_id: 17, tasks: .[0],
            state: .[1], reason: .[2], nodes: "", restarts: 0, exit_status: 0, submit_s: 1, start_s: 0, end_s: 0})}' asked)"
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    rm -f count
    screen_setup
}

teardown() {
    screen_teardown
    nothing_left
}

# lines KIND: of the cells of a kind
lines() { jq -r --arg kind "$1" 'select(.cell.kind == $kind) | input_line_number - 1' reports/m/001/batches/1.cells.jsonl; }
# watch_slowly WIDTH HEIGHT LOCALE
watch_slowly() { terminal "$1" "$2" "slowline $RATE count env LC_ALL=$3 hpcgrid watch m"; }
bytes() { echo $((10#$(<count))); }
# A line of the log as it is shown
step() { sed -n "$1p" log | cut -c1-"$2"; }
rows() { printf '%s oooooooooo FFFppppppp rrrrrrrrrr\n' "$@"; }
# bottom N: the line of the log above the keys, which is sent last
bottom() { [ "$(screen | sed -n 59p)" = "$(step "$1" 189)" ]; }
leave() {
    keys q
    await has rc=130
    await clean
    has 'to continue: hpcgrid resume'
}

@test "60 x 15 behind a slow line, in UTF-8: the rows around the cursor, what a failed cell said, and back" {
    watch_slowly 60 15 C.UTF-8
    await_screen "m/001  ...
o ok 100  F failed 30  r running 100  p pending 70
 43 % ██████░░░░░░░░░ 130/300  ≈
70 wait: others are before it (Priority)
lr    fine       bad        long
$(rows 0.001 0.002 0.004 0.008 0.016)
── kind=fine lr=0.001, run 1: ok ─────────────── rows 1-5/10
$(step 198 60)
$(step 199 60)
$(step 200 60)
? help  q quit  l log  / filter  h hold  r release  c cancel"
    keys End Right Right Right Right Right Right Right Right Right Right
    await_screen "m/001  ...
o ok 100  F failed 30  r running 100  p pending 70
 43 % ██████░░░░░░░░░ 130/300  ≈
70 wait: others are before it (Priority)
lr    fine       bad        long
$(rows 0.032 0.064 0.128 0.256 0.512)
── kind=bad lr=0.512, run 1: failed: exit code  rows 6-10/10
größer: naïve


? help  q quit  l log  / filter  h hold  r release  c cancel"
    leave
}

@test "60 x 15 behind a slow line, in ASCII" {
    watch_slowly 60 15 C
    await has "$(step 200 60)"
    keys End Right Right Right Right Right Right Right Right Right Right
    await_screen "m/001  ...
o ok 100  F failed 30  r running 100  p pending 70
 43 % ######......... 130/300  ~
70 wait: others are before it (Priority)
lr    fine       bad        long
$(rows 0.032 0.064 0.128 0.256 0.512)
-- kind=bad lr=0.512, run 1: failed: exit code  rows 6-10/10
gr??er: na?ve


? help  q quit  l log  / filter  h hold  r release  c cancel"
    leave
}

@test "the wheel scrolls the log three lines at a time, and stops at its ends" {
    watch_slowly 60 15 C.UTF-8
    await has "$(step 200 60)"
    keys l
    await has "$(step 192 60)"
    mouse 64 8 8
    mouse 64 8 8
    await has "$(step 186 60)"
    has "$(step 194 60)"
    if has "$(step 195 60)"; then return 1; fi
    mouse 65 8 8
    mouse 65 8 8
    mouse 65 8 8
    await has "$(step 200 60)"
    leave
}

# at_once LOCALE BAR RULE: at 200 x 60, behind the line and without it
at_once() {
    local page ends=()
    for i in {1..30}; do ends+=(End Home); done
    watch_slowly 200 60 "$1"
    await has "$(step 200 189)"
    same_lines "m/001  ...
o ok 100  F failed 30  r running 100  p pending 70
 43 % $2 130/300  $4
70 wait: others are before it (Priority)
lr    fine       bad        long
$(rows 0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512)
$3$3 kind=fine lr=0.001, run 1: ok $(printf -- "$3%.0s" {1..167})
$(for i in {160..200}; do step "$i" 189; done)
? help  q quit  l log  / filter  h hold  r release  c cancel  t retry  m metric  s sort  x axes"
    first=$(bytes)
    # a page of the log is on its way for seconds; what is typed meanwhile is one more page, not sixty
    keys l
    keys "${ends[@]}"
    await bottom 52
    page=$(screen | tail -n +2)
    [ "$(bytes)" -lt $((5 * first)) ]
    leave
    tmux -S "$socket" kill-server
    terminal 200 60 "LC_ALL=$1 hpcgrid watch m"
    await has "$(step 200 189)"
    keys l
    keys "${ends[@]}"
    await bottom 52
    diff <(echo "$page") <(screen | tail -n +2)
    leave
}

@test "200 x 60 behind a slow line: keys that are typed while a screen is on its way skip the screens between" {
    at_once C.UTF-8 "$(printf '█%.0s' {1..21})$(printf '░%.0s' {1..29})" ─ ≈
}

@test "200 x 60 behind a slow line, in ASCII" {
    at_once C "$(printf '#%.0s' {1..21})$(printf '.%.0s' {1..29})" - '~'
}
