#include "policy/shell/internal.h"

#include "base/buf.h"

/* How the bytes of a text are read, by where it ends. */
static const struct rules {
	bool splits;	      /* ends before a blank or an operator */
	bool keeps_quotes;    /* ' and " are text */
	bool has_quotes;      /* '…' and "…" quote; neither of both: they are refused */
	bool has_escapes;     /* a backslash quotes any byte; else only those of a quoted text */
	bool refuses_escapes; /* shells differ */
	bool has_patterns;    /* * ? [ { ~ are special */
	bool is_quoted;	      /* what is expanded is not split */
} rules_of_end[] = {
	[SHELL_END_BRACE] = { .has_quotes = true, .has_escapes = true, .has_patterns = true },
	[SHELL_END_QUOTED_BRACE] = { .refuses_escapes = true, .is_quoted = true },
	[SHELL_END_BRACKET] = { .refuses_escapes = true, .is_quoted = true },
	[SHELL_END_PARENTHESES] = { .refuses_escapes = true, .is_quoted = true },
	[SHELL_END_TEXT] = { .keeps_quotes = true, .is_quoted = true },
};
static const struct rules rules_of_word = {
	.splits = true, .has_quotes = true, .has_escapes = true, .has_patterns = true
};

static void add_part(struct shell_parser *p, struct shell_word *word, enum shell_part_kind kind,
	const char *text, bool is_quoted)
{
	vec_push(p->arena, &word->parts,
		(struct shell_part){ .kind = kind, .text = text, .is_quoted = is_quoted });
}

void shell_add_text(struct shell_parser *p, struct shell_word *word, const char *data, size_t len,
	bool is_quoted)
{
	struct shell_part *last =
		word->parts.count ? &word->parts.items[word->parts.count - 1] : NULL;
	char *text;
	if (!last || last->kind != SHELL_TEXT || last->is_quoted != is_quoted) {
		add_part(p, word, SHELL_TEXT, "", is_quoted);
		last = &word->parts.items[word->parts.count - 1];
	}
	text = (char *)(uintptr_t)last->text;
	for (size_t i = 0; i <= len; i++) { /* one more, for the NUL */
		text = vec_grow(p->arena, last->text_capacity ? text : NULL, last->text_len + i,
			&last->text_capacity, 1);
		text[last->text_len + i] = i < len ? data[i] : '\0';
	}
	last->text = text;
	last->text_len += len;
}

/* Bytes that some locale, terminal or reader of scripts treats as a blank or as a line's end. */
static int check_bare_byte(struct shell_parser *p, int c)
{
	const char *at = p->data + p->at;
	size_t len = p->len - p->at;
	if (c < 0x20 || c == 0x7f)
		return shell_unknown(p, "unquoted control character \\x%02x", (unsigned)c);
	if (c == 0xc2 && len > 1 && ((unsigned char)at[1] == 0xa0 || (unsigned char)at[1] == 0x85))
		return shell_unknown(p, "unquoted blank that isn't ASCII");
	if ((c == 0xe1 && len > 2 && memcmp(at, "\xe1\x9a\x80", 3) == 0) ||
		(c == 0xe2 && len > 2 &&
			(memcmp(at, "\xe2\x80", 2) == 0 || memcmp(at, "\xe2\x81\x9f", 3) == 0)) ||
		(c == 0xe3 && len > 2 && memcmp(at, "\xe3\x80\x80", 3) == 0))
		return shell_unknown(p, "unquoted blank that isn't ASCII");
	return 0;
}

static int refuse_line_in_quotes(struct shell_parser *p)
{
	return p->pending.count == 0
		       ? 0
		       : shell_unknown(p, "a quoted newline before the body of a here-document");
}

static int read_single_quoted(struct shell_parser *p, struct shell_word *word)
{
	const char *begin = p->data + ++p->at;
	const char *end = memchr(begin, '\'', p->len - p->at);
	if (!end)
		return shell_unknown(p, "a single quote isn't closed");
	size_t len = (size_t)(end - begin);
	if (memchr(begin, '\n', len) && refuse_line_in_quotes(p) < 0)
		return -1;
	shell_add_text(p, word, begin, len, true);
	p->at += len + 1;
	return 0;
}

/* After a backslash within double quotes or a here-document. */
static void read_quoted_escape(struct shell_parser *p, struct shell_word *word, const char *special)
{
	const char *at = p->data + p->at; /* the byte after the backslash */
	if (p->at < p->len && *at && strchr(special, *at)) {
		shell_add_text(p, word, at, 1, true);
		p->at++;
	} else {
		shell_add_text(p, word, "\\", 1, true);
	}
}

static int read_double_quoted(struct shell_parser *p, struct shell_word *word)
{
	p->at++;
	shell_add_text(p, word, "", 0, true); /* "" is a word */
	for (;;) {
		int c = shell_current(p);
		if (c < 0)
			return shell_unknown(p, "a double quote isn't closed");
		if (c == '$' || c == '`') {
			if (shell_read_expansion(p, true, word) < 0)
				return -1;
			continue;
		}
		p->at++;
		if (c == '"')
			return 0;
		if (c == '\n' && refuse_line_in_quotes(p) < 0)
			return -1;
		if (c == '\\')
			read_quoted_escape(p, word, "$`\"\\");
		else
			shell_add_text(p, word, p->data + p->at - 1, 1, true);
	}
}

static int read_escape(struct shell_parser *p, const struct rules *rules, struct shell_word *word)
{
	if (rules->refuses_escapes)
		return shell_unknown(p, "a backslash that shells read differently");
	p->at++;
	if (!rules->has_escapes) {
		read_quoted_escape(p, word, "$`\\");
		return 0;
	}
	if (p->at == p->len)
		return shell_unknown(p, "a backslash at the end");
	shell_add_text(p, word, p->data + p->at++, 1, true);
	return 0;
}

/* '~' is special at the beginning of a word, and in values after '=' and ':'. */
static bool may_be_home(const struct shell_parser *p, const struct shell_word *word)
{
	return word->parts.count == 0 || p->data[p->at - 1] == '=' || p->data[p->at - 1] == ':';
}

static int read_special(struct shell_parser *p, int c, struct shell_word *word, bool *is_read)
{
	*is_read = true;
	switch (c) {
	case '*':
	case '?':
	case '[':
		if (c == '[' && word->parts.count == 0 && shell_ends_word(shell_look(p, 1))) {
			shell_add_text(p, word, "[", 1, false); /* the command [ */
			break;
		}
		add_part(p, word, SHELL_PATTERN, arena_bytes(p->arena, p->data + p->at, 1), false);
		break;
	case '{':
		if (shell_look(p, 1) == '}') /* as find(1) wants it: no shell expands it */
			shell_add_text(p, word, "{", 1, false);
		else
			add_part(p, word, SHELL_BRACES, "{", false);
		break;
	case '~':
		if (may_be_home(p, word))
			add_part(p, word, SHELL_TILDE, "~", false);
		else
			shell_add_text(p, word, "~", 1, false);
		break;
	default:
		*is_read = false;
		return 0;
	}
	p->at++;
	return 0;
}

/* bash finds <(…) in an operand like ${x:-<(id)}; dash doesn't. */
static bool may_be_process(const struct shell_parser *p, int c, const struct rules *rules)
{
	return !rules->keeps_quotes && ((c == '<' || c == '>') && shell_look(p, 1) == '(');
}

/* Reads what begins with `c`, which doesn't end the text. */
static int read_piece(
	struct shell_parser *p, int c, const struct rules *rules, struct shell_word *word)
{
	bool is_read = false;
	if (shell_check_size(p) < 0)
		return -1;
	if (c == '$' || c == '`')
		return shell_read_expansion(p, rules->is_quoted, word);
	if ((c == '\'' || c == '"') && !rules->keeps_quotes) {
		if (!rules->has_quotes)
			return shell_unknown(p, "a quote that shells read differently");
		return c == '"' ? read_double_quoted(p, word) : read_single_quoted(p, word);
	}
	if (c == '\\')
		return read_escape(p, rules, word);
	if (rules->has_patterns && read_special(p, c, word, &is_read) < 0)
		return -1;
	if (is_read)
		return 0;
	if (may_be_process(p, c, rules) || (rules->has_patterns && strchr("()<>", c)))
		return shell_unknown(p, "'%c' within an expansion", c);
	if (!rules->keeps_quotes && c != '\t' && c != '\n' && check_bare_byte(p, c) < 0)
		return -1;
	if (c == '\n' && !rules->keeps_quotes && refuse_line_in_quotes(p) < 0)
		return -1;
	shell_add_text(p, word, p->data + p->at, 1, rules->is_quoted);
	p->at++;
	return 0;
}

static void finish(struct shell_parser *p, struct shell_word *word)
{
	auto_buf struct buf text = buf_empty(SHELL_SCRIPT_MAX + 1);
	word->is_bare = word->parts.count == 1 && word->parts.items[0].kind == SHELL_TEXT &&
			!word->parts.items[0].is_quoted;
	for (size_t i = 0; i < word->parts.count; i++) {
		if (word->parts.items[i].kind != SHELL_TEXT)
			return;
		buf_append(&text, word->parts.items[i].text, word->parts.items[i].text_len);
	}
	word->literal = arena_bytes(p->arena, text.data, text.len);
}

static int read_split(struct shell_parser *p, struct shell_word *word)
{
	struct shell_word out = { 0 };
	size_t begin;
	int c = shell_current(p);
	begin = p->at;
	for (; !shell_ends_word(c); c = shell_current(p))
		if (read_piece(p, c, &rules_of_word, &out) < 0)
			return -1;
	if ((c == '<' || c == '>') && shell_look(p, 1) == '(' && p->at > begin)
		return shell_unknown(p, "a process substitution within a word");
	if ((c == '<' || c == '>') && p->at > begin && p->data[begin] == '{')
		return shell_unknown(p, "a redirection that shells read differently");
	out.source = (struct str){ p->data + begin, p->at - begin };
	finish(p, &out);
	*word = out;
	return 0;
}

int shell_read_word(struct shell_parser *p, struct shell_word *word)
{
	int c = shell_current(p);
	if (p->dialect == SHELL_BASH && (c == '<' || c == '>') && shell_look(p, 1) == '(') {
		size_t begin = p->at;
		shell_skip(p, 2);
		if (shell_read_process(p, word) < 0)
			return -1;
		word->source = (struct str){ p->data + begin, p->at - begin };
		return shell_ends_word(shell_current(p))
			       ? 0
			       : shell_unknown(p, "a process substitution within a word");
	}
	if (shell_ends_word(c))
		return shell_unknown(p, "a word is missing");
	return read_split(p, word);
}

int shell_read_value(struct shell_parser *p, struct shell_word *word)
{
	return read_split(p, word);
}

/* Whether the text ends at `c`; reads the end. */
static bool at_end(struct shell_parser *p, enum shell_end end, int c, int *parentheses)
{
	switch (end) {
	case SHELL_END_BRACE:
	case SHELL_END_QUOTED_BRACE:
		return c == '}' && shell_accept(p, "}");
	case SHELL_END_BRACKET:
		return c == ']' && shell_accept(p, "]");
	case SHELL_END_PARENTHESES:
		*parentheses += (c == '(') - (c == ')');
		return *parentheses < 0;
	case SHELL_END_TEXT:
		break;
	}
	return false;
}

int shell_read_text(struct shell_parser *p, enum shell_end end, struct shell_word *word)
{
	struct shell_word out = { 0 };
	size_t begin = p->at, stop = p->at;
	int parentheses = 0;
	if (shell_enter(p) < 0)
		return -1;
	for (;;) {
		int c = shell_current(p);
		stop = p->at;
		if (at_end(p, end, c, &parentheses))
			break;
		if (c < 0 && end == SHELL_END_TEXT)
			break;
		if (c < 0)
			return shell_unknown(p, "an expansion isn't closed");
		if (read_piece(p, c, &rules_of_end[end], &out) < 0)
			return -1;
	}
	p->depth--;
	out.source = (struct str){ p->data + begin, stop - begin };
	finish(p, &out);
	*word = out;
	return 0;
}
