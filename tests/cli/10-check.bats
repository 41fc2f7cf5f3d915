#!/usr/bin/env bats
# Matrices that are wrong: bad/NAME/matrix.json must give exactly the text in bad/NAME/expect, and exit code 3.
# HPCGRID_BLESS=1 writes the expect files anew: read the diff.

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    export HPCGRID_SITES=$HPCGRID_SOURCE/tests/data/sites
}

@test "every mistake is reported with place, reason and next step" {
    wrong=""
    for dir in "$HPCGRID_SOURCE"/tests/cli/bad/*/; do
        cd "$dir"
        code=0
        $hpcgrid check matrix.json >"$BATS_TEST_TMPDIR/out" 2>&1 || code=$?
        if [ -n "${HPCGRID_BLESS:-}" ]; then
            cp "$BATS_TEST_TMPDIR/out" expect
        fi
        diff -u expect "$BATS_TEST_TMPDIR/out" || wrong+="$dir "
        [ "$code" = 3 ] || wrong+="$dir (exit code $code) "
    done
    echo "$wrong"
    [ -z "$wrong" ]
}

@test "a right matrix says how many cells it has" {
    run "$hpcgrid" check "$HPCGRID_SOURCE/matrices/quickstart.json"
    [ "$status" = 0 ]
    [ "$output" = "quickstart: 15 cells" ]
}

@test "what init prints is right, for every site and kind of node" {
    unset HPCGRID_SITES
    for site in box cesga-ft3 laptop; do
        for hardware in $(jq -r '.hardware | keys[]' "$HPCGRID_SOURCE/templates/sites/$site.json"); do
            run "$hpcgrid" init --site $site --hardware "$hardware"
            [ "$status" = 0 ]
            "$hpcgrid" check - <<<"$output"
            run "$hpcgrid" init --site $site --hardware "$hardware" --name my -- python 'a "b".py' --amp
            [ "$(jq -c .workload.command <<<"$output")" = '["python","a \"b\".py","--amp","{{args}}"]' ]
            run "$hpcgrid" check - <<<"$output"
            [ "$status" = 0 ]
            [[ "$output" == "my: "*" cells"* ]]
        done
    done
    run "$hpcgrid" init --site cesga-ft3 --hardware a10
    [ "$status" = 3 ]
    [[ "$output" == *'unknown hardware "a10" at site cesga-ft3'*'did you mean "a100"?'* ]]
    run "$hpcgrid" init --name a/b
    [ "$status" = 2 ]
}

@test "a command may use any words" {
    echo '{"hpcgrid":1,"name":"x","workload":{"command":["a"],"model":"bert-bse"},"axes":{"precision":["fp8"],"strategy":["dpp"]}}' |
        "$hpcgrid" check -
}

@test "what is legal and most likely not meant is warned of by check and plan" {
    cd "$BATS_TEST_TMPDIR"
    cat >m.json <<'END'
{ "hpcgrid": 1, "name": "m", "site": "lab",
  "workload": { "program": "hpcgrid-worker", "model": "bert-tiny", "dataset": "squad-slice", "predictions": "p.json" },
  "axes": { "lr": [0.1, 0.2], "case": [
    { "checkpoint": "a.safetensors", "time": "3m" }, { "checkpoint": "folder", "time": "4m" }, { "checkpoint": "folder", "epochs": 2, "time": "2m" },
    { "time": "1m" } ] } }
END
    cat >expect <<'END'
m.json:2:109: warning: /workload/predictions: 8 cells write p.json: each replaces the answers of another; "derive" can give every cell its own file
m.json:4:21: warning: /axes/case/0/checkpoint: 2 cells write a.safetensors: one would resume the training of another; a folder has a file for each
m.json:4:46: warning: /axes/case/0/time: 4 cells run without USR1 before the time limit: 120 s of warning, and 60 s that Slurm may be early, leave nothing of 120 s; "sbatch": "--signal=USR1@30" warns later
END
    for command in "check --no-data-check" plan; do
        "$hpcgrid" $command m.json 2>&1 >/dev/null | diff expect -
    done
    "$hpcgrid" plan m.json --out run 2>/dev/null
    jq -e '[.batches[].job | {time_s, signal_lead_s}] | sort == [{time_s: 60, signal_lead_s: null}, {time_s: 120, signal_lead_s: null},
        {time_s: 180, signal_lead_s: null}, {time_s: 240, signal_lead_s: 120}]' run/plan.json
    sed 's/"predictions": "p.json"/"sbatch": "--signal=USR1@30"/; s/a.safetensors/other/; s/"1m"/"2m"/' m.json >n.json
    [ "$("$hpcgrid" plan n.json 2>&1 >/dev/null)" = "" ]
}

@test "files of a training that cannot be read or written are found before the queue, and traces longer than it" {
    cd "$BATS_TEST_TMPDIR"
    touch file
    cat >m.json <<'END'
{ "hpcgrid": 1, "name": "m", "site": "lab",
  "workload": { "program": "hpcgrid-worker", "model": "bert-tiny", "dataset": "squad-slice", "samples": 16, "batch_size": 8 },
  "axes": { "case": [
    { "predictions": "new/p.json" }, { "predictions": "file/p.json" }, { "checkpoint": "new/folder" }, { "checkpoint": ["file"] },
    { "init": "none.safetensors" }, { "trace": true }, { "trace": true, "steps": 4 } ] } }
END
    code=0
    "$hpcgrid" check m.json 2>said || code=$?
    [ $code = 3 ]
    sed "s|$PWD/||g" said | diff - /dev/fd/3 3<<'END'
hpcgrid: warning: cell trace=true: the trace will be empty: it begins with step 3, the training has 2
hpcgrid: warning: cell trace=true steps=4: the trace will not be complete: it ends with step 5, the training has 4
hpcgrid: error: cell init=none.safetensors: cannot read none.safetensors: No such file or directory
  --no-data-check, if only the nodes see the data
m.json:4:55: error: /axes/case/1/predictions: cell predictions=file/p.json: cannot write file/p.json: file is not a folder
  --no-data-check, if only the nodes can write there
m.json:4:120: error: /axes/case/3/checkpoint: cell checkpoint=file: cannot write file/*.safetensors: file is not a folder
  --no-data-check, if only the nodes can write there
END
    [ ! -e new ]
    "$hpcgrid" check --no-data-check m.json
    mkdir -p sub/here
    touch sub/here/other
    jq '.workload += {cwd: "here", predictions: "other/p.json"} | .axes = {}' m.json >sub/m.json
    run "$hpcgrid" check sub/m.json
    [[ "$output" == *"$PWD/sub/here/other is not a folder"* ]]
}

@test "placeholders in parameters of hpcgrid-worker are judged, and what they stand for is not looked for" {
    cd "$BATS_TEST_TMPDIR"
    cat >m.json <<'END'
{ "hpcgrid": 1, "name": "m", "site": "lab",
  "workload": { "program": "hpcgrid-worker", "model": "rnn", "dataset": "mnist-slice", "_n": "{{x}}" },
  "axes": { "case": [{ "checkpoint": "{{dir}}/c" }, { "init": "{{dir}}/{{id}}" }] } }
END
    [ "$("$hpcgrid" check m.json 2>&1)" = "m: 2 cells" ]
    sed -i 's/{{id}}/{{idd}}/' m.json
    run "$hpcgrid" check m.json
    [ "$status" = 3 ]
    [[ "$output" == *'m.json:3:'*'/axes/case/1/init: {{idd}}: no cell has "idd"'* ]]
}

@test "a derived value that does not suit its placeholder skips the cell" {
    run "$hpcgrid" check - <<'END'
{ "hpcgrid": 1, "name": "m", "site": "lab", "workload": { "command": ["x", "{{h...}}", "{{f?-f}}"] },
  "axes": { "n": [1, 2, 3, 4] }, "derive": { "h": "if .n < 3 then [.n] else .n end", "f": "if .n == 1 then 5 else true end" } }
END
    [ "$status" = 0 ]
    [[ "$output" == *"m: 1 cell; 3 cannot run"* ]]
    run "$hpcgrid" explain - n=3 <<'END'
{ "hpcgrid": 1, "name": "m", "site": "lab", "workload": { "command": ["x", "{{h...}}", "{{f?-f}}"] },
  "axes": { "n": [3] }, "derive": { "h": ".n", "f": "5" } }
END
    [[ "$output" == *"skipped: {{h...}}: 3 is not a list"* ]]
}

@test "check --json is one object: counts, warnings, what would be skipped, errors with place and suggestion" {
    cd "$BATS_TEST_TMPDIR"
    jq -n '{hpcgrid: 1, name: "m", site: "lab", exclude: [{lr: 7}], workload: {program: "hpcgrid-worker", model: "rnn", dataset: "mnist-slice", samples: 64, trace: true},
        axes: {lr: [1, 2]}}' >m.json
    "$hpcgrid" check m.json --json >out 2>err
    jq -se 'map(.name == "m" and .site == "lab" and .cells == 2 and .excluded_by == {"/exclude/0": 0} and .skips == [] and has("errors") == false
        and (.warnings | length == 2 and (.[0] | endswith("this rule removes no cell")) and (.[1] | contains("the trace will be empty")))) == [true]' out
    jq '.workload.time = "auto"' m.json | "$hpcgrid" check --json - 2>err | jq -se 'map(.cells) == [2]'
    jq '.axes.lr = ["x"] | .workload.modle = 1' m.json >bad.json
    code=0
    "$hpcgrid" check -j bad.json >out 2>err || code=$?
    [ "$code" = 3 ]
    grep -q '^bad.json:.*error: ' err
    jq -se 'map(keys == ["errors"] and (.errors | map(.kind) == ["input", "input"]) and (.errors[0] | .file == "bad.json" and .pointer == "/workload/modle"
        and .line > 1 and .column > 1 and .message == "hpcgrid-worker has no parameter \"modle\"" and (.suggestion | contains("\"model\"")))) == [true]' out
    "$hpcgrid" check --json no.json >out 2>err || true
    jq -se 'map(.errors[0].file == "no.json" or (.errors[0].message | contains("no.json"))) == [true]' out
    "$hpcgrid" check --json --frob >out 2>err || true
    jq -se 'map(.errors[0].kind == "usage") == [true]' out
}

@test "a matrix comes from standard input, too" {
    run "$hpcgrid" check - <"$HPCGRID_SOURCE/matrices/quickstart.json"
    [ "$status" = 0 ]
    [ "$output" = "quickstart: 15 cells" ]
}

@test "a file that is not there is an input error" {
    run "$hpcgrid" check /no/such/matrix.json
    [ "$status" = 3 ]
    [[ "$output" == *"/no/such/matrix.json"* ]]
}

@test "checking needs no Slurm and no network" {
    command -v strace >/dev/null || skip "strace is not installed"
    PATH= SLURM_CONF=/nonexistent "$(command -v strace)" -f -e trace=network,execve -o "$BATS_TEST_TMPDIR/trace" \
        "$hpcgrid" check --no-data-check "$HPCGRID_SOURCE/matrices/quickstart.json"
    [ "$(grep -c execve "$BATS_TEST_TMPDIR/trace")" = 1 ]
    if grep -q socket "$BATS_TEST_TMPDIR/trace"; then return 1; fi
}

@test "the example of matrices/README.md gives what the page says" {
    sed -n '/^```json/,/^```/p' "$HPCGRID_SOURCE/matrices/README.md" | sed '/^```/d' >"$BATS_TEST_TMPDIR/example.json"
    run "$hpcgrid" check "$BATS_TEST_TMPDIR/example.json"
    [ "$status" = 0 ]
    [[ "$output" == *"squad-strategies: 18 cells and 3 added baselines; 12 excluded"* ]]
}

@test "the lab's matrix is right" {
    run "$hpcgrid" check "$HPCGRID_SOURCE/matrices/mnist-rnn.json"
    [ "$status" = 0 ]
    [[ "$output" == *"mnist-rnn: 15 cells; 3 excluded"* ]]
}

@test "a formula that eats memory is stopped before libjq aborts" {
    printf '%s' '{"hpcgrid":1,"name":"x","workload":{"command":["a"]},"derive":{"q":"def f: 1 + f; f"}}' >"$BATS_TEST_TMPDIR/x.json"
    run "$hpcgrid" check "$BATS_TEST_TMPDIR/x.json"
    [ "$status" = 3 ]
    [[ "$output" == *"/derive/q: the expression"* ]]
}

@test "files far beyond what people write are refused in seconds" {
    local head='{"hpcgrid":1,"name":"x","workload":{"command":["a"]}'
    { printf '%s,"axes":{"nodes":[0' "$head" && printf ',%d' {-100000..-1} && printf ']}}'; } >"$BATS_TEST_TMPDIR/values.json"
    { printf '%s,"exclude":[{"nodes":9}' "$head" && printf ',{"nodes":%d}' {1..6000} && printf '],"axes":{"a":1' &&
        printf ',"k%d":1' {1..3000} && printf '}}'; } >"$BATS_TEST_TMPDIR/rules.json"
    run timeout 100 "$hpcgrid" check "$BATS_TEST_TMPDIR/values.json"
    [ "$status" = 3 ]
    [[ "$output" == *"and 99951 more" ]]
    run timeout 100 "$hpcgrid" check "$BATS_TEST_TMPDIR/rules.json"
    [ "$status" = 3 ]
    [[ "$output" == *"more than 2048 different keys"* ]]
    [[ "$output" == *"/exclude: 6001 rules; the limit is 5000"* ]]
}

@test "an error in a site file names the line of the matrix that chose it" {
    echo '{ "hardware": { "cpu": { "coresper_node": 4 } } }' >"$BATS_TEST_TMPDIR/site.json"
    printf '{"hpcgrid": 1, "name": "x",\n "site": "site.json", "workload": {"command": ["a"]}}' >"$BATS_TEST_TMPDIR/matrix.json"
    cd "$BATS_TEST_TMPDIR"
    run "$hpcgrid" check matrix.json
    [ "$status" = 3 ]
    [[ "$output" == *'site.json:1:'*'did you mean "cores_per_node"?'* ]]
    [[ "$output" == *'matrix.json:2:10: chosen here: /site'* ]]
}

@test "the schema names the sites here, and a broken site file is an error" {
    cd "$BATS_TEST_TMPDIR"
    "$hpcgrid" schema >schema.json
    [ "$(jq -c '[.properties.site.anyOf[0].enum | index("box", "lab", "perlmutter") != null],
        .["$defs"]["cells-lab"].properties.hardware.anyOf[0].enum' schema.json)" = $'[true,true,true]\n["a100","t4","cpu",null]' ]
    mkdir mine
    echo '{ "hardware": { "cpu": { "coresper_node": 4 } } }' >mine/own.json
    HPCGRID_SITES=$PWD/mine run "$hpcgrid" schema
    [ "$status" = 3 ]
    [[ "$output" == "$PWD/mine/own.json:1:"*'unknown member "coresper_node"'* ]]
    [[ "$output" != *'"$defs"'* ]]
}

@test "a FIFO or a device is not waited for; a pipe that the shell opened is read" {
    matrix="$HPCGRID_SOURCE/matrices/quickstart.json"
    cd "$BATS_TEST_TMPDIR"
    mkfifo pipe.json
    for file in pipe.json /dev/zero; do
        run timeout 10 "$hpcgrid" check $file
        [ "$status" = 3 ]
        [[ "$output" == *"cannot read $file: it is "* ]]
    done
    jq '.site = "./pipe.json"' "$matrix" >matrix.json
    run timeout 10 "$hpcgrid" check matrix.json
    [ "$status" = 3 ]
    run timeout 10 "$hpcgrid" report pipe.json
    [ "$status" = 3 ]
    timeout 10 "$hpcgrid" check <(cat "$matrix")
    timeout 10 "$hpcgrid" check /dev/stdin <"$matrix"
}

@test "numbers may stand as words of a command and as values of env" {
    echo '{"hpcgrid": 1, "name": "n", "site": {"name": "h", "hardware": {"c": {}}},
        "workload": {"command": ["a", 3, ["--lr", 0.5]], "env": {"N": 4}}, "axes": {"x": [1]}}' >"$BATS_TEST_TMPDIR/n.json"
    "$hpcgrid" plan "$BATS_TEST_TMPDIR/n.json" --out "$BATS_TEST_TMPDIR/run"
    [ "$(jq -c '.workload | [.command, .env]' "$BATS_TEST_TMPDIR/run/plan.json")" = '[["a","3",["--lr","0.5"]],{"N":"4"}]' ]
}

@test "a selector with a key or a value that no cell has is refused by every command, with what there is" {
    cd "$BATS_TEST_TMPDIR"
    matrix="$HPCGRID_SOURCE/matrices/quickstart.json"
    "$hpcgrid" plan "$matrix" --out run >/dev/null
    for command in "expand $matrix -s" "plan $matrix -s" "explain $matrix" "submit $matrix -s" "run $matrix -s" "status run -s" "trace run -s" "logs run"; do
        # shellcheck disable=SC2086
        run "$hpcgrid" $command nodez=1
        [ "$status" = 2 ]
        [[ "$output" == *'no cell has "nodez"'*'did you mean "nodes"?'* ]]
        # shellcheck disable=SC2086
        run "$hpcgrid" $command strategy=dpp
        [ "$status" = 2 ]
        [[ "$output" =~ (no cell has strategy=|unknown strategy \")dpp.*known:\ single,\ .*did\ you\ mean\ \"d?dp\"\? ]]
    done
    [ ! -e reports ]
}
