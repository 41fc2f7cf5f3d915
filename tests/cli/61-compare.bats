#!/usr/bin/env bats
# hpcgrid compare: two result sets, cell by cell. Golden files: tests/cli/report/compare.*.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    golden="$HPCGRID_SOURCE/tests/cli/report"
    before="$HPCGRID_SOURCE/tests/data/results/quickstart.json"
    cd "$BATS_TEST_TMPDIR"
    # Two nodes a third slower, the baseline a fifth faster, one shape gone, one that failed now good.
    jq 'def times(x): .train_s *= x | .wall_s *= x | .samples_per_s /= x;
        .run = "002" | .results |= map(select(.cell.nodes != 1 or .cell.tasks_per_node != 2)
        | if .train_s and .cell.nodes == 2 then times(1.3) else . end
        | if .train_s and .cell.strategy == "single" then times(0.8) else . end)' "$before" >after.json
}

same_as_golden() { # NAME FILE
    [ -z "${HPCGRID_BLESS:-}" ] || cp "$2" "$golden/$1"
    diff -u "$golden/$1" "$2"
}

verdict() { # NODES TASKS STRATEGY
    jq -r --argjson n "$1" --argjson t "$2" --arg s "$3" \
        '.cells[] | select(.cell.nodes == $n and .cell.tasks_per_node == $t and .cell.strategy == $s) | "\(.verdict) \(.sure)"' out
}

@test "faster, slower, the same, unsure and gone are told apart" {
    run "$hpcgrid" compare "$before" after.json
    [ "$status" -eq 1 ]
    printf '%s\n' "$output" >text
    same_as_golden compare.text text
    "$hpcgrid" compare "$before" after.json --json >out || true
    same_as_golden compare.json out
    [ "$(verdict 1 1 single)" = "faster true" ]
    [ "$(verdict 1 1 ddp)" = "same true" ]
    [ "$(verdict 2 1 ddp)" = "slower true" ]
    [ "$(verdict 2 2 ddp)" = "slower false" ]
    [ "$(verdict 1 2 ddp)" = "only in A true" ]
}

@test "a set compared with itself is the same everywhere" {
    run "$hpcgrid" compare "$before" "$before"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"5 same; overall 1.000"* ]]
    [[ "$output" != *"slower"* ]]
}

@test "an interval that crosses the tolerance is unclear, and more tolerance settles it" {
    jq '.results |= map(if .train_s and .cell.nodes == 2 then .train_s *= 1.06 else . end)' "$before" >near.json
    "$hpcgrid" compare "$before" near.json --json >out || true
    [ "$(verdict 2 1 ddp)" = "unclear true" ]
    "$hpcgrid" compare "$before" near.json --json --tolerance 15 >out
    [ "$(verdict 2 1 ddp)" = "same true" ]
}

@test "a rate that falls is slower" {
    jq '.results |= map(if .samples_per_s then .samples_per_s *= 0.5 else . end)' "$before" >half.json
    run "$hpcgrid" compare "$before" half.json --metric samples_per_s --json
    [ "$status" -eq 1 ]
    jq -e '(.overall - 0.5 | fabs) < 1e-12 and .counts.slower == 5' <<<"$output"
}

@test "an accuracy that falls is worse, a loss that falls is better" {
    jq '.results |= map(if .eval then .eval.accuracy *= 0.5 else . end | .final_loss = 2)' "$before" >worse.json
    jq '.results |= map(.final_loss = 1)' "$before" >better.json
    run "$hpcgrid" compare "$before" worse.json --metric eval.accuracy --json
    [ "$status" -eq 1 ]
    jq -e '.counts.worse == 5 and .overall_verdict == "worse"' <<<"$output"
    "$hpcgrid" compare worse.json better.json --metric final_loss --json | jq -e '.counts.better == 5 and .overall == 2'
}

@test "what is not alike is said, and refused by --strict; another revision is what one compares" {
    jq '.results |= map(if .comparable then .comparable += {revision: "a"} else . end)' "$before" >a.json
    jq '.results |= map(if .comparable then .comparable += {revision: "b"} | if .cell.nodes == 2 then .comparable.precision = "bf16" else . end else . end)' "$before" >b.json
    run "$hpcgrid" compare a.json b.json
    [ "$status" -eq 0 ]
    [[ "$output" == *"differs from A: precision bf16 (A fp32)"* ]]
    [[ "$output" != *revision* ]]
    run "$hpcgrid" compare a.json b.json --strict --json
    [ "$status" -eq 1 ]
    jq -e '.counts == {"same": 3, "not comparable": 2}' <<<"$output"
}

@test "what broke in B is said and fails" {
    jq '.results |= map(if .cell.strategy == "single" then .status = "failed" else . end)' "$before" >broken.json
    run "$hpcgrid" compare "$before" broken.json --json
    [ "$status" -eq 1 ]
    jq -e '.counts["broken in B"] == 1' <<<"$output"
    run "$hpcgrid" compare broken.json "$before" --json
    [ "$status" -eq 0 ]
    jq -e '.counts["broken in A"] == 1' <<<"$output"
}

@test "keys that only follow from others are no rows" {
    jq '.results |= map(.cell.global = .cell.nodes * .cell.tasks_per_node * 64)' "$before" >more.json
    "$hpcgrid" compare more.json more.json | sed -n 5p >header
    if grep -q global header; then return 1; fi
    grep -q 'nodes  tasks_per_node  strategy' header
}

@test "numbers are written as asked for" {
    "$hpcgrid" compare "$before" "$before" --numbers comma,durations >out
    grep -qF '0m12,43s ±3 %' out
    grep -qF ' 1,00 ±' out
    "$hpcgrid" history "$before" "$before" --numbers comma,durations | grep -qF '0m12,41s'
    run "$hpcgrid" compare "$before" "$before" --numbers komma
    [ "$status" -eq 2 ]
    run "$hpcgrid" history "$before" "$before" --numbers komma
    [ "$status" -eq 2 ]
}

@test "wrong input is refused" {
    run "$hpcgrid" compare "$before"
    [ "$status" -eq 2 ]
    run "$hpcgrid" compare "$before" nothing
    [ "$status" -ge 3 ]
    jq '.results |= map(.score = 1)' "$before" >score.json
    run "$hpcgrid" compare score.json score.json --metric score
    [ "$status" -eq 3 ]
    [[ "$output" == *'unknown whether higher or lower is better for "score"'*"--better"* ]]
    "$hpcgrid" compare score.json score.json --metric score --better lower >out
    run "$hpcgrid" compare "$before" after.json --tolerance -1
    [ "$status" -eq 2 ]
}

@test "numbers can be written with a comma and as durations" {
    jq -n '{schema: "hpcgrid-results/1", name: "a", results: [range(2) as $n | range(3) as $r | {cell: {nodes: ($n + 1), repeat: ($r + 1)}, train_s: (90.25 + $n + $r / 10)}]}' >a.json
    jq '.name = "b" | .results[].train_s *= 1.01' a.json >b.json
    "$hpcgrid" compare a.json b.json --tolerance 2.5 --numbers comma,durations >out
    grep -q '1m30,35s ±0,3 %' out
    grep -q 'up to 2,5 % count as the same' out
    if grep -E '[0-9]\.[0-9]' out; then return 1; fi
    "$hpcgrid" history a.json b.json --tolerance 2.5 --numbers comma >out
    grep -q '90,80' out
    if grep -E '[0-9]\.[0-9]' out; then return 1; fi
    run --separate-stderr "$hpcgrid" compare a.json b.json --json --numbers comma
    [ "$status" -eq 2 ]
}
