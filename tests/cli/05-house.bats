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
results base
matrix base contract results
plan base matrix
rundir base results matrix plan
slurm/common base contract
slurm/libslurm base contract slurm/common
slurm/rest base contract slurm/common
slurm/cli base contract slurm/common
slurm/client base matrix
node base results matrix plan rundir
drive base matrix plan rundir slurm/client
inspect base matrix plan rundir drive
typeset base
analysis base results matrix typeset
plot base results typeset analysis
render base results matrix typeset analysis plot
box base
cmd base contract results matrix plan rundir slurm/client node drive inspect typeset analysis plot render box
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
    for file in $(git ls-files 'worker/*.[ch]' 'worker/*.cu' 'worker/*.cuh'); do
        for include in $(sed -n 's/^#include "\([a-z]*\)\/.*"/\1/p' "$file" | sort -u); do
            case " base contract backends comm models strategies data train profile cmd " in
            *" $include "*) ;;
            *) bad+="$file includes $include/"$'\n' ;;
            esac
        done
    done
    echo "$bad"
    [ -z "$bad" ]
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
