#!/usr/bin/env bats
# The JSON forms of report, compare and history are what reports/*.schema.json say of them.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    data="$HPCGRID_SOURCE/tests/data/results"
    reports="$HPCGRID_SOURCE/reports"
    cd "$BATS_TEST_TMPDIR"
}

# valid KIND FILE: no violation of reports/KIND.schema.json
valid() {
    jq -r --slurpfile s "$reports/$1.schema.json" -L "$HPCGRID_SOURCE/tests/cli" 'include "schema"; violations($s[0])' "$2" >wrong
    if [ -s wrong ]; then echo "$2:"; head -20 wrong; return 1; fi
}

@test "the checker finds what is wrong" {
    "$hpcgrid" compare "$data/quickstart.json" "$data/quickstart.json" --json >good.json || [ $? -eq 1 ]
    valid compare good.json
    for change in '.schema = "x"' 'del(.good)' '.more = 1' '.tolerance = -1' '.tolerance = "5"' '.cells[0].verdict = "fine"' '.cells[0].a.n = 1.5' \
        '.overall_interval = [1]' '.counts.same = 0' '.cells = {}'; do
        jq "$change" good.json >bad.json
        if valid compare bad.json; then echo "$change"; return 1; fi
    done
}

@test "reports are" {
    for set in "$data"/*.json "$reports"/reference/*.json; do
        "$hpcgrid" report "$set" --format json --cost --traffic >report.json || [ $? -eq 1 ]
        valid report report.json
    done
    jq '.skipped = {n: 2, cells: [{id: "x", why: "too large"}]} | .removed = {n: 1} | .results[0].removed = true
        | .results |= map(.code = {revision: .attempt, dirty: true})' "$data/quickstart.json" >changed.json
    "$hpcgrid" report changed.json --format json --strict >report.json || [ $? -eq 1 ]
    valid report report.json
    jq -e '.skipped == 2 and .removed == 1 and ([.listings[].name] | contains(["skipped", "removed"]))' report.json
    jq -n '{schema: "hpcgrid-results/1", baseline: {impl: 0}, report: {columns: ["impl"]}, results: [range(2) as $i | range(1; 4) as $r
        | {cell: {impl: $i, repeat: $r}, slurm: {job_id: $r}, train_s: ($r / ($i + 1))}]}' >paired.json
    "$hpcgrid" report paired.json --format json >report.json
    valid report report.json
    [ "$(jq -c '[.tables[].points[] | select(.column.impl == 1) | .pairs]' report.json)" = '[3]' ]
}

@test "comparisons are, with every verdict" {
    jq -n '{schema: "hpcgrid-results/1", name: "x", results: [
        (["same", [10, 10, 10]], ["slower", [10, 10.1, 9.9]], ["faster", [10, 10.1, 9.9]], ["unclear", [5, 10, 20]], ["a", [1]], ["broken", [1]], ["mended", []], ["none", []]) as [$s, $t]
        | if $t == [] then {cell: {case: $s}, status: "failed"} else range($t | length) as $i | {cell: {case: $s, repeat: ($i + 1)}, train_s: $t[$i], comparable: {precision: "fp32"}} end]}' >a.json
    jq '.results |= map(select(.cell.case != "a") | if .cell.case == "slower" then .train_s *= 2 elif .cell.case == "faster" then .train_s /= 2
        elif .cell.case == "broken" then del(.train_s) + {status: "oom"} elif .cell.case == "mended" then del(.status) + {train_s: 1} else . end)
        + [{cell: {case: "b"}, train_s: 1}]' a.json >b.json
    "$hpcgrid" compare a.json b.json --json >compare.json || [ $? -eq 1 ]
    valid compare compare.json
    jq -e '.counts | length == 9' compare.json
    "$hpcgrid" compare a.json <(jq '.results |= map(if .comparable then .comparable.precision = "tf32" else . end)' a.json) --json --strict >compare.json || [ $? -eq 1 ]
    valid compare compare.json
    jq -e '.counts["not comparable"] > 0' compare.json
    "$hpcgrid" compare a.json b.json --json --metric train_s --where 'case=a' >compare.json || [ $? -eq 1 ]
    valid compare compare.json
}

@test "histories are" {
    for i in 1 2 3; do jq --argjson i $i '.name = "n" | .run = "00\($i)" | .results |= map(if .train_s then .train_s *= ([1, 1, 1.5][$i - 1]) else . end)' "$data/quickstart.json" >$i.json; done
    "$hpcgrid" history 1.json 2.json 3.json --json >history.json || [ $? -eq 1 ]
    valid history history.json
    jq -e '.slower > 0 and (.listings | length) == 2' history.json
}
