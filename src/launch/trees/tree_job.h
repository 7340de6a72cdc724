/* tree_job.h -- work on whole trees of workspaces and layers, as a process of its own that the
 * launcher starts for core (LAUNCH_TREE): carrel-build by the name of TREE_ARGV0.
 * 1. It is the home's owner in a user namespace, so that it may read directories of mode 0000, and
 * sees layers, workspaces and blobs of the home alone. It has no network and makes no processes.
 * 2. It is given a verb and names of workspaces and layers, never paths; descriptors for input,
 * the answer and output. The answer is a JSON object, or {"error": {"code", "message", "hint"}}
 * with exit code 1.
 * 3. It may be killed at any time: a layer has its name only when it is whole and on disk. What was
 * begun lies in layers/.tree-<name>, and is removed by the next job for that name, or by `sweep`.
 * 4. A part of a layer is a directory: as workspace_parts names it in a frozen layer ("snap-<id>"),
 * "tree" of a package layer. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "format/text/json.h"
#include "format/text/json_read.h"
#include "linux/home.h"
#include "model/nouns/part.h"
#include "proc/role.h"

#define TREE_ARGV0 "carrel-tree"
#define TREE_STAGE_PREFIX ".tree-"
#define TREE_CONTENT_ID "content-id" /* a file of a frozen layer, written by `hash` */
enum tree_fd { TREE_FD_INPUT = 3, TREE_FD_ANSWER, TREE_FD_OUTPUT };

struct tree_job {
	int layers, workspaces, blobs; /* directories of the home; blobs may be -1 */
	int input, output;
	const char *const *names;
	size_t count;
	size_t at;			  /* how many names were taken */
	const struct json_value *options; /* of a verb that has them, read from input */
	struct arena *arena;
	struct json *answer; /* an object that is open */
};
typedef int tree_verb_fn(struct tree_job *job, struct error *err);
struct tree_verb {
	const char *name;
	tree_verb_fn *fn;
	bool has_options; /* a JSON object, or nothing, comes as its input */
};
/* A new verb is a row here. */
extern const struct tree_verb tree_verbs[];

/* ---- for verbs ---- */
/* The next name. ERR_INVALID: the order has no more names. */
int tree_take_name(struct tree_job *job, const char **name, struct error *err);
/* The names up to the next "" or the end; perhaps none. */
text_list tree_take_list(struct tree_job *job);
/* The package layers that lie below each part: a list of names for each part that has_packages. */
void tree_take_packages(struct tree_job *job, text_list packages[WORKSPACE_PARTS]);
/* Opens `part` of layer `name`. *fd is -1 when the layer hasn't that part. ERR_NOT_FOUND: there is
 * no such layer. */
int tree_open_part(
	const struct tree_job *job, const char *name, const char *part, int *fd, struct error *err);
/* The same of a workspace's upper. */
int tree_open_upper(int workspace, size_t part, int *fd, struct error *err);
/* Descriptors of one tree in several layers, topmost first; -1: a layer that hasn't that part. They
 * are closed at the end of the block. */
typedef VEC(int) tree_fds;
void tree_fds_done(tree_fds *fds);
#define auto_fds __attribute__((cleanup(tree_fds_done)))
int tree_add_parts(const struct tree_job *job, const text_list *layers, const char *part,
	tree_fds *fds, struct error *err);
/* Makes the empty directory in which layer `name` is made; *fd is yours. */
int tree_stage_open(const struct tree_job *job, const char *name, int *fd, struct error *err);
/* Gives the stage its name when all of it is on disk. ERR_CONFLICT: the name is taken. */
int tree_stage_publish(const struct tree_job *job, const char *name, struct error *err);
void tree_stage_remove(const struct tree_job *job, const char *name);

/* The content id of the layer that is being made. */
struct snapshot_content;
int tree_hash_stage(struct tree_job *job, const char *name, struct snapshot_content *content,
	struct error *err);

tree_verb_fn tree_pack_layer, tree_unpack_layer, tree_archive;
tree_verb_fn tree_copy, tree_merge, tree_diff, tree_hash, tree_verify, tree_measure_layers,
	tree_settle, tree_sweep, tree_usage;

/* ---- for the launcher and main ---- */
/* Fills in what the role is started with: argv is the verb and the names. */
void tree_describe(struct arena *arena, const struct home *home, const char *const *strings,
	size_t count, struct role_start *start);
int tree_main(int argc, char **argv);
