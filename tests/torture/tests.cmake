# SPDX-License-Identifier: Apache-2.0
# The short forms. A sanitizer has allocations of its own.
if(NOT HPCGRID_SANITIZE)
    add_library(nomem MODULE torture/nomem.c)
    target_link_libraries(nomem PRIVATE hpcgrid_options)
    add_test(NAME torture.calls COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/torture/calls --trials 5 --seed 1)
    set_tests_properties(torture.calls PROPERTIES LABELS cli TIMEOUT 600 COST 120 ENVIRONMENT "HPCGRID_BUILD=${PROJECT_BINARY_DIR}")
endif()
add_test(NAME torture.kills COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/torture/kills --trials 5 --seed 1)
set_tests_properties(torture.kills PROPERTIES LABELS cli TIMEOUT 600 COST 60 ENVIRONMENT "HPCGRID_BUILD=${PROJECT_BINARY_DIR}")
foreach(class chaos soak)
    add_test(NAME torture.${class} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/torture/${class} --trials 6 --seed 2)
    set_tests_properties(torture.${class} PROPERTIES LABELS slurm TIMEOUT 2400 COST 10000 SKIP_RETURN_CODE 77
        ENVIRONMENT "HPCGRID_BUILD=${PROJECT_BINARY_DIR}")
endforeach()
set_tests_properties(torture.chaos PROPERTIES RESOURCE_LOCK slurm-1)
set_tests_properties(torture.soak PROPERTIES RESOURCE_LOCK slurm-2)
