# SPDX-License-Identifier: Apache-2.0
# Each parser on good files as they are and damaged, the same ways each time. tests/fuzz/run searches on with libFuzzer.
add_executable(test_fuzz fuzz/fuzz.c fuzz/orchestrator.c fuzz/replay.c fuzz/worker.c)
target_link_libraries(test_fuzz PRIVATE hpcgrid_core hpcgrid_worker)

# hg_add_fuzz(TARGET TIMES SEED...): seeds are globs below the source tree.
function(hg_add_fuzz target times)
    set(globs ${ARGN})
    list(TRANSFORM globs PREPEND ${PROJECT_SOURCE_DIR}/)
    file(GLOB seeds ${globs})
    add_test(NAME unit.fuzz-${target} COMMAND test_fuzz ${target} ${times} ${seeds})
    set_tests_properties(unit.fuzz-${target} PROPERTIES LABELS unit TIMEOUT 600)
endfunction()

hg_add_fuzz(json 200 matrices/*.json templates/sites/*.json tests/data/results/*.json)
hg_add_fuzz(matrix 20 matrices/*.json tests/cli/good/*.json)
hg_add_fuzz(site 300 templates/sites/*.json tests/data/sites/*.json)
hg_add_fuzz(results 30 tests/data/results/*.json)
hg_add_fuzz(mustache 2000 templates/reports/* tests/fuzz/seeds/mustache)
hg_add_fuzz(selector 300 tests/fuzz/seeds/selector*)
hg_add_fuzz(placeholders 5000 tests/fuzz/seeds/placeholders)
hg_add_fuzz(events 3000 tests/fuzz/seeds/events)
hg_add_fuzz(gzip 1000 worker/samples/mnist/t10k-labels*)
hg_add_fuzz(idx 1000 worker/samples/mnist/t10k-labels* tests/fuzz/seeds/idx)
hg_add_fuzz(safetensors 3000 tests/fuzz/seeds/safetensors)
hg_add_fuzz(squad 1000 tests/fuzz/seeds/squad*)
hg_add_fuzz(wordpiece 2000 tests/fuzz/seeds/wordpiece)
hg_add_fuzz(vocabulary 500 tests/fuzz/seeds/vocabulary)
