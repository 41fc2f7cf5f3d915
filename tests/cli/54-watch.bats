#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The full screen of watch, in a terminal (tmux), with an agent that is a shell script: what stands where at several sizes, what its keys
# do, and how it leaves the terminal. tests/unit/screen.c has the layout itself, tests/slurm/31-drive a real Slurm.

bats_require_minimum_version 1.5.0
load ../await
load ../agent
load ../screen

# One run for all tests, in their order: the first ones leave it as it is.
setup_file() {
    unset "${!SLURM_@}" HPCGRID_REPORTS NO_COLOR TMUX
    cd "$BATS_FILE_TMPDIR" || return 1
    export PATH=$HPCGRID_BUILD/orchestrator:$PATH
    agent "$PWD"
    # 12 cells in one array: the kinds fine, bad and long, lr 0.1 and 1, two of each
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "m", "site": {"launcher": "srun", "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
 "workload": {"command": ["sh", "-c", "echo begin $0; if [ $0 = bad ]; then echo boom >&2; exit 3; fi", "{{kind}}"], "time": "5m", "launch": []},
 "axes": {"kind": ["fine", "bad", "long"], "lr": [0.1, 1]}, "repeats": 2, "report": {"rows": ["lr"], "columns": ["kind"]}}
END
    hpcgrid submit m.json
    lines long >long
    for i in $(lines fine) $(lines bad | head -3); do
        SLURM_ARRAY_TASK_ID=$i hpcgrid exec --run reports/m/001 --batch 1 --submission 1 &
    done
    wait
    answer poll "$(jq -c --arg long "$(paste -sd, long)" --arg bad "$(lines bad | tail -1)" 'select(.op == "submit") | .job.key as $key
        | {jobs: [[$long, "RUNNING", ""], [$bad, "PENDING", "Priority"]] | map({key: $key, job_id: 17, tasks: .[0], state: .[1], reason: .[2],
            nodes: "", restarts: 0, exit_status: 0, submit_s: 1, start_s: 0, end_s: 0})}' asked)"
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    screen_setup
}

teardown() {
    if [ -p poll ]; then mv poll fifo && mv answered poll && timeout 5 bash -c ': >fifo'; fi
    screen_teardown
    rm -f stty submit.sh
    nothing_left
}

# lines KIND: of the cells of a kind
lines() { jq -r --arg kind "$1" 'select(.cell.kind == $kind) | input_line_number - 1' reports/m/001/batches/1.cells.jsonl; }
@test "a matrix in 60 x 15, and larger, with the log of the cell under the cursor" {
    terminal 60 15 'LC_ALL=C.UTF-8 hpcgrid watch m'
    await_screen 'm/001  ...
o ok 4  F failed 3  r running 4  p pending 1
 58 % ████████░░░░░░░ 7/12  ≈
1 wait: others are before it (Priority)
lr  fine bad long
0.1 oo   FF  rr
1   oo   Fp  rr
── kind=fine lr=0.1, run 1: ok ─────────────────────────────
begin fine





? help  q quit  l log  / filter  h hold  r release  c cancel'
    keys Down Right Right Right
    await has '── kind=bad lr=1, run 2: pending ─'
    keys Left
    await has '── kind=bad lr=1, run 1: failed: exit code 3 ─'
    await has boom
    tmux -S "$socket" resize-window -x 200 -y 60
    rule=$(printf '─%.0s' {1..155})
    await same_lines "m/001  ...
o ok 4  F failed 3  r running 4  p pending 1
 58 % █████████████████████████████░░░░░░░░░░░░░░░░░░░░░ 7/12  ≈
1 wait: others are before it (Priority)
lr  fine bad long
0.1 oo   FF  rr
1   oo   Fp  rr
── kind=bad lr=1, run 1: failed: exit code 3 $rule
boom
? help  q quit  l log  / filter  h hold  r release  c cancel  t retry  m metric  s sort  x axes"
    keys q
    await has rc=130
    await clean
    has 'to continue: hpcgrid resume'
}

@test "without UTF-8 it is ASCII, with NO_COLOR it has no colours" {
    terminal 60 15 'LC_ALL=C hpcgrid watch m'
    await_screen 'm/001  ...
o ok 4  F failed 3  r running 4  p pending 1
 58 % ########....... 7/12  ~
1 wait: others are before it (Priority)
lr  fine bad long
0.1 oo   FF  rr
1   oo   Fp  rr
-- kind=fine lr=0.1, run 1: ok -----------------------------
begin fine





? help  q quit  l log  / filter  h hold  r release  c cancel'
    screen -e | grep -q $'\e\[[0-9;]*4[0-7]m'
    keys q
    await has rc=130
    tmux -S "$socket" kill-server
    terminal 60 15 'LC_ALL=C NO_COLOR=1 hpcgrid watch m'
    await has '? help'
    if screen -e | grep $'\e\[[0-9;]*[34][0-7]m'; then return 1; fi
}

hot() { screen | grep -qE '^0\.1 [0-9]{2}   FF  rr'; }

@test "keys filter, sort, colour by metric, show the log and help" {
    terminal 80 24 'LC_ALL=C.UTF-8 hpcgrid run m.json'
    await has '? help'
    keys / ; words 'kind=bad'
    await has 'only cells: kind=bad_'
    keys Enter
    await has 'm/001  only kind=bad'
    await has 'lr  bad'
    if has 'lr  fine'; then return 1; fi
    keys / ; words 'X' ; keys Enter # no such cell: the rest stays
    await has 'no cell has kind=badX'
    has 'lr  bad'
    keys /
    for _ in {1..9}; do keys BSpace; done
    keys Enter
    await has 'lr  fine bad long'
    keys x
    await has 'lr is a column now'
    await has '0.1 bad'
    keys x s
    await has 'rows have one axis only'
    keys m
    await hot
    keys Right Right l
    await has 'begin bad'
    await has boom
    if has 'lr  fine bad long'; then return 1; fi
    keys Home End Escape # these scroll the log, and do not move the cursor
    await has 'lr  fine bad long'
    has '── kind=bad lr=0.1, run 1: failed'
    keys '?'
    await has 'leave; the jobs go on'
    has 'Shift selects text'
    keys '?'
    await has 'lr  fine bad long'
}

# twice PRESS: a double click, again if the machine was too slow for it; in the log it does nothing
twice() { "$1" 0 6 9 && "$1" 0 6 9 && has 'begin bad'; }

@test "the mouse moves the cursor, opens the log and scrolls it" {
    local press term sgr
    for term in 'screen mouse 0' 'xterm-256color mouse_sgr 1'; do
        read -r term press sgr <<<"$term"
        terminal 80 24 "TERM=$term LC_ALL=C.UTF-8 hpcgrid watch m"
        await has '── kind=fine lr=0.1, run 1: ok ─'
        [ "$(tmux -S "$socket" display -p '#{mouse_standard_flag} #{mouse_sgr_flag}')" = "1 $sgr" ]
        $press 0 6 15
        await has '── kind=long lr=1, run 2: running ─'
        $press 0 2 4 # no cell there
        $press 0 6 9
        await has '── kind=bad lr=1, run 1: failed: exit code 3 ─'
        $press 64 6 9
        await has '── kind=bad lr=0.1, run 1: failed: exit code 3 ─'
        $press 65 6 9
        await has '── kind=bad lr=1, run 1: failed: exit code 3 ─'
        await twice "$press"
        if has 'lr  fine bad long'; then return 1; fi
        keys q
        await has rc=130
        await clean
        tmux -S "$socket" kill-server
    done
}

# The agent waits for what Slurm says of the queue.
blocked() { [ "$(tail -1 asked | jq -r .op)" = poll ] && grep -qsxF "BATS_TEST_NAME=$BATS_TEST_NAME" <(pgrep -x jq | sed 's,.*,/proc/&/environ,' | xargs -r cat | tr '\0' '\n'); }

@test "the terminal is left as it was, whatever ends it" {
    local signal
    for signal in TERM HUP QUIT SEGV; do
        terminal 60 15 "sh -c 'ulimit -c 0; echo \$\$ >pid; exec hpcgrid watch m'"
        await has '? help'
        kill -"$signal" "$(cat pid)"
        await has "rc=$((128 + $(kill -l "$signal")))"
        await clean
        tmux -S "$socket" kill-server
        rm stty
    done
    # suspended, the shell has it; then the screen comes back
    terminal 60 15 'sh -c "echo \$\$ >pid; exec hpcgrid watch m"; stty -a >stty; echo stopped; read -r; fg'
    await has '? help'
    keys C-z
    await has stopped
    await clean
    keys Enter
    await has '? help'
    # Slurm does not answer: the first signal asks it to end, the second ends it
    cp poll answered
    mkfifo fifo
    mv fifo poll
    await blocked
    kill -INT "$(cat pid)"
    await taken "$(cat pid)" 2
    kill -TERM "$(cat pid)"
    await has rc=143
    await clean
}

# polled N: more often than that
polled() { [ "$(jq -r .op asked | grep -c poll)" -gt "$1" ]; }

@test "in the background it leaves the terminal alone, comes back to it, and ends without it" {
    terminal 60 15 'sh -c "exec hpcgrid watch m"; bg; echo behind; read -r; stty -a >stty; echo looked; read -r; fg; bg; kill %1; wait %1'
    await has '? help'
    keys C-z
    await has behind
    await polled $(($(jq -r .op asked | grep -c poll) + 2))
    keys Enter
    await has looked
    clean
    keys Enter
    await has '? help'
    rm stty
    keys C-z
    await has rc=143
    await clean
}

@test "lines where there is no terminal, TERM is dumb, or they are wanted" {
    terminal 80 24 'TERM=dumb hpcgrid watch m 2>&1'
    await has 'ok 4 · running 4 · pending 1 · failed 3'
    if has '? help'; then return 1; fi
    tmux -S "$socket" kill-server
    terminal 80 24 'hpcgrid watch m --no-screen'
    await has 'ok 4 · running 4 · pending 1 · failed 3'
    tmux -S "$socket" kill-server
    terminal 80 24 'hpcgrid watch m 2>log'
    await grep -q 'ok 4 · running 4 · pending 1 · failed 3' log
}

@test "only what has changed is sent to the terminal" {
    terminal 200 60 'LC_ALL=C.UTF-8 hpcgrid watch m'
    await has '? help'
    await has 'begin fine'
    tmux -S "$socket" pipe-pane -o "cat >'$PWD/sent'"
    keys Right
    await has 'run 2: ok'
    tmux -S "$socket" pipe-pane
    [ -s sent ]
    [ "$(wc -c <sent)" -lt 400 ]
}

@test "what the program said on the screen is printed after it, whatever HPCGRID_LOG says" {
    printf '{"error":{"code":"refused","errno":1,"message":"never","site":""}}' >hold
    terminal 100 24 'LC_ALL=C.UTF-8 HPCGRID_LOG=warn hpcgrid watch m'
    await has '? help'
    keys Down Right Right Right h
    await has 'warning: cannot hold job 17: never'
    keys q
    await has rc=130
    has 'hpcgrid: warning: cannot hold job 17: never'
    answer hold '{"gone":false}'
    hpcgrid release m
}

# asked_hold: what the agent was asked to hold
asked_hold() { jq -c 'select(.op == "hold") | [.job_id, .tasks, .held]' asked | tail -1 | grep -qxF "$1"; }

@test "keys run hold, release, cancel and retry for the cells under the cursor" {
    terminal 100 24 'LC_ALL=C.UTF-8 hpcgrid watch m'
    await has '? help'
    keys Down Right Right Right h
    await has 'hold: not to be submitted: 0; held in Slurm: 1'
    await asked_hold "[17,\"$(lines bad | tail -1)\",true]"
    await has '1   oo   Fh  rr'
    keys r
    await has 'release: '
    await has '1   oo   Fp  rr'
    keys c
    await has 'cancel 1 cell? y or n'
    keys n
    # what is submitted is in the queue from then on: a job that is not there would be taken for one that Slurm has forgotten
    cat >submit.sh <<'END'
jq -c --argjson asked "$line" '.ok.jobs += [.ok.jobs[-1] + {key: $asked.job.key, job_id: 18, tasks: "0"}]' "$ANSWERS/poll" >"$ANSWERS/poll.new"
mv "$ANSWERS/poll.new" "$ANSWERS/poll"
END
    keys Left t
    await has 'retry: 1 cell runs again; the process that drives the run submits it within a minute'
    await grep -q '"kind":"again","batch":1,"lines":"'"$(lines bad | sed -n 2p)"'"' reports/m/001/events.jsonl
    await jq -se 'any(.kind == "submitted" and .submission == 2)' reports/m/001/events.jsonl # else it is not to be submitted
    keys C
    await has 'cancel 12 cells? y or n'
    keys y
    await has 'cancel requested: 6'
    [ "$(jq -r 'select(.op == "cancel").tasks' asked | head -1)" != "" ]
}

# The first of the bad cells waits, or is on its way.
retried() { screen | grep -qxE '0\.1 oo   [^F]F  CC'; }

@test "a run that is over stays on the screen of watch until it is left, and cells run again from there" {
    answer poll '{"jobs":[]}'
    hpcgrid resume m >out 2>log || true
    terminal 80 24 'LC_ALL=C.UTF-8 hpcgrid watch m'
    await has '100 % '
    await has '0.1 oo   FF  CC'
    keys Right Right t
    await retried
    keys q
    await has rc=130
}
