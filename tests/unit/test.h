/* SPDX-License-Identifier: Apache-2.0 */
/* What every cmocka program includes: cmocka wants these headers before its own. */
#ifndef HG_TESTS_UNIT_TEST_H
#define HG_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

#endif
