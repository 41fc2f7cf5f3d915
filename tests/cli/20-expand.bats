#!/usr/bin/env bats
# Matrices that are right: how many cells they give, and which. good/NAME.json holds the counts worked out by hand (_cells,
# _added); good/NAME.out is the whole output of `hpcgrid expand`. HPCGRID_BLESS=1 writes the .out files anew: read the diff.

bats_require_minimum_version 1.5.0

setup() {
    cd "$HPCGRID_SOURCE/tests/cli/good"
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    export HPCGRID_SITES=$HPCGRID_SOURCE/tests/data/sites
}

# number FILE MEMBER: a top-level number of a matrix
number() {
    sed -n "s/^  \"$2\": \([0-9]*\),$/\1/p" "$1"
}

@test "every matrix gives the cells that were counted by hand" {
    wrong=""
    for f in *.json; do
        count=$($hpcgrid expand --count --json "$f" 2>/dev/null) || wrong+="$f: exit code $?"$'\n'
        case $count in
        *"\"added\":$(number "$f" _added),\"cells\":$(number "$f" _cells),"*) ;;
        *) wrong+="$f: $count"$'\n' ;;
        esac
    done
    echo "$wrong"
    [ -z "$wrong" ]
}

@test "every matrix gives the cells, ids, order and warnings that stand in its .out file" {
    wrong=""
    for f in *.json; do
        $hpcgrid expand --ids "$f" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || true
        cat "$BATS_TEST_TMPDIR/err" >>"$BATS_TEST_TMPDIR/out"
        if [ -n "${HPCGRID_BLESS:-}" ]; then
            cp "$BATS_TEST_TMPDIR/out" "${f%.json}.out"
        fi
        diff -u "${f%.json}.out" "$BATS_TEST_TMPDIR/out" || wrong+="$f "
    done
    echo "$wrong"
    [ -z "$wrong" ]
}

@test "explain says what made, changed and removed a cell" {
    run $hpcgrid explain design-example.json strategy=fsdp,nodes=2,fsdp_wrap=layer,gpus_per_node=1,repeat=2
    [ "$status" = 0 ]
    [[ "$output" == *"made by        /axes (design-example.json:9:11)"* ]]
    [[ "$output" == *'excluded by /exclude/0 (design-example.json:11:15): {"strategy":"fsdp","nodes":2}'* ]]
    [[ "$output" == *"time           4800                 /derive/time"* ]]
    [[ "$output" == *"repeat         2                    /repeats"* ]]
    [[ "$output" == *"batch_size     4                    /workload"* ]]
    [[ "$output" == *"tasks_per_node 1                    default"* ]]
}

@test "explain --json has places, fates and the origin of each member" {
    $hpcgrid explain design-example.json strategy=fsdp,nodes=2,fsdp_wrap=layer,gpus_per_node=1,repeat=2 --json 2>/dev/null | jq -se 'map(.more == 0 and (.cells | length == 1)
        and (.cells[0] | .fate == "excluded" and .excluded_by.pointer == "/exclude/0" and .excluded_by.line == 11 and .made_by.pointer == "/axes"
        and .members.time == {value: 4800, origin: "/derive/time"} and .name == "fsdp 2x1 fsdp_wrap=layer, run 2")) == [true]'
    $hpcgrid explain design-example.json strategy=ddp --json 2>/dev/null | jq -se 'map([.cells[] | .fate == "runs" and .first_round and (.baseline | startswith("bert_base-single"))] | length > 0 and all) == [true]'
    run $hpcgrid explain design-example.json stratgy=ddp --json
    [ "$status" = 2 ]
    jq -se 'map(.errors[0].suggestion | contains("strategy")) == [true]' <<<"$($hpcgrid explain design-example.json stratgy=ddp --json 2>/dev/null)"
}

@test "explain finds a cell by the beginning of its id, also an added baseline" {
    id=$($hpcgrid expand --ids design-example.json 2>/dev/null | awk '/added baseline/ { print $1; exit }')
    run $hpcgrid explain design-example.json "${id%????}"
    [ "$status" = 0 ]
    [ "${lines[0]}" = "single 1x1, run 1" ]
    [ "${lines[1]}" = "  id             $id" ]
    [[ "$output" == *"the matrix lacks this baseline"* ]]
    [[ "$output" == *"baseline       itself"* ]]
    [[ "$output" == *"strategy       single               /baseline"* ]]
}

@test "explain of a cell that is not there says how to find one" {
    run $hpcgrid explain design-example.json rnn-ddp-none
    [ "$status" = 2 ]
    [[ "$output" == *'no cell matches "rnn-ddp-none"'* ]]
}

@test "expand shows only the cells selected, and knows the keys" {
    run $hpcgrid expand -s strategy=ddp,repeat=1 --count design-example.json
    [[ "$output" == *"cells              3"* ]]
    run $hpcgrid expand -s '.nodes * .gpus_per_node == 4' --count design-example.json
    [[ "$output" == *"cells              6"* ]]
    run $hpcgrid expand -s strategy=ddp,repeat=1 design-example.json
    [ "${lines[-1]}" = "selected           3   by -s, shown above" ]
    run --separate-stderr $hpcgrid expand -s nodes=99 design-example.json
    [ "$status" = 2 ]
    [ "${lines[-1]}" = "selected           0   by -s, shown above" ]
    [[ "$stderr" == *"error: no cell has nodes=99"*"known: 1, 2"* ]]
    run $hpcgrid expand -s 'nodes>1,strategy=ddp,repeat < 2' --count design-example.json
    [[ "$output" == *"cells              2"* ]]
    run --separate-stderr $hpcgrid expand -s 'nodes>2' design-example.json
    [ "$status" = 2 ]
    [[ "$stderr" == *"error: no cell has nodes>2"*"known: 1, 2"* ]]
    run $hpcgrid expand -s 'strategy>1' design-example.json
    [[ "$output" == *"error: no cell has strategy>1"*"known: single, ddp"* ]]
    run $hpcgrid expand -s 'nodes>two' design-example.json
    [ "$status" = 2 ]
    [[ "$output" == *"error: selector nodes>two: two is not a number"* ]]
    run $hpcgrid expand -s 'nods>1' design-example.json
    [[ "$output" == *'did you mean "nodes"?'* ]]
    run $hpcgrid explain design-example.json strategy=dpp
    [ "$status" = 2 ]
    [[ "$output" == *'no cell has strategy=dpp'*'did you mean "ddp"?'* ]]
    run $hpcgrid explain design-example.json strategy=single,nodes=2,repeat!=1..3
    [ "$status" = 2 ]
    [[ "$output" == *'no cell matches'* ]]
    run $hpcgrid expand -s stratgy=ddp design-example.json
    [ "$status" = 2 ]
    [[ "$output" == *'did you mean "strategy"?'* ]]
}

@test "an id begins with the model, else with the script, not with what starts it" {
    while IFS='|' read -r command start; do
        echo "{\"hpcgrid\": 1, \"name\": \"x\", \"site\": \"lab\", \"workload\": {\"command\": $command, \"t\": \"eval\"}}" >"$BATS_TEST_TMPDIR/x.json"
        run $hpcgrid expand --ids "$BATS_TEST_TMPDIR/x.json"
        [[ "${lines[1]}" == "$start"-a100-* ]]
    done <<'END'
["python3", "-u", "src/train.py", "--config", "c.py"]|train
["torchrun", "--nnodes=1", "my.fine-tune.py"]|my.fine_tune
["python", "-m", "pkg.train", "x"]|pkg.train
["python3", "{{t}}.py"]|eval
["./run.sh", "x.py"]|run
["bash", "-c", "exit 0"]|bash
["solver", "in.py"]|solver
["shuffle", "in.py"]|shuffle
["mpirun", "-n", "4", "./cfd"]|mpirun
END
}

@test "words of a selector are judged like those of the matrix, but hardware may be another site's" {
    while IFS='|' read -r selector reason; do
        run $hpcgrid expand -s "$selector" --count design-example-worker.json
        [ "$status" = 2 ]
        [[ "$output" == *"$reason"* ]]
    done <<'END'
strategy=ddp,model!=bert-bse|unknown model "bert-bse"
nodes=four|expected an integer, found a string
fsdp_wrap=layers|did you mean "layer"?
END
    for selector in nodes=0..99 hardware=elsewhere time=2h strategy=dp fsdp_wrap=model,repeat=1 'model=bert-base,!fsdp_wrap'; do
        $hpcgrid expand -s "$selector" --count design-example-worker.json 2>/dev/null
    done
    echo '{"hpcgrid": 1, "name": "x", "site": "lab", "workload": {"program": "hpcgrid-worker", "labels": "true", "dropout": true}}' >"$BATS_TEST_TMPDIR/x.json"
    $hpcgrid expand -s labels=true,dropout=true "$BATS_TEST_TMPDIR/x.json" | grep 'selected *1 '
}

@test "expand --json is JSON with every cell" {
    command -v jq >/dev/null || skip "jq is not installed"
    $hpcgrid expand --json design-example.json 2>/dev/null >"$BATS_TEST_TMPDIR/x.json"
    [ "$(jq '.cells | length' "$BATS_TEST_TMPDIR/x.json")" = 30 ]
    [ "$(jq '[.cells[] | select(.added)] | length' "$BATS_TEST_TMPDIR/x.json")" = 3 ]
    [ "$(jq '[.cells[].baseline] | unique | length' "$BATS_TEST_TMPDIR/x.json")" = 3 ]
    [ "$(jq -r '.count.made_by["/axes"]' "$BATS_TEST_TMPDIR/x.json")" = 36 ]
}

@test "an id is the hash that matrices/reference.md describes" {
    hash=$(sed -n '/^    printf %s /,/ xxhsum -H3$/p' "$HPCGRID_SOURCE/matrices/reference.md" | bash | sed 's/.*= //')
    run $hpcgrid expand --ids defaults-command.json
    [ "${lines[1]}" = "train-a100-1x1-${hash:0:12}" ]
}

@test "--site runs the same matrix elsewhere, with other ids" {
    a=$($hpcgrid expand --ids defaults-command.json | sed -n 2p)
    b=$($hpcgrid expand --ids --site laptop defaults-command.json | sed -n 2p)
    [[ "$a" == train-a100-1x1-* ]]
    [[ "$b" == train-cpu-1x1-* ]]
}

# at SITE JQ: what the cells of sites.json are at one of its sites
at() { HPCGRID_SITE=$1 $hpcgrid expand sites.json --json 2>/dev/null | jq -se --arg site "$1" "map($2) == [true]"; }

@test "of several sites one is chosen: its cells are listed and counted, its baselines too, whoever needs them" {
    at lab '.name == "sites.lab" and .site == "lab" and ([.cells[] | .cell.site] | unique == ["lab"]) and .count.cells == 4 and .count.added == 1
        and .count.skipped == 0 and .count.by_site == {lab: 5, laptop: 2}'
    at laptop '[.cells[].fate] == ["skipped", "skipped", "runs", "runs"] and .count.cells == 2 and .count.added == 0 and .count.skipped == 2'
    at elsewhere '.name == "sites" and .site == null and (.cells | length) == 9 and .count.cells == 6'
    [ "$($hpcgrid expand sites.json --count --site lab | sed -n 's/^elsewhere *//p')" = "4   of other sites" ]
    [ "$($hpcgrid check sites.json 2>/dev/null)" = "sites.lab: 4 cells and 1 added baseline
sites.laptop: 2 cells; 2 cannot run" ]
    [ "$($hpcgrid check sites.json --site laptop 2>/dev/null)" = "sites.laptop: 2 cells; 2 cannot run" ]
    $hpcgrid check sites.json --json 2>/dev/null | jq -se 'map(.name == "sites" and [.sites[] | [.name, .site, .total]]
        == [["sites.lab", "lab", 5], ["sites.laptop", "laptop", 2]]) == [true]'
}

@test "a plan is for one site, says which it can be, and where the rest runs" {
    run $hpcgrid plan sites.json
    [ "$status" = 2 ]
    [[ "$output" == *"the matrix has 2 sites: which one is this?"*"lab, laptop; --site NAME or HPCGRID_SITE"* ]]
    run $hpcgrid plan sites.json --site box
    [ "$status" = 2 ]
    [[ "$output" == *'--site: the matrix has no site "box"'*"lab, laptop"* ]]
    run $hpcgrid plan sites.json --site laptop -s lr=0.1
    [ "$status" = 0 ]
    [[ "$output" == *"sites.laptop on laptop: 1 cell in 1 batch"* ]]
    [[ "$output" == *"at lab, up to: 5 cells; there: hpcgrid run sites.json --site lab --select lr=0.1"* ]]
    jq '.axes.site = ["lab"]' sites.json >"$BATS_TEST_TMPDIR/one.json"
    run $hpcgrid plan "$BATS_TEST_TMPDIR/one.json"
    [[ "$output" == *"sites on lab: 5 cells in "* && "$output" != *"there: "* ]]
}
