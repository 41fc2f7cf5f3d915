#!/usr/bin/env bats
# hpcgrid-worker with the whole cuda backend, on a mock GPU: runtime, cuBLASLt and NCCL are those of gpu/emulator. Work of a stream is done
# as late as can be, so that whoever forgets to wait shows.

setup() {
    worker="$HPCGRID_BUILD/tests/hpcgrid-worker-emulated"
    cd "$BATS_TEST_TMPDIR"
    export LD_LIBRARY_PATH="$HPCGRID_BUILD/tests/mock" HPCGRID_CACHE="$BATS_FILE_TMPDIR"
    export HPCGRID_SEARCH_REPEATS=1 # times mean nothing here
    export HPCGRID_LOG=warn OMP_NUM_THREADS=1 OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1
    export ASAN_OPTIONS=detect_leaks=0
    unset HPCGRID_DATA HPCGRID_CELL HPCGRID_RESULT RANK WORLD_SIZE SLURM_STEP_NUM_TASKS CUDA_VISIBLE_DEVICES
    bert='"model": "bert-tiny", "layers": 1, "vocab_size": 500, "dataset": "synthetic", "samples": 64, "seq_len": 32, "lr": 1e-4,
        "lengths": "normal", "length_mean": 20, "length_sd": 6, "length_min": 8, "eval": false'
    rnn='"model": "rnn", "dataset": "mnist-slice", "lr": 1, "batch_size": 8, "eval": false'
    gpu='"backend": "cuda"'
    ranges='"clip_norm": 1, "weight_decay": 0.01, "decay": "weights"' # updates are made of ranges, behind the sum of squares
}

# train NAME CONFIG [WORDS]: the result is in NAME.json
train() {
    name=$1
    echo "$2" >"$name.cell"
    shift 2
    "$@" "$worker" train --config "$name.cell" --result "$name.json"
}

# near A B BOUND: how far the losses are from each other, relative
near() {
    jq -e -n --slurpfile a "$1.json" --slurpfile b "$2.json" --argjson bound "$3" '
        [$a[0].loss.loss, $b[0].loss.loss] | (.[0] | length) > 0 and (.[0] | length) == (.[1] | length)
        and (transpose | all((.[0] - .[1] | fabs) <= $bound * (.[0] | fabs)))'
}

same() {
    cmp <(jq -c .loss.loss "$1.json") <(jq -c .loss.loss "$2.json")
}

@test "losses are the CPU's, and the same bits with graphs and without" {
    for precision in fp32 bf16 fp16; do
        own='"steps": 4, "batch_size": 2, '$ranges', "padding": "max_length", "precision": "'$precision'"'
        train cpu "{$bert, $own}"
        EMU_TELL=told train graphs "{$gpu, $bert, $own}"
        [[ "$(<told)" == *" narrow 0 graphs 3" ]] # once as it is, then recorded, then twice more
        HPCGRID_NO_GRAPHS=1 EMU_TELL=told train plain "{$gpu, $bert, $own}"
        [[ "$(<told)" == *"graphs 0" ]]
        near cpu graphs 0.002
        same graphs plain
    done
    train cpu "{$rnn, \"steps\": 4}"
    train gpu "{$gpu, $rnn, \"steps\": 4}"
    near cpu gpu 1e-5
    jq -e '.memory as $m | .memory_expected | to_entries | all(.value == $m[.key])' graphs.json
    jq -e '.memory.data > 64 * 8 * 4' graphs.json # the sequences lie on the device
}

@test "where nothing clips, layers are updated beside backward, to the same bits" {
    for graphs in "" 1; do
        own='"steps": 4, "padding": "max_length", "weight_decay": 0.01, "decay": "weights", "accumulate": 2, "batch_size": 2'
        [ "$graphs" ] || own=${own/'"accumulate": 2, '}
        HPCGRID_NO_GRAPHS=$graphs EMU_TELL=told train beside "{$gpu, $bert, $own}"
        [[ "$(<told)" == *" asides "[1-9]* ]]
        HPCGRID_NO_GRAPHS=$graphs EMU_TELL=told train behind "{$gpu, $bert, $own, \"clip_norm\": 1000000}"
        [[ "$(<told)" == *" asides 0 "* ]]
        same beside behind
    done
    EMU_TELL=told train small "{$gpu, $rnn, \"steps\": 2}" # not worth it
    [[ "$(<told)" == *" asides 0 "* ]]
}

@test "GEMMs through the library are those of the CPU" {
    for precision in fp32 bf16 fp16; do
        "$HPCGRID_BUILD/tests/test_gpu_ops_mock" cuda "$precision" linear
        HPCGRID_PLAIN_PRODUCTS=1 "$HPCGRID_BUILD/tests/test_gpu_ops_mock" cuda "$precision" linear
    done
}

@test "a step that cannot be recorded runs as it is" {
    own='"steps": 4, "batch_size": 2, "padding": "max_length"'
    train graphs "{$gpu, $bert, $own}"
    for fault in 801@0 901@1 901@40; do
        EMU_CAPTURE=$fault EMU_TELL=told train plain "{$gpu, $bert, $own}"
        [[ "$(<told)" == *"graphs 0" ]]
        same graphs plain
    done
}

@test "a step waits for nothing, and known GEMMs are not timed again" {
    export HPCGRID_CACHE="$BATS_TEST_TMPDIR/cache"
    for model in "$gpu, $bert, \"batch_size\": 2" "$gpu, $rnn"; do
        EMU_TELL=first train first "{$model, \"steps\": 5}" # looks for algorithms, and waits for their times
        EMU_TELL=short train short "{$model, \"steps\": 2}"
        EMU_TELL=long train long "{$model, \"steps\": 5}"
        [ "$(cut -d' ' -f2 short)" = "$(cut -d' ' -f2 long)" ]
        [[ "$model" == *rnn* ]] || [ "$(cut -d' ' -f4 first)" -gt "$(cut -d' ' -f4 long)" ]
    done
    [ "$(<first)" = "$(<long)" ] # the RNN has none: its head is a kernel each way, its update one
    for steps in 2 5; do
        HPCGRID_NO_GRAPHS=1 EMU_TELL=$steps train plain "{$gpu, $rnn, \"steps\": $steps}"
    done
    [ $(($(cut -d' ' -f4 5) - $(cut -d' ' -f4 2))) -eq $((3 * (10 + 3))) ] # a step: kernels, and copies from the host
}

@test "the mean of gradients is divided once, by NCCL" {
    export HPCGRID_SHARE_GPU=1
    train alone "{$gpu, $bert, \"steps\": 1, \"batch_size\": 4, \"checkpoint\": \"alone.safetensors\"}"
    for strategy in '"ddp", "bf16_gradients": true' '"fsdp"'; do
        rm -f two.safetensors
        train two "{$gpu, $bert, \"steps\": 1, \"batch_size\": 2, \"strategy\": $strategy, \"checkpoint\": \"two.safetensors\"}" \
            mpirun --oversubscribe --allow-run-as-root -n 2
        python3 -B - "$BATS_TEST_DIRNAME/run" <<'END' # what AdamW keeps of one gradient is that times 1 - beta1
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("run", sys.argv[1])
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)
alone, two = (run.read_tensors(name + ".safetensors") for name in ("alone", "two"))
assert alone and alone.keys() == two.keys()
total = sum(run.length(a) ** 2 for a in alone.values()) ** 0.5
apart = sum(run.length([x - y for x, y in zip(alone[name], two[name])]) ** 2 for name in alone) ** 0.5
assert apart < 0.005 * total, apart / total
END
    done
}

@test "ranks over NCCL train as one, whatever the strategy" {
    export HPCGRID_SHARE_GPU=1
    bert+=", $ranges"
    train alone "{$gpu, $bert, \"steps\": 3, \"batch_size\": 4}"
    train passes "{$gpu, $bert, \"steps\": 3, \"batch_size\": 2, \"accumulate\": 2}" # the first overwrites gradients, the second adds
    near alone passes 1e-5
    # bucket sizes: those of the framework are gigabytes to clear
    for strategy in '"ddp"' '"deepspeed_stage_1", "reduce_bucket": 50000' '"deepspeed", "reduce_bucket": 50000' '"deepspeed_stage_3"' '"fsdp"'; do
        export HPCGRID_CACHE="$BATS_TEST_TMPDIR/$strategy"
        EMU_TELL=told train two "{$gpu, $bert, \"steps\": 3, \"batch_size\": 2, \"strategy\": $strategy, \"variant\": \"framework\"}" \
            mpirun --oversubscribe --allow-run-as-root -n 2
        near alone two 1e-5
        jq -e '.comm | [.[] | select(.calls? != null)] | all(.ring_bytes == .expected_bytes)' two.json
        jq -e '.memory as $m | .memory_expected | to_entries | all(.value == $m[.key])' two.json
        # matrices, updates, clears and norms read 16 bytes at once, whatever lies before them
        jq -e '[.choices | keys[] | select(contains("align"))] == []' "$HPCGRID_CACHE"/*.json
        [[ "$(<told)" == *" narrow 0 "* ]]
        [ "$(cut -d' ' -f6 told)" -le 60 ] # a unit's parameters travel together
    done
    dp="{$gpu, $bert, \"steps\": 3, \"batch_size\": 2, \"strategy\": \"dp\", \"dp_devices\": 2}"
    train two "$dp" # both on one device
    near alone two 1e-5
    unset HPCGRID_SHARE_GPU
    EMU_DEVICES=2 train two "$dp"
    near alone two 1e-5
}

# Wherever a strategy puts weights: also where 16 bytes are no longer read at once, and other algorithms are likely.
@test "sums in the order of the ranks give every strategy the bits of ddp" {
    export HPCGRID_SHARE_GPU=1
    for precision in fp32 bf16; do
        own="$gpu, $bert, \"steps\": 3, \"batch_size\": 2, \"precision\": \"$precision\", \"deterministic_reduce\": true,
            \"weight_decay\": 1, \"decay\": \"weights\""
        for strategy in '"ddp", "first_bucket_mb": 100' '"ddp", "bucket_cap_mb": 0.05, "first_bucket_mb": 0.05' '"fsdp"' '"fsdp", "fsdp_wrap": "model"' '"deepspeed"' '"deepspeed_stage_3"'; do
            train two "{$own, \"strategy\": $strategy}" mpirun --oversubscribe --allow-run-as-root -n 2
            [[ "$strategy" != *100 ]] || cp two.json ddp.json # one bucket, updated as a whole
            same ddp two
        done
    done
}

@test "under NCCL a dead or slow rank is named, and so is an error of NCCL" {
    export HPCGRID_SHARE_GPU=1 EMU_ABORTED="$PWD/aborted"
    cell="{$gpu, $bert, \"epochs\": 100000, \"batch_size\": 2, \"strategy\": \"ddp\", \"comm_timeout\": 4}"
    for fault in kill:1:3:2,gone slow:1:3:2:60,late; do
        rm -f aborted
        HPCGRID_FAULT=${fault%,*} run train "$fault" "$cell" mpirun --oversubscribe --allow-run-as-root -n 2
        [ "$status" -ne 0 ]
        # a host that is ahead of its device may not wait yet when a rank dies
        jq -e --arg how "${fault#*,}" '.status == "failed" and (.error | .rank == 1 and .missing[0].rank == 1 and .missing[0].how == $how
            and ($how == "gone" or (.collective == "all_reduce" and .step >= 3)))' "$fault.json"
        grep -qx 'rank 0' aborted # nothing waits on in the device
    done
    EMU_NCCL=1@20 run train two "$cell" mpirun --oversubscribe --allow-run-as-root -n 2
    jq -e '.error.rank == 1 and (.error.message | contains("NCCL: a collective: mock error"))' two.json
    # a rank that fails does not wait for one that is far behind
    HPCGRID_FAULT=slow:0:3:2:50 EMU_REFUSE=1@20 run train two "${cell/\"comm_timeout\": 4/\"comm_timeout\": 1000, \"bucket_cap_mb\": 0.05, \"first_bucket_mb\": 0.05}" \
        timeout 30 mpirun --oversubscribe --allow-run-as-root -n 2
    [ "$status" -ne 124 ]
    jq -e '.error.rank == 1 and (.error.message | contains("mock error"))' two.json
    unset HPCGRID_SHARE_GPU
    rm aborted # a device of a process that has several: the others wait for it no longer
    EMU_DEVICES=2 EMU_NCCL=1@20 run train dp "{$gpu, $bert, \"epochs\": 100000, \"batch_size\": 2, \"strategy\": \"dp\", \"dp_devices\": 2}"
    jq -e '.error.message | contains("NCCL: a collective: mock error")' dp.json
    [ "$(sort aborted)" = $'rank 0\nrank 1' ]
}

# refused CODE MESSAGE HINT SETTING...
refused() {
    code=$1 message=$2 hint=$3
    shift 3
    run train r "{$gpu, $bert, \"steps\": 2, \"batch_size\": 2}" env "$@"
    [ "$status" -eq "$code" ]
    jq -e --arg message "$message" --arg hint "$hint" \
        '.status == "failed" and (.error.message | contains($message)) and (.error.hint | contains($hint))' r.json
}

@test "what is wrong with a machine is said, with what helps" {
    refused 4 "no NVIDIA driver is loaded" "580 or newer" EMU_DRIVER=0
    refused 4 "supports CUDA 12.2, this program needs CUDA" "build hpcgrid-worker with CUDA 12.2" EMU_DRIVER=12020
    refused 4 "shows no GPU to this process" "gpus_per_node" CUDA_VISIBLE_DEVICES=
    refused 4 "is busy, or in exclusive mode" "nvidia-smi" EMU_OPEN=46
    refused 4 "is in prohibited mode" "nvidia-smi -c DEFAULT" EMU_MODE=2
    refused 4 "batch_size 2 needs about" "sample fits" EMU_MEMORY=36000000
    refused 4 "an uncorrectable ECC error" "Xid" EMU_FAIL=214@60
    refused 4 "no longer responds" "Xid" EMU_FAIL=46@60
    refused 5 "a kernel failed on emulated GPU" "CUDA_LAUNCH_BLOCKING=1" EMU_FAIL=700@60
    refused 4 "which needs 7.5" "Turing" EMU_CAPABILITY=70
}

@test "ranks that share a GPU are told so before NCCL is needed" {
    ln -s "$HPCGRID_BUILD"/tests/mock/libcublasLt* .
    export LD_LIBRARY_PATH=.
    run train shared "{$gpu, $bert, \"steps\": 2, \"batch_size\": 2, \"strategy\": \"ddp\"}" mpirun --oversubscribe --allow-run-as-root -n 2
    jq -e '.error.message | contains("ranks 0 and 1 both have GPU")' shared.json
}

@test "fp16 that leaves its range ends with a result that says so" {
    train r "{$gpu, ${bert/1e-4/1000000}, \"steps\": 4, \"batch_size\": 2, \"precision\": \"fp16\"}"
    jq -e '.diverged == true' r.json
}

@test "a pack for a bare machine has every library that what is in it loads, but glibc's" {
    HPCGRID_WORKER=$worker HPCGRID_OPS="$HPCGRID_BUILD/tests/test_gpu_ops_mock" "$BATS_TEST_DIRNAME/run" --pack pack.tar
    tar -xf pack.tar
    cd hpcgrid-gpu
    readelf -d bin/[!m]* lib/* ompi/lib/openmpi/* pmix/lib/pmix/* | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u >needed
    grep -qx 'libmpi.so.40' needed
    run bash -c "ls lib | sort | comm -13 - needed | grep -vxE '(ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util))\.so\.[0-9]+'"
    [ "$output" = "" ]
    cmp -s run "$BATS_TEST_DIRNAME/run"
}

@test "ops behind one that breaks the device are tried by themselves" {
    printf '#!/bin/sh\necho "backend cuda: mock"\n' >worker.sh
    cat >ops.sh <<'END'
#!/bin/sh
case $1,$3 in
list,) printf 'fill\nnorm\nlstm\n' ;;
cuda,) echo 'fill    3 shapes  worst    0  bound    0' && echo 'ops: a kernel failed' && exit 1 ;;
cuda,norm) echo 'FAILED norm (1 2 3 4): y: differs by 1 (bound 0)' && exit 1 ;;
*) echo '7 shapes, 0 failures' ;;
esac
END
    chmod +x worker.sh ops.sh
    run env HPCGRID_WORKER="$PWD/worker.sh" HPCGRID_OPS="$PWD/ops.sh" "$BATS_TEST_DIRNAME/run" --json gpu.json ops
    [ "$status" -eq 1 ]
    jq -e '[.rows[] | select(.what | contains("bf16")) | .verdict + ": " + .what] ==
        ["wrong: every op in bf16 beside its CPU twin", "wrong: norm alone, bf16", "right: lstm alone, bf16"]' gpu.json
}

@test "the four steps on a card fit ten minutes each, fail alone and fill one file" {
    printf '#!/bin/sh\necho "backend cuda: mock"\n[ "$1" = doctor ]\n' >worker.sh
    printf '#!/bin/sh\necho "7 shapes, 0 failures"\n' >ops.sh
    cat >ncu <<'END'
#!/bin/sh
[ "$2" = none ] && echo '==PROF== Profiling'
echo '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
echo '"0","kernel","gpu__time_duration.sum","us","17.5"'
END
    chmod +x worker.sh ops.sh ncu
    for step in 1 "--more 4"; do
        # shellcheck disable=SC2086
        run env PATH="$PWD:$PATH" HPCGRID_WORKER="$PWD/worker.sh" HPCGRID_OPS="$PWD/ops.sh" "$BATS_TEST_DIRNAME/run" --json gpu.json $step
        [ "$status" -eq 1 ]
    done
    jq -e '(.seconds | keys_unsorted == ["doctor", "ops", "speed", "ops-others", "sanitizer", "products", "ncu"])
        and (.calls | length == 2) and ([.rows[] | select(.stage == "ops-others").verdict] == ["right", "right", "right"])
        and ([.rows[] | select(.stage == "speed" or .stage == "products").verdict] == ["wrong", "wrong"])
        and ([.rows[] | select(.stage == "ncu") | .figure] | length == 6 and all(. == "17.5 us"))' gpu.json
    python3 -B - "$BATS_TEST_DIRNAME/run" <<'END'
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("run", sys.argv[1])
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
loader.exec_module(run)
assert [sum(limit for _, limit in step.values()) <= 590 for step in run.STEPS.values()] == [True] * 4
END
}

@test "the comparison with PyTorch runs to its end, and keeps a ratio for every row" {
    cat >worker.sh <<'END'
#!/bin/sh
case $1 in
doctor) echo 'backend cuda: mock' ;;
features) echo '{"ids": [1, 2, 3], "context": 1, "start": 1, "end": 2}' ;;
train) echo '{"status": "ok", "samples_per_s": 100, "train_s": 4, "epoch_s": [3, 1, 1, 1], "precision": "bf16"}' >"$5" ;;
esac
END
    mkdir -p peers/bin
    cat >peers/bin/python <<'END'
#!/bin/sh
case $1 in
-c) ;; # is PyTorch there?
*/peaks.py) echo '{"bf16_flops": 1e15, "bytes_per_s": 4e12}' ;;
*/pytorch*.py) echo 'a warning' && echo '{"samples_per_s": 50}' ;;
esac
END
    chmod +x worker.sh peers/bin/python
    run env HPCGRID_WORKER="$PWD/worker.sh" HPCGRID_PEERS="$PWD/peers" "$BATS_TEST_DIRNAME/run" --json gpu.json 2
    [ "$status" -eq 0 ]
    jq -se 'map(.peaks.bytes_per_s == 4e12 and (.seconds | keys == ["bench"]) and (.rows | length == 11
        and all(.stage == "bench" and .verdict == "measured" and .figure == 100 and .ratio == 2))) == [true]' gpu.json
}

@test "the roofline of a step: bytes and arithmetic of its shapes, and what was measured beside" {
    echo '{"steps": 1, "ops": {"adamw": {"calls": 1, "seconds": 0.001}}}' >times.json
    run "$BATS_TEST_DIRNAME/../bench/gpu/roofline" --card h200 --batch 32 --times times.json
    [ "$status" -eq 0 ]
    # 3 passes x 2 x 12 layers x 12 x 768 x 768 weights x 12,288 tokens / 989 TFLOP/s; (30 bytes x 108,893,186
    # parameters + 4 bytes x those that are no weights of layers) / 4.8 TB/s; 30 bytes x 12 layers x 12 x 768 x 768 of them beside backward, at 0.85 of the rate
    [[ "$output" == *$'\nproducts                         6.332    10.553         -'* ]]
    [[ "$output" == *$'\nupdate                           0.701     0.824     1.000'* ]]
    [[ "$output" == *$'\nupdates beside backward              -    -0.625         -'* ]]
}

@test "a program whose time is over on a GPU's machine leaves nothing behind" {
    run python3 -B -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME/../bench/gpu')
import bounded
print(bounded.run(['bash', '-c', 'set -m; sleep 1000 & echo \$! >pid; wait'], None, 2)[0])"
    [ "$output" = None ]
    [ ! -s pid ] || ! grep -qs ') [^Z]' "/proc/$(<pid)/stat" # ended, if it has come so far
}

@test "what ops take is told as medians of steps behind the first epoch" {
    for epochs in 1 3; do # two steps each: one counts, as the last has no end; or three, without the first epoch's
        HPCGRID_OP_TIMES=$PWD/times.json train r "{$gpu, ${bert/64/4}, \"epochs\": $epochs, \"batch_size\": 2, \"padding\": \"max_length\"}"
        jq -e --argjson n "$epochs" '.steps == $n and (.ops | (.adamw.calls == 1 and .attention_forward.calls == 1
            and .norm_forward.calls == 3 and all(.[]; .seconds >= 0)))' times.json
    done
}
