/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/sitedraft.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

#define NAME_MAX_LEN 48

/* Nodes of one partition that a job can take for each other: the same type and number of GPUs. */
struct kind {
    const json_t *partition;
    char type[NAME_MAX_LEN]; /* "a100"; "" without GPUs, or if Slurm knows no type */
    long long gpus;          /* of a node */
    long long nodes;
    long long cpus, mem_mib; /* of the smallest node */
    bool mixed;              /* the partition has other kinds too */
};

struct kinds {
    struct kind *items;
    size_t n, cap;
    const struct hg_cluster_facts *facts;
    json_t *nodes;           /* by name: there may be ten thousand, in many partitions */
    const json_t *partition; /* whose nodes are being read */
};

static const char *word(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));

    return s ? s : "";
}

static long long number(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

void hg_cluster_facts_done(struct hg_cluster_facts *facts)
{
    json_decref(facts->limits);
    json_decref(facts->partitions);
    json_decref(facts->nodes);
    json_decref(facts->account);
}

/* ---- Kinds of nodes ---- */

/* "gpu:a100:2(S:0-1),nvme:1" is 2 of type a100, "gpu:4" is 4 without a type. */
static void read_gres(const char *gres, struct kind *k)
{
    for (size_t n; *gres; gres += n + (gres[n] == ',')) {
        const char *colon;

        n = 0;
        for (int depth = 0; gres[n] && (depth || gres[n] != ','); n++)
            depth += (gres[n] == '(') - (gres[n] == ')');
        if (k->gpus || strncmp(gres, "gpu", 3) != 0 || (gres[3] != ':' && n != 3))
            continue;
        colon = gres[3] == ':' ? gres + 3 : NULL;
        if (colon && !isdigit((unsigned char)colon[1])) {
            snprintf(k->type, sizeof k->type, "%.*s", (int)strcspn(colon + 1, ":(,"), colon + 1);
            colon = strchr(colon + 1, ':');
        }
        k->gpus = colon && colon < gres + n ? strtoll(colon + 1, NULL, 10) : 1;
    }
}

static json_t *nodes_by_name(const json_t *list)
{
    json_t *nodes = json_object(), *node;
    size_t i;

    json_array_foreach(list, i, node)
        json_object_set(nodes, word(node, "name"), node);
    return nodes;
}

static int add_host(void *context, const char *host)
{
    struct kinds *all = context;
    const json_t *node = json_object_get(all->nodes, host);
    struct kind k = { .partition = all->partition, .nodes = 1 }, *same = NULL;

    if (!node)
        return 0;
    read_gres(word(node, "gres"), &k);
    k.cpus = number(node, "cpus");
    k.mem_mib = number(node, "mem_mib");
    for (size_t i = 0; i < all->n && !same; i++)
        if (all->items[i].partition == k.partition && all->items[i].gpus == k.gpus &&
            strcmp(all->items[i].type, k.type) == 0)
            same = &all->items[i];
    if (!same) {
        *HG_VEC_PUSH(all) = k;
        return 0;
    }
    same->nodes++;
    same->cpus = k.cpus < same->cpus ? k.cpus : same->cpus;
    same->mem_mib = k.mem_mib < same->mem_mib ? k.mem_mib : same->mem_mib;
    return 0;
}

/* May this user send jobs there? */
static bool is_open(const struct kinds *all, const json_t *partition)
{
    const char *account = word(all->facts->account, "account");
    const char *allowed = word(partition, "allow_accounts");
    size_t n = strlen(account);

    if (!json_is_true(json_object_get(partition, "up")))
        return false;
    if (!*allowed || !n)
        return true;
    for (const char *p = allowed; (p = strstr(p, account)); p += n)
        if ((p == allowed || p[-1] == ',') && (!p[n] || p[n] == ','))
            return true;
    return false;
}

static void collect_kinds(struct kinds *all)
{
    json_t *p;
    size_t i;

    json_array_foreach(json_object_get(all->facts->partitions, "partitions"), i, p) {
        size_t first = all->n;

        all->partition = p;
        if (is_open(all, p))
            hg_text_each_host(word(p, "nodes"), add_host, all);
        for (size_t k = first; k < all->n; k++)
            all->items[k].mixed = all->n > first + 1;
    }
}

/* ---- Entries of hardware ---- */

static bool same_limits(const json_t *a, const json_t *b)
{
    return number(a, "max_time_s") == number(b, "max_time_s") &&
           number(a, "max_nodes") == number(b, "max_nodes");
}

/* A partition of all nodes adds nothing where others have the same nodes with the same limits. */
static bool is_elsewhere(const struct kinds *all, const struct kind *k)
{
    for (size_t i = 0; i < all->n && k->mixed; i++) {
        const struct kind *o = &all->items[i];

        if (!o->mixed && o->gpus == k->gpus && strcmp(o->type, k->type) == 0 &&
            o->nodes >= k->nodes && same_limits(o->partition, k->partition))
            return true;
    }
    return false;
}

/* "a100", and "a100-debug" where another entry has that name. */
static void name_kind(const struct kind *k, const json_t *hardware, char out[static 64])
{
    snprintf(out, 64, "%s", *k->type ? k->type : k->gpus ? "gpu" : "cpu");
    for (char *p = out; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            *p = '-';
    if (json_object_get(hardware, out))
        snprintf(out + strlen(out), 64 - strlen(out), "-%.*s", (int)(63 - strlen(out) - 5),
                 word(k->partition, "name"));
    for (size_t n = strlen(out), i = 2; json_object_get(hardware, out) && i < 100; i++)
        snprintf(out + n, 64 - n, "-%zu", i);
}

static void set_gib(json_t *entry, const char *member, long long mib)
{
    char text[32];

    snprintf(text, sizeof text, "%lldG", mib / 1024);
    if (mib >= 1024)
        json_object_set_new(entry, member, json_string(text));
}

/* allow_qos of the partition, if the default one is not among them and there is no choice. */
static void set_qos(json_t *entry, const struct kind *k, const json_t *account)
{
    const char *allowed = word(k->partition, "allow_qos");

    if (*allowed && !strchr(allowed, ',') && strcmp(allowed, word(account, "qos")) != 0)
        json_object_set_new(entry, "qos", json_string(allowed));
}

static json_t *make_entry(const struct kind *k, const json_t *account)
{
    const json_t *most = json_object_get(k->partition, "max_nodes");
    const json_t *time = json_object_get(k->partition, "max_time_s");
    long long nodes = json_is_integer(most) && json_integer_value(most) < k->nodes
                          ? json_integer_value(most)
                          : k->nodes;
    json_t *entry = json_pack("{s:s}", "partition", word(k->partition, "name"));
    char text[64];

    if (k->gpus) {
        snprintf(text, sizeof text, "gpu%s%s", *k->type ? ":" : "", k->type);
        json_object_set_new(entry, "gres", json_string(text));
    }
    json_object_set_new(entry, "max_nodes", json_integer(nodes > 0 ? nodes : 1));
    if (json_is_integer(time) && json_integer_value(time) > 0) {
        hg_text_duration_slurm(json_number_value(time), text);
        json_object_set_new(entry, "max_time", json_string(text));
    }
    json_object_set_new(entry, "gpus_per_node", json_integer(k->gpus));
    if (k->cpus > 0)
        json_object_set_new(entry, "cores_per_node", json_integer(k->cpus));
    if (k->gpus && k->cpus >= k->gpus)
        json_object_set_new(entry, "cpus_per_gpu", json_integer(k->cpus / k->gpus));
    set_gib(entry, k->gpus ? "mem_per_gpu" : "device_mem",
            k->gpus ? k->mem_mib / k->gpus : k->mem_mib);
    set_qos(entry, k, account);
    return entry;
}

/* Entries of partitions with one kind first: they get the short names. Returns the name of the entry to use by default. */
static void add_hardware(const struct kinds *all, json_t *hardware, char by_default[static 64])
{
    bool chosen = false;

    for (int mixed = 0; mixed < 2; mixed++)
        for (size_t i = 0; i < all->n; i++) {
            const struct kind *k = &all->items[i];
            bool is_default = json_is_true(json_object_get(k->partition, "default"));
            char name[64];

            if (k->mixed != (mixed == 1) || is_elsewhere(all, k))
                continue;
            name_kind(k, hardware, name);
            json_object_set_new(hardware, name, make_entry(k, all->facts->account));
            if (!*by_default || (is_default && !chosen))
                strcpy(by_default, name);
            chosen = chosen || is_default;
        }
}

/* ---- The site ---- */

static void set_word(json_t *site, const char *member, const char *value)
{
    if (value && *value)
        json_object_set_new(site, member, json_string(value));
}

json_t *hg_site_draft(const char *name, const struct hg_cluster_facts *facts, struct hg_err *err)
{
    struct kinds all = { .facts = facts,
                         .nodes = nodes_by_name(json_object_get(facts->nodes, "nodes")) };
    json_t *site, *hardware = json_object();
    char by_default[64] = "", note[256];

    collect_kinds(&all);
    add_hardware(&all, hardware, by_default);
    json_decref(all.nodes);
    HG_VEC_DONE(&all);
    if (!*by_default) {
        json_decref(hardware);
        hg_err_set(err, HG_E_ENV, "no site can be drafted: no partition is up and open to you");
        return NULL;
    }
    snprintf(note, sizeof note,
             "drafted by hpcgrid doctor from cluster %.60s, Slurm %.30s. To add: modules, "
             "device_mem (memory of one GPU), env, prices.",
             word(facts->limits, "cluster"), word(facts->limits, "version"));
    site = json_pack("{s:s, s:s}", "name", name, "_note", note);
    json_object_set_new(site, "_limits",
                        json_pack("{s:I, s:I}", "max_array_size",
                                  (json_int_t)number(facts->limits, "max_array_size"), "max_jobs",
                                  (json_int_t)number(facts->limits, "max_jobs")));
    set_word(site, "launcher", facts->launcher);
    set_word(site, "account", word(facts->account, "account"));
    set_word(site, "qos", word(facts->account, "qos"));
    set_word(site, "default", by_default);
    json_object_set_new(site, "hardware", hardware);
    return site;
}
