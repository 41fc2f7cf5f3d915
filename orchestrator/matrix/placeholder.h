/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_MATRIX_PLACEHOLDER_H
#define HG_MATRIX_PLACEHOLDER_H

#include <stdbool.h>
#include <stddef.h>

#define HG_PLACEHOLDER_KEY_MAX 64

/* {{key}}, {{key...}} or {{key?text}} in a text; blanks just inside the braces are fine. */
struct hg_placeholder {
    const char *start, *end; /* of the whole, in the text */
    char key[HG_PLACEHOLDER_KEY_MAX + 1];
    bool several;     /* {{key...}}: each element of a list becomes a word */
    const char *text; /* {{key?text}}: what stands there if the member is true; else NULL */
    size_t text_len;
};

/* Does one begin here? */
bool hg_placeholder_parse(const char *at, struct hg_placeholder *p);

/* The next one in a text; false if there is none. */
bool hg_placeholder_next(const char *text, struct hg_placeholder *p);

/* Is it all of the text? */
bool hg_placeholder_is_whole(const struct hg_placeholder *p, const char *text);

#endif
