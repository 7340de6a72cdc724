#include "cli/daemon/diagnose.h"

#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/map.h"
#include "base/path.h"
#include "sandbox/native/host.h"
#include "sandbox/native/isolation.h"
#include "sandbox/plan/system.h"

#define ENTRIES_MAX 1000
#define NAMES_MAX ((size_t)16 << 20)

static bool is_shown(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (path_is_beneath(path, plan->mounts.items[i].target))
			return true;
	for (size_t i = 0; i < plan->nodes.count; i++) {
		const struct plan_node *node = &plan->nodes.items[i];
		bool is_there = node->kind == NODE_LINK ? path_is_beneath(path, node->path)
							: !strcmp(path, node->path);
		if (is_there)
			return true;
	}
	return false;
}

/* Whether something below directory `path` is shown, so that it is there inside. */
static bool is_above_shown(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->mounts.count; i++)
		if (path_is_beneath(plan->mounts.items[i].target, path))
			return true;
	for (size_t i = 0; i < plan->nodes.count; i++)
		if (path_is_beneath(plan->nodes.items[i].path, path))
			return true;
	return false;
}

/* How many names of a path are kept: those that packages own whole. */
static size_t depth_of(const char *path)
{
	static const struct {
		const char *directory;
		size_t depth;
	} owned[] = { { "/etc", 2 }, { "/opt", 2 }, { "/srv", 2 }, { "/var", 3 } };
	for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
		if (path_is_beneath(path, owned[i].directory))
			return owned[i].depth;
	return SIZE_MAX;
}

const char *missed_entry(const struct plan *plan, const char *path, struct arena *arena)
{
	size_t depth = 0, least = depth_of(path);
	if (is_shown(plan, path) || is_above_shown(plan, path))
		return NULL;
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		const char *above = arena_bytes(arena, path, (size_t)(slash - path));
		if (++depth >= least && !is_above_shown(plan, above))
			return above;
	}
	return path;
}

struct missed {
	struct arena *arena;
	const struct plan *plan;
	struct map paths; /* as they were named */
	size_t bytes;	  /* of all of them */
	text_list entries;
};

/* Only recorded: looking at the host now would let a program find out by timing which paths exist.
 */
static void on_looked(void *ctx, const char *path)
{
	struct missed *missed = ctx;
	size_t len = strlen(path);
	if (missed->bytes + len > NAMES_MAX || map_get(&missed->paths, str_from(path)))
		return;
	map_set(&missed->paths, str_from(path), missed);
	missed->bytes += len;
}

static void add(struct missed *missed, const char *path)
{
	const char *entry = missed_entry(missed->plan, path, missed->arena);
	for (size_t i = 0; entry && i < missed->entries.count; i++)
		if (!strcmp(missed->entries.items[i], entry))
			return;
	if (entry && missed->entries.count < ENTRIES_MAX)
		vec_push(missed->arena, &missed->entries, entry);
}

static bool is_own(const char *path)
{
	static const char *const own[] = { "/proc", "/dev", "/tmp", "/workspace", "/env",
		"/.cache" };
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (path_is_beneath(path, own[i]))
			return true;
	return false;
}

static bool is_printable(const char *path)
{
	for (; *path; path++)
		if ((unsigned char)*path < ' ' || *path == 0x7f)
			return false;
	return true;
}

/* A visible link may lead to a file that isn't shown. */
static void look_at(struct missed *missed, const char *path)
{
	char real[PATH_MAX];
	struct stat st;
	const char *plain = path_normalize(missed->arena, "/", path);
	if (!is_printable(plain) || is_own(plain) || lstat(plain, &st))
		return;
	add(missed, plain);
	if (realpath(plain, real) && !is_own(real))
		add(missed, real);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_json(const struct missed *missed, int code, struct json *j)
{
	j->pretty = true;
	json_object(j, NULL);
	json_u64(j, "exit_code", (uint64_t)code);
	json_array(j, "missed");
	for (size_t i = 0; i < missed->entries.count; i++) {
		struct error why;
		const char *path = missed->entries.items[i];
		bool is_closed = plan_system_check_shown(path, &why) != 0;
		json_object(j, NULL);
		json_text(j, "path", path);
		json_bool(j, "can_be_shown", !is_closed);
		json_text(j, "why_not", is_closed ? why.text : NULL);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void print_text(const struct missed *missed, const char *program, int code, struct buf *out)
{
	auto_buf struct buf open = buf_empty(BUF_MAX_DEFAULT), closed = buf_empty(BUF_MAX_DEFAULT);
	struct error why;
	for (size_t i = 0; i < missed->entries.count; i++)
		if (plan_system_check_shown(missed->entries.items[i], &why))
			buf_printf(&closed, "    %s\n", missed->entries.items[i]);
		else
			buf_printf(&open, "    - %s\n", missed->entries.items[i]);
	buf_printf(out, "%s ended with %d. ", program, code);
	if (!open.len)
		buf_text(out, "It looked for no path of this host that a sandbox could show.\n");
	else
		buf_printf(out,
			"It looked for these paths of this host, which a sandbox doesn't show. If "
			"it needs them, add to config.yaml:\n\nsystem:\n  show:\n%s",
			open.data);
	if (closed.len)
		buf_printf(out, "\nNever shown:\n%s", closed.data);
}

static int observe(char **argv, struct host *host, struct missed *missed, struct plan *plan,
	int *code, struct error *err)
{
	struct plan_options options = { .argv = argv, .observe = true, .no_input = true };
	struct sandbox_io io = { .looked = on_looked, .ctx = missed };
	struct result result;
	const char *home;
	auto_close int out = dup(STDOUT_FILENO);
	/* The report is what stdout is for. */
	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return fail_errno(err, "send the program's output to stderr");
	int failed = run_look_at_host(host, true, NULL, &home, NULL, missed->arena, err) ||
		     plan_build(&options, &host->facts, missed->arena, plan, err) ||
		     isolation_run(plan, &host->cgroups, &io, &result, err);
	if (dup2(out, STDOUT_FILENO) < 0)
		return fail_errno(err, "take stdout back");
	*code = failed ? 0 : result_exit_code(&result);
	return failed ? -1 : 0;
}

int missed_find(struct command *command, struct error *err)
{
	struct arena *arena = &command->arena;
	struct plan plan = { 0 };
	struct missed missed = { .arena = arena, .plan = &plan };
	struct host host;
	int code;
	host_init(&host);
	map_init(&missed.paths, arena);
	int failed = observe(command->argv, &host, &missed, &plan, &code, err);
	host_done(&host);
	if (failed)
		return -1;
	for (size_t i = 0; i < missed.paths.count; i++)
		look_at(&missed, arena_bytes(arena, missed.paths.entries[i].key.data,
					 missed.paths.entries[i].key.len));
	if (missed.entries.count)
		qsort(missed.entries.items, missed.entries.count, sizeof *missed.entries.items,
			compare_texts);
	if (command->json)
		print_json(&missed, code, &command->value);
	else
		print_text(&missed, command->argv[0], code, &command->out);
	return 0;
}
