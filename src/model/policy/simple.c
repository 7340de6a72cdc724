/* A simple command: its assignments, redirections, name, wrappers and arguments. */
#include "model/policy/internal.h"

#include "base/buf.h"
#include "base/path.h"

static void judge_call(
	struct judge *j, const char *subject, const shell_words *words, size_t first);

static void judge_variable(struct judge *j, const char *subject, const char *name)
{
	if (variable_is_dangerous(name))
		judge_step(j, subject, POLICY_ASK, NULL,
			arena_printf(j->arena, "'%s' changes what runs", name));
}

/* A word as a command without a shell, or a builtin, gets it: NAME or NAME=VALUE. */
static void judge_declared(struct judge *j, const char *subject, const struct shell_word *word)
{
	const char *text = NULL;

	if (word->literal)
		text = word->literal;
	else if (word->parts.count && word->parts.items[0].kind == SHELL_TEXT &&
		 strchr(word->parts.items[0].text, '='))
		text = word->parts.items[0].text; /* NAME=$value */
	if (!text || strchr(text, '[')) {
		judge_step(j, subject, POLICY_ASK, NULL, "it isn't known which variable that sets");
		return;
	}
	judge_variable(j, subject, arena_bytes(j->arena, text, strcspn(text, "=+")));
}

/* Commands of the shell that set variables by their arguments. */
static bool judge_declaration(
	struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const char *const names[] = { "export", "declare", "typeset", "local", "readonly",
		"read", "mapfile", "readarray", "getopts", "unset" };
	size_t i = 0;

	while (i < sizeof names / sizeof *names &&
		strcmp(words->items[first].literal, names[i]) != 0)
		i++;
	if (i == sizeof names / sizeof *names)
		return false;
	for (i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;

		if (!text || text[0] != '-')
			judge_declared(j, subject, &words->items[i]);
		else if (strpbrk(text, "niACc")) /* a reference, an evaluated number, a callback */
			judge_step(j, subject, POLICY_ASK, NULL, "an option that evaluates values");
	}
	match_harmless(j, subject, words, first, "sets variables of the shell");
	return true;
}

static bool set_option_is_harmless(const shell_words *words, size_t i)
{
	static const char *const options[] = { "errexit", "nounset", "pipefail", "xtrace", "noglob",
		"verbose" };
	const char *text = words->items[i].literal;

	if (!text)
		return false;
	for (size_t k = 0; k < sizeof options / sizeof *options; k++)
		if (strcmp(text, options[k]) == 0)
			return true;
	return (text[0] == '-' || text[0] == '+') && text[1] &&
	       !text[1 + strspn(text + 1, "euxovf")];
}

/* Commands of the shell that have no effect outside of it. */
static bool judge_inert(
	struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const char *const names[] = { ":", "true", "false", "[", "test", "exit", "return",
		"break", "continue", "shift", "wait", "cd", "pushd", "popd", "set" };
	const char *name = words->items[first].literal;
	size_t i = 0;

	while (i < sizeof names / sizeof *names && strcmp(name, names[i]) != 0)
		i++;
	if (i == sizeof names / sizeof *names)
		return false;
	for (i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;

		if (strcmp(name, "set") == 0 && !set_option_is_harmless(words, i)) {
			judge_step(j, subject, POLICY_ASK, NULL,
				"'set' with more than harmless options");
			return true;
		}
		if (text && (strcmp(text, "-v") == 0 || strcmp(text, "-R") == 0 ||
				    (strcmp(name, "wait") == 0 && text[0] == '-'))) {
			judge_step(j, subject, POLICY_ASK, NULL, "a test that evaluates values");
			return true;
		}
	}
	match_harmless(j, subject, words, first, "has no effect outside of the shell");
	return true;
}

/* Words of a command that isn't understood: one may be what a rule denies. */
static void judge_suspects(
	struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	for (size_t i = first; i < words->count && i < first + 64; i++) {
		const struct policy_rule *by =
			words->items[i].literal ? match_denied(j, words, i) : NULL;

		if (by) {
			judge_step(j, subject, POLICY_DENY, by, NULL);
			return;
		}
	}
}

/* Programs that run the command in their arguments. */
static const struct wrapper {
	const char *name;
	const char *with_value; /* letters of options that take the next word */
	unsigned operands;	/* before the command */
	bool has_assignments;
	bool adds_words; /* the command gets more arguments than are written */
	char runs;	 /* letter of an option that runs a script, or edits files */
} wrappers[] = {
	{ "env", "uCa", 0, true, false },
	{ "nohup", "", 0, false, false },
	{ "timeout", "ks", 1, false, false },
	{ "nice", "n", 0, false, false },
	{ "ionice", "cnpPu", 0, false, false },
	{ "time", "fo", 0, true, false },
	{ "command", "", 0, false, false },
	{ "builtin", "", 0, false, false },
	{ "exec", "a", 0, false, false },
	{ "setsid", "", 0, false, false },
	{ "stdbuf", "ioe", 0, false, false },
	{ "xargs", "IdEaLnPs", 0, false, true },
	{ "sudo", "ugpCrtThDRUac", 0, true, false, 'e' },
	{ "doas", "uCa", 0, false, false },
	{ "pkexec", "u", 0, false, false },
	{ "busybox", "", 0, false, false },
	{ "toybox", "", 0, false, false },
	{ "taskset", "", 1, false, false },
	{ "chrt", "TPD", 1, false, false },
	{ "flock", "wE", 1, false, false, 'c' },
	{ "chroot", "", 1, false, false },
	{ "setpriv", "", 0, false, false },
	{ "prlimit", "", 0, false, false },
	{ "choom", "np", 0, false, false },
	{ "valgrind", "", 0, false, false },
	{ "fakeroot", "lsib", 0, false, false },
	{ "faketime", "", 1, false, false },
	{ "eatmydata", "", 0, false, false },
	{ "unbuffer", "", 0, false, false },
	{ "torsocks", "upaP", 0, false, false },
	{ "proxychains", "f", 0, false, false },
	{ "dbus-run-session", "", 0, false, false },
	{ "catchsegv", "", 0, false, false },
};

/* env -S: the words of a command in one. */
static void judge_split(struct judge *j, const shell_words *words, size_t at)
{
	const char *option = words->items[at].literal;
	const char *text = option[1] == '-' ? strchr(option, '=') : strchr(option, 'S');

	text = text ? text + 1 : "";
	if (!text[0] && at + 1 < words->count)
		text = words->items[at + 1].literal;
	if (text)
		judge_script(j, SHELL_SH, str_from(text));
}

/* flock FILE -c SCRIPT */
static void judge_next_script(struct judge *j, const shell_words *words, size_t at)
{
	if (at < words->count && words->items[at].literal)
		judge_script(j, SHELL_SH, str_from(words->items[at].literal));
}

/* The place of the wrapped command. SIZE_MAX: not known; words->count: there is none. */
static size_t wrapped_at(struct judge *j, const struct wrapper *wrapper, const char *subject,
	const shell_words *words, size_t at)
{
	unsigned operands = wrapper->operands;
	bool is_env = strcmp(wrapper->name, "env") == 0, has_options = true;

	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;

		if (!text && word_may_be_option(&words->items[at]))
			return operands ? SIZE_MAX : at; /* a name that is expanded */
		if (text && has_options && strcmp(text, "--") == 0) {
			has_options = false; /* assignments may follow all the same */
			continue;
		}
		if (text && strcmp(text, "-") == 0 && is_env)
			continue; /* env -i */
		if (text && has_options && text[0] == '-' && text[1]) {
			if (is_env && (strncmp(text, "--s", 3) == 0 ||
					      (text[1] != '-' && strchr(text, 'S')))) {
				judge_split(j, words, at);
				return SIZE_MAX;
			}
			if (strncmp(text, "--ch", 4) == 0 || strchr(text, 'C') || strchr(text, 'D'))
				j->is_moved = true;			   /* --chdir, -C, -D */
			if (wrapper->runs && strncmp(text, "--c", 3) == 0) /* --command */
				judge_next_script(j, words, at + 1);
			if (strncmp(text, "--", 2) == 0) {
				if (!strchr(text, '=') && strcmp(text, "--null") != 0)
					return SIZE_MAX; /* it may take the next word */
				continue;
			}
			if (wrapper->runs && strchr(text, wrapper->runs)) {
				judge_next_script(j, words, at + 1);
				return SIZE_MAX;
			}
			if (strchr(wrapper->with_value, text[strlen(text) - 1]))
				at++;
			continue;
		}
		if (wrapper->has_assignments && (text ? strchr(text, '=') : NULL)) {
			judge_declared(j, subject, &words->items[at]);
			continue;
		}
		if (operands-- == 0)
			return at;
	}
	return words->count;
}

static void judge_wrapped(struct judge *j, const struct wrapper *wrapper, const char *subject,
	const shell_words *words, size_t first)
{
	const char *option = first + 1 < words->count ? words->items[first + 1].literal : NULL;
	size_t at = wrapped_at(j, wrapper, subject, words, first + 1);
	const char *within = j->within;
	shell_words inner = { 0 };

	if (strcmp(wrapper->name, "command") == 0 && option &&
		(strcmp(option, "-v") == 0 || strcmp(option, "-V") == 0)) {
		match_harmless(j, subject, words, first, "asks where a command is");
		return;
	}
	if (strcmp(wrapper->name, "exec") == 0 && first + 1 == words->count) {
		match_harmless(j, subject, words, first, "redirects the shell itself");
		return;
	}
	if (!(j->policy->is_claude && claude_strips(wrapper->name)))
		match_command(j, subject, words, first);
	judge_wrapper_files(j, words, first, at < words->count ? at : words->count);
	if (at == SIZE_MAX) {
		judge_step(j, subject, POLICY_ASK, NULL,
			arena_printf(j->arena, "it isn't known what '%s' runs", wrapper->name));
		judge_suspects(j, subject, words, first + 1);
		return;
	}
	if (at >= words->count)
		return;
	for (size_t i = at; i < words->count; i++)
		vec_push(j->arena, &inner, words->items[i]);
	if (wrapper->adds_words)
		vec_push(j->arena, &inner, (struct shell_word){ .source = STR("…") });
	j->within =
		within ? arena_printf(j->arena, "%s, %s", within, wrapper->name) : wrapper->name;
	if (++j->depth <= POLICY_DEPTH_MAX)
		judge_call(j, subject, &inner, 0);
	else
		judge_step(
			j, subject, POLICY_ASK, NULL, "commands in commands are nested too deep");
	j->depth--;
	j->within = within;
}

static bool is_shell_option(const struct shell_word *word)
{
	const char *text = word->literal;

	return text && (text[0] == '-' || text[0] == '+') && text[1];
}

/* The here-documents of a shell may be its commands. */
static void judge_input(struct judge *j, enum shell_dialect dialect)
{
	for (size_t i = 0; j->command && i < j->command->redirects.count; i++) {
		const struct shell_redirect *redirect = &j->command->redirects.items[i];
		const struct shell_command *command = j->command;

		if ((redirect->kind != SHELL_HEREDOC && redirect->kind != SHELL_HERESTRING) ||
			!redirect->target.literal)
			continue;
		j->command = NULL;
		judge_script(j, dialect, str_from(redirect->target.literal));
		j->command = command;
	}
}

/* sh -c SCRIPT, and shells that read their commands from elsewhere. */
static bool judge_shell(
	struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const struct {
		const char *name;
		bool is_known;
		enum shell_dialect dialect;
	} shells[] = { { "sh", true, SHELL_SH }, { "dash", true, SHELL_SH },
		{ "bash", true, SHELL_BASH }, { "rbash", false, SHELL_SH },
		{ "ash", false, SHELL_SH }, { "zsh", false, SHELL_SH }, { "ksh", false, SHELL_SH },
		{ "mksh", false, SHELL_SH }, { "fish", false, SHELL_SH },
		{ "csh", false, SHELL_SH }, { "tcsh", false, SHELL_SH } };
	const char *name = path_basename(words->items[first].literal);
	const size_t count = sizeof shells / sizeof *shells;
	size_t i = 0, at = first + 1;
	bool has_script = false, reads_input = false;

	while (i < count && strcmp(name, shells[i].name) != 0)
		i++;
	if (i == count)
		return false;
	match_command(j, subject, words, first);
	for (; at < words->count && is_shell_option(&words->items[at]); at++) {
		const char *letters = words->items[at].literal + 1;

		if (letters[strspn(letters, "cexuv")])
			judge_step(j, subject, POLICY_ASK, NULL,
				"an option that changes what the shell runs");
		reads_input |= letters[0] != '-' && strchr(letters, 's');
		has_script |= letters[0] != '-' && strchr(letters, 'c') &&
			      words->items[at].literal[0] == '-';
		/* -o OPTION, --rcfile FILE: the next word is a value */
		if ((letters[0] != '-' && strpbrk(letters, "oO")) ||
			strcmp(letters, "-rcfile") == 0 || strcmp(letters, "-init-file") == 0)
			at++;
	}
	if (at >= words->count || reads_input ||
		(words->items[at].literal && strcmp(words->items[at].literal, "-") == 0)) {
		judge_step(
			j, subject, POLICY_ASK, NULL, "a shell that reads commands from its input");
		judge_input(j, shells[i].dialect);
	} else if (has_script && shells[i].is_known && words->items[at].literal) {
		const char *within = j->within;

		j->within = within ? arena_printf(j->arena, "%s, %s -c", within, name)
				   : arena_printf(j->arena, "%s -c", name);
		judge_script(j, shells[i].dialect, str_from(words->items[at].literal));
		j->within = within;
	} else if (has_script || !words->items[at].literal) {
		judge_step(j, subject, POLICY_ASK, NULL,
			"it isn't known which commands the shell runs");
		if (words->items[at].literal) /* another shell reads most of it alike */
			judge_script(j, SHELL_SH, str_from(words->items[at].literal));
		judge_suspects(j, subject, words, at);
	} else {
		judge_script_path(j, subject, &words->items[at]);
		judge_input(j, shells[i].dialect);
	}
	return true;
}

/* eval, trap and the commands that change how the shell reads the rest of the script. */
static bool judge_special(
	struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const char *const asked[] = { ".", "source", "alias", "unalias", "enable", "bind",
		"complete", "compgen", "compopt", "hash", "shopt", "let", "su", "sg", "newgrp",
		"runuser", "parallel", "script", "watch", "entr", "at", "batch", "crontab", "ssh",
		"fc", "history", "dirs", "jobs", "bg", "fg", "disown", "ulimit", "umask", "vi",
		"vim", "vimdiff", "nvim", "view", "ex", "ed", "red", "emacs", "nano", "pico",
		"tmux", "screen", "gdb", "lldb", "expect", "socat", "telnet", "ssh-agent",
		"gpg-agent", "start-stop-daemon", "daemonize", "inotifywait", "caller", "suspend",
		"logout", "bwrap", "firejail", "capsh", "perf", "ld.so", "setarch", "linux32",
		"linux64", "i386", "x86_64", "unshare", "nsenter", "numactl", "runcon", "strace",
		"ltrace", "proot", "rlwrap", "xvfb-run", "systemd-run", "systemd-inhibit",
		"uclampset", "coresched", "cpulimit", "gosu", "su-exec", "tini", "dumb-init",
		"chpst", "setuidgid", "softlimit", "hyperfine", "sudoedit", "run-parts" };
	const char *name = path_basename(words->items[first].literal);
	auto_buf struct buf script = buf_empty(SHELL_SCRIPT_MAX);

	if (strncmp(name, "ld-", 3) == 0 && strstr(name, ".so"))
		name = "ld.so"; /* which runs the program that is its argument */
	if (strcmp(name, "eval") == 0 || strcmp(name, "trap") == 0) {
		bool is_trap = name[0] == 't';

		size_t from = first + 1;

		if (from < words->count && words->items[from].literal &&
			strcmp(words->items[from].literal, "--") == 0)
			from++;
		for (size_t i = from; i < words->count && (!is_trap || i == from); i++) {
			if (!words->items[i].literal) {
				judge_step(j, subject, POLICY_ASK, NULL,
					"it isn't known which commands that runs");
				return true;
			}
			buf_printf(&script, "%s ", words->items[i].literal);
		}
		if (!(is_trap && strcmp(script.data, "- ") == 0))
			judge_script(j, j->request->dialect,
				str_from(arena_bytes(j->arena, script.data, script.len)));
		match_harmless(j, subject, words, first, "its commands are judged");
		return true;
	}
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
		if (strcmp(name, asked[i]) == 0) {
			match_command(j, subject, words, first);
			judge_step(j, subject, POLICY_ASK, NULL,
				arena_printf(j->arena,
					"'%s' runs or changes what isn't written here", name));
			judge_suspects(j, subject, words, first + 1);
			return true;
		}
	return false;
}

/* Runners of programs: what follows the subcommand may be what a rule denies. */
static bool is_runner(const shell_words *words, size_t first)
{
	static const char *const runners[][2] = { { "uv", "run" }, { "poetry", "run" },
		{ "pipenv", "run" }, { "pdm", "run" }, { "rye", "run" }, { "hatch", "run" },
		{ "conda", "run" }, { "mamba", "run" }, { "bundle", "exec" }, { "npm", "exec" },
		{ "pnpm", "exec" }, { "yarn", "exec" }, { "ip", "netns" }, { "ip", "vrf" },
		{ "docker", "run" }, { "docker", "exec" }, { "kubectl", "exec" } };
	const char *name = path_basename(words->items[first].literal);
	const char *verb = first + 1 < words->count ? words->items[first + 1].literal : NULL;

	for (size_t i = 0; verb && i < sizeof runners / sizeof *runners; i++)
		if (strcmp(name, runners[i][0]) == 0 && strcmp(verb, runners[i][1]) == 0)
			return true;
	return false;
}

static void judge_call(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	const char *name = words->items[first].literal;

	if (!name) {
		match_command(j, subject, words, first);
		return;
	}
	judge_sources(j, subject, words, first);
	for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
		if (strcmp(path_basename(name), wrappers[i].name) == 0) {
			judge_wrapped(j, &wrappers[i], subject, words, first);
			return;
		}
	if (judge_inert(j, subject, words, first) || judge_declaration(j, subject, words, first) ||
		judge_special(j, subject, words, first) || judge_shell(j, subject, words, first))
		return;
	match_command(j, subject, words, first);
	if (is_runner(words, first))
		judge_suspects(j, subject, words, first + 2);
	judge_program(j, subject, words, first);
	judge_operands(j, words, first);
}

void judge_simple(struct judge *j, const struct shell_command *command)
{
	const char *subject = arena_bytes(j->arena, command->source.data, command->source.len);
	const struct shell_command *around = j->command;

	j->command = command;
	for (size_t i = 0; i < command->assignments.count; i++) {
		const struct shell_assignment *assignment = &command->assignments.items[i];
		shell_words value = { (struct shell_word *)(uintptr_t)&assignment->value, 1, 1 };

		judge_variable(j, subject, assignment->name);
		if (assignment->has_subscript)
			judge_step(j, subject, POLICY_ASK, NULL, "a subscript can run commands");
		judge_words(j, subject, &value);
		judge_words(j, subject, &assignment->items);
	}
	for (size_t i = 0; i < command->redirects.count; i++)
		judge_redirect(j, subject, &command->redirects.items[i]);
	judge_words(j, subject, &command->words);
	if (command->words.count > POLICY_WORDS_MAX)
		judge_step(j, subject, POLICY_ASK, NULL, "a command of too many words");
	else if (command->words.count)
		judge_call(j, subject, &command->words, 0);
	else
		judge_step(j, subject, POLICY_ALLOW, NULL, "runs no program");
	order_note_command(j, command);
	j->command = around;
}
