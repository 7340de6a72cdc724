/* columns.h -- tables for people: columns as wide as what is in them, two spaces between. What
 * isn't fit to be shown is escaped. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

#define COLUMNS_MAX 8
struct columns {
	unsigned count;
	unsigned numbers; /* bit i: column i stands at the right */
	unsigned width;	  /* of the terminal, to which the last column is cut; 0: it isn't */
	struct arena *arena;
	text_list cells;
};
/* The first row is the heads. `cells` has count of them; NULL is "-". */
void columns_add(struct columns *columns, const char *const *cells);
/* That of standard output, or 0 when it is no terminal. */
unsigned columns_width(void);
void columns_print(const struct columns *columns, struct buf *out);
