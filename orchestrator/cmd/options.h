/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_CMD_OPTIONS_H
#define HG_CMD_OPTIONS_H

#include "base/opt.h"

/* Options that several commands take, each defined once with its help text. `target` is the address of the command's variable, of
 * the type in the comment. They go into a command's table, next to its own options:
 *
 *     static const struct hg_opt opts[] = { HG_OPTION_SELECT(&select_text), HG_OPTION_JSON(&as_json), { 0 } };
 */

/* clang-format off */
#define HG_OPTION_FLAG(letter, name, target, help) { HG_OPT_FLAG, letter, name, target, NULL, help, 0, 0 }
#define HG_OPTION_TEXT(letter, name, target, arg, help) { HG_OPT_STRING, letter, name, target, arg, help, 0, 0 }

/* bool */
#define HG_OPTION_JSON(target) HG_OPTION_FLAG('j', "json", target, "print JSON")
#define HG_OPTION_IDS(target) HG_OPTION_FLAG(0, "ids", target, "also show the cells' ids")
#define HG_OPTION_NEW(target) HG_OPTION_FLAG('n', "new", target, "start a new run instead of continuing the newest")
#define HG_OPTION_STEAL(target) HG_OPTION_FLAG(0, "steal", target, "take the run over from a process on another machine")
/* bool, true beforehand */
#define HG_OPTION_DATA_CHECK(target) HG_OPTION_FLAG(0, "data-check", target, "check the data first (--no-data-check skips it)")

/* const char * */
#define HG_OPTION_REPORTS_HELP "folder of all runs (HPCGRID_REPORTS, ./reports)"
#define HG_OPTION_REPORTS(target) HG_OPTION_TEXT(0, "reports", target, "DIR", HG_OPTION_REPORTS_HELP)
#define HG_OPTION_SELECT(target) HG_OPTION_TEXT('s', "select", target, "SELECTOR", "only these cells: nodes=2..8,strategy!=dp or jq")
#define HG_OPTION_WHERE(target) HG_OPTION_TEXT('w', "where", target, "SELECTOR", "only these cells: strategy=ddp,nodes=1..4")
#define HG_OPTION_SITE(target) HG_OPTION_TEXT(0, "site", target, "SITE", "a site's name or file; of several: which is here")
#define HG_OPTION_NOTIFY(target) HG_OPTION_TEXT(0, "notify", target, "CMD", "run CMD at the end, and when a person is needed")
#define HG_OPTION_NUMBERS(target) HG_OPTION_TEXT(HG_OPT_RARE, "numbers", target, "WORDS", "some of comma,locale,durations,decimals=N,speedup=N")
/* forms: their names, with blanks between them */
#define HG_OPTION_FORM(target, forms) HG_OPTION_TEXT('f', "format", target, "FORMAT", "one of" forms)

/* double, in percent */
#define HG_OPTION_TOLERANCE(target) { HG_OPT_REAL, 't', "tolerance", target, "PERCENT", "smaller changes count as none (5)", 0.001, 1000 }
#define HG_OPTION_BETWEEN(target) { HG_OPT_REAL, 0, "between", target, "PERCENT", "how much whole runs of the same code differ (3)", 0, 1000 }
/* clang-format on */

/* The folder of all runs: the value of --reports, else of HPCGRID_REPORTS, else "reports". */
const char *hg_options_reports(const char *value);

#endif
