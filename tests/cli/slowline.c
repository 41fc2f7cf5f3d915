/* SPDX-License-Identifier: Apache-2.0 */
/* slowline RATE COUNT COMMAND [ARG...]: run a command on a terminal of its own, of this one's size, behind a line that takes RATE bytes a
 * second of what it writes; keys go to it at once. The file COUNT says how many bytes came through. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define TICK_S 0.05

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* 0: the command has closed its terminal. */
static int carry(int line, size_t most, long long *count)
{
    char text[65536];
    ssize_t n = read(line, text, most < sizeof text ? most : sizeof text);

    if (n <= 0 || write(STDOUT_FILENO, text, (size_t)n) != n)
        return 0;
    *count += n;
    return 1;
}

static void pass_keys(int line)
{
    char keys[256];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);

    if (n > 0 && write(line, keys, (size_t)n) < n)
        exit(3);
}

static void note(const char *path, long long count)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    if (fd < 0 || dprintf(fd, "%020lld\n", count) < 0)
        exit(3);
    close(fd);
}

static void serve(int line, double rate, const char *path)
{
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                            { .fd = line, .events = POLLIN } };
    double next_s = now_s();
    long long count = 0;

    for (;;) {
        double wait_s = next_s - now_s();

        poll(fds, wait_s > 0 ? 1 : 2, wait_s > 0 ? (int)(wait_s * 1000) + 1 : -1);
        if (fds[0].revents & POLLIN)
            pass_keys(line);
        if (wait_s > 0 || !fds[1].revents)
            continue;
        if (!carry(line, (size_t)(rate * TICK_S), &count))
            return;
        note(path, count);
        next_s = now_s() + TICK_S;
    }
}

int main(int argc, char **argv)
{
    struct termios before, raw;
    struct winsize size;
    int line, status = 0;
    pid_t pid;

    if (argc < 4 || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 ||
        tcgetattr(STDIN_FILENO, &before) < 0)
        return 2;
    pid = forkpty(&line, NULL, &before, &size);
    if (pid == 0) {
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    raw = before;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    serve(line, atof(argv[1]), argv[2]);
    waitpid(pid, &status, 0);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
