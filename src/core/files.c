#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/files_parts.h"

/* -- what a thing is -- */

void file_print(struct json *j, const char *key, const struct file_info *info)
{
	size_t len = strlen(info->name);
	char time[32], mode[8];

	clock_format(time, info->modified_ms);
	str_format(mode, sizeof mode, "%04o", info->mode & 07777);
	json_object(j, key);
	json_text(j, "name", info->name);
	if (str_utf8_prefix(info->name, len) != len)
		json_base64(j, "name_base64", info->name, len);
	json_text(j, "type", info->type);
	json_u64(j, "size", info->size);
	json_text(j, "mode", mode);
	json_text(j, "modified_at", time);
	json_text(j, "link", info->link);
	json_end(j);
}

static void fill_info(const struct stat *st, const char *name, struct file_info *info)
{
	*info = (struct file_info){ .name = name,
		.type = files_type(st->st_mode),
		.size = (uint64_t)st->st_size,
		.mode = st->st_mode & 07777,
		.modified_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000 };
}

/* NULL with errno. */
static const char *read_target(int dir, const char *name, struct arena *arena)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dir, name, target, sizeof target);

	return len < 0 ? NULL : arena_bytes(arena, target, (size_t)len);
}

int files_enter(
	const struct request *request, enum verb verb, struct core_workspace *w, struct error *err)
{
	if (access_check(w->core, request, verb, w, err))
		return -1;
	core_touch(w);
	return 0;
}

int files_stat(const struct request *request, struct core_workspace *w, const char *path,
	struct arena *arena, struct file_info *info, struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;
	struct file_info found;

	if (files_enter(request, VERB_FILE_READ, w, err))
		return -1;
	if (files_locate_known(w, path, 0, &place, err) < 0)
		return -1;
	fill_info(&place.st, arena_text(arena, place.name[0] ? place.name : "workspace"), &found);
	if (S_ISLNK(place.st.st_mode)) {
		found.link = read_target(place.dir, place.name, arena);
		if (!found.link)
			return fail_errno(err, "read link '%s'", path);
	}
	*info = found;
	return 0;
}

int files_open(const struct request *request, struct core_workspace *w, const char *path,
	struct arena *arena, int *fd, struct file_info *info, struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;
	auto_close int opened = -1;

	if (files_enter(request, VERB_FILE_READ, w, err))
		return -1;
	if (files_locate_known(w, path, FILES_FOLLOW, &place, err) < 0)
		return -1;
	if (!S_ISREG(place.st.st_mode))
		return fail(err, ERR_INVALID, "'%s' is a %s, not a file", path,
			files_type(place.st.st_mode));
	if (files_open_place(&place, path, O_RDONLY, &opened, err) < 0)
		return -1;
	/* As it is now: it may have grown. */
	if (fstat(opened, &place.st) < 0)
		return fail_errno(err, "open '%s'", path);
	fill_info(&place.st, arena_text(arena, place.name), info);
	*fd = take_fd(&opened);
	return 0;
}

/* -- listing -- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names after `after`, in no order. */
static int read_names(DIR *walk, const char *after, const char *path, struct arena *arena,
	text_list *list, struct error *err)
{
	struct dirent *entry;
	size_t seen = 0;

	for (errno = 0; (entry = readdir(walk)); errno = 0) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (++seen > FILES_ENTRIES_MAX)
			return fail_hint(err, ERR_LIMIT, "list it with a command in the workspace",
				"'%s' has more than %d entries", path, FILES_ENTRIES_MAX);
		if (!after || strcmp(entry->d_name, after) > 0)
			vec_push(arena, list, arena_text(arena, entry->d_name));
	}
	return errno ? fail_errno(err, "list '%s'", path) : 0;
}

/* What vanishes meanwhile is left out. */
static void look_at(int dir, const char *name, struct arena *arena, file_infos *infos)
{
	struct file_info info;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return;
	fill_info(&st, arena_text(arena, name), &info);
	if (S_ISLNK(st.st_mode)) {
		info.link = read_target(dir, name, arena);
		if (!info.link)
			return;
	}
	vec_push(arena, infos, info);
}

static const char *print_cursor(struct arena *arena, const char *name)
{
	char *out = arena_alloc(arena, strlen(name) * 3 + 1), *to = out;

	for (size_t left = strlen(name), len; left > 0; name += len, left -= len) {
		len = str_utf8_char(name, left);
		if (len == 0 || *name == '%' || (unsigned char)*name < ' ') {
			len = 1;
			str_format(to, 4, "%%%02X", (unsigned char)*name);
			to += 3;
		} else {
			memcpy(to, name, len);
			to += len;
		}
	}
	return out;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static int parse_cursor(struct arena *arena, const char *text, const char **name, struct error *err)
{
	char *out = arena_alloc(arena, strlen(text) + 1), *to = out;

	for (const char *at = text; *at; at++) {
		int high = *at == '%' ? hex_digit(at[1]) : 0;
		int low = *at == '%' && high >= 0 ? hex_digit(at[2]) : 0;

		if (high < 0 || low < 0)
			return fail(err, ERR_INVALID, "invalid cursor '%s'", text);
		*to++ = *at == '%' ? (char)(high << 4 | low) : *at;
		at += *at == '%' ? 2 : 0;
	}
	*name = out;
	return 0;
}

static int open_listing(struct core_workspace *w, const char *path, DIR **walk, struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;
	auto_close int fd = -1;

	if (files_locate_known(w, path, FILES_FOLLOW, &place, err) < 0)
		return -1;
	if (!S_ISDIR(place.st.st_mode))
		return fail(err, ERR_INVALID, "'%s' is a %s, not a directory", path,
			files_type(place.st.st_mode));
	if (files_open_place(&place, path, O_RDONLY | O_DIRECTORY, &fd, err) < 0)
		return -1;
	*walk = fdopendir(fd);
	if (!*walk)
		return fail_errno(err, "list '%s'", path);
	take_fd(&fd);
	return 0;
}

int files_list(const struct request *request, struct core_workspace *w, const char *path,
	const char *cursor, size_t limit, struct arena *arena, file_infos *infos, const char **next,
	struct error *err)
{
	auto_arena struct arena own;
	const char *after = NULL;
	file_infos found = { 0 };
	if (files_enter(request, VERB_FILE_READ, w, err))
		return -1;
	text_list list = { 0 };
	DIR *walk;

	arena_init(&own);
	if ((cursor && parse_cursor(&own, cursor, &after, err) < 0) ||
		open_listing(w, path, &walk, err) < 0)
		return -1;
	int failed = read_names(walk, after, path, &own, &list, err);
	if (!failed && list.count)
		qsort(list.items, list.count, sizeof *list.items, compare_names);
	for (size_t i = 0; !failed && i < list.count && i < limit; i++)
		look_at(dirfd(walk), list.items[i], arena, &found);
	closedir(walk);
	if (failed)
		return -1;
	*infos = found;
	*next = limit && list.count > limit ? print_cursor(arena, list.items[limit - 1]) : NULL;
	return 0;
}

/* -- changing -- */

int files_mkdir(const struct request *request, struct core_workspace *w, const char *path,
	bool *created, struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;

	if (files_enter(request, VERB_FILE_WRITE, w, err))
		return -1;
	if (files_locate(w, path, FILES_FOLLOW | FILES_MAKE, &place, err) < 0)
		return -1;
	if (place.is_there && !S_ISDIR(place.st.st_mode))
		return fail(err, ERR_CONFLICT, "'%s' is a %s", path, files_type(place.st.st_mode));
	if (!place.is_there && mkdirat(place.dir, place.name, 0755) < 0)
		return fail_errno(err, "make directory '%s'", path);
	*created = !place.is_there;
	return 0;
}

static int rename_failed(const char *from, const char *to, struct error *err)
{
	switch (errno) {
	case EINVAL:
		return fail(err, ERR_INVALID, "'%s' can't be moved into itself, to '%s'", from, to);
	case EISDIR:
	case ENOTEMPTY:
	case EEXIST:
		return fail(err, ERR_CONFLICT, "move '%s': '%s' is a directory", from, to);
	case ENOTDIR:
		return fail(err, ERR_CONFLICT, "move '%s': '%s' exists and is not a directory",
			from, to);
	default:
		return fail_errno(err, "move '%s' to '%s'", from, to);
	}
}

int files_move(const struct request *request, struct core_workspace *w, const char *from,
	const char *to, struct error *err)
{
	auto_place struct files_place source = FILES_NOWHERE, target = FILES_NOWHERE;

	if (files_enter(request, VERB_FILE_WRITE, w, err))
		return -1;
	if (files_locate_known(w, from, 0, &source, err) < 0 ||
		files_locate(w, to, 0, &target, err) < 0)
		return -1;
	if (!source.name[0] || !target.name[0])
		return fail(err, ERR_INVALID, "the root of a workspace can't be moved or replaced");
	if (renameat(source.dir, source.name, target.dir, target.name) < 0)
		return rename_failed(from, to, err);
	return 0;
}

/* Out of sight by one rename, then taken apart by a child. */
static int remove_directory(struct core_workspace *w, const struct files_place *place,
	const char *path, files_freed_fn *done, void *ctx, struct error *err)
{
	auto_close int in = -1;
	char name[ID_LEN + 1];

	if (files_open_in(w, &in, err) < 0)
		return -1;
	id_make(name);
	int failed = renameat(place->dir, place->name, in, name);
	/* To change its parent, the owner must be allowed to write to the directory itself. */
	if (failed && errno == EACCES && path_grant_access(place->dir, place->name) == 0)
		failed = renameat(place->dir, place->name, in, name);
	if (failed)
		return fail_errno(err, "remove '%s'", path);
	w->is_overgrown = false; /* how much that makes room for is known later */
	return files_discard_known(w, in, name, done, ctx);
}

int files_remove(const struct request *request, struct core_workspace *w, const char *path,
	bool recursive, files_freed_fn *done, void *ctx, struct error *err)
{
	auto_place struct files_place place = FILES_NOWHERE;

	if (files_enter(request, VERB_FILE_REMOVE, w, err))
		return -1;
	if (files_locate_known(w, path, 0, &place, err) < 0)
		return -1;
	if (!place.name[0])
		return fail(err, ERR_INVALID, "the root of a workspace can't be removed");
	if (unlinkat(place.dir, place.name, S_ISDIR(place.st.st_mode) ? AT_REMOVEDIR : 0) < 0) {
		if (errno != ENOTEMPTY && errno != EEXIST)
			return fail_errno(err, "remove '%s'", path);
		if (!recursive)
			return fail(err, ERR_CONFLICT, "'%s' isn't empty", path);
		return remove_directory(w, &place, path, done, ctx, err);
	}
	if (S_ISREG(place.st.st_mode) && place.st.st_nlink == 1)
		files_charge(w, -(int64_t)place.st.st_blocks * 512);
	return 0;
}
