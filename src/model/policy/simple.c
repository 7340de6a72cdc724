/* A simple command: its assignments, redirections, name, wrappers and arguments. */
#include "model/policy/internal.h"

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
	judge_step(j, subject, POLICY_ALLOW, NULL, "sets variables of the shell");
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
		if (text && (strcmp(text, "-v") == 0 || strcmp(text, "-R") == 0)) {
			judge_step(j, subject, POLICY_ASK, NULL, "a test that evaluates values");
			return true;
		}
	}
	judge_step(j, subject, POLICY_ALLOW, NULL, "has no effect outside of the shell");
	return true;
}

/* Programs that run the command in their arguments. */
static const struct wrapper {
	const char *name;
	const char *with_value; /* letters of options that take the next word */
	unsigned operands;	/* before the command */
	bool has_assignments;
	bool adds_words; /* the command gets more arguments than are written */
} wrappers[] = {
	{ "env", "uC", 0, true, false },
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
	{ "sudo", "ugpCrtThDRU", 0, true, false },
	{ "doas", "uC", 0, false, false },
	{ "busybox", "", 0, false, false },
	{ "toybox", "", 0, false, false },
	{ "taskset", "", 1, false, false },
	{ "chrt", "", 1, false, false },
	{ "flock", "wE", 1, false, false },
	{ "chroot", "", 1, false, false },
	{ "setarch", "", 0, false, false },
	{ "unshare", "", 0, false, false },
	{ "nsenter", "t", 0, false, false },
	{ "strace", "eopPsSu", 0, false, false },
	{ "ltrace", "eopsSu", 0, false, false },
	{ "fakeroot", "", 0, false, false },
	{ "eatmydata", "", 0, false, false },
	{ "unbuffer", "", 0, false, false },
};

/* The place of the wrapped command. SIZE_MAX: not known; words->count: there is none. */
static size_t wrapped_at(struct judge *j, const struct wrapper *wrapper, const char *subject,
	const shell_words *words, size_t at)
{
	unsigned operands = wrapper->operands;

	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;

		if (!text && word_may_be_option(&words->items[at]))
			return operands ? SIZE_MAX : at; /* a name that is expanded */
		if (text && strcmp(text, "--") == 0) {
			at++;
			break;
		}
		if (text && text[0] == '-' && text[1]) {
			if (strncmp(text, "--", 2) == 0) {
				if (!strchr(text, '=') && strcmp(text, "--null") != 0)
					return SIZE_MAX; /* it may take the next word */
				continue;
			}
			if (strchr(text + 1, 'S') && strcmp(wrapper->name, "env") == 0)
				return SIZE_MAX;
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
	return at + operands < words->count ? at + operands : words->count;
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
		judge_step(j, subject, POLICY_ALLOW, NULL, "asks where a command is");
		return;
	}
	if (strcmp(wrapper->name, "exec") == 0 && first + 1 == words->count) {
		judge_step(j, subject, POLICY_ALLOW, NULL, "redirects the shell itself");
		return;
	}
	if (!(j->policy->is_claude && claude_strips(wrapper->name)))
		match_command(j, subject, words, first);
	if (at == SIZE_MAX) {
		judge_step(j, subject, POLICY_ASK, NULL,
			arena_printf(j->arena, "it isn't known what '%s' runs", wrapper->name));
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
	bool has_script = false;

	while (i < count && strcmp(name, shells[i].name) != 0)
		i++;
	if (i == count)
		return false;
	match_command(j, subject, words, first);
	for (; at < words->count && words->items[at].literal &&
		words->items[at].literal[0] == '-' && words->items[at].literal[1];
		at++) {
		const char *letters = words->items[at].literal + 1;

		if (letters[strspn(letters, "cexuv")])
			judge_step(j, subject, POLICY_ASK, NULL,
				"an option that changes what the shell runs");
		has_script |= strchr(letters, 'c') != NULL;
	}
	if (at >= words->count) {
		judge_step(
			j, subject, POLICY_ASK, NULL, "a shell that reads commands from its input");
	} else if (has_script && shells[i].is_known && words->items[at].literal) {
		const char *within = j->within;

		j->within = within ? arena_printf(j->arena, "%s, %s -c", within, name)
				   : arena_printf(j->arena, "%s -c", name);
		judge_script(j, shells[i].dialect, str_from(words->items[at].literal));
		j->within = within;
	} else if (has_script || !words->items[at].literal) {
		judge_step(j, subject, POLICY_ASK, NULL,
			"it isn't known which commands the shell runs");
	}
	return true;
}

/* eval, trap and the commands that change how the shell reads the rest of the script. */
static bool judge_special(
	struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const char *const asked[] = { ".", "source", "alias", "unalias", "enable", "bind",
		"complete", "compopt", "hash", "shopt", "let", "su", "runuser", "parallel",
		"script", "watch", "at", "batch", "crontab", "ssh", "fc", "history", "dirs", "jobs",
		"bg", "fg", "disown", "ulimit", "umask" };
	const char *name = path_basename(words->items[first].literal);
	const char *script = "";

	if (strcmp(name, "eval") == 0 || strcmp(name, "trap") == 0) {
		bool is_trap = name[0] == 't';

		for (size_t i = first + 1; i < words->count && (!is_trap || i == first + 1); i++) {
			if (!words->items[i].literal) {
				judge_step(j, subject, POLICY_ASK, NULL,
					"it isn't known which commands that runs");
				return true;
			}
			script = arena_printf(j->arena, "%s%s ", script, words->items[i].literal);
		}
		if (!(is_trap && strcmp(script, "- ") == 0))
			judge_script(j, j->request->dialect, str_from(script));
		judge_step(j, subject, POLICY_ALLOW, NULL, "its commands are judged");
		return true;
	}
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
		if (strcmp(name, asked[i]) == 0) {
			match_command(j, subject, words, first);
			judge_step(j, subject, POLICY_ASK, NULL,
				arena_printf(j->arena,
					"'%s' runs or changes what isn't written here", name));
			return true;
		}
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
	judge_program(j, subject, words, first);
	judge_operands(j, words, first);
}

void judge_simple(struct judge *j, const struct shell_command *command)
{
	const char *subject = arena_bytes(j->arena, command->source.data, command->source.len);

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
	if (command->words.count)
		judge_call(j, subject, &command->words, 0);
	else
		judge_step(j, subject, POLICY_ALLOW, NULL, "runs no program");
}
