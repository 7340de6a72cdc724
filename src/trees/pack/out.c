#include "trees/pack/out.h"

#include <unistd.h>
#include "base/fd.h"
#include "base/vec.h"

#define CHUNK ((size_t)256 << 10)
#define EXTENTS_MAX 10000 /* of one file: with more, the rest of its holes are zeros */
#define ZEROS_MAX ((off_t)1 << 30)

void tree_out_init(struct tree_out *out, int fd)
{
	*out = (struct tree_out){ .fd = fd };
	buf_init(&out->rest, (size_t)8 << 20);
}

void tree_out_done(struct tree_out *out)
{
	buf_done(&out->rest);
}

int tree_out_flush(struct tree_out *out, struct error *err)
{
	if (fd_write_full(out->fd, out->rest.data, out->rest.len) != (ssize_t)out->rest.len)
		return fail_errno(err, "write the archive");
	buf_clear(&out->rest);
	return 0;
}

int tree_out_entry(struct tree_out *out, const struct tar_entry *entry, struct error *err)
{
	if (tar_write_entry(&out->rest, entry, err))
		return -1;
	return out->rest.len >= CHUNK ? tree_out_flush(out, err) : 0;
}

int tree_find_regions(int fd, const struct stat *st, struct arena *arena, struct tar_entry *entry,
	struct error *err)
{
	VEC(struct tar_region) found = { 0 };
	off_t at = 0;
	if (st->st_blocks * 512 >= st->st_size)
		return 0;
	while (found.count < EXTENTS_MAX && (at = lseek(fd, at, SEEK_DATA)) >= 0 &&
		at < st->st_size) {
		off_t end = lseek(fd, at, SEEK_HOLE);
		if (found.count == EXTENTS_MAX - 1 &&
			st->st_size - at > st->st_blocks * 512 + ZEROS_MAX)
			return fail(err, ERR_LIMIT, "'%s' has more than %d holes", entry->name,
				EXTENTS_MAX);
		if (end < 0 || end > st->st_size || found.count == EXTENTS_MAX - 1)
			end = st->st_size;
		vec_push(arena, &found, (struct tar_region){ (uint64_t)at, (uint64_t)(end - at) });
		at = end;
	}
	entry->is_sparse = true;
	entry->regions = found.items;
	entry->region_count = found.count;
	return 0;
}

static int write_range(struct tree_out *out, int fd, const char *name, uint64_t at, uint64_t len,
	struct error *err)
{
	while (len > 0) {
		size_t want = len < CHUNK ? (size_t)len : CHUNK;
		ssize_t got = pread(fd, buf_reserve(&out->rest, want), want, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail_errno(err, "read '%s'", name);
		if (got == 0)
			return fail(
				err, ERR_CONFLICT, "'%s' became shorter while it was read", name);
		buf_grew(&out->rest, (size_t)got);
		at += (uint64_t)got;
		len -= (uint64_t)got;
		if (out->rest.len >= CHUNK && tree_out_flush(out, err))
			return -1;
	}
	return 0;
}

int tree_out_content(struct tree_out *out, int fd, const struct tar_entry *entry, uint64_t *bytes,
	struct error *err)
{
	uint64_t sum = entry->is_sparse ? 0 : entry->size;
	if (!entry->is_sparse && write_range(out, fd, entry->name, 0, sum, err))
		return -1;
	for (size_t i = 0; i < entry->region_count; i++) {
		const struct tar_region *region = &entry->regions[i];
		if (write_range(out, fd, entry->name, region->offset, region->len, err))
			return -1;
		sum += region->len;
	}
	tar_write_padding(&out->rest, sum);
	if (bytes)
		*bytes = sum;
	return 0;
}
