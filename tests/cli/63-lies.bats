#!/usr/bin/env bats
# hpcgrid report, compare, history: figures that would say more than the runs showed are named by a note, and --strict refuses them.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    cd "$BATS_TEST_TMPDIR"
}

# of JQ [MEMBERS]: a result set whose results this expression gives
of() {
    jq -n "{schema: \"hpcgrid-results/1\", name: \"x\", baseline: {gpus_per_node: 1, strategy: \"single\"}} + ${2:-{\}} + {results: [$1]}" >set.json
}

# notes of the places but the first; --strict must refuse what has one, and nothing else
refused() { # WANTED...: notes of the second place, exactly
    printf '%s\n' "$@" >wanted
    "$hpcgrid" report set.json --format json >out.json || true
    jq -r '.tables[0].points[-1].notes // [] | .[]' out.json | diff wanted - || return 1
    run --separate-stderr "$hpcgrid" report set.json --format json --strict
    [ "$status" -eq 1 ] || return 1
    jq -se '.[0] | .tables[0].points[-1] | .refused and (has("speedup") | not)' <<<"$output" >/dev/null || return 1
    jq -r '.tables[0].points[-1].notes[]' <<<"$output" | grep -q '^refused (strict): '
}

accepted() {
    "$hpcgrid" report set.json --format json >out.json || return 1
    jq -r '.tables[].points[].notes // [] | .[]' out.json | diff /dev/null - || return 1
    "$hpcgrid" report set.json --format json --strict | jq -se '.[0] | .refused == 0 and all(.tables[].points[]; .speedup)' >/dev/null
}

# pair BASE OWN: single on one GPU and ddp on two, with these members besides
pair() {
    of "({cell: {nodes: 1, gpus_per_node: 1, strategy: \"single\"}, train_s: 100} * $1), ({cell: {nodes: 1, gpus_per_node: 2, strategy: \"ddp\"}, train_s: 52} * $2)"
}

@test "all runs are compared with all runs of the baseline, and silent ones are not comparable" {
    runs='def run(g; s; r; t): {cell: {gpus_per_node: g, strategy: s, repeat: r}, train_s: t};'
    of "$runs (1, 2, 3) as \$r | (run(1; \"single\"; \$r; 100 + \$r) + {comparable: {precision: \"fp32\"}}),
        (run(2; \"ddp\"; \$r; 10 + \$r) + {comparable: {precision: (if \$r == 1 then \"fp32\" else \"bf16\" end)}})"
    refused 'its runs differ in precision' 'differs from its baseline: precision bf16 (baseline fp32)' \
        'efficiency above 1: more per device than the baseline; did both do the same work?'
    # the baseline's later runs
    of "$runs (1, 2, 3) as \$r | (run(1; \"single\"; \$r; 100 + \$r) + {comparable: {precision: (if \$r == 1 then \"fp32\" else \"bf16\" end)}}),
        (run(2; \"ddp\"; \$r; 50 + \$r) + {comparable: {precision: \"fp32\"}})"
    refused 'differs from its baseline: precision fp32 (baseline bf16)' 'the runs of its baseline differ in precision'
    # silence
    of "$runs (1, 2, 3) as \$r | (run(1; \"single\"; \$r; 100 + \$r) + {comparable: {precision: \"fp32\", padding: true}}),
        (run(2; \"ddp\"; \$r; 50 + \$r) + (if \$r < 3 then {comparable: {precision: \"fp32\", padding: true}} else {} end))"
    refused 'its runs differ in precision, padding' 'does not say, as its baseline does: precision, padding'
    of "$runs (1, 2, 3) as \$r | (run(1; \"single\"; \$r; 100 + \$r)), (run(2; \"ddp\"; \$r; 50 + \$r) + {comparable: {precision: \"fp32\"}})"
    refused 'its baseline does not say: precision'
    of "$runs (1, 2, 3) as \$r | (run(1; \"single\"; \$r; 100 + \$r), run(2; \"ddp\"; \$r; 50 + \$r)) + {comparable: {precision: \"fp32\"}}"
    accepted
    # a place that mixes is refused without a baseline, too
    of "$runs (1, 2) as \$r | run(1; \"single\"; \$r; 100) + {comparable: {precision: \"p\(\$r)\"}}" '{baseline: null}'
    run "$hpcgrid" report set.json --strict
    [ "$status" -eq 1 ]
}

@test "runs that are too short for a time or a rate are named, and not refused" {
    pair '{steps: 50, noise_s: 5}' '{steps: 50, noise_s: 2.6}'
    accepted
    pair '{steps: 2, rehearsal: true}' '{steps: 2, rehearsal: true}'
    accepted
    pair '{steps: 49, noise_s: 5.1}' '{steps: 49, noise_s: 2.6}'
    "$hpcgrid" report set.json --format json --strict >out.json
    jq -se '.[0] | [.tables[0].points[].notes] == [["too short, fewer than 50 optimizer steps: 49", "too short, less than 20 times what clock and barrier are off by: 19.6 times"],
        ["too short, fewer than 50 optimizer steps: 49"]]' out.json
    pair '{steps: 49, noise_s: 5.1, eval: {f1: 80}}' '{steps: 49, noise_s: 2.6, eval: {f1: 80}}'
    "$hpcgrid" report set.json --format json --metric eval.f1 |
        jq -se 'map([.tables[0].points[] | .value == 80 and (.notes | tostring | contains("too short") | not)]) == [[true, true]]'
}

@test "what was computed may stand beside comparable, and in the cell" {
    while IFS='|' read -r base own wanted; do
        echo "$base $own"
        pair "$base" "$own"
        refused "$wanted"
    done <<'EOT'
{model: "bert-base"}|{model: "bert-tiny"}|differs from its baseline: model bert-tiny (baseline bert-base)
{batch_size: 64}|{batch_size: 256}|differs from its baseline: batch_size 256 (baseline 64)
{seq_len: 512}|{comparable: {seq_len: 128}}|differs from its baseline: seq_len 128 (baseline 512)
{parameters: 110000000}|{parameters: 4400000}|differs from its baseline: parameters 4400000 (baseline 110000000)
{cell: {epochs: 3}, comparable: {samples: 60000}}|{cell: {epochs: 3}, comparable: {samples: 6000}}|differs from its baseline: samples 6000 (baseline 60000)
{settings: {precision: "fp32"}}|{settings: {precision: "bf16"}}|differs from its baseline: precision bf16 (baseline fp32)
{config: {batch_size: 8}}|{args: {batch_size: 64}}|differs from its baseline: batch_size 64 (baseline 8)
{precision: "fp32", params: {precision: "fp16"}}|{hyperparameters: {precision: "bf16"}}|differs from its baseline: precision bf16 (baseline fp32)
{dataset_size: 60000}|{dataset_size: 6000}|differs from its baseline: dataset_size 6000 (baseline 60000)
{num_samples: 60000}|{hparams: {num_samples: 6000}}|differs from its baseline: num_samples 6000 (baseline 60000)
{optimizer: "adam"}|{optimizer: "sgd"}|differs from its baseline: optimizer sgd (baseline adam)
{compile: false}|{compile: true}|differs from its baseline: compile true (baseline false)
{gradient_accumulation_steps: 1}|{gradient_accumulation_steps: 8}|differs from its baseline: gradient_accumulation_steps 8 (baseline 1)
{args: {per_device_train_batch_size: 8}}|{args: {per_device_train_batch_size: 64}}|differs from its baseline: batch_size 64 (baseline 8)
{args: {num_train_epochs: 3}}|{args: {num_train_epochs: 1}}|differs from its baseline: epochs 1 (baseline 3)
{config: {model_name_or_path: "bert-base", max_seq_length: 384}}|{model: "bert-base", seq_len: 128}|differs from its baseline: seq_len 128 (baseline 384)
{args: {fp16: false}}|{args: {fp16: true}}|differs from its baseline: fp16 true (baseline false)
{mixed_precision: "no"}|{mixed_precision: "bf16"}|differs from its baseline: precision bf16 (baseline no)
{args: {dataset_name: "squad"}}|{args: {dataset_name: "squad_v2"}}|differs from its baseline: dataset squad_v2 (baseline squad)
{trainable_parameters: 110000000}|{trainable_parameters: 1538}|differs from its baseline: trainable_parameters 1538 (baseline 110000000)
{steps: 1000}|{steps: 250}|counts other samples than its baseline for the same work: 0.50 times
{steps: 1000, batch_size: 8}|{steps: 250, batch_size: 8}|counts other samples than its baseline for the same work: 0.50 times
{cell: {epochs: 3}, steps: 1000, global_batch: 64}|{cell: {epochs: 3}, steps: 500, global_batch: 64}|counts other samples than its baseline for the same work: 0.50 times
EOT
    # in capitals, and each device's batch smaller
    pair '{precision: "BF16", env: {gpu: "NVIDIA A100"}, args: {per_device_train_batch_size: 16}}' '{precision: "bf16", env: {gpu: "nvidia a100"}, args: {per_device_train_batch_size: 8}}'
    accepted
    of '{cell: {gpus_per_node: 1, strategy: "single", model: "base"}, train_s: 9}, {cell: {gpus_per_node: 2, strategy: "ddp", model: "tiny"}, train_s: 3}' \
        '{baseline: {gpus_per_node: 1, strategy: "single", model: "base"}}'
    "$hpcgrid" report set.json --format json --strict >out.json || [ $? -eq 1 ]
    jq -se '.[0] | [.tables[].points[] | select(.refused) | .notes[0]] == ["refused (strict): differs from its baseline: model tiny (baseline base)"]' out.json
    of '({id: "a", baseline_id: "a", cell: {gpus_per_node: 1, strategy: "single", batch_size: 64}, train_s: 9}), ({id: "b", baseline_id: "a", cell: {gpus_per_node: 2, strategy: "ddp", batch_size: 8}, train_s: 3})'
    "$hpcgrid" report set.json --format json | jq -se '.[0] | [.tables[].points[].notes // [] | .[]] | index("differs from its baseline: batch_size 8 (baseline 64)")'
}

@test "versions, and an environment that only one side gives, are differences" {
    while IFS='|' read -r base own wanted; do
        echo "$base $own"
        pair "{env: $base}" "{env: $own}"
        refused "ran on other nodes or software: $wanted"
    done <<'EOT'
{torch: "2.1"}|{torch: "2.4"}|torch 2.4 (baseline 2.1)
{python: "3.9"}|{python: "3.12"}|python 3.12 (baseline 3.9)
{pytorch_version: "2.1"}|{pytorch_version: "2.4"}|pytorch_version 2.4 (baseline 2.1)
{driver: "560", torch: "2.1"}|{driver: "560"}|torch unknown (baseline 2.1)
{driver: "560"}|{driver: "560", torch: "2.1"}|torch 2.1 (baseline unknown)
{driver: "560"}|{}|env unknown (baseline given)
null|{driver: "560"}|env given (baseline unknown)
{gpu_clock_mhz: 1410}|{gpu_clock_mhz: 705}|gpu_clock_mhz 705 (baseline 1410)
EOT
    # beside env
    pair '{gpu_clock_mhz: 1410}' '{gpu_clock_mhz: 705}'
    refused 'ran on other nodes or software: gpu_clock_mhz 705 (baseline 1410)'
    pair '{}' '{throttled: true}'
    refused 'ran on other nodes or software: env given (baseline unknown)'
    pair '{clock_ahead_s: 40, gpu: {name: "a"}}' '{mpi: ["x"]}'
    accepted
    pair '{wall_clock: 110, conversions: 3, cpu: 97.5, gpu: 0, machine: "n1"}' '{wall_clock: 60, conversions: 2, cpu: 88, gpu: 1, machine: "n2"}'
    accepted
    pair '{gpu: "A100"}' '{gpu: "V100"}'
    refused 'ran on other nodes or software: gpu V100 (baseline A100)'
    pair '{env: {driver: "560", host: "n1", nccl: "2.2", HOME: "/a"}}' '{env: {driver: "560", host: "n2", mpi: "4"}}'
    accepted
}

@test "results that contradict themselves are in doubt" {
    while IFS='|' read -r own wanted; do
        echo "$own"
        pair '{epochs: 3}' "{epochs: 3} * $own"
        refused "$wanted"
        # the same of the baseline
        of "({cell: {nodes: 1, gpus_per_node: 2, strategy: \"single\"}} * $own * {train_s: 60}), {cell: {nodes: 1, gpus_per_node: 2, strategy: \"zero\"}, train_s: 30}" \
            '{baseline: {strategy: "single"}}'
        case $wanted in *"its cell names"*|*epoch*|*node*) ;; *) refused "its baseline: $(sed 's/train_s 52/train_s 60/' <<<"$wanted")" ;; esac
    done <<'EOT'
{world_size: 1}|ran on other devices than its cell names: world_size 1, the cell has 2 GPUs
{num_gpus: 1}|ran on other devices than its cell names: num_gpus 1, the cell has 2 GPUs
{device: "cpu"}|ran on other devices than its cell names: device cpu, the cell has 2 GPUs
{ranks: [{device: "CPU"}, {device: "CPU"}]}|ran on other devices than its cell names: device CPU, the cell has 2 GPUs
{strategy: "single"}|did not run what its cell names: strategy "single", the cell has "ddp"
{epoch_s: [3, 3, 3]}|its epochs are a small part of its time: epoch_s 9 in all, train_s 52
{epoch_s: [10, 10, 10, 10, 10]}|more epochs than it was to train: epoch_s has 5, epochs 3
{wall_s: 62, ranks: [{real_s: 10}, {real_s: 11}]}|more time than it ran: train_s 52 of real_s 10
{status: "ok", success: false}|counts as good, but ended otherwise: success false
{devices: 4}|ran on other devices than its cell names: devices 4, the cell has 2 GPUs
{wall_s: 4000}|most of its time is not measured: train_s 52 of wall_s 4000
{ranks: [{real_s: 500}, {real_s: 501}]}|most of its time is not measured: train_s 52 of real_s 500
{ranks: [{real_s: 40}, {real_s: 41}]}|more time than it ran: train_s 52 of real_s 40
{steps: 1000, step_s: {median: 0.13}}|its steps took longer than all of it: 1000 steps of 0.13 s, train_s 52
{early_stopped: true}|its training stopped early: early_stopped
{steps: 100, skipped_steps: 7}|some of its steps were left out: skipped_steps 7 of 100
{final_loss: null}|its loss is null, as NaN is written: final_loss
{loss: {step: [1, 2, 3], loss: [2, null, null]}}|its loss is null, as NaN is written: value 2 of loss
{wall_s: 40}|more time than it ran: train_s 52 of wall_s 40
{status: "ok", exit_code: 137}|counts as good, but ended otherwise: exit_code 137
{status: "ok", error: {message: "killed"}}|counts as good, but ended otherwise: it has an error
{ranks: [{exit_code: 0}, {exit_code: 137}]}|counts as good, but ended otherwise: exit_code 137 of rank 1
{ranks: [{uuid: "GPU-1"}, {uuid: "GPU-1"}]}|two of its ranks shared a GPU: 0 and 1
{suspended_s: 4}|suspended by the scheduler: its times include the pause
{diverged: true}|diverged: the loss became NaN or infinite
{oversubscribed: true}|oversubscribed: more ranks than cores, so the times are not representative
{status: "ok", slurm: {state: "TIMEOUT"}}|counts as good, but ended otherwise: Slurm: TIMEOUT
{ranks: [{rank: 0, real_s: 60}, {rank: 1, real_s: 600}]}|one rank ran much longer than the others: rank 1 600 s, the median 60 s
{ranks: [{rank: 0, device: "A100"}, {rank: 1, device: "T4"}]}|its ranks ran on different devices: A100 and T4
{epoch_s: [30, 30, 40]}|its epochs took longer than all of it: epoch_s 100 in all, train_s 52
{epoch_s: [26, 26]}|not all of its epochs are in its time: epoch_s has 2 of 3
{resumed_from: "last.pt"}|resumed from a checkpoint: does train_s hold what came before?
EOT
    of '({cell: {nodes: 1, gpus_per_node: 1, strategy: "single"}, train_s: 100}), {cell: {nodes: 2, gpus_per_node: 1, strategy: "ddp"}, train_s: 60, ranks: [{host: "n1"}, {host: "n1"}]}' \
        '{baseline: {nodes: 1, strategy: "single"}}'
    refused 'ran on one node: n1, the cell has 2'
    # between nodes, from collectives that are large enough to tell
    across() { # NODES CALLS GBIT_S
        of "(1, $1) as \$n | {cell: {nodes: \$n, gpus_per_node: 1, strategy: (if \$n == 1 then \"single\" else \"ddp\" end)}, train_s: (100 / \$n),
            env: {network_gbit_s: $3}, comm: {all_reduce: {calls: $2, ring_bytes: 1e9, seconds: 10}, broadcast: {calls: 1, ring_bytes: 9, seconds: 1}}}" '{baseline: {nodes: 1, strategy: "single"}}'
    }
    across 2 100 800
    refused 'its network was slow: all_reduce at 0.8 Gbit/s, a node has 800: another interface?'
    for case in '2 1000 800' '2 100 20'; do
        across $case
        accepted
    done
    pair '{samples: 1000, train_s: 100, samples_per_s: 10}' '{samples: 1000, samples_per_s: 100}'
    "$hpcgrid" report set.json --format json | jq -se '.[0] | .tables[0].points[-1].notes | any(. == "its samples_per_s is not samples / train_s: samples_per_s x train_s is 5200, samples 1000")'
    pair '{cell: {precision: "bf16"}, precision: "bf16"}' '{cell: {precision: "bf16"}, precision: "fp32"}'
    refused 'did not run what its cell names: precision "fp32", the cell has "bf16"'
    pair '{cell: {epochs: 3}}' '{cell: {epochs: 3}, args: {num_train_epochs: 1}}'
    refused 'did not run what its cell names: epochs 1, the cell has 3'
    # none of this is a contradiction
    pair '{epochs: 3, wall_s: 130, init_s: 10, world_size: 1, early_stopped: false, steps: 1000, skipped_steps: 3}' '{wall_s: 900, init_s: 500, eval_s: 300, world_size: 2, exit_code: 0, slurm: {state: "COMPLETED", job_id: 7}, epochs: 3, epoch_s: [17, 17, 17],
        resumed: {times: 1, after_step: 3}, ranks: [{real_s: 53, host: "n1", device: "A100"}, {real_s: 54, host: "n1", device: "A100"}]}'
    accepted
    pair '{cell: {precision: "bf16"}, comparable: {precision: "bf16-mixed"}, epochs: 3, epoch_s: [10, 33, 33, 33], device: "cuda:0", num_gpus: 1}' '{cell: {precision: "bf16"}, comparable: {precision: "bf16-mixed"}, epochs: 3, epoch_s: [2, 15, 15, 15], wall_s: 62, ranks: [{real_s: 60}, {real_s: 60}],
        device: "cuda:0", num_gpus: 2, strategy: "DistributedDataParallel", success: true}'
    accepted
    # each node's GPUs; a rehearsal is smaller, on other devices
    of '({cell: {nodes: 1, gpus_per_node: 2, strategy: "ddp"}, train_s: 100, num_gpus: 2}), {cell: {nodes: 2, gpus_per_node: 2, strategy: "ddp"}, train_s: 51, num_gpus: 2}' '{baseline: {nodes: 1}}'
    accepted
    pair '{cell: {epochs: 3}, epochs: 1, device: "cpu", rehearsal: true}' '{cell: {epochs: 3}, epochs: 1, device: "cpu", rehearsal: true}'
    accepted
    # the last start was shorter than the training, which stopped before its last step
    pair '{}' '{resumed: {times: 1, after_step: 3}, wall_s: 40}'
    accepted
    pair '{comparable: {steps: 1000}}' '{comparable: {steps: 1000}, steps: 500, step_s: {median: 0.15}}'
    accepted
}

@test "a note lists a few values, and says how many more there are" {
    of '(range(12) | {cell: {gpus_per_node: 1, strategy: "single", repeat: (. + 1)}, train_s: 100, wall_s: (900 + . % 10)}), {cell: {gpus_per_node: 2, strategy: "ddp"}, train_s: 52}'
    "$hpcgrid" report set.json --format json | jq -se '.[0].tables[0].points[0].notes | map(select(test("measured"))) ==
        ["most of its time is not measured: " + ([range(8) | "train_s 100 of wall_s 90\(.)"] | join(", ")) + " and 2 more"]'
}

@test "the best of variants that are not comparable is not clear" {
    of '("ddp", "fsdp") as $s | (1, 2, 3) as $r | {cell: {gpus_per_node: 2, strategy: $s, repeat: $r}, train_s: ((if $s == "ddp" then 50 else 60 end) + $r / 10),
        comparable: {precision: (if $s == "ddp" then "bf16" else "fp32" end)}}' '{baseline: null}'
    "$hpcgrid" report set.json --format json | jq -se '.[0].tables[0].listings[] | select(.name == "best") | .rows[].verdict == "not comparable: fsdp"'
    jq '.results[].comparable.precision = "bf16"' set.json >r.json
    "$hpcgrid" report r.json --format json | jq -se '.[0].tables[0].listings[] | select(.name == "best") | .rows[].verdict == "clear"'
    for lie in 'diverged = true' 'suspended_s = 3' 'wall_s = 9'; do
        jq ".results[2].$lie" r.json >set.json # the last run of ddp
        "$hpcgrid" report set.json --format json | jq -se '.[0].tables[0].listings[] | select(.name == "best") | .rows[].verdict == "in doubt: see its footnotes"'
    done
}

@test "a run that ended with an exit code, or by Slurm, is not good for want of a status" {
    of '{cell: {n: 1}, train_s: 9, exit_code: 137}, {cell: {n: 2}, train_s: 9, slurm: {state: "TIMEOUT"}}, {cell: {n: 3}, train_s: 9, slurm: {state: "CANCELLED by 1000", exit_code: "0:15"}},
        {cell: {n: 4}, train_s: 9, slurm: {exit_code: "1:0"}}, {cell: {n: 6}, train_s: 9, error: {message: "no room"}}, {cell: {n: 7}, train_s: 9, completed: false}, {cell: {n: 5}, train_s: 9, slurm: {state: "COMPLETED", exit_code: "0:0"}}' '{baseline: null}'
    run --separate-stderr "$hpcgrid" report set.json --format json
    [ "$status" -eq 1 ]
    jq -se '.[0] | .states == {failed: 4, timeout: 1, cancelled: 1} and .cells_complete == 1' <<<"$output"
    jq -se '.[0] | [.tables[].points[].notes // [] | .[]] == ["failed (exit_code 137)", "timeout (Slurm: TIMEOUT)", "cancelled (Slurm: CANCELLED by 1000)", "failed (exit_code 1:0)", "failed (no room)", "failed (completed false)"]' <<<"$output"
}

@test "samples that are counted once for each rank are no speedup" {
    dp='counts other samples than its baseline for the same work: 2.00 times; did every rank train everything?'
    weak='weak scaling: the work grows with the devices, the speedup is work x T_base/T'
    pair '{cell: {epochs: 3}, samples_per_s: 600}' '{cell: {epochs: 3}, train_s: 100, samples_per_s: 1200}'
    refused "$dp"
    pair '{samples_per_s: 600}' '{train_s: 100, samples_per_s: 1200}'
    refused "$weak" "$dp"
    pair '{comparable: {samples: 60000}}' '{train_s: 100, comparable: {samples: 120000}}'
    refused "$weak" "$dp"
    pair '{comparable: {epochs: 3, global_batch: 64}, steps: 900}' '{train_s: 100, comparable: {epochs: 3, global_batch: 128}, steps: 900}'
    refused 'differs from its baseline: global_batch 128 (baseline 64)' "$dp"
    pair '{batch_size: 64, steps: 900}' '{train_s: 100, batch_size: 64, steps: 900}'
    refused "$dp"
    pair '{cell: {epochs: 3}, samples_per_s: 600}' '{cell: {epochs: 3}, train_s: 100, samples_per_s: 1200}'
    "$hpcgrid" report set.json --metric samples_per_s --strict --format json >out.json || [ $? -eq 1 ]
    jq -se '.[0] | .refused == 1' out.json
    # steps on constant batches for each device, and batches that are those of all
    pair '{batch_size: 64, steps: 900}' '{batch_size: 64, steps: 450}'
    accepted
    pair '{batch_size: 64, steps: 900}' '{batch_size: 64, steps: 900}'
    accepted
    # rounding: an epoch ends within a step
    pair '{cell: {epochs: 10}, batch_size: 32, steps: 100}' '{cell: {epochs: 10}, batch_size: 32, steps: 60}'
    accepted
    # weak scaling that the cells ask for
    pair '{cell: {samples: 1000}, samples_per_s: 10}' '{cell: {samples: 2000}, train_s: 104, samples_per_s: 19}' # the baseline of another cell
    jq '.baseline.samples = 1000' set.json >weak.json
    "$hpcgrid" report weak.json --strict --format json | jq -se '.[0] | .refused == 0 and .tables[0].points[-1].notes == ["'"$weak"'"]'
}

@test "a loss or a score far from the baseline's is said, after the same training" {
    pair '{cell: {epochs: 3}, final_loss: 0.31}' '{cell: {epochs: 3}, final_loss: 2.3}'
    refused 'final_loss is far from that of its baseline: 2.3 (baseline 0.31)'
    pair '{eval: {accuracy: 0.97}}' '{eval: {accuracy: 0.11}}'
    refused 'score is far from that of its baseline: 0.11 (baseline 0.97)'
    pair '{eval: {f1: 88.1}}' '{eval: {f1: 70.5}}'
    refused 'score is far from that of its baseline: 70.5 (baseline 88.1)'
    # who says nothing may not have learned anything; the baseline's repeats need not all say it
    for own in '{}' '{eval: {f1: null}}' '{f1: "88"}'; do
        pair '{eval: {f1: 88.1}, comparable: {precision: "fp32"}}' "$own"
        refused 'does not say, as its baseline does: precision, score'
        jq -se '.[0].tables[0].points[-1].speedup' out.json
    done
    pair '{final_loss: 0.3}' '{final_loss: 0.31, accuracy: 0.9}'
    accepted
    of '(1, 2) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (99 + $r)} + (if $r == 1 then {final_loss: 0.4} else {} end),
        {cell: {gpus_per_node: 2, strategy: "ddp", repeat: $r}, train_s: (50 + $r), final_loss: 0.41}'
    accepted
    for own in 0.25 0.4 0.45; do
        pair '{final_loss: 0.31, accuracy: 0.93}' "{final_loss: $own, accuracy: 0.9}"
        accepted
    done
    # fewer steps leave a higher loss, as with a batch that grows with the devices; a score is compared all the same
    while IFS='|' read -r base own wanted; do
        echo "$base $own"
        pair "{cell: {epochs: 3}, final_loss: 0.31, accuracy: 0.9} * $base" "{cell: {epochs: 3}, final_loss: 2.3, accuracy: 0.7} * $own"
        "$hpcgrid" report set.json --format json >out.json
        jq -r '[.tables[0].points[-1].notes[] | capture("^(?<key>.*) is far from ").key] | join(" ")' out.json | diff <(echo "$wanted") -
    done <<'EOT'
{batch_size: 64}|{batch_size: 64}|score
{global_batch: 64}|{global_batch: 128}|score
{steps: 900}|{steps: 450}|score
{steps: 900, batch_size: 64}|{steps: 900, batch_size: 64}|final_loss score
{steps: 900}|{steps: 895}|final_loss score
{batch_size: 64}|{batch_size: 32}|final_loss score
{global_batch: 64}|{global_batch: 64}|final_loss score
{batch_size: 64}|{}|final_loss score
EOT
    # the base's own runs lie as far apart
    of '(1, 2) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (99 + $r), final_loss: (0.5 + 0.3 * $r)},
        {cell: {gpus_per_node: 2, strategy: "ddp", repeat: $r}, train_s: (50 + $r), final_loss: 1.4}'
    "$hpcgrid" report set.json --format json | jq -se '.[0] | [.tables[].points[].notes // [] | .[] | select(startswith("final_loss"))] == []'
    # other epochs, another loss
    of '{cell: {gpus_per_node: 1, strategy: "single", epochs: 1}, train_s: 9, final_loss: 3}, {cell: {gpus_per_node: 2, strategy: "ddp", epochs: 2}, train_s: 9, final_loss: 0.3}' \
        '{baseline: {gpus_per_node: 1, strategy: "single", epochs: 1}}'
    "$hpcgrid" report set.json --format json | jq -se '.[0] | [.tables[].points[].notes // [] | .[] | select(startswith("final_loss"))] == []'
}

@test "repeats that agree to the last digit are copies" {
    of '(1, 2, 3) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (100.1 + $r)},
        {cell: {gpus_per_node: 2, strategy: "ddp", repeat: $r}, train_s: (if $r == 1 then 51.82934 else 52.93713 end)}'
    refused 'two of its runs agree to the last digit: copied?'
    pair '{train_s: 51.82934}' '{train_s: 51.82934}'
    refused 'agrees with its baseline to the last digit: copied?'
    # many runs that were rounded meet by chance
    of 'range(20) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: ($r + 1)}, train_s: (186.6 + $r * $r % 19 * 0.037)},
        {cell: {gpus_per_node: 2, strategy: "ddp", repeat: ($r + 1)}, train_s: (98.3 + $r * $r % 19 * 0.017)}'
    accepted
    # in another order
    of '(1, 2) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (if $r == 1 then 51.82934 else 100.3 end)},
        {cell: {gpus_per_node: 2, strategy: "ddp", repeat: $r}, train_s: (if $r == 1 then 53.1 else 51.82934 end)}'
    refused 'agrees with its baseline to the last digit: copied?'
    of '(1, 2, 3) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (100.1 + $r)},
        {cell: {gpus_per_node: 2, strategy: "ddp", repeat: $r}, train_s: (if $r == 1 then 51.82934 else 52.93713 end)}'
    jq '.results[].train_s |= (. * 10 | round / 10)' set.json >r.json && mv r.json set.json
    accepted
}

@test "a result copied from the folder of another cell is a copy, too" {
    copied='agrees with another place to the last digit: copied?'
    places() { # TIMES: of four numbers of GPUs
        of "[$1] as \$t | range(4) as \$i | {cell: {gpus_per_node: pow(2; \$i), strategy: (if \$i == 0 then \"single\" else \"ddp\" end)}, train_s: \$t[\$i]}"
    }
    places '100.3, 52.18293472, 30.7, 52.18293472'
    refused "$copied"
    jq -se --arg copied "$copied" '.[0] | [.tables[0].points[] | .notes == [$copied]] == [false, true, false, true]' out.json
    # of many short figures some are equal by chance; two sets may have a result in common
    places '100.3, 52.1829, 30.7, 52.1829'
    accepted
    places '100.3, 52.18293472, 30.7, 16.1' && mv set.json a.json && jq '.name = "y"' a.json >b.json
    "$hpcgrid" report a.json b.json --columns source --format json | jq -se '.[0] | [.tables[].points[].notes // [] | .[] | select(test("copied"))] == []'
    "$hpcgrid" compare a.json b.json --json | jq -se '.[0] | [.. | strings | select(test("copied"))] == []'
}

# notes WANTED...: notes of the last place, exactly; --strict accepts it
noted() {
    printf '%s\n' "$@" >wanted
    "$hpcgrid" report set.json --format json --strict >out.json || return 1
    jq -r '.tables[0].points[-1].notes // [] | .[]' out.json | diff wanted -
}

@test "repeats without any spread are rounded, and an interval of no width is said to be too narrow" {
    equal='its runs are equal: rounded? ± does not show by how much'
    of '(1, 2, 3) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (100 + $r / 10)}, {cell: {gpus_per_node: 2, strategy: "ddp", repeat: $r}, train_s: 59.4}'
    noted "$equal"
    of '{cell: {gpus_per_node: 1, strategy: "single"}, train_s: 100.3, n: 3, sd: 0.1}, {cell: {gpus_per_node: 2, strategy: "ddp"}, train_s: 59.4, n: 3, sd: 0}'
    noted 'mean of 3 runs, as published' "$equal"
    # whole seconds, beside others; the value lies in its interval
    of '(1, 2, 3) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (100 + $r / 10)}, {cell: {gpus_per_node: 2, strategy: "ddp", repeat: $r}, train_s: 60}'
    noted "$equal"
    jq -se '.[0].tables[0].points[-1] | .value == 60 and .value_interval[0] <= 60 and .value_interval[1] >= 60' out.json
    of '{cell: {gpus_per_node: 1, strategy: "single"}, train_s: 100.3, n: 3, sd: 0.1}, {cell: {gpus_per_node: 2, strategy: "ddp"}, train_s: 59.4, n: 3, sd: 0}'
    jq '.results[1].sd = 0.01' set.json >r.json && mv r.json set.json
    noted 'mean of 3 runs, as published'
    # the same seed gives the same loss
    of '(1, 2, 3) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (100 + $r / 10), final_loss: 0.513}'
    "$hpcgrid" report set.json --format json --metric final_loss --strict | jq -se '.[0] | [.tables[].points[].notes // [] | .[]] == []'
}

@test "the newest of several good runs of one cell is said to be that" {
    of '("single", "ddp") as $s | {id: $s, attempt: "1.0", cell: {gpus_per_node: (if $s == "ddp" then 2 else 1 end), strategy: $s}, train_s: (if $s == "ddp" then 80.1 else 100.3 end)},
        {id: "ddp", attempt: "2.0", cell: {gpus_per_node: 2, strategy: "ddp"}, train_s: 52.2}' && jq '.results |= unique_by([.id, .attempt])' set.json >r.json && mv r.json set.json
    noted 'the newest of several good runs of the same cell'
    jq '(.results[] | select(.train_s == 80.1)).status = "failed"' set.json >r.json && mv r.json set.json
    accepted
}

@test "times in milliseconds, or smaller units, are suspected" {
    pair '{}' '{train_s: 52000}'
    noted 'a thousand times as long as expected: milliseconds?'
    pair '{}' '{train_s: 52000000}'
    noted 'a million times as long as expected: microseconds?'
    pair '{}' '{train_s: 52000000000}'
    noted 'a billion times as long as expected: nanoseconds?'
    pair '{}' '{train_s: 1999}'
    accepted
    of '(1, 2, 3) as $r | {cell: {gpus_per_node: 1, strategy: "single", repeat: $r}, train_s: (if $r < 3 then 59 + $r / 10 else 59700 end)}'
    noted 'run 3 is an outlier: 1009 times the others'
    # a core may well be so much slower than a GPU
    of '("gpu", "cpu") as $h | {cell: {hardware: $h, nodes: 1, gpus_per_node: (if $h == "gpu" then 1 else 0 end), tasks_per_node: 1}, train_s: (if $h == "gpu" then 10.5 else 10003.7 end)}' \
        '{baseline: {hardware: "gpu"}}'
    "$hpcgrid" report set.json --format json | jq -se '.[0] | [.tables[].points[].notes // [] | .[] | select(test("milli"))] == []'
}

@test "what is swept on purpose is no lie" {
    of '(8, 16) as $b | (1, 2, 4) as $n | {cell: {gpus_per_node: $n, strategy: (if $n == 1 then "single" else "ddp" end), batch_size: $b, epochs: 3, model: "bert"}, train_s: (100 / $n), wall_s: (100 / $n + 9),
        steps: (4800 / $b / $n), samples_per_s: (48 * $n), final_loss: (0.5 + $n / 50), comparable: {precision: "fp32"}, env: {torch: "2.4", driver: "560", host: "n\($n)"}}'
    accepted
    of '("bert", "gpt") as $m | (1, 3) as $e | (1, 2) as $n | {cell: {gpus_per_node: $n, strategy: (if $n == 1 then "single" else "ddp" end), epochs: $e, model: $m}, train_s: (100 * $e / $n), final_loss: (3 / $e)}'
    accepted
    of '(false, true) as $c | {cell: {gpus_per_node: 1, strategy: "single", compile: $c}, train_s: (if $c then 9 else 12 end)}' '{baseline: {compile: false}}'
    accepted
    of '(16, 32, 64) as $b | {cell: {gpus_per_node: 1, strategy: "single", batch_size: $b, epochs: 3}, train_s: (100 - $b / 2), final_loss: 0.5}' '{baseline: {batch_size: 16}}'
    accepted
}

# history N JQ: six sets of three runs of two cells, twice as fast from the fourth on, which is changed by this
history() {
    rm -f s*.json
    for i in 1 2 3 4 5 6; do
        jq -n --argjson i $i "{schema: \"hpcgrid-results/1\", name: \"nightly\", run: \"00\($i)\", results: [(1, 2) as \$n | range(3) as \$r
            | {cell: {nodes: \$n, repeat: (\$r + 1)}, train_s: ((if $i < 4 then 100 else $1 end) + \$r / 10), comparable: {precision: \"fp32\", revision: \"\($i)\"}, env: {driver: \"560\"}}
            | if $i < 4 then . else $2 end]}" >s$i.json
    done
}

@test "history notes what compare notes, on the line of the change, and --strict gives no verdict" {
    lie='.comparable.precision = "bf16" | .env.driver = "570"'
    history 50 "$lie"
    run --separate-stderr "$hpcgrid" history s?.json --json
    echo "$output"
    [ "$status" -eq 0 ]
    jq -se '.[0] | .faster == 2 and [.listings[] | select(.name == "changes") | .rows[].differs] == ["precision bf16 (before fp32), driver 570 (before 560)", "precision bf16 (before fp32), driver 570 (before 560)"]' <<<"$output"
    jq -se '.[0] | .listings[0].notes == ["not like the set before: nightly/004: precision bf16 (before fp32), driver 570 (before 560)"]' <<<"$output"
    run --separate-stderr "$hpcgrid" history s?.json --json --strict
    [ "$status" -eq 1 ]
    jq -se '.[0] | .not_comparable == 2 and .faster == 0 and ([.listings[0].rows[].verdict] == ["not comparable since nightly/004", "not comparable since nightly/004"])' <<<"$output"
    jq -se '.[0] | [.listings[1].rows[].verdict] == ["not comparable", "not comparable"]' <<<"$output"
    "$hpcgrid" compare s3.json s4.json --json --strict >out || true
    jq -se '.[0] | .counts == {"not comparable": 2}' out
    grep -q 'precision bf16 (A fp32)' out
    grep -q 'driver 570 (A 560)' out
    # slower by as much as the lie hides: nothing has changed, which is no news to trust
    history 100 'if $n == 2 then .comparable.precision = "bf16" else . end'
    run --separate-stderr "$hpcgrid" history s?.json
    [ "$status" -eq 0 ]
    [[ "$output" == *"2 steady"*"not like the set before: nightly/004: precision bf16 (before fp32) (1 of 2"*"cells)"* ]]
    run --separate-stderr "$hpcgrid" history s?.json --strict
    [ "$status" -eq 1 ]
    # an honest change
    history 50 .
    run --separate-stderr "$hpcgrid" history s?.json --json --strict
    [ "$status" -eq 0 ]
    jq -se '.[0] | .faster == 2 and (.listings[0].notes == []) and (.listings[1].rows[0] | has("differs") | not)' <<<"$output"
    # half of the samples; a doubtful result
    history 50 '.samples_per_s = 10' && for i in 1 2 3; do jq '.results[].samples_per_s = 10' s$i.json >t && mv t s$i.json; done
    "$hpcgrid" history s?.json | tr -s ' \n' '  ' | grep -qF 'nightly/004: counts 0.50 times the samples for the same work'
    history 50 '.wall_s = 4000'
    "$hpcgrid" history s?.json | tr -s ' \n' '  ' | grep -qF 'nightly/004: most of its time is not measured: train_s 50 of wall_s 4000'
}

@test "a loss that is the metric is compared, not refused" {
    pair '{final_loss: 0.31}' '{final_loss: 2.3}'
    jq '.results[].final_loss = 0.3' set.json >a.json
    jq '.name = "y" | .results[].final_loss = 2.3' set.json >b.json
    run --separate-stderr "$hpcgrid" compare a.json b.json --metric final_loss --strict --json
    jq -se '.[0] | .counts.worse == 2' <<<"$output"
}

@test "a baseline that its own run lacks is taken from another site's run, and from no other" {
    set_of() { # FILE ID SITE STRATEGY TIME
        jq -n --arg id "$2" --arg site "$3" --arg strategy "$4" --argjson s "$5" '{schema: "hpcgrid-results/1", name: "x", results: [
            {id: $id, baseline_id: "a", cell: ({gpus_per_node: 1, strategy: $strategy} + if $site == "" then {} else {site: $site} end), train_s: $s}]}' >"$1"
    }
    set_of own.json b south ddp 5
    for site in south north; do
        set_of other.json a $site single 10
        "$hpcgrid" report own.json other.json --format json | jq -c '[.tables[].points[] | .speedup // empty] | sort' >>speedups
    done
    set_of own.json b "" ddp 5
    set_of other.json a "" single 10
    "$hpcgrid" report own.json other.json --format json | jq -c '[.tables[].points[] | .speedup // empty] | sort' >>speedups
    diff speedups - <<<$'[1]\n[1,2]\n[1]'
}
