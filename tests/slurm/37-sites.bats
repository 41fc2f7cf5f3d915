#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# One matrix for two clusters, which are two boxes here: each runs its own cells as its site file says, and one report joins them.

bats_require_minimum_version 1.5.0
load box

setup_file() {
    box_lacks >/dev/null && return 0
    box_up cpu:1x0 ClusterName=north
    export NORTH=$SLURM_CONF SOUTH_BOX=$BOX-south
    SOUTH=$(eval "$("$HPCGRID" box up --name "$SOUTH_BOX" --nodes t4:1x1 --set ClusterName=south)" && echo "$SLURM_CONF")
    export SOUTH
}

teardown_file() {
    [ -z "${SOUTH_BOX:-}" ] || "$HPCGRID" box down "$SOUTH_BOX"
    box_down
}

setup() {
    box_setup
    site north '{fast: {partition: "cpu", gpus_per_node: 0, cores_per_node: 4, backend: "cpu"}}'
    site south '{fast: {partition: "t4", gpus_per_node: 0, cores_per_node: 8, backend: "cpu"}, slow: {partition: "t4", gpus_per_node: 0}}'
}

teardown() {
    box_tell
    SLURM_CONF=$SOUTH box_clear
    box_clear
}

# site NAME HARDWARE
site() {
    jq -n --arg name "$1" '{name: $name, launcher: "srun", licenses: "core:%", env: {HERE: $name}, hardware: '"$2}" >"$1.json"
}

# matrix JQ: duo.json; a cell says where it ran, by the site's variable and by Slurm's name of the cluster.
matrix() {
    # shellcheck disable=SC2016
    jq -n '{hpcgrid: 1, name: "duo",
        workload: {command: ["sh", "-c", "echo $HERE $SLURM_CLUSTER_NAME {{hardware}} {{cores}} >>\"$0/ran\"; test ! -e \"$0/broken\"", "'"$T"'"],
            launch: [], time: "2m", cores: 1},
        axes: {site: ["./north.json", "./south.json"], hardware: ["fast", "slow"], x: [1, 2]},
        report: {rows: ["x"], columns: ["site", "hardware"], metric: "wall_s"}} | '"${1:-.}" >duo.json
}

at_north() { SLURM_CONF=$NORTH "$HPCGRID" "$@"; }
at_south() { SLURM_CONF=$SOUTH "$HPCGRID" "$@"; }
# cluster CONF: as its jobs know it
cluster() { sed -n 's/^ClusterName=//p' "$1"; }
# column NAME: of a table in CSV whose values hold no comma
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } { print $at }'; }
# counts RUN OBJECT
counts() { [ "$("$HPCGRID" status "$1" --json --no-poll | jq -c .counts)" = "$2" ]; }

@test "each cluster runs its own cells with its site's settings, in either order, and the report joins them" {
    matrix '.workload.cores = null | .derive = {cores: "$hw.cores_per_node // 0"}'
    run at_north run duo.json --site north
    echo "$output"
    [ "$status" = 0 ]
    [[ "$output" == *'at south: 4 cells; there: hpcgrid run duo.json --site south'* ]]
    [[ "$output" == *'one report of all: hpcgrid report duo.json'* ]]
    [[ "$output" != *"failed"* && "$output" != *"slow: "* ]]
    counts duo.json '{"ok":2}'
    run env HPCGRID_SITE=south SLURM_CONF="$SOUTH" "$HPCGRID" run duo.json
    echo "$output"
    [ "$status" = 0 ]
    [[ "$output" == *'at north: 2 cells; there: hpcgrid run duo.json --site north'* ]]
    counts duo.south '{"ok":4}'
    [ "$(sort ran | uniq -c | tr -s ' ')" = " 2 north $(cluster "$NORTH") fast 4
 2 south $(cluster "$SOUTH") fast 8
 2 south $(cluster "$SOUTH") slow 0" ]
    "$HPCGRID" report duo.json --format csv --pivot >table
    "$HPCGRID" report duo.json --format csv >cells
    cat cells
    [ "$(column site <cells | sort | uniq -c | xargs)" = "2 north 4 south" ]
    cmp table <("$HPCGRID" report reports/duo.north/001 reports/duo.south/001 --format csv --pivot)
    at_north run duo.json --site north
    [ "$(wc -l <ran)" = 6 ]
    [ -d reports/duo.north/001 ] && [ -d reports/duo.south/001 ] && [ ! -e reports/duo ] && [ ! -e reports/duo.north/002 ]
}

@test "one that is not reached counts nowhere: submit, status, retry and resume are its neighbour's alone" {
    matrix '.axes.site += ["./moon.json"]'
    touch broken
    site moon '{fast: {partition: "crater"}}'
    at_north submit duo.json --site north >run 2>said
    cat said
    grep -q 'at south: 4 cells; there: hpcgrid run duo.json --site south' said
    grep -q 'at moon: 2 cells; there: hpcgrid run duo.json --site moon' said
    run at_north resume duo.json
    [ "$status" = 1 ]
    counts duo.json '{"failed":2}'
    rm broken
    run at_north retry duo.json
    echo "$output"
    [ "$status" = 0 ]
    counts duo.json '{"ok":2}'
    run "$HPCGRID" report duo.json
    [ "$status" = 0 ]
    [[ "$output" != *south* && "$output" != *moon* ]]
}

@test "a run belongs to its site: which one is asked for, and another cluster does not take it" {
    matrix
    at_north submit duo.json --site north
    at_south submit duo.json --site south
    for command in status watch; do
        run "$HPCGRID" $command duo.json
        [ "$status" = 2 ]
        [[ "$output" == *'"duo" has runs at 2 sites'*'duo.north, duo.south'*HPCGRID_SITE* ]]
    done
    HPCGRID_SITE=south "$HPCGRID" status duo.json --json | jq -se 'map(.run | endswith("reports/duo.south/001")) == [true]'
    run at_north resume duo.south
    echo "$output"
    [ "$status" = 4 ]
    [[ "$output" == *"$(cluster "$SOUTH")"* ]]
    at_north resume duo.north
    at_south resume duo.south
    [ "$(wc -l <ran)" = 6 ]
}

@test "a copy of the matrix at the other cluster gives the same cells, and its run is joined by its folder" {
    matrix '.baseline = {site: "north", hardware: "fast"}'
    mkdir away
    cp ./*.json away
    at_north run duo.json --site north
    (cd away && at_south run duo.json --site south)
    "$HPCGRID" report duo.north away/reports/duo.south/001 --format csv >cells
    cat cells
    diff <("$HPCGRID" expand duo.json --json | jq -r '.cells[] | select(.fate == "runs") | .id' | sort) <(column id <cells | sort)
    [ "$(column baseline_id <cells | sort -u)" = "$(paste -d' ' <(column site <cells) <(column hardware <cells) <(column id <cells) |
        sed -n 's/^north fast //p' | sort)" ]
    "$HPCGRID" report duo.north away/reports/duo.south/001 >text
    cat text
    [[ "$(<text)" != *"no speedup"* ]]
}
