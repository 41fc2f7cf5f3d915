/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define ALIGNMENT 64
#define CLEAR_BYTES ((size_t)1 << 20) /* at a time */

void *wk_cpu_alloc(struct wk_dev *dev, size_t bytes)
{
    size_t rounded = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    char *data = aligned_alloc(ALIGNMENT, rounded);

#pragma omp parallel for num_threads(wk_cpu_pass_threads(dev, rounded)) schedule(static)
    for (size_t at = 0; at < (data ? rounded : 0); at += CLEAR_BYTES)
        memset(data + at, 0, rounded - at < CLEAR_BYTES ? rounded - at : CLEAR_BYTES);
    return data;
}

void wk_cpu_free(struct wk_dev *dev, void *data)
{
    (void)dev;
    free(data);
}

void wk_cpu_upload(struct wk_dev *dev, struct wk_span to, const void *host)
{
    (void)dev;
    if (to.n)
        memcpy(to.data, host, to.n * wk_type_size(to.type));
}

void wk_cpu_download(struct wk_dev *dev, void *host, struct wk_span from)
{
    (void)dev;
    if (from.n)
        memcpy(host, from.data, from.n * wk_type_size(from.type));
}

/* The number after a name at the start of a line of the file; the file's only number for "". 0 if there is none, as for "max". */
static unsigned long long read_number(const char *path, const char *name)
{
    FILE *f = fopen(path, "re");
    unsigned long long v = 0;
    char line[256];

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%llu", &v) == 1)
            break;
    if (f)
        fclose(f);
    return v;
}

/* Bytes that the process's control group and those above it leave, as Slurm limits a job's memory; its page cache counts as free. 0: no limit. */
static unsigned long long group_available(void)
{
    char path[512] = "", file[600], line[512], *end;
    FILE *f = fopen("/proc/self/cgroup", "re");
    unsigned long long least = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "0::/", 4) == 0)
            snprintf(path, sizeof path, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (f)
        fclose(f);
    for (; path[0]; *end = '\0') {
        unsigned long long limit, used, files;

        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.max", path);
        limit = read_number(file, "");
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.current", path);
        used = read_number(file, "");
        snprintf(file, sizeof file, "/sys/fs/cgroup%s/memory.stat", path);
        files = read_number(file, "inactive_file ");
        used -= files < used ? files : used;
        if (limit) {
            unsigned long long left = limit > used ? limit - used : 1;

            least = !least || left < least ? left : least;
        }
        end = strrchr(path, '/');
    }
    return least;
}

size_t wk_cpu_available(struct wk_dev *dev)
{
    unsigned long long bytes = read_number("/proc/meminfo", "MemAvailable:") * 1024;
    unsigned long long group = group_available();

    (void)dev;
    return (size_t)(group && group < bytes ? group : bytes);
}

int wk_cpu_sync(struct wk_dev *dev, struct hg_err *err)
{
    if (dev->error.code == HG_E_NONE)
        return 0;
    if (err && err->code == HG_E_NONE)
        *err = dev->error;
    dev->error = (struct hg_err)HG_ERR_INIT;
    return -1;
}

wk_real *wk_cpu_scratch(struct cpu *c, size_t n)
{
    if (n > c->scratch.n) {
        wk_dev_free(&c->dev, WK_MEM_WORKSPACE, &c->scratch);
        if (wk_dev_alloc(&c->dev, WK_MEM_WORKSPACE, WK_REAL, n, &c->scratch, NULL) < 0)
            hg_alloc_failed();
    }
    return c->scratch.data;
}
