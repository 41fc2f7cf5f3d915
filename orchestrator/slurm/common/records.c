/* SPDX-License-Identifier: Apache-2.0 */
#include "slurm/common/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define INDEX_MAX 4000001L /* no Slurm takes more */

bool hg_agent_find_key(const char *text, char key[static HG_AGENT_KEY_DIGITS + 1])
{
    for (const char *p = text; p && (p = strstr(p, "hg-")); p++)
        if (strspn(p + 3, "0123456789abcdef") == HG_AGENT_KEY_DIGITS) {
            snprintf(key, HG_AGENT_KEY_DIGITS + 1, "%.*s", HG_AGENT_KEY_DIGITS, p + 3);
            return true;
        }
    return false;
}

bool hg_agent_plain_set(const char *text, struct hg_buf *out)
{
    for (const char *p = text; *p && *p != '%';) {
        long first, last, step = 1;
        char *end;

        if (*p == '[' || *p == ']' || *p == ',') {
            p++;
            continue;
        }
        first = last = strtol(p, &end, 10);
        if (end == p)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (*end == ':')
            step = strtol(end + 1, &end, 10);
        if (first < 0 || last < first || last > INDEX_MAX || step < 1)
            return false;
        if (step == 1 && last > first)
            hg_buf_printf(out, "%s%ld-%ld", out->len ? "," : "", first, last);
        else
            for (long i = first; i <= last; i += step)
                hg_buf_printf(out, "%s%ld", out->len ? "," : "", i);
        p = end;
    }
    return true;
}

const char *hg_agent_base_state(const char *word, size_t n)
{
    static const char *const states[] = { "PENDING",   "RUNNING",   "SUSPENDED", "COMPLETED",
                                          "CANCELLED", "FAILED",    "TIMEOUT",   "NODE_FAIL",
                                          "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY" };

    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strlen(states[i]) == n && strncasecmp(states[i], word, n) == 0)
            return states[i];
    return NULL;
}

bool hg_agent_is_waiting(const char *flag)
{
    static const char *const waiting[] = { "REQUEUED",     "REQUEUE_FED",   "REQUEUE_HOLD",
                                           "SPECIAL_EXIT", "RESV_DEL_HOLD", NULL };

    return hg_text_is_one_of(flag, strlen(flag), waiting);
}

bool hg_agent_has_ended(const char *state)
{
    static const char *const going[] = { "PENDING", "RUNNING", "SUSPENDED", "UNKNOWN", NULL };

    return !hg_text_is_one_of(state, strlen(state), going);
}

json_t *hg_agent_record_encode(const struct hg_agent_record *r)
{
    bool ended = hg_agent_has_ended(r->state), started = strcmp(r->state, "PENDING") != 0;
    json_t *o = json_object();

    json_object_set_new(o, "key", json_string(r->key));
    json_object_set_new(o, "job_id", json_integer(r->job_id));
    json_object_set_new(o, "tasks", json_string(r->tasks));
    json_object_set_new(o, "state", json_string(r->state));
    json_object_set_new(o, "reason", hg_agent_text(r->reason));
    json_object_set_new(o, "nodes", hg_agent_text(r->nodes));
    json_object_set_new(o, "restarts", json_integer(r->restarts));
    json_object_set_new(o, "exit_status", json_integer(ended ? r->exit_status : 0));
    json_object_set_new(o, "submit_s", json_integer(r->submit));
    json_object_set_new(o, "start_s", json_integer(started ? r->start : 0));
    if (!started && r->start > 0)
        json_object_set_new(o, "expected_s", json_integer(r->start));
    json_object_set_new(o, "end_s", json_integer(ended ? r->end : 0));
    return o;
}

json_t *hg_agent_wanted_keys(const json_t *request)
{
    json_t *list = json_object_get(request, "keys"), *set = json_object(), *key;
    size_t i;

    json_array_foreach(list, i, key)
        if (json_is_string(key))
            json_object_set_new(set, json_string_value(key), json_true());
    return set;
}

void hg_agent_keep_latest(json_t *latest, const char *id, json_t *record)
{
    json_t *other = json_object_get(latest, id), *first = record, *second = other;

    if (!other) {
        json_object_set_new(latest, id, record);
        return;
    }
    if (json_integer_value(json_object_get(other, "submit_s")) <=
        json_integer_value(json_object_get(record, "submit_s"))) {
        first = other;
        second = record;
    }
    json_object_set_new(second, "restarts",
                        json_integer(json_integer_value(json_object_get(first, "restarts")) + 1));
    if (second == record)
        json_object_set_new(latest, id, record);
    else
        json_decref(record);
}
