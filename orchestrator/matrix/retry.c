/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/retry.h"

#include <string.h>

#define CAUSE(cause, text)                                                                         \
    [HG_RETRY_##cause] = { #cause,                                                                 \
                           HG_J_INT,                                                               \
                           offsetof(struct hg_retry, most) + HG_RETRY_##cause * sizeof(long long), \
                           .min = 0,                                                               \
                           .max = 100,                                                             \
                           .doc = text }

const struct hg_field hg_retry_fields[] = {
    CAUSE(TIMEOUT, "killed at its time limit, or stopped before it with a checkpoint"),
    CAUSE(NODE_FAIL, "its node failed"),
    CAUSE(PREEMPTED, "another job took its place"),
    CAUSE(OUT_OF_MEMORY, "it ran out of memory"),
    CAUSE(FAILED, "the workload failed"),
    CAUSE(LOST, "it started, and its end is unknown"),
    [HG_RETRY_CAUSES] = { 0 },
};

struct hg_retry hg_retry_of(const json_t *object)
{
    struct hg_retry retry = { 0 };

    for (int c = 0; c < HG_RETRY_CAUSES; c++)
        retry.most[c] = json_integer_value(json_object_get(object, hg_retry_fields[c].name));
    return retry;
}

int hg_retry_find(const char *name)
{
    for (int c = 0; c < HG_RETRY_CAUSES; c++)
        if (strcmp(hg_retry_fields[c].name, name) == 0)
            return c;
    return -1;
}
