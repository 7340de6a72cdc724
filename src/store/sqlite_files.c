#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "store/sqlite.h"

/* What SQLite keeps beside a database. The database comes first: a log that is left alone is
 * noticed, a database without its log may look whole. */
static const char *const parts[] = { "", "-wal", "-shm", "-journal" };
#define PART_COUNT (sizeof parts / sizeof *parts)

int sqlite_find_path(const struct store_place *place, const char *name, char path[SQLITE_PATH_MAX],
	struct error *err)
{
	auto_free char *real = realpath(place->path, NULL);
	struct stat here, there;
	if (!real)
		return fail_errno(err, "find '%s'", place->path);
	if (fstat(place->directory, &here) || stat(real, &there))
		return fail_errno(err, "look at '%s'", real);
	if (here.st_dev != there.st_dev || here.st_ino != there.st_ino)
		return fail(err, ERR_UNAVAILABLE, "'%s' is not the directory that was opened",
			place->path);
	/* "-journal" has to fit too. */
	if (!str_format(path, SQLITE_PATH_MAX - 16, "%s/%s", real, name))
		return fail(err, ERR_UNAVAILABLE, "the path '%s' is too long for a database", real);
	return 0;
}

int sqlite_look(const struct store_place *place, bool *is_there, struct error *err)
{
	struct stat file, log;
	char log_name[STORE_NAME_MAX];
	str_format(log_name, sizeof log_name, "%s-wal", place->file);
	*is_there = !fstatat(place->directory, place->file, &file, AT_SYMLINK_NOFOLLOW);
	if (!*is_there && errno != ENOENT)
		return fail_errno(err, "look at '%s/%s'", place->path, place->file);
	bool has_log =
		!fstatat(place->directory, log_name, &log, AT_SYMLINK_NOFOLLOW) && log.st_size > 0;
	if (!*is_there)
		return has_log ? fail(err, ERR_CORRUPT, "%s is missing, but its log %s is there",
					 place->file, log_name)
			       : 0;
	if (!S_ISREG(file.st_mode))
		return fail(err, ERR_UNAVAILABLE, "'%s/%s' is not a regular file", place->path,
			place->file);
	/* SQLite would take less than a page for a new database, and remove the log. */
	if (file.st_size < SQLITE_PAGE_BYTES)
		return fail(err, ERR_CORRUPT, "%s is cut short: %lld bytes", place->file,
			(long long)file.st_size);
	return 0;
}

static int sync_directory(const struct store_place *place, struct error *err)
{
	auto_close int fd = openat(place->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		return fail_errno(err, "sync '%s'", place->path);
	return 0;
}

void sqlite_name_new(const struct store_place *place, const char *part, char name[STORE_NAME_MAX])
{
	str_format(name, STORE_NAME_MAX, "%s.new%s", place->file, part);
}

int sqlite_drop_new(const struct store_place *place, struct error *err)
{
	for (size_t i = 0; i < PART_COUNT; i++) {
		char name[STORE_NAME_MAX];
		sqlite_name_new(place, parts[i], name);
		if (unlinkat(place->directory, name, 0) && errno != ENOENT)
			return fail_errno(err, "remove '%s/%s'", place->path, name);
	}
	return 0;
}

int sqlite_begin_new(const struct store_place *place, struct error *err)
{
	char name[STORE_NAME_MAX];
	sqlite_name_new(place, "", name);
	/* Left by a crash and never used. */
	if (sqlite_drop_new(place, err))
		return -1;
	auto_close int fd = openat(
		place->directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(err, "make '%s/%s'", place->path, name);
	return 0;
}

int sqlite_end_new(const struct store_place *place, struct error *err)
{
	char name[STORE_NAME_MAX];
	sqlite_name_new(place, "", name);
	fault_point("store.new");
	if (renameat(place->directory, name, place->directory, place->file))
		return fail_errno(err, "rename '%s/%s'", place->path, name);
	return sync_directory(place, err);
}

/* "carrel.db.corrupt-20261115T045052Z"; `again` tells apart those of one second. */
static void name_aside(const char *file, char *out, size_t size, int again)
{
	char now[32], stamp[32], more[16] = "";
	size_t len = 0;
	clock_format_now(now);
	for (const char *c = now; *c && *c != '.'; c++)
		if (*c != '-' && *c != ':')
			stamp[len++] = *c;
	stamp[len] = '\0';
	if (again)
		str_format(more, sizeof more, ".%d", again);
	str_format(out, size, "%s.corrupt-%sZ%s", file, stamp, more);
}

/* Whether any of the database's files exists under that name. */
static bool is_taken(const struct store_place *place, const char *name)
{
	for (size_t i = 0; i < PART_COUNT; i++) {
		char part[NAME_MAX];
		struct stat file;
		str_format(part, sizeof part, "%s%s", name, parts[i]);
		if (!fstatat(place->directory, part, &file, AT_SYMLINK_NOFOLLOW))
			return true;
	}
	return false;
}

void sqlite_name_aside(const struct store_place *place, struct store_opened *opened)
{
	int again = 0;
	do
		name_aside(place->file, opened->aside, sizeof opened->aside, again++);
	while (is_taken(place, opened->aside));
}

int sqlite_set_aside(
	const struct store_place *place, const struct store_opened *opened, struct error *err)
{
	for (size_t i = 0; i < PART_COUNT; i++) {
		char from[STORE_NAME_MAX], to[NAME_MAX];
		str_format(from, sizeof from, "%s%s", place->file, parts[i]);
		str_format(to, sizeof to, "%s%s", opened->aside, parts[i]);
		if (renameat(place->directory, from, place->directory, to) && errno != ENOENT)
			return fail_errno(err, "move '%s/%s' aside", place->path, from);
		fault_point("store.aside");
	}
	return sync_directory(place, err);
}
