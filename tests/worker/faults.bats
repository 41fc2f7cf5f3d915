#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranks that die, stop or fall behind: all others end, and the result says which, where, in which collective, at which step.

load ../await

setup() {
    worker="$HPCGRID_BUILD/worker/hpcgrid-worker"
    cd "$BATS_TEST_TMPDIR"
    unset HPCGRID_DATA HPCGRID_CELL HPCGRID_RESULT RANK WORLD_SIZE SLURM_STEP_NUM_TASKS
}

@test "five faults at random steps, each named in the result, nothing left behind" {
    run "$HPCGRID_SOURCE/tests/worker/faults" 5 1
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *kill:*stop:* || "$output" == *stop:*kill:* ]]
    [[ "$output" == *slow:* ]]
}

@test "a wrong HPCGRID_FAULT is refused" {
    echo '{"strategy": "ddp", "steps": 1}' >c.json
    HPCGRID_FAULT=burn OMPI_MCA_btl=self,vader run mpirun --oversubscribe --allow-run-as-root -n 2 "$worker" train --config c.json
    [ "$status" -eq 2 ]
    [[ "$output" == *'HPCGRID_FAULT is "burn", not kill, stop or slow:RANK:STEP:CALL[:SECONDS]'* ]]
}

@test "a signal to one of several ranks stops all at one step, with a checkpoint" {
    export HPCGRID_LOG=warn OMP_NUM_THREADS=1 OMPI_MCA_btl=self,vader OMPI_MCA_mpi_yield_when_idle=1
    printf '#!/bin/sh\necho $$ >pid.$OMPI_COMM_WORLD_RANK\nexec "$@"\n' >rank.sh
    chmod +x rank.sh
    echo '{"strategy": "ddp", "epochs": 100000, "eval": false, "batch_size": 16, "checkpoint": "c.safetensors", "checkpoint_every": 20}' >c.json
    mpirun --oversubscribe --allow-run-as-root -n 2 ./rank.sh "$worker" train --config c.json --result r.json >log 2>&1 &
    await test -s c.safetensors # ranks ask each other about twice a second by now
    kill -USR1 "$(<pid.1)"
    status=0
    wait $! || status=$?
    [ "$status" -eq 75 ]
    [[ "$(jq -r .error.message r.json)" == "stopped by a signal after step "*", with a checkpoint in c.safetensors" ]]
}
