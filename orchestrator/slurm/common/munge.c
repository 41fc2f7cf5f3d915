/* SPDX-License-Identifier: Apache-2.0 */
/* Does munged work? libslurm tries for up to a minute before it fails, and then does not name munge. */
#include "slurm/common/munge.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"

#define LIMIT_S 10.0 /* munged answers in a millisecond */
#define FRESH_S 5.0  /* it has just answered */

/* From munge.h, which libslurm does not bring. */
#define MUNGE_OPT_SOCKET 8

#define SOCKET_MAX (sizeof((struct sockaddr_un *)0)->sun_path)

/* In a child: any answer is enough. Errors of a munged that answers are reported by libslurm. */
static void ask(const char *path)
{
    void *library = dlopen("libmunge.so.2", RTLD_NOW), *ctx;
    char *credential = NULL;
    void *(*create)(void);
    int (*set)(void *ctx, int option, ...);
    int (*encode)(char **credential, void *ctx, const void *data, int len);

    if (!library)
        return;
    *(void **)&create = dlsym(library, "munge_ctx_create");
    *(void **)&set = dlsym(library, "munge_ctx_set");
    *(void **)&encode = dlsym(library, "munge_encode");
    if (!create || !set || !encode || !(ctx = create()))
        return;
    set(ctx, MUNGE_OPT_SOCKET, path);
    encode(&credential, ctx, NULL, 0);
}

/* False: it does not answer in time. The question may hang with munged for ever, so a child asks it. */
static bool answers(const char *path)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ask(path);
        _exit(0);
    }
    if (pid < 0 || hg_proc_wait(pid, LIMIT_S, &status, NULL) != 1)
        return true;
    kill(pid, SIGKILL);
    hg_proc_wait(pid, -1, &status, NULL);
    return false;
}

/* 0, or the error of connecting. */
static int connects(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        rc = errno;
    if (fd >= 0)
        close(fd);
    return rc;
}

static int check(struct hg_agent_call *call, const char *path)
{
    static double answered_s;
    int rc = connects(path);

    if (rc == ECONNREFUSED || rc == ENOENT) {
        call->number = rc;
        hg_err_set(&call->err, HG_E_ENV, "munge does not answer at %s: %s", path, strerror(rc));
        return hg_err_hint(&call->err, "is munged running?");
    }
    if (answered_s > 0 && hg_clock_mono_s() - answered_s < FRESH_S)
        return 0;
    if (!answers(path)) {
        call->number = ETIMEDOUT;
        hg_err_set(&call->err, HG_E_ENV, "munge does not answer at %s within %g s", path, LIMIT_S);
        return hg_err_hint(&call->err, "munged is running but does not respond: was it stopped?");
    }
    answered_s = hg_clock_mono_s();
    return 0;
}

/* Where slurm.conf puts munge's socket: "AuthInfo=...socket=PATH", else munge's own place if it is
 * there. Other kinds of authentication have none: "". */
static void find_munge(const char *conf, char out[static SOCKET_MAX])
{
    static const char usual[] = "/run/munge/munge.socket.2";
    FILE *f = conf ? fopen(conf, "re") : NULL;
    char line[4096], *at;

    out[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (strncasecmp(line, "AuthInfo", 8) == 0 && (at = strstr(line, "socket="))) {
            at += strlen("socket=");
            at[strcspn(at, ", \t\r\n")] = 0;
            snprintf(out, SOCKET_MAX, "%.*s", (int)SOCKET_MAX - 1, at);
        } else if (strncasecmp(line, "AuthType", 8) == 0 && !strstr(line, "munge")) {
            out[0] = 0;
            fclose(f);
            return;
        }
    }
    if (f)
        fclose(f);
    if (!out[0] && access(usual, F_OK) == 0)
        snprintf(out, SOCKET_MAX, "%s", usual);
}

int hg_agent_check_auth(struct hg_agent_call *call, const char *conf)
{
    char munge_socket[SOCKET_MAX];

    find_munge(conf, munge_socket);
    return munge_socket[0] ? check(call, munge_socket) : 0;
}
