/* case_prepare.c -- a case becomes ready: its packages, the editable install, setup, the variables,
 * the snapshot. Each is a step of a table; a step that has nothing to do is passed over. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "core/files/files.h"
#include "core/packages/packages.h"
#include "core/state/snapshots.h"
#include "format/packages/pep508.h"
#include "format/packages/requirements.h"
#include "format/text/json_read.h"
#include "format/text/toml_lite.h"
#include "services/cases_internal.h"

#define EDITABLE_TIMEOUT_MS 600000
#define DEFAULT_REQUIRES "setuptools>=64"
#define DEFAULT_BACKEND "setuptools.build_meta"

struct prepare {
	struct case_entry *c;
	struct arena arena;
	const struct request *request;
	unsigned at; /* index into `begins` */
	size_t setup;
	bool is_canceled;
	struct step step;
	struct buf steps;
	size_t share;	     /* of output, of each step */
	uint64_t began_ms;   /* of an install */
	const char *backend; /* of an editable install; and where it is found in the source */
	text_list backend_paths;
	text_list build;	/* what the backend needs, */
	text_list needed;	/* what it asks for itself, */
	text_list dependencies; /* and what the project needs */
};
typedef bool begin_fn(struct prepare *p); /* false: nothing to do */
static void go_on(struct prepare *p);

static void finish(struct prepare *p, enum case_state state, const char *reason, const char *error)
{
	struct case_entry *c = p->c;
	struct cell_entry *next;
	bool is_stopping = c->cases->is_stopping;
	c->prepare = NULL;
	c->model.steps = steps_text(&p->steps, &c->arena);
	if (is_stopping && state == CASE_FAILED)
		case_set_state(c, state, CASE_REASON_RESTARTED, "the daemon was restarted");
	else
		case_set_state(c, state, reason, error);
	fault_point("case_prepared");
	step_free(&p->step);
	buf_done(&p->steps);
	arena_done(&p->arena);
	free(p);
	for (struct cell_entry *cell = c->cells; cell && !c->is_removed; cell = next) {
		next = cell->next;
		if (cell->model.state == CELL_WAITING && !cell->job)
			cell_go_on(cell);
	}
	case_unhold(c);
}

static void fail_with(struct prepare *p, const char *reason, const char *error)
{
	finish(p, CASE_FAILED, reason, error);
}

static int find(struct prepare *p, struct core_workspace **w, struct error *err)
{
	return core_find(p->request, p->c->cases->base.core, p->c->model.workspace, w, err);
}

static void next(struct prepare *p)
{
	p->at++;
	go_on(p);
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
	if (err)
		fail_with(p, "install", err->text);
	else
		next(p);
}

static bool change_packages(struct prepare *p, const text_list *packages, bool is_removal)
{
	struct packages_wanted wanted = { .packages = *packages,
		.is_removal = is_removal,
		.kind = &env_kind_rows[ENV_KIND_PYTHON] };
	auto_buf struct buf words = buf_empty(BUF_MAX_DEFAULT);
	struct core_workspace *w;
	struct error err;
	if (!packages->count)
		return false;
	for (size_t i = 0; i < packages->count; i++)
		buf_printf(&words, " %s", packages->items[i]);
	const char *verb = is_removal ? "uninstall" : "install";
	p->step.shown = (struct case_step){ .type = "install",
		.name = verb,
		.command = arena_printf(&p->arena, "%s%.*s", verb, (int)words.len, words.data) };
	p->began_ms = clock_monotonic_ms();
	if (find(p, &w, &err))
		fail_with(p, "install", err.text);
	else
		packages_change(p->request, w, &wanted, on_packages, p);
	return true;
}

static bool begin_install(struct prepare *p)
{
	text_list all = { 0 };
	const text_list *parts[] = { &p->c->spec.environment.requirements, &p->build };
	for (size_t part = 0; part < 2; part++)
		for (size_t i = 0; i < parts[part]->count; i++)
			vec_push(&p->arena, &all, parts[part]->items[i]);
	return change_packages(p, &all, false);
}

/* ---- the editable install ---- */

static void fail_editable(struct prepare *p, const char *why)
{
	fail_with(p, "editable",
		arena_printf(&p->c->arena, "case '%s': the editable install has failed: %s",
			p->c->model.name, why));
}

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

static void on_project(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct prepare *p = ctx;
	auto_close int fd = err ? -1 : answer->fd;
	struct error why;
	int failed = 0;
	if (!err) {
		char *text = arena_alloc(&p->arena, TOML_MAX);
		ssize_t got = fd_read_full(fd, text, TOML_MAX);
		failed = got < 0 ? fail_errno(&why, "read pyproject.toml")
				 : read_project(p, (struct str){ text, (size_t)got }, &why);
	} else if (err->code != ERR_NOT_FOUND) {
		why = *err;
		failed = -1;
	}
	if (failed) {
		fail_editable(p, why.text);
		return;
	}
	if (!p->build.count) /* as PEP 518 has it */
		vec_push(&p->arena, &p->build, DEFAULT_REQUIRES);
	next(p);
}

static bool begin_read(struct prepare *p)
{
	struct files_request wanted = { .verb = FILES_OPEN, .path = "pyproject.toml" };
	struct core_workspace *w;
	struct error err;
	if (!p->c->spec.environment.install)
		return false;
	p->backend = DEFAULT_BACKEND;
	if (find(p, &w, &err))
		fail_editable(p, err.text);
	else
		files_do(p->request, w, &wanted, on_project, p);
	return true;
}

/* Builds the editable wheel (PEP 660) and unpacks it into the environment; its last line says what
 * the project needs, or, of a first try, what the backend needs besides. */
static const char editable_script[] =
	"import importlib, importlib.metadata as metadata, json, os, pathlib, re, stat, sys\n"
	"import sysconfig, tempfile, zipfile\n"
	"is_first, backend, paths = sys.argv[1] == 'first', sys.argv[2], sys.argv[3:]\n"
	"if not os.path.exists('pyproject.toml') and not os.path.exists('setup.py'):\n"
	"    sys.exit('the source has neither pyproject.toml nor setup.py')\n"
	"sys.path[:0] = [os.path.abspath(path) for path in paths]\n"
	"module, _, attributes = backend.partition(':')\n"
	"hooks = importlib.import_module(module)\n"
	"for attribute in filter(None, attributes.split('.')):\n"
	"    hooks = getattr(hooks, attribute)\n"
	"if not hasattr(hooks, 'build_editable'):\n"
	"    sys.exit(f'{backend} can make no editable install (PEP 660)')\n"
	"def is_there(requirement):\n"
	"    try:\n"
	"        return metadata.distribution(re.match(r'[\\w.-]+', requirement)[0])\n"
	"    except metadata.PackageNotFoundError:\n"
	"        return None\n"
	"def is_of_extra(requirement):\n"
	"    return re.search(r'\\bextra\\s*==|==\\s*extra\\b', requirement.partition(';')[2])\n"
	"needed = getattr(hooks, 'get_requires_for_build_editable', list)()\n"
	"needed = [one for one in needed if not is_of_extra(one) and not is_there(one)]\n"
	"if needed and is_first:\n"
	"    print(json.dumps({'needed': needed}))\n"
	"    sys.exit()\n"
	"site = pathlib.Path(sysconfig.get_path('purelib'))\n"
	"with tempfile.TemporaryDirectory() as directory:\n"
	"    wheel = hooks.build_editable(directory)\n"
	"    with zipfile.ZipFile(os.path.join(directory, wheel)) as archive:\n"
	"        info = next(name.split('/')[0] for name in archive.namelist()\n"
	"                    if name.split('/')[0].endswith('.dist-info'))\n"
	"        archive.extractall(site)\n"
	"(site / info / 'direct_url.json').write_text(json.dumps(\n"
	"    {'url': pathlib.Path.cwd().as_uri(), 'dir_info': {'editable': True}}))\n"
	"(site / info / 'INSTALLER').write_text('carrel\\n')\n"
	"project = metadata.PathDistribution(site / info)\n"
	"for entry in project.entry_points:\n"
	"    if entry.group == 'console_scripts':\n"
	"        module, _, attribute = entry.value.split('[')[0].strip().partition(':')\n"
	"        script = pathlib.Path(sys.prefix, 'bin', entry.name)\n"
	"        script.write_text(f'#!{sys.prefix}/bin/python3\\nimport sys\\nimport "
	"{module}\\n'\n"
	"                          f'sys.exit({module}.{attribute}())\\n')\n"
	"        script.chmod(0o755)\n"
	"requires = [one for one in project.requires or [] if not is_of_extra(one)]\n"
	"print(json.dumps({'requires': requires}))\n";

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
	return last.len && !json_read(last, &p->arena, &value, &ignored) ? value : NULL;
}

static void on_editable(void *ctx, struct step *step)
{
	struct prepare *p = ctx;
	const struct json_value *answer = step->shown.passed ? read_answer(p) : NULL;
	if (!answer) {
		step->shown.passed = false;
		steps_add(&p->steps, &step->shown);
		struct str why = str_last_line(str_from(step->shown.output));
		fail_editable(
			p, arena_printf(&p->arena, "%s: %.*s", p->backend,
				   (int)(why.len < 300 ? why.len : 300), why.len ? why.data : ""));
		return;
	}
	steps_add(&p->steps, &step->shown);
	take_texts(p, json_member(answer, "needed"), &p->needed);
	take_texts(p, json_member(answer, "requires"), &p->dependencies);
	next(p);
}

static bool begin_editable(struct prepare *p)
{
	text_list argv = { 0 };
	if (!p->backend)
		return false;
	const char *const words[] = { "python3", "-c", editable_script,
		p->needed.count ? "again" : "first", p->backend };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		vec_push(&p->arena, &argv, words[i]);
	for (size_t i = 0; i < p->backend_paths.count; i++)
		vec_push(&p->arena, &argv, p->backend_paths.items[i]);
	vec_push(&p->arena, &argv, NULL);
	argv.count--;
	struct step_wanted wanted = { .type = "editable",
		.name = p->backend,
		.command = "build_editable",
		.argv = argv,
		.timeout_ms = EDITABLE_TIMEOUT_MS,
		.output_max = p->share };
	step_run(&p->step, p->c->cases, p->request, p->c->model.workspace, &wanted, on_editable, p);
	return true;
}

static bool begin_needed(struct prepare *p)
{
	for (size_t i = 0; i < p->needed.count; i++)
		vec_push(&p->arena, &p->build, p->needed.items[i]);
	return change_packages(p, &p->needed, false);
}

static bool begin_again(struct prepare *p)
{
	return p->needed.count && begin_editable(p);
}

static bool begin_dependencies(struct prepare *p)
{
	return change_packages(p, &p->dependencies, false);
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
static bool begin_uninstall(struct prepare *p)
{
	text_list unwanted = { 0 };
	for (size_t i = 0; i < p->build.count; i++) {
		const char *name = name_of(p, p->build.items[i]);
		if (name && !names(p, &p->c->spec.environment.requirements, name) &&
			!names(p, &p->dependencies, name) && !names(p, &unwanted, name))
			vec_push(&p->arena, &unwanted, name);
	}
	return change_packages(p, &unwanted, true);
}

/* ---- commands ---- */

static bool has_passed(struct prepare *p, const struct step *step)
{
	char text[128];
	steps_add(&p->steps, &step->shown);
	if (step->shown.passed)
		return true;
	str_format(text, sizeof text, "%s: exit code %d, reason %s", step->shown.name,
		step->shown.exit_code, step->shown.reason);
	fail_with(p, "setup", text);
	return false;
}

static void on_command(void *ctx, struct step *step)
{
	if (has_passed(ctx, step))
		next(ctx);
}

static void on_setup(void *ctx, struct step *step)
{
	struct prepare *p = ctx;
	if (!has_passed(p, step))
		return;
	p->setup++; /* the same step has the next command */
	go_on(p);
}

static void run(struct prepare *p, const char *type, const char *name, const char *command,
	void (*done)(void *ctx, struct step *step))
{
	struct step_wanted wanted = { .type = type,
		.name = name,
		.command = command,
		.timeout_ms = p->c->spec.setup.timeout_ms,
		.output_max = p->share };
	step_run(&p->step, p->c->cases, p->request, p->c->model.workspace, &wanted, done, p);
}

/* As `python3 -m venv --system-site-packages` has it. */
static bool begin_site(struct prepare *p)
{
	if (!p->c->spec.environment.system_site_packages)
		return false;
	run(p, "setup", "system_site_packages",
		"test ! -e /env/pyvenv.cfg || sed -i "
		"'s/^include-system-site-packages = .*/include-system-site-packages = true/' "
		"/env/pyvenv.cfg",
		on_command);
	return true;
}

static bool begin_setup(struct prepare *p)
{
	const text_list *commands = &p->c->spec.setup.run;
	if (p->setup >= commands->count)
		return false;
	run(p, "setup", arena_printf(&p->arena, "setup %zu", p->setup + 1),
		commands->items[p->setup], on_setup);
	return true;
}

/* The archive of a release has one directory, in which the project is: that becomes the source. */
static bool begin_source(struct prepare *p)
{
	static const char command[] =
		"set -- $(ls -A -I .venv -I .workspace_configured | wc -l) *\n"
		"test \"$1\" = 1 && test -d \"$2\" && test ! -L \"$2\" || exit 0\n"
		"mv -- \"$2\" .carrel-source && cd .carrel-source &&\n"
		"find . -mindepth 1 -maxdepth 1 -exec mv -t .. -- {} + && cd .. && rmdir "
		".carrel-source\n";
	if (!case_source_is_archive(&p->c->spec))
		return false;
	run(p, "setup", "source", command, on_command);
	return true;
}

/* ---- the variables, and the snapshot ---- */

static bool is_of_the_shell(struct str name)
{
	return str_is(name, "PWD") || str_is(name, "OLDPWD") || str_is(name, "SHLVL") ||
	       str_is(name, "_");
}

static void on_variables(void *ctx, struct step *step)
{
	struct prepare *p = ctx;
	struct eval_case *model = &p->c->model;
	struct str rest = { step->out.data, step->out.len }, one, name, value;
	if (!step->shown.passed) {
		steps_add(&p->steps, &step->shown);
		fail_with(p, "setup", "the variables of commands can't be read");
		return;
	}
	model->variables = (pair_list){ 0 };
	while (str_next(&rest, '\0', &one))
		if (str_cut(one, '=', &name, &value) && name.len && !is_of_the_shell(name))
			vec_push(&p->c->arena, &model->variables,
				(struct text_pair){ arena_bytes(&p->c->arena, name.data, name.len),
					arena_bytes(&p->c->arena, value.data, value.len) });
	next(p);
}

static bool begin_variables(struct prepare *p)
{
	run(p, "setup", "variables", "env -0", on_variables);
	return true;
}

static void on_snapshot(void *ctx, const struct snapshot *snapshot, const struct error *err)
{
	struct prepare *p = ctx;
	if (err) {
		fail_with(p, "snapshot", err->text);
		return;
	}
	p->c->model.snapshot = arena_text(&p->c->arena, snapshot->id);
	next(p);
}

static bool begin_snapshot(struct prepare *p)
{
	struct snapshot_wanted wanted = { .note = "a prepared case", .when_busy = WHEN_BUSY_PAUSE };
	struct core_workspace *w;
	struct error err;
	if (find(p, &w, &err))
		fail_with(p, "snapshot", err.text);
	else
		core_snapshot_create(p->request, w, &wanted, on_snapshot, p);
	return true;
}

/* ---- in order ---- */

static begin_fn *const begins[] = { begin_source, begin_read, begin_install, begin_editable,
	begin_needed, begin_again, begin_dependencies, begin_uninstall, begin_site, begin_setup,
	begin_variables, begin_snapshot };

static void go_on(struct prepare *p)
{
	if (p->is_canceled || p->c->cases->is_stopping) {
		fail_with(p, "removed", "the case was removed");
		return;
	}
	while (p->at < sizeof begins / sizeof *begins)
		if (begins[p->at](p))
			return;
		else
			p->at++;
	finish(p, CASE_READY, NULL, NULL);
}

void case_prepare(struct case_entry *c, const struct request *request)
{
	struct prepare *p = xzalloc(sizeof *p);
	p->c = c;
	arena_init(&p->arena);
	p->request = access_keep(request, &p->arena);
	buf_init(&p->steps, BUF_MAX_DEFAULT);
	p->share = steps_share(c->spec.setup.run.count + 4);
	c->prepare = p;
	c->jobs++;
	case_set_state(c, CASE_PREPARING, NULL, NULL);
	go_on(p);
}

void case_prepare_cancel(struct case_entry *c)
{
	struct prepare *p = c->prepare;
	if (!p)
		return;
	p->is_canceled = true;
	if (step_cancel(&p->step))
		fail_with(p, "removed", "the case was removed");
}
