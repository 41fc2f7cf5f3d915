#!/usr/bin/env bats
# hpcgrid history: the same cells over many result sets.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    cd "$BATS_TEST_TMPDIR"
}

# sets TIME...: a set a time, three repeats each, around it; a word instead of a time is a status
sets() {
    local i=0 t
    rm -f s*.json
    for t in "$@"; do
        i=$((i + 1))
        jq -n --arg t "$t" --arg run "$(printf %03d $i)" --argjson i $i '{schema: "hpcgrid-results/1", name: "nightly", run: $run,
            results: [(1, 2) as $n | range(3) as $r | {cell: {nodes: $n, strategy: "ddp", repeat: ($r + 1)}}
                + if ($t | tonumber? // null) == null then {status: $t}
                  else {train_s: (($t | tonumber) / (if $n == 1 then 1 else 1.8 end) * (1 + ($r - 1) * 0.004 + ($i % 3) * 0.002))} end]
                | map(select(.cell.nodes == 1 or $t != "gone"))}' >"$(printf 's%03d.json' $i)"
    done
}

@test "what does not change is steady" {
    sets 100 100.3 99.8 100.1
    run "$hpcgrid" history s*.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "nightly/001 to nightly/004 · 4 sets, 2 cells: 2 steady" ]]
    if grep -q '^changes$' <<<"$output"; then return 1; fi
}

@test "a change is found where it happened, with its interval, and the exit code is its sign" {
    sets 100 100 100 112 112 112
    run "$hpcgrid" history s*.json --json
    [ "$status" -eq 1 ]
    jq -se '.[0] | .slower == 2 and (.good | not)' <<<"$output"
    jq -se '.[0] | .listings[1] | .name == "changes" and [.rows[].since] == ["nightly/004", "nightly/004"]' <<<"$output"
    jq -se '.[0] | .listings[1].rows[] | .speed > 0.88 and .speed < 0.90 and .speed_low < .speed and .speed < .speed_high and .speed_high < 0.95' <<<"$output"
    sets 112 112 112 100 100 100
    run "$hpcgrid" history s*.json
    [ "$status" -eq 0 ]
    [[ "$output" == *"faster since nightly/004"* ]]
}

@test "several changes are told apart, and the last one counts" {
    sets 100 100 130 130 130 101 101
    run "$hpcgrid" history s*.json --json
    echo "$output"
    [ "$status" -eq 0 ]
    jq -se '.[0] | [.listings[1].rows[] | select(.nodes == "1" or .nodes == 1) | [.since, .verdict]] == [["nightly/003", "slower"], ["nightly/006", "faster"]]' <<<"$output"
}

@test "what lies within the tolerance is none" {
    sets 100 100 100 103 103 103
    "$hpcgrid" history s*.json
    run "$hpcgrid" history s*.json --tolerance 1
    [ "$status" -eq 1 ]
}

@test "single runs make a change once there are three on a side" {
    sets 100 101 99 120
    for f in s*.json; do jq '.results |= map(select(.cell.repeat == 1))' "$f" >t && mv t "$f"; done
    run "$hpcgrid" history s*.json --json
    [ "$status" -eq 1 ]
    jq -se '.[0] | [.listings[1].rows[].since] == ["nightly/004", "nightly/004"]' <<<"$output"
    run "$hpcgrid" history s001.json s004.json --json
    [ "$status" -eq 0 ]
    jq -se '.[0] | .steady == 2' <<<"$output"
}

@test "what broke or went away in the newest set fails" {
    sets 100 100 timeout
    run "$hpcgrid" history s*.json
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == *"2 broken" ]]
    sets 100 100 timeout 100
    "$hpcgrid" history s*.json
    sets 100 100 gone
    jq '.results |= map(if .cell.nodes == 1 then del(.status) | .train_s = 100 else . end)' s003.json >t && mv t s003.json
    run "$hpcgrid" history s*.json
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == *"1 steady, 1 gone" ]]
}

@test "a rate that falls is slower, an accuracy worse" {
    sets 100 100 100 120 120 120
    for f in s*.json; do jq '.results |= map(.samples_per_s = 1000 / .train_s | .eval.accuracy = 50 / .train_s | .score = .train_s)' "$f" >t && mv t "$f"; done
    run "$hpcgrid" history s*.json --metric samples_per_s
    [ "$status" -eq 1 ]
    [[ "$output" == *"slower since nightly/004"* ]]
    run "$hpcgrid" history s*.json --metric eval.accuracy
    [[ "$output" == *"worse since nightly/004"* ]]
    run "$hpcgrid" history s*.json --metric score
    [ "$status" -eq 3 ]
    [[ "$output" == *'unknown whether higher or lower is better for "score"'* ]]
    run "$hpcgrid" history s*.json --metric score --better higher
    [ "$status" -eq 0 ]
}

@test "the name of a file that is no UTF-8 stands in text and JSON" {
    sets 100 100
    jq 'del(.name, .run)' s001.json >"$(printf 'f\377.json')"
    run --separate-stderr "$hpcgrid" history f*.json s002.json --json
    [ "$status" -eq 0 ]
    jq -se '.[0] | .sets | length == 2 and (.[0] | startswith("f") and contains("\ufffd"))' <<<"$output"
}

@test "only the newest sets, and wrong words" {
    sets 100 100 112 112 112
    run "$hpcgrid" history s*.json --last 3
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "nightly/003 to nightly/005 · 3 sets"* ]]
    run "$hpcgrid" history s001.json
    [ "$status" -eq 3 ]
    [[ "$output" == *"a history needs at least two sets of results"* ]]
    run "$hpcgrid" history s001.json nothing
    [ "$status" -ge 3 ]
    run "$hpcgrid" history
    [ "$status" -eq 2 ]
}

@test "the newest is judged by the run that one names" {
    sets 100 100 120 120 120 100.5 100.3
    run "$hpcgrid" history s*.json --json
    [ "$status" -eq 0 ]
    jq -se '.[0] | .baseline == null and .faster == 2' <<<"$output"
    run "$hpcgrid" history s*.json --baseline-run nightly/002 --json
    [ "$status" -eq 0 ]
    jq -se '.[0] | .baseline == "nightly/002" and .steady == 2' <<<"$output"
    sets 100 100 120 120 120
    run "$hpcgrid" history s*.json --baseline-run 004
    [ "$status" -eq 0 ]
    [[ "${output//$'\n'  / }" == *"judged against nightly/004"* ]]
    run "$hpcgrid" history s004.json s005.json --baseline-run s001.json
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == "nightly/001 to nightly/005 · 3 sets"* ]]
    [[ "$output" == *"slower since nightly/004"* ]]
    run "$hpcgrid" history s*.json --baseline-run s003.json --json
    jq -se '.[0] | .baseline == "nightly/003" and (.sets | length == 5)' <<<"$output"
    sets 100 100 130 130 115 115
    "$hpcgrid" history s*.json | grep -q "faster since nightly/005"
    run "$hpcgrid" history s*.json --baseline-run 001
    [ "$status" -eq 1 ]
    [[ "$output" == *"slower since nightly/003"* ]]
    run "$hpcgrid" history s*.json --baseline-run nothing
    [ "$status" -ge 3 ]
}

@test "more repeats find a change no later, and a change within the tolerance is none" {
    sets 100 100 100 120
    "$hpcgrid" history s*.json && return 1
    sets 100 100 104 104 104 108 108 108
    "$hpcgrid" history s*.json --json >out || true
    jq -se '.[0] | all(.listings[] | select(.name == "changes") | .rows[]; (.speed - 1 | fabs) > 0.047)' out
}

@test "Markdown, HTML with a plot, and JUnit" {
    sets 100 100 100 112 112 112
    "$hpcgrid" history s*.json -f md >out || [ $? -eq 1 ]
    grep -qF '| 1 | 6 |' out
    "$hpcgrid" history s*.json -f html >out || [ $? -eq 1 ]
    [ "$(grep -c '<svg' out)" -eq 1 ]
    grep -qF 'slower since nightly/004' out
    "$hpcgrid" history s*.json -f junit >out || [ $? -eq 1 ]
    grep -qF 'tests="2" failures="2"' out
    [ "$(grep -c '<failure message="slower since nightly/004, speed 0.89" type="slower"/>' out)" -eq 2 ]
    "$hpcgrid" history s*.json --plot over.gp >out || [ $? -eq 1 ]
    grep -qF 'over all sets' out
    grep -qF 'speed, 1 = first' over.gp
    run "$hpcgrid" history s*.json --plot no/such/over.svg
    [ "$status" -ge 2 ]
    run "$hpcgrid" history s*.json -f csv
    [ "$status" -eq 2 ]
}

@test "a published mean with its spread stands for its runs, in history, compare and laws" {
    for form in runs means; do
        for i in 1 2 3 4 5 6; do
            jq -n --arg form $form --argjson i $i '{schema: "hpcgrid-results/1", name: "s", run: "00\($i)", baseline: {nodes: 1}, report: {rows: ["nodes"]},
                results: [(1, 2, 4, 8) as $n | (0.01 * $n | sqrt / 4) as $sd | {nodes: $n, epochs: 1} as $cell
                    | (100 * (0.02 + 0.98 / $n) * (if $i > 3 then 1.2 else 1 end) * (1 + ($n * $i % 5) / 100)) as $t
                    | if $form == "means" then {cell: $cell, n: 3, sd: ($t * $sd), train_s: $t}
                      else (-1, 0, 1) as $k | {cell: ($cell + {repeat: ($k + 2)}), train_s: ($t * ($k * $sd | exp))} end]}' >$form.$i.json
        done
        { "$hpcgrid" history $form.?.json --json | jq '.listings[].rows'
          "$hpcgrid" compare $form.1.json $form.6.json --json | jq '.cells[] | [.a.n, .b.n, .speed, .interval, .p, .verdict]'
          jq 'del(.run)' $form.1.json | "$hpcgrid" report - --format json | jq '.tables[0].scaling'
        } | jq -c '(.. | numbers) |= (. * 1e6 | round)' >$form
    done
    [ "$(jq -s '.[1] | length' runs)" = 4 ]
    jq -se '.[-1][0] | .amdahl and .predicted' runs
    diff runs means
}
