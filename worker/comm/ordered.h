/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in the order of the ranks, for transports of devices. */
#ifndef WK_COMM_ORDERED_H
#define WK_COMM_ORDERED_H

#include "comm/comm.h"

/* For transports of devices that are to sum in the order of the ranks: bring this rank's whole to the host, let `base` do the collective
 * there, and take back what it gives this rank. Stands still until the device's memory is ready; all that was started before must be over. */
int wk_comm_sum_on_host(struct wk_comm *comm, const struct wk_comm_kind *base,
                        const struct wk_comm_op *op, struct hg_err *err);

#endif
