/* SPDX-License-Identifier: Apache-2.0 */
#include "results/scaling.h"

#include <math.h>

double hg_scaling_efficiency(double speedup, double p)
{
    return speedup / p;
}

double hg_scaling_karp_flatt(double speedup, double p)
{
    return p > 1 ? (1 / speedup - 1 / p) / (1 - 1 / p) : NAN;
}

/* ---- One coefficient: y = b x, least squares through the origin ---- */

typedef void (*xy_fn)(const struct hg_scaling_point *point, double *x, double *y);

struct line {
    size_t n;                   /* points with p > 1 */
    double xx, slope, residual; /* residual: sum of squares */
};

static struct line fit_line(const struct hg_scaling_point *points, size_t n, xy_fn xy)
{
    struct line l = { 0 };
    double x, y, sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (!(points[i].p > 1))
            continue;
        xy(&points[i], &x, &y);
        l.n++;
        l.xx += x * x;
        sum += x * y;
    }
    l.slope = sum / l.xx;
    for (size_t i = 0; i < n; i++) {
        if (!(points[i].p > 1))
            continue;
        xy(&points[i], &x, &y);
        l.residual += (y - l.slope * x) * (y - l.slope * x);
    }
    return l;
}

static double slope_error(const struct line *l)
{
    return l->n > 1 ? sqrt(l->residual / (double)(l->n - 1) / l->xx) : NAN;
}

static double mean_error(const struct line *l)
{
    return sqrt(l->residual / (double)l->n);
}

/* ---- Amdahl ---- */

/* 1/S - 1/p = s (1 - 1/p) */
static void amdahl_xy(const struct hg_scaling_point *point, double *x, double *y)
{
    *x = 1 - 1 / point->p;
    *y = 1 / point->speedup - 1 / point->p;
}

bool hg_scaling_amdahl(const struct hg_scaling_point *points, size_t n, struct hg_amdahl *fit)
{
    struct line l = fit_line(points, n, amdahl_xy);

    if (l.n < HG_SCALING_POINTS_MIN || !(l.slope >= 0 && l.slope <= 1))
        return false;
    *fit = (struct hg_amdahl){ .serial = l.slope,
                               .serial_error = slope_error(&l),
                               .limit = 1 / l.slope,
                               .knee_p = hg_scaling_knee(l.slope, 0),
                               .error = mean_error(&l) };
    return true;
}

/* ---- Gustafson ---- */

/* p - S = s (p - 1) */
static void gustafson_xy(const struct hg_scaling_point *point, double *x, double *y)
{
    *x = point->p - 1;
    *y = point->p - point->speedup;
}

bool hg_scaling_gustafson(const struct hg_scaling_point *points, size_t n, struct hg_gustafson *fit)
{
    struct line l = fit_line(points, n, gustafson_xy);

    if (l.n < HG_SCALING_POINTS_MIN || !(l.slope >= 0 && l.slope <= 1))
        return false;
    *fit = (struct hg_gustafson){ .serial = l.slope,
                                  .serial_error = slope_error(&l),
                                  .error = mean_error(&l) };
    return true;
}

/* ---- Universal scalability law ---- */

/* Normal equations of y = sigma u + kappa v, with u = p - 1, v = p (p - 1), y = p/S - 1. */
struct usl {
    size_t n; /* points with p > 1 */
    bool two; /* at least two different p */
    double first;
    double uu, uv, vv, uy, vy;
    double sigma, kappa;
    bool has_sigma, has_kappa; /* free, not set to 0 */
    double residual;           /* sum of squares */
};

static struct usl usl_sums(const struct hg_scaling_point *points, size_t n)
{
    struct usl s = { 0 };

    for (size_t i = 0; i < n; i++) {
        double u = points[i].p - 1, v = points[i].p * u, y = points[i].p / points[i].speedup - 1;

        if (!(points[i].p > 1))
            continue;
        s.two = s.two || (s.n && points[i].p != s.first);
        s.first = points[i].p;
        s.n++;
        s.uu += u * u;
        s.uv += u * v;
        s.vv += v * v;
        s.uy += u * y;
        s.vy += v * y;
    }
    return s;
}

static double usl_determinant(const struct usl *s)
{
    return s->uu * s->vv - s->uv * s->uv;
}

static void usl_coefficients(struct usl *s)
{
    double det = usl_determinant(s);

    s->sigma = (s->uy * s->vv - s->vy * s->uv) / det;
    s->kappa = (s->vy * s->uu - s->uy * s->uv) / det;
    s->has_sigma = s->has_kappa = true;
    if (s->sigma < 0) {
        s->sigma = 0;
        s->kappa = fmax(0, s->vy / s->vv);
        s->has_sigma = false;
        s->has_kappa = s->kappa > 0;
    } else if (s->kappa < 0) {
        s->kappa = 0;
        s->sigma = fmax(0, s->uy / s->uu);
        s->has_kappa = false;
        s->has_sigma = s->sigma > 0;
    }
}

static struct usl usl_solve(const struct hg_scaling_point *points, size_t n)
{
    struct usl s = usl_sums(points, n);

    if (s.n < HG_SCALING_POINTS_MIN || !s.two)
        return s;
    usl_coefficients(&s);
    for (size_t i = 0; i < n; i++) {
        double p = points[i].p,
               e = p / points[i].speedup - 1 - s.sigma * (p - 1) - s.kappa * p * (p - 1);

        s.residual += p > 1 ? e * e : 0;
    }
    return s;
}

/* Degrees of freedom that are left; 0 and below: none. */
static double usl_freedom(const struct usl *s)
{
    return (double)s->n - s->has_sigma - s->has_kappa;
}

/* Variance of a fitted a sigma + b kappa in units of the points' variance. */
static double usl_leverage(const struct usl *s, double a, double b)
{
    if (s->has_sigma && s->has_kappa)
        return (a * a * s->vv - 2 * a * b * s->uv + b * b * s->uu) / usl_determinant(s);
    return s->has_sigma ? a * a / s->uu : s->has_kappa ? b * b / s->vv : 0;
}

static double usl_error_of(const struct usl *s, bool is_free, double a, double b)
{
    if (!is_free || usl_freedom(s) < 1)
        return NAN;
    return sqrt(s->residual / usl_freedom(s) * usl_leverage(s, a, b));
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

bool hg_scaling_usl(const struct hg_scaling_point *points, size_t n, struct hg_usl *fit)
{
    struct usl s = usl_solve(points, n);

    if (s.n < HG_SCALING_POINTS_MIN || !s.two)
        return false;
    *fit =
        (struct hg_usl){ .contention = s.sigma,
                         .coherency = s.kappa,
                         .contention_error = usl_error_of(&s, s.has_sigma, 1, 0),
                         .coherency_error = usl_error_of(&s, s.has_kappa, 0, 1),
                         .peak_p = s.kappa > 0 ? sqrt(fmax(1, (1 - s.sigma) / s.kappa)) : INFINITY,
                         .knee_p = hg_scaling_knee(s.sigma, s.kappa),
                         .error = sqrt(s.residual / (double)s.n) };
    if (s.kappa == 0 && s.sigma >= 1)
        fit->peak_p = 1;
    return true;
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

/* ---- Predictions ---- */

/* Half the width of the interval of a further measurement of a fitted line. */
static double further(double variance, double leverage, double freedom)
{
    return hg_stats_t_quantile(0.5 + HG_STATS_LEVEL / 2, freedom) * sqrt(variance * (1 + leverage));
}

static bool predict_usl(const struct usl *s, double p, struct hg_prediction *out)
{
    double u = p - 1, v = p * u, y = 1 + s->sigma * u + s->kappa * v, half;

    *out = (struct hg_prediction){ .p = p, .speedup.value = p / y, .law = "USL" };
    if (usl_freedom(s) < 1)
        return true;
    half = further(s->residual / usl_freedom(s), usl_leverage(s, u, v), usl_freedom(s));
    out->speedup.low = p / (y + half);
    out->speedup.high = p / (y - half);
    out->speedup.has_interval = y > half;
    return true;
}

static bool predict_gustafson(const struct line *l, double p, struct hg_prediction *out)
{
    double x = p - 1, freedom = (double)(l->n - 1),
           half = further(l->residual / freedom, x * x / l->xx, freedom);

    *out = (struct hg_prediction){ .p = p, .speedup.value = p - l->slope * x, .law = "Gustafson" };
    out->speedup.low = fmax(0, out->speedup.value - half);
    out->speedup.high = out->speedup.value + half;
    out->speedup.has_interval = true;
    return out->speedup.value > 0;
}

bool hg_scaling_predict(const struct hg_scaling_point *points, size_t n, enum hg_scaling_kind kind,
                        double p, struct hg_prediction *out)
{
    struct usl s = usl_solve(points, n);
    struct line l = fit_line(points, n, gustafson_xy);

    if (s.n < HG_SCALING_POINTS_MIN || kind == HG_SCALING_NEITHER)
        return false;
    if (kind == HG_SCALING_WEAK)
        return predict_gustafson(&l, p, out);
    return s.two && predict_usl(&s, p, out);
}
