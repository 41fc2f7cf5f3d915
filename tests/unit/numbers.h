/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers near what was calculated elsewhere, and random ones for simulations: the same sequence everywhere. */
#ifndef HG_TESTS_UNIT_NUMBERS_H
#define HG_TESTS_UNIT_NUMBERS_H

#include "test.h"

#include <math.h>

static inline void assert_near(double found, double wanted, double relative)
{
    if (!(fabs(found - wanted) <= relative * fmax(fabs(wanted), 1e-300)))
        fail_msg("found %.17g, wanted %.17g", found, wanted);
}

/* From 0 to 1, neither of them (a 64-bit congruence). */
static inline double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

/* A standard normal deviate (Box and Muller). */
static inline double normal(uint64_t *seed)
{
    double radius = sqrt(-2 * log(uniform(seed)));

    return radius * cos(2 * M_PI * uniform(seed));
}

#endif
