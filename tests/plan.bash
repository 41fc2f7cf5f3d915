# SPDX-License-Identifier: Apache-2.0
# Helper for bats files that write a plan by hand: load ../plan.

# index_cells RUN: batches/N.cells.idx for every batches/N.cells.jsonl of a run's folder, as hpcgrid writes it
index_cells() {
    local cells
    for cells in "$1"/batches/*.cells.jsonl; do
        LC_ALL=C awk '{ printf "%015d\n", at; at += length($0) + 1 } END { printf "%015d\n", at }' "$cells" >"${cells%jsonl}idx"
    done
}
