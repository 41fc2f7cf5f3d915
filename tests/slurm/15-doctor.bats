#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid doctor: one clear line for what is there and for what is not.

load box

setup_file() {
    box_lacks >/dev/null && return 0
    box_up cpu:2x0,a100:1x2 MessageTimeout=3
}

teardown_file() {
    box_down
}

setup() {
    box_setup
}

# line WHAT: "STATE FOUND | AFFECTS | NEXT" of one finding
line() {
    "$HPCGRID" doctor --json | jq -r --arg what "$1" '.findings[] | select(.what == $what) | "\(.state) \(.found) | \(.affects) | \(.next)"'
}

@test "on a box everything that concerns Slurm is fine" {
    [ "$(line slurm.conf)" = "ok $SLURM_CONF |  | " ]
    [[ "$(line slurmctld)" == "ok "*", cluster box; arrays up to 100001 tasks, 200000 jobs, accounting no |  | " ]]
    [ "$(line partitions)" = "ok box* (3 nodes), cpu (2 nodes), a100 (1 node) |  | " ]
    [ "$(line nodes)" = "ok 3, 0 of them down or drained |  | " ]
    [ "$(line srun)" = "ok can start MPI programs through PMIx |  | " ]
    [[ "$(line agent)" == "ok hpcgrid-slurm "*", libslurm "* ]]
}

@test "the text has a line for each finding, and the exit code says whether jobs can run" {
    run "$HPCGRID" doctor
    [ "$status" -eq 0 ]
    for what in machine hpcgrid files transport agent slurm.conf slurmctld partitions nodes srun box worker mpi gpu disk; do
        grep -qE "^(ok|warning|missing) +$what " <<<"$output"
    done
}

# A site that is drafted from the cluster is one that works.
@test "a site is drafted from the cluster, through both agents, and its cells run" {
    "$HPCGRID" doctor --site lab >lab.json 2>talk
    grep -q "^ok  *partitions" talk
    jq -c 'del(._note, ._limits)' lab.json >got
    jq -c '.hardware |= map_values(del(.cores_per_node, .cpus_per_gpu, .mem_per_gpu, .device_mem))' got | diff - <(
        echo '{"name":"lab","launcher":"srun --mpi=pmix","default":"cpu","hardware":{"cpu":{"partition":"cpu","max_nodes":2,"gpus_per_node":0},"a100":{"partition":"a100","gres":"gpu:a100","max_nodes":1,"gpus_per_node":2}}}')
    HPCGRID_TRANSPORT=cli "$HPCGRID" doctor --site lab 2>/dev/null | diff lab.json -
    echo '{ "hpcgrid": 1, "name": "one", "site": "./lab.json", "axes": { "hardware": ["a100"] },
        "workload": { "command": ["printenv", "SLURM_JOB_PARTITION"], "gpus_per_node": 2, "time": "5m" } }' >m.json
    "$HPCGRID" check m.json
    "$HPCGRID" run m.json >log 2>&1
    [ "$("$HPCGRID" report one --format csv | grep -c ',ok,')" -eq 1 ]
}

@test "a site can be drafted only where a cluster answers" {
    run env SLURM_CONF=/nonexistent "$HPCGRID" doctor --site lumy
    [ "$status" -eq 4 ]
    grep -F 'error: site lumy is not known, and none can be drafted: no cluster answers here' <<<"$output"
    grep -F 'did you mean "lumi"?' <<<"$output"
}

@test "munge down: one line, soon" {
    kill -KILL "$(box_pid munged)"
    SECONDS=0
    got=$(line munge)
    waited=$SECONDS
    box_heal
    [ "$got" = "missing munge does not answer at $BOX_DIR/munge/sock: Connection refused | no jobs can be sent to this cluster | is munged running?" ]
    [ $waited -lt 45 ]
}

@test "slurmctld down: one line, soon" {
    kill -KILL "$(box_pid slurmctld)"
    SECONDS=0
    got=$(line slurmctld)
    waited=$SECONDS
    box_heal
    [[ "$got" == "missing cannot read the configuration: "*" | no jobs can be sent to this cluster | is slurmctld running? (\`scontrol ping\`)" ]]
    [ $waited -lt 45 ]
}

@test "slurmctld frozen: one line, soon" {
    pid=$(box_pid slurmctld)
    kill -STOP "$pid"
    SECONDS=0
    got=$(line slurmctld)
    waited=$SECONDS
    kill -CONT "$pid"
    [[ "$got" == "missing cannot read the configuration: slurmctld did not answer"* ]]
    [ $waited -lt 45 ]
}

@test "no slurm.conf: one line, and the way to a box" {
    SLURM_CONF=/nonexistent/slurm.conf
    [ "$(line slurm.conf)" = "missing SLURM_CONF names /nonexistent/slurm.conf: No such file or directory | no jobs can be sent to a cluster | export SLURM_CONF=PATH, or start a private Slurm: hpcgrid box up" ]
}

@test "an agent that cannot work is reported" {
    export HPCGRID_SLURM_AGENT=/bin/false
    [[ "$(line agent)" == "missing /bin/false does not work: "*" | no jobs can be sent to Slurm | run it by hand;"* ]]
}

@test "nodes that are drained are counted, and jobs would wait for ever" {
    for node in cpu-1 cpu-2 a100-1; do scontrol update nodename=$node state=drain reason="fan is loud"; done
    got=$(line nodes)
    for node in cpu-1 cpu-2 a100-1; do scontrol update nodename=$node state=resume; done
    [ "$got" = "missing 3, 3 of them down or drained: fan is loud | jobs never start | \`sinfo -R\` says why" ]
}

@test "through Slurm's commands, where they are asked for" {
    export HPCGRID_TRANSPORT=cli
    [[ "$(line transport)" == "ok cli (sbatch and squeue), chosen by HPCGRID_TRANSPORT; slurm also works"* ]]
    [[ "$(line agent)" == "ok hpcgrid-sbatch "* ]]
    [[ "$(line slurmctld)" == "ok "*", cluster box; arrays up to 100001 tasks, 200000 jobs, accounting no |  | " ]]
    PATH=/nonexistent run "$HPCGRID" doctor
    [[ "$output" == *"missing  transport   cli (sbatch and squeue), chosen by HPCGRID_TRANSPORT, does not work here: sbatch is not in PATH"* ]]
}
