/* carrel env build, warm, verify: the quick half here, the slow half in carrel-build. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "build/process.h"
#include "cli/cli.h"
#include "cli/env.h"
#include "cli/progress.h"
#include "format/json_read.h"
#include "format/quantity.h"

#define SAID_MAX ((size_t)64 << 20)

#define AT(field) offsetof(struct env_build_options, env.field)
static const struct arg_option build_table[] = {
	ENV_SOURCE_ROWS(AT, ENV_FILES, ENV_PACKAGES),
	ENV_CHOICE_ROWS(AT, ENV_FIND_LINKS),
	ENV_BUILD_ROWS(AT),
	{ 0, "self-contained", ARG_FLAG, AT(self_contained), NULL,
		"refuse ${NAME} and included files in requirement files", NULL, 0, 0 },
	{ 0, "events", ARG_FLAG, offsetof(struct env_build_options, events), NULL,
		"print progress as JSON lines", NULL, 0, 0 },
	{ 'q', "quiet", ARG_FLAG, offsetof(struct env_build_options, quiet), NULL,
		"print errors only, no progress", NULL, 0, 0 },
	ARG_FORMAT_ROW(offsetof(struct env_build_options, format)),
};
const struct arg_spec env_build_spec = {
	.command = "env build",
	.usage = "carrel env build NAME [-r FILE...] [--pip PKG...] [options]",
	.about = "Builds the Python environment of these packages, or reuses it if it exists, "
		 "and\nprints its name: NAME, '_' and the beginning of a hash of the requirements. "
		 "Without\nrequirements the environment is empty.",
	.options = build_table,
	.option_count = sizeof build_table / sizeof *build_table,
	.examples = "  carrel env build myagent -r requirements.txt\n"
		    "  carrel env build tools --pip 'requests>=2.31' --pip rich --python 3.12\n"
		    "  carrel run --env myagent -- python -c 'import requests'\n",
};
static const struct arg_option warm_table[] = {
	ENV_CHOICE_ROWS(AT, ENV_FIND_LINKS),
	ENV_BUILD_ROWS(AT),
	{ 0, "events", ARG_FLAG, offsetof(struct env_build_options, events), NULL,
		"print progress as JSON lines", NULL, 0, 0 },
	{ 'q', "quiet", ARG_FLAG, offsetof(struct env_build_options, quiet), NULL,
		"print errors only, no progress", NULL, 0, 0 },
	ARG_FORMAT_ROW(offsetof(struct env_build_options, format)),
};
#undef AT
static const struct arg_spec warm_spec = {
	.command = "env warm",
	.usage = "carrel env warm FILE... [options]",
	.about =
		"Builds an environment for each of these requirements files, so that later "
		"environments\nof the same packages need no download. Prints their names, warmup_…",
	.options = warm_table,
	.option_count = sizeof warm_table / sizeof *warm_table,
};
static const struct arg_option verify_table[] = {
	{ 0, "repair", ARG_FLAG, offsetof(struct env_verify_options, repair), NULL,
		"build damaged environments again", NULL, 0, 0 },
	ARG_FORMAT_ROW(offsetof(struct env_verify_options, format)),
};
const struct arg_spec env_verify_spec = {
	.command = "env verify",
	.usage = "carrel env verify [NAME...] [--repair] [-o json]",
	.about = "Compares every file of these environments (without NAME: of all) with what was "
		 "built,\nand runs their Python. Exits 1 if damage remains.",
	.options = verify_table,
	.option_count = sizeof verify_table / sizeof *verify_table,
};

static char **make_argv(
	const struct env_build_options *options, const char *package_id, struct arena *arena)
{
	text_list words = { 0 };
	vec_push(arena, &words, BUILD_PROGRAM);
	vec_push(arena, &words, "build");
	env_options_print(&options->env, arena, &words);
	if (options->events)
		vec_push(arena, &words, "--events");
	if (options->quiet)
		vec_push(arena, &words, "--quiet");
	if (env_cli_is_json(options->format))
		vec_push(arena, &words, "--format=json");
	vec_push(arena, &words, "--");
	vec_push(arena, &words, package_id);
	vec_push(arena, &words, NULL);
	return (char **)words.items;
}

static int execute(char **argv, bool json)
{
	struct error err;
	build_execute(argv, &err);
	return env_fail(&err, NULL, json);
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

static int build(struct env_session *session, char **argv, bool json, bool events,
	const char *wanted, struct env_ensured *ensured, struct error *err)
{
	auto_buf struct buf said;
	struct arena *arena = &session->arena;
	const char *name = wanted;
	buf_init(&said, SAID_MAX);
	if (build_run(argv, events ? NULL : &said, &ensured->exit_code, err))
		return -1;
	ensured->said = arena_bytes(arena, said.data, said.len);
	if (ensured->exit_code)
		return 0;
	if (!events && read_name((struct str){ ensured->said, said.len }, json, arena, &name, err))
		return -1;
	return env_read(&session->store, name, arena, &ensured->meta, err);
}

int env_ensure(struct env_session *session, const struct env_build_options *options,
	const char *package_id, struct env_ensured *ensured, struct build_problem *problem,
	struct error *err)
{
	struct env_request *request = arena_alloc(&session->arena, sizeof *request);
	struct env_wanted wanted = { 0 };
	env_tell(&session->store, options);
	*ensured = (struct env_ensured){ .said = "" };
	*problem = (struct build_problem){ .failure = BUILD_FAILURE_COUNT };
	if (env_options_fill(&options->env, package_id, &session->arena, request, err) ||
		env_options_vouch(request, session->store.home, err) ||
		env_request_prepare(
			&session->store, request, &session->arena, &wanted, problem, err))
		return -1;
	int composed = env_compose(&session->store, &wanted, &session->arena, &ensured->meta,
		&ensured->was_there, problem, err);
	if (composed)
		return composed < 0 ? -1 : 0;
	return build(session, make_argv(options, package_id, &session->arena),
		env_cli_is_json(options->format), options->events, wanted.name, ensured, err);
}

/* Somebody's environment goes for the sake of this one: that isn't done in silence. */
static void say_evicted(const char *name, const char *limit)
{
	auto_buf struct buf line;
	bool has_bar = progress_kind_for(STDERR_FILENO) == PROGRESS_BAR;
	buf_init(&line, 1024);
	buf_printf(&line, "%scarrel: removed %s (%s)\n", has_bar ? "\r\033[K" : "", name, limit);
	(void)!fd_write_full(STDERR_FILENO, line.data, line.len);
}

static void say_freed(size_t count, uint64_t bytes, double seconds)
{
	auto_buf struct buf line;
	char size[16];
	buf_init(&line, 1024);
	quantity_format_size(size, bytes);
	buf_printf(&line, "carrel: removing %zu environment%s took %.1fs, %s freed\n", count,
		count == 1 ? "" : "s", seconds, size);
	(void)!fd_write_full(STDERR_FILENO, line.data, line.len);
}

void env_tell(struct env_store *store, const struct env_build_options *options)
{
	bool is_text = !options->events && !env_cli_is_json(options->format);
	store->events.sink = options->events ? STDOUT_FILENO : -1;
	store->evicted = is_text && !options->quiet ? say_evicted : NULL;
	store->freed = is_text && !options->quiet ? say_freed : NULL;
}

static void summarize(const struct env_meta *meta, bool was_there)
{
	auto_buf struct buf line;
	char size[16];
	buf_init(&line, 1024);
	quantity_format_size(size, meta->size_bytes);
	if (was_there)
		buf_printf(&line, "carrel: reused %s\n", meta->name);
	else
		buf_printf(&line, "carrel: built %s in %.*fs: %zu package%s, %s\n", meta->name,
			meta->build_seconds < 0.1 ? 3 : 1,
			meta->build_seconds < 0.001 ? 0.001 : meta->build_seconds,
			meta->packages.count, meta->packages.count == 1 ? "" : "s", size);
	(void)!fd_write_full(STDERR_FILENO, line.data, line.len);
}

int env_print_built(const struct env_store *store, const struct env_build_options *options,
	const struct env_meta *meta, bool was_there)
{
	auto_buf struct buf out;
	struct json j;
	buf_init(&out, BUF_MAX_DEFAULT);
	if (env_cli_is_json(options->format)) {
		json_init(&j, &out, false);
		env_print_json(&j, store, meta, false, NULL, &was_there);
		buf_char(&out, '\n');
	} else if (!options->events) {
		buf_printf(&out, "%s\n", meta->name);
		if (!options->quiet)
			summarize(meta, was_there);
	}
	return env_print_all(&out);
}

int env_cli_build(int argc, char **argv)
{
	struct env_build_options options = { 0 };
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	text_list names = { 0 };
	struct env_request request;
	struct env_wanted wanted = { 0 };
	struct env_meta meta;
	struct build_problem problem = { .failure = BUILD_FAILURE_COUNT };
	struct error err;
	bool was_there;
	int code, composed = -1;
	arena_init(&arena);
	if (!env_cli_parse(&env_build_spec, argc, argv, &options, &arena, 1, 1, &names, &code))
		return code;
	bool json = env_cli_is_json(options.format);
	if (!env_options_fill(&options.env, names.items[0], &arena, &request, &err) &&
		!env_session_open(&session, &err) &&
		!env_options_vouch(&request, session.store.home, &err)) {
		env_tell(&session.store, &options);
		if (!env_request_prepare(&session.store, &request, &arena, &wanted, &problem, &err))
			composed = env_compose(
				&session.store, &wanted, &arena, &meta, &was_there, &problem, &err);
	}
	if (composed < 0)
		return env_fail(&err, &problem, json);
	if (composed > 0)
		return env_print_built(&session.store, &options, &meta, was_there);
	return execute(make_argv(&options, names.items[0], &arena), json);
}

/* Text: names, one a line, as they are done. JSON: one array of what each build printed. */
static int warm_one(struct env_session *session, const struct env_build_options *options,
	const char *file, struct json *j, int *code)
{
	bool json = env_cli_is_json(options->format);
	struct env_build_options one = *options;
	struct env_ensured ensured;
	struct build_problem problem;
	struct error err;
	auto_buf struct buf said;
	buf_init(&said, SAID_MAX);
	vec_push(&session->arena, &one.env.requirement_files, file);
	if (env_ensure(session, &one, "warmup", &ensured, &problem, &err)) {
		if (err.code == ERR_NOT_FOUND && access(file, F_OK))
			error_hint(&err, "env warm takes requirements files; build packages with "
					 "carrel env build NAME --pip PKG");
		*code = env_fail(&err, &problem, json);
		return -1;
	}
	*code = ensured.exit_code;
	if (json && !*code)
		env_print_json(j, &session->store, &ensured.meta, false, NULL, &ensured.was_there);
	if (*code && json)
		buf_text(&said, ensured.said);
	else if (!*code && !json && !options->events)
		buf_printf(&said, "%s\n", ensured.meta.name);
	if (env_print_all(&said))
		*code = 125;
	return *code ? -1 : 0;
}

int env_cli_warm(int argc, char **argv)
{
	struct env_build_options options = { 0 };
	auto_env_session struct env_session session = ENV_SESSION_NONE;
	auto_arena struct arena arena;
	auto_buf struct buf out;
	text_list files = { 0 };
	struct error err;
	struct json j;
	int code = 0;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!env_cli_parse(&warm_spec, argc, argv, &options, &arena, 1, SIZE_MAX, &files, &code))
		return code;
	bool json = env_cli_is_json(options.format);
	if (json && options.events) {
		fail(&err, ERR_INVALID, "--events and -o json can't be combined");
		return env_fail(&err, NULL, json);
	}
	if (env_session_open(&session, &err))
		return env_fail(&err, NULL, json);
	json_init(&j, &out, false);
	json_array(&j, NULL);
	for (size_t i = 0; i < files.count; i++)
		if (warm_one(&session, &options, files.items[i], &j, &code))
			return code;
	json_end(&j);
	buf_char(&out, '\n');
	return json ? env_print_all(&out) : 0;
}

/* Its arguments are read here as well: what is wrong with them is said without carrel-build. */
int env_cli_verify(int argc, char **argv)
{
	struct env_verify_options options = { 0 };
	auto_arena struct arena arena;
	text_list names = { 0 }, words = { 0 };
	int code;
	arena_init(&arena);
	if (!env_cli_parse(
		    &env_verify_spec, argc, argv, &options, &arena, 0, SIZE_MAX, &names, &code))
		return code;
	vec_push(&arena, &words, BUILD_PROGRAM);
	for (int i = 0; i < argc; i++)
		vec_push(&arena, &words, argv[i]);
	vec_push(&arena, &words, NULL);
	return execute((char **)words.items, env_cli_is_json(options.format));
}
