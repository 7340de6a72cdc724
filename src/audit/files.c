#include "audit/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"

#define STEP_BYTES (256u << 10) /* is allocated at once */

int audit_files_list(int dir, struct arena *arena, text_list *names, struct error *err)
{
	text_list all;
	uint64_t first;
	*names = (text_list){ 0 };
	if (file_names(dir, ".", arena, &all))
		return fail_errno(err, "list the files of the audit log");
	for (size_t i = 0; i < all.count; i++)
		if (audit_file_first(all.items[i], &first))
			vec_push(arena, names, all.items[i]);
	return 0;
}

/* ---- opening ---- */

static int take_lock(struct audit_files *files, struct error *err)
{
	files->lock = openat(files->dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (files->lock < 0)
		return fail_errno(err, "open 'audit/lock'");
	if (flock(files->lock, LOCK_EX | LOCK_NB))
		return fail(err, ERR_CONFLICT, "another process writes the audit log");
	return 0;
}

static void note_damage(struct audit_files *files, const char *text)
{
	if (!files->found.damage[0])
		str_copy(files->found.damage, sizeof files->found.damage, text);
}

/* Reads the last file from `at` on, where files->last ends: the last whole line is the last. */
static int read_tail(struct audit_files *files, uint64_t at, struct error *err)
{
	auto_buf struct buf text = buf_empty(AUDIT_LINE_MAX + 65536);
	bool is_first = !files->last.seq;
	for (;;) {
		char *room = buf_reserve(&text, 65536);
		ssize_t len = room ? pread(files->file, room, 65536, (off_t)(at + text.len)) : 0;
		if (len < 0)
			return fail_errno(err, "read 'audit/%s'", files->name);
		buf_grew(&text, (size_t)len);
		struct str rest = { text.data, text.len }, line, tail;
		while (str_cut(rest, '\n', &line, &tail)) {
			struct audit_line read;
			rest = tail;
			if (!audit_line_read(line, &read))
				continue; /* the verifier names it */
			if (!read.is_hash_right ||
				(!is_first &&
					memcmp(read.prev.data, files->last.hash, AUDIT_HASH_LEN)))
				note_damage(files, "lines of the last file are not linked");
			is_first = false;
			files->last = read.link;
		}
		size_t taken = (size_t)(rest.data - text.data);
		at += taken;
		buf_drop_front(&text, taken);
		if (!len)
			break;
		if (text.len > AUDIT_LINE_MAX) { /* nothing of ours: passed over */
			at += text.len;
			buf_clear(&text);
		}
	}
	files->found.torn_bytes = text.len;
	files->is_torn = text.len > 0;
	files->size = at + text.len;
	return 0;
}

/* Opens the last file, if there is one, and finds its last line. */
static int open_last(struct audit_files *files, const struct audit_head *head,
	enum audit_head_state state, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	text_list names;
	struct stat st;
	if (audit_files_list(files->dir, &arena, &names, err))
		return -1;
	if (!names.count) {
		if (state != HEAD_SIGNED) {
			if (state == HEAD_INVALID)
				note_damage(files, "the head is not signed by the key of this log");
			return 0;
		}
		files->last = head->last;
		if (head->last.seq > head->pruned.seq)
			files->found.missing_from = head->pruned.seq + 1;
		files->found.missing_to = files->found.missing_from ? head->last.seq : 0;
		return 0;
	}
	str_copy(files->name, sizeof files->name, names.items[names.count - 1]);
	files->file = openat(files->dir, files->name, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (files->file < 0 || fstat(files->file, &st))
		return fail_errno(err, "open 'audit/%s'", files->name);
	uint64_t first = 0;
	bool is_signed = state == HEAD_SIGNED;
	bool is_known = is_signed && !strcmp(head->file, files->name) &&
			head->offset <= (uint64_t)st.st_size;
	/* A new file is there before the head says so, and may be empty still. */
	bool is_next =
		is_signed && audit_file_first(files->name, &first) && first == head->last.seq + 1;
	if (is_known || is_next)
		files->last = head->last;
	if (read_tail(files, is_known ? head->offset : 0, err))
		return -1;
	if (!is_signed) {
		note_damage(files, state == HEAD_MISSING
					   ? "the signed head is missing"
					   : "the head is not signed by the key of this log");
		return 0;
	}
	if (files->last.seq >= head->last.seq) {
		files->found.unsigned_lines = files->last.seq - head->last.seq;
		return 0;
	}
	files->found.missing_from = files->last.seq + 1;
	files->found.missing_to = head->last.seq;
	files->last = head->last;
	return 0;
}

int audit_files_open(
	struct audit_files *files, int dir, const struct audit_options *options, struct error *err)
{
	char text[AUDIT_HEAD_SIZE + 1];
	struct audit_head head;
	bool is_new;
	*files = (struct audit_files){
		.dir = dir, .file = -1, .head = -1, .lock = -1, .options = *options
	};
	audit_link_init(&files->last);
	if (take_lock(files, err) || audit_key_open(dir, true, &files->key, &is_new, err))
		return -1;
	enum audit_head_state state = audit_head_load(dir, &files->key, &head, text);
	files->pruned = head.pruned;
	if (is_new && state != HEAD_MISSING)
		note_damage(files, "the key was missing, and a new one was made");
	if (open_last(files, &head, state, err))
		return -1;
	files->head = openat(dir, "head", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (files->head < 0)
		return fail_errno(err, "open 'audit/head'");
	return 0;
}

/* Gives back what was allocated ahead. */
static void end_file(struct audit_files *files)
{
	if (files->file >= 0 && files->allocated)
		(void)!ftruncate(files->file, (off_t)files->size);
	fd_close(&files->file);
	files->allocated = 0;
}

void audit_files_close(struct audit_files *files)
{
	if (files->has_unsynced_head)
		audit_files_sync_head(files);
	end_file(files);
	fd_close(&files->head);
	fd_close(&files->lock);
}

/* ---- the head ---- */

static int write_head(struct audit_files *files, struct error *err)
{
	auto_buf struct buf text = buf_empty(2 * AUDIT_HEAD_SIZE);
	struct audit_head head = { .last = files->last,
		.offset = files->size,
		.pruned = files->pruned,
		.time_ms = clock_now_ms() };
	if (files->file >= 0)
		memcpy(head.file, files->name, sizeof head.file);
	audit_head_print(&head, &files->key, &text);
	fault_point("audit.head");
	if (fault_fails("audit.head.write") ||
		pwrite(files->head, text.data, text.len, 0) != (ssize_t)text.len)
		return fail_errno(err, "write 'audit/head'");
	files->has_unsynced_head = true;
	return 0;
}

void audit_files_sync_head(struct audit_files *files)
{
	fdatasync(files->head);
	files->has_unsynced_head = false;
}

/* The order is what a power cut needs: a head that names a line which is lost would look like a
 * cut. */
int audit_files_sync(struct audit_files *files, struct error *err)
{
	if (fault_fails("audit.sync") || (files->file >= 0 && fdatasync(files->file)))
		return fail_errno(err, "sync 'audit/%s'", files->name);
	return write_head(files, err);
}

/* ---- rotation ---- */

/* The last line before file `name`, as that file's first line says. */
static int read_link_before(struct audit_files *files, const char *name, struct audit_link *before)
{
	auto_close int fd = openat(files->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_buf struct buf text = buf_empty(AUDIT_LINE_MAX);
	struct str line, rest;
	struct audit_line read;
	char *room = buf_reserve(&text, AUDIT_LINE_MAX - 1);
	ssize_t len = fd < 0 ? -1 : fd_read_full(fd, room, AUDIT_LINE_MAX - 1);
	if (len <= 0 || !str_cut((struct str){ room, (size_t)len }, '\n', &line, &rest) ||
		!audit_line_read(line, &read))
		return -1;
	before->seq = read.link.seq - 1;
	memcpy(before->hash, read.prev.data, AUDIT_HASH_LEN);
	before->hash[AUDIT_HASH_LEN] = 0;
	return 0;
}

/* Removes the oldest files while all together are too large. The head says so before a file goes.
 */
static void prune(struct audit_files *files)
{
	auto_arena struct arena arena = { 0 };
	text_list names;
	struct error err;
	uint64_t total = 0;
	struct stat st;
	if (audit_files_list(files->dir, &arena, &names, &err))
		return;
	for (size_t i = 0; i < names.count; i++)
		if (!fstatat(files->dir, names.items[i], &st, AT_SYMLINK_NOFOLLOW))
			total += (uint64_t)st.st_size;
	for (size_t i = 0; i + 1 < names.count && total > files->options.max_bytes; i++) {
		struct audit_link before = files->pruned;
		if (fstatat(files->dir, names.items[i], &st, AT_SYMLINK_NOFOLLOW) ||
			read_link_before(files, names.items[i + 1], &before))
			return;
		files->pruned = before;
		if (write_head(files, &err))
			return;
		audit_files_sync_head(files);
		fault_point("audit.prune");
		unlinkat(files->dir, names.items[i], 0);
		total -= (uint64_t)st.st_size;
	}
	fsync(files->dir);
}

static int begin_file(struct audit_files *files, struct error *err)
{
	char name[AUDIT_NAME_LEN + 1];
	audit_file_name(files->last.seq + 1, name);
	if (fault_fails("audit.create"))
		return fail_errno(err, "make 'audit/%s'", name);
	int fd = openat(files->dir, name,
		O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(err, "make 'audit/%s'", name);
	fsync(files->dir);
	end_file(files);
	files->file = fd;
	memcpy(files->name, name, sizeof name);
	files->size = 0;
	files->is_torn = false;
	return 0;
}

/* ---- lines ---- */

int audit_files_reserve(struct audit_files *files, size_t more, struct error *err)
{
	uint64_t wanted = files->size + more + AUDIT_RESERVE_BYTES;
	if (files->file < 0 || files->allocated >= wanted)
		return 0;
	if (!fault_fails("audit.reserve") &&
		!fallocate(files->file, FALLOC_FL_KEEP_SIZE, (off_t)files->size,
			(off_t)(wanted + STEP_BYTES - files->size))) {
		files->allocated = wanted + STEP_BYTES;
		return 0;
	}
	if (errno == EOPNOTSUPP || errno == ENOSYS) {
		files->allocated = UINT64_MAX; /* a write that fails says when the disk is full */
		return 0;
	}
	/* Also less than a step is enough. */
	if (errno == ENOSPC && !fallocate(files->file, FALLOC_FL_KEEP_SIZE, (off_t)files->size,
				       (off_t)(wanted - files->size))) {
		files->allocated = wanted;
		return 0;
	}
	return fail_errno(err, "allocate space for 'audit/%s'", files->name);
}

int audit_files_append(struct audit_files *files, struct str lines, const struct audit_link *last,
	struct error *err)
{
	size_t need = lines.len + files->is_torn;
	bool is_full = files->file >= 0 && files->size &&
		       files->size + need > files->options.max_file_bytes;
	if (is_full && audit_files_sync(files, err))
		return -1;
	if ((is_full || files->file < 0) && begin_file(files, err))
		return -1;
	if (is_full)
		prune(files);
	need = lines.len + files->is_torn;
	struct error ignored;
	(void)audit_files_reserve(files, need, &ignored); /* the caller asks for itself */
	fault_point("audit.write");
	if (fault_fails("audit.append"))
		return fail_errno(err, "write 'audit/%s'", files->name);
	if ((files->is_torn && fd_write_full(files->file, "\n", 1) != 1) ||
		fd_write_full(files->file, lines.data, lines.len) != (ssize_t)lines.len) {
		fail_errno(err, "write 'audit/%s'", files->name);
		struct stat st;
		if (ftruncate(files->file, (off_t)files->size) && !fstat(files->file, &st)) {
			files->is_torn = true;
			files->size = (uint64_t)st.st_size;
		}
		files->allocated = 0;
		return -1;
	}
	files->size += need;
	files->is_torn = false;
	files->last = *last;
	return 0;
}
