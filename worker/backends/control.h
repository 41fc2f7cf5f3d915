/* SPDX-License-Identifier: Apache-2.0 */
/* What an update knows only once the gradient is there: kept on the device, so that no step waits for the host. A control is
 * WK_CONTROL_N reals, set from the sum of squares of the whole gradient (of the scaled loss, when the loss is scaled):
 *
 *   norm = sqrt(sum) / LOSS_SCALE
 *   SCALE = min(1, clip / (norm + 1e-6)) / LOSS_SCALE, which is PyTorch's clip_grad_norm_; no number when norm is none
 *   a scaled loss whose gradient is not finite: SKIP = 1, SKIPPED += 1, GOOD = 0, LOSS_SCALE halves (not below 1)
 *   else SKIP = 0, and with a scaled loss GOOD += 1; when GOOD is grow_after, GOOD = 0 and LOSS_SCALE doubles (not above 2^24) */
#ifndef WK_BACKENDS_CONTROL_H
#define WK_BACKENDS_CONTROL_H

enum wk_control_part {
    WK_CONTROL_SCALE,      /* what the next update multiplies the gradient with */
    WK_CONTROL_SKIP,       /* 1: the next update changes nothing */
    WK_CONTROL_LOSS_SCALE, /* of the next pass; set to 1, or to WK_LOSS_SCALE_FIRST, at the start */
    WK_CONTROL_GOOD,       /* steps since it changed */
    WK_CONTROL_SKIPPED,    /* steps that were skipped in all */
    WK_CONTROL_N = 8
};

#define WK_LOSS_SCALE_FIRST 65536.0
#define WK_LOSS_SCALE_MOST 16777216.0
#define WK_LOSS_SCALE_GROWS 2000 /* steps */

#endif
