#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "trees/stacks/internal.h"

/* Of the overlay: they name inodes of the layer a file was copied up from. */
static const char *const left_out[] = { "user.overlay.origin", "user.overlay.impure",
	"user.overlay.nlink", "user.overlay.uuid" };

static bool is_kept(const char *name, bool with_opaque)
{
	if (strncmp(name, "user.", 5))
		return false;
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		if (!strcmp(name, left_out[i]))
			return false;
	return with_opaque || strcmp(name, STACK_OPAQUE) != 0;
}

static int compare_names(const void *a, const void *b)
{
	const struct attribute *one = a, *other = b;
	return strcmp(one->name, other->name);
}

int attributes_read(
	int fd, bool with_opaque, struct arena *arena, attribute_list *list, struct error *err)
{
	char names[4096], *all = names;
	*list = (attribute_list){ 0 };
	ssize_t len = flistxattr(fd, names, sizeof names);
	if (len < 0 && errno == ERANGE) {
		all = arena_alloc(arena, ATTRIBUTE_LIST_MAX);
		len = flistxattr(fd, all, ATTRIBUTE_LIST_MAX);
	}
	if (len < 0)
		return errno == ENOTSUP ? 0 : fail_errno(err, "list extended attributes");
	for (const char *name = all; name < all + len; name += strlen(name) + 1) {
		if (!is_kept(name, with_opaque))
			continue;
		char value[4096], *held = value;
		ssize_t got = fgetxattr(fd, name, value, sizeof value);
		if (got < 0 && errno == ERANGE) {
			held = arena_alloc(arena, ATTRIBUTE_VALUE_MAX);
			got = fgetxattr(fd, name, held, ATTRIBUTE_VALUE_MAX);
		}
		if (got < 0 && errno == ENODATA) /* removed meanwhile */
			continue;
		if (got < 0)
			return fail_errno(err, "read extended attribute '%s'", name);
		vec_push(arena, list,
			(struct attribute){ arena_text(arena, name),
				{ arena_bytes(arena, held, (size_t)got), (size_t)got } });
	}
	vec_sort(list, compare_names);
	return 0;
}

int attributes_write(int fd, const attribute_list *list, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct attribute *at = &list->items[i];
		if (fsetxattr(fd, at->name, at->value.data, at->value.len, 0))
			return fail_errno(err, "set extended attribute '%s'", at->name);
	}
	return 0;
}

bool attributes_equal(const attribute_list *a, const attribute_list *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i].name, b->items[i].name) ||
			!str_equal(a->items[i].value, b->items[i].value))
			return false;
	return true;
}

int mode_set(int fd, mode_t mode)
{
	if (!fchmod(fd, mode & 07777))
		return 0;
	/* A filter refuses setuid and setgid. */
	return errno == EPERM ? fchmod(fd, mode & 01777) : -1;
}

int directory_dress(int from, int to, bool with_opaque, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	attribute_list list;
	struct stat st;
	if (attributes_read(from, with_opaque, &arena, &list, err) ||
		attributes_write(to, &list, err))
		return -1;
	if (fstat(from, &st) || mode_set(to, st.st_mode) ||
		futimens(to, (struct timespec[]){ st.st_atim, st.st_mtim }))
		return fail_errno(err, "set mode and times of a directory");
	return 0;
}

size_t path_push(struct buf *path, const char *name)
{
	size_t len = path->len;
	if (len)
		buf_char(path, '/');
	buf_text(path, name);
	return len;
}

void path_pop(struct buf *path, size_t len)
{
	path->len = len;
	path->data[len] = 0;
}
