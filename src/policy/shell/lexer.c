#include "policy/shell/internal.h"

int shell_line(struct shell_parser *p)
{
	/* Forward from where it was asked for last: asking for each command stays linear. */
	for (; p->line_at < p->at && p->line_at < p->len; p->line_at++)
		p->line += p->data[p->line_at] == '\n';
	return p->line;
}

int shell_unknown(struct shell_parser *p, const char *fmt, ...)
{
	char text[ERROR_TEXT_SIZE / 2];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	return fail(p->err, ERR_INVALID, "line %d: %s", shell_line(p), text);
}

int shell_enter(struct shell_parser *p)
{
	if (++p->depth <= SHELL_DEPTH_MAX)
		return 0;
	return fail(p->err, ERR_LIMIT, "line %d: more than %d levels of nesting", shell_line(p),
		SHELL_DEPTH_MAX);
}

int shell_check_size(struct shell_parser *p)
{
	if (p->arena->size <= p->size_max)
		return 0;
	return fail(p->err, ERR_LIMIT, "line %d: the tree of the script takes more than %zu MiB",
		shell_line(p), SHELL_TREE_MAX >> 20);
}

static size_t skip_continuations(const struct shell_parser *p, size_t at)
{
	while (at + 1 < p->len && p->data[at] == '\\' && p->data[at + 1] == '\n')
		at += 2;
	return at;
}

int shell_look(const struct shell_parser *p, size_t ahead)
{
	size_t at = skip_continuations(p, p->at);
	for (; ahead > 0 && at < p->len; ahead--)
		at = skip_continuations(p, at + 1);
	return at < p->len ? (unsigned char)p->data[at] : -1;
}

int shell_current(struct shell_parser *p)
{
	p->at = skip_continuations(p, p->at);
	return p->at < p->len ? (unsigned char)p->data[p->at] : -1;
}

void shell_skip(struct shell_parser *p, size_t count)
{
	for (; count > 0 && shell_current(p) >= 0; count--)
		p->at++;
}

bool shell_accept(struct shell_parser *p, const char *text)
{
	size_t len = 0;
	for (; text[len]; len++)
		if (shell_look(p, len) != (unsigned char)text[len])
			return false;
	shell_skip(p, len);
	return true;
}

bool shell_ends_word(int c)
{
	return c < 0 || memchr(" \t\n;&|<>()", c, 10) != NULL;
}

bool shell_is_name_start(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool shell_is_name(int c)
{
	return shell_is_name_start(c) || (c >= '0' && c <= '9');
}

void shell_skip_blanks(struct shell_parser *p)
{
	int c;
	while ((c = shell_current(p)) == ' ' || c == '\t')
		p->at++;
	if (c == '#') /* a backslash at the end of a comment continues nothing */
		while (p->at < p->len && p->data[p->at] != '\n')
			p->at++;
}

int shell_skip_lines(struct shell_parser *p)
{
	for (;;) {
		shell_skip_blanks(p);
		if (shell_current(p) != '\n')
			return 0;
		p->at++;
		if (shell_read_heredocs(p) < 0)
			return -1;
	}
}
