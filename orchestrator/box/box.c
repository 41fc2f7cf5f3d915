/* SPDX-License-Identifier: Apache-2.0 */
#include "box/box.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "base/vec.h"
#include "box/internal.h"

#define IDLE_S 120.0 /* nodes are idle after 2 to 3 s on an idle machine */
#define HEAL_AGAIN_S 0.5
#define HEALS 3         /* for daemons that die one after another */
#define LOCK_S 120.0    /* somebody else's up or down takes seconds */
#define PORT_TRIES 3    /* others may take a port between our look and slurmctld's bind */
#define NAME_MAX_BOX 32 /* munge refuses long socket paths */

/* ---- nodes ---- */

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
                hg_err_set(err, HG_E_USAGE, "nodes: %s is named twice", g->hardware);
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

/* ---- the folder of a user's boxes ---- */

static char *root_dir(void)
{
    return hg_str_printf("/tmp/hpcgrid-%ld", (long)geteuid());
}

static char *box_dir(const char *name)
{
    return hg_str_printf("/tmp/hpcgrid-%ld/%s", (long)geteuid(), name);
}

/* /tmp is everybody's: somebody else may have made the folder first, or a link in its place. */
static int claim_root(const char *root, struct hg_err *err)
{
    struct stat st;

    if (mkdir(root, 0755) < 0 && errno != EEXIST)
        return hg_err_sys(err, "cannot make %s", root);
    if (lstat(root, &st) < 0)
        return hg_err_sys(err, "cannot look at %s", root);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return hg_err_set(err, HG_E_ENV, "%s is somebody else's: boxes cannot live there", root);
    if ((st.st_mode & 0777) != 0755 && chmod(root, 0755) < 0)
        return hg_err_sys(err, "cannot change the mode of %s", root);
    return 0;
}

/* One box comes or goes at a time for each user; nodes are waited for without the lock. Its file
 * goes away with the last box, so a lock on a file that has been removed meanwhile counts for
 * nothing. */
static int lock_root(int *fd, struct hg_err *err)
{
    char *root = root_dir(), *path = hg_fs_join(root, "lock");
    double end = hg_clock_mono_s() + LOCK_S;
    int rc = -1;

    *fd = -1;
    for (;;) {
        struct stat ours, now;

        if (claim_root(root, err) < 0)
            break;
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (*fd < 0 && errno == ENOENT)
            continue;
        if (*fd < 0) {
            hg_err_sys(err, "cannot open %s", path);
            break;
        }
        if (flock(*fd, LOCK_EX | LOCK_NB) == 0 && fstat(*fd, &ours) == 0 && stat(path, &now) == 0 &&
            ours.st_ino == now.st_ino) {
            rc = 0;
            break;
        }
        close(*fd);
        *fd = -1;
        if (hg_clock_mono_s() > end) {
            hg_err_set(err, HG_E_ENV, "another hpcgrid holds %s", path);
            break;
        }
        hg_clock_sleep_s(0.02);
    }
    free(path);
    free(root);
    return rc;
}

/* Unlock, and remove the folder if no box is left in it. */
static void unlock_root(int fd)
{
    char *root = root_dir(), *path = hg_fs_join(root, "lock");
    DIR *folder = opendir(root);
    const struct dirent *e;
    bool empty = folder != NULL;

    while (folder && (e = readdir(folder)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, "lock") != 0)
            empty = false;
    if (folder)
        closedir(folder);
    if (empty && unlink(path) == 0)
        rmdir(root);
    close(fd);
    free(path);
    free(root);
}

/* ---- what is known of a box ---- */

static bool name_is_fine(const char *name)
{
    return hg_text_is_name(name) && strlen(name) <= NAME_MAX_BOX && strcmp(name, "lock") != 0;
}

static unsigned long long start_of(const json_t *process)
{
    return (unsigned long long)json_integer_value(json_object_get(process, "start"));
}

static pid_t pid_of(const json_t *process)
{
    return (pid_t)json_integer_value(json_object_get(process, "pid"));
}

static bool is_running(const json_t *process)
{
    return hg_box_process_alive(pid_of(process), start_of(process));
}

static enum hg_box_state judge(const json_t *record)
{
    const char *boot = json_string_value(json_object_get(record, "boot_id"));
    const json_t *list = json_object_get(record, "daemons"), *d;
    char now[40];
    size_t i;

    hg_box_boot_id(now);
    if (!boot || strcmp(boot, now) != 0 || !is_running(json_object_get(record, "keeper")))
        return HG_BOX_LOST;
    json_array_foreach(list, i, d)
        if (!is_running(d))
            return HG_BOX_DEGRADED;
    return HG_BOX_UP;
}

/* True if these pids are of this boot at all. */
static bool same_boot(const json_t *record)
{
    const char *boot = json_string_value(json_object_get(record, "boot_id"));
    char now[40];

    hg_box_boot_id(now);
    return boot && strcmp(boot, now) == 0;
}

static json_t *load_record(const char *dir)
{
    char *path = hg_fs_join(dir, HG_BOX_RECORD);
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    json_t *record = NULL;

    if (hg_json_load(path, &doc, &(struct hg_err)HG_ERR_INIT) == 0 && json_is_object(doc.root))
        record = json_incref(doc.root);
    hg_json_doc_done(&doc);
    free(path);
    return record ? record : json_object(); /* a box that was killed at birth */
}

static void fill(const char *name, struct hg_box *box)
{
    *box = (struct hg_box){ .name = hg_strdup(name), .dir = box_dir(name) };
    box->conf = hg_fs_join(box->dir, "slurm.conf");
    box->record = load_record(box->dir);
    box->state = judge(box->record);
    box->keeper = pid_of(json_object_get(box->record, "keeper"));
}

int hg_box_find(const char *name, struct hg_box *box, struct hg_err *err)
{
    struct stat st;

    *box = (struct hg_box){ 0 };
    if (!name_is_fine(name))
        return hg_err_set(err, HG_E_USAGE,
                          "\"%s\" is no name for a box: letters, digits, . _ -, at most %d of them",
                          name, NAME_MAX_BOX);
    fill(name, box);
    if (lstat(box->dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
        return 0;
    hg_box_done(box);
    hg_err_set(err, HG_E_NOTFOUND, "there is no box \"%s\"", name);
    return hg_err_hint(err, "`hpcgrid box list` names them");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hg_box *)a)->name, ((const struct hg_box *)b)->name);
}

int hg_box_list(struct hg_boxes *boxes, struct hg_err *err)
{
    char *root = root_dir();
    DIR *folder = opendir(root);
    const struct dirent *e;
    int rc = 0;

    if (!folder && errno != ENOENT)
        rc = hg_err_sys(err, "cannot read folder %s", root);
    *boxes = (struct hg_boxes){ 0 };
    while (folder && (e = readdir(folder))) {
        struct hg_box box;

        if (name_is_fine(e->d_name) &&
            hg_box_find(e->d_name, &box, &(struct hg_err)HG_ERR_INIT) == 0)
            *HG_VEC_PUSH(boxes) = box;
    }
    if (folder)
        closedir(folder);
    free(root);
    if (boxes->n)
        qsort(boxes->items, boxes->n, sizeof *boxes->items, by_name);
    return rc;
}

const char *hg_box_state_name(enum hg_box_state state)
{
    return state == HG_BOX_UP ? "up" : state == HG_BOX_DEGRADED ? "degraded" : "lost";
}

void hg_box_done(struct hg_box *box)
{
    free(box->name);
    free(box->dir);
    free(box->conf);
    json_decref(box->record);
    *box = (struct hg_box){ 0 };
}

void hg_boxes_done(struct hg_boxes *boxes)
{
    for (size_t i = 0; i < boxes->n; i++)
        hg_box_done(&boxes->items[i]);
    HG_VEC_DONE(boxes);
}

/* ---- down ---- */

static int clear(const struct hg_box *box, struct hg_err *err)
{
    const json_t *keeper = json_object_get(box->record, "keeper");
    bool now = same_boot(box->record);

    if (now && is_running(keeper))
        hg_box_keeper_stop(pid_of(keeper), start_of(keeper));
    hg_box_orphans_stop(box->dir, now ? box->record : NULL);
    return hg_fs_remove_tree(box->dir, err);
}

int hg_box_down(const char *name, struct hg_err *err)
{
    struct hg_box box;
    int lock, rc;

    if (hg_box_find(name, &box, err) < 0)
        return -1;
    hg_box_done(&box);
    if (lock_root(&lock, err) < 0)
        return -1;
    rc = hg_box_find(name, &box, err);
    if (rc == 0) {
        rc = clear(&box, err);
        hg_box_done(&box);
    }
    unlock_root(lock);
    return rc;
}

/* ---- up ---- */

static json_t *encode_group(const struct hg_box_group *g)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:o}", "hardware", g->hardware, "nodes",
                     (json_int_t)g->nodes, "gpus", (json_int_t)g->gpus, "cpus", (json_int_t)g->cpus,
                     "partition", hg_json_text(g->partition), "gres_type",
                     hg_json_text(g->gres_type), "constraint", hg_json_text(g->constraint));
}

static json_t *make_record(const struct hg_box_spec *spec, const struct hg_box_ports *ports)
{
    json_t *record = json_object(), *nodes = json_array(), *settings = json_array();
    char boot[40];

    hg_box_boot_id(boot);
    for (size_t i = 0; i < spec->n_groups; i++)
        json_array_append_new(nodes, encode_group(&spec->groups[i]));
    for (const char *const *s = spec->settings; s && *s; s++)
        json_array_append_new(settings, hg_json_text(*s));
    json_object_set_new(record, "schema", json_string(HG_BOX_SCHEMA));
    json_object_set_new(record, "name", json_string(spec->name));
    json_object_set_new(record, "boot_id", json_string(boot));
    json_object_set_new(record, "started_s", json_real(hg_clock_wall_s()));
    json_object_set_new(record, "nodes", nodes);
    json_object_set_new(record, "settings", settings);
    json_object_set_new(record, "accounting", json_boolean(spec->accounting));
    json_object_set_new(record, "port", json_integer(ports->ctld));
    return record;
}

/* The same nodes and settings as the box that is up? */
static bool same_spec(const struct hg_box_spec *spec, const json_t *record)
{
    json_t *wanted = make_record(spec, &(struct hg_box_ports){ 0 });
    bool same =
        hg_json_equal(json_object_get(wanted, "nodes"), json_object_get(record, "nodes")) &&
        hg_json_equal(json_object_get(wanted, "settings"), json_object_get(record, "settings")) &&
        spec->accounting == json_is_true(json_object_get(record, "accounting"));

    json_decref(wanted);
    return same;
}

static int check_spec(const struct hg_box_spec *spec, struct hg_err *err)
{
    size_t n = hg_box_count_nodes(spec);

    if (!name_is_fine(spec->name))
        return hg_err_set(err, HG_E_USAGE,
                          "\"%s\" is no name for a box: letters, digits, . _ -, at most %d of them",
                          spec->name, NAME_MAX_BOX);
    if (!n || n > HG_BOX_NODES_MAX)
        return hg_err_set(err, HG_E_USAGE, "a box has 1 to %d nodes, not %zu", HG_BOX_NODES_MAX, n);
    return 0;
}

static int create(const struct hg_box_spec *spec, const struct hg_box_tools *tools, const char *dir,
                  struct hg_err *err)
{
    struct hg_box_ports ports;
    struct hg_box_keeper keeper = { .spec = spec, .tools = tools, .dir = dir };
    int rc = -1;

    if (hg_box_place_check(err) < 0)
        return -1;
    if (hg_box_ports_choose(hg_box_count_nodes(spec), &ports, err) < 0)
        return -1;
    if (mkdir(dir, 0755) < 0)
        return hg_err_sys(err, "cannot make %s", dir);
    if (chmod(dir, 0755) < 0)
        hg_err_sys(err, "cannot change the mode of %s", dir);
    else if (hg_box_config_write(spec, dir, &ports, tools->version, err) == 0) {
        keeper.record = make_record(spec, &ports);
        rc = hg_box_keeper_start(&keeper, &ports, err);
        json_decref(keeper.record);
    }
    if (rc < 0) { /* a keeper that was killed has left what it started */
        hg_box_orphans_stop(dir, NULL);
        hg_fs_remove_tree(dir, &(struct hg_err)HG_ERR_INIT);
    }
    return rc;
}

/* slurmctld says so in its log when somebody else took the port first. */
static bool lost_the_port(const struct hg_err *err)
{
    return strstr(err->hint, "Address already in use") != NULL;
}

static int create_somewhere(const struct hg_box_spec *spec, const struct hg_box_tools *tools,
                            const char *dir, struct hg_err *err)
{
    for (int i = 1;; i++) {
        struct hg_err this = HG_ERR_INIT;

        if (create(spec, tools, dir, &this) == 0)
            return 0;
        if (i == PORT_TRIES || !lost_the_port(&this)) {
            *err = this;
            return -1;
        }
    }
}

/* ---- Ctrl-C while it comes up ---- */

static const int interrupts[] = { SIGINT, SIGTERM, SIGHUP };

/* Keep what would end us until the box is whole or gone. */
static void hold_interrupts(sigset_t *before)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
        sigaddset(&set, interrupts[i]);
    sigprocmask(SIG_BLOCK, &set, before);
}

/* Did one come? Those that the caller ignores do not count; they are kept for us all the same. */
static bool was_interrupted(void)
{
    sigset_t pending;

    sigpending(&pending);
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++) {
        struct sigaction action;

        if (sigismember(&pending, interrupts[i]) && sigaction(interrupts[i], NULL, &action) == 0 &&
            action.sa_handler != SIG_IGN)
            return true;
    }
    return false;
}

/* ---- waiting for nodes ---- */

/* Nodes that are not ready yet, as "a100-1 down*, ..."; "" when all are; "?" when slurmctld does
 * not say. */
static int ask_nodes(const struct hg_box_tools *tools, const struct hg_box *box, struct hg_buf *bad,
                     struct hg_err *err)
{
    static const char *const ready[] = { "idle", "mixed", "allocated", "completing" };
    char *conf = hg_str_printf("SLURM_CONF=%s", box->conf);
    const char *const argv[] = { "env", "-i",  conf, tools->sinfo, "-h", "-N",
                                 "-p",  "box", "-o", "%N %T",      NULL };
    struct hg_buf out = HG_BUF_INIT;
    int status = 0, rc = hg_proc_capture(argv, 30, &out, NULL, &status, err);
    char *save = NULL;

    if (rc < 0)
        hg_err_wrap(err, "box \"%s\": sinfo", box->name);
    hg_buf_clear(bad);
    if (rc == 0 && (status || !out.len))
        hg_buf_puts(bad, "?");
    for (char *line = rc == 0 && out.len ? strtok_r(out.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        const char *state = strchr(line, ' ');
        bool ok = false;

        for (size_t i = 0; state && i < sizeof ready / sizeof *ready; i++)
            ok = ok || strcmp(state + 1, ready[i]) == 0;
        if (!ok)
            hg_buf_printf(bad, "%s%s", bad->len ? ", " : "", line);
    }
    hg_buf_done(&out);
    free(conf);
    return rc;
}

/* The first daemon that is not running, or NULL. */
static const char *find_dead(const struct hg_box *box)
{
    const json_t *list = json_object_get(box->record, "daemons"), *d;
    size_t i;

    json_array_foreach(list, i, d)
        if (!is_running(d))
            return json_string_value(json_object_get(d, "name"));
    return NULL;
}

/* The end of the log of the first daemon that is not running, or of the first node that is not
 * ready. */
static void hint_log(const struct hg_box *box, const char *bad, struct hg_err *err)
{
    const char *dead = find_dead(box);
    struct hg_buf tail = HG_BUF_INIT;
    char name[96], *path;

    if (dead)
        snprintf(name, sizeof name, "%s", dead);
    else
        snprintf(name, sizeof name, "slurmd-%.*s", (int)strcspn(bad, " ,"), bad);
    path = hg_str_printf("%s/log/%s.log", box->dir, name);
    hg_box_log_tail(path, &tail);
    hg_err_hint(err, "end of %s.log:\n%s", name, hg_buf_str(&tail));
    hg_buf_done(&tail);
    free(path);
}

static int wait_idle(const struct hg_box_tools *tools, const struct hg_box *box, struct hg_err *err)
{
    double end = hg_clock_mono_s() + IDLE_S;
    struct hg_buf bad = HG_BUF_INIT;
    int rc;

    for (;;) {
        rc = ask_nodes(tools, box, &bad, err);
        if (rc < 0 || !bad.len)
            break;
        if (was_interrupted()) {
            rc = hg_err_set(err, HG_E_ENV, "interrupted before the nodes of box \"%s\" were ready",
                            box->name);
            break;
        }
        if (!hg_fs_is_dir(box->dir)) {
            rc = hg_err_set(err, HG_E_ENV, "box \"%s\" was taken down before its nodes were ready",
                            box->name);
            break;
        }
        if (hg_clock_mono_s() > end || judge(box->record) != HG_BOX_UP) {
            const char *dead = find_dead(box);

            rc = dead ? hg_err_set(err, HG_E_ENV, "box \"%s\": %s ended", box->name, dead)
                      : hg_err_set(err, HG_E_ENV, "box \"%s\": nodes are not ready: %s", box->name,
                                   hg_buf_str(&bad));
            hint_log(box, hg_buf_str(&bad), err);
            break;
        }
        hg_clock_sleep_s(0.1);
    }
    hg_buf_done(&bad);
    return rc;
}

/* Tell the keeper of a degraded box, and wait until every daemon has a living process again. It is told
 * more than once: a daemon that has just been killed is dead for us before its parent can bury it. */
static int heal(struct hg_box *box, struct hg_err *err)
{
    const json_t *keeper = json_object_get(box->record, "keeper");
    pid_t pid = pid_of(keeper);
    unsigned long long start = start_of(keeper);
    double end = hg_clock_mono_s() + IDLE_S, again = 0;

    for (;;) {
        json_t *record;

        if (hg_clock_mono_s() >= again) {
            hg_box_keeper_heal(pid, start);
            again = hg_clock_mono_s() + HEAL_AGAIN_S;
        }
        record = load_record(box->dir);
        json_decref(box->record);
        box->record = record;
        box->state = judge(record);
        if (box->state == HG_BOX_UP)
            return 0;
        if (box->state == HG_BOX_LOST || hg_clock_mono_s() > end || was_interrupted()) {
            hg_err_set(err, HG_E_ENV, "box \"%s\" cannot be mended", box->name);
            hint_log(box, "", err);
            return -1;
        }
        hg_clock_sleep_s(0.05);
    }
}

/* With the lock held: leave a box that lives, clear one that does not. *exists: it is there. */
static int prepare(const struct hg_box_spec *spec, bool *exists, struct hg_err *err)
{
    struct hg_err none = HG_ERR_INIT;
    struct hg_box box;
    int rc = 0;

    *exists = false;
    if (hg_box_find(spec->name, &box, &none) < 0)
        return 0;
    if (box.state == HG_BOX_LOST) {
        rc = clear(&box, err);
    } else if (!spec->any && !same_spec(spec, box.record)) {
        hg_err_set(err, HG_E_INPUT, "box \"%s\" is up with other nodes or settings", spec->name);
        rc = hg_err_hint(err, "`hpcgrid box down %s` first, or give this one another --name",
                         spec->name);
    } else {
        *exists = true;
    }
    hg_box_done(&box);
    return rc;
}

/* The box is there, if not all of it is ready. */
static int find_or_create(const struct hg_box_spec *spec, const struct hg_box_tools *tools,
                          struct hg_box *box, bool *exists, struct hg_err *err)
{
    char *dir = box_dir(spec->name);
    int lock, rc = -1;

    if (lock_root(&lock, err) == 0) {
        if (prepare(spec, exists, err) == 0 &&
            (*exists || create_somewhere(spec, tools, dir, err) == 0))
            rc = hg_box_find(spec->name, box, err);
        unlock_root(lock);
    }
    free(dir);
    return rc;
}

/* Clear a box that did not come up, unless somebody else has put another in its place meanwhile. */
static void give_up(const struct hg_box *box)
{
    const json_t *keeper = json_object_get(box->record, "keeper");
    struct hg_err none = HG_ERR_INIT;
    struct hg_box now;
    int lock;

    if (lock_root(&lock, &none) < 0)
        return;
    if (hg_box_find(box->name, &now, &none) == 0) {
        if (hg_json_equal(json_object_get(now.record, "keeper"), keeper))
            clear(&now, &none);
        hg_box_done(&now);
    }
    unlock_root(lock);
}

/* Wait until all nodes are idle; mend a box that was there on the way. A daemon that has just been killed may
 * look alive at first, so more may be dead than was found before. */
static int make_ready(const struct hg_box_tools *tools, struct hg_box *box, bool exists,
                      struct hg_err *err)
{
    for (int i = 1;; i++) {
        struct hg_err this = HG_ERR_INIT;
        int rc = 0;

        if (exists && box->state == HG_BOX_DEGRADED)
            rc = heal(box, &this);
        if (rc == 0)
            rc = wait_idle(tools, box, &this);
        if (rc == 0)
            return 0;
        box->state = judge(box->record);
        if (!exists || i == HEALS || box->state != HG_BOX_DEGRADED) {
            *err = this;
            return -1;
        }
    }
}

int hg_box_up(const struct hg_box_spec *spec, struct hg_box *box, bool *started, struct hg_err *err)
{
    struct hg_box_tools tools = { 0 };
    bool exists = false;
    sigset_t before;
    int rc;

    *box = (struct hg_box){ 0 };
    if (check_spec(spec, err) < 0 || hg_box_tools_find(&tools, spec->accounting, err) < 0)
        return -1;
    hold_interrupts(&before);
    rc = find_or_create(spec, &tools, box, &exists, err);
    if (rc == 0)
        rc = make_ready(&tools, box, exists, err);
    if (rc < 0 && !exists && box->name)
        give_up(box);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (started)
        *started = rc == 0 && !exists;
    if (rc < 0)
        hg_box_done(box);
    hg_box_tools_done(&tools);
    return rc;
}
