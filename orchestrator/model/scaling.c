/* SPDX-License-Identifier: Apache-2.0 */
#include "model/scaling.h"

#include <math.h>

double hg_scaling_efficiency(double speedup, double p)
{
    return speedup / p;
}

double hg_scaling_karp_flatt(double speedup, double p)
{
    return p > 1 ? (1 / speedup - 1 / p) / (1 - 1 / p) : NAN;
}

static size_t points_above_one(const struct hg_scaling_point *points, size_t n)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += points[i].p > 1;
    return count;
}

bool hg_scaling_amdahl(const struct hg_scaling_point *points, size_t n, struct hg_amdahl *fit)
{
    size_t count = points_above_one(points, n);
    double xy = 0, xx = 0, squares = 0, serial;

    if (count < HG_SCALING_POINTS_MIN)
        return false;
    /* 1/S - 1/p = s (1 - 1/p): a line through the origin. */
    for (size_t i = 0; i < n; i++) {
        double x = 1 - 1 / points[i].p;

        if (points[i].p > 1) {
            xy += x * (1 / points[i].speedup - 1 / points[i].p);
            xx += x * x;
        }
    }
    serial = xy / xx;
    if (!(serial >= 0 && serial <= 1))
        return false;
    for (size_t i = 0; i < n; i++) {
        double e = 1 / points[i].speedup - serial - (1 - serial) / points[i].p;

        squares += points[i].p > 1 ? e * e : 0;
    }
    *fit = (struct hg_amdahl){ .serial = serial,
                               .limit = 1 / serial,
                               .error = sqrt(squares / (double)count) };
    return true;
}

/* Sums of the normal equations of y = sigma u + kappa v. */
struct usl_sums {
    double uu, uv, vv, uy, vy;
};

static void usl_solve(const struct usl_sums *s, double *sigma, double *kappa)
{
    double det = s->uu * s->vv - s->uv * s->uv;

    *sigma = (s->uy * s->vv - s->vy * s->uv) / det;
    *kappa = (s->vy * s->uu - s->uy * s->uv) / det;
    if (*sigma < 0) {
        *sigma = 0;
        *kappa = fmax(0, s->vy / s->vv);
    } else if (*kappa < 0) {
        *kappa = 0;
        *sigma = fmax(0, s->uy / s->uu);
    }
}

bool hg_scaling_usl(const struct hg_scaling_point *points, size_t n, struct hg_usl *fit)
{
    size_t count = points_above_one(points, n);
    struct usl_sums s = { 0 };
    double squares = 0, sigma, kappa, first = 0;
    bool two = false;

    for (size_t i = 0; i < n; i++) {
        double u = points[i].p - 1, v = points[i].p * u, y = points[i].p / points[i].speedup - 1;

        if (!(points[i].p > 1))
            continue;
        two = two || (first > 0 && points[i].p != first);
        first = points[i].p;
        s.uu += u * u;
        s.uv += u * v;
        s.vv += v * v;
        s.uy += u * y;
        s.vy += v * y;
    }
    if (count < HG_SCALING_POINTS_MIN || !two)
        return false;
    usl_solve(&s, &sigma, &kappa);
    for (size_t i = 0; i < n; i++) {
        double p = points[i].p,
               e = p / points[i].speedup - 1 - sigma * (p - 1) - kappa * p * (p - 1);

        squares += p > 1 ? e * e : 0;
    }
    *fit = (struct hg_usl){ .contention = sigma,
                            .coherency = kappa,
                            .peak_p = kappa > 0 ? sqrt(fmax(1, (1 - sigma) / kappa)) : INFINITY,
                            .error = sqrt(squares / (double)count) };
    if (kappa == 0 && sigma >= 1)
        fit->peak_p = 1;
    return true;
}
