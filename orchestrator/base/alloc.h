/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_ALLOC_H
#define HG_BASE_ALLOC_H

#include <stddef.h>

/* Memory, or the end of the process: "out of memory" on stderr and exit code 4. No caller checks for NULL. Jansson allocates
 * here too. A size that comes from input is checked against an explicit bound before it is asked for. */

void *hg_alloc(size_t bytes);                 /* not initialised; yours to free() */
void *hg_alloc_zeroed(size_t n, size_t size); /* n items of `size` bytes, all 0; yours to free() */
void *hg_realloc(void *old, size_t bytes);
char *hg_strdup(const char *text);
char *hg_strndup(const char *text, size_t n);

/* End the process for lack of memory; for the few places where a library reports that by itself. */
_Noreturn void hg_alloc_failed(void);

/* Before the process ends, free `reserve` bytes that are set aside now and call `last` once: it may allocate. */
void hg_alloc_at_end(void (*last)(void), size_t reserve);

#endif
