#!/usr/bin/env bats
# Rules of the house that a script can hold: who includes whom, formatting.

setup() {
    cd "$HPCGRID_SOURCE"
}

# The folders of hpcgrid from low to high, each with the folders below it that its files may include. Slurm's agents are programs of their own: they
# share only base, contract and slurm/common with hpcgrid.
orchestrator_layers() {
    cat <<'END'
base
contract base
results base contract
typeset base
matrix base contract results typeset
plan base contract matrix typeset
rundir base results matrix plan
slurm/common base contract
slurm/libslurm base contract slurm/common
slurm/rest base contract slurm/common
slurm/cli base contract slurm/common
slurm/client base matrix
node base results matrix plan rundir
drive base results matrix plan rundir slurm/client
inspect base contract matrix plan rundir drive
analysis base results matrix typeset
plot base results typeset analysis
render base results matrix typeset analysis plot
screen base results matrix plan rundir analysis
box base
cmd base contract results matrix plan rundir slurm/client node drive inspect typeset analysis plot render screen box
END
}

# The same for the worker.
worker_layers() {
    cat <<'END'
backends base backends/cpu backends/cuda
backends/cpu base backends
backends/cuda base backends
comm base backends backends/cuda
profile base backends comm
models base backends
data base backends models
strategies base contract backends comm profile models
train base contract backends comm profile models data strategies
cmd base contract backends comm models data strategies train
. base backends cmd train
END
}

# check_layers ROOT < LAYERS: prints each include that goes up
check_layers() {
    local layer allowed file include
    while read -r layer allowed; do
        for file in $1/$layer/*.[ch] $1/$layer/*.cu $1/$layer/*.cuh; do
            [ -e "$file" ] || continue
            for include in $(sed -n 's/^#include "\(.*\)\/[^/"]*".*/\1/p' "$file" | sort -u); do
                case " $layer $allowed " in
                *" $include "*) ;;
                *) echo "$file includes $include/" ;;
                esac
            done
        done
    done
}

@test "lower layers never include higher ones" {
    bad=$(orchestrator_layers | check_layers orchestrator)
    echo "$bad"
    [ -z "$bad" ]
    for dir in $(git ls-files 'orchestrator/*.[ch]' | sed -n 's|^orchestrator/\(.*\)/[^/]*$|\1|p' | sort -u); do
        orchestrator_layers | grep -q "^$dir\( \|$\)" || { echo "orchestrator/$dir has no place in the order"; return 1; }
    done
    bad=$(worker_layers | check_layers worker)
    echo "$bad"
    [ -z "$bad" ]
    for dir in $(git ls-files 'worker/*.[ch]' 'worker/*.cu' 'worker/*.cuh' | sed -n 's|^worker/\(.*\)/[^/]*$|\1|p' | sort -u); do
        worker_layers | grep -q "^$dir\( \|$\)" || { echo "worker/$dir has no place in the order"; return 1; }
    done
}

@test "libslurm is linked by hpcgrid-slurm only" {
    run grep -rlE '#include <slurm/' orchestrator worker
    [ -z "$(echo "$output" | grep -v '^orchestrator/slurm/libslurm/')" ]
}

@test "every source file carries the licence line" {
    missing=$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0' || true)
    echo "$missing"
    [ -z "$missing" ]
}

@test "clang-format finds nothing to change" {
    version=$(clang-format --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p') || true
    [ "$version" = 14 ] || skip "clang-format 14 (Debian 12's) decides the layout, here is ${version:-none}"
    git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run --Werror
}

@test "no test hides a failure behind a bare !" {
    # set -e does not see `! command`: the line would pass whatever happens
    found=$(grep -nE '^[[:space:]]*! ' $(git ls-files 'tests/*.bats' 'tests/*.bash') | grep -v '||' || true)
    echo "$found"
    [ -z "$found" ]
}
