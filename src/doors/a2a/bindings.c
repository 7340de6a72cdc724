/* The two bindings of a request: JSON-RPC at /a2a/{agent}, and HTTP+JSON below it. */
#include "doors/a2a/a2a.h"

/* ---- both ---- */

/* false: there is no such agent, and that was answered. */
static bool begin(struct call *c, struct a2a *a)
{
	struct error err;
	a->call = c;
	a->name = c->id;
	a->agents = agents_of(c->api->options.services);
	a->agent = agents_look(a->agents, str_from(c->id));
	if (a->agent)
		return true;
	agents_missing(c->id, &err);
	call_problem(c, &err);
	return false;
}

/* false: it isn't one that is served, and that was answered. */
static bool check_version(struct a2a *a)
{
	struct str version = http_header(a->call->r, "a2a-version");
	if (!version.len || str_is(version, "1.0") || (str_is(version, "0.3") && !a->is_http))
		return true;
	a2a_fail(a, A2A_VERSION,
		a->is_http ? "this binding is served in version 1.0"
			   : "the versions 1.0 and 0.3 are served");
	return false;
}

/* An empty body means no params. */
static int read_json(struct call *c, const struct json_value **value, struct error *err)
{
	struct json_value *read;
	*value = NULL;
	if (!c->r->body.len)
		return 0;
	if (json_read(c->r->body, &c->r->arena, &read, err))
		return -1;
	*value = read;
	return 0;
}

/* ---- JSON-RPC ---- */

/* params: the names of all parameters, with blanks between; those of the specification that mean
 * nothing here are among them. */
static const struct method {
	const char *name;
	bool is_old;
	a2a_fn *run;
	const char *params;
} methods[] = {
	{ "SendMessage", false, a2a_send_message, "tenant message configuration metadata" },
	{ "SendStreamingMessage", false, a2a_stream_message,
		"tenant message configuration metadata" },
	{ "GetTask", false, a2a_get_task, "tenant id historyLength" },
	{ "CancelTask", false, a2a_cancel_task, "tenant id metadata" },
	{ "SubscribeToTask", false, a2a_subscribe, "tenant id" },
	{ "ListTasks", false, a2a_list_tasks,
		"tenant contextId status pageSize pageToken historyLength statusTimestampAfter "
		"includeArtifacts" },
	{ "CreateTaskPushNotificationConfig", false, a2a_set_push,
		"tenant id taskId url token authentication" },
	{ "GetTaskPushNotificationConfig", false, a2a_get_push, "tenant taskId id" },
	{ "ListTaskPushNotificationConfigs", false, a2a_list_pushes,
		"tenant taskId pageSize pageToken" },
	{ "DeleteTaskPushNotificationConfig", false, a2a_delete_push, "tenant taskId id" },
	{ "GetExtendedAgentCard", false, a2a_extended_card, "tenant" },
	{ "message/send", true, a2a_send_message, "message configuration metadata" },
	{ "message/stream", true, a2a_stream_message, "message configuration metadata" },
	{ "tasks/get", true, a2a_get_task, "id historyLength metadata" },
	{ "tasks/cancel", true, a2a_cancel_task, "id metadata" },
	{ "tasks/resubscribe", true, a2a_subscribe, "id metadata" },
	{ "tasks/pushNotificationConfig/set", true, a2a_set_push,
		"taskId pushNotificationConfig metadata" },
	{ "tasks/pushNotificationConfig/get", true, a2a_get_push,
		"id pushNotificationConfigId metadata" },
	{ "tasks/pushNotificationConfig/list", true, a2a_list_pushes, "id metadata" },
	{ "tasks/pushNotificationConfig/delete", true, a2a_delete_push,
		"id pushNotificationConfigId metadata" },
	{ "agent/getAuthenticatedExtendedCard", true, a2a_extended_card, "" },
};
/* Of `configuration`, by is_old. */
static const char *const configurations[] = {
	"acceptedOutputModes taskPushNotificationConfig historyLength returnImmediately",
	"acceptedOutputModes pushNotificationConfig historyLength blocking",
};

static bool has_word(const char *words, struct str word)
{
	struct str rest = str_from(words), one;
	while (rest.len) {
		str_cut(rest, ' ', &one, &rest);
		if (str_equal(one, word))
			return true;
	}
	return false;
}

/* false: a member of the object is none of these, and that was answered. */
static bool check_names(
	struct a2a *a, const struct json_value *object, const char *names, const char *of)
{
	const struct json_value *one = object && object->kind == JSON_OBJECT ? object->first : NULL;
	char shown[80];
	while (one && has_word(names, one->key))
		one = one->next;
	if (!one)
		return true;
	str_printable(shown, sizeof shown, one->key);
	a2a_fail(a, A2A_PARAMS,
		arena_printf(&a->call->r->arena, "unknown parameter '%s': %s has %s", shown, of,
			names[0] ? names : "none"));
	return false;
}

static void run_method(struct a2a *a, const struct method *method)
{
	a->is_old = method->is_old;
	if (check_names(a, a->params, method->params, method->name) &&
		check_names(a, json_member(a->params, "configuration"), configurations[a->is_old],
			"'configuration'"))
		method->run(a);
}

/* The id is a text, a number or null. */
static bool take_id(struct a2a *a, const struct json_value *request)
{
	const struct json_value *id = json_member(request, "id");
	if (!id || id->kind == JSON_NULL)
		return true;
	if (id->kind != JSON_STRING && id->kind != JSON_NUMBER)
		return false;
	a->id = arena_bytes(&a->call->r->arena, id->source.data, id->source.len);
	return true;
}

int a2a_rpc(struct call *c, struct error *err)
{
	struct a2a a = { 0 };
	const struct json_value *request;
	if (!begin(c, &a))
		return 0;
	if (read_json(c, &request, err)) {
		a2a_fail(&a, A2A_PARSE, err->text);
		return 0;
	}
	const char *version = json_member_text(request, "jsonrpc");
	const char *method = json_member_text(request, "method");
	if (!take_id(&a, request) || !version || strcmp(version, "2.0") != 0 || !method) {
		a2a_fail(&a, A2A_REQUEST, "not a request of JSON-RPC 2.0");
		return 0;
	}
	if (!check_version(&a))
		return 0;
	a.params = json_member(request, "params");
	if (a.params && a.params->kind != JSON_OBJECT) {
		a2a_fail(&a, A2A_PARAMS, "'params' must be an object");
		return 0;
	}
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
		if (!strcmp(methods[i].name, method)) {
			run_method(&a, &methods[i]);
			return 0;
		}
	a2a_fail(&a, A2A_METHOD, "there is no such method");
	return 0;
}

/* ---- HTTP+JSON ---- */

static const struct {
	const char *method, *path; /* {name}: a member of the params */
	a2a_fn *run;
} paths[] = {
	{ "POST", "message:send", a2a_send_message },
	{ "POST", "message:stream", a2a_stream_message },
	{ "GET", "tasks", a2a_list_tasks },
	{ "POST", "tasks/{id}:cancel", a2a_cancel_task },
	{ "POST", "tasks/{id}:subscribe", a2a_subscribe },
	{ "GET", "tasks/{id}:subscribe", a2a_subscribe },
	{ "POST", "tasks/{taskId}/pushNotificationConfigs", a2a_set_push },
	{ "GET", "tasks/{taskId}/pushNotificationConfigs", a2a_list_pushes },
	{ "GET", "tasks/{taskId}/pushNotificationConfigs/{id}", a2a_get_push },
	{ "DELETE", "tasks/{taskId}/pushNotificationConfigs/{id}", a2a_delete_push },
	{ "GET", "tasks/{id}", a2a_get_task },
	{ "GET", "extendedAgentCard", a2a_extended_card },
};

/* Texts of a path that stand for names in braces. */
struct path_names {
	struct {
		struct str name, value;
	} items[2];
	size_t count;
};

/* Such a text has no '/', and that of a task no ':'. */
static bool fits(struct str path, const char *pattern, struct path_names *names)
{
	while (*pattern) {
		if (*pattern != '{') {
			if (!path.len || path.data[0] != *pattern++)
				return false;
			path.data++;
			path.len--;
			continue;
		}
		const char *end = strchr(pattern, '}');
		size_t len = 0;
		while (len < path.len && path.data[len] != '/' &&
			(names->count || path.data[len] != ':'))
			len++;
		if (!len)
			return false;
		names->items[names->count].name =
			(struct str){ pattern + 1, (size_t)(end - pattern) - 1 };
		names->items[names->count++].value = (struct str){ path.data, len };
		path.data += len;
		path.len -= len;
		pattern = end + 1;
	}
	return !path.len;
}

static void add_member(
	struct arena *arena, struct json_value *object, const char *key, struct str value)
{
	struct json_value *member = arena_alloc(arena, sizeof *member);
	*member = (struct json_value){ .kind = JSON_STRING,
		.string = { arena_bytes(arena, value.data, value.len), value.len },
		.key = str_from(arena_text(arena, key)),
		.next = object->first };
	object->first = member;
	object->count++;
}

/* The params: the body or the query, with the names of the path. */
static int read_params(struct a2a *a, const struct path_names *names, struct error *err)
{
	struct call *c = a->call;
	struct arena *arena = &c->r->arena;
	struct json_value *params = arena_alloc(arena, sizeof *params);
	const struct json_value *body;
	struct str name, value;
	params->kind = JSON_OBJECT;
	if (read_json(c, &body, err))
		return -1;
	if (body && body->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "the body must be an object");
	if (body)
		*params = *body;
	for (size_t i = 0; http_query_at(c->r, i, &name, &value); i++) {
		if (!name.data || !value.data)
			return fail(err, ERR_INVALID, "the query is not percent-encoded properly");
		add_member(arena, params, arena_bytes(arena, name.data, name.len), value);
	}
	for (size_t i = 0; i < names->count; i++)
		add_member(arena, params,
			arena_bytes(arena, names->items[i].name.data, names->items[i].name.len),
			names->items[i].value);
	a->params = params;
	return 0;
}

int a2a_http(struct call *c, struct error *err)
{
	struct a2a a = { .is_http = true };
	bool is_path = false;
	if (!begin(c, &a) || !check_version(&a))
		return 0;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct path_names names = { 0 };
		if (!fits(str_from(c->path), paths[i].path, &names))
			continue;
		is_path = true;
		if (!str_is(c->r->method, paths[i].method))
			continue;
		if (read_params(&a, &names, err))
			a2a_fail(&a,
				err->code == ERR_INVALID && c->r->body.len ? A2A_PARSE : A2A_PARAMS,
				err->text);
		else
			paths[i].run(&a);
		return 0;
	}
	if (!is_path) {
		a2a_fail(&a, A2A_METHOD, "there is no such path");
		return 0;
	}
	c->problem = 405;
	return fail(err, ERR_INVALID, "the method is not allowed for this path");
}
