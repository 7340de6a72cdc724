#include "policy/shell/internal.h"

#include "base/buf.h"

int shell_read_delimiter(struct shell_parser *p, struct shell_pending *pending)
{
	struct shell_word word;
	shell_skip_blanks(p);
	if (shell_read_word(p, &word) < 0)
		return -1;
	if (!word.literal || memchr(word.source.data, '\n', word.source.len))
		return shell_unknown(p, "the delimiter of a here-document isn't plain text");
	for (size_t i = 0; i < word.parts.count; i++)
		pending->is_literal |= word.parts.items[i].is_quoted;
	pending->delimiter = word.literal;
	return 0;
}

static struct str next_line(struct shell_parser *p)
{
	const char *begin = p->data + p->at;
	const char *end = memchr(begin, '\n', p->len - p->at);
	size_t len = end ? (size_t)(end - begin) : p->len - p->at;
	p->at += len + (end != NULL);
	return (struct str){ begin, len };
}

/* In a body that is expanded a backslash at the end of a line joins the next one to it; shells
 * differ in whether that line can still be the delimiter. */
static bool is_continued(struct str line)
{
	size_t count = 0;
	while (count < line.len && line.data[line.len - 1 - count] == '\\')
		count++;
	return count % 2 == 1;
}

static int read_body(struct shell_parser *p, const struct shell_pending *pending, struct buf *body)
{
	while (p->at < p->len) {
		struct str line = next_line(p);
		while (pending->strips_tabs && line.len && line.data[0] == '\t')
			line = (struct str){ line.data + 1, line.len - 1 };
		if (str_is(line, pending->delimiter))
			return 0;
		if (!pending->is_literal && is_continued(line))
			return shell_unknown(p, "a continued line in a here-document");
		buf_append(body, line.data, line.len);
		buf_char(body, '\n');
	}
	return shell_unknown(p, "a here-document isn't closed by '%s'", pending->delimiter);
}

/* The body of a here-document that expands is a text of its own. */
static int expand_body(struct shell_parser *p, int line, struct str body, struct shell_word *word)
{
	struct shell_parser inner = *p;
	inner.data = arena_bytes(p->arena, body.data, body.len);
	inner.len = body.len;
	inner.at = inner.line_at = 0;
	inner.line = line;
	inner.pending = (__typeof__(inner.pending)){ 0 };
	return shell_read_text(&inner, SHELL_END_TEXT, word);
}

static int read_heredoc(struct shell_parser *p, const struct shell_pending *pending)
{
	auto_buf struct buf body = buf_empty(SHELL_SCRIPT_MAX + 1);
	struct shell_word word = { 0 };
	int line = shell_line(p);
	if (read_body(p, pending, &body) < 0)
		return -1;
	if (pending->is_literal) {
		shell_add_text(p, &word, body.data, body.len, true);
		word.literal = word.parts.items[0].text;
	} else if (expand_body(p, line, (struct str){ body.data, body.len }, &word) < 0) {
		return -1;
	}
	pending->command->redirects.items[pending->redirect].target = word;
	return 0;
}

int shell_read_heredocs(struct shell_parser *p)
{
	for (size_t i = 0; i < p->pending.count; i++)
		if (read_heredoc(p, &p->pending.items[i]) < 0)
			return -1;
	p->pending.count = 0;
	return 0;
}
