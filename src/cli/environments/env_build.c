/* carrel env build, warm, verify: the quick half here, the slow half in carrel-build; and the
 * options that say what is to be built. */
#include <sys/stat.h>
#include <unistd.h>
#include "base/path.h"
#include "envs/builder/process.h"
#include "cli/environments/env.h"
#include "envs/builder/progress.h"
#include "format/text/quantity.h"

#define SAID_MAX ((size_t)64 << 20)

const struct arg_option env_source_rows[] = {
	{ 'r', "requirements", ARG_LIST, AT(env.requirement_files), "FILE",
		"with the packages of this file: requirements, pyproject.toml, uv.lock, "
		"pylock.toml; repeatable",
		NULL, 1 },
	{ 0, "extra", ARG_LIST, AT(env.extras), "NAME",
		"with this extra of the project; repeatable", NULL, 1 },
	{ 0, "group", ARG_LIST, AT(env.groups), "NAME",
		"with this dependency group of the project; repeatable", NULL, 1 },
	{ 0, "pip", ARG_LIST, AT(env.pip), "PKG",
		"with this package, e.g. 'requests>=2.31', ./pkg.whl or ./project; repeatable",
		NULL, 1 },
};
const struct arg_option env_choice_rows[] = {
	{ 'c', "constraint", ARG_LIST, AT(env.constraint_files), "FILE",
		"limit versions by this constraints file; repeatable", NULL, 1 },
	{ 0, "constraint-line", ARG_LIST, AT(env.constraint_lines), "SPEC",
		"one constraint, e.g. 'urllib3<2'; repeatable", NULL, 1 },
	{ 0, "torch-backend", ARG_TEXT, AT(env.torch_backend), "NAME",
		"PyTorch for cpu, cu126, ... or auto: see carrel-env(1)" },
	{ 0, "find-links", ARG_LIST, AT(env.find_links), "DIR|URL",
		"also look for wheels in this directory or page; repeatable", NULL, 1 },
	{ 0, "pre", ARG_FLAG, AT(env.is_pre), NULL, "allow pre-releases" },
	{ 0, "python", ARG_TEXT, AT(env.python), "V",
		"the interpreter: a version (3.12) or a path (default: /usr/bin/python3)", NULL,
		1 },
	{ 0, "allow-build", ARG_FLAG, AT(env.allow_build), NULL,
		"build packages that have no wheel, in a sandbox without network" },
};
const struct arg_option env_node_rows[] = {
	{ 0, "npm", ARG_LIST, AT(env.node.packages), "PKG",
		"with this Node package, e.g. axios or 'typescript@5'; repeatable", NULL, 1 },
	{ 0, "package-json", ARG_TEXT, AT(env.node.package_json), "PATH",
		"with the packages of this package.json; a directory: also by the lock in it", NULL,
		1 },
	{ 0, "npm-lock", ARG_TEXT, AT(env.node.lock), "FILE",
		"with the versions of this bun.lock or package-lock.json", NULL, 1 },
	{ 0, "node", ARG_TEXT, AT(env.node.version), "V",
		"this version of Node, e.g. 22 (default: the host's)", NULL, 1 },
	{ 0, "node-runtime", ARG_CHOICE, AT(env.node.runtime), "bun|npm",
		"what installs Node packages (default bun)", "bun|npm" },
	{ 0, "allow-scripts", ARG_FLAG, AT(env.node.allow_scripts), NULL,
		"run install scripts of Node packages, in the build's sandbox" },
};
static const struct arg_option build_rows[] = {
	{ 0, "wheels", ARG_TEXT, AT(env.wheels), "DIR",
		"install from this directory of carrel env wheels alone, without an index", NULL,
		1 },
	{ 0, "index", ARG_TEXT, AT(env.index.index), "URL",
		"the package index (default: pip's and uv's own settings)", NULL, 1 },
	{ 0, "extra-index", ARG_LIST, AT(env.index.extra), "URL", "a further index; repeatable",
		NULL, 1 },
	{ 0, "trusted-host", ARG_LIST, AT(env.index.trusted_hosts), "HOST",
		"don't check the certificate of this host; repeatable", NULL, 1 },
	{ 0, "allow-index", ARG_LIST, AT(env.allowed_indexes), "URL",
		"refuse other indexes and npm registries than this; repeatable", NULL, 1 },
	{ 0, "require-hashes", ARG_FLAG, AT(env.require_hashes), NULL,
		"every requirement must have a hash" },
	{ 0, "editable", ARG_LIST, AT(env.editables), "PATH",
		"a project on this host, imported from its directory; repeatable", NULL, 1 },
	{ 0, "system-site-packages", ARG_FLAG, AT(env.system_site_packages), NULL,
		"also use the packages installed for that Python" },
	{ 0, "rebuild", ARG_FLAG, AT(env.rebuild), NULL, "build it again even if it exists" },
	{ 0, "no-cache", ARG_FLAG, AT(env.no_cache), NULL,
		"resolve again, and reuse only packages" },
	{ 0, "timeout", ARG_DURATION, AT(build_timeout_ms), "TIME",
		"stop after this time (default 300s)", NULL, 1 },
	{ 0, "events", ARG_FLAG, AT(events), NULL, "print progress as JSON lines" },
	{ 'q', "quiet", ARG_FLAG, AT(quiet), NULL, "print errors only, no progress" },
	{ 'o', "format", ARG_CHOICE, AT(format), "text|json", "output format", "text|json" },
};

/* Which names there are is uv's to say. */
static int check_torch(const char *name, struct error *err)
{
	if (!name ||
		(*name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.") == strlen(name)))
		return 0;
	return fail_hint(err, ERR_INVALID, "cpu, auto, cu126, ...",
		"--torch-backend '%s' is not a backend", name);
}

static int add_files(
	const text_list *paths, struct arena *arena, text_list *files, struct error *err)
{
	char here[PATH_MAX];
	if (paths->count && !getcwd(here, sizeof here))
		return fail_errno(err, "find the current directory");
	for (size_t i = 0; i < paths->count; i++)
		vec_push(arena, files, path_normalize(arena, here, paths->items[i]));
	return 0;
}

static int add_directory(const char *option, const char *path, struct arena *arena,
	text_list *directories, struct error *err)
{
	char real[PATH_MAX];
	struct stat st;
	if (!realpath(path, real) || stat(real, &st))
		return fail_errno(err, "--%s '%s'", option, path);
	if (!S_ISDIR(st.st_mode))
		return fail(err, ERR_INVALID, "--%s '%s' is not a directory", option, path);
	vec_push(arena, directories, arena_text(arena, real));
	return 0;
}

static int add_link(const char *link, struct arena *arena, text_list *links, struct error *err)
{
	if (strncmp(link, "http://", 7) && strncmp(link, "https://", 8))
		return add_directory("find-links", link, arena, links, err);
	if (strpbrk(link, ", \t\r\n"))
		return fail(err, ERR_INVALID, "--find-links: expected one directory or URL");
	vec_push(arena, links, link);
	return 0;
}

int env_options_fill(const struct options *options, const char *package_id, struct arena *arena,
	struct env_request *request, struct error *err)
{
	const struct env_request *given = &options->env;
	struct env_request made = *given;
	made.package_id = package_id;
	made.requirement_files = made.constraint_files = made.pip = (text_list){ 0 };
	made.find_links = made.editables = (text_list){ 0 };
	if (!env_package_id_is_valid(package_id))
		return fail_hint(err, ERR_INVALID,
			"letters, digits and @._- (not . or - at the beginning), at most 100 "
			"characters",
			"invalid name of an environment '%s'", package_id);
	char here[PATH_MAX];
	const char **paths[] = { &made.node.package_json, &made.node.lock };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		if (*paths[i] && !getcwd(here, sizeof here))
			return fail_errno(err, "find the current directory");
		if (*paths[i])
			*paths[i] = path_normalize(arena, here, *paths[i]);
	}
	if (check_torch(given->torch_backend, err) ||
		add_files(&given->requirement_files, arena, &made.requirement_files, err) ||
		add_files(&given->constraint_files, arena, &made.constraint_files, err))
		return -1;
	for (size_t i = 0; i < given->pip.count; i++) {
		const char *word = given->pip.items[i];
		bool is_local = !given->is_self_contained && local_is_path(word);
		vec_push(arena, is_local ? &made.locals : &made.pip, word);
	}
	for (size_t i = 0; i < given->find_links.count; i++)
		if (add_link(given->find_links.items[i], arena, &made.find_links, err))
			return -1;
	if (given->wheels) {
		text_list directories = { 0 };
		if (add_directory("wheels", given->wheels, arena, &directories, err))
			return -1;
		made.wheels = directories.items[0];
	}
	for (size_t i = 0; i < given->editables.count; i++)
		if (add_directory(
			    "editable", given->editables.items[i], arena, &made.editables, err))
			return -1;
	*request = made;
	return 0;
}

/* The command line of carrel-build that corresponds to this command. */
static char **make_argv(const struct arg_spec *spec, const struct options *options,
	const text_list *operands, struct arena *arena)
{
	text_list words = { 0 };
	vec_push(arena, &words, BUILD_PROGRAM);
	vec_push(arena, &words, strrchr(spec->command, ' ') + 1);
	args_print_given(spec, options, arena, &words);
	vec_push(arena, &words, "--");
	for (size_t i = 0; i < operands->count; i++)
		vec_push(arena, &words, operands->items[i]);
	vec_push(arena, &words, NULL);
	return (char **)words.items;
}

/* The name in what carrel-build printed: alone, or in its object. */
static int read_name(
	struct str said, bool json, struct arena *arena, const char **name, struct error *err)
{
	struct json_value *value;
	if (!json) {
		struct str line = str_trim(said);
		*name = arena_bytes(arena, line.data, line.len);
		return 0;
	}
	if (json_read(said, arena, &value, err))
		return error_context(err, "what " BUILD_PROGRAM " said");
	*name = json_member_text(value, "name");
	return *name ? 0
		     : fail(err, ERR_FAILED, BUILD_PROGRAM " printed no name of an environment");
}

static int build(struct command *command, const struct options *options, const char *package_id,
	const char *wanted, struct env_ensured *ensured, struct error *err)
{
	auto_buf struct buf said = buf_empty(SAID_MAX);
	struct arena *arena = &command->arena;
	const char *name = wanted;
	const text_list operands = { &package_id, 1, 1 };
	if (build_run(make_argv(&env_build_spec, options, &operands, arena),
		    options->events ? NULL : &said, &ensured->exit_code, err))
		return -1;
	ensured->said = arena_bytes(arena, said.data, said.len);
	if (ensured->exit_code)
		return 0;
	if (!options->events && read_name((struct str){ ensured->said, said.len }, command->json,
					arena, &name, err))
		return -1;
	return env_read(&command->store, name, arena, &ensured->meta, err);
}

/* Tells the user which environment was evicted to make room for this one. */
static void say_evicted(const char *name, const char *limit)
{
	bool has_bar = progress_kind_for(STDERR_FILENO) == PROGRESS_BAR;
	(void)!write(STDERR_FILENO, "\r\033[K", has_bar ? 4 : 0);
	cli_say("removed %s (%s)", name, limit);
}

static void say_freed(size_t count, uint64_t bytes, double seconds)
{
	char size[16];
	quantity_format_size(size, bytes);
	cli_say("removing %zu environment%s took %.1fs, %s freed", count, count == 1 ? "" : "s",
		seconds, size);
}

int env_prepare(struct command *command, const struct options *options, const char *package_id,
	struct env_wanted *wanted, struct error *err)
{
	struct env_store *store = &command->store;
	struct env_request *request = arena_alloc(&command->arena, sizeof *request);
	bool is_told = !options->events && !command->json && !options->quiet;
	if (env_options_fill(options, package_id, &command->arena, request, err) ||
		(store->dir < 0 && cli_open_store(command, err)))
		return -1;
	store->events.sink = !options->events ? -1
			     : command->json  ? STDERR_FILENO /* stdout has the one answer */
					      : STDOUT_FILENO;
	store->evicted = is_told ? say_evicted : NULL;
	store->freed = is_told ? say_freed : NULL;
	/* What the command line names may be shown to sandboxes: see home_vouch. */
	for (size_t i = 0; i < request->editables.count; i++)
		if (home_vouch(&command->home, request->editables.items[i], err))
			return -1;
	return env_request_prepare(store, request, &command->arena, wanted, &command->problem, err);
}

/* The quick half: as env_compose. */
static int compose(struct command *command, const struct options *options, const char *package_id,
	struct env_wanted *wanted, struct env_ensured *ensured, struct error *err)
{
	*ensured = (struct env_ensured){ .said = "" };
	return env_prepare(command, options, package_id, wanted, err)
		       ? -1
		       : env_compose(&command->store, wanted, &command->arena, &ensured->meta,
				 &ensured->outcome.was_there, &command->problem, err);
}

int env_ensure(struct command *command, const struct options *options, const char *package_id,
	struct env_ensured *ensured, struct error *err)
{
	struct env_wanted *wanted = arena_alloc(&command->arena, sizeof *wanted);
	int composed = compose(command, options, package_id, wanted, ensured, err);
	if (composed)
		return composed < 0 ? -1 : 0;
	ensured->outcome.is_built = true;
	return build(command, options, package_id, wanted->name, ensured, err);
}

static void summarize(const struct env_meta *meta, bool was_there)
{
	char size[16];
	quantity_format_size(size, meta->size_bytes);
	if (was_there)
		cli_say("reused %s", meta->name);
	else
		cli_say("built %s in %.*fs: %zu package%s, %s", meta->name,
			meta->build_seconds < 0.1 ? 3 : 1,
			meta->build_seconds < 0.001 ? 0.001 : meta->build_seconds,
			meta->packages.count, meta->packages.count == 1 ? "" : "s", size);
}

void env_print_built(
	struct command *command, const struct env_meta *meta, const struct env_outcome *outcome)
{
	if (command->json)
		env_print_json(&command->value, &command->store, meta, false, NULL, outcome);
	else if (!command->options.events) {
		buf_printf(&command->out, "%s\n", meta->name);
		if (!command->options.quiet)
			summarize(meta, outcome->was_there);
	}
}

/* carrel-build in place of this process, with the same arguments. */
static int execute(struct command *command, struct error *err)
{
	return build_execute(
		make_argv(command->spec, &command->options, &command->operands, &command->arena),
		err);
}

static int run_build(struct command *command, struct error *err)
{
	struct env_wanted wanted = { 0 };
	struct env_ensured ensured;
	const struct env_request *asked = &command->options.env;
	if (env_request_asks(asked, ENV_KIND_NODE) && env_request_asks(asked, ENV_KIND_PYTHON))
		return fail_hint(err, ERR_INVALID,
			"build two: one with --pip or -r, one with --npm; carrel run takes both",
			"an environment has packages of Python or of Node, not of both");
	int composed = compose(
		command, &command->options, command->operands.items[0], &wanted, &ensured, err);
	if (composed > 0)
		env_print_built(command, &ensured.meta, &ensured.outcome);
	if (composed)
		return composed < 0 ? -1 : 0;
	return execute(command, err);
}

static const struct arg_option build_table[] = {
	{ ARG_FROM(env_source_rows) },
	{ ARG_FROM(env_choice_rows) },
	{ ARG_FROM(env_node_rows) },
	{ ARG_FROM(build_rows) },
	{ 0, "registry", ARG_TEXT, AT(env.node.registry), "URL",
		"the npm registry (default: npm's own settings)", NULL, 1 },
	{ 0, "self-contained", ARG_FLAG, AT(env.is_self_contained), NULL,
		"refuse ${NAME} and included files in requirement files" },
};
const struct arg_spec env_build_spec = {
	.command = "env build",
	.summary = "build an environment, or reuse it if it exists",
	.usage = "NAME [-r FILE...] [--pip PKG...] [--npm PKG...] [options]",
	.about = "Builds the environment of these packages, of Python or of Node, or reuses it if "
		 "it exists, and prints its name: NAME, '_' and the beginning of a hash of the "
		 "requirements. Without requirements it is an empty one of Python.",
	ARG_TABLE(build_table),
	.examples = "  carrel env build myagent -r requirements.txt\n"
		    "  carrel env build tools --pip 'requests>=2.31' --pip rich --python 3.12\n"
		    "  carrel env build web --npm axios --npm typescript@5 --node 22\n"
		    "  carrel run --env myagent -- python -c 'import requests'\n",
	.run = run_build,
};

/* Text: names, one a line, as they are done. JSON: one array of what each build printed. */
static int warm_one(struct command *command, const char *file, struct error *err)
{
	struct options one = command->options;
	struct env_ensured ensured;
	auto_buf struct buf said = buf_empty(SAID_MAX);
	vec_push(&command->arena, &one.env.requirement_files, file);
	if (env_ensure(command, &one, "warmup", &ensured, err))
		return err->code == ERR_NOT_FOUND && access(file, F_OK)
			       ? error_hint(err, "env warm takes requirements files; build "
						 "packages with carrel env build NAME --pip PKG")
			       : -1;
	if (ensured.exit_code) {
		buf_clear(&command->out);
		buf_text(&command->out, command->json ? ensured.said : "");
	} else if (command->json)
		env_print_json(&command->value, &command->store, &ensured.meta, false, NULL,
			&ensured.outcome);
	else if (!one.events) {
		buf_printf(&said, "%s\n", ensured.meta.name);
		return cli_print(&said, err);
	}
	return ensured.exit_code;
}

static int run_warm(struct command *command, struct error *err)
{
	if (command->json && command->options.events)
		return fail(err, ERR_INVALID, "--events and -o json can't be combined");
	if (command->json)
		json_array(&command->value, NULL);
	for (size_t i = 0; i < command->operands.count; i++) {
		int code = warm_one(command, command->operands.items[i], err);
		if (code)
			return code;
	}
	if (command->json)
		json_end(&command->value);
	return 0;
}

static const struct arg_option warm_table[] = {
	{ ARG_FROM(env_choice_rows) },
	{ ARG_FROM(build_rows) },
};
const struct arg_spec env_warm_spec = {
	.command = "env warm",
	.summary = "build environments of requirements files in advance",
	.usage = "FILE... [options]",
	.about = "Builds an environment for each of these requirements files, so that later "
		 "environments of the same packages need no download. Prints their names, warmup_…",
	ARG_TABLE(warm_table),
	.run = run_warm,
};

static const struct arg_option wheels_table[] = {
	{ 'q', "quiet", ARG_FLAG, AT(quiet), NULL, "print errors only, no progress" },
	{ 'o', "format", ARG_CHOICE, AT(format), "text|json", "output format", "text|json" },
};
const struct arg_spec env_wheels_spec = {
	.command = "env wheels",
	.summary = "fetch the wheels of an environment into a directory",
	.usage = "NAME DIR [-o json]",
	.about = "Fetches the wheels of an environment of Python, by its lock, and writes them and "
		 "the lock to a directory. carrel env build --wheels DIR makes the environment of "
		 "it on another host, without an index. As package.venv.tar.gz it is the pre-built "
		 "environment of an agent package.",
	ARG_TABLE(wheels_table),
	.examples = "  carrel env wheels myagent ./wheelhouse\n"
		    "  carrel env build myagent -r requirements.txt --wheels ./wheelhouse\n",
	.run = execute,
};

int env_run_wheels(
	struct command *command, const char *name, const char *directory, struct error *err)
{
	auto_buf struct buf said = buf_empty(SAID_MAX);
	const char *const words[] = { name, directory };
	const text_list operands = { (const char **)words, 2, 2 };
	struct options options = { .quiet = command->options.quiet };
	int exit_code;
	if (build_run(make_argv(&env_wheels_spec, &options, &operands, &command->arena), &said,
		    &exit_code, err))
		return -1;
	return exit_code ? fail(err, ERR_FAILED, "the wheels of '%s' can't be fetched", name) : 0;
}

static const struct arg_option verify_table[] = {
	{ 0, "repair", ARG_FLAG, AT(repair), NULL, "build damaged environments again" },
	{ ARG_FROM(format_rows) },
};
const struct arg_spec env_verify_spec = {
	.command = "env verify",
	.summary = "check environments for damage, and repair them",
	.usage = "[NAME...] [--repair] [-o json]",
	.about = "Compares every file of these environments (without NAME: of all) with what was "
		 "built, and runs their Python. Exits 1 if damage remains.",
	ARG_TABLE(verify_table),
	/* Arguments are checked here as well, so that errors are reported without starting
	   carrel-build. */
	.run = execute,
};

static const struct arg_option registries_table[] = { { ARG_FROM(format_rows) } };
const struct arg_spec env_registries_spec = {
	.command = "env registries",
	.summary = "show the package indexes that sandboxes may be allowed to reach",
	.usage = "[-o json]",
	.about = "Shows what --allow-domain registries allows: the hosts of the package indexes "
		 "that pip, uv, npm and bun of this host are configured with, and the variables "
		 "that name the indexes inside.",
	ARG_TABLE(registries_table),
	.run = execute,
};
