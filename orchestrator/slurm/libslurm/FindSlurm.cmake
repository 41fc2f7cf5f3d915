# SPDX-License-Identifier: Apache-2.0
# Slurm's headers and library: the imported target Slurm::Slurm. SLURM_ROOT names a prefix of its own.
find_path(SLURM_INCLUDE_DIR slurm/slurm.h HINTS ${SLURM_ROOT} ENV SLURM_ROOT PATH_SUFFIXES include)
find_library(SLURM_LIBRARY slurm HINTS ${SLURM_ROOT} ENV SLURM_ROOT PATH_SUFFIXES lib64 lib)
if(SLURM_INCLUDE_DIR AND EXISTS "${SLURM_INCLUDE_DIR}/slurm/slurm_version.h")
    file(STRINGS "${SLURM_INCLUDE_DIR}/slurm/slurm_version.h" slurm_version_line
        REGEX "#define SLURM_VERSION_NUMBER 0x[0-9a-fA-F]+")
    if(slurm_version_line MATCHES "0x([0-9a-fA-F][0-9a-fA-F])([0-9a-fA-F][0-9a-fA-F])([0-9a-fA-F][0-9a-fA-F])")
        math(EXPR slurm_major "0x${CMAKE_MATCH_1}")
        math(EXPR slurm_minor "0x${CMAKE_MATCH_2}")
        math(EXPR slurm_micro "0x${CMAKE_MATCH_3}")
        set(Slurm_VERSION "${slurm_major}.${slurm_minor}.${slurm_micro}")
    endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Slurm REQUIRED_VARS SLURM_LIBRARY SLURM_INCLUDE_DIR VERSION_VAR Slurm_VERSION)
if(Slurm_FOUND AND NOT TARGET Slurm::Slurm)
    add_library(Slurm::Slurm UNKNOWN IMPORTED GLOBAL)
    set_target_properties(Slurm::Slurm PROPERTIES IMPORTED_LOCATION "${SLURM_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${SLURM_INCLUDE_DIR}")
endif()
mark_as_advanced(SLURM_INCLUDE_DIR SLURM_LIBRARY)
