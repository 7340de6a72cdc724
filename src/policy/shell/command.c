#include "policy/shell/internal.h"

const char *shell_next_word(struct shell_parser *p)
{
	size_t count = 0;
	while (!shell_ends_word(shell_look(p, count)) && count < sizeof p->word - 1) {
		p->word[count] = (char)shell_look(p, count);
		count++;
	}
	p->word[count] = '\0';
	return count > 0 && shell_ends_word(shell_look(p, count)) &&
			       strspn(p->word, "abcdefghijklmnopqrstuvwxyz{}[]!") == count
		       ? p->word
		       : NULL;
}

/* name=, name+= or name[ at the beginning of a command. The length of the name; 0: none. */
static size_t assigned_name_len(const struct shell_parser *p)
{
	struct shell_parser ahead = *p;
	size_t len = 0;
	int c = shell_current(&ahead);
	if (!shell_is_name_start(c))
		return 0;
	for (; shell_is_name(c); c = shell_current(&ahead), len++)
		ahead.at++;
	return c == '=' || c == '[' || (c == '+' && shell_look(&ahead, 1) == '=') ? len : 0;
}

/* Whether a command's assignments may still come: bash also has them after its reserved word
 * "time", whose options are -p and --. */
static bool may_assign(const struct shell_command *command)
{
	const shell_words *words = &command->words;
	for (size_t i = 0; i < words->count; i++)
		if (!str_is(words->items[i].source, "time") &&
			(i == 0 || words->items[i].source.data[0] != '-'))
			return false;
	return true;
}

/* After "name=(". */
static int read_array(struct shell_parser *p, struct shell_assignment *assignment)
{
	struct shell_word item;
	assignment->is_array = true;
	for (;;) {
		if (shell_skip_lines(p) < 0)
			return -1;
		if (shell_accept(p, ")"))
			return 0;
		if (shell_current(p) == '[')
			return shell_unknown(p, "an array with named items");
		if (shell_read_word(p, &item) < 0)
			return -1;
		vec_push(p->arena, &assignment->items, item);
	}
}

static int read_assignment(struct shell_parser *p, size_t name_len, struct shell_command *command)
{
	struct shell_assignment out = { 0 };
	char *name = arena_alloc(p->arena, name_len + 1);
	for (size_t i = 0; i < name_len; i++, p->at++)
		name[i] = (char)shell_current(p);
	out.name = name;
	if (shell_current(p) != '=' && p->dialect != SHELL_BASH)
		return shell_unknown(p, "an assignment that only bash knows");
	if (shell_accept(p, "[")) {
		out.has_subscript = true;
		if (shell_read_index(p, &out.index) < 0)
			return -1;
	}
	out.is_appended = shell_accept(p, "+");
	if (!shell_accept(p, "="))
		return shell_unknown(p, "neither an assignment nor a command for certain");
	if (shell_current(p) == '(') {
		if (p->dialect != SHELL_BASH || out.has_subscript)
			return shell_unknown(p, "an array");
		shell_skip(p, 1);
		if (read_array(p, &out) < 0)
			return -1;
	} else if (shell_read_value(p, &out.value) < 0) {
		return -1;
	}
	vec_push(p->arena, &command->assignments, out);
	return 0;
}

static bool ends_command(int c)
{
	return c < 0 || memchr("\n;&|()", c, 6) != NULL;
}

/* "name ( ) compound", where the name is the command's only word so far. */
static int read_function(struct shell_parser *p, struct shell_command *command)
{
	const struct shell_word *name = command->words.count ? &command->words.items[0] : NULL;
	if (command->words.count != 1 || command->assignments.count || command->redirects.count ||
		!name->is_bare || !shell_is_name_start((unsigned char)name->literal[0]) ||
		name->literal[strspn(name->literal, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"
						    "STUVWXYZ_0123456789")])
		return shell_unknown(p, "'(' within a command");
	shell_skip(p, 1);
	shell_skip_blanks(p);
	if (!shell_accept(p, ")"))
		return shell_unknown(p, "'(' within a command");
	return shell_read_function_body(p, command);
}

static bool is_reserved(const struct shell_word *word)
{
	static const char *const reserved[] = { "then", "elif", "else", "fi", "do", "done", "esac",
		"in", "{", "}", "[[", "]]", "!", "if", "while", "until", "for", "case", "select",
		"function", "coproc" };
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
		if (str_is(word->source, reserved[i]) ||
			(word->is_bare && strcmp(word->literal, reserved[i]) == 0))
			return true; /* also where a backslash-newline is in it */
	return false;
}

/* A reserved word where a command's name is expected: after "!", a redirection or bash's "time",
 * which this grammar takes for a command. */
static int check_name(struct shell_parser *p, const struct shell_command *command)
{
	const shell_words *words = &command->words;
	size_t i = 0;
	while (i + 1 < words->count && (str_is(words->items[i].source, "time") ||
					       (i && words->items[i].source.data[0] == '-')))
		i++;
	if (words->count &&
		(is_reserved(&words->items[0]) || (i > 0 && is_reserved(&words->items[i])) ||
			str_is(words->items[i].source, "time")))
		return shell_unknown(p, "an unexpected reserved word");
	for (i = 0; i < command->assignments.count && words->count; i++)
		if (command->assignments.items[i].has_subscript ||
			command->assignments.items[i].is_array)
			return shell_unknown(p, "an array before a command");
	return 0;
}

static int read_simple(struct shell_parser *p, struct shell_command *command)
{
	struct shell_word word;
	for (;;) {
		size_t name_len;
		shell_skip_blanks(p);
		if (shell_at_redirect(p)) {
			if (shell_read_redirect(p, command) < 0)
				return -1;
			continue;
		}
		int c = shell_current(p);
		if (c == '(')
			return read_function(p, command);
		if (ends_command(c))
			break;
		name_len = may_assign(command) ? assigned_name_len(p) : 0;
		if (name_len > 0) {
			if (read_assignment(p, name_len, command) < 0)
				return -1;
			continue;
		}
		if (shell_read_word(p, &word) < 0)
			return -1;
		vec_push(p->arena, &command->words, word);
	}
	if (!command->words.count && !command->assignments.count && !command->redirects.count)
		return shell_unknown(p, "a command is missing");
	return check_name(p, command);
}

static int read_command(struct shell_parser *p, struct shell_command *command)
{
	const char *word = shell_current(p) == '(' ? "(" : shell_next_word(p);
	size_t begin = p->at;
	bool is_read = false;
	command->line = shell_line(p);
	if (shell_enter(p) < 0 || shell_check_size(p) < 0)
		return -1;
	if (word && shell_read_compound(p, word, command, &is_read) < 0)
		return -1;
	if (!is_read && read_simple(p, command) < 0)
		return -1;
	p->depth--;
	command->source = (struct str){ p->data + begin, p->at - begin };
	return 0;
}

/* [!] command [| command]… */
static int read_pipeline(struct shell_parser *p, struct shell_list *list)
{
	const char *word = shell_next_word(p);
	if (word && strcmp(word, "!") == 0) {
		shell_skip(p, 1);
		shell_skip_blanks(p);
		word = shell_next_word(p);
		if (word && strcmp(word, "!") == 0)
			return shell_unknown(p, "'!' twice");
	}
	for (;;) {
		struct shell_command *command = arena_alloc(p->arena, sizeof *command);
		if (read_command(p, command) < 0)
			return -1;
		vec_push(p->arena, &list->commands, command);
		shell_skip_blanks(p);
		if (shell_current(p) != '|' || shell_look(p, 1) == '|')
			return 0;
		shell_skip(p, 1);
		if (shell_current(p) == '&' && p->dialect != SHELL_BASH)
			return shell_unknown(p, "'|&' that shells read differently");
		shell_accept(p, "&"); /* errors go the same way */
		command->is_piped = true;
		if (shell_skip_lines(p) < 0)
			return -1;
		word = shell_next_word(p);
		if (word && strcmp(word, "!") == 0)
			return shell_unknown(p, "'!' within a pipeline");
	}
}

/* What may follow a pipeline. *is_more: another pipeline has to follow (&&, ||). */
static int read_separator(struct shell_parser *p, bool *is_more, bool *is_end)
{
	int c;
	shell_skip_blanks(p);
	c = shell_current(p);
	*is_more = *is_end = false;
	if (shell_accept(p, "&&") || shell_accept(p, "||")) {
		*is_more = true;
	} else if (c == ';' && shell_look(p, 1) != ';' && shell_look(p, 1) != '&') {
		shell_skip(p, 1);
	} else if (c == '&') {
		shell_skip(p, 1);
	} else if (c != '\n') {
		*is_end = true;
		return 0;
	}
	return shell_skip_lines(p);
}

/* Whether a command can't begin here: the end, or a word or operator that closes a compound. */
static bool at_list_end(struct shell_parser *p)
{
	static const char *const closing[] = { "then", "elif", "else", "fi", "do", "done", "esac",
		"}" };
	int c = shell_current(p);
	const char *word;
	if (c < 0 || c == ')' || c == ';')
		return true;
	word = shell_next_word(p);
	for (size_t i = 0; word && i < sizeof closing / sizeof *closing; i++)
		if (strcmp(word, closing[i]) == 0)
			return true;
	return false;
}

int shell_read_list(struct shell_parser *p, struct shell_list **list)
{
	struct shell_list *out = arena_alloc(p->arena, sizeof *out);
	bool is_more = false, is_end = false;
	if (shell_skip_lines(p) < 0)
		return -1;
	while (!is_end && (is_more || !at_list_end(p))) {
		if (is_more && at_list_end(p))
			return shell_unknown(p, "a command is missing");
		if (read_pipeline(p, out) < 0 || read_separator(p, &is_more, &is_end) < 0)
			return -1;
	}
	*list = out;
	return 0;
}

int shell_parse(struct str script, enum shell_dialect dialect, struct arena *arena,
	const struct shell_list **list, struct error *err)
{
	struct shell_parser p = { .data = script.data,
		.len = script.len,
		.dialect = dialect,
		.line = 1,
		.arena = arena,
		.size_max = arena->size + SHELL_TREE_MAX,
		.err = err };
	struct shell_list *out;
	if (script.len > SHELL_SCRIPT_MAX)
		return fail(err, ERR_LIMIT, "the script has more than %zu bytes", SHELL_SCRIPT_MAX);
	if (memchr(script.data, '\0', script.len))
		return fail(err, ERR_INVALID, "the script has a NUL byte");
	if (str_utf8_prefix(script.data, script.len) != script.len)
		return fail(err, ERR_INVALID, "the script isn't valid UTF-8");
	if (shell_read_list(&p, &out) < 0)
		return -1;
	if (shell_current(&p) >= 0)
		return shell_unknown(&p, "unexpected '%c'", shell_current(&p));
	if (p.pending.count)
		return shell_unknown(&p, "the body of a here-document is missing");
	*list = out;
	return 0;
}
