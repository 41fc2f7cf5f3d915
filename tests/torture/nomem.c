/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD of tests/torture/calls: allocation number NOMEM_AT of hpcgrid fails, with a "+" behind it all that follow, too. NOMEM_COUNT names a
 * file for the number of allocations. Other programs are left alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long calls;
static long at;
static int on;

__attribute__((constructor)) static void begin(void)
{
    const char *word = getenv("NOMEM_AT");

    if (strcmp(program_invocation_short_name, "hpcgrid") != 0)
        return;
    at = word ? strtol(word, NULL, 10) : 0;
    on = word && strchr(word, '+') ? 2 : 1;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("NOMEM_COUNT");
    char text[32];
    int fd = on && path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

    if (fd >= 0) {
        ssize_t ignored = write(fd, text, (size_t)snprintf(text, sizeof text, "%ld", (long)calls));

        (void)ignored;
        close(fd);
    }
}

static int fails(void)
{
    long n;

    if (!on)
        return 0;
    n = ++calls;
    if (!at || (on == 1 ? n != at : n < at))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t n);

void *malloc(size_t n)
{
    return fails() ? NULL : __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}
void *realloc(void *old, size_t n)
{
    return fails() ? NULL : __libc_realloc(old, n);
}
