#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid fsck: a real run's folder, damaged in every way that is looked for. Slurm is a shell script.

bats_require_minimum_version 1.5.0

load ../await
load ../agent

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    unset "${!SLURM_@}" HPCGRID_REPORTS
    make_run
}

# A run of four cells, one of which failed, driven to its end; a second one of the same name after it.
make_run() {
    local hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid i
    agent "$PWD"
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "m", "site": {"launcher": "", "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0}}},
 "workload": {"command": ["sh", "-c", "echo '{\"train_s\": 1}' >$HPCGRID_RESULT; [ $0 != 3 ]", "{{i}}"], "launch": [], "time": "5m"},
 "axes": {"i": [1, 2, 3, 4]}}
END
    "$hpcgrid" submit m.json
    for i in 0 1 2 3; do SLURM_ARRAY_TASK_ID=$i reports/m/001/batches/1.sh --submission 1 --offset 0 || true; done
    answer poll "$(jq -cn --arg key "$(jq -r 'select(.op == "submit").job.key' asked)" '{jobs: [{key: $key, job_id: 17, tasks: "0-3", state: "COMPLETED", reason: "None",
        nodes: "n1", restarts: 0, exit_status: 0, submit_s: 1, start_s: 2, end_s: 3}]}')"
    "$hpcgrid" resume m >/dev/null || [ $? = 1 ]
    cp -a reports/m/001 whole
}

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    cd "$BATS_FILE_TMPDIR"
    unset "${!SLURM_@}" HPCGRID_REPORTS
    run_dir=$PWD/reports/m/001
    restore
}

teardown() { nothing_left; }

restore() {
    rm -rf reports
    mkdir -p reports/m
    cp -a whole reports/m/001
    good=$(dirname "$(grep -l '"status": "ok"' "$run_dir"/cells/*/*/result.json | head -1)")
    bad=$(dirname "$(grep -l '"status": "failed"' "$run_dir"/cells/*/*/result.json)")
}

fsck() { run --separate-stderr "$hpcgrid" fsck m "$@"; }
# codes: severity and code of each finding of the last fsck --json
codes() { jq -r '[.findings[] | .severity + " " + .code] | unique | join(", ")' <<<"$output"; }
# What lies in the run: names, modes, contents.
inventory() { (cd "$run_dir" && find . -printf '%p %m %y\n' | sort && find . -type f -print0 | sort -z | xargs -0 md5sum); }

@test "a folder as hpcgrid leaves it has nothing wrong" {
    fsck
    echo "$output"
    [ "$status" = 0 ]
    lines=$(wc -l <"$run_dir/events.jsonl")
    [ "$output" = "$run_dir: 4 cells, 4 attempts, $lines lines of journal: nothing wrong" ]
    fsck --json
    [ "$status" = 0 ]
    [ "$(jq -c '[.errors, .warnings, .notes, .findings, .checked.cells, .checked.attempts]' <<<"$output")" = '[0,0,0,[],4,4]' ]
    # Slurm noticed the end of a job too late, and started it again: it left
    SLURM_JOB_ID=17 SLURM_JOB_NODELIST=n1 SLURM_RESTART_COUNT=1 SLURM_ARRAY_TASK_ID=0 reports/m/001/batches/1.sh --submission 1 --offset 0
    run -0 "$hpcgrid" fsck m/001
    [[ "$output" == *": 4 cells, 4 attempts, "*": nothing wrong" ]]
    # one that was only planned, one that was submitted, and one that is held, too
    "$hpcgrid" plan m.json --out "$PWD/planned" >/dev/null
    chmod 700 planned
    run -0 "$hpcgrid" fsck planned
    rm -rf planned
    "$hpcgrid" submit m.json --new >/dev/null
    run -0 "$hpcgrid" fsck m/002
    "$hpcgrid" hold m/002
    run -0 "$hpcgrid" fsck m/002
}

# One damage a line: what it does | what is found | the exit code. J: the journal, C: the cells file, R: the run, G and B: a good
# and a bad attempt.
damages() {
    cat <<'END'
sed -i '3s/"t":1/"t":2/' $J | error journal-line | 1
sed -i '3d' $J | error journal | 1
sed -i '2{h;d};4{G}' $J | error journal | 1
echo nonsense >>$J | error journal-line | 1
sed -i '2s/.*/nonsense/' $J | error journal-line | 1
printf '{"seq":99,"fen' >>$J | note journal-torn | 0
truncate -s -5 $J | note journal-torn | 0
rm $J | error missing | 1
rm $J; mkfifo $J | error file-type | 1
truncate -s 0 $J | warning attempt | 1
rm $R/plan.json | error missing | 1
echo '{' >$R/plan.json | error json | 1
echo '[]' >$R/plan.json | error json | 1
sed -i 's/hpcgrid-plan.3/hpcgrid-plan\/9/' $R/plan.json | error plan | 1
sed -i 's/"run_key": "./"run_key": "/' $R/plan.json | error plan | 1
sed -i 's/"cells": 4/"cells": 5/' $R/plan.json | error cells | 1
sed -i 's/"number": 1/"number": 2/' $R/plan.json | error plan | 1
sed -i 's/"name": "m"/"name": "other"/' $R/plan.json | warning name | 1
rm $R/matrix.json | error missing | 1
rm $R/site.json | error missing | 1
echo 7 >$R/site.json | error json | 1
ln -sf /etc/passwd $R/site.json | error file-type | 1
rm $C | error missing | 1
sed -i '2s/"i":2/"i":7/' $C | error cell-id, error result | 1
sed -i '$d' $C | error cells, error index | 1
sed -i '2s/^/x/' $C | error cell, error index | 1
sed -i '2{p}' $C | error cell-twice, error cells, error index | 1
rm ${C%jsonl}idx | error missing | 1
sed -i '3s/1$/2/;3t;3s/.$/1/' ${C%jsonl}idx | error index | 1
sed -i '$d' ${C%jsonl}idx | error index | 1
echo >>${C%jsonl}idx | error index | 1
sed -i 's/"i":/"j":/' $C | error good-gone, error result, warning cell-id | 1
rm $R/batches/1.sh | error missing | 1
echo true >$R/batches/1.sh | error script | 1
sed -i "s,--run '[^']*',--run '/elsewhere'," $R/batches/1.sh | warning script-folder | 1
cp $C $R/batches/7.cells.jsonl | note batch-other | 0
sed -i 's/"train_s": 1/"train_s": 0/' $G/result.json | error good-gone, error result | 1
truncate -s 100 $G/result.json | error good-gone, error result | 1
: >$G/result.json | error good-gone, error result | 1
rm $G/result.json | error good-gone | 1
cp $B/result.json $G/result.json | error good-gone, error result | 1
rm $G/result.json; mkdir $G/result.json | error good-gone, error result | 1
rm $G/claim.json | warning claim | 1
rm $J $G/result.json | error missing, note attempt-open | 1
cp -a $G ${G%.1.0}.5.0 | error result, warning attempt | 1
mkdir ${G%.1.0}.9.9 | | 0
mkdir "$(dirname $G)"/later | warning alien | 1
touch "$(dirname $G)"/notes | warning alien | 1
mkdir $R/cells/nobody-1x1-000000000000 | warning alien | 1
mkdir $R/cells/1-000/nobody-1x1-000000000000.1.0 | warning alien | 1
mkdir $R/cells/1-001; mv $B $R/cells/1-001 | warning alien | 1
mkdir $R/cells/1-01 | warning alien | 1
touch $R/cells/file | warning alien | 1
echo '{' >$R/hold.1.2.json | warning request | 1
echo '{"lines": {"1": "0"}}' >$R/cancel.1.2.json | | 0
echo '{}' >$R/lock.4 | error lock | 1
touch -d '2 hours ago' $R/plan.json.tmp.123 $R/.lock-0123 $G/.claim.77 $G/rank.0.json.part | note leftover | 0
touch $R/plan.json.tmp.123 $G/result.json.part | | 0
chmod 711 $R; chmod 666 $R/plan.json | warning mode | 1
cp -a $R "$(dirname $R)"/002 | warning copy | 1
chmod 0 $R/cells | error folder | root
END
}

@test "every kind of damage is found by its name, and nothing is changed" {
    local wrong=0 damage want code J C R G B found
    while IFS='|' read -r damage want code; do
        J=$run_dir/events.jsonl C=$run_dir/batches/1.cells.jsonl R=$run_dir G=$good B=$bad
        want=$(xargs <<<"$want") code=$(xargs <<<"$code")
        if [ "$code" = root ] && [ "$(id -u)" = 0 ]; then continue; fi
        eval "$damage"
        inventory >before 2>/dev/null || true
        run --separate-stderr "$hpcgrid" fsck "$run_dir" --json
        found=$(codes)
        echo "$damage: $found ($status) $stderr"
        [ "$found" = "$want" ] || { echo "wanted $want" && wrong=1; }
        [ "$status" = "$code" ] || [ "$code" = root ] || { echo "wanted exit code $code" && wrong=1; }
        [ "$status" -le 1 ]
        jq -se '.[0] | all(.findings[]; .next != "" and .text != "" and .file != "")' <<<"$output"
        inventory >after 2>/dev/null || true
        diff before after
        chmod 700 "$run_dir/cells"
        restore
    done < <(damages)
    [ $wrong = 0 ]
}

@test "a finding names file, line, reason and next step" {
    sed -i '3s/"t":1/"t":2/' "$run_dir/events.jsonl"
    sed -i 's/"train_s": 1/"train_s": 0/' "$good/result.json"
    fsck
    [ "$status" = 1 ]
    echo "$output"
    [[ "$output" == *"events.jsonl:3: error: the line is damaged: its checksum does not match"$'\n'"  restore it from a backup; "* ]]
    [[ "$output" == *"${good#"$run_dir"/}/result.json: error: the result does not count: it was changed after it was written"$'\n'* ]]
    [[ "$output" == *": 2 errors" ]]
}

@test "a report names a result that is damaged, or gone, or cannot be read" {
    ok=$(jq -r 'select(.status == "ok") | .id' "$good/result.json")
    echo '{"garb' >"$good/result.json"
    run -1 "$hpcgrid" report m
    [[ "$output" == *"invalid (cells/"*"result.json: not valid JSON"* ]]
    [ "$("$hpcgrid" collect m --json | jq -c --arg id "$ok" '[.results[] | select(.id == $id) | .status]')" = '["invalid"]' ]
    rm "$good/result.json"
    run -1 "$hpcgrid" report m
    [[ "$output" == *"invalid (it was ok, and its result is gone)"* ]]
    # a folder that cannot be listed is not an empty one
    restore
    run strace -qq -o trace -P "$good" -e trace=getdents64 -e inject=getdents64:error=ESTALE "$hpcgrid" trace m
    [ "$status" = 4 ]
    [[ "$output" == *"cannot read folder $good"* ]]
}

@test "--repair removes what killed processes left, and only that" {
    touch -d '2 hours ago' "$run_dir/plan.json.tmp.123" "$run_dir/.lock-0123" "$good/.claim.77" "$good/cell.json.part"
    touch -d '2 hours ago' "$good/model.part" "$run_dir/mine.tmp" # somebody's own
    sed -i '3s/"t":1/"t":2/' "$run_dir/events.jsonl"
    fsck --repair --json
    [ "$status" = 1 ]
    [ "$(jq -c '[(.findings | map(select(.repaired)) | length), .notes, .errors]' <<<"$output")" = '[4,0,1]' ]
    [ -e "$good/model.part" ] && [ -e "$run_dir/mine.tmp" ]
    rm "$good/model.part" "$run_dir/mine.tmp"
    sed -i '3s/"t":2/"t":1/' "$run_dir/events.jsonl"
    fsck
    [ "$status" = 0 ]
    diff <(cd whole && find . | sort) <(cd "$run_dir" && find . | sort)
}

@test "nothing is repaired under the hands of whoever drives the run" {
    local pid
    printf '#!/bin/bash\nread -r line; exec sleep 600\n' >agent.slow
    chmod +x agent.slow
    touch -d '2 hours ago' "$run_dir/plan.json.tmp.123"
    HPCGRID_SLURM_AGENT=$PWD/agent.slow "$hpcgrid" resume m >/dev/null 2>&1 3>&- &
    pid=$!
    await compgen -G "$run_dir/lock.*"
    fsck --repair
    refused=$status told=$stderr
    run --separate-stderr "$hpcgrid" collect m --compact
    kill -KILL $pid # a first TERM waits for the answer
    wait $pid || true
    [ "$refused $status" = "4 4" ]
    for text in "$told" "$stderr"; do [[ "$text" == *"is being driven by process $pid on "* ]]; done
    [ ! -e "$run_dir/cells/1-000.tar" ]
    [ -e "$run_dir/plan.json.tmp.123" ]
}

@test "cells that are over by the journal are packed, and checked as before" {
    touch -d now "$bad/result.json"
    run --separate-stderr "$hpcgrid" collect m --compact
    [[ "$stderr" == *"packed 3 attempts into 1 file; 0 packed before, 1 not packed"*"  1 that failed less than 5 minutes ago" ]]
    fsck
    [ "$status" = 0 ]
    [[ "$output" == *"4 cells, 4 attempts, "*": nothing wrong" ]]
    touch -d '10 minutes ago' "$bad/result.json"
    run --separate-stderr "$hpcgrid" collect m --compact
    [[ "$stderr" == *"packed 1 attempt into 1 file; 3 packed before, 0 not packed" ]]
    [ "$(ls "$run_dir/cells")" = 1-000.tar ]
    fsck
    [ "$status" = 0 ]
    [[ "$output" == *"4 cells, 4 attempts, "*": nothing wrong" ]]
    "$hpcgrid" status m | grep -q 'ok 3 · failed 1'
    # of another run's cells
    "$hpcgrid" plan m.json --out "$PWD/planned" >/dev/null
    chmod 700 planned
    mkdir planned/cells
    sed -i 's/"i":/"j":/' planned/batches/1.cells.jsonl
    cp "$run_dir/cells/1-000.tar" planned/cells/1-001.tar
    run "$hpcgrid" fsck planned
    [[ "$output" == *"cells/1-001.tar: warning: has attempt 1.0 of "*", a cell that is not planned there"* ]]
    rm -rf planned
}

# damage N: something happens to some file, the same for the same N
damage() {
    local files file size at
    RANDOM=$1
    mapfile -t files < <(find "$run_dir" -type f | sort)
    file=${files[RANDOM % ${#files[@]}]}
    size=$(stat -c %s "$file")
    at=$((size ? (RANDOM * 32768 + RANDOM) % size : 0))
    case $((RANDOM % 8)) in
    0) rm "$file" ;;
    1) truncate -s $at "$file" ;;
    2 | 3) printf "\\x$(printf %02x $((RANDOM % 256)))" | dd of="$file" bs=1 seek=$at conv=notrunc status=none ;;
    4) head -c $((RANDOM % 200)) /dev/zero >>"$file" ;;
    5) sed -i "$((RANDOM % 6 + 1)){h;p}" "$file" ;;
    6) cp "${files[RANDOM % ${#files[@]}]}" "$file" 2>/dev/null || true ;;
    7) rm "$file" && mkdir "$file" ;;
    esac
}

@test "whatever is damaged, it comes to an end with an answer" {
    local n
    for n in $(seq 70); do
        damage $((n * 2))
        [ $((n % 3)) -gt 0 ] || damage $((n * 2 + 1))
        run --separate-stderr timeout 60 "$hpcgrid" fsck "$run_dir" --json
        [ "$status" -le 1 ] || { echo "damage $n: $status $output $stderr" && false; }
        [ "$(jq '(.findings | length > 0) == (.errors + .warnings + .notes > 0)' <<<"$output")" = true ]
        restore
    done
}
