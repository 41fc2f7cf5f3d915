# SPDX-License-Identifier: Apache-2.0
cmake_policy(SET CMP0053 NEW)
# cmake -DOUT=revision.h -DSOURCE=dir -DVERSION=x -P revision.cmake: write WK_REVISION, touch the file only if it changed.
execute_process(COMMAND git -C "${SOURCE}" describe --always --dirty --exclude=* OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE rc)
set(revision ${VERSION})
if(rc EQUAL 0 AND commit)
    set(revision "${VERSION}+g${commit}")
endif()
file(CONFIGURE OUTPUT "${OUT}" CONTENT
"/* Generated. */
#define WK_REVISION \"@revision@\"
" @ONLY)
