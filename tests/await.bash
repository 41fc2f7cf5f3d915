# SPDX-License-Identifier: Apache-2.0
# Helpers for bats files that wait for something: load ../await. Tests wait for what they need, never for a time: the bound
# is for a machine that is busy with other things, and only a test that fails reaches it.

# await COMMAND...: until it succeeds
await() {
    local end=$((SECONDS + 90))
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $end ] || { echo "in vain: $*"; return 1; }
        sleep 0.02
    done
}

# For a teardown: nothing that the test started may outlive it. What ends by itself is waited for, unless the test has
# failed anyway; what does not is killed, and named, so that it holds neither the output of bats nor the machine.
nothing_left() {
    local end=$((SECONDS + 60)) all found
    [ -n "${BATS_TEST_COMPLETED:-}" ] || end=$SECONDS
    while true; do
        all=(/proc/[0-9]*) # before grep is one of them; for those that go meanwhile it returns 2
        found=$(grep -lszxF "BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR" "${all[@]/%//environ}" || true)
        [ -n "$found" ] || return 0
        if [ $SECONDS -ge $end ]; then
            for found in $found; do
                found=${found//[!0-9]/}
                echo "left behind: $found $(tr '\0' ' ' <"/proc/$found/cmdline")"
                kill -KILL "$found"
            done 2>/dev/null
            return 1
        fi
        sleep 0.02
    done
}

# A process that ended, even if nobody has asked for its status yet.
gone() {
    [ ! -e "/proc/$1" ] || grep -q '^State:.[ZX]' "/proc/$1/status" 2>/dev/null || [ ! -e "/proc/$1" ]
}

# catches PID NUMBER: the process has a handler for this signal
catches() {
    local mask
    mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
    (((0x$mask >> ($2 - 1)) & 1))
}

# taken PID NUMBER: no such signal waits for the process any more
taken() {
    local mask
    mask=$(sed -n 's/^ShdPnd:[[:space:]]*//p' "/proc/$1/status")
    ((!((0x$mask >> ($2 - 1)) & 1)))
}
