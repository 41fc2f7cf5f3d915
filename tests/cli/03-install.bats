#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# cmake --install, use from there, uninstall. The packages and the tar file: tests/install.

setup() {
    unset "${!HPCGRID_R@}" HPCGRID_SITES
    P=$BATS_TEST_TMPDIR/prefix
    # uninstall reads the manifests of one build folder
    cmake --install "$HPCGRID_BUILD" --prefix "$P" --component controller >"$BATS_TEST_TMPDIR/log"
    mkdir "$BATS_TEST_TMPDIR/build"
    mv "$HPCGRID_BUILD/install_manifest_controller.txt" "$BATS_TEST_TMPDIR/build"
}

@test "what is installed is whole and finds itself, and uninstall leaves nothing" {
    for file in bin/hpcgrid bin/hpcgrid-sbatch share/man/man1/hpcgrid-run.1 share/man/man5/hpcgrid-site.5 share/bash-completion/completions/hpcgrid \
        share/zsh/site-functions/_hpcgrid share/fish/vendor_completions.d/hpcgrid.fish share/hpcgrid/README.md share/hpcgrid/reports/README.md \
        share/hpcgrid/matrices/reference.md share/hpcgrid/reports/reference/lab-strategies.json share/doc/hpcgrid/LICENSE; do
        [ -s "$P/$file" ] || { echo "no $file"; return 1; }
    done
    [ ! -e "$P/bin/hpcgrid-worker" ]
    cd "$P/share/hpcgrid"
    "$P/bin/hpcgrid" check matrices/quickstart.json
    "$P/bin/hpcgrid" report reports/reference/lab-strategies.json >/dev/null || [ $? -eq 1 ]
    touch mine
    cmake -DBUILD="$BATS_TEST_TMPDIR/build" -P "$HPCGRID_SOURCE/templates/packages/uninstall.cmake" >/dev/null 2>&1
    [ "$(find "$P" -type f)" = "$P/share/hpcgrid/mine" ]
    [ -z "$(find "$P" -path '*/hpcgrid/*' -type d)" ]
    [ -z "$(ls "$BATS_TEST_TMPDIR/build")" ]
}
