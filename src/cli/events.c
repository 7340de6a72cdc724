/* carrel events. */
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/env.h"
#include "cli/remote.h"

struct events_options {
	struct remote_options remote;
	const char *workspace, *after;
};
#define FIELD(name) offsetof(struct events_options, name)
static const struct arg_option table[] = {
	{ 0, "workspace", ARG_TEXT, FIELD(workspace), "NAME", "only events of this workspace", NULL,
		0, 0 },
	{ 0, "after", ARG_TEXT, FIELD(after), "ID",
		"begin after this event, as far back as events are kept (-o json shows ids)", NULL,
		0, 0 },
	REMOTE_ROWS(FIELD),
};
#undef FIELD
static const struct arg_spec spec = {
	.command = "events",
	.usage = "carrel events [options]",
	.about = "Prints events of workspaces and execs until it is interrupted.\nWith -o json, "
		 "each event is one JSON value on its own line.",
	.options = table,
	.option_count = sizeof table / sizeof *table,
};

/* "TIME TYPE NAME KEY=VALUE…", the first two as wide as the longest that there is. */
static void print_text(const struct json_value *event, struct buf *out)
{
	static const struct {
		const char *key;
		int width;
	} first[] = { { "time", 24 }, { "type", 19 }, { "name", 0 } };
	static const char *const hidden[] = { "id", "time", "type", "name", "workspace" };
	char shown[512];
	for (size_t i = 0; i < 3; i++) {
		const char *text = json_member_text(event, first[i].key);
		str_printable(shown, sizeof shown, str_from(text ? text : "-"));
		buf_printf(out, "%s%-*s", i ? "  " : "", first[i].width, shown);
	}
	for (const struct json_value *member = event->first; member; member = member->next) {
		bool is_hidden = member->kind != JSON_STRING && !member->is_integer;
		for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
			is_hidden |= str_is(member->key, hidden[i]);
		if (is_hidden)
			continue;
		if (member->kind == JSON_STRING)
			str_printable(shown, sizeof shown, member->string);
		else
			str_format(shown, sizeof shown, "%lld", (long long)member->integer);
		buf_printf(out, "  %s=%s", member->key.data, shown);
	}
	buf_char(out, '\n');
}

static int print_event(const struct sse *sse, bool json, struct error *err)
{
	auto_arena struct arena arena;
	auto_buf struct buf out;
	struct json_value *value;
	arena_init(&arena);
	buf_init(&out, BUF_MAX_DEFAULT);
	struct str data = { sse->data.data, sse->data.len };
	if (json_read(data, &arena, &value, err))
		return error_context(err, "an event of the daemon");
	if (json) {
		buf_append(&out, data.data, data.len);
		buf_char(&out, '\n');
	} else
		print_text(value, &out);
	if (fd_write_full(STDOUT_FILENO, out.data, out.len) != (ssize_t)out.len)
		return fail_errno(err, "write standard output");
	return 0;
}

/* Where it is in what happens. */
struct watch {
	struct remote *remote;
	const char *workspace; /* or NULL: all of them */
	char last[32];	       /* the id that was seen last, or "" */
	struct client_response response;
};

static int begin(void *ctx, struct error *err)
{
	struct watch *watch = ctx;
	struct remote *remote = watch->remote;
	struct client_request request = CLIENT_REQUEST_NONE;
	request.method = "GET";
	request.accept = "text/event-stream";
	request.path = watch->workspace ? arena_printf(&remote->arena, "/v1/events?workspace=%s",
						  remote_escape(remote, watch->workspace))
					: "/v1/events";
	if (watch->last[0])
		request.headers =
			arena_printf(&remote->arena, "Last-Event-ID: %s\r\n", watch->last);
	return remote_begin(remote, &request, &watch->response, err);
}

/* One answer's events: 1 when it was cut off, and is worth asking for again. */
static int follow_answer(struct watch *watch, struct error *err)
{
	struct sse sse;
	int got, failed = 0;
	sse_init(&sse);
	while ((got = client_next_event(&watch->remote->client, &watch->response, &sse, err)) == 1)
		if ((failed = print_event(&sse, watch->remote->json, err)))
			break;
	/* Also one without an event: the daemon says where we begin. */
	if (sse.id[0])
		str_copy(watch->last, sizeof watch->last, sse.id);
	sse_done(&sse);
	if (failed || (got < 0 && err->code != ERR_CORRUPT))
		return -1;
	return got < 0 ? 1 : fail(err, ERR_UNAVAILABLE, "the daemon has ended");
}

static int follow(struct watch *watch, struct error *err)
{
	int is_cut = begin(watch, err) ? -1 : follow_answer(watch, err);
	while (is_cut == 1)
		is_cut = remote_reopen(watch->remote, begin, watch, err)
				 ? -1
				 : follow_answer(watch, err);
	if (err->code == ERR_UNAVAILABLE && watch->last[0])
		error_hint(err, "carrel events --after %s continues there", watch->last);
	return -1;
}

int cli_events(int argc, char **argv)
{
	struct events_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	text_list operands = { 0 };
	struct error err;
	uint64_t id;
	int code;
	if (!remote_parse(
		    &remote, &spec, argc, argv, &options, &options.remote, 0, 0, &operands, &code))
		return code;
	struct watch watch = { .remote = &remote, .workspace = options.workspace };
	str_copy(watch.last, sizeof watch.last, options.after ? options.after : "");
	if (options.after && !str_to_u64(str_from(options.after), &id))
		fail(&err, ERR_INVALID, "--after: invalid event id '%s'", options.after);
	else if (!remote_open(&remote, &options.remote, &err))
		follow(&watch, &err);
	return cli_fail(&err, remote.json);
}
