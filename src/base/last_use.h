/* last_use.h -- things that can be made again, in the order of their last use, and how many bytes
 * they take together: those that were not used for longest go first.
 * 1. A zeroed struct last_use is in no list. One is part of the thing that it stands for. */
#pragma once

struct last_use {
	struct last_use *newer, *older;
	size_t bytes;
	struct last_use_list *list; /* NULL: none */
};
struct last_use_list {
	struct last_use *newest, *oldest;
	size_t bytes, most; /* of all of them; that may stay */
};
/* Notes a use of `use` now, and its size. */
void last_use_put(struct last_use_list *list, struct last_use *use, size_t bytes);
void last_use_remove(struct last_use *use); /* no-op when it is in no list */
/* The least recently used one if the list exceeds `most`, for the caller to remove; else NULL. */
struct last_use *last_use_surplus(const struct last_use_list *list);
