/* internal.h -- what the files of this room share. Everything here works entered (home_enter), and
 * follows no link. */
#pragma once
#include <sys/stat.h>
#include <time.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/id.h"
#include "trees/layers/store.h"

/* -- layer_tree.c: a tree on disk, whose content is untrusted -- */

struct tree_entry {
	mode_t mode; /* as lstat gives it */
	uid_t uid;
	ino_t inode;
	uint64_t size, links;
	struct timespec mtime;
	const char *path;   /* "" is the tree itself */
	const char *target; /* of a link */
	/* What no layer may have ("is a fifo", "belongs to another user", …), or NULL. */
	const char *wrong;
};
typedef VEC(struct tree_entry) tree_entries;
struct tree_walk {
	struct arena *arena;
	uid_t uid;	  /* whom it must all belong to */
	bool is_draft;	  /* normalise directories and links; what is wrong is an error */
	const char *kind; /* of the draft: says where its links may lead */
	tree_entries entries;
};
/* Lists all of the tree `name` in dir (itself first, then in no order). A draft's directories get
 * their mode and its directories and links their time; ERR_DENIED and ERR_LIMIT name the path. In a
 * layer, a directory that can't be read or is too deep is an entry with `wrong`, and what is in it
 * is left out. */
int tree_walk(struct tree_walk *walk, int dir, const char *name, struct error *err);
/* Opens a file or directory for reading, giving its owner the right to by way of `mode` when that
 * isn't 0. -1 with errno. */
int tree_open_file(int dir, const char *path, mode_t mode);
int tree_open_directory(int dir, const char *path, mode_t mode);
/* Why an inode can't be in a layer, by its stat; NULL when it can. How many names it has is
 * tree_walk's to judge, which sees all of them. */
const char *tree_judge(const struct stat *st, uid_t uid, dev_t dev);
/* Attributes that mean something to overlayfs or the kernel. Looks: what is there that must not be,
 * or NULL. Clears (a draft): removes what only a layer can't have; what is left is returned. */
const char *tree_judge_attributes(int fd, bool clear);
/* The times of everything in a layer. */
extern const struct timespec tree_times[2];

/* -- store.c -- */

#define KEYS ".keys"
#define BAD_PREFIX ".bad-"   /* .bad-<id>-<random>: quarantined */
#define GONE_PREFIX ".gone-" /* .gone-<random>: being removed */

#define HOLDERS "holders" /* in a quarantined copy: of words: see layers_collect */

/* A new name for the quarantined copy of a layer. */
void store_bad_name(const char *id, char name[sizeof BAD_PREFIX + LAYER_ID_LEN + 1 + ID_LEN]);
/* Writes down who may have the copy of that name mounted. */
void store_write_holders(const struct layer_store *store, const char *name);
/* The name below .keys. */
void store_key_name(const char *key, char name[2 * SHA256_LEN + 1]);
/* fail_errno, with a hint where the disk or the store's rights are the reason. */
int store_fail(struct error *err, const char *what, const char *name);
