#!/usr/bin/env bats
# Every figure of a report as scipy computes it.

bats_require_minimum_version 1.5.0

@test "tables, laws and comparisons are those that scipy computes" {
    cd "$BATS_TEST_TMPDIR"
    "$HPCGRID_PEERS/bin/python" "$HPCGRID_SOURCE/tests/peers/figures.py" "$HPCGRID_BUILD/orchestrator/hpcgrid"
}
