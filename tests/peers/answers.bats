#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid-worker's answers are those that PyTorch's model and run_qa's post-processing give from the same weights.

@test "answers after a training are those of transformers" {
    samples=$HPCGRID_SOURCE/worker/samples
    export HPCGRID_LOG=warn OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
    cd "$BATS_TEST_TMPDIR"
    echo '{"model": "bert-tiny", "dataset": "squad-slice", "epochs": 2, "lr": 1e-3, "padding": "max_length", "batch_size": 8, "checkpoint": "a.safetensors", "predictions": "p.json"}' >c.json
    "$HPCGRID_BUILD/worker/hpcgrid-worker" train --config c.json --result r.json
    "$HPCGRID_PEERS/bin/python" "$HPCGRID_SOURCE/tests/worker/squad/answers.py" c.json a.safetensors "$samples/vocab/bert-base-uncased-vocab.txt" \
        "$samples/squad/dev-v1.1-slice.json" p.json >answers.json
    jq -c '[.questions, .differ]' answers.json | diff - <(echo '[89,0]')
}
