# SPDX-License-Identifier: Apache-2.0
# Helper for bats files that need a Slurm. In the file:
#
#     load box
#     setup_file() { box_up cpu:2x0,a100:1x2 MaxArraySize=101 MessageTimeout=5; }
#     teardown_file() { box_down; }
#     setup() { box_setup; }
#     teardown() { box_tell; ...; }     # only where there is more to do than that
#
# box_up brings up one box for the whole file, named after it, and exports SLURM_CONF, BOX and BOX_DIR. Each test gets
# an empty folder $T. Daemons are reached by recorded pid only: kill -STOP "$(box_pid slurmctld)".

HPCGRID_BUILD=${HPCGRID_BUILD:?must name the build folder}
HPCGRID=${HPCGRID:-$HPCGRID_BUILD/orchestrator/hpcgrid}
AGENT=${AGENT:-$HPCGRID_BUILD/orchestrator/hpcgrid-slurm}

# box_up NODES [--accounting] [KEY=VALUE...]
box_up() {
    local nodes=$1 words=() setting line
    shift
    box_lacks >/dev/null && return 0 # setup_file cannot skip, box_setup does
    for setting in "$@"; do
        if [ "$setting" = --accounting ]; then words+=(--accounting); else words+=(--set "$setting"); fi
    done
    BOX=t$$-$(basename "$BATS_TEST_FILENAME" .bats | tr -cd 'a-z0-9' | cut -c1-16)
    line=$("$HPCGRID" box up --name "$BOX" --nodes "$nodes" "${words[@]}") || return 1
    eval "$line"
    BOX_DIR=$(dirname "$SLURM_CONF")
    export BOX BOX_DIR SLURM_CONF BOX_SPEC_NODES="$nodes" BOX_SPEC_SETTINGS="${words[*]}"
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# Start the box's dead daemons again.
box_heal() {
    # shellcheck disable=SC2086
    "$HPCGRID" box up --name "$BOX" --nodes "$BOX_SPEC_NODES" $BOX_SPEC_SETTINGS >/dev/null
}

box_down() {
    if [ -n "${BOX:-}" ]; then "$HPCGRID" box down "$BOX"; fi
}

# Where there is no Slurm to start, the file's tests are skipped, and say so.
box_need() {
    local what
    if what=$(box_lacks); then skip "$what"; fi
}

# What is missing; false where nothing is.
box_lacks() {
    local program
    for program in slurmctld slurmd munged; do
        PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || { echo "$program is not installed" && return 0; }
    done
    [ ! -x "$AGENT" ] || return 1
    echo "$(basename "$AGENT") is not built"
}

# What a box with --accounting lacks; false where nothing is missing.
box_accounting_lacks() {
    local program
    for program in mariadbd slurmdbd; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "$program is not installed" && return 0; }
    done
    box_lacks
}

box_setup() {
    box_need
    T=$BATS_TEST_TMPDIR
    cd "$T" || return 1
}

# What a person would ask for after a test has failed, as far as it can be had: CI shows this and nothing else.
box_tell() {
    local log
    [ -z "${BATS_TEST_COMPLETED:-}" ] || return 0
    set +e
    echo "---- machine: $(nproc) cores, load $(cut -d' ' -f1-3 /proc/loadavg), $(df -h --output=avail /tmp | tail -1 | tr -d ' ') free in /tmp"
    tell_runs
    for log in log out; do
        [ ! -s "${T:-/nonexistent}/$log" ] || { echo "---- $log:" && tail -n 20 "$T/$log"; }
    done
    [ -d "${BOX_DIR:-/nonexistent}" ] || return 0
    echo "---- box:"
    "$HPCGRID" box status "$BOX"
    timeout 20 sinfo -N -o '%N %T %E'
    timeout 20 squeue -r -t all -o '%i %T %r %M %N %j' | head -n 40
    for log in "$BOX_DIR"/log/*.log; do
        echo "---- $(basename "$log"):"
        tail -n "$([[ $log == *slurmctld.log ]] && echo 60 || echo 15)" "$log"
    done
    return 0
}

tell_runs() {
    local events dir
    for events in "${T:-/nonexistent}"/reports/*/*/events.jsonl; do
        [ -e "$events" ] || continue
        dir=$(dirname "$events")
        echo "---- $dir:"
        timeout 60 "$HPCGRID" status "$dir" --cells --no-poll 2>&1 | grep -v -- '  ok' | head -n 40
        tail -n 40 "$events"
        find "$dir/cells" -name result.json 2>/dev/null | head -n 500 | while read -r result; do
            jq -c 'select(.status != "ok") | {id, attempt, status, exit_code, signal, error, started, ended}' "$result"
        done | head -n 15
    done
    find "${T:-/nonexistent}" -name '*-*.out' -size +0 2>/dev/null | head -n 5 | while read -r log; do
        echo "---- $log:" && tail -n 5 "$log"
    done
}

teardown() { box_tell; }

# box_pid slurmctld | slurmd-a100-1 | munged
box_pid() {
    "$HPCGRID" box status "$BOX" --json | jq -r --arg name "$1" '.daemons[] | select(.name == $name) | .pid'
}

# box_wait SECONDS COMMAND...: until the command succeeds. SECONDS is for a machine that is busy with other things: 60 and
# more.
box_wait() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

# No job of this box left in the queue.
box_idle() { [ -z "$(squeue -h)" ]; }

# End every job of the box.
box_clear() {
    local id
    for id in $(squeue -h -o %A 2>/dev/null | sort -u); do scancel "$id"; done
    box_wait 90 box_idle
}

# box_lua BODY: what the submit plugin of a box with JobSubmitPlugins=lua does with every job from now on
box_lua() {
    cat >"$BOX_DIR/job_submit.lua.new" <<END
function slurm_job_submit(job, partitions, uid)
    $1
end
function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end
return slurm.SUCCESS
END
    # Slurm reads it again when it is newer by a whole second than what it read last.
    BOX_LUA=$((${BOX_LUA:-0} + 1))
    touch -d "@$(($(date +%s) + 10 * (BOX_LUA + 10 * ${BATS_TEST_NUMBER:-0})))" "$BOX_DIR/job_submit.lua.new"
    mv "$BOX_DIR/job_submit.lua.new" "$BOX_DIR/job_submit.lua"
}

# agent JSON...: one request a word; answers on stdout
agent() { printf '%s\n' "$@" | "$AGENT"; }
# Is there an answer behind the pipe, and not an error? (jq -e takes no answer at all for a good one.)
is_ok() { grep '"ok":'; }
