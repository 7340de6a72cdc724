/* Which route of a door a request is for. */
#include "doors/call.h"

/* What the names of a template stand for, encoded. */
struct names {
	struct str id, port, rest;
};

/* Whether the path is one of the template. */
static bool path_fits(struct str path, const char *template, struct names *names)
{
	while (*template) {
		/* Every request is compared with every route: names are rare, letters are not. */
		if (*template != '{') {
			if (!path.len || path.data[0] != *template)
				/* ".../files" is the tree itself, as ".../files/" is. */
				return !path.len && !strcmp(template, "/{path}") &&
				       (names->rest = STR(""), true);
			path.data++;
			path.len--;
			template ++;
			continue;
		}
		if (!strcmp(template, "{path}")) {
			names->rest = path;
			return true;
		}
		size_t len = 0;
		while (len < path.len && path.data[len] != '/')
			len++;
		if (!len)
			return false;
		bool is_port = str_starts_with(str_from(template), "{port}");
		*(is_port ? &names->port : &names->id) = (struct str){ path.data, len };
		path.data += len;
		path.len -= len;
		template += strlen(is_port ? "{port}" : "{id}");
	}
	return !path.len;
}

/* The path without the slash at its end, where that says nothing. */
static struct str path_at(const struct door *door, struct str path)
{
	if (door->takes_last_slash && path.len > 1 && path.data[path.len - 1] == '/')
		path.len--;
	return path;
}

static int decode(struct call *c, struct str text, const char **out, struct error *err)
{
	struct str decoded;
	if (text.data && !http_decode(c->r, text, &decoded))
		return fail(err, ERR_INVALID, "the path is not percent-encoded properly");
	if (text.data)
		*out = arena_bytes(&c->r->arena, decoded.data, decoded.len);
	return 0;
}

bool route_is_open(const struct http_request *r)
{
	const struct door *door = door_of(r);
	struct str path = path_at(door, r->path);
	for (const struct route *route = door->routes(); route->operation; route++)
		if ((route->operation->flags & ROUTE_OPEN) &&
			path_fits(path, route->operation->path, &(struct names){ 0 }))
			return true;
	return false;
}

int route_find(struct call *c, const char **allow, struct error *err)
{
	struct str path = path_at(c->door, c->r->path), method = c->r->method;
	bool is_head = str_is(method, "HEAD");
	auto_buf struct buf methods = buf_empty(256);
	for (const struct route *route = c->door->routes(); route->operation; route++) {
		const struct operation *operation = route->operation;
		struct names names = { 0 };
		bool is_any = !strcmp(operation->method, "*");
		if (!path_fits(path, operation->path, &names))
			continue;
		if (is_any || (str_is(method, is_head ? "HEAD" : operation->method) &&
				      (!is_head || !strcmp(operation->method, "GET")))) {
			c->operation = operation;
			c->run = route->run;
			c->which = route->which;
			c->rest = names.rest;
			return decode(c, names.id, &c->id, err) ||
					       decode(c, names.port, &c->port, err) ||
					       decode(c, names.rest, &c->path, err)
				       ? 400
				       : 0;
		}
		buf_printf(&methods, "%s%s%s", methods.len ? ", " : "", operation->method,
			strcmp(operation->method, "GET") ? "" : ", HEAD");
	}
	if (methods.len) {
		*allow = arena_text(&c->r->arena, methods.data);
		fail_hint(err, ERR_INVALID, *allow, "method %.*s is not allowed for this path",
			(int)method.len, method.data);
		return 405;
	}
	char shown[128];
	str_printable(shown, sizeof shown, c->r->path);
	fail_hint(err, ERR_NOT_FOUND, "/openapi.json lists all routes", "there is no '%s'", shown);
	return 404;
}
