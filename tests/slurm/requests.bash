# SPDX-License-Identifier: Apache-2.0
# Jobs as an agent is asked to submit them. The file that loads it says with `ask REQUEST...` whom.

# One job's key and script, in the folder of the test.
requests_setup() {
    KEY=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
    printf '#!/bin/bash\nexec "$@"\n' >run.sh
    chmod 755 .
}

# job [JQ]: the job object, altered by a jq expression
job() {
    jq -nc --arg key "$KEY" --arg dir "$PWD" '{key: $key, name: "cell", script: ($dir + "/run.sh"), work_dir: $dir,
        output: ($dir + "/hg-" + $key + "_%a.out"), args: ["true"]} | '"${1:-.}"
}

submit() { ask "{\"id\":1,\"op\":\"submit\",\"job\":$(job "${1:-.}")}"; }
poll() { ask '{"id":2,"op":"poll"}' | jq -c --arg key "$KEY" '[.ok.jobs[] | select(.key == $key)]'; }
all_ended() { [ "$(poll | jq '[.[] | select(.state == "PENDING" or .state == "RUNNING")] | length')" = 0 ]; }
