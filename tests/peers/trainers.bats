#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every script of templates/trainers trains on one and on two ranks of the box, as its matrix says, beside hpcgrid-worker.

load ../slurm/box

setup_file() { box_up cpu:2x0; }
teardown_file() { box_down; }
setup() { box_setup; }

@test "every trainer of the templates learns, alone and on two ranks" {
    export PATH=$HPCGRID_PEERS/bin:$HPCGRID_BUILD/worker:$PATH
    cd "$T"
    jq --arg dir "$HPCGRID_SOURCE/templates/trainers" '.workload.command[1] = $dir + "/{{trainer}}.py" | .workload.epochs = 2 | .workload.env = {PYTHONDONTWRITEBYTECODE: "1"}' \
        "$HPCGRID_SOURCE/templates/trainers/trainers.json" >trainers.json
    "$HPCGRID" run -s tasks_per_node=1,nodes=1 trainers.json
    "$HPCGRID" run --new -s nodes=2 trainers.json
    for run in trainers/001 trainers/002; do
        "$HPCGRID" report "$run" --metric eval.accuracy --format json >report.json
        jq -ce '[.tables[0].points[] | .value // empty] | [length, min > 0.4]' report.json | diff - <(echo '[8,true]')
    done
}
