/* SPDX-License-Identifier: Apache-2.0 */
#include "node/code.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "node/git.h"

/* Cells that start together on a shared file system each wait at most so long, and ask for one file after the other. */
#define LOOK_MAX_S 5.0
#define GIT_MAX_S 2.0
#define FILE_MAX_S 1.0 /* some 500 MB of a program */
#define WORDS_MAX 32

/* ---- The tracked files ---- */

/* path as seen from root; yours. NULL: it is not below. */
static char *below(const char *root, const char *path)
{
    char *base = realpath(root, NULL), *full = path ? realpath(path, NULL) : NULL;
    size_t n = base ? strlen(base) : 0;
    char *rest = base && full && strncmp(base, full, n) == 0 && full[n] == '/'
                     ? hg_strdup(full + n + 1)
                     : NULL;

    free(base);
    free(full);
    return rest;
}

static void set_dirty(json_t *code, const struct hg_git *g, const char *const *omit, bool changed)
{
    int staged = changed ? 1 : hg_git_is_staged(g, omit, GIT_MAX_S);

    if (staged >= 0)
        json_object_set_new(code, "dirty", json_boolean(staged));
}

static void look_at_tree(const struct hg_code_place *p, const struct hg_git *g, json_t *code)
{
    char *paths[3] = { below(g->root, p->run), below(g->root, p->matrix) };
    const char *omit[3] = { NULL };
    struct hg_git_tree tree;
    int n = 0;

    for (int i = 0; i < 2; i++)
        if (paths[i])
            omit[n++] = paths[i];
    hg_git_look(g, omit, LOOK_MAX_S, &tree);
    if (tree.known) {
        set_dirty(code, g, omit, tree.changed);
        json_object_set_new(code, "hash", json_string(tree.hash));
    } else {
        json_object_set_new(
            code, "unknown",
            json_sprintf("looked at %zu of %zu tracked files", tree.seen, tree.files));
        if (tree.changed)
            json_object_set_new(code, "dirty", json_true());
    }
    free(paths[0]);
    free(paths[1]);
}

/* ---- Programs and scripts ---- */

/* What a command writes or reads may stand among its words, too. */
static bool is_code(const char *path)
{
    static const char *const endings[] = { "py", "sh", "jl",  "R", "r",   "pl", "lua",
                                           "rb", "js", "sql", "m", "jar", NULL };
    const char *dot = strrchr(hg_fs_basename(path), '.');

    return access(path, X_OK) == 0 || (dot && hg_text_is_one_of(dot + 1, strlen(dot + 1), endings));
}

static void add_file(const struct hg_code_place *p, const char *word, json_t *files)
{
    char *path = hg_fs_join(p->dir, word), hash[41];
    const char *name =
        strcmp(hg_fs_basename(word), "hpcgrid-worker") == 0 ? "hpcgrid-worker" : word;

    if (*word && strncmp(path, p->run, strlen(p->run)) != 0 && is_code(path) &&
        hg_git_name_file(path, FILE_MAX_S, hash))
        json_array_append_new(files,
                              json_pack("{s:o, s:s}", "name", hg_json_text(name), "hash", hash));
    free(path);
}

json_t *hg_code_files(const struct hg_code_place *p)
{
    json_t *files = json_array();

    for (size_t i = 0; p->words[i] && i < WORDS_MAX; i++)
        add_file(p, p->words[i], files);
    return files;
}

json_t *hg_code_of(const struct hg_code_place *p)
{
    json_t *code = json_object(), *files = hg_code_files(p);
    struct hg_git g;
    char *revision;

    hg_git_find(p->dir, &g);
    revision = hg_git_revision(&g);
    if (revision && *revision) {
        json_object_set_new(code, "revision", hg_json_text(revision));
        look_at_tree(p, &g, code);
    }
    if (json_array_size(files))
        json_object_set(code, "files", files);
    json_decref(files);
    free(revision);
    hg_git_done(&g);
    if (json_object_size(code))
        return code;
    json_decref(code);
    return NULL;
}
