/* A simple command: its assignments, redirections, name, wrappers and arguments. */
#include "policy/shapes.h"

#include "base/buf.h"
#include "base/path.h"

static void judge_call(
	struct judge *j, const char *subject, const shell_words *words, size_t first);

static void judge_variable(struct judge *j, const char *subject, const char *name)
{
	if (judge_spend(j, 128) && variable_is_dangerous(name))
		judge_ask(j, subject, "'%s' changes what runs", name);
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
		judge_ask(j, subject, "it isn't known which variable that sets");
		return;
	}
	judge_variable(j, subject, arena_bytes(j->arena, text, strcspn(text, "=+")));
}

/* A word behind which the command of a wrapper begins, if it stays one word. */
static void judge_one_word(struct judge *j, const char *subject, const struct shell_word *word)
{
	if (word_splits(word))
		judge_ask(
			j, subject, "an expanded word may be several, and the command another one");
}

/* Shells leave NAME=$value one word only where they read the name of the command as such. */
static bool shell_knows_declaration(const struct judge *j, const struct shell_word *name)
{
	const char *wrapper = j->within ? strrchr(j->within, ' ') : NULL;
	wrapper = wrapper ? wrapper + 1 : j->within ? j->within : "";
	return name->is_bare && strcmp(wrapper, "command") != 0 && strcmp(wrapper, "builtin") != 0;
}

/* Commands of the shell that set variables by their arguments. */
static bool judge_declaration(
	struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const char names[] =
		"export declare typeset local readonly read mapfile readarray getopts unset";
	if (!words_have(names, words->items[first].literal))
		return false;
	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;
		if (!text || text[0] != '-')
			judge_declared(j, subject, &words->items[i]);
		if (!text && !shell_knows_declaration(j, &words->items[first]))
			judge_one_word(j, subject, &words->items[i]);
		if (text && text[0] == '-' &&
			strpbrk(text, "niACc")) /* a reference, an evaluated number, a callback */
			judge_ask(j, subject, "an option that evaluates values");
	}
	match_harmless(j, subject, words, first, "sets variables of the shell");
	return true;
}

static bool set_option_is_harmless(const shell_words *words, size_t i)
{
	static const char options[] = "errexit nounset pipefail xtrace noglob verbose";
	const char *text = words->items[i].literal;
	return words_have(options, text) ||
	       (text && (text[0] == '-' || text[0] == '+') && text[1] &&
		       !text[1 + strspn(text + 1, "euxovf")]);
}

/* Whether an expanded word may make `test` evaluate a subscript, as in -v 'a[$(id)]': it does not
 * if it is one word, and an operator or the end comes next. `wait -p` evaluates one as well. */
static bool may_evaluate(const char *name, const shell_words *words, size_t i)
{
	const struct shell_word *word = &words->items[i];
	bool is_test = strcmp(name, "test") == 0 || strcmp(name, "[") == 0;
	const char *next = i + 1 < words->count ? words->items[i + 1].literal : "]";
	if (strcmp(name, "wait") == 0)
		return word_splits(word) || word_may_begin_option(word);
	return is_test && (word_splits(word) || (word_may_begin_option(word) &&
							(!next || !strchr("-=!<>]", next[0]))));
}

/* Commands of the shell that have no effect outside of it. */
static bool judge_inert(
	struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const char names[] =
		": true false [ test exit return break continue shift wait cd pushd popd set";
	const char *name = words->items[first].literal;
	if (!words_have(names, name))
		return false;
	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;
		if (strcmp(name, "set") == 0 && !set_option_is_harmless(words, i)) {
			judge_ask(j, subject, "'set' with more than harmless options");
			return true;
		}
		if (text ? strcmp(text, "-v") == 0 || strcmp(text, "-R") == 0 ||
					(strcmp(name, "wait") == 0 && text[0] == '-')
			 : may_evaluate(name, words, i)) {
			judge_ask(j, subject, "a test that evaluates values");
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

/* env -S: the words of a command in one. */
static void judge_split(struct judge *j, const struct shell_word *word)
{
	if (word->literal)
		judge_script(j, SHELL_SH, str_from(word->literal));
}

static const struct shape_item *find_effect(const struct shape_reading *reading, char effect)
{
	for (size_t i = reading->items.count; i-- > 0;)
		if (reading->items.items[i].effect == effect)
			return &reading->items.items[i];
	return NULL;
}

/* The index of the wrapped command, after assignments and operands; words->count: none. */
static size_t wrapped_at(struct judge *j, const struct shape *shape, const char *subject,
	const shell_words *words, size_t at)
{
	const char *operand = shape->operands;
	if (*operand == '=' && at < words->count && words->items[at].literal &&
		strcmp(words->items[at].literal, "-") == 0)
		at++; /* env -i */
	for (; *operand == '=' && at < words->count; at++) {
		const struct shell_word *word = &words->items[at];
		const char *text = word->literal       ? word->literal
				   : word->parts.count ? word->parts.items[0].text
						       : NULL;
		if (!text || !strchr(text, '='))
			break;
		judge_declared(j, subject, word);
		judge_one_word(j, subject, word);
	}
	for (operand += *operand == '='; *operand != '>' && at < words->count; operand++, at++) {
		judge_one_word(j, subject, &words->items[at]);
		if (*operand == 'w')
			judge_path(j, POLICY_WRITE, &words->items[at]);
	}
	return at;
}

/* The words of the wrapped command as they are known before it runs. */
static shell_words inner_words(struct judge *j, const struct shape *shape, const shell_words *words,
	size_t at, const struct shape_reading *reading)
{
	const struct shape_item *replaced = find_effect(reading, 'I');
	const char *mark = !replaced ? NULL : replaced->has_value ? replaced->value.literal : "{}";
	shell_words inner = { 0 };
	for (; at < words->count; at++) {
		struct shell_word word = words->items[at];
		if (replaced && (!mark || !word.literal || strstr(word.literal, mark)))
			word = (struct shell_word){ .source = word.source };
		vec_push(j->arena, &inner, word);
	}
	/* With -n after -I it adds words all the same. */
	if (strchr(shape->operands, '+'))
		vec_push(j->arena, &inner, (struct shell_word){ .source = STR("…") });
	return inner;
}

static void judge_inner(
	struct judge *j, const char *subject, const char *wrapper, const shell_words *inner)
{
	const char *within = j->within;
	j->within = within ? arena_printf(j->arena, "%s, %s", within, wrapper) : wrapper;
	if (++j->depth <= POLICY_DEPTH_MAX)
		judge_call(j, subject, inner, 0);
	else
		judge_give_up(j, "commands in commands are nested too deep");
	j->depth--;
	j->within = within;
}

/* flock FILE -c SCRIPT */
static bool is_script_option(const struct shape *shape, const struct shell_word *word)
{
	return strcmp(shape->names, "flock") == 0 && word->literal &&
	       (strcmp(word->literal, "-c") == 0 || strcmp(word->literal, "--command") == 0);
}

/* Programs that run the command in their arguments. */
static void judge_wrapped(struct judge *j, const struct shape *shape, const char *subject,
	const shell_words *words, size_t first)
{
	/* They start a shell where no command is given. */
	static const char shells[] = "fakeroot pkexec doas setpriv torsocks dbus-run-session";
	const char *name = path_basename(words->items[first].literal);
	bool is_moved = j->is_moved;
	struct shape_reading reading;
	shape_read(j->arena, shape, words, first, &reading);
	const struct shape_item *split = find_effect(&reading, 'S');
	if (!reading.unknown && find_effect(&reading, 'n')) {
		match_harmless(j, subject, words, first, "runs nothing");
		return;
	}
	if (strcmp(name, "exec") == 0 && first + 1 == words->count) {
		match_harmless(j, subject, words, first, "redirects the shell itself");
		return;
	}
	if (!(j->policy->is_claude && claude_strips(name)))
		match_command(j, subject, words, first);
	judge_shape_items(j, subject, shape, words, &reading);
	if (split)
		judge_split(j, &split->value);
	if (reading.unknown || split) {
		judge_ask(j, subject, reading.unknown ? "%s" : "it isn't known what '%s' runs",
			reading.unknown ? reading.unknown : name);
		judge_wrapper_files(j, words, first, words->count);
		judge_suspects(j, subject, words, first + 1);
		j->is_moved = is_moved;
		return;
	}
	size_t at = wrapped_at(j, shape, subject, words, reading.end);
	judge_wrapper_files(j, words, first, at);
	if (at < words->count && is_script_option(shape, &words->items[at])) {
		if (at + 1 < words->count && words->items[at + 1].literal)
			judge_script(j, SHELL_SH, str_from(words->items[at + 1].literal));
		else
			judge_ask(j, subject, "it isn't known what 'flock' runs");
	} else if (at < words->count) {
		shell_words inner = inner_words(j, shape, words, at, &reading);
		judge_inner(j, subject, name, &inner);
	} else if (words_have(shells, name)) {
		judge_ask(j, subject, "a shell that reads commands from its input");
	}
	j->is_moved = is_moved;
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
		{ "ash", false, SHELL_SH }, { "hush", false, SHELL_SH }, { "zsh", false, SHELL_SH },
		{ "ksh", false, SHELL_SH }, { "mksh", false, SHELL_SH },
		{ "fish", false, SHELL_SH }, { "csh", false, SHELL_SH },
		{ "tcsh", false, SHELL_SH } };
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
			judge_ask(j, subject, "an option that changes what the shell runs");
		reads_input |= letters[0] != '-' && strchr(letters, 's');
		/* Also +c: shells don't look at the sign. */
		has_script |= letters[0] != '-' && strchr(letters, 'c');
		/* -o OPTION, --rcfile FILE: the next word is a value */
		if ((letters[0] != '-' && strpbrk(letters, "oO")) ||
			strcmp(letters, "-rcfile") == 0 || strcmp(letters, "-init-file") == 0)
			at++;
	}
	if (at >= words->count || reads_input ||
		(words->items[at].literal && strcmp(words->items[at].literal, "-") == 0)) {
		judge_ask(j, subject, "a shell that reads commands from its input");
		judge_input(j, shells[i].dialect);
	} else if (has_script && shells[i].is_known && words->items[at].literal) {
		const char *within = j->within;
		j->within = within ? arena_printf(j->arena, "%s, %s -c", within, name)
				   : arena_printf(j->arena, "%s -c", name);
		judge_script(j, shells[i].dialect, str_from(words->items[at].literal));
		j->within = within;
	} else if (has_script || !words->items[at].literal) {
		judge_ask(j, subject, "it isn't known which commands the shell runs");
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
	static const char asked[] =
		". source alias unalias enable bind complete compgen compopt hash shopt let su sg "
		"newgrp runuser parallel script watch entr at batch crontab ssh fc history dirs "
		"jobs bg fg disown ulimit umask vi vim vimdiff nvim view ex ed red emacs nano "
		"pico tmux screen gdb lldb expect socat telnet ssh-agent gpg-agent "
		"start-stop-daemon daemonize inotifywait caller suspend logout bwrap firejail "
		"capsh perf ld.so setarch linux32 linux64 i386 x86_64 unshare nsenter numactl "
		"runcon strace ltrace proot rlwrap xvfb-run systemd-run systemd-inhibit uclampset "
		"coresched cpulimit chroot prlimit choom proxychains proxychains4 valgrind gosu "
		"su-exec tini dumb-init chpst setuidgid softlimit hyperfine sudoedit run-parts";
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
				judge_ask(j, subject, "it isn't known which commands that runs");
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
	if (!words_have(asked, name))
		return false;
	match_command(j, subject, words, first);
	judge_ask(j, subject, "'%s' runs or changes what isn't written here", name);
	judge_suspects(j, subject, words, first + 1);
	return true;
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
	/* Each word is looked for in tables of names and options. */
	if (!judge_spend(j, 64 * (1 + words->count - first)))
		return;
	if (!name) {
		match_command(j, subject, words, first);
		return;
	}
	judge_sources(j, subject, words, first);
	const struct shape *shape = shape_find(j->arena, name);
	if (shape && shape_is_wrapper(shape)) {
		judge_wrapped(j, shape, subject, words, first);
		return;
	}
	if (judge_inert(j, subject, words, first) || judge_declaration(j, subject, words, first) ||
		judge_special(j, subject, words, first) || judge_shell(j, subject, words, first))
		return;
	match_command(j, subject, words, first);
	if (is_runner(words, first))
		judge_suspects(j, subject, words, first + 2);
	judge_program(j, subject, words, first);
	judge_git_config(j, subject, words, first);
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
			judge_ask(j, subject, "a subscript can run commands");
		judge_words(j, subject, &value);
		judge_words(j, subject, &assignment->items);
	}
	for (size_t i = 0; i < command->redirects.count; i++)
		judge_redirect(j, subject, &command->redirects.items[i]);
	judge_words(j, subject, &command->words);
	if (command->words.count > POLICY_WORDS_MAX)
		judge_give_up(j, "a command of too many words");
	else if (command->words.count)
		judge_call(j, subject, &command->words, 0);
	else
		judge_step(j, subject, POLICY_ALLOW, NULL, "runs no program");
	order_note_command(j, command);
	j->command = around;
}
