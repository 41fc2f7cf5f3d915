/* SPDX-License-Identifier: Apache-2.0 */
/* What bash, zsh and fish offer behind the cursor, from the tables of commands, options and topics, the folders, and the matrix or
 * run that the line names. One candidate a line, with a tab and its description where it has one. Nothing here prints errors: a
 * line that is being typed is not wrong yet. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/words.h"
#include "cmd/commands.h"
#include "cmd/options.h"
#include "manual/topics.h"
#include "matrix/cell.h"
#include "matrix/grid.h"
#include "matrix/matrix.h"
#include "matrix/value.h"
#include "results/result_keys.h"
#include "rundir/rundir.h"

#define CELLS_MAX 1000 /* ids that are offered */

/* The line up to the cursor. */
struct line {
    char **words; /* behind the command's name; the last is being typed */
    int n;
    const char *typed;   /* its part that candidates replace: what is behind "--name=" */
    size_t kept;         /* bytes before that */
    const char *reports; /* value of --reports; NULL: none */
    const char *operand; /* the first word that is no option, if it is complete; NULL: none */
    int operands;        /* complete ones */
    bool only_operands;  /* behind "--" */
};

/* Offer before + text, if what is typed of it begins so. */
static void offer(const struct line *l, const char *before, const char *text, const char *help)
{
    size_t n = strlen(before), typed = strlen(l->typed);

    if (typed < n || strncmp(l->typed, before, n) != 0 ||
        strncmp(l->typed + n, text, typed - n) != 0)
        return;
    printf("%.*s%s%s", (int)l->kept, l->words[l->n - 1], before, text);
    printf("%s%s\n", help ? "\t" : "", help ? help : "");
}

/* Before the last of these characters of the word, which counts: what stays. Yours. */
static char *part_before(const struct line *l, const char *separators)
{
    size_t n = strlen(l->typed);

    while (n && !strchr(separators, l->typed[n - 1]))
        n--;
    return hg_strndup(l->typed, n);
}

/* ---- Files ---- */

static void offer_files(const struct line *l, const char *ending)
{
    char *folder = part_before(l, "/");
    DIR *dir = opendir(*folder ? folder : ".");
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char *path = hg_str_printf("%s%s", folder, entry->d_name);
        bool is_dir = hg_fs_is_dir(path), shown = l->typed[strlen(folder)] == '.';
        char *name = hg_str_printf("%s%s", entry->d_name, is_dir ? "/" : "");

        if ((name[0] != '.' || shown) && (is_dir || hg_text_ends_with(name, ending)))
            offer(l, folder, name, NULL);
        free(name);
        free(path);
    }
    if (dir)
        closedir(dir);
    free(folder);
}

/* Runs by name, NAME or NAME/002. */
static void offer_runs(const struct line *l)
{
    const char *root = hg_options_reports(l->reports);
    char *name = part_before(l, "/"), *folder = hg_fs_join(root, name);
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        char *plan =
            hg_str_printf("%s/%s/%s", folder, entry->d_name, *name ? "plan.json" : "001/plan.json");

        if (hg_fs_exists(plan))
            offer(l, name, entry->d_name, *name ? NULL : "its newest run");
        free(plan);
    }
    if (dir)
        closedir(dir);
    free(folder);
    free(name);
}

/* ---- Keys and values of a matrix ---- */

/* The matrix that the line names, itself or by a run; NULL if there is none or it has mistakes. */
static struct hg_matrix *find_matrix(const struct line *l)
{
    struct hg_errs errs = HG_ERRS_INIT;
    struct hg_matrix *m = NULL;
    struct hg_rundir rd;
    char *path = NULL;

    if (l->operand && hg_text_ends_with(l->operand, ".json")) {
        path = hg_strdup(l->operand);
    } else if (l->operand &&
               hg_rundir_find(hg_options_reports(l->reports), l->operand, &rd, NULL) == 0) {
        path = hg_rundir_path(&rd, "matrix.json");
        hg_rundir_done(&rd);
    }
    if (path)
        m = hg_matrix_load(path, NULL, &errs);
    hg_errs_done(&errs);
    free(path);
    return m;
}

struct values {
    const struct line *line;
    const struct hg_matrix *matrix;
    const char *before, *key; /* key NULL: the ids */
    struct hg_words seen;
    int cells;
};

/* The reference of value is taken. */
static void offer_json(struct values *v, json_t *value)
{
    char *text = json_is_string(value) ? hg_strdup(json_string_value(value))
                                       : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

    if (text && v->seen.n < CELLS_MAX &&
        (!v->seen.n ||
         !hg_text_is_one_of(text, strlen(text), (const char *const *)v->seen.items))) {
        hg_words_push(&v->seen, text);
        offer(v->line, v->before, text, NULL);
    }
    free(text);
    json_decref(value);
}

/* What the axes list: a walk of a large matrix would meet the second value of a slow axis late. */
static void see_product(struct values *v, const struct hg_product *product)
{
    int column = hg_grid_column(v->matrix->grid, v->key);

    for (size_t i = 0; i < product->n; i++)
        for (size_t k = 0; k < product->items[i].n; k++) {
            const struct hg_alt *alt = &product->items[i].items[k];

            if (alt->kind == HG_ALT_PRODUCT)
                see_product(v, alt->product);
            else if (product->items[i].column == column && alt->kind == HG_ALT_VALUE)
                offer_json(v, hg_pool_json(v->matrix->grid->pool, alt->value));
        }
}

/* What only cells know: ids, the workload's values, generators, what is derived. */
static int see_cell(const struct hg_cell *cell, void *context)
{
    struct values *v = context;

    offer_json(v, v->key ? json_incref(json_object_get(cell->members, v->key))
                         : json_string(cell->id));
    return ++v->cells == CELLS_MAX;
}

static void offer_values(const struct line *l, const struct hg_matrix *m, const char *before,
                         const char *key)
{
    struct values v = { .line = l, .matrix = m, .before = before, .key = key };
    struct hg_errs errs = HG_ERRS_INIT;

    for (size_t i = 0; key && i < m->grid->sources.n; i++)
        see_product(&v, &m->grid->sources.items[i].product);
    hg_cells_walk(m, HG_CELLS_MEMBERS | HG_CELLS_SKIPPED, see_cell, &v, NULL, &errs);
    hg_words_done(&v.seen);
    hg_errs_done(&errs);
}

static void offer_keys(const struct line *l, const struct hg_matrix *m, const char *before,
                       const char *behind)
{
    for (size_t i = 0; m && i < m->grid->columns.n; i++) {
        const struct hg_column *c = &m->grid->columns.items[i];
        char *word = hg_str_printf("%s%s", c->name, behind);

        if (c->given)
            offer(l, before, word, NULL);
        free(word);
    }
}

/* Inside of "hardware=a100,nodes=1|2": keys, or the values of the key. */
static void offer_selector(const struct line *l)
{
    struct hg_matrix *m = find_matrix(l);
    char *part = part_before(l, ","), *value = part_before(l, ",=<>|");
    char *key = hg_strndup(l->typed + strlen(part), strcspn(l->typed + strlen(part), "!=<>|"));

    if (m && strlen(value) > strlen(part))
        offer_values(l, m, value, strcmp(key, "id") == 0 ? NULL : key);
    else
        offer_keys(l, m, part, "=");
    free(key);
    free(value);
    free(part);
    hg_matrix_free(m);
}

/* ---- Options and their values ---- */

static const struct hg_opt *find_option(const struct hg_cmd *cmd, const char *word, size_t n)
{
    for (const struct hg_opt *o = cmd->opts; o && o->kind != HG_OPT_END; o++)
        if ((n == 2 && word[1] == o->letter) ||
            (n == strlen(o->name) + 2 && strncmp(word, "--", 2) == 0 &&
             memcmp(word + 2, o->name, n - 2) == 0))
            return o;
    return NULL;
}

static void offer_sites(const struct line *l)
{
    struct hg_words names = HG_WORDS_INIT;

    hg_site_names(&names);
    for (size_t i = 0; i < names.n; i++)
        offer(l, "", names.items[i], NULL);
    hg_words_done(&names);
    offer_files(l, ".json");
}

static void offer_metrics(const struct line *l)
{
    const char *key, *type, *doc;

    for (size_t i = 0; (key = hg_result_key_known(i, &type, &doc)); i++)
        offer(l, "", key, doc);
}

/* One of the words that the option's help lists; false if it lists none. */
static bool offer_words(const struct line *l, const struct hg_opt *o)
{
    struct hg_buf words = HG_BUF_INIT;
    char *before = part_before(l, ","), *save = NULL;
    bool any;

    hg_opt_words(o, &words);
    any = words.len > 0;
    for (char *word = any ? strtok_r(words.data, " ", &save) : NULL; word;
         word = strtok_r(NULL, " ", &save)) {
        if (strchr(word, '='))
            strchr(word, '=')[1] = '\0';
        offer(l, before, word, NULL);
    }
    free(before);
    hg_buf_done(&words);
    return any;
}

static void offer_keys_of_list(const struct line *l)
{
    struct hg_matrix *m = find_matrix(l);
    char *before = part_before(l, ",");

    offer_keys(l, m, before, "");
    free(before);
    hg_matrix_free(m);
}

static void offer_value(const struct line *l, const struct hg_opt *o)
{
    if (!o->arg || offer_words(l, o)) /* a flag has no value */
        return;
    if (strcmp(o->arg, "SELECTOR") == 0 || strcmp(o->arg, "MEMBERS") == 0)
        offer_selector(l);
    else if (strcmp(o->arg, "SITE") == 0)
        offer_sites(l);
    else if (strcmp(o->arg, "KEYS") == 0)
        offer_keys_of_list(l);
    else if (strcmp(o->arg, "KEY") == 0)
        offer_metrics(l);
    else if (strcmp(o->arg, "RUN") == 0)
        offer_runs(l);
    else if (strcmp(o->arg, "DIR") == 0 || strcmp(o->arg, "FILE") == 0)
        offer_files(l, "");
}

static void offer_options(const struct line *l, const struct hg_cmd *cmd)
{
    for (const struct hg_opt *o = cmd->opts; o && o->kind != HG_OPT_END; o++) {
        char *word = hg_str_printf("--%s", o->name);

        offer(l, "", word, o->help);
        free(word);
    }
    offer(l, "", "--help", "describe the command");
}

/* ---- Operands ---- */

static void offer_cells(const struct line *l)
{
    struct hg_matrix *m = find_matrix(l);

    if (m)
        offer_values(l, m, "", NULL);
    hg_matrix_free(m);
}

/* The words of "up|down|status|list [NAME]". */
static void offer_choices(const struct line *l, const char *args)
{
    for (size_t n; *args; args += n) {
        char *word;

        args += strspn(args, "[]|");
        n = strcspn(args, "[]| ");
        word = hg_strndup(args, n);
        if (n && strspn(word, "abcdefghijklmnopqrstuvwxyz") == n)
            offer(l, "", word, NULL);
        free(word);
        if (args[n] == ' ')
            break;
    }
}

static void offer_commands(const struct line *l)
{
    for (const struct hg_cmd *const *c = hg_commands; *c; c++)
        if (!(*c)->hidden)
            offer(l, "", (*c)->name, (*c)->summary);
}

static void offer_operand(const struct line *l, const struct hg_cmd *cmd)
{
    const char *args = cmd->args;

    if (strstr(args, "TOPIC")) {
        offer_commands(l);
        for (const struct hg_topic *t = hg_topics; t->name; t++)
            offer(l, "", t->name, t->summary);
    } else if (l->operands && strstr(args, "CELL")) {
        offer_cells(l);
    } else if (cmd->max_args < 0 || l->operands < cmd->max_args) {
        if (l->operands == 0)
            offer_choices(l, args);
        if (strstr(args, "RUN") || strstr(args, "A..."))
            offer_runs(l);
        if (strstr(args, "RUN") || strstr(args, "A...") || strstr(args, "MATRIX"))
            offer_files(l, ".json");
    }
}

/* ---- The line ---- */

/* Read what stands before the word that is being typed. Returns the option whose value that word is; NULL: it is none. */
static const struct hg_opt *read_line(struct line *l, const struct hg_cmd *cmd)
{
    const struct hg_opt *open = NULL;

    for (int i = 0; i + 1 < l->n; i++) {
        const char *word = l->words[i];
        size_t n = strcspn(word, "=");
        const struct hg_opt *o = open;

        open = NULL;
        if (!o && !l->only_operands && word[0] == '-' && word[1]) {
            l->only_operands = strcmp(word, "--") == 0;
            o = find_option(cmd, word, n);
            if (o && o->kind != HG_OPT_FLAG && !word[n])
                open = o;
            else if (o && word[n] && strcmp(o->name, "reports") == 0)
                l->reports = word + n + 1;
        } else if (o && strcmp(o->name, "reports") == 0) {
            l->reports = word;
        } else if (!o && l->operands++ == 0) {
            l->operand = word;
        }
    }
    return open;
}

static int run(int argc, char **argv, struct hg_errs *errs)
{
    struct line l = { .words = argv + 1, .n = argc - 1, .typed = argv[argc - 1] };
    const struct hg_cmd *cmd = argc > 1 ? hg_commands_find(argv[0], NULL) : NULL;
    const struct hg_opt *o = cmd ? read_line(&l, cmd) : NULL;
    size_t n = strcspn(l.typed, "=");

    (void)errs;
    if (argc == 1) {
        l = (struct line){ .words = argv, .n = 1, .typed = argv[0] };
        offer_commands(&l);
        return 0;
    }
    if (!cmd)
        return 0;
    if (!o && !l.only_operands && l.typed[0] == '-' && l.typed[n] &&
        (o = find_option(cmd, l.typed, n))) {
        l.kept = n + 1;
        l.typed += n + 1;
    }
    if (o)
        offer_value(&l, o);
    else if (l.typed[0] == '-' && !l.only_operands)
        offer_options(&l, cmd);
    else
        offer_operand(&l, cmd);
    return 0;
}

const struct hg_cmd hg_cmd_complete = {
    .name = "complete",
    .args = "-- WORD...",
    .summary = "List what a shell offers for the last of the words.",
    .min_args = 1,
    .max_args = -1,
    .hidden = true,
    .any_files = true,
    .run = run,
};
