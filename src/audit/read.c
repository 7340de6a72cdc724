#include "audit/read.h"

#include <fcntl.h>
#include <unistd.h>
#include "audit/files.h"
#include "base/clock.h"
#include "base/fd.h"
#include "format/text/quantity.h"
#include "model/nouns/environment.h"

#define READ_BYTES (256u << 10)
#define NEEDLE_SIZE 160

struct audit_reader {
	int dir, file;
	char name[AUDIT_NAME_LEN + 1]; /* of file; "": none was found yet */
	uint64_t offset;
	char since[32], until[32]; /* as in a line; "": none */
	char type[64];
	char needles[2][NEEDLE_SIZE]; /* of the workspace's id and name; "": any */
	uint64_t after;
	struct buf text; /* read and not taken */
};

int audit_time_parse(const char *text, int64_t now_ms, int64_t *unix_ms, struct error *err)
{
	uint64_t before_ms;
	struct error ignored;
	char whole[64];
	size_t len = strlen(text);
	if (!quantity_parse_duration(text, &before_ms, &ignored) && before_ms < (uint64_t)now_ms) {
		*unix_ms = now_ms - (int64_t)before_ms;
		return 0;
	}
	if (len == strlen("2026-01-01"))
		str_format(whole, sizeof whole, "%sT00:00:00.000Z", text);
	else if (len == strlen("2026-01-01T00:00:00Z"))
		str_format(whole, sizeof whole, "%.*s.000Z", (int)len - 1, text);
	else
		str_copy(whole, sizeof whole, text);
	if (!env_time_parse(whole, unix_ms))
		return fail(err, ERR_INVALID,
			"'%s' is not a time or a duration; try 1h or 2026-01-01T00:00:00Z", text);
	return 0;
}

/* Whether file `name` begins after that time. A file that can't be read doesn't. */
static bool begins_after(const struct audit_reader *r, const char *name, const char *time)
{
	char text[1024];
	auto_close int fd = openat(r->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text);
	struct str first = audit_line_time((struct str){ text, len > 0 ? (size_t)len : 0 });
	return first.len && strncmp(first.data, time, first.len) > 0;
}

static bool is_behind(const struct audit_reader *r, const char *name)
{
	return !r->name[0] || strcmp(name, r->name) > 0;
}

/* Opens the next file; the first call opens the last file that begins before the wanted time.
 * *is_moved: such a file exists. */
static int go_to_next(struct audit_reader *r, bool *is_moved, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	text_list names;
	size_t at = 0;
	*is_moved = false;
	if (audit_files_list(r->dir, &arena, &names, err))
		return -1;
	while (at < names.count && !is_behind(r, names.items[at]))
		at++;
	if (at == names.count)
		return 0;
	if (!r->name[0])
		for (size_t i = names.count; i-- > 1;) {
			uint64_t first = 0;
			audit_file_first(names.items[i], &first);
			bool is_wanted =
				(r->since[0] && !begins_after(r, names.items[i], r->since)) ||
				(r->after && first <= r->after);
			if (is_wanted && (at = i))
				break;
		}
	int fd = openat(r->dir, names.items[at], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) /* just pruned: the next call finds what follows */
		return 0;
	if (fd < 0)
		return fail_errno(err, "open 'audit/%s'", names.items[at]);
	fd_close(&r->file);
	r->file = fd;
	r->offset = 0;
	str_copy(r->name, sizeof r->name, names.items[at]);
	buf_clear(&r->text);
	*is_moved = true;
	return 0;
}

static bool is_of_type(struct str type, const char *wanted)
{
	size_t len = strlen(wanted);
	return type.len >= len && !memcmp(type.data, wanted, len) &&
	       (type.len == len || type.data[len] == '.');
}

static bool has(struct str text, const char *needle)
{
	return memmem(text.data, text.len, needle, strlen(needle)) != NULL;
}

static bool is_wanted(const struct audit_reader *r, struct str line)
{
	struct str digits, rest, head = line;
	uint64_t seq;
	if (line.len < 8 || !str_starts_with(line, "{\"seq\":") ||
		memcmp(line.data + line.len - 2, "\"}", 2))
		return false;
	str_cut((struct str){ line.data + 7, line.len - 7 }, ',', &digits, &rest);
	if (r->after && (!str_to_u64(digits, &seq) || seq <= r->after))
		return false;
	struct str time = audit_line_time(line);
	if ((r->since[0] && strncmp(time.data, r->since, time.len) < 0) ||
		(r->until[0] && strncmp(time.data, r->until, time.len) > 0) ||
		(r->type[0] && !is_of_type(audit_line_type(line), r->type)))
		return false;
	/* What members of a record say can't pass for this. */
	const char *data = memmem(line.data, line.len, ",\"data\":{", 9);
	if (data)
		head.len = (size_t)(data - line.data);
	return !r->needles[0][0] || has(head, r->needles[0]) || has(head, r->needles[1]);
}

int audit_reader_next(struct audit_reader *r, struct buf *out, struct error *err)
{
	bool is_moved = false;
	if (r->file < 0) {
		if (go_to_next(r, &is_moved, err))
			return -1;
		return is_moved;
	}
	char *room = buf_reserve(&r->text, READ_BYTES);
	ssize_t len = room ? pread(r->file, room, READ_BYTES, (off_t)r->offset) : 0;
	if (len < 0)
		return fail_errno(err, "read 'audit/%s'", r->name);
	if (!len)
		return go_to_next(r, &is_moved, err) ? -1 : is_moved;
	buf_grew(&r->text, (size_t)len);
	r->offset += (uint64_t)len;
	struct str rest = { r->text.data, r->text.len }, line, tail;
	while (str_cut(rest, '\n', &line, &tail)) {
		rest = tail;
		if (!is_wanted(r, line))
			continue;
		buf_append(out, line.data, line.len);
		buf_char(out, '\n');
	}
	buf_drop_front(&r->text, (size_t)(rest.data - r->text.data));
	if (r->text.len > AUDIT_LINE_MAX)
		buf_clear(&r->text);
	return 1;
}

int audit_reader_open(
	int dir, const struct audit_filter *filter, struct audit_reader **reader, struct error *err)
{
	static const char *const keys[] = { "workspace", "workspace_name" };
	struct audit_reader *r = xzalloc(sizeof *r);
	r->file = -1;
	r->dir = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r->after = filter->after;
	buf_init(&r->text, AUDIT_LINE_MAX + 2 * READ_BYTES);
	if (r->dir < 0) {
		fail_errno(err, "open the audit log");
		audit_reader_close(r);
		return -1;
	}
	if (filter->since_ms)
		clock_format(r->since, filter->since_ms);
	if (filter->until_ms)
		clock_format(r->until, filter->until_ms);
	str_copy(r->type, sizeof r->type, filter->type ? filter->type : "");
	for (int i = 0; filter->workspace && i < 2; i++) {
		auto_buf struct buf needle = buf_empty(4096);
		buf_printf(&needle, ",\"%s\":", keys[i]);
		buf_quoted(&needle, str_from(filter->workspace));
		if (!str_copy(r->needles[i], NEEDLE_SIZE, needle.data)) {
			audit_reader_close(r);
			return fail(err, ERR_INVALID, "the name of the workspace is too long");
		}
	}
	*reader = r;
	return 0;
}

void audit_reader_close(struct audit_reader *reader)
{
	if (!reader)
		return;
	fd_close(&reader->file);
	fd_close(&reader->dir);
	buf_done(&reader->text);
	free(reader);
}
