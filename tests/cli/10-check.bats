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
    jq -e '.workload | .command == ["a", "3", ["--lr", "0.5"]] and .env == {N: "4"}' "$BATS_TEST_TMPDIR/run/matrix.json" ||
        jq -e '[.. | .command? // empty] | any(. == ["a", "3", ["--lr", "0.5"]])' "$BATS_TEST_TMPDIR/run/plan.json"
}

@test "a selector with a key that no cell has is refused by every command" {
    cd "$BATS_TEST_TMPDIR"
    matrix="$HPCGRID_SOURCE/matrices/quickstart.json"
    "$hpcgrid" plan "$matrix" --out run >/dev/null
    for command in "expand $matrix -s" "plan $matrix -s" "status run -s" "trace run -s" "logs run"; do
        # shellcheck disable=SC2086
        run "$hpcgrid" $command nodez=1
        [ "$status" = 2 ]
        [[ "$output" == *'no cell has "nodez"'*'did you mean "nodes"?'* ]]
    done
}
