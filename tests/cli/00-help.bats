#!/usr/bin/env bats
# Help texts are golden: tests/cli/help/COMMAND.txt. HPCGRID_BLESS=1 writes them anew; read the diff.

bats_require_minimum_version 1.5.0

setup() {
    hpcgrid="$HPCGRID_BUILD/orchestrator/hpcgrid"
    worker="$HPCGRID_BUILD/worker/hpcgrid-worker"
    golden="$HPCGRID_SOURCE/tests/cli/help"
}

commands() {
    "$hpcgrid" help | sed -n 's/^  \([a-z]\+\) .*/\1/p'
}

same_as_golden() { # NAME TEXT
    if [ -n "${HPCGRID_BLESS:-}" ]; then
        mkdir -p "$golden"
        printf '%s\n' "$2" >"$golden/$1.txt"
    fi
    diff -u "$golden/$1.txt" <(printf '%s\n' "$2")
}

@test "the overview and every command's help are as written down" {
    same_as_golden hpcgrid "$("$hpcgrid" help)"
    for c in $(commands); do
        same_as_golden "$c" "$("$hpcgrid" help "$c")"
        [ "$("$hpcgrid" "$c" --help)" = "$("$hpcgrid" help "$c")" ]
    done
}

@test "no golden help is left of a command that is gone" {
    for f in "$golden"/*.txt; do
        name=$(basename "$f" .txt)
        [ "$name" = hpcgrid ] || commands | grep -qx "$name"
    done
}

@test "every help fits an 80x24 screen" {
    bad=""
    for c in "" $(commands); do
        text=$("$hpcgrid" help $c)
        [ -z "$c" ] || [ "$(wc -l <<<"$text")" -le 23 ] || bad+="$c: $(wc -l <<<"$text") lines"$'\n'
        ! grep -qE '.{81}' <<<"$text" || bad+="$c: a line is wider than 80"$'\n'
    done
    echo "$bad"
    [ -z "$bad" ]
}

topics() {
    "$hpcgrid" complete -- help "" | cut -f 1 | grep -vxFf <(commands)
}

@test "every topic of help is shown, within 80 columns but for code and long words" {
    [ "$("$hpcgrid" help commands)" = "$("$hpcgrid" help)" ]
    for topic in $(topics); do
        "$hpcgrid" help | tail -n 3 | grep -qw "$topic"
        "$hpcgrid" help "$topic" >"$BATS_TEST_TMPDIR/text"
        [ "$(wc -l <"$BATS_TEST_TMPDIR/text")" -ge 8 ] || { echo "$topic is short"; return 1; }
        if grep -vE '^    ' "$BATS_TEST_TMPDIR/text" | grep -E '.{80}'; then return 1; fi
    done
    grep -qF 'nodes (integer, 1 to 100000; in the id: yes)' <("$hpcgrid" help keys)
    run "$hpcgrid" help selctors
    [ "$status" -eq 2 ]
    [[ "$output" == *'did you mean "selectors"?'* ]]
}

@test "the manual pages have no mistakes, and one for every command" {
    "$hpcgrid" help --man "$BATS_TEST_TMPDIR"
    for c in $(commands); do [ -s "$BATS_TEST_TMPDIR/man1/hpcgrid-$c.1" ]; done
    found=$(mandoc -Tlint -Wwarning "$BATS_TEST_TMPDIR"/man?/* | grep -v 'missing date') || true
    echo "$found"
    [ -z "$found" ]
    for page in "$BATS_TEST_TMPDIR"/man?/*; do mandoc -Tutf8 "$page" | col -b; done >"$BATS_TEST_TMPDIR/all"
    for text in "--rerun-failed" "keys that give a table each" "HPCGRID_REPORTS" "max_time (string)" 'printf %s '"'"'{"cell":{'; do
        grep -qF -- "$text" "$BATS_TEST_TMPDIR/all" || { echo "no $text"; return 1; }
    done
}

@test "every variable that the programs read is described, but two that are not for people" {
    cd "$HPCGRID_SOURCE"
    for name in $(grep -rhoE 'getenv\("(HPCGRID_[A-Z_]+)"\)|variable = "HPCGRID_[A-Z_]+"' orchestrator worker | grep -oE 'HPCGRID_[A-Z_]+' | grep -vE '_(ERROR|JOIN_ALONE)$' | sort -u); do
        grep -qE '[`$]'"$name\b" orchestrator/reference.md orchestrator/node/README.md worker/*.md worker/backends/cuda/README.md tests/README.md \
            matrices/README.md || { echo "$name is not described"; return 1; }
    done
}

@test "too few open files are an error that names the limit, or more where they may be had" {
    cd "$BATS_TEST_TMPDIR"
    for c in $(commands); do
        case $c in
        doctor) continue ;; # it says so as one of its findings
        help) continue ;;   # it opens none
        init | schema) words=$c ;;
        box) words="box list" ;;
        explain | compare) words="$c x x" ;;
        *) words="$c x" ;;
        esac
        for n in 20 63; do
            run bash -c 'ulimit -n "$1"; shift; exec timeout 60 "$@"' - $n "$hpcgrid" $words
            echo "$words: $output"
            [ "$status" -eq 4 ]
            [ "${lines[0]}" = "hpcgrid: error: ulimit -n allows $n open files, hpcgrid needs 64" ]
        done
    done
    run bash -c 'ulimit -n 20; exec "$1" help' - "$hpcgrid"
    [ "$status" -eq 0 ]
    run bash -c 'ulimit -Sn 20; exec "$1" box list' - "$hpcgrid"
    [ "$status" -eq 0 ]
    for n in 20 63; do
        run bash -c 'ulimit -n "$1"; exec timeout 60 "$2" doctor --json' - $n "$hpcgrid"
        echo "$output"
        [ "$status" -le 1 ]
        [ "$(jq -r '.findings[] | select(.what == "files") | "\(.state) \(.found)"' <<<"$output")" = "missing ulimit -n allows $n open files, hpcgrid needs 64" ]
    done
    # what doctor starts is asked how many it may open
    mkdir bin
    printf '#!/bin/sh\nulimit -n >%s/limit\n' "$PWD" >bin/nvidia-smi
    chmod +x bin/nvidia-smi
    run bash -c 'ulimit -Sn 20; PATH=$PWD/bin:$PATH exec "$1" doctor' - "$hpcgrid"
    [ "$(cat limit)" = 64 ]
}

@test "a wrong command or option says what is meant, on stderr, with exit code 2" {
    run --separate-stderr "$hpcgrid" doctr
    [ "$status" -eq 2 ]
    [ -z "$output" ]
    [[ "$stderr" == *'did you mean "doctor"?'* ]]
    run "$hpcgrid" doctor --jsno
    [ "$status" -eq 2 ]
    run "$hpcgrid"
    [ "$status" -eq 2 ]
}

@test "output that cannot be written is an error, not silence" {
    for words in help "box list --json" "schema"; do
        for to in "/dev/full" "&-"; do
            run bash -c "'$hpcgrid' $words >$to"
            echo "$words >$to: $output"
            [ "$status" -eq 4 ]
            [[ "$output" == "hpcgrid: error: cannot write the "*"output"* ]]
            [ ${#lines[@]} -eq 1 ]
        done
    done
}

@test "a reader that has seen enough is no error" {
    run bash -c "mkfifo '$BATS_TEST_TMPDIR/pipe'; true <'$BATS_TEST_TMPDIR/pipe' & exec 3>'$BATS_TEST_TMPDIR/pipe'; wait; '$hpcgrid' schema >&3"
    [ "$status" -eq 0 ]
    [ -z "$output" ]
}
