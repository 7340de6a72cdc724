/* carrel events. */
#include "cli/plain.h"

/* "TIME TYPE NAME KEY=VALUE…", the first two as wide as the longest that there is. */
static void print_text(const struct json_value *event, struct buf *out)
{
	static const struct {
		const char *key;
		int width;
	} first[] = { { "time", 24 }, { "type", 22 }, { "name", 0 } };
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

static int print_event(const struct sse *sse, bool json, struct buf *out, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *value;
	buf_clear(out);
	struct str data = { sse->data.data, sse->data.len };
	if (json_read(data, &arena, &value, err))
		return error_context(err, "an event of the daemon");
	if (json) {
		buf_append(out, data.data, data.len);
		buf_char(out, '\n');
	} else
		print_text(value, out);
	return cli_print(out, err);
}

/* One answer's events: 1 when it was cut off, and is worth asking for again. */
static int follow_answer(struct command *command, struct remote_events *events, struct error *err)
{
	int got;
	while ((got = remote_events_next(events, err)) == 1)
		if (print_event(&events->sse, command->json, &command->out, err))
			return -1;
	if (got < 0)
		return err->code == ERR_CORRUPT ? 1 : -1;
	return fail(err, ERR_UNAVAILABLE, "the daemon has ended");
}

static int run(struct command *command, struct error *err)
{
	const char *after = command->options.after;
	struct remote_events events;
	uint64_t id;
	if (after && !str_to_u64(str_from(after), &id))
		return fail(err, ERR_INVALID, "--after: invalid event id '%s'", after);
	remote_events_init(&events, &command->remote, plain_path(command, NULL));
	str_copy(events.last, sizeof events.last, after ? after : "");
	int is_cut = remote_events_begin(&events, err) ? -1 : follow_answer(command, &events, err);
	while (is_cut == 1)
		is_cut = remote_reopen(&events.remote, remote_events_begin, &events, err)
				 ? -1
				 : follow_answer(command, &events, err);
	if (err->code == ERR_UNAVAILABLE && events.last[0])
		error_hint(err, "carrel events --after %s continues there", events.last);
	remote_events_done(&events);
	return -1;
}

static const struct arg_option table[] = {
	{ 0, "workspace", ARG_TEXT, AT(workspace), "NAME", "only events of this workspace" },
	{ 0, "after", ARG_TEXT, AT(after), "ID",
		"begin after this event, as far back as events are kept (-o json shows ids)" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_spec cli_events = {
	.command = "events",
	.summary = "follow events of workspaces",
	.group = GROUP_DAEMON,
	.about = "Prints events of workspaces and execs until it is interrupted. With -o json, "
		 "each event is one JSON value on its own line.",
	ARG_TABLE(table),
	.run = run,
};
