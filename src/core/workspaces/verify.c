/* verify.c -- the isolation of a sandbox as it is: what the kernel says of its processes, read from
 * outside, and what a process inside is refused. A check inside can be faked by a command there;
 * one outside can't. */
#include "base/fd.h"
#include "core/files/file_servers.h"
#include "core/internal.h"
#include "core/packages/health.h"
#include "format/text/procfs.h"

#define CHECKS_MAX 32
#define NAME_MOST 64
#define DETAIL_MOST 512

struct verification {
	struct core_workspace *w;
	struct arena arena;
	struct core_verdict verdict;
	core_verify_fn *done;
	void *ctx;
};

static void add(struct verification *v, const char *name, bool ok, bool is_outside, const char *fmt,
	...) __attribute__((format(printf, 5, 6)));
static void add(
	struct verification *v, const char *name, bool ok, bool is_outside, const char *fmt, ...)
{
	char text[DETAIL_MOST], shown[DETAIL_MOST];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	str_printable(shown, sizeof shown, str_from(text));
	struct core_check check = { arena_text(&v->arena, name), arena_text(&v->arena, shown), ok,
		is_outside };
	vec_push(&v->arena, &v->verdict.checks, check);
	v->verdict.ok &= ok;
}

/* ---- outside ---- */

/* Lines of /proc/<pid>/status that all processes must have so. */
static const struct {
	const char *check, *key, *value;
} lines[] = {
	{ "capabilities", "CapInh:", "0000000000000000" },
	{ "capabilities", "CapPrm:", "0000000000000000" },
	{ "capabilities", "CapEff:", "0000000000000000" },
	{ "capabilities", "CapBnd:", "0000000000000000" },
	{ "capabilities", "CapAmb:", "0000000000000000" },
	{ "no_new_privs", "NoNewPrivs:", "1" },
	{ "seccomp", "Seccomp:", "2" },
};
#define LINE_COUNT (sizeof lines / sizeof *lines)

struct statuses {
	unsigned processes;
	int bad[LINE_COUNT]; /* pid of a process with another value; 0: none */
};

static bool has_line(struct str text, const char *key, const char *value)
{
	struct str line;
	while (str_next(&text, '\n', &line))
		if (str_starts_with(line, key)) {
			line.data += strlen(key);
			line.len -= strlen(key);
			return str_is(str_trim(line), value);
		}
	return false;
}

static void look_at_process(void *ctx, int proc, int pid)
{
	struct statuses *all = ctx;
	char path[48], text[8192];
	str_format(path, sizeof path, "%d/status", pid);
	ssize_t len = fd_read_file(proc, path, text, sizeof text);
	if (len <= 0 || has_line((struct str){ text, (size_t)len }, "State:", "Z (zombie)"))
		return;
	all->processes++;
	for (size_t i = 0; i < LINE_COUNT; i++)
		if (!has_line((struct str){ text, (size_t)len }, lines[i].key, lines[i].value))
			all->bad[i] = pid;
}

static void check_statuses(struct verification *v)
{
	struct statuses all = { 0 };
	view_each_process(&v->w->sandbox.view, look_at_process, &all);
	for (size_t i = 0, next; i < LINE_COUNT; i = next) {
		int bad = 0;
		const char *key = "";
		for (next = i; next < LINE_COUNT && lines[next].check == lines[i].check; next++)
			if (all.bad[next]) {
				bad = all.bad[next];
				key = lines[next].key;
			}
		if (bad || !all.processes)
			add(v, lines[i].check, false, true, "process %d has another '%s'", bad,
				key);
		else
			add(v, lines[i].check, true, true, "as expected in all processes (%u)",
				all.processes);
	}
}

struct first {
	char uid_map[256], interfaces[2048];
	bool is_seen;
};

static void look_at_first(void *ctx, int proc, int pid)
{
	struct first *first = ctx;
	if (pid != 1)
		return;
	first->is_seen = true;
	fd_read_file(proc, "1/uid_map", first->uid_map, sizeof first->uid_map);
	fd_read_file(proc, "1/net/dev", first->interfaces, sizeof first->interfaces);
}

static void check_first(struct verification *v)
{
	struct first first = { 0 };
	struct procfs_id_range range = { 0 };
	struct str rest, line, name, more;
	unsigned interfaces = 0, others = 0;
	view_each_process(&v->w->sandbox.view, look_at_first, &first);
	rest = str_from(first.uid_map);
	bool is_mapped = procfs_next_id_range(&rest, &range);
	add(v, "user_namespace", is_mapped && range.count == 1 && range.inside != 0, true,
		is_mapped ? "uid %llu inside, one uid is mapped" : "the map of uids can't be read",
		(unsigned long long)range.inside);
	add(v, "pid_namespace", first.is_seen, true, "%s",
		first.is_seen ? "its init is PID 1 of a namespace of its own"
			      : "there is no PID 1");
	rest = str_from(first.interfaces);
	while (str_next(&rest, '\n', &line))
		if (str_cut(line, ':', &name, &more)) {
			interfaces++;
			others += !str_is(str_trim(name), "lo");
		}
	add(v, "network_namespace", interfaces && !others, true,
		others	     ? "there are interfaces besides lo"
		: interfaces ? "only lo"
			     : "its interfaces can't be read");
	const char *limiter = view_limiter(&v->w->sandbox.view);
	add(v, "limits", limiter != NULL, true, "enforced by %s", limiter ? limiter : "nothing");
}

/* ---- the end ---- */

static void finish(struct verification *v, const struct error *err)
{
	v->done(v->ctx, err ? NULL : &v->verdict, err);
	arena_done(&v->arena);
	free(v);
}

/* Something that could have disturbed the process inside, or answered in its place. */
static bool has_others(const struct core_workspace *w)
{
	return w->sandbox.exec_count || w->model.ptrace ||
	       (w->sandbox.state == SANDBOX_UP && sandbox_has_processes(w));
}

/* The next check of the file server's reply; false: there is no whole one. */
static bool take_check(struct verification *v, struct str *rest)
{
	struct file_entry raw;
	struct str name, detail;
	char shown[NAME_MOST + 1];
	if (!file_take_entry(rest, &raw, &name, &detail) || name.len > NAME_MOST ||
		detail.len > DETAIL_MOST)
		return false;
	str_printable(shown, sizeof shown, name);
	add(v, shown, raw.mode == 1, false, "%.*s", (int)detail.len, detail.data);
	return true;
}

static void read_answer(struct verification *v, const struct file_answer *answer)
{
	struct str rest = answer->infos;
	uint32_t count = answer->reply.count;
	for (uint32_t i = 0; i < count && i < CHECKS_MAX; i++)
		if (!take_check(v, &rest)) {
			add(v, "inside", false, false, "the process inside sent an invalid answer");
			return;
		}
	if (!count)
		add(v, "inside", false, false, "the process inside checked nothing");
}

/* What the kernel says is told also when a command keeps the process inside from its work. */
static void on_answer(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct verification *v = ctx;
	struct error gone;
	if (v->w->sandbox.state != SANDBOX_UP) {
		if (err) {
			finish(v, err);
			return;
		}
		fail_hint(&gone, ERR_UNAVAILABLE, "try again",
			"the sandbox of workspace '%s' ended", v->w->model.name);
		finish(v, &gone);
		return;
	}
	check_statuses(v);
	check_first(v);
	v->verdict.is_inside_trusted &= !has_others(v->w);
	if (err)
		add(v, "inside", false, false, "%s", err->text);
	else
		read_answer(v, answer);
	finish(v, NULL);
}

int core_verify(const struct request *request, struct core_workspace *w, core_verify_fn *done,
	void *ctx, struct error *err)
{
	const struct file_ask ask = { .verb = FILE_VERIFY, .path = ".", .fd = -1 };
	if (access_check(w->core, request, VERB_WORKSPACE_VERIFY, w, err))
		return -1;
	struct verification *v = xzalloc(sizeof *v);
	*v = (struct verification){ .w = w, .done = done, .ctx = ctx };
	arena_init(&v->arena);
	v->verdict.workspace = arena_text(&v->arena, w->model.id);
	v->verdict.name = arena_text(&v->arena, w->model.name);
	v->verdict.ok = true;
	v->verdict.is_inside_trusted = !has_others(w);
	file_ask(w, &ask, on_answer, v);
	return 0;
}
