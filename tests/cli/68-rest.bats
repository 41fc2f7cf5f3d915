#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The words of slurmrestd's newer versions. tests/data/rest has what the one of Slurm 24.11.5 said, shortened and with some
# jobs added; tests/slurm/35-rest.bats has a living one.

load ../slurm/box
load ../slurm/rest

setup() {
    T=$BATS_TEST_TMPDIR
    cd "$T" || return 1
    cp -r "$HPCGRID_SOURCE/tests/data/rest" data
    printf '#!/bin/bash\nexec "$@"\n' >run.sh
    SLURM_JWT=$(for part in '{"alg":"HS256"}' '{"exp":4000000000,"sun":"root"}' x; do printf %s "$part" | base64 -w0 | tr '/+' '_-' | tr -d =; printf .; done | sed 's/\.$//')
    export SLURM_JWT
    UPSTREAM=$T/data middleman drop nothing 0
}

teardown() { middleman_stop; }

@test "limits: version, cluster and accounting come from its answers" {
    rest '{"id":1,"op":"limits"}' | jq -c '[.ok.version, .ok.cluster, .ok.accounting, .rpcs]' >got
    diff got - <<<'["24.11.5","box",true,1]'
}

@test "a job is said in its words" {
    jq -nc --arg dir "$PWD" '{id: 1, op: "submit", job: {key: "0123456789abcdef0123456789abcdef", name: "cell", script: ($dir + "/run.sh"), work_dir: $dir,
        output: ($dir + "/hg-0123456789abcdef0123456789abcdef_%a.out"), args: ["a b"], array: "0-9,12", running_max: 3, nodes: 2, tasks_per_node: 4,
        cpus_per_task: 8, gres: "gpu:a100:2,nic:1", mem_mib: 0, time_s: 3601, partition: "p", account: "a", qos: "q", constraint: "c", reservation: "r",
        licenses: "l:1", signal_lead_s: 90, requeue: false, extra: ["--hold", "--nice=-3", "--begin=2038-01-01T00:00:00", "--exclusive", "-x", "n[1-2]", "-w", "n3",
            "--mail-type=END,TIME_LIMIT_90", "--mem-per-gpu=1G", "--cpus-per-gpu=4", "--gpu-bind=closest", "--gpu-freq=high", "--switches=2@10", "--time-min=30",
            "--priority=7", "--no-kill", "--tmp=2G", "--contiguous", "--deadline=2038-01-02T00:00:00"]}}' >request
    TZ=UTC rest "$(cat request)" | jq -c .ok >got
    diff got - <<<'{"job_id":17,"site":"be kind"}'
    jq -S --arg dir "$PWD" '.job | del(.environment) | walk(if type == "string" then gsub($dir; "DIR") else . end)' data/POST_slurm_v0.0.42_job_submit.asked >got
    jq -S . "$HPCGRID_SOURCE/tests/data/rest/submitted.json" | diff got -
    jq -e '.job.environment | index("SLURM_NTASKS=8")' data/POST_slurm_v0.0.42_job_submit.asked
    run grep -c "$SLURM_JWT" data/POST_slurm_v0.0.42_job_submit.asked
    [ "$output" = 0 ]
}

# token SECONDS: one that ends so long from now
token() {
    for part in '{"alg":"HS256"}' "{\"exp\":$(($(date +%s) + $1)),\"sun\":\"root\"}" x; do printf %s "$part" | base64 -w0 | tr '/+' '_-' | tr -d =; printf .; done | sed 's/\.$//'
}

@test "a submission without an answer may appear as long as its token lives, at most as long as the site says" {
    middleman_stop
    UPSTREAM=$T/data middleman drop job/submit 3
    jq -nc --arg dir "$PWD" '{id: 1, op: "submit", job: {key: "0123456789abcdef0123456789abcdef", name: "cell", script: ($dir + "/run.sh"), work_dir: $dir,
        output: ($dir + "/hg-0123456789abcdef0123456789abcdef.out")}}' >request
    rest "$(cat request)" | jq -c '.error | [.code, .ambiguous_s]' >got
    SLURM_JWT=$(token 100) rest "$(cat request)" | jq -c '.error | [.code, (.ambiguous_s - 110 | . > -50 and . <= 0)]' >>got
    SLURM_JWT=$(token 100) CONFIG='{ambiguous_s: 9}' rest "$(cat request)" | jq -c '.error | [.code, .ambiguous_s]' >>got
    diff got - <<'END'
["ambiguous",300]
["ambiguous",true]
["ambiguous",9]
END
}

@test "an array that the cluster finds too long names what the site should say" {
    echo '{"meta": {}, "errors": [{"error_number": 2081, "error": "Invalid job array specification"}]}' >data/POST_slurm_v0.0.42_job_submit.json
    jq -nc --arg dir "$PWD" '{id: 1, op: "submit", job: {key: "0123456789abcdef0123456789abcdef", name: "cell", script: ($dir + "/run.sh"), work_dir: $dir, array: "0-1000",
        output: ($dir + "/hg-0123456789abcdef0123456789abcdef.out")}}' >request
    rest "$(cat request)" | jq -r '.error | "\(.code) \(.errno) \(.message)"' >got
    diff got - <<'END'
refused 2081 submit: Invalid job array specification (2081): slurmrestd does not tell MaxArraySize (`scontrol show config`), and 1001 is assumed; set rest.max_array_size of the site
END
}

@test "what it has no word for is refused before it is sent" {
    jq -nc --arg dir "$PWD" '{id: 1, op: "submit", job: {key: "0123456789abcdef0123456789abcdef", name: "cell", script: ($dir + "/run.sh"), work_dir: $dir,
        output: ($dir + "/hg-0123456789abcdef0123456789abcdef"), extra: ["--cores-per-socket=2"]}}' >request
    rest "$(cat request)" | jq -r '.error | "\(.code): \(.message)"' >got
    diff got - <<<'refused: sbatch option --cores-per-socket: slurmrestd (v0.0.42) does not support it'
    [ ! -e data/POST_slurm_v0.0.42_job_submit.asked ]
}

@test "a token that is turned away: env, and nothing was submitted" {
    middleman_stop
    UPSTREAM=$T/data middleman 401 job/submit 1
    jq -nc --arg dir "$PWD" '{id: 1, op: "submit", job: {key: "0123456789abcdef0123456789abcdef", name: "cell", script: ($dir + "/run.sh"), work_dir: $dir,
        output: ($dir + "/hg-0123456789abcdef0123456789abcdef")}}' >request
    rest "$(cat request)" | jq -r '.error | "\(.code): \(.message) \(.hint)"' >got
    [[ "$(cat got)" == "env: $URL: slurmrestd refuses access (HTTP 401)"*"scontrol token"* ]]
}

@test "an error that is a gateway's and not slurmrestd's leaves a submission open" {
    middleman_stop
    UPSTREAM=$T/data middleman 504 job/submit 1
    jq -nc --arg dir "$PWD" '{id: 1, op: "submit", job: {key: "0123456789abcdef0123456789abcdef", name: "cell", script: ($dir + "/run.sh"), work_dir: $dir,
        output: ($dir + "/hg-0123456789abcdef0123456789abcdef")}}' >request
    rest "$(cat request)" | jq -r '.error | "\(.code): \(.message)"' >got
    diff got - <<<"ambiguous: $URL does not answer like slurmrestd (HTTP 504): {\"errors\": [{\"error\": \"upstream timed out\"}]}"
    [ -s data/POST_slurm_v0.0.42_job_submit.asked ]
}

@test "an answer that is not HTTP leaves a submission open" {
    middleman_stop
    UPSTREAM=$T/data middleman noise job/submit 1
    jq -nc --arg dir "$PWD" '{id: 1, op: "submit", job: {key: "0123456789abcdef0123456789abcdef", name: "cell", script: ($dir + "/run.sh"), work_dir: $dir,
        output: ($dir + "/hg-0123456789abcdef0123456789abcdef")}}' >request
    [ "$(rest "$(cat request)" | jq -r .error.code)" = ambiguous ]
    [ -s data/POST_slurm_v0.0.42_job_submit.asked ]
}

@test "a name of a user adds no line to a request" {
    for user in '"a\r\nX-Evil: 1"' '"a\nX-Evil: 1"' '"a b"'; do
        CONFIG="{user: $user}" run rest '{"id":1,"op":"limits"}'
        [ "$status" -eq 3 ]
        [[ "$output" == *"/user: "*" is not the name of a user"* ]]
    done
}

@test "jobs, also one whose index set is cut short and one that is completing" {
    rest '{"id":1,"op":"poll"}' | jq -c '.ok.jobs[] | [.key[:1], .job_id, .tasks, .state, .reason, .restarts, .exit_status, .submit_s, .start_s, .end_s]' >got
    diff got - <<'END'
["1",57,"0","COMPLETED","",0,0,1795330687,1795330687,1795330688]
["1",57,"1","FAILED","NonZeroExitCode",0,256,1795330687,1795330687,1795330688]
["1",57,"2","FAILED","NonZeroExitCode",0,512,1795330687,1795330687,1795330688]
["2",60,"0","RUNNING","",0,0,1795330688,1795330689,0]
["2",60,"1","RUNNING","",0,0,1795330688,1795330689,0]
["2",60,"2-20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,50,52,54,56-999","PENDING","Licenses",0,0,1795330688,0,0]
["3",70,"","TIMEOUT","TimeLimit,COMPLETING",1,15,1795330687,1795330687,1795330688]
END
    sed -i 's/ 0-999"/"/g' data/GET_slurm_v0.0.42_jobs.json
    rest '{"id":1,"op":"poll"}' | jq -r '.error | "\(.code): \(.message)"' >got
    diff got - <<<'env: slurmrestd returns only some of the tasks of job 60'
}

@test "an answer without a list is not one without jobs" {
    jq -c 'del(.jobs)' "$HPCGRID_SOURCE/tests/data/rest/GET_slurm_v0.0.42_jobs.json" >data/GET_slurm_v0.0.42_jobs.json
    echo '{"message":"we are back soon"}' >data/GET_slurmdb_v0.0.42_jobs.json
    rest '{"id":1,"op":"poll"}' '{"id":2,"op":"history","keys":["11111111111111111111111111111111"],"since_s":1}' | jq -r '.error | "\(.code): \(.message)"' >got
    diff got - <<END
env: cannot list jobs: $URL does not answer like slurmrestd
env: cannot list jobs of the accounting database: $URL does not answer like slurmrestd
END
}

@test "a job without a number of its own is not believed" {
    for number in 0 -1 1e300 4294967313 null '{"set": true}'; do
        jq -c --argjson n "$number" '.jobs |= [.[0] | .array_job_id = $n | .job_id = $n]' "$HPCGRID_SOURCE/tests/data/rest/GET_slurm_v0.0.42_jobs.json" >data/GET_slurm_v0.0.42_jobs.json
        rest '{"id":1,"op":"poll"}' | jq -r '"\(.error.code): \(.error.message)"'
    done >got
    diff got - <<'END'
again: slurmrestd returns a job with the number 0
again: slurmrestd returns a job with the number -1
again: slurmrestd returns a job with the number 0
again: slurmrestd returns a job with the number 4294967313
again: slurmrestd returns a job with the number 0
again: slurmrestd returns a job with the number 0
END
}

@test "the accounting database" {
    rest '{"id":1,"op":"history","keys":["11111111111111111111111111111111"],"since_s":1}' |
        jq -c '.ok.jobs[] | [.key[:1], .job_id, .tasks, .state, .restarts, .exit_status]' | sort >got
    diff got - <<'END'
["1",57,"0","COMPLETED",0,0]
["1",57,"1","FAILED",0,256]
["1",57,"2","FAILED",1,512]
["1",57,"9","REQUEUED",0,512]
END
}

@test "partitions and nodes" {
    rest '{"id":1,"op":"partitions"}' | jq -c '.ok.partitions[] | [.name, .default, .up, .max_time_s, .max_nodes, .nodes, .total_nodes, .total_cpus]' >got
    rest '{"id":1,"op":"nodes"}' | jq -c '.ok.nodes[] | [.name, .state, .cpus, .mem_mib, .gres, .features, .version]' >>got
    diff got - <<'END'
["box",null,true,null,null,"a100-[1-2],cpu-1",3,192]
["a100",null,true,null,null,"a100-[1-2]",2,128]
["a100-1","MIXED",64,1000000,"gpu:a100:2","a100","24.11.5"]
["cpu-1","IDLE",64,1000000,"","cpu","24.11.5"]
END
}

@test "tasks are cancelled by a list, and held only with their whole array" {
    rest '{"id":1,"op":"cancel","job_id":17,"tasks":"3-4"}' | jq -c .ok >got
    jq -c . data/DELETE_slurm_v0.0.42_jobs.asked >>got
    rest '{"id":1,"op":"hold","job_id":17,"held":true}' | jq -c .ok >>got
    jq -c . data/POST_slurm_v0.0.42_job_17.asked >>got
    rest '{"id":1,"op":"hold","job_id":17,"tasks":"3-4","held":false}' | jq -r '.error | "\(.code): \(.message): \(.hint)"' >>got
    diff got - <<'END'
{"gone":false}
{"jobs":["17_[3-4]"]}
{"gone":false}
{"hold":true}
refused: release: slurmrestd (v0.0.42) supports whole arrays only: scontrol release "17_[3-4]"
END
    jq -c '.status |= map(.error.code = 2017)' "$HPCGRID_SOURCE/tests/data/rest/DELETE_slurm_v0.0.42_jobs.json" >data/DELETE_slurm_v0.0.42_jobs.json
    rest '{"id":1,"op":"cancel","job_id":17}' | jq -se '.[0] | .ok.gone'
    jq -c '.status |= map(.error = {code: 2002, string: "Access/permission denied"})' "$HPCGRID_SOURCE/tests/data/rest/DELETE_slurm_v0.0.42_jobs.json" >data/DELETE_slurm_v0.0.42_jobs.json
    rest '{"id":1,"op":"cancel","job_id":17}' | jq -r '.error | "\(.code): \(.message)"' >got
    diff got - <<<'refused: cancel: Access/permission denied (2002)'
}

@test "where it is asked for and no slurmrestd URL is set, doctor says how to name one" {
    env -u SLURMRESTD_URL HPCGRID_TRANSPORT=rest "$HPCGRID" doctor --json | jq -r '.findings[] | select(.what == "transport") | .state, .found, .next' >got
    grep -qx missing got
    grep -q '^rest (slurmrestd), chosen by HPCGRID_TRANSPORT, does not work here: no slurmrestd URL is set' got
    grep -qxF 'write "rest": {"url": "http://HOST:6820"} in the site, or set SLURMRESTD_URL; or request another: "transport" of the site, HPCGRID_TRANSPORT' got
}
