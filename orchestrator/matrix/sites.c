/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/text.h"
#include "matrix/pointer.h"
#include "matrix/site.h"

#define SITES_MAX 64
#define EXTENDS_MAX 8

static struct hg_site *load(const char *path, int depth, struct hg_errs *errs);

/* ---- Where sites are found ---- */

/* The folders that hold sites, in the order they are searched: beside an installed program, the
 * source tree it was built from, $HPCGRID_SITES. Yours to free. */
static size_t list_folders(char *folders[3])
{
    char *self = hg_fs_self(NULL);
    char *bin = self ? hg_fs_dirname(self) : NULL;
    const char *own = getenv("HPCGRID_SITES");
    size_t n = 0;

    if (bin)
        folders[n++] = hg_fs_join(bin, "../share/hpcgrid/templates/sites");
    folders[n++] = hg_fs_join(HPCGRID_TEMPLATES_DIR, "sites");
    if (own && *own)
        folders[n++] = hg_strdup(own);
    free(bin);
    free(self);
    return n;
}

static char *find_named(const char *name)
{
    char *folders[3], *found = NULL;
    size_t n = list_folders(folders);

    for (size_t i = 0; i < n; i++) {
        char *path = hg_str_printf("%s/%s.json", folders[i], name);

        if (!found && hg_fs_exists(path))
            found = path;
        else
            free(path);
        free(folders[i]);
    }
    return found;
}

static void list_names(const char *folder, struct hg_words *names)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) && names->n < SITES_MAX) {
        size_t len = strlen(entry->d_name);

        if (len <= 5 || entry->d_name[0] == '.' || strcmp(entry->d_name + len - 5, ".json") != 0)
            continue;
        entry->d_name[len - 5] = '\0';
        if (!names->n ||
            !hg_text_is_one_of(entry->d_name, len - 5, (const char *const *)names->items))
            hg_words_push(names, entry->d_name);
    }
    if (dir)
        closedir(dir);
}

void hg_site_names(struct hg_words *names)
{
    char *folders[3];
    size_t n_folders = list_folders(folders);

    for (size_t i = 0; i < n_folders; i++) {
        list_names(folders[i], names);
        free(folders[i]);
    }
    hg_words_sort(names);
}

void hg_site_suggest(const char *word, struct hg_err *err)
{
    struct hg_words names = HG_WORDS_INIT;

    hg_site_names(&names);
    hg_text_suggest(err, word, (const char *const *)names.items, names.n);
    hg_words_done(&names);
}

static bool is_path(const char *word)
{
    size_t n = strlen(word);

    return strchr(word, '/') || (n > 5 && strcmp(word + n - 5, ".json") == 0);
}

/* Path of the file a name or path means; yours. NULL with err set. */
static char *resolve(const char *word, const char *dir, struct hg_err *err)
{
    char *path;

    if (is_path(word))
        return strcmp(dir, ".") == 0 ? hg_strdup(word) : hg_fs_join(dir, word);
    path = hg_text_is_name(word) ? find_named(word) : NULL;
    if (!path) {
        hg_err_set(err, HG_E_INPUT, "unknown site \"%.70s\"", word);
        hg_site_suggest(word, err);
    }
    return path;
}

/* The file that a value of doc names; yours. NULL: there is none, and errs says so. */
static char *choose(const struct hg_json_doc *doc, const char *word, const char *pointer,
                    const char *dir, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    char *path = resolve(word, dir, &err);

    if (!path)
        hg_err_hint(hg_json_error(doc, pointer, errs, "%s", err.text), "%s", err.hint);
    else if (hg_fs_exists(path))
        return path;
    else
        hg_json_error(doc, pointer, errs, "there is no site file \"%s\"", word);
    free(path);
    return NULL;
}

/* An error in the site's file says which line chose it. */
static struct hg_site *load_chosen(const struct hg_json_doc *doc, const char *pointer,
                                   const char *path, int depth, struct hg_errs *errs)
{
    size_t before = errs->n;
    struct hg_site *site = load(path, depth, errs);
    struct hg_err *first = errs->n > before ? &errs->items[before] : NULL;

    if (first) {
        char *place = hg_pointer_place(doc, pointer, "chosen here");
        char *hint = hg_str_printf("%s%s%s", first->hint, first->hint[0] ? "\n  " : "", place);

        hg_err_hint(first, "%s", hint);
        free(hint);
        free(place);
    }
    return site;
}

/* ---- A site that adds to another ---- */

/* The site that `value` names in "extends", with the members of value in the place of its own, or beside them in
 * objects; a new reference. NULL: it cannot be read, and errs says why. */
static json_t *extend(const struct hg_json_doc *doc, const json_t *value, const char *pointer,
                      const char *dir, int depth, struct hg_errs *errs)
{
    const json_t *word = json_object_get(value, "extends");
    char *place = hg_str_printf("%s/extends", pointer), *path = NULL;
    struct hg_site *base = NULL;
    json_t *all = NULL;

    if (!json_is_string(word))
        hg_json_error(doc, place, errs, "expected the name or path of a site, found %s",
                      hg_json_type_name(word));
    else if (depth >= EXTENDS_MAX)
        hg_json_error(doc, place, errs, "sites extend each other in a circle, or more than %d deep",
                      EXTENDS_MAX);
    else if ((path = choose(doc, json_string_value(word), place, dir, errs)))
        base = load_chosen(doc, place, path, depth + 1, errs);
    if (base) {
        all = json_incref(base->json);
        json_object_update_recursive(all, (json_t *)value);
        json_object_del(all, "extends");
    }
    hg_site_free(base);
    free(path);
    free(place);
    return all;
}

/* As sbatch does it; kept in site.json, so that the run goes on with it from any shell. */
static void take_account(struct hg_site *site)
{
    const char *account = getenv("SBATCH_ACCOUNT");

    if (site->account || !account || !*account)
        return;
    site->account = hg_strdup(account);
    json_object_set_new(site->json, "account", json_string(account));
}

int hg_site_take_account(struct hg_site *site, const struct hg_json_doc *doc, const char *pointer,
                         struct hg_errs *errs)
{
    bool given;

    take_account(site);
    given = site->account != NULL || !site->account_required;
    for (size_t i = 0; i < site->n_hardware && !given; i++)
        given = site->hardware[i].account != NULL;
    if (!given)
        hg_err_hint(
            hg_json_error(doc, pointer, errs, "site %s wants an account to charge", site->name),
            "set SBATCH_ACCOUNT, or write \"site\": {\"extends\": \"%s\", \"account\": \"...\"}",
            site->name);
    return given ? 0 : -1;
}

/* depth: how many sites extend this one. */
static struct hg_site *make_site(const struct hg_json_doc *doc, const json_t *value,
                                 const char *pointer, const char *name, const char *dir, int depth,
                                 struct hg_errs *errs)
{
    json_t *all = json_object_get(value, "extends") ? extend(doc, value, pointer, dir, depth, errs)
                                                    : json_incref((json_t *)value);
    struct hg_site *site = all ? hg_site_decode(doc, all, pointer, name, errs) : NULL;

    json_decref(all);
    if (!site || depth || hg_site_take_account(site, doc, pointer, errs) == 0)
        return site;
    hg_site_free(site);
    return NULL;
}

/* ---- From files ---- */

static struct hg_site *load(const char *path, int depth, struct hg_errs *errs)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_err err = HG_ERR_INIT;
    struct hg_site *site = NULL;
    const char *base = hg_fs_basename(path);
    char *stem = hg_strndup(base, strcspn(base, ".")), *dir = hg_fs_dirname(path);

    if (hg_json_load(path, &doc, &err) < 0)
        hg_errs_add(errs, &err);
    else
        site = make_site(&doc, doc.root, "", stem, dir, depth, errs);
    hg_json_doc_done(&doc);
    free(dir);
    free(stem);
    return site;
}

struct hg_site *hg_site_load(const char *path, struct hg_errs *errs)
{
    return load(path, 0, errs);
}

struct hg_site *hg_site_base(const char *name, struct hg_errs *errs)
{
    char *path = find_named(name);
    struct hg_site *site = path ? load(path, 1, errs) : NULL;

    free(path);
    return site;
}

struct hg_site *hg_site_find(const char *word, struct hg_errs *errs)
{
    struct hg_err err = HG_ERR_INIT;
    char *path = resolve(word, ".", &err);
    struct hg_site *site = path ? hg_site_load(path, errs) : NULL;

    hg_errs_add(errs, &err);
    free(path);
    return site;
}

struct hg_site *hg_site_of_axis(const struct hg_json_doc *doc, const json_t *value,
                                const char *pointer, const char *dir, struct hg_errs *errs)
{
    char *path = choose(doc, json_string_value(value), pointer, dir, errs);
    struct hg_site *site = path ? load_chosen(doc, pointer, path, 1, errs) : NULL;

    free(path);
    return site;
}

struct hg_site *hg_site_from_value(const struct hg_json_doc *doc, const json_t *value,
                                   const char *pointer, const char *dir, struct hg_errs *errs)
{
    struct hg_site *site;
    char *path;

    if (!value)
        return hg_site_find("box", errs);
    if (json_is_object(value))
        return make_site(doc, value, pointer, "inline", dir, 0, errs);
    if (!json_is_string(value)) {
        hg_json_error(doc, pointer, errs, "expected a site's name, path or object, found %s",
                      hg_json_type_name(value));
        return NULL;
    }
    path = choose(doc, json_string_value(value), pointer, dir, errs);
    site = path ? load_chosen(doc, pointer, path, 0, errs) : NULL;
    free(path);
    return site;
}
