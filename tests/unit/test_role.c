/* Roles: what a program of ours is started with, what it can't do once it is locked, and what it
 * still can. The program of these tests is the test itself: with an argument it is the role. */
/* security: daemon */
#include "proc/role.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "base/fd.h"
#include "base/str.h"
#include "linux/pidfd.h"
#include "unit.h"

#define ROLE_UID 12345 /* of root's roles */
#define HOME 3	       /* descriptors of the role */
#define PROC 4

/* ---- the role ---- */

static void say(const char *claim, bool holds)
{
	dprintf(STDERR_FILENO, "%s %s\n", holds ? "yes" : "NO ", claim);
}
#define SAY(...) say(#__VA_ARGS__, __VA_ARGS__)

static bool is_refused(long result, int error)
{
	return result < 0 && errno == error;
}

/* The value of a line of /proc/self/status. */
static bool status_is(const char *key, const char *value)
{
	char text[8192];
	struct str rest = { text, 0 }, line;
	ssize_t len = fd_read_file(AT_FDCWD, "/proc/self/status", text, sizeof text);
	rest.len = len > 0 ? (size_t)len : 0;
	while (str_next(&rest, '\n', &line))
		if (str_starts_with(line, key))
			return str_is(str_trim((struct str){
					      line.data + strlen(key), line.len - strlen(key) }),
				value);
	return false;
}

static unsigned count_fds(void)
{
	unsigned count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void look_at_start(const char *home, const char *other)
{
	char path[512];
	struct stat st;
	struct rlimit limit;
	SAY(getpid() == 1);
	SAY(getuid() != 0 && geteuid() == getuid() && getegid() != 0);
	SAY(status_is("NoNewPrivs:", "1"));
	SAY(status_is("CapEff:", "0000000000000000") && status_is("CapPrm:", "0000000000000000"));
	SAY(status_is("CapBnd:", "0000000000000000") && status_is("CapInh:", "0000000000000000"));
	SAY(getuid() != ROLE_UID || status_is("Groups:", ""));
	SAY(status_is("SigBlk:", "0000000000000000"));
	SAY(count_fds() == 5);
	SAY(!fstat(HOME, &st) && S_ISDIR(st.st_mode));
	SAY(!strcmp(getenv("ROLE"), "probe") && !getenv("HOME") && !getenv("PATH"));
	SAY(getsid(0) == getpid());
	SAY(!getrlimit(RLIMIT_CORE, &limit) && limit.rlim_max <= 1);
	SAY(!getrlimit(RLIMIT_NOFILE, &limit) &&
		(limit.rlim_cur == limit.rlim_max || limit.rlim_cur >= 1048576));
	/* the root */
	SAY(is_refused(open("/etc/shadow", O_RDONLY), ENOENT));
	SAY(is_refused(open("/etc/passwd", O_RDONLY), ENOENT));
	SAY(is_refused(open("/root", O_RDONLY), ENOENT));
	SAY(is_refused(open("/var", O_RDONLY), ENOENT) || !strncmp(home, "/var", 4));
	SAY(is_refused(open("/run", O_RDONLY), ENOENT));
	SAY(is_refused(open("/new", O_WRONLY | O_CREAT, 0600), EROFS));
	SAY(is_refused(open("/usr/new", O_WRONLY | O_CREAT, 0600), EROFS));
	str_format(path, sizeof path, "%s/file", home);
	SAY(open(path, O_WRONLY | O_CREAT, 0600) >= 0);
	str_format(path, sizeof path, "%s/file", other);
	SAY(is_refused(open(path, O_WRONLY | O_CREAT, 0600), EROFS));
	SAY(open(other, O_RDONLY | O_DIRECTORY) >= 0);
	SAY(open("/dev/null", O_RDWR) >= 0);
	SAY(access("/proc/1/status", R_OK) == 0 && access("/proc/2/status", R_OK) < 0);
}

static void try_what_is_refused(const char *home, bool may_fork)
{
	char path[512], *argv[] = { (char[]){ "true" }, NULL };
	SAY(is_refused(mount("none", home, "tmpfs", 0, NULL), EPERM));
	SAY(is_refused(umount2(home, MNT_DETACH), EPERM));
	SAY(is_refused(chroot(home), EPERM));
	SAY(is_refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM));
	SAY(is_refused(setuid(0), EPERM));
	SAY(is_refused(syscall(SYS_setresuid, getuid(), getuid(), getuid()), EPERM));
	SAY(is_refused(syscall(SYS_setfsuid, 0), EPERM));
	SAY(is_refused(unshare(CLONE_NEWUSER), EPERM));
	SAY(is_refused(setns(PROC, 0), EPERM));
	SAY(is_refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0), EPERM));
	SAY(is_refused(syscall(SYS_clone3, NULL, 0), ENOSYS));
	SAY(is_refused(syscall(SYS_bpf, 0, NULL, 0), EPERM));
	SAY(is_refused(syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0), EPERM));
	SAY(is_refused(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS));
	SAY(is_refused(syscall(SYS_keyctl, 0, 0, 0, 0, 0), ENOSYS));
	SAY(is_refused(syscall(SYS_open_by_handle_at, PROC, NULL, 0), EPERM));
	SAY(is_refused(syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0), EPERM));
	SAY(is_refused(syscall(SYS_fsopen, "tmpfs", 0), ENOSYS));
	SAY(is_refused(execv("/usr/bin/true", argv), EPERM));
	SAY(is_refused(syscall(SYS_execveat, PROC, "", argv, NULL, AT_EMPTY_PATH), EPERM));
	int no_socket = may_fork ? EAFNOSUPPORT : EPERM;
	SAY(is_refused(socket(AF_INET, SOCK_STREAM, 0), no_socket));
	SAY(is_refused(socket(AF_NETLINK, SOCK_RAW, 0), no_socket));
	SAY(is_refused(listen(PROC, 1), EPERM));
	SAY(is_refused(mknod("/proc/x", S_IFCHR, 0), EPERM));
	SAY(prctl(PR_GET_DUMPABLE) == 0);
	SAY(status_is("Seccomp:", "2"));
	/* Landlock, where there is some: the role itself could write there. */
	str_format(path, sizeof path, "%s/shut/file", home);
	SAY(getuid() != ROLE_UID || is_refused(open(path, O_WRONLY | O_CREAT, 0600), EACCES));
}

static void try_what_works(const char *home, bool may_fork)
{
	char path[512], text[64];
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int pair[2], status = -1, fd = -1;
	SAY((fd = (int)syscall(SYS_openat2, HOME, "open", &how, sizeof how)) >= 0);
	str_format(path, sizeof path, "%s/open/file", home);
	SAY((fd = open(path, O_RDWR | O_CREAT, 0600)) >= 0);
	SAY(pwrite(fd, "x", 1, 0) == 1 && !fdatasync(fd) && !ftruncate(fd, 8192));
	SAY(!fcntl(fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_len = 1 }));
	SAY(mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
	SAY(!renameat(HOME, "open/file", HOME, "open/name") && !unlinkat(HOME, "open/name", 0));
	/* O_TMPFILE is given its name through /proc. */
	SAY((fd = openat(HOME, "open", O_TMPFILE | O_WRONLY, 0600)) >= 0);
	str_format(path, sizeof path, "/proc/self/fd/%d", fd);
	SAY(!linkat(AT_FDCWD, path, HOME, "open/linked", AT_SYMLINK_FOLLOW));
	SAY(epoll_create1(EPOLL_CLOEXEC) >= 0);
	SAY(memfd_create("x", MFD_CLOEXEC) >= 0);
	SAY(may_fork == !socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	SAY(may_fork == (socket(AF_UNIX, SOCK_STREAM, 0) >= 0));
	for (size_t size = 16; size < (64u << 20); size *= 4)
		free(memset(malloc(size), 1, size));
	/* What the host hands in a descriptor of can be looked into, wherever it lies. */
	SAY(fd_read_file(PROC, "uptime", text, sizeof text) > 0);
	pid_t child = fork();
	if (child == 0)
		_exit(7);
	SAY(may_fork == (child > 0));
	if (child > 0)
		SAY(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
}

static int be_role(char **argv)
{
	const char *what = argv[1], *home = argv[2], *other = argv[3];
	char open_path[512], none[] = "/nowhere";
	struct error err;
	str_format(open_path, sizeof open_path, "%s/open", home);
	const struct role_path paths[] = { { open_path, ROLE_READ | ROLE_WRITE },
		{ none, ROLE_READ } };
	const struct role_lock lock = { paths, 2, !strcmp(what, "fork") };
	if (!strcmp(what, "wait")) {
		say("waits", true);
		pause();
	}
	if (!strcmp(what, "start")) {
		look_at_start(home, other);
		return 0;
	}
	if (role_lock(&lock, &err)) {
		dprintf(STDERR_FILENO, "NO  %s\n", err.text);
		return 1;
	}
	try_what_works(home, lock.may_fork);
	try_what_is_refused(home, lock.may_fork);
	return 0;
}

/* ---- the tests ---- */

struct site {
	char home[64], other[64], text[16384];
	int status;
};

static void make(const char *path)
{
	assert_int_equal(mkdir(path, 0700), 0);
	if (getuid() == 0)
		assert_int_equal(chown(path, ROLE_UID, ROLE_UID), 0);
}

static int setup(void **state)
{
	static struct site site;
	char path[128];
	site = (struct site){ .home = "/var/tmp/test-role.XXXXXX",
		.other = "/var/tmp/test-role.XXXXXX" };
	if (!mkdtemp(site.home) || !mkdtemp(site.other))
		return -1;
	if (getuid() == 0 &&
		(chown(site.home, ROLE_UID, ROLE_UID) || chown(site.other, ROLE_UID, ROLE_UID)))
		return -1;
	str_format(path, sizeof path, "%s/open", site.home);
	make(path);
	str_format(path, sizeof path, "%s/shut", site.home);
	make(path);
	*state = &site;
	return 0;
}

static int teardown(void **state)
{
	struct site *site = *state;
	char *argv[] = { (char[]){ "rm" }, (char[]){ "-rf" }, site->home, site->other, NULL };
	pid_t child = fork();
	if (child == 0) {
		execv("/bin/rm", argv);
		_exit(1);
	}
	waitpid(child, NULL, 0);
	return 0;
}

static struct role_start starting(struct site *site, char **argv, int log)
{
	static char role[] = "ROLE=probe", *env[] = { role, NULL };
	static char self[4096];
	static struct role_path root[3];
	ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(len > 0);
	self[len] = 0;
	argv[2] = site->home;
	argv[3] = site->other;
	root[0] = (struct role_path){ site->home, ROLE_READ | ROLE_WRITE };
	root[1] = (struct role_path){ site->other, ROLE_READ };
	root[2] = (struct role_path){ "/nowhere", ROLE_READ };
	bool is_root = getuid() == 0;
	return (struct role_start){
		.program = self,
		.argv = argv,
		.env = env,
		.uid = is_root ? ROLE_UID : (uid_t)-1,
		.gid = is_root ? ROLE_UID : (gid_t)-1,
		.fds = { open(site->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC) },
		.fd_count = 2,
		.log = log,
		.root = root,
		.root_count = 3,
	};
}

static void end_starting(struct role_start *start)
{
	close(start->fds[0]);
	close(start->fds[1]);
}

/* Runs the role to its end and keeps what it said. */
static void play(struct site *site, const char *what)
{
	char *argv[] = { (char[]){ "role" }, strdup(what), NULL, NULL, NULL };
	int log[2], pidfd;
	pid_t pid;
	struct error err = { 0 };
	assert_int_equal(pipe2(log, O_CLOEXEC), 0);
	struct role_start start = starting(site, argv, log[1]);
	/* What must not come along. */
	int stray = open("/", O_RDONLY | O_DIRECTORY);
	sigset_t set, before;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &before);
	if (role_start(&start, &pid, &pidfd, &err))
		fail_msg("%s", err.text);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(stray);
	close(log[1]);
	ssize_t len = fd_read_full(log[0], site->text, sizeof site->text - 1);
	assert_true(len > 0);
	site->text[len] = 0;
	assert_int_equal(pidfd_reap(pidfd, true, &site->status, NULL, &err), 1);
	close(log[0]);
	close(pidfd);
	end_starting(&start);
	free(argv[1]);
	if (strstr(site->text, "NO ") || site->status)
		fail_msg("status %#x\n%s", site->status, site->text);
}

static void a_role_starts_with_nothing_but_what_it_was_given(void **state)
{
	play(*state, "start");
}

static void a_locked_role_works_and_can_do_no_harm(void **state)
{
	play(*state, "lock");
}

static void a_role_that_may_fork_can(void **state)
{
	play(*state, "fork");
}

static void a_role_dies_with_its_parent(void **state)
{
	char *argv[] = { (char[]){ "role" }, (char[]){ "wait" }, NULL, NULL, NULL }, text[64];
	int log[2], status;
	assert_int_equal(pipe2(log, O_CLOEXEC), 0);
	pid_t parent = fork();
	if (parent == 0) {
		int pidfd;
		pid_t pid;
		struct role_start start = starting(*state, argv, log[1]);
		if (role_start(&start, &pid, &pidfd, NULL))
			_exit(1);
		pause();
	}
	close(log[1]);
	assert_true(read(log[0], text, sizeof text) > 0);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	/* Its descriptors are closed: it is gone. */
	assert_int_equal(fd_read_full(log[0], text, sizeof text), 0);
	close(log[0]);
}

static void a_role_that_cant_be_started_says_why(void **state)
{
	char *argv[] = { (char[]){ "role" }, (char[]){ "wait" }, NULL, NULL, NULL };
	int pidfd = -1;
	pid_t pid = -1;
	struct error err;
	struct role_start start = starting(*state, argv, STDERR_FILENO);
	start.program = "/usr/bin/no-such-program";
	assert_int_equal(role_start(&start, &pid, &pidfd, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "/usr/bin/no-such-program"));
	start.program = "/usr/bin"; /* it is there, and no program */
	assert_int_equal(role_start(&start, &pid, &pidfd, &err), -1);
	start.program = "/bin/sh";
	start.uid = 0;
	assert_int_equal(role_start(&start, &pid, &pidfd, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(pid, -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left of them */
	end_starting(&start);
}

static void root_is_no_role(void **state)
{
	struct error err;
	const struct role_lock lock = { NULL, 0, true };
	if (getuid() != 0)
		skip();
	assert_int_equal(role_lock(&lock, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return be_role(argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_role_starts_with_nothing_but_what_it_was_given, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_locked_role_works_and_can_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(a_role_that_may_fork_can, setup, teardown),
		cmocka_unit_test_setup_teardown(a_role_dies_with_its_parent, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_role_that_cant_be_started_says_why, setup, teardown),
		cmocka_unit_test(root_is_no_role),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
