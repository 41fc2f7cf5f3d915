#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# hpcgrid-rest against a real slurmrestd and slurmctld: slurm/README.md is the contract.

bats_require_minimum_version 1.5.0
load box
load requests
load rest

setup_file() {
    box_lacks >/dev/null && return 0
    rest_lacks >/dev/null && return 0
    head -c 32 /dev/urandom >"$BATS_FILE_TMPDIR/jwt.key"
    chmod 600 "$BATS_FILE_TMPDIR/jwt.key"
    box_up a100:2x2 MessageTimeout=30 AuthAltTypes=auth/jwt "AuthAltParameters=jwt_key=$BATS_FILE_TMPDIR/jwt.key"
    rest_start rest_auth/jwt
    SLURM_JWT=$(scontrol token lifespan=7200 | sed s/SLURM_JWT=//)
    export SLURM_JWT
}

teardown_file() {
    unset SLURM_JWT
    rest_stop
    box_down
}

setup() {
    box_setup
    rest_need
    URL=unix:$REST_SOCKET
    requests_setup
}

teardown() {
    box_tell
    middleman_stop
    unset SLURM_JWT
    box_clear
}

ask() { rest "$@"; }

# Debian 12's slurmrestd, v0.0.38
old_words() { [[ "$(PATH=$PATH:/usr/sbin slurmrestd -V)" == *" 22.05"* ]]; }
is_2311() { [[ "$(PATH=$PATH:/usr/sbin slurmrestd -V)" == *" 23.11"* ]]; } # Ubuntu 24.04's

# fails CODE TEXT [HINT]: $output is an error of this code, with these words
fails() {
    echo "$output"
    [ "$(jq -r .error.code <<<"$output")" = "$1" ]
    [[ "$(jq -r .error.message <<<"$output")" == *"$2"* ]]
    [[ "$(jq -r .error.hint <<<"$output")" == *"${3:-}"* ]]
}

# claims JSON: a token that says so; nobody signed it
claims() {
    local part
    for part in '{"alg":"HS256","typ":"JWT"}' "$1" signature; do printf %s "$part" | base64 -w0 | tr '/+' '_-' | tr -d =; printf .; done | sed 's/\.$//'
}

@test "hello asks nobody, limits are what slurmrestd tells and what the site says" {
    [ "$(URL=unix:/nonexistent rest '{"id":1,"op":"hello"}' | jq -c '[.ok.conf, .rpcs]')" = '["unix:/nonexistent",0]' ]
    CONFIG='{max_array_size: 5001, ambiguous_s: 9}' rest '{"id":1,"op":"limits"}' | jq -c '.ok | del(.version, .cluster)' >got
    diff got - <<'END'
{"max_array_size":5001,"max_jobs":10000,"min_job_age_s":300,"ambiguous_s":9,"message_timeout_s":15,"accounting":false}
END
}

@test "an array is one message; words, states, exit codes and times come back" {
    printf '#!/bin/bash\nprintf "%%s|" "$@"\nenv >env.txt\nexit $((SLURM_ARRAY_TASK_ID * 3))\n' >run.sh
    export MY_API_KEY=canary
    run submit '.array = "0-1" | .args = ["a b", "it'\''s", "$HOME", ""]'
    id=$(jq .ok.job_id <<<"$output")
    [ "$id" -gt 0 ]
    box_wait 90 all_ended
    poll | jq -c 'sort_by(.tasks)[] | [.tasks, .state, .exit_status / 256, .restarts, .start_s >= .submit_s, .end_s >= .start_s]' >got
    diff got - <<'END'
["0","COMPLETED",0,0,true,true]
["1","FAILED",3,0,true,true]
END
    [ "$(cat hg-"${KEY}"_0.out)" = "a b|it's|\$HOME||" ]
    [ "$(rest '{"id":2,"op":"poll"}' | jq .rpcs)" = 2 ] # the first call of an agent asks whether slurmctld is there
    run -1 grep -e canary -e "$SLURM_JWT" env.txt
    grep -qx "SLURM_SUBMIT_DIR=$PWD" env.txt
}

@test "fields and options reach the job as sbatch would send them" {
    core=core:$(nproc) # the box has no more of them
    id=$(submit '. + {nodes: 2, tasks_per_node: 2, cpus_per_task: 8, gres: "gpu:a100:2", mem_mib: 4096, time_s: 3600, args: [],
        partition: "a100", constraint: "a100", licenses: "'"$core"'", requeue: true, signal_lead_s: 90,
        extra: ["--hold", "--nice=7", "--begin=2038-01-01", "--exclusive=user", "--mail-type=END,FAIL", "--mail-user=x", "--threads-per-core=1",
        "--mincpus=16", "--time-min=10", "--no-kill", "--prefer=a100", "--priority=9"]}' | tee answer | jq .ok.job_id)
    cat answer
    other=$(env -u SLURM_JWT sbatch --parsable -H -N 2 --ntasks-per-node=2 -n 4 -c 8 --gres=gpu:a100:2 --mem=4096 -t 60 -p a100 -C a100 -L "$core" \
        --requeue --signal=USR1@90 --nice=7 --begin=2038-01-01 --exclusive=user --mail-type=END,FAIL --mail-user=x --threads-per-core=1 --mincpus=16 \
        --time-min=10 --no-kill --prefer=a100 --priority=9 \
        -o "$PWD/hg-${KEY}_%a.out" -D "$PWD" -J "cell.hg-$KEY" --comment "hg-$KEY" run.sh)
    # What differs by nature: the id, when it was looked at, the path of the script, who asked and how, two names for one wish.
    clean() { env -u SLURM_JWT scontrol show job "$1" | grep -v 'Priority=\|SubmitTime=\|AccrueTime=\|LastSchedEval\|Command=\|OOMKillStep=\|SubmitLine=\|TresPerTask=\|^ *$' | sed 's/JobId=[0-9]*//; s/AllocNode:.*//'; }
    diff <(clean "$id") <(clean "$other")
}

@test "what is refused is refused for good, and named" {
    run submit '.partition = "nope"'
    fails refused "submit (partition nope): Invalid partition name specified (2000)"
    run submit '.gres = "gpu:a100:9"'
    fails refused "(2014)"
    if old_words; then
        run submit '.extra = ["--exclude=a100-1"]'
        fails refused "sbatch option --exclude: slurmrestd (v0.0.38) does not support it"
        run submit '.extra = ["--cpus-per-gpu=4"]'
        fails refused "sbatch option --cpus-per-gpu: slurmrestd"
    fi
    run submit '.extra = ["--export=ALL"]'
    fails refused "--export: use"
    KEY=$(tr 0-9a-f 1-9a-f0 <<<"${KEY:0:1}")${KEY:1} # another one: a refusal with 2014 leaves a record
    if old_words; then
        sed -i '1s|.*|#!/usr/bin/awk -f|' run.sh
        run submit
        fails refused "only a shell script can have arguments"
    fi
    for change in '.partition = "nope"' '.partition = "a100" | .nodes = 3'; do
        run rest "{\"id\":1,\"op\":\"probe\",\"job\":$(job "$change | .args = []")}"
        [ "$(jq -r .error.code <<<"$output")" = refused ]
    done
    run rest "{\"id\":1,\"op\":\"probe\",\"job\":$(job '.partition = "a100" | .nodes = 2 | .args = []')}"
    [ "$(jq -c .ok <<<"$output")" = '{"start_s":0,"nodes":""}' ]
    [ "$(poll)" = "[]" ]
}

@test "a scattered rest is told in full although slurmrestd cuts it short; tasks are cancelled, held, released" {
    id=$(submit '.array = "0-999" | .args = ["sleep", "1000"] | .licenses = "core:1" | .extra = ["--hold"]' | jq .ok.job_id)
    run rest "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id,\"tasks\":\"$(seq -s, 1 2 99)\"}"
    if is_2311; then
        fails refused "cancel: slurmrestd (v0.0.40) supports whole arrays only"
        [ "$(rest "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id}" | jq -c .ok)" = '{"gone":false}' ]
        return
    fi
    [ "$(jq -c .ok <<<"$output")" = '{"gone":false}' ]
    # Only the first of them are told; of those that had no record of their own, the cancelled ones cannot be.
    [[ "$(poll | jq -r '.[] | select(.state == "PENDING") | .tasks')" == "0,2,4,6,8,10,12,14,16,18,20,"*"-999" ]]
    poll | jq -r '.[] | select(.state == "PENDING") | .tasks | split(",")[]' >waiting
    [ "$(grep -cx '1\|3\|5\|7\|99' waiting)" = 0 ]
    [ "$(rest "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id,\"tasks\":\"100-999\"}" | jq .ok.gone)" = false ]
    run rest "{\"id\":1,\"op\":\"hold\",\"job_id\":$id,\"tasks\":\"2,4\",\"held\":false}"
    if old_words; then
        [ "$(jq -c .ok <<<"$output")" = '{"gone":false}' ]
        [ "$(poll | jq -r '[.[] | select(.state != "CANCELLED" and (.reason | startswith("JobHeld") | not)) | .tasks] | sort | join(" ")')" = "2 4" ]
    else
        fails refused "supports whole arrays only"
    fi
    run rest "{\"id\":1,\"op\":\"hold\",\"job_id\":$id,\"held\":true}"
    [ "$(jq -c .ok <<<"$output")" = '{"gone":false}' ]
    for tasks in '' ',"tasks":"0-4"'; do
        [ "$(rest "{\"id\":1,\"op\":\"cancel\",\"job_id\":$id$tasks}" | jq -c .ok)" = '{"gone":false}' ]
        [ "$(rest "{\"id\":1,\"op\":\"cancel\",\"job_id\":999999$tasks}" | jq -c .ok)" = '{"gone":true}' ]
    done
}

@test "partitions and nodes" {
    [ "$(rest '{"id":1,"op":"partitions"}' | jq -c '[.ok.partitions[] | [.name, .default != false, .up, .nodes, .total_nodes, .max_time_s]]')" = \
        "[[\"box\",true,true,\"a100-[1-2]\",2,null],[\"a100\",$(old_words && echo false || echo true),true,\"a100-[1-2]\",2,null]]" ]
    [ "$(rest '{"id":1,"op":"nodes"}' | jq -c '[.ok.nodes[] | [.name, .cpus, .gres, .features]]')" = \
        '[["a100-1",64,"gpu:a100:2","a100"],["a100-2",64,"gpu:a100:2","a100"]]' ]
}

@test "an answer that is lost or spoilt: the submission is ambiguous, and there" {
    n=0
    for mode in drop reset half 502 page; do
        KEY=$((++n))${KEY:1}
        middleman $mode job/submit 1
        run submit '.extra = ["--hold"]'
        fails ambiguous ""
        [ "$(poll | jq length)" = 1 ]
        middleman_stop
    done
    middleman silent job/submit 1
    KEY=0${KEY:1}
    CONFIG='{timeout_s: 4}' run submit '.extra = ["--hold"]'
    fails ambiguous ""
    [ "$(poll | jq length)" = 1 ]
}

@test "an answer that is lost means nothing where nothing was submitted: again" {
    for mode in drop half 502; do
        middleman $mode /jobs 1
        run rest '{"id":1,"op":"poll"}'
        fails again ""
        middleman_stop
    done
    middleman page /jobs 1
    run rest '{"id":1,"op":"poll"}'
    fails env "does not answer with JSON (HTTP 200)" "is the URL that of a slurmrestd"
}

@test "nobody there: env, and nothing was submitted" {
    middleman drop nothing 0
    middleman_stop
    run submit
    fails env "cannot connect to $URL" "is slurmrestd running"
    [ "$(jq .rpcs <<<"$output")" = 0 ]
    URL=unix:$T/nobody run submit
    fails env "cannot connect to $T/nobody" "is slurmrestd running"
    URL=http://nowhere.invalid:6820 run submit
    fails env "cannot connect to http://nowhere.invalid:6820"
    for url in ftp://x http://name:secret@host:1 "http://h:1/?x"; do
        URL=$url run -3 submit
        [[ "$output" == *"argument:1:8: error: /url"* ]]
        [[ "$output" != *secret* ]]
    done
}

@test "tokens: absent, wrong, of another time, readable by others; never shown" {
    middleman drop nothing 0
    good=$SLURM_JWT
    SLURM_JWT='' run submit
    fails env "no token for $URL" "scontrol token"
    SLURM_JWT=nonsense run submit
    fails env "SLURM_JWT does not contain a token" "scontrol token"
    SLURM_JWT=$(claims '{"exp":1000000000,"iat":1,"sun":"root"}') run submit
    fails env "the token of SLURM_JWT has expired (2001-09-0" "scontrol token"
    SLURM_JWT=$(claims '{"exp":4000000000,"iat":1,"sun":"root"}') run submit
    fails env "$(old_words || is_2311 && echo "cannot reach slurmctld" || echo "refuses access (HTTP 511)")" "token"
    [[ "$(jq -r .error.message <<<"$output")" != *"{" ]]
    unset SLURM_JWT
    (umask 077 && echo "SLURM_JWT=$good" >token)
    CONFIG='{token_file: "'"$PWD"'/token"}' submit '.extra = ["--hold"]' | is_ok
    chmod 644 token
    CONFIG='{token_file: "'"$PWD"'/token"}' run submit
    fails env "the token of $PWD/token is readable by others" "chmod 600"
    rm token
    CONFIG='{token_file: "'"$PWD"'/token"}' run submit
    fails env "cannot read the token of $PWD/token" "scontrol token"
}

# fresh_token SECONDS: into the file "token"
fresh_token() {
    (umask 077 && env -u SLURM_JWT scontrol token "lifespan=$1" >token.new)
    mv token.new token
}

@test "a slurmctld that wakes up when the token has ended takes the submission no more" {
    local pid life
    pid=$(box_pid slurmctld)
    middleman drop nothing 0
    for life in 8 600; do
        fresh_token $life
        rm -f in out && mkfifo in
        "$REST_AGENT" "{\"url\":\"$URL\",\"token_file\":\"$PWD/token\",\"timeout_s\":3}" <in >out 3>&- &
        exec 9>in
        echo '{"id":1,"op":"limits"}' >&9
        box_wait 60 grep -q '"id":1,"ok"' out
        kill -STOP "$pid"
        echo "{\"id\":2,\"op\":\"submit\",\"job\":$(job '.extra = ["--hold"]')}" >&9
        box_wait 60 grep -q '"id":2,' out || { kill -CONT "$pid" && false; }
        exec 9>&-
        cat out
        box_wait 60 eval "[ \$(date +%s) -gt $(($(date +%s) + 9)) ]"
        kill -CONT "$pid"
        [ "$(tail -1 out | jq -c '[.error.code, .error.ambiguous_s <= 18]')" = "[\"ambiguous\",$([ $life = 8 ] && echo true || echo false)]" ]
        box_wait 90 eval 'rest "{\"id\":1,\"op\":\"poll\"}" | is_ok'
        if [ $life = 8 ]; then
            [ "$(poll)" = "[]" ]
        else
            box_wait 90 eval '[ "$(poll | jq length)" = 1 ]'
        fi
    done
}

@test "a submission that never arrives is sent again when its token has ended" {
    local pid journal=reports/lost/001/events.jsonl
    mkdir ran
    middleman lost job/submit 1
    fresh_token 20
    jq -n --arg url "$URL" --arg dir "$PWD" '{hpcgrid: 1, name: "lost", site: {transport: "rest", rest: {url: $url, token_file: ($dir + "/token")},
        hardware: {cpu: {partition: "box", gpus_per_node: 0}}, default: "cpu"},
        workload: {command: ["sh", "-c", "echo ran >>\"$0\"", ($dir + "/ran/{{i}}")], launch: [], time: "5m"}, axes: {i: [1, 2]}}' >lost.json
    env -u SLURM_CONF "$HPCGRID" run lost.json >out 2>log 3>&- &
    pid=$!
    box_wait 60 grep -q '"kind":"ambiguous"' $journal
    fresh_token 600
    wait $pid
    [ "$(jq -s '[.[] | select(.kind == "ambiguous")] | length == 1 and .[0].until - .[0].t < 32' $journal)" = true ]
    [ "$(cat ran/* | wc -l)" = 2 ]
}

@test "proxies of the environment never see a token" {
    http_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9 middleman drop nothing 0
    http_proxy=http://127.0.0.1:9 ALL_PROXY=http://127.0.0.1:9 rest '{"id":1,"op":"limits"}' | is_ok
}

@test "https: a certificate that nobody vouches for is not talked to" {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
    # a server of pages; it says where it listens
    openssl s_server -accept 127.0.0.1:0 -cert cert.pem -key key.pem -www </dev/null >server.log 2>&1 3>&- &
    MIDDLEMAN=$!
    box_wait 60 grep -q '^ACCEPT 127.0.0.1:' server.log
    port=$(sed -n 's/^ACCEPT 127.0.0.1://p' server.log)
    URL=https://localhost:$port
    run submit
    fails env "cannot connect to $URL" "ca_file"
    CONFIG='{ca_file: "'"$PWD"'/cert.pem"}' run submit
    fails env "does not answer with JSON (HTTP 200)"
    URL=https://127.0.0.1:$port CONFIG='{ca_file: "'"$PWD"'/cert.pem"}' run submit
    fails env "cannot connect to" # not the name that it certifies
}

@test "versions: the newest that both know, or it says which there are" {
    unknown=$(old_words && echo v0.0.44 || echo v0.0.38)
    CONFIG="{api: \"$unknown\"}" run rest '{"id":1,"op":"limits"}'
    fails env "hpcgrid-rest needs $unknown"
    [[ "$(jq -r .error.message <<<"$output")" == *" speaks v0.0."* ]]
    [ "$(jq .error.unfit <<<"$output")" = true ]
    for api in $(jq -r '.error.message | sub(": hpcgrid.*"; "") | scan("v0[.]0[.](?:38|4[0-4])")' <<<"$output"); do
        CONFIG="{api: \"$api\"}" rest '{"id":1,"op":"limits"}' | is_ok
        CONFIG="{api: \"$api\"}" rest '{"id":1,"op":"poll"}' | is_ok
    done
}

@test "a whole sweep by slurmrestd, two of its answers lost: every cell runs once" {
    mkdir ran
    middleman drop job/submit 2
    jq -n --arg url "$URL" '{launcher: "srun", transport: "rest", rest: {url: $url, max_array_size: 8, ambiguous_s: 8},
        hardware: {cpu: {partition: "box", gpus_per_node: 0, backend: "cpu"}}, default: "cpu"}' >here.json
    jq -n --arg dir "$PWD" '{hpcgrid: 1, name: "sweep", site: "./here.json",
        workload: {command: ["sh", "-c", "echo ran >>\"$0\"", ($dir + "/ran/{{i}}")], launch: [], time: "5m"},
        axes: {i: {range: [1, 20]}}}' >sweep.json
    env -u SLURM_CONF "$HPCGRID" doctor --site ./here.json --json >doctor.json
    line() { jq -r --arg what "$1" '.findings[] | select(.what == $what) | "\(.state) \(.found)"' doctor.json; }
    [[ "$(line transport)" == "ok rest (slurmrestd), chosen by the site"* ]]
    [ "$(line slurmrestd)" = "ok $URL" ]
    [[ "$(line slurmctld)" == "ok "*"arrays up to 8 tasks"* ]]
    run --separate-stderr "$HPCGRID" run sweep.json
    echo "$stderr"
    [ "$status" = 0 ]
    [ "$(cat ran/* | wc -l)" = 20 ]
    [ "$(find ran -type f | wc -l)" = 20 ]
    run -1 grep -rF "$SLURM_JWT" reports
}
