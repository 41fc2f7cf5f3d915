# SPDX-License-Identifier: Apache-2.0
# Write the PAGES of SOURCE to OUT, each as an array of bytes: matrices/README.md is page_matrices_README.
set(text "/* made by pages.cmake */\n")
foreach(page IN LISTS PAGES)
    file(READ ${SOURCE}/${page} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "\\.md$" "" name "${page}")
    string(MAKE_C_IDENTIFIER "page_${name}" name)
    string(APPEND text "static const char ${name}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE ${OUT} "${text}")
