#!/usr/bin/env bats
# Rules of the house that a script can hold: who includes whom, formatting.

setup() {
    cd "$HPCGRID_SOURCE"
}

# Layers from low to high; a file may include its own layer and those named here.
allowed() {
    case $1 in
    base) echo "base" ;;
    model) echo "base model" ;;
    plan | report) echo "base model $1" ;;
    exec) echo "base model exec" ;;
    agents) echo "base agents" ;;
    box) echo "base exec box" ;;
    run) echo "base model plan exec run" ;;
    cmd) echo "base model plan exec report run box cmd" ;;
    esac
}

@test "lower layers never include higher ones" {
    bad=""
    for layer in base model plan exec agents box run report cmd; do
        for file in orchestrator/$layer/*.[ch]; do
            [ -e "$file" ] || continue
            for include in $(sed -n 's/^#include "\([a-z]*\)\/.*"/\1/p' "$file" | sort -u); do
                case " $(allowed $layer) " in
                *" $include "*) ;;
                *) bad+="$file includes $include/"$'\n' ;;
                esac
            done
        done
    done
    for file in $(git ls-files 'worker/*.[ch]' 'worker/*.cu' 'worker/*.cuh'); do
        for include in $(sed -n 's/^#include "\([a-z]*\)\/.*"/\1/p' "$file" | sort -u); do
            case " base backends comm models strategies data train profile cmd " in
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
    [ -z "$(echo "$output" | grep -v '^orchestrator/agents/')" ]
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
