/* SPDX-License-Identifier: Apache-2.0 */
#include "node/where.h"

#include <dirent.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/text.h"
#include "results/inputs.h"

#define FIRST_PORT 12000 /* below the kernel's range for outgoing connections */
#define PORTS 20000

static void set_text(json_t *object, const char *key, const char *value)
{
    if (value && value[0])
        json_object_set_new(object, key, hg_json_text(value));
}

/* ---- The machine ---- */

/* The value after "key : " in a file of such lines. */
static bool read_field(const char *path, const char *key, char *out, size_t size)
{
    FILE *f = fopen(path, "re");
    char line[512];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f)) {
        char *value = strchr(line, ':');

        if (!value || strncmp(line, key, strlen(key)) != 0)
            continue;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = '\0';
        snprintf(out, size, "%s", value);
        found = value[0] != '\0';
    }
    if (f)
        fclose(f);
    return found;
}

void hg_where_cpu(char *out, size_t size)
{
    struct utsname u;

    if (read_field("/proc/cpuinfo", "model name", out, size))
        return;
    uname(&u);
    snprintf(out, size, "%s", u.machine);
}

long hg_where_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? n : 1;
}

bool hg_where_gpu(char *out, size_t size)
{
    static const char folder[] = "/proc/driver/nvidia/gpus";
    DIR *dir = opendir(folder);
    struct dirent *entry;
    bool found = false;

    while (dir && !found && (entry = readdir(dir))) {
        char path[PATH_MAX];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s/information", folder, entry->d_name);
        found = read_field(path, "Model", out, size);
    }
    if (dir)
        closedir(dir);
    return found;
}

long long hg_where_oom_kills(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX], path[PATH_MAX + 64], text[64];
    long long kills = 0;

    while (f && fgets(line, sizeof line, f)) {
        const char *at = strchr(line, ':');

        line[strcspn(line, "\n")] = '\0';
        at = at ? strchr(at + 1, ':') : NULL;
        if (!at)
            continue;
        if (strncmp(line, "0::", 3) == 0)
            snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.events", at + 1);
        else if (strstr(line, ":memory:"))
            snprintf(path, sizeof path, "/sys/fs/cgroup/memory%s/memory.oom_control", at + 1);
        else
            continue;
        FILE *events = fopen(path, "re");

        while (events && fscanf(events, "%63s", text) == 1)
            if (strcmp(text, "oom_kill") == 0 && fscanf(events, "%lld", &kills) != 1)
                break;
        if (events)
            fclose(events);
    }
    if (f)
        fclose(f);
    return kills;
}

static void set_network(json_t *env, const json_t *ranks)
{
    const char *name;
    json_t *value;

    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");
        char *own = hg_strndup(*e, n);

        if ((*e)[n] && hg_inputs_is_network(own))
            set_text(env, own, *e + n + 1);
        free(own);
    }
    json_object_foreach((json_t *)ranks, name, value) {
        if (hg_inputs_is_network(name))
            json_object_set(env, name, value);
    }
}

json_t *hg_where_env(const json_t *ranks)
{
    json_t *env = json_object();
    struct utsname u;
    char text[256];

    uname(&u);
    set_text(env, "host", u.nodename);
    set_text(env, "kernel", u.release);
    set_text(env, "machine", u.machine);
    hg_where_cpu(text, sizeof text);
    set_text(env, "cpu", text);
    json_object_set_new(env, "cores", json_integer(hg_where_cores()));
    if (hg_where_gpu(text, sizeof text))
        set_text(env, "gpu", text);
    set_text(env, "hpcgrid", HPCGRID_VERSION);
    set_network(env, ranks);
    return env;
}

/* ---- The job ---- */

static void set_number(json_t *object, const char *key, const char *variable)
{
    const char *value = getenv(variable);

    if (value && value[0])
        json_object_set_new(object, key, json_integer(atoll(value)));
}

json_t *hg_where_slurm(const char *srun)
{
    json_t *slurm = json_object();
    const char *argv[] = { srun, "--version", NULL };
    struct hg_buf version = HG_BUF_INIT;
    int status;

    set_number(slurm, "job_id", "SLURM_JOB_ID");
    set_number(slurm, "array_job_id", "SLURM_ARRAY_JOB_ID");
    set_number(slurm, "array_task_id", "SLURM_ARRAY_TASK_ID");
    if (!getenv("SLURM_JOB_ID"))
        return slurm;
    set_number(slurm, "restarts", "SLURM_RESTART_COUNT");
    set_text(slurm, "nodes", getenv("SLURM_JOB_NODELIST"));
    set_text(slurm, "partition", getenv("SLURM_JOB_PARTITION"));
    set_text(slurm, "account", getenv("SLURM_JOB_ACCOUNT"));
    set_text(slurm, "qos", getenv("SLURM_JOB_QOS"));
    set_text(slurm, "cluster", getenv("SLURM_CLUSTER_NAME"));
    if (srun && hg_proc_capture(argv, 5, &version, NULL, &status, NULL) == 0 && status == 0 &&
        version.len) {
        version.data[strcspn(version.data, "\n")] = '\0';
        set_text(slurm, "version", version.data);
    }
    hg_buf_done(&version);
    return slurm;
}

static bool resolves(const char *host)
{
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host, NULL, &hints, &found);

    if (found)
        freeaddrinfo(found);
    return rc == 0;
}

static bool is_of_box(void)
{
    const char *cluster = getenv("SLURM_CLUSTER_NAME");

    return cluster && strcmp(cluster, "box") == 0;
}

/* A real node has the name that Slurm gives it. A box's have no address, and asking for one takes 10 s if the name server is silent. */
bool hg_where_head(char *out, size_t size)
{
    char node[256], host[256] = "";

    gethostname(host, sizeof host - 1);
    snprintf(out, size, "127.0.0.1");
    if (!hg_text_first_host(getenv("SLURM_JOB_NODELIST"), node, sizeof node))
        return false;
    if ((strncmp(host, node, strlen(node)) != 0 || !strchr(".", host[strlen(node)])) &&
        (is_of_box() || !resolves(node)))
        return false;
    snprintf(out, size, "%s", node);
    return true;
}

static bool is_free(int port)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (const struct sockaddr *)&any, sizeof any) == 0;

    if (fd >= 0)
        close(fd);
    return ok;
}

/* Jobs of several boxes on this machine have the same numbers, and a rank listens seconds after its port was chosen. */
int hg_where_port(void)
{
    const char *job = is_of_box() ? NULL : getenv("SLURM_JOB_ID");
    unsigned start = job ? (unsigned)strtoul(job, NULL, 10) : (unsigned)getpid();

    for (unsigned i = 0; i < PORTS; i++) {
        int port = FIRST_PORT + (int)((start + i) % PORTS);

        if (is_free(port))
            return port;
    }
    return FIRST_PORT;
}
