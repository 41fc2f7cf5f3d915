#!/usr/bin/env bats
# The node side on a real Slurm: batch scripts as a user would submit them by hand.

bats_require_minimum_version 1.5.0
load box

setup_file() { box_up cpu:2x0,a100:1x2; }
teardown_file() { box_down; }
setup() {
    box_setup
    run_dir=$T/reports/x/001
}

# matrix MEMBERS: plan a matrix of the site box with these members.
matrix() {
    echo "{\"hpcgrid\": 1, \"name\": \"x\", \"site\": \"box\", $1}" >m.json
    "$HPCGRID" plan m.json --out "$run_dir"
}

submit() {
    sbatch --parsable "$@" "$run_dir/batches/1.sh"
}

cpus() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }
ended() { [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]; }
attempt() { echo "$run_dir"/cells/*/*.0.0; }
value() { jq -c "$1" "$(attempt)/result.json"; }

@test "four ranks on two nodes each know their place" {
    matrix '"workload": {"command": ["sh", "-c", "echo $RANK $LOCAL_RANK $WORLD_SIZE $OMP_NUM_THREADS $SLURM_CPUS_PER_TASK $SLURMD_NODENAME $MASTER_ADDR"]},
            "axes": {"hardware": "cpu", "nodes": 2, "tasks_per_node": 2, "cpus_per_task": 2}'
    job=$(submit)
    box_wait 90 ended "$job"
    diff - <(sort "$(attempt)/out.log") <<'END'
0 0 4 2 2 cpu-1 127.0.0.1
1 1 4 2 2 cpu-1 127.0.0.1
2 0 4 2 2 cpu-2 127.0.0.1
3 1 4 2 2 cpu-2 127.0.0.1
END
    [ "$(value '[.status, (.ranks | length), .slurm.job_id, .slurm.nodes, .rehearsal]')" = "[\"ok\",4,$job,\"cpu-[1-2]\",false]" ]
    # virtual nodes share this machine's cores
    [ "$(value .oversubscribed)" = "$([ "$(cpus)" -lt 8 ] && echo true || echo false)" ]
}

@test "a virtual GPU is seen by the ranks and is a rehearsal" {
    [ ! -e /proc/driver/nvidia/gpus ] || skip "there is a GPU here"
    matrix '"workload": {"command": ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"]}, "axes": {"hardware": "a100", "gpus_per_node": 2}'
    box_wait 90 ended "$(submit)"
    [ "$(sort -u "$(attempt)/out.log")" = 0,1 ]
    [ "$(value '[.status, .rehearsal, .ranks[0].device_kind]')" = '["ok",true,"cpu"]' ]
}

# contained WORDS [MEMBERS [COMMAND]]: one cell in an image with a blank in its name, at a site with these words
contained() {
    local command=${3:-'["sh", "-c", "echo \"$IMAGE\" $RANK"]'}
    echo "{\"hpcgrid\": 1, \"name\": \"x\", \"site\": {\"name\": \"lab\", \"container\": $1, \"hardware\": {\"cpu\": {\"partition\": \"cpu\"}}},
        \"workload\": {\"command\": $command${2:-}},
        \"axes\": {\"hardware\": \"cpu\", \"tasks_per_node\": 2, \"container\": \"a b.sif\"}}" >m.json
    rm -rf "$run_dir"
    "$HPCGRID" plan m.json --out "$run_dir"
    box_wait 90 ended "$(submit)"
}

@test "a container's words stand before the program, its options with the launcher" {
    contained '["env", "IMAGE={{container}}"]'
    [ "$(sort "$(attempt)/out.log" | paste -sd,)" = "a b.sif 0,a b.sif 1" ]
    contained '["--export=ALL,IMAGE={{container}}"]'
    [ "$(sort "$(attempt)/out.log" | paste -sd,)" = "a b.sif 0,a b.sif 1" ]
    contained '["--export=ALL,IMAGE={{container}}"]' ', "launch": []'
    [ "$(value '[.status, .error.message]')" = '["failed","the site'"'"'s \"container\" is options of a launcher, and \"launch\" is []"]' ]
}

# documented NAME: the words of templates/sites/README.md for a container runtime
documented() { tr '\n' ' ' <"$HPCGRID_SOURCE/templates/sites/README.md" | grep -o "\[\"$1\"[^]]*\]"; }

@test "the documented words of Apptainer and Podman-HPC bind the attempt's folder and pass the ranks' environment" {
    mkdir bin
    export PATH=$PWD/bin:$PATH
    # Both say with which words they were called. Apptainer passes the whole environment, Podman what --env names.
    cat >bin/apptainer <<'END'
#!/bin/sh
echo "$*" >"$HPCGRID_ATTEMPT/words.$RANK"
while [ "$1" != "a b.sif" ]; do shift; done
shift
exec "$@"
END
    cat >bin/podman-hpc <<'END'
#!/bin/bash
echo "$*" >"$HPCGRID_ATTEMPT/words.$RANK"
names='PATH'
for word; do case $word in --env=*) names="$names|${word#--env=}" ;; esac; done
while [ "$1" != "a b.sif" ]; do shift; done
mapfile -t pass < <(env | grep -E "^(${names//\*/[A-Z0-9_]*})=")
exec env -i "${pass[@]}" "${@:2}"
END
    chmod +x bin/*
    local program='["sh", "-c", "echo $RANK $WORLD_SIZE $LOCAL_RANK ${MASTER_ADDR:?} ${MASTER_PORT:+port} $OMP_NUM_THREADS $SLURM_PROCID $HPCGRID_NODES; [ $RANK = 1 ] || echo {\\\"train_s\\\": 2} >\"$HPCGRID_RESULT\""]'
    for runtime in apptainer podman-hpc; do
        contained "$(documented $runtime)" ', "launch": ["srun", "--mpi=none"]' "$program"
        [ "$(value '[.status, .train_s]')" = '["ok",2]' ]
        diff <(sort "$(attempt)/out.log") <(printf '%s\n' '0 2 0 127.0.0.1 port 1 0 1' '1 2 1 127.0.0.1 port 1 1 1')
        for rank in 0 1; do
            words=$(<"$(attempt)/words.$rank")
            [[ "$words" == *"$(attempt)"*"a b.sif sh -c "* ]]
        done
    done
}

@test "values reach the ranks byte for byte through srun" {
    matrix '"workload": {"command": ["sh", "-c", "printf %s \"$1\" >\"$HPCGRID_ATTEMPT/arg.$RANK\"; printf %s \"$HPCGRID_V\" >\"$HPCGRID_ATTEMPT/env.$RANK\"", "-", "{{v}}"]},
            "axes": {"hardware": "cpu", "nodes": 2, "v": "a\"b\u0027$(touch canary)`touch canary`\\\\ \n\t; | %n \u2212 \ud83d\ude00 -x"}'
    box_wait 90 ended "$(submit)"
    [ "$(value .status)" = '"ok"' ]
    for f in arg.0 arg.1 env.0 env.1; do
        [ "$(jq -Rs . "$(attempt)/$f")" = "$(jq .cell.v "$(attempt)/result.json")" ]
    done
    [ ! -e canary ]
}

@test "the rank that failed first is named and the others are ended" {
    matrix '"workload": {"command": ["sh", "-c", "[ $RANK = 2 ] && { echo no luck >&2; exit 7; }; sleep 1000"]},
            "axes": {"hardware": "cpu", "nodes": 2, "tasks_per_node": 2}'
    box_wait 90 ended "$(submit)"
    [ "$(value '[.status, .error.rank, .error.message]')" = '["failed",2,"exit code 7"]' ]
    [[ "$(value .error.tail)" == *"no luck"* ]]
}

@test "scancel leaves a result and no process" {
    matrix '"workload": {"command": ["sh", "-c", "echo $$; sleep 1000"]}, "axes": {"hardware": "cpu", "nodes": 2, "tasks_per_node": 2}'
    job=$(submit)
    lines() { [ "$(wc -l <"$(attempt)/out.log")" -eq 4 ]; }
    box_wait 90 lines
    scancel "$job"
    box_wait 90 test -e "$(attempt)/result.json"
    box_wait 90 ended "$job"
    [ "$(value .status)" = '"cancelled"' ]
    for pid in $(cat "$(attempt)/out.log"); do
        gone() { ! kill -0 "$pid" 2>/dev/null; }
        box_wait 90 gone
    done
}

@test "when exec is killed its ranks end" {
    matrix '"workload": {"command": ["sh", "-c", "echo $$; sleep 1000"]}, "axes": {"hardware": "cpu", "nodes": 2}'
    job=$(submit)
    lines() { [ "$(wc -l <"$(attempt)/out.log")" -eq 2 ]; }
    box_wait 90 lines
    kill -KILL "$(jq .pid "$(attempt)/claim.json")"
    box_wait 90 ended "$job"
    for pid in $(cat "$(attempt)/out.log"); do
        gone() { ! kill -0 "$pid" 2>/dev/null; }
        box_wait 90 gone
    done
    [ ! -e "$(attempt)/result.json" ]
}

@test "every index of an array is its own cell, and a second submission finds all claimed" {
    matrix '"workload": {"command": ["sh", "-c", "echo {{n}}"], "launch": []}, "axes": {"hardware": "cpu", "n": {"range": [1, 12]}}'
    box_wait 90 ended "$(submit)"
    [ "$(cat "$run_dir"/cells/*/*.0.0/out.log | sort -n | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 9 10 11 12 " ]
    box_wait 90 ended "$(submit)"
    [ "$(cat "$run_dir"/cells/*/*/out.log | wc -l)" -eq 12 ]
    run -0 "$HPCGRID" collect "$run_dir"
}

@test "the script by hand and the job object through the agent ask for the same" {
    matrix '"workload": {"command": ["true"]}, "axes": {"hardware": "a100", "gpus_per_node": 2, "cpus_per_task": 3, "mem": "2G", "time": "01:30:00", "n": [1, 2], "sbatch": "--nice=7 --exclude=cpu-1"}'
    by_hand=$(submit --hold)
    mkdir logs
    key=0123456789abcdef0123456789abcdef
    jq -c --arg dir "$run_dir" --arg log "$T/logs/hg-$key.out" --arg key $key \
        '{id: 1, op: "submit", job: (.batches[0].job + {script: ($dir + "/batches/1.sh"), work_dir: $dir, output: $log, array: "0-1", key: $key, args: []} | .extra += ["--hold"])}' \
        "$run_dir/plan.json" >request
    by_agent=$("$AGENT" <request | jq .ok.job_id)
    fields() {
        scontrol -o show job "$1" | head -1 | tr ' ' '\n' |
            grep -E '^(Partition|Nice|Requeue|TimeLimit|NumNodes|NumCPUs|NumTasks|CPUs/Task|TRES|NtasksPerN.*|MinCPUsNode|MinMemoryNode|Features|Licenses|ExcNodeList|Command|WorkDir|TresPerNode|ArrayTaskId|OverSubscribe)='
    }
    fields "$by_hand" >hand
    fields "$by_agent" >agent
    scancel "$by_hand" "$by_agent"
    [ "$(wc -l <hand)" -gt 12 ]
    diff hand agent
}
