#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/map.h"
#include "trees/stacks/internal.h"

/* The id is the hash of a manifest: for each entry, in order of paths, its type, mode, attributes
 * and content, each with its length, so that no two trees have the same manifest. */
struct hashing {
	struct sha256 hash;
	struct snapshot_content *content;
	struct buf path;
	unsigned depth;
	struct arena arena;
	struct map files; /* device and inode -> its hash, of files with several names */
};

static int fail_at(const struct hashing *hashing, const char *what, struct error *err)
{
	return fail_errno(err, "%s '%s'", what, hashing->path.data);
}

static void add_bytes(struct hashing *hashing, const void *data, size_t len)
{
	uint64_t size = len;
	unsigned char text[8];
	for (int i = 0; i < 8; i++)
		text[i] = (unsigned char)(size >> (8 * i));
	sha256_add(&hashing->hash, text, sizeof text);
	sha256_add(&hashing->hash, data, len);
}

static void add_head(struct hashing *hashing, const struct stat *st)
{
	char text[64];
	/* The mode of a link means nothing, and file systems differ in it. */
	unsigned mode = st->st_mode & (S_ISLNK(st->st_mode) ? S_IFMT : S_IFMT | 07777);
	add_bytes(hashing, hashing->path.data, hashing->path.len);
	str_format(text, sizeof text, "%o", mode);
	add_bytes(hashing, text, strlen(text));
}

static int add_attributes(struct hashing *hashing, int fd, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	attribute_list list;
	if (attributes_read(fd, true, &arena, &list, err))
		return error_context(err, "'%s'", hashing->path.data);
	for (size_t i = 0; i < list.count; i++) {
		add_bytes(hashing, list.items[i].name, strlen(list.items[i].name));
		add_bytes(hashing, list.items[i].value.data, list.items[i].value.len);
	}
	add_bytes(hashing, "", 0);
	return 0;
}

static int hash_content(struct hashing *hashing, int fd, const struct stat *st,
	unsigned char digest[SHA256_LEN], struct error *err)
{
	uint64_t id[2] = { st->st_dev, st->st_ino };
	const struct str key = { (const char *)id, sizeof id };
	const char *known = st->st_nlink > 1 ? map_get(&hashing->files, key) : NULL;
	if (known) {
		memcpy(digest, known, SHA256_LEN);
		return 0;
	}
	if (snapshot_hash_file(fd, st->st_size, digest, &hashing->content->bytes))
		return fail_at(hashing, "read", err);
	if (st->st_nlink > 1)
		map_set(&hashing->files, key,
			arena_bytes(&hashing->arena, (const char *)digest, SHA256_LEN));
	return 0;
}

static int hash_file(struct hashing *hashing, int dir, const char *name, struct error *err)
{
	unsigned char digest[SHA256_LEN];
	auto_close int fd = -1;
	struct stat st;
	if (stack_open_file(dir, name, &fd, &st, err))
		return error_context(err, "'%s'", hashing->path.data);
	add_head(hashing, &st);
	if (add_attributes(hashing, fd, err) || hash_content(hashing, fd, &st, digest, err))
		return -1;
	sha256_add(&hashing->hash, digest, sizeof digest);
	hashing->content->files++;
	return 0;
}

static int hash_directory(struct hashing *hashing, int dir, const char *name, struct error *err);

static int hash_entry(struct hashing *hashing, int dir, const char *name, struct error *err)
{
	struct stat st;
	char target[PATH_MAX];
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return fail_at(hashing, "look at", err);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return hash_file(hashing, dir, name, err);
	case S_IFDIR:
		return hash_directory(hashing, dir, name, err);
	case S_IFSOCK: /* copies leave sockets out */
		return 0;
	case S_IFLNK: {
		ssize_t len = readlinkat(dir, name, target, sizeof target);
		if (len < 0)
			return fail_at(hashing, "read link", err);
		add_head(hashing, &st);
		add_bytes(hashing, target, (size_t)len);
		return 0;
	}
	default:
		if (stack_is_whiteout(&st))
			st.st_mode = S_IFCHR; /* the mode of a whiteout means nothing */
		add_head(hashing, &st);
		return 0;
	}
}

static int hash_directory(struct hashing *hashing, int dir, const char *name, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	text_list names = { 0 };
	struct stat st;
	auto_close int fd = fd_open_directory(dir, name);
	if (fd < 0 || fstat(fd, &st))
		return fail_at(hashing, "open", err);
	if (hashing->depth >= STACK_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%s' has more than %d directories below each other",
			hashing->path.data, STACK_DEPTH_MAX);
	hashing->depth++;
	add_head(hashing, &st);
	if (add_attributes(hashing, fd, err))
		return -1;
	if (file_names(fd, ".", &arena, &names))
		return fail_at(hashing, "list", err);
	for (size_t i = 0; i < names.count; i++) {
		size_t len = path_push(&hashing->path, names.items[i]);
		if (hash_entry(hashing, fd, names.items[i], err))
			return -1;
		path_pop(&hashing->path, len);
	}
	hashing->depth--;
	return 0;
}

int snapshot_content_id(int dir, struct snapshot_content *content, struct error *err)
{
	struct hashing hashing = { .content = content, .path = buf_empty(1 << 20) };
	*content = (struct snapshot_content){ 0 };
	arena_init(&hashing.arena);
	map_init(&hashing.files, &hashing.arena);
	sha256_init(&hashing.hash);
	int failed = hash_directory(&hashing, dir, ".", err);
	if (!failed)
		sha256_end_hex(&hashing.hash, content->id);
	buf_done(&hashing.path);
	arena_done(&hashing.arena);
	return failed;
}
