/* carrel policy learn: runs a command that no rule denies, and prints the rules that it would need.
 * 1. Nothing is changed: the rules are for a person to review.
 * 2. stdout is the rules' alone: what the command writes goes to stderr. */
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "cli/policy/policy.h"
#include "format/text/base64.h"
#include "model/nouns/exec.h"

#define RULES_MAX 256	    /* of connections */
#define AUDIT_MAX (8 << 20) /* bytes of the log that are looked at */

struct learning {
	struct command *command;
	const char *name;
	const struct json_value *learned; /* of the event, or NULL */
	text_list rules;
	size_t hosts; /* of them, the last ones: connections that were refused */
	struct result result;
	bool has_ended;
};

/* ---- the command ---- */

static int print_request(struct command *command, struct buf *out, struct error *err)
{
	const struct options *options = &command->options;
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	json_array(&j, "argv");
	for (char **word = command->argv; *word; word++) {
		if (str_utf8_prefix(*word, strlen(*word)) != strlen(*word))
			return fail(err, ERR_INVALID, "the argument '%s' is not UTF-8", *word);
		json_text(&j, NULL, *word);
	}
	json_end(&j);
	if (options->cwd)
		json_text(&j, "cwd", options->cwd);
	if (remote_print_env(&j, &options->variables, NULL, &command->arena, err))
		return -1;
	json_text(&j, "policy", exec_policy_names[EXEC_POLICY_LEARN]);
	json_end(&j);
	return 0;
}

static void print_output(struct learning *l, const struct json_value *event)
{
	const struct json_value *data = json_member(event, "data");
	const char *encoding = json_member_text(event, "encoding");
	if (!data || data->kind != JSON_STRING)
		return;
	struct str bytes = data->string;
	if (encoding && !strcmp(encoding, "base64") &&
		!base64_decode(data->string, &l->command->arena, &bytes))
		return;
	fd_write_full(STDERR_FILENO, bytes.data, bytes.len);
}

static int take_event(struct learning *l, const struct sse *sse, struct error *err)
{
	struct arena *arena = &l->command->arena;
	auto_arena struct arena own = { 0 };
	bool is_learned = !strcmp(sse->event, "learned");
	struct json_value *value;
	if (json_read((struct str){ sse->data.data, sse->data.len }, is_learned ? arena : &own,
		    &value, err))
		return error_context(err, "an event of the daemon");
	if (is_learned)
		l->learned = value;
	else if (!strcmp(sse->event, "stdout") || !strcmp(sse->event, "stderr"))
		print_output(l, value);
	else if (!strcmp(sse->event, "exit")) {
		l->has_ended = true;
		return remote_read_result(value, &l->result, err);
	}
	return 0;
}

static int run_command(struct learning *l, struct error *err)
{
	struct remote *remote = &l->command->remote;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	struct sse sse;
	int got;
	if (print_request(l->command, &body, err))
		return -1;
	request.method = "POST";
	request.path = remote_workspace_path(remote, l->name, "/exec");
	request.accept = "text/event-stream";
	request.body = (struct str){ body.data, body.len };
	if (remote_begin(remote, &request, &response, err))
		return -1;
	sse_init(&sse);
	while ((got = client_next_event(&remote->client, &response, &sse, err)) == 1)
		if ((got = take_event(l, &sse, err)))
			break;
	sse_done(&sse);
	if (!got && (!l->has_ended || !l->learned))
		return fail(err, ERR_UNAVAILABLE, "the daemon ended, and the command with it");
	return got;
}

/* ---- what it would have needed ---- */

static bool is_there(const text_list *rules, const char *rule)
{
	for (size_t i = 0; i < rules->count; i++)
		if (!strcmp(rules->items[i], rule))
			return true;
	return false;
}

/* The host is what a program in the sandbox asked for: only what is a rule is taken. */
static void add_connection(struct learning *l, const struct json_value *line)
{
	struct arena *arena = &l->command->arena;
	const struct json_value *data = json_member(line, "data");
	const char *host = json_member_text(data, "host");
	struct policy policy;
	uint64_t port = 0;
	if (!host || !host[0] ||
		strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-_") != strlen(host))
		return;
	json_member_u64(data, "port", &port);
	bool is_usual = !port || port == 80 || port == 443;
	const char *rule = is_usual ? arena_printf(arena, "network(outbound:%s)", host)
				    : arena_printf(arena, "network(outbound:%s:%llu)", host,
					      (unsigned long long)port);
	policy_init(&policy, arena);
	if (l->hosts == RULES_MAX || is_there(&l->rules, rule) ||
		policy_add_rule(&policy, POLICY_ALLOW, rule,
			&(struct policy_places){ .workspace = "/workspace" }, NULL))
		return;
	vec_push(arena, &l->rules, rule);
	l->hosts++;
}

/* Connections that the network of the workspace refused since then, from the audit log. */
static int read_connections(struct learning *l, const char *since, struct error *err)
{
	struct remote *remote = &l->command->remote;
	struct client_response response;
	struct str line;
	const char *path =
		arena_printf(remote->arena, "/v1/audit?type=egress.refused&since=%s&workspace=%s",
			remote_escape(remote, since), remote_escape(remote, l->name));
	if (remote_begin_get(remote, path, "application/x-ndjson", NULL, &response, err) ||
		client_read_all(&remote->client, &response, remote->arena, err))
		return -1;
	struct str rest = response.body;
	if (rest.len > AUDIT_MAX)
		rest.len = AUDIT_MAX;
	while (str_next(&rest, '\n', &line)) {
		auto_arena struct arena arena = { 0 };
		struct json_value *value;
		if (line.len && !json_read(line, &arena, &value, NULL))
			add_connection(l, value);
	}
	return 0;
}

static void collect(struct learning *l, const char *since)
{
	const struct json_value *at = json_member_first(l->learned, "rules");
	struct error err;
	for (; at; at = at->next)
		if (at->kind == JSON_STRING)
			vec_push(&l->command->arena, &l->rules, (const char *)at->string.data);
	if (read_connections(l, since, &err))
		cli_say("connections that were refused are not known: %s", err.text);
}

/* ---- told ---- */

static void print_learned(struct learning *l)
{
	struct command *command = l->command;
	const char *left = json_member_text(l->learned, "decision_with_rules");
	if (command->json) {
		struct json *j = &command->value;
		json_object(j, NULL);
		json_texts(j, "rules", &l->rules);
		json_copy(j, "trail", json_member(l->learned, "trail"));
		json_text(j, "decision", json_member_text(l->learned, "decision"));
		json_text(j, "decision_with_rules", left);
		json_i64(j, "exit_code", result_exit_code(&l->result));
		json_end(j);
	} else {
		struct json j = json_to(&command->out, true);
		json_object(&j, NULL);
		json_object(&j, "permissions");
		json_texts(&j, "allow", &l->rules);
		json_end(&j);
		json_end(&j);
		buf_char(&command->out, '\n');
	}
	if (left && strcmp(left, policy_decision_name(POLICY_ALLOW)) != 0)
		cli_say("with these rules the policy would still %s: no rule can name a part of "
			"the "
			"command",
			left);
	if (l->hosts)
		cli_say("hint: carrel update %s --allow-domain HOST opens its network to a host",
			l->name);
	cli_say("nothing was changed: review the rules, then carrel update %s -s FILE", l->name);
}

static int run_learn(struct command *command, struct error *err)
{
	struct learning l = { .command = command, .name = command->operands.items[0] };
	char since[32];
	if (!command->argv[0])
		return fail_hint(err, ERR_INVALID, args_usage(command->spec).text,
			"no command was given to run in '%s'", l.name);
	if (command->options.cwd && !path_is_absolute(command->options.cwd))
		return fail(err, ERR_INVALID, "-w: '%s' isn't absolute", command->options.cwd);
	clock_format(since, clock_now_ms());
	if (run_command(&l, err))
		return -1;
	collect(&l, since);
	print_learned(&l);
	return result_exit_code(&l.result);
}

static const struct arg_option table[] = {
	{ ARG_FROM(command_rows) },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec policy_learn_spec = {
	.command = "policy learn",
	.summary = "run a command, and print the rules that it would need",
	.usage = "NAME [options] [--] CMD [ARG...]",
	.about = "Runs a command in a workspace without asking, and prints the rules that would "
		 "allow it, as a settings.json to review. Changes no rule. What a rule denies is "
		 "not run. Needs the scope admin. The output of the command goes to stderr; the "
		 "exit code is the command's.",
	ARG_TABLE(table),
	.examples = "  carrel policy learn demo -- make test >rules.json\n",
	.takes_command = true,
	.run = run_learn,
};
