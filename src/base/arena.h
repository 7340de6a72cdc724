/* arena.h -- memory that ends together. Out of memory aborts. Nothing is freed singly. */
#pragma once

struct arena_block;
struct arena {
	struct arena_block *blocks;
	size_t size; /* bytes of all its blocks */
};
void arena_init(struct arena *a);
void arena_done(struct arena *a);
#define auto_arena __attribute__((cleanup(arena_done)))
void *arena_alloc(struct arena *a, size_t size);		  /* zeroed, 16-byte aligned */
void *arena_array(struct arena *a, size_t count, size_t size);	  /* aborts on overflow */
char *arena_text(struct arena *a, const char *text);		  /* NULL: NULL */
char *arena_bytes(struct arena *a, const char *data, size_t len); /* NUL appended */
char *arena_printf(struct arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));
/* Outside of any arena: zeroed, for free(). Out of memory aborts here too. */
void *xzalloc(size_t size);
