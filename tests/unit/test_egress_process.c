/* Egress as a process: what it has, who may order it, how it ends. */
/* security: network */
#include <sched.h>
#include <sys/mount.h>
#include "egress_fixture.h"

/* ---- the process ---- */
static void test_it_has_nothing(void **state)
{
	struct world *w = *state;
	auto_close int leaked = open("/etc/passwd", O_RDONLY); /* not even close-on-exec */
	assert_true(leaked >= 0);
	start(w);
	pid_t pid = w->role.pid;
	bool is_root = geteuid() == 0;
	assert_int_equal(read_status(pid, "Uid:", 10), is_root ? OUTSIDER : geteuid());
	assert_int_equal(read_status(pid, "Gid:", 10), is_root ? OUTSIDER : getegid());
	if (is_root)
		assert_int_equal(read_status(pid, "Groups:\t \nNSt", 10), 0);
	assert_int_equal(read_status(pid, "CapEff:", 16), 0);
	assert_int_equal(read_status(pid, "CapPrm:", 16), 0);
	assert_int_equal(read_status(pid, "CapInh:", 16), 0);
	assert_int_equal(read_status(pid, "CapAmb:", 16), 0);
	if (is_root)
		assert_int_equal(read_status(pid, "CapBnd:", 16), 0);
	assert_int_equal(read_status(pid, "NoNewPrivs:", 10), 1);
	assert_int_equal(read_status(pid, "Seccomp:", 10), 2);
	/* Three streams, the service socket, the loop, the policy's channel and listener. */
	await_fds(pid, 7);
}

static void test_root_is_never_who_it_runs_as(void **state)
{
	struct world *w = *state;
	struct error err;
	if (geteuid() != 0)
		skip();
	assert_int_equal(egress_start("/proc/self/exe", 0, 0, &w->role, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(w->role.pid, -1);
}

static void test_wrong_orders_are_errors_and_change_nothing(void **state)
{
	struct world *w = *state;
	struct error err;
	auto_close int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	start(w);
	assert_int_equal(egress_serve(&w->egress, file, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(egress_serve(&w->egress, -1, &err), -1);
	static const char *const bad[] = { "", "UPPER.example", "a.", "a b", "[::1]", "::0001",
		"*.example", "a\n" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct forward_host host = { bad[i], 1, false };
		assert_int_equal(egress_allow(&w->egress, &host, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	int status = 0;
	for (uint16_t i = 1; i <= 1025 && !status; i++)
		status = egress_allow(
			&w->egress, &(struct forward_host){ "a.example", i, false }, &err);
	assert_int_equal(status, -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(egress_settle(&w->egress, &err), 0);
	/* What is sent over the control socket is checked on the other side as well. */
	assert_int_equal(send(w->egress.channel, "x", 1, 0), 1);
	char reply[1024];
	assert_true(recv(w->egress.channel, reply, sizeof reply, 0) > 4);
	assert_int_not_equal(reply[0], 0);
	assert_int_equal(egress_settle(&w->egress, &err), 0);
}

static void test_without_clients_it_ends_by_itself_with_all_that_it_holds(void **state)
{
	struct world *w = *state;
	char text[16];
	struct error err;
	uint16_t port = start_server(w, serve_echo);
	allow(w, "127.0.0.1", port, true);
	start(w);
	auto_close int fd = tunnel(w, "127.0.0.1", port);
	siginfo_t info = { 0 };
	fd_close(&w->role.service);
	assert_int_equal(waitid(P_PID, (id_t)w->role.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_code, CLD_EXITED);
	assert_int_equal(info.si_status, 0);
	assert_true(receive(fd, text, sizeof text) <= 0);
	pid_t pid = w->role.pid;
	egress_stop(&w->role);
	assert_int_equal(kill(pid, 0), -1);
	egress_stop(&w->role);
	assert_int_equal(egress_settle(&w->egress, &err), -1);
	egress_close(&w->egress);
	assert_int_equal(egress_settle(&w->egress, &err), -1);
}

static void test_one_that_hangs_or_died_is_stopped_too(void **state)
{
	struct world *w = *state;
	struct error err;
	start(w);
	pid_t pid = w->role.pid;
	kill(pid, SIGSTOP);
	egress_stop(&w->role);
	assert_int_equal(kill(pid, 0), -1);
	egress_close(&w->egress);
	fd_close(&w->listener);
	start(w);
	kill(w->role.pid, SIGKILL);
	assert_int_equal(egress_settle(&w->egress, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_string_equal(err.text, "the egress process has ended");
	struct egress other;
	assert_int_equal(egress_open(w->role.service, &w->policy, &other, &err), -1);
	assert_string_equal(err.text, "the egress process has ended");
	egress_close(&other);
}

static void test_a_malformed_policy_is_refused(void **state)
{
	struct world *w = *state;
	struct egress other;
	struct error err;
	start(w);
	struct egress_policy bad[4];
	for (size_t i = 0; i < 4; i++)
		bad[i] = w->policy;
	bad[0].is_settled = 2;
	memset(bad[1].proxies.except, 'x', sizeof bad[1].proxies.except);
	str_copy(bad[2].proxies.http.authorization, 32, "x\r\nHost: y");
	str_copy(bad[3].proxies.https.host, 32, "UPPER");
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(egress_open(w->role.service, &bad[i], &other, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		egress_close(&other);
	}
	/* A packet that is no policy, or has no channel, changes nothing. */
	assert_int_equal(send(w->role.service, "x", 1, 0), 1);
	assert_int_equal(send(w->role.service, "", 0, 0), 0);
	assert_int_equal(
		send(w->role.service, &w->policy, sizeof w->policy, 0), (ssize_t)sizeof w->policy);
	/* Twice: one that ends may still answer what arrived with the packet. */
	assert_int_equal(egress_settle(&w->egress, &err), 0);
	assert_int_equal(egress_settle(&w->egress, &err), 0);
}

static void test_it_ends_with_its_parent(void **state)
{
	struct world *w = *state;
	int ends[2];
	struct error err;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		if (start_role(w, &err) < 0)
			_exit(1);
		/* Another process that holds the service socket doesn't keep it alive. */
		pid_t holder = fork();
		if (holder == 0) {
			pause();
			_exit(0);
		}
		pid_t pids[2] = { w->role.pid, holder };
		fd_write_full(ends[1], pids, sizeof pids);
		pause();
		_exit(0);
	}
	pid_t pids[2];
	auto_close int pidfd = -1;
	assert_int_equal(fd_read_full(ends[0], pids, sizeof pids), sizeof pids);
	assert_int_equal(pidfd_open_process(pids[0], &pidfd, &err), 0);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	kill(pids[1], SIGKILL);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

/* In a mount namespace whose /etc is its own. */
static int resolve_replaced_hosts(struct world *w)
{
	struct error err;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("etc", "/etc", "tmpfs", 0, "size=64k"))
		return 1;
	uint16_t port = start_server(w, serve_echo);
	for (int round = 0; round < 2; round++) {
		const char *name = round ? "second.example" : "first.example";
		char line[64];
		auto_close int fd = open("/etc/new", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		auto_close int order =
			open("/etc/nsswitch.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		str_format(line, sizeof line, "127.0.0.1 %s\n", name);
		if (fd_write_full(fd, line, strlen(line)) < 0 ||
			fd_write_full(order, "hosts: files\n", 13) < 0 ||
			rename("/etc/new", "/etc/hosts"))
			return 2;
		if (!round)
			start(w);
		struct forward_host host = { name, port, true };
		if (egress_allow(&w->egress, &host, &err))
			return 3;
		auto_close int tunneled = tunnel(w, name, port);
		assert_echo(tunneled, "found");
	}
	return 0;
}

static void test_replaced_files_of_the_resolver_are_seen(void **state)
{
	struct world *w = *state;
	int status = -1;
	if (geteuid() != 0)
		skip();
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		int result = resolve_replaced_hosts(w);
		egress_stop(&w->role);
		_exit(result);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	if (!strcmp(argv[0], EGRESS_ARGV0)) /* this program is the role, too */
		return egress_main();
	const struct CMUnitTest tests[] = {
		TEST(test_it_has_nothing),
		TEST(test_root_is_never_who_it_runs_as),
		TEST(test_wrong_orders_are_errors_and_change_nothing),
		TEST(test_without_clients_it_ends_by_itself_with_all_that_it_holds),
		TEST(test_one_that_hangs_or_died_is_stopped_too),
		TEST(test_a_malformed_policy_is_refused),
		TEST(test_it_ends_with_its_parent),
		TEST(test_replaced_files_of_the_resolver_are_seen),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
