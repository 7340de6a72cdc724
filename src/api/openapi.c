/* /openapi.json: printed from the rows that routes are found and requests are read by. */
#include <stdio.h>
#include "api/call.h"
#include "api/schema.h"

static void print_reference(struct json *j, const char *key, const char *where, const char *name)
{
	char reference[128];

	str_format(reference, sizeof reference, "#/components/%s/%s", where, name);
	json_object(j, key);
	json_text(j, "$ref", reference);
	json_end(j);
}

static void print_content(
	struct json *j, const char *type, const struct record *schema, unsigned use)
{
	json_object(j, type);
	if (schema) {
		print_reference(j, "schema", "schemas", record_schema_name(schema, use));
	} else {
		json_object(j, "schema");
		if (strncmp(type, "application/json", 16)) {
			json_text(j, "type", "string");
			if (strncmp(type, "text/", 5))
				json_text(j, "format", "binary");
		}
		json_end(j);
	}
	json_end(j);
}

/* ---- parameters ---- */

static void print_path_parameter(struct json *j, const char *name, const char *about)
{
	json_object(j, NULL);
	json_text(j, "name", name);
	json_text(j, "in", "path");
	json_bool(j, "required", true);
	json_text(j, "description", about);
	json_raw(j, "schema", "{\"type\":\"string\",\"minLength\":1}");
	json_end(j);
}

static void print_header_parameter(
	struct json *j, const char *name, const char *about, const char *pattern, unsigned most)
{
	json_object(j, NULL);
	json_text(j, "name", name);
	json_text(j, "in", "header");
	json_text(j, "description", about);
	json_object(j, "schema");
	json_text(j, "type", "string");
	if (pattern)
		json_text(j, "pattern", pattern);
	if (most)
		json_u64(j, "maxLength", most);
	json_end(j);
	json_end(j);
}

static void print_parameters(struct json *j, const struct route *route, bool is_head)
{
	bool is_exec = str_starts_with(str_from(route->path), "/v1/execs/");

	json_array(j, "parameters");
	if (strstr(route->path, "{id}"))
		print_path_parameter(j, "id",
			is_exec ? "id of an exec" : "id, name or context_id of a workspace");
	if (strstr(route->path, "{port}")) {
		print_path_parameter(j, "port", "a TCP port of 127.0.0.1 or ::1 inside");
		print_path_parameter(j, "path", "of the server; may be empty");
	} else if (strstr(route->path, "{path}"))
		print_path_parameter(j, "path",
			"from /workspace on, or, with a slash before it, absolute; slashes needn't "
			"be encoded");
	for (size_t i = 0; route->query && i < route->query->count; i++) {
		const struct field *row = &route->query->rows[i];

		json_object(j, NULL);
		json_text(j, "name", row->name);
		json_text(j, "in", "query");
		if (row->help)
			json_text(j, "description", row->help);
		if (row->kind == FIELD_BOOLEAN)
			json_bool(j, "allowEmptyValue", true);
		record_print_parameter(j, "schema", row);
		json_end(j);
	}
	if (route->flags & ROUTE_KEYED)
		print_header_parameter(j, "Idempotency-Key",
			"the same key with the same body gets the same response for 24 hours. An "
			"exec with a key continues when its client disconnects, and can't be "
			"streamed as events. If its response is larger than 1 MB, repeating the "
			"request is a conflict",
			"^[!-~]+$", IDEMPOTENCY_KEY_MAX);
	if (route->flags & ROUTE_EVENTS)
		print_header_parameter(j, "Last-Event-ID",
			"begin after this event, as far back as events are kept", "^[0-9]{1,18}$",
			0);
	if ((route->flags & ROUTE_RANGE) && !is_head)
		print_header_parameter(j, "Range",
			"one range, such as bytes=0-99; an invalid range is ignored", NULL, 0);
	if (route->flags & ROUTE_NEW)
		print_header_parameter(
			j, "If-None-Match", "write the file only if it doesn't exist", "^\\*$", 0);
	json_end(j);
}

static void print_body(struct json *j, const struct route *route, const char *method)
{
	/* A request to read has no body, of whatever server it is. */
	if ((!route->body && !route->body_type) || !strcmp(method, "get"))
		return;
	json_object(j, "requestBody");
	json_bool(j, "required", route->body && !(route->flags & ROUTE_OPTIONAL));
	json_object(j, "content");
	print_content(
		j, route->body ? "application/json" : route->body_type, route->body, FIELD_IN);
	json_end(j);
	json_end(j);
}

/* ---- answers ---- */

static void print_answer(struct json *j, const struct route *route, size_t *at)
{
	const struct route_answer *answers = route->answers;
	int status = answers[*at].status;
	bool has_content = answers[*at].type != NULL;
	char name[8], about[512] = "";

	str_format(name, sizeof name, "%d", status);
	json_object(j, name);
	for (size_t i = *at; answers[i].status == status; i++) {
		size_t len = strlen(about);

		str_format(
			about + len, sizeof about - len, "%s%s", len ? " " : "", answers[i].about);
	}
	json_text(j, "description", about);
	if (status == 201 && (route->flags & ROUTE_LOCATION))
		json_raw(j, "headers",
			"{\"Location\":{\"required\":true,\"schema\":{\"type\":\"string\"}}}");
	if (has_content)
		json_object(j, "content");
	for (; answers[*at].status == status; ++*at)
		if (has_content)
			print_content(j, answers[*at].type, answers[*at].schema, FIELD_OUT);
	if (has_content)
		json_end(j);
	json_end(j);
}

/* What any request may get, and what one of this route may. */
static bool has_error(const struct route *route, int status)
{
	static const unsigned short all[] = { 400, 401, 403, 408, 413, 414, 417, 429, 431, 500,
		503 };

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i] == status)
			return true;
	for (size_t i = 0; i < sizeof route->errors / sizeof *route->errors; i++)
		if (route->errors[i] == status)
			return true;
	return (status == 404 && strstr(route->path, "{id}")) || (status == 415 && route->body) ||
	       (status == 404 && route->query == &events_query_fields);
}

static void print_answers(struct json *j, const struct route *route)
{
	json_object(j, "responses");
	for (size_t at = 0; route->answers[at].status;)
		print_answer(j, route, &at);
	for (int status = 400; status < 600; status++) {
		char name[8];

		if (!has_error(route, status))
			continue;
		str_format(name, sizeof name, "%d", status);
		print_reference(j, name, "responses", name);
	}
	json_end(j);
}

static void print_operation(struct json *j, const struct route *route, const char *method)
{
	char name[64];

	json_object(j, method);
	bool is_named = !strcmp(method, "head") || !strcmp(route->method, "*");
	str_format(name, sizeof name, "%s%s", route->name, is_named ? method : "");
	if (is_named)
		name[strlen(route->name)] &= ~0x20; /* "readFileHead" */
	json_text(j, "operationId", name);
	json_text(j, "summary", route->summary);
	print_parameters(j, route, !strcmp(method, "head"));
	print_body(j, route, method);
	print_answers(j, route);
	json_end(j);
}

static void print_operations(struct json *j, const struct route *route)
{
	static const char *const any[] = { "get", "post", "put", "patch", "delete" };
	char method[8] = "";

	for (size_t i = 0; i < sizeof any / sizeof *any && !strcmp(route->method, "*"); i++)
		print_operation(j, route, any[i]);
	if (!strcmp(route->method, "*"))
		return;
	for (size_t n = 0; n < sizeof method - 1 && route->method[n]; n++)
		method[n] = (char)(route->method[n] | 0x20);
	print_operation(j, route, method);
	/* All that can be read has a head; that of files is worth telling. */
	if (route->flags & ROUTE_RANGE)
		print_operation(j, route, "head");
}

static void print_paths(struct json *j)
{
	json_object(j, "paths");
	for (size_t i = 0; i < route_count; i++) {
		bool is_first = true;

		for (size_t k = 0; k < i; k++)
			is_first &= strcmp(routes[k].path, routes[i].path) != 0;
		if (!is_first)
			continue;
		json_object(j, routes[i].path);
		for (size_t k = i; k < route_count; k++)
			if (!strcmp(routes[k].path, routes[i].path))
				print_operations(j, &routes[k]);
		json_end(j);
	}
	json_end(j);
}

static void print_problems(struct json *j)
{
	json_object(j, "responses");
	for (int status = 400; status < 600; status++) {
		char name[8];

		if (!strcmp(http_status_title(status), "Error"))
			continue;
		str_format(name, sizeof name, "%d", status);
		json_object(j, name);
		json_text(j, "description", http_status_title(status));
		json_object(j, "content");
		print_content(j, "application/problem+json", &problem_schema, FIELD_OUT);
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

/* ---- schemas ---- */

struct schemas {
	struct {
		const struct record *record;
		unsigned use;
	} items[128];
	size_t count;
};

/* With all that it refers to. */
static void add_schema(struct schemas *schemas, const struct record *record, unsigned use)
{
	for (size_t i = 0; i < schemas->count; i++)
		if (schemas->items[i].record == record && schemas->items[i].use == use)
			return;
	if (!record || schemas->count == sizeof schemas->items / sizeof *schemas->items)
		return;
	schemas->items[schemas->count].record = record;
	schemas->items[schemas->count++].use = use;
	for (size_t i = 0; i < record->count; i++)
		if (field_is(record, &record->rows[i], use))
			add_schema(schemas, record->rows[i].object, use);
}

static void print_schemas(struct json *j)
{
	struct schemas schemas = { 0 };

	for (size_t i = 0; i < route_count; i++) {
		add_schema(&schemas, routes[i].body, FIELD_IN);
		for (const struct route_answer *a = routes[i].answers; a->status; a++)
			add_schema(&schemas, a->schema, FIELD_OUT);
	}
	add_schema(&schemas, &problem_schema, FIELD_OUT);
	add_schema(&schemas, &event_schema, FIELD_OUT);
	add_schema(&schemas, &files_schema, FIELD_OUT);
	json_object(j, "schemas");
	for (size_t i = 0; i < schemas.count; i++)
		record_print_schema(j,
			record_schema_name(schemas.items[i].record, schemas.items[i].use),
			schemas.items[i].record, schemas.items[i].use);
	json_end(j);
}

void openapi_print(struct buf *out)
{
	struct json j = json_to(out, false);
	json_object(&j, NULL);
	json_text(&j, "openapi", "3.1.0");
	json_object(&j, "info");
	json_text(&j, "title", "Carrel");
	json_text(&j, "version", CARREL_VERSION);
	json_text(&j, "description",
		"Persistent workspaces, their commands and their files. Every response other than "
		"2xx is application/problem+json.");
	json_end(&j);
	print_paths(&j);
	json_object(&j, "components");
	print_schemas(&j);
	print_problems(&j);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
}
