/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/id.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/text.h"
#include "matrix/grid.h"
#include "matrix/placeholder.h"

#define SLUG_PART_MAX 24

/* Canonical text of the last value of a column: most columns stand still from cell to cell. */
struct text {
    hg_value value;
    const char *text; /* the pool's, or scratch */
    size_t len;
    char scratch[32];
};

struct hg_ids {
    const struct hg_matrix *m;
    const struct hg_grid *g;
    struct hg_buf canonical;
    struct text *texts; /* per identity column, in canonical order */
    char *program;      /* what a command runs, without folder and ending */
    int program_column; /* where the command names it as {{key}}, else -1 */
};

/* ---- The program ---- */

/* What starts a script: the script says more about the cell. Beginnings of names: python3.11, torchrun-3. */
static const char *const starters[] = {
    "python", "pypy", "ipython", "torchrun", "accelerate", "deepspeed",   "horovodrun", "uv",
    "poetry", "pixi", "conda",   "mamba",    "apptainer",  "singularity", "env",        "nice",
    "srun",   "mpi",  "bash",    "sh",       "zsh",        "ksh",         "dash",       "Rscript",
    "julia",  "perl", "ruby",    "node",     "lua",        "time",        "stdbuf",     "numactl",
};

/* Where the ending of a script begins; NULL: it is none. */
static const char *script_ending(const char *word)
{
    static const char *const endings[] = { "py", "sh", "bash", "R",   "r",     "jl",
                                           "pl", "rb", "js",   "lua", "slurm", NULL };
    const char *dot = strrchr(hg_fs_basename(word), '.');

    return dot && dot > hg_fs_basename(word) && hg_text_is_one_of(dot + 1, strlen(dot + 1), endings)
               ? dot
               : NULL;
}

static bool is_starter(const char *name)
{
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        size_t n = strlen(starters[i]);

        if (strncmp(name, starters[i], n) == 0 &&
            (!isalpha((unsigned char)name[n]) || strcmp(starters[i], "mpi") == 0))
            return true;
    }
    return false;
}

/* Of `python3 -u train.py ...` it is train, of `python -m pkg.train` pkg.train, of other commands the first word. */
static char *program_of(char *const *command)
{
    const char *name = hg_fs_basename(command[0]), *ending = script_ending(name);

    for (size_t i = 1; !ending && is_starter(hg_fs_basename(command[0])) && command[i]; i++) {
        if (command[i][0] != '-' && (ending = script_ending(command[i])))
            name = hg_fs_basename(command[i]);
        else if (strcmp(command[i], "-m") == 0 && command[i + 1] && name[0] != '-')
            name = command[i + 1];
    }
    return hg_strndup(name, ending ? (size_t)(ending - name) : strlen(name));
}

struct hg_ids *hg_ids_create(const struct hg_matrix *m)
{
    struct hg_ids *w = hg_alloc_zeroed(1, sizeof *w);
    struct hg_placeholder p;

    w->m = m;
    w->g = m->grid;
    w->texts = hg_alloc_zeroed(w->g->n_sorted, sizeof *w->texts);
    for (size_t i = 0; i < w->g->n_sorted; i++)
        w->texts[i].value = HG_VALUE_ABSENT;
    w->program =
        m->workload.program ? hg_strdup(m->workload.program) : program_of(m->workload.command);
    w->program_column =
        hg_placeholder_next(w->program, &p) && hg_placeholder_is_whole(&p, w->program)
            ? hg_grid_column(w->g, p.key)
            : -1;
    return w;
}

void hg_ids_free(struct hg_ids *w)
{
    free(w->texts);
    free(w->program);
    hg_buf_done(&w->canonical);
    free(w);
}

/* Texts of the values that changed since the last cell; the room that the canonical text takes. */
static size_t refresh_texts(struct hg_ids *w, const hg_value *values)
{
    size_t room = 64 + w->g->identity_len;

    for (size_t i = 0; i < w->g->n_sorted; i++) {
        struct text *t = &w->texts[i];
        hg_value v = values[w->g->sorted[i]];

        if (v != t->value && !hg_value_is_absent(v))
            t->text = hg_pool_text(w->g->pool, v, t->scratch, &t->len);
        t->value = v;
        room += w->g->columns.items[w->g->sorted[i]].prefix_len + t->len + 1;
    }
    return room;
}

static char *put(char *to, const char *text, size_t n)
{
    memcpy(to, text, n);
    return to + n;
}

/* {"cell":{...},"workload":{...}}, canonical. */
static void write_canonical(struct hg_ids *w, const hg_value *values)
{
    const struct hg_grid *g = w->g;
    struct hg_buf *out = &w->canonical;
    char *p, *first;

    hg_buf_clear(out);
    hg_buf_reserve(out, refresh_texts(w, values));
    p = first = put(out->data, "{\"cell\":{", 9);
    for (size_t i = 0; i < g->n_sorted; i++) {
        const struct hg_column *c = &g->columns.items[g->sorted[i]];

        if (hg_value_is_absent(w->texts[i].value))
            continue;
        if (p != first)
            *p++ = ',';
        p = put(p, c->prefix, c->prefix_len);
        p = put(p, w->texts[i].text, w->texts[i].len);
    }
    p = put(p, "},\"workload\":", 13);
    p = put(p, g->identity, g->identity_len);
    *p++ = '}';
    *p = '\0';
    out->len = (size_t)(p - out->data);
}

uint64_t hg_ids_fingerprint(struct hg_ids *w, const hg_value *values)
{
    write_canonical(w, values);
    return hg_hash64(w->canonical.data, w->canonical.len);
}

/* Append "-" and a word of letters, digits, "." and "_". */
static size_t add_part(char *slug, size_t n, const char *word)
{
    if (!word || !*word)
        return n;
    if (n)
        slug[n++] = '-';
    for (size_t i = 0; word[i] && i < SLUG_PART_MAX; i++) {
        unsigned char c = (unsigned char)word[i];

        slug[n++] = isalnum(c) && c < 0x80 ? (char)tolower(c) : c == '.' && i ? '.' : '_';
    }
    return n;
}

static const char *subject(const struct hg_ids *w, const hg_value *values)
{
    int column = hg_grid_column(w->g, "model");
    const char *model = column >= 0 ? hg_pool_string(w->g->pool, values[column]) : NULL;

    if (!model && w->program_column >= 0)
        model = hg_pool_string(w->g->pool, values[w->program_column]);
    return model ? hg_fs_basename(model) : w->program;
}

void hg_ids_write(const struct hg_ids *w, const hg_value *values, uint64_t fingerprint,
                  char id[static HG_CELL_ID_MAX])
{
    const struct hg_pool *pool = w->g->pool;
    double per_node = hg_value_number(values[HG_COLUMN_GPUS_PER_NODE]);
    size_t n = add_part(id, 0, subject(w, values));

    if (per_node <= 0)
        per_node = hg_value_number(values[HG_COLUMN_TASKS_PER_NODE]);
    n = add_part(id, n, hg_pool_string(pool, values[HG_COLUMN_STRATEGY]));
    n = add_part(id, n, hg_pool_string(pool, values[HG_COLUMN_HARDWARE]));
    snprintf(id + n, HG_CELL_ID_MAX - n, "%s%lldx%lld-%012llx", n ? "-" : "",
             (long long)hg_value_number(values[HG_COLUMN_NODES]), (long long)per_node,
             (unsigned long long)(fingerprint >> 16));
}
