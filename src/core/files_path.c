#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "core/files_parts.h"

#define ROOT_NAME "workspace"
#define LINKS_MAX 40   /* as many as the kernel follows */
#define STEPS_MAX 1024 /* of a way with links in it: each step walks from the root again */
#define RETRIES 16     /* of what only a race can make fail */

int files_open_at(int dir, const char *name, int flags)
{
	if (!(flags & O_PATH))
		flags |= O_NONBLOCK | O_NOCTTY;
	return path_open_inside(dir, name, flags | O_NOFOLLOW);
}

void files_leave(struct files_place *place)
{
	fd_close(&place->dir);
}

const char *files_type(mode_t mode)
{
	static const struct {
		mode_t type;
		const char *name;
	} types[] = { { S_IFREG, "file" }, { S_IFDIR, "directory" }, { S_IFLNK, "link" },
		{ S_IFIFO, "fifo" }, { S_IFSOCK, "socket" } };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if ((mode & S_IFMT) == types[i].type)
			return types[i].name;
	return "device";
}

/* The next component but "" and "."; *rest is what follows it. */
static bool next_part(struct str *rest, struct str *part)
{
	while (str_next(rest, '/', part))
		if (part->len > 0 && !str_is(*part, "."))
			return true;
	return false;
}

static bool append_part(char path[PATH_MAX], struct str part)
{
	size_t len = strlen(path);

	if (part.len > NAME_MAX || len + part.len + 2 > PATH_MAX)
		return false;
	if (len)
		path[len++] = '/';
	memcpy(path + len, part.data, part.len);
	path[len + part.len] = '\0';
	return true;
}

/* Takes "/workspace" off an absolute path. */
static bool enter_root(struct str *path)
{
	struct str part;

	return next_part(path, &part) && str_is(part, ROOT_NAME);
}

/* `path` as a caller gives it, as one relative to the root without "", "." and slashes too many. */
static int normalize(const char *path, char out[PATH_MAX], struct error *err)
{
	struct str rest = str_from(path), part;

	out[0] = '\0';
	/* Another absolute path is one of the workspace's own root: NAME:/x and NAME:x are one. */
	if (path_is_absolute(path) && !enter_root(&rest))
		rest = str_from(path);
	while (next_part(&rest, &part)) {
		if (str_is(part, ".."))
			return fail_hint(err, ERR_INVALID, "give the path relative to /workspace",
				"the path '%s' contains '..'", path);
		if (!append_part(out, part)) {
			errno = ENAMETOOLONG;
			return fail_errno(err, "'%s'", path);
		}
	}
	return 0;
}

/* -- by hand: the way has links in it, or directories to be made -- */

struct walk {
	int root;
	const char *path; /* as it was given, for errors */
	unsigned how;
	int links, steps;
	char seen[PATH_MAX]; /* walked: no link in it */
	char rest[PATH_MAX]; /* to be walked */
};
enum { WALK_GO_ON = 1, WALK_AGAIN = 2 };

static int leads_out(
	const struct walk *walk, const char *link, const char *target, struct error *err)
{
	return fail(err, ERR_DENIED, "'%s' points outside of the workspace: '%s' is a link to '%s'",
		walk->path, link, target);
}

/* The link at walk->seen + part, open at fd, takes the place of `part`; `rest` is what follows it.
 */
static int follow_link(
	struct walk *walk, int fd, struct str part, struct str rest, struct error *err)
{
	char target[PATH_MAX], joined[PATH_MAX], link[PATH_MAX];
	ssize_t len = readlinkat(fd, "", target, sizeof target - 1);

	if (len < 0)
		return fail_errno(err, "read a link of '%s'", walk->path);
	target[len] = '\0';
	if (++walk->links > LINKS_MAX)
		return fail(err, ERR_INVALID, "'%s': too many links", walk->path);
	struct str to = { target, (size_t)len };
	if (path_is_absolute(target)) {
		str_copy(link, sizeof link, walk->seen);
		append_part(link, part);
		if (!enter_root(&to))
			return leads_out(walk, link, target, err);
		walk->seen[0] = '\0';
	}
	if (!str_format(joined, sizeof joined, "%.*s/%.*s", (int)to.len, to.data, (int)rest.len,
		    rest.data)) {
		errno = ENAMETOOLONG;
		return fail_errno(err, "'%s'", walk->path);
	}
	memcpy(walk->rest, joined, sizeof joined);
	return WALK_GO_ON;
}

static bool is_last_part(struct str rest)
{
	struct str part;

	return !next_part(&rest, &part);
}

static int make_directory(struct walk *walk, struct str part, struct error *err)
{
	char name[NAME_MAX + 1];
	auto_close int dir = path_open_inside(walk->root, walk->seen, O_PATH | O_DIRECTORY);

	str_format(name, sizeof name, "%.*s", (int)part.len, part.data);
	if (dir < 0 || (mkdirat(dir, name, 0755) < 0 && errno != EEXIST))
		return fail_errno(err, "make directory '%s' of '%s'", name, walk->path);
	return WALK_GO_ON;
}

static int open_failed(struct walk *walk, struct str part, bool is_last, struct error *err)
{
	if (errno == ENOENT && is_last) {
		append_part(walk->seen, part);
		walk->rest[0] = '\0';
		return WALK_GO_ON;
	}
	if (errno == ENOENT && walk->how & FILES_MAKE)
		return make_directory(walk, part, err);
	/* A directory that was walked is a link now. */
	if (errno == ELOOP)
		return WALK_AGAIN;
	if (errno == EXDEV)
		return fail(err, ERR_DENIED,
			"'%s' points outside of the workspace: through a mount", walk->path);
	return fail_errno(err, "'%s'", walk->path);
}

static void keep_rest(struct walk *walk, struct str rest)
{
	memmove(walk->rest, rest.data, rest.len);
	walk->rest[rest.len] = '\0';
}

/* One component: 0 at the end. */
static int walk_step(struct walk *walk, struct error *err)
{
	char at[PATH_MAX];
	struct str rest = str_from(walk->rest), part;
	struct stat st;

	if (!next_part(&rest, &part))
		return 0;
	if (++walk->steps > STEPS_MAX)
		return fail(err, ERR_LIMIT, "'%s': too many path components, including links",
			walk->path);
	if (str_is(part, "..")) {
		char *slash = strrchr(walk->seen, '/');

		if (!walk->seen[0])
			return fail(err, ERR_DENIED,
				"'%s' points outside of the workspace: by '..'", walk->path);
		*(slash ? slash : walk->seen) = '\0';
		keep_rest(walk, rest);
		return WALK_GO_ON;
	}
	bool is_last = is_last_part(rest);
	str_copy(at, sizeof at, walk->seen);
	if (!append_part(at, part)) {
		errno = ENAMETOOLONG;
		return fail_errno(err, "'%s'", walk->path);
	}
	auto_close int fd = path_open_inside(walk->root, at, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return open_failed(walk, part, is_last, err);
	if (fstat(fd, &st) < 0)
		return fail_errno(err, "'%s'", walk->path);
	if (S_ISLNK(st.st_mode) && (!is_last || walk->how & FILES_FOLLOW))
		return follow_link(walk, fd, part, rest, err);
	memcpy(walk->seen, at, sizeof at);
	keep_rest(walk, rest);
	return WALK_GO_ON;
}

/* -- places -- */

/* The place at `path`, which has no link in it but maybe the last component. 0; or -1 with errno:
 * ELOOP when there is one. */
static int take_place(int root, const char *path, unsigned how, struct files_place *place)
{
	char parent[PATH_MAX];
	struct files_place found = FILES_NOWHERE;
	const char *slash = strrchr(path, '/');
	int at = slash ? (int)(slash - path) : 0;

	str_format(parent, sizeof parent, "%.*s", at, path);
	str_copy(found.name, sizeof found.name, slash ? slash + 1 : path);
	found.dir = path_open_inside(root, parent, O_PATH | O_DIRECTORY);
	if (found.dir < 0)
		return -1;
	auto_close int fd = files_open_at(found.dir, found.name, O_PATH);
	if (fd < 0 && errno != ENOENT)
		goto failed;
	found.is_there = fd >= 0;
	if (found.is_there && fstat(fd, &found.st) < 0)
		goto failed;
	if (found.is_there && S_ISLNK(found.st.st_mode) && how & FILES_FOLLOW) {
		errno = ELOOP;
		goto failed;
	}
	*place = found;
	return 0;
failed:
	files_leave(&found);
	return -1;
}

static int locate_by_hand(
	struct walk *walk, const char *normal, struct files_place *place, struct error *err)
{
	for (int tries = 0; tries < RETRIES; tries++) {
		int more;

		walk->seen[0] = '\0';
		walk->links = 0;
		str_copy(walk->rest, sizeof walk->rest, normal);
		do {
			more = walk_step(walk, err);
		} while (more == WALK_GO_ON);
		if (more < 0)
			return -1;
		if (more == 0 && take_place(walk->root, walk->seen, walk->how, place) == 0)
			return 0;
		if (more == 0 && errno != ELOOP && errno != ENOENT)
			return fail_errno(err, "'%s'", walk->path);
	}
	return fail(err, ERR_CONFLICT, "'%s': the path keeps changing while it is resolved",
		walk->path);
}

int files_locate(struct core_workspace *w, const char *path, unsigned how,
	struct files_place *place, struct error *err)
{
	char normal[PATH_MAX], upper[ID_LEN + sizeof "/upper"];

	if (normalize(path, normal, err) < 0)
		return -1;
	str_format(upper, sizeof upper, "%s/upper", w->model.id);
	auto_close int root = path_open_inside(w->core->workspaces, upper, O_PATH | O_DIRECTORY);
	if (root < 0)
		return fail_errno(err, "open the files of workspace '%s'", w->model.name);
	if (take_place(root, normal, how, place) == 0)
		return 0;
	/* With no link before it: what is missing is missing. */
	if (errno != ELOOP && errno != EXDEV && !(errno == ENOENT && how & FILES_MAKE))
		return fail_errno(err, "'%s'", path);
	struct walk walk = { .root = root, .path = path, .how = how };
	return locate_by_hand(&walk, normal, place, err);
}

int files_locate_known(struct core_workspace *w, const char *path, unsigned how,
	struct files_place *place, struct error *err)
{
	auto_place struct files_place found = FILES_NOWHERE;

	if (files_locate(w, path, how, &found, err) < 0)
		return -1;
	if (!found.is_there) {
		errno = ENOENT;
		return fail_errno(err, "'%s'", path);
	}
	*place = found;
	found.dir = -1;
	return 0;
}

int files_open_place(
	const struct files_place *place, const char *path, int flags, int *fd, struct error *err)
{
	auto_close int opened = files_open_at(place->dir, place->name, flags);
	struct stat st;

	if (opened < 0 && errno != ELOOP)
		return fail_errno(err, "open '%s'", path);
	/* Something else has its name now: a fifo, maybe. */
	if (opened < 0 || fstat(opened, &st) < 0 || st.st_ino != place->st.st_ino ||
		st.st_dev != place->st.st_dev)
		return fail(
			err, ERR_CONFLICT, "open '%s': it was replaced while it was opened", path);
	*fd = take_fd(&opened);
	return 0;
}
