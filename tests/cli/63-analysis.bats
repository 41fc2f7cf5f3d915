#!/usr/bin/env bats
# hpcgrid report: what it makes of the figures: strong and weak scaling, laws, predictions, the best strategy, costs, --strict.
# The expected numbers were computed by hand or by numpy.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    labs="$HPCGRID_SOURCE/reports/reference"
    cd "$BATS_TEST_TMPDIR"
}

# of JQ [MEMBERS]: a result set whose results this expression gives
of() {
    jq -n "{schema: \"hpcgrid-results/1\", name: \"x\", baseline: {nodes: 1}} + ${2:-{\}} + {results: [$1]}" >set.json
}

report() {
    "$hpcgrid" report set.json --format json "$@"
}

# near JQ WANTED [RELATIVE]: the number is the wanted one to nine digits
near() {
    jq -se ".[0] | ($1) as \$v | ((\$v - ($2)) | fabs) <= ${3:-1e-9} * (($2) | fabs)" >/dev/null
}

@test "work in proportion to the devices is weak scaling, and its speedup is scaled" {
    of '(1, 2, 4, 8) as $n | {cell: {nodes: $n, problem_size: ($n * 1000)}, train_s: ([100, 104, 108, 112][($n | log2)])}' \
        '{baseline: {nodes: 1, problem_size: 1000}, report: {rows: ["nodes"]}}'
    report >out.json
    jq -se '.[0] | [.tables[0].points[] | .scaling] == [null, "weak", "weak", "weak"]' out.json
    near '.tables[0].points[3].speedup' '8 * 100 / 112' <out.json
    near '.tables[0].points[3].efficiency' '100 / 112' <out.json
    jq -se '.[0] | .tables[0].points[3] | has("serial_fraction") | not' out.json
    jq -se '.[0] | .tables[0].points[3].notes == ["weak scaling: the work grows with the devices, the speedup is work x T_base/T"]' out.json
    jq -se '.[0] | .tables[0].scaling[0] | .kind == "weak" and has("gustafson") and (has("amdahl") or has("usl") | not)' out.json
    jq -se '.[0] | .tables[0].scaling[0].predicted | .law == "Gustafson" and .devices == 16' out.json
    "$hpcgrid" report set.json | grep -q '; weak scaling$'
}

@test "the kind of scaling is read from the samples that were trained" {
    of '(1, 2, 4, 8) as $n | {cell: {nodes: $n}, train_s: (100 / $n), samples_per_s: ($n * 10)}'
    report | jq -se '.[0] | .tables[0].scaling[0] | .kind == "strong" and .amdahl.serial_fraction == 0'
    of '(1, 2, 4, 8) as $n | {cell: {nodes: $n}, train_s: 100, samples_per_s: ($n * 10)}'
    report | jq -se '.[0] | (.tables[0].scaling[0].kind == "weak") and ([.tables[0].points[].efficiency] == [1, 1, 1, 1])'
    of '(1, 2, 4, 8) as $n | {cell: {nodes: $n}, train_s: 100, samples_per_s: ($n * $n)}'
    report | jq -se '.[0] | (.tables[0].scaling | length) == 0 and (.tables[0].points[1].notes[0] | startswith("work differs from that of its baseline: 4"))'
    of '(1, 2, 4, 8) as $n | {cell: {nodes: $n}, train_s: (100 / $n)}'
    report | jq -se '.[0] | .tables[0].scaling[0].kind == "not known"'
}

@test "the work of a cell is the product of the keys that are named" {
    of '([1, 1], [2, 1], [2, 2], [4, 2]) as [$x, $y] | {cell: {nodes: ($x * $y), nx: $x, ny: $y, epochs: ($x + 1)}, train_s: 100}' \
        '{baseline: {nodes: 1, nx: 1, ny: 1, epochs: 2}, report: {rows: ["nodes"], columns: [], work: ["nx", "ny"]}}'
    report | jq -se '.[0] | [.tables[].points[].scaling] == [null, "weak", "weak", "weak"] and ([.tables[].points[].efficiency] == [1, 1, 1, 1])'
    report --work nx | jq -se '.[0] | [.tables[].points[].scaling] == [null, "weak", null, null]'
    run "$hpcgrid" report set.json --work nz
    [ "$status" -eq 3 ]
    [[ "$output" == *'--work: no cell has "nz"'*'did you mean "nx"?'* ]]
    jq '.report.work = ["nx", "n"]' set.json >bad.json
    run "$hpcgrid" report bad.json
    [ "$status" -eq 3 ]
    [[ "$output" == *'bad.json:'*'error: /report/work/1: no cell has "n"'* ]]
}

@test "curves of different work are no one curve where the work stays the same along them" {
    of '(1, 2) as $e | (1, 2, 4, 8) as $n | {cell: {nodes: $n, epochs: $e}, train_s: (100 * $e / ($n | if . == 1 then 1 else . - 0.1 * $e end))}' '{report: {rows: ["nodes", "epochs"], columns: []}}'
    report | jq -se '.[0] | [.tables[0].scaling[].label] == ["epochs=1", "epochs=2"] and all(.tables[0].scaling[]; .kind == "strong" and .points == 3)'
    "$hpcgrid" report set.json --plot speedup --format gp | grep -q 'epochs=2'
}

@test "steps of a constant length on growing batches are weak scaling; epochs are strong" {
    of '(1, 2, 4, 8) as $n | {cell: {nodes: $n, gpus_per_node: 1, batch_size: 8, steps: 100}, train_s: 50}'
    report | jq -se '.[0] | .tables[0].scaling[0].kind == "weak"'
    of '(1, 2, 4, 8) as $n | {cell: {nodes: $n, gpus_per_node: 1, batch_size: 8, epochs: 3}, train_s: (50 / $n)}'
    report | jq -se '.[0] | .tables[0].scaling[0].kind == "strong"'
    of '(1, 2, 4, 8) as $n | {cell: {nodes: $n, gpus_per_node: 1, batch_size: 8}, step_s: {median: 0.5}}'
    report --metric step_s.median | jq -se '.[0] | [.tables[0].points[].efficiency] == [1, 1, 1, 1]'
}

@test "fits have errors, a knee and a prediction with its interval" {
    of '([1, 1], [2, 1.9], [4, 3.4], [8, 5.6], [16, 7.9]) as [$n, $s] | {cell: {nodes: $n}, train_s: (100 / $s)}'
    report >out.json
    near '.tables[0].scaling[0].usl.contention' 0.05483875659176073 1e-7 <out.json
    near '.tables[0].scaling[0].usl.contention_error' 0.0017262770894716827 1e-6 <out.json
    near '.tables[0].scaling[0].usl.coherency_interval[1]' 0.001192020863447097 1e-6 <out.json
    near '.tables[0].scaling[0].predicted.speedup' '100 / (2.4039893308976272 | exp)' 1e-7 <out.json
    near '.tables[0].scaling[0].predicted.speedup_interval[0]' '100 / (2.4039893308976272 + 0.05694870343100449 | exp)' 1e-7 <out.json
    near '.tables[0].scaling[0].predicted.train_s' '2.4039893308976272 | exp' 1e-7 <out.json
    near '.tables[0].scaling[0].predicted.train_s_interval[0]' '2.4039893308976272 - 0.05694870343100449 | exp' 1e-7 <out.json
    jq -se '.[0] | .tables[0].scaling[0].usl.knee_devices_ratio | . > 11.377 and . < 11.379' out.json
    jq -se '.[0] | [.tables[0].listings[].name] == ["scaling", "laws", "predicted"]' out.json
    "$hpcgrid" report set.json | grep -qx 'predicted, not measured: twice the devices'
    "$hpcgrid" report set.json --plot speedup --format gp >out.gp
    grep -q 'hollow: predicted by USL' out.gp
    grep -q '^32 9.0356' out.gp
    "$hpcgrid" report set.json --format html | grep -q 'hollow: predicted by USL'
    # the same as rates, and as times of growing work
    of '([1, 1], [2, 1.9], [4, 3.4], [8, 5.6], [16, 7.9]) as [$n, $s] | {cell: {nodes: $n}, samples_per_s: (3 * $s)}'
    report >rate.json
    near '.tables[0].scaling[0].usl.contention' 0.05483875659176073 1e-7 <rate.json
    near '.tables[0].scaling[0].predicted.samples_per_s' '300 / (2.4039893308976272 | exp)' 1e-7 <rate.json
    of '([1, 100], [2, 104], [4, 108], [8, 112]) as [$n, $t] | {cell: {nodes: $n, problem_size: $n}, train_s: $t}' '{baseline: {nodes: 1, problem_size: 1}, report: {rows: ["nodes"]}}'
    report >weak.json
    jq -se '.[0] | .tables[0].scaling[0].predicted | (.speedup * .train_s / 1600 - 1 | fabs) < 1e-9' weak.json
}

# withheld LAW REASON: a law of the first series is withheld, and so is the prediction, in every form
withheld() {
    report >out.json
    jq -se --arg why "$2" ".[0].tables[0].scaling[0] | .withheld.$1 == \$why and (has(\"$1\") or has(\"predicted\") | not)" out.json
    "$hpcgrid" report set.json | tr -s '\n ' ' ' | grep -qF " ($2)"
    "$hpcgrid" report set.json --plot speedup --format gp >out.gp
    "$hpcgrid" report set.json --format html >out.html
    run grep "predicted by" out.gp out.html
    [ "$status" -eq 1 ]
}

@test "laws are not fitted to what the table says is something else, and no form shows what is withheld" {
    local times='([1, 100], [2, 53], [4, 29], [8, 18], [16, 12.7]) as [$n, $t]'
    of "$times"' | {cell: {nodes: $n}, train_s: (if $n == 8 then 12 else $t end)}'
    withheld usl "efficiency above 1"
    withheld amdahl "efficiency above 1"
    "$hpcgrid" report set.json | grep -qx 'no law: all (efficiency above 1)'
    of "$times"' | {cell: {nodes: $n}, train_s: $t, rehearsal: true}'
    withheld usl "a rehearsal"
    of "$times"' | {cell: {nodes: $n}, train_s: $t, suspended_s: (if $n == 1 then 5 else 0 end)}'
    withheld usl "its baseline has a footnote"
    of "$times"' | {cell: {nodes: $n}, train_s: (200 - $t)}'
    withheld usl "no gain from more devices"
    of "$times"' | {cell: {nodes: $n}, train_s: $t, env: {driver: (if $n > 4 then "570" else "560" end)}}'
    withheld amdahl "too few runs"
    jq -se '.[0] | .tables[0].scaling[0].withheld.usl == "fewer than four device counts, the baseline'"'"'s included"' out.json
    of "$times"' | select($n < 16) | {cell: {nodes: $n}, train_s: $t}'
    withheld usl "too few runs"
    jq -se '.[0] | .tables[0].scaling[0].amdahl.degrees_of_freedom == 2' out.json
}

@test "places with other hardware or a pause are left out of laws" {
    local times='([1, 100], [2, 53], [4, 29], [8, 18], [16, 12.7], [32, 10.5]) as [$n, $t] | '
    of "$times"' {cell: {nodes: $n}, train_s: $t}' '{report: {rows: ["nodes"]}}'
    "$hpcgrid" report set.json --format json --where 'nodes!=8' | jq -S '.tables[0].scaling[0].usl' >without
    of "$times"' {cell: {nodes: $n}, train_s: (if $n == 8 then 30 else $t end), suspended_s: (if $n == 8 then 12 else 0 end)}'
    report >out.json
    jq -se '.[0] | .tables[0].scaling[0] | .points == 5 and .law_points == 4 and .predicted.devices == 64' out.json
    jq -S '.tables[0].scaling[0].usl' out.json | diff without -
    "$hpcgrid" report set.json | grep -qx 'places with footnotes left out: all'
    of "$times"' {cell: {nodes: $n}, train_s: (if $n == 8 then 30 else $t end), env: {gpu: (if $n == 8 then "T4" else "A100" end)}}'
    report | jq -S '.tables[0].scaling[0].usl' | diff without -
}

@test "points that contradict a law beyond their runs are said to, and nothing is predicted" {
    of '([1, 100], [2, 60], [4, 28], [8, 19], [16, 12.7]) as [$n, $t] | range(1; 4) as $i | {cell: {nodes: $n, repeat: $i}, train_s: ($t + $i / 100)}'
    report >out.json
    jq -se '.[0] | .tables[0].scaling[0] | .usl.lack_of_fit and .usl.degrees_of_freedom == 2 and .withheld.predicted == "lack of fit" and (has("predicted") | not)' out.json
    "$hpcgrid" report set.json | tr -s '\n ' ' ' | grep -q 'no prediction: all (lack of fit)'
    "$hpcgrid" report set.json --plot speedup --format gp >out.gp
    run grep "predicted by" out.gp
    [ "$status" -eq 1 ]
}

@test "a prediction that says next to nothing is listed as such, and would only flatten a picture" {
    of '([1, 100], [2, 60], [4, 27], [8, 20], [16, 10.5]) as [$n, $t] | {cell: {nodes: $n}, train_s: $t}'
    report | jq -se '.[0] | .tables[0].scaling[0].predicted.speedup_interval | .[1] > 8 * .[0]'
    "$hpcgrid" report set.json | grep -qx 'predicted, not measured: twice the devices'
    "$hpcgrid" report set.json --plot speedup --format gp >out.gp
    grep -q 'intervals too wide' out.gp
    run grep "predicted by" out.gp
    [ "$status" -eq 1 ]
}

@test "the best strategy is named, and those that cannot be told from it" {
    of '(["ddp", [10, 10.2, 10.1]], ["fsdp", [10.1, 10.4, 9.9]], ["zero", [13, 13.1, 12.9]]) as [$s, $t] | range(3) as $i
        | {cell: {nodes: 2, strategy: $s, repeat: ($i + 1)}, train_s: $t[$i]}' '{baseline: null}'
    report | jq -se '.[0] | .tables[0].listings[0] | .name == "best" and .rows[0].best == "ddp" and .rows[0].verdict == "not distinguishable" and .rows[0].next == "fsdp"'
    report --where strategy!=fsdp | jq -se '.[0] | .tables[0].listings[0].rows[0] | .best == "ddp" and .next == "zero" and .verdict == "clear" and (.times_better - pow(13 * 13.1 * 12.9 / (10 * 10.2 * 10.1); 1 / 3) | fabs) < 1e-12'
    of '{cell: {nodes: 1, strategy: "a"}, train_s: 3}, {cell: {nodes: 1, strategy: "b"}, train_s: 2}, {cell: {nodes: 2, strategy: "b"}, train_s: 1}' '{baseline: null}'
    report | jq -se '.[0] | .tables[0].listings[0]| (.rows == [{nodes: 1, best: "b", value: 2, next: "a", times_better: 1.5}]) and (.notes[0] | startswith("unsure, with fewer than 3 runs"))'
    report --metric train_s --better higher | jq -se '.[0] | .tables[0].listings[0].rows[0].best == "a"'
}

@test "a strategy that computed something else is not said to be better" {
    of '{cell: {nodes: 1, strategy: "a"}, train_s: 3, comparable: {precision: "fp32"}}, {cell: {nodes: 1, strategy: "b"}, train_s: 2, comparable: {precision: "bf16"}}' '{baseline: null}'
    report | jq -se '.[0] | .tables[0].listings[0].rows[0].verdict | endswith("not comparable: a")'
}

@test "which way is good is known of a metric, or said" {
    of '{cell: {strategy: "a"}, eval: {accuracy: 0.9, loss: 2}, score: 1}, {cell: {strategy: "b"}, eval: {accuracy: 0.8, loss: 1}, score: 2}' '{baseline: null, report: {columns: ["strategy"]}}'
    report --metric eval.accuracy | jq -se '.[0] | .better == "higher" and .kind == "other" and .tables[0].listings[0].rows[0].best == "a"'
    report --metric eval.loss | jq -se '.[0] | .better == "lower" and .tables[0].listings[0].rows[0].best == "b"'
    report --metric score | jq -se '.[0] | (has("better") | not) and .tables[0].listings == []'
}

@test "what is not like its baseline is refused by --strict, and the exit code says so" {
    of '{cell: {nodes: 1}, train_s: 4, comparable: {precision: "fp32"}}, {cell: {nodes: 2}, train_s: 1, comparable: {precision: "tf32"}}, {cell: {nodes: 4}, train_s: 1, comparable: {precision: "fp32"}}'
    report | jq -se '.[0] | .refused == 0 and .tables[0].points[1].speedup == 4'
    run --separate-stderr "$hpcgrid" report set.json --format json --strict
    [ "$status" -eq 1 ]
    jq -se '.[0] | .refused == 1 and (.tables[0].points[1] | .value == 1 and .refused and (has("speedup") or has("efficiency") | not))' <<<"$output"
    jq -se '.[0] | .tables[0].points[1].notes[0] == "refused (strict): differs from its baseline: precision tf32 (baseline fp32)"' <<<"$output"
    jq -se '.[0] | .tables[0].points[2].speedup == 4' <<<"$output"
    run "$hpcgrid" report set.json --strict
    [[ "${lines[2]}" == *"; 1 place refused: not comparable" ]]
}

@test "other drivers, clocks and nodes are footnotes" {
    of '{cell: {nodes: 1}, train_s: 4, env: {driver: "560", gpu_clock_mhz: 1410, PATH: "/a"}, ranks: [{device: "A100-40GB"}]},
        {cell: {nodes: 2}, train_s: 2, env: {driver: "570", gpu_clock_mhz: 1400, PATH: "/b"}, ranks: [{device: "A100-80GB"}]},
        {cell: {nodes: 4}, train_s: 1, env: {driver: "560", gpu_clock_mhz: 1200}}'
    report >out.json
    jq -se '.[0] | .tables[0].points[1].notes == ["ran on other nodes or software: driver 570 (baseline 560)", "ran on other nodes or software: device A100-80GB (baseline A100-40GB)"]' out.json
    jq -se '.[0] | .tables[0].points[2].notes == ["ran on other nodes or software: gpu_clock_mhz 1200 (baseline 1410)"]' out.json
    of '("a100", "t4") as $h | (1, 2, 4) as $n | {cell: {hardware: $h, nodes: $n}, train_s: 4, env: {driver: (if $n == 4 then "570" else $h end)}}' '{baseline: null, report: {rows: ["nodes"], columns: ["hardware"]}}'
    report | jq -se '.[0] | [.tables[0].points[] | .notes // [] | .[]] == ["ran on other nodes or software: driver 570 (first place a100)", "ran on other nodes or software: driver 570 (first place t4)"]'
    of '{cell: {nodes: 1, repeat: 1}, train_s: 4, env: {driver: "560"}}, {cell: {nodes: 1, repeat: 2}, train_s: 4, env: {driver: "570"}}'
    report | jq -se '.[0] | .tables[0].points[0].notes == ["its runs differ in driver"]'
}

@test "groups give a table each, where one would do; repeat can be a row" {
    of '("a", "b") as $h | (1, 2) as $n | {cell: {hardware: $h, nodes: $n, strategy: ("s" + $h)}, train_s: $n}'
    report | jq -se '.[0] | .tables | length == 1'
    report --group hardware | jq -se '.[0] | [.tables[].where.hardware] == ["a", "b"]'
    jq '.report = {group: ["hardware"]}' set.json >g.json
    "$hpcgrid" report g.json --format json | jq -se '.[0] | [.tables[].where.hardware] == ["a", "b"]'
    run --separate-stderr "$hpcgrid" report set.json --group hardwar
    [ "$status" -eq 3 ]
    [[ "$stderr" == *'group: no cell has "hardwar"'*'did you mean "hardware"?'* ]]
    run --separate-stderr "$hpcgrid" report set.json --group nodes --rows nodes
    [ "$status" -eq 3 ]
    [[ "$stderr" == *'"nodes" is both group and row'* ]]
    of '(1, 2) as $i | {cell: {nodes: 1, repeat: $i}, train_s: $i}, {cell: {nodes: 2, repeat: $i}, train_s: ($i / 2)}'
    report --rows repeat --columns nodes | jq -se '.[0] | [.tables[0].points[] | [.value, .n, .speedup]] == [[1, 1, 1], [0.5, 1, 2], [2, 1, 1], [1, 1, 2]]'
}

@test "hardware stands side by side, and where takes jq" {
    of '("a100", "h100") as $h | (1, 2, 4) as $n | {cell: {hardware: $h, nodes: $n}, train_s: (if $h == "h100" then 50 else 100 end / $n)}'
    report --columns hardware --rows nodes | jq -se '.[0] | [.tables[0].points[] | .value] == [100, 50, 50, 25, 25, 12.5]'
    report --where '.nodes > 1 and .hardware == "h100"' | jq -se '.[0] | .cells == 2'
    report --where 'hardware=h100,nodes=2..4' | jq -se '.[0] | .cells == 2'
}

@test "bytes sent, exposed communication and peak memory are listed on request" {
    of '(1, 2) as $i | {cell: {strategy: "single", repeat: $i}, train_s: 4, comm: {}, memory: {parameters: 1048576}},
        {cell: {strategy: "ddp", repeat: $i}, train_s: 4, memory: {parameters: 1048576, gradients: 2097152},
            comm: {all_reduce: {ring_bytes: (3145728 * $i), exposed_s: 0.5}, broadcast: {ring_bytes: 1048576, exposed_s: 0.25}}},
        {cell: {strategy: "tcp", repeat: $i}, train_s: 4, comm: {all_reduce: {ring_bytes: 1048576, sent_bytes: 2097152, exposed_s: 0}}},
        {cell: {strategy: "old", repeat: $i}, train_s: 4}' '{baseline: null}'
    "$hpcgrid" report set.json --format json --rows strategy --traffic | jq -c '.tables[0].listings[] | select(.name == "traffic") | .rows' >rows
    cat rows
    jq -se '.[0] | .[0] == {strategy: "single", ring_mib: 0, sent_mib: 0, exposed_s: 0, exposed_ratio: 0, memory_mib: 1}
        and .[1] == {strategy: "ddp", ring_mib: 5.5, sent_mib: null, exposed_s: 0.75, exposed_ratio: 0.1875, memory_mib: 3}
        and .[2] == {strategy: "tcp", ring_mib: 1, sent_mib: 2, exposed_s: 0, exposed_ratio: 0, memory_mib: null}
        and .[3] == {strategy: "old", ring_mib: null, sent_mib: null, exposed_s: null, exposed_ratio: null, memory_mib: null}' rows
    "$hpcgrid" report set.json --rows strategy --traffic | grep -A6 "what a rank sent and held" >text
    cat text
    grep -qE '^ +ddp +5.50 +(–|-)? *0.750 +0.188 +3.0$' text
    run "$hpcgrid" report set.json --rows strategy
    [[ "$output" != *"what a rank sent"* ]]
}

@test "costs: device-hours, energy and money, also of what came to nothing" {
    of '{cell: {hardware: "a100", nodes: 1, gpus_per_node: 2}, id: "c", attempt: "1.0", status: "failed", wall_s: 1800},
        {cell: {hardware: "a100", nodes: 1, gpus_per_node: 2}, id: "c", attempt: "2.0", train_s: 3000, wall_s: 3600, energy_j: 7200}' \
        '{baseline: null, prices: {a100: 1.5}, currency: "EUR"}'
    "$hpcgrid" report set.json --format json >out.json
    jq -se '.[0] | .currency == "EUR" and (.tables[0].points[0] | .device_hours == 2 and .cost == 3 and .energy_j == 7200)' out.json
    jq -se '.[0] | .tables[0].listings[] | select(.name == "cost") | .rows[0] | .device_hours == 2 and .energy_wh == 2 and .cost == 3' out.json
    jq -se '.[0] | .listings[] | select(.name == "spent") | .rows == [{hardware: "a100", attempts: 2, device_hours: 3, lost_attempts: 1, lost_device_hours: 1, energy_wh: 2, cost: 4.5}]' out.json
    jq 'del(.prices, .currency) | del(.results[].energy_j)' set.json >plain.json
    "$hpcgrid" report plain.json --format json | jq -se '.[0] | .listings == []'
    "$hpcgrid" report plain.json --format json --cost | jq -se '.[0] | .listings[0].rows[0].device_hours == 3'
    jq '.prices = {a100: "1.5 EUR"}' set.json >bad.json
    run --separate-stderr "$hpcgrid" report bad.json
    [ "$status" -eq 3 ]
    [[ "$stderr" == *'/prices/a100: expected a number that is not negative, found "1.5 EUR"'* ]]
}

# codes JQ [MEMBERS]: one run on 1, 2, 4 nodes with these members, which see $n; h: a hash, f: a revision of that digit
codes() {
    of "def h(d): d * 32; def f(d): d * 40; (1, 2, 4) as \$n | {cell: {nodes: \$n}, train_s: (100 / \$n), eval: {accuracy: 0.5}} + ($1)" "${2:-}"
}
notes() { report "$@" | jq -r '.tables[].points[] | "\(.row.nodes) \(.notes // [] | join("; "))"'; }

@test "runs of other code than their baseline's are marked with both, and refused by --strict" {
    codes '{code: ({"1": {revision: f("a"), dirty: false, hash: h("1")}, "2": {revision: f("b"), dirty: false, hash: h("2")},
        "4": {revision: f("a"), dirty: true, hash: h("3")}}[$n | tostring])}'
    [ "$(notes)" = "1 
2 ran other code than its baseline: bbbbbbbbbb (baseline aaaaaaaaaa)
4 ran other code than its baseline: aaaaaaaaaa-dirty (baseline aaaaaaaaaa)" ]
    report | jq -se '.[0] | .listings[] | select(.name == "code") | [.rows[] | [.revision[:2], .dirty, .hash[:2], .runs]]
        == [["aa", "no", "11", 1], ["bb", "no", "22", 1], ["aa", "yes", "33", 1]]'
    run -1 report --strict
    jq -se '.[0] | .refused == 2 and [.tables[0].points[].speedup] == [1, null, null]
        and (.tables[0].points[1].notes | any(startswith("refused (strict): ran other code")))' <<<"$output"
    # both with changes, which are not the same; the same files under two revisions; a program that is not tracked
    codes '{code: {revision: f("a"), dirty: true, hash: h($n | tostring)}}'
    [ "$(notes | sed -n 2p)" = "2 ran other code than its baseline: aaaaaaaaaa-dirty (files 2222222222) (baseline aaaaaaaaaa-dirty (files 1111111111))" ]
    codes '{code: {revision: f($n | tostring), dirty: false, hash: h("1")}}'
    [ "$(notes --strict)" = $'1 \n2 \n4 ' ]
    codes '{code: {files: [{name: "x.sh", hash: h("0")}, {name: "./sim", hash: h($n | tostring)}]}}'
    [ "$(notes | tail -1)" = "4 ran other code than its baseline: ./sim 4444444444 (baseline ./sim 1111111111)" ]
    # without hashes revision and dirty tell; nothing known is no difference
    codes 'if $n == 1 then {code: {revision: f("a"), dirty: false}} elif $n == 2 then {code: {revision: f("a"), dirty: true}} else {} end'
    [ "$(notes)" = "1 
2 ran other code than its baseline: aaaaaaaaaa-dirty (baseline aaaaaaaaaa)
4 " ]
    # hpcgrid-worker is its program
    codes '{code: {revision: f($n | tostring), dirty: true, hash: h($n | tostring), files: [{name: "hpcgrid-worker", hash: h(if $n == 4 then "4" else "1" end)}]}}'
    [ "$(notes)" = $'1 \n2 \n4 ran other code than its baseline: hpcgrid-worker 4444444444 (baseline hpcgrid-worker 1111111111)' ]
}

@test "other code is marked without a baseline, for an accuracy, and among the runs of one place" {
    codes '{code: {revision: f($n | tostring), dirty: false, hash: h($n | tostring)}}' '{baseline: null}'
    [ "$(notes | tail -1)" = "4 ran other code than the first place: 4444444444 (first place 1111111111)" ]
    run -1 report --strict
    codes '{code: {revision: f($n | tostring), dirty: false, hash: h($n | tostring)}}'
    [ "$(notes --metric eval.accuracy | tail -1)" = "4 ran other code than the first place: 4444444444 (first place 1111111111)" ]
    of '(1, 2) as $n | range(1; 4) as $i | {cell: {nodes: $n, repeat: $i}, train_s: (100 / $n + $i),
        code: {revision: ("a" * 40), dirty: ($n == 2 and $i == 3), hash: (if $n == 2 and $i == 3 then "2" else "1" end * 32)}}'
    [ "$(notes)" = "1 
2 its runs ran different code: aaaaaaaaaa, aaaaaaaaaa-dirty; ran other code than its baseline: aaaaaaaaaa-dirty (baseline aaaaaaaaaa)" ]
    run -1 report --strict
    jq -se '.[0] | .refused == 1' <<<"$output"
}

@test "compare says which code each side ran, and marks only what is mixed within one" {
    codes '{code: {revision: f("a"), dirty: false, hash: h("1")}}' && mv set.json a.json
    codes '{code: {revision: f("b"), dirty: true, hash: h("2")}}' && mv set.json b.json
    "$hpcgrid" compare a.json b.json --strict >out
    grep -qxF 'code under test: A aaaaaaaaaa; B bbbbbbbbbb-dirty' out
    if grep -q 'other code' out; then return 1; fi
}

@test "outliers, groups, drift, whole seconds: runs that an interval does not describe are named" {
    runs() { # TIMES... of one place, started in this order
        jq -n '{schema: "hpcgrid-results/1", name: "runs", report: {rows: ["nodes"]}, results: [$ARGS.positional | to_entries[]
            | {id: "c\(.key)", cell: {nodes: 1, repeat: (.key + 1)}, train_s: (.value | tonumber)}]}' --args "$@" >set.json
        "$hpcgrid" report set.json --format json
    }
    runs 60.1 61.2 610.4 | jq -se '.[0] | .tables[0].points[0] | .notes == ["run 3 is an outlier: 10 times the others"] and .value > 130'
    runs 140.5 100.1 100.7 100.3 | jq -se '.[0] | .tables[0].points[0].notes == ["run 1 is an outlier: 40 % above the others; it was the first, before caches were filled?"]'
    runs 100.5 280.1 100.8 101 290 100 285 100.2 | jq -se '.[0] | .statistic == "median" and (.tables[0].points[0]
        | .value >= .value_interval[0] and .value <= .value_interval[1] and .notes == ["its runs form two groups: 5 near 100.5, 3 near 285; no single figure describes both"])'
    runs 10.1 10.2 10.5 10.6 10.9 11.1 11.3 11.4 | jq -se '.[0] | .tables[0] | (.points[0].notes == ["drifts: its later runs are 8 % above the earlier ones"])
        and (.remarks[0] | startswith("runs resemble the run before"))'
    runs 52.01 52.02 52.05 52.06 52.09 52.11 52.13 52.14 | jq -se '.[0].tables[0].points[0].notes == ["drifts: its later runs are 0.2 % above the earlier ones"]'
    runs 102 106 101 130 100 103 109 104 101.5 105 | jq -se '.[0] | .tables[0].points[0].notes == ["its runs are skewed: the highest is 26 % above their median, the lowest 3 % below it"]'
    runs 60 61 62 | jq -se '.[0] | .tables[0].remarks == ["all times are whole seconds: one second is up to 1.7 % of them"]'
    runs 60 61 62.5 | jq -se '.[0] | .tables[0] | .remarks == [] and (.points[0] | has("notes") | not)'
    # the order is that of the start, not that of the set
    jq '.results |= [.[2], .[0], .[1]] | .results[0] += {train_s: 130, started: "2026-01-01T00:00:01Z"}
        | .results[1].started = "2026-01-01T00:00:02Z" | .results[2].started = "2026-01-01T00:00:00Z"' set.json >order.json
    "$hpcgrid" report order.json --format json | jq -se '.[0] | .tables[0].points[0].notes == ["run 3 is an outlier: 2.1 times the others"]'
    jq '.results[0].started = "2025-01-01T00:00:01Z"' order.json >first.json
    "$hpcgrid" report first.json --format json | jq -se '.[0] | .tables[0].points[0].notes[0] | endswith("2.1 times the others; it was the first, before caches were filled?")'
}

@test "a first run that is slowest everywhere, and a speedup that the runs do not show, are said" {
    of 'range(1; 6) as $n | [3, 1, 2] as $t | range(3) as $r
        | {cell: {nodes: $n, repeat: ($r + 1)}, train_s: (100 + $n / 9 + $t[$r])}'
    report >out.json
    jq -se '.[0] | .tables[0].remarks == ["the first run is the slowest in 5 of 5 places: caches, or a warm-up?"]' out.json
    jq -se '.[0] | [.tables[0].points[] | (.notes // []) | any(startswith("the difference from its baseline is within"))] == [false, true, true, true, true]' out.json
    "$hpcgrid" report set.json --format md | grep -q '^the first run is the slowest'
    "$hpcgrid" report set.json --format html | grep -q '<p>the first run is the slowest'
    "$hpcgrid" report set.json --format latex | grep -q 'the first run is the slowest'
    "$hpcgrid" report set.json --format text --template <(echo '{{#tables}}{{#remarks}}<{{text}}>{{/remarks}}{{/tables}}') | grep -q '<the first run'
}
