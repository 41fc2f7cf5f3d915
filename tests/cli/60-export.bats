#!/usr/bin/env bats
# hpcgrid export: results as one table of an SQLite database.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    cd "$BATS_TEST_TMPDIR"
    export -n HPCGRID_REPORTS
    run "$hpcgrid" export -o none /dev/null
    [[ "$output" != *"without SQLite"* ]] || skip "built without SQLite"
}

# a result set: values of every kind, names that need quotes or differ in case only, two attempts of a cell
results() {
    jq -n '{schema: "hpcgrid-results/1", name: "x", source: "a \"place\"", results: [
        {id: "c-000000000001", attempt: "1.0", cell: {nodes: 1, lr: 0.5, LR: 7, name: "007", ok: true, "a\"b": "x"}, status: "failed", train_s: null},
        {id: "c-000000000001", attempt: "1.1", cell: {nodes: 1, lr: 0.5, LR: 7, name: "007", ok: true, "a\"b": "x"}, train_s: 3, eval: {accuracy: 0.25}, seen: [1, 2], half: 2},
        {id: "c-000000000002", attempt: "1.0", cell: {nodes: 2, lr: 2, LR: 8, name: "é\n", ok: false, wrap: "layer"}, train_s: 1.5, big: 9007199254740993, seen: 3, half: true}]}'
}

query() { sqlite3 -json x.db "$1" | jq -c .; }

@test "every result is a row, with CSV's names and the types of its values" {
    results >set.json
    "$hpcgrid" export set.json --out x.db
    diff <(sqlite3 x.db 'SELECT name, type FROM pragma_table_info("results")') - <<'END'
run|TEXT
id|TEXT
attempt|TEXT
counts|BOOLEAN
status|TEXT
added|BOOLEAN
baseline_id|TEXT
nodes|INTEGER
lr|REAL
LR_2|INTEGER
name|TEXT
ok|BOOLEAN
a"b|TEXT
wrap|TEXT
train_s|REAL
eval.accuracy|REAL
half|INTEGER
big|INTEGER
seen|
set_source|TEXT
made_by|TEXT
END
    sqlite3 x.db 'SELECT name FROM pragma_table_info("results")' | sed 's/^LR_2$/LR/' | paste -sd, |
        diff - <("$hpcgrid" report set.json -f csv | head -1 | tr -d '\r' | sed 's/"a""b"/a"b/')
    query 'SELECT attempt, counts, status, nodes, lr, LR_2, name, ok, wrap, train_s, "eval.accuracy" AS accuracy, big, seen, set_source FROM results' |
        diff - <(jq -nc '[{attempt: "1.0", counts: 0, status: "failed", nodes: 1, lr: 0.5, LR_2: 7, name: "007", ok: 1, wrap: null, train_s: null, accuracy: null,
            big: null, seen: null, set_source: "a \"place\""},
            {attempt: "1.1", counts: 1, status: "ok", nodes: 1, lr: 0.5, LR_2: 7, name: "007", ok: 1, wrap: null, train_s: 3, accuracy: 0.25, big: null, seen: "[1,2]", set_source: "a \"place\""},
            {attempt: "1.0", counts: 1, status: "ok", nodes: 2, lr: 2, LR_2: 8, name: "é\n", ok: 0, wrap: "layer", train_s: 1.5, accuracy: null, big: 9007199254740993, seen: 3,
            set_source: "a \"place\""}]')
    "$hpcgrid" export set.json --out x.db --where nodes=2
    [ "$(query 'SELECT count(*) AS n, min(nodes) AS nodes FROM results')" = '[{"n":1,"nodes":2}]' ]
    "$hpcgrid" export set.json "$HPCGRID_SOURCE/tests/data/results/quickstart.json" --out x.db
    [ "$(query 'SELECT count(DISTINCT run) AS runs FROM results')" = '[{"runs":2}]' ]
}

@test "results too many for memory make the same table" {
    jq -nc '{schema: "hpcgrid-results/1", name: "x", results: [range(60000) | {id: "c-\(1000000000000 + .)", cell: {nodes: (. % 4 + 1), seed: ., _pad: ("x" * 60)}, train_s: (. % 7 + 0.5)}]}' >many.json
    [ "$(stat -c %s many.json)" -gt 8388608 ]
    TMPDIR=$PWD "$hpcgrid" export many.json --out x.db
    [ "$(query 'SELECT count(*) AS n, count(DISTINCT seed) AS seeds, sum(nodes) AS nodes, total(train_s) AS s, typeof(seed) AS type FROM results')" = \
        "$(jq -c '[.results | {n: length, seeds: length, nodes: (map(.cell.nodes) | add), s: (map(.train_s) | add), type: "integer"}]' many.json)" ]
}

@test "a database stays whole when there is nothing to put in its place" {
    results >set.json
    "$hpcgrid" export set.json --out x.db
    cp x.db before.db
    echo '{"schema": "hpcgrid-results/1", "results": [{}' >broken.json
    run "$hpcgrid" export broken.json --out x.db
    [ "$status" -eq 3 ]
    jq '.results[0] += ([range(2100) | {"k\(.)": 1}] | add)' set.json >wide.json
    run "$hpcgrid" export wide.json --out x.db
    [ "$status" -eq 3 ]
    [[ "$output" == *"columns, SQLite has room for 2000"*"report --format csv"* ]]
    cmp x.db before.db
    ls | diff - <(printf '%s\n' before.db broken.json set.json wide.json x.db | sort)
    run "$hpcgrid" export set.json --out x.db --format parquet
    [ "$status" -eq 2 ]
    [[ "$output" == *'unknown format "parquet"'*"known: sqlite"* ]]
    run "$hpcgrid" export set.json
    [ "$status" -eq 2 ]
    [[ "$output" == *"--out FILE is needed"* ]]
    run "$hpcgrid" export set.json --out ""
    [ "$status" -eq 2 ]
    run "$hpcgrid" export set.json --out /dev/null
    [ "$status" -eq 2 ]
    mkdir folder
    run "$hpcgrid" export set.json --out folder
    [ "$status" -eq 4 ]
    [ "$output" = "hpcgrid: error: cannot write folder: it is a folder" ]
}
