#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid-sbatch where the commands are a site's own programs, which print and end as they please. tests/slurm has Slurm's.

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    mkdir bin
    printf 'ClusterName=x\nAuthType=auth/none\n' >slurm.conf
    printf '#!/bin/bash\nexec "$@"\n' >run.sh
    export SLURM_CONF=$PWD/slurm.conf PATH=$PWD/bin:$PATH
    KEY=0123456789abcdef0123456789abcdef
}

# command_is NAME BODY: a program of this name
command_is() { printf '#!/bin/bash\n%s\n' "$2" >"bin/$1" && chmod 755 "bin/$1"; }
agent() { printf '%s\n' "$1" | "$HPCGRID_BUILD/orchestrator/hpcgrid-sbatch"; }

@test "nothing that leaves it open whether there is a job is called certain" {
    jq -nc --arg dir "$PWD" --arg key $KEY '{id: 1, op: "submit", job: {key: $key, name: "cell", script: ($dir + "/run.sh"), work_dir: $dir,
        output: ($dir + "/hg-" + $key)}}' >request
    failed='sbatch: error: Batch job submission failed:'
    while IFS= read -r body; do
        command_is sbatch "$body"
        agent "$(cat request)" | jq -r '.ok.job_id // .error.code'
    done >got <<END
echo 17
echo "17;other"
echo 17; kill -9 \$\$
echo "welcome"; echo "3 jobs"; echo 18
echo Submitted batch job 17
echo 99999999999
printf "17\\r\\n"
head -c 20000000 /dev/zero; echo; echo 17
exit 0
exit 1
exec >&- 2>&-; exit 1
kill -TERM \$\$
echo "$failed Invalid partition name specified" >&2; exit 1
echo "$failed Connection refused" >&2; exit 1
echo "$failed Connection reset by peer" >&2; exit 1
echo "$failed Zero Bytes were transmitted or received" >&2; exit 1
echo "$failed Socket timed out on send/recv operation" >&2; echo "$failed Invalid partition name specified" >&2; exit 1
echo 17; echo "$failed Invalid partition name specified" >&2; exit 1
echo "sbatch: error: no such thing" >&2; exit 1
echo "sbatch: error: no such thing" >&2; exit 2
echo "sbatch: error: receiving: Socket timed out on send/recv operation" >&2; exit 1
END
    diff got - <<'END'
17
17
17
18
ambiguous
ambiguous
ambiguous
ambiguous
ambiguous
ambiguous
ambiguous
ambiguous
refused
env
ambiguous
ambiguous
ambiguous
ambiguous
refused
ambiguous
ambiguous
END
}

@test "a cancel of which nobody says that it was done was not" {
    while IFS= read -r body; do
        command_is scancel "$body"
        agent '{"id":1,"op":"cancel","job_id":17}' | jq -r 'if .ok then "gone \(.ok.gone)" else .error.code end'
    done >got <<'END'
exit 0
echo "scancel: Terminating job 17" >&2
echo "scancel: error: Kill job error on job id 17: Invalid job id specified" >&2; exit 1
echo "scancel: error: Kill job error on job id 17: Job/step already completing or completed" >&2; exit 1
echo "scancel: error: Kill job error on job id 17: No error" >&2; exit 1
echo "scancel: error: Kill job error on job id 17: Zero Bytes were transmitted or received" >&2; exit 1
echo "scancel: Terminating job 17" >&2; kill -9 $$
echo "scancel: error: Kill job error on job id 17: Access/permission denied" >&2; exit 1
exit 1
END
    diff got - <<'END'
gone false
gone false
gone true
gone false
gone false
again
again
refused
again
END
}

@test "no answer is not the answer that there are no jobs" {
    while IFS= read -r body; do
        command_is squeue "$body"
        agent '{"id":1,"op":"poll"}' | jq -r 'if .ok then "\(.ok.jobs | length) jobs" else .error.code end'
    done >got <<'END'
exit 0
echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1
echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2
echo "slurm_load_jobs error: Socket timed out on send/recv operation" >&2
exit 1
kill -9 $$
echo "the queue is long today"
END
    diff got - <<'END'
0 jobs
env
env
again
again
again
again
END
}

@test "a table that was damaged on its way is not believed" {
    # row JOB TASKS: a job as squeue prints it, with the delimiter that it was given; without -r nothing more
    cat >row <<'END'
[[ " $* " == *" -r "* ]] || exit 0
delimiter=$(printf '%s' "$*" | grep -o '@[0-9a-f]*@' | head -1)
for word in "$1" "$1" "$2" PENDING 0 0 1 0 0 Resources "" hg-0123456789abcdef0123456789abcdef x y; do printf '%s%s' "$word" "$delimiter"; done
END
    while read -r job tasks; do
        command_is squeue "set -- '$job' '$tasks' \"\$@\"; $(cat row)"
        agent '{"id":1,"op":"poll"}' | jq -r 'if .ok then .ok.jobs[0].job_id else "\(.error.code): \(.error.message)" end'
    done >got <<'END'
17 0
0 0
1x7 0
99999999999 0
-17 0
17 0-x
17 0-99999999
END
    diff got - <<'END'
17
again: cannot read what squeue prints: the job "0"
again: cannot read what squeue prints: the job "1x7"
again: cannot read what squeue prints: the job "99999999999"
again: cannot read what squeue prints: the job "-17"
again: cannot read what squeue prints: the index set "0-x"
again: cannot read what squeue prints: the index set "0-99999999"
END
    command_is scontrol 'echo "MaxArraySize = 1001"; echo "MaxJobCount = 10000"; echo "MessageTimeout = 10 sec"'
    agent '{"id":1,"op":"limits"}' | jq -r '"\(.error.code): \(.error.message)"' >got
    diff got - <<<'again: cannot read what scontrol prints: its configuration has no MinJobAge'
}
