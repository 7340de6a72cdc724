#include "envs/python/bytecode.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "trees/layers/store.h"

static uint32_t get_u32(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static void put_u32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> 8 * i);
}

bool bytecode_set_time(unsigned char head[BYTECODE_HEAD_LEN], uint32_t mtime, uint64_t source_size)
{
	/* Every magic number of CPython ends so. */
	if (head[2] != '\r' || head[3] != '\n' || get_u32(head + 4) != 0)
		return false;
	if (get_u32(head + 12) != (uint32_t)source_size)
		return false;
	put_u32(head + 8, mtime);
	return true;
}

bool bytecode_source_name(const char *pyc, char *out, size_t size)
{
	size_t len = strlen(pyc), stem;
	const char *dot;
	if (len < 5 || strcmp(pyc + len - 4, ".pyc") != 0)
		return false;
	len -= 4;
	/* A module's file may have dots in its name, a cache tag has none: it is the last piece,
	 * but for the level of optimisation. */
	dot = memrchr(pyc, '.', len);
	if (dot && strncmp(dot, ".opt-", 5) == 0)
		dot = memrchr(pyc, '.', (size_t)(dot - pyc));
	if (!dot || dot == pyc)
		return false;
	stem = (size_t)(dot - pyc);
	return str_format(out, size, "%.*s.py", (int)stem, pyc);
}

int bytecode_fit(int cache, const char *name, uint64_t source_size, struct error *err)
{
	unsigned char head[BYTECODE_HEAD_LEN], before[BYTECODE_HEAD_LEN];
	auto_close int fd = openat(cache, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t got;
	if (fd < 0)
		return fail_errno(err, "open '%s'", name);
	got = fd_read_full(fd, head, sizeof head);
	if (got < 0)
		return fail_errno(err, "read '%s'", name);
	if (got != sizeof head)
		return 0;
	memcpy(before, head, sizeof head);
	if (!bytecode_set_time(head, LAYER_MTIME, source_size))
		return 0;
	if (memcmp(before, head, sizeof head) != 0 &&
		pwrite(fd, head, sizeof head, 0) != sizeof head)
		return fail_errno(err, "write '%s'", name);
	return 1;
}
