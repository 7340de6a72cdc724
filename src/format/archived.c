#include <stdbool.h>
#include <string.h>
#include "base/str.h"
#include "format/archived.h"

static int refuse(struct error *err, const char *name, const char *why)
{
	return fail(err, ERR_DENIED, "'%s' in the archive %s", name, why);
}

/* The clean form of a relative path, and how many components it has. `name`: the entry it belongs
 * to. */
static int clean(
	const char *path, const char *name, char out[PATH_MAX], unsigned *depth, struct error *err)
{
	struct str rest = str_from(path), part;
	size_t len = 0;

	*depth = 0;
	if (path[0] == '/')
		return refuse(err, name, "has an absolute name");
	while (str_next(&rest, '/', &part)) {
		if (part.len == 0 || str_is(part, "."))
			continue;
		if (str_is(part, ".."))
			return refuse(err, name, "has a '..' in its name");
		if (part.len > NAME_MAX || len + part.len + 2 > PATH_MAX)
			return fail(
				err, ERR_LIMIT, "'%s' in the archive: the name is too long", name);
		if (++*depth > ARCHIVED_DEPTH_MAX)
			return fail(err, ERR_LIMIT,
				"'%s' in the archive is deeper than %d directories", name,
				ARCHIVED_DEPTH_MAX);
		if (len > 0)
			out[len++] = '/';
		memcpy(out + len, part.data, part.len);
		len += part.len;
	}
	out[len] = '\0';
	return 0;
}

/* Where it leads is nobody's business: nothing follows it but what runs in a sandbox, in whose own
 * root it leads somewhere or nowhere. */
static int judge_link(const struct archived *entry, struct archived_place *place, struct error *err)
{
	const char *target = entry->target;

	if (!target || !target[0])
		return fail(
			err, ERR_INVALID, "link '%s' in the archive has no target", entry->name);
	if (!str_copy(place->target, sizeof place->target, target))
		return fail(err, ERR_LIMIT, "'%s' in the archive: the link's target is too long",
			entry->name);
	return 0;
}

static int judge_hard_link(
	const struct archived *entry, struct archived_place *place, struct error *err)
{
	unsigned depth;

	if (!entry->target || clean(entry->target, entry->name, place->target, &depth, err) < 0)
		return entry->target
			       ? error_context(err, "hard link")
			       : fail(err, ERR_INVALID, "link '%s' in the archive has no target",
					 entry->name);
	if (depth == 0 || strcmp(place->target, place->path) == 0)
		return fail(err, ERR_INVALID, "'%s' in the archive is a hard link to '%s'",
			entry->name, entry->target);
	return 0;
}

int archived_judge(const struct archived *entry, struct archived_place *place, struct error *err)
{
	unsigned depth;

	if (!entry->name || !entry->name[0])
		return fail(err, ERR_INVALID, "an entry of the archive has no name");
	if (entry->type == ARCHIVED_OTHER)
		return refuse(err, entry->name, "is neither a file, a directory nor a link");
	if (clean(entry->name, entry->name, place->path, &depth, err) < 0)
		return -1;
	if (depth == 0 && entry->type != ARCHIVED_DIRECTORY)
		return fail(err, ERR_INVALID, "'%s' in the archive is not a valid file name",
			entry->name);
	/* The mode of a link means nothing, and a hard link has that of what it leads to. */
	if (entry->mode & 06000 && entry->type != ARCHIVED_LINK)
		return refuse(err, entry->name, "has a setuid or setgid bit");
	place->mode = entry->mode & 0777;
	place->target[0] = '\0';
	if (entry->type == ARCHIVED_LINK)
		return judge_link(entry, place, err);
	if (entry->type == ARCHIVED_HARD_LINK)
		return judge_hard_link(entry, place, err);
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
