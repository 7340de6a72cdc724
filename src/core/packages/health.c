#include "core/packages/health.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "core/packages/checkup.h"
#include "core/packages/packages_internal.h"
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

/* ---- the end ---- */

static void tell(void *ctx, struct core_workspace *w, const struct error *none)
{
	struct checkup *c = ctx;
	c->done(c->ctx, &c->health, NULL);
	fd_close(&c->answer);
	arena_done(&c->arena);
	free(c);
}

void checkup_finish(struct checkup *c)
{
	struct core_workspace *w = c->w;
	struct health *health = &c->health;
	for (size_t i = 0; i < c->found.count; i++)
		vec_push(&c->arena, &health->issues, c->found.items[i].text);
	health->is_healthy = !c->found.count;
	/* No command begins on layers that are damaged: the next start repairs them, or is refused,
	 * and where something runs nothing begins beside it. */
	bool is_damaged = c->is_deep && (findings_have(&c->found, FINDING_ENVIRONMENT) ||
						findings_have(&c->found, FINDING_LAYER));
	if (is_damaged && w->sandbox.state == SANDBOX_UP)
		w->sandbox.is_damaged = true;
	/* Suspended as it was found; refused when somebody uses it by now. */
	if ((is_damaged || health->state == WORKSPACE_SUSPENDED) &&
		w->model.state == WORKSPACE_READY)
		core_suspend(&request_system, w, false, tell, c);
	else
		core_later(w->core, tell, c, w, NULL);
	core_release(w);
}

/* ---- inside, by the file server ---- */

static void ask(struct checkup *c, enum file_verb verb, const char *path, file_answer_fn *done)
{
	const struct file_ask ask = { .verb = verb, .path = path, .fd = -1 };
	file_ask(c->w, &ask, done, c);
}

/* false: the sandbox can't be looked into, and the check has ended. */
static bool is_answer(struct checkup *c, const struct error *err)
{
	if (!err || err->code == ERR_NOT_FOUND || err->code == ERR_INVALID ||
		err->code == ERR_DENIED)
		return true;
	checkup_find(c, FINDING_OTHER, NULL, "the sandbox can't be used: %s", err->text);
	checkup_finish(c);
	return false;
}

static void check_node_package(struct checkup *c);

static void on_node_package(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct checkup *c = ctx;
	const char *name = c->node_packages.items[c->node_at];
	if (!is_answer(c, err))
		return;
	if (err)
		checkup_find(c, FINDING_NODE, name, "Node package '%s' is not installed", name);
	c->health.node_deps_installed &= !err;
	c->node_at++;
	check_node_package(c);
}

static void check_node_package(struct checkup *c)
{
	if (!c->health.node_modules || c->node_at == c->node_packages.count) {
		checkup_import(c);
		return;
	}
	ask(c, FILE_STAT,
		arena_printf(&c->arena, NODE_MODULES "/%s/package.json",
			c->node_packages.items[c->node_at]),
		on_node_package);
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
	const struct env_meta *meta = pin_meta(c->w->pins[1]);
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

static void on_pyproject(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct checkup *c = ctx;
	if (!is_answer(c, err))
		return;
	if (!err) {
		auto_close int fd = answer->fd;
	}
	find_unreadable(c, PYPROJECT, err);
	c->health.node_deps_installed = c->health.node_modules;
	check_node_package(c);
}

static void on_package_json(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct checkup *c = ctx;
	if (!is_answer(c, err))
		return;
	find_unreadable(c, PACKAGE_JSON, err);
	if (!err) {
		auto_close int fd = answer->fd;
		read_package_json(c, fd);
	} else if (err->code == ERR_NOT_FOUND) {
		add_node_packages(c);
	}
	ask(c, FILE_OPEN, PYPROJECT, on_pyproject);
}

static void on_node_modules(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct checkup *c = ctx;
	if (!is_answer(c, err))
		return;
	c->health.node_modules = !err;
	ask(c, FILE_OPEN, PACKAGE_JSON, on_package_json);
}

static void on_venv_programs(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct checkup *c = ctx;
	if (!is_answer(c, err))
		return;
	c->health.python_venv = !err;
	if (err && c->w->model.environment)
		checkup_find(c, FINDING_VENV, NULL,
			"Python venv missing: '" VENV "' does not lead to an environment");
	ask(c, FILE_STAT, NODE_MODULES, on_node_modules);
}

static void on_venv(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct checkup *c = ctx;
	if (!is_answer(c, err))
		return;
	if (!err) { /* a link that dangles is there, too, and so is a directory of any kind */
		ask(c, FILE_STAT, VENV "/bin", on_venv_programs);
		return;
	}
	c->health.python_venv = false;
	if (c->w->model.environment)
		checkup_find(
			c, FINDING_VENV, NULL, "Python venv missing: '" VENV "' does not exist");
	ask(c, FILE_STAT, NODE_MODULES, on_node_modules);
}

static void on_mark(void *ctx, const struct file_answer *answer, const struct error *err)
{
	struct checkup *c = ctx;
	if (!is_answer(c, err))
		return;
	c->health.configured = !err;
	if (err)
		checkup_find(c, FINDING_MARK, NULL,
			"Workspace not configured: '" MARK "' does not exist");
	ask(c, FILE_STAT, VENV, on_venv);
}

/* ---- outside ---- */

bool findings_have(const findings *found, enum finding_kind kind)
{
	for (size_t i = 0; i < found->count; i++)
		if (found->items[i].kind == kind)
			return true;
	return false;
}

/* What is damaged may not be run, and starting a sandbox would build a missing environment again.
 */
void checkup_look_inside(struct checkup *c)
{
	if (findings_have(&c->found, FINDING_TREE) ||
		findings_have(&c->found, FINDING_ENVIRONMENT) ||
		findings_have(&c->found, FINDING_LAYER) || c->w->model.state == WORKSPACE_FAILED)
		checkup_finish(c);
	else
		ask(c, FILE_STAT, MARK, on_mark);
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

static void on_measured(void *ctx, struct core_workspace *w, const struct error *unused)
{
	struct checkup *c = ctx;
	c->health.disk_usage = w->model.disk_usage_bytes;
	if (w->model.state == WORKSPACE_FAILED)
		checkup_find(c, FINDING_OTHER, NULL, "the workspace has failed: %s",
			w->model.error ? w->model.error : "its files are missing");
	checkup_look_outside(c);
	check_disk(c);
	if (c->is_deep)
		checkup_verify_layers(c);
	else
		checkup_look_inside(c);
}

struct checkup *checkup_begin(
	struct core_workspace *w, bool is_deep, core_health_fn *done, void *ctx)
{
	struct checkup *c = xzalloc(sizeof *c);
	struct workspace_now now = core_now(w);
	*c = (struct checkup){ .w = w, .is_deep = is_deep, .done = done, .ctx = ctx, .answer = -1 };
	arena_init(&c->arena);
	c->health = (struct health){ .workspace = arena_text(&c->arena, w->model.id),
		.name = arena_text(&c->arena, w->model.name),
		.state = now.state,
		.disk_limit = w->model.limits.disk_bytes,
		.disk_mechanism = arena_text(&c->arena, w->model.disk_mechanism),
		.environment = arena_text(&c->arena, w->model.environment),
		.node_environment = arena_text(&c->arena, w->model.node_environment) };
	workspace_list_active(&now, &c->arena, &c->health.layers_active);
	core_hold(w);
	core_measure(&request_system, w, on_measured, c);
	return c;
}

int core_health(const struct request *request, struct core_workspace *w, bool is_deep,
	core_health_fn *done, void *ctx, struct error *err)
{
	if (access_check(w->core, request, VERB_WORKSPACE_HEALTH, w, err))
		return -1;
	checkup_begin(w, is_deep, done, ctx);
	return 0;
}
