/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *reserved;
static void (*at_end)(void);
static atomic_flag ending = ATOMIC_FLAG_INIT;

/* write(), because stdio may allocate. */
static void say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));

    (void)ignored;
}

void hg_alloc_failed(void)
{
    if (!atomic_flag_test_and_set(&ending)) {
        say(program_invocation_short_name);
        say(": error: out of memory\n");
        free(reserved);
        if (at_end)
            at_end(); /* without memory it comes back here */
    }
    _exit(4); /* as for HG_E_ENV, which is above this file */
}

void *hg_alloc(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);

    if (!p)
        hg_alloc_failed();
    return p;
}

void *hg_alloc_zeroed(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);

    if (!p)
        hg_alloc_failed();
    return p;
}

void *hg_realloc(void *old, size_t bytes)
{
    void *p = realloc(old, bytes ? bytes : 1);

    if (!p)
        hg_alloc_failed();
    return p;
}

char *hg_strdup(const char *text)
{
    return hg_strndup(text, strlen(text));
}

char *hg_strndup(const char *text, size_t n)
{
    size_t len = strnlen(text, n);
    char *copy = hg_alloc(len + 1);

    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void hg_alloc_at_end(void (*last)(void), size_t reserve)
{
    reserved = hg_alloc(reserve);
    memset(reserved, 0, reserve); /* or the system would promise it only */
    at_end = last;
}

__attribute__((constructor)) static void serve_jansson(void)
{
    json_set_alloc_funcs(hg_alloc, free);
}
