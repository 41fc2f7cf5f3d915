# SPDX-License-Identifier: Apache-2.0
# Helper for bats files without a Slurm: load ../agent. The agent is a shell script that says what the test wants and writes down
# what it was asked.

# agent FOLDER: it, with the answers of a Slurm that has room and no jobs; its questions are the lines of FOLDER/asked
agent() {
    export HPCGRID_SLURM_AGENT=$1/agent ANSWERS=$1 ASKED=$1/asked
    : >"$ASKED"
    limits script
    answer probe '{"start_s":0,"nodes":""}'
    answer submit '{"job_id":17,"site":""}'
    answer poll '{"jobs":[]}'
    answer cancel '{"gone":false}'
    answer hold '{"gone":false}'
    answer partitions '{"partitions":[]}'
    cat >"$HPCGRID_SLURM_AGENT" <<'END'
#!/bin/bash
# One answer a question: $ANSWERS/<op> holds its "ok" or "error" member; if there is $ANSWERS/<op>.die, we end instead; $ANSWERS/<op>.sh is run first.
while read -r line; do
    op=$(jq -r .op <<<"$line")
    printf '%s\n' "$line" >>"$ASKED"
    [ ! -e "$ANSWERS/$op.die" ] || kill -9 $$
    [ ! -e "$ANSWERS/$op.sh" ] || . "$ANSWERS/$op.sh"
    [ "$op" != cancel ] || printf '{"ok":{"jobs":[]}}' >"$ANSWERS/poll"
    jq -c --slurpfile a "$ANSWERS/$op" '{id: .id, rpcs: 1} + $a[0]' <<<"$line"
done
END
    chmod +x "$HPCGRID_SLURM_AGENT"
}

# answer OP JSON: its "ok" member from now on
answer() { printf '{"ok":%s}' "$2" >"$ANSWERS/$1"; }
# limits CLUSTER: the answer of a Slurm of this name
limits() { answer limits '{"max_array_size":1001,"max_jobs":10000,"min_job_age_s":300,"ambiguous_s":1,"message_timeout_s":1,"accounting":false,"version":"22.05.8","cluster":"'"$1"'"}'; }
