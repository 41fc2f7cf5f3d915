#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Sites: what each centre's jobs ask for (sites/NAME.headers, made anew with HPCGRID_BLESS=1), a site that adds to another,
# limits and accounts.

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    sites=$HPCGRID_SOURCE/templates/sites
    unset SBATCH_ACCOUNT
    cd "$BATS_TEST_TMPDIR"
}

# 1 GPU, a node, two nodes of the default hardware
shapes() {
    jq -n --slurpfile site "$sites/$1.json" '$site[0] as $s | $s.hardware[$s.default].gpus_per_node as $all |
        {hpcgrid: 1, name: "t", site: $s.name, workload: {command: ["true"], time: "1h"},
         include: ([[1, 1], [1, $all], [2, $all]] | map({nodes: .[0], gpus_per_node: .[1]}))}'
}

@test "every centre's jobs ask for what its documentation says" {
    for file in "$sites"/*.json; do
        name=$(basename "$file" .json)
        case $name in box | laptop) continue ;; esac
        jq -e '._note | contains("not run there") or contains("CESGA")' "$file"
        shapes "$name" | SBATCH_ACCOUNT=project_1 "$hpcgrid" plan --scripts - >out
        grep -E '^(#SBATCH|module load)' out | grep -vE -- '--(job-name|array|chdir|output|requeue|open-mode)' >headers
        [ "$(grep -c nodes= headers)" = 3 ]
        [ -z "${HPCGRID_BLESS:-}" ] || cp headers "$HPCGRID_SOURCE/tests/cli/sites/$name.headers"
        diff -u "$HPCGRID_SOURCE/tests/cli/sites/$name.headers" headers
    done
}

# matrix SITE: on 1, 2 and 4 nodes, for an hour and for three days
matrix() {
    jq -n --argjson site "$1" '{hpcgrid: 1, name: "t", site: $site, workload: {command: ["true"]},
        axes: {nodes: [1, 2, 4], time: ["1h", "3-00:00:00"]}}' >m.json
}

lab='{"account_required": true, "modules": ["2024"], "default": "a100", "env": {"A": "1"},
    "hardware": {"a100": {"partition": "gpu", "gpus_per_node": 4, "max_nodes": 2, "max_time": "2-00:00:00"}}}'

@test "what is more than a job may have cannot run, and says why" {
    matrix "$lab"
    SBATCH_ACCOUNT=p1 "$hpcgrid" check m.json | diff - <(echo "t: 2 cells; 4 cannot run")
    export SBATCH_ACCOUNT=p1
    "$hpcgrid" explain m.json nodes=4,time=1h | grep -F "skipped: 4 nodes requested, a job on a100 may have 2"
    "$hpcgrid" explain m.json nodes=1,time=3-00:00:00 |
        grep -F "skipped: a time limit of 3-00:00:00 requested, a job on a100 may have 2-00:00:00"
}

@test "a site adds to another: members are replaced, objects joined" {
    echo "$lab" >lab.json
    mkdir -p deeper
    echo '{"extends": "../lab.json", "account": "p1", "env": {"B": "2"}}' >deeper/mine.json
    matrix '{"extends": "deeper/mine.json", "modules": [], "hardware": {"a100": {"max_nodes": 4}, "cpu": {"cores_per_node": 8}}}'
    "$hpcgrid" check m.json | diff - <(echo "t: 3 cells; 3 cannot run")
    "$hpcgrid" plan -s nodes=4 --out plan m.json
    jq -c '[.name, .account, .modules, .env, (.hardware | keys), .hardware.a100.partition, .hardware.a100.max_nodes, .extends]' plan/site.json |
        diff - <(echo '["lab","p1",[],{"A":"1","B":"2"},["a100","cpu"],"gpu",4,null]')
}

@test "what is wrong with a site that adds to another" {
    echo "$lab" >lab.json
    echo '{"extends": "./b.json"}' >a.json
    echo '{"extends": "./a.json"}' >b.json
    while IFS='|' read -r site wanted; do
        echo "$site"
        matrix "$site"
        run "$hpcgrid" check m.json
        echo "$output"
        [ "$status" = 3 ]
        [[ "$output" == *"$wanted"* ]]
    done <<'END'
{"extends": "./bse.json"}|/site/extends: there is no site file "./bse.json"
{"extends": "cesga-ft4"}|/site/extends: unknown site "cesga-ft4"
{"extends": 7}|/site/extends: expected the name or path of a site, found an integer
"./a.json"|/extends: sites extend each other in a circle, or more than 8 deep
{"extends": "./lab.json", "account": "p", "hardware": {"a100": {"max_tim": "1h"}}}|unknown member "max_tim"
{"extends": "./lab.json", "account": "p", "hardware": {"a100": {"max_time": "3"}}}|/site/hardware/a100/max_time: "3" is not a wall time
{"extends": "./lab.json", "account": "p", "default": "h100"}|unknown hardware "h100"
END
}

@test "a site that wants an account asks for it" {
    matrix "$lab"
    run "$hpcgrid" check m.json
    [ "$status" = 3 ]
    [[ "$output" == *"site inline wants an account to charge"*"set SBATCH_ACCOUNT, or write \"site\": {\"extends\": "* ]]
    for account in '{account: "p1"}' '{hardware: {a100: {account: "p1"}}}'; do
        matrix "$(jq -c ". * $account" <<<"$lab")"
        "$hpcgrid" check m.json
    done
    matrix "$lab"
    SBATCH_ACCOUNT=p2 "$hpcgrid" plan --out plan m.json
    [ "$(jq -r .account plan/site.json)" = p2 ]
}

# ran FOLDER JQ [SITE]: a run of m.json made by the filter, done as its jobs would
ran() {
    jq -n '{hpcgrid: 1, name: "m", workload: {command: ["true"], launch: [], time: "5m"}} | '"$2" >m.json
    "$hpcgrid" plan m.json --out "reports/$1" ${3:+--site "$3"} >/dev/null 2>&1
    chmod 700 "reports/$1"
    SLURM_ARRAY_TASK_ID=0 "reports/$1/batches/1.sh"
}

@test "runs of several sites are joined beside a run from before the matrix had a site, which is named" {
    unset "${!SLURM_@}" HPCGRID_REPORTS HPCGRID_SITE
    for site in north south; do echo '{"name": "'$site'", "launcher": "", "hardware": {"cpu": {}}}' >$site.json; done
    several='.axes = {site: ["./north.json", "./south.json"]}'
    ran m/001 '.site = "./north.json"'
    ran m.north/001 "$several" north
    ran m.south/001 "$several" south
    "$hpcgrid" report m.json --format csv >cells 2>said
    cmp cells <("$hpcgrid" report m.north m.south --format csv)
    [ "$(grep -cE 'north|south' cells)" = 2 ]
    diff said <(echo "hpcgrid: warning: reports/m is of the matrix without several sites, and not in this report")
    HPCGRID_SITE=south "$hpcgrid" status m.json --no-poll --json | jq -se 'map(.run | endswith("/m.south/001")) == [true]'
    # a matrix that has gone back to one site, its own or the default, means its own run
    for one in '.site = "./north.json"' .; do
        jq -n '{hpcgrid: 1, name: "m", workload: {command: ["true"]}} | '"$one" >m.json
        "$hpcgrid" report m.json --format csv >cells 2>said
        cmp cells <("$hpcgrid" report m --format csv)
        [ ! -s said ]
    done
}
