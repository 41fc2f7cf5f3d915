#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Exactly once on a shared folder as slow file servers make it (slowfs.c): new files appear late, attributes are remembered,
# replies of link(2) get lost, calls fail. Each virtual node is a machine of its own to it.

bats_require_minimum_version 1.5.0
load box

SLOWFS=$HPCGRID_BUILD/tests/slowfs

slow_lacks() {
    box_lacks && return 0
    [ -c /dev/fuse ] || { echo "there is no /dev/fuse" && return 0; }
    [ ! -x "$SLOWFS" ] || return 1
    echo "slowfs is not built (libfuse3-dev)"
}

setup_file() {
    slow_lacks >/dev/null && return 0
    box_up cpu:2x0 MaxArraySize=4 MessageTimeout=10 AuthInfo=ttl=8 MinJobAge=30000
}

teardown_file() { box_down; }

setup() {
    box_setup
    if what=$(slow_lacks); then skip "$what"; fi
    mkdir ran back mnt
    export HPCGRID_REPORTS=$PWD/mnt/reports
    "$SLOWFS" "$PWD/back" "$PWD/mnt" >slowfs.log 2>&1 3>&- &
    SERVER=$!
    box_wait 60 eval '[ "$(stat -f -c %t mnt)" = 65735546 ]'
}

teardown() {
    box_tell
    box_clear
    if [ -n "${SERVER:-}" ]; then
        kill "$SERVER"
        wait "$SERVER" || true
    fi
}

# slow LINE...: what is wrong from now on
slow() { printf '%s\n' "$@" >back.slow; }

# matrix NAME CELLS: cells that each add a line to ran/<i>; the run lies on the slow folder
matrix() {
    jq -n --arg dir "$PWD" --arg name "$1" --argjson n "$2" '{hpcgrid: 1, name: $name,
        site: {launcher: "srun", hardware: {cpu: {partition: "cpu", gpus_per_node: 0, backend: "cpu"}}, default: "cpu"},
        workload: {command: ["sh", "-c", "echo ran >>\"$0\"", ($dir + "/ran/" + $name + ".{{i}}")], launch: [], time: "5m"},
        axes: {i: {range: [1, $n]}}}' >"$1.json"
}

# Every cell of NAME is good and ran once, and the run's folder is sound.
ran_once() {
    local i
    slow ""
    [ "$("$HPCGRID" status "$1" --no-poll --json | jq -c .counts)" = "{\"ok\":$2}" ] || { "$HPCGRID" status "$1"; return 1; }
    [ "$(find ran -name "$1.*" | wc -l)" = "$2" ] || { ls ran; return 1; }
    for i in ran/"$1".*; do
        [ "$(wc -l <"$i")" = 1 ] || { echo "$i: $(wc -l <"$i") times"; return 1; }
    done
    "$HPCGRID" fsck "$1"
}

@test "files appear late, attributes are remembered, every reply of link gets lost" {
    slow "late 2" "attr 3" "lost 1000"
    matrix slow 6
    "$HPCGRID" run slow.json
    ran_once slow 6
    [ "$(find back/reports/slow/001/cells -name claim.json | wc -l)" = 6 ]
}

submitted() { [ "$(grep -cs '"kind":"submitted"' "back/reports/$1/001/events.jsonl")" -ge "$2" ] 2>/dev/null; }

@test "hpcgrid killed on such a folder, and continued" {
    local n pid
    slow "late 2" "attr 3" "lost 1000"
    matrix killed 12
    for n in 1 2; do
        "$HPCGRID" run killed.json >/dev/null 2>log 3>&- &
        pid=$!
        box_wait 90 submitted killed $n
        kill -9 $pid
        wait $pid || true
    done
    "$HPCGRID" resume killed
    ran_once killed 12
}

@test "a quota, a stale handle and a broken disk stop the driver with their place, and nothing is lost" {
    local error op number text
    matrix broken 3
    while read -r op number text error; do
        slow "fail $op $number 2 $text"
        run --separate-stderr "$HPCGRID" run broken.json
        echo "$op: $status $stderr"
        [ "$status" = 4 ]
        [[ "$stderr" == *"$text"*"$error"* ]]
    done <<'END'
write 122 /events.jsonl Disk quota exceeded
open 116 /events.jsonl Stale file handle
fsync 5 /events.jsonl Input/output error
END
    slow ""
    "$HPCGRID" resume broken
    ran_once broken 3
}

@test "a cell whose files cannot be written fails with the reason, and runs again" {
    slow "fail rename 122 2 /result.json"
    matrix cell 1
    run --separate-stderr "$HPCGRID" run cell.json
    echo "$stderr"
    [ "$status" = 1 ]
    [[ "$stderr" == *"failed: "*"/result.json: Disk quota exceeded"* ]]
    slow ""
    "$HPCGRID" retry cell
    [ "$("$HPCGRID" status cell --no-poll --json | jq -c .counts)" = '{"ok":1}' ]
    "$HPCGRID" fsck cell
}
