/* grants.c -- directories of the host and shared trees that sandboxes of a workspace show: taken
 * from a user's voucher, kept, and opened again at each start.
 * 1. Grants lie in a directory beside the home, not in it: core can write all of the home.
 * 2. An object is opened by its path, following no link, and must be the one that was granted. As
 * root, a sandbox gets that descriptor. A plain user's child opens it again, in its own mount
 * namespace, following no link either: a rename in between leads to nothing that the user of the
 * directory above could not show by itself. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "launch/internal.h"
#include "linux/fd_message.h"
#include "sandbox/plan/grants.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* ---- where they are kept ---- */

static int open_place(struct launcher *launcher, bool makes, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const char *path = arena_printf(&arena, "%s.grants", launcher->home->path);
	struct stat st;
	if (launcher->grants >= 0)
		return 0;
	if (makes && mkdir(path, 0700) && errno != EEXIST) {
		fail_errno(err, "make '%s', which keeps what workspaces show of the host", path);
		return error_hint(err, "make that directory, owned by this user, with mode 0700");
	}
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(err, "open '%s'", path);
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 077)
		return fail_hint(err, ERR_DENIED,
			"check what it holds, then give it to this user alone, with mode 0700",
			"'%s' belongs to uid %u and has the mode %04o: it must belong to uid %u "
			"alone (mode 0700)",
			path, st.st_uid, st.st_mode & 07777, geteuid());
	launcher->grants = take_fd(&fd);
	return 0;
}

static bool has_workspace(const struct home *home, const char *id)
{
	char path[16 + ID_LEN];
	struct stat st;
	if (!id_is_valid(id))
		return false;
	str_format(path, sizeof path, "workspaces/%s", id);
	auto_leave const struct home *entered = home_entered(home);
	return !fstatat(entered->dir, path, &st, AT_SYMLINK_NOFOLLOW);
}

int grants_open(struct launcher *launcher, struct error *err)
{
	struct dirent *entry;
	launcher->grants = -1;
	if (open_place(launcher, false, err))
		return err->sys_errno == ENOENT ? 0 : -1; /* nothing was ever granted */
	auto_walk DIR *dir = walk_open(launcher->grants, ".");
	/* Those of workspaces that are gone, and what a crash left. The home's owner can't remove
	 * them. */
	while ((entry = walk_next(dir)))
		if (entry->d_name[0] != '.' && !has_workspace(launcher->home, entry->d_name))
			unlinkat(launcher->grants, entry->d_name, 0);
	return 0;
}

static int save(struct launcher *launcher, const char *id, const struct grant *grants, size_t count,
	struct error *err)
{
	char name[ID_LEN + 8];
	auto_buf struct buf text = buf_empty(GRANTS_BYTES_MAX);
	grants_encode(grants, count, &text);
	if (text.overflow)
		return fail(err, ERR_LIMIT, "the paths of the mounts are too long");
	if (open_place(launcher, true, err))
		return -1;
	str_format(name, sizeof name, "%s.new", id);
	auto_close int fd = openat(launcher->grants, name,
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, text.data, text.len) != (ssize_t)text.len || fsync(fd))
		return fail_errno(err, "write '%s.grants/%s'", launcher->home->path, name);
	fault_point("launch_grant_written");
	if (renameat(launcher->grants, name, launcher->grants, id) || fsync(launcher->grants))
		return fail_errno(err, "rename '%s.grants/%s'", launcher->home->path, name);
	return 0;
}

static int grants_load(const struct launcher *launcher, const char *id, struct arena *arena,
	struct grant grants[GRANTS_MAX], size_t *count, struct error *err)
{
	char *text = arena_alloc(arena, GRANTS_BYTES_MAX + 1);
	*count = 0;
	if (launcher->grants < 0)
		return 0;
	auto_close int fd = openat(launcher->grants, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	ssize_t len = fd < 0 ? -1 : fd_read_full(fd, text, GRANTS_BYTES_MAX);
	if (len < 0)
		return fail_errno(err, "read the mounts of workspace '%s'", id);
	return grants_decode((struct str){ text, (size_t)len }, grants, count, err);
}

/* ---- granted ---- */

/* The home would show every workspace, and the daemon's socket. */
static int check_place(const struct launcher *launcher, const char *source, struct error *err)
{
	char own[PATH_MAX], grants[PATH_MAX + 8];
	const char *home = realpath(launcher->home->path, own) ? own : launcher->home->path;
	str_format(grants, sizeof grants, "%s.grants", home);
	if (path_is_beneath(source, home) || path_is_beneath(home, source) ||
		path_is_beneath(source, grants))
		return fail(
			err, ERR_INVALID, "'%s' is, contains or is inside carrel's home", source);
	return 0;
}

/* Opens it anew: following no link, for what is mounted. */
static int open_source(const char *source, int *fd, struct stat *st, struct error *err)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int got = path_open_nolinks(root, source + 1, O_PATH | O_CLOEXEC, 0);
	if (got < 0 || fstat(got, st))
		return fail_errno(err, "open '%s'", source);
	if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
		return fail(err, ERR_INVALID, "'%s' is neither a file nor a directory", source);
	*fd = take_fd(&got);
	return 0;
}

/* The user had it open for reading: a descriptor that only names it (O_PATH) proves nothing. It
 * must be what lies at the path. Sandboxes have descriptors of what they see read-only, and could
 * give them to core. */
static int vouch(const struct launcher *launcher, struct grant *grant, int given, struct error *err)
{
	auto_close int fd = -1;
	struct stat st, shown;
	struct statvfs mount;
	int flags = fcntl(given, F_GETFL);
	struct plan_bind bind = { .source = grant->source };
	auto_arena struct arena arena = { 0 };
	if (flags < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY || fstat(given, &shown))
		return fail(err, ERR_DENIED, "'%s' was not opened for reading", grant->source);
	if (check_place(launcher, grant->source, err) ||
		host_look_at_source(
			&bind, grant->kind == GRANT_DIR ? "--dir" : "-v", &arena, err) ||
		open_source(grant->source, &fd, &st, err))
		return -1;
	if (st.st_dev != shown.st_dev || st.st_ino != shown.st_ino)
		return fail(
			err, ERR_CONFLICT, "'%s' was replaced while it was granted", grant->source);
	if (grant->kind == GRANT_DIR && !S_ISDIR(st.st_mode))
		return fail(err, ERR_INVALID, "--dir '%s' is not a directory", grant->source);
	if (!grant->read_only && (fstatvfs(given, &mount) || mount.f_flag & ST_RDONLY))
		return fail_hint(err, ERR_DENIED, "-v SOURCE:TARGET:ro",
			"'%s' is read-only for who grants it", grant->source);
	grant->device = st.st_dev;
	grant->inode = st.st_ino;
	return 0;
}

/* Whether it is an end of a pair: the ends of a connection have the name of its listener. */
static bool is_pair(int socket)
{
	struct sockaddr_un own, peer;
	socklen_t own_len = sizeof own, peer_len = sizeof peer;
	return !getsockname(socket, (struct sockaddr *)&own, &own_len) &&
	       !getpeername(socket, (struct sockaddr *)&peer, &peer_len) &&
	       own_len == sizeof own.sun_family && peer_len == sizeof peer.sun_family &&
	       own.sun_family == AF_UNIX;
}

/* How many pid namespaces the file says that a process is in, below the one of /proc; 0: unknown,
 * or it has ended. */
static size_t count_namespaces(const char *path)
{
	char text[8192];
	struct str rest, line, word;
	size_t count = 0;
	ssize_t len = fd_read_file(AT_FDCWD, path, text, sizeof text);
	rest = (struct str){ text, len > 0 ? (size_t)len : 0 };
	while (str_next(&rest, '\n', &line)) {
		if (!str_starts_with(line, "NSpid:"))
			continue;
		line.data += strlen("NSpid:");
		line.len -= strlen("NSpid:");
		while (str_next(&line, '\t', &word))
			count += word.len && word.data[0] >= '1' && word.data[0] <= '9';
	}
	return count;
}

/* Whether the maker of the pair lives in the launcher's own pid namespace. Core, jobs and sandboxes
 * have pid namespaces of their own: as a plain user's they have that user's uid, and core reads
 * each voucher that it passes on. With the descriptors in it, or with one that a sandbox gave it,
 * core could make another: of a directory that was granted with its settings protected (--dir),
 * one without. */
static bool is_near(int socket, pid_t pid)
{
	char path[64];
	int pidfd;
	socklen_t len = sizeof pidfd;
	bool has_pidfd = !getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len);
	auto_close int held = has_pidfd ? pidfd : -1;
	if (!has_pidfd && errno != ENOPROTOOPT)
		return false; /* it has ended, and its number may be that of another process */
	if (has_pidfd)	      /* Linux 6.5: no other process can have got its number */
		str_format(path, sizeof path, "/proc/self/fdinfo/%d", held);
	else
		str_format(path, sizeof path, "/proc/%d/status", (int)pid);
	size_t own = count_namespaces("/proc/self/status");
	return own && count_namespaces(path) == own;
}

/* Whether the pair was made by the user of this launcher, and not by core or for it: as root, core
 * has another uid; as a plain user, is_near tells. Core holds listeners and pairs that the launcher
 * itself has made, and the kernel names the launcher's user for those too. */
static int check_maker(int socket, struct error *err)
{
	struct ucred maker;
	socklen_t len = sizeof maker;
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &maker, &len) || len != sizeof maker)
		return fail_errno(err, "find out who granted the mounts");
	if (!is_pair(socket) || maker.pid == getpid())
		return fail(err, ERR_DENIED, "the mounts were not granted by a pair of sockets");
	if (maker.uid != geteuid())
		return fail(err, ERR_DENIED,
			"uid %u may not mount directories of this host; uid %u may", maker.uid,
			geteuid());
	if (!is_near(socket, maker.pid))
		return fail(err, ERR_DENIED,
			"a process in another pid namespace than the daemon's may not mount "
			"directories of this host");
	return 0;
}

static int take_voucher(const struct launcher *launcher, int socket, struct arena *arena,
	struct grant grants[GRANTS_MAX], size_t *count, struct error *err)
{
	struct fd_message message = { 0 };
	char *text = arena_alloc(arena, GRANTS_BYTES_MAX);
	if (check_maker(socket, err))
		return -1;
	ssize_t len = fd_message_receive(socket, text, GRANTS_BYTES_MAX, MSG_DONTWAIT, &message);
	int failed = 0;
	if (len <= 0 || message.is_cut || message.has_lost_fds ||
		grants_decode((struct str){ text, (size_t)len }, grants, count, err))
		failed = fail(err, ERR_INVALID, "the list of mounts is invalid");
	else if ((size_t)message.fd_count != *count)
		failed = fail(err, ERR_INVALID, "there must be one descriptor a mount");
	for (size_t i = 0; !failed && i < *count; i++)
		failed = grants[i].kind == GRANT_TREE
				 ? fail(err, ERR_INVALID, "a shared tree needs no descriptor")
				 : vouch(launcher, &grants[i], message.fds[i], err);
	fd_message_close(&message, 0);
	return failed ? -1 : 0;
}

static int add_trees(const struct launch_packet *packet, struct grant grants[GRANTS_MAX],
	size_t *count, struct error *err)
{
	for (uint32_t i = 0; i < packet->head.string_count; i += 3) {
		if (*count == GRANTS_MAX)
			return fail(err, ERR_LIMIT, "a workspace can have at most %d mounts",
				GRANTS_MAX);
		grants[(*count)++] = (struct grant){ GRANT_TREE, packet->strings[i],
			packet->strings[i + 1], !strcmp(packet->strings[i + 2], "ro"), 0, 0 };
	}
	return 0;
}

void grant_answer(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	struct launch_message answer = { .type = LAUNCH_DONE, .tag = packet->head.tag };
	auto_arena struct arena arena = { 0 };
	struct grant grants[GRANTS_MAX];
	size_t count = 0;
	struct error err;
	if ((packet->head.present &&
		    take_voucher(launcher, fds[0], &arena, grants, &count, &err)) ||
		add_trees(packet, grants, &count, &err) ||
		save(launcher, packet->head.id, grants, count, &err))
		link_send_failed(launcher, packet->head.tag, &err);
	else
		link_send(launcher, &answer, NULL, 0, NULL, 0);
}

void grant_revoke(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	const struct launch_message *head = &packet->head;
	struct launch_message answer = { .type = LAUNCH_DONE, .tag = head->tag };
	if (launcher->grants >= 0)
		unlinkat(launcher->grants, head->id, 0);
	link_send(launcher, &answer, NULL, 0, NULL, 0);
}

/* ---- at a start ---- */

static int add_host(struct granted *granted, const struct grant *grant, bool is_privileged,
	struct arena *arena, struct plan_bind *bind, struct error *err)
{
	auto_close int fd = -1;
	struct stat st;
	if (open_source(grant->source, &fd, &st, err)) {
		if (err->code == ERR_NOT_FOUND)
			err->code = ERR_CONFLICT;
		error_hint(err, "put it back, or remove the workspace");
		return error_context(err, "mount '%s'", grant->target);
	}
	if (st.st_dev != grant->device || st.st_ino != grant->inode)
		return fail_hint(err, ERR_CONFLICT,
			"put the old one back, or create the workspace again",
			"'%s', which is mounted at '%s', was replaced by another %s since the "
			"workspace was created",
			grant->source, grant->target, path_type(st.st_mode));
	bind->source = is_privileged ? arena_printf(arena, PLAN_DESCRIPTORS "%d", fd) : "/";
	bind->beneath = is_privileged ? NULL : grant->source + 1;
	bind->kind = S_ISDIR(st.st_mode) ? PATH_DIRECTORY : PATH_FILE;
	bind->owner_uid = st.st_uid;
	bind->owner_gid = st.st_gid;
	granted->fds[granted->count++] = take_fd(&fd);
	return 0;
}

static int add_tree(const struct launcher *launcher, const struct grant *grant, struct arena *arena,
	struct plan_bind *bind, struct error *err)
{
	struct stat st;
	bind->source = launcher->home->path;
	bind->beneath = arena_printf(arena, "trees/%s", grant->source);
	bind->kind = PATH_DIRECTORY;
	bind->owner_uid = launcher->home->uid;
	bind->owner_gid = launcher->home->gid;
	auto_leave const struct home *home = home_entered(launcher->home);
	auto_close int fd =
		path_open_nolinks(home->dir, bind->beneath, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0 || fstat(fd, &st) || st.st_uid != home->uid)
		return fail_hint(err, ERR_CONFLICT, "carrel tree create makes it",
			"the shared tree '%s' is not there", grant->source);
	return 0;
}

int grants_apply(struct launcher *launcher, const char *id, struct arena *arena,
	struct plan_options *options, struct plan_facts *facts, struct granted *granted,
	struct error *err)
{
	struct grant grants[GRANTS_MAX];
	size_t count;
	if (grants_load(launcher, id, arena, grants, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct plan_bind bind = { .target = grants[i].target,
			.read_only = grants[i].read_only };
		if (grants[i].kind == GRANT_TREE ? add_tree(launcher, &grants[i], arena, &bind, err)
						 : add_host(granted, &grants[i], facts->privileged,
							   arena, &bind, err))
			return -1;
		if (grants[i].kind != GRANT_DIR) {
			vec_push(arena, &options->binds, bind);
			continue;
		}
		granted->dir = bind;
		options->dir = &granted->dir;
		options->workspace = NULL;
		options->writable_config = false;
		if (host_look_at_protected(grants[i].source, arena, &facts->protect, err))
			return -1;
	}
	return 0;
}

int grants_have_dir(
	const struct launcher *launcher, const char *id, bool *has_dir, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct grant grants[GRANTS_MAX];
	size_t count;
	if (grants_load(launcher, id, &arena, grants, &count, err))
		return -1;
	*has_dir = count && grants[0].kind == GRANT_DIR;
	return 0;
}

void grants_done(struct granted *granted)
{
	for (size_t i = 0; i < granted->count; i++)
		fd_close(&granted->fds[i]);
	granted->count = 0;
}
