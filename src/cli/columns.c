#include "cli/columns.h"

#include <string.h>
#include "base/str.h"

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

void columns_print(const struct columns *columns, struct buf *out)
{
	size_t widths[COLUMNS_MAX] = { 0 };
	for (size_t i = 0; i < columns->cells.count; i++) {
		size_t width = width_of(columns->cells.items[i]);
		if (width > widths[i % columns->count])
			widths[i % columns->count] = width;
	}
	for (size_t i = 0; i < columns->cells.count; i++) {
		unsigned column = (unsigned)(i % columns->count);
		const char *cell = columns->cells.items[i];
		bool is_number = columns->numbers >> column & 1,
		     is_last = column + 1 == columns->count;
		size_t space = widths[column] - width_of(cell);
		if (is_number)
			print_spaces(out, space);
		buf_text(out, cell);
		if (!is_number && !is_last)
			print_spaces(out, space);
		buf_text(out, is_last ? "\n" : "  ");
	}
}
