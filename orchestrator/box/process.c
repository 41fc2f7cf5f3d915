/* SPDX-License-Identifier: Apache-2.0 */
#include "box/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/vec.h"

struct stat_line {
    pid_t parent;
    char state;
    unsigned long long start;
};

/* /proc/PID/stat: the name in brackets may hold anything, so read from the last bracket on. */
static bool read_stat(pid_t pid, struct stat_line *s)
{
    char path[64], text[1024], *p;
    size_t n;
    FILE *f;
    int parent;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    p = strrchr(text, ')');
    if (!p || sscanf(p + 1, " %c %d", &s->state, &parent) != 2)
        return false;
    s->parent = parent;
    p++;
    for (int field = 2; field < 22 && p; field++) { /* the 22nd is the start time */
        p = strchr(p + 1, ' ');
        if (field == 20 && p)
            s->start = strtoull(p + 1, NULL, 10);
    }
    return p != NULL;
}

struct hg_box_process hg_box_process_find(pid_t pid)
{
    struct hg_box_process p = { .pid = pid };
    struct stat_line s;

    if (pid > 0 && read_stat(pid, &s) && s.state != 'Z' && s.state != 'X')
        p.start = s.start;
    return p;
}

bool hg_box_process_alive(struct hg_box_process p)
{
    return p.start && hg_box_process_find(p.pid).start == p.start;
}

/* A pidfd stays with its process, so that nothing can happen between the check and the signal. */
void hg_box_process_signal(struct hg_box_process p, int sig)
{
    int fd;

    if (p.pid <= 1)
        return;
    fd = (int)syscall(SYS_pidfd_open, p.pid, 0);
    if (fd < 0 && errno == ENOSYS && hg_box_process_alive(p)) /* Linux before 5.3 */
        kill(p.pid, sig);
    if (fd < 0)
        return;
    if (hg_box_process_alive(p))
        syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
    close(fd);
}

bool hg_box_process_wait(struct hg_box_process p, double limit_s)
{
    double end = hg_clock_mono_s() + limit_s;

    while (hg_box_process_alive(p)) {
        if (hg_clock_mono_s() > end)
            return false;
        hg_clock_sleep_s(0.01);
    }
    return true;
}

/* ---- trees ---- */

struct process {
    struct hg_box_process id;
    pid_t parent;
    bool ours;
};

struct processes {
    struct process *items;
    size_t n, cap;
};

static void list_processes(struct processes *list)
{
    DIR *proc = opendir("/proc");
    const struct dirent *e;

    while (proc && (e = readdir(proc))) {
        struct stat_line s;
        pid_t pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

        if (!pid || !read_stat(pid, &s) || s.state == 'Z' || s.state == 'X')
            continue;
        *HG_VEC_PUSH(list) = (struct process){ .id = { pid, s.start }, .parent = s.parent };
    }
    if (proc)
        closedir(proc);
}

/* Mark the children of marked processes until no more are found. */
static void mark_descendants(struct processes *list, pid_t root)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < list->n; i++) {
            struct process *p = &list->items[i];
            bool child = p->parent == root;

            for (size_t j = 0; j < list->n && !child; j++)
                child = list->items[j].ours && list->items[j].id.pid == p->parent;
            if (child && !p->ours && p->id.pid != root)
                p->ours = more = true;
        }
    }
}

size_t hg_box_process_signal_tree(pid_t root, int sig)
{
    struct processes list = { 0 };
    size_t n = 0;

    list_processes(&list);
    mark_descendants(&list, root);
    for (size_t i = 0; i < list.n; i++)
        if (list.items[i].ours) {
            hg_box_process_signal(list.items[i].id, sig);
            n++;
        }
    HG_VEC_DONE(&list);
    return n;
}

/* ---- daemons without a record ---- */

/* /proc/PID/NAME, at most size - 1 bytes, a null byte after the last word. Returns their number. */
static size_t read_words(pid_t pid, const char *name, char *out, size_t size)
{
    char path[64];
    FILE *f;
    size_t n = 0;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    f = fopen(path, "re");
    if (f) {
        n = fread(out, 1, size - 1, f);
        fclose(f);
    }
    out[n] = 0;
    return n;
}

static bool is_callers(pid_t pid)
{
    char text[4096];
    const char *line;
    long uid = -1;

    read_words(pid, "status", text, sizeof text);
    line = strstr(text, "\nUid:");
    return line && sscanf(line, "\nUid: %ld", &uid) == 1 && uid == (long)geteuid();
}

/* One of the programs that a keeper starts; another one that names a file of the box, such as an editor, is left alone. */
static bool is_daemon(const char *command)
{
    static const char *const names[] = { "munged", "slurmctld", "slurmd", "slurmdbd", "mariadbd" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(hg_fs_basename(command), names[i]) == 0)
            return true;
    return false;
}

/* "DIR/...", or the same after a "=". */
static bool names_folder(const char *words, size_t n, const char *dir)
{
    size_t len = strlen(dir);

    for (const char *w = words; w < words + n; w += strlen(w) + 1) {
        const char *value = strchr(w, '=');

        value = value ? value + 1 : w;
        if (strncmp(value, dir, len) == 0 && value[len] == '/')
            return true;
    }
    return false;
}

static bool works_in(pid_t pid, const char *dir)
{
    char words[16384];
    size_t n = read_words(pid, "cmdline", words, sizeof words);

    if (!n || !is_daemon(words) || !is_callers(pid))
        return false;
    if (names_folder(words, n, dir))
        return true;
    n = read_words(pid, "environ", words, sizeof words);
    return names_folder(words, n, dir);
}

size_t hg_box_process_signal_daemons(const char *dir, int sig)
{
    struct processes list = { 0 };
    size_t n = 0;

    list_processes(&list);
    for (size_t i = 0; i < list.n; i++)
        if (works_in(list.items[i].id.pid, dir)) {
            hg_box_process_signal(list.items[i].id, sig);
            n++;
        }
    HG_VEC_DONE(&list);
    return n;
}

pid_t hg_box_process_listener(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct ucred peer = { 0 };
    socklen_t size = sizeof peer;
    int fd;

    if (strlen(path) >= sizeof address.sun_path)
        return 0;
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid())
        peer.pid = 0;
    close(fd);
    return peer.pid;
}

void hg_box_process_boot_id(char out[static 40])
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

    out[0] = 0;
    if (f && fgets(out, 40, f))
        out[strcspn(out, "\n")] = 0;
    if (f)
        fclose(f);
}
