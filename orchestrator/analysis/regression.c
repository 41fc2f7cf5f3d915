/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/regression.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/vec.h"

#define MAX HG_REGRESSION_MAX
#define FREEDOM_MIN 2
#define REACH 0.7 /* beyond the numbers of a key, as a logarithm: ln 2 and dust */

/* One column of the model. */
struct column {
    size_t key;
    uint32_t level; /* of a key that is no number: 1 for this value, 0 for others */
    bool square;    /* of a number: its logarithm less the mean, squared */
};

/* What the rows say of a key. */
struct range {
    bool varies, numeric;
    uint32_t first;
    double low, high, sum; /* logarithms */
    struct hg_map levels;  /* its values, numbered as they appear */
};

struct hg_regression {
    const struct hg_frame *f;
    struct range *ranges; /* by key, of the keys that the frame had */
    size_t n_keys, n;
    struct column columns[MAX];
    size_t p, rank;
    double root[MAX][MAX];  /* Cholesky factor of the normal equations, by columns */
    bool kept[MAX];         /* false: the column depends on those before it */
    double coordinate[MAX]; /* of the values along the rows' orthogonal places */
    double variance, freedom;
};

static bool is_key(const struct hg_frame *f, size_t key)
{
    return !(f->keys.items[key].flags & (HG_KEY_NOTE | HG_KEY_LOOSE | HG_KEY_REPEAT));
}

static double log_of(const struct hg_regression *r, uint32_t value)
{
    const struct hg_frame_value *v = &r->f->values.items[value];

    return v->is_number && v->number > 0 ? log(v->number) : NAN;
}

/* ---- The columns ---- */

static void survey(struct hg_regression *r, const size_t *rows)
{
    for (size_t k = 0; k < r->n_keys; k++) {
        struct range *g = &r->ranges[k];

        if (!is_key(r->f, k))
            continue;
        g->first = hg_frame_row(r->f, rows[0])[k];
        g->numeric = true;
        g->low = INFINITY;
        g->high = -INFINITY;
        for (size_t i = 0; i < r->n; i++) {
            uint32_t value = hg_frame_row(r->f, rows[i])[k];
            double x = log_of(r, value);

            g->varies = g->varies || value != g->first;
            hg_map_put(&g->levels, &value, sizeof value, g->levels.n);
            g->numeric = g->numeric && !isnan(x);
            g->low = fmin(g->low, x);
            g->high = fmax(g->high, x);
            g->sum += x;
        }
    }
}

static void add_column(struct hg_regression *r, struct column c)
{
    if (r->p < MAX)
        r->columns[r->p] = c;
    r->p++;
}

/* Squares come last: a straight line is tried first. */
static void make_columns(struct hg_regression *r, const size_t *rows, bool squares)
{
    r->p = 1; /* the constant, columns[0] */
    for (size_t k = 0; k < r->n_keys; k++) {
        const struct range *g = &r->ranges[k];

        if (g->varies && g->numeric)
            add_column(r, (struct column){ .key = k });
        for (size_t i = 0, next = 1; i < r->n && g->varies && !g->numeric; i++) {
            uint32_t value = hg_frame_row(r->f, rows[i])[k];

            if (hg_map_find(&g->levels, &value, sizeof value) != next)
                continue;
            add_column(r, (struct column){ .key = k, .level = value });
            next++;
        }
    }
    for (size_t k = 0; k < r->n_keys && squares; k++)
        if (r->ranges[k].varies && r->ranges[k].numeric && r->ranges[k].levels.n > 2)
            add_column(r, (struct column){ .key = k, .square = true });
}

static double column_of(const struct hg_regression *r, size_t j, const uint32_t *row)
{
    const struct column *c = &r->columns[j];
    uint32_t value = row[c->key];
    double x;

    if (j == 0)
        return 1;
    if (!r->ranges[c->key].numeric)
        return value == c->level;
    x = log_of(r, value) - r->ranges[c->key].sum / (double)r->n;
    return c->square ? x * x : x;
}

/* ---- Least squares ---- */

/* The row's place along orthogonal directions. Of a column that depends on others the row must keep that dependence. */
static bool place(const struct hg_regression *r, const uint32_t *row, double *u)
{
    for (size_t j = 0; j < r->p; j++) {
        double x = column_of(r, j, row), rest = x;

        for (size_t i = 0; i < j; i++)
            rest -= r->root[i][j] * u[i];
        if (!r->kept[j] && fabs(rest) > 1e-4 * (1 + fabs(x)))
            return false;
        u[j] = r->kept[j] ? rest / r->root[j][j] : 0;
    }
    return true;
}

/* root' root = the normal equations; a column that leaves nothing of itself depends on those before it. */
static void factor(struct hg_regression *r, const size_t *rows)
{
    double normal[MAX][MAX] = { { 0 } }, x[MAX];

    for (size_t i = 0; i < r->n; i++) {
        for (size_t j = 0; j < r->p; j++)
            x[j] = column_of(r, j, hg_frame_row(r->f, rows[i]));
        for (size_t j = 0; j < r->p; j++)
            for (size_t k = 0; k <= j; k++)
                normal[k][j] += x[j] * x[k];
    }
    r->rank = 0;
    for (size_t j = 0; j < r->p; j++) {
        double own = normal[j][j];

        for (size_t i = 0; i < j; i++) {
            double sum = normal[i][j];

            for (size_t k = 0; k < i; k++)
                sum -= r->root[k][i] * r->root[k][j];
            r->root[i][j] = r->kept[i] ? sum / r->root[i][i] : 0;
            own -= r->root[i][j] * r->root[i][j];
        }
        r->kept[j] = own > 1e-9 * normal[j][j];
        r->root[j][j] = r->kept[j] ? sqrt(own) : 0;
        r->rank += r->kept[j];
    }
}

/* Each residual is as large as if its row had been left out, and weighs accordingly less: the sum is that of n independent ones. */
static void judge(struct hg_regression *r, const size_t *rows, const double *y)
{
    double sum = 0, u[MAX];
    size_t counted = 0;

    for (size_t j = 0; j < r->p; j++)
        r->coordinate[j] = 0;
    for (size_t i = 0; i < r->n; i++) {
        place(r, hg_frame_row(r->f, rows[i]), u);
        for (size_t j = 0; j < r->p; j++)
            r->coordinate[j] += u[j] * y[i];
    }
    for (size_t i = 0; i < r->n; i++) {
        double value = 0, leverage = 0;

        place(r, hg_frame_row(r->f, rows[i]), u);
        for (size_t j = 0; j < r->p; j++) {
            value += u[j] * r->coordinate[j];
            leverage += u[j] * u[j];
        }
        if (leverage > 1 - 1e-6) /* the fit passes through it whatever it is */
            continue;
        sum += (y[i] - value) * (y[i] - value) / (1 - leverage);
        counted++;
    }
    r->freedom = (double)r->n - (double)r->rank;
    r->variance = counted ? sum / (double)counted : NAN;
}

static bool solve(struct hg_regression *r, const size_t *rows, const double *y, bool squares)
{
    make_columns(r, rows, squares);
    if (r->p > MAX || r->p == 1)
        return false;
    factor(r, rows);
    if (r->n < r->rank + FREEDOM_MIN)
        return false;
    judge(r, rows, y);
    return !isnan(r->variance);
}

struct hg_regression *hg_regression_fit(const struct hg_frame *f, const size_t *rows, size_t n,
                                        const double *y)
{
    struct hg_regression *r = hg_alloc_zeroed(1, sizeof *r);
    double straight;
    bool found;

    r->f = f;
    r->n = n;
    r->n_keys = f->keys.n;
    r->ranges = hg_alloc_zeroed(r->n_keys + 1, sizeof *r->ranges);
    found = n > FREEDOM_MIN;
    if (found)
        survey(r, rows);
    found = found && solve(r, rows, y, false);
    straight = found ? r->variance : NAN;
    /* One parabola fewer would often do; a clear gain is wanted, as every coefficient widens the intervals. */
    if (found && (!solve(r, rows, y, true) || r->variance > 0.7 * straight))
        solve(r, rows, y, false);
    if (found)
        return r;
    hg_regression_free(r);
    return NULL;
}

void hg_regression_free(struct hg_regression *r)
{
    for (size_t k = 0; r && k < r->n_keys; k++)
        hg_map_done(&r->ranges[k].levels);
    if (r)
        free(r->ranges);
    free(r);
}

bool hg_regression_predict(const struct hg_regression *r, size_t row, double *y, double *u)
{
    const uint32_t *values = hg_frame_row(r->f, row);

    for (size_t k = 0; k < r->f->keys.n; k++) {
        const struct range *g = k < r->n_keys ? &r->ranges[k] : NULL;
        uint32_t value = values[k];
        double x = log_of(r, value);

        if (!is_key(r->f, k))
            continue;
        if (!g || !g->varies ? value != (g ? g->first : 0)
            : g->numeric     ? !(x > g->low - REACH && x < g->high + REACH)
                             : hg_map_find(&g->levels, &value, sizeof value) == HG_MAP_NONE)
            return false;
    }
    if (!place(r, values, u))
        return false;
    *y = 0;
    for (size_t j = 0; j < r->p; j++)
        *y += u[j] * r->coordinate[j];
    return true;
}

size_t hg_regression_size(const struct hg_regression *r)
{
    return r->p;
}

double hg_regression_variance(const struct hg_regression *r)
{
    return r->variance;
}

double hg_regression_freedom(const struct hg_regression *r)
{
    return r->freedom;
}

void hg_regression_append_keys(const struct hg_regression *r, struct hg_buf *out)
{
    size_t n = 0;

    for (size_t k = 0; k < r->n_keys; k++)
        if (r->ranges[k].varies)
            hg_buf_printf(out, "%s%s", n++ ? ", " : "", r->f->keys.items[k].name);
}
