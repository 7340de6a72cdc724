/* /v1/workspaces/{id}/files/{path} */
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/files/files.h"
#include "doors/rest/handlers.h"

/* If-None-Match: *, of which the server has seen that it is nothing else. */
static bool must_be_new(struct call *c)
{
	return http_header(c->r, "if-none-match").data;
}

/* A write that doesn't fit is reported as a full disk, whether a limit or the disk was hit. */
static void answer_write_error(struct call *c, const struct error *err)
{
	if (err->code == ERR_LIMIT)
		c->problem = 507;
	if (err->code == ERR_CONFLICT && must_be_new(c))
		c->problem = 412;
	call_problem(c, err);
}

static void answer_info(struct call *c, const struct files_answer *answer)
{
	file_print(call_print(c), NULL, &answer->info);
	call_send(c, answer->created ? 201 : 200, NULL);
}

static void answer_list(struct call *c, const struct files_answer *answer)
{
	struct json *j = call_print_list(c);
	for (size_t i = 0; i < answer->infos.count; i++)
		file_print(j, NULL, &answer->infos.items[i]);
	call_send_list(c, answer->next);
}

/* ---- reading ---- */

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
	char modified[40];
	struct error err;
	/* No validator is given out that If-Range could name; a head has no parts. */
	if (http_header(c->r, "if-range").data || str_is(c->r->method, "HEAD"))
		range.data = NULL;
	clock_format_http(modified, info->modified_ms);
	const char *headers = arena_printf(&c->r->arena,
		"Last-Modified: %s\r\nAccept-Ranges: bytes\r\nCarrel-Mode: %04o\r\n"
		"X-Content-Type-Options: nosniff\r\n",
		modified, info->mode);
	enum range kind = parse_range(range, info->size, &offset, &len);
	if (kind == RANGE_NONE) {
		close(fd);
		fail(&err, ERR_INVALID,
			"the file has %" PRIu64 " bytes, and the range is outside of them",
			info->size);
		call_problem_with(c, 416,
			arena_printf(
				&c->r->arena, "Content-Range: bytes */%" PRIu64 "\r\n", info->size),
			&err);
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

/* ---- what a file server is asked ---- */

struct asked {
	struct pending op;
	enum files_verb verb;
};

static void on_done(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct asked *asked = ctx;
	enum files_verb verb = asked->verb;
	struct call *c = pending_end(&asked->op);
	if (!c && answer && verb == FILES_OPEN)
		close(answer->fd);
	if (!c)
		return;
	if (err && (verb == FILES_MKDIR || verb == FILES_MOVE))
		answer_write_error(c, err);
	else if (err)
		call_problem(c, err);
	else if (verb == FILES_OPEN)
		answer_file(c, answer->fd, &answer->info);
	else if (verb == FILES_LIST)
		answer_list(c, answer);
	else if (verb == FILES_REMOVE)
		call_empty(c, 204);
	else
		answer_info(c, answer);
}

static int ask(struct call *c, struct core_workspace *w, enum files_verb verb)
{
	const struct file_query *query = c->query;
	const struct files_request what = { verb, .path = c->path, .to = query->move,
		.cursor = query->page.cursor,
		.limit = query->page.limit ? query->page.limit : LIMIT_DEFAULT,
		.recursive = query->recursive };
	struct asked *asked = pending_new(c, sizeof *asked);
	asked->verb = verb;
	files_do(c->request, w, &what, on_done, asked);
	return 0;
}

static int api_file_get(struct call *c, struct error *err)
{
	const struct file_query *query = c->query;
	if (query->list && query->stat)
		return fail(err, ERR_INVALID, "'list' and 'stat' are both given");
	return ask(c, c->workspace,
		query->list   ? FILES_LIST
		: query->stat ? FILES_STAT
			      : FILES_OPEN);
}

static int api_file_delete(struct call *c, struct error *err)
{
	return ask(c, c->workspace, FILES_REMOVE);
}

/* ---- PUT ---- */

struct upload {
	struct pending op;
	struct file_write *write; /* NULL: it isn't begun, or is being finished */
};

static void on_written(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct upload *upload = ctx;
	struct call *c = pending_end(&upload->op);
	if (c && err)
		answer_write_error(c, err);
	else if (c)
		answer_info(c, answer);
}

static void on_piece(struct call *c, struct str data)
{
	struct upload *upload = c->priv;
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

/* The client disconnected: cancels an incomplete upload; a complete one is still committed. */
static void on_gone(struct call *c)
{
	struct upload *upload = c->priv;
	upload->op.call = NULL;
	if (!upload->write)
		return;
	files_abort_write(upload->write);
	pending_end(&upload->op);
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
	c = pending_end(&upload->op);
	if (c)
		answer_write_error(c, err);
}

static void begin_upload(struct call *c, struct core_workspace *w, unsigned mode)
{
	struct upload *upload = pending_new(c, sizeof *upload);
	c->gone = on_gone;
	files_begin_write(c->request, w, c->path, mode,
		WRITE_PARENTS | (must_be_new(c) ? WRITE_NEW : 0), on_begun, upload);
}

static int api_file_put(struct call *c, struct error *err)
{
	const struct file_query *query = c->query;
	if ((query->mkdir != 0) + (query->move != NULL) + (query->mode != NULL) > 1)
		return fail(
			err, ERR_INVALID, "only one of 'mkdir', 'move' and 'mode' can be given");
	if (must_be_new(c) && (query->mkdir || query->move))
		return fail(
			err, ERR_INVALID, "If-None-Match can only be used when a file is written");
	if (query->mkdir || query->move)
		return ask(c, c->workspace, query->mkdir ? FILES_MKDIR : FILES_MOVE);
	if (!call_measure_first(c, c->workspace))
		begin_upload(
			c, c->workspace, query->mode ? (unsigned)strtoul(query->mode, NULL, 8) : 0);
	return 0;
}

const struct handler files_handlers[] = { { "readFile", api_file_get },
	{ "writeFile", api_file_put }, { "removeFile", api_file_delete }, { 0 } };
