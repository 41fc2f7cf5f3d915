#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid-worker trains BERT: results, learning, the same losses however the work is cut, checkpoints, bad input.

load ../await

setup() {
    worker="$HPCGRID_BUILD/worker/hpcgrid-worker"
    cd "$BATS_TEST_TMPDIR"
    export HPCGRID_LOG=warn OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
    export OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1 ASAN_OPTIONS=detect_leaks=0
    unset HPCGRID_DATA HPCGRID_CELL HPCGRID_RESULT RANK WORLD_SIZE SLURM_STEP_NUM_TASKS
    small='"model": "bert-tiny", "hidden": 32, "layers": 2, "dataset": "synthetic", "samples": 48, "seq_len": 96'
    rate='"lr": 1e-3'
}

teardown() { nothing_left; }

# train CONFIG [WORDS]: stdout and stderr in $output, exit code in $status, result in r.json
train() {
    echo "$1" >c.json
    shift
    rm -f r.json # one of a second ago could be this training's: ranks leave it to whoever was first
    run "$@" "$worker" train --config c.json --result r.json
}

# same A B BOUND: losses of two results agree step by step
same() {
    jq -ne --slurpfile a "$1" --slurpfile b "$2" --argjson bound "$3" \
        '[$a[0].loss.loss, $b[0].loss.loss] | transpose | length > 3 and all((.[0] - .[1] | fabs) <= $bound * .[0])'
}

@test "a training of questions writes its result" {
    train '{"model": "bert-tiny", "dataset": "squad-slice", "samples": 24, "test_samples": 12, "batch_size": 4, "padding": "max_length", "seq_len": 200, "gelu": "tanh", "warmup": 0.5, "clip_norm": 1}'
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == "bert-tiny single on squad-slice: 1 rank x 1 thread, batch 4"*"answers   EM "* ]]
    jq -e '.status == "ok" and .steps == 9 and .parameters == 4369666 and (.loss.loss[0] | . > 5.2 and . < 5.4)' r.json
    jq -e '.eval | .em >= 0 and .f1 >= .em and .questions == 12 and .samples >= 12 and .loss > 0 and (has("accuracy") | not)' r.json
    jq -e '.comparable | .padding == "max_length" and .gelu == "tanh" and .seq_len == 200 and .global_batch == 4 and .windows == "overlap"
        and .dataset == "squad-slice" and (.dataset_hash | length) == 32 and .init == "random"' r.json
    jq -e '.memory as $m | .memory_expected | to_entries | all(.value == $m[.key])' r.json
    jq -e '.memory.parameters == 4 * 4369666 and .memory.optimizer == 8 * 4369666 + 9 * 4' r.json
}

# golden_curve.py made the losses; PyTorch in fp32 is off by 6e-7 itself.
@test "on real questions the loss falls as PyTorch's does from the same weights" {
    golden="$HPCGRID_SOURCE/tests/worker/golden_curve.json"
    for padding in max_length packed; do
        train "$(jq --arg padding $padding '.cell + {padding: $padding}' "$golden")"
        [ "$status" -eq 0 ]
        jq -ne --slurpfile g "$golden" --slurpfile r r.json --arg padding $padding '[$g[0][$padding], $r[0].loss.loss] | transpose
            | (map((.[0] - .[1] | fabs) / .[0]) | max) as $worst | $worst, (length == 40 and $worst < 2e-6)'
    done
}

@test "bert-tiny learns 64 real questions by heart" {
    mkdir data
    cp "$HPCGRID_SOURCE/worker/samples/squad/train-v1.1-slice.json" data/train-v1.1.json
    cp data/train-v1.1.json data/dev-v1.1.json
    OMP_NUM_THREADS=2 train '{"model": "bert-tiny", "data": "data", "batch_size": 16, "epochs": 45, "lr": 1e-3, "warmup": 0.1, "weight_decay": 0, "dropout": false, "samples": 64, "test_samples": 64}'
    echo "$output"
    [ "$status" -eq 0 ]
    jq -e '.eval.em > 95 and .eval.questions == 64 and .final_loss < 0.2 and .loss.epoch[0] > 4' r.json
}

@test "the same seed gives the same bits, and threads do not show" {
    train "{$small, $rate, \"batch_size\": 8, \"epochs\": 2, \"eval\": false}"
    mv r.json first.json
    train "{$small, $rate, \"batch_size\": 8, \"epochs\": 2, \"eval\": false}"
    diff <(jq .loss first.json) <(jq .loss r.json)
    OMP_NUM_THREADS=3 train "{$small, $rate, \"batch_size\": 8, \"epochs\": 2, \"eval\": false}"
    same first.json r.json 1e-6
}

@test "dropout, batches and ranks: losses do not depend on how the work is cut" {
    train "{$small, $rate, \"batch_size\": 8, \"epochs\": 2, \"clip_norm\": 1, \"eval\": false}"
    [ "$status" -eq 0 ]
    mv r.json whole.json
    train "{$small, $rate, \"batch_size\": 4, \"accumulate\": 2, \"epochs\": 2, \"clip_norm\": 1, \"eval\": false}"
    [ "$status" -eq 0 ]
    same whole.json r.json 2e-6
    jq -e '.comparable.global_batch == 8 and .steps == 12' r.json
    train "{$small, $rate, \"batch_size\": 4, \"strategy\": \"ddp\", \"epochs\": 2, \"clip_norm\": 1, \"test_samples\": 10}" \
        mpirun --oversubscribe --allow-run-as-root -n 2
    echo "$output"
    [ "$status" -eq 0 ]
    same whole.json r.json 2e-6
    jq -e '.comm.all_reduce | .ring_bytes == .expected_bytes and .ring_bytes > 0' r.json
    train "{$small, $rate, \"batch_size\": 2, \"accumulate\": 2, \"strategy\": \"ddp\", \"epochs\": 2, \"clip_norm\": 1, \"eval\": false}" \
        mpirun --oversubscribe --allow-run-as-root -n 2
    echo "$output"
    [ "$status" -eq 0 ]
    same whole.json r.json 2e-6
    jq -e '.comm.all_reduce | .ring_bytes == .expected_bytes' r.json
}

@test "two ranks score the answers that one does" {
    config='"model": "bert-tiny", "hidden": 32, "layers": 1, "dataset": "squad-slice", "samples": 8, "seq_len": 300'
    train "{$config, \"batch_size\": 2, \"predictions\": \"one.answers\"}"
    mv r.json one.json
    train "{$config, \"batch_size\": 1, \"strategy\": \"ddp\", \"predictions\": \"two.answers\"}" mpirun --oversubscribe --allow-run-as-root -n 2
    [ "$status" -eq 0 ]
    for answers in one two; do
        "$worker" eval-squad --data "$HPCGRID_SOURCE/worker/samples/squad/dev-v1.1-slice.json" --predictions $answers.answers --json >$answers.score
        jq 'keys_unsorted' $answers.answers >$answers.ids
    done
    cmp one.ids two.ids
    jq -e 'length == 89' one.ids
    jq -ne --slurpfile s one.score --slurpfile r one.json '$s[0].missing == 0 and ($s[0].em - $r[0].eval.em | fabs) < 1e-9 and ($s[0].f1 - $r[0].eval.f1 | fabs) < 1e-9'
    jq -ne --slurpfile a one.json --slurpfile b r.json '($a[0].eval.em - $b[0].eval.em | fabs) < 3 and $a[0].eval.questions == 89
        and $b[0].eval.questions == 89 and ($a[0].eval.loss - $b[0].eval.loss | fabs) < 1e-4'
}

@test "every optimizer and schedule trains" {
    for words in "$rate, \"optimizer\": \"adamw\"" "$rate, \"optimizer\": \"adamw-hf\", \"decay\": \"weights\"" \
        "$rate, \"optimizer\": \"adamw-google\", \"eps\": 1e-6, \"warmup\": 0.1" \
        '"optimizer": "adadelta", "lr": 1, "schedule": "constant"' "$rate, \"schedule\": \"step\", \"gamma\": 0.5"; do
        train "{$small, $words, \"batch_size\": 8, \"epochs\": 4, \"eval\": false}"
        echo "$words: $output"
        [ "$status" -eq 0 ]
        jq -e '.final_loss < .loss.epoch[0]' r.json
    done
}

# wait_for FILE [OLD]: until it is there, or newer than OLD; a minute at most, while process $pid runs
wait_for() {
    for _ in $(seq 600); do
        [ -e "$1" ] && { [ -z "${2:-}" ] || [ "$1" -nt "$2" ]; } && return
        kill -0 $pid
        sleep 0.1
    done
    return 1
}

# resume.c compares the bits; this is the way there. The training would take hours.
@test "a signal ends a training with a checkpoint and code 75, and the next start goes on" {
    echo "{$small, $rate, \"batch_size\": 2, \"epochs\": 100000, \"eval\": false, \"checkpoint\": \"keep/a.safetensors\", \"checkpoint_every\": 3}" >c.json
    times=0
    after=0
    for signal in USR1 TERM; do
        [ $times -eq 0 ] || touch -r keep/a.safetensors old
        "$worker" train --config c.json --result r.json 2>log 3>&- &
        pid=$!
        wait_for keep/a.safetensors "$([ $times -eq 0 ] || echo old)"
        kill -$signal $pid
        status=0
        wait $pid || status=$?
        echo "$signal: $status $(cat log)"
        [ $status -eq 75 ]
        jq -e --argjson times $times --argjson after $after '.status == "checkpoint" and .steps > $after and (.resumed.times // 0) == $times
            and (.resumed.after_step // 0) == $after and (.error.message | contains("with a checkpoint in keep/a.safetensors"))' r.json
        times=$((times + 1))
        after=$(jq .steps r.json)
    done
}

# As `hpcgrid exec` starts it: what comes before the worker can take it waits for that.
@test "a USR1 from before the start ends the training with a checkpoint" {
    echo "{$small, $rate, \"batch_size\": 2, \"epochs\": 100000, \"eval\": false, \"checkpoint\": \"keep/a.safetensors\"}" >c.json
    run env --block-signal=USR1 sh -c 'kill -USR1 $$; exec "$@"' sh "$worker" train --config c.json --result r.json
    echo "$output"
    [ "$status" -eq 75 ]
    jq -e '.status == "checkpoint" and (.error.message | contains("with a checkpoint in keep/a.safetensors"))' r.json
}

# stopped_at RANKS SIGNAL CALL WHEN [FILE]: the signal comes to the first rank when it makes this system call (of this file) for the
# WHEN-th time ("1+": each time). The training must stop with a checkpoint, and go on from it to the losses in whole.json.
stopped_at() {
    rm -rf keep r.json
    n=$1
    printf '#!/bin/bash\n[ "${OMPI_COMM_WORLD_RANK:-0}" = 0 ] || exec "$@"\nexec strace -qq -o trace -e trace=%s -e inject=%s:signal=%s:when=%s %s "$@"\n' \
        "$3" "$3" "$2" "$4" "${5:+-P $5}" >traced
    chmod +x traced
    ranks=
    [ "$n" = 1 ] || ranks="mpirun --oversubscribe --allow-run-as-root -n $n"
    cell="{$small, $rate, \"test_samples\": 24, \"epochs\": 2, \"strategy\": \"$([ "$n" = 1 ] && echo single || echo ddp)\", \"batch_size\": $((12 / n)), \"checkpoint\": \"keep/a.safetensors\"}"
    train "$cell" $ranks ./traced
    echo "$*: $status $output"
    grep -q -- "--- SIG$2" trace
    [ "$status" -eq 75 ]
    jq -e '.status == "checkpoint" and (has("eval") | not)' r.json
    jq .steps r.json >>stops
    [ "$(ls keep)" = a.safetensors ]
    train "$cell" $ranks
    echo "again: $status $output"
    [ "$status" -eq 0 ]
    jq -e '.status == "ok" and .resumed.times == 1 and .steps == 8 and .eval.samples == 24' r.json
    same whole.json r.json 1e-6
    jq -e --slurpfile whole whole.json '(.eval.loss - $whole[0].eval.loss | fabs) < 1e-5' r.json
}

# The second checkpoint is the one before the evaluation: a signal that comes while it is written finds an evaluation.
@test "a signal that comes at any time, once or over and over, stops all ranks with a checkpoint" {
    command -v strace >/dev/null || skip "strace is not installed"
    strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
    train "{$small, $rate, \"test_samples\": 24, \"epochs\": 2, \"batch_size\": 12}"
    mv r.json whole.json
    stopped_at 1 USR1 openat 1 c.json
    stopped_at 1 TERM openat 1 c.json
    stopped_at 1 TERM ?mkdir,mkdirat 1+
    stopped_at 3 USR1 ?mkdir,mkdirat 1
    stopped_at 1 USR1 fsync 1
    stopped_at 3 TERM fsync 1+
    stopped_at 1 TERM ?rename,?renameat,renameat2 2+
    stopped_at 3 USR1 ?rename,?renameat,renameat2 2
    [ "$(echo $(cat stops))" = "0 0 0 0 4 4 8 8" ]
}

@test "a process that is killed while it writes leaves the last checkpoint, and no litter for long" {
    config="{$small, $rate, \"batch_size\": 4, \"epochs\": 2, \"eval\": false, \"checkpoint\": \"keep/a.safetensors\", \"checkpoint_every\": 4}"
    echo "$config" >c.json
    run bash -c "ulimit -c 0; ulimit -f 1000; exec '$worker' train --config c.json --result r.json"
    [ "$status" -eq 153 ] # XFSZ
    [ "$(ls keep)" = "$(ls keep | grep '^a\.safetensors\.[0-9]*\.tmp$')" ]
    "$worker" train --config c.json --result whole.json
    [ "$(ls keep)" = a.safetensors ]
    jq -e '.status == "ok" and .steps == 24 and (has("resumed") | not)' whole.json
}

# The training would take hours here too: the second start is stopped by a signal, which mpirun passes on.
@test "a rank that is killed ends the others, and all go on from the last checkpoint" {
    echo "{$small, $rate, \"batch_size\": 2, \"strategy\": \"ddp\", \"epochs\": 100000, \"eval\": false, \"checkpoint_every\": 5, \"checkpoint\": \"keep/a.safetensors\"}" >c.json
    run_ranks() { # its pid in $pid, those of the ranks in the file pids
        rm -f pids
        mpirun --oversubscribe --allow-run-as-root -n 2 bash -c "echo \$\$ >>pids; exec '$worker' train --config c.json --result r.json" 2>log 3>&- &
        pid=$!
    }
    run_ranks
    wait_for keep/a.safetensors
    kill -KILL "$(tail -n 1 pids)"
    status=0
    wait $pid || status=$?
    echo "$status $(cat log)"
    [ $status -ne 0 ]
    touch -r keep/a.safetensors old
    run_ranks
    wait_for keep/a.safetensors old
    kill -USR1 $pid
    wait $pid || echo "$? $(cat log)"
    jq -e '.status == "checkpoint" and .resumed.times == 1 and .resumed.after_step >= 5 and .steps > .resumed.after_step
        and (.loss.loss | length) > 5' r.json
}

# parts.c tries every number of ranks and every damage; this is the way there.
@test "ranks that write their own parts go on on another number of ranks, and a part that is gone is missed" {
    config="{$small, $rate, \"epochs\": 2, \"eval\": false, \"strategy\": \"fsdp\""
    kept='"checkpoint": "keep/a.safetensors", "checkpoint_every": 3, "checkpoint_shards": true'
    ranks() { echo "mpirun --oversubscribe --allow-run-as-root -n $1"; }
    train "$config, \"batch_size\": 4}" $(ranks 2)
    [ "$status" -eq 0 ]
    mv r.json whole.json
    HPCGRID_FAULT=kill:1:5:1 train "$config, \"batch_size\": 4, $kept}" $(ranks 2)
    [ "$status" -ne 0 ]
    [ "$(cd keep && echo *)" = "a.safetensors a.safetensors.1.rank0 a.safetensors.1.rank1" ]
    mv keep/a.safetensors.1.rank1 gone
    train "$config, \"batch_size\": 2, $kept}" $(ranks 4)
    echo "$output"
    [ "$status" -eq 3 ]
    [[ "$output" == *"keep/a.safetensors: error: part a.safetensors.1.rank1 of rank 1 of 2 (fsdp, after step 3) is missing"*"all 2 parts are needed, on 4 ranks too"* ]]
    jq -e '.status == "failed" and .error.kind == "input" and (.error.message | contains("is missing"))' r.json
    mv gone keep/a.safetensors.1.rank1
    train "$config, \"batch_size\": 2, $kept}" $(ranks 4)
    echo "$output"
    [ "$status" -eq 0 ]
    jq -e '.resumed.times == 1 and .resumed.after_step == 3 and .steps == 12' r.json
    same whole.json r.json 2e-6
    run "$worker" inspect keep/a.safetensors
    [ "$status" -eq 0 ]
    [[ "$output" == *"a checkpoint of hpcgrid-worker, in 4 parts"* ]]
    train "$config, \"batch_size\": 8, \"init\": \"keep/a.safetensors\"}"
    [ "$status" -eq 3 ]
    [[ "$output" == *"the values of this checkpoint are in 4 other files"*"checkpoint_shards false"* ]]
    for wrong in '"strategy": "ddp", "checkpoint": "k", "checkpoint_shards": true' '"strategy": "fsdp", "checkpoint_shards": true'; do
        train "{$small, $wrong}"
        [ "$status" -eq 3 ]
        [[ "$output" == *"strategy ddp has no checkpoint_shards"* || "$output" == *"checkpoint_shards requires a checkpoint"* ]]
    done
}

@test "ranks that start at once share a cold cache of tokenised data" {
    config='{"model": "bert-tiny", "hidden": 16, "layers": 1, "dataset": "squad-slice", "batch_size": 4, "strategy": "ddp", "samples": 24, "eval": false, "cache": "cache"}'
    train "$config" mpirun --oversubscribe --allow-run-as-root -n 4
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" != *warning* ]]
    [[ "$(ls cache)" =~ ^features-[0-9a-f]{32}\.bin$ ]]
    jq .loss r.json >cold.json
    sum="$(md5sum cache/*)"
    train "$config" mpirun --oversubscribe --allow-run-as-root -n 4
    [ "$sum" = "$(md5sum cache/*)" ]
    printf 'X' | dd of="$(echo cache/*)" bs=1 seek=200 conv=notrunc status=none
    train "$config"
    [ "$status" -eq 0 ]
    [[ "$output" == *"the features are built again"* ]]
    [ "$sum" = "$(md5sum cache/*)" ]
}

@test "a checkpoint of another training is refused, a finished one is not gone on from" {
    train "{$small, $rate, \"batch_size\": 8, \"eval\": false, \"checkpoint\": \"a.safetensors\"}"
    [ "$status" -eq 0 ]
    jq '.loss' r.json >first.json
    train "{$small, $rate, \"batch_size\": 8, \"eval\": false, \"checkpoint\": \"a.safetensors\"}"
    [ "$status" -eq 0 ]
    jq -e 'has("resumed") | not' r.json
    diff first.json <(jq .loss r.json)
    train "{$small, $rate, \"batch_size\": 4, \"eval\": false, \"checkpoint\": \"a.safetensors\"}"
    [ "$status" -eq 3 ]
    [[ "$output" == *"a.safetensors: error: the checkpoint belongs to another training: global_batch is 8 there and 4 here"* ]]
    LC_ALL=C sed 's|hpcgrid-checkpoint/3|hpcgrid-checkpoint/1|' a.safetensors >old.safetensors
    train "{$small, $rate, \"batch_size\": 8, \"eval\": false, \"checkpoint\": \"old.safetensors\"}"
    [ "$status" -eq 3 ]
    [[ "$output" == *"old.safetensors: error: a checkpoint of another version: its schema is hpcgrid-checkpoint/1, not hpcgrid-checkpoint/3"* ]]
    LC_ALL=C sed 's|,\\"dropout_bits\\":16|                    |' a.safetensors >old.safetensors
    train "{$small, $rate, \"batch_size\": 8, \"eval\": false, \"checkpoint\": \"old.safetensors\"}"
    [ "$status" -eq 3 ]
    [[ "$output" == *"old.safetensors: error: the checkpoint belongs to another training: dropout_bits is absent there and 16 here"* ]]
    head -c 3000 a.safetensors >b.safetensors
    train "{$small, $rate, \"batch_size\": 8, \"eval\": false, \"checkpoint\": \"b.safetensors\"}"
    [ "$status" -eq 3 ]
    jq -e '.status == "failed" and .error.kind == "input"' r.json
    printf X | dd of=a.safetensors bs=1 seek=$(($(stat -c %s a.safetensors) / 2)) conv=notrunc status=none
    for words in "train --config c.json" "inspect a.safetensors"; do
        echo "{$small, $rate, \"batch_size\": 8, \"eval\": false, \"init\": \"a.safetensors\"}" >c.json
        run "$worker" $words
        echo "$output"
        [ "$status" -eq 3 ]
        [[ "$output" == *"a.safetensors: error: damaged: the bytes of tensor "*" are not those that were written"* ]]
    done
}

@test "a FIFO in a file's place is refused, and nobody waits for a writer" {
    mkfifo fifo pipe.safetensors
    mkdir data images
    cp "$HPCGRID_SOURCE"/worker/samples/mnist/*.gz images
    rm images/train-images-idx3-ubyte.gz
    mkfifo data/train-v1.1.json images/train-images-idx3-ubyte
    shipped='"model": "bert-tiny", "dataset": "squad-slice", "hidden": 32, "samples": 4, "seq_len": 96, "doc_stride": 32, "eval": false'
    for cell in "$shipped, \"vocab\": \"fifo\"" "$shipped, \"init\": \"fifo\"" "$shipped, \"checkpoint\": \"pipe.safetensors\"" \
        '"model": "bert-tiny", "data": "data"' '"data": "images"'; do
        train "{$cell}" timeout 60
        echo "$cell: $status $output"
        [ "$status" -eq 3 ]
        [[ "$output" == *"not a regular file"* || "$output" == *"it is empty or not a regular file"* ]]
        jq -e '.status == "failed" and .error.kind == "input"' r.json
        rm r.json
    done
}

@test "a full disk ends the training with the reason and leaves the last checkpoint" {
    config="{$small, $rate, \"batch_size\": 8, \"epochs\": 3, \"eval\": false, \"checkpoint\": \"a.safetensors\""
    echo "$config}" >c.json
    "$worker" train --config c.json --result r.json
    before="$(md5sum <a.safetensors)"
    run bash -c "trap '' XFSZ; ulimit -f 1000; '$worker' train --config c.json --result r.json"
    echo "$output"
    [ "$status" -eq 4 ]
    [[ "$output" == *"checkpoint after step 6: cannot write a.safetensors."*": File too large"* ]]
    jq -e '.status == "failed" and .error.kind == "environment"' r.json
    [ "$before" = "$(md5sum <a.safetensors)" ]
    [ "$(ls | grep -c tmp)" -eq 0 ]
}

@test "an evaluation that cannot write its answers costs no training, and makes the folder they want" {
    config='{"model": "bert-tiny", "hidden": 32, "dataset": "squad-slice", "samples": 12, "test_samples": 6, "seq_len": 96, "doc_stride": 32, "checkpoint": "a.safetensors", "predictions": "new/p.json"}'
    command -v strace >/dev/null || skip "strace is not installed"
    strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
    # there was room before the training; the first file that is put in its place is the checkpoint
    train "$config" strace -f -qq -o trace -e trace=?rename,?renameat,renameat2 -e inject=?rename,?renameat,renameat2:error=ENOSPC:when=2
    echo "$output"
    [ "$status" -eq 4 ]
    [[ "$output" == *"new/p.json: No space left on device"* ]]
    train "$config"
    echo "$output"
    [ "$status" -eq 0 ]
    jq -e '.resumed.after_step == .steps and .resumed.times == 1 and .train_s > 0 and .eval.questions == 6' r.json
    [ "$(jq length new/p.json)" -eq 6 ]
}

@test "null_threshold decides how easily a text has no answer, in squad-v2.0 only, and makes no other training" {
    mkdir data
    for set in train dev; do
        jq -c '.version = "v2.0" | .data |= .[:1] | .data[].paragraphs |= .[:2]' "$HPCGRID_SOURCE/worker/samples/squad/$set-v1.1-slice.json" >data/$set-v2.0.json
    done
    v2='"model": "bert-tiny", "hidden": 32, "dataset": "squad-v2.0", "data": "data", "samples": 4, "seq_len": 96, "doc_stride": 32'
    for threshold in -1000000 1000000; do
        train "{$v2, \"steps\": 1, \"predictions\": \"p$threshold.json\", \"null_threshold\": $threshold}"
        echo "$output"
        [ "$status" -eq 0 ]
    done
    jq -e 'length > 0 and all(. == "")' p-1000000.json
    jq -e 'length > 0 and all(. != "")' p1000000.json
    v2="$v2, \"steps\": 4, \"checkpoint\": \"a.safetensors\", \"checkpoint_every\": 1"
    HPCGRID_FAULT=kill:1:3:1 train "{$v2, \"strategy\": \"ddp\", \"batch_size\": 1, \"null_threshold\": 1}" mpirun --oversubscribe --allow-run-as-root -n 2
    echo "$output"
    [ "$status" -ne 0 ]
    train "{$v2, \"batch_size\": 2, \"null_threshold\": 2}"
    echo "$output"
    jq -e '.status == "ok" and .resumed.after_step > 0' r.json
    train '{"model": "bert-tiny", "dataset": "squad-slice", "null_threshold": 1}'
    [ "$status" -eq 3 ]
    [[ "$output" == *"null_threshold requires an evaluation of squad-v2.0"* ]]
}

@test "inspect says what a file holds, and weights start a training" {
    train "{$small, $rate, \"batch_size\": 8, \"epochs\": 6, \"eval\": false, \"checkpoint\": \"a.safetensors\"}"
    last="$(jq .final_loss r.json)"
    run "$worker" inspect a.safetensors
    [ "$status" -eq 0 ]
    [[ "$output" == *"[30522, 32]      bert.embeddings.word_embeddings.weight"* ]]
    [[ "$output" == *"a checkpoint of hpcgrid-worker"*"model       bert, 2 layers of 32, vocabulary 30522"*'as "init"   yes'* ]]
    run "$worker" inspect --json a.safetensors
    jq -e '.usable and .missing == [] and .foreign == [] and .tensors["qa_outputs.weight"].shape == [2, 32]' <<<"$output"
    train "{$small, $rate, \"batch_size\": 8, \"eval\": false, \"init\": \"a.safetensors\"}"
    [ "$status" -eq 0 ]
    jq -e --argjson last "$last" '.loss.loss[0] < $last + 0.7 and .comparable.init == "file"' r.json
    train "{$small, $rate, \"layers\": 1, \"eval\": false, \"init\": \"a.safetensors\"}"
    [ "$status" -eq 3 ]
    train "{${small/\"layers\": 2/\"layers\": 1}, \"eval\": false, \"init\": \"a.safetensors\"}"
    [ "$status" -eq 3 ]
    [[ "$output" == *"has no parameter for tensor bert.encoder.layer.1."*"inspect a.safetensors"* ]]
    said="$output"
    run "$worker" check --config c.json
    [ "$status" -eq 3 ]
    [ "$output" = "$said" ]
    header='{"a\u001b[2J": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}'
    { printf "\x$(printf %x ${#header})\0\0\0\0\0\0\0%s\0\0\0\0" "$header"; } >b.safetensors
    run "$worker" inspect b.safetensors
    [ "$status" -eq 0 ]
    [[ "$output" == *'[1]              a\x1b[2J'* ]]
    echo nonsense >b.safetensors
    run "$worker" inspect b.safetensors
    [ "$status" -eq 3 ]
    train "{$small, \"intermediate\": 1, \"steps\": 1, \"eval\": false, \"checkpoint\": \"narrow.safetensors\"}"
    "$worker" inspect --json narrow.safetensors | jq -e '.usable and ([.tensors["bert.encoder.layer.1.output.dense"
        + (".weight", ".bias")].shape] == [[32, 1], [32]])' # a matrix of one column stays one
    train "{$small, \"intermediate\": 1, \"steps\": 1, \"eval\": false, \"init\": \"narrow.safetensors\"}"
    [ "$status" -eq 0 ]
}

@test "a loss that is NaN or infinite is recorded, and ends the training where requested" {
    train "{$small, \"batch_size\": 8, \"epochs\": 3, \"eval\": false, \"optimizer\": \"adamw-google\", \"lr\": 1e6, \"weight_decay\": 1000, \"schedule\": \"constant\"}"
    [ "$status" -eq 0 ]
    jq -e '.diverged and .final_loss == null and .status == "ok"' r.json
    train "{$small, \"batch_size\": 8, \"epochs\": 3, \"eval\": false, \"optimizer\": \"adamw-google\", \"lr\": 1e6, \"weight_decay\": 1000, \"schedule\": \"constant\", \"stop_on_nan\": true}"
    echo "$output"
    [ "$status" -eq 3 ]
    jq -e '.diverged and .status == "failed" and (.error.message | contains("became NaN or infinite within the first"))' r.json
    # values are not finite one step before the loss shows it: the checkpoint stays that of a step with numbers
    config="{$small, \"batch_size\": 8, \"eval\": false, \"optimizer\": \"adamw-google\", \"weight_decay\": 1000, \"schedule\": \"constant\""
    train "$config, \"epochs\": 9, \"lr\": 1, \"stop_on_nan\": true, \"checkpoint\": \"a.safetensors\", \"checkpoint_every\": 1}"
    echo "$output"
    [ "$status" -eq 3 ]
    jq -e '.diverged and .status == "failed" and .error.kind == "input" and (.error.message | test("became NaN or infinite"))' r.json
    train "$config, \"lr\": 0, \"steps\": 1, \"init\": \"a.safetensors\"}"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "synthetic lengths follow the request, and what means nothing is rejected" {
    config='"model": "bert-tiny", "hidden": 16, "layers": 1, "dataset": "synthetic", "samples": 64, "batch_size": 64, "seq_len": 128, "eval": false'
    train "{$config, \"lengths\": \"normal\", \"length_mean\": 40, \"length_sd\": 0}"
    [ "$status" -eq 0 ]
    short="$(jq .memory.activations r.json)"
    jq -e '.loss.loss[0] | . > 3.5 and . < 3.9' r.json # ln 40 = 3.69
    train "{$config, \"lengths\": \"fixed\"}"
    jq -e --argjson short "$short" '.memory.activations > 3 * $short and (.loss.loss[0] | . > 4.6 and . < 5.1)' r.json
    train "{$config, \"lengths\": \"uniform\", \"length_min\": 100, \"length_sd\": 3}"
    [ "$status" -eq 3 ]
    [[ "$output" == *"lengths uniform has no length_sd"* ]]
    train '{"model": "bert-tiny", "dataset": "squad-slice", "lengths": "fixed"}'
    [ "$status" -eq 3 ]
    [[ "$output" == *"dataset squad-slice has its own lengths: no lengths"* ]]
    train "{$config, \"predictions\": \"p.json\"}"
    [ "$status" -eq 3 ]
    [[ "$output" == *"predictions require an evaluation of real questions"* ]]
}

@test "answers that are not where they should be end the training, or are left out" {
    mkdir data
    jq '.data[0].paragraphs[0].qas[0].answers[0].answer_start += 1' "$HPCGRID_SOURCE/worker/samples/squad/train-v1.1-slice.json" >data/train-v1.1.json
    config='"model": "bert-tiny", "hidden": 16, "layers": 1, "data": "data", "samples": 4, "eval": false'
    train "{$config}"
    [ "$status" -eq 3 ]
    [[ "$output" == *"data/train-v1.1.json:"*": error: /data/0/paragraphs/0/qas/0/answers/0"* ]]
    jq -e '.status == "failed" and .error.kind == "input" and .error.line >= 1' r.json
    train "{$config, \"skip_bad_answers\": true}"
    [ "$status" -eq 0 ]
    [[ "$output" == *"1 answers are not at their offset"* ]]
}

@test "a batch that memory does not hold is refused, and what fits is said" {
    train '{"model": "bert-large", "dataset": "synthetic", "samples": 200000, "padding": "max_length", "batch_size": 100000, "eval": false}'
    echo "$output"
    [ "$status" -eq 4 ]
    [[ "$output" == *"batch_size 100000 needs about "*" fits"* ]]
}
