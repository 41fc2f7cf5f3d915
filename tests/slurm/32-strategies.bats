#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Strategies on virtual nodes of a real Slurm, and ranks of a job that die or stop there.

bats_require_minimum_version 1.5.0
load box

setup_file() {
    box_lacks >/dev/null && return 0
    box_up cpu:2x0
}

teardown_file() {
    box_down
}

setup() {
    box_setup
}

@test "every strategy trains on two nodes, sends and holds what its definition says, and they agree to the bit" {
    run --separate-stderr "$HPCGRID" run "$HPCGRID_SOURCE/matrices/strategies-tiny.json"
    echo "$stderr"
    echo "$output"
    [ "$status" = 0 ]
    jq -s '.' reports/strategies-tiny/001/cells/*/*/result.json >all.json
    jq -c '.[] | [.cell.strategy, .cell.nodes, .status, .final_loss]' all.json
    jq -e 'length == 12 and all(.[]; .status == "ok")' all.json
    jq -e 'all(.[]; all(.comm[]; .ring_bytes == .expected_bytes and .calls == .expected_calls))' all.json
    jq -e 'all(.[]; .memory == .memory_expected)' all.json
    # two devices: the same batches, and sums in the order of the ranks
    jq -e '[.[] | select(.cell.strategy != "single") | .final_loss] | length == 11 and (unique | length) == 1' all.json
}

@test "a training between nodes that is far slower than the site's network has a note" {
    for gbit_s in 1 1000000; do
        jq -n --argjson gbit_s $gbit_s '{hpcgrid: 1, name: "net", site: {extends: "box", hardware: {cpu: {network_gbit_s: $gbit_s}}},
            workload: {program: "hpcgrid-worker", model: "bert-tiny", dataset: "squad-slice", strategy: "ddp", nodes: 2, tasks_per_node: 1, cpus_per_task: 1,
                samples: 16, steps: 1, eval: false, time: "10m"}}' >net.json
        "$HPCGRID" run --new net.json >table
        grep -q 'its network was slow: [a-z_]* at .* Gbit/s, a node has 1e+06: another interface?' <(tr -s '\n ' ' ' <table) && noted=1 || noted=0
        [ "$noted" = $((gbit_s > 1)) ]
    done
}

# fault WHAT: a cell on two nodes whose rank 1 has it in step 5; its result in r.json
fault() {
    jq -n --arg fault "$1:1:5:2" --arg name "fault-$1" '{hpcgrid: 1, name: $name, site: "box",
        workload: {program: "hpcgrid-worker", dataset: "mnist-slice", strategy: "ddp", nodes: 2, tasks_per_node: 1,
            cpus_per_task: 1, epochs: 10000, comm_timeout: 5, time: "10m", env: {HPCGRID_FAULT: $fault}}}' >"$1.json"
    run --separate-stderr "$HPCGRID" run "$1.json"
    echo "$stderr"
    [ "$status" = 1 ]
    cp "reports/fault-$1/001/cells"/*/*.1.0/result.json r.json
    jq -c '{status, error}' r.json
    # a rank may have gone on from a collective in which the other still waits for what it sent
    jq -e --arg host "$(hostname)" '.status == "failed" and .error.rank == 1 and .error.host == $host
        and (.error.step == 5 or .error.step == 4) and .error.collective == "all_reduce" and .error.missing[0].rank == 1' r.json
    jq -e '(.ranks | map(.rank)) == [0, 1] and (.ranks | map(.node)) == ["cpu-1", "cpu-2"]' r.json
}

@test "a killed rank of a job on two nodes is named in the result, with its collective and step" {
    fault kill
    jq -e '.error.missing[0].how == "gone" and (.error.message | contains("is gone, waited for in all_reduce"))' r.json
}

@test "a stopped rank of a job on two nodes ends the job after comm_timeout, and nothing is left of it" {
    fault stop
    jq -e '.error.missing[0].how == "silent" and (.error.message | contains("within 5 s; it no longer answers"))' r.json
    pid=$(jq '.error.missing[0].pid' r.json)
    box_wait 100 eval '[ ! -e "/proc/$pid" ]'
    box_wait 100 box_idle
}
