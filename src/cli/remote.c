#include "cli/remote.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/env.h"
#include "format/json_copy.h"

#define PAGE "500"
#define PROBLEM_MAX ((size_t)1 << 20)
#define TEXT_MAX ((size_t)256 << 20)
/* A daemon that was restarted serves again within seconds. */
#define REOPEN_TRIES 50
#define REOPEN_MS 200
#define REPEAT_MS 5000
#define REPEAT_PAUSE_MS 50

int remote_check_names(const char *const *names, size_t count, struct error *err)
{
	for (size_t i = 0; i < count; i++)
		if (!names[i][0])
			return fail(err, ERR_INVALID, "a name may not be empty");
	return 0;
}

bool remote_parse(struct remote *remote, const struct arg_spec *spec, int argc, char **argv,
	void *options, struct remote_options *common, size_t least, size_t most,
	text_list *operands, int *code)
{
	struct error err;
	bool help = false;
	arena_init(&remote->arena);
	int failed =
		args_parse_mixed(spec, argc, argv, options, &remote->arena, operands, &help, &err);
	if (!failed && help) {
		args_print_help(spec);
		*code = fflush(stdout) ? 125 : 0;
		return false;
	}
	if (failed || args_check_operands(spec, operands, least, most, &err) ||
		remote_check_names(operands->items, operands->count, &err)) {
		*code = cli_fail(&err, args_want_json(argc, argv));
		return false;
	}
	remote->json = env_cli_is_json(common->format);
	return true;
}

int remote_open(struct remote *remote, const struct remote_options *common, struct error *err)
{
	remote->host = common->host;
	return daemon_connect(&remote->client, common->host, true, err);
}

void remote_done(struct remote *remote)
{
	if (remote->client.socket >= 0)
		client_done(&remote->client);
	arena_done(&remote->arena);
}

/* A read, or a request that the daemon carries out once for its key. */
static bool may_repeat(const struct client_request *request)
{
	return request->body_fd < 0 && !request->fd_count &&
	       (!strcmp(request->method, "GET") ||
		       (request->headers && strstr(request->headers, "Idempotency-Key: ")));
}

bool remote_reconnect(struct remote *remote, const struct client_request *request, uint64_t *end_ms)
{
	struct client *client = &remote->client, next;
	struct error ignored;
	if (!client->is_lost || !may_repeat(request))
		return false;
	if (!*end_ms)
		*end_ms = clock_monotonic_ms() + REPEAT_MS;
	while (clock_monotonic_ms() < *end_ms) {
		poll(NULL, 0, REPEAT_PAUSE_MS);
		if (daemon_connect(&next, remote->host, false, &ignored))
			continue;
		next.is_started_here = client->is_started_here;
		client_done(client);
		*client = next;
		return true;
	}
	return false;
}

int remote_read_answer(struct remote *remote, const struct client_request *request,
	const struct client_response *response, struct remote_answer *answer, struct error *err)
{
	struct json_value *value = NULL;
	if (response->body.len && json_read(response->body, &remote->arena, &value, err))
		return error_context(
			err, "the daemon's response to %s %s", request->method, request->path);
	*answer = (struct remote_answer){ response->status, response->body, value };
	return 0;
}

static int call(struct remote *remote, const struct client_request *request,
	struct remote_answer *answer, struct error *err)
{
	struct client_response response = { 0 };
	uint64_t end_ms = 0;
	while (client_call(&remote->client, request, &remote->arena, &response, err))
		if (!remote_reconnect(remote, request, &end_ms))
			return -1;
	return answer ? remote_read_answer(remote, request, &response, answer, err) : 0;
}

static struct client_request request_of(
	const char *method, const char *path, const struct buf *body)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	request.method = method;
	request.path = path;
	if (body)
		request.body = (struct str){ body->data, body->len };
	return request;
}

int remote_call(struct remote *remote, const char *method, const char *path, const struct buf *body,
	struct remote_answer *answer, struct error *err)
{
	const struct client_request request = request_of(method, path, body);
	return call(remote, &request, answer, err);
}

struct client_request remote_post_once(
	struct remote *remote, const char *path, const struct buf *body, const char *headers)
{
	struct client_request request = request_of("POST", path, body);
	char key[ID_LEN + 1];
	id_make(key);
	request.headers = arena_printf(&remote->arena, "Idempotency-Key: %s\r\n%s", key, headers);
	return request;
}

int remote_call_once(struct remote *remote, const char *path, const struct buf *body,
	struct remote_answer *answer, struct error *err)
{
	const struct client_request request = remote_post_once(remote, path, body, "");
	return call(remote, &request, answer, err);
}

int remote_begin(struct remote *remote, const struct client_request *request,
	struct client_response *response, struct error *err)
{
	auto_buf struct buf body;
	uint64_t end_ms = 0;
	ssize_t got;
	buf_init(&body, PROBLEM_MAX);
	while (client_begin(&remote->client, request, &remote->arena, response, err))
		if (!remote_reconnect(remote, request, &end_ms))
			return -1;
	if (response->status < 300)
		return 0;
	do {
		char *room = buf_reserve(&body, 4096);
		got = room ? client_read(&remote->client, response, room, 4096, err) : 0;
		if (got > 0)
			buf_grew(&body, (size_t)got);
	} while (got > 0);
	if (got < 0)
		return -1;
	return client_problem(response->status,
		(struct str){ arena_bytes(&remote->arena, body.data, body.len), body.len },
		&remote->arena, err);
}

static bool is_away(const struct error *err)
{
	return err->code == ERR_UNAVAILABLE || err->code == ERR_CORRUPT;
}

int remote_reopen(struct remote *remote, remote_begin_fn *begin, void *ctx, struct error *err)
{
	for (int i = 0; i < REOPEN_TRIES; i++) {
		if (remote->client.socket >= 0)
			client_done(&remote->client);
		remote->client.socket = -1;
		if (i)
			poll(NULL, 0, REOPEN_MS);
		bool is_connected = !daemon_connect(&remote->client, remote->host, false, err);
		if (is_connected && !begin(ctx, err))
			return 0;
		if (!is_connected)
			remote->client.socket = -1;
		if (!is_away(err))
			return -1;
	}
	return fail(err, ERR_UNAVAILABLE, "the daemon ended and did not start again");
}

const char *remote_escape(struct remote *remote, const char *text)
{
	return client_escape(&remote->arena, str_from(text), false);
}

const char *remote_workspace_path(struct remote *remote, const char *name, const char *more)
{
	return arena_printf(
		&remote->arena, "/v1/workspaces/%s%s", remote_escape(remote, name), more);
}

const char *remote_exec_path(struct remote *remote, const char *id, const char *more)
{
	return arena_printf(&remote->arena, "/v1/execs/%s%s", remote_escape(remote, id), more);
}

int remote_each(struct remote *remote, const char *path,
	void (*fn)(void *ctx, const struct json_value *item), void *ctx, struct error *err)
{
	const char *cursor = NULL, *before = NULL;
	do {
		struct remote_answer answer;
		const char *page = arena_printf(&remote->arena, "%s%climit=" PAGE "%s%s", path,
			strchr(path, '?') ? '&' : '?', cursor ? "&cursor=" : "",
			cursor ? remote_escape(remote, cursor) : "");
		if (remote_call(remote, "GET", page, NULL, &answer, err))
			return -1;
		const struct json_value *items = json_member(answer.value, "items");
		if (!items || items->kind != JSON_ARRAY)
			return fail(err, ERR_CORRUPT,
				"the daemon's response to GET %s is not a list of items", path);
		for (const struct json_value *item = items->first; item; item = item->next)
			fn(ctx, item);
		before = cursor;
		cursor = json_member_text(answer.value, "next_cursor");
		if (cursor && before && !strcmp(cursor, before))
			return fail(err, ERR_CORRUPT, "the daemon's list of %s doesn't end", path);
	} while (cursor);
	return 0;
}

static void copy_item(void *ctx, const struct json_value *item)
{
	json_copy(ctx, NULL, item);
}

int remote_print_list(struct remote *remote, const char *path, struct error *err)
{
	auto_buf struct buf out;
	struct json j;
	buf_init(&out, TEXT_MAX);
	json_init(&j, &out, false);
	json_array(&j, NULL);
	if (remote_each(remote, path, copy_item, &j, err))
		return -1;
	json_end(&j);
	buf_char(&out, '\n');
	return remote_print(&out);
}

int remote_print_answer(const struct remote_answer *answer)
{
	auto_buf struct buf out;
	struct str text = str_trim(answer->text);
	buf_init(&out, TEXT_MAX);
	buf_append(&out, text.data, text.len);
	buf_char(&out, '\n');
	return remote_print(&out);
}

int remote_print(const struct buf *text)
{
	return env_print_all(text);
}

void remote_format_age(char out[32], const char *time)
{
	env_format_age(out, time, clock_now_ms());
	char *ago = strstr(out, " ago");
	if (ago)
		*ago = 0;
}

const char *remote_join_pairs(struct arena *arena, const struct json_value *object)
{
	const char *joined = "";
	if (!object || object->kind != JSON_OBJECT)
		return joined;
	for (const struct json_value *item = object->first; item; item = item->next)
		joined = arena_printf(arena, "%s%s%s=%s", joined, joined[0] ? "," : "",
			item->key.data, item->kind == JSON_STRING ? item->string.data : "(hidden)");
	return joined;
}

/* The pairs of a list as members: of one that is there twice the last one counts, since JSON allows
 * one. */
static void print_pairs(struct json *j, const text_list *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		struct str name, value, other, rest;
		bool is_last = true;
		str_cut(str_from(pairs->items[i]), '=', &name, &value);
		for (size_t n = i + 1; n < pairs->count; n++) {
			str_cut(str_from(pairs->items[n]), '=', &other, &rest);
			is_last &= !str_equal(name, other);
		}
		char *text = strndup(name.data, name.len);
		if (!text)
			abort();
		if (is_last)
			json_str(j, text, value);
		free(text);
	}
}

int remote_print_env(struct json *j, const text_list *env, struct error *err)
{
	auto_arena struct arena arena;
	text_list pairs = { 0 };
	arena_init(&arena);
	for (size_t i = 0; i < env->count; i++) {
		const char *entry = env->items[i], *value;
		if (!strchr(entry, '=')) {
			value = getenv(entry);
			if (!value)
				return fail(err, ERR_NOT_FOUND,
					"-e %s: that variable is not set here", entry);
			entry = arena_printf(&arena, "%s=%s", entry, value);
		}
		if (str_utf8_prefix(entry, strlen(entry)) != strlen(entry))
			return fail(err, ERR_INVALID, "-e %s: not valid UTF-8", entry);
		vec_push(&arena, &pairs, entry);
	}
	if (!pairs.count)
		return 0;
	json_object(j, "env");
	print_pairs(j, &pairs);
	json_end(j);
	return 0;
}

/* Whether label `key` is among "KEY=VALUE" or "KEY" of the list before `end`. */
static bool has_label(const text_list *labels, size_t end, const char *key, size_t len)
{
	for (size_t i = 0; i < end; i++)
		if (strcspn(labels->items[i], "=") == len && !strncmp(labels->items[i], key, len))
			return true;
	return false;
}

int remote_print_labels(
	struct json *j, const text_list *labels, const text_list *removed, struct error *err)
{
	for (size_t i = 0; i < labels->count; i++) {
		const char *label = labels->items[i];
		if (!strchr(label, '=') || label[0] == '=')
			return fail_hint(err, ERR_INVALID, "--label team=search",
				"--label '%s' is not KEY=VALUE", label);
		if (str_utf8_prefix(label, strlen(label)) != strlen(label))
			return fail(err, ERR_INVALID, "--label '%s': not valid UTF-8", label);
		size_t len = strcspn(label, "=");
		if (has_label(labels, i, label, len) ||
			has_label(removed, removed->count, label, len))
			return fail(err, ERR_INVALID, "the label '%.*s' is given twice", (int)len,
				label);
	}
	if (!labels->count && !removed->count)
		return 0;
	json_object(j, "labels");
	print_pairs(j, labels);
	for (size_t i = 0; i < removed->count; i++)
		if (!has_label(removed, i, removed->items[i], strlen(removed->items[i])))
			json_null(j, removed->items[i]);
	json_end(j);
	return 0;
}

void remote_read_limits(const struct json_value *workspace, struct limits *limits)
{
	const struct json_value *from = json_member(workspace, "limits");
	*limits = (struct limits){ 0 };
	for (size_t i = 0; i < limit_count; i++)
		json_member_u64(from, field_name(&limit_rows[i], FIELD_OUT).text,
			limit_at(limits, &limit_rows[i]));
}
