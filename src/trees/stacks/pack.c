#include "trees/stacks/pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "format/archives/tar.h"
#include "format/http/uri.h"
#include "format/text/json.h"
#include "trees/stacks/internal.h"

#define PLAIN_BITS 0777

void packer_init(struct packer *packer, int out, bool is_layer)
{
	*packer = (struct packer){ .is_layer = is_layer };
	map_init(&packer->links, &packer->arena);
	buf_init(&packer->path, (size_t)1 << 20);
	tree_out_init(&packer->out, out);
	struct buf *const marks[] = { &packer->whiteouts, &packer->opaque, &packer->fifos,
		&packer->modes, &packer->attributes };
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		buf_init(marks[i], PACK_MARKS_MAX / 2);
}

void packer_done(struct packer *packer)
{
	struct buf *const all[] = { &packer->path, &packer->whiteouts, &packer->opaque,
		&packer->fifos, &packer->modes, &packer->attributes };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		buf_done(all[i]);
	tree_out_done(&packer->out);
	arena_done(&packer->arena);
}

static struct tar_entry entry_of(
	const struct packer *packer, enum tar_kind kind, const struct stat *st)
{
	return (struct tar_entry){ .kind = kind,
		.name = packer->path.data,
		.mode = st->st_mode & PLAIN_BITS,
		.modified_s = st->st_mtim.tv_sec };
}

/* ---- marks ---- */

static const char *encoded_path(struct packer *packer, struct arena *arena)
{
	return uri_encode(arena, buf_str(&packer->path), true);
}

static void mark(struct packer *packer, struct buf *marks)
{
	auto_arena struct arena arena = { 0 };
	buf_printf(marks, "%s\"%s\"", marks->len ? "," : "", encoded_path(packer, &arena));
}

/* Of what a tar entry can't say. */
static void mark_mode(struct packer *packer, const struct stat *st)
{
	auto_arena struct arena arena = { 0 };
	if (S_ISFIFO(st->st_mode) || (packer->is_layer && st->st_mode & 07000))
		buf_printf(&packer->modes, "%s[\"%s\",%u]", packer->modes.len ? "," : "",
			encoded_path(packer, &arena),
			st->st_mode & (packer->is_layer ? 07777 : PLAIN_BITS));
}

static int mark_attributes(struct packer *packer, int fd, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct buf *marks = &packer->attributes;
	attribute_list list;
	if (attributes_read(fd, false, &arena, &list, err))
		return error_context(err, "'%s'", packer->path.data);
	for (size_t i = 0; i < list.count; i++) {
		struct str name = str_from(list.items[i].name), value = list.items[i].value;
		buf_printf(marks, "%s[\"%s\",\"%s\",\"", marks->len ? "," : "",
			encoded_path(packer, &arena), uri_encode(&arena, name, false));
		buf_base64(marks, value.data, value.len);
		buf_text(marks, "\"]");
	}
	return 0;
}

/* ---- files ---- */

static int add_file(struct packer *packer, int dir, const char *name, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	uint64_t bytes;
	auto_close int fd = -1;
	struct stat st;
	if (stack_open_file(dir, name, &fd, &st, err))
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	struct tar_entry entry = entry_of(packer, TAR_FILE, &st);
	uint64_t id[2] = { st.st_dev, st.st_ino };
	struct str key = { (char *)id, sizeof id };
	if (st.st_nlink > 1 && (entry.link = map_get(&packer->links, key))) {
		entry.kind = TAR_HARDLINK;
		return tree_out_entry(&packer->out, &entry, err);
	}
	entry.size = (uint64_t)st.st_size;
	if (tree_find_regions(fd, &st, &arena, &entry, err))
		return -1;
	if (st.st_nlink > 1)
		map_set(&packer->links, key, arena_text(&packer->arena, packer->path.data));
	mark_mode(packer, &st);
	packer->files++;
	if (mark_attributes(packer, fd, err) || tree_out_entry(&packer->out, &entry, err))
		return -1;
	if (tree_out_content(&packer->out, fd, &entry, &bytes, err))
		return -1;
	packer->bytes += bytes;
	return 0;
}

static int add_link(
	struct packer *packer, int dir, const char *name, const struct stat *st, struct error *err)
{
	char target[TAR_NAME_MAX + 1];
	struct tar_entry entry = entry_of(packer, TAR_SYMLINK, st);
	ssize_t len = readlinkat(dir, name, target, sizeof target - 1);
	if (len < 0)
		return errno == ENOENT || errno == EINVAL
			       ? 0
			       : fail_errno(err, "read link '%s'", packer->path.data);
	target[len] = 0;
	entry.link = target;
	return tree_out_entry(&packer->out, &entry, err);
}

/* ---- directories ---- */

static int add_directory(
	struct packer *packer, const struct stack_dir *dir, bool is_raw, struct error *err);

static int add_child(struct packer *packer, const struct stack_dir *dir, const char *name,
	bool is_raw, struct error *err)
{
	auto_stack struct stack_dir child = { 0 };
	struct stack_entry entry;
	if (packer->path.len > TAR_NAME_MAX)
		return fail(err, ERR_LIMIT, "the name '%.60s...' is too long for an archive",
			packer->path.data);
	if (stack_look(dir, name, &entry, err))
		return -1;
	if (!entry.is_there) {
		if (is_raw && entry.is_cut)
			mark(packer, &packer->whiteouts);
		return 0;
	}
	switch (entry.st.st_mode & S_IFMT) {
	case S_IFREG:
		return add_file(packer, entry.dir, name, err);
	case S_IFLNK:
		return add_link(packer, entry.dir, name, &entry.st, err);
	case S_IFIFO:
		mark(packer, &packer->fifos);
		mark_mode(packer, &entry.st);
		return 0;
	case S_IFDIR:
		return stack_enter(dir, name, &child, err) ||
				       (child.count && add_directory(packer, &child, is_raw, err))
			       ? -1
			       : 0;
	default:
		packer->sockets++; /* or a device, which a tree never contains */
		return 0;
	}
}

bool packer_leaves_out(struct packer *packer, const struct error *err)
{
	if (!packer->is_partial || err->code != ERR_LIMIT)
		return false;
	packer->left_out++;
	return true;
}

static int add_children(
	struct packer *packer, const struct stack_dir *dir, bool is_raw, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	text_list names = { 0 };
	if (packer->depth >= STACK_DEPTH_MAX)
		return fail(err, ERR_LIMIT, "'%.200s...' is deeper than %d directories",
			packer->path.data, STACK_DEPTH_MAX);
	if (stack_names(dir, 0, dir->count, &arena, &names, err))
		return -1;
	packer->depth++;
	for (size_t i = 0; i < names.count; i++) {
		size_t len = path_push(&packer->path, names.items[i]);
		unsigned depth = packer->depth;
		if (add_child(packer, dir, names.items[i], is_raw, err) &&
			!packer_leaves_out(packer, err))
			return -1;
		packer->depth = depth;
		path_pop(&packer->path, len);
	}
	packer->depth--;
	return 0;
}

/* The directory itself, as its topmost layer has it, then what is in it. */
static int add_directory(
	struct packer *packer, const struct stack_dir *dir, bool is_raw, struct error *err)
{
	struct stat st;
	int top = dir->parts[0].fd;
	if (fstat(top, &st))
		return fail_errno(err, "look at '%s'", packer->path.data);
	struct tar_entry entry = entry_of(packer, TAR_DIRECTORY, &st);
	mark_mode(packer, &st);
	if (is_raw && stack_is_opaque(top))
		mark(packer, &packer->opaque);
	if (mark_attributes(packer, top, err) || tree_out_entry(&packer->out, &entry, err))
		return -1;
	return add_children(packer, dir, is_raw, err);
}

static int add_part(struct packer *packer, const char *part, const int *layers, size_t count,
	bool is_raw, struct error *err)
{
	auto_stack struct stack_dir root = { 0 };
	if (stack_open(&root, layers, count, err))
		return -1;
	if (!root.count)
		return 0;
	size_t len = path_push(&packer->path, part);
	if (add_directory(packer, &root, is_raw, err))
		return -1;
	path_pop(&packer->path, len);
	return 0;
}

int packer_add_merged(
	struct packer *packer, const char *part, const int *layers, size_t count, struct error *err)
{
	return add_part(packer, part, layers, count, false, err);
}

int packer_add_layer(struct packer *packer, const char *part, int layer, struct error *err)
{
	return add_part(packer, part, &layer, 1, true, err);
}

int packer_add_text(struct packer *packer, const char *name, struct str text, struct error *err)
{
	const struct tar_entry entry = {
		.kind = TAR_FILE, .name = name, .size = text.len, .mode = 0644
	};
	if (tree_out_flush(&packer->out, err) || tar_write_entry(&packer->out.rest, &entry, err) ||
		tree_out_flush(&packer->out, err))
		return -1;
	if (fd_write_full(packer->out.fd, text.data, text.len) != (ssize_t)text.len)
		return fail_errno(err, "write the archive");
	tar_write_padding(&packer->out.rest, text.len);
	return 0;
}

int packer_end(struct packer *packer, struct error *err)
{
	const struct {
		const char *name;
		const struct buf *marks;
	} rows[] = { { "whiteouts", &packer->whiteouts }, { "opaque", &packer->opaque },
		{ "fifos", &packer->fifos }, { "modes", &packer->modes },
		{ "attributes", &packer->attributes } };
	auto_buf struct buf text = buf_empty(PACK_MARKS_MAX);
	bool has_marks = false, is_over = false;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool is_long = rows[i].marks->overflow ||
			       text.len + rows[i].marks->len > PACK_MARKS_MAX - 4096;
		has_marks |= rows[i].marks->len > 0;
		is_over |= is_long;
		packer->left_out += is_long;
		buf_printf(&text, "%s\"%s\":[", i ? "," : "{", rows[i].name);
		if (!is_long)
			buf_append(&text, rows[i].marks->data ? rows[i].marks->data : "",
				rows[i].marks->len);
		buf_char(&text, ']');
	}
	buf_char(&text, '}');
	if (is_over && !packer->is_partial)
		return fail(err, ERR_LIMIT, "too many deleted files, fifos and attributes");
	if (has_marks && packer_add_text(packer, PACK_MARKS, buf_str(&text), err))
		return -1;
	fault_point("pack_end");
	tar_write_end(&packer->out.rest);
	return tree_out_flush(&packer->out, err);
}
