#include "api/call.h"
#include <strings.h>

void call_respond(
	struct call *c, int status, const char *type, const char *headers, struct str body)
{
	c->status = status;
	http_respond(c->r, status, type, headers, body);
}

void call_json(struct call *c, int status, const char *headers, const struct buf *body)
{
	if (body->overflow) {
		struct error err;

		fail(&err, ERR_LIMIT, "the response would be too large");
		call_problem(c, &err);
		return;
	}
	call_respond(c, status, "application/json", headers, (struct str){ body->data, body->len });
}

void call_empty(struct call *c, int status)
{
	call_respond(c, status, NULL, NULL, STR(""));
}

void call_let_go(struct call *c)
{
	if (c->own && c->gone)
		c->gone(c);
	c->own = NULL;
	c->gone = NULL;
	c->piece = NULL;
	c->writable = NULL;
}

void call_begin(struct call *c, int status, const char *type, const char *headers)
{
	c->status = status;
	http_begin(c->r, status, type, headers);
}

void call_problem_status(struct call *c, int status, const struct error *err)
{
	const char *headers = status == 503 ? "Retry-After: 1\r\n" : NULL;

	auto_buf struct buf body = buf_empty(16384);
	problem_print(&body, status, err, c->r->id);
	call_respond(c, status, "application/problem+json", headers,
		(struct str){ body.data, body.len });
}

void call_problem(struct call *c, const struct error *err)
{
	call_problem_status(c, problem_status(err->code), err);
}

int call_workspace(struct call *c, struct core_workspace **w)
{
	struct error err;

	if (!core_find(c->request, c->api->core, c->id, w, &err))
		return 0;
	call_problem(c, &err);
	return -1;
}

const char *call_header(struct call *c, const char *name)
{
	struct str value = http_header(c->r, name);

	return value.data ? arena_bytes(&c->r->arena, value.data, value.len) : NULL;
}

/* One element of Accept against a type: "a/b", "a/ *" or "* / *", parameters aside. */
static bool matches(struct str range, const char *type, bool *is_exact)
{
	const char *slash = strchr(type, '/');
	struct str name, rest;

	str_cut(range, ';', &name, &rest);
	name = str_trim(name);
	*is_exact = name.len == strlen(type) && !strncasecmp(name.data, type, name.len);
	return *is_exact || str_is(name, "*/*") ||
	       (name.len == (size_t)(slash - type) + 2 &&
		       !strncasecmp(name.data, type, name.len - 1) &&
		       name.data[name.len - 1] == '*');
}

bool call_accepts(struct call *c, const char *type, bool *is_named)
{
	struct str rest = http_header(c->r, "accept"), piece;
	bool is_accepted = !rest.data || !str_trim(rest).len;

	*is_named = false;
	while (rest.data && str_next(&rest, ',', &piece)) {
		bool is_exact;

		if (!matches(piece, type, &is_exact))
			continue;
		is_accepted = true;
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
