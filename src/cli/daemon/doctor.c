/* carrel doctor -- what this host can do, line by line, with cause and remedy. */
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/path.h"
#include "cli/daemon/diagnose.h"
#include "envs/shown.h"
#include "envs/python/uv.h"
#include "linux/home.h"
#include "linux/landlock.h"
#include "proc/capture.h"
#include "sandbox/native/slot.h"

#define EXIT_NOT_HERE 125   /* carrel run doesn't work on this host */
#define FILE_MAX (1u << 20) /* mountinfo of a host with thousands of containers */
#define PROGRAM_MS 5000
#define RUN_MS 20000

static const char *read_text(struct arena *arena, const char *path)
{
	auto_free char *data = malloc(FILE_MAX);
	ssize_t len = data ? fd_read_file(AT_FDCWD, path, data, FILE_MAX) : -1;
	return len < 0 ? NULL : arena_bytes(arena, data, (size_t)len);
}

static void read_files(struct facts *facts, struct arena *arena)
{
	static const char *const limit_names[1 + FACTS_NAMESPACES] = { "user", "mnt", "pid", "net",
		"ipc", "uts", "cgroup" };
	const struct {
		const char *path, **text;
	} files[] = {
		{ "/proc/self/status", &facts->status },
		{ "/proc/self/mountinfo", &facts->mountinfo },
		{ "/proc/self/cgroup", &facts->cgroup },
		{ "/proc/self/uid_map", &facts->uid_map },
		{ "/proc/self/attr/current", &facts->label },
		{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
			&facts->apparmor_restrict },
		{ "/proc/sys/kernel/unprivileged_userns_clone", &facts->userns_clone },
		{ "/proc/sys/vm/memfd_noexec", &facts->memfd_noexec },
		{ "/sys/kernel/security/lsm", &facts->lsm },
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		*files[i].text = read_text(arena, files[i].path);
	for (int i = 0; i <= FACTS_NAMESPACES; i++)
		facts->max_namespaces[i] = read_text(arena,
			arena_printf(arena, "/proc/sys/user/max_%s_namespaces", limit_names[i]));
	facts->has_dockerenv = access("/.dockerenv", F_OK) == 0;
	facts->has_podmanenv = access("/run/.containerenv", F_OK) == 0;
	facts->has_kubernetes_env = getenv("KUBERNETES_SERVICE_HOST") != NULL;
	facts->has_systemd = access("/run/systemd/system", F_OK) == 0;
	facts->has_systemd_user =
		access(arena_printf(arena, "/run/user/%u/systemd/private", facts->uid), F_OK) == 0;
}

/* One that can't be is looked at all the same, so that the line about it says why not. */
static const char *find_home(struct arena *arena)
{
	const char *path, *set = getenv("CARREL_HOME");
	struct error err;
	if (!home_find_path(arena, &path, &err))
		return path;
	return set ? arena_text(arena, set) : "/";
}

/* A configuration that can't be read is reported by the commands that need it. */
static bool find_landlock_writes(struct arena *arena)
{
	const char *home;
	struct config config;
	struct error ignored;
	return !home_find_path(arena, &home, &ignored) &&
	       !shown_read(home, arena, &config, &ignored) && config.landlock_writes;
}

/* The ids a sandbox would get: your own, or as root the first of those that root has to spare. */
static struct probe_ids pick_ids(const struct facts *facts)
{
	struct slot_range range = { 0, 0 };
	if (facts->uid == 0 && facts->uid_map)
		range = slot_range_from(facts->uid_map);
	return range.count > 0 ? (struct probe_ids){ range.first, range.first }
			       : (struct probe_ids){ facts->uid, getegid() };
}

static void probe_namespaces(struct facts *facts, const struct probe_ids *ids)
{
	static const int flags[FACTS_NAMESPACES] = { CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
		CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP };
	const struct probe skipped = { PROBE_SKIPPED, "not tried: user namespaces don't work" };
	probe_user_namespace(ids, &facts->user_namespace);
	if (facts->user_namespace.error != 0) {
		for (int i = 0; i < FACTS_NAMESPACES; i++)
			facts->namespaces[i] = skipped;
		facts->fresh_proc = facts->mount_api = facts->tmpfs_xattr = skipped;
		facts->overlay = facts->home_overlay = facts->home_idmap = skipped;
		return;
	}
	for (int i = 0; i < FACTS_NAMESPACES; i++)
		probe_namespace(ids, flags[i], &facts->namespaces[i]);
	probe_fresh_proc(ids, &facts->fresh_proc);
	probe_mount_api(ids, &facts->mount_api);
	probe_tmpfs_xattr(ids, &facts->tmpfs_xattr);
	probe_overlay(ids, -1, &facts->overlay, &facts->overlay_lowers);
}

static int open_nearest(const char *path, struct arena *arena)
{
	char *parent = arena_text(arena, path);
	for (;;) {
		int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR))
			return fd;
		char *slash = strrchr(parent, '/');
		if (!slash || parent[1] == '\0')
			return -1;
		slash[slash == parent ? 1 : 0] = '\0';
	}
}

/* What the home's file system can do is tried in a directory of its own, in the home or the nearest
 * directory above. */
static void probe_home(struct facts *facts, const struct probe_ids *ids, struct arena *arena)
{
	char name[ID_LEN + 32] = ".carrel-doctor-", why[QUOTA_WHY_LEN] = "";
	int ignored;
	id_make(name + strlen(name));
	auto_close int parent = open_nearest(facts->home, arena);
	if (parent < 0 || mkdirat(parent, name, 0700) < 0) {
		facts->home_dir = (struct probe){ errno, "mkdir" };
		return;
	}
	auto_close int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || (facts->uid == 0 && fchown(dir, ids->uid, ids->gid) < 0)) {
		facts->home_dir = (struct probe){ errno, "chown" };
	} else {
		if (facts->user_namespace.error == 0)
			probe_overlay(ids, dir, &facts->home_overlay, &ignored);
		facts->quota = quota_probe(dir, why);
		/* The map shows on-disk id 0 as the sandbox's: what is looked at has to belong to
		 * root again. */
		if (facts->uid == 0 && facts->user_namespace.error == 0 && fchown(dir, 0, 0) == 0)
			probe_idmap(ids, dir, &facts->home_idmap);
		/* Overlay leaves a directory of mode 0 that only its name lets a plain user remove.
		 */
		(void)unlinkat(dir, "work/work", AT_REMOVEDIR);
	}
	facts->quota_why = arena_text(arena, why);
	(void)path_remove_tree(parent, name, NULL);
}

const char *facts_version(const char *text, struct arena *arena)
{
	struct str rest = str_from(text), line, word, last = { "", 0 };
	if (!str_next(&rest, '\n', &line))
		return NULL;
	line = str_trim(line);
	while (str_next(&line, ' ', &word)) {
		if (word.len > 1 && word.data[0] == 'v')
			word = (struct str){ word.data + 1, word.len - 1 };
		if (word.len == 0)
			continue;
		last = word;
		if (word.data[0] >= '0' && word.data[0] <= '9')
			break;
	}
	return last.len > 0 ? arena_bytes(arena, last.data, last.len) : NULL;
}

/* The uv that a build has put into the home. */
static const char *find_fetched_uv(const char *home, struct arena *arena)
{
	const char *path = arena_printf(arena, "%s/" UV_IN_HOME, home);
	struct stat info;
	return home && access(path, X_OK) == 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode)
		       ? path
		       : NULL;
}

static void ask_programs(struct facts *facts, struct arena *arena)
{
	static char option[] = "--version";
	struct capture *captures = arena_array(arena, FACTS_PROGRAMS, sizeof *captures);
	const char *paths[FACTS_PROGRAMS];
	/* All at once: npm alone takes a good part of a second. */
	for (int i = 0; i < FACTS_PROGRAMS; i++) {
		paths[i] = capture_find(facts_program_names[i], arena);
		if (!paths[i] && strcmp(facts_program_names[i], "uv") == 0) {
			paths[i] = find_fetched_uv(facts->home, arena);
			facts->programs[i].is_own = paths[i] != NULL;
		}
		char *const argv[] = { arena_text(arena, facts_program_names[i]), option, NULL };
		if (paths[i])
			capture_start(&captures[i], paths[i], argv, STDOUT_FILENO);
	}
	uint64_t deadline = clock_monotonic_ms() + PROGRAM_MS;
	for (int i = 0; i < FACTS_PROGRAMS; i++) {
		if (!paths[i])
			continue;
		capture_finish(&captures[i], deadline);
		facts->programs[i].is_there = true;
		if (captures[i].exit_code == 0)
			facts->programs[i].version = facts_version(captures[i].text, arena);
	}
}

static void try_run(struct facts *facts, struct arena *arena)
{
	static char words[][10] = { "carrel", "run", "--", "/bin/true" };
	char *const argv[] = { words[0], words[1], words[2], words[3], NULL };
	struct capture *capture = arena_alloc(arena, sizeof *capture);
	uint64_t start = clock_monotonic_ms();
	capture_start(capture, "/proc/self/exe", argv, STDERR_FILENO);
	capture_finish(capture, start + RUN_MS);
	facts->run_ms = clock_monotonic_ms() - start;
	facts->run_exit = capture->exit_code;
	struct str rest = str_from(capture->text), line;
	while (facts->run_exit != 0 && str_next(&rest, '\n', &line)) {
		if (!facts->run_error && str_starts_with(line, "carrel: "))
			facts->run_error = arena_bytes(arena, line.data + 8, line.len - 8);
		else if (!facts->run_hint && str_starts_with(line, "hint: "))
			facts->run_hint = arena_bytes(arena, line.data + 6, line.len - 6);
	}
}

void facts_collect(struct facts *facts, struct arena *arena)
{
	struct utsname names;
	char exe[4096];
	memset(facts, 0, sizeof *facts);
	facts->uid = geteuid();
	ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
	facts->exe = len > 0 ? arena_bytes(arena, exe, (size_t)len) : "/usr/local/bin/carrel";
	facts->release = uname(&names) == 0 ? arena_text(arena, names.release) : "";
	facts->home = find_home(arena);
	read_files(facts, arena);
	const struct probe_ids ids = pick_ids(facts);
	probe_namespaces(facts, &ids);
	probe_clone3(&facts->clone3);
	probe_seccomp(&facts->seccomp);
	probe_memfd_exec(&facts->memfd_exec);
	facts->landlock_abi = landlock_abi();
	facts->landlock_writes = find_landlock_writes(arena);
	if (facts->landlock_abi > 0)
		probe_landlock(facts->landlock_abi, &facts->landlock);
	probe_home(facts, &ids, arena);
	cgroup_probe(&facts->cgroup_host);
	ask_programs(facts, arena);
	try_run(facts, arena);
}

struct tally {
	bool works;
	int count[CHECK_STATUS_COUNT];
};

static void print_json(const check_list *checks, const struct facts *facts,
	const struct tally *tally, struct json *j)
{
	j->pretty = true;
	json_object(j, NULL);
	json_bool(j, "ok", tally->works);
	json_text(j, "version", CARREL_VERSION);
	json_text(j, "kernel", facts->release);
	json_u64(j, "uid", facts->uid);
	json_array(j, "checks");
	for (size_t i = 0; i < checks->count; i++) {
		const struct check *check = &checks->items[i];
		json_object(j, NULL);
		json_text(j, "group", check->group);
		json_text(j, "name", check->name);
		json_text(j, "status", check_status_name(check->status));
		json_text(j, "detail", check->detail);
		json_text(j, "cause", check->cause);
		json_text(j, "remedy", check->remedy);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

/* A remedy's further lines stand below its first. */
static void print_field(struct buf *out, const char *name, const char *text)
{
	struct str rest = str_from(text), line;
	while (str_next(&rest, '\n', &line)) {
		buf_printf(out, "        %-7s %.*s\n", name, (int)line.len, line.data);
		name = "";
	}
}

static void print_check(const struct check *check, bool colour, struct buf *out)
{
	static const char *const colours[CHECK_STATUS_COUNT] = { "\033[32m", "\033[33m",
		"\033[1;31m" };
	buf_printf(out, "  %s%-4s%s  %-16s %s", colour ? colours[check->status] : "",
		check_status_name(check->status), colour ? "\033[0m" : "", check->name,
		check->detail);
	/* A single remark fits on the line. */
	if (check->status != CHECK_FAIL && !(check->cause && check->remedy)) {
		const char *remark = check->cause ? check->cause : check->remedy;
		buf_printf(out, "%s%s\n", remark ? "; " : "", remark ? remark : "");
		return;
	}
	buf_char(out, '\n');
	if (check->cause)
		print_field(out, "cause", check->cause);
	if (check->remedy)
		print_field(out, "remedy", check->remedy);
}

static void print_text(
	const check_list *checks, const struct tally *tally, bool colour, struct buf *out)
{
	const char *group = "", *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
	int warnings = tally->count[CHECK_WARN], failures = tally->count[CHECK_FAIL];
	for (size_t i = 0; i < checks->count; i++) {
		const struct check *check = &checks->items[i];
		if (strcmp(group, check->group) != 0)
			buf_printf(out, "%s%s%s%s\n", i > 0 ? "\n" : "", bold, check->group, plain);
		group = check->group;
		print_check(check, colour, out);
	}
	buf_printf(out, "\n%s%s%s: %d ok, %d warning%s, %d failure%s\n", bold,
		tally->works ? "carrel run works here with all layers"
			     : "carrel run doesn't work here",
		plain, tally->count[CHECK_OK], warnings, warnings == 1 ? "" : "s", failures,
		failures == 1 ? "" : "s");
}

static int run(struct command *command, struct error *err)
{
	struct facts facts;
	check_list checks = { 0 };
	if (command->argv[0])
		return missed_find(command, err);
	/* An unreadable file of contexts says nothing about the host: skip it. */
	if (!remote_choose(&command->remote, err) && command->remote.is_far)
		cli_say("doctor checks this machine, and %s names a daemon of another: %s",
			command->remote.by, command->remote.host);
	facts_collect(&facts, &command->arena);
	diagnose(&facts, &command->arena, &checks);
	struct tally tally = { .works = facts.run_exit == 0 };
	for (size_t i = 0; i < checks.count; i++)
		tally.count[checks.items[i].status]++;
	if (command->json)
		print_json(&checks, &facts, &tally, &command->value);
	else
		print_text(&checks, &tally, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"),
			&command->out);
	return tally.works ? 0 : EXIT_NOT_HERE;
}

static const struct arg_option table[] = { { ARG_FROM(format_rows) } };
const struct arg_spec cli_doctor = {
	.command = "doctor",
	.summary = "check what this host supports, and how to change it",
	.group = GROUP_SELF,
	.usage = "[-o json] [-- PROGRAM [ARG...]]",
	.about = "Tries every kernel feature that sandboxes need, and prints what works on this "
		 "host, what doesn't, why, and the command that changes it. Exits 0 if 'carrel "
		 "run' works with all layers, else 125. Changes nothing. With PROGRAM: runs it in "
		 "a sandbox, and lists the files of this host that it looked for and did not find.",
	ARG_TABLE(table),
	.takes_command = true,
	.run = run,
};
