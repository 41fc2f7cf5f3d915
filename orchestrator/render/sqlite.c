/* SPDX-License-Identifier: Apache-2.0 */
/* Results as one table of an SQLite database. It is made anew under a temporary name: no journal, no locks (which shared file
 * systems may not have), one transaction. */
#include "render/exporter.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/map.h"

struct hg_export {
    sqlite3 *db;
    sqlite3_stmt *insert; /* NULL: the first line has not come yet */
};

static int db_failed(const struct hg_export *x, struct hg_err *err)
{
    return hg_err_set(err, HG_E_ENV, "SQLite: %s", x->db ? sqlite3_errmsg(x->db) : "no memory");
}

static int execute(struct hg_export *x, const char *sql, struct hg_err *err)
{
    return sqlite3_exec(x->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_failed(x, err);
}

static void sqlite_drop(struct hg_export *x)
{
    if (!x)
        return;
    sqlite3_finalize(x->insert);
    sqlite3_close(x->db);
    free(x);
}

static struct hg_export *sqlite_begin(const char *path, struct hg_err *err)
{
    struct hg_export *x = hg_alloc_zeroed(1, sizeof *x);
    int rc = sqlite3_open_v2(path, &x->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "unix-none");

    if (rc == SQLITE_OK &&
        execute(x, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", err) == 0)
        return x;
    if (rc != SQLITE_OK)
        db_failed(x, err);
    sqlite_drop(x);
    return NULL;
}

/* SQLite's names do not tell "lr" from "LR": the second one is "LR_2". */
static char *unique_name(struct hg_map *taken, const char *name)
{
    for (size_t n = 1;; n++) {
        char *own = n == 1 ? hg_strdup(name) : hg_str_printf("%s_%zu", name, n);
        char *lower = hg_strdup(own);
        size_t at = taken->n;

        for (char *c = lower; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        if (hg_map_put(taken, lower, strlen(lower), at) == at) {
            free(lower);
            return own;
        }
        free(lower);
        free(own);
    }
}

/* "name" INTEGER, ... */
static void append_columns(const json_t *names, struct hg_buf *sql)
{
    struct hg_map taken = HG_MAP_INIT;
    json_t *pair;
    size_t i;

    json_array_foreach(names, i, pair) {
        char *name = unique_name(&taken, json_string_value(json_array_get(pair, 0)));
        char *quoted = sqlite3_mprintf("%s\"%w\" %s", i ? ", " : "", name,
                                       json_string_value(json_array_get(pair, 1)));

        hg_buf_puts(sql, quoted);
        sqlite3_free(quoted);
        free(name);
    }
    hg_map_done(&taken);
}

static int make_table(struct hg_export *x, const json_t *names, struct hg_err *err)
{
    size_t n = json_array_size(names);
    int max = sqlite3_limit(x->db, SQLITE_LIMIT_COLUMN, -1);
    struct hg_buf sql = HG_BUF_INIT;
    int rc;

    if (n > (size_t)max) {
        hg_err_set(err, HG_E_INPUT, "%zu columns, SQLite has room for %d", n, max);
        return hg_err_hint(err, "choose cells that have less in common with --where, or use "
                                "`hpcgrid report --format csv`");
    }
    hg_buf_puts(&sql, "CREATE TABLE results (");
    append_columns(names, &sql);
    hg_buf_puts(&sql, ")");
    rc = execute(x, hg_buf_str(&sql), err);
    hg_buf_clear(&sql);
    hg_buf_puts(&sql, "INSERT INTO results VALUES (?");
    for (size_t i = 1; i < n; i++)
        hg_buf_puts(&sql, ",?");
    hg_buf_puts(&sql, ")");
    if (rc == 0 && sqlite3_prepare_v2(x->db, hg_buf_str(&sql), -1, &x->insert, NULL) != SQLITE_OK)
        rc = db_failed(x, err);
    hg_buf_done(&sql);
    return rc;
}

static void bind(sqlite3_stmt *insert, int at, const json_t *value)
{
    struct hg_buf text = HG_BUF_INIT;

    switch (json_typeof(value)) {
    case JSON_NULL:
        sqlite3_bind_null(insert, at);
        break;
    case JSON_INTEGER:
        sqlite3_bind_int64(insert, at, json_integer_value(value));
        break;
    case JSON_REAL:
        sqlite3_bind_double(insert, at, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        sqlite3_bind_int(insert, at, json_is_true(value));
        break;
    case JSON_STRING:
        sqlite3_bind_text(insert, at, json_string_value(value), (int)json_string_length(value),
                          SQLITE_STATIC);
        break;
    default: /* a list or an object, as CSV has it */
        hg_json_dump(value, HG_JSON_COMPACT | HG_JSON_SORT, &text);
        sqlite3_bind_text(insert, at, hg_buf_str(&text), (int)text.len, SQLITE_TRANSIENT);
        hg_buf_done(&text);
    }
}

static int add_line(struct hg_export *x, const char *text, size_t len, struct hg_err *err)
{
    json_t *line = json_loadb(text, len, JSON_ALLOW_NUL, NULL), *value;
    size_t i;
    int rc = 0;

    if (!line)
        rc = hg_err_set(err, HG_E_BUG, "a line of results is not JSON: %.*s", (int)len, text);
    else if (!x->insert)
        rc = make_table(x, line, err);
    else {
        json_array_foreach(line, i, value)
            bind(x->insert, (int)i + 1, value);
        if (sqlite3_step(x->insert) != SQLITE_DONE || sqlite3_reset(x->insert) != SQLITE_OK)
            rc = db_failed(x, err);
    }
    json_decref(line);
    return rc;
}

static int sqlite_put(void *context, const char *text, size_t len, struct hg_err *err)
{
    const char *end = text + len, *newline;

    for (; text < end; text = newline + 1) {
        newline = memchr(text, '\n', (size_t)(end - text));
        if (add_line(context, text, (size_t)(newline - text), err) < 0)
            return -1;
    }
    return 0;
}

static int sqlite_end(struct hg_export *x, struct hg_err *err)
{
    int rc = execute(x, "COMMIT", err);

    sqlite3_finalize(x->insert);
    x->insert = NULL;
    if (rc == 0 && sqlite3_close(x->db) != SQLITE_OK)
        return db_failed(x, err);
    if (rc == 0)
        x->db = NULL;
    return rc;
}

const struct hg_exporter hg_exporter_sqlite = {
    .name = "sqlite",
    .begin = sqlite_begin,
    .put = sqlite_put,
    .end = sqlite_end,
    .drop = sqlite_drop,
};
