#include "envs/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"

#define FILE_MAX (1 << 20)

static bool is_trusted(const struct stat *st)
{
	uid_t own = geteuid();
	unsigned others = own ? S_IWOTH : S_IWOTH | S_IWGRP;
	return (st->st_uid == 0 || st->st_uid == own) && !(st->st_mode & others);
}

/* What says where the launcher reads and writes. Searches for the lines without the parser: the
 * file isn't trusted. Or NULL. */
static const char *find_section(const char *text)
{
	static const char *const sections[] = { "\nsystem:", "\nblob:", "\npolicy:" };
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		const char *name = sections[i] + 1;
		if (!strncmp(text, name, strlen(name)) || strstr(text, sections[i]))
			return name;
	}
	return NULL;
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
	if (file_read(fd, FILE_MAX, arena, &text))
		return errno == EINVAL || errno == EFBIG
			       ? fail(err, ERR_INVALID, "'%s' is not a regular file of at most 1M",
					 path)
			       : fail_errno(err, "read '%s'", path);
	if (!is_trusted(&st)) {
		const char *section = find_section(text.data);
		if (!section)
			return 0;
		fail(err, ERR_DENIED, "'%s' has a section %.*s, but is writable for other users",
			path, (int)strlen(section) - 1, section);
		return error_hint(err, "chown %u '%s'; chmod 644 '%s'", geteuid(), path, path);
	}
	if (config_parse(text, arena, config, err))
		return error_context(err, "'%s'", path);
	return 0;
}
