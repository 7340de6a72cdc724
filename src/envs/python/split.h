/* split.h -- one installed tree taken apart into one draft of a layer per wheel, by the RECORD
 * files. Empty directories go to the packages whose wheels have them.
 * 1. Every file goes to exactly one package: the one whose RECORD lists it; bytecode goes with its
 * source. A file that nobody lists, a link, and a RECORD that names something outside the tree or a
 * file of the environment itself are refused (ERR_DENIED), with the name.
 * 2. What is left in a draft is listed in its RECORD (bytecode apart: who removes a source removes
 * its bytecode, too), with the hash that its file has: split_seen checks it while the layer is
 * hashed.
 * 3. No package lists what is in another one's dist-info, or it would say what the other's layer
 * holds (ERR_DENIED). Bytecode that wheels bring is not used: it could be of another one's source.
 * 4. Packages that list the same file are marked as rivals, to be installed one by one: the tree
 * has only one content of that file. Which one it has decides the order of their layers. What uv
 * leaves for itself (uv_cache.json, direct_url.json) is removed, with its line. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "trees/layers/store.h"

struct split_package {
	const char *name, *version; /* in: normalised name, as in the lock */
	const char *draft;	    /* in: below the stage; <draft>/tree is made */
	/* out */
	const char *rival; /* another package lists one of its files: its draft is invalid */
	struct map files;  /* path in the tree -> struct wheel_record */
	/* private */
	const char *info;    /* the name of its dist-info directory */
	const char *archive; /* its wheel in uv's cache, below the stage: see archives.h */
};
struct split {
	struct arena *arena;
	int stage;		/* the drafts' parent */
	const char *root;	/* below it: the installed tree, which jobs see at /env */
	const char *site;	/* in the tree: "lib/python3.11/site-packages" */
	const char *const *own; /* files and links that the tree had before, ended by NULL */
	VEC(struct split_package) packages;
	VEC(size_t) order; /* out: the rivals among them, topmost first: see rivals.h */
	/* private */
	struct map owners;	/* path of a file -> struct split_package */
	struct map directories; /* path of a directory -> the one owner of all in it, or shared */
	bool has_archives;	/* they were looked for */
};

/* Removes all bytecode below the root of an installed tree: before it is compiled, so that what
 * split_tree finds was made here. Entered. */
int split_drop_bytecode(int stage, const char *root, struct error *err);
/* Moves all of it, with the rights of the calling process (home_enter). ERR_CORRUPT: a RECORD is
 * missing or isn't one. */
int split_tree(struct split *split, struct error *err);
/* A layer_file_fn; ctx is struct split, draft i is of packages.items[i]. ERR_CORRUPT: the file
 * isn't what RECORD says. ERR_DENIED: it is in no RECORD. Both begin with "name==version: ". */
int split_seen(void *ctx, size_t draft, const char *path, const unsigned char sha256[SHA256_LEN],
	uint64_t size, struct error *err);
