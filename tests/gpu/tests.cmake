# SPDX-License-Identifier: Apache-2.0
# The ops of a backend against those of the cpu backend: gpu/ops.c. test_gpu_ops knows the worker's backends (a GPU is tested with
# it); test_emulated runs the cuda backend's own ops and kernels on an emulated GPU (gpu/emulator).
set(ops_sources gpu/ops.c gpu/ops_attention.c gpu/ops_rows.c gpu/ops_tokens.c)

function(hg_add_ops_program name)
    add_executable(${name} ${ops_sources} ${ARGN})
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE hpcgrid_worker m)
endfunction()

hg_add_ops_program(test_gpu_ops gpu/real.c)

# .cu files are C++ here.
enable_language(CXX)
set(kernels "")
foreach(kernel elementwise rows tokens attention attention_f32 lstm optim)
    list(APPEND kernels ${PROJECT_SOURCE_DIR}/worker/backends/cuda/${kernel}.cu)
endforeach()
set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX)

# hg_add_emulated(NAME DEFINITION...): the program, with kernels compiled with these definitions.
function(hg_add_emulated name)
    add_library(${name}_kernels OBJECT ${kernels})
    target_compile_features(${name}_kernels PRIVATE cxx_std_17)
    target_compile_definitions(${name}_kernels PRIVATE ${ARGN})
    target_compile_options(${name}_kernels PRIVATE -O1 -Wall -Wextra -Wno-unknown-pragmas)
    if(HPCGRID_WERROR)
        target_compile_options(${name}_kernels PRIVATE -Werror)
    endif()
    target_include_directories(${name}_kernels PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/gpu/emulator)
    target_link_libraries(${name}_kernels PRIVATE hpcgrid_worker)
    hg_add_ops_program(${name} gpu/emulated.c gpu/emulator/device.c ${PROJECT_SOURCE_DIR}/worker/backends/cuda/ops.c)
    target_link_libraries(${name} PRIVATE ${name}_kernels)
endfunction()

function(hg_add_emulated_test name program)
    add_test(NAME worker.emulated.${name} COMMAND ${program} ${ARGN})
    set_tests_properties(worker.emulated.${name} PROPERTIES LABELS worker TIMEOUT 600
        ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()

hg_add_emulated(test_emulated)
hg_add_emulated(test_emulated_sm75 WK_EMULATE_SM75)
foreach(precision fp32 bf16 fp16)
    hg_add_emulated_test(${precision} test_emulated emulated ${precision})
endforeach()
hg_add_emulated_test(tf32 test_emulated emulated tf32 attention)
hg_add_emulated_test(fp16.sm75 test_emulated_sm75 emulated fp16 attention)

# The whole models on the emulated GPU, against PyTorch's numbers as the cpu backend.
function(hg_add_emulated_model folder name)
    add_executable(test_emulated_${name} ${folder}/${name}.c gpu/emulator/device.c ${PROJECT_SOURCE_DIR}/worker/backends/cuda/ops.c)
    target_link_libraries(test_emulated_${name} PRIVATE test_emulated_kernels hpcgrid_worker PkgConfig::CMOCKA m)
    target_compile_definitions(test_emulated_${name} PRIVATE HPCGRID_SOURCE_DIR="${PROJECT_SOURCE_DIR}" WK_TEST_BACKEND=wk_backend_cuda)
    hg_add_emulated_test(${name} test_emulated_${name})
endfunction()

hg_add_emulated_model(worker golden)
hg_add_emulated_model(worker bert_golden)
hg_add_emulated_model(worker precision)
hg_add_emulated_model(gpu bert_mixed)

add_executable(test_emulator gpu/emulator/faults.cu)
set_source_files_properties(gpu/emulator/faults.cu PROPERTIES LANGUAGE CXX)
target_compile_features(test_emulator PRIVATE cxx_std_17)
target_compile_options(test_emulator PRIVATE -O1 -Wall -Wextra -Wno-unknown-pragmas)
target_include_directories(test_emulator PRIVATE gpu/emulator)
target_link_libraries(test_emulator PRIVATE hpcgrid_worker)
hg_add_emulated_test(faults test_emulator)

# hpcgrid-worker as it is, its cuda backend with it, on a mock CUDA runtime, cuBLASLt and NCCL: where there are their headers.
if(TARGET hpcgrid_cuda_kernels)
    set(mock_includes ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/worker)
    set(toolkit_includes $<TARGET_PROPERTY:CUDA::cudart_static,INTERFACE_INCLUDE_DIRECTORIES> ${NCCL_INCLUDE_DIR})
    file(GLOB worker_commands ${PROJECT_SOURCE_DIR}/worker/cmd/*.c)
    add_executable(hpcgrid-worker-emulated ${PROJECT_SOURCE_DIR}/worker/main.c ${worker_commands} gpu/emulator/runtime.c)
    target_include_directories(hpcgrid-worker-emulated PRIVATE ${mock_includes})
    target_include_directories(hpcgrid-worker-emulated SYSTEM PRIVATE ${toolkit_includes})
    target_link_libraries(hpcgrid-worker-emulated PRIVATE test_emulated_kernels hpcgrid_worker hpcgrid_worker_data m)
    set_target_properties(hpcgrid-worker-emulated PROPERTIES ENABLE_EXPORTS ON) # the libraries call the runtime
    # the program that tries ops on a GPU, likewise
    hg_add_ops_program(test_gpu_ops_mock gpu/real.c gpu/emulator/runtime.c)
    target_include_directories(test_gpu_ops_mock SYSTEM PRIVATE ${toolkit_includes} ${PROJECT_SOURCE_DIR}/worker)
    target_link_libraries(test_gpu_ops_mock PRIVATE test_emulated_kernels)
    set_target_properties(test_gpu_ops_mock PROPERTIES ENABLE_EXPORTS ON)

    function(hg_add_mock name soname source)
        add_library(${name} SHARED ${source})
        target_include_directories(${name} PRIVATE ${mock_includes})
        target_include_directories(${name} SYSTEM PRIVATE ${toolkit_includes})
        target_compile_options(${name} PRIVATE -O3 -fopenmp-simd)
        target_link_libraries(${name} PRIVATE hpcgrid_options m ${ARGN})
        set_target_properties(${name} PROPERTIES PREFIX "" OUTPUT_NAME ${soname} SUFFIX ""
            LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/mock)
        add_dependencies(hpcgrid-worker-emulated ${name})
        add_dependencies(test_gpu_ops_mock ${name})
    endfunction()
    file(STRINGS ${CUBLASLT_INCLUDE_DIR}/cublas_api.h cublas_major REGEX "define CUBLAS_VER_MAJOR")
    string(REGEX MATCH "[0-9]+$" cublas_major "${cublas_major}")
    hg_add_mock(mock_cublaslt libcublasLt.so.${cublas_major} gpu/emulator/cublaslt.c)
    hg_add_mock(mock_nccl libnccl.so.2 gpu/emulator/nccl.c)
    hg_add_bats(gpu/mock.bats worker 300)
endif()
