/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"

const char *__lsan_default_suppressions(void);

/* libjq leaks what it allocated for an expression that it cannot compile. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libjq\n";
}

const struct hg_fuzz_target *hg_fuzz_find(const char *name)
{
    const struct hg_fuzz_target *const lists[] = { hg_fuzz_orchestrator, hg_fuzz_agents,
                                                   hg_fuzz_worker };

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct hg_fuzz_target *t = lists[i]; t->name; t++)
            if (strcmp(t->name, name) == 0)
                return t;
    return NULL;
}

const char *hg_fuzz_file(const char *text, size_t len)
{
    static char path[40];
    static int fd = -1;

    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    hg_fuzz_expect(ftruncate(fd, 0) == 0 && pwrite(fd, text, len, 0) == (ssize_t)len,
                   "the bytes are in the file");
    return path;
}

void hg_fuzz_expect(bool is, const char *what)
{
    if (is)
        return;
    fprintf(stderr, "fuzz: not true: %s\n", what);
    abort();
}

void hg_fuzz_errors(struct hg_errs *errs, struct hg_err *err)
{
    struct hg_buf text = HG_BUF_INIT;

    if (err)
        hg_errs_add(errs, err);
    hg_errs_format(errs, &text);
    hg_buf_done(&text);
    hg_errs_done(errs);
}
