# SPDX-License-Identifier: Apache-2.0
# Helper for bats files that need a slurmrestd; load it behind box.bash.

REST_AGENT=${REST_AGENT:-$HPCGRID_BUILD/orchestrator/hpcgrid-rest}

rest_need() {
    local what
    if what=$(rest_lacks); then skip "$what"; fi
}

# What is missing; false where nothing is.
rest_lacks() {
    PATH=$PATH:/usr/sbin:/sbin command -v slurmrestd >/dev/null || { echo "slurmrestd is not installed" && return 0; }
    [ ! -x "$REST_AGENT" ] || return 1
    echo "hpcgrid-rest is not built"
}

# rest_start AUTH [accounts]: a slurmrestd for $SLURM_CONF on the socket $REST_SOCKET. In a box it runs as SlurmUser, which it
# refuses elsewhere; since 25.11 there too, so root starts it as somebody else. 22.05 dies where it is to speak of accounts that there
# are none of.
rest_start() {
    local PATH=$PATH:/usr/sbin:/sbin plugins=slurmctld${2:+,slurmdbd} as=(env SLURMRESTD_SECURITY=disable_user_check)
    REST_DIR=$(mktemp -d /tmp/hg-rest.XXXXXX)
    case $(slurmrestd -V) in
    *' 22.05'*) plugins=openapi/v0.0.38${2:+,openapi/dbv0.0.38} ;;
    *' 25.11'* | *' 26.'*)
        as=(setpriv --reuid=daemon --regid=daemon --clear-groups)
        chown daemon "$REST_DIR"
        ;;
    esac
    REST_SOCKET=$REST_DIR/sock
    local token=(-u SLURM_JWT) # it asks as itself
    [ "$1" != rest_auth/jwt ] || token=(SLURM_JWT=daemon) # with its clients' tokens
    env "${token[@]}" "${as[@]}" slurmrestd -a "$1" -s "$plugins" "unix:$REST_SOCKET" >"$BATS_FILE_TMPDIR/slurmrestd.log" 2>&1 </dev/null 3>&- &
    REST_PID=$!
    export REST_SOCKET REST_PID REST_DIR
    if ! box_wait 60 rest_is_up || ! kill -0 "$REST_PID"; then
        cat "$BATS_FILE_TMPDIR/slurmrestd.log"
        return 1
    fi
}

# It answers, or it has ended.
rest_is_up() {
    ! kill -0 "$REST_PID" 2>/dev/null || ! URL=unix:$REST_SOCKET SLURM_JWT='' rest '{"id":1,"op":"limits"}' | grep -q 'cannot connect'
}

rest_stop() {
    [ -n "${REST_PID:-}" ] || return 0
    kill "$REST_PID" 2>/dev/null || true
    wait "$REST_PID" 2>/dev/null || true
    rm -rf "$REST_DIR"
    REST_PID=
}

# middleman MODE PATTERN COUNT: sets URL to a proxy that hands on to the slurmrestd (or to $UPSTREAM) and simulates a bad network, see middleman.c
middleman() {
    rm -f "$T/port"
    "$HPCGRID_BUILD/tests/middleman" "${UPSTREAM:-$REST_SOCKET}" "$T/port" "$@" </dev/null >/dev/null 2>&1 3>&- &
    MIDDLEMAN=$!
    box_wait 60 [ -e "$T/port" ] || return 1
    URL=http://127.0.0.1:$(cat "$T/port")
}

middleman_stop() {
    [ -n "${MIDDLEMAN:-}" ] || return 0
    kill "$MIDDLEMAN" 2>/dev/null || true
    wait "$MIDDLEMAN" 2>/dev/null || true
    MIDDLEMAN=
}

# rest JSON...: one request a word, answers on stdout. $CONFIG (a jq object) goes beside the URL.
rest() { printf '%s\n' "$@" | "$REST_AGENT" "$(jq -nc --arg url "$URL" "{url: \$url} + ${CONFIG:-null}")"; }
