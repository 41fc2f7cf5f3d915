#!/usr/bin/env bats
# hpcgrid report --format html: the page as text. How it looks and behaves is seen in a browser: tests/peers.

bats_require_minimum_version 1.5.0
load ../plan

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    golden="$HPCGRID_SOURCE/tests/cli/report"
    data="$HPCGRID_SOURCE/tests/data/results"
    labs="$HPCGRID_SOURCE/reports/reference"
    cd "$BATS_TEST_TMPDIR"
}

page() { # SET.json OPTION...: its page in the file "out"; exit code 1 (cells are missing) is fine
    local status=0
    "$hpcgrid" report --format html --out out "$@" || status=$?
    [ "$status" -le 1 ]
}

# The golden pages leave out style and script, which are the same in all of them.
same_as_golden() { # NAME
    sed -e '/^<style>$/,/^<\/style>$/d' -e '/<script>/,/<\/script>/d' -e 's/hpcgrid [0-9][0-9.]*</hpcgrid VERSION</' out >body
    if [ -n "${HPCGRID_BLESS:-}" ]; then
        cp body "$golden/$1.html"
    fi
    diff -u "$golden/$1.html" body
}

@test "pages are as written down" {
    cd "$data"
    for set in quickstart footnotes; do
        cd "$data" && page $set.json --out "$BATS_TEST_TMPDIR/out"
        cd "$BATS_TEST_TMPDIR" && same_as_golden $set
    done
    for set in lab-strategies lab-mnist-rnn lab-bert-a100; do
        cd "$labs" && page $set.json --out "$BATS_TEST_TMPDIR/out"
        cd "$BATS_TEST_TMPDIR" && same_as_golden $set
    done
}

@test "the same results give the same page" {
    cp "$data/quickstart.json" set.json
    page set.json && mv out a
    LC_ALL=de_DE.UTF-8 TZ=Asia/Tokyo COLUMNS=200 page set.json && mv out b
    "$hpcgrid" report --format html set.json >c || true
    cmp a b
    cmp a c
}

@test "the page needs nothing from outside and runs no other script" {
    page "$data/quickstart.json" --numbers comma
    if grep -oiE '(src|href|action|url|import|@import)[ =(]*["'\'']?(https?:)?//[^"]*' out; then return 1; fi
    [ "$(grep -c '<script>' out)" -eq 1 ]
    if grep -iE ' on[a-z]+=' out; then return 1; fi
    hash=$(sed -n 's/.*script-src .sha256-\([^'\'']*\).*/\1/p' out)
    sed -n '/<script>/,/<\/script>/p' out | sed -e '1s/.*<script>//' -e '$d' | sha256sum | cut -d' ' -f1 |
        sed 's/../\\x&/g' >hex
    [ "$hash" = "$(printf "$(cat hex)" | base64)" ]
}

@test "every table has headers with a scope, a caption and a name" {
    for set in "$data"/*.json "$labs"/*.json; do
        page "$set"
        [ "$(grep -c '<table class="sort"' out)" -eq "$(grep -c '<caption>..*</caption>' out)" ]
        if grep -o '<th[^e][^>]*>' out | grep -v 'scope="'; then return 1; fi
        if grep -o '<div class="scroll" [^>]*>' out | grep -v 'aria-label="..*"'; then return 1; fi
        for tag in table thead tbody tr td th section div p ol li details summary sup small span bdi header main h1 h2 body html; do
            [ "$(grep -oE "<$tag[ >]" out | wc -l)" -eq "$(grep -o "</$tag>" out | wc -l)" ] || { echo "$set: $tag"; false; }
        done
    done
}

@test "each note that is referred to is there" {
    page "$data/footnotes.json"
    grep -o 'href="#[^"]*"' out | sort -u | sed 's/href="#/id="/' >wanted
    [ -s wanted ]
    while read -r id; do grep -qF "$id" out || { echo "$id"; false; }; done <wanted
}

@test "names stay names: markup, entities, direction, control characters" {
    jq -n '{schema: "hpcgrid-results/1", name: "<script>alert(1)</script>", source: "\"><img src=x onerror=alert(1)>", results: [
        {id: "../../etc", attempt: "1.0", cell: {nodes: 1, strategy: "<b>&amp;\"'\''\u0001\u202e"}, train_s: 3},
        {cell: {nodes: 2, strategy: "\u05d0\u05d1"}, status: "</td><script>", error: {message: "</li><script>x"}}]}' >set.json
    page set.json
    [ "$(grep -oi '<script' out | wc -l)" -eq 1 ]
    if grep -qi '<img' out; then return 1; fi
    if LC_ALL=C.UTF-8 grep -qP '[\x00-\x08\x0b-\x1f]|\x{202e}' out; then return 1; fi
    grep -qF '&#60;b&#62;&#38;amp;&#34;&#39;??' out
    grep -qF $'\xd7\x90\xd7\x91' out
    grep -qF '&#60;/li&#62;&#60;script&#62;x' out
}

@test "a run's page is kept beside its tables and finds its logs" {
    export HPCGRID_REPORTS=$PWD/reports
    run_dir=$HPCGRID_REPORTS/hand/001
    mkdir -p -m 0700 "$run_dir/batches" elsewhere
    cat >"$run_dir/plan.json" <<END
{"schema": "hpcgrid-plan/3", "name": "hand", "run_key": "0123456789abcdef0123456789abcdef",
 "workload": {"command": ["sh", "-c", "echo hello; echo '{\\"train_s\\": 5, \\"loss\\": {\\"epoch\\": [2.5, 1.25]}}' >\$HPCGRID_RESULT"], "launch": [], "cwd": "/"},
 "site": {"name": "here", "launcher": []},
 "batches": [{"number": 1, "cells": 1, "hardware": "cpu", "gpu": false, "job": {"nodes": 1, "tasks_per_node": 1, "cpus_per_task": 1, "time_s": 0}}]}
END
    printf '{"hpcgrid": 1, "name": "hand", "_why": "a < b & c"}\n' >"$run_dir/matrix.json"
    echo '{"id":"x-1","baseline":"","added":false,"cell":{"hardware":"cpu","nodes":1,"gpus_per_node":0,"tasks_per_node":1}}' \
        >"$run_dir/batches/1.cells.jsonl"
    index_cells "$run_dir"
    SLURM_ARRAY_TASK_ID=0 "$hpcgrid" exec --run "$run_dir" --batch 1
    "$hpcgrid" report hand >text
    for file in "$run_dir/tables/report.html" elsewhere/page.html page.html; do
        [ -e "$file" ] || "$hpcgrid" report hand --format html --out "$file"
        link=$(grep -o 'href="[^"]*out.log"' "$file" | cut -d'"' -f2)
        [ "$(cat "$(dirname "$file")/$link")" = hello ]
    done
    grep -qF '<a href="../cells/1-000/x-1.0.0/">files</a>' "$run_dir/tables/report.html"
    grep -qF 'a &#60; b &#38; c' page.html
    grep -qF 'hpcgrid report --format html hand' page.html
    grep -q '<th scope="row" class="l">hosts</th>' page.html
    grep -q 'hand/001: loss' page.html # the curve is read from the result's own file
    { printf '{"hpcgrid": 1, "name": "hand", "_long": "'; head -c 70000 /dev/zero | tr '\0' x; printf '"}\n'; } >"$run_dir/matrix.json"
    "$hpcgrid" report hand --format html --out page.html
    grep -qF '68 KiB, too long for this page: matrix.json in the run' page.html
}

@test "a result of which any byte was changed does not count" {
    export HPCGRID_REPORTS=$PWD/reports
    run_dir=$HPCGRID_REPORTS/hand/001
    mkdir -p -m 0700 "$run_dir/batches"
    cat >"$run_dir/plan.json" <<END
{"schema": "hpcgrid-plan/3", "name": "hand", "run_key": "0123456789abcdef0123456789abcdef",
 "workload": {"command": ["sh", "-c", "echo '{\\"train_s\\": 5.25, \\"z\\": {\\"b\\": 1e-7, \\"a\\": [1, {}]}, \\"loss\\": {\\"epoch\\": [2.5, 1.25]}}' >\$HPCGRID_RESULT"], "launch": [], "cwd": "/"},
 "site": {"name": "here", "launcher": []},
 "batches": [{"number": 1, "cells": 1, "hardware": "cpu", "gpu": false, "job": {"nodes": 1, "tasks_per_node": 1, "cpus_per_task": 1, "time_s": 0}}]}
END
    printf '{"hpcgrid": 1, "name": "hand"}\n' >"$run_dir/matrix.json"
    echo '{"id":"x-1","baseline":"","added":false,"cell":{"hardware":"cpu","nodes":1,"gpus_per_node":0,"tasks_per_node":1,"lr":1.0,"note":"\u00e9"}}' \
        >"$run_dir/batches/1.cells.jsonl"
    index_cells "$run_dir"
    SLURM_ARRAY_TASK_ID=0 "$hpcgrid" exec --run "$run_dir" --batch 1
    result="$run_dir/cells/1-000/x-1.0.0/result.json"
    "$hpcgrid" report hand --format csv >first.csv
    "$hpcgrid" report hand --format json | jq -se '.[0] | .complete and .tables[0].points[0].value == 5.25'
    cp "$result" kept.json
    for change in 's/5\.25/5.26/' 's/2\.5/2.4/' 's/"lr": 1/"lr": 2/' 's/"a": /"c": /' 's/5\.25/5.250/' 's/"z": /"z":/'; do
        sed "$change" kept.json >"$result"
        if cmp -s kept.json "$result"; then echo "nothing to change: $change"; return 1; fi
        run "$hpcgrid" report hand --format json
        echo "$change: $status"
        [ "$status" -eq 1 ]
        jq -se '.[0] | .states == {"invalid": 1}' <<<"$output"
    done
    cp kept.json "$result"
    "$hpcgrid" report hand --format csv | diff - first.csv
    sed 's|"hpcgrid-result/2"|"hpcgrid-result/1"|' kept.json >"$result" # as an earlier hpcgrid wrote it
    run "$hpcgrid" collect hand
    [[ "$output" == *'it has schema "hpcgrid-result/1", this hpcgrid reads "hpcgrid-result/2"'* ]]
    sed -i 's|"hpcgrid-plan/3"|"hpcgrid-plan/2"|' "$run_dir/plan.json"
    run -3 "$hpcgrid" report hand
    [[ "$output" == *'has schema "hpcgrid-plan/2", this hpcgrid reads "hpcgrid-plan/3"'* ]]
    sed -i 's|"hpcgrid-plan/2"|"hpcgrid-plan/3"|' "$run_dir/plan.json"
    head -c 300 kept.json >"$result"
    run "$hpcgrid" report hand --format json
    jq -se '.[0] | .states == {"invalid": 1}' <<<"$output"
}

@test "a page of a thousand cells stays below one megabyte" {
    jq -n '{schema: "hpcgrid-results/1", name: "many", run: "001", baseline: {nodes: 1, gpus_per_node: 1, strategy: "single"},
        results: [("single", "ddp", "fsdp", "deepspeed", "dp") as $s | (1, 2, 4, 8, 16) as $n | (1, 2, 4, 8) as $g
        | range(10) as $r | {id: "bert-base-\($s)-a100-\($n)x\($g)-\($r)-0123456789ab", attempt: "1.0", status: "ok",
           cell: {hardware: "a100", nodes: $n, gpus_per_node: $g, strategy: $s, epochs: 3, batch_size: 8, model: "bert-base", repeat: ($r + 1)},
           train_s: (1000 / ($n * $g) + $r), wall_s: (1000 / ($n * $g) + $r + 3), init_s: 2,
           comm: {all_reduce: {exposed_s: ($n * $g)}}, memory: {parameters: 440000000, optimizer: 880000000},
           ranks: [{rank: 0, host: "node\($n)", device: "A100"}]}]}' >many.json
    [ "$(jq '.results | length' many.json)" -eq 1000 ]
    page many.json
    [ "$(stat -c %s out)" -lt 1000000 ]
    [ "$(grep -c '>ok</td>' out)" -eq 1000 ]
}
