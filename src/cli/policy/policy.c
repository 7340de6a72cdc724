/* carrel policy check and explain, and what its other commands share. */
#include "cli/policy/policy.h"
#include <unistd.h>
#include "base/path.h"
#include "cli/policy/policy.h"
#include "envs/shown.h"
#include "model/settings/config.h"

const struct arg_option policy_rows[] = {
	{ 's', "settings", ARG_TEXT, AT(settings), "FILE", "the rules: a settings.json" },
	{ 0, "settings-format", ARG_CHOICE, AT(settings_format), "carrel|claude|srt",
		"its format (default: known by its shape)", "carrel|claude|srt" },
	{ 0, "sources", ARG_TEXT, AT(sources), "FILE",
		"what may be installed, reached and run: a sources.json" },
	{ 'w', "workdir", ARG_TEXT, AT(cwd), "DIR",
		"the working directory of the command (default /workspace)" },
	{ 0, "home", ARG_TEXT, AT(home), "DIR", "what ~ stands for (default /workspace)" },
	{ 0, "shell", ARG_CHOICE, AT(shell), "sh|bash",
		"the shell that gets --command (default sh)", "sh|bash" },
};

int policy_read_file(
	const char *path, size_t max, struct arena *arena, struct str *text, struct error *err)
{
	if (cli_read_file(path, max, arena, text, err))
		return -1;
	if (str_utf8_prefix(text->data, text->len) != text->len)
		return fail(err, ERR_INVALID, "%s: not valid UTF-8", path);
	return 0;
}

/* Paths of a settings file are relative to its directory, or to the project above ".claude". */
static const char *directory_of(struct arena *arena, const char *path)
{
	char cwd[PATH_MAX];
	if (!strcmp(path, "-") || !getcwd(cwd, sizeof cwd))
		return NULL;
	const char *whole = path_normalize(arena, cwd, path);
	char *dir = arena_bytes(arena, whole, (size_t)(path_basename(whole) - whole));
	dir = path_normalize(arena, "/", dir);
	if (!strcmp(path_basename(dir), ".claude"))
		dir = path_normalize(arena, dir, "..");
	return dir;
}

static int check_directory(const char *option, const char *path, struct error *err)
{
	if (path && !path_is_absolute(path))
		return fail(err, ERR_INVALID, "%s: '%s' isn't absolute", option, path);
	return 0;
}

int policy_read_network(struct arena *arena, struct policy_network *network, struct error *err)
{
	struct config config;
	struct error no_home;
	const char *home;
	*network = (struct policy_network){ 0 };
	map_init(&network->hosts, arena);
	if (home_find_path(arena, &home, &no_home))
		return 0;
	if (shown_read(home, arena, &config, err))
		return -1;
	const struct network_settings *egress = &config.egress;
	struct address_range *ranges = arena_array(arena, egress->ranges.count + 1, sizeof *ranges);
	for (size_t i = 0; i < egress->ranges.count; i++)
		if (address_range_parse(str_from(egress->ranges.items[i]), &ranges[i], err))
			return -1;
	for (size_t i = 0; i < egress->hosts.count; i++) {
		char host[NETWORK_HOST_SIZE];
		if (network_normalize(str_from(egress->hosts.items[i].key), host, err))
			return -1;
		const char *name = arena_text(arena, host);
		vec_push(arena, &network->names, name);
		map_set(&network->hosts, str_from(name), network);
	}
	network->opened = (struct network_opened){ ranges, egress->ranges.count, &network->hosts };
	uint16_t *ports = arena_array(arena, NETWORK_SETTINGS_PORTS_MAX, sizeof *ports);
	network->defaults = (struct network_defaults){ .ports = ports,
		.port_count = network_settings_ports(egress, ports),
		.hosts = &network->names };
	return 0;
}

/* Reads the files that the options name; everything lives in the command's arena. */
static int load(struct command *command, struct policy_rules *rules, struct error *err)
{
	const struct options *options = &command->options;
	struct arena *arena = &command->arena;
	struct policy_file file = { .name = options->settings };
	struct str text;
	if (check_directory("-w", options->cwd, err) ||
		check_directory("--home", options->home, err))
		return -1;
	*rules = (struct policy_rules){
		.request = { .dialect = SHELL_SH,
			.cwd = options->cwd ? path_normalize(arena, "/", options->cwd)
					    : "/workspace",
			.home = options->home ? options->home : "/workspace",
			.arena = arena }
	};
	if (options->shell && !strcmp(options->shell, "bash"))
		rules->request.dialect = SHELL_BASH;
	if (!options->settings) {
		fail(err, ERR_INVALID, "no settings: -s FILE is required");
		return error_hint(
			err, "carrel %s --settings settings.json -- ls", command->spec->command);
	}
	struct policy_places places = { .workspace = "/workspace",
		.home = rules->request.home,
		.cwd = rules->request.cwd,
		.settings = directory_of(arena, options->settings) };
	if (options->settings_format)
		policy_format_from_name(options->settings_format, &file.format);
	policy_init(&rules->policy, arena);
	if (policy_read_file(options->settings, POLICY_SETTINGS_MAX, arena, &file.text, err) ||
		policy_add_file(&rules->policy, &file, &places, err))
		return -1;
	if (options->network && policy_read_network(arena, &rules->network, err))
		return -1;
	rules->request.opened = &rules->network.opened;
	if (!options->sources)
		return 0;
	if (policy_read_file(options->sources, SOURCES_MAX, arena, &text, err) ||
		sources_parse(options->sources, text, arena, &rules->sources, err))
		return -1;
	rules->has_sources = true;
	rules->request.sources = &rules->sources;
	return 0;
}

/* Judges the request of the command line: the words after "--", --command, --file or --network. */
static int judge_options(struct command *command, const struct policy_rules *rules,
	struct policy_verdict *verdict, struct error *err)
{
	const struct options *options = &command->options;
	int given = (command->argv[0] != NULL) + (options->command != NULL) +
		    (options->path != NULL) + (options->network != NULL);
	text_list argv = { 0 };
	if (given != 1)
		return fail_hint(err, ERR_INVALID, "carrel policy check --help",
			given ? "a command, --command, --file and --network can't be combined"
			      : "no request: a command, --command, --file or --network");
	for (char **word = command->argv; *word; word++)
		vec_push(&command->arena, &argv, *word);
	if (options->path || options->network) {
		const char *subject =
			options->path ? arena_printf(&command->arena, "file(%s)", options->path)
				      : arena_printf(&command->arena, "network(outbound:%s)",
						options->network);
		return policy_judge_subject(&rules->policy, &rules->request, subject, verdict, err);
	}
	if (options->command)
		policy_judge_script(
			&rules->policy, &rules->request, str_from(options->command), verdict);
	else
		policy_judge_argv(&rules->policy, &rules->request, &argv, verdict);
	return 0;
}

void policy_print_verdict(struct json *j, const struct policy_verdict *verdict)
{
	json_text(j, "decision", policy_decision_name(verdict->decision));
	json_array(j, "trail");
	for (size_t i = 0; i < verdict->trail.count; i++) {
		const struct policy_step *step = &verdict->trail.items[i];
		json_object(j, NULL);
		json_text(j, "subject", step->subject);
		json_text(j, "rule", step->rule);
		json_text(j, "reason", step->reason);
		json_text(j, "decision", policy_decision_name(step->decision));
		if (step->by && step->by->file)
			json_text(j, "file", step->by->file);
		if (step->by && step->by->line)
			json_u64(j, "line", (uint64_t)step->by->line);
		if (step->within)
			json_text(j, "within", step->within);
		if (step->suggestion && step->decision != POLICY_ALLOW)
			json_text(j, "suggestion", step->suggestion);
		json_end(j);
	}
	json_end(j);
}

static int exit_code_of(enum policy_decision decision)
{
	static const int codes[] = { [POLICY_ALLOW] = 0, [POLICY_ASK] = 1, [POLICY_DENY] = 126 };
	return codes[decision];
}

static int run_check(struct command *command, struct error *err)
{
	struct policy_rules rules;
	struct policy_verdict verdict;
	if (command->options.is_stream) {
		if (command->argv[0] || command->options.command || command->options.path ||
			command->options.network)
			return fail(err, ERR_INVALID, "--stream takes its requests from stdin");
		return policy_stream(command, err);
	}
	if (load(command, &rules, err) || judge_options(command, &rules, &verdict, err))
		return -1;
	if (command->json) {
		json_object(&command->value, NULL);
		policy_print_verdict(&command->value, &verdict);
		json_end(&command->value);
	} else
		buf_printf(&command->out, "%s\n", policy_decision_name(verdict.decision));
	return exit_code_of(verdict.decision);
}

static const struct arg_option request_rows[] = {
	{ 0, "command", ARG_TEXT, AT(command), "SCRIPT", "judge a script as a shell gets it" },
	{ 0, "file", ARG_TEXT, AT(path), "read|write|delete|*:PATH", "judge file operations" },
	{ 0, "network", ARG_TEXT, AT(network), "HOST[:PORT]", "judge a connection" },
};
static const struct arg_option check_table[] = {
	{ ARG_FROM(policy_rows) },
	{ ARG_FROM(request_rows) },
	{ 0, "stream", ARG_FLAG, AT(is_stream), NULL,
		"read requests as JSON lines, print a line for each" },
	{ ARG_FROM(format_rows) },
};
static const struct arg_spec check_spec = {
	.command = "policy check",
	.summary = "judge a command, file or connection by rules",
	.usage = "-s FILE [options] -- CMD [ARG...]",
	.about = "Judges one request by a settings file, and prints 'allow', 'ask' or 'deny'. Runs "
		 "nothing. Exits 0 for allow, 1 for ask, 126 for deny.",
	ARG_TABLE(check_table),
	.examples = "  carrel policy check -s settings.json -- git push\n"
		    "  carrel policy check -s settings.json --command 'ls | head'\n"
		    "  carrel policy check -s settings.json --file read:/etc/passwd -o json\n"
		    "  carrel policy check -s settings.json --stream <requests.jsonl\n",
	.takes_command = true,
	.run = run_check,
};

/* ---- explain: why a request is allowed, asked for or denied ---- */

static void print_step(struct buf *out, const struct policy_step *step)
{
	char subject[600], text[600];
	str_printable(subject, sizeof subject, str_from(step->subject));
	buf_printf(out, "  %-5s  %s%s%s%s\n", policy_decision_name(step->decision), subject,
		step->within ? "  (through " : "", step->within ? step->within : "",
		step->within ? ")" : "");
	if (step->rule) {
		str_printable(text, sizeof text, str_from(step->rule));
		buf_printf(out, "         by the rule %s", text);
		if (step->by && step->by->line)
			buf_printf(out, ", %s%sline %d", step->by->file ? step->by->file : "",
				step->by->file ? ", " : "", step->by->line);
		buf_char(out, '\n');
	}
	if (step->reason) {
		str_printable(text, sizeof text, str_from(step->reason));
		buf_printf(out, "         %s\n", text);
	}
}

static int run_explain(struct command *command, struct error *err)
{
	struct policy_rules rules;
	struct policy_verdict verdict;
	text_list suggestions = { 0 };
	if (load(command, &rules, err) || judge_options(command, &rules, &verdict, err))
		return -1;
	policy_suggest(&verdict, &command->arena, &suggestions);
	if (command->json) {
		json_object(&command->value, NULL);
		policy_print_verdict(&command->value, &verdict);
		json_texts(&command->value, "suggestions", &suggestions);
		json_end(&command->value);
		return exit_code_of(verdict.decision);
	}
	buf_printf(&command->out, "%s\n", policy_decision_name(verdict.decision));
	bool is_open = false;
	for (size_t i = 0; i < verdict.trail.count; i++) {
		const struct policy_step *step = &verdict.trail.items[i];
		is_open |= step->decision != POLICY_ALLOW && !step->suggestion;
		print_step(&command->out, step);
	}
	for (size_t i = 0; i < suggestions.count; i++)
		buf_printf(&command->out, "%s%s\n",
			i	  ? ""
			: is_open ? "rules that would allow a part of it:\n"
				  : "rules that would allow it:\n",
			arena_printf(&command->arena, "  %s", suggestions.items[i]));
	if (is_open)
		buf_text(&command->out, verdict.decision == POLICY_DENY
						? "no rule allows what another one denies\n"
						: "a person has to allow what no rule can name\n");
	return exit_code_of(verdict.decision);
}

static const struct arg_option explain_table[] = {
	{ ARG_FROM(policy_rows) },
	{ ARG_FROM(request_rows) },
	{ ARG_FROM(format_rows) },
};
static const struct arg_spec explain_spec = {
	.command = "policy explain",
	.summary = "say which rule decides each part of a request",
	.usage = "-s FILE [options] -- CMD [ARG...]",
	.about = "Judges a request as 'carrel policy check' does, and prints each simple command, "
		 "file and expansion in it with the rule that decided, and the rules that would "
		 "allow what is asked for.",
	ARG_TABLE(explain_table),
	.examples =
		"  carrel policy explain -s settings.json --command 'timeout 5 curl x | tee a'\n",
	.takes_command = true,
	.run = run_explain,
};

static const struct arg_spec *const commands[] = { &check_spec, &explain_spec, &policy_test_spec,
	&policy_lint_spec, &policy_learn_spec, NULL };
const struct arg_spec cli_policy = {
	.command = "policy",
	.summary = "judge requests by rules, and check rules",
	.group = GROUP_POLICY,
	.about = "Judges requests by a settings file, checks such files, and learns rules.",
	.commands = commands,
};
