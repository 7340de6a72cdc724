/* hint.h -- hints of errors at two doors. Pure.
 * 1. Whoever fails writes a hint for a person at the command line: what is to be done is a command
 * there. Over REST the same hint names the route that does the same; one table has both. */
#pragma once
#include "base/error.h"

struct hint_row {
	const char *command; /* % stands for one word, */
	const char *route;   /* and stands here where that word goes */
};
extern const struct hint_row hint_rows[];
extern const size_t hint_row_count;

/* A hint as a client of REST reads it: the commands of the table in it are routes. Others, which
 * have no route, stay. */
void hint_for_rest(const char *hint, char out[ERROR_HINT_SIZE]);
