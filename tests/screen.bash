# SPDX-License-Identifier: Apache-2.0
# Helper for bats files that look at a full screen: load ../screen, after ../await. The terminal is a tmux of the test's own.

screen_setup() { sockets=$((BATS_TEST_NUMBER * 10)) socket=none; }
screen_teardown() {
    [ -n "${BATS_TEST_COMPLETED:-}" ] || screen || true
    tmux -S "$socket" kill-server 2>/dev/null || true
}

# terminal WIDTH HEIGHT COMMAND: in a terminal of this size; "rc=" and its code follow
terminal() {
    socket=socket.$((++sockets)) # the server before may still be ending
    # shellcheck disable=SC2016
    tmux -u -S "$socket" -f /dev/null new-session -d -x "$1" -y "$2" bash --norc -c 'set -m; eval "$0"; echo "rc=$?"; stty -a >stty; read -r' "$3" 3>&-
}
keys() { tmux -S "$socket" send-keys -- "$@"; }
words() { tmux -S "$socket" send-keys -l -- "$1"; }
# mouse BUTTON LINE COLUMN: 0: left, pressed and released there, counted from 0; 64: wheel up, 65: down; in xterm's old way and its new one
mouse() {
    local button at
    at=$(printf '\\x%x\\x%x' $((33 + $3)) $((33 + $2)))
    for button in "$1" $((3 + $1)); do
        [ "$button" -gt 65 ] || words "$(printf '\e[M%b' "$(printf '\\x%x' $((32 + button)))$at")"
    done
}
mouse_sgr() {
    words "$(printf '\e[<%d;%d;%dM' "$1" $(($3 + 1)) $(($2 + 1)))"
    [ "$1" != 0 ] || words "$(printf '\e[<0;%d;%dm' $(($3 + 1)) $(($2 + 1)))"
}
# The screen, less what is never the same: times and the numbers of requests
screen() { tmux -S "$socket" capture-pane -p "$@" | sed -E '1s/  [0-9].*/  .../; s/([≈~]) .*/\1/'; }
# shows TEXT: the whole screen
shows() { screen >seen && diff <(printf '%s\n' "$1") seen >differs; }
await_screen() { await shows "$1" || { cat differs; return 1; }; }
same_lines() { [ "$(screen | grep .)" = "$1" ]; } # less empty ones
has() { screen | grep -qF -- "$1"; }
clean() { [ "$(tmux -S "$socket" display -p '#{alternate_on} #{cursor_flag} #{keypad_cursor_flag} #{mouse_any_flag}')" = "0 1 0 0" ] && grep -q ' icanon' stty && grep -q ' echo ' stty; }
