/* What each change of a bundle is to a target. */
#include <fcntl.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "trees/stacks/bundle.h"
#include "trees/stacks/snapshots.h"

/* What lies at a path. */
struct seen {
	mode_t mode; /* 0: nothing */
	bool has_hash;
	unsigned char hash[SHA256_LEN];
};

static mode_t type_of(mode_t mode)
{
	return mode & S_IFMT;
}

static int hash_link(int dir, const char *name, unsigned char hash[SHA256_LEN])
{
	char target[PATH_MAX];
	struct sha256 sha256;
	ssize_t len = readlinkat(dir, name, target, sizeof target - 1);
	if (len < 0)
		return -1;
	sha256_init(&sha256);
	sha256_add(&sha256, target, (size_t)len);
	sha256_end(&sha256, hash);
	return 0;
}

static int hash_file(int dir, const char *name, unsigned char hash[SHA256_LEN])
{
	struct stat st;
	uint64_t ignored = 0;
	auto_close int fd =
		openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	return snapshot_hash_file(fd, st.st_size, hash, &ignored);
}

/* -1 with errno: it can't be read. */
static int look(int root, const char *path, struct seen *seen)
{
	const char *name = path_basename(path);
	struct stat st;
	auto_close int parent = apply_open_parent(root, path);
	*seen = (struct seen){ 0 };
	if (parent < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV ? 0
											       : -1;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -1;
	seen->mode = st.st_mode;
	seen->has_hash = S_ISREG(st.st_mode) || S_ISLNK(st.st_mode);
	if (S_ISLNK(st.st_mode))
		return hash_link(parent, name, seen->hash);
	return S_ISREG(st.st_mode) ? hash_file(parent, name, seen->hash) : 0;
}

static bool is_same_content(const struct seen *seen, mode_t mode, const unsigned char *hash)
{
	return type_of(seen->mode) == type_of(mode) &&
	       (!seen->has_hash || !memcmp(seen->hash, hash, SHA256_LEN));
}

static void judge_as(struct bundle_change *change, enum bundle_result result, const char *reason)
{
	change->result = result;
	change->reason = reason;
}

static void take(struct bundle_change *change, const struct seen *there)
{
	char letter = !there->mode				       ? SNAPSHOT_ADDED
		      : !change->after				       ? SNAPSHOT_DELETED
		      : type_of(there->mode) != type_of(change->after) ? SNAPSHOT_TYPE
								       : SNAPSHOT_MODIFIED;
	judge_as(change, BUNDLE_TAKE, NULL);
	change->item = (struct apply_item){ .path = change->path,
		.change = letter,
		.was_directory = S_ISDIR(there->mode),
		.is_directory = S_ISDIR(change->after),
		.has_mode = true,
		.mode = change->after & 0777 };
}

/* Of a directory that is there, only a changed mode is a difference. */
static bool has_same_mode(
	const struct bundle *bundle, const struct bundle_change *change, const struct seen *there)
{
	mode_t mode = bundle->is_host ? apply_host_mode(change->after, there->mode)
				      : change->after & 0777;
	return S_ISLNK(change->after) ||
	       (S_ISDIR(change->after) && change->change != SNAPSHOT_MODIFIED) ||
	       (there->mode & 0777) == mode;
}

static const char *conflict_reason(const struct bundle_change *change, const struct seen *there)
{
	if (!there->mode)
		return "it was removed there";
	if (!change->before)
		return "it is there already, with other content";
	if (type_of(there->mode) != type_of(change->before))
		return "it is another type of file there";
	return "it was changed there, too";
}

static void judge_change(struct bundle *bundle, struct bundle_change *change, int target)
{
	struct seen there, now = { 0 };
	if (change->result == BUNDLE_REFUSED)
		return;
	if (!strncmp(change->path, APPLY_STAGE, strlen(APPLY_STAGE))) {
		judge_as(change, BUNDLE_REFUSED, "a name of carrel's own");
		return;
	}
	if (S_ISFIFO(change->after)) {
		judge_as(change, BUNDLE_REFUSED, "not a file, a directory or a link");
		return;
	}
	if (look(target, change->path, &there)) {
		judge_as(change, BUNDLE_CONFLICT, "it can't be read there");
		return;
	}
	/* A list that names what the archive hasn't is caught here, too. */
	if (look(bundle->tree, change->path, &now) || type_of(now.mode) != type_of(change->after)) {
		judge_as(change, BUNDLE_REFUSED, "it is missing in the changes");
		return;
	}
	bool is_after = is_same_content(&there, change->after, now.hash);
	if (is_after && (!change->after || has_same_mode(bundle, change, &there)))
		judge_as(change, BUNDLE_SAME, NULL);
	else if (is_after || is_same_content(&there, change->before, change->hash))
		take(change, &there);
	else
		judge_as(change, BUNDLE_CONFLICT, conflict_reason(change, &there));
}

static struct bundle_change *find_above(const struct bundle *bundle, const char *path)
{
	struct str above = path_parent(path);
	return above.len ? map_get(&bundle->paths, above) : NULL;
}

/* A new entry needs a parent directory: in the target, or new as well. */
static void judge_place(const struct bundle *bundle, struct bundle_change *change, int target)
{
	const struct bundle_change *above = find_above(bundle, change->path);
	if (change->result != BUNDLE_TAKE || change->item.change != SNAPSHOT_ADDED)
		return;
	auto_close int parent = apply_open_parent(target, change->path);
	if (above && S_ISDIR(above->after) && above->result == BUNDLE_TAKE)
		return;
	if (above && above->result == BUNDLE_REFUSED)
		judge_as(change, BUNDLE_REFUSED, "its directory is not applied");
	else if (parent < 0)
		judge_as(change, BUNDLE_CONFLICT, "there is no directory for it");
}

/* A directory that goes may hold only what goes with it. */
static void judge_emptied(
	const struct bundle *bundle, struct bundle_change *change, int target, struct buf *path)
{
	struct dirent *entry;
	if (change->result != BUNDLE_TAKE || !change->item.was_directory ||
		change->item.is_directory)
		return;
	auto_close int dir = apply_open_directory(target, str_from(change->path));
	auto_walk DIR *walk = dir < 0 ? NULL : walk_open(dir, ".");
	while ((entry = walk_next(walk))) {
		buf_clear(path);
		buf_printf(path, "%s/%s", change->path, entry->d_name);
		const struct bundle_change *below = map_get(&bundle->paths, buf_str(path));
		if (!below || below->result == BUNDLE_CONFLICT) {
			judge_as(change, BUNDLE_CONFLICT, "it holds other files there");
			return;
		}
		if (below->result == BUNDLE_REFUSED) {
			judge_as(change, BUNDLE_REFUSED, "it holds files that are not applied");
			return;
		}
	}
	if (!walk || errno)
		judge_as(change, BUNDLE_CONFLICT, "it can't be read there");
}

int bundle_judge(struct bundle *bundle, int target, struct error *err)
{
	auto_buf struct buf path = buf_empty(2 * PATH_MAX);
	size_t count = bundle->changes.count;
	struct bundle_change *changes = bundle->changes.items;
	apply_wait_for_tick(&bundle->since);
	for (size_t i = 0; i < count; i++)
		judge_change(bundle, &changes[i], target);
	for (size_t i = count; i-- > 0;)
		judge_emptied(bundle, &changes[i], target, &path);
	for (size_t i = 0; i < count; i++)
		judge_place(bundle, &changes[i], target);
	memset(bundle->results, 0, sizeof bundle->results);
	for (size_t i = 0; i < count; i++)
		bundle->results[changes[i].result]++;
	return path.overflow ? fail(err, ERR_LIMIT, "a path is too long") : 0;
}
