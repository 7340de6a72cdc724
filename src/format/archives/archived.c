#include "base/str.h"
#include "format/archives/archived.h"

static int archived_refuse(struct error *err, const char *name, const char *why)
{
	return fail(err, ERR_DENIED, "'%s' in the archive %s", name, why);
}

/* The clean form of a relative path. `name`: the entry it belongs to. */
static int clean(const char *path, const char *name, unsigned depth_max, char out[PATH_MAX],
	struct error *err)
{
	struct str rest = str_from(path), part;
	unsigned depth = 0;
	size_t len = 0;
	if (path[0] == '/')
		return archived_refuse(err, name, "has an absolute name");
	while (str_next(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, ".."))
			return archived_refuse(err, name, "has a '..' in its name");
		if (part.len > NAME_MAX || len + part.len + 2 > PATH_MAX)
			return fail(
				err, ERR_LIMIT, "'%s' in the archive: the name is too long", name);
		if (++depth > depth_max)
			return fail(err, ERR_LIMIT,
				"'%s' in the archive is deeper than %u directories", name,
				depth_max);
		if (len > 0)
			out[len++] = '/';
		memcpy(out + len, part.data, part.len);
		len += part.len;
	}
	out[len] = '\0';
	return 0;
}

int archived_judge(const struct tar_entry *entry, unsigned depth_max, struct archived_place *place,
	struct error *err)
{
	if (!entry->name || !entry->name[0])
		return fail(err, ERR_INVALID, "an entry of the archive has no name");
	if (entry->kind == TAR_OTHER)
		return archived_refuse(
			err, entry->name, "is neither a file, a directory nor a link");
	if (clean(entry->name, entry->name, depth_max, place->path, err) < 0)
		return -1;
	if (!place->path[0] && entry->kind != TAR_DIRECTORY)
		return fail(err, ERR_INVALID, "'%s' in the archive is not a valid file name",
			entry->name);
	/* The mode of a link means nothing, and a hard link has that of what it leads to. */
	if (entry->mode & 06000 && entry->kind != TAR_SYMLINK)
		return archived_refuse(err, entry->name, "has a setuid or setgid bit");
	place->mode = entry->mode & 0777;
	place->target[0] = '\0';
	if (entry->kind != TAR_SYMLINK && entry->kind != TAR_HARDLINK)
		return 0;
	if (!entry->link || !entry->link[0])
		return fail(
			err, ERR_INVALID, "link '%s' in the archive has no target", entry->name);
	/* The target of a link isn't checked: only processes in a sandbox follow it, within the
	 * sandbox's root. */
	if (entry->kind == TAR_SYMLINK)
		return str_copy(place->target, sizeof place->target, entry->link)
			       ? 0
			       : fail(err, ERR_LIMIT,
					 "'%s' in the archive: the link's target is too long",
					 entry->name);
	if (clean(entry->link, entry->name, depth_max, place->target, err) < 0)
		return error_context(err, "hard link");
	if (!place->target[0] || strcmp(place->target, place->path) == 0)
		return fail(err, ERR_INVALID, "'%s' in the archive is a hard link to '%s'",
			entry->name, entry->link);
	return 0;
}

int archived_judge_attribute(const char *name, const char *attribute, struct error *err)
{
	static const char *const refused[] = { "security.", "trusted.", "user.overlay." };
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (strncmp(attribute, refused[i], strlen(refused[i])) == 0)
			return fail(err, ERR_DENIED,
				"'%s' in the archive has the extended attribute '%s'", name,
				attribute);
	return 0;
}
