/* columns.h -- tables for people: columns as wide as what is in them, two spaces between. What
 * isn't fit to be shown is escaped. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "cli/workspaces/workspace_names.h"
#include "model/records/record.h"

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
/* What `object` shows of a field, as people read it: "2.0G", "30s", "yes", "a=b,c=d", an age; NULL:
 * nothing. */
const char *columns_text(
	struct arena *arena, const struct field *row, const struct json_value *object);
const char *columns_list(struct arena *arena, const struct json_value *array); /* "a, b" */
/* "3h ago", "2d ago", "now"; "-" when `time` is NULL or invalid. out needs 32 bytes. Pure. */
void columns_format_age(char out[32], const char *time, int64_t now_ms);
/* How long ago it was: "3h". */
const char *columns_age(struct arena *arena, const char *time);
void columns_print(const struct columns *columns, struct buf *out);

/* A list of the daemon's, to be printed as an array of JSON or as a table. */
struct listing {
	struct command *command;
	struct columns columns;
	void (*add)(struct listing *listing, const struct json_value *item); /* a line of it */
	/* NULL: all of them. */
	bool (*is_wanted)(const struct command *command, const struct json_value *item);
	const struct record *record; /* this and those that follow are of listing_print_named */
	const char *key;
	/* In place of its name, or of that of its workspace. NULL: the one that `names` has of its
	 * member `workspace`. */
	const char *(*name)(struct listing *listing, const struct json_value *item);
	bool is_of_workspaces; /* those are to be read */
	struct workspace_names names;
	/* A column behind those of the record, or NULL. */
	const char *head;
	const char *(*text)(struct command *command, const struct json_value *item);
};
int listing_print(struct listing *listing, const char *path, struct error *err);
/* The columns of a record for each item, or with --quiet its member `key` alone. The first needs
 * command, record and key. */
int listing_print_named(struct listing *listing, const char *path, struct error *err);
int listing_print_records(struct command *command, const struct record *record, const char *key,
	const char *path, struct error *err);
