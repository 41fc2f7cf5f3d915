/* SPDX-License-Identifier: Apache-2.0 */
#include "rundir/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/text.h"
#include "matrix/several.h"

#define RUNS_MAX 999999 /* longer digit strings are somebody else's folders */

/* "001" -> 1; 0 if this is not a run's name. */
static int run_number(const char *text)
{
    size_t n = strspn(text, "0123456789");

    if (n < 3 || n > 6 || text[n] != '\0')
        return 0;
    return atoi(text);
}

/* Say what to do about a place that cannot be written. */
static int cannot_create(const char *path, struct hg_err *err)
{
    int sys = errno;

    hg_err_sys(err, "cannot create run folder %s", path);
    if (sys == ENOSPC || sys == EDQUOT)
        return hg_err_hint(err, "free some space there, or choose another place with --reports DIR "
                                "or HPCGRID_REPORTS");
    return hg_err_hint(err, "make it writable, or choose another place with --reports DIR or "
                            "HPCGRID_REPORTS");
}

/* Others must not be able to put files into a run or to swap it for another. */
static int check_private(const char *path, struct hg_err *err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return hg_err_sys(err, "cannot look at run folder %s", path);
    if (!S_ISDIR(st.st_mode))
        return hg_err_set(err, HG_E_ENV, "%s is not a folder", path);
    if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)) {
        hg_err_set(err, HG_E_ENV, "run folder %s can be written by everybody (mode %04o)", path,
                   (unsigned)(st.st_mode & 07777));
        return hg_err_hint(err, "chmod o-w %s", path);
    }
    return 0;
}

/* In a folder where everybody may create files, one of this name may be somebody else's, made in advance. */
static int check_owner(const char *path, const char *parent, struct hg_err *err)
{
    struct stat st, above;

    if (lstat(path, &st) < 0 || stat(parent, &above) < 0 || !(above.st_mode & S_IWOTH))
        return 0;
    if (!(above.st_mode & S_ISVTX) && strcmp(path, parent) != 0) {
        hg_err_set(err, HG_E_ENV, "everybody can replace %s: its folder has mode %04o", path,
                   (unsigned)(above.st_mode & 07777));
        return hg_err_hint(err,
                           "chmod o-w %s, or choose another place with --reports DIR or "
                           "HPCGRID_REPORTS",
                           parent);
    }
    if (st.st_uid == geteuid() || st.st_uid == 0)
        return 0;
    hg_err_set(err, HG_E_ENV, "%s belongs to user %u, and everybody can create it", path,
               (unsigned)st.st_uid);
    return hg_err_hint(err, "choose another place with --reports DIR or HPCGRID_REPORTS");
}

/* No other user may have made a part of this path, or be able to swap it. Members of a group that may write are trusted. */
static int check_owners(const char *dir, struct hg_err *err)
{
    char *path = hg_strdup(dir);
    int rc = 0;

    while (rc == 0 && path[0] && strcmp(path, "/") != 0) {
        char *parent = hg_fs_dirname(path);

        rc = check_owner(path, parent, err);
        free(path);
        path = parent;
    }
    free(path);
    return rc;
}

/* The folder of all runs of a name as it is written, with its links, and where they lead. */
static int check_place(const char *root, const char *dir, struct hg_err *err)
{
    char cwd[PATH_MAX];
    char *written;
    int rc;

    if (root[0] != '/' && !getcwd(cwd, sizeof cwd))
        return hg_err_sys(err, "cannot find the working directory");
    written = root[0] == '/' ? hg_fs_join(root, hg_fs_basename(dir))
                             : hg_str_printf("%s/%s/%s", cwd, root, hg_fs_basename(dir));
    rc = check_owners(written, err);
    free(written);
    return rc == 0 ? check_owners(dir, err) : rc;
}

/* The highest run number in a folder of runs; 0 if there is none, -1 with err set. */
static int newest_number(const char *dir, struct hg_err *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    int newest = 0;

    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return hg_err_sys(err, "cannot read folder %s", dir);
    while ((entry = readdir(d))) {
        int number = run_number(entry->d_name);

        if (number > newest) {
            char *path = hg_fs_join(dir, entry->d_name);

            newest = hg_fs_is_dir(path) ? number : newest;
            free(path);
        }
    }
    closedir(d);
    return newest;
}

/* Absolute folder of all runs of a name; yours. */
static char *runs_folder(const char *root, const char *name, struct hg_err *err)
{
    char *top, *dir;

    if (!hg_text_is_name(name)) {
        hg_err_set(err, HG_E_INPUT, "\"%s\" cannot name a run", name);
        hg_err_hint(err, "letters, digits, \".\", \"_\" and \"-\", at most 64");
        return NULL;
    }
    top = hg_fs_absolute(root, err);
    dir = top ? hg_fs_join(top, name) : NULL;
    free(top);
    return dir;
}

static int open_numbered(const char *dir, const char *name, int number, struct hg_rundir *rd,
                         struct hg_err *err)
{
    char *path = hg_str_printf("%s/%03d", dir, number);

    if (!hg_fs_is_dir(path)) {
        hg_err_set(err, HG_E_NOTFOUND, "there is no run %03d of \"%s\" (%s)", number, name, path);
        free(path);
        return -1;
    }
    if (check_private(path, err) < 0) {
        free(path);
        return -1;
    }
    *rd = (struct hg_rundir){ .path = path, .name = hg_strdup(name), .number = number };
    return 0;
}

int hg_rundir_newest(const char *root, const char *name, struct hg_rundir *rd, struct hg_err *err)
{
    char *dir = runs_folder(root, name, err);
    int number = dir && check_place(root, dir, err) == 0 ? newest_number(dir, err) : -1;
    int rc = -1;

    if (number == 0) {
        hg_err_set(err, HG_E_NOTFOUND, "\"%s\" has no run yet in %s", name, root);
        hg_err_hint(err, "hpcgrid run MATRIX begins one; --reports DIR looks elsewhere");
    } else if (number > 0) {
        rc = open_numbered(dir, name, number, rd, err);
    }
    free(dir);
    return rc;
}

/* mkdir decides: of several processes that try the same number one gets it. The others try the next, or learn of it by 1. */
static int claim_number(const char *dir, int number, bool stop_at_run, struct hg_rundir *rd,
                        struct hg_err *err)
{
    for (; number > 0 && number <= RUNS_MAX; number++) {
        char *path = hg_str_printf("%s/%03d", dir, number);

        if (mkdir(path, 0700) == 0) {
            *rd = (struct hg_rundir){ .path = path, .number = number };
            return 0;
        }
        if (errno != EEXIST) {
            cannot_create(path, err);
            free(path);
            return -1;
        }
        if (stop_at_run && hg_fs_is_dir(path)) {
            free(path);
            return 1;
        }
        free(path);
    }
    return hg_err_set(err, HG_E_ENV, "too many runs in %s", dir);
}

int hg_rundir_create(const char *root, const char *name, int after, struct hg_rundir *rd,
                     struct hg_err *err)
{
    char *dir = runs_folder(root, name, err);
    int rc = -1;

    if (!dir)
        return -1;
    if (hg_fs_mkdirs(dir, 0700, err) < 0)
        cannot_create(dir, err); /* the first error stays; this adds what to do */
    else if (check_private(dir, err) == 0 && check_place(root, dir, err) == 0)
        rc = claim_number(dir, (after < 0 ? newest_number(dir, err) : after) + 1, after >= 0, rd,
                          err);
    if (rc == 0) {
        rd->name = hg_strdup(name);
        rc = hg_fs_sync_dir(dir, err);
        if (rc < 0)
            hg_rundir_done(rd);
    }
    free(dir);
    return rc;
}

static bool is_run_folder(const char *path)
{
    char *matrix = hg_fs_join(path, "matrix.json");
    char *plan = hg_fs_join(path, "plan.json");
    bool is = hg_fs_is_dir(path) &&
              (hg_fs_exists(matrix) || hg_fs_exists(plan) || run_number(hg_fs_basename(path)));

    free(matrix);
    free(plan);
    return is;
}

/* A run folder by its path. A folder that has another name than a number gives its own name to the run. */
static int open_folder(const char *word, struct hg_rundir *rd, struct hg_err *err)
{
    char *path = hg_fs_absolute(word, err), *parent;
    int number;

    if (!path || check_private(path, err) < 0) {
        free(path);
        return -1;
    }
    parent = hg_fs_dirname(path);
    number = run_number(hg_fs_basename(path));
    *rd = (struct hg_rundir){ .path = path,
                              .name = hg_strdup(strrchr(number ? parent : path, '/') + 1),
                              .number = number };
    free(parent);
    return 0;
}

/* "NAME/2": that run of that name. 1 if the word has another form. */
static int open_by_number(const char *root, const char *word, struct hg_rundir *rd,
                          struct hg_err *err)
{
    const char *slash = strrchr(word, '/');
    char name[65];
    char *dir;
    int number, rc;

    if (!slash || slash == word || (size_t)(slash - word) >= sizeof name)
        return 1;
    snprintf(name, sizeof name, "%.*s", (int)(slash - word), word);
    number = atoi(slash + 1);
    if (!hg_text_is_name(name) || number <= 0 ||
        strspn(slash + 1, "0123456789") != strlen(slash + 1))
        return 1;
    dir = runs_folder(root, name, err);
    rc = dir ? open_numbered(dir, name, number, rd, err) : -1;
    free(dir);
    return rc;
}

/* Is "name" of the run's file, or of this object in it, the text? */
static bool is_named(const struct hg_rundir *rd, const char *file, const char *object,
                     const char *text)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    char *path = hg_rundir_path(rd, "%s", file);
    const char *name = NULL;
    bool is;

    if (hg_json_load(path, &doc, NULL) == 0)
        name = json_string_value(
            json_object_get(object ? json_object_get(doc.root, object) : doc.root, "name"));
    is = name && strcmp(name, text) == 0;
    hg_json_doc_done(&doc);
    free(path);
    return is;
}

/* Is the newest run of this folder, NAME.SITE, of the matrix NAME? A run keeps the matrix as it was written. */
static bool is_part(const char *root, const char *folder, const char *name)
{
    size_t n = strlen(name);
    struct hg_rundir rd = { 0 };
    bool is = strncmp(folder, name, n) == 0 && folder[n] == '.' &&
              hg_rundir_newest(root, folder, &rd, NULL) == 0 &&
              is_named(&rd, "plan.json", "site", folder + n + 1) &&
              is_named(&rd, "matrix.json", NULL, name);

    hg_rundir_done(&rd);
    return is;
}

static void list_parts(const char *root, const char *name, struct hg_words *parts)
{
    DIR *d = opendir(root);
    struct dirent *entry;

    while (d && (entry = readdir(d)))
        if (is_part(root, entry->d_name, name))
            hg_words_push(parts, entry->d_name);
    if (d)
        closedir(d);
    hg_words_sort(parts);
}

/* None if there is a run of the name itself and the matrix has not several sites. *plain: that run's folder where it is left out; yours. */
static void find_parts(const char *root, const json_t *matrix, struct hg_words *parts, char **plain)
{
    const char *name = json_string_value(json_object_get(matrix, "name"));
    char *dir = name ? hg_fs_join(root, name) : NULL;
    bool is_run = dir && hg_fs_is_dir(dir);

    if (dir && json_object_get(matrix, "hpcgrid") && (!is_run || hg_several_in(matrix)))
        list_parts(root, name, parts);
    *plain = parts->n && is_run ? dir : NULL;
    if (!*plain)
        free(dir);
}

int hg_rundir_parts(const char *root, const char *path, struct hg_words *parts, char **plain,
                    struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;

    *plain = NULL;
    if (hg_json_load(path, &doc, err) < 0)
        return -1;
    find_parts(root, doc.root, parts, plain);
    hg_json_doc_done(&doc);
    return 0;
}

/* Of a matrix with several sites: the run at $HPCGRID_SITE, else the only one. */
static int open_part(const char *root, const char *name, const struct hg_words *parts,
                     struct hg_rundir *rd, struct hg_err *err)
{
    const char *site = getenv("HPCGRID_SITE");
    struct hg_buf list = HG_BUF_INIT;
    int rc = 1;

    for (size_t i = 0; i < parts->n && rc == 1; i++)
        if (parts->n == 1 || (site && strcmp(parts->items[i] + strlen(name) + 1, site) == 0))
            rc = hg_rundir_newest(root, parts->items[i], rd, err);
    for (size_t i = 0; i < parts->n; i++)
        hg_buf_printf(&list, "%s%s", i ? ", " : "", parts->items[i]);
    if (rc == 1) {
        hg_err_set(err, HG_E_USAGE, "\"%s\" has runs at %zu sites", name, parts->n);
        rc = hg_err_hint(err, "name one instead of the matrix (%s), or set HPCGRID_SITE",
                         hg_buf_str(&list));
    }
    hg_buf_done(&list);
    return rc;
}

/* A matrix file means the newest run of its name. */
static int open_of_matrix(const char *root, const char *path, struct hg_rundir *rd,
                          struct hg_err *err)
{
    struct hg_json_doc doc = HG_JSON_DOC_INIT;
    struct hg_words parts = HG_WORDS_INIT;
    const char *name;
    char *plain;
    int rc = -1;

    if (hg_json_load(path, &doc, err) < 0)
        return -1;
    find_parts(root, doc.root, &parts, &plain);
    free(plain);
    name = json_string_value(json_object_get(doc.root, "name"));
    if (parts.n)
        rc = open_part(root, name, &parts, rd, err);
    else if (name)
        rc = hg_rundir_newest(root, name, rd, err);
    else
        hg_err_set(err, HG_E_INPUT, "%s has no \"name\"", path);
    hg_words_done(&parts);
    hg_json_doc_done(&doc);
    return rc;
}

/* A matrix or a set of results, not a run: no run has this name. */
static bool is_missing_file(const char *root, const char *word)
{
    size_t n = strlen(word);
    char *dir = hg_fs_join(root, word);
    bool is = n > 5 && strcmp(word + n - 5, ".json") == 0 && !hg_fs_is_dir(dir);

    free(dir);
    return is;
}

int hg_rundir_find(const char *root, const char *word, struct hg_rundir *rd, struct hg_err *err)
{
    int rc;

    if (is_run_folder(word))
        return open_folder(word, rd, err);
    if (hg_fs_exists(word) && !hg_fs_is_dir(word))
        return open_of_matrix(root, word, rd, err);
    if (is_missing_file(root, word))
        return hg_err_set(err, HG_E_NOTFOUND, "there is no file %s", word);
    rc = open_by_number(root, word, rd, err);
    if (rc != 1)
        return rc;
    if (hg_text_is_name(word))
        return hg_rundir_newest(root, word, rd, err);
    hg_err_set(err, HG_E_NOTFOUND, "%s is neither a run folder nor a matrix file nor a run's name",
               word);
    return -1;
}

void hg_rundir_done(struct hg_rundir *rd)
{
    free(rd->path);
    free(rd->name);
    *rd = (struct hg_rundir){ 0 };
}

char *hg_rundir_path(const struct hg_rundir *rd, const char *fmt, ...)
{
    struct hg_buf path = HG_BUF_INIT;
    va_list ap;

    hg_buf_printf(&path, "%s/", rd->path);
    va_start(ap, fmt);
    hg_buf_vprintf(&path, fmt, ap);
    va_end(ap);
    return hg_buf_detach(&path);
}
