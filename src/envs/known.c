#include "envs/known.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"

#define FILE_MAX 16384
#define HASH_PIECE 65536

void known_identity_of_text(const char *text, char out[KNOWN_IDENTITY_LEN + 1])
{
	unsigned char digest[SHA256_LEN];
	struct sha256 hash;

	sha256_init(&hash);
	sha256_add(&hash, text, strlen(text));
	sha256_end(&hash, digest);
	sha256_hex(digest, out);
}

void known_identity(const char *path, const struct stat *stat, char out[KNOWN_IDENTITY_LEN + 1])
{
	char numbers[128];
	unsigned char digest[SHA256_LEN];
	struct sha256 hash;

	str_format(numbers, sizeof numbers, "\n%llu %lld %lld.%09ld",
		(unsigned long long)stat->st_ino, (long long)stat->st_size,
		(long long)stat->st_mtim.tv_sec, (long)stat->st_mtim.tv_nsec);
	sha256_init(&hash);
	sha256_add(&hash, path, strlen(path));
	sha256_add(&hash, numbers, strlen(numbers));
	sha256_end(&hash, digest);
	sha256_hex(digest, out);
}

static bool make_name(char out[PATH_MAX], const char *room, const char *identity)
{
	return str_format(out, PATH_MAX, "%s/.known/%s", room, identity);
}

bool known_read(const struct home *home, const char *room, const char *identity,
	struct arena *arena, struct answer *answer, int64_t *age_s)
{
	char name[PATH_MAX], data[FILE_MAX];
	ssize_t len = -1;
	struct stat stat;

	if (!make_name(name, room, identity))
		return false;
	home_enter(home);
	auto_close int fd = openat(home->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	home_leave(home);
	if (fd >= 0)
		len = fd_read_full(fd, data, sizeof data);
	if (len <= 0 || (age_s && fstat(fd, &stat) < 0))
		return false;
	if (age_s)
		*age_s = (int64_t)time(NULL) - stat.st_mtim.tv_sec;
	return answer_parse((struct str){ data, (size_t)len }, arena, answer, NULL) == 0;
}

/* Renamed into place, so that a reader sees all of it or nothing; not synced: it can be asked
 * again. */
static int write_entered(int room, const char *identity, struct str text, struct error *err)
{
	char id[ID_LEN + 1], fresh[ID_LEN + 8];

	if (mkdirat(room, ".known", 0700) < 0 && errno != EEXIST)
		return fail_errno(err, "make .known");
	auto_close int dir =
		openat(room, ".known", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open .known");
	id_make(id);
	str_format(fresh, sizeof fresh, ".new-%s", id);
	auto_close int fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(err, "make .known/%s", fresh);
	if (fd_write_full(fd, text.data, text.len) != (ssize_t)text.len ||
		renameat(dir, fresh, dir, identity) < 0) {
		int result = fail_errno(err, "write .known/%s", identity);
		unlinkat(dir, fresh, 0);
		return result;
	}
	return 0;
}

int known_write(const struct home *home, const char *room, const char *identity, struct str text,
	struct error *err)
{
	auto_close int dir = -1;

	if (home_open_directory(home, room, &dir, err) < 0)
		return -1;
	home_enter(home);
	int result = write_entered(dir, identity, text, err);
	home_leave(home);
	return result < 0 ? error_context(err, "%s/%s", home->path, room) : 0;
}

bool known_is_elf(const char *path)
{
	char magic[4];
	auto_close int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 && fd_read_full(fd, magic, sizeof magic) == 4 &&
	       memcmp(magic, "\177ELF", 4) == 0;
}

int known_hash_file(int fd, char out[2 * SHA256_LEN + 1])
{
	unsigned char digest[SHA256_LEN];
	char data[HASH_PIECE];
	struct sha256 hash;
	ssize_t len;

	sha256_init(&hash);
	while ((len = fd_read_full(fd, data, sizeof data)) > 0)
		sha256_add(&hash, data, (size_t)len);
	sha256_end(&hash, digest);
	sha256_hex(digest, out);
	return len < 0 ? -1 : 0;
}
