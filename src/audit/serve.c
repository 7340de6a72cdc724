#include "audit/serve.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "audit/redact.h"
#include "base/clock.h"
#include "base/fault.h"

#define READ_BYTES (256u << 10)
#define IN_MAX (AUDIT_LINE_MAX + 2 * READ_BYTES)
#define LINES_MAX ((size_t)64 << 20)
#define RETRY_MS 200 /* while nothing can be written */
#define HEAD_SYNC_MS 1000

struct server {
	int socket;
	bool drops;
	struct audit_files files;
	struct audit_report report;
	struct buf in;		/* from core */
	struct buf lines;	/* to be written, after files.last */
	struct audit_link last; /* of lines */
	uint64_t number;	/* of the last record in lines */
	uint64_t count;		/* records in lines */
	struct buf clean;
	uint64_t began_ms; /* the last group */
	uint64_t head_synced_ms;
	bool is_over; /* core has closed its end */
};

/* ---- reports ---- */

static void send_report(struct server *s)
{
	s->report.next = s->files.last.seq + 1;
	s->report.pruned = s->files.pruned.seq;
	/* A core that is gone reads no report; its records are written all the same. */
	if (!s->is_over)
		(void)!send(s->socket, &s->report, sizeof s->report, MSG_NOSIGNAL);
	s->report.is_first = 0;
}

static void audit_note_failure(struct server *s, const struct error *err)
{
	struct statvfs vfs;
	s->report.sys_errno = err->sys_errno ? err->sys_errno : EIO;
	s->report.free_bytes =
		fstatvfs(s->files.dir, &vfs) ? 0 : (uint64_t)vfs.f_bavail * vfs.f_frsize;
	str_copy(s->report.error, sizeof s->report.error, err->text);
}

static void note_success(struct server *s)
{
	s->report.sys_errno = 0;
	s->report.error[0] = 0;
}

/* ---- in ---- */

/* Makes lines of the whole messages. -1: not such messages. */
static int take_messages(struct server *s)
{
	size_t at = 0;
	struct audit_message head;
	while (s->in.len - at >= sizeof head) {
		memcpy(&head, s->in.data + at, sizeof head);
		if (head.len < 2 || head.len > AUDIT_BODY_MAX || head.reserved)
			return -1;
		if (s->in.len - at - sizeof head < head.len)
			break;
		buf_clear(&s->clean);
		redact_json((struct str){ s->in.data + at + sizeof head, head.len }, &s->clean);
		audit_line_print(&s->last, (struct str){ s->clean.data, s->clean.len }, &s->lines);
		s->number = head.number;
		s->count++;
		at += sizeof head + head.len;
	}
	buf_drop_front(&s->in, at);
	return 0;
}

/* Waits for at most timeout_ms (-1: without an end), then reads what has come. */
static int audit_receive(struct server *s, int timeout_ms, struct error *err)
{
	struct pollfd ready = { .fd = s->socket, .events = POLLIN };
	if (poll(&ready, 1, timeout_ms) <= 0)
		return 0;
	char *room = buf_reserve(&s->in, READ_BYTES);
	ssize_t len = room ? recv(s->socket, room, READ_BYTES, MSG_DONTWAIT) : -1;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (len <= 0) { /* an error of the socket ends it as well */
		s->is_over = true;
		return 0;
	}
	buf_grew(&s->in, (size_t)len);
	return take_messages(s) ? fail(err, ERR_CORRUPT, "invalid record of core") : 0;
}

/* ---- out ---- */

static void forget_lines(struct server *s)
{
	buf_clear(&s->lines);
	s->report.taken = s->number;
	s->count = 0;
	s->last = s->files.last;
}

/* Tries to write and sync all pending lines; the report says how it went. */
static void write_group(struct server *s)
{
	struct error err;
	bool was_failing = s->report.sys_errno, is_failing = false;
	if (s->lines.len) {
		struct str lines = { s->lines.data, s->lines.len };
		if (audit_files_append(&s->files, lines, &s->last, &err)) {
			is_failing = true;
			audit_note_failure(s, &err);
			if (s->drops || s->is_over) {
				s->report.dropped += s->count;
				forget_lines(s);
			}
			send_report(s);
			return;
		}
		fault_point("audit.written");
		forget_lines(s);
		/* Before the sync: readers need not wait for the disk. */
		if (!was_failing)
			send_report(s);
	}
	if (audit_files_sync(&s->files, &err) || audit_files_reserve(&s->files, 0, &err)) {
		is_failing = true;
		audit_note_failure(s, &err);
	} else
		note_success(s);
	if (is_failing || was_failing)
		send_report(s);
}

/* The file system is full at the start, perhaps: the log is opened when it can be. */
static int open_files(
	struct server *s, int dir, const struct audit_options *options, struct error *err)
{
	uint64_t tries = 0;
	while (audit_files_open(&s->files, dir, options, err)) {
		audit_files_close(&s->files);
		s->files.dir = dir;
		if (err->code == ERR_CORRUPT)
			return -1;
		audit_note_failure(s, err);
		send_report(s);
		struct pollfd gone = { .fd = s->socket, .events = POLLRDHUP };
		if (poll(&gone, 1, RETRY_MS) > 0 && ++tries > 10)
			return -1;
	}
	s->last = s->files.last;
	s->report.found = s->files.found;
	s->report.is_first = 1;
	note_success(s);
	return 0;
}

static void pause_between_groups(struct server *s)
{
	uint64_t now = clock_monotonic_ms(), due = s->began_ms + AUDIT_GROUP_MS;
	if (now < due && !s->is_over)
		usleep((useconds_t)(due - now) * 1000);
	s->began_ms = clock_monotonic_ms();
}

static int serve(struct server *s, struct error *err)
{
	struct error why;
	if (audit_files_reserve(&s->files, 0, &why))
		audit_note_failure(s, &why);
	send_report(s);
	while (!s->is_over) {
		bool is_stuck = s->lines.len || s->report.sys_errno;
		int timeout = is_stuck ? RETRY_MS : s->files.has_unsynced_head ? HEAD_SYNC_MS : -1;
		/* What can't be written is not added to. */
		struct pollfd gone = { .fd = s->socket, .events = POLLRDHUP };
		bool is_gone = s->lines.len && poll(&gone, 1, timeout) > 0;
		if (!s->lines.len && audit_receive(s, timeout, err))
			return -1;
		pause_between_groups(s);
		/* More may have come meanwhile; it belongs to this group. */
		while (!s->is_over && s->lines.len < READ_BYTES && !is_stuck) {
			size_t before = s->in.len + s->lines.len;
			if (audit_receive(s, 0, err))
				return -1;
			if (before == s->in.len + s->lines.len)
				break;
		}
		if (s->lines.len || is_stuck)
			write_group(s);
		if (is_gone && s->lines.len)
			s->is_over = true; /* nobody can free space for what is left */
		if (s->files.has_unsynced_head && s->head_synced_ms + HEAD_SYNC_MS <= s->began_ms) {
			audit_files_sync_head(&s->files);
			s->head_synced_ms = clock_monotonic_ms();
		}
	}
	return 0;
}

int audit_serve(
	int socket, int dir, const struct audit_options *options, bool drops, struct error *err)
{
	struct server s = { .socket = socket, .drops = drops };
	int failed = -1;
	buf_init(&s.in, IN_MAX);
	buf_init(&s.lines, LINES_MAX);
	buf_init(&s.clean, AUDIT_LINE_MAX);
	if (!open_files(&s, dir, options, err)) {
		failed = serve(&s, err);
		if (!failed && s.lines.len)
			write_group(&s);
	}
	audit_files_close(&s.files);
	buf_done(&s.in);
	buf_done(&s.lines);
	buf_done(&s.clean);
	return failed;
}
