#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What computing centres do to jobs, all on one box: hidden queues, associations and QOS limits, request rates, submit plugins,
# prologs, a scratch folder for each job, homes that nodes cannot write, node clocks that are wrong, srun without PMIx.
# Whoever runs Slurm may do everything, so as root the sweeps belong to somebody else.

bats_require_minimum_version 1.5.0
load box

setup_file() {
    local program
    box_accounting_lacks >/dev/null && return 0
    DIR=$(mktemp -d /tmp/hg-centres.XXXXXX)
    WHO=$(id -un)
    [ "$WHO" != root ] || WHO=daemon
    export DIR WHO
    mkdir "$DIR/bin" "$DIR/home" "$DIR/work"
    for program in orchestrator/hpcgrid{,-slurm} worker/hpcgrid-worker tests/libwrongclock.so; do
        cp "$HPCGRID_BUILD/$program" "$DIR/bin"
    done
    site_scripts
    chmod 755 "$DIR" "$DIR"/bin/*
    chown "$WHO" "$DIR/work"
    chmod 555 "$DIR/home"
    box_up cpu:2x0,a100:1x2 --accounting MpiDefault=none AccountingStorageEnforce=associations,limits,qos \
        PrivateData=accounts,events,jobs,nodes,partitions,reservations,usage,users \
        SlurmctldParameters=rl_enable,rl_bucket_size=3,rl_refill_rate=2,rl_log_freq=0 \
        PrologFlags=Alloc "Prolog=$DIR/bin/prolog" "Epilog=$DIR/bin/epilog" "TaskProlog=$DIR/bin/task_prolog"
    sacctmgr -i add account team >/dev/null
    sacctmgr -i add qos few set MaxSubmitJobsPerUser=2 MaxTRESPerJob=cpu=2 >/dev/null
    sacctmgr -i add user "$WHO" account=team qos=normal,few >/dev/null
    sacctmgr -i modify user "$WHO" set defaultaccount=team >/dev/null || true # it is, unless it is Slurm's own user
    box_lua 'return slurm.SUCCESS'
    echo JobSubmitPlugins=lua >>"$SLURM_CONF"
    scontrol reconfigure
}

teardown_file() {
    box_down
    [ -z "${DIR:-}" ] || rm -rf "$DIR"
}

# The prolog makes a folder for each job, and takes as long as a file says; cpu-2's clock is ten minutes ahead.
site_scripts() {
    cat >"$DIR/bin/prolog" <<END
#!/bin/bash
mkdir $DIR/tmp.\$SLURMD_NODENAME.\$SLURM_JOB_ID
chown \$SLURM_JOB_UID $DIR/tmp.\$SLURMD_NODENAME.\$SLURM_JOB_ID
[ ! -e $DIR/work/slow ] || touch $DIR/work/prolog.began
while [ -e $DIR/work/slow ]; do sleep 0.1; done
END
    cat >"$DIR/bin/epilog" <<END
#!/bin/bash
rm -rf $DIR/tmp.\$SLURMD_NODENAME.\$SLURM_JOB_ID
END
    cat >"$DIR/bin/task_prolog" <<END
#!/bin/bash
echo export TMPDIR=$DIR/tmp.\$SLURMD_NODENAME.\$SLURM_JOB_ID
if [ \$SLURMD_NODENAME = cpu-2 ]; then
    echo export LD_PRELOAD=$DIR/bin/libwrongclock.so
    echo export CLOCK_AHEAD_S=600
fi
END
}

setup() {
    box_need
    if what=$(box_accounting_lacks); then skip "$what"; fi
    T=$DIR/work
    cd "$T" || return 1
    box_lua 'return slurm.SUCCESS'
}

teardown() {
    rm -f "$DIR/work/slow" # else prologs wait for ever, and all behind them
    box_tell
}

# A command as somebody who is not Slurm's administrator
as() {
    local become=()
    [ "$(id -un)" = "$WHO" ] || become=(runuser -u "$WHO" --)
    "${become[@]}" env -i PATH="$DIR/bin:$PATH" HOME="$DIR/home" SLURM_CONF="$SLURM_CONF" "$@"
}

# matrix NAME COMMAND [JQ]: two cells that run this in a shell
matrix() {
    jq -n --arg name "$1" --arg command "$2" '{hpcgrid: 1, name: $name,
        site: {launcher: "srun", hardware: {cpu: {partition: "cpu", gpus_per_node: 0, backend: "cpu"}, a100: {partition: "a100", gpus_per_node: 2}},
            default: "cpu"},
        workload: {command: ["sh", "-c", $command], time: "5m"}, axes: {i: [1, 2]}} | '"${3:-.}" >"$1.json"
}

# value NAME JQ: of every result of a run, by i
value() { jq -sc "sort_by(.cell.i)[] | $2" reports/"$1"/001/cells/*/*/result.json; }
counts() { as hpcgrid status "$1" --no-poll --json | jq -c .counts; }
no_scratch() { [ -z "$(find "$DIR" -maxdepth 1 -name 'tmp.*')" ]; }

@test "a sweep where everything is hidden, home is not writable and every job has its own TMPDIR" {
    matrix plain 'touch "$TMPDIR/x" && echo "$TMPDIR"; [ "$(id -u)" = 0 ] || ! touch "$HOME/x"'
    as hpcgrid run plain.json
    [ "$(cat reports/plain/001/cells/*/*/out.log | sort -u | grep -c "^$DIR/tmp.cpu-.\.[0-9]*\$")" = 2 ]
    [ -z "$(ls -A "$DIR/home")" ]
    box_wait 90 no_scratch
    # what nobody may list is said to be so, and stops nothing
    [ "$WHO" = "$(id -un)" ] ||
        [ "$(as hpcgrid doctor --json | jq '.findings[] | select(.what == "partitions") | .state == "warning" and (.found | test("denied"))')" = true ]
}

@test "requests beyond the rate that Slurm allows a user are made again" {
    local version
    version=$(sinfo -V | grep -o '[0-9]*\.[0-9]*' | head -1)
    [ "${version/./}" -ge 2302 ] || skip "this is Slurm $version, which limits no rates; 23.02 and later do"
    [ "$WHO" != "$(id -un)" ] || skip "Slurm does not limit the user who runs it"
    matrix often true ' .axes.cpus_per_task = [1, 2, 3, 4]' # four arrays
    as hpcgrid run often.json
    [ "$(counts often)" = '{"ok":8}' ]
    grep -qi 'rate limit' "$BOX_DIR/log/slurmctld.log"
}

@test "an account that the user has not is refused with its place before anything is submitted" {
    matrix money true '.site.account = "nobodys"'
    run --separate-stderr as hpcgrid run money.json
    echo "$stderr"
    [ "$status" = 4 ]
    [[ "$stderr" == *"batch 1 (2 cells, hardware cpu of site inline) would be refused: "*"account nobodys (account of the site)"* ]]
    [ "$(counts money)" = '{"waiting":2}' ]
}

wide_waits() { as hpcgrid status wide | grep -q "QOSMaxCpuPerJobLimit (requests more than the account or QOS allows one job)"; }

@test "more cells than a QOS lets wait come home in parts, and a job that it never lets run is told" {
    matrix parts true '.site.qos = "few" | .axes.i = [1, 2, 3]'
    run --separate-stderr as hpcgrid run parts.json
    echo "$stderr"
    [ "$status" = 0 ]
    [[ "$stderr" == *"a limit of the account or QOS was reached"*"QOSMaxSubmitJobPerUserLimit"*"sacctmgr show qos"* ]]
    [ "$(counts parts)" = '{"ok":3}' ]
    matrix wide true '.site.qos = "few" | .axes = {i: [1], tasks_per_node: 4}'
    as hpcgrid submit wide.json
    box_wait 90 wide_waits
    as hpcgrid cancel wide
}

@test "a job whose comment, name and partition the site rewrites comes home once" {
    box_lua 'job.comment = "policy 7" job.name = "site" job.partition = "a100" return slurm.SUCCESS'
    matrix renamed 'echo $SLURMD_NODENAME'
    as hpcgrid run renamed.json
    [ "$(cat reports/renamed/001/cells/*/*/out.log | xargs)" = "a100-1 a100-1" ]
    [ "$(squeue -h -r -t all -n site -o %i | wc -l)" = 2 ]
}

@test "a refusal has the site's words, the place and the next step, and nothing is half submitted" {
    local words=$'No second node.\n  Ask at the desk, room 101.\n  change what the cells request as these words say, or ask the site\n  it requests partition cpu (hardware.cpu.partition of the site), nodes 2 (nodes of the matrix)'
    local say='slurm.log_user("No second node.\nAsk at the desk, room 101.") return slurm.ERROR end return slurm.SUCCESS'
    box_lua "if job.min_nodes == 2 then $say"
    matrix refused true '.axes.nodes = [1, 2]'
    run --separate-stderr as hpcgrid run refused.json
    echo "$stderr"
    [ "$status" = 4 ]
    [[ "$stderr" == *"batch 2 (2 cells, hardware cpu of site inline) would be refused: the site's submit plugin refused it (partition cpu): $words"* ]]
    [ "$(counts refused)" = '{"waiting":4}' ]
    # one that only the array itself meets: what is sent runs, the rest is told at the end in the same words
    box_lua "if job.min_nodes == 2 and job.array_inx then $say"
    run --separate-stderr as hpcgrid run refused.json
    echo "$output$stderr"
    [ "$status" = 4 ]
    [[ "$stderr" == *"error: batch 2 (2 cells, hardware cpu of site inline) was refused: the site's submit plugin refused it (partition cpu): $words"* ]]
    [[ "$output" == *"No second node."*"Ask at the desk"* && "$output" != *"node.?Ask"* ]]
    [ "$(counts refused)" = '{"ok":2,"refused":2}' ]
    box_lua 'return slurm.SUCCESS'
    as hpcgrid run refused.json
    [ "$(counts refused)" = '{"ok":4}' ]
}

@test "GPUs where the site takes them by the node only" {
    box_lua 'if job.tres_per_job or job.tres_per_socket or job.tres_per_task or not string.find(job.tres_per_node or "", "gpu:a100:2") then
        slurm.log_user("GPUs by --gpus-per-node=TYPE:N only.") return slurm.ERROR end return slurm.SUCCESS'
    matrix gpus 'echo $CUDA_VISIBLE_DEVICES' '.site.hardware.a100.gres = "gpu:a100" | .axes += {hardware: "a100", gpus_per_node: 2, tasks_per_node: 1}'
    as hpcgrid run gpus.json
    [ "$(sort -u reports/gpus/001/cells/*/*/out.log)" = 0,1 ]
}

# Whether Slurm says of them that they run or wait is its business.
both_wait() { [ "$(as hpcgrid status prolog --json | jq '.counts | .ok == null and ((.running // 0) + (.pending // 0)) == 2')" = true ]; }

@test "a prolog that takes long delays cells and loses none" {
    local pid
    touch slow
    matrix prolog true
    as hpcgrid run prolog.json >out 2>log 3>&- &
    pid=$!
    box_wait 90 test -e prolog.began
    box_wait 90 both_wait
    rm slow
    wait $pid || { cat log; false; }
    [ "$(find reports/prolog/001/cells -name result.json | wc -l)" = 2 ]
}

@test "where srun starts no MPI ranks by default the reason says what to do" {
    matrix mpi true 'del(.workload.command) | .workload += {program: "hpcgrid-worker", model: "rnn", dataset: "mnist-slice", epochs: 1, batch_size: 64, samples: 128} |
        .axes = {strategy: "ddp", tasks_per_node: 2}'
    run --separate-stderr as hpcgrid run mpi.json
    [ "$status" = 1 ]
    value mpi .error
    [ "$(value mpi '.error | (.message | test("without PMIx")) and (.hint | test("srun --mpi=pmix") and test("HPCGRID_COMM=tcp"))')" = true ]
    jq '.site.launcher = "srun --mpi=pmix"' mpi.json >new.json && mv new.json mpi.json
    as hpcgrid retry mpi
}

@test "a node whose clock is ten minutes ahead: times are the file server's, and the rank that failed first is found" {
    local ten_minutes='if . - 600 | fabs < 30 then 600 else . end' # between the two stamps the machine may be busy
    # Slurm kills at once, without TERM, a rank that has not started yet: it would leave no words of its own
    matrix clock '[ $RANK = $0 ] || { touch $HPCGRID_ATTEMPT/there; exec sleep 1000; }; until [ -e $HPCGRID_ATTEMPT/there ]; do sleep 0.1; done; exit 7' '.workload.command += ["{{i}}"] | .axes = {nodes: 2, i: [0, 1]}'
    run --separate-stderr as hpcgrid run clock.json
    [ "$status" = 1 ]
    [ "$(value clock '[.cell.i, .error.rank, .error.message, ([.ranks[] | .clock_ahead_s // 0 | '"$ten_minutes"'] | sort)]' | paste -sd' ')" = \
        '[0,0,"exit code 7",[0,600]] [1,1,"exit code 7",[0,600]]' ]
    matrix late 'date +%s' '.workload.sbatch = "-w cpu-2" | .axes.i = [1]'
    as hpcgrid run late.json
    [ "$(value late ".clock_ahead_s | $ten_minutes")" = 600 ]
    [ "$(cat reports/late/001/cells/*/*/out.log)" -gt "$(($(date +%s) + 300))" ] # it is wrong
    [ "$(value late '(.ended | fromdate) <= now')" = true ]
    as hpcgrid trace late --out t.json
    jq -e '[.traceEvents[] | select(.args.folder) | .args.queued_s] | length == 1 and all(. < 300)' t.json
}
