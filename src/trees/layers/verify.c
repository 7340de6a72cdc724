#include <fcntl.h>
#include <unistd.h>
#include "trees/layers/pair.h"
#include "trees/layers/damage.h"
#include "trees/layers/internal.h"

struct file_result {
	int sys_errno;	   /* it can't be read */
	const char *wrong; /* a literal: the child's are ours */
	bool is_changed;
};
struct verification {
	const struct layer_store *store;
	int dir; /* layers/<id> */
	struct arena *arena;
	layer_damages damages;
	struct manifest manifest;
	tree_entries found;
	VEC(size_t) jobs; /* entries of the manifest whose content is compared */
};

__attribute__((format(printf, 3, 4))) static void damage(
	struct verification *v, const char *path, const char *fmt, ...)
{
	char what[512], shown[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	/* A link's target can hold anything. */
	str_printable(shown, sizeof shown, str_from(what));
	vec_push(v->arena, &v->damages,
		(struct layer_damage){ .path = path, .what = arena_text(v->arena, shown) });
}

static const char *type_name(mode_t mode)
{
	return S_ISDIR(mode) ? "a directory" : S_ISLNK(mode) ? "a link" : "a file";
}

static mode_t wanted_type(const struct manifest_entry *entry)
{
	return entry->kind == MANIFEST_DIRECTORY ? S_IFDIR
	       : entry->kind == MANIFEST_LINK	 ? S_IFLNK
						 : S_IFREG;
}

/* All but the content of a file. true: nothing is wrong so far. */
static bool compare(
	struct verification *v, const struct manifest_entry *entry, const struct tree_entry *found)
{
	mode_t type = wanted_type(entry);
	if (found->wrong)
		damage(v, entry->path, "%s", found->wrong);
	else if ((found->mode & S_IFMT) != type)
		damage(v, entry->path, "is %s, not %s", type_name(found->mode), type_name(type));
	else if (type != S_IFLNK && (found->mode & 07777) != entry->mode)
		damage(v, entry->path, "mode %04o, not %04o", found->mode & 07777, entry->mode);
	else if (type == S_IFREG && found->size != entry->size)
		damage(v, entry->path, "size %llu, not %llu", (unsigned long long)found->size,
			(unsigned long long)entry->size);
	else if (type == S_IFLNK && strcmp(found->target, entry->target) != 0)
		damage(v, entry->path, "points to '%.200s', not '%.200s'", found->target,
			entry->target);
	else if (found->mtime.tv_sec != LAYER_MTIME || found->mtime.tv_nsec != 0)
		damage(v, entry->path, "time changed");
	else
		return true;
	return false;
}

static int compare_found(const void *a, const void *b)
{
	const struct tree_entry *one = a, *other = b;
	return strcmp(one->path, other->path);
}

/* Both lists are sorted by path; found[0] is the tree itself. */
static void compare_lists(struct verification *v)
{
	struct manifest_entry top = { .kind = MANIFEST_DIRECTORY, .mode = 0755, .path = "" };
	size_t e = 0, f = 1;
	qsort(v->found.items, v->found.count, sizeof *v->found.items, compare_found);
	compare(v, &top, &v->found.items[0]);
	while (e < v->manifest.entries.count || f < v->found.count) {
		const struct manifest_entry *entry = &v->manifest.entries.items[e];
		const struct tree_entry *found = &v->found.items[f];
		int order = e == v->manifest.entries.count ? 1
			    : f == v->found.count	   ? -1
							   : strcmp(entry->path, found->path);
		if (order < 0)
			damage(v, entry->path, "missing");
		else if (order > 0)
			damage(v, found->path, "not in the manifest");
		else if (compare(v, entry, found) && entry->kind == MANIFEST_FILE)
			vec_push(v->arena, &v->jobs, e);
		e += order <= 0;
		f += order >= 0;
	}
}

static int check_file(void *ctx, size_t index, void *result, struct error *err)
{
	struct verification *v = ctx;
	struct file_result *out = result;
	const struct manifest_entry *entry = &v->manifest.entries.items[v->jobs.items[index]];
	unsigned char sha256[SHA256_LEN];
	char path[PATH_MAX];
	uint64_t size;
	str_format(path, sizeof path, "tree/%s", entry->path);
	auto_close int fd = tree_open_file(v->dir, path, 0);
	/* Damage, not an error: the next file is looked at, too. */
	if (fd < 0 || file_hash(fd, sha256, &size) < 0) {
		out->sys_errno = errno;
		return 0;
	}
	out->wrong = tree_judge_attributes(fd, false);
	out->is_changed = memcmp(sha256, entry->sha256, SHA256_LEN) != 0;
	return 0;
}

static int check_contents(struct verification *v, struct error *err)
{
	struct pair pair = { .count = v->jobs.count,
		.result_size = sizeof(struct file_result),
		.work = check_file,
		.ctx = v };
	int failed = pair_run(&pair, v->jobs.count < 16, err);
	for (size_t i = 0; i < v->jobs.count && !failed; i++) {
		const struct file_result *result = (struct file_result *)pair.results + i;
		const char *path = v->manifest.entries.items[v->jobs.items[i]].path;
		if (result->sys_errno)
			damage(v, path, "can't be read: %s", strerrordesc_np(result->sys_errno));
		else if (result->is_changed)
			damage(v, path, "changed");
		else if (result->wrong)
			damage(v, path, "%s", result->wrong);
	}
	pair_done(&pair);
	return failed;
}

/* The layer's own directory: `tree`, `manifest`, and nothing else. */
static int check_layer(struct verification *v, struct error *err)
{
	text_list names = { 0 };
	if (file_names(v->dir, ".", v->arena, &names) < 0)
		return store_fail(err, "read", "the layer");
	for (size_t i = 0; i < names.count; i++)
		if (strcmp(names.items[i], "tree") != 0 && strcmp(names.items[i], "manifest") != 0)
			damage(v, "", "unexpected file '%s' beside the tree", names.items[i]);
	return 0;
}

static int compare_damages(const void *a, const void *b)
{
	const struct layer_damage *one = a, *other = b;
	return strcmp(one->path, other->path);
}

static int verify(struct verification *v, const char *id, struct error *err)
{
	struct tree_walk walk = { .arena = v->arena, .uid = v->store->home->uid };
	if (!layer_id_is_valid(id))
		return fail(err, ERR_NOT_FOUND, "'%s' is not the id of a layer", id);
	v->dir = fd_open_directory(v->store->dir, id);
	if (v->dir < 0)
		return store_fail(err, "open layer", id);
	if (check_layer(v, err) < 0)
		return -1;
	if (layer_read(v->store, id, v->arena, &v->manifest, err) < 0) {
		/* There is nothing to compare with. */
		damage(v, "", "%s", err->code == ERR_NOT_FOUND ? "no manifest" : err->text);
		return 0;
	}
	if (tree_walk(&walk, v->dir, "tree", err) < 0) {
		/* A limit is over what was published: damage as well. */
		damage(v, "", "the tree can't be read: %s", err->text);
		return 0;
	}
	v->found = walk.entries;
	compare_lists(v);
	return check_contents(v, err);
}

int layer_verify(const struct layer_store *store, const char *id, struct arena *arena,
	layer_damages *damages, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	struct verification v = { .store = store, .dir = -1, .arena = arena };
	int failed = verify(&v, id, err);
	fd_close(&v.dir);
	/* A home that can't be written is checked all the same. */
	if (failed ? err->code == ERR_CORRUPT : v.damages.count)
		damage_mark(store->dir, id);
	else if (!failed && damage_is_any(store->dir))
		damage_clear(store->dir, id);
	if (failed)
		return -1;
	vec_sort(&v.damages, compare_damages);
	*damages = v.damages;
	return 0;
}
