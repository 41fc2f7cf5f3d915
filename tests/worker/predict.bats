#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid-worker predict: what it says a training would hold is what the training then holds, to the byte.

setup() {
    worker="$HPCGRID_BUILD/worker/hpcgrid-worker"
    cd "$BATS_TEST_TMPDIR"
    export HPCGRID_LOG=warn OMP_NUM_THREADS=1
    export OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1 ASAN_OPTIONS=detect_leaks=0
    unset HPCGRID_DATA HPCGRID_CELL HPCGRID_RESULT RANK WORLD_SIZE SLURM_STEP_NUM_TASKS
}

# holds RANKS CONFIG: predicted, expected and measured bytes are the same, class by class; at most what is said without the data
holds() {
    echo "{\"nodes\": 1, \"tasks_per_node\": $1, $2}" >c.json
    "$worker" predict --config c.json --json >predicted.json
    "$worker" predict --config c.json --json --no-data >bound.json
    mpirun --oversubscribe --allow-run-as-root -n "$1" "$worker" train --config c.json --result r.json >log 2>&1 || {
        cat log
        return 1
    }
    jq -nc '$ARGS.named' --slurpfile p predicted.json --slurpfile r r.json | jq -c '.p[0].memory, .r[0].memory, .r[0].memory_expected'
    jq -e --slurpfile p predicted.json '.memory == $p[0].memory and .memory_expected == .memory and .memory.workspace > 0' r.json
    jq -e --slurpfile b bound.json '.exact and (.total_bytes <= $b[0].total_bytes) and ($b[0].exact | not)' predicted.json
}

@test "what is predicted is what a training of the RNN holds" {
    holds 1 '"epochs": 1, "samples": 333, "test_samples": 100'
    holds 1 '"epochs": 1, "samples": 40, "batch_size": 64, "eval": false'
    holds 2 '"epochs": 1, "strategy": "ddp", "samples": 333, "test_samples": 99, "clip_norm": 1'
    holds 3 '"epochs": 1, "strategy": "ddp", "samples": 300, "test_samples": 1000, "test_batch": 50'
}

@test "what is predicted is what a training of BERT holds" {
    small='"model": "bert-tiny", "layers": 1, "hidden": 64, "dataset": "squad-slice", "steps": 1, "seq_len": 128, "doc_stride": 32, "samples": 20, "test_samples": 3'
    holds 1 "$small"
    holds 1 "$small, \"padding\": \"max_length\", \"batch_size\": 3, \"optimizer\": \"adamw-google\""
    holds 2 "$small, \"strategy\": \"ddp\", \"batch_size\": 2, \"clip_norm\": 1, \"eval\": false"
}

@test "what is predicted is what every strategy holds" {
    rnn='"epochs": 1, "samples": 300, "test_samples": 60, "batch_size": 50'
    holds 2 "$rnn, \"strategy\": \"ddp\", \"variant\": \"framework\""
    for strategy in fsdp deepspeed_stage_1 deepspeed deepspeed_stage_3; do
        holds 3 "$rnn, \"strategy\": \"$strategy\""
        holds 2 "$rnn, \"strategy\": \"$strategy\", \"variant\": \"framework\", \"clip_norm\": 1"
    done
    holds 1 "$rnn, \"strategy\": \"dp\", \"dp_devices\": 3"
}

@test "what is predicted is what every strategy holds of BERT, in 16 bits too" {
    small='"model": "bert-tiny", "layers": 2, "hidden": 32, "vocab_size": 300, "positions": 64, "dataset": "synthetic", "seq_len": 64, "steps": 2, "samples": 20, "test_samples": 3, "batch_size": 4'
    holds 1 "$small, \"strategy\": \"dp\", \"dp_devices\": 2"
    for strategy in deepspeed_stage_1 deepspeed deepspeed_stage_3; do
        holds 2 "$small, \"strategy\": \"$strategy\""
    done
    holds 2 "$small, \"strategy\": \"fsdp\", \"precision\": \"bf16\""
    holds 2 "$small, \"strategy\": \"ddp\", \"precision\": \"fp16\", \"cpus_per_task\": 1"
}

# A thread's scratch is its own, so what is predicted follows the threads.
@test "workspace is that of all threads" {
    for threads in 1 3; do
        echo "{\"epochs\": 1, \"samples\": 128, \"eval\": false, \"cpus_per_task\": $threads}" >c.json
        env -u OMP_NUM_THREADS "$worker" train --config c.json --result "r$threads.json" >log 2>&1
        "$worker" predict --config c.json --json >"p$threads.json"
        jq -e --slurpfile p "p$threads.json" '.memory == $p[0].memory' "r$threads.json"
    done
    jq -e --slurpfile one p1.json '.memory.workspace > $one[0].memory.workspace' p3.json
}

@test "predictions name the strategies that could train the cell, and what each takes" {
    echo '{"model": "bert-large", "strategy": "ddp", "nodes": 2, "tasks_per_node": 4, "batch_size": 8}' >c.json
    run "$worker" predict --config c.json --no-data --json
    [ "$status" -eq 0 ]
    # 334,094,338 parameters: values, gradients and two moments
    jq -e '.world == 8 and .memory.parameters == 1336377352 and .memory.gradients == 1336377352
        and .memory.optimizer == 2672754704 and .strategies.ddp == .total_bytes and .strategies.single == null' <<<"$output"
    run "$worker" predict --config c.json --no-data
    [[ "${lines[0]}" == "bert-large ddp, rank 0 of 8" ]]
    [[ "$output" == *"in all"*"(at most)"* ]]
}

@test "many cells give a line each, also those that are wrong" {
    echo '[{"strategy": "single"}, {"strategy": "singl"}, {"strategy": "single", "nodes": 2, "tasks_per_node": 1}]' >cells.json
    run "$worker" predict --cells cells.json --no-data
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 3 ]
    jq -e '.total_bytes > 0' <<<"${lines[0]}"
    jq -e '.error | startswith("unknown strategy \"singl\"")' <<<"${lines[1]}"
    jq -e '.error | startswith("strategy single runs on at most 1 node, 2 requested")' <<<"${lines[2]}"
    run "$worker" predict --cells c.json
    [ "$status" -eq 3 ]
    run "$worker" predict
    [ "$status" -eq 2 ]
}
