/* /v1/workspaces/{id}/files/{path} */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "api/call.h"
#include "api/schema.h"
#include "base/fd.h"
#include "core/files.h"

/* What waits for a file agent. */
struct asked {
	struct operation op;
	int status; /* of success; 0: 201 when it was made, else 200 */
	bool writes;
};

/* If-None-Match: *, of which the server has seen that it is nothing else. */
static bool must_be_new(struct call *c)
{
	return http_header(c->r, "if-none-match").data;
}

/* A write that doesn't fit is about the disk, whoever set the limit. */
static void answer_write_error(struct call *c, const struct error *err)
{
	int status = problem_status(err->code);

	if (err->code == ERR_LIMIT)
		status = 507;
	if (err->code == ERR_CONFLICT && must_be_new(c))
		status = 412;
	call_problem_status(c, status, err);
}

static void print_answer(struct call *c, int status, const struct file_info *info)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	file_print(&j, NULL, info);
	call_json(c, status, NULL, &body);
}

static struct asked *ask(struct call *c, int status, bool writes)
{
	struct asked *asked = operation_new(c, sizeof *asked);

	asked->status = status;
	asked->writes = writes;
	return asked;
}

/* The call, when it is to be answered with more than a problem. */
static struct call *end_asked(struct asked *asked, const struct error *err)
{
	bool writes = asked->writes;
	struct call *c = operation_end(&asked->op);

	if (!c || !err)
		return c;
	if (writes)
		answer_write_error(c, err);
	else
		call_problem(c, err);
	return NULL;
}

static void on_info(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct asked *asked = ctx;
	int status = asked->status;
	struct call *c = end_asked(asked, err);

	if (c)
		print_answer(c, status ? status : answer->created ? 201 : 200, &answer->info);
}

/* ---- GET, HEAD ---- */

static void on_list(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct call *c = end_asked(ctx, err);

	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	if (!c)
		return;
	struct json j = json_to(&body, false);
	json_object(&j, NULL);
	json_array(&j, "items");
	for (size_t i = 0; i < answer->infos.count; i++)
		file_print(&j, NULL, &answer->infos.items[i]);
	json_end(&j);
	json_text(&j, "next_cursor", answer->next);
	json_end(&j);
	call_json(c, 200, NULL, &body);
}

enum range { RANGE_ALL, RANGE_PART, RANGE_NONE };

/* One range "bytes=a-b", "bytes=a-" or "bytes=-n" (RFC 9110); what isn't one is as if it weren't
 * there. */
static enum range parse_range(struct str text, uint64_t size, uint64_t *offset, uint64_t *len)
{
	struct str first, last;
	uint64_t a = 0, b = UINT64_MAX;

	if (!text.data || !str_starts_with(text, "bytes="))
		return RANGE_ALL;
	text.data += strlen("bytes=");
	text.len -= strlen("bytes=");
	if (!str_cut(text, '-', &first, &last) || (first.len && !str_to_u64(first, &a)) ||
		(last.len && !str_to_u64(last, &b)) || (!first.len && !last.len) ||
		(first.len && last.len && b < a))
		return RANGE_ALL;
	if (!first.len) { /* the last b bytes */
		if (!b || !size)
			return RANGE_NONE;
		*len = b < size ? b : size;
		*offset = size - *len;
		return RANGE_PART;
	}
	if (a >= size)
		return RANGE_NONE;
	*offset = a;
	*len = (b < size - 1 ? b : size - 1) - a + 1;
	return RANGE_PART;
}

static void answer_file(struct call *c, int fd, const struct file_info *info)
{
	struct str range = http_header(c->r, "range");
	uint64_t offset = 0, len = info->size;
	time_t seconds = (time_t)(info->modified_ms / 1000);
	char modified[40] = "";
	struct error err;
	struct tm tm;

	/* No validator is given out that If-Range could name; a head has no parts. */
	if (http_header(c->r, "if-range").data || str_is(c->r->method, "HEAD"))
		range.data = NULL;
	gmtime_r(&seconds, &tm);
	strftime(modified, sizeof modified, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	const char *headers = arena_printf(&c->r->arena,
		"Last-Modified: %s\r\nAccept-Ranges: bytes\r\nCarrel-Mode: %04o\r\n"
		"X-Content-Type-Options: nosniff\r\n",
		modified, info->mode);
	enum range kind = parse_range(range, info->size, &offset, &len);
	if (kind == RANGE_NONE) {
		close(fd);
		auto_buf struct buf body = buf_empty(16384);
		fail(&err, ERR_INVALID,
			"the file has %" PRIu64 " bytes, and the range is outside of them",
			info->size);
		problem_print(&body, 416, &err, c->r->id);
		call_respond(c, 416, "application/problem+json",
			arena_printf(
				&c->r->arena, "Content-Range: bytes */%" PRIu64 "\r\n", info->size),
			(struct str){ body.data, body.len });
		return;
	}
	if (kind == RANGE_PART)
		headers = arena_printf(&c->r->arena,
			"%sContent-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n", headers,
			offset, offset + len - 1, info->size);
	c->status = kind == RANGE_PART ? 206 : 200;
	core_count_read(c->api->core, len);
	http_respond_file(c->r, c->status, "application/octet-stream", headers, fd, offset, len);
}

static void on_open(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct call *c = end_asked(ctx, err);

	if (c)
		answer_file(c, answer->fd, &answer->info);
	else if (answer)
		close(answer->fd);
}

void api_file_get(struct call *c)
{
	const struct file_query *query = c->query;
	struct files_request what = { FILES_STAT, .path = c->path, .cursor = query->cursor,
		.limit = query->limit ? query->limit : LIMIT_DEFAULT };
	struct core_workspace *w;
	struct error err;

	if (call_workspace(c, &w))
		return;
	if (query->list && query->stat) {
		fail(&err, ERR_INVALID, "'list' and 'stat' are both given");
		call_problem(c, &err);
	} else if (query->list) {
		what.verb = FILES_LIST;
		files_do(c->request, w, &what, on_list, ask(c, 200, false));
	} else if (query->stat) {
		files_do(c->request, w, &what, on_info, ask(c, 200, false));
	} else {
		what.verb = FILES_OPEN;
		files_do(c->request, w, &what, on_open, ask(c, 200, false));
	}
}

/* ---- PUT ---- */

struct upload {
	struct operation op;
	struct file_write *write; /* NULL: it isn't begun, or is being finished */
};

static void on_written(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct upload *upload = ctx;
	struct call *c = operation_end(&upload->op);

	if (c && err)
		answer_write_error(c, err);
	else if (c)
		print_answer(c, answer->created ? 201 : 200, &answer->info);
}

static void on_piece(struct call *c, struct str data)
{
	struct upload *upload = c->own;
	struct file_write *write = upload->write;
	struct error err;

	if (!write)
		return;
	if (!data.len) {
		upload->write = NULL;
		files_finish_write(write, on_written, upload);
		return;
	}
	if (!files_write(write, data.data, data.len, &err))
		return;
	upload->write = NULL;
	files_abort_write(write);
	on_written(upload, NULL, &err);
}

/* The client went in the middle; or at the end, then what it sent whole gets its name. */
static void on_gone(struct call *c)
{
	struct upload *upload = c->own;

	upload->op.call = NULL;
	if (!upload->write)
		return;
	files_abort_write(upload->write);
	operation_end(&upload->op);
}

static void on_begun(void *ctx, struct file_write *write, const struct error *err)
{
	struct upload *upload = ctx;
	struct call *c = upload->op.call;

	if (c && !err) {
		upload->write = write;
		c->piece = on_piece;
		http_stream_body(c->r);
		return;
	}
	files_abort_write(write);
	c = operation_end(&upload->op);
	if (c)
		answer_write_error(c, err);
}

static void begin_upload(struct call *c, struct core_workspace *w, unsigned mode)
{
	struct upload *upload = operation_new(c, sizeof *upload);

	c->gone = on_gone;
	files_begin_write(c->request, w, c->path, mode,
		WRITE_PARENTS | (must_be_new(c) ? WRITE_NEW : 0), on_begun, upload);
}

void api_file_put(struct call *c)
{
	const struct file_query *query = c->query;
	struct files_request what = { FILES_MKDIR, .path = c->path, .to = query->move };
	unsigned mode = query->mode ? (unsigned)strtoul(query->mode, NULL, 8) : 0;
	struct core_workspace *w;
	struct error err;

	if (call_workspace(c, &w))
		return;
	if ((query->mkdir != 0) + (query->move != NULL) + (query->mode != NULL) > 1) {
		fail(&err, ERR_INVALID, "only one of 'mkdir', 'move' and 'mode' can be given");
		call_problem(c, &err);
	} else if (must_be_new(c) && (query->mkdir || query->move)) {
		fail(&err, ERR_INVALID, "If-None-Match can only be used when a file is written");
		call_problem(c, &err);
	} else if (query->mkdir) {
		files_do(c->request, w, &what, on_info, ask(c, 0, true));
	} else if (query->move) {
		what.verb = FILES_MOVE;
		files_do(c->request, w, &what, on_info, ask(c, 200, true));
	} else if (!call_measure_first(c, w, api_file_put)) {
		begin_upload(c, w, mode);
	}
}

/* ---- DELETE ---- */

static void on_removed(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct call *c = end_asked(ctx, err);

	if (c)
		call_empty(c, 204);
}

void api_file_delete(struct call *c)
{
	const struct file_query *query = c->query;
	struct files_request what = { FILES_REMOVE, .path = c->path,
		.recursive = query->recursive };
	struct core_workspace *w;

	if (!call_workspace(c, &w))
		files_do(c->request, w, &what, on_removed, ask(c, 204, false));
}
