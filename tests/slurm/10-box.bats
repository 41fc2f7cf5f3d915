#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid box: a private Slurm comes up, runs jobs, and goes away without a trace.

load box

setup() {
    box_setup
    BOX=b$$
    OTHER=b$$-other
}

teardown() {
    box_tell
    [ -z "${WAITING:-}" ] || kill -KILL "$WAITING" 2>/dev/null || true
    "$HPCGRID" box down "$BOX" 2>/dev/null || true
    "$HPCGRID" box down "$OTHER" 2>/dev/null || true
    if [ -n "${PROGRAM:-}" ]; then
        runuser -u daemon -- "$PROGRAM" box down "$BOX" 2>/dev/null || true
        rm -f "$PROGRAM"
    fi
}

# Every process whose command line or open folder is in the box's folder.
processes_of() {
    local all=(/proc/[0-9]*) # before grep and find are some of them
    { grep -lszF -- "$1/" "${all[@]/%//cmdline}"; find "${all[@]/%//cwd}" -maxdepth 0 -lname "$1*"; } 2>/dev/null | cut -d/ -f3 | sort -u
}

up() {
    local line
    line=$("$HPCGRID" box up --name "$BOX" "$@") || return 1
    eval "$line"
}

@test "a box comes up with the nodes and GPUs asked for, and runs a job on them" {
    up --nodes a100:2x3,cpu:1x0
    run sinfo -h -N -p box -o '%N %G %T'
    [ "$output" = "a100-1 gpu:a100:3 idle
a100-2 gpu:a100:3 idle
cpu-1 (null) idle" ]
    run srun -p a100 -N 2 --ntasks-per-node=1 --gres=gpu:a100:3 -c 32 bash -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'
    [ "$status" -eq 0 ]
    [ "$(sort <<<"$output")" = "a100-1 0,1,2
a100-2 0,1,2" ]
}

@test "it listens on the loopback only where this host's name means 127.0.0.1" {
    up --nodes cpu:2x0
    ports=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$4 == "0A" { print $2 }')
    port=$("$HPCGRID" box status "$BOX" --json | jq .port)
    wanted=0100007F other=00000000
    if ! getent ahostsv4 "$(hostname)" | grep -q '^127\.0\.0\.1 '; then wanted=00000000 other=0100007F; fi
    for p in $port $((port + 1)) $((port + 2)); do
        grep -q "^$wanted:$(printf %04X "$p")$" <<<"$ports"
        run grep "^$other:$(printf %04X "$p")$" <<<"$ports"
        [ "$status" -eq 1 ]
    done
}

@test "a /tmp in which jobs could not run is refused before anything starts" {
    spaces=-m
    [ "$(id -u)" -eq 0 ] || spaces=-Urm
    unshare $spaces true || skip "this kernel lets nobody mount"
    cat >try <<'END'
exec 9<"$HPCGRID" # which may be in /tmp
mount -t tmpfs -o "$1" none /tmp && /proc/self/fd/9 box up --name "$BOX" --nodes cpu:1x0
END
    HPCGRID=$HPCGRID BOX=$BOX run unshare $spaces bash try size=8m
    [ "$status" -eq 4 ]
    [ "$output" = "hpcgrid: error: /tmp has 8 MiB left: a box needs 64
  free space there, or mount a larger one" ]
    HPCGRID=$HPCGRID BOX=$BOX run unshare $spaces bash try noexec
    [ "$status" -eq 4 ]
    [ "$output" = "hpcgrid: error: /tmp is mounted noexec: Slurm starts a box's jobs from there
  as root: mount -o remount,exec /tmp" ]
}

@test "a box runs jobs on two nodes whatever this host is called" {
    spaces=-um
    [ "$(id -u)" -eq 0 ] || spaces=-Urum
    unshare $spaces true || skip "this kernel lets nobody rename the host"
    sed 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf >nsswitch.conf
    cat >try <<'END'
set -e
mount --bind hosts /etc/hosts
mount --bind nsswitch.conf /etc/nsswitch.conf
hostname "$1"
trap '"$HPCGRID" box down "$BOX"' EXIT
eval "$("$HPCGRID" box up --name "$BOX" --nodes cpu:2x0)"
timeout 60 srun -N 2 -n 2 bash -c 'echo $SLURMD_NODENAME' | sort
END
    for name in debian lab nobody; do
        printf '%s\n' "127.0.0.1 localhost" "127.0.1.1 debian" "192.0.2.9 lab.example.org lab" >hosts
        HPCGRID=$HPCGRID BOX=$BOX run unshare $spaces bash try "$name"
        echo "$name: $output"
        [ "$status" -eq 0 ]
        [[ "$output" == *"cpu-1
cpu-2"* ]]
    done
}

# has_child PID NAME: the process has a child of this name
has_child() {
    local child
    for child in $(cat "/proc/$1/task/$1/children"); do
        [ "$(cat "/proc/$child/comm")" != "$2" ] || return 0
    done
    return 1
}

@test "up again is fine, other nodes are refused, none are taken as they are; nobody waits for another's nodes" {
    up --nodes cpu:2x0
    before=$("$HPCGRID" box status "$BOX" --json | jq .daemons)
    run "$HPCGRID" box up --name "$BOX" --nodes cpu:2x0
    [ "$status" -eq 0 ]
    [[ "$output" == *"was up already"* ]]
    [ "$("$HPCGRID" box status "$BOX" --json | jq .daemons)" = "$before" ]
    run "$HPCGRID" box up --name "$BOX" --nodes cpu:3x0
    [ "$status" -eq 3 ]
    [[ "$output" == *"is up with other nodes or settings"* ]]
    run "$HPCGRID" box up --name "$BOX"
    [ "$status" -eq 0 ]
    [[ "$output" == *"was up already: cpu:2x0"* ]]
    [[ "$output" == *"export SLURM_CONF=$SLURM_CONF"* ]]
    # one that waits for its nodes, stopped in it, keeps nobody from up and down: what needs the lock gets it
    kill -STOP "$(box_pid slurmctld)"
    "$HPCGRID" box up --name "$BOX" --nodes cpu:2x0 >waiting 2>&1 3>&- &
    WAITING=$!
    box_wait 60 has_child $WAITING sinfo
    kill -STOP $WAITING
    run timeout 60 "$HPCGRID" box up --name "$BOX" --nodes cpu:3x0
    echo "$output"
    [ "$status" -eq 3 ]
    run timeout 60 "$HPCGRID" box down "$BOX"
    [ "$status" -eq 0 ]
    kill -CONT $WAITING
    status=0
    wait $WAITING || status=$?
    cat waiting
    [ $status -eq 4 ]
    grep -q "box \"$BOX\" was taken down before its nodes were ready" waiting
}

# oversubscribed: two ranks of a cell planned here, with all CPUs, in the box that has but one
oversubscribed() {
    echo '{"hpcgrid": 1, "name": "x", "site": "box", "workload": {"command": ["true"]}, "axes": {"hardware": "t4", "tasks_per_node": 2}}' >m.json
    "$HPCGRID" plan m.json --out x
    grep -q '^#SBATCH --licenses=core:1$' x/batches/1.sh
    sbatch x/batches/1.sh
    box_wait 90 eval '[ -e x/cells/*/*.0.0/result.json ]'
    [ "$(jq -c '[.status, .oversubscribed, .ranks[].cores]' x/cells/*/*.0.0/result.json)" = '["ok",true,1,1]' ]
}

@test "two boxes run side by side and do not see each other, one on a single CPU" {
    up --nodes cpu:1x0
    first=$SLURM_CONF
    cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
    eval "$(taskset -c "$cpu" "$HPCGRID" box up --name "$OTHER" --nodes t4:1x1)"
    [ "$SLURM_CONF" != "$first" ]
    oversubscribed
    [ "$(sinfo -h -N -p box -o %N)" = t4-1 ]
    [ "$(SLURM_CONF=$first sinfo -h -N -p box -o %N)" = cpu-1 ]
    run "$HPCGRID" box list
    [[ "$output" == *"$BOX "* && "$output" == *"$OTHER "* ]]
    "$HPCGRID" box down "$OTHER"
    [ "$(SLURM_CONF=$first sinfo -h -N -p box -o %T)" = idle ]
}

@test "settings reach slurm.conf; those that would break the box out are refused" {
    up --nodes cpu:1x0 --set MaxArraySize=101 --set MessageTimeout=7 --set AuthInfo=ttl=9
    run scontrol show config
    grep -qE '^MaxArraySize += 101$' <<<"$output"
    grep -qE '^MessageTimeout += 7 ' <<<"$output"
    grep -qE '^AuthInfo += socket=.*,ttl=9$' <<<"$output"
    run "$HPCGRID" box up --name "$OTHER" --set StateSaveLocation=/
    [ "$status" -eq 2 ]
    run "$HPCGRID" box up --name "$OTHER" --set SlurmctldParameters=
    [ "$status" -eq 2 ]
}

@test "down ends running jobs, those that left their session too, and leaves neither process nor folder" {
    up --nodes cpu:2x0
    dir=$(dirname "$SLURM_CONF")
    sbatch -D "$dir" -o /dev/null --array=0-3 --wrap 'setsid sleep 7654 & trap "" TERM; while :; do sleep 0.1; done' >/dev/null
    box_wait 90 eval '[ "$(squeue -h -t R | wc -l)" -eq 4 ]'
    box_wait 90 eval '[ "$(processes_of "$dir" | wc -l)" -gt 8 ]'
    jobs=$(processes_of "$dir")
    "$HPCGRID" box down "$BOX"
    [ ! -e "$dir" ]
    for pid in $jobs; do
        # Not merely deleted: gone (a number may be somebody else's by now).
        run bash -c "tr '\\0' ' ' <'/proc/$pid/cmdline' 2>/dev/null | grep -E '$dir|sleep 7654'"
        [ "$status" -eq 1 ]
    done
    [ -z "$(processes_of "$dir")" ]
}

@test "the folder of all boxes goes with the last box" {
    root=$(dirname "$(dirname "$(up --nodes cpu:1x0; echo "$SLURM_CONF")")")
    "$HPCGRID" box down "$BOX"
    [ -z "$("$HPCGRID" box list)" ] || skip "other boxes are up"
    [ ! -e "$root" ]
}

@test "a box of a killed keeper is listed as lost, and can be taken down with its jobs" {
    up --nodes cpu:1x0
    dir=$(dirname "$SLURM_CONF")
    sbatch -D "$dir" -o /dev/null --wrap 'sleep 7655' >/dev/null
    box_wait 90 eval '[ "$(squeue -h -t R | wc -l)" -eq 1 ]'
    keeper=$("$HPCGRID" box status "$BOX" --json | jq .keeper.pid)
    kill -KILL "$keeper"
    box_wait 90 eval '[ ! -e /proc/$keeper/exe ]' # the signal is sent, not yet taken
    run "$HPCGRID" box list
    grep -qE "^$BOX +lost" <<<"$output"
    run "$HPCGRID" box status "$BOX"
    [ "$status" -eq 1 ]
    "$HPCGRID" box down "$BOX"
    [ ! -e "$dir" ]
    [ -z "$(processes_of "$dir")" ]
}

# before PROGRAM: a script on stdin that stands before the real one in PATH
before() {
    mkdir -p bin
    cat >bin/"$1"
    chmod 755 bin/"$1"
}

@test "a start that is interrupted twice, or whose keeper is killed, leaves nothing" {
    local dir
    dir=/tmp/hpcgrid-$(id -u)/$BOX
    printf '#!/bin/bash\nexec -a slurmd sleep 7657\n' | before slurmd # its node is waited for
    PATH=$PWD/bin:$PATH "$HPCGRID" box up --name "$BOX" --nodes cpu:1x0 >waiting 2>&1 3>&- &
    WAITING=$!
    box_wait 60 has_child $WAITING sinfo
    kill -TERM $WAITING
    kill -TERM $WAITING 2>/dev/null || true
    status=0
    wait $WAITING || status=$?
    cat waiting
    [ $status -eq 143 ]
    [ ! -e "$dir" ]
    [ -z "$(processes_of "$dir")" ]
    # munged runs when the keeper dies with slurmctld's start
    before slurmctld <<END
#!/bin/bash
[ "\$1" = -D ] || exec $(PATH=$PATH:/usr/sbin:/sbin command -v slurmctld) "\$@" # which version it is
kill -KILL \$PPID
END
    tail -F "$dir/log/slurmctld.log" >/dev/null 2>&1 3>&- & # somebody who only reads
    WAITING=$!
    PATH=$PWD/bin:$PATH run "$HPCGRID" box up --name "$BOX" --nodes cpu:2x0
    echo "$output"
    [ "$status" -eq 4 ]
    [[ "$output" == *"the box's keeper was killed"* ]]
    [ ! -e "$dir" ]
    box_wait 60 eval '[ "$(processes_of "$dir")" = $WAITING ]'
}

@test "after a restart of the machine a box is cleared away, and no pid of that time is touched" {
    up --nodes cpu:1x0
    dir=$(dirname "$SLURM_CONF")
    cp "$dir/box.json" saved
    "$HPCGRID" box down "$BOX"
    # The same record, of another boot, with pids that now are others': this shell's.
    mkdir -p "$dir"
    chmod 755 "$(dirname "$dir")"
    start=$(awk '{ print $22 }' /proc/$$/stat)
    jq --argjson pid $$ --argjson start "$start" '.boot_id = "00000000-0000-0000-0000-000000000000" |
        .keeper = {pid: $pid, start: $start} | .daemons[] |= (.pid = $pid | .start = $start)' saved >"$dir/box.json"
    run "$HPCGRID" box list
    grep -qE "^$BOX +lost" <<<"$output"
    up --nodes cpu:1x0
    [ "$("$HPCGRID" box status "$BOX" --json | jq -r .state)" = up ]
    kill -0 $$
}

@test "a reused pid is not hit" {
    up --nodes cpu:1x0
    dir=$(dirname "$SLURM_CONF")
    cp "$dir/box.json" saved
    "$HPCGRID" box down "$BOX"
    sleep 7656 3>&- &
    innocent=$!
    mkdir -p "$dir"
    # This boot, the pid of an innocent process, the start time of somebody else.
    jq --argjson pid $innocent '.keeper = {pid: $pid, start: 1} | .daemons[] |= (.pid = $pid | .start = 1)' saved >"$dir/box.json"
    "$HPCGRID" box down "$BOX"
    kill -0 $innocent
    kill $innocent
    [ ! -e "$dir" ]
}

@test "a dead daemon shows as degraded, and up starts it again" {
    box=(--nodes cpu:2x0 --set MessageTimeout=4)
    up "${box[@]}"
    kill -KILL "$(box_pid slurmd-cpu-2)"
    box_wait 90 eval '[ "$("$HPCGRID" box status "$BOX" --json | jq -r .state)" = degraded ]'
    run "$HPCGRID" box up --name "$BOX" "${box[@]}"
    [ "$status" -eq 0 ]
    [ "$("$HPCGRID" box status "$BOX" --json | jq -r .state)" = up ]
    srun -N 2 true
    # so it does with one that looked alive when up began
    pid=$(box_pid slurmctld)
    kill -STOP "$pid"
    "$HPCGRID" box up --name "$BOX" "${box[@]}" >waiting 2>&1 3>&- &
    WAITING=$!
    box_wait 60 has_child $WAITING sinfo
    kill -KILL "$pid"
    status=0
    wait $WAITING || status=$?
    cat waiting
    [ $status -eq 0 ]
    [ "$("$HPCGRID" box status "$BOX" --json | jq -r .state)" = up ]
    srun -N 2 true
}

@test "a missing program is named with the package that has it" {
    mkdir bin
    for program in env bash; do ln -s "$(command -v $program)" bin/; done
    # An empty root for the sbin folders is not to be had without root; a user namespace has one.
    unshare -rm true 2>/dev/null || skip "no mount namespaces here"
    mkdir empty
    run unshare -rm bash -c "for d in /usr/sbin /sbin; do mount --bind empty \$d; done; PATH=$PWD/bin exec '$HPCGRID' box up --name '$OTHER' --nodes cpu:1x0"
    [ "$status" -eq 4 ]
    [[ "$output" == *"a box needs munged, slurmctld, slurmd"* ]]
    [[ "$output" == *"sudo apt-get install --no-install-recommends munge slurmctld slurmd"* ]]
}

@test "a daemon that fails is shown with the end of its log, and nothing is left" {
    run "$HPCGRID" box up --name "$BOX" --nodes cpu:1x0 --set SelectType=select/none-such
    [ "$status" -eq 4 ]
    echo "$output"
    [[ "$output" == *"slurmctld ended"* ]] # at once, or just after it had begun to listen (24.11)
    [[ "$output" == *"select/none-such"* ]]
    run "$HPCGRID" box down "$BOX"
    [ "$status" -ne 0 ]
    [[ "$output" == *"there is no box"* ]]
}

@test "MPI ranks on two virtual nodes find each other" {
    command -v mpicc >/dev/null || skip "mpicc is not installed"
    cat >sum.c <<'END'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, world, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d of %d: %d\n", rank, world, sum);
    MPI_Finalize();
    return 0;
}
END
    mpicc sum.c -o sum
    up --nodes cpu:2x0
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
    srun --kill-on-bad-exit=1 -N 2 --ntasks-per-node=2 ./sum | sort >got
    diff got - <<'END'
0 of 4: 6
1 of 4: 6
2 of 4: 6
3 of 4: 6
END
}

@test "ranks of two nodes wait for one another when they start" {
    command -v mpicc >/dev/null || skip "mpicc is not installed"
    cat >start.c <<'END'
#include <mpi.h>
#include <stdio.h>
#include <time.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
int main(int argc, char **argv)
{
    double before = now();
    MPI_Init(&argc, &argv);
    printf("%.6f %.6f\n", before, now());
    MPI_Finalize();
    return 0;
}
END
    mpicc start.c -o start
    up --nodes cpu:2x0
    export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pmix_base_collect_data=0
    srun -N 2 --ntasks-per-node=2 bash -c '[ $SLURM_PROCID != 2 ] || sleep 1; exec ./start' >times
    cat times
    [ "$(wc -l <times)" = 4 ]
    # the first to go on did so after the last had come
    awk '{ if ($1 > last) last = $1; if (!first || $2 < first) first = $2 } END { exit !(first >= last) }' times
}

@test "as an ordinary user: up, a job on two nodes' GPUs, down" {
    [ "$(id -u)" -eq 0 ] || skip "this is an ordinary user already"
    install -m 755 "$HPCGRID" "$T/hpcgrid"
    chmod 755 "$T"
    name=$BOX
    # not nobody: Slurm 25.11 and later refuse to run as that
    as() { runuser -u daemon -- env -i PATH="$PATH" "$@"; }
    # The test's folder may be closed to others, the program need not be.
    PROGRAM=/tmp/hg-program-$$
    cp "$T/hpcgrid" "$PROGRAM"
    line=$(as "$PROGRAM" box up --name "$name" --nodes a100:2x4)
    dir=${line#export SLURM_CONF=}
    dir=${dir%/slurm.conf}
    [ "$(stat -c %u "$dir")" = "$(id -u daemon)" ]
    cd /
    run as SLURM_CONF="$dir/slurm.conf" srun -N 2 --gres=gpu:a100:4 bash -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $(id -un)'
    [ "$(sort <<<"$output")" = "a100-1 0,1,2,3 daemon
a100-2 0,1,2,3 daemon" ]
    as "$PROGRAM" box down "$name"
    [ ! -e "$dir" ]
    [ -z "$(processes_of "$dir")" ]
}
