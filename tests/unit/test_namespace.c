/* Namespaces: what is asked for is what comes, and a refusal says why. */
/* security: sandbox */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "linux/namespace.h"
#include "linux/netns.h"

#include <cmocka.h>

#define PLAIN_UID 54321

static int remove_directory(const char *path)
{
	auto_close int parent = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return path_remove_tree(parent, path_basename(path), NULL);
}

/* A directory that looks like /proc, with one file. */
static int fake_proc(char *path, const char *file, const char *text)
{
	static const char *const dirs[] = { "sys", "sys/user", "sys/kernel", "self" };

	assert_non_null(mkdtemp(path));
	int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		assert_int_equal(mkdirat(dir, dirs[i], 0755), 0);
	int fd = openat(dir, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return dir;
}

static void expect_cause(
	int sys_errno, const char *file, const char *text, const char *cause, const char *hint)
{
	char path[] = "/tmp/unit-test-XXXXXX";
	struct error err = { 0 };
	int dir = fake_proc(path, file, text);

	assert_int_equal(namespace_explain(sys_errno, dir, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	if (!strstr(err.text, cause) || !strstr(err.hint, hint))
		fail_msg("got '%s', hint '%s'", err.text, err.hint);
	close(dir);
	assert_int_equal(remove_directory(path), 0);
}

static void a_refusal_names_its_cause(void **state)
{
	expect_cause(ENOSPC, "sys/user/max_user_namespaces", "0\n", "max_user_namespaces is 0",
		"sysctl -w user.max_user_namespaces");
	expect_cause(EPERM, "sys/kernel/unprivileged_userns_clone", "0\n",
		"unprivileged_userns_clone is 0", "sysctl -w kernel.unprivileged_userns_clone=1");
	expect_cause(EPERM, "sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "AppArmor",
		"apparmor_restrict_unprivileged_userns=0");
	expect_cause(EPERM, "self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n",
		"seccomp filter", "seccomp=unconfined");
	expect_cause(
		ENOSYS, "self/status", "Seccomp:\t2\n", "seccomp filter", "RestrictNamespaces");
	expect_cause(EPERM, "self/mountinfo", "21 1 0:2 /x /proc rw - proc proc rw\n", "chroot",
		"outside");
	expect_cause(EPERM, "self/mountinfo", "21 1 0:2 / / rw - ext4 /dev/a rw\n",
		"Operation not permitted", "");
	expect_cause(
		ENOSPC, "sys/user/max_user_namespaces", "100\n", "limit of namespaces", "max_*");
	expect_cause(EINVAL, "self/status", "Seccomp:\t0\n", "kernel lacks", "CONFIG_USER_NS");
}

static int reap(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void clone_gives_all_namespaces_and_a_pidfd(void **state)
{
	const uint64_t all = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
			     CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	struct error err = { 0 };
	int pidfd = -1;
	pid_t pid = -1;

	if (namespace_clone(all, -1, &pidfd, &pid, &err) < 0)
		fail_msg("%s", err.text);
	if (pid == 0)
		_exit(getpid() == 1 && pidfd == -1 ? 7 : 8);
	assert_true(pidfd >= 0);
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	siginfo_t info = { 0 };
	assert_int_equal(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(reap(pid), 7);
	close(pidfd);
}

static void impossible_flags_leave_outputs_alone(void **state)
{
	struct error err = { 0 };
	int pidfd = -5;
	pid_t pid = -6;

	assert_int_equal(namespace_clone(CLONE_NEWUSER | CLONE_FS, -1, &pidfd, &pid, &err), -1);
	assert_int_equal(err.sys_errno, EINVAL);
	assert_int_equal(pidfd, -5);
	assert_int_equal(pid, -6);
}

/* In a child that is a plain user (root steps down first): returns what `body` returned. */
static int as_plain_user(int (*body)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setresgid(PLAIN_UID, PLAIN_UID, PLAIN_UID) < 0 ||
					      setresuid(PLAIN_UID, PLAIN_UID, PLAIN_UID) < 0))
			_exit(100);
		/* Stepping down made /proc/self root's; a process that was started as this user has
		 * it. */
		prctl(PR_SET_DUMPABLE, 1);
		_exit(body());
	}
	return reap(pid);
}

static int map_myself(void)
{
	struct namespace_ids ids = { 1000, geteuid(), 1000, getegid() };
	int pidfd;
	pid_t pid;

	if (namespace_clone(CLONE_NEWUSER, -1, &pidfd, &pid, NULL) < 0)
		return 101;
	if (pid)
		return reap(pid);
	if (namespace_write_maps(0, &ids, true, NULL) < 0)
		_exit(102);
	gid_t none;
	if (setgroups(0, &none) == 0)
		_exit(103);
	_exit(getuid() == 1000 && getgid() == 1000 ? 0 : 104);
}

static void a_plain_user_maps_himself_without_setgroups(void **state)
{
	assert_int_equal(as_plain_user(map_myself), 0);
}

static int map_a_stranger(void)
{
	struct namespace_ids ids = { 1000, geteuid() + 1, 1000, getegid() };
	struct error err = { 0 };
	int pidfd;
	pid_t pid;

	if (namespace_clone(CLONE_NEWUSER, -1, &pidfd, &pid, NULL) < 0)
		return 101;
	if (pid)
		return reap(pid);
	if (namespace_write_maps(0, &ids, true, &err) == 0)
		_exit(102);
	_exit(strstr(err.text, "uid_map") && err.sys_errno == EPERM ? 0 : 103);
}

static void a_plain_user_cannot_map_another(void **state)
{
	assert_int_equal(as_plain_user(map_a_stranger), 0);
}

static void root_maps_a_child_from_outside(void **state)
{
	struct namespace_ids ids = { 1000, 200000, 1000, 200001 };
	struct error err = { 0 };
	int pidfd, gate[2];
	pid_t pid;
	char c;

	if (geteuid() != 0) {
		print_message("skipped: needs root\n");
		skip();
	}
	assert_int_equal(pipe(gate), 0);
	assert_int_equal(namespace_clone(CLONE_NEWUSER, -1, &pidfd, &pid, &err), 0);
	if (pid == 0) {
		if (read(gate[0], &c, 1) != 1 || setresgid(1000, 1000, 1000) < 0 ||
			setresuid(1000, 1000, 1000) < 0)
			_exit(1);
		_exit(getuid() == 1000 && getgid() == 1000 ? 0 : 2);
	}
	if (namespace_write_maps(pid, &ids, true, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_int_equal(reap(pid), 0);
	close(pidfd);
	close(gate[0]);
	close(gate[1]);
}

/* Makes `file` in the tree at dir as the host's uid 200000, in a child. */
static int make_as_sandbox(int dir, const char *file)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		setfsgid(200001);
		setfsuid(200000);
		_exit(openat(dir, file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644) < 0 ? errno : 0);
	}
	return reap(pid);
}

static void an_idmapped_mount_keeps_the_owner_on_disk(void **state)
{
	char path[] = "/tmp/unit-test-XXXXXX", file[64];
	struct error err = { 0 };
	struct stat st;
	int userns = -1;

	if (geteuid() != 0) {
		print_message("skipped: needs root\n");
		skip();
	}
	assert_non_null(mkdtemp(path));
	assert_int_equal(chown(path, 501, 502), 0);
	if (namespace_make_idmap(501, 502, 200000, 200001, &userns, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);

	int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns };
	assert_true(tree >= 0);
	assert_int_equal(mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr), 0);
	assert_int_equal(make_as_sandbox(tree, "made"), 0);
	assert_int_equal(fstatat(tree, "made", &st, 0), 0);
	assert_int_equal(st.st_uid, 200000);
	assert_int_equal(st.st_gid, 200001);
	str_format(file, sizeof file, "%s/made", path);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_uid, 501);
	assert_int_equal(st.st_gid, 502);
	close(tree);
	close(userns);
	assert_int_equal(remove_directory(path), 0);
}

static int idmap_without_right(void)
{
	struct error err = { 0 };
	int userns = -1;

	if (namespace_make_idmap(0, 0, 200000, 200000, &userns, &err) == 0 || userns != -1)
		return 101;
	return waitpid(-1, NULL, __WALL | WNOHANG) == -1 && errno == ECHILD ? 0 : 102;
}

static void a_refused_idmap_leaves_no_process(void **state)
{
	assert_int_equal(as_plain_user(idmap_without_right), 0);
}

static int talk_over_loopback(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(80) };
	struct namespace_ids ids = { 1000, geteuid(), 1000, getegid() };
	auto_close int made = -1;
	struct error err;
	int pidfd;
	pid_t pid;

	if (namespace_clone(CLONE_NEWUSER | CLONE_NEWNET, -1, &pidfd, &pid, NULL) < 0)
		return 101;
	if (pid)
		return reap(pid);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int before = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (namespace_write_maps(0, &ids, true, NULL) < 0)
		_exit(102);
	if (connect(before, (struct sockaddr *)&address, sizeof address) == 0 ||
		errno != ENETUNREACH)
		_exit(103);
	if (netns_leave_for_new(&made, &err) < 0)
		_exit(104);
	int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(server, (struct sockaddr *)&address, sizeof address) < 0 || listen(server, 1) < 0)
		_exit(105);
	_exit(connect(client, (struct sockaddr *)&address, sizeof address) < 0 ? 106 : 0);
}

static void loopback_works_in_a_new_namespace(void **state)
{
	assert_int_equal(as_plain_user(talk_over_loopback), 0);
}

static int open_ports(void)
{
	struct namespace_ids ids = { 1000, geteuid(), 1000, getegid() };
	char text[16] = "";
	int pidfd;
	pid_t pid;

	if (namespace_clone(CLONE_NEWUSER | CLONE_NEWNET, -1, &pidfd, &pid, NULL) < 0)
		return 101;
	if (pid)
		return reap(pid);
	auto_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (namespace_write_maps(0, &ids, true, NULL) < 0 || netns_open_ports(proc, NULL) < 0)
		_exit(102);
	fd_read_file(proc, "sys/net/ipv4/ip_unprivileged_port_start", text, sizeof text);
	_exit(strcmp(text, "0\n") ? 103 : 0);
}

static void any_port_is_free_to_bind_afterwards(void **state)
{
	assert_int_equal(as_plain_user(open_ports), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_names_its_cause),
		cmocka_unit_test(clone_gives_all_namespaces_and_a_pidfd),
		cmocka_unit_test(impossible_flags_leave_outputs_alone),
		cmocka_unit_test(a_plain_user_maps_himself_without_setgroups),
		cmocka_unit_test(a_plain_user_cannot_map_another),
		cmocka_unit_test(root_maps_a_child_from_outside),
		cmocka_unit_test(an_idmapped_mount_keeps_the_owner_on_disk),
		cmocka_unit_test(a_refused_idmap_leaves_no_process),
		cmocka_unit_test(loopback_works_in_a_new_namespace),
		cmocka_unit_test(any_port_is_free_to_bind_afterwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
