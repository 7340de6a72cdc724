/* store_internal.h -- what the files of the environment store share. Every function enters the home
 * by itself. */
#pragma once
#include "envs/store.h"

#define ENVS_CURRENT ".current"
#define ENVS_FAILED ".failed"
#define ENVS_LOCK ".lock"   /* of builders: a byte for each name, see env_lock */
#define ENVS_LOCKS ".locks" /* a file for each name: what older versions left */
#define ENVS_METRICS ".metrics"
#define ENVS_NEW ".new-" /* and an id: being made, or exchanged and not yet set aside */
#define ENVS_OLD ".old-" /* and an id: no longer an environment; there while it is used */
#define ENVS_SHARED                                                                                \
	".shared" /* texts that environments have in common, by hash: links of these               \
		   */
#define ENVS_META "meta.json"
#define ENVS_META_MAX ((size_t)16 << 20)
#define ENVS_PATH_MAX 320 /* of the paths below envs/ */

/* ERR_INVALID says what a name is. */
int envs_check_name(const char *name, struct error *err);
/* The names in the directory `path` below envs/, sorted. A missing directory counts as empty. */
int envs_names_in(const struct env_store *store, const char *path, struct arena *arena,
	text_list *names, struct error *err);
/* Opens the directory `name` below envs/, creating it if missing. */
int envs_open_directory(
	const struct env_store *store, const char *name, int *fd, struct error *err);
/* Reads the meta.json in the directory `directory` (a name, or .old-…). ERR_NOT_FOUND, ERR_CORRUPT.
 */
int envs_read_meta(const struct env_store *store, const char *directory, struct arena *arena,
	struct env_meta *meta, struct error *err);

/* By the text of ext4's `journal_task`: the pid of the journal's thread, or "<none>". */
bool envs_journal_is_there(const char *journal_task);

/* Takes the exclusive lock on the meta.json behind fd; fails with EAGAIN while it is in use. */
int envs_claim(int fd);
bool envs_is_pinned(const struct env_store *store, const char *directory);
/* Removes the directory .old-… or .new-… unless it is in use; *is_gone: whether it was removed. */
int envs_retire(
	const struct env_store *store, const char *directory, bool *is_gone, struct error *err);

/* Bytes on disk of each layer there is (values are uint64_t *), and of all; measured once and kept
 * in envs/.sizes. */
int envs_measure_layers(const struct env_store *store, struct arena *arena, struct map *sizes,
	uint64_t *total, struct error *err);
/* Begins that file anew when it has grown large: it has layers that are gone, too. */
void envs_trim_sizes(const struct env_store *store);
/* As env_list; with `check`, problems of layers and interpreter are found too. */
int envs_rows(const struct env_store *store, struct arena *arena, bool check, env_rows *rows,
	struct error *err);
