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
add_test(NAME torture.fuzz COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/torture/fuzz --trials 1 --seed 1 pipe sbatch rest files complete)
set_tests_properties(torture.fuzz PROPERTIES LABELS cli TIMEOUT 600 COST 60 ENVIRONMENT "HPCGRID_BUILD=${PROJECT_BINARY_DIR}")
