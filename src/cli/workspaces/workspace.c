/* carrel create, ls, info, update, suspend, resume, rm. */
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "cli/environments/build_watch.h"
#include "cli/environments/env.h"
#include "cli/environments/template.h"
#include "cli/plain.h"
#include "cli/removal.h"
#include "cli/run/network.h"
#include "cli/run/policy_file.h"
#include "cli/workspaces/workspace_names.h"
#include "format/text/quantity.h"
#include "model/nouns/template.h"
#include "model/nouns/workspace.h"

#define BODY_MAX ((size_t)8 << 20)

/* Files of this host can't be sent to the daemon. */
static const struct arg_help source_helps[] = {
	{ "requirements", "with the packages of this file: requirements, pyproject.toml, "
			  "pylock.toml; repeatable" },
	{ "pip", "with this package, e.g. 'requests>=2.31'; repeatable" },
	{ 0 },
};
static const struct arg_help choice_helps[] = {
	{ "find-links", "not supported by the daemon: use `carrel env build`" },
	{ "python", "use this Python: a version (3.12)" },
	{ 0 },
};
static const struct arg_option create_table[] = {
	{ 0, "template", ARG_TEXT, AT(template), "NAME",
		"make it of this template: see `carrel template`; options win over it", NULL, 1 },
	{ 0, "env", ARG_TEXT, AT(environment), "NAME", "use this environment: see `carrel env`" },
	{ 0, "from", ARG_TEXT, AT(from), "SNAPSHOT|NAME",
		"begin with the state of a snapshot (its id) or of another workspace" },
	{ ARG_FROM(env_source_rows), .helps = source_helps },
	{ ARG_FROM(env_choice_rows), .helps = choice_helps },
	{ ARG_FROM(env_node_rows) },
	{ 'e', "setenv", ARG_LIST, AT(variables), "NAME[=VALUE]",
		"set a variable for every command; without =VALUE, pass on the one set here" },
	{ 'l', "label", ARG_LIST, AT(labels), "KEY=VALUE",
		"a label; context_id=VALUE also names the workspace" },
	{ 0, "context", ARG_FLAG, AT(context), NULL,
		"create scripts/ data/ repos/ output/ and .context.json" },
	{ 0, "ttl", ARG_DURATION, AT(ttl_ms), "TIME", "remove it after this time (default never)",
		NULL, 1 },
	{ 0, "idle-timeout", ARG_DURATION, AT(idle_timeout_ms), "TIME",
		"suspend it when unused for this time (default never)", NULL, 1 },
	{ .kind = ARG_RECORD, .offset = AT(limits), .record = &limits_record },
	{ ARG_FROM(mount_rows) },
	{ ARG_FROM(network_rows) },
	{ ARG_FROM(sandbox_rows) },
	{ ARG_FROM(policy_file_rows) },
	{ ARG_FROM(remote_rows) },
};

static void print_texts(struct json *j, const char *name, const requirement_list *list)
{
	if (list->count == 0)
		return;
	json_array(j, name);
	for (size_t i = 0; i < list->count; i++)
		json_text(j, NULL, list->items[i].text);
	json_end(j);
}

/* The files are the caller's: they are read here, and what they say is sent. */
static int print_inputs(
	struct json *j, const struct options *options, struct arena *arena, struct error *err)
{
	struct env_request request;
	struct env_wanted inputs;
	if (env_options_fill(options, "run", arena, &request, err) ||
		inputs_read(&request, arena, &inputs, err))
		return -1;
	const char *what = inputs.uv_lock.len	      ? "uv.lock"
			   : inputs.secrets.count     ? "a ${VARIABLE} in an address"
			   : inputs.locals.count      ? "a wheel or project of this host"
			   : request.find_links.count ? "--find-links"
						      : NULL;
	if (what)
		return fail_hint(err, ERR_INVALID,
			"carrel env build NAME with these options, and carrel create --env NAME",
			"the daemon does not accept %s", what);
	if (request.requirement_files.count)
		json_str(j, "requirements", inputs.lines);
	else
		print_texts(j, "packages", &inputs.requirements);
	print_texts(j, "constraints", &inputs.constraints);
	if (request.torch_backend)
		json_text(j, "torch_backend", request.torch_backend);
	if (inputs.is_pre)
		json_bool(j, "pre", true);
	return 0;
}

static int print_python(
	struct json *j, const struct options *options, struct arena *arena, struct error *err)
{
	if (!env_request_asks(&options->env, ENV_KIND_PYTHON))
		return 0;
	json_object(j, "python");
	if (options->env.python)
		json_text(j, "version", options->env.python);
	if (print_inputs(j, options, arena, err))
		return -1;
	if (options->env.allow_build)
		json_bool(j, "allow_build", true);
	json_end(j);
	return 0;
}

/* Read here as well: the files are the caller's. */
static int print_node(
	struct json *j, const struct options *options, struct arena *arena, struct error *err)
{
	struct options node = *options;
	struct env_request request;
	struct str json, lock;
	if (!env_request_asks(&options->env, ENV_KIND_NODE))
		return 0;
	node.env = env_request_part(&options->env, ENV_KIND_NODE);
	if (env_options_fill(&node, "run", arena, &request, err) ||
		node_request_read(&request, arena, &json, &lock, err))
		return -1;
	json_object(j, "node");
	if (request.node.version)
		json_text(j, "version", request.node.version);
	if (json.len)
		json_str(j, "package_json", json);
	if (lock.len)
		json_str(j, "lock", lock);
	if (request.node.packages.count)
		json_texts(j, "packages", &request.node.packages);
	if (request.node.runtime)
		json_text(j, "runtime", request.node.runtime);
	if (request.node.allow_scripts)
		json_bool(j, "allow_scripts", true);
	json_end(j);
	return 0;
}

static int print_created(struct command *command, struct buf *out, int *voucher, struct error *err)
{
	const struct options *options = &command->options;
	struct arena *arena = &command->arena;
	struct json j = json_to(out, false);
	if (options->isolation && strcmp(options->isolation, "native") != 0)
		return fail_hint(err, ERR_INVALID, "carrel run --isolation landlock -- CMD",
			"--isolation %s is for carrel run alone: a workspace needs namespaces",
			options->isolation);
	if ((options->dir || options->binds.count) &&
		remote_refuse_far(&command->remote, options->dir ? "--dir" : "-v",
			"carrel cp DIR NAME: copies files into a workspace", err))
		return -1;
	json_object(&j, NULL);
	if (command->operands.count)
		json_text(&j, "name", command->operands.items[0]);
	if (options->template)
		json_text(&j, "template", options->template);
	if (options->environment)
		json_text(&j, "environment", options->environment);
	if (options->from)
		json_text(&j, "from", options->from);
	if (print_python(&j, options, arena, err) || print_node(&j, options, arena, err) ||
		remote_print_env(&j, &options->variables, NULL, arena, err) ||
		remote_print_labels(&j, &options->labels, &options->removed_labels, arena, err) ||
		mounts_print(options, &j, arena, voucher, err) ||
		network_print_options(options, &j, err) ||
		policy_file_print(&j, options, false, arena, err))
		return -1;
	record_print_given(&j, "limits", &limits_record, &options->limits);
	if (options->ttl_ms)
		json_u64(&j, "ttl_ms", options->ttl_ms);
	if (options->idle_timeout_ms)
		json_u64(&j, "idle_timeout_ms", options->idle_timeout_ms);
	if (options->context)
		json_bool(&j, "context", true);
	if (options->ptrace)
		json_bool(&j, "ptrace", true);
	if (options->view)
		json_text(&j, "view", options->view);
	json_end(&j);
	return 0;
}

/* Closing the connection makes the daemon cancel the creation. If its response had already arrived,
 * the workspace is removed here. */
static int cancel(struct remote *remote, const struct remote_answer *answer, struct error *err)
{
	struct error why;
	if (remote->was_lost)
		return fail_hint(err, ERR_CANCELED,
			"carrel ls shows whether the workspace was created",
			"interrupted while the daemon restarted");
	if (answer->status != 201)
		return fail(err, ERR_CANCELED, "interrupted: no workspace was created");
	const char *id = json_member_text(answer->value, "id");
	const char *name = json_member_text(answer->value, "name");
	remote->client.is_used = true; /* it is shut down */
	if (!id || remote_call(remote, "DELETE", remote_workspace_path(remote, id, ""), NULL, NULL,
			   &why))
		return fail_hint(err, ERR_CANCELED, "carrel rm removes it",
			"interrupted, but workspace '%s' was created: %s", name ? name : "",
			id ? why.text : "the daemon did not return its id");
	return fail(err, ERR_CANCELED, "interrupted: workspace '%s' was removed again", name);
}

static int check_template(const char *name, struct error *err)
{
	if (!name || !template_check_name(name, err))
		return 0;
	if (strchr(name, '/') || strchr(name, '.'))
		error_hint(err, "carrel template add %.64s adds a file under the name that it says",
			name);
	return error_context(err, "--template");
}

/* What has to be built takes its time. Whether a template is built already isn't known here: a bar
 * disappears, a line would stay. */
static enum progress_kind find_progress(struct command *command)
{
	const struct options *options = &command->options;
	enum progress_kind kind = command->json ? PROGRESS_NONE : progress_kind_for(STDERR_FILENO);
	for (enum env_kind_id id = 0; id < ENV_KINDS; id++)
		if (env_request_asks(&options->env, id))
			return kind;
	return options->template && kind == PROGRESS_BAR ? kind : PROGRESS_NONE;
}

static int run_create(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	struct build_watch watch;
	char id[ID_LEN + 1];
	auto_buf struct buf body = buf_empty(BODY_MAX);
	auto_close int voucher = -1;
	if ((command->operands.count && workspace_check_name(command->operands.items[0], err)) ||
		cli_check_environment(&command->options, err) ||
		check_template(command->options.template, err) ||
		print_created(command, &body, &voucher, err) || remote_open(&command->remote, err))
		return -1;
	id_make(id);
	remote_catch_interrupts(&command->remote);
	build_watch_begin(&watch, &command->remote, find_progress(command), "building_env", id);
	command->remote.fd = voucher;
	int failed = remote_call_once(&command->remote, "/v1/workspaces", &body,
		arena_printf(
			&command->arena, "Carrel-Cancel: disconnect\r\nX-Request-Id: %s\r\n", id),
		&answer, err);
	command->remote.fd = -1;
	build_watch_end(&watch);
	if (remote_is_interrupted())
		return cancel(&command->remote, &answer, err);
	if (failed)
		return -1;
	template_print_made(command, &answer);
	return 0;
}

const struct arg_spec cli_create = {
	.command = "create",
	.summary = "create a workspace: files that stay, an environment, limits",
	.group = GROUP_EVERYDAY,
	.usage = "[NAME] [options]",
	.about = "Creates a workspace: a private directory at /workspace that stays, with its own "
		 "environment, limits and labels. Prints its name; without NAME, a generated one.",
	ARG_TABLE(create_table),
	.later = "plan",
	.examples = "  carrel create demo --pip requests\n"
		    "  carrel create tight --template strict\n"
		    "  carrel create web --npm axios --node 22\n"
		    "  carrel create review --dir ~/project -v ~/data:/data:ro\n"
		    "  carrel create agent-7 -r requirements.txt --memory 1G --ttl 7d\n"
		    "  carrel create --label team=search --label context_id=chat/42 --context\n",
	.run = run_create,
};

static const struct arg_option ls_table[] = {
	{ 'l', "label", ARG_LIST, AT(labels), "KEY[=VALUE]",
		"only workspaces with this label; repeatable" },
	{ 0, "state", ARG_CHOICE, AT(state), "STATE",
		"only workspaces in this state: creating, ready, running, suspended, failed or "
		"deleting",
		"creating|ready|running|suspended|failed|deleting" },
	{ 'q', "quiet", ARG_FLAG, AT(quiet), NULL, "names only" },
	{ ARG_FROM(remote_rows) },
};

static const char *name_of(struct listing *listing, const struct json_value *item)
{
	return workspace_names_of(&listing->command->arena, item);
}

static int run_ls(struct command *command, struct error *err)
{
	struct listing listing = {
		.command = command, .record = &workspace_record, .key = "name", .name = name_of
	};
	return listing_print_named(&listing, plain_path(command, NULL), err);
}

const struct arg_spec cli_ls = {
	.command = "ls",
	.summary = "list workspaces",
	.group = GROUP_EVERYDAY,
	.about = "Lists workspaces, newest first: state, whether a sandbox is ready (WARM), age, "
		 "last use, bytes on disk, environment and labels.",
	ARG_TABLE(ls_table),
	.examples = "  carrel ls --label team=search\n"
		    "  carrel ls -q --state failed\n",
	.run = run_ls,
};

static void print_line(struct buf *out, const char *name, const char *value)
{
	char shown[1024];
	str_printable(shown, sizeof shown, str_from(value && value[0] ? value : "-"));
	buf_printf(out, "%-12s  %s\n", name, shown);
}

/* The mechanism, and how strong it is. */
static const char *disk_text(struct arena *arena, const char *mechanism)
{
	return arena_printf(arena, "%s (%s)", mechanism,
		!strcmp(mechanism, "counted") ? "approximate" : "exact");
}

/* By what the limits are kept. */
static const char *keeper_text(struct arena *arena, const struct json_value *w)
{
	const char *mechanism = json_member_text(json_member(w, "limits"), "mechanism");
	const char *disk = json_member_text(w, "disk_limit_mechanism");
	return arena_printf(arena, "%s%s%s", mechanism ? mechanism : "",
		mechanism && disk ? "; disk: "
		: disk		  ? "disk: "
				  : "",
		disk ? disk_text(arena, disk) : "");
}

/* Prints a field of the record with its label; `error` only if it is set. */
static const struct {
	const char *label, *field;
} lines[] = { { "name", "name" }, { "id", "id" }, { "state", "state" }, { "warm", "warm" },
	{ "created", "created_at" }, { "last used", "last_used_at" }, { "expires", "expires_at" },
	{ "idle timeout", "idle_timeout" }, { "template", "template" }, { "view", "view" },
	{ "environment", "environment" }, { "node", "node_environment" }, { "labels", "labels" },
	{ "variables", "env" }, { "disk", "disk_usage" }, { "limits", "limits" } };

static const struct field *find_field(const char *name)
{
	const struct record *record = &workspace_record;
	for (size_t i = 0; i < record->count; i++)
		if (!strcmp(record->rows[i].name, name) &&
			field_is(record, &record->rows[i], FIELD_OUT))
			return &record->rows[i];
	abort();
}

/* Only those that there are. */
static void print_mounts(struct buf *out, struct arena *arena, const struct json_value *w)
{
	static const char *const names[] = { "mounts", "attach" };
	const char *dir = json_member_text(w, "dir");
	if (dir)
		print_line(out, "dir", dir);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (json_member(w, names[i]))
			print_line(out, names[i], columns_list(arena, json_member(w, names[i])));
}

static const char *network_text(struct arena *arena, const struct json_value *network)
{
	const struct json_value *allow = json_member(network, "allow"),
				*deny = json_member(network, "deny"),
				*bounds = json_member(network, "bounded_by");
	const char *mode = json_member_text(network, "mode");
	return arena_printf(arena, "%s%s%s%s%s%s%s", mode ? mode : "-",
		allow && allow->first ? ": " : "",
		allow && allow->first ? columns_list(arena, allow) : "",
		deny && deny->first ? "; denied: " : "",
		deny && deny->first ? columns_list(arena, deny) : "",
		bounds && bounds->first ? "; bounded by " : "",
		bounds && bounds->first ? columns_list(arena, bounds) : "");
}

static void print_info(struct buf *out, struct arena *arena, const struct json_value *w)
{
	char age[32];
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		const struct field *row = find_field(lines[i].field);
		if (row->flags & FIELD_OPTIONAL && !json_member(w, row->name))
			continue;
		const char *text = columns_text(arena, row, w),
			   *time = json_member_text(w, row->name);
		columns_format_age(age, time, clock_now_ms());
		if (row->kind == FIELD_TIME && time)
			text = strcmp(row->name, "expires_at")
				       ? arena_printf(arena, "%s (%s)", time, age)
				       : time;
		print_line(out, lines[i].label, text);
	}
	print_mounts(out, arena, w);
	print_line(out, "kept by", keeper_text(arena, w));
	print_line(out, "network", network_text(arena, json_member(w, "network")));
	const char *policy = policy_file_describe(w, arena);
	if (policy)
		print_line(out, "policy", policy);
	const char *isolation = json_member_text(w, "isolation");
	print_line(out, "isolation",
		arena_printf(arena, "%s: %s", isolation ? isolation : "-",
			columns_list(arena, json_member(w, "layers_active"))));
	print_line(out, "ptrace", json_member_true(w, "ptrace") ? "allowed" : "refused");
	const char *error = json_member_text(w, "error");
	if (error)
		print_line(out, "error", error);
}

static int run_info(struct command *command, struct error *err)
{
	struct remote_answer answer;
	if (remote_call(&command->remote, "GET",
		    remote_workspace_path(&command->remote, command->operands.items[0], "?measure"),
		    NULL, &answer, err))
		return -1;
	if (command->json)
		remote_print_answer(&answer, &command->out);
	else
		print_info(&command->out, &command->arena, answer.value);
	return 0;
}

const struct arg_spec cli_info = {
	.command = "info",
	.summary = "show one workspace",
	.group = GROUP_WORKSPACES,
	.usage = "NAME [options]",
	.about = "Shows one workspace, given by name, id or context_id: its limits, the mechanism "
		 "that enforces them, and the isolation of its sandbox.",
	REMOTE_OPTIONS,
	.run = run_info,
};

/* An option that is absent changes nothing, so the defaults of `create` are not named here. */
static const struct arg_help update_helps[] = {
	{ "memory", "memory of all processes and tmpfs together" },
	{ "disk", "size of /workspace, /.cache and changes of /env" },
	{ "tmp", "size of /tmp and /dev/shm together" },
	{ "pids", "processes and threads" },
	{ "fds", "open files of a process" },
	{ "cpus", "number of CPUs, such as 0.5" },
	{ "cpu-time", "cpu time of one exec" },
	{ NULL, NULL },
};
static const struct arg_help update_network_helps[] = {
	{ "allow-domain", "what may be reached, in place of the present list; repeatable" },
	{ "deny-domain", "what may not, in place of the present list; repeatable" },
	{ NULL, NULL },
};
static const struct arg_option update_table[] = {
	{ 'l', "label", ARG_LIST, AT(labels), "KEY=VALUE|KEY-",
		"set a label, or remove it (KEY-); repeatable" },
	{ 0, "remove-label", ARG_LIST, AT(removed_labels), "KEY", "remove a label; repeatable" },
	{ 'e', "setenv", ARG_LIST, AT(variables), "NAME[=VALUE]",
		"set a variable for new commands; without =VALUE, pass on the one set here" },
	{ 0, "unsetenv", ARG_LIST, AT(removed_variables), "NAME",
		"remove a variable from new commands; repeatable" },
	{ 0, "ttl", ARG_TEXT, AT(ttl), "TIME|none", "remove it after this time from now" },
	{ 0, "idle-timeout", ARG_TEXT, AT(idle_timeout), "TIME|none",
		"suspend it when unused for this time" },
	{ .kind = ARG_RECORD,
		.offset = AT(limits),
		.record = &limits_record,
		.helps = update_helps },
	{ ARG_FROM(network_rows), .helps = update_network_helps },
	{ 's', "settings", ARG_TEXT, AT(settings), "FILE|none",
		"judge commands and files by the rules of this settings.json", .least = 1 },
	{ 0, "sources", ARG_TEXT, AT(sources), "FILE|none",
		"install, reach, clone and run only what this sources.json has", .least = 1 },
	{ ARG_FROM(remote_rows) },
};

/* Nothing when it isn't given; null for "none". */
static int print_duration(
	struct json *j, const char *key, const char *option, const char *text, struct error *err)
{
	uint64_t ms;
	if (!text)
		return 0;
	if (!strcmp(text, "none")) {
		json_null(j, key);
		return 0;
	}
	if (quantity_parse_duration(text, &ms, err))
		return error_context(err, "--%s", option);
	json_u64(j, key, ms);
	return 0;
}

/* "KEY-" removes a label: a label that is set has a '='. */
static void split_labels(struct options *options, struct arena *arena)
{
	text_list set = { 0 };
	for (size_t i = 0; i < options->labels.count; i++) {
		const char *label = options->labels.items[i];
		size_t len = strlen(label);
		if (len > 1 && label[len - 1] == '-' && !strchr(label, '='))
			vec_push(arena, &options->removed_labels,
				arena_bytes(arena, label, len - 1));
		else
			vec_push(arena, &set, label);
	}
	options->labels = set;
}

static int print_change(struct command *command, struct buf *out, struct error *err)
{
	static const struct limits none;
	const struct options *options = &command->options;
	struct json j = json_to(out, false);
	split_labels(&command->options, &command->arena);
	json_object(&j, NULL);
	for (size_t i = 0; i < options->removed_labels.count; i++)
		if (workspace_check_label(options->removed_labels.items[i], "", err))
			return error_context(err, "--remove-label");
	if (remote_print_labels(
		    &j, &options->labels, &options->removed_labels, &command->arena, err) ||
		remote_print_env(&j, &options->variables, &options->removed_variables,
			&command->arena, err) ||
		print_duration(&j, "ttl_ms", "ttl", options->ttl, err) ||
		print_duration(&j, "idle_timeout_ms", "idle-timeout", options->idle_timeout, err) ||
		network_print_options(options, &j, err) ||
		policy_file_print(&j, options, true, &command->arena, err))
		return -1;
	if (memcmp(&options->limits, &none, sizeof none))
		record_print_given(&j, "limits", &limits_record, &options->limits);
	json_end(&j);
	return out->len > strlen("{}")
		       ? 0
		       : fail_hint(err, ERR_INVALID, "carrel update --help lists the options",
				 "no change was given");
}

static int run_update(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	const char *asked = command->operands.items[0];
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	if (print_change(command, &body, err) ||
		remote_call(&command->remote, "PATCH",
			remote_workspace_path(&command->remote, asked, ""), &body, &answer, err))
		return -1;
	const char *name = json_member_text(answer.value, "name");
	if (command->json)
		remote_print_answer(&answer, &command->out);
	else
		buf_printf(&command->out, "updated %s\n", name ? name : asked);
	return 0;
}

const struct arg_spec cli_update = {
	.command = "update",
	.summary = "change labels, variables, limits, lifetimes or the network",
	.group = GROUP_WORKSPACES,
	.usage = "NAME [options]",
	.about = "Changes a workspace. Options that are not given leave their settings unchanged. "
		 "Limits and rules can be changed only while no command runs in the workspace, and "
		 "so can a network where there was none. Changed lists hold for new connections at "
		 "once.",
	ARG_TABLE(update_table),
	.examples =
		"  carrel update demo --memory 4G --ttl 7d\n"
		"  carrel update demo --label team=search --label draft-\n"
		"  carrel update demo -e LOG_LEVEL=debug --unsetenv PROXY\n"
		"  carrel update demo --idle-timeout none\n"
		"  carrel update demo --allow-domain registries --allow-domain '*.example.com'\n",
	.run = run_update,
};

/* ---- suspend, resume: a workspace without processes, and back ---- */

static int run_suspend(struct command *command, struct error *err)
{
	return plain_each(command, "suspended", err);
}

static int run_resume(struct command *command, struct error *err)
{
	return plain_each(command, "resumed", err);
}

static const struct arg_option suspend_table[] = {
	{ 0, "force", ARG_FLAG, AT(force), NULL, "end the commands that run in it" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_suspend = {
	.command = "suspend",
	.summary = "end the processes of workspaces, keep their files",
	.group = GROUP_WORKSPACES,
	.usage = "NAME... [options]",
	.about = "Suspends workspaces: their processes end and their memory is released; their "
		 "files stay. The next command, or carrel resume, resumes a workspace.",
	ARG_TABLE(suspend_table),
	.examples = "  carrel suspend demo\n"
		    "  carrel suspend demo --force\n",
	.run = run_suspend,
};

const struct arg_spec cli_resume = {
	.command = "resume",
	.summary = "make suspended workspaces ready for commands",
	.group = GROUP_WORKSPACES,
	.usage = "NAME... [options]",
	.about = "Resumes workspaces: checks that their files and environment exist, and starts "
		 "their sandboxes. The next command would do the same.",
	REMOTE_OPTIONS,
	.examples = "  carrel resume demo\n",
	.run = run_resume,
};

static int run_rm(struct command *command, struct error *err)
{
	const struct options *options = &command->options;
	const char *query = options->archive	  ? "?archive=true"
			    : options->no_archive ? "?archive=false"
						  : "";
	if (options->archive && options->no_archive)
		return fail(err, ERR_INVALID, "--archive can't be combined with --no-archive");
	return removal_run(
		command, "/v1/workspaces", &command->operands, &workspace_removal, query, err);
}

static const struct arg_option rm_table[] = {
	{ 0, "archive", ARG_FLAG, AT(archive), NULL, "archive them first" },
	{ 0, "no-archive", ARG_FLAG, AT(no_archive), NULL,
		"keep no archive, whatever config.yaml says" },
	REMOVAL_FORCE_ROW,
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_rm = {
	.command = "rm",
	.summary = "remove workspaces",
	.group = GROUP_EVERYDAY,
	.usage = "NAME... [options]",
	.about = "Removes workspaces: ends their commands and deletes their files. A workspace is "
		 "archived first with --archive, or where archives.on_remove of config.yaml says "
		 "so. One where commands run, or that belongs to an agent, a case, a deployment or "
		 "a tool, is asked about on a terminal, and elsewhere removed with --force alone.",
	ARG_TABLE(rm_table),
	.examples = "  carrel rm demo\n"
		    "  carrel rm --force demo\n"
		    "  carrel rm -- $(carrel ls -q --label team=search)\n",
	.run = run_rm,
};
