# SPDX-License-Identifier: Apache-2.0
# The worker's tests; each program is built with the fp32 library and with the fp64 one, where rounding hides nothing.
# hg_add_worker_test(NAME PRECISION...): tests/worker/NAME.c as worker.NAME.fp32 and worker.NAME.fp64.
function(hg_add_worker_program name precision)
    set(library hpcgrid_worker)
    if(precision STREQUAL "fp64")
        set(library hpcgrid_worker_f64)
    endif()
    add_executable(test_worker_${name}_${precision} worker/${name}.c)
    target_link_libraries(test_worker_${name}_${precision} PRIVATE ${library} PkgConfig::CMOCKA m)
    target_compile_definitions(test_worker_${name}_${precision} PRIVATE HPCGRID_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endfunction()

function(hg_add_worker_test name)
    foreach(precision ${ARGN})
        hg_add_worker_program(${name} ${precision})
        add_test(NAME worker.${name}.${precision} COMMAND test_worker_${name}_${precision})
        set_tests_properties(worker.${name}.${precision} PROPERTIES LABELS worker TIMEOUT 600
            ENVIRONMENT "OMP_WAIT_POLICY=passive")
    endforeach()
endfunction()

hg_add_worker_test(golden fp32 fp64)
hg_add_worker_test(ops fp32 fp64)
hg_add_worker_test(gradients fp64)
hg_add_worker_test(precision fp32 fp64)
hg_add_worker_test(cuda_host fp32)
hg_add_worker_test(bert_golden fp32 fp64)
hg_add_worker_test(bert_gradients fp64)
hg_add_worker_test(weights fp32 fp64)
hg_add_worker_test(data fp32)
hg_add_worker_test(profile fp32)
hg_add_worker_test(train fp32)
hg_add_worker_test(resume fp32)
hg_add_worker_test(identity fp32)
hg_add_worker_test(rendezvous fp32)
hg_add_worker_test(comm fp32 fp64)
hg_add_worker_test(heartbeat fp32)
hg_add_worker_test(strategies fp32 fp64)
hg_add_worker_test(parts fp32 fp64)
hg_add_worker_test(overlap fp32)
set_tests_properties(worker.strategies.fp32 worker.strategies.fp64 worker.comm.fp32 worker.comm.fp64 PROPERTIES TIMEOUT 900 COST 600)

# No test, but built as one: what strategies hide over a slow link (bench/strategies/run).
add_executable(bench_overlap bench/strategies/overlap.c)
target_link_libraries(bench_overlap PRIVATE hpcgrid_worker PkgConfig::CMOCKA m)
# Nor is this: the peaks of bench/cpu/run.
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
add_executable(bench_peaks bench/cpu/peaks.c)
target_link_libraries(bench_peaks PRIVATE hpcgrid_worker PkgConfig::OPENBLAS m)

# hg_add_ranks_test(NAME PRECISION RANKS WORDS...): the program under mpirun, on more ranks than there may be cores. Ranks talk over shared
# memory only. MPI itself leaks.
find_program(MPIRUN mpirun REQUIRED)
function(hg_add_ranks_test name precision ranks)
    set(test worker.${name}.${precision}.${ranks})
    add_test(NAME ${test} COMMAND ${MPIRUN} --oversubscribe --allow-run-as-root -n ${ranks}
        $<TARGET_FILE:test_worker_${name}_${precision}> ${ARGN})
    set_tests_properties(${test} PROPERTIES LABELS worker TIMEOUT 600
        ENVIRONMENT
        "OMPI_MCA_btl=self,vader;OMPI_MCA_mpi_yield_when_idle=1;OMP_NUM_THREADS=1;ASAN_OPTIONS=detect_leaks=0")
endfunction()

foreach(precision fp32 fp64)
    hg_add_worker_program(ddp ${precision})
    foreach(ranks 1 2 3 4)
        hg_add_ranks_test(ddp ${precision} ${ranks})
    endforeach()
endforeach()
foreach(ranks 2 3 8)
    hg_add_ranks_test(comm fp32 ${ranks} mpi)
endforeach()

hg_add_bats(worker/train.bats worker 600)
hg_add_bats(worker/faults.bats worker 600)
hg_add_bats(worker/predict.bats worker 600)
hg_add_bats(worker/bert.bats worker 900)
