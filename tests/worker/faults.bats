#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Ranks that die, stop or fall behind: all others end, and the result says which, where, in which collective, at which step.

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
