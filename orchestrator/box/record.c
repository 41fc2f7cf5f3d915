/* SPDX-License-Identifier: Apache-2.0 */
#include "box/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"

#define FILE_NAME "box.json"
#define SCHEMA "hpcgrid-box/1"

const char *hg_box_record_state_name(enum hg_box_state state)
{
    static const char *const names[] = { "up", "degraded", "lost" };

    return names[state];
}

/* ---- making, loading, saving ---- */

static json_t *encode_group(const struct hg_box_group *g)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "hardware", g->hardware,
                     "nodes", (json_int_t)g->nodes, "gpus", (json_int_t)g->gpus, "cpus",
                     (json_int_t)g->cpus, "mem_mib", (json_int_t)g->mem_mib, "max_time_min",
                     (json_int_t)g->max_time_min, "max_nodes", (json_int_t)g->max_nodes,
                     "partition", hg_json_text(g->partition), "gres", hg_json_text(g->gres),
                     "constraint", hg_json_text(g->constraint));
}

json_t *hg_box_record_make(const struct hg_box_spec *spec, const struct hg_box_ports *ports)
{
    json_t *record = json_object(), *nodes = json_array(), *settings = json_array();
    char boot[40];

    hg_box_process_boot_id(boot);
    for (size_t i = 0; i < spec->n_groups; i++)
        json_array_append_new(nodes, encode_group(&spec->groups[i]));
    for (const char *const *s = spec->settings; s && *s; s++)
        json_array_append_new(settings, hg_json_text(*s));
    json_object_set_new(record, "schema", json_string(SCHEMA));
    json_object_set_new(record, "name", json_string(spec->name));
    json_object_set_new(record, "boot_id", json_string(boot));
    json_object_set_new(record, "started_s", json_real(hg_clock_wall_s()));
    json_object_set_new(record, "nodes", nodes);
    json_object_set_new(record, "settings", settings);
    json_object_set_new(record, "accounting", json_boolean(spec->accounting));
    json_object_set_new(record, "port", json_integer(ports->ctld));
    return record;
}

bool hg_box_record_fits(const json_t *record, const struct hg_box_spec *spec)
{
    json_t *wanted = hg_box_record_make(spec, &(struct hg_box_ports){ 0 });
    bool same =
        hg_json_equal(json_object_get(wanted, "nodes"), json_object_get(record, "nodes")) &&
        hg_json_equal(json_object_get(wanted, "settings"), json_object_get(record, "settings")) &&
        spec->accounting == json_is_true(json_object_get(record, "accounting"));

    json_decref(wanted);
    return same;
}

json_t *hg_box_record_load(const char *dir)
{
    char *path = hg_fs_join(dir, FILE_NAME);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    json_t *record = NULL;

    if (hg_json_load(path, &doc, &(struct hg_err)HG_ERR_INIT) == 0 && json_is_object(doc.root))
        record = json_incref(doc.root);
    hg_json_doc_done(&doc);
    free(path);
    return record ? record : json_object();
}

int hg_box_record_save(const char *dir, const json_t *record, struct hg_err *err)
{
    char *path = hg_fs_join(dir, FILE_NAME);
    int rc = hg_json_save(path, record, err);

    free(path);
    return rc;
}

/* ---- its processes ---- */

json_t *hg_box_record_encode(struct hg_box_process p)
{
    return json_pack("{s:i, s:I}", "pid", (int)p.pid, "start", (json_int_t)p.start);
}

struct hg_box_process hg_box_record_process(const json_t *object)
{
    return (struct hg_box_process){
        .pid = (pid_t)json_integer_value(json_object_get(object, "pid")),
        .start = (unsigned long long)json_integer_value(json_object_get(object, "start")),
    };
}

struct hg_box_process hg_box_record_keeper(const json_t *record)
{
    return hg_box_record_process(json_object_get(record, "keeper"));
}

bool hg_box_record_is_of_this_boot(const json_t *record)
{
    const char *boot = json_string_value(json_object_get(record, "boot_id"));
    char now[40];

    hg_box_process_boot_id(now);
    return boot && strcmp(boot, now) == 0;
}

enum hg_box_state hg_box_record_state(const json_t *record)
{
    if (!hg_box_record_is_of_this_boot(record) ||
        !hg_box_process_alive(hg_box_record_keeper(record)))
        return HG_BOX_LOST;
    return hg_box_record_dead(record) ? HG_BOX_DEGRADED : HG_BOX_UP;
}

const char *hg_box_record_dead(const json_t *record)
{
    const json_t *list = json_object_get(record, "daemons"), *d;
    size_t i;

    json_array_foreach(list, i, d)
        if (!hg_box_process_alive(hg_box_record_process(d)))
            return json_string_value(json_object_get(d, "name"));
    return NULL;
}
