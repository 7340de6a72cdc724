/* carrel ps, kill. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/columns.h"
#include "cli/env.h"
#include "cli/several.h"
#include "format/json_copy.h"

struct ps_options {
	struct remote_options remote;
	bool all;
};
#define FIELD(name) offsetof(struct ps_options, name)
static const struct arg_option ps_table[] = {
	{ 'a', "all", ARG_FLAG, FIELD(all), NULL, "also list commands that have ended", NULL, 0,
		0 },
	REMOTE_ROWS(FIELD),
};
#undef FIELD
static const struct arg_spec ps_spec = {
	.command = "ps",
	.usage = "carrel ps [NAME] [options]",
	.about = "Lists running commands, of one workspace or of all, newest first.",
	.options = ps_table,
	.option_count = sizeof ps_table / sizeof *ps_table,
};

struct listing {
	struct remote *remote;
	const struct ps_options *options;
	struct columns columns;
	struct map names; /* of workspaces, by id */
	struct json json;
};

static bool is_wanted(const struct listing *listing, const struct json_value *item)
{
	const char *state = json_member_text(item, "state");
	return listing->options->all || !state || strcmp(state, "ended");
}

static void note_name(void *ctx, const struct json_value *item)
{
	struct listing *listing = ctx;
	const char *id = json_member_text(item, "id"), *name = json_member_text(item, "name");
	if (id && name)
		map_set(&listing->names, str_from(id), arena_text(&listing->remote->arena, name));
}

/* A word as a shell would take it, in one line: with quotes where it needs them, as $'...' when it
 * has control characters. */
static void add_word(struct buf *out, struct str word)
{
	static const char named[] = "\a\b\t\n\v\f\r\033", letters[] = "abtnvfre";
	bool is_plain = word.len > 0, has_control = false;
	for (size_t i = 0; i < word.len; i++) {
		unsigned char c = (unsigned char)word.data[i];
		has_control |= c < ' ' || c == 0x7f;
		is_plain &= c > ' ' && c != 0x7f && !strchr("\"'$;&|<>*\\", c);
	}
	if (!is_plain)
		buf_text(out, has_control ? "$'" : "'");
	for (size_t i = 0; i < word.len; i++) {
		char c = word.data[i];
		const char *name = c ? strchr(named, c) : NULL;
		if (has_control && name)
			buf_printf(out, "\\%c", letters[name - named]);
		else if (has_control && ((unsigned char)c < ' ' || c == 0x7f))
			buf_printf(out, "\\x%02x", (unsigned char)c);
		else if (has_control && (c == '\'' || c == '\\'))
			buf_printf(out, "\\%c", c);
		else if (c == '\'' && !is_plain)
			buf_text(out, "'\\''");
		else
			buf_char(out, c);
	}
	if (!is_plain)
		buf_char(out, '\'');
}

static const char *command_text(struct arena *arena, const struct json_value *argv)
{
	auto_buf struct buf text;
	buf_init(&text, BUF_MAX_DEFAULT);
	for (const struct json_value *word = argv ? argv->first : NULL; word; word = word->next) {
		if (word->kind != JSON_STRING)
			continue;
		if (text.len)
			buf_char(&text, ' ');
		add_word(&text, word->string);
	}
	return arena_bytes(arena, text.data, text.len);
}

/* "exited 3", "signaled 15", "running": how it is, or how it ended. */
static const char *state_text(struct arena *arena, const struct json_value *item)
{
	const char *state = json_member_text(item, "state"),
		   *reason = json_member_text(item, "reason");
	uint64_t code;
	if (!state || strcmp(state, "ended"))
		return state;
	if (!json_member_u64(item, "exit_code", &code))
		return state;
	if (reason && !strcmp(reason, "signaled") && code > 128)
		code -= 128; /* the number of the signal */
	return arena_printf(arena, "%s %" PRIu64, reason ? reason : "failed", code);
}

static void add_line(void *ctx, const struct json_value *item)
{
	struct listing *listing = ctx;
	struct arena *arena = &listing->remote->arena;
	char age[32];
	uint64_t cpu_ms;
	const char *id = json_member_text(item, "workspace"), *name = NULL;
	if (!is_wanted(listing, item))
		return;
	if (id)
		name = map_get(&listing->names, str_from(id));
	remote_format_age(age, json_member_text(item, "started_at"));
	bool has_cpu = json_member_u64(item, "cpu_ms", &cpu_ms);
	columns_add(&listing->columns,
		(const char *[]){ json_member_text(item, "id"), name ? name : id,
			state_text(arena, item), age,
			has_cpu ? arena_printf(arena, "%.1fs", (double)cpu_ms / 1000) : NULL,
			command_text(arena, json_member(item, "argv")) });
}

static void add_item(void *ctx, const struct json_value *item)
{
	struct listing *listing = ctx;
	if (is_wanted(listing, item))
		json_copy(&listing->json, NULL, item);
}

static int print_json(struct listing *listing, const char *path, struct buf *out, struct error *err)
{
	json_init(&listing->json, out, false);
	json_array(&listing->json, NULL);
	if (remote_each(listing->remote, path, add_item, listing, err))
		return -1;
	json_end(&listing->json);
	buf_char(out, '\n');
	return 0;
}

static int print_table(
	struct listing *listing, const char *path, struct buf *out, struct error *err)
{
	static const char *const heads[] = { "ID", "WORKSPACE", "STATE", "AGE", "CPU", "COMMAND" };
	columns_add(&listing->columns, heads);
	if (remote_each(listing->remote, "/v1/workspaces", note_name, listing, err) ||
		remote_each(listing->remote, path, add_line, listing, err))
		return -1;
	columns_print(&listing->columns, out);
	return 0;
}

int cli_ps(int argc, char **argv)
{
	struct ps_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	auto_buf struct buf out;
	text_list operands = { 0 };
	struct error err;
	int code;
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!remote_parse(&remote, &ps_spec, argc, argv, &options, &options.remote, 0, 1, &operands,
		    &code))
		return code;
	if (remote_open(&remote, &options.remote, &err))
		return cli_fail(&err, remote.json);
	const char *path = operands.count
				   ? remote_workspace_path(&remote, operands.items[0], "/execs")
				   : "/v1/execs";
	struct listing listing = { .remote = &remote,
		.options = &options,
		.columns = { .count = 6,
			.numbers = 1 << 4,
			.width = columns_width(),
			.arena = &remote.arena } };
	map_init(&listing.names, &remote.arena);
	if (remote.json ? print_json(&listing, path, &out, &err)
			: print_table(&listing, path, &out, &err))
		return cli_fail(&err, remote.json);
	return remote_print(&out);
}

struct kill_options {
	struct remote_options remote;
	const char *signal;
};
#define FIELD(name) offsetof(struct kill_options, name)
static const struct arg_option kill_table[] = {
	{ 's', "signal", ARG_TEXT, FIELD(signal), "SIGNAL",
		"by name or number, such as KILL, INT or 9 (default TERM)", NULL, 0, 0 },
	REMOTE_ROWS(FIELD),
};
#undef FIELD
static const struct arg_spec kill_spec = {
	.command = "kill",
	.usage = "carrel kill EXEC... [options]",
	.about = "Sends a signal to running commands and their process groups.",
	.options = kill_table,
	.option_count = sizeof kill_table / sizeof *kill_table,
	.examples = "  carrel kill -s KILL $(carrel exec demo -d -- sleep 60)\n",
};

/* The names that kill(1) takes; SIGRTMIN and the like are no use to anybody here. */
static const struct {
	const char *name;
	int number;
} signals[] = { { "HUP", SIGHUP }, { "INT", SIGINT }, { "QUIT", SIGQUIT }, { "ILL", SIGILL },
	{ "TRAP", SIGTRAP }, { "ABRT", SIGABRT }, { "BUS", SIGBUS }, { "FPE", SIGFPE },
	{ "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "SEGV", SIGSEGV }, { "USR2", SIGUSR2 },
	{ "PIPE", SIGPIPE }, { "ALRM", SIGALRM }, { "TERM", SIGTERM }, { "CHLD", SIGCHLD },
	{ "CONT", SIGCONT }, { "STOP", SIGSTOP }, { "TSTP", SIGTSTP }, { "TTIN", SIGTTIN },
	{ "TTOU", SIGTTOU }, { "URG", SIGURG }, { "XCPU", SIGXCPU }, { "XFSZ", SIGXFSZ },
	{ "VTALRM", SIGVTALRM }, { "PROF", SIGPROF }, { "WINCH", SIGWINCH }, { "IO", SIGIO },
	{ "PWR", SIGPWR }, { "SYS", SIGSYS } };

static int parse_signal(const char *text, int *number, struct error *err)
{
	uint64_t value;
	if (str_to_u64(str_from(text), &value) && value >= 1 && value <= 64) {
		*number = (int)value;
		return 0;
	}
	const char *name = strncasecmp(text, "SIG", 3) ? text : text + 3;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (!strcasecmp(name, signals[i].name)) {
			*number = signals[i].number;
			return 0;
		}
	return fail_hint(
		err, ERR_INVALID, "TERM, KILL, INT, 9 …", "--signal: unknown signal '%s'", text);
}

static const char *signal_path(struct remote *remote, const char *id)
{
	return remote_exec_path(remote, id, "/signal");
}

int cli_kill(int argc, char **argv)
{
	struct kill_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	auto_buf struct buf body;
	text_list execs = { 0 };
	struct error err;
	int code, number = SIGTERM;
	buf_init(&body, 64);
	if (!remote_parse(&remote, &kill_spec, argc, argv, &options, &options.remote, 1, SIZE_MAX,
		    &execs, &code))
		return code;
	if ((options.signal && parse_signal(options.signal, &number, &err)) ||
		remote_open(&remote, &options.remote, &err))
		return cli_fail(&err, remote.json);
	buf_printf(&body, "{\"signal\":%d}", number);
	return several_call(&remote, &execs, "POST", signal_path, &body,
		&(struct several){ .done = "signaled",
			.is_quiet = true,
			.key = "signal",
			.value = (uint64_t)number });
}
