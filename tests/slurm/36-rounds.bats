#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A round of faults that make Slurm start a task twice or end one of its own accord: no cell is at work twice at once, every
# one comes home, and journal, status and report agree. `tests/slurm/rounds` has more kinds, and as many rounds as wanted.

bats_require_minimum_version 1.5.0
load box

setup() { box_setup; }

# play KIND ROUNDS SEED: the table and, of rounds that went wrong, their lines stand in the output
play() {
    run --separate-stderr "$BATS_TEST_DIRNAME/rounds" "$@"
    echo "$output"
    echo "$stderr"
    [ "$status" = 0 ]
    [ "$(grep -c '"wrong":false' <<<"$output")" = "$2" ]
}

# Slurm may take five minutes to notice that a launch got lost; the round waits for it.
@test "the controller killed behind a wave of cells, without retry" {
    local seed twice=0
    # a round in which Slurm started nothing twice says nothing: the fault missed the wave
    for seed in 21 22 23 24 25 26; do
        ROUNDS_RETRY=no play controller 1 $seed
        twice=$(jq -s 'map(select(.kind) | .started_twice) | add' <<<"$(grep '^{' <<<"$output")")
        [ "$twice" = 0 ] || break
    done
    [ "$twice" -gt 0 ]
}

@test "jobs preempted by CANCEL come home by retry.PREEMPTED" {
    play preempt-cancel 1 31
    [ "$(jq '.terms' <<<"$(grep '^{' <<<"$output")")" -gt 0 ]
}
