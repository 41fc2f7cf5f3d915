/* SPDX-License-Identifier: Apache-2.0 */
/* middleman UPSTREAM PORT_FILE MODE PATTERN COUNT: an HTTP proxy that simulates a bad network.
 *
 * UPSTREAM is the Unix socket of a slurmrestd; or a folder of answers, GET_slurm_v0.0.42_jobs.json, where bodies of requests
 * are left, too: POST_slurm_v0.0.42_job_submit.asked. The port it listens on (127.0.0.1) is written to PORT_FILE. Every request is
 * handed on and answered; the first COUNT ones whose first line has PATTERN are handed on, too, but answered by MODE:
 *   drop    not at all: the connection is closed      half    by the first half of the answer
 *   502     by HTTP 502 and a page                    page    by HTTP 200 and a page
 *   401     by HTTP 401 and an error of Slurm's      504     by HTTP 504 and an error of a gateway's
 *   reset   not at all, by a reset                    silent  never
 *   lost    as drop, and not handed on either        noise   by a line that is not HTTP
 * A message of Slurm's own has an empty first line; to libslurm, a page is no message at all.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#define MESSAGE_MAX (8 << 20)

static char request[MESSAGE_MAX], answer[MESSAGE_MAX];

/* Read a request: its head, and as much body as that announces. */
static size_t read_request(int fd)
{
    size_t len = 0, want = 0;

    while (len < sizeof request - 1 && (!want || len < want)) {
        ssize_t n = read(fd, request + len, sizeof request - 1 - len);
        const char *end, *length;

        if (n <= 0)
            break;
        len += (size_t)n;
        request[len] = 0;
        if (len >= 4 && !request[0]) { /* Slurm's: its length comes first */
            want = 4 + ((size_t)(unsigned char)request[1] << 16) +
                   ((size_t)(unsigned char)request[2] << 8) + (unsigned char)request[3];
            continue;
        }
        end = strstr(request, "\r\n\r\n");
        length = strcasestr(request, "\r\nContent-Length:");
        if (end)
            want = (size_t)(end + 4 - request) +
                   (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
    }
    return len;
}

static void send_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);

        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

/* Hand the request on and take the answer up to its end: connections are not kept. */
static size_t ask(const char *path, size_t len)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t got = 0;
    ssize_t n;

    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        close(fd);
        return 0;
    }
    send_all(fd, request, len);
    shutdown(fd, SHUT_WR);
    while (got < sizeof answer && (n = read(fd, answer + got, sizeof answer - got)) > 0)
        got += (size_t)n;
    close(fd);
    return got;
}

/* "GET /slurm/v0.0.42/jobs/?x HTTP/1.1" -> "GET_slurm_v0.0.42_jobs" */
static void name_of(char out[static 256])
{
    size_t n = strcspn(request, "\r\n") < 250 ? strcspn(request, "\r\n") : 250;

    snprintf(out, 256, "%.*s", (int)n, request);
    *strchrnul(out, ' ') = '_';
    out[strcspn(out, "? ")] = 0;
    for (char *p = out; *p; p++)
        *p = *p == '/' ? '_' : *p;
    for (char *p = out; (p = strstr(p, "__"));) /* "GET_/slurm" */
        memmove(p, p + 1, strlen(p));
    if (*out && out[strlen(out) - 1] == '_')
        out[strlen(out) - 1] = 0;
}

/* The answer that the folder has, 404 where it has none. */
static size_t look_up(const char *folder, size_t len)
{
    const char *body = strstr(request, "\r\n\r\n");
    char name[256], path[1024], text[65536];
    size_t n;
    FILE *f;

    name_of(name);
    snprintf(path, sizeof path, "%s/%s.asked", folder, name);
    if ((f = fopen(path, "w"))) {
        if (body)
            fwrite(body + 4, 1, (size_t)(request + len - body - 4), f);
        fclose(f);
    }
    snprintf(path, sizeof path, "%s/%s.json", folder, name);
    f = fopen(path, "r");
    n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return (size_t)snprintf(answer, sizeof answer,
                            "HTTP/1.1 %s\r\nConnection: Close\r\nContent-Length: %zu\r\n\r\n%s",
                            f ? "200 OK" : "404 NOT FOUND", n, text);
}

static void spoil(int fd, const char *mode, size_t len)
{
    static const char page[] =
        "\r\nContent-Type: text/html\r\nContent-Length: 14\r\n\r\n<html></html>\n";
    static const char denied[] =
        "HTTP/1.1 401 UNAUTHORIZED\r\nContent-Type: application/json\r\nContent-Length: 63\r\n\r\n"
        "{\"errors\": [{\"error_number\": 9008, \"error\": \"Authentication\"}]}";
    static const char late[] =
        "HTTP/1.1 504 Gateway Timeout\r\nContent-Type: application/json\r\nContent-Length: 45\r\n\r\n"
        "{\"errors\": [{\"error\": \"upstream timed out\"}]}";
    const struct linger at_once = { .l_onoff = 1 };

    if (strcmp(mode, "half") == 0)
        send_all(fd, answer, len / 2);
    else if (strcmp(mode, "502") == 0)
        send_all(fd, "HTTP/1.1 502 Bad Gateway", 24);
    else if (strcmp(mode, "page") == 0)
        send_all(fd, "HTTP/1.1 200 OK", 15);
    else if (strcmp(mode, "401") == 0)
        send_all(fd, denied, sizeof denied - 1);
    else if (strcmp(mode, "504") == 0)
        send_all(fd, late, sizeof late - 1);
    else if (strcmp(mode, "noise") == 0)
        send_all(fd, "SSH-2.0-OpenSSH_9.2\r\n", 21);
    else if (strcmp(mode, "reset") == 0)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    else if (strcmp(mode, "silent") == 0)
        fd = dup(fd);
    if (strcmp(mode, "502") == 0 || strcmp(mode, "page") == 0)
        send_all(fd, page, sizeof page - 1);
}

static void serve(int fd, char **argv, int *count)
{
    size_t len = read_request(fd), line, got = 0;
    bool spoilt;
    struct stat st;
    char first[512];

    if (len) {
        line = strcspn(request, "\r\n");
        snprintf(first, sizeof first, "%.*s", (int)(line < 500 ? line : 500), request);
        spoilt = *count > 0 && strstr(first, argv[4]);
        if (!spoilt || strcmp(argv[3], "lost") != 0)
            got = stat(argv[1], &st) == 0 && S_ISDIR(st.st_mode) ? look_up(argv[1], len)
                                                                 : ask(argv[1], len);
        if (spoilt) {
            --*count;
            spoil(fd, argv[3], got);
        } else {
            send_all(fd, answer, got);
        }
    }
    close(fd);
}

static int listen_somewhere(const char *port_file)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char name[512];
    FILE *f;

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) < 0)
        return -1;
    snprintf(name, sizeof name, "%s.new", port_file);
    f = fopen(name, "w");
    if (!f || fprintf(f, "%d\n", ntohs(at.sin_port)) < 0 || fclose(f) || rename(name, port_file))
        return -1;
    return fd;
}

int main(int argc, char **argv)
{
    int count = argc == 6 ? atoi(argv[5]) : 0, fd, client;

    if (argc != 6 || (fd = listen_somewhere(argv[2])) < 0)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    while ((client = accept(fd, NULL, NULL)) >= 0)
        serve(client, argv, &count);
    return 0;
}
