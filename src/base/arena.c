#include <stdalign.h>
#include "base/arena.h"

#define ALIGNMENT 16
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
/* The first block is small, as many arenas hold a few texts for long; each next one is twice as
 * large, up to the most. With the address sanitizer each allocation is a block of its own, so that
 * writing past its end shows. */
#ifdef __SANITIZE_ADDRESS__
#define BLOCK_FIRST 0
#define BLOCK_MOST 0
#else
#define BLOCK_FIRST (1024 - sizeof(struct arena_block) - 32)
#define BLOCK_MOST (8192 - sizeof(struct arena_block) - 32)
#endif

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	alignas(ALIGNMENT) char data[];
};

void *xzalloc(size_t size)
{
	void *made = calloc(1, size);
	if (!made)
		abort();
	return made;
}

void arena_init(struct arena *a)
{
	*a = (struct arena){ 0 };
}

void arena_done(struct arena *a)
{
	struct arena_block *block = a->blocks;
	while (block) {
		struct arena_block *next = block->next;
		free(block);
		block = next;
	}
	arena_init(a);
}

static struct arena_block *new_block(size_t size)
{
	size_t total;
	if (__builtin_add_overflow(size, sizeof(struct arena_block), &total))
		abort();
	struct arena_block *block = xzalloc(total);
	block->size = size;
	return block;
}

static size_t size_after(const struct arena_block *block)
{
	if (!block)
		return BLOCK_FIRST;
	return block->size <= BLOCK_MOST / 2 ? block->size * 2 : BLOCK_MOST;
}

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *block = a->blocks;
	if (block) {
		size_t start = (block->used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		if (start < block->size && size <= block->size - start) {
			block->used = start + size;
			return block->data + start;
		}
	}
	size_t usual = size_after(block);
	struct arena_block *fresh = new_block(size > usual ? size : usual);
	fresh->used = size;
	a->size += fresh->size;
	if (block && size > BLOCK_MOST / 4) {
		/* A big one goes behind the block in use, whose rest is still good for small ones.
		 */
		fresh->next = block->next;
		block->next = fresh;
	} else {
		fresh->next = block;
		a->blocks = fresh;
	}
	return fresh->data;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total))
		abort();
	return arena_alloc(a, total);
}

char *arena_bytes(struct arena *a, const char *data, size_t len)
{
	size_t size;
	if (__builtin_add_overflow(len, 1u, &size))
		abort();
	char *copy = arena_alloc(a, size);
	if (len > 0)
		memcpy(copy, data, len);
	return copy;
}

char *arena_text(struct arena *a, const char *text)
{
	return text ? arena_bytes(a, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list args, again;
	char usual[256]; /* most texts fit, and are formatted once */
	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(usual, sizeof usual, fmt, args);
	va_end(args);
	if (len < 0)
		abort();
	char *text = arena_alloc(a, (size_t)len + 1);
	if ((size_t)len < sizeof usual)
		memcpy(text, usual, (size_t)len + 1);
	else
		vsnprintf(text, (size_t)len + 1, fmt, again);
	va_end(again);
	return text;
}
