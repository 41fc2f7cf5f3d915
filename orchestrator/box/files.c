/* SPDX-License-Identifier: Apache-2.0 */
#include "box/files.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/proc.h"
#include "base/text.h"

#define CPUS_LEAST 64 /* a node claims at least so many: it is virtual */
#define CPUS_PER_GPU 32
#define MEMORY_MIB 1000000
#define SETTINGS_MAX 96
#define ALL "box" /* the partition of all nodes */

/* ---- slurm.conf ---- */

/* Lines KEY=VALUE in order, later ones replacing earlier ones of the same key. */
struct settings {
    char keys[SETTINGS_MAX][64];
    char *values[SETTINGS_MAX];
    size_t n;
};

/* Index of this key, or where it would be added; SETTINGS_MAX: no room. */
static size_t find_key(const struct settings *s, const char *key, size_t len)
{
    size_t i = 0;

    while (i < s->n && (strlen(s->keys[i]) != len || strncasecmp(s->keys[i], key, len) != 0))
        i++;
    return i;
}

/* value: taken. There is room for the box's own lines. */
static void set_key(struct settings *s, size_t i, const char *key, size_t len, char *value)
{
    if (i == s->n)
        snprintf(s->keys[s->n++], sizeof s->keys[0], "%.*s", (int)len, key);
    else
        free(s->values[i]);
    s->values[i] = value;
}

static void set(struct settings *s, const char *key, char *value)
{
    size_t len = strlen(key);

    set_key(s, find_key(s, key, len), key, len, value);
}

static const char *user_name(void)
{
    const struct passwd *pw = getpwuid(geteuid());

    return pw ? pw->pw_name : NULL;
}

static const struct {
    const char *key, *value;
} fixed[] = {
    { "ClusterName", "box" },
    { "AuthType", "auth/munge" },
    { "CredType", "cred/munge" },
    { "ReturnToService", "2" },
    { "SlurmdParameters", "config_overrides" },
    { "ProctrackType", "proctrack/pgid" },
    { "TaskPlugin", "task/none" },
    { "SwitchType", "switch/none" },
    { "JobAcctGatherType", "jobacct_gather/none" },
    { "SelectType", "select/cons_tres" },
    { "SelectTypeParameters", "CR_Core" },
    { "SchedulerType", "sched/backfill" },
    { "SchedulerParameters", "sched_interval=1,batch_sched_delay=0,bf_interval=2" },
    { "PriorityType", "priority/basic" },
    { "AccountingStorageType", "accounting_storage/none" },
    { "MpiDefault", "pmix" },
    { "PropagateResourceLimits", "NONE" },
    { "MailProg", "/bin/true" },
    { "KillWait", "5" },
    { "MaxJobCount", "200000" },
    { "MaxArraySize", "100001" },
    { "SlurmctldDebug", "info" },
    { "SlurmdDebug", "info" },
};

static void set_fixed(struct settings *s)
{
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        set(s, fixed[i].key, hg_strdup(fixed[i].value));
}

/* Does this host's name mean 127.0.0.1? Asks as Slurm does. */
static bool name_is_loopback(const char *host)
{
    const struct addrinfo hints = { .ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_ADDRCONFIG };
    struct addrinfo *found = NULL;
    const struct sockaddr_in *ip;
    bool is;

    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    ip = (const void *)found->ai_addr;
    is = ip->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    freeaddrinfo(found);
    return is;
}

/* With this setting Slurm's programs listen on the address of this host's name and nowhere else, whatever slurm.conf says. Unless
 * that is 127.0.0.1, where a box is looked for, they have to listen on all addresses: Debian's installer writes 127.0.1.1, a network
 * may know the host by another address, or by none. */
static void set_listening(struct settings *s)
{
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    if (name_is_loopback(host))
        set(s, "CommunicationParameters", hg_strdup("NoCtldInAddrAny,NoInAddrAny"));
}

static void set_places(struct settings *s, const char *dir, const struct hg_box_ports *ports,
                       const char *host, const char *user)
{
    const struct {
        const char *key;
        char *value;
    } lines[] = {
        { "SlurmctldHost", hg_str_printf("%s(127.0.0.1)", host) },
        { "SlurmctldPort", hg_str_printf("%d", ports->ctld) },
        { "SlurmUser", hg_str_printf("%s", user) },
        { "SlurmdUser", hg_str_printf("%s", user) },
        { "AuthInfo", hg_str_printf("socket=%s/munge/sock,ttl=60", dir) },
        { "StateSaveLocation", hg_str_printf("%s/state", dir) },
        { "SlurmdSpoolDir", hg_str_printf("%s/spool/%%n", dir) },
        { "TmpFS", hg_str_printf("%s/tmp/%%n", dir) },
        { "SlurmctldPidFile", hg_str_printf("%s/slurmctld.pid", dir) },
        { "SlurmdPidFile", hg_str_printf("%s/spool/%%n.pid", dir) },
        { "SlurmctldLogFile", hg_str_printf("%s/log/slurmctld.log", dir) },
        { "SlurmdLogFile", hg_str_printf("%s/log/slurmd-%%n.log", dir) },
        { "JobCompType", hg_strdup("jobcomp/filetxt") },
        { "JobCompLoc", hg_str_printf("%s/log/jobs.log", dir) },
        { "Licenses", hg_str_printf("core:%ld", hg_proc_cpus()) },
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        set(s, lines[i].key, lines[i].value);
}

static void set_accounting(struct settings *s, const char *dir, const struct hg_box_ports *ports)
{
    const struct {
        const char *key;
        char *value;
    } lines[] = {
        { "AccountingStorageType", hg_strdup("accounting_storage/slurmdbd") },
        { "AccountingStorageHost", hg_strdup("127.0.0.1") },
        { "AccountingStoragePort", hg_str_printf("%d", ports->dbd) },
        { "AccountingStoragePass", hg_str_printf("%s/munge/sock", dir) }, /* not AuthInfo's */
        { "AccountingStorageTRES", hg_strdup("gres/gpu") },
        { "JobAcctGatherType", hg_strdup("jobacct_gather/linux") },
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        set(s, lines[i].key, lines[i].value);
}

/* Keys that must not change: the box would be unreachable, or leave its folder. */
static bool is_ours(const char *key, size_t n)
{
    static const char *const ours[] = { "SlurmctldHost",    "SlurmctldPort",     "SlurmUser",
                                        "SlurmdUser",       "StateSaveLocation", "SlurmdSpoolDir",
                                        "SlurmctldPidFile", "SlurmdPidFile",     "SlurmctldLogFile",
                                        "SlurmdLogFile",    "NodeName",          "AuthType" };

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strlen(ours[i]) == n && strncasecmp(ours[i], key, n) == 0)
            return true;
    return false;
}

/* A line of --set. */
static int set_wanted(struct settings *s, const char *dir, const char *setting, struct hg_err *err)
{
    const char *equals = strchr(setting, '=');
    size_t n = equals ? (size_t)(equals - setting) : 0, i = find_key(s, setting, n);
    char *value;

    if (!n || !equals[1] || strpbrk(setting, "\r\n"))
        return hg_err_set(err, HG_E_USAGE, "\"%s\" is not a KEY=VALUE for slurm.conf", setting);
    if (is_ours(setting, n))
        return hg_err_set(err, HG_E_USAGE, "%.*s of a box cannot be changed", (int)n, setting);
    if (n == 13 && strncasecmp(setting, "PartitionName", n) == 0)
        return hg_err_set(err, HG_E_USAGE, "the partitions of a box come from its nodes");
    if (i == SETTINGS_MAX || n >= sizeof s->keys[0])
        return hg_err_set(err, HG_E_USAGE, "too many settings, or a name that is too long");
    value = n == 8 && strncasecmp(setting, "AuthInfo", n) == 0
                ? hg_str_printf("socket=%s/munge/sock,%s", dir, equals + 1)
                : hg_strdup(equals + 1);
    set_key(s, i, setting, n, value);
    return 0;
}

static long claimed_cpus(const struct hg_box_group *g)
{
    if (g->cpus)
        return g->cpus;
    return g->gpus * CPUS_PER_GPU > CPUS_LEAST ? g->gpus * CPUS_PER_GPU : CPUS_LEAST;
}

/* "gpu", or what the site calls it. */
static int gres_name_length(const struct hg_box_group *g)
{
    return (int)strcspn(g->gres, ":");
}

static const char *gres_type(const struct hg_box_group *g)
{
    const char *colon = strchr(g->gres, ':');

    return colon && colon[1] ? colon + 1 : g->hardware;
}

/* "gpu:a100", with a separator instead of the colon */
static void add_gres_name(const struct hg_box_group *g, const char *separator, struct hg_buf *out)
{
    if (g->gres[0])
        hg_buf_append(out, g->gres, (size_t)gres_name_length(g));
    else
        hg_buf_puts(out, "gpu");
    hg_buf_printf(out, "%s%s", separator, gres_type(g));
}

/* The words of a list or of an expression of features: "ib", "rack1" of "ib&[rack1|rack2]*2". */
static void add_features(const struct hg_box_group *g, struct hg_buf *out)
{
    static const char between[] = "&|,()[]!";

    hg_buf_puts(out, g->hardware);
    for (const char *p = g->constraint; *(p += strspn(p, between)); p += strcspn(p, between)) {
        size_t n = strcspn(p, "&|,()[]!*");

        if (n) {
            hg_buf_puts(out, ",");
            hg_buf_append(out, p, n);
        }
    }
}

/* "a100-1", or "a100-[1-4]" */
static void node_range(const struct hg_box_group *g, char out[static 96])
{
    if (g->nodes == 1)
        snprintf(out, 96, "%s-1", g->hardware);
    else
        snprintf(out, 96, "%s-[1-%ld]", g->hardware, g->nodes);
}

static void add_nodes(const struct hg_box_group *g, int port, const char *host, struct hg_buf *out)
{
    char names[96];

    node_range(g, names);
    hg_buf_printf(out, "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=", names, host);
    hg_buf_printf(out, g->nodes == 1 ? "%d" : "[%d-%ld]", port, port + g->nodes - 1);
    hg_buf_printf(out, " CPUs=%ld Boards=1 SocketsPerBoard=1 CoresPerSocket=%ld ThreadsPerCore=1",
                  claimed_cpus(g), claimed_cpus(g));
    hg_buf_printf(out,
                  " RealMemory=%ld Feature=", g->mem_mib > MEMORY_MIB ? g->mem_mib : MEMORY_MIB);
    add_features(g, out);
    if (g->gpus) {
        hg_buf_puts(out, " Gres=");
        add_gres_name(g, ":", out);
        hg_buf_printf(out, ":%ld", g->gpus);
    }
    hg_buf_puts(out, " State=UNKNOWN\n");
}

static const char *partitions_of(const struct hg_box_group *g)
{
    return g->partition[0] ? g->partition : g->hardware;
}

/* Is the name of this length in the group's list? */
static bool is_in_partition(const struct hg_box_group *g, const char *name, size_t n)
{
    for (const char *p = partitions_of(g); *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && strncmp(p, name, n) == 0)
            return true;
    return false;
}

/* Of two limits; 0 is none. */
static long widest(long so_far, long limit, bool is_first)
{
    if (is_first)
        return limit;
    return !so_far || !limit ? 0 : limit > so_far ? limit : so_far;
}

static void add_limit(const char *key, long limit, const char *none, struct hg_buf *out)
{
    if (limit)
        hg_buf_printf(out, "%s=%ld", key, limit);
    else
        hg_buf_printf(out, "%s=%s", key, none);
}

/* A partition that the i-th group is the first to name. Groups may share it: its line names all their nodes. */
static void add_partition(const struct hg_box_spec *spec, size_t i, const char *name, size_t n,
                          struct hg_buf *out)
{
    long minutes = 0, nodes = 0;
    char names[96];

    for (size_t j = 0; j < i; j++)
        if (is_in_partition(&spec->groups[j], name, n))
            return;
    hg_buf_printf(out, "PartitionName=%.*s State=UP Nodes=", (int)n, name);
    for (size_t j = i; j < spec->n_groups; j++)
        if (is_in_partition(&spec->groups[j], name, n)) {
            node_range(&spec->groups[j], names);
            hg_buf_printf(out, "%s%s", j > i ? "," : "", names);
            minutes = widest(minutes, spec->groups[j].max_time_min, j == i);
            nodes = widest(nodes, spec->groups[j].max_nodes, j == i);
        }
    add_limit(" MaxTime", minutes, "INFINITE", out);
    add_limit(" MaxNodes", nodes, "UNLIMITED", out);
    hg_buf_puts(out, "\n");
}

static void add_partitions(const struct hg_box_spec *spec, struct hg_buf *out)
{
    hg_buf_puts(out, "PartitionName=" ALL " Default=YES MaxTime=INFINITE State=UP Nodes=ALL\n");
    for (size_t i = 0; i < spec->n_groups; i++)
        for (const char *p = partitions_of(&spec->groups[i]); *p;) {
            size_t n = strcspn(p, ",");

            if (n && (n != strlen(ALL) || strncmp(p, ALL, n) != 0))
                add_partition(spec, i, p, n, out);
            p += n + (p[n] == ',');
        }
}

/* "gpu", and what else a site calls its GPUs. */
static void set_gres_types(struct settings *s, const struct hg_box_spec *spec)
{
    struct hg_buf names = HG_BUF_INIT;

    hg_buf_puts(&names, "gpu");
    for (size_t i = 0; i < spec->n_groups; i++) {
        const struct hg_box_group *g = &spec->groups[i];
        char word[72];

        snprintf(word, sizeof word, ",%.*s", gres_name_length(g), g->gres);
        if (g->gres[0] && strcmp(word, ",gpu") != 0 && !strstr(hg_buf_str(&names), word))
            hg_buf_puts(&names, word);
    }
    set(s, "GresTypes", hg_buf_detach(&names));
}

static int format_slurm_conf(const struct hg_box_spec *spec, const char *dir,
                             const struct hg_box_ports *ports, struct hg_buf *out,
                             struct hg_err *err)
{
    struct settings *s = hg_alloc_zeroed(1, sizeof *s);
    const char *user = user_name();
    char host[256] = "localhost";
    int rc = -1, port = ports->first_node;

    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = 0;
    if (!user) {
        hg_err_set(err, HG_E_ENV,
                   "user %ld has no name in the password database, which Slurm needs",
                   (long)geteuid());
        goto out;
    }
    set_fixed(s);
    set_gres_types(s, spec);
    set_places(s, dir, ports, host, user);
    set_listening(s);
    if (spec->accounting)
        set_accounting(s, dir, ports);
    for (const char *const *w = spec->settings; w && *w; w++)
        if (set_wanted(s, dir, *w, err) < 0)
            goto out;
    hg_buf_puts(out, "# Made by `hpcgrid box up`; gone with `hpcgrid box down`.\n");
    for (size_t i = 0; i < s->n; i++)
        hg_buf_printf(out, "%s=%s\n", s->keys[i], s->values[i]);
    for (size_t i = 0; i < spec->n_groups; i++) {
        add_nodes(&spec->groups[i], port, host, out);
        port += (int)spec->groups[i].nodes;
    }
    add_partitions(spec, out);
    rc = 0;
out:
    for (size_t i = 0; i < s->n; i++)
        free(s->values[i]);
    free(s);
    return rc;
}

/* ---- gres.conf ---- */

/* Slurm needs a character device for each GPU: links to /dev/null will do, need no root, and their
 * names number the GPUs. */
static int make_gpus(const struct hg_box_spec *spec, const char *dir, struct hg_buf *gres,
                     struct hg_err *err)
{
    long most = 0;

    for (size_t i = 0; i < spec->n_groups; i++) {
        const struct hg_box_group *g = &spec->groups[i];
        char names[96];

        if (!g->gpus)
            continue;
        most = g->gpus > most ? g->gpus : most;
        node_range(g, names);
        hg_buf_printf(gres, "NodeName=%s Name=", names);
        add_gres_name(g, " Type=", gres);
        hg_buf_printf(gres, " File=%s/dev/gpu", dir);
        hg_buf_printf(gres, g->gpus == 1 ? "0\n" : "[0-%ld]\n", g->gpus - 1);
    }
    for (long i = 0; i < most; i++) {
        char *path = hg_str_printf("%s/dev/gpu%ld", dir, i);
        int rc = symlink("/dev/null", path);

        free(path);
        if (rc < 0)
            return hg_err_sys(err, "cannot make %s/dev/gpu%ld", dir, i);
    }
    return 0;
}

/* ---- slurmdbd.conf and the database's first statements ---- */

static int save(const char *dir, const char *name, const void *data, size_t len, mode_t mode,
                struct hg_err *err)
{
    char *path = hg_fs_join(dir, name);
    int rc = hg_fs_replace(path, data, len, mode, err);

    free(path);
    return rc;
}

static int write_accounting(const char *dir, const struct hg_box_ports *ports, struct hg_err *err)
{
    struct hg_buf conf = HG_BUF_INIT, sql = HG_BUF_INIT;
    char password[33];
    int rc = -1;

    hg_text_random_hex(16, password);
    hg_buf_printf(&conf,
                  "AuthType=auth/munge\nAuthInfo=socket=%s/munge/sock\nDbdHost=localhost\n"
                  "DbdAddr=127.0.0.1\nDbdPort=%d\nSlurmUser=%s\nDebugLevel=info\n"
                  "LogFile=%s/log/slurmdbd.log\nPidFile=%s/slurmdbd.pid\n",
                  dir, ports->dbd, user_name(), dir, dir);
    hg_buf_printf(&conf,
                  "StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort=%d\n"
                  "StorageUser=slurm\nStoragePass=%s\nStorageLoc=slurm\n",
                  ports->database, password);
    hg_buf_printf(&sql,
                  "CREATE DATABASE IF NOT EXISTS slurm;\n"
                  "CREATE OR REPLACE USER 'slurm'@'127.0.0.1' IDENTIFIED BY '%s';\n"
                  "GRANT ALL ON slurm.* TO 'slurm'@'127.0.0.1';\n",
                  password);
    if (save(dir, "slurmdbd.conf", conf.data, conf.len, 0600, err) == 0 &&
        save(dir, "database.sql", sql.data, sql.len, 0600, err) == 0)
        rc = 0;
    hg_buf_done(&conf);
    hg_buf_done(&sql);
    return rc;
}

/* ---- all of it ---- */

static int make_folders(const struct hg_box_spec *spec, const char *dir, struct hg_err *err)
{
    static const char *const folders[] = { "munge", "state", "spool", "log", "tmp", "dev" };
    size_t n = hg_box_nodes_count(spec);
    char *path, node[96];
    int rc = 0;

    for (size_t i = 0; i < sizeof folders / sizeof *folders && rc == 0; i++) {
        path = hg_fs_join(dir, folders[i]);
        rc = hg_fs_mkdirs(path, 0755, err);
        free(path);
    }
    for (size_t i = 0; i < n && rc == 0; i++) {
        hg_box_nodes_name(spec, i, node);
        path = hg_str_printf("%s/tmp/%s", dir, node);
        rc = hg_fs_mkdirs(path, 0755, err);
        free(path);
        path = hg_str_printf("%s/spool/%s", dir, node);
        if (rc == 0)
            rc = hg_fs_mkdirs(path, 0755, err);
        free(path);
    }
    return rc;
}

int hg_box_files_write(const struct hg_box_spec *spec, const char *dir,
                       const struct hg_box_ports *ports, int version, struct hg_err *err)
{
    struct hg_buf conf = HG_BUF_INIT, gres = HG_BUF_INIT;
    static const char mpi[] = "PMIxCollFence=ring\n";
    unsigned char key[128];
    const char *cgroups;
    int rc = -1;

    if (getrandom(key, sizeof key, 0) != sizeof key) {
        hg_err_sys(err, "cannot make a munge key");
        goto out;
    }
    if (make_folders(spec, dir, err) < 0 ||
        save(dir, "munge/key", key, sizeof key, 0400, err) < 0 ||
        format_slurm_conf(spec, dir, ports, &conf, err) < 0 || make_gpus(spec, dir, &gres, err) < 0)
        goto out;
    /* A box uses no cgroups, and must start where none are mounted. Older releases do not know the
     * word, but their v1 plugin does nothing unless configured. */
    cgroups = version >= 2405 ? "CgroupPlugin=disabled\n" : "CgroupPlugin=cgroup/v1\n";
    if (save(dir, "cgroup.conf", cgroups, strlen(cgroups), 0644, err) < 0)
        goto out;
    /* Slurm's other ways to bring the ranks of several nodes together (and its default takes either) let
     * the first node continue alone: a rank that is still starting then gets what the others send it, and
     * Open MPI dies of that. */
    if (save(dir, "mpi.conf", mpi, sizeof mpi - 1, 0644, err) < 0)
        goto out;
    if (spec->accounting && write_accounting(dir, ports, err) < 0)
        goto out;
    if (save(dir, "gres.conf", hg_buf_str(&gres), gres.len, 0644, err) < 0 ||
        save(dir, "slurm.conf", conf.data, conf.len, 0644, err) < 0)
        goto out;
    rc = 0;
out:
    hg_buf_done(&conf);
    hg_buf_done(&gres);
    return rc;
}
