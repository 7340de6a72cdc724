#include "doors/call.h"
#include "model/hint.h"

/* ---- answers ---- */

struct call *call_new(struct api *api, struct http_request *r)
{
	struct call *c = arena_alloc(&r->arena, sizeof *c);
	*c = (struct call){ .api = api, .r = r, .door = door_of(r) };
	r->ctx = c;
	return c;
}

void call_respond(
	struct call *c, int status, const char *type, const char *headers, struct str body)
{
	c->status = status;
	http_respond(c->r, status, type, headers, body);
}

void call_empty(struct call *c, int status)
{
	call_respond(c, status, NULL, NULL, STR(""));
}

void call_begin(struct call *c, int status, const char *type, const char *headers)
{
	c->status = status;
	http_begin(c->r, status, type, headers);
}

struct json *call_print(struct call *c)
{
	buf_init(&c->out, BUF_MAX_DEFAULT);
	c->json = json_to(&c->out, false);
	return &c->json;
}

void call_send(struct call *c, int status, const char *headers)
{
	struct error err;
	buf_text(&c->out, "\n");
	if (!c->out.overflow) {
		call_respond(c, status, "application/json", headers,
			(struct str){ c->out.data, c->out.len });
		return;
	}
	fail(&err, ERR_LIMIT, "the response would be too large");
	call_problem(c, &err);
}

int call_answer(struct call *c, const struct record *record, const void *object)
{
	record_print(call_print(c), NULL, record, object);
	call_send(c, 200, NULL);
	return 0;
}

struct json *call_print_list(struct call *c)
{
	struct json *j = call_print(c);
	json_object(j, NULL);
	json_array(j, "items");
	return j;
}

void call_send_list(struct call *c, const char *next)
{
	json_end(&c->json);
	json_text(&c->json, "next_cursor", next);
	json_end(&c->json);
	call_send(c, 200, NULL);
}

struct page call_page(struct call *c)
{
	const struct page_query *query = c->query;
	return (struct page){ .call = c,
		.j = call_print_list(c),
		.cursor = query->cursor,
		.limit = query->limit ? query->limit : LIMIT_DEFAULT };
}

static const char *name_at(const struct record *record, const void *item)
{
	const struct field *row = record->rows;
	while (strcmp(row->name, "name"))
		row++;
	return *(const char *const *)((const char *)item + row->offset);
}

void call_send_array(struct call *c, const struct record *record, const void *items, size_t count,
	size_t size, bool is_sorted)
{
	struct page page = call_page(c);
	const char *item = items, *end = item + count * size, *last = NULL;
	if (page.cursor && is_sorted)
		while (item < end && strcmp(name_at(record, item), page.cursor) <= 0)
			item += size;
	for (const char *one = item; page.cursor && !is_sorted && one < end; one += size)
		if (!strcmp(name_at(record, one), page.cursor))
			item = one + size;
	for (; item < end && page.limit; item += size, page.limit--) {
		record_print(page.j, NULL, record, item);
		last = name_at(record, item);
	}
	call_send_list(c, item < end ? last : NULL);
}

int call_send_page(struct page *page, int failed)
{
	if (failed)
		return -1;
	call_send_list(page->call, page->next[0] ? page->next : NULL);
	return 0;
}

void call_let_go(struct call *c)
{
	if (c->priv && c->gone)
		c->gone(c);
	c->priv = NULL;
	c->gone = NULL;
	c->piece = NULL;
	c->writable = NULL;
}

void call_end(struct call *c)
{
	call_let_go(c);
	http_end(c->r);
}

/* ---- problems ---- */

int problem_status(enum error_code code)
{
	static const int statuses[ERR_CODE_COUNT] = {
		[ERR_NONE] = 500,
		[ERR_INVALID] = 400,
		[ERR_NOT_FOUND] = 404,
		[ERR_CONFLICT] = 409,
		[ERR_DENIED] = 403,
		[ERR_LIMIT] = 429,
		[ERR_DISK_FULL] = 507,
		[ERR_UNAVAILABLE] = 503,
		[ERR_CORRUPT] = 500,
		[ERR_FAILED] = 500,
		[ERR_COMMAND_NOT_FOUND] = 400,
		[ERR_NOT_EXECUTABLE] = 400,
		[ERR_CANCELED] = 409,
		[ERR_UNAUTHENTICATED] = 401,
		[ERR_POLICY] = 403,
		[ERR_APPROVAL_REQUIRED] = 403,
	};
	return (unsigned)code < ERR_CODE_COUNT ? statuses[code] : 500;
}

bool call_is_cli(struct call *c)
{
	return str_starts_with(http_header(c->r, "user-agent"), "carrel/");
}

const char *hint_of(const char *hint, bool is_cli, struct arena *arena)
{
	char text[ERROR_HINT_SIZE];
	if (!hint[0])
		return NULL;
	if (is_cli)
		return hint;
	hint_for_rest(hint, text);
	return arena_text(arena, text);
}

void problem_print(struct json *j, int status, const struct error *err, const char *request_id,
	const struct request *request, bool is_cli)
{
	auto_arena struct arena arena = { 0 };
	json_text(j, "title", http_status_title(status));
	json_i64(j, "status", status);
	json_text(j, "code", error_code_name(err->code));
	json_text(j, "detail", err->text);
	json_text(j, "hint", hint_of(err->hint, is_cli, &arena));
	json_text(j, "request_id", request_id);
	bool is_policy = err->code == ERR_POLICY || err->code == ERR_APPROVAL_REQUIRED;
	if (err->code == ERR_COMMAND_NOT_FOUND || err->code == ERR_NOT_EXECUTABLE || is_policy)
		json_i64(j, "exit_code", error_exit_code(err->code));
	if (is_policy)
		json_raw(j, "trail", access_trail(request));
}

static void print_problem(struct call *c, struct json *j, int status, const struct error *err)
{
	json_object(j, NULL);
	json_text(j, "type", "about:blank");
	problem_print(j, status, err, c->r->id, c->request, call_is_cli(c));
}

void call_problem_with(struct call *c, int status, const char *headers, const struct error *err)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	print_problem(c, &j, status, err);
	json_end(&j);
	buf_text(&body, "\n");
	call_respond(c, status, "application/problem+json",
		status == 503 ? "Retry-After: 1\r\n" : headers,
		(struct str){ body.data, body.len });
}

void call_problem_more(struct call *c, const struct error *err,
	void (*print)(struct json *j, const void *ctx), const void *ctx)
{
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	int status = problem_status(err->code);
	print_problem(c, &j, status, err);
	print(&j, ctx);
	json_end(&j);
	buf_text(&body, "\n");
	call_respond(
		c, status, "application/problem+json", NULL, (struct str){ body.data, body.len });
}

void call_problem(struct call *c, const struct error *err)
{
	c->door->refuse(
		c, c->problem ? c->problem : problem_status(err->code), c->problem_headers, err);
}

/* ---- what was asked ---- */

int call_workspace(struct call *c, struct core_workspace **w, struct error *err)
{
	return core_find(c->request, c->api->core, c->id, w, err);
}

int call_run(struct call *c, struct error *err)
{
	if ((c->operation->flags & ROUTE_WORKSPACE) && call_workspace(c, &c->workspace, err))
		return -1;
	return c->run(c, err);
}

const char *call_header(struct call *c, const char *name)
{
	struct str value = http_header(c->r, name);
	return value.data ? arena_bytes(&c->r->arena, value.data, value.len) : NULL;
}

static struct str media_type(struct str text)
{
	struct str name, rest;
	str_cut(text, ';', &name, &rest);
	return str_trim(name);
}

bool media_type_is(struct str text, const char *type)
{
	struct str name = media_type(text);
	return name.len == strlen(type) && !strncasecmp(name.data, type, name.len);
}

/* One element of Accept against a type: "a/ *" or "* / *". */
static bool is_in_range(struct str range, const char *type)
{
	struct str name = media_type(range);
	size_t len = (size_t)(strchr(type, '/') - type) + 1;
	return str_is(name, "*/*") ||
	       (name.len == len + 1 && name.data[len] == '*' && !strncasecmp(name.data, type, len));
}

bool call_accepts(struct call *c, const char *type, bool *is_named)
{
	struct str rest = http_header(c->r, "accept"), piece;
	bool is_accepted = !rest.data || !str_trim(rest).len;
	*is_named = false;
	while (rest.data && str_next(&rest, ',', &piece)) {
		bool is_exact = media_type_is(piece, type);
		is_accepted |= is_exact || is_in_range(piece, type);
		*is_named |= is_exact;
	}
	return is_accepted;
}

bool call_wants_events(struct call *c)
{
	bool wants_events, wants_json;
	call_accepts(c, "text/event-stream", &wants_events);
	call_accepts(c, "application/json", &wants_json);
	return wants_events && !wants_json;
}
