#!/usr/bin/env bats
# hpcgrid report: from result sets to tables. Golden files are tests/cli/report/*; HPCGRID_BLESS=1
# writes them anew; read the diff.

bats_require_minimum_version 1.5.0
load ../plan

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    golden="$HPCGRID_SOURCE/tests/cli/report"
    data="$HPCGRID_SOURCE/tests/data/results"
    labs="$HPCGRID_SOURCE/reports/reference"
    cd "$BATS_TEST_TMPDIR"
    formats=$(sed -n 's/.* FORMAT .*one of //p' "$HPCGRID_SOURCE/tests/cli/help/report.txt") # golden, too
    [ -n "$formats" ]
}

same_as_golden() { # NAME ARGUMENT...
    local name=$1 status=0
    shift
    "$hpcgrid" report "$@" >out || status=$?
    sed -i 's/hpcgrid [0-9][0-9.]*/hpcgrid VERSION/' out
    [ "$status" -le 1 ] || return 1
    if [ -n "${HPCGRID_BLESS:-}" ]; then
        mkdir -p "$golden"
        cp out "$golden/$name"
    fi
    diff -u "$golden/$name" out
}

set_of() { # RESULTS [MEMBERS]: a result set with this text as its results
    printf '{"schema": "hpcgrid-results/1", "name": "x", %s"results": [%s]}\n' "${2:-}" "$1"
}

@test "every form of every set is as written down" {
    for set in "$data/quickstart" "$data/footnotes" "$labs"/lab-strategies "$labs"/lab-mnist-rnn "$labs"/lab-bert-a100; do
        for form in ${formats/html/}; do # 62-page has the page
            same_as_golden "$(basename "$set").$form" "$set.json" --format $form
        done
    done
    for set in artairmoimenta paulserin juanmaxtouyaa magnoint13 zhumojiang-mnist squad-baselines; do
        same_as_golden $set.text "$labs/$set.json"
    done
    same_as_golden lab-strategies.pivot.csv "$labs/lab-strategies.json" --format csv --pivot
    same_as_golden lab-strategies.narrow.text "$labs/lab-strategies.json" --width 60
    same_as_golden lab-mnist-rnn.ranks.text "$labs/lab-mnist-rnn.json" --ranks
    same_as_golden quickstart.ranks.md "$data/quickstart.json" --ranks --format md
    same_as_golden quickstart.ranks.csv "$data/quickstart.json" --ranks --format csv
    same_as_golden lab-mnist-rnn.rows.text "$labs/lab-mnist-rnn.json" --rows nodes,gpus_per_node
    same_as_golden two-sets.text "$labs/lab-strategies.json" "$labs/lab-bert-a100.json" --rows source,nodes
}

@test "a pivoted csv of several tables is one table" {
    set_of '{"cell": {"nodes": 1, "lr": 1, "strategy": "ddp"}, "train_s": 4}, {"cell": {"nodes": 1, "lr": 1, "strategy": "dp"}, "train_s": 5},
            {"cell": {"nodes": 1, "lr": 2, "strategy": "ddp"}, "train_s": 6}, {"cell": {"nodes": 2, "lr": 2, "strategy": "zero"}, "train_s": 7}' >set.json
    "$hpcgrid" report set.json --rows nodes --columns strategy --format csv --pivot | tr -d '\r' | cut -d, -f1-4,7,13,22 |
        diff - <(printf '%s\n' 'rehearsal,lr,nodes,strategy=ddp train_s,strategy=ddp train_s n,strategy=dp train_s,strategy=zero train_s' \
            false,1,1,4,1,5, false,2,1,6,1,, false,2,2,,,,7)
}

@test "columns of numbers say what they are, without rows, too" {
    set_of '{"cell": {"secs": 1}, "train_s": 1}, {"cell": {"secs": 2}, "train_s": 2}' >set.json
    "$hpcgrid" report set.json --columns secs >out
    grep -qx 'secs *1 *2' out
}

@test "the table in reports/README.md is the one that comes out" {
    "$hpcgrid" report "$labs/lab-strategies.json" --numbers seconds | head -20 >out || true
    sed -n '/^    lab-strategies · /,/^    \.\.\.$/s/^    //p; /^$/p' "$HPCGRID_SOURCE/reports/README.md" >readme
    grep -vxFf readme out && return 1
    [ "$(wc -l <out)" -eq 20 ]
}

@test "no line is wider than the width asked for" {
    for width in 60 80 120; do
        for set in "$data"/*.json "$labs"/*.json; do
            "$hpcgrid" report "$set" --width $width >out || true
            [ -s out ]
            [ "$(LC_ALL=C.UTF-8 wc -L <out)" -le $width ]
        done
    done
}

@test "the same results give the same bytes" {
    for form in ${formats/html/}; do
        "$hpcgrid" report "$data/quickstart.json" --format $form >a || true
        "$hpcgrid" report - --format $form <"$data/quickstart.json" >b || true
        LC_ALL=de_DE.UTF-8 TZ=Asia/Tokyo COLUMNS=200 "$hpcgrid" report "$data/quickstart.json" --format $form --out c || true
        cmp a b
        cmp a c
    done
}

@test "a decimal comma and durations are the same in every form" {
    for form in text md csv latex; do
        same_as_golden quickstart.numbers.$form "$data/quickstart.json" --format $form --numbers comma,durations
    done
    same_as_golden quickstart.numbers.pivot.csv "$data/quickstart.json" --format csv --pivot --numbers comma
    same_as_golden lab-mnist-rnn.durations.text "$labs/lab-mnist-rnn.json" --ranks --numbers durations
    if grep -E '[0-9]\.[0-9]' <(sed 's/^quickstart;.*;ok;//; s/"[^"]*"//g; s/;\x271\.[01];/;;/g' "$golden/quickstart.numbers.csv"); then return 1; fi
    LC_ALL=C "$hpcgrid" report "$labs/lab-strategies.json" --numbers locale | grep -q 186.62
    run --separate-stderr env LC_ALL=tlh_KX "$hpcgrid" report "$labs/lab-strategies.json" --numbers locale
    [ "$status" -eq 4 ]
    [[ "$stderr" == *"locale"*"not installed"* ]]
}

@test "times, speedups and efficiencies are those an independent program computes" {
    "$hpcgrid" report "$data/quickstart.json" --format csv >tidy.csv || true
    "$hpcgrid" report "$data/quickstart.json" --format csv --pivot >pivot.csv || true
    cat >check.awk <<'AWK'
    function center(key,    n, i, sum, v) { # geometric mean
        n = split(values[key], v, " ")
        for (i = 1; i <= n; i++)
            sum += log(v[i])
        return exp(sum / n)
    }
    function near(name, found, wanted) {
        if (found - wanted > 1e-9 || wanted - found > 1e-9) { print name, found, wanted; bad = 1 }
        checked++
    }
    { sub(/\r$/, "") }
    FNR == 1 { for (i = 1; i <= NF; i++) column[FILENAME, $i] = i; next }
    FILENAME == "tidy.csv" && $column[FILENAME, "counts"] == "true" {
        key = $column[FILENAME, "nodes"] "x" $column[FILENAME, "tasks_per_node"] $column[FILENAME, "strategy"]
        values[key] = values[key] " " $column[FILENAME, "train_s"]
        devices[key] = $column[FILENAME, "nodes"] * $column[FILENAME, "tasks_per_node"]
    }
    FILENAME == "pivot.csv" {
        key = $column[FILENAME, "nodes"] "x" $column[FILENAME, "tasks_per_node"] "ddp"
        base = center("1x1single")
        near(key " time", $column[FILENAME, "strategy=ddp train_s"], center(key))
        near(key " speedup", $column[FILENAME, "strategy=ddp speedup"], base / center(key))
        near(key " efficiency", $column[FILENAME, "strategy=ddp efficiency"], base / center(key) / devices[key])
    }
    END { exit bad || checked != 12 }
AWK
    awk -F, -f check.awk tidy.csv pivot.csv
}

@test "TF32 against FP32 is not sold as scaling, and killed runs enter no mean" {
    "$hpcgrid" report "$labs/paulserin.json" --format json >out.json
    jq -se '.[0] | .tables[0].points[] | select(.column.epochs == 2 and .row.strategy == "ddp")
        | .efficiency > 1.9 and .notes[0] == "differs from its baseline: precision tf32 (baseline fp32)"' out.json
    jq -se '.[0] | .tables[0].scaling == []' out.json
    "$hpcgrid" report "$labs/artairmoimenta.json" --format json >out.json || true
    jq -se '.[0] | .states == {"timeout": 5, "oom": 2} and .cells_complete == 13' out.json
    jq -se '.[0] | .tables[0].points[] | select(.row.gpus_per_node == 0) | .n == 0 and .of == 7 and (has("value") | not)' out.json
}

@test "exit code 1 and the header say that cells are missing" {
    run --separate-stderr "$hpcgrid" report "$data/quickstart.json"
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == *"partial: 13 of 15 cells complete (1 oom, 1 pending)"* ]]
    run --separate-stderr "$hpcgrid" report "$labs/lab-mnist-rnn.json"
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *"3 of 3 cells complete"* ]]
    run "$hpcgrid" report "$data/quickstart.json" --where strategy=single
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *"3 of 3 cells complete"* ]]
}

@test "a result that is not ok never enters a number" {
    set_of '{"cell": {"nodes": 1}, "train_s": 10}, {"cell": {"nodes": 2, "repeat": 1}, "train_s": 5},
            {"cell": {"nodes": 2, "repeat": 2}, "train_s": 0.001, "status": "failed"},
            {"cell": {"nodes": 4, "repeat": 1}, "train_s": null, "diverged": true}' '"baseline": {"nodes": 1, "repeat": null}, ' >set.json
    run "$hpcgrid" report set.json --format json
    [ "$status" -eq 1 ]
    jq -se '.[0] | .cells == 4 and .cells_complete == 2' <<<"$output"
    jq -se '.[0] | .tables[0].points[] | select(.row.nodes == 2) | .value == 5 and .n == 1 and .of == 2 and .speedup == 2' <<<"$output"
    jq -se '.[0] | .tables[0].points[] | select(.row.nodes == 4) | .state == "not measured"' <<<"$output"
}

@test "a place whose job was suspended says so" {
    set_of '{"cell": {"nodes": 1}, "train_s": 10}, {"cell": {"nodes": 2}, "train_s": 9, "suspended_s": 4.2}' >set.json
    "$hpcgrid" report set.json --format json | jq -se '.[0] | [.tables[0].points[] | [.row.nodes, (.notes // [] | any(startswith("suspended by")))]] == [[1, false], [2, true]]'
}

@test "rehearsals never stand in a table with real results" {
    "$hpcgrid" report "$data/footnotes.json" --rows nodes --columns hardware,strategy,gpus_per_node,tasks_per_node --format json >out.json || true
    jq -se '.[0] | [.tables[].rehearsal] | sort == [false, true]' out.json
    jq -se '.[0] | [.tables[] | select(.rehearsal) | .points[].column.hardware] | unique == ["rtx5070"]' out.json
    jq -se '.[0] | [.tables[] | select(.rehearsal | not) | .points[].column.hardware] | unique | index("rtx5070") | not' out.json
}

@test "a table never mixes metrics" {
    set_of '{"cell": {"nodes": 1}, "train_s": 10, "wall_s": 12}, {"cell": {"nodes": 2}, "wall_s": 7}' >set.json
    "$hpcgrid" report set.json --format json | jq -se '.[0] | .metric == "wall_s" and [.tables[0].points[].value] == [12, 7]'
    set_of '{"cell": {"nodes": 1}, "train_s": 10, "wall_s": 12}, {"cell": {"nodes": 2}, "train_s": 6, "wall_s": 7}' >set.json
    "$hpcgrid" report set.json --format json | jq -se '.[0] | .metric == "train_s" and [.tables[0].points[].value] == [10, 6]'
    set_of '{"cell": {"nodes": 1}, "train_s": 10}, {"cell": {"nodes": 2}, "wall_s": 7}' >set.json
    run "$hpcgrid" report set.json --format json
    [ "$status" -eq 1 ]
    jq -se '.[0] | .cells_complete == 1 and .metric == "wall_s"' <<<"$output"
}

@test "a rate is better the higher it is" {
    set_of '{"cell": {"nodes": 1}, "samples_per_s": 100}, {"cell": {"nodes": 2}, "samples_per_s": 190}' '"baseline": {"nodes": 1}, ' >set.json
    "$hpcgrid" report set.json --format json |
        jq -se '.[0] | .kind == "rate" and (.tables[0].points[1] | .speedup == 1.9 and .efficiency == 0.95)'
    set_of '{"cell": {"nodes": 1}, "score": 100}, {"cell": {"nodes": 2}, "score": 190}' '"baseline": {"nodes": 1}, ' >set.json
    "$hpcgrid" report set.json --metric score --format json | jq -se '.[0] | .kind == "other" and .tables[0].no_speedup'
    "$hpcgrid" report set.json --metric score --better higher --format json | jq -se '.[0] | .tables[0].points[1].speedup == 1.9'
}

@test "of several attempts the newest good one counts" {
    set_of '{"id": "c", "cell": {"nodes": 1}, "attempt": "1.9", "train_s": 9},
            {"id": "c", "cell": {"nodes": 1}, "attempt": "1.10", "train_s": 10},
            {"id": "c", "cell": {"nodes": 1}, "attempt": "2.0", "status": "failed"}' >set.json
    "$hpcgrid" report set.json --format json | jq -se '.[0] | .cells == 1 and .tables[0].points[0].value == 10'
    "$hpcgrid" report set.json --format csv | tr -d '\r' | cut -d, -f3,4,5 | diff - <(printf 'attempt,counts,status\n\x271.9,false,ok\n\x271.10,true,ok\n\x272.0,false,failed\n')
}

@test "adaptive repeats: the corrected interval, and which places stopped at the maximum" {
    jq -n '{schema: "hpcgrid-results/1", name: "x", repeats: {until: "5%", min: 3, max: 6}, baseline: {case: "quiet"}, results: [
        {quiet: [100, 101, 99], mid: [100, 104, 97, 101, 99], noisy: [50, 90, 70, 60, 80, 55], short: [50, 90, 70, 60]} | to_entries[]
        | .key as $case | .value | to_entries[] | {cell: {case: $case, repeat: (.key + 1)}, train_s: .value}]}' >set.json
    "$hpcgrid" report set.json --rows case >out
    grep -q 'geometric mean of 3 to 6 runs, repeated until ±5 %' out
    grep -q 'stopped at the maximum of 6 runs: ±2[0-9] %' out
    grep -q 'more runs are needed for ±5 %: ±[0-9]* %' out
    # t at 96 % for three runs, 98 % for five: scipy.stats.t.ppf
    "$hpcgrid" report set.json --rows case --format json >out.json
    jq -se '.[0] | .repeats == {until: 0.05, min: 3, max: 6} and .statistic == "geometric mean"' out.json
    jq -se '.[0] | [.tables[0].points[] | {key: .row.case, value: .value_interval}] | from_entries
        | ((.quiet[1] / .quiet[0] | log) - 2 * 4.848732213850609 * 0.010000375022692782 / (3 | sqrt) | fabs) < 1e-9
          and ((.mid[1] / .mid[0] | log) - 2 * 3.746947387979196 * 0.025744133685846726 / (5 | sqrt) | fabs) < 1e-9' out.json
}

@test "a seed made from repeat does not tear repeats apart" {
    set_of '{"cell": {"nodes": 1, "seed": 7, "repeat": 1}, "train_s": 8}, {"cell": {"nodes": 1, "seed": 8, "repeat": 2}, "train_s": 18},
            {"cell": {"nodes": 2, "seed": 7, "repeat": 1}, "train_s": 4}, {"cell": {"nodes": 2, "seed": 8, "repeat": 2}, "train_s": 9}' >set.json
    "$hpcgrid" report set.json --format json | jq -se '.[0] | [.tables[0].points[] | [.n, (.value * 1e9 | round)]] == [[2, 12e9], [2, 6e9]]'
}

@test "keys that vary besides give a table each" {
    set_of '{"cell": {"nodes": 1, "strategy": "ddp", "epochs": 1}, "train_s": 1}, {"cell": {"nodes": 1, "strategy": "ddp", "epochs": 2}, "train_s": 2}' >set.json
    "$hpcgrid" report set.json --format json | jq -se '.[0] | [.tables[] | [.where.epochs, .points[0].value]] == [[1, 1], [2, 2]]'
    "$hpcgrid" report set.json --columns strategy,epochs --rows nodes --format json | jq -se '.[0] | .tables | length == 1'
}

@test "baselines: put over the cell, null takes away, defaults need not be said" {
    set_of '{"cell": {"nodes": 1, "gpus_per_node": 1, "strategy": "single", "epochs": 3}, "train_s": 90},
            {"cell": {"nodes": 1, "gpus_per_node": 2, "tasks_per_node": 2, "strategy": "fsdp", "wrap": "layer", "epochs": 3}, "train_s": 50},
            {"cell": {"nodes": 1, "gpus_per_node": 2, "strategy": "ddp", "epochs": 6}, "train_s": 99}' \
        '"baseline": {"nodes": 1, "gpus_per_node": 1, "strategy": "single", "wrap": null}, ' >set.json
    "$hpcgrid" report set.json --rows strategy --columns epochs --format json >out.json
    jq -se '.[0] | [.tables[].points[] | select(.row.strategy == "fsdp")] == [.tables[].points[] | select(.speedup == 1.8)]' out.json
    jq -se '.[0] | .tables[].points[] | select(.row.strategy == "ddp") | (has("speedup") | not) and (.notes[0] | startswith("no speedup"))' out.json
    "$hpcgrid" report set.json -b 'gpus_per_node=1,strategy=single,wrap=null,epochs=3' --rows strategy --columns epochs --format json |
        jq -se '.[0] | [.tables[].points[] | .speedup] | length == 3 and all'
}

@test "what is wrong in a set is said with place and next step" {
    while IFS='|' read -r name text wanted; do
        printf '%s' "$text" >"$name.json"
        run --separate-stderr "$hpcgrid" report "$name.json"
        echo "$name: $status: $stderr"
        [ "$status" -eq 3 ]
        [ -z "$output" ]
        [[ "$stderr" == *"$wanted"* ]]
    done <<'EOT'
truncated|{"schema": "hpcgrid-results/1", "results": [{"cell": {"nodes": 1}, "train_s": 1|truncated.json:1:79: error: the file ends in the middle of a value
alien|[1, 2]|alien.json:1:1: error: not a result set: expected an object, found a list
empty||empty.json:1:1: error: the file ends in the middle of a value
no-schema|{"results": []}|"schema" is missing
newer|{"schema": "hpcgrid-results/2", "results": []}|newer.json:1:12: error: /schema: unknown schema "hpcgrid-results/2"
one-result|{"schema": "hpcgrid-result/2", "cell": {}}|name its run's folder instead
nothing|{"schema": "hpcgrid-results/1", "results": []}|/results: no results in it
nan|{"schema": "hpcgrid-results/1", "results": [{"cell": {}, "train_s": NaN}]}|nan.json:1:69: error: not valid JSON near 'NaN'
infinity|{"schema": "hpcgrid-results/1", "results": [{"cell": {}, "train_s": 1e999}]}|infinity.json:1:69: error: a number too large
negative|{"schema": "hpcgrid-results/1", "results": [{"cell": {}, "train_s": -5}]}|/results/0/train_s: expected a number that is not negative, found -5
unit|{"schema": "hpcgrid-results/1", "results": [{"cell": {}, "train_s": "12.3 s"}]}|unit.json:1:69: error: /results/0/train_s: expected a number, found "12.3 s"
no-cell|{"schema": "hpcgrid-results/1", "results": [{"train_s": 3}]}|/results/0: "cell" is missing
half-a-node|{"schema": "hpcgrid-results/1", "results": [{"cell": {"nodes": 0.5}, "train_s": 3}]}|/results/0/cell/nodes: expected a whole number from 1, found 0.5
twice|{"schema": "hpcgrid-results/1", "results": [{"cell": {"nodes": 1}, "train_s": 3}, {"cell": {"nodes": 1.0, "_label": "b"}, "train_s": 4}]}|/results/1: the same cell as /results/0
flag|{"schema": "hpcgrid-results/1", "results": [{"cell": {}, "rehearsal": "no", "train_s": 3}]}|/results/0/rehearsal: expected true or false, found "no"
baselin|{"schema": "hpcgrid-results/1", "baselin": {}, "results": [{"cell": {}, "train_s": 3}]}|did you mean "baseline"?
base-key|{"schema": "hpcgrid-results/1", "baseline": {"nodez": 1}, "results": [{"cell": {"nodes": 1}, "train_s": 3}]}|base-key.json:1:55: error: /baseline/nodez: no cell has "nodez"
row-key|{"schema": "hpcgrid-results/1", "report": {"rows": ["nods"]}, "results": [{"cell": {"nodes": 1}, "train_s": 3}]}|row-key.json:1:53: error: /report/rows/0: no cell has "nods"
report|{"schema": "hpcgrid-results/1", "report": {"row": ["nodes"]}, "results": [{"cell": {"nodes": 1}, "train_s": 3}]}|unknown member "row"
both|{"schema": "hpcgrid-results/1", "report": {"rows": ["nodes"], "columns": ["nodes"]}, "results": [{"cell": {"nodes": 1}, "train_s": 3}]}|"nodes" is both row and column
EOT
}

@test "what is wrong in an option is said with the words that are known" {
    set="$labs/lab-strategies.json"
    while IFS='|' read -r code options wanted; do
        run --separate-stderr "$hpcgrid" report "$set" $options
        echo "$options: $status: $stderr"
        [ "$status" -eq "$code" ]
        [ -z "$output" ]
        [[ "$stderr" == *"$wanted"* ]]
    done <<EOT
3|--rows nods|rows: no cell has "nods"
3|--columns strategie|did you mean "strategy"?
3|--metric trian_s|did you mean "train_s"?
3|--where nodes=7|no cell matches "nodes=7"
3|--where strateg=ddp|where: no cell has "strateg"
3|--where nodes=1,strateg!=ddp|did you mean "strategy"?
3|--where !strateg|did you mean "strategy"?
3|--where id=x|no cell matches "id=x"
3|--baseline nodez=1|--baseline: no cell has "nodez"
2|--baseline nodes|--baseline: "nodes" is not KEY=VALUE
3|--baseline {"nodes":}|--baseline:1:10: error
2|--format yaml|known: ${formats// /, }
2|--better bigger|--better: "bigger" is neither lower nor higher
2|--pivot|--pivot does not go with --format text
2|--ranks -f json|known: text, md, csv
3|--ranks|no result lists its ranks
2|--width 3|width
2|--numbers komma|did you mean "comma"?
2|--numbers comma -f json|known: $(sed "s/ json//; s/ /, /g" <<<"$formats")
EOT
    run "$hpcgrid" report no-such-run
    [ "$status" -ge 3 ]
    run bash -c "'$hpcgrid' report '$set' >/dev/full"
    [ "$status" -eq 4 ]
    run "$hpcgrid" report "$set" --out /nowhere/x
    [ "$status" -eq 4 ]
}

@test "two problems in one set are both reported" {
    set_of '{"cell": {"nodes": 1}, "train_s": "1"}, {"cell": {"nodes": 2}, "wall_s": -1}' >set.json
    run --separate-stderr "$hpcgrid" report set.json
    [ "$status" -eq 3 ]
    [[ "$stderr" == */results/0/train_s*/results/1/wall_s* ]]
}

@test "names full of markup, formulas and escape sequences stay names" {
    set_of '{"cell": {"nodes": 1, "strategy": "=1+1,\"a\"\n<b>|\u001b[31m"}, "train_s": 3}, {"cell": {"nodes": 2, "strategy": "ddp"}, "train_s": 2}' >set.json
    "$hpcgrid" report set.json >text
    "$hpcgrid" report set.json -f md >md
    "$hpcgrid" report set.json -f csv >csv
    "$hpcgrid" report set.json -f latex >tex
    if grep -q $'\033' text md tex; then return 1; fi
    grep -qF '\textless{}b\textgreater{}\textbar{}' tex
    [ "$(grep -c '^| 1 |' md)" -eq 1 ]
    grep -qF '&lt;b>\|' md
    grep -qF "\"'=1+1,\"\"a\"\"" csv
    python3 - <<'PY'
import csv
rows = list(csv.DictReader(open("csv", newline="")))
assert len(rows) == 2 and rows[0]["strategy"].startswith("'=1+1,\"a\"\n<b>|"), rows
PY
}

# Names that are something else in one of the forms: markup, formulas, LaTeX, control characters, directions of writing.
bad_names() {
    jq -n '{schema: "hpcgrid-results/1", name: "a\u202eb_<i>&\u0007", baseline: {nodes: 1}, results: [
        ("\u05d0\u05d1\u05d2", "<script>alert(1)</script>", "=HYPERLINK(\"x\")", "+1+1", "-a", "@SUM(A1)", "\t=1", "\uff1d1+1", "\\input{x}", "$x_1^2$ 50% #~", "a|b`c`*d*[e](f)",
         "\u001b[31mred", "a\nb\r\nc", "\u202etxt.exe", "\u2028x\u200f", "\uffff\u009b31m", "\"q\", 1", "\u0000"[0:0] + "plain", "{{title}}") as $s
        | (1, 2) as $n | {cell: {nodes: $n, strategy: $s}, train_s: (10 / $n), wall_s: 11, init_s: 1, ranks: [{rank: 0, host: $s, real_s: 1}], env: {cpu: $s}}]}'
}

@test "bad names stay names in every form" {
    bad_names >set.json
    columns='--rows nodes --columns strategy'
    for form in text md latex html sentences; do
        "$hpcgrid" report set.json $columns --format $form >$form
        "$hpcgrid" report set.json --rows strategy --columns nodes --format $form >>$form
    done
    "$hpcgrid" report set.json --ranks >>text
    "$hpcgrid" report set.json --ranks --format md >>md
    "$hpcgrid" report set.json $columns --plot speedup --format gp >gp
    printf '{{title}}{{#results}}{{cell.strategy}}{{/results}}{{#facts}}{{value}}{{/facts}}' >t.txt
    "$hpcgrid" report set.json --template t.txt >template
    for form in text md latex html sentences gp template; do
        [ -s $form ]
        # no control characters but ends of lines, nothing that turns what stands beside it
        if LC_ALL=C.UTF-8 grep -nP '[\x00-\x08\x0b-\x1f\x7f]|[\x{80}-\x{9f}\x{ffff}]|[\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}\x{2028}\x{2029}]' $form; then return 1; fi
        grep -qF $'\xd7\x90\xd7\x91\xd7\x92' $form # letters stay what they are
    done
    [ "$(grep -o '<script' html | wc -l)" -eq 2 ] # one a page, its own
    if grep -qE '(^|[^\\])(\$x|#~|50%)|\\input' latex; then return 1; fi
    if grep -E '^\|.*[^\\](\*d|\[e|`c)' md; then return 1; fi
    "$hpcgrid" report set.json --format csv >csv
    "$hpcgrid" report set.json --format csv --pivot --rows strategy --columns nodes >pivot
    "$hpcgrid" report set.json --format csv --ranks >ranks
    # no field begins a formula
    for file in csv pivot ranks; do
        if LC_ALL=C grep -aP '(^|,)"?([=@\t]|\+1|-a|\xef\xbc\x9d)' $file; then return 1; fi
    done
    "$hpcgrid" report set.json --format json | jq -se --slurpfile set set.json \
        '.[0] | [.tables[].points[].column.strategy] | unique == ([$set[0].results[].cell.strategy] | unique)'
}

@test "an apostrophe before what looks like a number stands within its quotes" {
    set_of '{"cell": {"nodes": 1, "strategy": " 1"}, "train_s": 3}, {"cell": {"nodes": 2, "strategy": "1.10"}, "train_s": 2}' >set.json
    "$hpcgrid" report set.json -f csv >csv
    python3 -c 'import csv; print([r["strategy"] for r in csv.DictReader(open("csv", newline=""))])' >got
    diff got - <<<"[\"' 1\", \"'1.10\"]"
}

@test "what programs read arrives byte for byte, and steers no terminal" {
    bad_names >set.json
    for words in "--format csv" "--format json" "--format md"; do
        "$hpcgrid" report set.json $words >piped
        script -qec "$hpcgrid report set.json $words" /dev/null </dev/null | sed 's/\r$//' >shown
        if LC_ALL=C.UTF-8 grep -nP '[\x00-\x08\x0b-\x1f\x7f]|[\x{80}-\x{9f}\x{202e}]' shown; then return 1; fi
        [ "$words" != "--format csv" ] || grep -q $'\033' piped
    done
    grep -q '^|' shown
}

@test "one who knows only XML can read every name" {
    bad_names >set.json
    "$hpcgrid" compare set.json set.json --format junit >junit.xml || [ $? -eq 1 ]
    python3 -c 'import xml.etree.ElementTree as e; e.parse("junit.xml")'
}

# A run without Slurm: a plan written by hand, its cells run by the node side; the third fails, the
# fourth never starts.
make_run() {
    export HPCGRID_REPORTS=$BATS_TEST_TMPDIR/reports
    run_dir=$HPCGRID_REPORTS/hand/001
    mkdir -p -m 0700 "$run_dir/batches"
    cat >"$run_dir/plan.json" <<END
{"schema": "hpcgrid-plan/3", "name": "hand", "run_key": "0123456789abcdef0123456789abcdef",
 "workload": {"command": ["sh", "-c", "exec sh $run_dir/work.sh"], "launch": [], "cwd": "/"},
 "site": {"name": "here", "launcher": []},
 "batches": [{"number": 1, "cells": 4, "hardware": "cpu", "gpu": false, "job": {"nodes": 1, "tasks_per_node": 1, "cpus_per_task": 1, "time_s": 0}}]}
END
    cat >"$run_dir/matrix.json" <<'END'
{"hpcgrid": 1, "name": "hand", "workload": {"command": ["x"]}, "baseline": {"nodes": 1}, "report": {"rows": ["nodes"], "columns": ["algo"]}}
END
    cat >"$run_dir/work.sh" <<'END'
case $HPCGRID_NODES$HPCGRID_ALGO in 1ring) t=8.5 ;; 2ring) t=5.0 ;; *) exit 9 ;; esac
printf '{"train_s": %s}' $t >"$HPCGRID_RESULT"
END
    for cell in '1 ring' '2 ring' '1 tree' '2 tree'; do
        set -- $cell
        printf '{"id":"x-%s-%s","baseline":"x-1-%s","added":false,"cell":{"hardware":"cpu","nodes":%s,"gpus_per_node":0,"tasks_per_node":1,"algo":"%s"}}\n' $1 $2 $2 $1 $2
    done >"$run_dir/batches/1.cells.jsonl"
    index_cells "$run_dir"
    for task in 0 1 2; do
        SLURM_ARRAY_TASK_ID=$task "$hpcgrid" exec --run "$run_dir" --batch 1 >>log 2>&1 || true
    done
}

@test "a run is found by name, folder or matrix, tabulated, and its tables kept" {
    make_run
    cat log
    run --separate-stderr "$hpcgrid" report hand
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == "hand/001 · partial: 2 of 4 cells complete (1 failed, 1 pending)" ]]
    [[ "$output" == *"nodes   ring         tree"* ]]
    wall_s=$(jq .wall_s "$run_dir/cells/1-000/x-1-ring.0.0/result.json")
    [[ "$output" == *"more time than it ran: train_s 8.5 of wall_s $(printf %.6g "$wall_s"),"* ]] # its program made its times up
    [[ "$output" == *"    2   1.70"* ]]
    [[ "$output" == *"    2  0.850"* ]]
    diff <("$hpcgrid" report "$run_dir") <(printf '%s\n' "$output")
    diff <("$hpcgrid" report "$run_dir/matrix.json") <(printf '%s\n' "$output")
    diff "$run_dir/tables/report.txt" <(printf '%s\n' "$output")
    cmp "$run_dir/tables/results.csv" <("$hpcgrid" report hand -f csv)
    cmp "$run_dir/tables/report.json" <("$hpcgrid" report hand -f json)
    cmp "$run_dir/tables/report.md" <("$hpcgrid" report hand -f md)
    grep -q "<title>hand/001</title>" "$run_dir/tables/report.html"
}

@test "a run is priced as its site says, and followed over all runs of its name" {
    make_run
    jq -n '{name: "here", currency: "EUR", hardware: {cpu: {gpus_per_node: 0, price_per_hour: 36}}}' >"$run_dir/site.json"
    "$hpcgrid" report hand --format json >out.json || true
    jq -se '.[0] | .currency == "EUR" and ([.tables[0].points[] | select(.cost)] | length == 2 and all(.cost > 0 and (.cost - 36 * .device_hours | fabs) < 1e-9))' out.json
    jq -se '.[0] | .listings[] | select(.name == "spent") | .rows[0] | .attempts == 3 and .lost_attempts == 1' out.json
    run "$hpcgrid" history hand
    [ "$status" -eq 3 ]
    [[ "$output" == *"a history needs at least two sets of results"* ]]
    cp -r "$run_dir" "$HPCGRID_REPORTS/hand/003"
    run --separate-stderr "$hpcgrid" history hand
    echo "$output"
    [ "$status" -eq 0 ] # what never worked is no news
    [[ "${lines[0]}" == "hand/001 to hand/003 · 2 sets, 2 cells: 2 steady" ]]
}

@test "a damaged result file does not hide the others" {
    make_run
    truncate -s 100 "$run_dir/cells/1-000/x-2-ring.0.0/result.json"
    run --separate-stderr "$hpcgrid" report hand
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == *"1 of 4 cells complete (1 failed, 1 invalid, 1 pending)"* ]]
    [[ "$output" == *"invalid (cells/1-000/x-2-ring.0.0/result.json: "* ]]
}

@test "ten thousand results are read, checked and tabulated" {
    jq -n '{schema: "hpcgrid-results/1", name: "many", baseline: {nodes: 1, gpus_per_node: 1, strategy: "single"},
        results: [range(10) as $lr | ("single", "ddp", "fsdp", "deepspeed") as $s | (1, 2, 4, 8, 16) as $n | (1, 2, 4, 8, 16) as $g
        | range(10) as $r | {id: "\($lr) \($s) \($n) \($g) \($r)", attempt: "1.0", status: "ok",
           cell: {hardware: "a100", nodes: $n, gpus_per_node: $g, strategy: $s, lr: $lr, epochs: 3, batch_size: 8, model: "bert-base", repeat: ($r + 1)},
           train_s: (1000 / ($n * $g) + $r), wall_s: (1000 / ($n * $g) + $r + 3), comparable: {precision: "bf16", global_batch: ($n * $g * 8)}}]}' >many.json
    [ "$(jq '.results | length' many.json)" -eq 10000 ]
    "$hpcgrid" report many.json >out
    [ "$(grep -c '^lr=' out)" -eq 10 ]
}

@test "of more cells than anyone reads every form has a digest, and says so" {
    awk 'BEGIN { printf "{\"schema\": \"hpcgrid-results/1\", \"name\": \"many\", \"source\": \"a generator\", \"results\": ["
        for (i = 0; i < 100008; i++)
            printf "%s{\"cell\":{\"hardware\":\"a100\",\"nodes\":%d,\"strategy\":\"%s\",\"lr\":%d},%s}\n", i ? "," : "", i % 4 + 1,
                i % 2 ? "ddp" : "fsdp", i, i == 77 ? "\"status\":\"oom\"" : "\"train_s\":" 1 + (i * 7919) % 100008
        printf "]}" }' >many.json
    jq -r '.results | map(select(.cell.nodes == 3) | .train_s) | sort | "\(length) \(.[0]) \((.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2) \(.[-1])"' many.json >wanted
    run -1 "$hpcgrid" report many.json --format json
    jq -se '.[0] | .tables == [] and .cells == 100008 and .cells_complete == 100007 and .states == {"oom": 1}' <<<"$output"
    jq -r '.listings[] | select(.name == "by_key") | .rows[] | select(.key == "nodes" and .key_value == "3") | "\(.complete) \(.lowest) \(.median) \(.highest)"' <<<"$output" |
        diff wanted -
    jq -se '.[0] | [.listings[].name] == ["by_key", "lowest", "highest", "incomplete"]' <<<"$output"
    jq -se '.[0] | [.listings[1].rows[].value] == [range(1; 21)]' <<<"$output"
    jq -se '.[0] | .listings[3].rows == [{nodes: "2", strategy: "ddp", lr: "77", status: "oom"}]' <<<"$output"
    for form in text md latex html; do
        run -1 "$hpcgrid" report many.json --format $form
        [[ "$output" == *"100008 cells are too many for tables: this is a part."* ]]
    done
    [[ "$output" == *"a generator"* ]]                 # where it comes from
    [[ "$output" == *"hpcgrid report --format html many.json"* ]]
    run -0 "$hpcgrid" report many.json --where lr=5 # of a part there are tables
    [[ "$output" == *"1 of 1 cell complete"*"train_s, seconds"* ]]
    run -1 "$hpcgrid" report many.json --rows lr --columns strategy,nodes
    [ "${#lines[@]}" -gt 100000 ]
}

@test "tables for a paper: caption, label, parts that fit a column" {
    "$hpcgrid" report "$labs/lab-strategies.json" --format latex --label tab:lab --caption 'Six $n$' >out || [ $? -eq 1 ]
    grep -qxF '\caption{Six $n$}' out
    grep -A1 -F '\caption{Six $n$}' out | grep -qxF '\label{tab:lab}'
    grep -qxF '\label{tab:lab-best}' out
    [ "$(sed '/end{table}/q' out | grep -c 'begin{tabular}')" -gt 1 ] # 453 pt in one piece
    "$hpcgrid" report "$labs/lab-strategies.json" --format latex --width 600 >wide || [ $? -eq 1 ]
    [ "$(sed '/end{table}/q' wide | grep -c 'begin{tabular}')" -eq 1 ]
    if grep -q 'label{' wide; then return 1; fi
    # a part for each figure, none lost: the same cells in both
    for word in 3m6.619s 13m11.958s 0m59.425s 0.321 3.261; do
        [ "$(grep -oF "$word" out | wc -l)" = "$(grep -oF "$word" wide | wc -l)" ]
    done
    jq '.results = (.results | map(.cell.lr = 1)) + (.results | map(.cell.lr = 2))' "$labs/lab-strategies.json" >two.json
    "$hpcgrid" report two.json --group lr --format latex --label tab:lab --caption Six >out || [ $? -eq 1 ]
    grep -qxF '\caption{Six (lr=1)}' out
    grep -qxF '\label{tab:lab-2}' out
    run -2 "$hpcgrid" report "$labs/lab-strategies.json" --label x
    [[ $output == *"--label does not go with --format text"* ]]
}

@test "texts that look like numbers stay texts in csv" {
    set_of '{"id": "c", "cell": {"torch": "2.10", "tag": "NA", "n": 2.10}, "attempt": "1.10", "train_s": 9, "word": "true", "flag": true, "plain": "a1.10", "seven": "007"}' >set.json
    "$hpcgrid" report set.json --format csv | tr -d '\r' | cut -d, -f1-13 |
        diff - <(printf '%s\n' 'run,id,attempt,counts,status,added,baseline_id,torch,tag,n,train_s,word,flag' "x,c,'1.10,true,ok,false,,'2.10,'NA,2.1,9,'true,true")
    "$hpcgrid" report set.json --format csv | grep -qF "a1.10,'007"
    set_of '{"cell": {"torch": "2,10"}, "train_s": 9.5}' >set.json
    "$hpcgrid" report set.json --format csv --numbers comma | grep -qF "'2,10;9,5"
}

@test "a sentence for each comparison says what the table says, and no more" {
    set_of '{"cell": {"nodes": 1, "strategy": "single"}, "train_s": 100, "n": 5, "sd": 1.5}, {"cell": {"nodes": 4, "strategy": "ddp"}, "train_s": 30, "n": 5, "sd": 0.5},
            {"cell": {"nodes": 2, "strategy": "ddp"}, "train_s": 52}, {"cell": {"nodes": 2, "strategy": "dp"}, "train_s": 90, "not_comparable": "no sampler"}' \
        '"baseline": {"nodes": 1, "strategy": "single"}, ' >set.json
    "$hpcgrid" report set.json --format sentences >out
    grep -qxF 'ddp on 4 GPUs is 3.33 (95 % CI 3.26 to 3.41, n = 5) times as fast as single on 1 GPU. Note: mean of 5 runs, as published.' out
    grep -qxF 'ddp on 2 GPUs is 1.92 (n = 1 and 5, no interval) times as fast as single on 1 GPU.' out
    grep -qxF 'No comparison of dp on 2 GPUs. Note: not comparable with the others: no sampler.' out
    "$hpcgrid" report set.json --format sentences --numbers comma | grep -qF '3,33 (95 % CI 3,26 to 3,41'
    for set in "$data"/*.json "$labs"/*.json; do
        "$hpcgrid" report "$set" --format sentences >out || [ $? -eq 1 ]
        "$hpcgrid" report "$set" --format json >out.json || [ $? -eq 1 ]
        [ "$(jq '[.tables[].points[] | select(.speedup and (.is_baseline | not))] | length' out.json)" = "$(grep -cE ' (times as fast as|scaled speedup of|times better than) ' out)" ]
    done
}

@test "csv by step, by epoch, and for pgfplots" {
    set_of '{"id": "a", "attempt": "1.10", "cell": {"nodes": 1, "strategy": "single"}, "train_s": 100, "n": 5, "sd": 1.5, "epoch_s": [50, 49.5],
             "loss": {"epoch": [0.5, 0.25], "step": [1, 10], "loss": [0.75, 0.125], "lr": [0.1, 0.2]}},
            {"id": "b", "cell": {"nodes": 2, "strategy": "ddp lr=0.1"}, "train_s": 50, "n": 5, "sd": 1, "epoch_s": [25]}, {"id": "c", "cell": {"nodes": 2, "strategy": "single"}, "train_s": 60}' \
        '"baseline": {"nodes": 1, "strategy": "single"}, ' >set.json
    "$hpcgrid" report set.json --csv steps | tr -d '\r' | diff - <(printf '%s\n' id,attempt,nodes,strategy,step,loss,lr "a,'1.10,1,single,1,0.75,0.1" "a,'1.10,1,single,10,0.125,0.2")
    "$hpcgrid" report set.json --csv epochs | tr -d '\r' | diff - <(printf '%s\n' id,attempt,nodes,strategy,epoch,epoch_s,loss \
        "a,'1.10,1,single,1,50,0.5" "a,'1.10,1,single,2,49.5,0.25" 'b,,2,ddp lr=0.1,1,25,')
    "$hpcgrid" report set.json --csv pgfplots | tr -d '\r' >plot.csv
    head -1 plot.csv | grep -qx 'table,devices,single,single_minus,.*,single_efficiency,ddp_lr_0_1,.*,ddp_lr_0_1_efficiency'
    awk -F, 'NR == 2 { ok = $2 == 1 && $3 == 100 && $4 > 1.8 && $5 > 1.8 && $10 == "nan" }
             NR == 3 { ok = ok && $2 == 2 && $3 == 60 && $4 == "nan" && $10 == 50 && $13 == 2 && $16 == 1 } END { exit !ok || NR != 3 }' plot.csv
    run -3 "$hpcgrid" report "$labs/lab-strategies.json" --csv steps
    [[ $output == *"no result has a list by step"* ]]
    run -2 "$hpcgrid" report set.json --csv days
    run -2 "$hpcgrid" report set.json --csv steps --pivot
    run -2 "$hpcgrid" report set.json --csv steps --format text
}
