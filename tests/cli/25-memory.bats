#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Cells that would hold more than their device has are skipped when the plan is made, with the reason and what would fit.

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    cd "$BATS_TEST_TMPDIR"
    unset HPCGRID_WORKER
}

# matrix HARDWARE WORKLOAD AXES
matrix() {
    cat >m.json <<END
{"hpcgrid": 1, "name": "memory",
 "site": {"name": "s", "default": "x", "hardware": {"x": $1}},
 "workload": {"program": "hpcgrid-worker", "time": "10m", $2},
 "axes": $3}
END
}

# bert-large has 334,094,338 values: 16 bytes each in ddp are 5 GiB
large='"model": "bert-large", "dataset": "squad-slice", "batch_size": 1'

@test "a cell that does not fit is skipped, with the strategy that would fit" {
    matrix '{"gpus_per_node": 4, "device_mem": "4G"}' "$large" '{"nodes": [2], "gpus_per_node": [4], "strategy": ["ddp", "fsdp"]}'
    run "$hpcgrid" plan m.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" =~ "warning: cell ddp is skipped: a rank would hold up to 5."[0-9]" GiB (optimizer: 2.5 GiB), x has 4.0 GiB for it; strategy "[a-z0-9_]+" would fit (" ]]
    [[ "$output" == *"memory on s: 1 cell in 1 batch"* ]]
    [[ "$output" != *"cell fsdp is skipped"* ]]
    "$hpcgrid" plan --json m.json 2>/dev/null |
        jq -e '.cells == 1 and (.skipped | length) == 1 and (.skipped[0].id | startswith("bert_large-ddp-x-2x4-"))'
    run "$hpcgrid" check --no-data-check m.json
    [ "$status" -eq 0 ]
    [[ "$output" == *"memory: 2 cells"*"would be skipped: a rank would hold up to"* || "$output" == *"would be skipped: a rank would hold up to"*"memory: 2 cells"* ]]
}

@test "when no cell fits that is an error" {
    matrix '{"gpus_per_node": 1, "device_mem": "64M"}' "$large" '{"strategy": ["single"]}'
    for command in plan "check --no-data-check"; do
        run "$hpcgrid" $command m.json
        echo "$output"
        [ "$status" -eq 3 ]
        [[ "$output" == *"no strategy would fit: a smaller batch_size or model"* ]]
        [[ "$output" == *"error: nothing is left to run: every cell is skipped"* ]]
    done
}

@test "the tasks of a CPU node share its memory, and mem bounds it" {
    matrix '{"gpus_per_node": 0, "device_mem": "24G"}' "$large, \"strategy\": \"ddp\"" '{"tasks_per_node": [1, 8]}'
    run "$hpcgrid" plan m.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"-ddp-x-1x8-"*"x has 3.0 GiB for it"* || "$output" == *"x has 3.0 GiB for it"* ]]
    [[ "$output" == *"1 cell in 1 batch"* ]]
    matrix '{"gpus_per_node": 0, "device_mem": "24G"}' "$large, \"strategy\": \"ddp\", \"mem\": \"2G\"" '{"seed": [1]}'
    run "$hpcgrid" plan m.json
    [ "$status" -eq 3 ]
    [[ "$output" == *"x has 2.0 GiB for it"* ]]
}

@test "nothing is looked at where the site does not say how much there is, or another program runs" {
    matrix '{"gpus_per_node": 1}' "$large" '{"strategy": ["single"]}'
    run "$hpcgrid" plan m.json
    [ "$status" -eq 0 ]
    [[ "$output" != *skipped* ]]
    sed -i 's/"program": "hpcgrid-worker"/"command": ["true"]/; s/"gpus_per_node": 1/"gpus_per_node": 1, "device_mem": "1M"/' m.json
    run "$hpcgrid" plan m.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" != *skipped* ]]
    matrix '{"gpus_per_node": 1, "device_mem": "1M"}' "$large" '{"strategy": ["single"]}'
    HPCGRID_WORKER=/nowhere/hpcgrid-worker run "$hpcgrid" plan m.json
    [ "$status" -eq 0 ]
    [[ "$output" == *"memory is not checked: "* ]]
}

@test "options of other strategies and worlds that cannot be cut are skipped with the reason" {
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "bucket_cap_mb": 1' '{"strategy": ["ddp", "single", "fsdp"]}'
    run "$hpcgrid" expand m.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"(cannot run: strategy single has no bucket_cap_mb, that is an option of ddp)"* ]]
    [[ "$output" == *"(cannot run: strategy fsdp has no bucket_cap_mb, that is an option of ddp)"* ]]
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "fsdp_wrap": "layer"' '{"strategy": ["ddp", "deepspeed"]}'
    run "$hpcgrid" plan m.json
    [ "$status" -eq 3 ]
    [[ "$output" == *"strategy ddp has no fsdp_wrap, that is an option of fsdp"* ]]
    matrix '{"gpus_per_node": 4, "device_mem": "16G"}' '"model": "rnn", "strategy": "fsdp"' '{"nodes": [1, 3000]}'
    run "$hpcgrid" plan m.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *'is skipped: strategy fsdp cannot shard the 2538 values of unit "head" over 3000 ranks'* ]]
}

# refused WORDS: the only cell is skipped for that reason, in every command that makes cells or plans, and nothing is left
refused() {
    for command in plan "check --no-data-check"; do
        run "$hpcgrid" $command m.json
        echo "$command: $status $output"
        [ "$status" -eq 3 ]
        [[ "$output" == *"$1"* && "$output" == *"nothing is left to run"* ]]
    done
}

@test "a cell that its ranks, devices or options make impossible is skipped with the reason, and none left is exit code 3" {
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "strategy": "dp"' '{"nodes": [2]}'
    refused "strategy dp runs on at most 1 node, 2 requested"
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "strategy": "dp"' '{"tasks_per_node": [2]}'
    refused "strategy dp runs on at most 1 task, 2 requested"
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "strategy": "dp", "dp_devices": 3' '{"gpus_per_node": [2]}'
    refused "3 devices requested, the cell has 2 GPUs per node"
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "strategy": "ddp"' '{"gpus_per_node": [8]}'
    refused "8 GPUs per node requested, x has 4"
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "checkpoint_shards": true' '{"strategy": ["ddp"]}'
    refused "strategy ddp has no checkpoint_shards, that is an option of fsdp, deepspeed"
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "strategy": "deepspeed"' '{"nodes": [3000]}'
    refused 'strategy deepspeed cannot shard the 2538 values of unit "head" over 3000 ranks'
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "strategy": "ddp", "samples": 260, "nodes": 2' '{"gpus_per_node": [2]}'
    refused "the last batch of an epoch would hold 1 sample a rank (260 samples, 4 ranks, batch 64)"
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "bucket_cap_mib": 3' '{"strategy": ["ddp"]}'
    run "$hpcgrid" plan m.json
    [ "$status" -eq 3 ]
    [[ "$output" == *'"bucket_cap_mib"'*'did you mean "bucket_cap_mb"?'* ]]
    # where nobody can be asked, these are the node's to refuse
    matrix '{"gpus_per_node": 4}' '"model": "rnn", "strategy": "fsdp"' '{"nodes": [3000]}'
    HPCGRID_WORKER=/nowhere/hpcgrid-worker run "$hpcgrid" plan m.json
    [ "$status" -eq 0 ]
    [[ "$output" != *"not looked at"* ]]
}
