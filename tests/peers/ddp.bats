#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The numbers that tests/worker/ddp.c follows are still what PyTorch's DistributedDataParallel gives over gloo.

@test "PyTorch's DDP gives the losses and buckets of the golden file" {
    PYTHONDONTWRITEBYTECODE=1 "$HPCGRID_PEERS/bin/python" "$HPCGRID_SOURCE/tests/worker/golden_ddp.py" print >"$BATS_TEST_TMPDIR/now.json"
    jq -ne --slurpfile a "$BATS_TEST_TMPDIR/now.json" --slurpfile b "$HPCGRID_SOURCE/tests/worker/golden_ddp.json" '
        def bytes: [.cases[] | {world, cap_mib, first_bytes, rebuilt_bytes}];
        ($a[0] | bytes) == ($b[0] | bytes) and
        ([[$a[0].cases[].losses[]], [$b[0].cases[].losses[]]] | transpose | length == 36 and all((.[0] - .[1] | fabs) < 1e-12))'
}
