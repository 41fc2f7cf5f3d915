/* SPDX-License-Identifier: Apache-2.0 */
#include "base/jsonmem.h"

#include <stdint.h>
#include <stdlib.h>

static _Thread_local size_t shortages, ration = SIZE_MAX;
static _Thread_local bool reading, gone; /* gone: since this text is being read */

/* Jansson's reader loses a character whose place in a growing buffer it does not get, and then runs past
 * the end if it gets the next: so it gets nothing more. */
static void *allocate(size_t n)
{
    void *p = (reading && gone) || !ration ? NULL : malloc(n);

    if (!p) {
        shortages++;
        gone = true;
    } else if (ration != SIZE_MAX) {
        ration--;
    }
    return p;
}

__attribute__((constructor)) static void watch_memory(void)
{
    json_set_alloc_funcs(allocate, free);
}

size_t hg_json_shortages(void)
{
    return shortages;
}

json_t *hg_json_read(const char *text, size_t len, size_t flags, json_error_t *je,
                     bool *short_of_memory)
{
    json_t *value;

    gone = false;
    reading = true;
    value = json_loadb(text, len, flags, je);
    reading = false;
    *short_of_memory = gone;
    if (!gone)
        return value;
    json_decref(value);
    return NULL;
}

void hg_json_ration(size_t n)
{
    ration = n;
}
