/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that write files: a folder of their own. */
#ifndef HG_TESTS_UNIT_FOLDER_H
#define HG_TESTS_UNIT_FOLDER_H

#include "test.h"

#include "base/fs.h"

static char dir[32]; /* its path */

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/hg-unit-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return hg_fs_remove_tree(dir, NULL);
}

/* A test with a folder of its own; a group that shares one names make_dir and remove_dir itself. */
#define in_dir(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

#endif
