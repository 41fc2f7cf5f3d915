#!/usr/bin/env bats
# Matrices that are right: how many cells they give, and which. good/NAME.json holds the counts worked out by hand (_cells,
# _added); good/NAME.out is the whole output of `hpcgrid expand`. HPCGRID_BLESS=1 writes the .out files anew: read the diff.

setup() {
    cd "$HPCGRID_SOURCE/tests/cli/good"
    hpcgrid=$HPCGRID_BUILD/orchestrator/hpcgrid
    export HPCGRID_SITES=$HPCGRID_SOURCE/tests/data/sites
}

# number FILE MEMBER: a top-level number of a matrix
number() {
    sed -n "s/^  \"$2\": \([0-9]*\),$/\1/p" "$1"
}

@test "every matrix gives the cells that were counted by hand" {
    wrong=""
    for f in *.json; do
        count=$($hpcgrid expand --count --json "$f" 2>/dev/null) || wrong+="$f: exit code $?"$'\n'
        case $count in
        *"\"added\":$(number "$f" _added),\"cells\":$(number "$f" _cells),"*) ;;
        *) wrong+="$f: $count"$'\n' ;;
        esac
    done
    echo "$wrong"
    [ -z "$wrong" ]
}

@test "every matrix gives the cells, ids, order and warnings that stand in its .out file" {
    wrong=""
    for f in *.json; do
        $hpcgrid expand "$f" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || true
        cat "$BATS_TEST_TMPDIR/err" >>"$BATS_TEST_TMPDIR/out"
        if [ -n "${HPCGRID_BLESS:-}" ]; then
            cp "$BATS_TEST_TMPDIR/out" "${f%.json}.out"
        fi
        diff -u "${f%.json}.out" "$BATS_TEST_TMPDIR/out" || wrong+="$f "
    done
    echo "$wrong"
    [ -z "$wrong" ]
}
