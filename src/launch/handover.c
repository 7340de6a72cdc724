#include "launch/handover.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#define FIRST_LINE "carrel-handover 1"
#define TEXT_MAX ((size_t)64 << 20)
#define NONE "-"

/* ---- the text ---- */

/* Numbers by name; descriptors may be -1, which is printed as one more. */
#define NUMBERS(h)                                                                                 \
	{                                                                                          \
		{ "listener", &(h)->listener.fd, NULL, NULL },                                     \
			{ "listener_dir", &(h)->listener.dir, NULL, NULL },                        \
			{ "lock", &(h)->lock, NULL, NULL },                                        \
			{ "notify", &(h)->notify, NULL, NULL },                                    \
			{ "slots", &(h)->slots, NULL, NULL },                                      \
			{ "listener_is_own", NULL, &(h)->listener.is_own, NULL },                  \
			{ "cgroup_pids", NULL, &(h)->cgroups.pids, NULL },                         \
			{ "cgroup_has_unified", NULL, &(h)->cgroups.has_unified, NULL },           \
			{ "next_group", NULL, NULL, &(h)->next_group },                            \
			{ "reloads", NULL, NULL, &(h)->reloads },                                  \
	}
#define PATHS(h)                                                                                   \
	{                                                                                          \
		{ "cgroup_memory", (h)->cgroups.memory }, { "cgroup_cpu", (h)->cgroups.cpu },      \
			{ "cgroup_cpuacct", (h)->cgroups.cpuacct },                                \
			{ "cgroup_unified", (h)->cgroups.unified },                                \
	}

void handover_print(const struct handover *handover, struct buf *out)
{
	struct handover copy = *handover;
	const struct {
		const char *name;
		int *fd;
		bool *flag;
		unsigned *number;
	} numbers[] = NUMBERS(&copy);
	const struct {
		const char *name;
		char *path;
	} paths[] = PATHS(&copy);
	buf_text(out, FIRST_LINE "\n");
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		buf_printf(out, "%s %u\n", numbers[i].name,
			numbers[i].fd	  ? (unsigned)(*numbers[i].fd + 1)
			: numbers[i].flag ? (unsigned)*numbers[i].flag
					  : *numbers[i].number);
	buf_printf(out, "cgroup_version %u\nlimiter %u\nfds %llu\n", (unsigned)copy.cgroups.version,
		(unsigned)copy.limiter, (unsigned long long)copy.fds.rlim_cur);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		buf_printf(out, "%s %s\n", paths[i].name, paths[i].path[0] ? paths[i].path : NONE);
	buf_printf(out, "listener_path %s\n", copy.listener.path);
	for (size_t i = 0; i < copy.also.count; i++) {
		const struct launch_listener *l = &copy.also.items[i];
		buf_printf(out, "also %u %u %u %s\n", (unsigned)(l->fd + 1), (unsigned)(l->dir + 1),
			l->is_own, l->path);
	}
	for (size_t i = 0; i < copy.pins.count; i++)
		buf_printf(out, "pin %u\n", (unsigned)(copy.pins.items[i] + 1));
	for (size_t i = 0; i < copy.sandboxes.count; i++) {
		const struct handover_sandbox *s = &copy.sandboxes.items[i];
		buf_printf(out, "sandbox %s %d %s %u %u %u %u %u %u", s->id, (int)s->pid,
			s->isolation, (unsigned)s->limiter, s->uid, s->has_socket, s->has_cgroup,
			s->has_cpu, s->cgroup);
		for (size_t k = 0; k < LAUNCH_TREES_MAX; k++)
			buf_printf(out, " %u", (unsigned)(s->pins[k] + 1));
		buf_char(out, '\n');
	}
}

static bool next_number(struct str *rest, uint64_t most, uint64_t *value)
{
	struct str word;
	return str_next(rest, ' ', &word) && str_to_u64(word, value) && *value <= most;
}

static int parse_sandbox(
	struct str rest, struct arena *arena, struct handover *h, struct error *err)
{
	struct handover_sandbox s = { 0 };
	struct str id, isolation;
	uint64_t pid, numbers[6], pin;
	bool ok = str_next(&rest, ' ', &id) &&
		  str_format(s.id, sizeof s.id, "%.*s", (int)id.len, id.data) &&
		  id_is_valid(s.id) && next_number(&rest, INT32_MAX, &pid) && pid > 1 &&
		  str_next(&rest, ' ', &isolation);
	for (size_t i = 0; ok && i < sizeof numbers / sizeof *numbers; i++)
		ok = next_number(&rest, UINT32_MAX, &numbers[i]);
	for (size_t i = 0; ok && i < LAUNCH_TREES_MAX; i++) {
		ok = next_number(&rest, h->pins.count, &pin);
		s.pins[i] = (int)pin - 1;
	}
	if (!ok || rest.len)
		return fail(err, ERR_CORRUPT, "the handover has an invalid sandbox");
	s.pid = (pid_t)pid;
	s.isolation = arena_bytes(arena, isolation.data, isolation.len);
	s.limiter = (enum plan_limiter)numbers[0];
	s.uid = (uint32_t)numbers[1];
	s.has_socket = numbers[2];
	s.has_cgroup = numbers[3];
	s.has_cpu = numbers[4];
	s.cgroup = (unsigned)numbers[5];
	vec_push(arena, &h->sandboxes, s);
	return 0;
}

static int parse_also(struct str rest, struct arena *arena, struct handover *h, struct error *err)
{
	uint64_t fd, dir, is_own;
	if (!next_number(&rest, INT32_MAX, &fd) || !fd || !next_number(&rest, INT32_MAX, &dir) ||
		!next_number(&rest, 1, &is_own) || !rest.len ||
		h->also.count == LAUNCH_LISTENERS_MAX - 1)
		return fail(err, ERR_CORRUPT, "the handover has an invalid listener");
	const struct launch_listener l = { (int)fd - 1, arena_bytes(arena, rest.data, rest.len),
		(int)dir - 1, is_own };
	vec_push(arena, &h->also, l);
	return 0;
}

/* 1: it was one of these; 0: it wasn't; -1. */
static int parse_number(struct str key, struct str rest, struct handover *h, struct error *err)
{
	const struct {
		const char *name;
		int *fd;
		bool *flag;
		unsigned *number;
	} numbers[] = NUMBERS(h);
	uint64_t value;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		if (!str_is(key, numbers[i].name))
			continue;
		if (!next_number(&rest, INT32_MAX, &value))
			return fail(err, ERR_CORRUPT, "the handover has an invalid '%s'",
				numbers[i].name);
		if (numbers[i].fd)
			*numbers[i].fd = (int)value - 1;
		else if (numbers[i].flag)
			*numbers[i].flag = value;
		else
			*numbers[i].number = (unsigned)value;
		return 1;
	}
	return 0;
}

static int parse_path(struct str key, struct str rest, struct handover *h, struct error *err)
{
	const struct {
		const char *name;
		char *path;
	} paths[] = PATHS(h);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (str_is(key, paths[i].name)) {
			if (!str_is(rest, NONE) && !str_format(paths[i].path, CGROUP_PATH_MAX,
							   "%.*s", (int)rest.len, rest.data))
				return fail(err, ERR_CORRUPT, "the handover has a path too long");
			return 1;
		}
	return 0;
}

static int parse_line(struct str line, struct arena *arena, struct handover *h, struct error *err)
{
	struct str key, rest;
	uint64_t value = 0;
	if (!str_cut(line, ' ', &key, &rest))
		return fail(err, ERR_CORRUPT, "the handover has an invalid line");
	int known = parse_number(key, rest, h, err);
	if (!known)
		known = parse_path(key, rest, h, err);
	if (known)
		return known < 0 ? -1 : 0;
	if (str_is(key, "listener_path")) {
		h->listener.path = arena_bytes(arena, rest.data, rest.len);
		return 0;
	}
	if (str_is(key, "also"))
		return parse_also(rest, arena, h, err);
	if (str_is(key, "sandbox"))
		return parse_sandbox(rest, arena, h, err);
	if (!next_number(&rest, UINT64_MAX, &value))
		return fail(err, ERR_CORRUPT, "the handover has an invalid number");
	if (str_is(key, "cgroup_version"))
		h->cgroups.version = (enum cgroup_version)value;
	else if (str_is(key, "limiter"))
		h->limiter = (enum plan_limiter)value;
	else if (str_is(key, "fds"))
		h->fds.rlim_cur = value;
	else if (str_is(key, "pin"))
		vec_push(arena, &h->pins, (int)value - 1);
	else
		return fail(err, ERR_CORRUPT, "the handover has an unknown line '%.*s'",
			(int)key.len, key.data);
	return 0;
}

int handover_parse(
	struct str text, struct arena *arena, struct handover *handover, struct error *err)
{
	struct str line;
	*handover = (struct handover){
		.listener = { -1, NULL, -1, false }, .lock = -1, .notify = -1, .slots = -1
	};
	if (!str_next(&text, '\n', &line) || !str_is(line, FIRST_LINE))
		return fail(err, ERR_CORRUPT, "the handover is of another version");
	while (str_next(&text, '\n', &line))
		if (line.len && parse_line(line, arena, handover, err))
			return -1;
	if (handover->listener.fd < 0 || handover->lock < 0 || !handover->listener.path)
		return fail(err, ERR_CORRUPT, "the handover is incomplete");
	return 0;
}

/* ---- taken over ---- */

static void keep_private(int fd)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int handover_take(struct arena *arena, struct handover *handover, struct error *err)
{
	const char *text = getenv(HANDOVER_VARIABLE);
	uint64_t number;
	if (!text)
		return 0;
	bool is_number = str_to_u64(str_from(text), &number) && number <= INT32_MAX;
	unsetenv(HANDOVER_VARIABLE);
	if (!is_number)
		return fail(err, ERR_INVALID, HANDOVER_VARIABLE " is for `carrel serve` alone");
	auto_close int fd = (int)number;
	off_t len = lseek(fd, 0, SEEK_END);
	if (len <= 0 || (size_t)len > TEXT_MAX)
		return fail(err, ERR_INVALID, HANDOVER_VARIABLE " is for `carrel serve` alone");
	char *data = arena_alloc(arena, (size_t)len + 1);
	if (pread(fd, data, (size_t)len, 0) != len)
		return fail_errno(err, "read what the launcher left");
	if (handover_parse((struct str){ data, (size_t)len }, arena, handover, err))
		return -1;
	keep_private(handover->listener.fd);
	keep_private(handover->listener.dir);
	for (size_t i = 0; i < handover->also.count; i++) {
		keep_private(handover->also.items[i].fd);
		keep_private(handover->also.items[i].dir);
	}
	keep_private(handover->lock);
	keep_private(handover->notify);
	keep_private(handover->slots);
	for (size_t i = 0; i < handover->pins.count; i++)
		keep_private(handover->pins.items[i]);
	return 1;
}

bool handover_is_check(void)
{
	const char *text = getenv(HANDOVER_VARIABLE);
	bool is_check = text && !strcmp(text, HANDOVER_CHECK);
	if (is_check)
		unsetenv(HANDOVER_VARIABLE);
	return is_check;
}
