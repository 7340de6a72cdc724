#include "policy/shell/internal.h"

static void add(struct shell_parser *p, struct shell_word *word, const struct shell_part *part)
{
	vec_push(p->arena, &word->parts, *part);
}

/* Reads commands up to ")", which is the end of a substitution. */
static int read_commands(struct shell_parser *p, struct shell_part *part)
{
	__typeof__(p->pending) outer = p->pending;
	struct shell_list *list;
	size_t begin = p->at;
	if (shell_enter(p) < 0)
		return -1;
	p->pending = (__typeof__(p->pending)){ 0 };
	if (shell_read_list(p, &list) < 0)
		return -1;
	if (!shell_accept(p, ")"))
		return shell_unknown(p, "a substitution isn't closed");
	/* Shells disagree about where such a here-document begins, and where it ends. */
	if (p->pending.count || (outer.count && memchr(p->data + begin, '\n', p->at - begin)))
		return shell_unknown(p, "a here-document around the lines of a substitution");
	p->pending = outer;
	p->depth--;
	part->commands = list;
	return 0;
}

int shell_read_process(struct shell_parser *p, struct shell_word *word)
{
	struct shell_part part = { .kind = SHELL_PROCESS, .is_quoted = true };
	if (read_commands(p, &part) < 0)
		return -1;
	*word = (struct shell_word){ 0 };
	add(p, word, &part);
	return 0;
}

/* Copies the content of backquotes: a backslash quotes $, ` and \ before it is parsed, and more
 * than that within double quotes, where shells differ. */
static int unescape(struct shell_parser *p, bool is_quoted, char *text, size_t *len)
{
	for (; p->at < p->len && p->data[p->at] != '`'; p->at++) {
		char c = p->data[p->at], next = p->at + 1 < p->len ? p->data[p->at + 1] : '\0';
		if (c == '\n' && p->pending.count)
			return shell_unknown(
				p, "a here-document around the lines of a substitution");
		if (c == '\\' && next && strchr("$`\\", next))
			c = p->data[++p->at];
		else if (is_quoted && c == '\\')
			return shell_unknown(p, "a backslash within backquotes within quotes");
		text[(*len)++] = c;
	}
	return p->at < p->len ? 0 : shell_unknown(p, "a backquote isn't closed");
}

static size_t backquoted_len(const struct shell_parser *p)
{
	size_t at = p->at;
	while (at < p->len && p->data[at] != '`')
		at += p->data[at] == '\\' ? 2 : 1;
	return at - p->at;
}

static int read_backquoted(struct shell_parser *p, bool is_quoted, struct shell_word *word)
{
	struct shell_part part = { .kind = SHELL_COMMAND, .is_quoted = is_quoted };
	struct shell_parser inner;
	struct shell_list *list;
	char *text;
	size_t len = 0;
	p->at++;
	inner = *p;
	inner.line = shell_line(p);
	text = arena_alloc(p->arena, backquoted_len(p) + 1);
	if (unescape(p, is_quoted, text, &len) < 0)
		return -1;
	p->at++;
	inner.data = text;
	inner.len = len;
	inner.at = inner.line_at = 0;
	inner.pending = (__typeof__(inner.pending)){ 0 };
	if (shell_enter(&inner) < 0 || shell_read_list(&inner, &list) < 0)
		return -1;
	if (inner.at < inner.len || inner.pending.count)
		return shell_unknown(&inner, "the commands in backquotes aren't complete");
	part.commands = list;
	add(p, word, &part);
	return 0;
}

static bool is_arithmetic(int c, bool *has_names)
{
	*has_names |= shell_is_name_start(c);
	return shell_is_name(c) || (c >= 0 && strchr(" \t\n+-*/%<>=!&|^~?:,()[]#;", c));
}

int shell_read_arithmetic(struct shell_parser *p, struct shell_word *word)
{
	struct shell_part part = { .kind = SHELL_ARITHMETIC, .is_quoted = true };
	struct shell_word text;
	if (shell_read_text(p, SHELL_END_PARENTHESES, &text) < 0)
		return -1;
	/* Otherwise bash takes it for a subshell within a substitution. */
	if (!shell_accept(p, "))"))
		return shell_unknown(p, "neither arithmetic nor commands for certain");
	for (size_t i = 0; i < text.parts.count; i++) {
		const struct shell_part *piece = &text.parts.items[i];
		part.is_evaluated |= piece->kind != SHELL_TEXT;
		for (const char *c = piece->kind == SHELL_TEXT ? piece->text : ""; *c; c++)
			if (!is_arithmetic((unsigned char)*c, &part.is_evaluated))
				return shell_unknown(p, "'%c' in arithmetic", *c);
	}
	vec_push(p->arena, &part.words, text);
	add(p, word, &part);
	return 0;
}

/* The length of the operator of ${name…} that comes next; 0: none that is known. */
static size_t operator_len(const struct shell_parser *p, struct shell_part *part)
{
	static const struct {
		const char *text;
		bool is_bash;
	} operators[] = {
		{ ":-", false },
		{ ":=", false },
		{ ":?", false },
		{ ":+", false },
		{ "-", false },
		{ "=", false },
		{ "?", false },
		{ "+", false },
		{ "##", false },
		{ "#", false },
		{ "%%", false },
		{ "%", false },
		{ "//", true },
		{ "/#", true },
		{ "/%", true },
		{ "/", true },
		{ "^^", true },
		{ "^", true },
		{ ",,", true },
		{ ",", true },
		{ ":", true },
	};
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
		const char *text = operators[i].text;
		if (shell_look(p, 0) != text[0] || (text[1] && shell_look(p, 1) != text[1]))
			continue;
		part->is_evaluated |= strcmp(text, ":") == 0; /* ${name:offset:length} */
		part->is_assigned = text[strlen(text) - 1] == '=';
		return operators[i].is_bash && p->dialect != SHELL_BASH ? 0 : strlen(text);
	}
	return 0;
}

static void read_name(struct shell_parser *p, struct shell_part *part)
{
	char *name = arena_alloc(p->arena, 2);
	VEC(char) text = { 0 };
	int c = shell_current(p);
	if (!shell_is_name_start(c)) { /* one byte: a special parameter */
		name[0] = (char)c;
		part->text = name;
		p->at++;
		return;
	}
	for (; shell_is_name(c); c = shell_current(p)) {
		vec_push(p->arena, &text, (char)c);
		p->at++;
	}
	part->text = arena_bytes(p->arena, text.items, text.count);
}

static bool is_parameter(int c)
{
	return shell_is_name(c) || (c > 0 && strchr("@*#?-$!", c));
}

int shell_read_index(struct shell_parser *p, struct shell_word *index)
{
	size_t begin = p->at;
	if (shell_read_text(p, SHELL_END_BRACKET, index) < 0)
		return -1;
	/* Bash counts brackets, and looks for the last one beyond the word. */
	if (memchr(p->data + begin, '[', p->at - begin))
		return shell_unknown(p, "brackets within brackets");
	return 0;
}

/* [@], [*], or an index. */
static int read_subscript(struct shell_parser *p, struct shell_part *part)
{
	struct shell_word index;
	if (p->dialect != SHELL_BASH)
		return shell_unknown(p, "an array");
	if (shell_accept(p, "[@]") || shell_accept(p, "[*]"))
		return 0;
	shell_skip(p, 1);
	if (shell_read_index(p, &index) < 0)
		return -1;
	part->is_evaluated = true;
	vec_push(p->arena, &part->words, index);
	return 0;
}

/* After "${". */
static int read_braced(struct shell_parser *p, bool is_quoted, struct shell_word *word)
{
	struct shell_part part = { .kind = SHELL_PARAMETER, .is_quoted = is_quoted };
	int c = shell_current(p);
	bool is_length = c == '#' && is_parameter(shell_look(p, 1)) && shell_look(p, 1) != '-' &&
			 shell_look(p, 1) != '?';
	struct shell_word operand;
	size_t len;
	if (is_length)
		shell_skip(p, 1);
	c = shell_current(p);
	/* ${!name}: the value is a name in turn, of an array's element perhaps. */
	if (!is_parameter(c) || c == '!' || (c == '#' && shell_look(p, 1) != '}'))
		return shell_unknown(p, "an expansion that isn't known");
	bool is_number = c >= '0' && c <= '9';
	read_name(p, &part);
	while (is_number && (c = shell_current(p)) >= '0' && c <= '9')
		p->at++;
	if (shell_current(p) == '[' && read_subscript(p, &part) < 0)
		return -1;
	if (!shell_accept(p, "}")) {
		len = is_length ? 0 : operator_len(p, &part);
		if (!len)
			return shell_unknown(p, "an expansion that isn't known");
		shell_skip(p, len);
		if (shell_read_text(
			    p, is_quoted ? SHELL_END_QUOTED_BRACE : SHELL_END_BRACE, &operand) < 0)
			return -1;
		vec_push(p->arena, &part.words, operand);
	}
	add(p, word, &part);
	return 0;
}

static int read_substitution(struct shell_parser *p, bool is_quoted, struct shell_word *word)
{
	struct shell_part part = { .kind = SHELL_COMMAND, .is_quoted = is_quoted };
	if (read_commands(p, &part) < 0)
		return -1;
	add(p, word, &part);
	return 0;
}

int shell_read_expansion(struct shell_parser *p, bool is_quoted, struct shell_word *word)
{
	struct shell_part part = { .kind = SHELL_PARAMETER, .is_quoted = is_quoted };
	int next = shell_look(p, 1);
	if (shell_current(p) == '`')
		return read_backquoted(p, is_quoted, word);
	if ((next == '\'' || next == '"') && !is_quoted)
		return shell_unknown(p, "$%c…%c", next, next);
	if (next == '[')
		return shell_unknown(p, "$[…]");
	if (shell_accept(p, "$(("))
		return shell_read_arithmetic(p, word);
	if (shell_accept(p, "$("))
		return read_substitution(p, is_quoted, word);
	if (shell_accept(p, "${"))
		return read_braced(p, is_quoted, word);
	shell_skip(p, 1);
	if (!is_parameter(next)) {
		shell_add_text(p, word, "$", 1, is_quoted);
		return 0;
	}
	shell_current(p);
	read_name(p, &part);
	add(p, word, &part);
	return 0;
}
