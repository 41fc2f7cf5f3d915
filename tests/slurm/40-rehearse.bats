#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# `hpcgrid run --box` rehearses any matrix: the box is made from the matrix's own site, everything in it is tiny.

bats_require_minimum_version 1.5.0
load box

setup() {
    box_setup
    unset "${!SLURM_@}" HPCGRID_REPORTS
}

# all_results NAME: every result of a run, as one list
all_results() { jq -s . reports/"$1"/*/cells/*/*/result.json; }

# Each matrix with cells to run: all kinds of hardware, every strategy on 1 x 2, 2 x 1 and 2 x 2, one cell at least of each matrix.
selections() {
    cat <<'END'
squad-strategies nodes=2,gpus_per_node=1,strategy!=dp
mnist-rnn repeat=1,strategy=dp
native-vs-pytorch repeat=1,nodes=2,trainer=native,model=rnn
quickstart repeat=1,nodes=2,tasks_per_node=2
pairs-tiny repeat=1
squad-a100-baseline repeat=1,padding=max_length
squad-eval nodes=1
squad-hardware nodes=1
squad-learns repeat=1,trainer=native,epochs=1,dataset=squad-slice
squad-sites repeat=1
squad-tiny nodes=2
strategies-tiny strategy=deepspeed_stage_3,tasks_per_node=2
reference/artairmoimenta hardware=cpu
reference/cfr24-mnist repeat=1,strategy=fsdp
reference/juanmaxtouyaa-allreduce repeat=1,bytes=1000000,nodes=2,gpus_per_node=1
reference/juanmaxtouyaa-one-gpu repeat=1,precision=tf32
reference/juanmaxtouyaa repeat=1,nodes=2,gpus_per_node=2
reference/lab-bert-a100 repeat=1
reference/lab-mnist-rnn repeat=1,strategy=dp
reference/lab-strategies repeat=1,nodes=1,gpus_per_node=2,strategy=deepspeed
reference/magnoint13 repeat=1,precision=bf16,batch_size=128
reference/paulserin strategy=fsdp,precision=tf32
reference/small-labs repeat=1
reference/squad-baselines batch_size=24
reference/zhumojiang-mnist repeat=1,strategy=ddp
END
}

@test "every matrix of matrices/ can be rehearsed" {
    # nccl-tests is another program: here it only says what the matrix reads
    mkdir bin
    ln -s "$HPCGRID_BUILD/worker/hpcgrid-worker" bin
    printf '#!/bin/sh\n[ "$HPCGRID_REHEARSAL" = 1 ] && echo "1 2 float sum -1 123.4 8.1 12.3"\n' >bin/all_reduce_perf
    chmod +x bin/all_reduce_perf
    diff <(selections | sed 's/ .*//' | sort) \
        <(cd "$HPCGRID_SOURCE/matrices" && git ls-files '*.json' | grep -v schema | sed 's/\.json$//' | sort)
    selections | HPCGRID=$HPCGRID HPCGRID_SITE=cesga-ft3 PATH=$PWD/bin:$PATH xargs -P 8 -n 2 sh -c \
        '"$HPCGRID" run --box -s "$1" "$HPCGRID_SOURCE/matrices/$0.json" >"$(basename "$0").log" 2>&1 3>&- || echo "$0"' >failed
    while read -r name; do cat "$(basename "$name").log"; done <failed
    [ ! -s failed ]
    jq -s . reports/*/*/cells/*/*/result.json >all.json
    jq -e 'length == 34 and all(.[]; .status == "ok" and .rehearsal)' all.json
    jq -e '[.[].cell | select(.site == "lab").hardware] | sort == ["a100", "cpu64", "rtx5070", "t4"]' all.json
    jq -e '[.[] | select(.cell.nodes == 2 and .cell.tasks_per_node == 1) | .cell.strategy] | unique | contains(
        ["ddp", "deepspeed", "deepspeed_stage_1", "deepspeed_stage_3", "fsdp"])' all.json
    # the cells are those that the real run will have
    "$HPCGRID" expand --json "$HPCGRID_SOURCE/matrices/squad-hardware.json" | jq '[.cells[].id] | sort' >real
    all_results squad-hardware-box | jq '[.[].id] | sort' | diff real -
    grep -q 'not rehearsed: dataset squad-v1.1 (squad-slice instead)' squad-hardware.log
}

# One GPU, a whole node and two nodes of a site's default hardware.
@test "jobs of every centre run on a box shaped like it" {
    for file in "$HPCGRID_SOURCE"/templates/sites/*.json; do
        name=$(basename "$file" .json)
        case $name in box | laptop) continue ;; esac
        jq '.hardware[.default].gpus_per_node as $all | {hpcgrid: 1, name: .name, site: .name, workload: {command: ["true"], launch: [], time: "1h"},
            include: ([[1, 1], [1, $all], [2, $all]] | map({nodes: .[0], gpus_per_node: .[1]}))}' "$file" >"$name.json"
        echo "$name"
    done >names
    [ "$(wc -l <names)" -ge 8 ]
    HPCGRID=$HPCGRID xargs -P 8 -n 1 sh -c '"$HPCGRID" run --box "$0.json" >"$0.log" 2>&1 3>&- || echo "$0"' <names >failed
    while read -r name; do cat "$name.log"; done <failed
    [ ! -s failed ]
    while read -r name; do
        all_results "$name-box" | jq -e 'length == 3 and all(.[]; .status == "ok" and .rehearsal)'
    done <names
}

# A made-up cluster: shared and listed partitions, GPUs by type, by constraint and by another name, much that no box has.
mare() {
    jq -n '{hpcgrid: 1, name: "mare",
        site: {name: "mare", launcher: "srun --mpi=pmi2 --cpu-bind=cores", default: "h100", modules: ["cuda/12"], account_required: true,
            qos: "debug", reservation: "class", licenses: "gold:3", transport: "rest", rest: {url: "http://nowhere.invalid:1"},
            env: {OMPI_MCA_btl_tcp_if_include: "ib0"}, container: ["apptainer", "exec", "{{container}}"],
            extra: ["--exclude=n1", "--wckey=abc", "--mail-type=END"],
            hardware: {
                h100: {partition: "acc,acc-long", gres: "gpu:h100", constraint: "ib&[r1|r2]", gpus_per_node: 8, cores_per_node: 160,
                    cpus_per_gpu: 20, mem_per_gpu: "250G", device_mem: "64G", max_time: "2-00:00:00", backend: "cuda"},
                v100: {constraint: "gpu_v100", gpus_per_node: 4, partition: "acc"},
                npu: {gres: "npu:x1", gpus_per_node: 2, partition: "box"},
                cpu: {partition: "gpp", max_time: "10:00:00", gpus_per_node: 0, cores_per_node: 112}}},
        workload: {time: "6h"}} | '"$1" >mare.json
}

@test "a box has the node types, partitions, GPUs and features of the matrix's site" {
    mare '.workload += {launch: [], command: ["sh", "-c",
            ("echo $SLURM_JOB_PARTITION $(scontrol show partition $SLURM_JOB_PARTITION | grep -o MaxTime=[^[:space:]]*)" +
            " $SLURM_JOB_ACCOUNT $SLURM_JOB_NODELIST $CUDA_VISIBLE_DEVICES $HPCGRID_REHEARSAL")]} |
        .include = [{gpus_per_node: 8}, {hardware: "v100", gpus_per_node: 3, container: "x.sif"}, {hardware: "npu", gpus_per_node: 2, modules: "npu/1"},
            {hardware: "cpu", cpus_per_task: 112, sbatch: "--nodelist=n[1-2]"}, {nodes: 300}]'
    run --separate-stderr "$HPCGRID" run --box mare.json
    echo "$stderr"
    [ "$status" = 0 ]
    diff <(cat reports/mare-box/001/cells/*/*/out.log | sort) - <<'END'
acc MaxTime=UNLIMITED rehearsal h100-1 0,1,2,3,4,5,6,7 1
acc MaxTime=UNLIMITED rehearsal v100-1 0,1,2 1
box MaxTime=UNLIMITED rehearsal npu-1 1
gpp MaxTime=10:00:00 rehearsal cpu-1 1
END
    diff <(sed -n 's/^hpcgrid: not rehearsed: //p' <<<"$stderr") - <<'END'
reservation class
licenses gold:3
container apptainer exec {{container}}
modules cuda/12
launcher srun --mpi=pmi2 --cpu-bind=cores
account (the site wants one: set SBATCH_ACCOUNT)
GPUs (the CPU computes)
--exclude=n1
container x.sif
module npu/1
--nodelist=n[1-2]
END
    [[ "$stderr" == *"the cell has 300 on 300"* ]]
    all_results mare-box | jq -e 'length == 4 and all(.[]; .rehearsal)'
    [[ "$output" == *"rehearsal on "*": not the cells' hardware or size"* ]]
}

@test "four nodes with eight GPUs each are rehearsed on what cores there are" {
    mare '.workload += {program: "hpcgrid-worker", model: "bert-large", dataset: "squad-v2.0", epochs: 15, batch_size: 32, precision: "tf32",
        strategy: "ddp", nodes: 4, gpus_per_node: 8, cwd: "/scratch/none", checkpoint: "/scratch/none/c"}'
    run --separate-stderr "$HPCGRID" run --box mare.json
    echo "$stderr"
    [ "$status" = 0 ]
    [[ "$stderr" == *"not rehearsed: MPI between more than 16 ranks (TCP instead)"* ]]
    all_results mare-box | jq -e 'length == 1 and (.[0] | .rehearsal and (.ranks | length) == 32 and .cell.epochs == 15)'
    [ -e reports/mare-box/001/cells/*/*/c ]
}

@test "a rehearsal, a whole one and a real run are never the same run" {
    jq -n '{hpcgrid: 1, name: "kinds", site: "box", workload: {launch: [], command: ["sh", "-c", "echo ${HPCGRID_REHEARSAL-whole}"]}}' >kinds.json
    "$HPCGRID" run --box kinds.json
    "$HPCGRID" run --box --no-shrink kinds.json
    "$HPCGRID" run --box --no-shrink kinds.json # nothing is left to do
    [ "$(cat reports/kinds/001/cells/*/*/out.log)" = 1 ]
    [ "$(cat reports/kinds/002/cells/*/*/out.log)" = whole ]
    [ ! -e reports/kinds/003 ]
    # the box of the first is gone
    run env -u SLURM_CONF "$HPCGRID" resume reports/kinds/001
    [ "$status" = 4 ]
    [[ "$output" == *"no slurm.conf"*'`hpcgrid run --box MATRIX` continues a rehearsal' ]]
    jq -es '[.[].rehearsal] == [true, false]' reports/kinds/*/cells/*/*/result.json
    # together in one report they have tables of their own
    run "$HPCGRID" compare reports/kinds/001 reports/kinds/002
    [[ "$output" == *" only in B"*" only in A, rehearsal"* ]]
    [ "$("$HPCGRID" report --format json reports/kinds/001 reports/kinds/002 | jq -c '[.tables[].rehearsal] | sort')" = '[false,true]' ]
}
