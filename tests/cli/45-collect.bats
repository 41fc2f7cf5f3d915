#!/usr/bin/env bats
# plan, exec and collect together, without Slurm: what was planned is run by hand and read back.

bats_require_minimum_version 1.5.0
load ../await

setup() {
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    cd "$BATS_TEST_TMPDIR"
    unset "${!SLURM_@}"
    export HPCGRID_REPORTS=$BATS_TEST_TMPDIR/reports
    cat >m.json <<'END'
{"hpcgrid": 1, "name": "collect-me",
 "site": {"name": "here", "launcher": "", "default": "cpu", "hardware": {"cpu": {"gpus_per_node": 0}}},
 "workload": {"command": ["sh", "-c", "printf '{\"train_s\": %d}' {{size}} >$HPCGRID_RESULT; exit {{code}}"], "launch": [], "code": 0},
 "axes": {"size": [2, 4, 8]},
 "baseline": {"size": 2}, "report": {"metric": "train_s"}}
END
    run_dir=$HPCGRID_REPORTS/collect-me/001
    "$hpcgrid" plan m.json --out "$run_dir" >plan.txt
    chmod 700 "$run_dir"
}

# one LINE [OPTIONS]: run that cell as a job would.
one() {
    local line=$1
    shift
    SLURM_ARRAY_TASK_ID=$line "$run_dir/batches/1.sh" "$@"
}

results() { # FILTER
    jq -c "$1" "$run_dir/tables/results.json"
}

@test "plan shows what would be submitted and writes only where it is told" {
    cat >want <<'END'
collect-me on here: 3 cells in 1 batch

batch  cells  hardware   nodes tasks  cpus  gres             mem/node         time  device-h
    1      3  cpu            1     1     1  -                      -            -         -

submissions  1
at most      0 device-hours, and 3 cells without a time limit
END
    diff want plan.txt
    mkdir elsewhere
    cd elsewhere
    "$hpcgrid" plan ../m.json --scripts >../out
    [ -z "$(ls -A)" ]
    grep -q '^==> batches/1.sh <==$' ../out
    run -2 "$hpcgrid" plan ../m.json --out "$run_dir"
    [[ "$output" == *"already contains a plan"* ]]
}

@test "the lines of very many cells are those of their report, and take little memory" {
    jq '.name = "many" | .axes.size = {range: [1, 50100]} | .workload |= del(.code) | .derive = {code: ".size % 2"} | .baseline = {size: 4}' m.json >many.json
    run_dir=$HPCGRID_REPORTS/many/001
    "$hpcgrid" plan many.json --out "$run_dir" >/dev/null
    chmod 700 "$run_dir"
    for line in 0 1 3 7; do one $line || true; done
    HPCGRID_ERROR=broken run -4 one 5
    SLURM_RESTART_COUNT=1 one 5
    SLURM_RESTART_COUNT=1 one 2 || true
    echo '{' >"$(echo "$run_dir"/cells/1-000/"$(sed -n 8p "$run_dir/batches/1.cells.jsonl" | jq -r .id)".0.0/result.json)"
    run -1 "$hpcgrid" report many --format csv --columns size # read as a whole
    printf '%s\n' "$output" >want
    [ ! -e "$run_dir/tables/results.csv" ]
    [ "$(grep -c ',true,ok,' want)" -ge 3 ]
    grep -q ",'0.1,true,ok," want
    grep -q ",'0.1,false,failed," want
    grep -q ",'0.0,false,invalid," want
    [ "$(wc -l <want)" -gt 50100 ]
    (ulimit -v 80000 && "$hpcgrid" report many --format csv) >lines || [ $? = 1 ]
    cmp want lines
    "$hpcgrid" report many --format csv --where size=1..9 --metric wall_s --out some.csv || [ $? = 1 ]
    cmp some.csv <("$hpcgrid" report many --format csv --where size=1..9 --columns size || true)
    "$hpcgrid" report many --format csv --where size=2
    [ ! -e "$run_dir/tables" ]
}

@test "a plan in a folder of any name is called by that name" {
    "$hpcgrid" plan m.json --out kept >/dev/null
    chmod 700 kept
    run "$hpcgrid" collect kept
    [[ "$output" == "$PWD/kept: 0 of 3 cells have a good result, 3 not ended"* ]]
    [ "$(jq -c .run kept/tables/results.json)" = '"kept"' ]
    run "$hpcgrid" report kept
    [[ "$output" == *"collect-me/kept"* ]]
}

@test "what marks a result is read from a run's folder as from a set" {
    [ ! -e /proc/driver/nvidia/gpus ] || skip "there is a GPU here: nothing is a rehearsal"
    cat >marked.json <<'END'
{"hpcgrid": 1, "name": "marked",
 "site": {"name": "here", "launcher": "", "default": "g", "hardware": {"g": {"gpus_per_node": 1}}},
 "workload": {"command": ["sh", "-c", "[ {{size}} = 2 ] || [ {{size}} = 4 ] || { mkfifo $HPCGRID_ATTEMPT/gate; read x <$HPCGRID_ATTEMPT/gate; }; printf '{\"train_s\": %d, \"final_loss\": NaN, \"comparable\": {\"precision\": \"fp%d\"}, \"env\": {\"driver\": \"d%d\"}}' {{size}} {{size}} {{size}} >$HPCGRID_RESULT"],
  "launch": [], "gpus_per_node": 1, "cpus_per_task": 65536},
 "axes": {"size": [2, 4, 8]}, "baseline": {"size": 2}, "report": {"metric": "train_s"}}
END
    run_dir=$HPCGRID_REPORTS/marked/001
    "$hpcgrid" plan marked.json --out "$run_dir" >/dev/null
    chmod 700 "$run_dir"
    for line in 0 1; do one $line; done
    SLURM_ARRAY_TASK_ID=2 "$run_dir/batches/1.sh" 3>&- &
    pid=$!
    await compgen -G "$run_dir/cells/*/*.0.0/gate"
    kill -TSTP $pid # as the scheduler suspends a job
    await taken $pid 20
    kill -CONT $pid
    echo go >"$(compgen -G "$run_dir/cells/*/*.0.0/gate")"
    wait $pid
    "$hpcgrid" collect "$run_dir"
    cp "$run_dir/tables/results.json" collected.json
    for format in text csv json; do
        "$hpcgrid" report "$run_dir" --format $format >run.$format
        "$hpcgrid" report collected.json --format $format >set.$format
    done
    diff run.csv set.csv && diff run.json set.json
    device=$(jq -r '.ranks[0].device' "$run_dir"/cells/*/*.0.0/result.json | head -n 1)
    for said in "rehearsal on $device: " "oversubscribed: more ranks" "diverged: the loss" "suspended by the scheduler: its times include" "precision fp4, fp8 (baseline fp2)" "driver d4, d8 (baseline d2)"; do
        grep -qF "$said" run.text || { echo "$said"; cat run.text; return 1; }
    done
}

@test "plan --json is one object with every id" {
    "$hpcgrid" plan m.json --json >out
    [ "$(jq -c '[.cells, .submissions, (.batches | length), (.batches[0].ids | length)]' out)" = "[3,1,1,3]" ]
}

@test "a plan says what the first round of adaptive repeats costs, and the limit must hold it" {
    jq '.repeats = {until: "5%", min: 3, max: 20} | .workload.time = "30m" | .limits = {gpu_hours: 9} |
        .site.hardware = {g: {gpus_per_node: 4}} | .site.default = "g" | .workload.gpus_per_node = 2' m.json >adaptive.json
    "$hpcgrid" plan adaptive.json >out
    tail -n 3 out | diff - <(printf '%s\n' 'submissions  1' \
        'first round  9 cells, 9 device-hours; a configuration has 3 to 20 runs' 'at most      60 device-hours')
    "$hpcgrid" plan adaptive.json --json | jq -se '.[0] | .cells == 60 and .first_round == {cells: 9, device_hours: 9}'
    jq '.limits.gpu_hours = 8' adaptive.json >dear.json
    run -3 "$hpcgrid" plan dear.json
    [[ "$output" == *"/limits/gpu_hours: the first round may cost 9 GPU-hours, the limit is 8"* ]]
    "$hpcgrid" explain adaptive.json size=4,repeat=3 | grep -q 'fate *runs$'
    "$hpcgrid" explain adaptive.json size=4,repeat=4 | grep -q 'fate *runs if the intervals of 3 runs or more are wider than ±5 %$'
}

@test "a plan that may cost more than limits.gpu_hours is refused" {
    jq '.limits = {gpu_hours: 10} | .site.hardware = {g: {gpus_per_node: 4}} | .site.default = "g" | .workload.gpus_per_node = 2' m.json >gpu.json
    run -3 "$hpcgrid" plan gpu.json
    [[ "$output" == *"gpu.json:"*"/limits/gpu_hours: cells without a time limit may cost any number of GPU-hours"* ]]
    jq '.workload.time = "2h"' gpu.json >long.json
    run -3 "$hpcgrid" plan long.json
    [[ "$output" == *"/limits/gpu_hours: the cells may cost 12 GPU-hours, the limit is 10"* ]]
    jq '.workload.time = "90m"' gpu.json >fits.json
    "$hpcgrid" plan fits.json
}

@test "the scripts pass shellcheck" {
    command -v shellcheck >/dev/null || skip "shellcheck is not installed"
    shellcheck "$run_dir/batches/1.sh"
}

@test "cells without a result stand there as pending" {
    run -1 "$hpcgrid" collect m.json
    [[ "$output" == *"collect-me/001: 0 of 3 cells have a good result, 3 not ended"* ]]
    [ "$(results '[.schema, .name, .run, .baseline.size, .report.metric, (.results | length)]')" = '["hpcgrid-results/1","collect-me","001",2,"train_s",3]' ]
    [ "$(results '.results[0] | [.status, .attempt, .cell.size, .added]')" = '["pending",null,2,false]' ]
}

@test "good results are collected in the order of the plan" {
    one 2
    one 0
    one 1
    run -0 "$hpcgrid" collect "$run_dir"
    [[ "$output" == *"3 of 3 cells have a good result"* ]]
    [ "$(results '[.results[].train_s]')" = "[2,4,8]" ]
    [ "$(results '[.results[] | .baseline_id] | unique | length')" = 1 ]
    [ "$(results '.results[0] | [.id == .baseline_id, has("schema"), has("crc")]')" = "[true,false,false]" ]
}

@test "every attempt is kept, oldest first; a good one counts whatever came after" {
    id=$(jq -r .id <(head -1 "$run_dir/batches/1.cells.jsonl"))
    HPCGRID_ERROR=broken run -4 one 0 --submission 10
    HPCGRID_ERROR=broken run -4 one 0 --submission 2
    SLURM_RESTART_COUNT=1 one 0 --submission 2
    one 1
    run -1 "$hpcgrid" collect "$run_dir"
    [[ "$output" == *"2 of 3 cells have a good result, 1 not ended"* ]]
    [ "$(results "[.results[] | select(.id == \"$id\") | [.attempt, .status]]")" = '[["2.0","failed"],["2.1","ok"],["10.0","failed"]]' ]
}

@test "a failed cell is counted as failed" {
    HPCGRID_ERROR=broken run -4 one 0
    run -1 "$hpcgrid" collect "$run_dir"
    [[ "$output" == *"0 of 3 cells have a good result, 1 failed, 2 not ended"* ]]
    [ "$(results '.results[0].error.message')" = '"broken"' ]
}

# spoil: run cell 0, change its result.json by the function given, expect it not to count.
spoil() {
    rm -rf "$run_dir/cells"
    one 0
    file=$(echo "$run_dir"/cells/*/*.0.0/result.json)
    "$1" "$file"
    run -1 "$hpcgrid" collect "$run_dir"
    [[ "$output" == *"0 of 3 cells"* ]]
    [[ "$output" == *"1 result file does not count"* ]]
    [[ "$output" == *"$2"* ]] || { echo "$output"; return 1; }
    [ "$(results '[.results[] | select(.status == "invalid")] | length')" = 1 ]
    [ "$(results '[.results[] | select(.train_s)] | length')" = 0 ]
}

cut_short() { truncate -s -20 "$1"; }
empty() { : >"$1"; }
edit() { sed -i 's/"train_s": 2/"train_s": 1/' "$1"; }
flip() { printf '\377' | dd of="$1" bs=1 seek=100 conv=notrunc status=none; }
other_run() { sed -i 's/"run_key": "./"run_key": "x/' "$1"; }
other_schema() { sed -i 's|hpcgrid-result/2|hpcgrid-result/9|' "$1"; }
twice() { sed -i 's/"train_s": 2,/"train_s": 2, "train_s": 3,/' "$1"; }

@test "results that are cut short, changed or foreign are reported and never counted" {
    spoil cut_short 'result.json:'
    spoil empty 'result.json'
    spoil edit 'it was changed after it was written'
    spoil flip 'result.json'
    spoil other_run '"run_key"'
    spoil other_schema 'it has schema "hpcgrid-result/9", this hpcgrid reads "hpcgrid-result/2"'
    spoil twice 'given twice'
}

@test "the result of another cell does not count here" {
    one 0
    one 1
    a=$(jq -r .id <(sed -n 1p "$run_dir/batches/1.cells.jsonl"))
    b=$(jq -r .id <(sed -n 2p "$run_dir/batches/1.cells.jsonl"))
    cp "$run_dir/cells/1-000/$a.0.0/result.json" "$run_dir/cells/1-000/$b.0.0/result.json"
    run -1 "$hpcgrid" collect "$run_dir"
    [[ "$output" == *"1 of 3 cells"* ]]
    [[ "$output" == *"its \"id\" is \"$a\", expected \"$b\""* ]]
}

@test "a result at every length it could be cut to never counts" {
    one 0
    file=$(echo "$run_dir"/cells/*/*.0.0/result.json)
    cp "$file" whole
    size=$(stat -c %s whole)
    for n in $(seq 0 97 $((size - 3))) $((size - 2)); do
        head -c "$n" whole >"$file"
        run -1 "$hpcgrid" collect "$run_dir"
        [[ "$output" == *"0 of 3 cells"* ]] || { echo "$n of $size bytes counted"; return 1; }
    done
}

@test "a claim without a result is running as far as the folder tells" {
    id=$(jq -r .id <(head -1 "$run_dir/batches/1.cells.jsonl"))
    mkdir -p "$run_dir/cells/1-000/$id.3.0"
    echo '{}' >"$run_dir/cells/1-000/$id.3.0/claim.json"
    run -1 "$hpcgrid" collect "$run_dir"
    [ "$(results '.results[0] | [.status, .attempt]')" = '["running","3.0"]' ]
}

@test "a run that is not there is named" {
    run -4 "$hpcgrid" collect nothing-here
    [[ "$output" == *'"nothing-here" has no run yet'* ]]
}

@test "a report of the collected results is made" {
    "$hpcgrid" help 2>&1 | grep -q '^  report' || skip "no report command yet"
    one 0; one 1; one 2
    "$hpcgrid" collect "$run_dir" >/dev/null
    run -0 "$hpcgrid" report "$run_dir/tables/results.json"
    [[ "$output" == *speedup* ]]
}

# Read whole, these eight would take more than 100 MiB as values.
@test "results larger than the memory are collected and their logs shown, one at a time" {
    if ldd "$hpcgrid" | grep -q 'lib[at]san'; then skip "sanitizers want all addresses"; fi
    cat >large.json <<'END'
{"hpcgrid": 1, "name": "large",
 "site": {"name": "here", "launcher": "", "default": "cpu", "hardware": {"cpu": {"gpus_per_node": 0}}},
 "workload": {"command": ["sh", "-c", "{ printf '{\"train_s\": 1, \"loss\": {\"loss\": ['; seq -s, 300000; echo ']}}'; } >$HPCGRID_RESULT; echo failed as cell {{n}}; exit 1"], "launch": []},
 "axes": {"n": [1, 2, 3, 4, 5, 6, 7, 8]}}
END
    run_dir=$HPCGRID_REPORTS/large/001
    "$hpcgrid" plan large.json --out "$run_dir" >/dev/null
    chmod 700 "$run_dir"
    for line in 0 1 2 3 4 5 6 7; do one $line || true; done
    (
        ulimit -v 80000
        "$hpcgrid" collect large >counts || [ $? -eq 1 ]
        "$hpcgrid" collect large --json >printed.json || [ $? -eq 1 ]
        "$hpcgrid" logs large >logs
    )
    grep -q '^large/001: 0 of 8 cells have a good result, 8 failed$' counts
    [ "$(cat logs)" = "$(for n in 1 2 3 4 5 6 7 8; do echo "failed as cell $n"; done)" ]
    cmp printed.json "$run_dir/tables/results.json"
    [ "$(jq -c '[.results[] | [.cell.n, (.loss.loss | length), .loss.loss[-1]]] | unique_by(.[1:]) | map(.[1:])' printed.json)" = '[[300000,300000]]' ]
    [ "$(jq '.results | length' printed.json)" = 8 ]
}
