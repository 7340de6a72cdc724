/* The role as a process: what it is given, and what it gives up before it serves. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "egress/internal.h"
#include "linux/child.h"
#include "linux/landlock.h"
#include "linux/seccomp.h"

#define FDS_MAX 65536 /* two a connection, listeners, channels, lookups */
/* More than all connections can hold, or sandboxes together could end the process: 4,096 of at most
 * 340 KiB (a head of the answer, what the client has not taken of it, two heads of requests). */
#define DATA_MAX ((rlim_t)1536 << 20)

/* What resolving reads: resolv.conf, nsswitch.conf and hosts. Tools replace these files by new
 * ones, so that their directory is what has to be seen, and the one that resolv.conf may be a link
 * into. */
#define RESOLVER_FILE "/etc/resolv.conf"
#define READABLE_MAX 2

static size_t find_readable(struct role_path readable[READABLE_MAX], char target[PATH_MAX])
{
	size_t count = 0;
	readable[count++] = (struct role_path){ "/etc", ROLE_READ };
	if (!realpath(RESOLVER_FILE, target))
		return count;
	char *end = strrchr(target, '/');
	*end = '\0';
	/* "/run/x" at least: a directory at the top holds too much that is not for this process. */
	if (strcmp(target, "/etc") != 0 && strchr(target + (target[0] == '/'), '/'))
		readable[count++] = (struct role_path){ target, ROLE_READ };
	return count;
}

void egress_describe(struct role_start *start)
{
	static char name[] = EGRESS_ARGV0;
	static char *const argv[] = { name, NULL }, *const env[] = { NULL };
	static struct role_path readable[READABLE_MAX];
	static char target[PATH_MAX];
	start->argv = argv;
	start->env = env;
	start->root = readable;
	start->root_count = find_readable(readable, target);
	start->has_network = true;
}

static int close_files(struct error *err)
{
	struct role_path readable[READABLE_MAX];
	char target[PATH_MAX];
	size_t count = find_readable(readable, target);
	int abi = landlock_abi();
	auto_close int ruleset = -1;
	if (landlock_create(abi, &ruleset, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const char *path = readable[i].path;
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return fail_errno(err, "open '%s' as user %u", path, (unsigned)geteuid());
		if (landlock_allow(ruleset, abi, fd, path, LANDLOCK_READ, err) < 0)
			return -1;
	}
	return landlock_enforce(ruleset, err);
}

/* role_start has set the ids, namespaces, root and no_new_privs, and dropped the capabilities. The
 * filter is that of sandboxes: the one of other roles allows no socket of the Internet. */
static int confine(struct error *err)
{
	if (getuid() == 0 || geteuid() == 0)
		return fail(err, ERR_DENIED, "the egress process must not run as root");
	child_reset_signals();
	if (child_limit(RLIMIT_CORE, 0, err) < 0 || child_limit(RLIMIT_FSIZE, 0, err) < 0 ||
		child_limit(RLIMIT_NOFILE, FDS_MAX, err) < 0 || child_limit_data(DATA_MAX, err) < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail_errno(err, "make the egress process undumpable");
	return close_files(err) < 0 ? -1 : seccomp_load(0, err);
}

int egress_main(void)
{
	struct error err;
	if (fcntl(EGRESS_SERVICE, F_SETFD, FD_CLOEXEC) < 0)
		return 125; /* started by hand */
	if (confine(&err) == 0 && egress_run(EGRESS_SERVICE, &err) == 0)
		return 0;
	egress_refuse(EGRESS_SERVICE, &err);
	return 125;
}

int egress_start(
	const char *program, uid_t uid, gid_t gid, struct egress_role *role, struct error *err)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC), pidfd = -1;
	int ends[2];
	*role = EGRESS_ROLE_NONE;
	if (null < 0)
		return fail_errno(err, "open '/dev/null'");
	if (egress_pair(ends, err) < 0)
		return -1;
	auto_close int ours = ends[0], theirs = ends[1];
	struct role_start start = { .program = program,
		.uid = geteuid() == 0 ? uid : (uid_t)-1,
		.gid = gid,
		.fds = { theirs },
		.fd_count = 1,
		.log = null };
	egress_describe(&start);
	if (role_start(&start, &role->pid, &pidfd, err) < 0)
		return -1;
	role->service = take_fd(&ours);
	return 0;
}

void egress_stop(struct egress_role *role)
{
	fd_close(&role->service);
	if (role->pid > 0) {
		kill(role->pid, SIGKILL);
		waitpid(role->pid, NULL, 0);
	}
	*role = EGRESS_ROLE_NONE;
}
