/* SPDX-License-Identifier: Apache-2.0 */
#include "box/ports.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

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
