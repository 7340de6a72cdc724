/* carrel deploy, carrel deployment: agent packages that are served. */
#include "base/fd.h"
#include "cli/removal.h"
#include "cli/run/network.h"
#include "cli/agents/package.h"
#include "cli/plain.h"
#include "cli/run/policy_file.h"
#include "model/agents/apkg.h"
#include "model/agents/deployment.h"

static const char *path_of(struct command *command, const char *name, const char *more)
{
	return arena_printf(&command->arena, "/v1/deployments/%s%s",
		remote_escape(&command->remote, name), more);
}

/* ---- a rollout that is waited for ---- */

/* "version 1.1.0 (revision 2)" of the latest rollout. */
static const char *name_rollout(struct arena *arena, const struct json_value *rollout)
{
	const char *version = json_member_text(rollout, "version");
	uint64_t revision = 0;
	json_member_u64(rollout, "revision", &revision);
	return arena_printf(arena, "version %s (revision %llu)", version ? version : "-",
		(unsigned long long)revision);
}

/* Why the latest rollout has failed, which may not be the revision that is live, or what a surface
 * lacks. */
static void print_error(struct command *command, const struct json_value *value)
{
	const struct json_value *rollout = json_member(value, "rollout");
	const char *error = json_member_text(value, "error"),
		   *status = json_member_text(rollout, "status"),
		   *why = json_member_text(rollout, "error");
	if (!error)
		return;
	buf_printf(&command->out, "%-12s  ", "error");
	if (why && status && !strcmp(status, "failed") && !strcmp(why, error))
		buf_printf(&command->out,
			"the rollout of %s has failed: ", name_rollout(&command->arena, rollout));
	buf_printf(&command->out, "%s\n", error);
}

static int show_deployment(struct command *command, const struct json_value *value)
{
	const char *fields[] = { "name", "deploymentId", "status", "version" };
	uint64_t revision = 0;
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		const char *text = json_member_text(value, fields[i]);
		if (text)
			buf_printf(&command->out, "%-12s  %s\n", i == 1 ? "id" : fields[i], text);
	}
	if (json_member_u64(value, "revision", &revision) && revision)
		buf_printf(
			&command->out, "%-12s  %llu\n", "revision", (unsigned long long)revision);
	print_error(command, value);
	const char *venv = json_member_text(json_member(value, "venv"), "name");
	if (venv)
		buf_printf(&command->out, "%-12s  %s\n", "environment", venv);
	const struct json_value *one = json_member_first(value, "surfaces");
	for (; one; one = one->next)
		buf_printf(&command->out, "%-12s  %s  %s\n", json_member_text(one, "name"),
			json_member_text(one, "status"), json_member_text(one, "url"));
	return 0;
}

/* A rollout that is waited for: events say when to look. */
struct rollout_watch {
	struct command *command;
	const char *id;
	struct remote_events follow;
	char last[32]; /* status that was said */
	struct remote_answer *answer;
	bool is_over;
};

/* What a status means, as people say it. */
static const char *describe_status(const char *status)
{
	static const struct {
		const char *status, *words;
	} rows[] = {
		{ "downloading", "fetching the package" },
		{ "building_env", "building the environment" },
		{ "installing_deps", "installing packages" },
		{ "starting", "starting the surfaces" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].status, status))
			return rows[i].words;
	return status;
}

static int look(struct rollout_watch *watch, struct error *err)
{
	struct command *command = watch->command;
	if (remote_call(&command->remote, "GET", path_of(command, watch->id, ""), NULL,
		    watch->answer, err))
		return -1;
	const struct json_value *rollout = json_member(watch->answer->value, "rollout");
	const char *status = json_member_text(rollout, "status");
	const char *why = json_member_text(rollout, "error");
	const char *name = json_member_text(watch->answer->value, "name");
	if (!status)
		return fail(err, ERR_CORRUPT, "the daemon answered without a status");
	bool has_failed = !strcmp(status, "failed");
	if (strcmp(status, watch->last) && !command->json && !has_failed)
		cli_say("%s", describe_status(status));
	if (has_failed) {
		fail(err, ERR_FAILED, "deployment '%s': the rollout of %s has failed%s%s",
			name ? name : watch->id, name_rollout(&command->arena, rollout),
			why ? ": " : "", why ? why : "");
		/* A surface has perhaps written why. */
		bool is_surface = why && str_starts_with(str_from(why), "surface ");
		return error_hint(err, "carrel deployment %s %s", is_surface ? "logs" : "show",
			name ? name : watch->id);
	}
	str_copy(watch->last, sizeof watch->last, status);
	watch->is_over = !strcmp(status, "healthy") || !strcmp(status, "stopped");
	return 0;
}

static int take_event(struct rollout_watch *watch, struct error *err)
{
	struct remote_events *follow = &watch->follow;
	int got = remote_events_next(follow, err);
	if (got == 1 && strcmp(follow->sse.event, "deployment.status") != 0 &&
		strcmp(follow->sse.event, "missed") != 0)
		return 0;
	/* It was cut, as by a daemon that restarts. */
	if (got != 1 && remote_reopen(&follow->remote, remote_events_begin, follow, err))
		return -1;
	return look(watch, err);
}

static bool is_live(const struct rollout_watch *watch)
{
	uint64_t revision;
	return json_member_u64(watch->answer->value, "revision", &revision) && revision;
}

/* Until the rollout has ended; says each status on stderr. */
static int await(
	struct command *command, const char *id, struct remote_answer *answer, struct error *err)
{
	struct rollout_watch watch = { .command = command, .id = id, .answer = answer };
	remote_events_init(&watch.follow, &command->remote, "/v1/events");
	remote_catch_interrupts(&watch.follow.remote);
	int failed = remote_events_begin(&watch.follow, err) || look(&watch, err);
	while (!failed && !watch.is_over)
		failed = take_event(&watch, err);
	remote_events_done(&watch.follow);
	if (failed && remote_is_interrupted())
		return fail_hint(err, ERR_CANCELED,
			arena_printf(&command->arena,
				"carrel deployment show %s shows it; carrel deployment rm --force "
				"%s ends it%s",
				id, id, is_live(&watch) ? ", and the revision that is live" : ""),
			"interrupted: the rollout goes on");
	return failed ? -1 : 0;
}

static int finish(struct command *command, struct remote_answer *answer, struct error *err)
{
	const char *id = json_member_text(answer->value, "deploymentId");
	if (!id)
		return fail(err, ERR_CORRUPT, "the daemon answered without a deploymentId");
	if (!command->options.no_wait &&
		await(command, arena_text(&command->arena, id), answer, err))
		return -1;
	return plain_show(command, answer);
}

/* ---- deploy ---- */

static int upload(struct command *command, const struct package_read *package, struct error *err)
{
	const char *name = arena_printf(&command->arena, "%s@%s", package->name, package->version);
	return remote_send_file(&command->remote,
		arena_printf(&command->arena, "/v1/packages/%s?sha256=%s",
			remote_escape(&command->remote, name), package->sha256),
		package->file, package->size, err);
}

/* The package that is deployed. */
struct chosen {
	struct command *command;
	const char *name, *version, *url; /* the last one may be NULL */
};

/* What is deployed, how its environment is made, and by which rules it runs. */
static int print_choices(const void *ctx, struct json *j, struct error *err)
{
	const struct chosen *chosen = ctx;
	struct command *command = chosen->command;
	const struct env_request *env = &command->options.env;
	json_text(j, "agentAppId", chosen->name);
	json_text(j, "version", chosen->version);
	if (chosen->url)
		json_text(j, "packageUrl", chosen->url);
	if (env->rebuild)
		json_bool(j, "rebuildVenv", true);
	if (env->no_cache)
		json_bool(j, "skipVenvCache", true);
	if (command->options.refresh)
		json_bool(j, "forceRefresh", true);
	if (env->index.extra.count > 1 || env->index.trusted_hosts.count > 1)
		return fail(err, ERR_INVALID,
			"a deployment takes one --extra-index and one --trusted-host");
	if (env->index.index)
		json_text(j, "pipIndexUrl", env->index.index);
	if (env->index.extra.count)
		json_text(j, "pipExtraIndexUrl", env->index.extra.items[0]);
	if (env->index.trusted_hosts.count)
		json_text(j, "pipTrustedHost", env->index.trusted_hosts.items[0]);
	return policy_file_print(j, &command->options, false, &command->arena, err) ||
			       remote_print_env(j, &command->options.variables, NULL,
				       &command->arena, err) ||
			       network_print_options(&command->options, j, err)
		       ? -1
		       : 0;
}

/* NAME@VERSION that the daemon has stored, or fetches from --url. */
static int choose_named(
	struct command *command, const char *text, struct chosen *chosen, struct error *err)
{
	const char *at = strrchr(text, '@');
	chosen->name = at ? arena_printf(&command->arena, "%.*s", (int)(at - text), text) : text;
	chosen->version = at ? at + 1 : "";
	chosen->url = command->options.url;
	if (!at || apkg_check_id(chosen->name, err) || apkg_check_id(chosen->version, err))
		return fail_hint(err, ERR_INVALID, "carrel package ls shows those that are stored",
			"'%.128s' is not NAME@VERSION", text);
	return 0;
}

/* A file or a directory of this host, which is uploaded. */
static int choose_file(
	struct command *command, const char *path, struct chosen *chosen, struct error *err)
{
	const char *wanted = command->options.sha256;
	struct package_read package;
	if (package_read(command, path, "zip", &package, err)) {
		if (err->code == ERR_NOT_FOUND && strchr(path, '@'))
			error_hint(err, "carrel deploy blob:%s, if package ls lists it", path);
		return -1;
	}
	int failed = 0;
	if (wanted && strcmp(wanted, package.sha256) != 0)
		failed = fail(err, ERR_INVALID, "%s: its SHA-256 is %s", path, package.sha256);
	failed = failed || upload(command, &package, err);
	fd_close(&package.file);
	chosen->name = package.name;
	chosen->version = package.version;
	command->options.sha256 = arena_text(&command->arena, package.sha256);
	return failed ? -1 : 0;
}

static int run_deploy(struct command *command, struct error *err)
{
	const struct options *options = &command->options;
	const char *operand = command->operands.items[0];
	bool is_blob = !strncmp(operand, "blob:", 5);
	struct chosen chosen = { .command = command };
	struct remote_answer answer;
	if (is_blob && options->url)
		return fail(err, ERR_INVALID, "'%s' is stored already: --url says where else it is",
			operand);
	if (is_blob || options->url
			? choose_named(command, is_blob ? operand + 5 : operand, &chosen, err)
			: choose_file(command, operand, &chosen, err))
		return -1;
	if (plain_ask_with(command, print_choices, &chosen, &answer, err))
		return -1;
	return finish(command, &answer, err);
}

#define NO_WAIT_ROW                                                                                \
	{                                                                                          \
		0, "no-wait", ARG_FLAG, AT(no_wait), NULL,                                         \
			"answer at once, while the rollout goes on"                                \
	}
/* After an interrupt whose request was perhaps received. */
static const char rollout_afterwards[] =
	"carrel deployment ls shows a rollout; carrel deployment rm --force ends it";
static const struct arg_option deploy_table[] = {
	{ 0, "name", ARG_TEXT, AT(name), "NAME",
		"of the deployment (default: that of the agent); one that exists is replaced", NULL,
		1 },
	{ 0, "url", ARG_TEXT, AT(url), "URL",
		"have the daemon fetch the package NAME@VERSION from here, unless it is stored",
		NULL, 1 },
	{ 0, "sha256", ARG_TEXT, AT(sha256), "HEX", "that the package must have", NULL, 1 },
	{ 'e', "setenv", ARG_LIST, AT(variables), "NAME[=VALUE]",
		"set a variable of the surfaces; without =VALUE, pass on the one set here" },
	{ ARG_FROM(network_rows) },
	{ 's', "settings", ARG_TEXT, AT(settings), "FILE",
		"judge commands and files of the surfaces by the rules of this settings.json",
		.least = 1 },
	{ 0, "rebuild", ARG_FLAG, AT(env.rebuild), NULL,
		"build the environment again even if it exists" },
	{ 0, "no-cache", ARG_FLAG, AT(env.no_cache), NULL,
		"resolve again, to the newest versions that the requirements allow" },
	{ 0, "refresh", ARG_FLAG, AT(refresh), NULL, "unpack the package again even if it was" },
	{ 0, "index", ARG_TEXT, AT(env.index.index), "URL",
		"the package index, if the operator allows others (allow_options)", NULL, 1 },
	{ 0, "extra-index", ARG_LIST, AT(env.index.extra), "URL", "another index, asked first",
		NULL, 1 },
	{ 0, "trusted-host", ARG_LIST, AT(env.index.trusted_hosts), "HOST",
		"don't check the certificate of this host", NULL, 1 },
	NO_WAIT_ROW,
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_deploy = {
	.command = "deploy",
	.summary = "deploy an agent package, or a directory",
	.group = GROUP_AGENTS,
	.usage = "FILE|DIR|blob:NAME@VERSION [options]\n       carrel deploy NAME@VERSION --url "
		 "URL [--sha256 HEX] [options]",
	.about =
		"Serves an agent package: a file or directory of this host, which is uploaded, one "
		"that is stored (blob:), or one that is fetched. Each surface of its agent.yaml "
		"runs in a sandbox of its own. A deployment of that name is replaced without a "
		"failed request; if the new one doesn't become healthy, the old one stays.",
	ARG_TABLE(deploy_table),
	.examples = "  carrel deploy ./greeter -e GREETING=hello\n"
		    "  carrel deploy greeter@1.0.0.apkg --name staging\n"
		    "  carrel deploy greeter@1.1.0 --url https://desk.example/greeter.apkg\n",
	.afterwards = rollout_afterwards,
	.run = run_deploy,
	.show = show_deployment,
};

/* ---- deployment ---- */

static const struct arg_spec ls_spec = {
	.command = "deployment ls",
	.summary = "list deployments",
	.about = "Lists deployments, newest first.",
	ARG_TABLE(plain_ids_table),
	.run = plain_list,
	.record = &deployment_record,
	.key = "deploymentId",
};

static const struct arg_spec show_spec = {
	.command = "deployment show",
	.summary = "show a deployment",
	.usage = "NAME [options]",
	.about = "Shows a deployment, its surfaces and its environment.",
	REMOTE_OPTIONS,
	.run = plain_run,
	.show = show_deployment,
};

static int run_logs(struct command *command, struct error *err)
{
	const char *name = command->operands.items[0];
	const char *path = plain_path(command, name);
	struct client_response response;
	char piece[16384];
	ssize_t got;
	if (remote_begin_get(&command->remote, path, NULL, NULL, &response, err))
		return -1;
	while ((got = client_read(&command->remote.client, &response, piece, sizeof piece, err)) >
		0)
		buf_append(&command->out, piece, (size_t)got);
	return got < 0 ? -1 : 0;
}

static const struct arg_spec logs_spec = {
	.command = "deployment logs",
	.summary = "show what the surfaces of a deployment write",
	.usage = "NAME [rest|a2a|ui] [options]",
	.about = "Prints the end of what the surfaces have written, also of the latest rollout if "
		 "it has failed. carrel logs -f follows the exec of a surface.",
	REMOTE_OPTIONS,
	.run = run_logs,
	.sends = "surface",
};

static const struct arg_spec rm_spec = {
	.command = "deployment rm",
	.summary = "end deployments and remove them",
	.usage = "NAME... [options]",
	.about = "Ends the surfaces of deployments and removes all of them but their environments "
		 "and packages. During a rollout it asks on a terminal, and needs --force "
		 "elsewhere.",
	ARG_TABLE(plain_rm_table),
	.run = plain_remove,
	.removal = &deployment_removal,
};

static int run_again(struct command *command, struct error *err)
{
	struct remote_answer answer;
	return plain_ask(command, &answer, err) ? -1 : finish(command, &answer, err);
}

static const struct arg_option roll_table[] = { NO_WAIT_ROW, { ARG_FROM(remote_rows) } };
static const struct arg_spec restart_spec = {
	.command = "deployment restart",
	.summary = "start new surfaces in place of the old ones",
	.usage = "NAME [options]",
	.about = "Rolls the live revision out again: new surfaces take over when they are healthy.",
	ARG_TABLE(roll_table),
	.afterwards = rollout_afterwards,
	.run = run_again,
	.show = show_deployment,
};
static const struct arg_spec rollback_spec = {
	.command = "deployment rollback",
	.summary = "go back to the revision before",
	.usage = "NAME [options]",
	.about = "Rolls the revision before the live one out again.",
	ARG_TABLE(roll_table),
	.afterwards = rollout_afterwards,
	.run = run_again,
	.show = show_deployment,
};

static const struct arg_spec *const commands[] = { &ls_spec, &show_spec, &logs_spec, &rm_spec,
	&restart_spec, &rollback_spec, NULL };
const struct arg_spec cli_deployment = {
	.command = "deployment",
	.summary = "list, show, restart and remove deployments",
	.group = GROUP_AGENTS,
	.about = "Deployments of agent packages.",
	.commands = commands,
};
