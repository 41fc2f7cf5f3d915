#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What only a terminal gets: colours, and progress of what takes long.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    set="$HPCGRID_SOURCE/tests/data/results/quickstart.json"
    cd "$BATS_TEST_TMPDIR" || return 1
    unset NO_COLOR
    export TERM=xterm-256color
    esc=$'\033'
}

# on_terminal COMMAND: what it writes to a terminal, stdout and stderr
on_terminal() { script -qec "$1" /dev/null </dev/null; }

@test "a terminal gets colours: best values, errors, states; a pipe and a file do not" {
    on_terminal "$hpcgrid report $set" >screen || [ $? -eq 1 ]
    grep -q "${esc}\[1;32m12.43${esc}\[m" screen
    "$hpcgrid" report "$set" >pipe || [ $? -eq 1 ]
    "$hpcgrid" report "$set" --color=always >always || [ $? -eq 1 ]
    sed "s/$esc\[[0-9;]*m//g" always | diff - pipe
    if cmp -s always pipe || grep -q "$esc" pipe; then return 1; fi
    "$hpcgrid" report "$set" --color=always --out file || [ $? -eq 1 ]
    for form in md csv json latex html; do "$hpcgrid" report "$set" --color=always --format $form >>file || [ $? -eq 1 ]; done
    if grep -q "$esc" file; then return 1; fi
    { on_terminal "$hpcgrid chek" || true; } | grep -q "${esc}\[31merror:${esc}\[m unknown"
    on_terminal "$hpcgrid check $HPCGRID_SOURCE/tests/cli/bad/nul/matrix.json" | grep -q "${esc}\[31merror:"
}

@test "--color and NO_COLOR say otherwise" {
    for command in "$hpcgrid --color=never chek" "NO_COLOR=1 $hpcgrid chek" "TERM=dumb $hpcgrid chek" "$hpcgrid chek 2>&1 | cat"; do
        if on_terminal "$command" | grep -q "$esc"; then echo "$command"; return 1; fi
    done
    for command in "NO_COLOR=1 $hpcgrid chek --color=always" "$hpcgrid --color chek 2>&1 | cat"; do
        on_terminal "$command" | grep -q "${esc}\[31merror:" || { echo "$command"; return 1; }
    done
    run "$hpcgrid" --color=sometimes help
    [ "$status" = 2 ]
    [[ "$output" == *'--color: "sometimes" is not auto, always or never' ]]
    # behind -- the words are a command's own
    "$hpcgrid" init -- python train.py --color=red | jq -se '.[0] | .workload.command[2] == "--color=red"'
}

@test "what takes long shows its progress on a terminal, and leaves nothing there" {
    export HPCGRID_BAR_S=0
    echo '{"hpcgrid": 1, "name": "m", "site": "lab", "workload": {"command": ["x"]}, "axes": {"a": {"range": [1, 300000]}}, "baseline": {"a": 1}}' >m.json
    export HPCGRID_SITES="$HPCGRID_SOURCE/tests/data/sites"
    on_terminal "$hpcgrid check m.json" >screen
    # at least once with a part that is done; the last thing before the answer is an erased line
    grep -qaP '\r\e\[K\[#* *\] +\d+ % of 600000 cells, [0-9].* left' screen
    grep -qaP '\r\e\[Km: 300000 cells\r$' screen
    [ "$(on_terminal "$hpcgrid check m.json 2>err")" = $'m: 300000 cells\r' ] && [ ! -s err ]
    [ "$(on_terminal "HPCGRID_BAR_S=3600 $hpcgrid check m.json")" = $'m: 300000 cells\r' ]
    # the cells themselves on the terminal are progress enough
    if on_terminal "$hpcgrid expand -s 'a<1000' m.json" | grep -a -A1 gpus_per_node | grep -qa '% of'; then return 1; fi
}
