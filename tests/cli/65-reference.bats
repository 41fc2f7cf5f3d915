#!/usr/bin/env bats
# The published results below reports/reference, the tables of them in its README, and the matrices that re-run them.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    labs="$HPCGRID_SOURCE/reports/reference"
    readme="$HPCGRID_SOURCE/reports/reference/README.md"
}

# The page with what hpcgrid prints below each "<!-- $ hpcgrid ... -->".
regenerate() {
    local line words skip=
    cd "$HPCGRID_SOURCE"
    while IFS= read -r line; do
        if [ -n "$skip" ]; then
            [ "$line" != '```' ] || skip=$((skip - 1))
            [ "$skip" != 0 ] || skip=
            continue
        fi
        printf '%s\n' "$line"
        [[ $line == '<!-- $ hpcgrid '* ]] || continue
        words=${line#<!-- $ hpcgrid }
        printf '```\n'
        # shellcheck disable=SC2086
        "$hpcgrid" ${words% -->} >"$BATS_TEST_TMPDIR/part" || [ $? -eq 1 ]
        sed '/^hpcgrid [0-9.]*$/d' "$BATS_TEST_TMPDIR/part"
        printf '```\n'
        skip=2
    done
}

@test "the tables in reports/reference/README.md are those that come out" {
    regenerate <"$readme" >"$BATS_TEST_TMPDIR/readme"
    [ -z "${HPCGRID_BLESS:-}" ] || cp "$BATS_TEST_TMPDIR/readme" "$readme"
    diff -u "$readme" "$BATS_TEST_TMPDIR/readme"
    for set in "$labs"/*.json; do
        grep -qF "reports/reference/$(basename "$set")" "$readme"
    done
}

@test "every set has a source, and a matrix that re-runs it" {
    for set in "$labs"/*.json; do
        name=$(basename "$set" .json)
        echo "$name"
        jq -e --arg name "$name" '.name == $name and (.source | length) > 20' "$set"
        jq -e --arg name "$name" '.name == $name' "$HPCGRID_SOURCE/matrices/reference/$name.json"
        "$hpcgrid" check --no-data-check "$HPCGRID_SOURCE/matrices/reference/$name.json"
    done
    [ "$(ls "$labs"/*.json | wc -l)" -eq "$(ls "$HPCGRID_SOURCE/matrices/reference" | wc -l)" ]
}

@test "every set names its repository, the commit, what was printed, and what is a misprint" {
    for set in "$labs"/*.json; do
        echo "$set"
        jq -e 'def list: if type == "array" then . else [.] end;
            (.repository | list | length > 0 and all(.[]; test("^github.com/[^/]+/[^/]+$") or . == "not recorded"))
            and (.commit | list | length > 0 and all(.[]; test("^[0-9a-f]{40}$") or test("^not recorded")))
            and (.as_printed | length > 0) and (.misprints | type == "array")' "$set"
    done
}

# Printed beside computed, all figures of all sets; what differs is what the sets list as misprints, and nothing else.
@test "what was printed is what comes out, but for the misprints that each set lists" {
    cd "$BATS_TEST_TMPDIR"
    for set in "$labs"/*.json; do
        echo "$set"
        "$hpcgrid" report "$set" --format json >report.json || [ $? -eq 1 ]
        jq -r --slurpfile report report.json -f "$HPCGRID_SOURCE/tests/cli/as_printed.jq" "$set" >beside.tsv
        [ -s beside.tsv ]
        awk -F'\t' '$5 == "differs"' beside.tsv | cut -f 1-4 | sort >differs
        jq -r '.misprints[] | [(.cell | tojson), .figure, .printed, .computed] | @tsv' "$set" | sort >listed
        diff listed differs
    done
}

@test "lab-strategies: 1.068 is a misprint of 1.0686, and lab-mnist-rnn has the source's 3m13.093s" {
    jq -e '.misprints | map(select(.printed == "1.068" and .computed == "1.069")) | length == 1' "$labs/lab-strategies.json"
    run -0 "$hpcgrid" report "$labs/lab-mnist-rnn.json" --ranks
    [[ $output == *"2m0.819s"*"3m13.093s"* ]]
}

@test "the labs' own tables have the precision of the source" {
    run -1 "$hpcgrid" report "$labs/lab-strategies.json"
    [[ $output == *"3m6.619s"*"1m41.687s"*"0m59.425s"*"1.835"*"3.140"* ]]
    run -1 "$hpcgrid" report "$labs/lab-strategies.json" --format csv
    [[ $output == *"186.619"* && $output != *"3m6"* ]] # seconds, for programs
    run -1 "$hpcgrid" report "$labs/lab-strategies.json" --numbers decimals=1
    [[ $output == *" 186.6"* ]]
    jq '.report.numbers = "decimals=x"' "$labs/lab-strategies.json" >"$BATS_TEST_TMPDIR/bad.json"
    run -3 "$hpcgrid" report "$BATS_TEST_TMPDIR/bad.json"
    [[ $output == *"/report/numbers"*"decimals=N"* ]]
}

# A set as people type it from a paper: means with their spread, a remark, a row that must not be compared.
published() { # in the test's folder: the file "$set"
    cd "$BATS_TEST_TMPDIR"
    cat >"$BATS_TEST_TMPDIR/set.json" <<'END'
{"schema": "hpcgrid-results/1", "name": "paper", "source": "a paper, table 2", "note": "typed by hand",
 "baseline": {"nodes": 1, "strategy": "single"}, "results": [
  {"cell": {"nodes": 1, "strategy": "single"}, "train_s": 100, "n": 5, "sd": 1.5, "footnote": "warmed up"},
  {"cell": {"nodes": 2, "strategy": "ddp"}, "train_s": 52, "wall_s": 60, "n": 5, "sd": {"train_s": 1.1, "wall_s": 3}},
  {"cell": {"nodes": 4, "strategy": "ddp"}, "train_s": 15, "n": 3},
  {"cell": {"nodes": 2, "strategy": "dp"}, "train_s": 90, "not_comparable": "each task trains on all the data"},
  {"cell": {"nodes": 4, "strategy": "dp"}, "train_s": 89, "not_comparable": "each task trains on all the data"},
  {"cell": {"nodes": 8, "strategy": "dp"}, "train_s": 88, "not_comparable": "each task trains on all the data"}]}
END
    set=$BATS_TEST_TMPDIR/set.json
}

@test "a published mean has its runs, its interval and its footnote" {
    published
    run -0 "$hpcgrid" report "$set"
    [[ $output == *"one run each but for the footnotes"*"100.0 ±2 % ¹ ²"*"1.92 ±3 %"*"mean of 5 runs, as published"*"warmed up"*"mean of 3 runs"* ]]
    # exp(ln 52 ± t(0.975, 4) 1.1 / 52 / sqrt(5))
    "$hpcgrid" report "$set" --format json | jq -se '.[0] | [.tables[0].points[] | select(.row.nodes == 2 and .column.strategy == "ddp")][0]
        | .runs == 5 and (.value_interval[0] - 50.6519 | fabs) < 1e-3 and (.value_interval[1] - 53.3840 | fabs) < 1e-3 and (.speedup_interval | length) == 2'
    "$hpcgrid" report "$set" --format json | jq -se '.[0] | [.tables[0].points[] | select(.row.nodes == 4 and .column.strategy == "ddp")][0] | has("value_interval") | not'
    run -0 "$hpcgrid" report "$set" --metric wall_s --where nodes=2,strategy=ddp --format json
    jq -se '.[0] | .tables[0].points[0].value_interval | length == 2' <<<"$output"
    run -0 "$hpcgrid" compare "$set" "$set" --json
    jq -se '.[0] | [.. | objects | select(.verdict? == "same")] | length > 0' <<<"$output"
}

@test "several published means of one place count as the runs that they stand for" {
    published
    jq '.results += [{cell: {nodes: 2, strategy: "ddp", repeat: 2}, train_s: 58, n: 15, sd: 1.2}]' "$set" >two.json
    run -0 "$hpcgrid" report two.json --format json
    # ln 52 and ln 58 weighted by 5 and 15
    jq -se 'map(.tables[0].points[] | select(.row.nodes == 2 and .column.strategy == "ddp") | .runs == 20 and .n == 2 and (.value - 56.4380 | fabs) < 1e-4
        and (.value_interval[0] > 54.9 and .value_interval[1] < 57.9) and .notes[0] == "2 results of 20 runs, means as published") == [true]' <<<"$output"
    run -0 "$hpcgrid" compare two.json "$set" --json
    jq -se '[.[0] | .. | objects | select(.cell?.nodes? == 2 and .cell?.strategy? == "ddp") | .a.n] | index(20) != null' <<<"$output" || { echo "$output"; return 1; }
}

@test "a row that says it is not comparable has no speedup, fraction, law or prediction, and --strict refuses it" {
    published
    run -0 "$hpcgrid" report "$set" --format json
    jq -se '.[0] | [.tables[0].points[] | select(.column.strategy == "dp")] | length == 3
        and all(.[]; .comparable == false and .value > 0 and (has("speedup") or has("efficiency") or has("serial_fraction") | not)
            and (.notes | any(test("not comparable with the others: each task"))))' <<<"$output"
    jq -se '.[0] | [.tables[].scaling[].label, (.tables[].listings[].rows[]? | tostring)] | map(select(test("dp") and (test("ddp") | not))) == []' <<<"$output"
    run -1 "$hpcgrid" report "$set" --strict
    run -0 "$hpcgrid" report "$set" --baseline nodes=2,strategy=dp
    [[ $output == *"its baseline is not comparable: each task"* && $output != *"1.73"* ]]
    run -1 "$hpcgrid" report "$labs/lab-strategies.json"
    [[ $output != *"7.487"* && $output != *"1.10"* && $output != *"0.549"* ]]
}

@test "n and sd are checked" {
    published
    for change in '.n = 2.5' '.n = 0' '.sd = -1' '.sd = "1.5"' '.sd = {"train_s": "x"}' 'del(.n)' '.not_comparable = true' '.footnote = 3' '.comparable = false'; do
        jq ".results[0] |= ($change)" "$set" >"$BATS_TEST_TMPDIR/bad.json"
        run -3 "$hpcgrid" report "$BATS_TEST_TMPDIR/bad.json"
        [[ $output == */results/0* ]] || { echo "$change: $output"; false; }
    done
    [[ $output == *"not_comparable"* ]] # what to write instead
}

@test "source, note and version stand in every form, those of rows, too" {
    published
    jq '.results[2] += {"note": "third row", "source": "table 3"}' "$set" >with.json
    version=$("$hpcgrid" --version | grep -o '[0-9][0-9.]*' | head -1)
    for form in text md csv json latex html "csv --pivot"; do
        # shellcheck disable=SC2086
        "$hpcgrid" report with.json --format $form >out
        for word in "a paper, table 2" "typed by hand" "hpcgrid $version" "third row" "table 3" "warmed up"; do
            grep -qF "$word" out || { echo "$form: no $word"; return 1; }
        done
    done
}
