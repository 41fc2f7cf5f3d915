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
