#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid collect --compact: attempts that have ended become one tar file a group, and every command reads them as before.

bats_require_minimum_version 1.5.0
load ../await

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    cd "$BATS_TEST_TMPDIR"
    unset "${!SLURM_@}" HPCGRID_REPORTS
}

teardown() { nothing_left; }

# made CELLS [PROGRAM]: a planned run of so many cells, each run once by hand. PROGRAM sees the cell's number as $0.
made() {
    local i program=${2:-'echo "out $0"; echo "err $0" >&2; echo "{\"train_s\": $0, \"loss\": {\"epoch\": [2.5, 1.$0]}}" >$HPCGRID_RESULT; [ $0 != 3 ]'}
    jq -n --argjson n "$1" --arg program "$program" '{hpcgrid: 1, name: "m",
        site: {launcher: "", hardware: {cpu: {partition: "cpu", gpus_per_node: 0}}},
        workload: {command: ["sh", "-c", $program, "{{i}}"], launch: [], time: "5m"}, axes: {i: {range: [1, $n]}}}' >m.json
    "$hpcgrid" plan m.json --out reports/m/001 >/dev/null
    chmod 700 reports/m/001
    run_dir=$PWD/reports/m/001
    for ((i = 0; i < $1; i++)); do SLURM_ARRAY_TASK_ID=$i "$run_dir/batches/1.sh" || true; done
}

# What the commands make of a run, without the places of files.
told() {
    "$hpcgrid" report m --format csv || true
    "$hpcgrid" report m --format json || true
    "$hpcgrid" collect m --json | jq 'del(.results[].attempt_in)' || true
    "$hpcgrid" logs m i=2 --lines 0 2>/dev/null || true
    "$hpcgrid" trace m | jq '.traceEvents | map(del(.args.folder))' || true
    "$hpcgrid" report m --format html --out page.html || true
    grep -c polyline page.html || true # loss curves
}

compact() { run --separate-stderr "$hpcgrid" collect m --compact "$@"; }

@test "packed attempts are read as before, and tar reads them, too" {
    made 6
    told >before
    compact
    [ "$status" = 1 ] # a cell has failed
    [[ "${lines[0]}" == "m/001: 5 of 6 cells have a good result, 1 "* ]]
    [[ "$stderr" == *"packed 5 attempts into 1 file; 0 packed before, 1 not packed"*"  1 of cells that are not over" ]]
    [ "$(ls "$run_dir/cells")" = $'1-000\n1-000.tar' ]
    [ "$(ls "$run_dir/cells/1-000" | wc -l)" = 1 ]
    told >after
    diff before after
    [ "$("$hpcgrid" collect m --json | jq -c '[.results[].attempt_in] | unique')" = '["cells/1-000","cells/1-000.tar"]' ]
    mkdir unpacked
    tar -C unpacked -xf "$run_dir/cells/1-000.tar"
    [ "$(cat unpacked/*/out.log | sort | xargs)" = "out 1 out 2 out 4 out 5 out 6" ]
    [ "$(stat -c %a "$run_dir/cells/1-000.tar")" = 600 ]
    grep -qF 'href="reports/m/001/cells/1-000.tar">pack</a>' page.html
    run "$hpcgrid" logs m i=4
    [[ "$output" == *"cells/1-000.tar:"*"/out.log"*"out 4"* ]]
    run -0 "$hpcgrid" fsck m
}

@test "a finished sweep has next to no inodes" {
    made 260 'echo "{\"train_s\": 1}" >$HPCGRID_RESULT'
    [ "$(find "$run_dir"/cells/*/* | wc -l)" = $((260 * 4)) ]
    compact
    [ "$status" = 0 ]
    [[ "$stderr" == *"packed 260 attempts into 2 files; 0 packed before, 0 not packed" ]]
    [ "$(find "$run_dir/cells" | wc -l)" = 3 ]
    [ "$(tar -tf "$run_dir/cells/1-000.tar" | grep -c result.json)" = 250 ]
    compact
    [ "$status" = 0 ]
    [[ "$stderr" == *"packed 0 attempts into 0 files; 260 packed before, 0 not packed" ]]
}

@test "what is not hpcgrid's alone stays, and is told with the reason" {
    made 6 'echo "{\"train_s\": 1}" >$HPCGRID_RESULT'
    cells=$run_dir/cells/1-000
    mapfile -t attempts < <(jq -r .id "$run_dir/batches/1.cells.jsonl")
    touch "$cells/${attempts[0]}.0.0/checkpoint.1"
    ln -sf /etc/passwd "$cells/${attempts[1]}.0.0/err.log"
    mkfifo "$cells/${attempts[2]}.0.0/gate"
    rm "$cells/${attempts[3]}.0.0/result.json"
    mv "$cells/${attempts[4]}.0.0" elsewhere && ln -s "$PWD/elsewhere" "$cells/${attempts[4]}.0.0"
    compact
    echo "$stderr"
    [[ "$stderr" == *"packed 1 attempt into 1 file; 0 packed before, 5 not packed"*"  1 of cells that are not over"*"  4 with other files than hpcgrid's own" ]]
    [ -e "$cells/${attempts[0]}.0.0/checkpoint.1" ] && [ -L "$cells/${attempts[1]}.0.0/err.log" ] && [ -e elsewhere/result.json ]
    [ "$(tar -tf "$run_dir/cells/1-000.tar" | cut -d/ -f1 | sort -u)" = "${attempts[5]}.0.0" ]
    # neither is a pack that leads elsewhere written
    cp "$run_dir/cells/1-000.tar" other.tar
    ln -sf "$PWD/other.tar" "$run_dir/cells/1-000.tar"
    rm "$cells/${attempts[0]}.0.0/checkpoint.1"
    compact
    [ "$status" = 4 ]
    [[ "$stderr" == *"cannot read $run_dir/cells/1-000.tar: "* ]]
}

@test "killed at any write, rename or removal, nothing is lost, and the next one finishes" {
    local n
    command -v strace >/dev/null || skip "strace is not installed"
    if ldd "$hpcgrid" | grep -q 'lib[at]san'; then skip "a sanitizer cannot be traced"; fi
    strace -f -o /dev/null true 2>/dev/null || skip "strace may not trace here"
    made 3 'echo "{\"train_s\": $0}" >$HPCGRID_RESULT'
    cp -a "$run_dir" whole
    "$hpcgrid" report m --format csv >before
    for ((n = 1; ; n++)); do
        rm -rf "$run_dir" && cp -a whole "$run_dir"
        run timeout 60 strace -qq -o trace -e "trace=write,fsync,rename,unlink,unlinkat,rmdir" \
            -e "inject=write,fsync,rename,unlink,unlinkat,rmdir:signal=KILL:when=$n" "$hpcgrid" collect m --compact
        [ "$status" != 0 ] || break
        [ "$status" = 137 ]
        "$hpcgrid" report m --format csv | diff before -
        compact
        [ "$status" = 0 ]
        "$hpcgrid" report m --format csv | diff before -
        [ "$(ls "$run_dir/cells")" = 1-000.tar ] || { echo "killed at $n: $(tail -1 trace)"; ls -R "$run_dir/cells"; return 1; }
    done
    echo "killed $((n - 1)) times"
    [ $n -gt 30 ]
}

@test "a second copy that Slurm starts after the packing leaves at once" {
    made 2 'echo ran >>'"$PWD"'/ran; echo "{\"train_s\": 1}" >$HPCGRID_RESULT'
    compact
    [ "$status" = 0 ]
    SLURM_ARRAY_TASK_ID=0 "$run_dir/batches/1.sh"
    [ "$(wc -l <ran)" = 2 ]
    SLURM_RESTART_COUNT=1 SLURM_ARRAY_TASK_ID=0 "$run_dir/batches/1.sh" # requeued after its good end
    [ "$(wc -l <ran)" = 2 ]
    [ "$(ls "$run_dir/cells")" = 1-000.tar ]
}

@test "a pack grows with what ends later" {
    made 2 'echo "{\"train_s\": 1}" >$HPCGRID_RESULT'
    mapfile -t ids < <(jq -r .id "$run_dir/batches/1.cells.jsonl")
    rm -r "$run_dir/cells/1-000/${ids[1]}.0.0"
    compact
    [[ "$stderr" == *"packed 1 attempt into 1 file"* ]]
    SLURM_ARRAY_TASK_ID=1 "$run_dir/batches/1.sh"
    compact
    [[ "$stderr" == *"packed 1 attempt into 1 file; 1 packed before, 0 not packed" ]]
    [ "$(tar -tf "$run_dir/cells/1-000.tar" | grep -c result.json)" = 2 ]
}

@test "a damaged pack costs what it had there, and is told" {
    made 3 'echo "{\"train_s\": $0}" >$HPCGRID_RESULT'
    compact
    pack=$run_dir/cells/1-000.tar
    cp "$pack" kept.tar
    at=$(($(tar -tRf "$pack" | sed -n 's/^block \([0-9]*\): .*result.json$/\1/p' | head -1) * 512))
    printf x | dd of="$pack" bs=1 seek=$at conv=notrunc status=none
    run --separate-stderr "$hpcgrid" collect m
    [ "$status" = 1 ]
    [[ "${lines[0]}" == "m/001: 2 of 3 cells have a good result"* ]]
    [[ "$stderr" == *"cells/1-000.tar: damaged at byte $at; hpcgrid fsck says more"* ]]
    run --separate-stderr "$hpcgrid" fsck m --json
    [ "$status" = 1 ]
    [ "$(jq -r '[.findings[] | .severity + " " + .code] | unique | join(", ")' <<<"$output")" = "error pack, note attempt-open" ]
    cp kept.tar "$pack"
    (cd "$run_dir" && tar -rf cells/1-000.tar plan.json site.json)
    run --separate-stderr "$hpcgrid" fsck m
    [[ "$output" == *"cells/1-000.tar: warning: has 2 files of no attempt"* ]]
    "$hpcgrid" collect m
    tar -C "$run_dir/cells" --delete -f "$pack" plan.json site.json
    mkdir "$run_dir/cells/1-000" && tar -C "$run_dir/cells/1-000" -xf "$pack"
    run --separate-stderr "$hpcgrid" fsck m
    [ "$status" = 0 ]
    [[ "$output" == *"cells/1-000.tar: note: attempt 0.0 of "*" also has its folder: "* ]]
    "$hpcgrid" collect m | grep -q '3 of 3 cells'
}
