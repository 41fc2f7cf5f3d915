#!/usr/bin/env bats
# hpcgrid compare: two result sets, cell by cell. Golden files: tests/cli/report/compare.*.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    golden="$HPCGRID_SOURCE/tests/cli/report"
    before="$HPCGRID_SOURCE/tests/data/results/quickstart.json"
    cd "$BATS_TEST_TMPDIR"
    # Two nodes a third slower, the baseline a fifth faster, one shape gone, one that failed now good.
    jq 'def times(x): .train_s *= x | .wall_s *= x | .ranks |= (. // [] | map(.real_s *= x)) | .samples_per_s /= x;
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
    jq -se '.[0] | (.overall - 0.5 | fabs) < 1e-12 and .counts.slower == 5' <<<"$output"
}

@test "an accuracy that falls is worse, a loss that falls is better" {
    jq '.results |= map(if .eval then .eval.accuracy *= 0.5 else . end | .final_loss = 2)' "$before" >worse.json
    jq '.results |= map(.final_loss = 1)' "$before" >better.json
    run "$hpcgrid" compare "$before" worse.json --metric eval.accuracy --json
    [ "$status" -eq 1 ]
    jq -se '.[0] | .counts.worse == 5 and .overall_verdict == "worse"' <<<"$output"
    "$hpcgrid" compare worse.json better.json --metric final_loss --json | jq -se '.[0] | .counts.better == 5 and (.overall - 2 | fabs) < 1e-12'
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
    jq -se '.[0] | .counts == {"same": 3, "not comparable": 2}' <<<"$output"
}

@test "what broke in B is said and fails" {
    jq '.results |= map(if .cell.strategy == "single" then .status = "failed" else . end)' "$before" >broken.json
    run "$hpcgrid" compare "$before" broken.json --json
    [ "$status" -eq 1 ]
    jq -se '.[0] | .counts["broken in B"] == 1' <<<"$output"
    run "$hpcgrid" compare broken.json "$before" --json
    [ "$status" -eq 0 ]
    jq -se '.[0] | .counts["broken in A"] == 1' <<<"$output"
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
    "$hpcgrid" history "$before" "$before" --numbers comma,durations | grep -qF '0m12,43s'
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

# cells NAME TIME...: a set in which each time is a cell of three repeats, one of the middle and 1 % to both sides
cells() {
    local name=$1
    shift
    jq -n --arg name "$name" '{schema: "hpcgrid-results/1", name: $name, results: [$ARGS.positional | to_entries[] | . as $c | (0.99, 1, 1.01) as $f
        | {cell: {case: $c.key, repeat: ($f * 100)}, train_s: ($c.value | tonumber * $f)}]}' --args "$@" >"$name.json"
}

@test "several runs on each side show how much runs differ" {
    cells a1 100 50; cells a2 103 51.5; cells b1 110 55; cells b2 113 56.5
    run "$hpcgrid" compare a1.json a2.json vs b1.json b2.json
    echo "$output"
    [ "${lines[0]}" = "A: a1, a2 B: b1, b2" ]
    [[ "${output//$'\n'  / }" == *"whole runs differ by "*" % as measured, "*" % together with the assumption"* ]]
    "$hpcgrid" compare a1.json a2.json vs b1.json b2.json --json >out || true
    jq -se '.[0] | .sets == {a: ["a1", "a2"], b: ["b1", "b2"]} and (.between_measured > 0.015) and .between_measured < 0.025 and .between > .between_measured' out
    jq -se '.[0] | .cells[0] | .a.n == 6 and .a.value > 101 and .a.value < 102 and .speed < 0.92 and (.interval | .[1] - .[0] > 0.05)' out
    "$hpcgrid" compare --baseline-run a1.json a2.json b1.json --json >out || true
    jq -se '.[0] | .sets == {a: ["a1"], b: ["a2", "b1"]}' out
    for wrong in "a1.json a2.json b1.json" "a1.json vs" "vs a1.json" "a1.json" "a1.json vs a2.json vs b1.json"; do
        run "$hpcgrid" compare $wrong
        [ "$status" -ge 2 ]
    done
}

@test "what runs differ by anyway is no change, unless it is ruled out" {
    cells a 100; cells b 107.5
    run "$hpcgrid" compare a.json b.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"assumed to differ by 3 %"* ]]
    [[ "$output" == *"1 cell differs by more than the tolerance, but not by more than chance and the"* ]]
    run "$hpcgrid" compare a.json b.json --between 0
    [ "$status" -eq 1 ]
    [[ "$output" == *"assumed not to differ"*slower* ]]
}

@test "all together can be slower though no cell is" {
    cells a 100 100 100 100 100 100 100 100 100 100 100 100
    jq '.results |= map(if .train_s < 99.5 then .train_s = 86 elif .train_s > 100.5 then .train_s = 115 else . end)' a.json >noisy.json
    jq '.name = "b" | .results[].train_s *= 1.15' noisy.json >b.json
    run "$hpcgrid" compare noisy.json b.json --json
    [ "$status" -eq 1 ]
    jq -se '.[0] | .counts == {unclear: 12} and .overall_verdict == "slower" and .overall_p < 0.05 and (.good | not)' <<<"$output"
}

@test "single runs are slower only beyond all that they could scatter by" {
    jq -n '{schema: "hpcgrid-results/1", name: "a", results: [{cell: {case: "x"}, train_s: 100}]}' >a.json
    jq '.name = "b" | .results[0].train_s = 120' a.json >b.json
    run "$hpcgrid" compare a.json b.json --json
    [ "$status" -eq 0 ]
    jq -se '.[0] | .counts == {unclear: 1} and .cells[0].interval == null' <<<"$output"
    jq '.results[0].train_s = 200' b.json >c.json
    run "$hpcgrid" compare a.json c.json
    [ "$status" -eq 1 ]
    [[ "$output" == *"slower?"* ]]
    run "$hpcgrid" compare a.json a.json
    [[ "$output" == *"same?"* ]]
}

@test "Markdown, HTML and JUnit say the same" {
    "$hpcgrid" compare "$before" after.json --format md >out || [ $? -eq 1 ]
    same_as_golden compare.md out
    "$hpcgrid" compare "$before" after.json --format html >out || [ $? -eq 1 ]
    grep -q '^<!DOCTYPE html>' out
    grep -qF '>slower? ¹ ²</td>' out
    if grep -qE 'src=|href=' out; then return 1; fi
    "$hpcgrid" compare "$before" after.json --format junit >out || [ $? -eq 1 ]
    same_as_golden compare.junit out
    jq '.name = "a<b>&\"\u0001"' after.json >odd.json
    "$hpcgrid" compare "$before" odd.json --format junit >out || [ $? -eq 1 ]
    grep -qF 'a&#60;b&#62;&#38;&#34;?' out
    run "$hpcgrid" compare "$before" after.json --format junitt
    [ "$status" -eq 2 ]
    [[ "$output" == *junit* ]]
    run "$hpcgrid" compare "$before" after.json --format md --json
    [ "$status" -eq 2 ]
}
