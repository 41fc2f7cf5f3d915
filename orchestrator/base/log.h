/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_BASE_LOG_H
#define HG_BASE_LOG_H

/* Talk for people, on stderr, one line each: "hpcgrid: warning: ...". Facts for machines go to
 * results and events, never here. Level from HPCGRID_LOG (error, warn, info, debug); info if unset.
 * Library code says what happens while it runs (info, debug) and what is odd but harmless (warn);
 * failures are returned. */
enum hg_log_level { HG_LOG_ERROR, HG_LOG_WARN, HG_LOG_INFO, HG_LOG_DEBUG };

void hg_log(enum hg_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define hg_warn(...) hg_log(HG_LOG_WARN, __VA_ARGS__)
#define hg_info(...) hg_log(HG_LOG_INFO, __VA_ARGS__)
#define hg_debug(...) hg_log(HG_LOG_DEBUG, __VA_ARGS__)

/* The name in front of each line; the program's unless set. Kept, not copied. */
void hg_log_set_name(const char *name);

/* Hand each line, without its end, to take instead of stderr; NULL: back to stderr. */
void hg_log_divert(void (*take)(const char *line));

/* Print only what is at least this urgent; overrides HPCGRID_LOG. */
void hg_log_set_level(enum hg_log_level level);

#endif
