#include "envs/shown.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"

#define FILE_MAX (1 << 20)

static bool is_trusted(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & (S_IWOTH | S_IWGRP));
}

static int fail_untrusted(
	const char *home, const char *path, const struct stat *st, struct error *err)
{
	struct stat dir;
	bool is_root = !geteuid();
	/* The home's owner reads it, too, to build environments: by its group. */
	gid_t gid = is_root && !stat(home, &dir) ? dir.st_gid : getegid();
	fail(err, ERR_DENIED,
		"'%s' belongs to uid %u and has the mode %04o: it must belong to %s, and nobody "
		"else may write it",
		path, st->st_uid, st->st_mode & 07777, is_root ? "root" : "you or root");
	return error_hint(err, "check what it says, then: chown %u:%u '%s'; chmod %s '%s'",
		geteuid(), gid, path, is_root ? "g+r,go-w" : "go-w", path);
}

int shown_read(const char *home, struct arena *arena, struct config *config, struct error *err)
{
	const char *path = arena_printf(arena, "%s/config.yaml", home);
	struct stat st;
	struct str text;
	auto_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	config_defaults(config);
	/* A home that the caller can't enter isn't the caller's. */
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || access(home, X_OK)))
		return 0;
	if (fd < 0 && errno == ELOOP)
		return fail(
			err, ERR_INVALID, "'%s' is a symbolic link, which is not followed", path);
	if (fd < 0 || fstat(fd, &st))
		return fail_errno(err, "open '%s'", path);
	/* What others wrote isn't parsed, and not ignored either: it may be all that forbids
	 * something. */
	if (!is_trusted(&st))
		return fail_untrusted(home, path, &st, err);
	if (file_read(fd, FILE_MAX, arena, &text))
		return errno == EINVAL || errno == EFBIG
			       ? fail(err, ERR_INVALID, "'%s' is not a regular file of at most 1M",
					 path)
			       : fail_errno(err, "read '%s'", path);
	if (config_parse(text, arena, config, err))
		return error_context(err, "'%s'", path);
	return 0;
}
