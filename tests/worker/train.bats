#!/usr/bin/env bats
# hpcgrid-worker from outside: configurations right and wrong, the result file, ranks under mpirun, failures, signals.

load ../await

setup() {
    worker="$HPCGRID_BUILD/worker/hpcgrid-worker"
    cd "$BATS_TEST_TMPDIR"
    export HPCGRID_LOG=warn OMP_NUM_THREADS=1
    export OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1 ASAN_OPTIONS=detect_leaks=0
    unset HPCGRID_DATA HPCGRID_CELL HPCGRID_RESULT RANK WORLD_SIZE SLURM_STEP_NUM_TASKS
}

teardown() { nothing_left; }

ranks() {
    n=$1
    shift
    mpirun --oversubscribe --allow-run-as-root -n "$n" "$@"
}

# train CONFIG [WORDS]: stdout and stderr in $output, exit code in $status, result in r.json
train() {
    echo "$1" >c.json
    shift
    run "$@" "$worker" train --config c.json --result r.json
}

@test "a training writes its result" {
    train '{"epochs": 2, "samples": 640, "test_samples": 100, "lr": 1, "_note": "x", "hardware": "cpu", "nodes": 1, "time": 60, "repeat": 1, "gamma": null}'
    [ "$status" -eq 0 ]
    [[ "$output" == "rnn single on mnist-slice: 1 rank x 1 thread, batch 64"*"accuracy "* ]]
    jq -e '.schema == "hpcgrid-workload/1" and .status == "ok" and .diverged == false and .steps == 20 and (.epoch_s | length) == 2' r.json
    jq -e '.data_s > 0 and .data_s < .train_s and .noise_s > 0 and .noise_s < .train_s' r.json
    jq -e '.train_s > 0 and .init_s > 0 and .step_s.median > 0 and .step_s.p95 >= .step_s.median' r.json
    jq -e '(.samples_per_s * .train_s - 1280 | fabs) < 1e-6 and (.steps_per_s * .train_s - 20 | fabs) < 1e-6' r.json
    jq -e '.final_loss == .loss.epoch[1] and (.loss.loss | length) == 20 and .loss.step[19] == 20' r.json
    jq -e '.eval.accuracy >= 0 and .eval.samples == 100 and .eval.loss > 0' r.json
    jq -e '.comm == {} and .parameters == 26602 and (.ranks | length) == 1 and .ranks[0].device != ""' r.json
    jq -e '.memory.parameters == 26730 * 4 and .memory.optimizer == 2 * 26602 * 4' r.json
    jq -e '.memory as $m | .memory_expected | to_entries | all(.value == $m[.key])' r.json
    jq -e '.comparable | .precision == "fp32" and .tf32 == false and .global_batch == 64 and .epochs == 2
        and .dataset == "mnist-slice" and (.dataset_hash | length) == 32 and .revision != ""' r.json
}

@test "each rank's trace has its steps, ops and collectives, and spans nest" {
    echo '{"strategy": "ddp", "steps": 8, "samples": 1024, "eval": false, "trace": true, "trace_active": 2, "trace_repeat": 2}' >c.json
    ranks 2 "$worker" train --config c.json --result r.json
    jq -e '.trace == "trace.0.json.gz" and .profile.steps == 4 and (.profile.ops | map(.name) | index("lstm_forward") != null)' r.json
    jq -e '.profile.ops | all(.total_s >= .self_s and .self_s > 0 and .calls > 0)' r.json
    for rank in 0 1; do
        zcat trace.$rank.json.gz >t.json
        [ "$(jq -c '[.traceEvents[] | select(.name | startswith("ProfilerStep")) | .name]' t.json)" = '["ProfilerStep#2","ProfilerStep#3","ProfilerStep#6","ProfilerStep#7"]' ]
        jq -e --argjson rank $rank '.distributedInfo == {backend: "mpi", rank: $rank, world_size: 2} and (.traceEvents | all(.pid == $rank))' t.json
        # what lies in a step lies in it whole, on each thread; a collective may end behind its step
        jq -e '[.traceEvents[] | select(.ph == "X" and .tid == 1)] | (map(select(.name | startswith("ProfilerStep"))) | map({key: (.args.step | tostring), value: .}) | from_entries) as $steps
            | all($steps[.args.step | tostring] as $s | .ts >= $s.ts - 0.001 and .ts + .dur <= $s.ts + $s.dur + 0.002)' t.json
        jq -e '[.traceEvents[] | select(.cat == "collective_comm" and .args.control == false and .name == "all_reduce")]
            | length >= 4 and all(.args.bytes == 26602 * 4 and .args["Group size"] == 2)' t.json
    done
}

@test "TensorBoard files hold every step's loss" {
    train '{"steps": 5, "samples": 640, "test_samples": 100, "tensorboard": true}'
    [ "$status" -eq 0 ]
    [ "$(ls events.out.tfevents.* | wc -l)" = 1 ]
    [ "$(grep -ao 'train/loss' events.out.tfevents.* | wc -l)" = 6 ] # and once among the settings
    grep -aq 'eval/accuracy' events.out.tfevents.*
    echo '{"steps": 1, "tensorboard": true}' >c.json
    touch nowhere
    run "$worker" train --config c.json --result nowhere/r.json
    [ "$status" -eq 4 ]
    [[ "$output" == *"cannot write nowhere/r.json: nowhere is not a folder"* ]]
}

@test "the cell and the result come from the environment too" {
    echo '{"steps": 2, "eval": false}' >cell.json
    HPCGRID_CELL=cell.json HPCGRID_RESULT=out.json run "$worker" train
    [ "$status" -eq 0 ]
    jq -e '.status == "ok" and .steps == 2 and (has("eval") | not)' out.json
    run bash -c "echo '{\"steps\": 1, \"eval\": false}' | '$worker' train --config - --json"
    [ "$status" -eq 0 ]
    jq -e '.steps == 1' <<<"$output"
}

@test "wrong configurations are refused with place and reason" {
    check() { # CONFIG, then lines that must be in the output
        train "$1"
        echo "$1 -> $status: $output"
        [ "$status" -eq 3 ]
        shift
        for line in "$@"; do
            grep -qF -- "$line" <<<"$output" || {
                echo "missing: $line"
                return 1
            }
        done
        jq -e '.status == "failed" and .error.kind == "input" and .error.rank == 0 and .error.host != ""' r.json
        rm r.json
    }
    check '{"batchsize": 3}' 'c.json:1:2: error: /batchsize: unknown member "batchsize"' 'did you mean "batch_size"?'
    check '{"epochs": 0, "lr": "x"}' '1:12: error: /epochs: 0 is out of range' '1:21: error: /lr: expected a number, found'
    check '{"strategy": "dpp"}' '/strategy: unknown strategy "dpp"' 'did you mean "ddp"?'
    check '{"strategy": "dp", "dp_devices": 65}' '/dp_devices: 65 is out of range'
    check '{"strategy": "dp", "nodes": 2}' 'c.json:1:29: error: /nodes: strategy dp runs on at most 1 node, 2 requested'
    check '{"strategy": "dp", "tasks_per_node": 2}' '/tasks_per_node: strategy dp runs on at most 1 task, 2 requested'
    check '{"strategy": "dp", "nodes": 3, "tasks_per_node": 1}' '/nodes: strategy dp runs on at most 1 node, 3 requested' '/tasks_per_node: strategy dp runs on at most 1 task, 3 requested'
    check '{"strategy": "dp", "gpus_per_node": 2, "dp_devices": 3}' '/dp_devices: 3 devices requested, the cell has 2 GPUs a node'
    check '{"strategy": "dp", "gpus_per_node": 70}' '70 devices in one process, allowed are 1 to 64'
    check '{"gpus_per_node": 4}' '/gpus_per_node: strategy single runs on at most 1 device, 4 requested'
    check '{"strategy": "ddp", "dp_devices": 2}' '/dp_devices: strategy ddp has no dp_devices'
    check '{"strategy": "ddp", "fsdp_wrap": "layer", "lr": 1}' '1:21: error: /fsdp_wrap: strategy ddp has no fsdp_wrap'
    check '{"zero_reduce": "allreduce"}' '/zero_reduce: strategy single has no zero_reduce'
    check '{"strategy": "deepspeed", "zero_reduce": "reduce"}' '/zero_reduce: unknown zero_reduce "reduce"' 'known: reduce_scatter, allreduce'
    check '{"model": "rn"}' '/model: unknown model "rn"' 'did you mean "rnn"?'
    check '{"model": "bert-base", "data": "/nowhere"}' 'no file /nowhere/train-v1.1.json (nor with .gz)' 'squad-slice'
    check '{"model": "bert-base", "dataset": "mnist"}' 'model bert-base does not read data set mnist'
    check '{"dataset": "squad-slice"}' 'model rnn does not read data set squad-slice'
    check '{"gelu": "tanh"}' '/gelu: model rnn has no gelu'
    check '{"model": "bert-tiny", "gelu": "relu"}' '/gelu: unknown gelu "relu"' 'known: erf, tanh'
    check '{"model": "bert-tiny", "hidden": 100, "heads": 3}' 'hidden 100 cannot be cut into 3 heads of equal size'
    check '{"model": "bert-tiny", "dataset": "squad-slice", "seq_len": 513}' 'seq_len is 513, but model bert-tiny reads at most 512 tokens'
    check '{"model": "bert-tiny", "dataset": "squad-slice", "vocab_size": 1000}' 'vocab'
    check '{"dataset": "minst"}' '/dataset: unknown dataset "minst"' 'did you mean "mnist"?'
    check '{"checkpoint": "", "data": ""}' 'c.json:1:16: error: /checkpoint: an empty text is not a path' '/data: an empty text is not a path' 'leave checkpoint out, or set it to null'
    check '{"model": "bert-tiny", "beta2": 1}' '/beta2: 1 is out of range; 0 to 0.999999'
    check '{"model": "bert-tiny", "dataset": "synthetic", "samples": 1000000000}' '/samples: 1000000000 synthetic samples requested; allowed: 1 to 50000000'
    check '{"precision": "fp8"}' '/precision: unknown precision "fp8"' 'known: fp32, tf32, bf16, fp16'
    check '{"precision": "fp23"}' '/precision: unknown precision "fp23"'
    check '{"optimizer": "adam", "backend": "gpu"}' '/optimizer: unknown optimizer "adam"' '/backend: unknown backend "gpu"'
    check '{"tf32": true}' '/tf32: unknown member "tf32"'
    check '{"deterministic_reduce": true}' '/deterministic_reduce: strategy single has no deterministic_reduce'
    check '{"fsdp_wrap": "layer"}' '/fsdp_wrap: strategy single has no fsdp_wrap'
    check '{"epochs": 1, "epochs": 2}' 'given twice'
    check '{"epochs": 1' 'c.json:2:1: error: the file ends in the middle of a value'
    check '[]' 'expected an object'
    check '{"batch_size": 2.5}' '/batch_size: expected an integer'
    check '{"samples": 5000}' '5000 samples requested, the file has 4000'
    check '{"samples": 65}' 'the last batch of an epoch would hold 1 sample a rank (65 samples, 1 rank, batch 64); model rnn needs 2'
    check '{"data": "/nowhere"}' 'no folder /nowhere, where "data" expects the data set' 'leave "data" out'
}

@test "what this machine or build lacks is exit code 4, a wrong command line 2" {
    CUDA_VISIBLE_DEVICES= train '{"backend": "cuda"}'
    [ "$status" -eq 4 ]
    [[ "$output" == *"this build of hpcgrid-worker has no cuda backend"* || "$output" == *NVIDIA* ]]
    run "$worker" train
    [ "$status" -eq 2 ]
    run "$worker" train --config c.json extra
    [ "$status" -eq 2 ]
    run "$worker" train --confg c.json
    [ "$status" -eq 2 ]
    [[ "$output" == *"--config"* ]]
    run "$worker" tarin
    [ "$status" -eq 2 ]
    [[ "$output" == *'did you mean "train"?'* ]]
    run "$worker" train --config absent.json
    [ "$status" -eq 3 ]
    [[ "$output" == *absent.json* ]]
    train '{"steps": 1}'
    run "$worker" train --config c.json --result /nowhere/r.json
    [ "$status" -eq 4 ]
    [[ "$output" == *"no folder for the result /nowhere/r.json"* && "$output" != *epoch* ]]
}

@test "check finds what is wrong with a cell and its data, and trains nothing" {
    echo '{"epochs": 1000000}' >c.json
    run "$worker" check --cell c.json
    [ "$status" -eq 3 ]
    [[ "$output" == *"c.json:1:12: error: /epochs: 1000000 is out of range"* ]]
    echo '{"epochs": 1000, "strategy": "ddp", "nodes": 2, "tasks_per_node": 2}' >c.json
    HPCGRID_CELL=c.json run "$worker" check
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [ "$(ls)" = c.json ]
    mkdir data
    cp "$HPCGRID_SOURCE"/worker/samples/mnist/*.gz data
    echo '{"data": "data"}' >c.json
    run "$worker" check --config c.json
    [ "$status" -eq 0 ]
    head -c 1000 "$HPCGRID_SOURCE"/worker/samples/mnist/train-images-idx3-ubyte.gz >data/train-images-idx3-ubyte.gz
    run "$worker" check --config c.json
    [ "$status" -eq 3 ]
    [[ "$output" == *"data/train-images-idx3-ubyte.gz: error: damaged gzip data (unexpected end of file)"* ]]
    echo '{"strategy": "ddp", "nodes": 2, "tasks_per_node": 2, "samples": 260}' >c.json
    run "$worker" check --config c.json
    [ "$status" -eq 3 ]
    [[ "$output" == *"the last batch of an epoch would hold 1 sample a rank (260 samples, 4 ranks, batch 64)"* ]]
    echo '{"strategy": "single", "nodes": 2, "tasks_per_node": 1}' >c.json
    run "$worker" check --config c.json
    [ "$status" -eq 3 ]
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' a >few.txt
    echo '{"model": "bert-tiny", "dataset": "squad-slice", "vocab": "few.txt"}' >c.json
    run "$worker" check --config c.json
    [ "$status" -eq 3 ]
    [[ "$output" == *"few.txt: error: the vocabulary has 6 tokens, the model's embedding 30522 rows"* ]]
    echo '{"strategy": "fsdp", "nodes": 3000, "tasks_per_node": 1}' >c.json
    run "$worker" check --config c.json
    [ "$status" -eq 3 ]
    [[ "$output" == *'strategy fsdp cannot shard the 2538 values of unit "head" over 3000 ranks'* ]]
}

@test "doctor, describe, version and help answer" {
    run "$worker" doctor
    [ "$status" -eq 0 ]
    [[ "$output" == *"kernels "*"OpenBLAS"*"mpi Open MPI"* ]]
    run "$worker" describe
    jq -e '.models[0].parameters == 26602 and (.strategies | map(.name)) == ["single", "dp", "ddp", "fsdp", "deepspeed", "deepspeed_stage_1", "deepspeed_stage_2", "deepspeed_stage_3"]' <<<"$output"
    run "$worker" --version
    [[ "$output" == "hpcgrid-worker "[0-9]* ]]
    run "$worker" train --help
    [[ "$output" == *"batch_size"* && "$output" != *"samples per device"* ]]
    [ "${#lines[@]}" -le 24 ]
    awk 'length > 80 { exit 1 }' <<<"$output"
    run "$worker" train --help=all
    [[ "$output" == *"batch_size       samples per device and pass"*"optimizer: how parameters move"* ]]
    run "$worker" train --help=optimizer
    [ "$status" -eq 0 ]
    [[ "$output" == "optimizer: "*"clip_norm "* && "$output" != *"batch_size"* ]]
    run "$worker" train --help=optimiser
    [ "$status" -eq 2 ]
    [[ "$output" == *'unknown section "optimiser"'*'did you mean "optimizer"?'* ]]
    run "$worker" doctor --help=all
    [ "$status" -eq 2 ]
    for words in doctor describe --version --help "train --help"; do
        run bash -c "'$worker' $words >/dev/full"
        [ "$status" -eq 4 ]
        [[ "$output" == *"cannot write the output: No space left on device"* ]]
    done
}

@test "the same seed gives the same bits, another seed others" {
    config='{"steps": 40, "lr": 1, "test_samples": 200}'
    train "$config"
    jq '[.loss, .eval]' r.json >one
    train "$config"
    jq '[.loss, .eval]' r.json >two
    cmp one two
    train '{"steps": 40, "lr": 1, "test_samples": 200, "seed": 2}'
    jq '[.loss, .eval]' r.json >other
    cmp -s one other && return 1
    true
}

@test "the slice is learned: 85 % of its test images after ten epochs" {
    train '{"epochs": 10, "lr": 1, "gamma": 0.9}'
    [ "$status" -eq 0 ]
    jq .eval r.json
    jq -e '.eval.accuracy >= 0.85 and .loss.epoch[9] < 0.4 and .loss.epoch[0] > 1.2' r.json
}

@test "without dropout the loss falls faster" {
    train '{"epochs": 2, "lr": 1, "eval": false}'
    with=$(jq .final_loss r.json)
    train '{"epochs": 2, "lr": 1, "eval": false, "dropout": false}'
    jq -e --argjson with "$with" '.final_loss < $with and .comparable.dropout == false' r.json
}

@test "ddp on two ranks sends what its formulas say" {
    train '{"strategy": "ddp", "epochs": 2, "samples": 333, "test_samples": 99, "batch_size": 16, "nodes": 1, "tasks_per_node": 2}' ranks 2
    [ "$status" -eq 0 ]
    jq -e '.world == 2 and .communication == "mpi" and .steps == 22 and .samples_padded == 334' r.json
    jq -e '(.samples_per_s * .train_s - 666 | fabs) < 1e-6 and .comparable.global_batch == 32' r.json
    jq -e '.comm.all_reduce | .calls == 22 and .payload_bytes == 22 * 106408 and .ring_bytes == .expected_bytes' r.json
    jq -e '.comm.broadcast | .calls == 25 and .payload_bytes == 106408 + 24 * 512 and .ring_bytes == .expected_bytes' r.json
    jq -e '(.ranks | map(.rank)) == [0, 1] and (.ranks | map(.pid) | unique | length) == 2' r.json
}

@test "every strategy gives the same losses on two real ranks, and sends what it should" {
    for strategy in ddp fsdp deepspeed deepspeed_stage_1 deepspeed_stage_3; do
        train "{\"model\": \"bert-tiny\", \"hidden\": 32, \"layers\": 2, \"vocab_size\": 300, \"dataset\": \"synthetic\", \"samples\": 64, \"seq_len\": 32,
            \"batch_size\": 4, \"lr\": 1e-3, \"test_samples\": 9, \"strategy\": \"$strategy\"}" mpirun --oversubscribe --allow-run-as-root -n 2
        echo "$strategy: $output"
        [ "$status" -eq 0 ]
        [ -e first.json ] || cp r.json first.json
        diff <(jq .loss first.json) <(jq .loss r.json)
        jq -e '.comm | length > 0 and all(.[]; .ring_bytes == .expected_bytes and .calls == .expected_calls)' r.json
        jq -e '.memory as $m | .memory_expected | to_entries | all(.value == $m[.key])' r.json
    done
}

@test "over tcp a strategy sends what it should, and gives the losses that it gives over MPI" {
    cell='"model": "bert-tiny", "hidden": 32, "layers": 2, "vocab_size": 300, "dataset": "synthetic", "samples": 64, "seq_len": 32, "batch_size": 4, "lr": 1e-3, "test_samples": 9'
    for strategy in ddp fsdp; do
        train "{$cell, \"strategy\": \"$strategy\"}" ranks 2
        jq -e 'all(.comm[]; has("sent_bytes") | not)' r.json # MPI does not say
        mv r.json mpi.json
        # a port that the kernel gives to nobody
        train "{$cell, \"strategy\": \"$strategy\"}" env HPCGRID_COMM=tcp MASTER_ADDR=127.0.0.1 MASTER_PORT=$((61000 + $$ % 4500)) \
            mpirun --oversubscribe --allow-run-as-root -n 2
        echo "$strategy: $output"
        [ "$status" -eq 0 ]
        diff <(jq '[.loss, .eval.loss]' mpi.json) <(jq '[.loss, .eval.loss]' r.json)
        jq -e '.communication == "tcp" and (.comm | length > 0 and all(.[]; .sent_bytes == .ring_bytes and .ring_bytes == .expected_bytes))' r.json
    done
}

@test "dp drives several devices from one process, and only one process" {
    config='"model": "bert-tiny", "hidden": 32, "layers": 2, "vocab_size": 300, "dataset": "synthetic", "samples": 64, "seq_len": 32, "lr": 1e-3, "eval": false'
    train "{$config, \"batch_size\": 8}"
    mv r.json single.json
    train "{$config, \"batch_size\": 2, \"strategy\": \"dp\", \"dp_devices\": 4}"
    echo "$output"
    [ "$status" -eq 0 ]
    jq -e '.world == 4 and .communication == "threads" and (.ranks | length) == 4 and .comparable.global_batch == 8' r.json
    jq -ne --slurpfile a single.json --slurpfile b r.json '[$a[0].loss.loss, $b[0].loss.loss] | transpose | length == 8 and all((.[0] - .[1] | fabs) <= 1e-5 * .[0])'
    jq -e '.comm | keys == ["broadcast", "gather", "reduce", "scatter"] and all(.[]; .ring_bytes == .expected_bytes and .calls == .expected_calls)' r.json
    train "{$config, \"batch_size\": 2, \"strategy\": \"dp\"}" mpirun --oversubscribe --allow-run-as-root -n 2
    [ "$status" -eq 3 ]
    [[ "$output" == *"strategy dp runs as one rank, 2 were started: each would train alone"* ]]
    train "{$config, \"batch_size\": 40, \"strategy\": \"dp\", \"dp_devices\": 2, \"vocab\": 1}"
    [ "$status" -eq 3 ]
}

@test "ranks that know nothing of each other are refused" {
    echo '{"strategy": "ddp", "steps": 1}' >c.json
    SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 run "$worker" train --config c.json --result r.json
    [ "$status" -eq 4 ]
    [[ "$output" == *"srun started the ranks without PMIx"*"srun --mpi=pmix"* ]]
    HPCGRID_COMM=mpi SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 run "$worker" train --config c.json --result r.json
    [ "$status" -eq 4 ]
    [[ "$output" == *"4 processes were started, but MPI sees a world of 1: each would train alone"*"srun --mpi=pmix"* ]]
    jq -e '.status == "failed" and .error.kind == "environment" and (.error.hint | contains("pmix"))' r.json
    WORLD_SIZE=2 RANK=0 run "$worker" train --config c.json
    [ "$status" -eq 4 ]
    train '{"strategy": "ddp", "nodes": 2, "tasks_per_node": 2}'
    [ "$status" -eq 4 ]
    [[ "$output" == *"the cell is 2 nodes with 2 ranks each, but the world size is 1"* ]]
}

@test "ranks that are not where the cell requests them are rejected, with what was requested and what was found" {
    train '{"strategy": "ddp", "nodes": 2, "tasks_per_node": 2, "steps": 1}' ranks 4
    [ "$status" -eq 4 ]
    host=$(hostname)
    [[ "$output" == *"the cell requests 2 ranks on each of 2 nodes; found 4 on $host"* ]]
    jq -e '.status == "failed" and .error.kind == "environment"' r.json
    cat >node.sh <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 3 ] && SLURMD_NODENAME=b || SLURMD_NODENAME=a
export SLURMD_NODENAME
exec "$@"
END
    chmod +x node.sh
    rm r.json
    train '{"strategy": "ddp", "nodes": 2, "tasks_per_node": 2, "steps": 1}' ranks 4 ./node.sh
    [ "$status" -eq 4 ]
    [[ "$output" == *"the cell requests 2 ranks on each of 2 nodes; found 3 on a, 1 on b"* ]]
    [[ "$output" == *"give the launcher --nodes and --ntasks-per-node"* ]]
    train '{"strategy": "ddp", "nodes": 1, "tasks_per_node": 2, "steps": 1, "test_samples": 50}' ranks 2
    [ "$status" -eq 0 ]
}

@test "single with two ranks is refused" {
    train '{"steps": 1}' ranks 2
    [ "$status" -ne 0 ]
    [[ "$output" == *"strategy single runs as one rank, 2 were started: each would train alone"* ]]
}

@test "one rank that fails ends all, and the result says which and why" {
    echo '{"strategy": "ddp", "epochs": 100000}' >c.json
    printf '#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 0 ] || export HPCGRID_DATA=/nowhere\nexec "$@"\n' >rank.sh
    chmod +x rank.sh
    run ranks 2 ./rank.sh "$worker" train --config c.json --result r.json
    echo "$output"
    [ "$status" -ne 0 ]
    [[ "$output" == *"rank 1: error: no folder /nowhere/mnist, where HPCGRID_DATA expects the data set"* ]]
    jq -e '.status == "failed" and .error.rank == 1 and (.error.message | contains("/nowhere/mnist"))' r.json
}

# Not before they train: Open MPI 4.1.4's mpirun may wait for ever when a rank dies while the ranks are still connecting to it.
@test "a killed rank ends all" {
    echo '{"strategy": "ddp", "epochs": 100000}' >c.json
    cat >rank.sh <<'END'
#!/bin/sh
echo $$ >pid.$OMPI_COMM_WORLD_RANK
exec "$@"
END
    chmod +x rank.sh
    HPCGRID_LOG=info ranks 3 ./rank.sh "$worker" train --config c.json --result r.json >log 2>&1 3>&- &
    job=$!
    await grep -q "epoch 1 of" log
    kill -9 "$(cat pid.1)"
    wait "$job" && return 1
    for rank in 0 2; do await gone "$(cat pid.$rank)"; done
}

@test "a signal ends the training after its step, with a result" {
    echo '{"epochs": 100000}' >c.json
    "$worker" train --config c.json --result r.json 2>err 3>&- &
    job=$!
    await catches "$job" 10
    kill -USR1 "$job"
    await grep -q "the time limit is near" err
    kill -TERM "$job"
    status=0
    wait "$job" || status=$?
    [ "$status" -eq 143 ]
    jq -e '.status == "failed" and (.error.message | test("stopped by signal 15 .Terminated. after step [0-9]+"))' r.json
    jq -e '.steps > 0 or (.epoch_s | length) == 0' r.json
}

# What a training of hours would have found at its end.
@test "a place that takes no result, trace or predictions is refused before the training" {
    export HPCGRID_LOG=info
    refused() { # TEXT: before the first epoch ended
        echo "$output"
        [ "$status" -eq 4 ]
        [[ "$output" == *"$1"* && "$output" != *"epoch 1 of"* ]]
    }
    short='"samples": 640, "test_samples": 100'
    mkdir -p folder trace.0.json.gz trace.1.json.gz
    echo "{$short}" >c.json
    run "$worker" train --config c.json --result folder
    refused "cannot write folder: it is a folder"
    echo "{$short, \"strategy\": \"ddp\"}" >c.json
    run ranks 2 "$worker" train --config c.json --result folder
    [ "$status" -ne 0 ]
    [[ "$output" == *"cannot write folder: it is a folder"* && "$output" != *"epoch 1 of"* ]]
    train "{$short, \"trace\": true}"
    refused "trace: cannot write ./trace.0.json.gz: it is a folder"
    [ "$(jq -c '[.status, .steps // 0]' r.json)" = '["failed",0]' ]
    train '{"model": "bert-tiny", "hidden": 32, "dataset": "squad-slice", "samples": 8, "batch_size": 4, "seq_len": 96, "doc_stride": 32, "predictions": "folder"}'
    refused "predictions: cannot write folder: it is a folder"
    [ "$(id -u)" -ne 0 ] || return 0 # whom no folder's mode keeps out
    chmod 555 folder
    run "$worker" train --config c.json --result folder/r.json
    refused "cannot write folder/r.json in folder folder: Permission denied"
}

@test "what is meant for closed streams goes into no file" {
    echo '{"samples": 640, "test_samples": 100, "epochs": 2, "tensorboard": true, "checkpoint": "a.safetensors"}' >c.json
    mkdir open closed
    for streams in open closed; do
        closed=""
        [ $streams = open ] || closed="2>&-"
        (cd $streams && HPCGRID_LOG=info bash -c "\"\$1\" train --config ../c.json --result r.json $closed" - "$worker" 2>log)
        jq -e '.status == "ok" and .steps == 20' $streams/r.json
        "$worker" inspect $streams/a.safetensors
    done
    grep -q "epoch 1 of 2" open/log
    run grep -rl "epoch 1 of 2" closed
    [ "$output" = "" ]
}
