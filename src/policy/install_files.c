/* The packages that files of a project name: requirements, manifests and locks. */
#include "base/path.h"
#include "policy/install_internal.h"

#define LEVELS_MAX 6 /* directories above a project that may be part of it */
#define NESTED_MAX 8 /* requirement files in requirement files */
#define VISITED_MAX 48

static const struct kind {
	const char *name;
	enum package_file kind;
} kinds[] = {
	{ "pyproject.toml", PACKAGE_FILE_PYPROJECT },
	{ "uv.lock", PACKAGE_FILE_PYTHON_LOCK },
	{ "poetry.lock", PACKAGE_FILE_PYTHON_LOCK },
	{ "pdm.lock", PACKAGE_FILE_PYTHON_LOCK },
	{ "pylock.toml", PACKAGE_FILE_PYTHON_LOCK },
	{ "Pipfile", PACKAGE_FILE_PIPFILE },
	{ "Pipfile.lock", PACKAGE_FILE_PIPFILE_LOCK },
	{ "package.json", PACKAGE_FILE_PACKAGE_JSON },
	{ "package-lock.json", PACKAGE_FILE_NPM_LOCK },
	{ "npm-shrinkwrap.json", PACKAGE_FILE_NPM_LOCK },
	{ "bun.lock", PACKAGE_FILE_BUN_LOCK },
	{ "yarn.lock", PACKAGE_FILE_YARN_LOCK },
	{ "pnpm-lock.yaml", PACKAGE_FILE_PNPM_LOCK },
	{ ".npmrc", PACKAGE_FILE_SETTINGS },
	{ ".yarnrc", PACKAGE_FILE_SETTINGS },
	{ ".yarnrc.yml", PACKAGE_FILE_SETTINGS },
	{ "bunfig.toml", PACKAGE_FILE_TOML },
	{ "uv.toml", PACKAGE_FILE_TOML },
	{ "pip.conf", PACKAGE_FILE_PIP_CONF },
};

/* The files of a project, by the program that installs it: the one that has to be there, and those
 * that may be. */
static const struct manifest {
	const char *programs, *needed, *others;
	const char *binary; /* a lock that can't be read: it must not be there */
} manifests[] = {
	{ "npm npx", "package.json", "package-lock.json npm-shrinkwrap.json .npmrc", NULL },
	{ "pnpm pnpx", "package.json", "pnpm-lock.yaml .npmrc", NULL },
	{ "yarn corepack", "package.json", "yarn.lock .yarnrc .yarnrc.yml .npmrc", NULL },
	{ "bun bunx", "package.json", "bun.lock bunfig.toml .npmrc", "bun.lockb" },
	{ "uv uvx", "pyproject.toml", "uv.lock uv.toml", NULL },
	{ "poetry", "pyproject.toml", "poetry.lock", NULL },
	{ "pipenv", "Pipfile", "Pipfile.lock", NULL },
};
/* The user's own settings, below the home directory and in the environment. */
static const struct {
	const char *programs, *path;
} settings[] = {
	{ "pip", "~/.config/pip/pip.conf" },
	{ "pip", "~/.pip/pip.conf" },
	{ "pip", "/env/pip.conf" },
	{ "uv uvx", "~/.config/uv/uv.toml" },
	{ "npm npx pnpm pnpx yarn corepack bun bunx", "~/.npmrc" },
	{ "bun bunx", "~/.bunfig.toml" },
	{ "yarn corepack", "~/.yarnrc" },
	{ "yarn corepack", "~/.yarnrc.yml" },
};

struct places places_of(const struct judge *j, const char *path)
{
	const char *cwd = j->request->cwd;
	if (path_is_absolute(path))
		return (struct places){ { path_normalize(j->arena, "/", path) }, 1 };
	if (j->is_moved || path[0] == '~')
		return (struct places){ .count = 0 };
	struct places places = { { path_normalize(j->arena, cwd, path) }, 1 };
	if (j->moved_to)
		places.dirs[places.count++] = path_normalize(j->arena, j->moved_to, path);
	return places;
}

struct policy_input *input_read(
	struct judge *j, const char *subject, const char *path, bool is_needed)
{
	struct policy_input *input =
		j->request->inputs ? policy_inputs_want(j->request->inputs, POLICY_INPUT_FILE, path)
				   : NULL;
	const char *unknown =
		arena_printf(j->arena, "sources: it isn't known what '%s' holds", path);
	if (!input) {
		judge_ask(j, subject, "%s", unknown);
		return NULL;
	}
	if (input->state == POLICY_INPUT_WANTED) {
		judge_wait(j, subject, unknown);
		return NULL;
	}
	if (input->state == POLICY_INPUT_READ)
		return input;
	if (input->state == POLICY_INPUT_UNREAD)
		sources_ask(j, subject, "'%s' can't be read, or is too large", path);
	else if (is_needed)
		sources_ask(j, subject, "'%s' is missing", path);
	return NULL;
}

struct reading {
	struct judge *j;
	const struct project *project;
	const char *visited[VISITED_MAX];
	size_t visited_count;
	bool is_denied;
};

static void refuse(struct reading *r, const char *path, struct error *err)
{
	error_context(err, "'%s'", path);
	sources_deny(r->j, r->project->subject, err);
	r->is_denied = true;
}

static void judge_list(struct reading *r, const char *path, bool is_needed, unsigned depth);

static void judge_names(
	struct reading *r, const char *path, const struct package_names *names, unsigned depth)
{
	const struct project *project = r->project;
	struct judge *j = r->j;
	struct error err;
	for (size_t i = 0; i < names->names.count && !r->is_denied; i++)
		if (judge_check_package(j, project->program, names->names.items[i], &err) < 0)
			refuse(r, path, &err);
	for (size_t i = 0; i < names->urls.count && !r->is_denied; i++)
		if (judge_check_registry(j, project->program, names->urls.items[i], &err) < 0)
			refuse(r, path, &err);
	for (size_t i = 0; i < names->remotes.count && !r->is_denied; i++)
		if (judge_check_remote(j, names->remotes.items[i], &err) < 0)
			refuse(r, path, &err);
	if (r->is_denied || j->is_spent)
		return;
	if (names->remotes.count)
		sources_ask(r->j, project->subject,
			"'%s': a package of a repository isn't known by its name", path);
	if (names->unknown)
		sources_ask(r->j, project->subject, "'%s': %s", path, names->unknown);
	for (size_t i = 0; i < names->files.count && !r->is_denied; i++) {
		const char *dir =
			path_normalize(r->j->arena, "/", arena_printf(r->j->arena, "%s/..", path));
		judge_list(r, path_normalize(r->j->arena, dir, names->files.items[i]), true,
			depth + 1);
	}
}

static enum package_file kind_of(const char *path, enum package_file otherwise)
{
	const char *name = path_basename(path);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(name, kinds[i].name) == 0)
			return kinds[i].kind;
	if (strncmp(name, "pylock.", 7) == 0 && strstr(name, ".toml"))
		return PACKAGE_FILE_PYTHON_LOCK;
	return strcmp(name, ".bunfig.toml") == 0 ? PACKAGE_FILE_TOML : otherwise;
}

/* true: it is there. */
static bool judge_file(
	struct reading *r, const char *path, enum package_file kind, bool is_needed, unsigned depth)
{
	struct judge *j = r->j;
	const char *subject = r->project->subject;
	struct policy_input *input = input_read(j, subject, path, is_needed);
	struct error err;
	if (!input)
		return false;
	if (j->others)
		sources_ask(j, subject, "a command beside it may change '%s'", path);
	if (!input->is_parsed) {
		/* It is parsed once for all rounds and policies. */
		if (!judge_spend(j, input->text.len / 2))
			return true;
		input->is_parsed = true;
		if (package_names_read(
			    kind, input->text, j->request->inputs->arena, &input->names, &err) < 0)
			input->problem = arena_text(j->request->inputs->arena, err.text);
	}
	if (input->problem)
		sources_ask(j, subject, "'%s' isn't understood: %s", path, input->problem);
	else
		judge_names(r, path, &input->names, depth);
	return true;
}

/* A requirements file, by option or by its name. */
static void judge_list(struct reading *r, const char *path, bool is_needed, unsigned depth)
{
	for (size_t i = 0; i < r->visited_count; i++)
		if (strcmp(r->visited[i], path) == 0)
			return;
	if (depth > NESTED_MAX || r->visited_count == VISITED_MAX) {
		sources_ask(r->j, r->project->subject, "requirements are nested too deep");
		return;
	}
	r->visited[r->visited_count++] = path;
	const char *name = path_basename(path);
	if (strcmp(name, "setup.py") == 0 || strcmp(name, "setup.cfg") == 0) {
		sources_ask(r->j, r->project->subject, "packages of '%s' aren't known", path);
		return;
	}
	judge_file(r, path, kind_of(path, PACKAGE_FILE_REQUIREMENTS), is_needed, depth);
}

/* Its places are those where the path may lead to. One of them has to be there. */
static bool is_missing(const struct judge *j, const char *path)
{
	const struct policy_inputs *inputs = j->request->inputs;
	for (size_t i = 0; inputs && i < inputs->count; i++)
		if (strcmp(inputs->items[i]->path, path) == 0)
			return inputs->items[i]->state == POLICY_INPUT_MISSING;
	return false;
}

static void judge_lists(struct reading *r, const text_list *lists)
{
	for (size_t i = 0; i < lists->count && !r->is_denied; i++) {
		struct places places = places_of(r->j, lists->items[i]);
		const char *path = places.count ? places.dirs[0] : "/proc";
		if (!places.count || strcmp(lists->items[i], "-") == 0 ||
			path_is_beneath(path, "/proc") || path_is_beneath(path, "/dev"))
			sources_ask(r->j, r->project->subject, "packages of '%s' aren't known",
				lists->items[i]);
		else
			for (size_t k = 0; k < places.count; k++)
				judge_list(r, places.dirs[k],
					places.count == 1 || is_missing(r->j, places.dirs[!k]), 0);
	}
}

static const struct manifest *find_manifest(const char *program)
{
	for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++)
		if (words_have(manifests[i].programs, program))
			return &manifests[i];
	return NULL;
}

static void judge_beside(struct reading *r, const struct manifest *manifest, const char *dir)
{
	struct str rest = str_from(manifest->others), name;
	struct judge *j = r->j;
	while (str_next(&rest, ' ', &name) && !r->is_denied) {
		const char *path =
			path_normalize(j->arena, dir, arena_bytes(j->arena, name.data, name.len));
		judge_file(r, path, kind_of(path, PACKAGE_FILE_REQUIREMENTS), false, 0);
	}
	if (!manifest->binary || r->is_denied)
		return;
	const char *path = path_normalize(j->arena, dir, manifest->binary);
	if (input_read(j, r->project->subject, path, false))
		sources_ask(j, r->project->subject, "'%s' is not a text", path);
}

/* A project is found in the directory or above it, and may be part of one above. */
static void judge_places(struct reading *r, const struct manifest *manifest)
{
	const struct project *project = r->project;
	struct judge *j = r->j;
	bool is_found = false;
	if (!project->places.count) {
		sources_ask(j, project->subject, "it isn't known which project that installs");
		return;
	}
	for (size_t i = 0; i < project->places.count; i++) {
		const char *dir = project->places.dirs[i];
		for (unsigned level = 0; level < LEVELS_MAX && !r->is_denied; level++) {
			const char *path = path_normalize(j->arena, dir, manifest->needed);
			if (judge_file(
				    r, path, kind_of(path, PACKAGE_FILE_REQUIREMENTS), false, 0)) {
				is_found = true;
				if (!r->is_denied)
					judge_beside(r, manifest, dir);
			}
			if (!dir[1] || (j->request->home && strcmp(dir, j->request->home) == 0))
				break;
			dir = path_normalize(j->arena, "/", arena_printf(j->arena, "%s/..", dir));
		}
	}
	if (!is_found && !project->is_named && !r->is_denied)
		sources_ask(j, project->subject, "there is no '%s' that could be judged",
			manifest->needed);
}

/* pip install DIRECTORY, -e DIRECTORY */
static void judge_trees(struct reading *r, const text_list *trees)
{
	struct judge *j = r->j;
	for (size_t i = 0; i < trees->count && !r->is_denied; i++) {
		/* ".[extra]" */
		const char *text = trees->items[i];
		struct places places =
			places_of(j, arena_bytes(j->arena, text, strcspn(text, "[")));
		if (!places.count)
			sources_ask(j, r->project->subject,
				"a package of a directory isn't known by its name");
		for (size_t k = 0; k < places.count && !r->is_denied; k++) {
			const char *path =
				path_normalize(j->arena, places.dirs[k], "pyproject.toml");
			judge_file(r, path, PACKAGE_FILE_PYPROJECT,
				places.count == 1 ||
					is_missing(j, path_normalize(j->arena, places.dirs[!k],
							      "pyproject.toml")),
				0);
		}
	}
}

/* Which registries are configured matters only where they are listed. */
static void judge_settings(struct reading *r)
{
	const struct judge *j = r->j;
	const struct sources_manager *manager =
		sources_find_manager(j->request->sources, r->project->program);
	const char *program = r->project->program;
	if (strncmp(program, "pip", 3) == 0 && !program[3 + strspn(program + 3, "0123456789.")])
		program = "pip";
	if (!manager || !manager->has_registries)
		return;
	for (size_t i = 0; i < sizeof settings / sizeof *settings && !r->is_denied; i++) {
		const char *path = settings[i].path;
		if (!words_have(settings[i].programs, program))
			continue;
		if (path[0] == '~' && !j->request->home)
			continue;
		if (path[0] == '~')
			path = path_normalize(j->arena, j->request->home, path + 2);
		judge_file(r, path, kind_of(path, PACKAGE_FILE_SETTINGS), false, 0);
	}
}

void judge_project(struct judge *j, const struct project *project)
{
	const struct manifest *manifest = find_manifest(project->program);
	struct reading r = { .j = j, .project = project };
	if (!j->request->inputs) { /* nothing can be read */
		if (project->lists.count || project->trees.count || project->scripts.count ||
			(project->reads_project && !project->is_named))
			sources_ask(j, project->subject, "packages of a file aren't known");
		return;
	}
	judge_lists(&r, &project->lists);
	judge_trees(&r, &project->trees);
	for (size_t i = 0; i < project->scripts.count && !r.is_denied; i++) {
		struct places places = places_of(j, project->scripts.items[i]);
		for (size_t k = 0; k < places.count; k++)
			judge_file(&r, places.dirs[k], PACKAGE_FILE_SCRIPT, false, 0);
	}
	if (project->reads_project && manifest && !r.is_denied)
		judge_places(&r, manifest);
	else if (project->reads_project && !r.is_denied)
		sources_ask(j, project->subject, "packages of a file of the project aren't known");
	if (!r.is_denied)
		judge_settings(&r);
}
