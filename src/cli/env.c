/* carrel env: the subcommands, and what they share. */
#include "cli/env.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"

static const struct cli_command commands[] = {
	{ "build", "build an environment, or reuse it if it exists", env_cli_build },
	{ "ls", "list environments", env_cli_ls },
	{ "show", "show one environment, or the log of its build", env_cli_show },
	{ "verify", "check environments for damage, and repair them", env_cli_verify },
	{ "rm", "remove environments", env_cli_rm },
	{ "prune", "remove environments over the limits, and unused layers", env_cli_prune },
	{ "warm", "build environments of requirements files in advance", env_cli_warm },
	{ "metrics", "print sizes, counts and build times for Prometheus", env_cli_metrics },
	{ NULL, NULL, NULL },
};

static int print_commands(int fd, int code)
{
	auto_buf struct buf out;
	struct error err;
	buf_init(&out, BUF_MAX_DEFAULT);
	buf_text(&out, "usage: carrel env COMMAND [options]\n\n"
		       "Python environments, composed of packages that they share.\n\n"
		       "commands:\n");
	for (const struct cli_command *command = commands; command->name; command++)
		buf_printf(&out, "  %-10s  %s\n", command->name, command->summary);
	buf_text(&out, "\n"
		       "'carrel env COMMAND --help' shows the options of a command.\n\n"
		       "examples:\n"
		       "  carrel env build myagent -r requirements.txt\n"
		       "  carrel run --env myagent --dir . -- python main.py\n");
	if (fd_write_full(fd, out.data, out.len) == (ssize_t)out.len)
		return code;
	fail_errno(&err, "write standard output");
	return cli_fail(&err, false);
}

int cli_env(int argc, char **argv)
{
	struct error err;
	if (argc < 2)
		return print_commands(STDERR_FILENO, 125);
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return print_commands(STDOUT_FILENO, 0);
	for (const struct cli_command *command = commands; command->name; command++)
		if (!strcmp(command->name, argv[1]))
			return command->run(argc - 1, argv + 1);
	fail_hint(&err, ERR_INVALID, "carrel env --help lists the commands", "unknown %s 'env %s'",
		argv[1][0] == '-' ? "option" : "command", argv[1]);
	const char *nearest = cli_nearest(commands, argv[1]);
	if (nearest)
		error_hint(&err, "did you mean 'carrel env %s'?", nearest);
	return env_fail(&err, NULL, args_want_json(argc, argv));
}

bool env_cli_is_json(const char *format)
{
	return format && !strcmp(format, "json");
}

bool env_cli_parse(const struct arg_spec *spec, int argc, char **argv, void *options,
	struct arena *arena, size_t least, size_t most, text_list *operands, int *code)
{
	struct error err;
	bool help;
	int failed = args_parse_mixed(spec, argc, argv, options, arena, operands, &help, &err);
	if (!failed && help) {
		args_print_help(spec);
		*code = fflush(stdout) ? 125 : 0;
		return false;
	}
	if (failed || args_check_operands(spec, operands, least, most, &err))
		*code = env_fail(&err, NULL, args_want_json(argc, argv));
	else
		return true;
	return false;
}

int env_session_open(struct env_session *session, struct error *err)
{
	const char *path;
	*session = (struct env_session)ENV_SESSION_NONE;
	arena_init(&session->arena);
	if (home_find_path(&session->arena, &path, err) ||
		home_open(path, &session->arena, &session->home, err))
		return -1;
	return env_store_open(&session->home, &session->arena, &session->store, err);
}

void env_session_done(struct env_session *session)
{
	env_store_done(&session->store);
	home_done(&session->home);
	arena_done(&session->arena);
}

static void print_texts(struct json *j, const char *key, const char *const *items, size_t count)
{
	json_array(j, key);
	for (size_t i = 0; i < count; i++)
		json_text(j, NULL, items[i]);
	json_end(j);
}

void env_print_members(struct json *j, const struct env_store *store, const struct env_meta *meta,
	bool is_in_use, const char *problem)
{
	auto_buf struct buf path;
	buf_init(&path, 8192);
	buf_printf(&path, "%s/envs/%s", store->home->path, meta->name);
	json_text(j, "name", meta->name);
	json_text(j, "package_id", meta->package_id);
	json_text(j, "path", path.data);
	json_text(j, "state", problem ? "corrupt" : "ready");
	json_text(j, "requirements_sha256", meta->requirements_sha256);
	json_text(j, "created_at", meta->created_at);
	json_text(j, "last_used_at", meta->last_used_at);
	json_u64(j, "use_count", meta->use_count);
	json_u64(j, "size_bytes", meta->size_bytes);
	json_text(j, "python_version", meta->python_version);
	json_text(j, "python", meta->python);
	json_object(j, "installed_packages");
	for (size_t i = 0; i < meta->packages.count; i++)
		json_text(j, meta->packages.items[i].name, meta->packages.items[i].version);
	json_end(j);
	print_texts(j, "layers", meta->layers.items, meta->layers.count);
	json_array(j, "editables");
	for (size_t i = 0; i < meta->editables.count; i++)
		json_text(j, NULL, meta->editables.items[i].path);
	json_end(j);
	print_texts(j, "indexes", meta->indexes.items, meta->indexes.count);
	json_real(j, "build_seconds", meta->build_seconds);
	json_bool(j, "in_use", is_in_use);
	if (problem)
		json_text(j, "problem", problem);
}

void env_print_json(struct json *j, const struct env_store *store, const struct env_meta *meta,
	bool is_in_use, const char *problem, const bool *cached)
{
	json_object(j, NULL);
	env_print_members(j, store, meta, is_in_use, problem);
	if (cached)
		json_bool(j, "cached", *cached);
	json_end(j);
}

int env_print_all(const struct buf *text)
{
	struct error err;
	if (text->overflow)
		fail(&err, ERR_LIMIT, "the result is too large to print");
	else if (fd_write_full(STDOUT_FILENO, text->data, text->len) == (ssize_t)text->len)
		return 0;
	else
		fail_errno(&err, "write standard output");
	return cli_fail(&err, false);
}

void env_print_error(struct json *j, const char *key, const struct error *err,
	const struct build_problem *problem)
{
	bool is_build = problem && problem->failure < BUILD_FAILURE_COUNT;
	json_object(j, key);
	json_text(j, "code",
		is_build ? build_failure_names[problem->failure] : error_code_name(err->code));
	json_text(j, "message", err->text);
	json_text(j, "hint", err->hint[0] ? err->hint : NULL);
	json_text(j, "package", is_build ? problem->package : NULL);
	json_end(j);
}

int env_fail(const struct error *err, const struct build_problem *problem, bool json)
{
	auto_buf struct buf out;
	struct json j;
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!json)
		return cli_fail(err, false);
	json_init(&j, &out, false);
	json_object(&j, NULL);
	env_print_error(&j, "error", err, problem);
	json_end(&j);
	buf_char(&out, '\n');
	if (fd_write_full(STDOUT_FILENO, out.data, out.len) != (ssize_t)out.len)
		return cli_fail(err, false);
	return error_exit_code(err->code);
}

void env_format_age(char out[32], const char *time, int64_t now_ms)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = { { 365ll * 86400000, "y" }, { 86400000, "d" }, { 3600000, "h" },
		{ 60000, "m" }, { 1000, "s" } };
	int64_t then;
	if (!time || !env_time_parse(time, &then)) {
		str_copy(out, 32, "-");
		return;
	}
	int64_t age = env_age_ms(time, now_ms);
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (age >= units[i].ms) {
			str_format(out, 32, "%lld%s ago", (long long)(age / units[i].ms),
				units[i].unit);
			return;
		}
	str_copy(out, 32, "now");
}
