#include <unistd.h>
#include "trees/stacks/snapshots.h"

#define BLOCK ((off_t)65536)

/* Blocks of zeros are left out: whether they are holes is not content, and a hole can be huge. */
int snapshot_hash_file(int fd, off_t size, unsigned char digest[SHA256_LEN], uint64_t *bytes)
{
	static const char zeros[BLOCK];
	static char block[BLOCK];
	struct sha256 hash;
	off_t at = 0;
	sha256_init(&hash);
	while (at < size && (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < size) {
		at -= at % BLOCK;
		ssize_t len = pread(fd, block, BLOCK, at);
		if (len < 0)
			return -1;
		if (!len)
			break;
		if (memcmp(block, zeros, (size_t)len) != 0) {
			const uint64_t place = (uint64_t)at;
			sha256_add(&hash, &place, sizeof place);
			sha256_add(&hash, block, (size_t)len);
			*bytes += (uint64_t)len;
		}
		at += BLOCK;
	}
	if (at < 0 && errno != ENXIO)
		return -1;
	const uint64_t end = (uint64_t)size;
	sha256_add(&hash, &end, sizeof end);
	sha256_end(&hash, digest);
	return 0;
}
