/* SPDX-License-Identifier: Apache-2.0 */
#include "box/nodes.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/vec.h"

static int parse_group(const char *text, size_t len, struct hg_box_group *g, struct hg_err *err)
{
    char word[160];
    int used = 0;

    *g = (struct hg_box_group){ 0 };
    snprintf(word, sizeof word, "%.*s", (int)len, text);
    if (len >= sizeof word ||
        sscanf(word, "%63[A-Za-z0-9_.]:%ldx%ld%n/%ld%n", g->hardware, &g->nodes, &g->gpus, &used,
               &g->cpus, &used) < 3 ||
        word[used])
        return hg_err_set(err, HG_E_USAGE,
                          "nodes \"%s\": write HARDWARE:NODESxGPUS, such as a100:4x2 or cpu:2x0",
                          word);
    if (g->nodes < 1 || g->nodes > HG_BOX_NODES_MAX || g->gpus < 0 || g->gpus > 64 || g->cpus < 0 ||
        g->cpus > 4096)
        return hg_err_set(err, HG_E_USAGE,
                          "nodes \"%s\": 1 to %d nodes, at most 64 GPUs and 4096 CPUs each", word,
                          HG_BOX_NODES_MAX);
    if (strcmp(g->hardware, "box") == 0)
        return hg_err_set(err, HG_E_USAGE, "nodes \"%s\": \"box\" is the partition of all nodes",
                          word);
    return 0;
}

struct group_list {
    struct hg_box_group *items;
    size_t n, cap;
};

struct hg_box_group *hg_box_nodes_parse(const char *text, size_t *n, struct hg_err *err)
{
    struct group_list list = { 0 };

    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        struct hg_box_group *g = HG_VEC_PUSH(&list);

        if (parse_group(p, len, g, err) < 0)
            goto fail;
        for (size_t i = 0; i + 1 < list.n; i++)
            if (strcmp(list.items[i].hardware, g->hardware) == 0) {
                hg_err_set(err, HG_E_USAGE, "nodes: %s is listed twice", g->hardware);
                goto fail;
            }
        p += len;
        if (!*p)
            break;
    }
    *n = list.n;
    return list.items;
fail:
    HG_VEC_DONE(&list);
    return NULL;
}

size_t hg_box_nodes_count(const struct hg_box_spec *spec)
{
    size_t n = 0;

    for (size_t i = 0; i < spec->n_groups; i++)
        n += (size_t)spec->groups[i].nodes;
    return n;
}

void hg_box_nodes_name(const struct hg_box_spec *spec, size_t i, char out[static 96])
{
    const struct hg_box_group *g = spec->groups;

    while (i >= (size_t)g->nodes)
        i -= (size_t)g++->nodes;
    snprintf(out, 96, "%s-%zu", g->hardware, i + 1);
}

#define PORT_FIRST 20000 /* below the range that the kernel gives to clients */
#define PORT_LAST 32000
#define PORT_TRIES 200

static bool port_is_free(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_ANY) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    bool ok;

    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* as Slurm does */
    ok = bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0;
    close(fd);
    return ok;
}

int hg_box_ports_choose(size_t n, struct hg_box_ports *ports, struct hg_err *err)
{
    for (int attempt = 0; attempt < PORT_TRIES; attempt++) {
        unsigned number;
        int first;
        size_t i = 0;

        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return hg_err_sys(err, "cannot get random numbers");
        first = PORT_FIRST + (int)(number % (PORT_LAST - PORT_FIRST - n - 2));
        while (i < n + 3 && port_is_free(first + (int)i))
            i++;
        if (i == n + 3) {
            *ports = (struct hg_box_ports){ .ctld = first,
                                            .first_node = first + 1,
                                            .dbd = first + 1 + (int)n,
                                            .database = first + 2 + (int)n };
            return 0;
        }
    }
    return hg_err_set(err, HG_E_ENV, "no %zu free ports in a row between %d and %d", n + 3,
                      PORT_FIRST, PORT_LAST);
}
