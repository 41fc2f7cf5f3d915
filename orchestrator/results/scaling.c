/* SPDX-License-Identifier: Apache-2.0 */
#include "results/scaling.h"

#include <math.h>
#include <stdbool.h>

double hg_scaling_efficiency(double speedup, double p)
{
    return speedup / p;
}

double hg_scaling_karp_flatt(double speedup, double p)
{
    return p > 1 ? (1 / speedup - 1 / p) / (1 - 1 / p) : NAN;
}

double hg_scaling_knee(double contention, double coherency)
{
    double a = contention - coherency;

    /* d/dp of p / D^2 with D = 1 + sigma (p - 1) + kappa p (p - 1) is 0 where D = 2 p D':
     * 1 - sigma - (sigma - kappa) p - 3 kappa p^2 = 0. */
    if (contention >= 1)
        return 1;
    if (coherency > 0)
        return fmax(1, (sqrt(a * a + 12 * coherency * (1 - contention)) - a) / (6 * coherency));
    return contention > 0 ? fmax(1, (1 - contention) / contention) : INFINITY;
}

/* ---- Strong or weak ---- */

const char *const hg_scaling_kind_words[] = { [HG_SCALING_UNKNOWN] = "not known",
                                              [HG_SCALING_STRONG] = "strong",
                                              [HG_SCALING_WEAK] = "weak",
                                              [HG_SCALING_NEITHER] = "neither" };

static bool is_about(double value, double wanted)
{
    return fabs(value - wanted) <= HG_SCALING_WORK_TOLERANCE * wanted;
}

enum hg_scaling_kind hg_scaling_kind_of(double work, double p)
{
    if (isnan(work) || isnan(p))
        return HG_SCALING_UNKNOWN;
    return is_about(work, 1)   ? HG_SCALING_STRONG
           : is_about(work, p) ? HG_SCALING_WEAK
                               : HG_SCALING_NEITHER;
}
