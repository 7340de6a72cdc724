#include "core/packages/health.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/packages/checkup.h"
#include "core/packages/packages_internal.h"
#include "core/waits.h"
#include "format/packages/node_package.h"
#include "format/text/json_read.h"
#include "format/text/quantity.h"

#define MARK ".workspace_configured"
#define VENV ".venv"
#define NODE_MODULES "node_modules"
#define PACKAGE_JSON "package.json"
#define PYPROJECT "pyproject.toml"
#define PACKAGE_JSON_MAX ((size_t)1 << 20)
#define NODE_PACKAGES_MAX 2000
#define NODE_NAME_MAX 214
#define ISSUES_MAX 100

void checkup_find(
	struct checkup *c, enum finding_kind kind, const char *object, const char *fmt, ...)
{
	char text[1024], shown[1024];
	va_list args;
	if (c->found.count >= ISSUES_MAX)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	str_printable(shown, sizeof shown, str_from(text));
	struct finding finding = { kind, arena_text(&c->arena, object),
		arena_text(&c->arena, shown), NULL };
	vec_push(&c->arena, &c->found, finding);
}

/* ---- inside, by the file server ---- */

struct question {
	struct fiber *fiber;
	int fd;
};

static void on_answer(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct question *question = ctx;
	question->fd = answer ? answer->fd : -1;
	fiber_continue(question->fiber, err);
}

/* 1: it is there; 0: *err says why not; -1: the sandbox can't be looked into, which is a finding.
 */
static int ask(struct checkup *c, const char *path, int *fd, struct error *err)
{
	struct question question = { .fiber = c->fiber };
	const struct file_ask ask = { .verb = fd ? FILE_OPEN : FILE_STAT, .path = path, .fd = -1 };
	file_ask(c->w, &ask, on_answer, &question);
	int failed = fiber_wait(c->fiber, err);
	if (fd)
		*fd = question.fd;
	if (!failed)
		return 1;
	if (err->code == ERR_NOT_FOUND || err->code == ERR_INVALID || err->code == ERR_DENIED)
		return 0;
	checkup_find(c, FINDING_OTHER, NULL, "the sandbox can't be used: %s", err->text);
	return -1;
}

static int look(struct checkup *c, const char *path, bool *is_there)
{
	struct error ignored;
	int found = ask(c, path, NULL, &ignored);
	*is_there = found == 1;
	return found < 0 ? -1 : 0;
}

/* "name" or "@scope/name": no other part of the tree can be named so. */
static bool is_node_name(const char *name)
{
	size_t len = strlen(name), slashes = 0;
	for (const char *at = name; *at; at++)
		slashes += *at == '/';
	return len && len <= NODE_NAME_MAX && !strstr(name, "..") && name[0] != '.' &&
	       name[0] != '/' && name[len - 1] != '/' && slashes == (name[0] == '@');
}

static void read_package_json(struct checkup *c, int fd)
{
	char *text = arena_alloc(&c->arena, PACKAGE_JSON_MAX);
	struct json_value *value;
	struct error err;
	ssize_t len = fd_read_full(fd, text, PACKAGE_JSON_MAX);
	if (len < 0 || (size_t)len == PACKAGE_JSON_MAX ||
		json_read((struct str){ text, (size_t)len }, &c->arena, &value, &err)) {
		checkup_find(c, FINDING_OTHER, NULL, "package.json can't be read: %s",
			len < 0				  ? "I/O error"
			: (size_t)len == PACKAGE_JSON_MAX ? "too large"
							  : err.text);
		return;
	}
	const struct json_value *dependencies = json_member(value, "dependencies");
	if (!dependencies || dependencies->kind != JSON_OBJECT)
		return;
	for (const struct json_value *at = dependencies->first; at; at = at->next)
		if (is_node_name(at->key.data) && c->node_packages.count < NODE_PACKAGES_MAX)
			vec_push(&c->arena, &c->node_packages, at->key.data);
	if (c->node_packages.count && !c->health.node_modules)
		checkup_find(c, FINDING_NODE, NULL, "node_modules is missing");
}

/* What its environment was made of, where no package.json says what is wanted. */
static void add_node_packages(struct checkup *c)
{
	const struct env_meta *meta = pin_meta(c->w->packages->pins[ENV_KIND_NODE]);
	node_specs specs = { 0 };
	struct str text, kept;
	const char *package;
	struct error ignored;
	if (!meta || node_recipe_read(&c->w->core->envs, meta, &c->arena, &text, &ignored) ||
		package_json_read(text, &c->arena, &specs, &kept, &package, &ignored))
		return;
	for (size_t i = 0; i < specs.count && i < NODE_PACKAGES_MAX; i++)
		vec_push(&c->arena, &c->node_packages, specs.items[i].name);
}

/* One that is not there is nobody's fault; one that can't be opened hides what is wanted. */
static void find_unreadable(struct checkup *c, const char *file, const struct error *err)
{
	if (err && err->code != ERR_NOT_FOUND)
		checkup_find(c, FINDING_OTHER, NULL, "%s can't be read: %s", file, err->text);
}

static int look_at_projects(struct checkup *c)
{
	struct error err;
	auto_close int json = -1, pyproject = -1;
	int found = ask(c, PACKAGE_JSON, &json, &err);
	if (found < 0)
		return -1;
	find_unreadable(c, PACKAGE_JSON, found ? NULL : &err);
	if (found)
		read_package_json(c, json);
	else if (err.code == ERR_NOT_FOUND)
		add_node_packages(c);
	found = ask(c, PYPROJECT, &pyproject, &err);
	if (found >= 0)
		find_unreadable(c, PYPROJECT, found ? NULL : &err);
	return found < 0 ? -1 : 0;
}

static int look_at_venv(struct checkup *c)
{
	bool is_there, has_programs = false;
	/* A link that dangles is there, too, and so is a directory of any kind. */
	if (look(c, VENV, &is_there) || (is_there && look(c, VENV "/bin", &has_programs)))
		return -1;
	c->health.python_venv = has_programs;
	if (!has_programs && c->w->model.environments.of[ENV_KIND_PYTHON])
		checkup_find(c, FINDING_VENV, NULL, "Python venv missing: '" VENV "' %s",
			is_there ? "does not lead to an environment" : "does not exist");
	return 0;
}

static int look_at_node_packages(struct checkup *c)
{
	c->health.node_deps_installed = c->health.node_modules;
	for (size_t i = 0; c->health.node_modules && i < c->node_packages.count; i++) {
		const char *name = c->node_packages.items[i];
		const char *path = arena_printf(&c->arena, NODE_MODULES "/%s/package.json", name);
		bool is_there;
		if (look(c, path, &is_there))
			return -1;
		if (!is_there)
			checkup_find(
				c, FINDING_NODE, name, "Node package '%s' is not installed", name);
		c->health.node_deps_installed &= is_there;
	}
	return 0;
}

static int look_inside(struct checkup *c)
{
	struct health *health = &c->health;
	if (look(c, MARK, &health->configured))
		return -1;
	if (!health->configured)
		checkup_find(c, FINDING_MARK, NULL,
			"Workspace not configured: '" MARK "' does not exist");
	return look_at_venv(c) || look(c, NODE_MODULES, &health->node_modules) ||
			       look_at_projects(c) || look_at_node_packages(c)
		       ? -1
		       : 0;
}

/* ---- outside ---- */

bool findings_have(const findings *found, enum finding_kind kind)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->items[i].kind == kind)
			return true;
	return false;
}

static void check_disk(struct checkup *c)
{
	char used[16], most[16];
	struct health *health = &c->health;
	if (health->disk_usage < health->disk_limit)
		return;
	quantity_format_size(used, health->disk_usage);
	quantity_format_size(most, health->disk_limit);
	checkup_find(c, FINDING_OTHER, NULL, "the disk limit is reached: %s of %s", used, most);
}

/* What is damaged may not be run, and starting a sandbox would build a missing environment again.
 */
static bool may_start(const struct checkup *c)
{
	return !findings_have(&c->found, FINDING_TREE) &&
	       !findings_have(&c->found, FINDING_ENVIRONMENT) &&
	       !findings_have(&c->found, FINDING_LAYER) && c->w->model.state != WORKSPACE_FAILED;
}

/* ---- the whole ---- */

static void begin(struct checkup *c)
{
	struct core_workspace *w = c->w;
	struct workspace_now now = core_now(w);
	arena_init(&c->arena);
	c->health = (struct health){
		.workspace = arena_text(&c->arena, w->model.id),
		.name = arena_text(&c->arena, w->model.name),
		.state = now.state,
		.disk_limit = w->model.limits.disk_bytes,
		.disk_mechanism = arena_text(&c->arena, w->model.disk_mechanism),
	};
	environment_names_copy(&c->arena, &w->model.environments, &c->health.environments);
	workspace_list_active(&now, &c->arena, &c->health.layers_active);
	core_hold(w);
}

/* No command begins on layers that are damaged: the next start repairs them, or is refused, and
 * where something runs nothing begins beside it. The workspace is suspended as it was found; that
 * is refused when somebody uses it by now. */
static void end(struct checkup *c)
{
	struct core_workspace *w = c->w;
	struct core *core = w->core;
	struct health *health = &c->health;
	struct error ignored;
	for (size_t i = 0; i < c->found.count; i++)
		vec_push(&c->arena, &health->issues, c->found.items[i].text);
	health->is_healthy = !c->found.count;
	bool is_damaged = c->is_deep && (findings_have(&c->found, FINDING_ENVIRONMENT) ||
						findings_have(&c->found, FINDING_LAYER));
	bool is_suspended = (is_damaged || health->state == WORKSPACE_SUSPENDED) &&
			    w->model.state == WORKSPACE_READY;
	if (is_damaged && w->sandbox.state == SANDBOX_UP)
		w->sandbox.is_damaged = true;
	if (is_suspended)
		core_suspend(&request_system, w, false, fiber_continue_workspace, c->fiber);
	core_release(w);
	if (is_suspended)
		fiber_wait(c->fiber, &ignored);
	else
		wait_turn(c->fiber, core);
}

void checkup_run(struct fiber *fiber, struct checkup *c, struct core_workspace *w, bool is_deep)
{
	struct error none;
	*c = (struct checkup){ .fiber = fiber, .w = w, .is_deep = is_deep };
	begin(c);
	core_measure(&request_system, w, fiber_continue_workspace, fiber);
	fiber_wait(fiber, &none);
	c->health.disk_usage = w->model.disk_usage_bytes;
	if (w->model.state == WORKSPACE_FAILED)
		checkup_find(c, FINDING_OTHER, NULL, "the workspace has failed: %s",
			w->model.error ? w->model.error : "its files are missing");
	checkup_look_outside(c);
	check_disk(c);
	if (is_deep)
		checkup_verify_layers(c);
	if (may_start(c) && !look_inside(c))
		checkup_import(c);
	end(c);
}

void checkup_done(struct checkup *c)
{
	arena_done(&c->arena);
}

struct core_checkup {
	struct core_workspace *w;
	bool is_deep;
	core_health_fn *done;
	void *ctx;
};

static void check(struct fiber *fiber, void *ctx)
{
	const struct core_checkup asked = *(const struct core_checkup *)ctx;
	struct checkup c;
	free(ctx);
	checkup_run(fiber, &c, asked.w, asked.is_deep);
	asked.done(asked.ctx, &c.health, NULL);
	checkup_done(&c);
}

int core_health(const struct request *request, struct core_workspace *w, bool is_deep,
	core_health_fn *done, void *ctx, struct error *err)
{
	if (access_check(w->core, request, VERB_WORKSPACE_HEALTH, w, err))
		return -1;
	struct core_checkup *asked = xzalloc(sizeof *asked);
	*asked = (struct core_checkup){ w, is_deep, done, ctx };
	fiber_start(check, asked);
	return 0;
}
