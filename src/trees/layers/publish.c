#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "format/text/quantity.h"
#include "trees/layers/pair.h"
#include "trees/layers/damage.h"
#include "trees/layers/internal.h"

#define EXCHANGE 2 /* RENAME_EXCHANGE, which not every libc's headers have */
/* With less than this to hash, a second process costs more than it brings. */
#define SMALL_BYTES (1 << 20)
#define SMALL_COUNT 64

struct file_job {
	size_t draft, entry;
	uint64_t size, links;
};
struct file_result {
	unsigned char sha256[SHA256_LEN];
	uint64_t size;
};
struct part {	     /* of the publication: one draft */
	bool is_new; /* not found by its key */
	struct manifest manifest;
	char id[LAYER_ID_LEN + 1];
	uint64_t bytes, files;
};
struct publication {
	const struct layer_store *store;
	int stage, keys;
	struct layer_draft *drafts;
	size_t count;
	layer_file_fn *seen;
	void *ctx;
	struct arena arena;
	struct part *parts;
	VEC(struct file_job) jobs;
	uint64_t bytes; /* of all jobs */
};

/* -- checking the draft -- */

/* The draft is ours alone to name: nothing but `tree` is in it. */
static int check_draft(
	const struct layer_draft *draft, int dir, uid_t uid, struct arena *arena, struct error *err)
{
	text_list names = { 0 };
	struct stat st;
	if (fstat(dir, &st) < 0)
		return store_fail(err, "look at", draft->path);
	if (st.st_uid != uid)
		return fail(
			err, ERR_DENIED, "draft '%s' belongs to uid %u", draft->path, st.st_uid);
	if (fchmod(dir, 0755) < 0)
		return store_fail(err, "set the mode of", draft->path);
	if (file_names(dir, ".", arena, &names) < 0)
		return store_fail(err, "read", draft->path);
	for (size_t i = 0; i < names.count; i++)
		if (strcmp(names.items[i], "tree") != 0)
			return fail(err, ERR_DENIED, "draft '%s' holds '%s' beside its tree",
				draft->path, names.items[i]);
	return 0;
}

/* Check before hashing: a sparse file takes as long as a full one. */
static int add_bytes(
	struct publication *p, size_t draft, const struct tree_entry *found, struct error *err)
{
	uint64_t most = p->drafts[draft].bytes_max;
	struct part *part = &p->parts[draft];
	char shown[16];
	if (!most || most > LAYER_BYTES_MAX)
		most = LAYER_BYTES_MAX;
	if (found->size > most - part->bytes) {
		quantity_format_size(shown, most);
		return fail(err, ERR_LIMIT, "with '%s' the layer is larger than %s", found->path,
			shown);
	}
	part->bytes += found->size;
	p->bytes += found->size;
	return 0;
}

static int add_entries(
	struct publication *p, size_t draft, const struct tree_walk *walk, struct error *err)
{
	struct part *part = &p->parts[draft];
	/* The first one is the tree itself. */
	for (size_t i = 1; i < walk->entries.count; i++) {
		const struct tree_entry *found = &walk->entries.items[i];
		struct manifest_entry entry = { .path = found->path, .target = found->target };
		if (S_ISDIR(found->mode)) {
			entry.kind = MANIFEST_DIRECTORY;
			entry.mode = 0755;
		} else if (S_ISLNK(found->mode)) {
			entry.kind = MANIFEST_LINK;
		} else {
			entry.kind = MANIFEST_FILE;
			entry.mode = found->mode & S_IXUSR ? 0755 : 0644;
			if (add_bytes(p, draft, found, err) < 0)
				return -1;
			part->files++;
			vec_push(&p->arena, &p->jobs,
				(struct file_job){ draft, part->manifest.entries.count, found->size,
					found->links });
		}
		vec_push(&p->arena, &part->manifest.entries, entry);
	}
	return 0;
}

static int look_at_draft(struct publication *p, size_t i, struct error *err)
{
	const struct layer_draft *draft = &p->drafts[i];
	struct part *part = &p->parts[i];
	struct tree_walk walk = { .arena = &p->arena,
		.uid = p->store->home->uid,
		.is_draft = true,
		.kind = draft->kind };
	char id[LAYER_ID_LEN + 1];
	if (!manifest_is_named(draft->kind, draft->name, draft->version))
		return fail(err, ERR_INVALID,
			"invalid kind, name or version of a layer: '%s' '%s' '%s'", draft->kind,
			draft->name, draft->version);
	if (draft->key && layer_find(p->store, draft->key, id, err) == 0)
		return 0;
	if (draft->key && err->code != ERR_NOT_FOUND)
		return -1;
	part->is_new = true;
	part->manifest.kind = draft->kind;
	part->manifest.name = draft->name;
	part->manifest.version = draft->version;
	auto_close int dir = path_open_nolinks(p->stage, draft->path, O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return store_fail(err, "open the draft", draft->path);
	if (check_draft(draft, dir, p->store->home->uid, &p->arena, err) < 0)
		return -1;
	if (tree_walk(&walk, dir, "tree", err) < 0 || add_entries(p, i, &walk, err) < 0)
		return error_context(err, "layer of %s %s", draft->name, draft->version);
	return 0;
}

/* -- hash, on two processes -- */

static int hash_file(void *ctx, size_t index, void *result, struct error *err)
{
	struct publication *p = ctx;
	struct file_result *out = result;
	const struct file_job *job = &p->jobs.items[index];
	const struct layer_draft *draft = &p->drafts[job->draft];
	const struct manifest_entry *entry =
		&p->parts[job->draft].manifest.entries.items[job->entry];
	char path[PATH_MAX];
	struct stat st;
	fault_point("layers.hash");
	if (!str_format(path, sizeof path, "%s/tree/%s", draft->path, entry->path))
		return fail(err, ERR_LIMIT, "'%s': the path is too long", entry->path);
	auto_close int fd = tree_open_file(p->stage, path, entry->mode);
	if (fd < 0 || fstat(fd, &st) < 0)
		return store_fail(err, "open", entry->path);
	const char *wrong = tree_judge(&st, p->store->home->uid, st.st_dev);
	if (!wrong && !S_ISREG(st.st_mode))
		wrong = "became something else";
	if (!wrong && st.st_nlink != job->links)
		wrong = "got another name (hard link)";
	if (!wrong)
		wrong = tree_judge_attributes(fd, true);
	if (wrong)
		return fail(err, ERR_DENIED, "layer of %s %s: '%s' %s", draft->name, draft->version,
			entry->path, wrong);
	if (file_hash(fd, out->sha256, &out->size) < 0)
		return store_fail(err, "read", entry->path);
	if (out->size != job->size)
		return fail(err, ERR_CONFLICT, "'%s' was written to while it became a layer",
			entry->path);
	if ((st.st_mode & 07777) != entry->mode && fchmod(fd, entry->mode) < 0)
		return store_fail(err, "set the mode of", entry->path);
	if (futimens(fd, tree_times) < 0)
		return store_fail(err, "set the time of", entry->path);
	return p->seen ? p->seen(p->ctx, job->draft, entry->path, out->sha256, out->size, err) : 0;
}

static int compare_jobs(const void *a, const void *b)
{
	const struct file_job *one = a, *other = b;
	return (one->size < other->size) - (one->size > other->size);
}

static int hash_all(struct publication *p, struct error *err)
{
	struct pair pair = { .count = p->jobs.count,
		.result_size = sizeof(struct file_result),
		.work = hash_file,
		.ctx = p };
	/* The biggest first, so that both have work to the end. */
	vec_sort(&p->jobs, compare_jobs);
	int failed = pair_run(&pair, p->bytes < SMALL_BYTES && p->jobs.count < SMALL_COUNT, err);
	for (size_t i = 0; i < p->jobs.count && !failed; i++) {
		const struct file_job *job = &p->jobs.items[i];
		const struct file_result *result = (struct file_result *)pair.results + i;
		struct manifest_entry *entry =
			&p->parts[job->draft].manifest.entries.items[job->entry];
		entry->size = result->size;
		memcpy(entry->sha256, result->sha256, SHA256_LEN);
	}
	pair_done(&pair);
	return failed;
}

/* -- write -- */

static int write_manifest(struct publication *p, size_t i, struct buf *text, struct error *err)
{
	struct part *part = &p->parts[i];
	char path[PATH_MAX];
	buf_clear(text);
	manifest_print(&part->manifest, text);
	if (text->overflow)
		return fail(err, ERR_LIMIT, "layer of %s: its manifest has more than %zu bytes",
			part->manifest.name, MANIFEST_MAX);
	sha256_of(text->data, text->len, part->id);
	str_format(path, sizeof path, "%s/manifest", p->drafts[i].path);
	auto_close int fd =
		path_open_nolinks(p->stage, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	if (fd < 0)
		return store_fail(err, "make", path);
	if (fault_fails("layers.manifest") || fchmod(fd, 0644) < 0 ||
		fd_write_full(fd, text->data, text->len) < 0)
		return store_fail(err, "write", path);
	return 0;
}

static int write_all(struct publication *p, struct error *err)
{
	bool is_any = false;
	auto_buf struct buf text = buf_empty(MANIFEST_MAX);
	for (size_t i = 0; i < p->count; i++) {
		if (!p->parts[i].is_new)
			continue;
		is_any = true;
		if (write_manifest(p, i, &text, err) < 0)
			return -1;
	}
	/* One for all: an fsync of each file would take three times as long. */
	if (is_any && (fault_fails("layers.sync") || syncfs(p->store->dir) < 0))
		return store_fail(err, "write to disk", "layers");
	return 0;
}

/* -- give names; one publisher at a time -- */

static int link_key(struct publication *p, const char *key, const char *id, struct error *err)
{
	char name[2 * SHA256_LEN + 1], fresh[ID_LEN + 8], random[ID_LEN + 1];
	store_key_name(key, name);
	if (fault_fails("layers.key"))
		return store_fail(err, "add a key for layer", id);
	if (symlinkat(id, p->keys, name) == 0)
		return 0;
	if (errno != EEXIST)
		return store_fail(err, "add a key for layer", id);
	/* One that leads nowhere: layer_find said so. */
	id_make(random);
	str_format(fresh, sizeof fresh, ".new-%s", random);
	if (symlinkat(id, p->keys, fresh) < 0 || renameat(p->keys, fresh, p->keys, name) < 0)
		return store_fail(err, "add a key for layer", id);
	return 0;
}

/* The layer that another one made for our key. */
static int adopt(struct publication *p, size_t i, const char *id, struct error *err)
{
	struct layer_draft *draft = &p->drafts[i];
	struct manifest manifest;
	uint64_t bytes = 0, files = 0;
	if (layer_read(p->store, id, &p->arena, &manifest, err) < 0)
		return -1;
	for (size_t k = 0; k < manifest.entries.count; k++) {
		bytes += manifest.entries.items[k].size;
		files += manifest.entries.items[k].kind == MANIFEST_FILE;
	}
	draft->bytes = bytes;
	draft->files = files;
	draft->was_there = true;
	memcpy(draft->id, id, LAYER_ID_LEN + 1);
	return 0;
}

static int rename_draft(struct publication *p, size_t i, bool *was_there, struct error *err)
{
	const char *path = p->drafts[i].path, *id = p->parts[i].id;
	if (fault_fails("layers.rename"))
		return store_fail(err, "rename to", id);
	*was_there = false;
	if (renameat(p->stage, path, p->store->dir, id) == 0) {
		damage_clear(p->store->dir, id);
		return 0;
	}
	if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
		return store_fail(err, "rename to", id);
	*was_there = layer_check(p->store, id, err) == 0;
	if (*was_there)
		return 0;
	/* A damaged layer has the name. Exchange it with the draft. It may still be mounted, and is
	 * kept as a quarantined one is; else it is removed with the stage. */
	char aside[sizeof BAD_PREFIX + LAYER_ID_LEN + 1 + ID_LEN];
	if (syscall(SYS_renameat2, p->stage, path, p->store->dir, id, EXCHANGE) < 0)
		return store_fail(err, "replace damaged layer", id);
	store_bad_name(id, aside);
	if (renameat(p->stage, path, p->store->dir, aside) == 0)
		store_write_holders(p->store, aside);
	damage_clear(p->store->dir, id);
	return 0;
}

static int settle(struct publication *p, size_t i, struct error *err)
{
	struct layer_draft *draft = &p->drafts[i];
	struct part *part = &p->parts[i];
	char theirs[LAYER_ID_LEN + 1];
	if (draft->key && layer_find(p->store, draft->key, theirs, err) == 0)
		return adopt(p, i, theirs, err);
	if (draft->key && err->code != ERR_NOT_FOUND)
		return -1;
	if (!part->is_new)
		return fail(err, ERR_CONFLICT,
			"the layer of %s was removed while it was published: the store isn't "
			"locked",
			draft->name);
	if (rename_draft(p, i, &draft->was_there, err) < 0)
		return -1;
	memcpy(draft->id, part->id, LAYER_ID_LEN + 1);
	draft->bytes = part->bytes;
	draft->files = part->files;
	return draft->key ? link_key(p, draft->key, draft->id, err) : 0;
}

static int settle_all(struct publication *p, struct error *err)
{
	/* So that two who have built the same key with other bytes end with one layer. */
	while (flock(p->keys, LOCK_EX) < 0)
		if (errno != EINTR)
			return store_fail(err, "lock", KEYS);
	for (size_t i = 0; i < p->count; i++)
		if (settle(p, i, err) < 0)
			return -1;
	if (fault_fails("layers.fsync") || fsync(p->keys) < 0 || fsync(p->store->dir) < 0)
		return store_fail(err, "write to disk", "layers");
	return 0;
}

static int publish(struct publication *p, struct error *err)
{
	auto_leave const struct home *home = home_entered(p->store->home);
	if (mkdirat(p->store->dir, KEYS, 0700) < 0 && errno != EEXIST)
		return store_fail(err, "make", KEYS);
	auto_close int keys = fd_open_directory(p->store->dir, KEYS);
	if (keys < 0)
		return store_fail(err, "open", KEYS);
	p->keys = keys;
	p->parts = arena_array(&p->arena, p->count, sizeof *p->parts);
	for (size_t i = 0; i < p->count; i++)
		if (look_at_draft(p, i, err) < 0)
			return -1;
	if (hash_all(p, err) < 0 || write_all(p, err) < 0)
		return -1;
	return settle_all(p, err);
}

int layers_publish(const struct layer_store *store, int stage, struct layer_draft *drafts,
	size_t count, layer_file_fn *seen, void *ctx, struct error *err)
{
	struct publication p = { .store = store,
		.stage = stage,
		.drafts = drafts,
		.count = count,
		.seen = seen,
		.ctx = ctx };
	arena_init(&p.arena);
	int failed = publish(&p, err);
	arena_done(&p.arena);
	return failed;
}
