#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the shells offer behind the cursor: the candidates, and the three real shells with their scripts.

bats_require_minimum_version 1.5.0

setup() {
    unset "${!SLURM_@}" "${!HPCGRID_R@}"
    export PATH="$HPCGRID_BUILD/orchestrator:$PATH"
    scripts="$HPCGRID_SOURCE/orchestrator/completion"
    cd "$BATS_TEST_TMPDIR"
    cat >m.json <<'END_OF_MATRIX'
{
  "hpcgrid": 1, "name": "sweep", "site": "box",
  "workload": { "command": ["true"], "lr": 0.5 },
  "axes": { "hardware": ["cpu", "a100"], "nodes": [1, 2, 12], "flavour": ["plain", { "flavour": "salted", "salt": [3] }] },
  "derive": { "double": ".nodes * 2" }
}
END_OF_MATRIX
    mkdir -p reports/sweep/001 reports/sweep/002 reports/other/empty folder
    touch reports/sweep/00{1,2}/plan.json folder/m2.json folder/text.txt
}

# offers WORD... = CANDIDATE...
offers() {
    local words=()
    while [ "$1" != = ]; do
        words+=("$1")
        shift
    done
    shift
    diff -u <([ $# -eq 0 ] || printf '%s\n' "$@") <(hpcgrid complete -- "${words[@]}" | cut -f 1 | sort)
}

@test "candidates are commands, options, words, runs, files, keys and values" {
    offers comp = compare
    offers re = release report resume retry
    offers help se = selectors
    offers help exit = exit-codes
    offers run --st = --steal
    offers report --format j = json
    offers compare --format=j = --format=json --format=junit
    offers report --plot time,me = time,memory
    offers report --numbers comma,d = comma,decimals= comma,durations
    offers retry --status timeout,o = timeout,oom
    offers report -m energy = energy_j
    offers check --site jux =
    offers check --site juw = juwels-booster
    offers box u = up
    offers schema s = site
    offers status s = sweep
    offers status sweep/ = sweep/001 sweep/002
    offers check f = folder/
    offers check folder/ = folder/m2.json
    offers report x --template folder/t = folder/text.txt
    offers expand m.json -s n = nodes=
    offers expand m.json --select=nodes=1,fl = --select=nodes=1,flavour=
    offers expand m.json -s nodes=1 = nodes=1 nodes=12
    offers expand m.json -s nodes=2,flavour= = nodes=2,flavour=plain nodes=2,flavour=salted
    offers expand m.json -s 'hardware=cpu|' = 'hardware=cpu|a100' 'hardware=cpu|cpu'
    offers expand m.json -s lr= = lr=0.5
    offers expand m.json -s double= = double=2 double=24 double=4
    offers report m.json --rows nodes,h = nodes,hardware
    cp m.json reports/sweep/002/matrix.json
    offers cancel sweep -s salt= = salt=3
    [ "$(hpcgrid complete -- logs m.json true-cpu-1x1- | wc -l)" -eq 2 ]
    [ "$(hpcgrid complete -- explain m.json id | wc -l)" -eq 0 ]
}

@test "what cannot be completed is silent" {
    echo '{ "hpcgrid": 1, "name": ' >broken.json
    for words in "nonsense x" "expand broken.json -s n" "expand missing.json -s n" "status nobody/" "run m.json x" "logs -- -"; do
        # shellcheck disable=SC2086
        run hpcgrid complete -- $words
        [ "$status" -eq 0 ]
        [ -z "$output" ] || { echo "$words: $output"; return 1; }
    done
}

@test "a flag with a value that it cannot have is completed by nothing" {
    offers report --strict= =
    run hpcgrid complete -- report --strict=
    [ "$status" = 0 ]
}

@test "every value of an option that has words is taken by its command" {
    for form in $(hpcgrid complete -- report --format "" | cut -f 1); do
        hpcgrid report "$HPCGRID_SOURCE/reports/reference/lab-strategies.json" --format "$form" >/dev/null || [ $? -eq 1 ]
    done
    for form in $(hpcgrid complete -- compare --format "" | cut -f 1); do
        hpcgrid compare "$HPCGRID_SOURCE/reports/reference/lab-strategies.json"{,} --format "$form" >/dev/null || [ $? -eq 1 ]
    done
    run hpcgrid retry nobody --status "$(hpcgrid complete -- retry --status "" | cut -f 1 | paste -sd, -)"
    [ "$status" -eq 4 ] # there is no such run; the words are fine
}

# In a shell on a terminal: hpcgrid prints the words it was called with.
typed() { # SHELL...
    timeout 60 script -qec "$*" /dev/null 2>&1 | tr -d '\r' | grep -a '^<'
}
double='hpcgrid() { if [ "$1" = complete ]; then command hpcgrid "$@"; else printf "<%s>" "$@"; echo; fi; }'
keys='hpcgrid rep\t\nhpcgrid expand m\t-s nodes=12,fl\tsa\t\nhpcgrid report --format=la\t\nhpcgrid status sw\t--js\t\nexit\n'
want() {
    printf '<%s>\n' 'report' 'expand><m.json><-s><nodes=12,flavour=salted' 'report><--format=latex' 'status><sweep><--json'
}

@test "bash completes" {
    printf 'PS1=\nbind "set enable-bracketed-paste off"\n. %q\n%s\n' "$scripts/hpcgrid.bash" "$double" >rc
    # shellcheck disable=SC2059
    got=$(printf "$keys" | TERM=dumb typed bash --noprofile --rcfile rc -i)
    diff -u <(want) <(echo "$got")
    got=$(printf "hpcgrid expand m.json -s 'nodes=1,flavour=p\\t\\nexit\\n" | TERM=dumb typed bash --noprofile --rcfile rc -i)
    [ "$got" = "<expand><m.json><-s><nodes=1,flavour=plain>" ]
}

@test "zsh completes" {
    mkdir functions
    cp "$scripts/hpcgrid.zsh" functions/_hpcgrid
    printf 'PS1=\nfpath=(%q $fpath)\nautoload -U compinit\ncompinit -u -D\n%s\n' "$PWD/functions" "$double" >.zshrc
    # shellcheck disable=SC2059
    got=$(printf "$keys" | ZDOTDIR=$PWD TERM=dumb typed zsh -d -i)
    diff -u <(want) <(echo "$got")
}

@test "fish completes" {
    fish_offers() { HOME=$PWD fish --no-config -c "source $scripts/hpcgrid.fish; complete -C '$1'" | cut -f 1; }
    [ "$(fish_offers "hpcgrid repo")" = report ]
    [ "$(fish_offers "hpcgrid expand m")" = m.json ]
    [ "$(fish_offers "hpcgrid expand m.json -s nodes=12,flavour=s")" = nodes=12,flavour=salted ]
    [ "$(fish_offers "hpcgrid report --format=la")" = --format=latex ]
    [ "$(fish_offers "hpcgrid status sw")" = sweep ]
}
