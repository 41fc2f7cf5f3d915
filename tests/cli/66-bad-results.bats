#!/usr/bin/env bats
# Result sets that are damaged, alien or absurd: a clear error or a footnote, never a wrong number.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    cd "$BATS_TEST_TMPDIR"
}

set_of() { # RESULTS [MEMBERS]
    printf '{"schema": "hpcgrid-results/1", "name": "x", %s"results": [%s]}\n' "${2:-}" "$1"
}

@test "figures that are none are refused wherever they stand" {
    while IFS='|' read -r result wanted; do
        set_of "{\"cell\": {\"nodes\": 1}, $result}" >set.json
        for command in report "compare set.json" "history set.json"; do
            run --separate-stderr "$hpcgrid" $command set.json
            echo "$result: $status: $stderr"
            [ "$status" -eq 3 ]
            [ -z "$output" ]
            [[ "$stderr" == *"/results/0/$wanted"* ]]
        done
    done <<'EOT'
"train_s": "12.3 s"|train_s: expected a number, found "12.3 s"
"train_s": true|train_s: expected a number, found true
"train_s": -1|train_s: expected a number that is not negative, found -1
"samples_per_s": -0.5|samples_per_s: expected a number that is not negative, found -0.5
"energy_j": "5 kJ"|energy_j: expected a number, found "5 kJ"
"epoch_s": [1, -2, 3]|epoch_s/1: expected a number that is not negative, found -2
"epoch_s": [1, "2 s"]|epoch_s/1: expected a number, found "2 s"
"step_s": {"median": "0.1 s"}|step_s/median: expected a number, found "0.1 s"
"step_s": {"p95": -1}|step_s/p95: expected a number that is not negative, found -1
"comm": {"all_reduce": {"exposed_s": -3}}|comm/all_reduce/exposed_s: expected a number that is not negative, found -3
"ranks": [{"real_s": 1}, {"real_s": "1m5s"}]|ranks/1/real_s: expected a number, found "1m5s"
"memory": {"peak_bytes": -1}|memory/peak_bytes: expected a number that is not negative, found -1
"comparable": "fp32"|comparable: expected an object, found "fp32"
EOT
}

@test "a cell stands once, under one id" {
    set_of '{"cell": {"nodes": 1}, "train_s": 1}, {"cell": {"nodes": 1, "time": "1h"}, "train_s": 2}' >twice.json
    set_of '{"id": "a", "cell": {"nodes": 1}, "train_s": 1}, {"id": "b", "cell": {"nodes": 1}, "train_s": 2}' >ids.json
    set_of '{"id": "a", "attempt": "1.0", "cell": {"nodes": 1}, "train_s": 1}, {"id": "a", "attempt": "1.1", "cell": {"nodes": 2}, "train_s": 2}' >cells.json
    set_of '{"id": "a", "attempt": "1.0", "cell": {"nodes": 1}, "train_s": 1}, {"id": "a", "attempt": "1.0", "cell": {"nodes": 1}, "train_s": 2}' >attempts.json
    while IFS='|' read -r name wanted; do
        run --separate-stderr "$hpcgrid" report $name.json
        echo "$name: $status: $stderr"
        [ "$status" -eq 3 ]
        [[ "$stderr" == *"/results/1: $wanted /results/0"* ]]
    done <<'EOT'
twice|the same cell as
ids|under another id the same cell as
cells|another cell under the id of
attempts|the same cell as
EOT
    set_of '{"id": "a", "attempt": "1.0", "cell": {"nodes": 1}, "train_s": 1}, {"id": "a", "attempt": "1.1", "cell": {"nodes": 1}, "train_s": 2}' >good.json
    "$hpcgrid" report good.json --format json | jq -se '.[0] | .tables[0].points[0].value == 2'
}

@test "a baseline of zero, or beyond all bounds, gives no speedup" {
    for base in '"train_s": 0' '"train_s": null' '"status": "failed"' '"train_s": 1, "status": "timeout"'; do
        set_of "{\"cell\": {\"nodes\": 1}, $base}, {\"cell\": {\"nodes\": 2}, \"train_s\": 5}" '"baseline": {"nodes": 1}, ' >set.json
        run --separate-stderr "$hpcgrid" report set.json --format json --metric train_s
        [ "$status" -eq 1 ]
        jq -e '[.tables[0].points[] | select(has("speedup") or has("efficiency"))] == [] and .tables[0].no_speedup == "no speedup: the baseline has no complete result"' <<<"$output"
    done
    set_of '{"cell": {"nodes": 1}, "train_s": 1e-300}, {"cell": {"nodes": 2}, "train_s": 1e300}, {"cell": {"nodes": 3}, "train_s": 1e-301}' '"baseline": {"nodes": 1}, ' >set.json
    run --separate-stderr "$hpcgrid" report set.json --format json
    jq -e '[.tables[0].points[].speedup] == [1, null, 10]' <<<"$output"
    if grep -qiE 'nan|inf' <<<"$output"; then return 1; fi
}

@test "what is not the file it should be is said" {
    while IFS='|' read -r name text wanted; do
        printf "$text" >"$name.json"
        run --separate-stderr "$hpcgrid" report "$name.json"
        echo "$name: $status: $stderr"
        [ "$status" -eq 3 ]
        [ -z "$output" ]
        [[ "$stderr" == *"$wanted"* ]]
    done <<'EOT'
zeros|\0\0\0\0|zeros.json:1:1: error
binary|\177ELF\2\1|binary.json:1:1: error
utf16|\377\376{\0|utf16.json:1:1: error
bom|\357\273\277{"schema": "hpcgrid-results/1"|bom.json:1:
newer|{"schema": "hpcgrid-results/3", "results": []}|unknown schema "hpcgrid-results/3"
report|{"schema": "hpcgrid-report/1", "tables": []}|unknown schema "hpcgrid-report/1"
number|{"schema": 1, "results": []}|unknown schema "an integer"
csv|nodes,train_s\n1,5\n|csv.json:1:
text|x 路 2 of 2 cells complete\n|text.json:1:
object|{"schema": "hpcgrid-results/1", "results": {"a": 1}}|"results" is not a list
words|{"schema": "hpcgrid-results/1", "results": ["a", 5]}|/results/1: expected an object, found 5
dup|{"schema": "hpcgrid-results/1", "results": [{"cell": {"nodes": 1, "nodes": 2}, "train_s": 1}]}|dup.json:1:
nan|{"schema": "hpcgrid-results/1", "results": [{"cell": {"nodes": 1}, "train_s": NaN}]}|null stands for what is none
escape|{"schema": "hpcgrid-results/1", "results": [{"cell": {"a": "\\ud800"}, "train_s": 1}]}|escape.json:1:
EOT
    mkdir folder.json
    run "$hpcgrid" report folder.json
    [ "$status" -ge 3 ]
}

@test "a million rows are read and tabulated" {
    awk 'BEGIN { printf "{\"schema\": \"hpcgrid-results/1\", \"name\": \"m\", \"results\": ["
        for (i = 0; i < 1000000; i++)
            printf "%s{\"cell\":{\"nodes\":%d,\"repeat\":%d},\"train_s\":%d}", i ? "," : "", 1 + i % 10, 1 + i / 10, 100 + i % 10
        printf "]}" }' >million.json
    "$hpcgrid" report million.json --format json | jq -se '.[0] | .cells_complete == 1000000 and [.tables[0].points[] | [.n, .value]] == [range(10) | [100000, 100 + .]]'
    (ulimit -v 300000 && "$hpcgrid" report million.json --format csv) | sed 's/hpcgrid [0-9.]*\r$/hpcgrid\r/' | cmp - <(awk 'BEGIN {
        printf "run,id,attempt,counts,status,added,baseline_id,nodes,repeat,train_s,made_by\r\n"
        for (i = 0; i < 1000000; i++)
            printf "m,,,true,ok,false,,%d,%d,%d,hpcgrid\r\n", 1 + i % 10, 1 + i / 10, 100 + i % 10 }')
}

# with_blanks FILE: so large that its results are read one by one.
with_blanks() {
    cat "$1"
    printf '%*s' 8400000 ''
}

# lines FILE: its lines of CSV, what is wrong with it, and the exit code.
lines() {
    local status=0
    (cd "$1" && "$hpcgrid" report set.json --format csv ${2:-} 2>&1) || status=$?
    echo "exit $status"
}

# check_both [OPTIONS]: read one by one and as a whole, small/set.json says the same.
check_both() {
    with_blanks small/set.json >large/set.json
    diff <(lines small "${1:-}") <(lines large "${1:-}")
}

@test "results that are read one by one make the same lines" {
    mkdir small large
    for file in "$HPCGRID_SOURCE"/tests/data/results/*.json "$HPCGRID_SOURCE"/reports/reference/*.json; do
        echo "$file"
        cp "$file" small/set.json
        check_both
        check_both '--numbers comma'
        check_both '--where nodes=1'
        check_both '--metric wall_s'
        jq -S . "$file" >small/set.json # members of the set behind its results
        check_both
        jq '.results += [.results[0]]' "$file" >small/set.json # the same cell twice
        check_both
    done
}

@test "a list that is a plain value elsewhere stands in its line, however the results are read" {
    mkdir small large
    while read -r results; do
        set_of "$results" >small/set.json
        check_both
        lines large >lines
        cat lines
        grep -qF 'x,,,true,ok,false,,1,1,"{""a"":[1,2]}"' lines
    done <<'EOT'
{"cell": {"nodes": 1}, "train_s": 1, "note": {"a": [1, 2]}}, {"cell": {"nodes": 2}, "train_s": 2, "note": null}
{"cell": {"nodes": 1}, "train_s": 1, "note": {"a": [1, 2]}}, {"cell": {"nodes": 2}, "train_s": 2, "note": "x"}, {"cell": {"nodes": 3}, "train_s": 3, "note": {"a": null}}
EOT
    # names with dots, attempts, ids, notes, what is no part of a cell, added ones
    set_of '{"id": "a", "attempt": "1.9", "cell": {"nodes": 1, "_n": 1, "time": "1h"}, "train_s": 1, "a.b": 1, "a": {"b": 2, "c.d": 3}},
        {"id": "a", "attempt": "1.10", "cell": {"nodes": 1.0, "late": null}, "train_s": 2, "a": {"b": 4}, "status": "failed"},
        {"id": "b", "added": true, "attempt": "1.0", "cell": {"first": [1], "nodes": 1}, "train_s": 3, "a": 5}' >small/set.json
    check_both
    check_both '--where nodes=2'
    check_both '--where first'
    check_both '--where .nodes==1'
    check_both '--metric a.b'
    check_both '--metric none'
    set_of '{"id": "a", "attempt": "1.0", "cell": {"nodes": 1}, "train_s": 1}, {"id": "a", "attempt": "1.1", "cell": {"nodes": 2}, "train_s": 2}' >small/set.json
    check_both # another cell under the same id
    set_of '{"cell": {"nodes": 1}, "train_s": -1}' '"baseline": {"node": 1}, ' >small/set.json
    check_both
    set_of '{"cell": {"nodes": 1}, "train_s": 1}' '"report": {"rows": ["nodes"], "columns": ["nodes"]}, ' >small/set.json
    check_both
    set_of '{"cell": {"nodes": 1}, "train_s": 1}' '"report": {"where": "nodes=2"}, ' >small/set.json
    check_both
    printf '{"schema": "hpcgrid-results/1", "results": [{"cell": {"nodes": 1}, "train_s": 1}, ]}' >small/set.json
    check_both
}

@test "lines that do not fit where temporary files are: an error says what to do" {
    awk 'BEGIN { printf "{\"schema\": \"hpcgrid-results/1\", \"name\": \"m\", \"results\": ["
        for (i = 0; i < 200000; i++)
            printf "%s{\"cell\":{\"nodes\":1,\"repeat\":%d},\"train_s\":%d,\"note\":\"%040d\"}", i ? "," : "", 1 + i, 100 + i % 10, i
        printf "]}" }' >many.json
    TMPDIR=$PWD/absent run --separate-stderr "$hpcgrid" report many.json --format csv
    echo "$status: $stderr"
    [ "$status" -eq 4 ]
    [ -z "$output" ]
    [[ "$stderr" == *"temporary file in $PWD/absent: No such file"*"set TMPDIR to a folder with more room"* ]]
}

@test "a set beyond the limit is refused before it is read" {
    truncate -s 300M big.json
    run --separate-stderr "$hpcgrid" report big.json
    [ "$status" -eq 3 ]
    [[ "$stderr" == *"big.json"*"larger than"* ]]
}
