/* SPDX-License-Identifier: Apache-2.0 */
/* Many random numbers at a time, on the host: those that initial values are made of. */
#ifndef WK_BACKENDS_DRAW_H
#define WK_BACKENDS_DRAW_H

#include <stddef.h>
#include <stdint.h>

enum wk_draw {
    WK_DRAW_UNIFORM, /* in (-1, 1) */
    WK_DRAW_NORMAL,  /* mean 0, standard deviation 1 */
};

/* Numbers first to first + n - 1 of a sequence; first is a multiple of WK_DRAW_GROUP. Number i depends on seed, site and i alone: it
 * comes from word i % 4 of counter (i / 4, site, 0, 0), two neighbouring words giving two normal numbers. Every machine gives the
 * same bits. */
#define WK_DRAW_GROUP 32
void wk_draw(uint64_t seed, uint32_t site, size_t first, enum wk_draw what, double *out, size_t n);

#endif
