# SPDX-License-Identifier: Apache-2.0
# These start a Slurm of their own (hpcgrid box) and take it down again; they skip where slurmd is not installed.
hg_add_bats(slurm/10-box.bats slurm 120)
hg_add_bats(slurm/15-doctor.bats slurm 60)
hg_add_bats(slurm/20-agent.bats slurm 180)
hg_add_bats(slurm/30-node.bats slurm 300)

if(TARGET hpcgrid_agent)
    # Every error number of the Slurm that is installed, by name: the agent's table must know them all.
    get_target_property(slurm_include Slurm::Slurm INTERFACE_INCLUDE_DIRECTORIES)
    file(STRINGS ${slurm_include}/slurm/slurm_errno.h errno_lines REGEX "^[ \t]+[A-Z][A-Z0-9_]+[ \t]*(=.*)?,")
    set(errno_names "")
    foreach(line IN LISTS errno_lines)
        string(REGEX MATCH "[A-Z][A-Z0-9_]+" name "${line}")
        string(APPEND errno_names "X(${name})\n")
    endforeach()
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/slurm_errno_names.h CONTENT "${errno_names}")
    add_executable(test_agent slurm/agent.c)
    target_link_libraries(test_agent PRIVATE hpcgrid_agent PkgConfig::CMOCKA)
    target_include_directories(test_agent PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
    add_test(NAME unit.agent COMMAND test_agent)
    set_tests_properties(unit.agent PROPERTIES LABELS unit TIMEOUT 60)
endif()
