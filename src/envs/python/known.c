#include "envs/python/known.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"

#define FILE_MAX 16384

void known_identity_of_text(const char *text, char out[KNOWN_IDENTITY_LEN + 1])
{
	sha256_of(text, strlen(text), out);
}

void known_identity(const char *path, const struct stat *stat, char out[KNOWN_IDENTITY_LEN + 1])
{
	char numbers[128];
	struct sha256 hash;
	str_format(numbers, sizeof numbers, "\n%llu %lld %lld.%09ld",
		(unsigned long long)stat->st_ino, (long long)stat->st_size,
		(long long)stat->st_mtim.tv_sec, (long)stat->st_mtim.tv_nsec);
	sha256_init(&hash);
	sha256_add(&hash, path, strlen(path));
	sha256_add(&hash, numbers, strlen(numbers));
	sha256_end_hex(&hash, out);
}

bool known_read(const struct home *home, const char *room, const char *identity,
	struct arena *arena, struct answer *answer, int64_t *age_s)
{
	auto_leave const struct home *in = home_entered(home);
	char name[PATH_MAX];
	struct str text;
	struct stat stat;
	if (!str_format(name, sizeof name, "%s/.known/%s", room, identity))
		return false;
	auto_close int fd = openat(home->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || file_read(fd, FILE_MAX, arena, &text) < 0 || fstat(fd, &stat) < 0)
		return false;
	if (age_s)
		*age_s = (int64_t)time(NULL) - stat.st_mtim.tv_sec;
	return text.len > 0 && answer_parse(text, arena, answer, NULL) == 0;
}

/* Not synced: it can be asked again. */
int known_write(const struct home *home, const char *room, const char *identity, struct str text,
	struct error *err)
{
	auto_leave const struct home *in = home_entered(home);
	auto_close int dir = -1;
	if (home_open_directory(home, room, &dir, err) < 0)
		return -1;
	if (mkdirat(dir, ".known", 0700) < 0 && errno != EEXIST)
		return fail_errno(err, "make '%s/%s/.known'", home->path, room);
	auto_close int known = fd_open_directory(dir, ".known");
	if (known < 0 || file_replace(known, identity, 0600, text, false) < 0)
		return fail_errno(err, "write '%s/%s/.known/%s'", home->path, room, identity);
	return 0;
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
	if (file_hash(fd, digest, NULL) < 0)
		return -1;
	sha256_hex(digest, out);
	return 0;
}
