#include "envs/python/locals.h"

#include <fcntl.h>
#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "envs/python/known.h"
#include "envs/python/sdist.h"

#define ENTRIES_MAX 100000

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t end_len = strlen(end);
	return len > end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* Where the extras begin, or the end. */
static size_t path_length(const char *word)
{
	const char *bracket = strrchr(word, '[');
	size_t len = strlen(word);
	return bracket && len > 0 && word[len - 1] == ']' ? (size_t)(bracket - word) : len;
}

bool local_is_path(const char *word)
{
	size_t len = path_length(word);
	struct stat st;
	if (word[0] == '/' || strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0 ||
		strcmp(word, ".") == 0 || strcmp(word, "..") == 0 || strncmp(word, ".[", 2) == 0)
		return true;
	return ends_with(word, len, ".whl") && !strstr(word, "://") && !strchr(word, '@') &&
	       stat(word[len] ? "" : word, &st) == 0;
}

/* Directories that no build needs; pep517.py leaves out the same ones. */
static bool is_passed_over(const char *name)
{
	static const char *const names[] = { "node_modules", "__pycache__", ".tox", ".nox",
		".mypy_cache", ".pytest_cache", ".git", ".venv", ".ruff_cache", "build", "dist" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return ends_with(name, strlen(name), ".egg-info");
}

static int compare(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int add_entries(
	FTS *walk, size_t prefix, bool is_deep, struct sha256 *hash, struct error *err)
{
	size_t count = 0;
	for (FTSENT *entry; (entry = fts_read(walk));) {
		struct {
			int64_t size, seconds, nanoseconds, mode;
		} facts = { 0 };
		if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
			entry->fts_info == FTS_NS)
			return errno = entry->fts_errno,
			       fail_errno(err, "read '%s'", entry->fts_path);
		if (entry->fts_level > 0 && is_deep && is_passed_over(entry->fts_name)) {
			fts_set(walk, entry, FTS_SKIP);
			continue;
		}
		if (entry->fts_info == FTS_D && entry->fts_level > 0 && !is_deep)
			fts_set(walk, entry, FTS_SKIP);
		if (entry->fts_info == FTS_D || entry->fts_info == FTS_DP)
			continue;
		if (++count > ENTRIES_MAX)
			return fail(err, ERR_LIMIT, "more than %d files", ENTRIES_MAX);
		facts.size = entry->fts_statp->st_size;
		facts.seconds = entry->fts_statp->st_mtim.tv_sec;
		facts.nanoseconds = entry->fts_statp->st_mtim.tv_nsec;
		facts.mode = entry->fts_statp->st_mode;
		sha256_add_text(hash, entry->fts_path + prefix);
		sha256_add(hash, &facts, sizeof facts);
	}
	return 0;
}

int local_digest_tree(
	const char *path, bool is_deep, struct arena *arena, const char **digest, struct error *err)
{
	char *const paths[] = { arena_text(arena, path), NULL };
	struct sha256 hash;
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, compare);
	int failed;
	if (!walk)
		return fail_errno(err, "read '%s'", path);
	sha256_init(&hash);
	failed = add_entries(walk, strlen(path), is_deep, &hash, err);
	fts_close(walk);
	if (failed)
		return error_context(err, "'%s'", path);
	*digest = sha256_end_text(&hash, arena);
	return 0;
}

static int look_at_wheel(struct env_local *local, int fd, struct arena *arena, struct error *err)
{
	char *hex = arena_alloc(arena, 2 * SHA256_LEN + 1);
	local->file = path_basename(local->path);
	if (!wheel_name_parse(local->file, arena, &local->name, &local->version))
		return fail_hint(err, ERR_INVALID, "name-1.0-py3-none-any.whl",
			"'%s' is not the name of a wheel", local->file);
	if (known_hash_file(fd, hex) < 0)
		return fail_errno(err, "read '%s'", local->path);
	local->digest = hex;
	return 0;
}

static int look_at_project(struct env_local *local, struct arena *arena, struct error *err)
{
	const char *const files[] = { "pyproject.toml", "setup.py" };
	bool is_project = false;
	struct stat st;
	for (size_t i = 0; i < 2; i++)
		is_project |= stat(arena_printf(arena, "%s/%s", local->path, files[i]), &st) == 0;
	if (!is_project)
		return fail(err, ERR_INVALID, "'%s' has neither pyproject.toml nor setup.py",
			local->path);
	local->is_directory = true;
	return local_digest_tree(local->path, true, arena, &local->digest, err);
}

int local_look(const char *word, struct arena *arena, struct env_local *local, struct error *err)
{
	size_t len = path_length(word);
	const char *path = arena_bytes(arena, word, len);
	char real[PATH_MAX];
	struct stat st;
	*local = (struct env_local){ .extras = arena_text(arena, word + len) };
	if (strspn(local->extras, "[],ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789._-") != strlen(local->extras))
		return fail(err, ERR_INVALID, "'%s' are not extras", local->extras);
	if (!realpath(path, real))
		return fail_errno(err, "'%s'", path);
	local->path = arena_text(arena, real);
	auto_close int fd = open(real, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_errno(err, "open '%s'", real);
	if (S_ISDIR(st.st_mode))
		return look_at_project(local, arena, err);
	if (!S_ISREG(st.st_mode) || !ends_with(real, strlen(real), ".whl"))
		return fail_hint(err, ERR_INVALID, "pip wheel makes a wheel of sources",
			"'%s' is neither a wheel nor a directory", path);
	return look_at_wheel(local, fd, arena, err);
}

void local_print(const struct env_local *local, struct buf *out)
{
	if (local->is_directory)
		buf_printf(out, "# project %s%s %s\n", local->path, local->extras, local->digest);
	else
		buf_printf(out, "# wheel %s%s %s\n", local->file, local->extras, local->digest);
}
