/* carrel completion: scripts for shells. They know nothing of carrel: each calls `carrel
 * __complete` with the words up to the cursor, which answers from the tables of options and, for
 * names, from the daemon, if that runs. A line of the answer is a value, and behind tabs what it is
 * and, of a command, the title of its group. zsh shows groups; bash and fish keep their order. */
#include <dirent.h>
#include <fcntl.h>
#include "base/walk.h"
#include "cli/cli.h"
#include "cli/daemon/context_file.h"
#include "cli/daemon/daemon.h"

/* src/cli/completion */
static const char bash_script[] = {
#include "cli/bash.inc"
	0
};
static const char zsh_script[] = {
#include "cli/zsh.inc"
	0
};
static const char fish_script[] = {
#include "cli/fish.inc"
	0
};

static const struct {
	const char *shell, *script;
} scripts[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };
#define SCRIPTS (sizeof scripts / sizeof *scripts)

static int run_completion(struct command *command, struct error *err)
{
	const char *shell = command->operands.items[0];
	for (size_t i = 0; i < SCRIPTS; i++) {
		if (strcmp(shell, scripts[i].shell))
			continue;
		if (command->json) {
			json_object(&command->value, NULL);
			json_text(&command->value, "script", scripts[i].script);
			json_end(&command->value);
		} else
			buf_text(&command->out, scripts[i].script);
		return 0;
	}
	return fail_hint(err, ERR_INVALID, "carrel completion bash|zsh|fish",
		"there is no completion for the shell '%s'", shell);
}

static const struct arg_option table[] = { { ARG_FROM(format_rows) } };
const struct arg_spec cli_completion = {
	.command = "completion",
	.summary = "print the completion script of a shell",
	.group = GROUP_SELF,
	.usage = "SHELL [-o json]",
	.about = "Prints a script that completes commands, options and names in bash, zsh or fish. "
		 "`make install` installs the scripts where the shells find them.",
	ARG_TABLE(table),
	.examples = "  . <(carrel completion bash)\n  carrel completion fish > "
		    "~/.config/fish/completions/carrel.fish\n",
	.run = run_completion,
};

/* ---- answers ---- */

/* What stands for a word of a usage line or of an option's value. The first row that fits counts:
 * `command` is how the command begins, `word` the word; NULL: any. */
static const struct source {
	const char *command, *word;
	const char *path, *member; /* of a list of the daemon; */
	/* or words, "files", "dirs", "environments", "contexts", "commands" */
	const char *fixed;
} sources[] = {
	{ "create", "NAME", NULL, NULL, NULL }, /* a new one */
	{ "env build", "NAME", NULL, NULL, NULL },
	{ "env", "NAME", NULL, NULL, ":environments" },
	{ "context add", "NAME", NULL, NULL, NULL },
	{ "context", "NAME", NULL, NULL, ":contexts" },
	{ "template", "NAME", "/v1/templates", "name", NULL },
	{ "agent", "NAME", "/v1/agents", "name", NULL },
	{ "deployment", "NAME", "/v1/deployments", "name", NULL },
	{ "tool", "NAME", "/v1/tools", "name", NULL },
	{ "help", "COMMAND", NULL, NULL, ":commands" },
	{ "completion", "SHELL", NULL, NULL, "bash|zsh|fish" },
	{ "cp", "SOURCE", "/v1/workspaces", "name", ":files" },
	{ "cp", "TARGET", "/v1/workspaces", "name", ":files" },
	{ "apply", "DIR|WORKSPACE", "/v1/workspaces", "name", ":dirs" },
	{ NULL, "NAME", "/v1/workspaces", "name", NULL },
	{ NULL, "WORKSPACE", "/v1/workspaces", "name", NULL },
	{ NULL, "EXEC", "/v1/execs", "id", NULL },
	{ NULL, "SNAPSHOT", "/v1/snapshots", "id", NULL },
	{ "tree create", "TREE", NULL, NULL, NULL },
	{ NULL, "TREE", "/v1/trees", "name", NULL },
	{ NULL, "APPROVAL", "/v1/approvals?state=pending", "id", NULL },
	{ NULL, "TOKEN", "/v1/tokens", "id", NULL },
	{ "run", "TEMPLATE", "/v1/templates", "name", ":files" },
	{ NULL, "TEMPLATE", "/v1/templates", "name", NULL },
	{ "restore", "ARCHIVE", "/v1/archives", "name", ":files" },
	{ NULL, "ARCHIVE", "/v1/archives", "name", NULL },
	{ NULL, "FILE", NULL, NULL, ":files" },
	{ NULL, "URL|PATH", NULL, NULL, ":files" },
	{ NULL, "PATH", NULL, NULL, ":files" },
	{ NULL, "DIR", NULL, NULL, ":dirs" },
	{ NULL, "CMD", NULL, NULL, ":files" },
	{ NULL, "ARG", NULL, NULL, ":files" },
	{ NULL, "PROGRAM", NULL, NULL, ":files" },
	{ NULL, "SIGNAL", NULL, NULL, "HUP|INT|KILL|TERM|QUIT|USR1|USR2|STOP|CONT" },
};

struct completion {
	struct buf *out;
	const char *word;   /* to be completed: its part that counts */
	const char *before; /* "--format=": stands before each answer, or "" */
	const struct arg_spec *spec;
	struct remote remote;
	const char *member, *colon;
};

static void offer_in(struct completion *c, const char *value, const char *about, const char *group)
{
	char shown[256];
	if (strncmp(value, c->word, strlen(c->word)) || strpbrk(value, "\t\n"))
		return;
	str_printable(shown, sizeof shown, str_from(about ? about : ""));
	buf_printf(c->out, "%s%s%s%s%s%s\n", c->before, value, shown[0] ? "\t" : "", shown,
		group ? "\t" : "", group ? group : "");
}

static void offer(struct completion *c, const char *value, const char *about)
{
	offer_in(c, value, about, NULL);
}

static void offer_item(void *ctx, const struct json_value *item)
{
	struct completion *c = ctx;
	const char *value = json_member_text(item, c->member);
	const char *state = json_member_text(item, "state");
	const struct json_value *argv = json_member(item, "argv");
	/* Of an exec the first word of its command, too. */
	const char *about = state;
	if (argv && argv->first && argv->first->kind == JSON_STRING)
		about = arena_printf(c->remote.arena, "%s: %.*s", state ? state : "",
			(int)argv->first->string.len, argv->first->string.data);
	if (value)
		offer(c, c->colon ? arena_printf(c->remote.arena, "%s%s", value, c->colon) : value,
			about);
}

/* The daemon is asked only if it runs. */
static void offer_list(struct completion *c, const char *path)
{
	struct error ignored;
	if (c->remote.client.socket < 0 &&
		(remote_choose(&c->remote, &ignored) ||
			daemon_connect(&c->remote.client, c->remote.host, false, &ignored))) {
		c->remote.client.socket = -1;
		return;
	}
	remote_each(&c->remote, path, offer_item, c, &ignored);
}

static void offer_environments(struct completion *c)
{
	const char *path;
	struct error ignored;
	struct dirent *entry;
	if (home_find_path(c->remote.arena, &path, &ignored))
		return;
	auto_walk DIR *dir = walk_open(AT_FDCWD, arena_printf(c->remote.arena, "%s/envs", path));
	while ((entry = walk_next(dir)))
		if (entry->d_name[0] != '.')
			offer(c, entry->d_name, NULL);
}

static void offer_contexts(struct completion *c)
{
	struct contexts contexts;
	struct error ignored;
	if (contexts_read(c->remote.arena, &contexts, &ignored))
		return;
	offer(c, CONTEXT_LOCAL, "the daemon of this home");
	for (size_t i = 0; i < contexts.list.count; i++)
		offer(c, contexts.list.items[i].name, contexts.list.items[i].host);
}

static void offer_commands(struct completion *c, const struct arg_spec *group)
{
	for (const struct arg_spec *const *one = group->commands; one && *one; one++)
		offer_in(c, cli_word(*one), (*one)->summary,
			(*one)->group ? cli_group_title(*one) : NULL);
}

static void offer_choices(struct completion *c, const char *choices)
{
	struct str rest = str_from(choices), choice;
	while (str_next(&rest, '|', &choice))
		offer(c, arena_bytes(c->remote.arena, choice.data, choice.len), NULL);
}

static void offer_source(struct completion *c, const struct source *source)
{
	c->member = source->member;
	/* cp takes NAME:PATH. */
	c->colon = source->path && source->command && !strcmp(source->command, "cp") ? ":" : NULL;
	if (source->path)
		offer_list(c, source->path);
	if (!source->fixed)
		return;
	if (!strcmp(source->fixed, ":environments"))
		offer_environments(c);
	else if (!strcmp(source->fixed, ":contexts"))
		offer_contexts(c);
	else if (!strcmp(source->fixed, ":commands"))
		offer_commands(c, &cli_all);
	else if (source->fixed[0] == ':')
		buf_printf(c->out, "%s\n", source->fixed);
	else
		offer_choices(c, source->fixed);
}

static void offer_for(struct completion *c, struct str word)
{
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		const struct source *source = &sources[i];
		size_t len = source->command ? strlen(source->command) : 0;
		if (!str_is(word, source->word) ||
			(source->command &&
				(strncmp(c->spec->command, source->command, len) ||
					(c->spec->command[len] != ' ' && c->spec->command[len]))))
			continue;
		offer_source(c, source);
		return;
	}
}

/* The word of the usage line for operand number `at` (from 0). A repeated last word stands for all
 * further operands. */
static struct str usage_word(const char *usage, size_t at)
{
	struct str rest = str_from(usage), word, found = { 0 };
	size_t seen = 0;
	while (str_next(&rest, ' ', &word)) {
		if (word.len && word.data[0] == '[')
			word = (struct str){ word.data + 1, word.len - 1 };
		size_t len = 0;
		while (len < word.len && word.data[len] >= 'A' && word.data[len] <= 'Z')
			len++;
		bool repeats = memmem(word.data, word.len, "...", 3);
		/* "-r FILE..." is an option and its value. */
		if (word.len && word.data[0] == '-' && word.len > 1 && word.data[1] != '-')
			str_next(&rest, ' ', &word);
		else if (len > 1 && (seen++ == at || repeats)) {
			found = (struct str){ word.data, len };
			break;
		}
	}
	return found;
}

/* -- options -- */

static void offer_option(void *ctx, const struct arg_option *option)
{
	struct completion *c = ctx;
	offer(c, arena_printf(c->remote.arena, "--%s", option->name), option->help);
}

static void offer_value(struct completion *c, const struct arg_option *option)
{
	struct str word = str_from(option->metavar ? option->metavar : "");
	if (option->choices) {
		offer_choices(c, option->choices);
		return;
	}
	/* --env NAME is an environment wherever it is an option. */
	if (option->offset == AT(environment)) {
		offer_environments(c);
		return;
	}
	if (option->offset == AT(workspace))
		word = STR("WORKSPACE");
	if (option->offset == AT(template))
		word = STR("TEMPLATE");
	if (str_is(word, "NAME"))
		return;
	offer_for(c, word);
}

/* The option that `word` is, if its value is the next word. */
static bool takes_next(const struct arg_spec *spec, const char *word, struct arg_option *option)
{
	size_t len = strlen(word);
	bool is_long = word[0] == '-' && word[1] == '-';
	if (word[0] != '-' || len < 2 || !strcmp(word, "--") || (is_long && strchr(word, '=')))
		return false;
	return args_find(spec, str_from(word + 2), is_long ? 0 : word[len - 1], option) &&
	       option->kind != ARG_FLAG;
}

/* -- all of it -- */

static void complete_word(struct completion *c, const struct arg_spec *spec, int argc, char **argv)
{
	size_t operands = 0;
	struct arg_option option;
	bool are_options_over = false, is_value = false;
	for (int i = 0; i < argc - 1; i++) {
		if (!is_value && !are_options_over && takes_next(spec, argv[i], &option)) {
			if (option.offset == AT(host) && i + 2 < argc)
				c->remote.host = argv[i + 1];
			is_value = true;
			continue;
		}
		if (!is_value && !are_options_over && !strcmp(argv[i], "--"))
			are_options_over = true;
		else if (!is_value && (are_options_over || argv[i][0] != '-'))
			operands++;
		is_value = false;
		are_options_over |= spec->takes_command && operands > args_least(spec);
	}
	const char *equals = strchr(c->word, '=');
	if (is_value) {
		offer_value(c, &option);
	} else if (!are_options_over && !strncmp(c->word, "--", 2) && equals) {
		const struct str name = { c->word + 2, (size_t)(equals - c->word) - 2 };
		c->before = arena_bytes(c->remote.arena, c->word, (size_t)(equals - c->word) + 1);
		c->word = equals + 1;
		if (args_find(spec, name, 0, &option) && option.kind != ARG_FLAG)
			offer_value(c, &option);
	} else if (!are_options_over && c->word[0] == '-') {
		args_each(spec, offer_option, c);
		offer(c, "--help", "show this");
	} else
		offer_for(c, usage_word(args_usage(spec).text, operands));
}

int completion_answer(int argc, char **argv)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct completion c = { .out = &out,
		.word = argc ? argv[argc - 1] : "",
		.before = "",
		.remote = { .arena = &arena, .client = { .socket = -1 } } };
	const struct arg_spec *spec = &cli_all;
	int at = 0;
	while (spec->commands && at + 1 < argc) {
		spec = cli_find(spec, argv[at++]);
		if (!spec)
			return 0;
	}
	c.spec = spec;
	if (spec->commands)
		offer_commands(&c, spec);
	else
		complete_word(&c, spec, argc - at, argv + at);
	remote_close(&c.remote);
	cli_print(&out, NULL);
	return 0;
}
