/* /openapi.json: printed from the rows that routes are found and requests are read by. */
#include "doors/call.h"

static const struct {
	const char *name, *about;
} tags[] = {
	{ "workspaces", "Private trees with their limits, environment and lifetime." },
	{ "execs", "Commands in workspaces: their output, input and end." },
	{ "files", "Files of a workspace, one by one, as archives, and as changes." },
	{ "snapshots",
		"Frozen states of workspaces: roll back to them, fork from them, copy them." },
	{ "packages", "Python and Node packages of workspaces, and built environments." },
	{ "templates", "Descriptions from which workspaces are made." },
	{ "agents", "A2A agents, which have a workspace for each context." },
	{ "archives", "Workspaces that were packed before their removal." },
	{ "approvals", "Commands that wait for a person's answer." },
	{ "tokens", "Credentials of clients." },
	{ "tools", "Code that is run once, and tools that are tested before they are loaded." },
	{ "cases", "Eval cases, and cells: runs of a case in forks of one prepared state." },
	{ "ports", "Servers that run in workspaces." },
	{ "deployments", "Agent packages that are served." },
	{ "events", "What happens, as it happens; and the audit log." },
	{ "daemon", "The daemon itself." },
};
static void print_reference(struct json *j, const char *key, const char *where, const char *name)
{
	char reference[128];
	str_format(reference, sizeof reference, "#/components/%s/%s", where, name);
	json_object(j, key);
	json_text(j, "$ref", reference);
	json_end(j);
}

/* ---- examples ---- */

/* Of a stream of events it is as it is sent, and named SCHEMA/stream. */
static const char *example_of(const char *schema)
{
	for (const struct operation_table *const *table = operation_tables; *table; table++)
		for (const struct operation_example *one = (*table)->examples; one && one->schema;
			one++)
			if (!strcmp(one->schema, schema))
				return one->text;
	return NULL;
}

static void append_example(struct buf *out, const char *text)
{
	for (const char *c = text; *c; c++)
		buf_append(out, *c == '\'' ? "\"" : c, 1);
}

/* The example of a schema as JSON: its own, or of a list that of one item. false: it has none. */
static bool make_example(struct buf *out, const struct record *schema, unsigned use)
{
	const char *text = example_of(record_schema_name(schema, use));
	bool is_list = !text && schema->count == 2 && schema->rows[0].kind == FIELD_OBJECTS;
	if (is_list)
		text = example_of(record_schema_name(schema->rows[0].object, use));
	if (!text)
		return false;
	buf_text(out, is_list ? "{\"items\":[" : "");
	append_example(out, text);
	buf_text(out, is_list ? "],\"next_cursor\":null}" : "");
	return true;
}

static void print_example(
	struct json *j, const char *type, const struct record *schema, unsigned use)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	bool is_events = !strcmp(type, TYPE_EVENTS);
	char name[64];
	str_format(name, sizeof name, "%s/stream", record_schema_name(schema, use));
	if (is_events && example_of(name)) {
		append_example(&text, example_of(name));
		json_text(j, "example", text.data);
	} else if (!is_events && make_example(&text, schema, use)) {
		json_raw(j, "example", text.data);
	}
}

static void print_content(
	struct json *j, const char *type, const struct record *schema, unsigned use)
{
	json_object(j, type);
	if (schema) {
		print_reference(j, "schema", "schemas", record_schema_name(schema, use));
		print_example(j, type, schema, use);
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

static void print_parameters(struct json *j, const struct operation *operation, bool is_head)
{
	bool is_exec = str_starts_with(str_from(operation->path), "/v1/execs/");
	json_array(j, "parameters");
	if (strstr(operation->path, "{id}"))
		print_path_parameter(j, "id",
			is_exec ? "id of an exec" : "id, name or context_id of a workspace");
	if (strstr(operation->path, "{port}")) {
		print_path_parameter(j, "port", "a TCP port of 127.0.0.1 or ::1 inside");
		print_path_parameter(j, "path", "of the server; may be empty");
	} else if (strstr(operation->path, "{path}"))
		print_path_parameter(j, "path",
			"from /workspace on, or, with a slash before it, absolute; slashes needn't "
			"be encoded");
	for (size_t i = 0; operation->query && i < operation->query->count; i++) {
		const struct field *row = &operation->query->rows[i];
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
	if (operation->flags & ROUTE_KEYED)
		print_header_parameter(j, "Idempotency-Key",
			"the same key with the same body gets the same response for 24 hours. An "
			"exec with a key continues when its client disconnects, and can't be "
			"streamed as events. If its response is larger than 1 MB, repeating the "
			"request is a conflict",
			"^[!-~]+$", IDEMPOTENCY_KEY_MAX);
	if (operation->flags & ROUTE_EVENTS)
		print_header_parameter(j, "Last-Event-ID",
			"begin after this event, as far back as events are kept", "^[0-9]{1,18}$",
			0);
	if ((operation->flags & ROUTE_RANGE) && !is_head)
		print_header_parameter(j, "Range",
			"one range, such as bytes=0-99; an invalid range is ignored", NULL, 0);
	if (operation->flags & ROUTE_NEW)
		print_header_parameter(
			j, "If-None-Match", "write the file only if it doesn't exist", "^\\*$", 0);
	json_end(j);
}

static void print_body(struct json *j, const struct operation *operation, const char *method)
{
	/* GET has no body, also where the operation forwards any method. */
	if ((!operation->takes && !operation->takes_type) || !strcmp(method, "get"))
		return;
	json_object(j, "requestBody");
	json_bool(j, "required", operation->takes && !(operation->flags & ROUTE_OPTIONAL));
	json_object(j, "content");
	print_content(j, operation->takes ? "application/json" : operation->takes_type,
		operation->takes, FIELD_IN);
	json_end(j);
	json_end(j);
}

/* ---- answers ---- */

static void print_header(struct json *j, const char *name, const char *about, const char *type)
{
	json_object(j, name);
	json_text(j, "description", about);
	json_object(j, "schema");
	json_text(j, "type", type);
	json_end(j);
	json_end(j);
}

static void print_headers(struct json *j, const struct operation *operation, int status)
{
	json_object(j, "headers");
	if (status == 201 && (operation->flags & ROUTE_LOCATION))
		json_raw(j, "Location",
			"{\"description\":\"path of the new object\",\"required\":true,"
			"\"schema\":{\"type\":\"string\"}}");
	if (status == 202)
		print_header(j, "Location", "path of the approval", "string");
	if (status == 206)
		print_header(j, "Content-Range", "of the bytes of the response", "string");
	if (status == 200 && !strcmp(operation->name, "getOutput")) {
		print_header(j, "Carrel-First-Offset",
			"the offset of the first byte of the response, which is larger than the "
			"one "
			"that was asked for if older output was dropped; not in a response that "
			"follows",
			"integer");
		print_header(j, "Carrel-Next-Offset",
			"the offset to continue at; not in a response that follows", "integer");
	}
	json_end(j);
}

static void print_answer(struct json *j, const struct operation *operation, size_t *at)
{
	const struct operation_answer *answers = operation->answers;
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
	print_headers(j, operation, status);
	if (has_content)
		json_object(j, "content");
	for (; answers[*at].status == status; ++*at)
		if (has_content)
			print_content(j, answers[*at].type, answers[*at].record, FIELD_OUT);
	if (has_content)
		json_end(j);
	json_end(j);
}

/* Errors of every route, then those of this one. */
static bool has_error(const struct operation *operation, int status)
{
	static const unsigned short all[] = { 400, 401, 403, 408, 413, 414, 417, 429, 431, 500,
		503 };
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i] == status)
			return true;
	for (size_t i = 0; i < sizeof operation->errors / sizeof *operation->errors; i++)
		if (operation->errors[i] == status)
			return true;
	return (status == 404 && strstr(operation->path, "{id}")) ||
	       (status == 415 && operation->takes);
}

static void print_answers(struct json *j, const struct operation *operation)
{
	json_object(j, "responses");
	for (size_t at = 0; operation->answers[at].status;)
		print_answer(j, operation, &at);
	for (int status = 400; status < 600; status++) {
		char name[8];
		if (!has_error(operation, status))
			continue;
		str_format(name, sizeof name, "%d", status);
		print_reference(j, name, "responses", name);
	}
	json_end(j);
}

static const char *tag_of(const struct operation *operation)
{
	for (const struct operation_table *const *table = operation_tables; *table; table++)
		for (const struct operation *row = (*table)->rows; row->method; row++)
			if (row == operation)
				return (*table)->tag;
	abort();
}

static void print_operation(struct json *j, const struct operation *operation, const char *method)
{
	char name[64];
	json_object(j, method);
	bool is_named = !strcmp(method, "head") || !strcmp(operation->method, "*");
	str_format(name, sizeof name, "%s%s", operation->name, is_named ? method : "");
	if (is_named)
		name[strlen(operation->name)] &= ~0x20; /* "readFileHead" */
	json_text(j, "operationId", name);
	json_array(j, "tags");
	json_text(j, NULL, tag_of(operation));
	json_end(j);
	json_text(j, "summary", operation->summary);
	json_text(j, "description", operation->more);
	if (operation->flags & ROUTE_OPEN)
		json_raw(j, "security", "[]");
	print_parameters(j, operation, !strcmp(method, "head"));
	print_body(j, operation, method);
	print_answers(j, operation);
	json_end(j);
}

static void print_operations(struct json *j, const struct operation *operation)
{
	static const char *const any[] = { "get", "post", "put", "patch", "delete" };
	char method[8] = "";
	for (size_t i = 0; i < sizeof any / sizeof *any && !strcmp(operation->method, "*"); i++)
		print_operation(j, operation, any[i]);
	if (!strcmp(operation->method, "*"))
		return;
	for (size_t n = 0; n < sizeof method - 1 && operation->method[n]; n++)
		method[n] = (char)(operation->method[n] | 0x20);
	print_operation(j, operation, method);
	/* Every GET route answers HEAD, too; documented only where Range applies. */
	if (operation->flags & ROUTE_RANGE)
		print_operation(j, operation, "head");
}

static void print_paths(struct json *j)
{
	const struct route *routes = rest_door.routes();
	json_object(j, "paths");
	for (const struct route *route = routes; route->operation; route++) {
		const char *path = route->operation->path;
		bool is_first = true;
		for (const struct route *other = routes; other < route; other++)
			is_first &= strcmp(other->operation->path, path) != 0;
		if (!is_first)
			continue;
		json_object(j, path);
		for (const struct route *same = route; same->operation; same++)
			if (!strcmp(same->operation->path, path))
				print_operations(j, same->operation);
		json_end(j);
	}
	json_end(j);
}

static const char *problem_text(int status)
{
	static const struct {
		int status;
		const char *about;
	} texts[] = {
		{ 400, "The request is invalid: detail names the member." },
		{ 401, "The token is wrong, was removed or has expired; or one is needed." },
		{ 403, "The principal may not do this, or a policy denies it." },
		{ 404, "An object that the request names doesn't exist, or is out of reach." },
		{ 406, "Accept names no type that this response can have." },
		{ 408, "The request didn't arrive in time." },
		{ 409, "The state of an object doesn't allow it: it exists already, or is busy." },
		{ 412, "The file exists (If-None-Match: *)." },
		{ 413, "The body is too large." },
		{ 414, "The target is too long." },
		{ 415, "The body isn't application/json." },
		{ 416, "The offset or range is beyond the end." },
		{ 417, "Expect has another value than 100-continue." },
		{ 429, "A limit is reached: of objects, of requests at once, or of tries." },
		{ 431, "The headers are too large." },
		{ 500, "The daemon failed. request_id finds the cause in its log." },
		{ 502, "The server in the workspace didn't answer properly." },
		{ 503, "Not now: the daemon starts or stops, or lacks a resource." },
		{ 507, "The disk of the host, or of the workspace, is full." },
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].status == status)
			return texts[i].about;
	return http_status_title(status);
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
		json_text(j, "description", problem_text(status));
		if (status == 401)
			json_raw(j, "headers",
				"{\"WWW-Authenticate\":{\"schema\":{\"type\":\"string\"}}}");
		if (status == 503)
			json_raw(j, "headers",
				"{\"Retry-After\":{\"description\":\"seconds\",\"schema\":{"
				"\"type\":\"integer\"}}}");
		json_object(j, "content");
		print_content(j, "application/problem+json", &problem_record, FIELD_OUT);
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
	} items[192];
	size_t count;
};

/* Adds a schema and, recursively, every schema it refers to. */
static void add_schema(struct schemas *schemas, const struct record *record, unsigned use)
{
	for (size_t i = 0; record && i < schemas->count; i++)
		if (!strcmp(record_schema_name(schemas->items[i].record, schemas->items[i].use),
			    record_schema_name(record, use)))
			return;
	if (!record || schemas->count == sizeof schemas->items / sizeof *schemas->items)
		return;
	schemas->items[schemas->count].record = record;
	schemas->items[schemas->count++].use = use;
	for (size_t i = 0; i < record->count; i++)
		if (field_is(record, &record->rows[i], use))
			add_schema(schemas, record->rows[i].object, use);
	if (record->base) /* whose rows are printed with it */
		for (size_t i = 0; i < record->base->count; i++)
			if (field_is(record->base, &record->base->rows[i], use))
				add_schema(schemas, record->base->rows[i].object, use);
	for (const struct record *const *one = record->variants; one && *one; one++)
		add_schema(schemas, *one, use);
}

static void print_schemas(struct json *j)
{
	struct schemas schemas = { 0 };
	for (const struct route *route = rest_door.routes(); route->operation; route++) {
		add_schema(&schemas, route->operation->takes, FIELD_IN);
		for (const struct operation_answer *a = route->operation->answers; a->status; a++)
			add_schema(&schemas, a->record, FIELD_OUT);
	}
	add_schema(&schemas, &problem_record, FIELD_OUT);
	json_object(j, "schemas");
	for (size_t i = 0; i < schemas.count; i++)
		record_print_schema(j,
			record_schema_name(schemas.items[i].record, schemas.items[i].use),
			schemas.items[i].record, schemas.items[i].use);
	json_end(j);
}

#define SECURITY_SCHEMES                                                                           \
	"{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":\"A token of POST "  \
	"/v1/tokens. On the unix socket a request without one has the rights of the user who "     \
	"sends it.\"}}"

static void print_tags(struct json *j)
{
	json_array(j, "tags");
	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
		json_object(j, NULL);
		json_text(j, "name", tags[i].name);
		json_text(j, "description", tags[i].about);
		json_end(j);
	}
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
		"2xx is application/problem+json. Names of workspaces are accepted wherever an id "
		"is. Sizes are bytes or text (`512M`), durations seconds or text (`90s`, `5m`, "
		"`7d`), times RFC 3339. Lists are pages: `next_cursor` of one is `cursor` of the "
		"next. The data of every server-sent event is an object whose `type` is the name "
		"of the event.");
	json_raw(&j, "license", "{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}");
	json_end(&j);
	print_tags(&j);
	/* The second one is empty: a peer of the unix socket needs no token. */
	json_raw(&j, "security", "[{\"bearer\":[]},{}]");
	print_paths(&j);
	json_object(&j, "components");
	print_schemas(&j);
	print_problems(&j);
	json_raw(&j, "securitySchemes", SECURITY_SCHEMES);
	json_end(&j);
	json_end(&j);
	json_finish(&j);
}
