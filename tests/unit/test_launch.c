/* The launcher, as core knows it: sandboxes start, stay, are found again and end without a trace.
 */
/* security: daemon */
#include <dirent.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include "launch/internal.h"
#include "linux/cgroup.h"
#include "linux/pidfd.h"
#include "linux/pty.h"
#include "launch_fixture.h"

#define MANY 50

static void a_sandbox_starts_serves_commands_and_ends(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	char text[4096];
	start_sandbox(f, id);
	assert_true(f->fds[LAUNCH_FD_PROC] >= 0 && f->fds[LAUNCH_FD_TERMINALS] >= 0 &&
		    f->fds[LAUNCH_FD_WORKSPACE] >= 0);
	auto_close int init = connect_to_init(f, id);
	assert_int_equal(sh(init, "echo hi >a; cat a; id -u; pwd", text, sizeof text), 0);
	assert_string_equal(text, "hi\n1000\n/workspace\n");
	assert_int_equal(sh(init, "exit 7", text, sizeof text), 7);
	/* What it wrote is the home's owner's. */
	struct stat st;
	assert_int_equal(
		stat(arena_printf(&f->arena, "%s/home/workspaces/%s/upper/a", f->area, id), &st),
		0);
	assert_int_equal(st.st_uid, f->home.uid);
	end_sandbox(f, id);
	struct init_reply reply;
	assert_int_equal(hear_init(init, &reply), INIT_CLIENT_EOF);
	assert_int_equal(
		access(arena_printf(&f->arena, "%s/home/run/sb/%s", f->area, id), F_OK), -1);
	/* And once more: the files are there. */
	start_sandbox(f, id);
	auto_close int again = connect_to_init(f, id);
	assert_int_equal(sh(again, "cat a", text, sizeof text), 0);
	assert_string_equal(text, "hi\n");
}

static void its_descriptors_are_those_of_the_sandbox(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	char text[4096];
	struct stat st;
	start_sandbox(f, id);
	auto_close int init = connect_to_init(f, id);
	assert_int_equal(sh(init, "touch here", text, sizeof text), 0);
	assert_int_equal(fstatat(f->fds[LAUNCH_FD_WORKSPACE], "here", &st, 0), 0);
	assert_int_equal(fstatat(f->fds[LAUNCH_FD_TERMINALS], "ptmx", &st, 0), 0);
	assert_int_equal(fstatat(f->fds[LAUNCH_FD_SCRATCH], ".", &st, 0), 0);
	auto_close int comm = openat(f->fds[LAUNCH_FD_PROC], "1/comm", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(comm, text, sizeof text);
	assert_true(len > 0);
	assert_memory_equal(text, "carrel-init\n", (size_t)len);
	/* None of them, nor anything else, is open in there. */
	assert_int_equal(sh(init, "ls /proc/self/fd | tr '\\n' ' '", text, sizeof text), 0);
	assert_string_equal(text, "0 1 2 3 ");
}

static void a_terminal_opened_from_outside_belongs_to_the_user_inside(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	struct error err = { 0 };
	struct init_reply reply;
	char text[1024] = "";
	size_t len = 0;
	ssize_t got;
	start_sandbox(f, id);
	auto_close int init = connect_to_init(f, id);
	auto_close int master = -1, terminal = -1;
	assert_int_equal(pty_open(f->fds[LAUNCH_FD_TERMINALS], &master, &terminal, &err), 0);
	const char *argv[] = { "sh", "-c",
		"tty; stat -c %u:%g $(tty); echo to-the-terminal >/dev/tty; "
		"echo reopened >/dev/stdout; stty size",
		NULL };
	const char *env[] = { "PATH=/usr/bin:/bin", NULL };
	struct init_spawn what = { argv, env, "/", INIT_TTY | INIT_NO_PIDFD | INIT_NO_STARTED };
	assert_int_equal(pty_set_size(master, (struct pty_size){ 24, 80 }, &err), 0);
	assert_int_equal(
		init_client_spawn(init, 99, &what, (int[]){ terminal, terminal, terminal }, &err),
		0);
	fd_close(&terminal);
	while ((got = read(master, text + len, sizeof text - 1 - len)) > 0)
		len += (size_t)got;
	assert_string_equal(
		text, "/dev/pts/0\r\n1000:1000\r\nto-the-terminal\r\nreopened\r\n24 80\r\n");
	assert_int_equal(hear_init(init, &reply), INIT_CLIENT_REPLY);
	assert_int_equal(reply.value, 0);
}

static void limits_are_those_of_the_message(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	const struct limits limits = {
		.memory_bytes = 64 << 20, .pids = 20, .fds = 16, .disk_bytes = 1 << 20
	};
	char text[4096];
	hear_answer(f, ask_start(f, id, &limits), LAUNCH_STARTED);
	auto_close int init = connect_to_init(f, id);
	assert_int_equal(sh(init, "ulimit -n; ulimit -p; ulimit -f", text, sizeof text), 0);
	assert_string_equal(text, "16\n21\nunlimited\n");
	if (f->packet.head.value == LIMITER_WATCHDOG)
		return;
	assert_true(f->fds[LAUNCH_FD_OOM] >= 0 && f->fds[LAUNCH_FD_OOM_COUNT] >= 0 &&
		    f->fds[LAUNCH_FD_CPU] >= 0);
	struct pollfd oom = { .fd = f->fds[LAUNCH_FD_OOM], .events = POLLIN | POLLPRI };
	assert_int_not_equal(
		sh(init, "exec 2>/dev/null; tail -c 200m /dev/zero | tail", text, sizeof text), -2);
	assert_int_equal(poll(&oom, 1, PATIENCE_MS), 1);
	ssize_t len = pread(f->fds[LAUNCH_FD_OOM_COUNT], text, sizeof text - 1, 0);
	assert_true(len > 0);
	text[len] = 0;
	assert_null(strstr(text, "oom_kill 0\n"));
	len = pread(f->fds[LAUNCH_FD_CPU], text, sizeof text - 1, 0);
	assert_true(len > 0);
}

static void what_cant_start_is_told_and_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	char nobody[ID_LEN + 1];
	const char *id = make_workspace(f);
	const char *linked = make_workspace(f);
	const struct limits small = { .memory_bytes = 1 << 20 };
	id_make(nobody);
	hear_answer(f, ask_start(f, nobody, NULL), LAUNCH_FAILED);
	assert_int_equal(f->packet.head.error_code, ERR_NOT_FOUND);
	hear_answer(f, ask_start(f, id, &small), LAUNCH_FAILED);
	assert_int_equal(f->packet.head.error_code, ERR_INVALID);
	/* The home's owner may put a link where a workspace was: it isn't followed. */
	const char *upper = arena_printf(&f->arena, "%s/home/workspaces/%s/upper", f->area, linked);
	assert_int_equal(rmdir(upper), 0);
	assert_int_equal(symlink("/etc", upper), 0);
	hear_answer(f, ask_start(f, linked, NULL), LAUNCH_FAILED);
	hear_answer(f, say(f, LAUNCH_END, nobody), LAUNCH_FAILED);
	assert_int_equal(f->packet.head.error_code, ERR_NOT_FOUND);
	start_sandbox(f, id);
	hear_answer(f, ask_start(f, id, NULL), LAUNCH_FAILED);
	assert_int_equal(f->packet.head.error_code, ERR_CONFLICT);
	hear_answer(f, say(f, LAUNCH_STATS, NULL), LAUNCH_STATS_ARE);
	assert_int_equal(f->packet.head.stats.sandboxes, 1);
	assert_int_equal(f->packet.head.stats.failed, 3);
}

static void a_disk_limit_is_kept_by_what_the_host_has(void **state)
{
	struct fixture *f = *state;
	struct launch_message head = { .type = LAUNCH_QUOTA, .limits = { .disk_bytes = 64 << 20 } };
	id_make(head.id);
	hear_answer(f, say_full(f, &head, NULL, 0, NULL, 0), LAUNCH_DONE);
	assert_in_range(f->packet.head.value, 0, 2);
	hear_answer(f, say_full(f, &head, NULL, 0, NULL, 0), LAUNCH_FAILED);
	assert_int_equal(f->packet.head.error_code, ERR_CONFLICT);
	fill_workspace(f, head.id);
	start_sandbox(f, head.id);
}

static void what_a_sandbox_holds_of_the_disk_is_counted(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	char text[64], nobody[ID_LEN + 1];
	id_make(nobody);
	hear_answer(f, say(f, LAUNCH_HELD, nobody), LAUNCH_FAILED);
	assert_int_equal(f->packet.head.error_code, ERR_NOT_FOUND);
	start_sandbox(f, id);
	auto_close int init = connect_to_init(f, id);
	assert_int_equal(sh(init,
				 "exec 9>x; rm x; head -c 1000000 /dev/zero >&9;"
				 "sleep 1000 </dev/null >/dev/null 2>&1 & echo held",
				 text, sizeof text),
		0);
	const struct launch_held *held =
		&hear_answer(f, say(f, LAUNCH_HELD, id), LAUNCH_HELD_ARE)->held;
	assert_string_equal(f->packet.head.id, id);
	assert_in_range(held->bytes, 1000000, 1100000);
	assert_int_equal(held->hidden, 0);
	end_sandbox(f, id);
	hear_answer(f, say(f, LAUNCH_HELD, id), LAUNCH_FAILED);
}

/* Starts a sandbox, in which a command has run; connected to its init. */
static int start_with_command(struct fixture *f, const char *id)
{
	char text[64];
	start_sandbox(f, id);
	int init = connect_to_init(f, id);
	assert_int_equal(sh(init, "true", text, sizeof text), 0);
	return init;
}

/* The pid outside of the one sandbox there is: the child of the launcher of that name. */
static pid_t find_init(const struct fixture *f)
{
	char text[64], path[64];
	str_format(
		path, sizeof path, "/proc/%d/task/%d/children", (int)f->launcher, (int)f->launcher);
	assert_true(fd_read_file(AT_FDCWD, path, text, sizeof text) > 0);
	char *rest = text;
	for (;;) {
		long pid = strtol(rest, &rest, 10);
		assert_true(pid > 0);
		char comm[64];
		str_format(path, sizeof path, "/proc/%ld/comm", pid);
		if (fd_read_file(AT_FDCWD, path, comm, sizeof comm) <= 0 ||
			strcmp(comm, "carrel-init\n"))
			continue;
		return (pid_t)pid;
	}
}

static void an_init_that_dies_is_told(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	auto_close int init = start_with_command(f, id);
	assert_int_equal(kill(find_init(f), SIGKILL), 0);
	struct launch_message *head = receive(f);
	assert_int_equal(head->type, LAUNCH_ENDED);
	assert_int_equal(head->tag, 0);
	assert_string_equal(head->id, id);
	assert_int_equal(WTERMSIG(head->value), SIGKILL);
	start_sandbox(f, id);
}

static void kill_core(struct fixture *f)
{
	struct pollfd gone = { .fd = f->core };
	assert_int_equal(
		send(f->core, STAND_IN_DIE, sizeof STAND_IN_DIE, 0), (ssize_t)sizeof STAND_IN_DIE);
	/* A socket that is closed with unread answers resets the connection: the stand-in would
	 * lose the packet, and live on. */
	assert_int_equal(poll(&gone, 1, PATIENCE_MS), 1);
	connect_to_core(f); /* accepted by the next one */
}

static void sandboxes_outlive_core_and_are_listed(void **state)
{
	struct fixture *f = *state;
	const char *ids[3];
	char text[64];
	int inits[3];
	for (int i = 0; i < 3; i++) {
		ids[i] = make_workspace(f);
		start_sandbox(f, ids[i]);
		inits[i] = connect_to_init(f, ids[i]);
		assert_int_equal(sh(inits[i], "touch x", text, sizeof text), 0);
	}
	end_sandbox(f, ids[1]);
	kill_core(f);
	uint64_t tag = say(f, LAUNCH_LIST, NULL);
	for (int i = 0; i < 3; i += 2) {
		struct stat st;
		assert_string_equal(hear_answer(f, tag, LAUNCH_RUNNING)->id, ids[i]);
		assert_int_equal(fstatat(f->fds[LAUNCH_FD_WORKSPACE], "x", &st, 0), 0);
		assert_int_equal(fstatat(f->fds[LAUNCH_FD_TERMINALS], "ptmx", &st, 0), 0);
		assert_int_equal(fstatat(f->fds[LAUNCH_FD_PROC], "1/stat", &st, 0), 0);
		bool is_watched = f->packet.head.value != LIMITER_WATCHDOG;
		assert_int_equal(f->fds[LAUNCH_FD_OOM] >= 0, is_watched);
		assert_int_equal(f->fds[LAUNCH_FD_CPU] >= 0, is_watched);
		assert_int_equal(sh(inits[i], "cat x", text, sizeof text), 0);
	}
	hear_answer(f, tag, LAUNCH_DONE);
	end_sandbox(f, ids[0]);
	for (int i = 0; i < 3; i++)
		close(inits[i]);
}

/* Those that were up in time are listed; the others are gone and can be started. */
static void starts_that_core_didnt_live_to_see_are_listed_or_undone(void **state)
{
	struct fixture *f = *state;
	const char *ids[10];
	char text[64];
	bool is_listed[10] = { false };
	for (int i = 0; i < 10; i++)
		ids[i] = make_workspace(f);
	for (int i = 0; i < 10; i++)
		ask_start(f, ids[i], NULL);
	kill_core(f);
	uint64_t tag = say(f, LAUNCH_LIST, NULL);
	for (struct launch_message *head; (head = receive(f))->type == LAUNCH_RUNNING;)
		for (int i = 0; i < 10; i++)
			is_listed[i] |= !strcmp(head->id, ids[i]);
	assert_int_equal(f->packet.head.tag, tag);
	for (int i = 0; i < 10; i++) {
		if (!is_listed[i])
			start_sandbox(f, ids[i]);
		auto_close int init = connect_to_init(f, ids[i]);
		assert_int_equal(sh(init, "true", text, sizeof text), 0);
	}
}

/* What is said to it meanwhile it takes when it goes on. */
static void stop_launcher(const struct fixture *f)
{
	int status;
	assert_int_equal(kill(f->launcher, SIGSTOP), 0);
	assert_int_equal(waitpid(f->launcher, &status, WUNTRACED), f->launcher);
	assert_true(WIFSTOPPED(status));
}

/* The launcher reads LIST before it learns of the end: what is not listed can be started. */
static void a_list_waits_for_the_end_of_what_it_leaves_out(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	auto_close int init = start_with_command(f, id);
	stop_launcher(f);
	uint64_t tag = say(f, LAUNCH_LIST, NULL);
	for (int unread = 1; unread > 0; usleep(1000))
		assert_int_equal(ioctl(f->core, SIOCOUTQ, &unread), 0);
	auto_close int pidfd = -1;
	struct error err = { 0 };
	assert_int_equal(pidfd_open_process(find_init(f), &pidfd, &err), 0);
	assert_int_equal(pidfd_signal(pidfd, SIGKILL, &err), 0);
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };
	assert_int_equal(poll(&gone, 1, PATIENCE_MS), 1);
	assert_int_equal(kill(f->launcher, SIGCONT), 0);
	assert_string_equal(hear_answer(f, 0, LAUNCH_ENDED)->id, id);
	hear_answer(f, tag, LAUNCH_DONE);
	start_sandbox(f, id);
}

static void a_malformed_message_ends_core_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	char text[64], garbage[300];
	memset(garbage, 'g', sizeof garbage);
	start_sandbox(f, id);
	auto_close int init = connect_to_init(f, id);
	assert_int_equal(send(f->core, garbage, sizeof garbage, 0), (ssize_t)sizeof garbage);
	struct pollfd gone = { .fd = f->core };
	assert_int_equal(poll(&gone, 1, PATIENCE_MS), 1);
	connect_to_core(f);
	hear_answer(f, say(f, LAUNCH_STATS, NULL), LAUNCH_STATS_ARE);
	assert_int_equal(f->packet.head.stats.sandboxes, 1);
	assert_int_equal(sh(init, "true", text, sizeof text), 0);
}

/* But for core, the writer and the maker of network namespaces. */
static bool is_launcher_alone(const struct fixture *f)
{
	char path[64], text[4096];
	str_format(
		path, sizeof path, "/proc/%d/task/%d/children", (int)f->launcher, (int)f->launcher);
	ssize_t len = fd_read_file(AT_FDCWD, path, text, sizeof text);
	unsigned count = 0;
	for (ssize_t i = 0; i < len; i++)
		count += text[i] == ' ';
	return count <= 4; /* core, the writers of logs, the maker */
}

static unsigned count_fds(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	str_format(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void many_start_at_once_cost_no_descriptor_and_end(void **state)
{
	struct fixture *f = *state;
	const char *ids[MANY];
	char text[64];
	for (int i = 0; i < MANY; i++)
		ids[i] = make_workspace(f);
	start_sandbox(f, ids[0]);
	for (int i = 1; i < MANY; i++)
		ask_start(f, ids[i], NULL);
	for (int i = 1; i < MANY; i++)
		assert_int_equal(receive(f)->type, LAUNCH_STARTED);
	/* 16 network namespaces, 16 control groups of up to six descriptors, and some of its own.
	 */
	assert_true(count_fds(f->launcher) < 160);
	for (int i = 0; i < MANY; i += 7) {
		auto_close int init = connect_to_init(f, ids[i]);
		assert_int_equal(sh(init, "echo $$", text, sizeof text), 0);
		assert_int_not_equal(strtol(text, NULL, 10), 0);
	}
	hear_answer(f, say(f, LAUNCH_STATS, NULL), LAUNCH_STATS_ARE);
	assert_int_equal(f->packet.head.stats.sandboxes, MANY);
	assert_int_equal(f->packet.head.stats.started, MANY);
	uint64_t tag = say(f, LAUNCH_LIST, NULL);
	for (int i = 0; i < MANY; i++)
		assert_string_equal(hear_answer(f, tag, LAUNCH_RUNNING)->id, ids[i]);
	hear_answer(f, tag, LAUNCH_DONE);
	for (int i = 0; i < MANY; i++)
		say(f, LAUNCH_END, ids[i]);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(receive(f)->type, LAUNCH_ENDED);
	for (uint64_t until = clock_monotonic_ms() + PATIENCE_MS; !is_launcher_alone(f);) {
		assert_true(clock_monotonic_ms() < until);
		usleep(2000);
	}
}

#define GROUP_MAX (CGROUP_PATH_MAX + 128)

/* How many groups there are whose name begins with "carrel-<pid of the launcher>-"; *one (or NULL)
 * is the path of one. */
static unsigned find_groups(pid_t maker, char (*one)[GROUP_MAX])
{
	struct cgroup_host host;
	char prefix[32];
	unsigned count = 0;
	cgroup_probe(&host);
	if (host.version == CGROUP_NONE)
		return 0;
	str_format(prefix, sizeof prefix, "carrel-%d-", (int)maker);
	DIR *dir = opendir(host.memory);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		if (!strncmp(entry->d_name, prefix, strlen(prefix))) {
			count++;
			if (one)
				str_format(*one, sizeof *one, "%s/%s", host.memory, entry->d_name);
		}
	closedir(dir);
	return count;
}

static void pools_are_filled_taken_from_and_filled_again(void **state)
{
	struct fixture *f = *state;
	struct launch_stats *stats = &f->packet.head.stats;
	uint64_t until = clock_monotonic_ms() + PATIENCE_MS;
	struct cgroup_host host;
	cgroup_probe(&host);
	bool has_groups = host.version != CGROUP_NONE, is_root = geteuid() == 0;
	for (int round = 0; round < 2; round++) {
		do
			hear_answer(f, say(f, LAUNCH_STATS, NULL), LAUNCH_STATS_ARE);
		while (((is_root && stats->netns_ready < 16) ||
			       (has_groups && stats->cgroups_ready < 16)) &&
			clock_monotonic_ms() < until);
		assert_true(clock_monotonic_ms() < until);
		const char *id = make_workspace(f);
		start_sandbox(f, id);
	}
	hear_answer(f, say(f, LAUNCH_STATS, NULL), LAUNCH_STATS_ARE);
	assert_int_equal(stats->netns_missed, 0);
	assert_int_equal(stats->cgroups_missed, 0);
}

static void await_no_groups(pid_t maker)
{
	uint64_t until = clock_monotonic_ms() + PATIENCE_MS;
	while (find_groups(maker, NULL) && clock_monotonic_ms() < until)
		usleep(2000);
	assert_int_equal(find_groups(maker, NULL), 0);
}

/* A process in one of the groups of `maker`, as one that takes long to die; 0: none can be. */
static pid_t stay_in_a_group(pid_t maker)
{
	char group[GROUP_MAX], path[GROUP_MAX + 16], number[16];
	if (!find_groups(maker, &group))
		return 0;
	str_format(path, sizeof path, "%s/cgroup.procs", group);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	auto_close int procs = open(path, O_WRONLY | O_CLOEXEC);
	str_format(number, sizeof number, "%d", (int)pid);
	if (write(procs, number, strlen(number)) == (ssize_t)strlen(number))
		return pid;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return 0;
}

static void what_a_killed_launcher_left_goes_also_when_it_dies_late(void **state)
{
	struct fixture *f = *state;
	start_sandbox(f, make_workspace(f));
	pid_t killed = f->launcher;
	assert_int_equal(WTERMSIG(end_launcher(f, SIGKILL)), SIGKILL);
	assert_int_equal(count_children(), 0);
	pid_t late = stay_in_a_group(killed);
	if (!late) {
		print_message("skipped: needs control groups\n");
		skip();
	}
	start_launcher(f);
	assert_true(find_groups(killed, NULL) > 0);
	kill(late, SIGKILL);
	assert_int_equal(waitpid(late, NULL, 0), late);
	await_no_groups(killed);
}

static void a_launcher_that_is_killed_leaves_no_process_and_no_group(void **state)
{
	struct fixture *f = *state;
	const char *ids[8];
	for (int i = 0; i < 8; i++) {
		ids[i] = make_workspace(f);
		ask_start(f, ids[i], NULL);
	}
	for (int i = 0; i < 4; i++) /* the others are still starting */
		assert_int_equal(receive(f)->type, LAUNCH_STARTED);
	pid_t killed = f->launcher;
	assert_int_equal(WTERMSIG(end_launcher(f, SIGKILL)), SIGKILL);
	assert_int_equal(count_children(), 0);
	start_launcher(f);
	await_no_groups(killed);
	hear_answer(f, say(f, LAUNCH_LIST, NULL), LAUNCH_DONE);
	for (int i = 0; i < 8; i++)
		start_sandbox(f, ids[i]);
	pid_t ended = f->launcher;
	assert_int_equal(end_launcher(f, SIGTERM), 0);
	assert_int_equal(find_groups(ended, NULL), 0);
	assert_int_equal(count_children(), 0);
}

/* kill -9 at each of its steps: nothing runs on, and the next one finds and leaves nothing. */
static void a_launcher_killed_at_a_step_leaves_nothing(void **state)
{
#ifdef CARREL_FAULTS
	static const char *const points[] = { "launch_start_before_clone:2",
		"launch_started_before_reply:1", "launch_started_before_reply:2",
		"launch_end_before_reply:1" };
	struct fixture *f = *state;
	const char *ids[] = { make_workspace(f), make_workspace(f) };
	assert_int_equal(end_launcher(f, SIGTERM), 0);
	for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
		char byte;
		int status = 0;
		setenv("CARREL_FAULT", points[i], 1);
		start_launcher(f);
		unsetenv("CARREL_FAULT");
		pid_t killed = f->launcher;
		stop_launcher(f);
		ask_start(f, ids[0], NULL);
		ask_start(f, ids[1], NULL);
		if (strstr(points[i], "_end_"))
			say(f, LAUNCH_END, ids[0]);
		assert_int_equal(kill(killed, SIGCONT), 0);
		/* The stand-in ends with it, and so does our connection. */
		assert_int_equal(waitpid(killed, &status, 0), killed);
		assert_int_equal(WTERMSIG(status), SIGKILL);
		assert_int_equal(count_children(), 0);
		while (recv(f->core, &byte, 1, 0) > 0)
			;
		start_launcher(f);
		hear_answer(f, say(f, LAUNCH_LIST, NULL), LAUNCH_DONE);
		await_no_groups(killed);
		start_sandbox(f, ids[0]);
		assert_int_equal(end_launcher(f, SIGTERM), 0);
	}
#else
	skip();
#endif
}

/* One that nobody has listened to: its end is known first, and only then that it had served. */
static void a_core_that_served_and_died_unheard_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct error err;
	char own[4096] = "";
	int status = 0;
	assert_int_equal(end_launcher(f, SIGTERM), 0);
	assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
	const struct launch_options options = { .home = &f->home,
		.listener = { .fd = f->listener, .path = "", .dir = -1 },
		.lock = -1,
		.notify = -1,
		.ready = -1,
		.carreld = own,
		.self = own };
	struct launcher launcher = { .options = &options,
		.home = &f->home,
		.log = { .fd = STDERR_FILENO, .least = LOG_LEVEL_ERROR },
		.link = { .channel = -1, .ready = -1 } };
	assert_int_equal(loop_new(&launcher.loop, &err), 0);
	sandboxes_init(&launcher);
	assert_int_equal(link_start(&launcher, &err), 0);
	/* Whoever has the other end can't make the launcher wait. */
	assert_true(fcntl(launcher.link.ready, F_GETFL) & O_NONBLOCK);
	connect_to_core(f);
	pid_t core = launcher.roles[ROLE_CORE];
	assert_int_equal(
		send(f->core, STAND_IN_DIE, sizeof STAND_IN_DIE, 0), (ssize_t)sizeof STAND_IN_DIE);
	assert_int_equal(waitpid(core, &status, 0), core);
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_true(role_died(&launcher, core, status));
	assert_true(launcher.link.has_served);
	assert_false(launcher.is_stopping);
	assert_non_null(launcher.link.restart);
	link_done(&launcher);
	sandboxes_done(&launcher);
	loop_free(launcher.loop);
}

int main(int argc, char **argv)
{
	STAND_IN_MAIN(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_sandbox_starts_serves_commands_and_ends),
		TEST(its_descriptors_are_those_of_the_sandbox),
		TEST(a_terminal_opened_from_outside_belongs_to_the_user_inside),
		TEST(limits_are_those_of_the_message),
		TEST(what_cant_start_is_told_and_leaves_nothing),
		TEST(a_disk_limit_is_kept_by_what_the_host_has),
		TEST(what_a_sandbox_holds_of_the_disk_is_counted),
		TEST(an_init_that_dies_is_told),
		TEST(sandboxes_outlive_core_and_are_listed),
		TEST(starts_that_core_didnt_live_to_see_are_listed_or_undone),
		TEST(a_list_waits_for_the_end_of_what_it_leaves_out),
		TEST(a_core_that_served_and_died_unheard_is_replaced),
		TEST(a_malformed_message_ends_core_and_nothing_else),
		TEST(many_start_at_once_cost_no_descriptor_and_end),
		TEST(pools_are_filled_taken_from_and_filled_again),
		TEST(what_a_killed_launcher_left_goes_also_when_it_dies_late),
		TEST(a_launcher_that_is_killed_leaves_no_process_and_no_group),
		TEST(a_launcher_killed_at_a_step_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
