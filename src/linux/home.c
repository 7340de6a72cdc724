#include "linux/home.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/str.h"
#include "base/walk.h"
#include "linux/home_image.h"

#define HOME_OWNER 64199 /* when there is no user `carrel` */

int home_find_path(struct arena *arena, const char **path, struct error *err)
{
	const char *set = getenv("CARREL_HOME"), *data = getenv("XDG_DATA_HOME"),
		   *user = getenv("HOME");
	if (set && set[0]) {
		if (!path_is_absolute(set))
			return fail_hint(err, ERR_INVALID, "CARREL_HOME=/var/lib/carrel",
				"CARREL_HOME '%s' is not an absolute path", set);
		*path = path_normalize(arena, "/", set);
	} else if (geteuid() == 0)
		*path = "/var/lib/carrel";
	else if (data && path_is_absolute(data)) /* a relative one is to be ignored, says XDG */
		*path = path_normalize(arena, data, "carrel");
	else if (user && path_is_absolute(user))
		*path = path_normalize(arena, user, ".local/share/carrel");
	else
		return fail_hint(
			err, ERR_INVALID, "set CARREL_HOME", "neither CARREL_HOME nor HOME is set");
	return 0;
}

/* The user's line in /etc/passwd, read by hand: a static program has no name service. */
bool home_find_user(const char *name, uid_t *uid, gid_t *gid)
{
	char text[65536];
	ssize_t len = fd_read_file(AT_FDCWD, "/etc/passwd", text, sizeof text);
	struct str rest = { text, len > 0 ? (size_t)len : 0 }, line, field;
	while (str_next(&rest, '\n', &line)) {
		uint64_t ids[2];
		if (!str_next(&line, ':', &field) || !str_is(field, name))
			continue;
		str_next(&line, ':', &field);
		for (int i = 0; i < 2; i++)
			if (!str_next(&line, ':', &field) || !str_to_u64(field, &ids[i]) ||
				ids[i] > UINT32_MAX)
				return false;
		*uid = (uid_t)ids[0];
		*gid = (gid_t)ids[1];
		return true;
	}
	return false;
}

void home_find_owner(uid_t *uid, gid_t *gid)
{
	if (!home_find_user("carrel", uid, gid))
		*uid = *gid = HOME_OWNER;
}

/* Makes the home itself; root gives it to its owner. */
static int make_home(const char *path, int *dir, struct error *err)
{
	char parent[4096];
	const char *name = path_basename(path);
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), above = -1;
	str_format(parent, sizeof parent, "%.*s", (int)(name - path), path);
	above = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above < 0 && path_make_directories(root, parent + 1, 0755, &above, err))
		return -1;
	bool is_new = !mkdirat(above, name, 0700);
	if (!is_new && errno != EEXIST)
		return fail_errno(err, "make '%s'", path);
	auto_close int made = fd_open_directory(above, name);
	if (made < 0)
		return fail_errno(err, "open '%s'", path);
	if (is_new && geteuid() == 0) {
		uid_t uid;
		gid_t gid;
		home_find_owner(&uid, &gid);
		if (fchown(made, uid, gid))
			return fail_errno(err, "give '%s' to uid %u", path, uid);
	}
	*dir = take_fd(&made);
	return 0;
}

/* Nothing but a configuration, which may be there before anything else is. */
static bool is_fresh(int dir)
{
	auto_walk DIR *list = walk_open(dir, ".");
	struct dirent *entry;
	while ((entry = walk_next(list)))
		if (strcmp(entry->d_name, "config.yaml"))
			return false;
	return list;
}

/* Whom root's home may belong to: root gives what is its own away. 64199 stays one when a user
 * `carrel` was made later. */
static bool is_owner(uid_t uid)
{
	uid_t owner;
	gid_t group;
	home_find_owner(&owner, &group);
	return uid == 0 || uid == HOME_OWNER || uid == owner;
}

/* A directory that root created for the home gets the home's owner. A directory with files of
 * root's (such as /root) is refused. */
static int adopt(int dir, struct home *home, struct error *err)
{
	struct stat st;
	bool fresh = is_fresh(dir);
	/* Another root may have made it just now, and given it away since we looked. */
	if (!fresh && !fstat(dir, &st) && st.st_uid != 0 && is_owner(st.st_uid)) {
		home->uid = st.st_uid;
		home->gid = st.st_gid;
		home->is_foreign = true;
		return 0;
	}
	if (!fresh)
		return fail_hint(err, ERR_DENIED,
			"set CARREL_HOME to a new directory, or to one that contains only "
			"config.yaml",
			"CARREL_HOME '%s' belongs to root and contains other files", home->path);
	home_find_owner(&home->uid, &home->gid);
	/* It stays root's: root obeys nothing that core could write. The owner must be able to read
	 * it; a closed one, with passwords of indexes perhaps, is opened for its group alone. */
	bool is_closed = !fstatat(dir, "config.yaml", &st, AT_SYMLINK_NOFOLLOW) &&
			 S_ISREG(st.st_mode) && st.st_uid == 0 && !(st.st_mode & S_IROTH);
	if ((is_closed &&
		    (fchownat(dir, "config.yaml", 0, home->gid, AT_SYMLINK_NOFOLLOW) ||
			    fchmodat(dir, "config.yaml", (st.st_mode & 0600) | S_IRGRP, 0))) ||
		fchownat(dir, "", home->uid, home->gid, AT_EMPTY_PATH))
		return fail_errno(err, "give '%s' to uid %u", home->path, home->uid);
	home->is_foreign = true;
	return 0;
}

int home_open(const char *path, struct arena *arena, struct home *home, struct error *err)
{
	struct stat st;
	if (!path_is_normal(path) || !path_basename(path)[0])
		return fail(
			err, ERR_INVALID, "CARREL_HOME '%s' is not an absolute, plain path", path);
	if (home_image_ensure(path, err))
		return -1;
	auto_close int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 && make_home(path, &dir, err)) {
		error_context(err, "CARREL_HOME '%s'", path);
		return error_hint(err, "set CARREL_HOME to a directory that can be written");
	}
	if (fstat(dir, &st))
		return fail_errno(err, "look at '%s'", path);
	if (geteuid() && st.st_uid != geteuid())
		return fail_hint(err, ERR_DENIED, "set CARREL_HOME to a directory of your own",
			"CARREL_HOME '%s' belongs to uid %u, not to you", path, st.st_uid);
	if (geteuid() == 0 && !is_owner(st.st_uid))
		return fail_hint(err, ERR_DENIED, "set CARREL_HOME to a new directory",
			"CARREL_HOME '%s' belongs to uid %u, who could change its files", path,
			st.st_uid);
	if (st.st_mode & S_IWOTH)
		return fail_hint(err, ERR_DENIED,
			"chmod o-w, after checking that nobody else has written there",
			"CARREL_HOME '%s' is writable for everybody", path);
	*home = (struct home){ .path = arena_text(arena, path),
		.uid = st.st_uid,
		.gid = st.st_gid,
		.is_foreign = geteuid() == 0 && st.st_uid != 0 };
	if (geteuid() == 0 && st.st_uid == 0 && adopt(dir, home, err))
		return -1;
	home->dir = take_fd(&dir);
	return 0;
}

void home_done(struct home *home)
{
	fd_close(&home->dir);
}

static gid_t entered; /* the group of the home that was entered last */
static int depth;     /* of home_enter */

/* Neither call can fail with CAP_SETUID and CAP_SETGID; the kernel drops and restores root's
 * capabilities over files together with the fsuid. */
void home_enter(const struct home *home)
{
	if (!home->is_foreign || depth++)
		return;
	/* The group stays: root needs none for what it may do. Each of these calls is a new set of
	 * credentials. */
	if (entered != home->gid)
		setfsgid(entered = home->gid);
	setfsuid(home->uid);
}

void home_leave(const struct home *home)
{
	int saved = errno;
	if (!home->is_foreign || (depth && --depth))
		return;
	setfsuid(0); /* who entered is root */
	errno = saved;
}

const struct home *home_entered(const struct home *home)
{
	home_enter(home);
	return home;
}

void home_leave_block(const struct home **home)
{
	home_leave(*home);
}

void home_leave_group(void)
{
	if (entered)
		setfsgid(entered = 0);
}

int home_open_directory(const struct home *home, const char *name, int *fd, struct error *err)
{
	auto_close int made = -1;
	home_enter(home);
	int dir = fd_open_directory(home->dir, name);
	int failed = 0;
	if (dir < 0 && errno == ENOENT) {
		failed = path_make_directories(home->dir, name, 0700, &made, err);
		if (!failed)
			dir = fd_open_directory(home->dir, name);
	}
	if (!failed && dir < 0)
		failed = fail_errno(err, "open '%s/%s'", home->path, name);
	home_leave(home);
	if (failed)
		return -1;
	*fd = dir;
	return 0;
}

#define VOUCHED "vouched"

static void name_vouched(const char *path, char name[sizeof VOUCHED + 1 + 2 * SHA256_LEN])
{
	char hex[2 * SHA256_LEN + 1];
	sha256_of(path, strlen(path), hex);
	str_format(name, sizeof VOUCHED + 1 + 2 * SHA256_LEN, VOUCHED "/%s", hex);
}

bool home_is_vouched(const struct home *home, const char *path)
{
	char name[sizeof VOUCHED + 1 + 2 * SHA256_LEN], text[4097];
	struct stat st;
	if (!home->is_foreign)
		return true;
	name_vouched(path, name);
	auto_close int fd = path_open_nolinks(home->dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != 0 ||
		st.st_nlink != 1 || st.st_mode & 022)
		return false;
	/* Its name isn't enough: the owner of the directory can give it another one. */
	ssize_t len = fd_read_full(fd, text, sizeof text);
	return len > 0 && (size_t)len == strlen(path) && !memcmp(text, path, (size_t)len);
}

int home_vouch(const struct home *home, const char *path, struct error *err)
{
	char name[sizeof VOUCHED + 1 + 2 * SHA256_LEN];
	auto_close int dir = -1;
	if (home_is_vouched(home, path))
		return 0;
	if (home_open_directory(home, VOUCHED, &dir, err))
		return -1;
	name_vouched(path, name);
	const char *file = path_basename(name);
	if (unlinkat(dir, file, 0) && errno != ENOENT)
		return fail_errno(err, "make '%s/%s'", home->path, name);
	auto_close int fd =
		openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, path, strlen(path)) < 0)
		return fail_errno(err, "make '%s/%s'", home->path, name);
	return 0;
}
