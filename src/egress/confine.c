#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/fd.h"
#include "egress/parts.h"
#include "linux/capability.h"
#include "linux/landlock.h"
#include "linux/seccomp.h"

#define FDS_MAX 768		    /* two a connection, listeners, lookups */
#define DATA_MAX ((rlim_t)64 << 20) /* on top of what it inherits */
#define CONTROL_FD 3

static int close_others(int *control, struct error *err)
{
	/* Above the places of the standard streams, wherever the parent had it. */
	int kept = fcntl(*control, F_DUPFD_CLOEXEC, CONTROL_FD + 1);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (kept < 0 || null < 0)
		return fail_errno(err, "open '/dev/null'");
	for (int fd = 0; fd < CONTROL_FD; fd++)
		if (dup2(null, fd) < 0)
			return fail_errno(err, "open '/dev/null'");
	if (dup3(kept, CONTROL_FD, O_CLOEXEC) < 0 || close_range(CONTROL_FD + 1, ~0u, 0) < 0)
		return fail_errno(err, "close descriptors");
	*control = CONTROL_FD;
	return 0;
}

static int set_limits(struct error *err)
{
	if (child_limit(RLIMIT_CORE, 0, err) < 0 || child_limit(RLIMIT_FSIZE, 0, err) < 0 ||
		child_limit(RLIMIT_NOFILE, FDS_MAX, err) < 0)
		return -1;
	return child_limit_data(DATA_MAX, err);
}

/* Root becomes uid:gid, for good. */
static int drop_ids(uid_t uid, gid_t gid, struct error *err)
{
	uid_t real, effective, saved;

	if (!uid || !gid)
		return fail(err, ERR_INVALID, "the forwarder must not run as root");
	/* Now, while it may; capability_drop_all reads it back. */
	for (int i = 0; i < 64; i++)
		prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (getgroups(0, NULL) != 0 && setgroups(0, NULL) < 0)
		return fail_errno(err, "drop the groups");
	if (setresgid(gid, gid, gid) < 0)
		return fail_errno(err, "become group %u", (unsigned)gid);
	if (setresuid(uid, uid, uid) < 0)
		return fail_errno(err, "become user %u", (unsigned)uid);
	if (getresuid(&real, &effective, &saved) < 0 || real != uid || effective != uid ||
		saved != uid || getegid() != gid)
		return fail(err, ERR_FAILED, "the process did not become user %u", (unsigned)uid);
	return 0;
}

static int drop_privileges(const struct forward_options *options, struct error *err)
{
	bool is_root = geteuid() == 0;

	if (is_root && drop_ids(options->uid, options->gid, err) < 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail_errno(err, "set no_new_privs");
	return is_root ? capability_drop_all(err) : capability_drop_held(err);
}

static int close_files(struct error *err)
{
	/* What resolving reads; glibc asks the second for the order, musl doesn't know it. */
	static const char *const readable[] = { "/etc/resolv.conf", "/etc/nsswitch.conf",
		"/etc/hosts" };
	int abi = landlock_abi();
	auto_close int ruleset = -1;

	if (landlock_create(abi, &ruleset, err) < 0)
		return -1;
	for (size_t i = 0; i < sizeof readable / sizeof *readable; i++) {
		auto_close int fd = open(readable[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0)
			return fail_errno(
				err, "open '%s' as user %u", readable[i], (unsigned)geteuid());
		if (landlock_allow(ruleset, abi, fd, readable[i], LANDLOCK_READ, err) < 0)
			return -1;
	}
	return landlock_enforce(ruleset, err);
}

int confine_self(
	const struct forward_options *options, pid_t parent, int *control, struct error *err)
{
	setsid(); /* a terminal's ^C is for the parent to act on */
	prctl(PR_SET_NAME, "carrel-forward");
	child_reset_signals();
	if (close_others(control, err) < 0 || set_limits(err) < 0 ||
		drop_privileges(options, err) < 0)
		return -1;
	/* Another process of this user must not look into it; and a change of ids has forgotten
	 * the other two. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return fail_errno(err, "set the parent-death signal of the forwarder");
	if (getppid() != parent)
		return fail(err, ERR_FAILED, "the parent has ended");
	if (close_files(err) < 0)
		return -1;
	return seccomp_load(0, err);
}
