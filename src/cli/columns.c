#include "cli/columns.h"

#include <string.h>
#include <unistd.h>
#include "base/str.h"
#include "linux/pty.h"

#define CELL_SIZE 1024

void columns_add(struct columns *columns, const char *const *cells)
{
	char shown[CELL_SIZE];
	for (unsigned i = 0; i < columns->count; i++) {
		str_printable(
			shown, sizeof shown, str_from(cells[i] && cells[i][0] ? cells[i] : "-"));
		vec_push(columns->arena, &columns->cells, arena_text(columns->arena, shown));
	}
}

/* Characters, not bytes: names may be in any script. */
static size_t width_of(const char *text)
{
	size_t width = 0;
	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_spaces(struct buf *out, size_t count)
{
	while (count--)
		buf_char(out, ' ');
}

/* As much of `text` as `room` columns hold, with an ellipsis where that isn't all. */
static void print_cut(struct buf *out, const char *text, size_t room)
{
	const char *end = text;
	if (width_of(text) <= room) {
		buf_text(out, text);
		return;
	}
	for (size_t width = 0; width < room; width++)
		do
			end++;
		while (((unsigned char)*end & 0xc0) == 0x80);
	buf_append(out, text, (size_t)(end - text));
	buf_text(out, "…");
}

unsigned columns_width(void)
{
	struct pty_size size = { 0, 0 };
	struct error err;
	return isatty(STDOUT_FILENO) && !pty_get_size(STDOUT_FILENO, &size, &err) ? size.columns
										  : 0;
}

void columns_print(const struct columns *columns, struct buf *out)
{
	size_t widths[COLUMNS_MAX] = { 0 }, before = 1; /* the ellipsis has room, too */
	for (size_t i = 0; i < columns->cells.count; i++) {
		size_t width = width_of(columns->cells.items[i]);
		if (width > widths[i % columns->count])
			widths[i % columns->count] = width;
	}
	for (unsigned i = 0; i + 1 < columns->count; i++)
		before += widths[i] + 2;
	/* On a window too narrow for the others it is shown as it is. */
	size_t room = columns->width > before + 8 ? columns->width - before : (size_t)-1;
	for (size_t i = 0; i < columns->cells.count; i++) {
		unsigned column = (unsigned)(i % columns->count);
		const char *cell = columns->cells.items[i];
		bool is_number = columns->numbers >> column & 1,
		     is_last = column + 1 == columns->count;
		size_t space = widths[column] - width_of(cell);
		if (is_number)
			print_spaces(out, space);
		if (is_last)
			print_cut(out, cell, room);
		else
			buf_text(out, cell);
		if (!is_number && !is_last)
			print_spaces(out, space);
		buf_text(out, is_last ? "\n" : "  ");
	}
}
