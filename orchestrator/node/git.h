/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HG_NODE_GIT_H
#define HG_NODE_GIT_H

#include <stdbool.h>
#include <stddef.h>

/* A git work tree, read from its files: no git has to be installed, nothing is locked or written, and a file that was not touched since
 * git last looked at it is not read. Nothing here fails: what cannot be found out is not known. */
struct hg_git {
    char *root;   /* the work tree; NULL: there is none */
    char *folder; /* its .git folder */
};

/* The work tree around dir. hg_git_done either way. */
void hg_git_find(const char *dir, struct hg_git *g);
void hg_git_done(struct hg_git *g);

/* The commit that is checked out; yours. NULL: none. */
char *hg_git_revision(const struct hg_git *g);

/* The tracked files as they are now. */
struct hg_git_tree {
    bool known;   /* all were looked at; else only files and seen are set */
    bool changed; /* one differs from what git last staged, or is gone */
    char hash
        [33]; /* of all names and contents: the same in every clone, whenever its files were written */
    size_t files, seen; /* tracked; looked at within the time */
};

/* Look at them for at most limit_s seconds, but for those in omit (paths of files or folders from root; ends with NULL). One lstat per
 * file (some 0.1 s for 50,000 on a local disk); a file whose size or time differs from the index is read. */
void hg_git_look(const struct hg_git *g, const char *const *omit, double limit_s,
                 struct hg_git_tree *tree);

/* Is something staged that is not committed? 1 or 0; -1: not known, because no git can be asked. */
int hg_git_is_staged(const struct hg_git *g, const char *const *omit, double limit_s);

/* The name that git gives a file's content (`git hash-object`), whether or not the file is in a work tree. Returns false if it is not a
 * regular file, cannot be read, or takes longer than limit_s seconds. */
bool hg_git_name_file(const char *path, double limit_s, char hex[static 41]);

#endif
