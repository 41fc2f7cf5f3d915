/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <string.h>

#include "base/text.h"
#include "cmd/print.h"
#include "matrix/schema.h"
#include "matrix/site.h"

static const char *const kinds[] = { "matrix", "site" };

static int run(int argc, char **argv, struct hg_errs *errs)
{
    const char *kind = argc ? argv[0] : "matrix";
    json_t *schema;

    if (strcmp(kind, "matrix") == 0) {
        schema = hg_matrix_schema(errs);
    } else if (strcmp(kind, "site") == 0) {
        schema = hg_site_schema();
    } else {
        struct hg_err *err = hg_errs_next(errs);

        hg_err_set(err, HG_E_USAGE, "schema: unknown kind \"%s\"", kind);
        hg_text_suggest(err, kind, kinds, 2);
        return -1;
    }
    if (errs->n) {
        json_decref(schema);
        return -1;
    }
    hg_print_json(schema);
    return 0;
}

const struct hg_cmd hg_cmd_schema = {
    .name = "schema",
    .args = "[matrix|site]",
    .summary = "Print the JSON Schema of matrix or site files.",
    .details =
        "Editors use it to complete and check what you type: write\n"
        "\"$schema\": \"./matrix.schema.json\" in a matrix in the same folder as that file.\n"
        "It knows the hardware of the sites here, those of $HPCGRID_SITES too.",
    .max_args = 1,
    .run = run,
};
