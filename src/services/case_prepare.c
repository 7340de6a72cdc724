/* case_prepare.c -- a case becomes ready: its packages, the editable install, setup, the variables,
 * the snapshot. */
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "core/packages/packages.h"
#include "format/packages/pep508.h"
#include "format/packages/requirements.h"
#include "format/text/json_read.h"
#include "format/text/toml_lite.h"
#include "services/cases_internal.h"

#define EDITABLE_TIMEOUT_MS 600000
#define EDITABLE_FAILED "case '%s': the editable install has failed"
#define DEFAULT_REQUIRES "setuptools>=64"
#define DEFAULT_BACKEND "setuptools.build_meta"

struct prepare {
	struct case_entry *c;
	struct fiber *fiber;
	struct arena arena;
	struct desk desk;
	struct step step;
	struct buf steps;
	size_t share;	   /* of output, of each step */
	uint64_t began_ms; /* of an install */
	bool is_canceled;
	const char *reason;  /* of a failure of the present step */
	const char *backend; /* of an editable install; and where it is found in the source */
	text_list backend_paths;
	text_list build;	/* what the backend needs, */
	text_list needed;	/* what it asks for itself, */
	text_list dependencies; /* and what the project needs */
};

/* Before each step; reason: of its failure. -1: the case is removed. */
static int begin(struct prepare *p, const char *reason, struct error *err)
{
	p->reason = reason;
	return p->is_canceled || p->c->cases->is_stopping
		       ? fail(err, ERR_CANCELED, "the case was removed")
		       : 0;
}

/* ---- packages ---- */

static void on_packages(void *ctx, const struct packages_result *result, const struct error *err)
{
	struct prepare *p = ctx;
	auto_buf struct buf output = buf_empty(BUF_MAX_DEFAULT);
	for (size_t i = 0; !err && i < result->installed.count; i++)
		buf_printf(&output, "+ %s %s\n", result->installed.items[i].key,
			result->installed.items[i].value);
	for (size_t i = 0; !err && i < result->removed.count; i++)
		buf_printf(&output, "- %s %s\n", result->removed.items[i].key,
			result->removed.items[i].value);
	if (err)
		buf_printf(&output, "%s\n%s", err->text, err->hint);
	struct case_step shown = p->step.shown;
	shown.passed = !err;
	shown.exit_code = err ? error_exit_code(err->code) : 0;
	shown.reason = err ? "error" : reason_names[REASON_EXITED];
	shown.duration_ms = clock_monotonic_ms() - p->began_ms;
	shown.output = output.len ? output.data : "";
	steps_add(&p->steps, &shown);
	fiber_continue(p->fiber, err);
}

static int change_packages(
	struct prepare *p, const text_list *packages, bool is_removal, struct error *err)
{
	struct packages_wanted wanted = { .packages = *packages,
		.is_removal = is_removal,
		.kind = &env_kind_rows[ENV_KIND_PYTHON] };
	auto_buf struct buf words = buf_empty(BUF_MAX_DEFAULT);
	struct core_workspace *w;
	if (!packages->count)
		return 0;
	for (size_t i = 0; i < packages->count; i++)
		buf_printf(&words, " %s", packages->items[i]);
	const char *verb = is_removal ? "uninstall" : "install";
	p->step.shown = (struct case_step){ .type = "install",
		.name = verb,
		.command = arena_printf(&p->arena, "%s%.*s", verb, (int)words.len, words.data) };
	p->began_ms = clock_monotonic_ms();
	if (begin(p, "install", err) ||
		core_find(p->desk.request, p->desk.core, p->desk.id, &w, err))
		return -1;
	packages_change(p->desk.request, w, &wanted, on_packages, p);
	return fiber_wait(p->fiber, err);
}

static int install(struct prepare *p, struct error *err)
{
	text_list all = { 0 };
	const text_list *parts[] = { &p->c->spec.environment.requirements, &p->build };
	for (size_t part = 0; part < 2; part++)
		for (size_t i = 0; i < parts[part]->count; i++)
			vec_push(&p->arena, &all, parts[part]->items[i]);
	return change_packages(p, &all, false, err);
}

/* ---- commands ---- */

static int run(struct prepare *p, const char *name, const char *command, struct error *err)
{
	const struct step_wanted wanted = { .type = "setup",
		.name = name,
		.command = command,
		.timeout_ms = p->c->spec.setup.timeout_ms,
		.output_max = p->share };
	if (begin(p, "setup", err))
		return -1;
	return step_run(&p->step, p->fiber, &p->desk, &wanted, err);
}

static int run_shown(struct prepare *p, const char *name, const char *command, struct error *err)
{
	if (run(p, name, command, err))
		return -1;
	steps_add(&p->steps, &p->step.shown);
	return p->step.shown.passed ? 0
				    : fail(err, ERR_FAILED, "%.100s: exit code %d, reason %s", name,
					      p->step.shown.exit_code, p->step.shown.reason);
}

/* The archive of a release has one directory, in which the project is: that becomes the source. */
static int flatten_source(struct prepare *p, struct error *err)
{
	static const char command[] =
		"set -- $(ls -A -I .venv -I .workspace_configured | wc -l) *\n"
		"test \"$1\" = 1 && test -d \"$2\" && test ! -L \"$2\" || exit 0\n"
		"mv -- \"$2\" .carrel-source && cd .carrel-source &&\n"
		"find . -mindepth 1 -maxdepth 1 -exec mv -t .. -- {} + && cd .. && rmdir "
		".carrel-source\n";
	return case_source_is_archive(&p->c->spec) ? run_shown(p, "source", command, err) : 0;
}

/* As `python3 -m venv --system-site-packages` has it. */
static int show_site(struct prepare *p, struct error *err)
{
	static const char command[] =
		"test ! -e /env/pyvenv.cfg || sed -i "
		"'s/^include-system-site-packages = .*/include-system-site-packages = true/' "
		"/env/pyvenv.cfg";
	return p->c->spec.environment.system_site_packages
		       ? run_shown(p, "system_site_packages", command, err)
		       : 0;
}

static int set_up(struct prepare *p, struct error *err)
{
	const text_list *commands = &p->c->spec.setup.run;
	for (size_t i = 0; i < commands->count; i++)
		if (run_shown(p, arena_printf(&p->arena, "setup %zu", i + 1), commands->items[i],
			    err))
			return -1;
	return 0;
}

/* ---- the editable install ---- */

static int read_project(struct prepare *p, struct str text, struct error *err)
{
	toml_list entries = { 0 };
	if (toml_parse(text, &p->arena, &entries, err))
		return error_context(err, "pyproject.toml");
	for (size_t i = 0; i < entries.count; i++) {
		const struct toml_entry *entry = &entries.items[i];
		if (strcmp(entry->table, "build-system") != 0 || !entry->is_string)
			continue;
		if (!strcmp(entry->key, "requires"))
			vec_push(&p->arena, &p->build, entry->text);
		else if (!strcmp(entry->key, "build-backend"))
			p->backend = entry->text;
		else if (!strcmp(entry->key, "backend-path"))
			vec_push(&p->arena, &p->backend_paths, entry->text);
	}
	return 0;
}

static int read_toml(struct prepare *p, struct error *err)
{
	auto_close int fd = -1;
	if (desk_open(p->fiber, &p->desk, "pyproject.toml", &fd, err))
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	char *text = arena_alloc(&p->arena, TOML_MAX);
	ssize_t got = fd_read_full(fd, text, TOML_MAX);
	return got < 0 ? fail_errno(err, "read pyproject.toml")
		       : read_project(p, (struct str){ text, (size_t)got }, err);
}

static int find_backend(struct prepare *p, struct error *err)
{
	if (begin(p, "editable", err))
		return -1;
	p->backend = DEFAULT_BACKEND;
	if (read_toml(p, err))
		return error_context(err, EDITABLE_FAILED, p->c->model.name);
	if (!p->build.count) /* as PEP 518 has it */
		vec_push(&p->arena, &p->build, DEFAULT_REQUIRES);
	return 0;
}

/* Builds the editable wheel (PEP 660) and unpacks it into the environment; its last line says what
 * the project needs, or, of a first try, what the backend needs besides. */
static const char editable_script[] = {
#include "services/script_editable.inc"
	0
};

static void take_texts(struct prepare *p, const struct json_value *list, text_list *out)
{
	for (const struct json_value *item = list ? list->first : NULL; item; item = item->next)
		if (item->kind == JSON_STRING)
			vec_push(&p->arena, out, arena_text(&p->arena, item->string.data));
}

/* The last line of what the script printed. */
static const struct json_value *read_answer(struct prepare *p)
{
	struct str last = str_last_line((struct str){ p->step.out.data, p->step.out.len });
	struct json_value *value;
	struct error ignored;
	return p->step.shown.passed && last.len && !json_read(last, &p->arena, &value, &ignored)
		       ? value
		       : NULL;
}

static int build_editable(struct prepare *p, struct error *err)
{
	text_list argv = { 0 };
	const char *const words[] = { "python3", "-c", editable_script,
		p->needed.count ? "again" : "first", p->backend };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		vec_push(&p->arena, &argv, words[i]);
	for (size_t i = 0; i < p->backend_paths.count; i++)
		vec_push(&p->arena, &argv, p->backend_paths.items[i]);
	vec_push(&p->arena, &argv, NULL);
	argv.count--;
	const struct step_wanted wanted = { .type = "editable",
		.name = p->backend,
		.command = "build_editable",
		.argv = argv,
		.timeout_ms = EDITABLE_TIMEOUT_MS,
		.output_max = p->share };
	if (begin(p, "editable", err) || step_run(&p->step, p->fiber, &p->desk, &wanted, err))
		return -1;
	const struct json_value *answer = read_answer(p);
	p->step.shown.passed = answer;
	steps_add(&p->steps, &p->step.shown);
	if (!answer) {
		struct str why = str_last_line(str_from(p->step.shown.output));
		fail(err, ERR_FAILED, "%s: %.*s", p->backend, (int)(why.len < 300 ? why.len : 300),
			why.len ? why.data : "");
		return error_context(err, EDITABLE_FAILED, p->c->model.name);
	}
	take_texts(p, json_member(answer, "needed"), &p->needed);
	take_texts(p, json_member(answer, "requires"), &p->dependencies);
	return 0;
}

/* A backend may ask for more: then it is tried again with that. */
static int install_editable(struct prepare *p, struct error *err)
{
	if (build_editable(p, err))
		return -1;
	if (!p->needed.count)
		return 0;
	for (size_t i = 0; i < p->needed.count; i++)
		vec_push(&p->arena, &p->build, p->needed.items[i]);
	return change_packages(p, &p->needed, false, err) || build_editable(p, err) ? -1 : 0;
}

/* Normalised; NULL: a path or a URL. */
static const char *name_of(struct prepare *p, const char *requirement)
{
	struct pep508 parsed;
	const char *reason;
	return pep508_parse(str_from(requirement), &parsed, &reason)
		       ? requirement_normalize_name(&p->arena, parsed.name)
		       : NULL;
}

static bool names(struct prepare *p, const text_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *other = name_of(p, list->items[i]);
		if (other && !strcmp(other, name))
			return true;
	}
	return false;
}

/* What only the backend needed. */
static int uninstall(struct prepare *p, struct error *err)
{
	text_list unwanted = { 0 };
	for (size_t i = 0; i < p->build.count; i++) {
		const char *name = name_of(p, p->build.items[i]);
		if (name && !names(p, &p->c->spec.environment.requirements, name) &&
			!names(p, &p->dependencies, name) && !names(p, &unwanted, name))
			vec_push(&p->arena, &unwanted, name);
	}
	return change_packages(p, &unwanted, true, err);
}

/* ---- the variables, and the snapshot ---- */

static bool is_of_the_shell(struct str name)
{
	return str_is(name, "PWD") || str_is(name, "OLDPWD") || str_is(name, "SHLVL") ||
	       str_is(name, "_");
}

static int read_variables(struct prepare *p, struct error *err)
{
	struct arena *arena = &p->c->arena;
	pair_list *variables = &p->c->model.variables;
	struct str one, name, value;
	if (run(p, "variables", "env -0", err))
		return -1;
	if (!p->step.shown.passed) {
		steps_add(&p->steps, &p->step.shown);
		return fail(err, ERR_FAILED, "the variables of commands can't be read");
	}
	struct str rest = { p->step.out.data, p->step.out.len };
	*variables = (pair_list){ 0 };
	while (str_next(&rest, '\0', &one))
		if (str_cut(one, '=', &name, &value) && name.len && !is_of_the_shell(name))
			vec_push(arena, variables,
				(struct text_pair){ arena_bytes(arena, name.data, name.len),
					arena_bytes(arena, value.data, value.len) });
	return 0;
}

static int freeze(struct prepare *p, struct error *err)
{
	const struct snapshot_wanted wanted = { .note = "a prepared case",
		.when_busy = WHEN_BUSY_PAUSE };
	char id[ID_LEN + 1];
	if (begin(p, "snapshot", err) || desk_freeze(p->fiber, &p->desk, &wanted, id, err))
		return -1;
	p->c->model.snapshot = arena_text(&p->c->arena, id);
	return 0;
}

/* ---- in order ---- */

static int prepare(struct prepare *p, struct error *err)
{
	bool is_editable = p->c->spec.environment.install;
	if (flatten_source(p, err) || (is_editable && find_backend(p, err)) || install(p, err))
		return -1;
	if (is_editable &&
		(install_editable(p, err) || change_packages(p, &p->dependencies, false, err) ||
			uninstall(p, err)))
		return -1;
	return show_site(p, err) || set_up(p, err) || read_variables(p, err) || freeze(p, err);
}

static void tell(struct prepare *p, const struct error *err)
{
	struct case_entry *c = p->c;
	c->model.steps = steps_text(&p->steps, &c->arena);
	if (!err)
		case_set_state(c, CASE_READY, NULL, NULL);
	else if (c->cases->is_stopping)
		case_set_state(c, CASE_FAILED, CASE_REASON_RESTARTED, "the daemon was restarted");
	else if (p->is_canceled)
		case_set_state(c, CASE_FAILED, "removed", "the case was removed");
	else
		case_set_state(c, CASE_FAILED, p->reason, err->text);
	fault_point("case_prepared");
}

static void run_prepare(struct fiber *fiber, void *ctx)
{
	struct prepare *p = ctx;
	struct case_entry *c = p->c;
	struct cell_entry *next;
	struct error err;
	p->fiber = fiber;
	int failed = prepare(p, &err);
	c->prepare = NULL;
	tell(p, failed ? &err : NULL);
	step_free(&p->step);
	buf_done(&p->steps);
	desk_done(&p->desk);
	arena_done(&p->arena);
	free(p);
	for (struct cell_entry *cell = c->cells; cell && !c->is_removed; cell = next) {
		next = cell->next;
		if (cell->model.state == CELL_WAITING && cell->is_stored && !cell->job)
			cell_go_on(cell);
	}
	case_unhold(c);
}

void case_prepare(struct case_entry *c, const struct request *request)
{
	struct prepare *p = xzalloc(sizeof *p);
	p->c = c;
	arena_init(&p->arena);
	desk_init(&p->desk, c->cases->base.core, access_keep(request, &p->arena));
	str_copy(p->desk.id, sizeof p->desk.id, c->model.workspace);
	buf_init(&p->steps, BUF_MAX_DEFAULT);
	p->share = steps_share(c->spec.setup.run.count + 4);
	c->prepare = p;
	c->jobs++;
	case_set_state(c, CASE_PREPARING, NULL, NULL);
	fiber_start(run_prepare, p);
}

void case_prepare_cancel(struct case_entry *c)
{
	if (!c->prepare)
		return;
	c->prepare->is_canceled = true;
	fiber_cancel(c->prepare->fiber);
}
