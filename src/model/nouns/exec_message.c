#include "model/nouns/exec_message.h"

#include "model/nouns/signals.h"
#include "model/records/rows.h"

/* ---- what a client sends ---- */

#define AT(member) offsetof(struct exec_message, member)
#define SIDE(name)                                                                                 \
	{                                                                                          \
#name, FIELD_INTEGER, AT(name), NULL, FIELD_REQUIRED, .least = 1, .most = 65535    \
	}
static const struct field resize_rows[] = { SIDE(rows), SIDE(columns) };
static const struct record resize_message = { "Resize", NULL, RECORD_ROWS(resize_rows), FIELD_IN };

static const struct field signal_rows[] = {
	ROW(NUMBERED, signal, NULL, FIELD_REQUIRED, .least = 1, .most = 64,
		.choices = signal_choices),
};
static const struct record signal_message = { "Signal", NULL, RECORD_ROWS(signal_rows), FIELD_IN };

static const struct {
	const char *type;
	enum exec_message_kind kind;
	const struct record *record;
	size_t offset; /* of what the rows are about */
} kinds[] = {
	{ "start", EXEC_MESSAGE_START, &exec_spec_record, AT(spec) },
	{ "resize", EXEC_MESSAGE_RESIZE, &resize_message, 0 },
	{ "signal", EXEC_MESSAGE_SIGNAL, &signal_message, 0 },
};
#undef AT

/* Takes `type` off, and gives `cols` the name that REST has for it. */
static int take_type(struct json_value *object, const char **type, struct error *err)
{
	struct json_value **at = &object->first;
	bool has_cols = json_member(object, "cols");
	*type = json_member_text(object, "type");
	if (object->kind != JSON_OBJECT || !*type)
		return fail(err, ERR_INVALID, "the message has no 'type'");
	if (has_cols && json_member(object, "columns"))
		return fail(err, ERR_INVALID, "'cols' and 'columns' are both given");
	while (*at) {
		if (str_is((*at)->key, "type")) {
			*at = (*at)->next;
			object->count--;
			continue;
		}
		if (str_is((*at)->key, "cols"))
			(*at)->key = STR("columns");
		at = &(*at)->next;
	}
	return 0;
}

int exec_message_read(
	struct str text, struct arena *arena, struct exec_message *message, struct error *err)
{
	struct exec_message got = { 0 };
	struct json_value *object;
	const char *type;
	if (json_read(text, arena, &object, err))
		return error_context(err, "message");
	if (take_type(object, &type, err))
		return -1;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (strcmp(type, kinds[i].type))
			continue;
		got.kind = kinds[i].kind;
		if (record_read(
			    kinds[i].record, object, arena, (char *)&got + kinds[i].offset, err))
			return error_context(err, "message '%s'", type);
		*message = got;
		return 0;
	}
	return fail(err, ERR_INVALID, "unknown message type '%s'; known are start, resize, signal",
		type);
}

/* ---- the end ---- */

struct exit_shown {
	const char *type, *exec, *limiter, *error;
	int exit_code, signal;
	enum reason reason;
	bool has_result, truncated;
	uint64_t duration_ms, cpu_ms, max_rss_bytes;
};
#define AT(member) offsetof(struct exit_shown, member)
static const struct field exit_rows[] = {
	ROW(TEXT, type),
	{ "id", FIELD_TEXT, AT(exec) },
	ROW(INT, exit_code),
	ROW(INT, signal, NULL, FIELD_NULLABLE),
	ROW(CHOICE, reason, NULL, FIELD_NULLABLE, .names = reason_names,
		.has = FIELD_HAS(struct exit_shown, has_result)),
	ROW(BOOLEAN, truncated),
	ROW(INTEGER, duration_ms),
	ROW(INTEGER, cpu_ms),
	ROW(INTEGER, max_rss_bytes),
	{ "limits", FIELD_TEXT, AT(limiter), NULL, FIELD_NULLABLE },
	ROW(TEXT, error, NULL, FIELD_NULLABLE),
};
#undef AT
static const struct record exit_message = { "Exit", NULL, RECORD_ROWS(exit_rows), FIELD_OUT };

void exec_print_exit(struct json *j, const struct exec_record *e, const char *limiter)
{
	const struct result *result = &e->result;
	/* One that never started has an exit code, but didn't end for any reason. */
	bool has_result = !e->error_exit_code;
	const struct exit_shown shown = { .type = "exit",
		.exec = e->id,
		.limiter = limiter,
		.error = e->error,
		.exit_code = has_result ? result_exit_code(result) : e->error_exit_code,
		.signal = has_result ? result->signal : 0,
		.reason = result->reason,
		.has_result = has_result,
		.truncated = result->truncated,
		.duration_ms = result->duration_ms,
		.cpu_ms = result->cpu_ms,
		.max_rss_bytes = result->max_rss_bytes };
	record_print(j, NULL, &exit_message, &shown);
}
