# SPDX-License-Identifier: Apache-2.0
# The short forms: CLASS or CLASS-PART.
function(torture name label)
    string(REGEX REPLACE "-.*" "" class ${name})
    add_test(NAME torture.${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/torture/${class} --seed 1 ${ARGN})
    set_tests_properties(torture.${name} PROPERTIES LABELS ${label} TIMEOUT 600 COST 60 ENVIRONMENT "HPCGRID_BUILD=${PROJECT_BINARY_DIR}")
endfunction()

if(NOT HPCGRID_SANITIZE) # it has allocations of its own
    add_library(nomem MODULE torture/nomem.c)
    target_link_libraries(nomem PRIVATE hpcgrid_options)
    torture(calls cli --trials 5)
endif()
torture(kills cli --trials 5 commands)
torture(kills-agents cli --trials 1 agents)
torture(kills-box slurm --trials 2 box)
torture(kills-sweeps slurm --trials 8 sweeps)
torture(locks cli --trials 2)
torture(training worker --trials 4 kills calls flips) # faults.bats runs the group `faults`
torture(values cli --trials 600)
torture(security cli --trials 1)
torture(fuzz cli --trials 1 pipe sbatch rest files complete)
torture(chaos slurm --trials 6 --seed 2)
torture(soak slurm --trials 6 --seed 2)
# boxes take long to start, and the suite has two places for them
set_tests_properties(torture.chaos torture.soak torture.kills-box torture.kills-sweeps PROPERTIES TIMEOUT 2400 COST 10000 SKIP_RETURN_CODE 77)
set_tests_properties(torture.chaos torture.kills-box PROPERTIES RESOURCE_LOCK slurm-1)
set_tests_properties(torture.soak torture.kills-sweeps PROPERTIES RESOURCE_LOCK slurm-2)
