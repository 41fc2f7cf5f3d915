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

@test "PyTorch's loss curves are hpcgrid-worker's, within 1e-5 at every step" {
    export PATH=$HPCGRID_PEERS/bin:$HPCGRID_BUILD/worker:$PATH
    cd "$T"
    jq --arg dir "$HPCGRID_SOURCE/templates/trainers" '.workload.command[1] = $dir + "/{{trainer}}.py" | .workload.env = {PYTHONDONTWRITEBYTECODE: "1"} |
        .repeats = 1 | .axes.case |= [.[0] + {epochs: 1}, .[1] + {_size: [{model: "bert-tiny", samples: 16, nodes: [1, 2]}]}]' \
        "$HPCGRID_SOURCE/matrices/native-vs-pytorch.json" >curves.json
    "$HPCGRID" run curves.json
    jq -cs 'group_by([.cell.model, .cell.padding, .cell.nodes]) | map(map(.loss.loss) | select(length == 2 and (.[0] | length) == (.[1] | length)) | transpose) |
        [map(length), (flatten(1) | all((.[0] - .[1] | fabs) <= 1e-5 * .[0]))]' reports/native-vs-pytorch/001/cells/*/*/result.json | diff - <(echo '[[4,4,4,4,63,63],true]')
}

@test "what PyTorch trained answers as well as what hpcgrid-worker trained, also from given weights" {
    export PATH=$HPCGRID_PEERS/bin:$HPCGRID_BUILD/worker:$PATH
    cd "$T"
    echo '{"model": "bert-tiny", "dataset": "squad-slice", "samples": 16, "epochs": 1, "eval": false, "checkpoint": "first.safetensors"}' >first.json
    hpcgrid-worker train --config first.json --result first.result
    jq --arg dir "$HPCGRID_SOURCE/templates/trainers" '.workload.command[1] = $dir + "/{{trainer}}.py" | .repeats = 1 |
        .workload += {env: {PYTHONDONTWRITEBYTECODE: "1", HPCGRID_DATA: env.PWD}, model: "bert-tiny", samples: 60, lr: 1e-3} |
        .axes += {data: [{dataset: "squad-slice"}], epochs: [2], start: [{nodes: [1, 2]}, {init: "$HPCGRID_DATA/first.safetensors"}]}' "$HPCGRID_SOURCE/matrices/squad-learns.json" >learns.json
    "$HPCGRID" run learns.json
    jq -cs 'group_by([.cell.nodes, .cell.init]) | map(map({(.cell.trainer): .eval.f1}) | add) | map((.native - .pytorch | fabs) < 1 and .native > 1)' \
        reports/squad-learns/001/cells/*/*/result.json | diff - <(echo '[true,true,true]')
}
