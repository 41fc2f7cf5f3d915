#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# plan --forecast, status and "time": "auto", from runs whose results have known times.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    cd "$BATS_TEST_TMPDIR" || return 1
    unset "${!SLURM_@}" HPCGRID_REPORTS
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "m", "limits": {"running": 2},
 "site": {"launcher": "srun", "hardware": {"cpu": {"partition": "cpu", "gpus_per_node": 0, "max_time": "2h"}}},
 "workload": {"command": ["true"], "cpus_per_task": 1, "time": "auto"}, "axes": {"epochs": [1, 2, 4, 8]}, "repeats": 3}
END
}

# measured RUN JQ: a run of m.json without a journal, as sbatch by hand leaves it. Its cells took the seconds that jq makes of each.
measured() {
    local run=reports/m/$1 file
    "$hpcgrid" plan m.json --out "$run" >/dev/null 2>&1
    for file in "$run"/batches/*.cells.jsonl; do
        jq -r --arg key "$(jq -r .run_key "$run/plan.json")" --arg batch "$(basename "$file" .cells.jsonl)" \
            '.cell as $c | "'"$run"'/cells/\($batch)-000/\(.id).0.0\t" + ({schema: "hpcgrid-result/2", run_key: $key, id, attempt: "0.0",
            status: "ok", cell, wall_s: ($c | '"$2"')} | tojson | .[:-1])' "$file"
    done | perl -lne 'my ($folder, $text) = split /\t/; my $crc = 0xffffffff;
        for (unpack "C*", $text) { $crc ^= $_; $crc = $crc & 1 ? $crc >> 1 ^ 0x82f63b78 : $crc >> 1 for 1..8 }
        system "mkdir", "-p", $folder; open my $out, ">", "$folder/result.json";
        printf $out "%s,\"crc\":\"%08x\"}\n", $text, $crc ^ 0xffffffff'
}

plan() { "$hpcgrid" plan m.json --forecast "$@"; }

@test "without a measured run a limit is a bound, and no limit is no forecast" {
    run plan
    [ "$status" = 0 ]
    echo "$output"
    [ "$(tail -n 5 <<<"$output")" = 'at most      0 device-hours, and 12 cells without a time limit
"auto" limits: 12 cells without a measured run, with the partition'"'"'s default limit; after TIMEOUT twice as long, at most 2 times
forecast     device-hours not known
             12 cells without a measured run and without a time limit
duration     not known, 2 at a time (limits.running)' ]
    jq '.workload.time = "1h"' m.json >n.json && mv n.json m.json
    [ "$(plan | tail -n 3)" = 'forecast     at most 12 device-hours by time limits
             12 cells by the time limit, at most
duration     at most 6h 00m, 2 at a time (limits.running)' ]
    [ "$(plan --json | jq -c .forecast)" = '{"seconds":{"at_most":21600},"device_hours_by_limits":12,"at_a_time":2,"gap_s":0,"cells":{"limit":12},"runs":""}' ]
}

@test "cells are forecast by their own runs, and others by regression" {
    measured 001 '100 * .epochs * (1 + .repeat / 100)'
    plan --json >out
    jq -e '.forecast | .runs == "001" and .cells == {"measured": 12} and .at_a_time == 2
        and (.device_hours | .low < 1.275 and .high > 1.275 and .low > 1.1 and .high < 1.5)
        and (.seconds | .value > 2200 and .value < 3200)' out
    # of adaptive repeats the first round
    jq '.repeats = {min: 3, max: 9, until: "1%"}' m.json >n.json && "$hpcgrid" plan n.json --forecast --json >out
    [ "$(jq -c .forecast.cells out)" = '{"measured":12}' ]
    # epochs 3 and 16 lie between, and not too far from, what was measured; 64 does not
    jq '.axes.epochs = [3, 16, 64] | .repeats = 1' m.json >n.json && mv n.json m.json
    plan --json >out
    jq -e '.forecast.cells == {"regression": 2, "unknown": 1}
        and (.forecast.device_hours | .low < 0.538 and .high > 0.538 and .high < 0.7)' out
    [[ "$(plan)" == *'2 cells by regression over epochs, 1 cell without a measured run and without a time limit (run 001)'* ]]
}

@test "an automatic limit is the forecast's upper end, at least 5 minutes, at most what the hardware allows" {
    measured 001 '(if .epochs == 1 then 20 elif .epochs == 2 then 1700 else 1000 * .epochs end) * (1 + .repeat / 100)'
    "$hpcgrid" plan m.json --json >out
    # 20 s: 5 min; 1734 s: 45 min, as 30 min are too short for more than one in a thousand; 4080 s: 1.5 h; 8160 s: beyond max_time
    [ "$(jq -c '[.batches[] | [.cells, .job.time_s]]' out)" = '[[3,300],[3,2700],[3,5400],[3,7200]]' ]
    run "$hpcgrid" check m.json
    [ "$status" = 0 ]
    [ "${lines[1]}" = '"auto" limits: 12 cells as runs of the same configuration took (run 001), so that 999 of 1000 end in time, at least 5 min; 3 of them may need longer than max_time of their hardware; after TIMEOUT twice as long, at most 2 times' ]
    run "$hpcgrid" explain m.json epochs=4,repeat=1
    [ "${lines[-1]}" = '  time limit     01:30:00, as runs of the same configuration took (run 001)' ]
    # it is no part of what a cell is
    [ "$("$hpcgrid" expand m.json --ids | sort)" = "$(jq '.workload.time = "1h"' m.json >n.json && "$hpcgrid" expand n.json --ids | sort)" ]
}

@test "a job of several cells gets the sum of their forecasts' upper ends, at least 5 minutes once" {
    measured 001 '80 * .epochs * (1 + .repeat / 1000)'
    limits() { "$hpcgrid" plan x.json --json | jq -c '[.batches[] | [.cells, .jobs, .job.time_s]]'; }
    # the upper ends are 98, 194, 389 and 777 s, 1458 s in all: 30 min
    jq '.together = ["epochs"]' m.json >x.json
    [ "$(limits)" = '[[12,3,1800]]' ]
    run "$hpcgrid" explain x.json epochs=4,repeat=1
    [ "${lines[-1]}" = "  time limit     00:06:29 of its job's, as runs of the same configuration took (run 001)" ]
    run "$hpcgrid" check x.json
    [[ "$output" == *'12 cells as runs of the same configuration took (run 001), so that 999 of 1000 end in time, at least 5 min a job; after'* ]]
    # twice 98 s, and once: the floor; three times 777 s: 45 min, at most what the hardware allows
    jq '.together = 2 | .axes.epochs = 1' m.json >x.json
    [ "$(limits)" = '[[2,1,300],[1,1,300]]' ]
    jq '.together = ["repeat"] | .axes.epochs = 8' m.json >x.json
    [ "$(limits)" = '[[3,1,2700]]' ]
    jq '.site.hardware.cpu.max_time = "40m"' x.json >y.json && mv y.json x.json
    [ "$(limits)" = '[[3,1,2400]]' ]
    # 389 s, and one with a limit of its own; one of which nothing is known leaves the job the partition's default
    jq '.together = ["epochs"] | .axes.epochs = [4, 16] | .repeats = 1 | .derive = {time: "if .epochs == 16 then 300 else \"auto\" end"} | del(.workload.time)' m.json >x.json
    [ "$(limits)" = '[[2,1,900]]' ]
    jq '.axes.epochs = [4, 64] | .derive = {time: "\"auto\""}' x.json >y.json && mv y.json x.json
    [ "$(limits)" = '[[2,1,null]]' ]
}

@test "cells of a shared job have their part of its limit" {
    jq '.workload.time = "10m" | .together = ["epochs"]' m.json >x.json
    [ "$("$hpcgrid" plan x.json --forecast --json | jq -c '[.device_hours, .forecast.device_hours_by_limits, .forecast.seconds.at_most]')" = '[2,2,3600]' ]
    "$hpcgrid" plan x.json --out reports/m/001 >/dev/null
    "$hpcgrid" status m --no-poll --json | jq -se 'map(.left | [.device_hours_by_limits, .seconds.at_most] == [2, 3600]) == [true]'
}

@test "earlier results are read once, for limits and forecast" {
    strace -f -o /dev/null true 2>/dev/null || skip "strace may not trace here"
    measured 001 '100 * .epochs'
    for time in '"auto"' 3600; do
        jq ".workload.time = $time" m.json >x.json
        strace -f -qq -e trace=openat -o trace "$hpcgrid" plan x.json --forecast >out
        grep -F '12 cells as runs of the same configuration took (run 001)' out
        [ "$(grep -c 'result\.json"' trace)" = 12 ]
    done
}

@test "a rehearsal and a damaged run tell nothing" {
    measured 001 '10 * .epochs'
    jq '.site.rehearsal = {}' reports/m/001/plan.json >p && cp p reports/m/001/plan.json
    [ "$(plan --json | jq -r .forecast.runs)" = "" ]
    jq 'del(.site.rehearsal)' p >reports/m/001/plan.json
    [ "$(plan --json | jq -r .forecast.runs)" = 001 ]
    for file in reports/m/001/cells/*/*/result.json; do sed -i 's/"wall_s":/"wall_s":1/' "$file"; done
    [ "$(plan --json | jq -r .forecast.runs)" = "" ]
    echo '{' >reports/m/001/plan.json
    [ "$(plan --json | jq -r .forecast.runs)" = "" ]
}

@test "status shows what is left of a run" {
    measured 001 '100 * .epochs * (1 + .repeat / 100)'
    measured 002 '9000' # no journal says that they are good, and they are not of an earlier run
    run "$hpcgrid" status m --no-poll
    [ "$status" = 0 ]
    echo "$output"
    [[ "$output" == *$'\n  left: 42m '*' ('*'), 2 at a time (limits.running): 12 cells as runs of the same configuration took'* ]]
    [[ "$output" == *' device-hours ('*' to '*')'* ]]
    "$hpcgrid" status m --no-poll --json >out
    jq -e '.left | .at_a_time == 2 and (.device_hours.low < 1.275 and .device_hours.high > 1.275)' out
}
