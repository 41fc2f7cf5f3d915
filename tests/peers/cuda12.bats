#!/usr/bin/env bats
# CUDA 12 is enough: the kernels compile without a warning with an nvcc of 12.x ($HPCGRID_PEERS/cuda12, of peers/cuda12), and CMake leaves out the
# architectures that it does not know.

bats_require_minimum_version 1.5.0

setup() {
    export CUDACXX="$HPCGRID_PEERS/cuda12/bin/nvcc"
    [ "$(uname -m)" = x86_64 ] || skip "nvcc 12 is there for x86_64 only"
    cd "$BATS_TEST_TMPDIR"
}

@test "every kernel compiles with nvcc 12" {
    printf '%s\n' "$HPCGRID_SOURCE"/worker/backends/cuda/*.cu | xargs -P 2 -I {} "$CUDACXX" -std=c++17 -arch=sm_80 -c -o /dev/null \
        -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror -I"$HPCGRID_SOURCE/worker" -I"$HPCGRID_SOURCE/orchestrator" {}
}

@test "architectures that an nvcc does not know are left out" {
    run -0 cmake -S "$HPCGRID_SOURCE" -B build -DBUILD_TESTING=OFF "-DCMAKE_CUDA_ARCHITECTURES=75;90;120"
    [[ "$output" == *"does not know sm_120: left out"* ]]
    [[ "$output" != *"does not know sm_75"* && "$output" != *"does not know sm_90"* ]]
}
