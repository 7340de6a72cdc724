/* repair.c -- what is done about the findings of a check: directories are made again, a damaged
 * environment is built again, the files of a package are those of its layer again. What a command
 * has changed elsewhere stays. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "core/health_internal.h"
#include "format/json_read.h"

#define VERDICT_MAX ((size_t)4 << 20)
#define OPAQUE "user.overlay.opaque"
#define METADATA ".dist-info"

struct repairing {
	struct core_workspace *w; /* held */
	struct arena arena;
	core_repair_fn *done;
	void *ctx;
	struct repair result;
	struct checkup *checkup; /* while one is under way */
	findings found;
	enum workspace_state before;
	bool is_deep;
	char request_id[ID_LEN + 1];
	int answer; /* memfd of `env verify` */
	struct measure restore;
	struct error failure; /* of the child that restores */
	const char *restoring;
};

static void say(struct repairing *r, text_list *list, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void say(struct repairing *r, text_list *list, const char *fmt, ...)
{
	char text[1024], shown[1024];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	str_printable(shown, sizeof shown, str_from(text));
	vec_push(&r->arena, list, arena_text(&r->arena, shown));
}

static bool has_finding(const struct repairing *r, enum finding_kind kind)
{
	for (size_t i = 0; i < r->found.count; i++)
		if (r->found.items[i].kind == kind)
			return true;
	return false;
}

/* ---- the end ---- */

static void tell(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct repairing *r = ctx;
	r->done(r->ctx, err ? NULL : &r->result, err);
	fd_close(&r->answer);
	arena_done(&r->arena);
	core_release(r->w);
	free(r);
}

static void give_up(struct repairing *r, const struct error *err)
{
	core_later(r->w->core, tell, r, r->w, err);
}

/* A workspace that was not suspended is not left so, if it can be started. */
static void on_awake(void *ctx, struct core_workspace *w, const struct error *unused)
{
	tell(ctx, w, NULL);
}

/* The health lives in the checkup's arena, which goes. */
static void keep_health(struct repairing *r, const struct health *health)
{
	r->result.health = *health;
	r->result.health.workspace = arena_text(&r->arena, health->workspace);
	r->result.health.name = arena_text(&r->arena, health->name);
	r->result.health.issues = workspace_copy_texts(&r->arena, &health->issues);
	r->result.health.layers_active = workspace_copy_texts(&r->arena, &health->layers_active);
}

static void on_checked_again(void *ctx, const struct health *health, const struct error *err)
{
	struct repairing *r = ctx;
	keep_health(r, health);
	for (size_t i = 0; i < r->result.health.issues.count; i++)
		vec_push(&r->arena, &r->result.failed, r->result.health.issues.items[i]);
	if (r->before != WORKSPACE_SUSPENDED && r->w->model.state == WORKSPACE_SUSPENDED)
		core_resume(&request_system, r->w, on_awake, r);
	else
		tell(r, r->w, NULL);
}

static void check_again(struct repairing *r)
{
	fault_point("core_repair_done");
	checkup_begin(r->w, r->is_deep, on_checked_again, r);
}

/* ---- inside ---- */

static void on_marked(void *ctx, struct core_exec *e, const struct error *err)
{
	struct repairing *r = ctx;
	const struct result *result = &e->record.result;
	if (!err && result->reason == REASON_EXITED && !result->exit_status) {
		if (has_finding(r, FINDING_MARK))
			say(r, &r->result.done, "made '.workspace_configured' again");
		if (has_finding(r, FINDING_VENV))
			say(r, &r->result.done, "made the link '.venv' to /env again");
	}
	check_again(r);
}

static void make_marks(struct repairing *r)
{
	static const char script[] =
		"[ -e .workspace_configured ] || : > .workspace_configured\n"
		"[ -z \"$1\" ] || [ -L .venv ] || [ -e .venv ] || ln -s /env .venv\n";
	const char *words[] = { "/bin/sh", "-c", script, "sh",
		has_finding(r, FINDING_VENV) ? "venv" : "" };
	const struct exec_spec spec = { .argv = { words, 5, 5 } };
	const struct exec_listener listener = { .ended = on_marked, .ctx = r };
	struct core_exec *e;
	struct error err;
	if ((!has_finding(r, FINDING_MARK) && !has_finding(r, FINDING_VENV)) ||
		exec_start(&request_system, r->w, &spec, EXEC_CAPTURED, NULL, &listener, &e, &err))
		check_again(r);
}

/* ---- the files of a package are its layer's again ---- */

/* Opens the directory `path` of the upper, as far as it is one: what hides the layers on the way,
 * a deleted or replaced directory or an opaque mark, is removed. -1: nothing lies there. */
static int open_upper(int upper, const char *path, struct error *err)
{
	struct str rest = str_from(path), part;
	char name[NAME_MAX + 1];
	auto_close int at = fcntl(upper, F_DUPFD_CLOEXEC, 3);
	while (at >= 0 && str_next(&rest, '/', &part)) {
		struct stat st;
		if (!str_format(name, sizeof name, "%.*s", (int)part.len, part.data) ||
			fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
			return -1;
		if (!S_ISDIR(st.st_mode)) {
			path_remove_tree(at, name, err);
			return -1;
		}
		int next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next >= 0)
			fremovexattr(next, OPAQUE);
		fd_close(&at);
		at = next;
	}
	return take_fd(&at);
}

static int remove_from_upper(int upper, const char *path, struct error *err)
{
	char parent[MANIFEST_PATH_MAX + 1];
	const char *name = path_basename(path);
	str_format(parent, sizeof parent, "%.*s", (int)(name - path), path);
	auto_close int dir = open_upper(upper, parent, err);
	return dir < 0 ? 0 : path_remove_tree(dir, name, err);
}

static bool is_metadata(const char *name)
{
	size_t len = strlen(name), end = strlen(METADATA);
	return len > end && !strcmp(name + len - end, METADATA);
}

static bool has_entry(const struct manifest *manifest, struct str dir, const char *name)
{
	for (size_t i = 0; i < manifest->entries.count; i++) {
		const char *path = manifest->entries.items[i].path;
		if (strlen(path) == dir.len + 1 + strlen(name) &&
			!strncmp(path, dir.data, dir.len) && path[dir.len] == '/' &&
			!strcmp(path + dir.len + 1, name))
			return true;
	}
	return false;
}

/* A directory that is the package's alone: it goes as a whole, with what was added to it. */
static bool is_own_directory(const struct manifest *manifest, const struct manifest_entry *entry)
{
	struct str path = str_from(entry->path);
	return entry->kind == MANIFEST_DIRECTORY &&
	       (is_metadata(entry->path) || has_entry(manifest, path, "__init__.py"));
}

/* Another version of it, which a command installed over it. */
static int remove_other_metadata(
	int upper, const char *path, const char *package, struct error *err)
{
	char parent[MANIFEST_PATH_MAX + 1];
	size_t len = strlen(package);
	str_format(parent, sizeof parent, "%.*s", (int)(path_basename(path) - path), path);
	auto_close int dir = open_upper(upper, parent, err);
	auto_walk DIR *list = dir < 0 ? NULL : walk_open(dir, ".");
	struct dirent *entry;
	while ((entry = walk_next(list))) {
		char name[NAME_MAX + 1];
		size_t i = 0;
		for (; entry->d_name[i] && i < NAME_MAX; i++)
			name[i] = (char)(strchr("_.", entry->d_name[i]) ? '-'
					 : entry->d_name[i] >= 'A' && entry->d_name[i] <= 'Z'
						 ? entry->d_name[i] + 32
						 : entry->d_name[i]);
		name[i] = 0;
		if (strncmp(name, package, len) == 0 && name[len] == '-' && name[len + 1] >= '0' &&
			name[len + 1] <= '9' && is_metadata(entry->d_name) &&
			path_remove_tree(dir, entry->d_name, err))
			return -1;
	}
	return 0;
}

static int restore_layer(int upper, const struct manifest *manifest, struct error *err)
{
	const char *done = NULL; /* the directory that went as a whole */
	for (size_t i = 0; i < manifest->entries.count; i++) {
		const struct manifest_entry *entry = &manifest->entries.items[i];
		size_t len = done ? strlen(done) : 0;
		if (done && !strncmp(entry->path, done, len) && entry->path[len] == '/')
			continue;
		bool is_own = is_own_directory(manifest, entry);
		if (entry->kind == MANIFEST_DIRECTORY && !is_own)
			continue;
		if (is_own)
			done = entry->path;
		if (is_own && is_metadata(entry->path) &&
			remove_other_metadata(upper, entry->path, manifest->name, err))
			return -1;
		if (remove_from_upper(upper, entry->path, err))
			return -1;
	}
	return 0;
}

static bool is_layer_of(const struct manifest *manifest, const char *package)
{
	if (!strcmp(package, LAYER_KIND_BASE))
		return !strcmp(manifest->kind, LAYER_KIND_BASE);
	return strcmp(manifest->kind, LAYER_KIND_BASE) && !strcasecmp(manifest->name, package);
}

/* In a child. 1: restored, 0: no layer has it, UINT64_MAX: r->failure. */
static uint64_t restore(void *ctx)
{
	struct repairing *r = ctx;
	const struct core *core = r->w->core;
	const struct env_meta *meta = environment_meta(r->w);
	auto_arena struct arena arena = { 0 };
	char path[ID_LEN + 16];
	uint64_t found = 0;
	str_format(path, sizeof path, "%s/env/upper", r->w->model.id);
	auto_close int upper = path_open_nolinks(core->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
	if (upper < 0) {
		fail_errno(&r->failure, "open '%s'", path);
		return UINT64_MAX;
	}
	for (size_t i = 0; meta && i < meta->layers.count; i++) {
		struct manifest manifest;
		if (layer_read(&core->envs.layers, meta->layers.items[i], &arena, &manifest,
			    &r->failure))
			return UINT64_MAX;
		if (!is_layer_of(&manifest, r->restoring))
			continue;
		if (restore_layer(upper, &manifest, &r->failure))
			return UINT64_MAX;
		found = 1;
	}
	return found;
}

static void restore_next(struct repairing *r, size_t from);

static void on_restored(void *ctx, bool ok, uint64_t value)
{
	struct repairing *r = ctx;
	const char *what = strcmp(r->restoring, LAYER_KIND_BASE) ? r->restoring : "Python";
	if (!ok || value == UINT64_MAX)
		say(r, &r->result.failed, "'%s' could not be restored: %s", what,
			ok ? r->failure.text : "the process that restores it ended");
	else if (value)
		say(r, &r->result.done, "restored '%s' from its layer", what);
	else
		say(r, &r->result.failed, "'%s' is not part of environment '%s'", what,
			r->w->model.environment);
	size_t next = 0;
	while (next < r->found.count && r->found.items[next].object != r->restoring)
		next++;
	restore_next(r, next + 1);
}

/* Names are normalised (PEP 503), as those of layers are. */
static const char *normalize(struct arena *arena, const char *name)
{
	char *text = arena_text(arena, name), *to = text;
	for (const char *at = text; *at; at++) {
		bool is_dash = strchr("-_.", *at);
		if (!is_dash || to == text || to[-1] != '-')
			*to++ = (char)(is_dash ? '-' : *at >= 'A' && *at <= 'Z' ? *at + 32 : *at);
	}
	*to = 0;
	return text;
}

static void restore_next(struct repairing *r, size_t from)
{
	const struct core *core = r->w->core;
	for (size_t i = from; i < r->found.count; i++) {
		struct finding *finding = &r->found.items[i];
		if (finding->kind != FINDING_PACKAGE && finding->kind != FINDING_PYTHON)
			continue;
		finding->object = r->restoring = finding->kind == FINDING_PYTHON
							 ? LAYER_KIND_BASE
							 : normalize(&r->arena, finding->object);
		fault_point("core_repair_restore");
		r->restore = (struct measure){ .loop = core->loop,
			.find = restore,
			.found = on_restored,
			.ctx = r,
			.keep = { core->workspaces, core->envs.layers.dir, core->envs.dir,
				core->home.dir },
			.keep_count = 4,
			.detail = &r->failure,
			.detail_len = sizeof r->failure };
		measure_start(&r->restore);
		return;
	}
	make_marks(r);
}

/* ---- its environment ---- */

static void on_prepared(void *ctx, const struct error *err)
{
	struct repairing *r = ctx;
	if (err)
		say(r, &r->result.failed, "the environment could not be built: %s", err->text);
	else
		say(r, &r->result.done, "built environment '%s' again", r->w->model.environment);
	restore_next(r, 0);
}

static void read_verdict(struct repairing *r)
{
	char *text = arena_alloc(&r->arena, VERDICT_MAX);
	struct json_value *value;
	struct error err;
	ssize_t len = pread(r->answer, text, VERDICT_MAX, 0);
	bool is_read =
		len > 0 && !json_read((struct str){ text, (size_t)len }, &r->arena, &value, &err);
	const struct json_value *one = !is_read			   ? NULL
				       : value->kind == JSON_ARRAY ? value->first
								   : value;
	const struct json_value *repaired = json_member(one, "repaired");
	const char *why = json_member_text(json_member(one, "error"), "message");
	if (repaired && repaired->boolean)
		say(r, &r->result.done, "built environment '%s' again", r->w->model.environment);
	else if (why)
		say(r, &r->result.failed, "environment '%s' could not be repaired: %s",
			r->w->model.environment, why);
}

static void on_verified(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct repairing *r = ctx;
	struct error err;
	if (packet && packet->head.type == LAUNCH_BUILT)
		read_verdict(r);
	else {
		launcher_failure(packet, &err);
		say(r, &r->result.failed, "the environment could not be repaired: %s", err.text);
	}
	restore_next(r, 0);
}

/* One that exists is verified and repaired by its own requirements; one that is gone is built by
 * those of the workspace. */
static void repair_environment(struct repairing *r)
{
	struct core_workspace *w = r->w;
	const char *name;
	struct error err;
	if (!has_finding(r, FINDING_ENVIRONMENT)) {
		restore_next(r, 0);
		return;
	}
	if (env_resolve(&w->core->envs, w->model.environment, &r->arena, &name, &err)) {
		environment_prepare(w, r->request_id, on_prepared, r);
		return;
	}
	r->answer = memfd_create("verdict", MFD_CLOEXEC);
	if (r->answer < 0 || !environment_verify(w, true, r->answer, on_verified, r, &err)) {
		say(r, &r->result.failed, "the environment could not be repaired: %s",
			r->answer < 0 ? "out of memory" : err.text);
		restore_next(r, 0);
	}
}

/* ---- its directories ---- */

static void make_directories(struct repairing *r)
{
	for (size_t i = 0; i < r->found.count; i++) {
		const struct finding *finding = &r->found.items[i];
		char path[ID_LEN + 16], env[ID_LEN + 8];
		if (finding->kind != FINDING_TREE || !strcmp(finding->object, "upper"))
			continue; /* files that are lost stay so, and are named by the next check */
		str_format(env, sizeof env, "%s/env", r->w->model.id);
		str_format(path, sizeof path, "%s/%s", r->w->model.id, finding->object);
		if ((mkdirat(r->w->core->workspaces, env, 0755) && errno != EEXIST) ||
			mkdirat(r->w->core->workspaces, path, 0755))
			say(r, &r->result.failed, "directory '%s' could not be made: %s",
				finding->object, strerror(errno));
		else
			say(r, &r->result.done, "made directory '%s' again", finding->object);
	}
}

static void repair_outside(struct repairing *r)
{
	make_directories(r);
	repair_environment(r);
}

static void on_ended(void *ctx, struct core_workspace *w, const struct error *err)
{
	if (err)
		give_up(ctx, err);
	else
		repair_outside(ctx);
}

static void on_checked(void *ctx, const struct health *health, const struct error *err)
{
	static const enum finding_kind outside[] = { FINDING_TREE, FINDING_ENVIRONMENT,
		FINDING_PYTHON, FINDING_PACKAGE };
	struct repairing *r = ctx;
	bool needs_end = false;
	for (size_t i = 0; i < r->checkup->found.count; i++) {
		struct finding finding = r->checkup->found.items[i];
		finding.object = finding.object ? arena_text(&r->arena, finding.object) : NULL;
		finding.text = arena_text(&r->arena, finding.text);
		vec_push(&r->arena, &r->found, finding);
	}
	r->before = health->state;
	r->checkup = NULL;
	for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
		needs_end |= has_finding(r, outside[i]);
	if (health->is_healthy || r->w->model.state == WORKSPACE_FAILED) {
		keep_health(r, health);
		for (size_t i = 0; i < r->found.count; i++)
			vec_push(&r->arena, &r->result.failed, r->found.items[i].text);
		core_later(r->w->core, tell, r, r->w, NULL);
	} else if (needs_end) /* no process may use what is changed below it */
		core_suspend(&request_system, r->w, false, on_ended, r);
	else
		repair_outside(r);
}

int core_repair(const struct request *request, struct core_workspace *w, bool is_deep,
	core_repair_fn *done, void *ctx, struct error *err)
{
	if (access_check(w->core, request, VERB_WORKSPACE_REPAIR, w, err))
		return -1;
	struct repairing *r = xzalloc(sizeof *r);
	*r = (struct repairing){
		.w = w, .done = done, .ctx = ctx, .is_deep = is_deep, .answer = -1
	};
	arena_init(&r->arena);
	str_copy(r->request_id, sizeof r->request_id, request->id);
	core_hold(w);
	r->checkup = checkup_begin(w, is_deep, on_checked, r);
	return 0;
}
