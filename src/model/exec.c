#include <stddef.h>
#include <string.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "model/document.h"
#include "model/exec.h"

const char *const exec_state_names[EXEC_STATE_COUNT] = {
	[EXEC_STARTING] = "starting",
	[EXEC_RUNNING] = "running",
	[EXEC_ENDED] = "ended",
};

/* -- the result -- */

/* Text that is more than twice as long in JSON is shorter as base64. Only where that matters: a
 * reader prefers text. */
#define BASE64_FROM (64u << 10)

struct exec_output exec_output_of(
	struct str out, struct str errors, const struct json_measure measures[2], bool truncated)
{
	struct exec_output output = { { out, errors }, false };
	uint64_t bytes = 0, escaped = 0;
	for (int i = 0; i < 2; i++) {
		/* What was cut may have been cut in a character: its first bytes aren't worth
		 * calling all of it binary. */
		output.is_base64 |= measures[i].is_binary || (measures[i].tail_len && !truncated);
		bytes += measures[i].bytes;
		escaped += measures[i].escaped;
	}
	output.is_base64 |= escaped > BASE64_FROM && escaped > 2 * bytes;
	for (int i = 0; i < 2 && !output.is_base64; i++)
		output.streams[i].len -= measures[i].tail_len;
	return output;
}

struct exec_output exec_output_whole(struct str out, struct str errors, bool truncated)
{
	struct json_measure measures[2] = { 0 };
	json_measure_add(&measures[0], out);
	json_measure_add(&measures[1], errors);
	return exec_output_of(out, errors, measures, truncated);
}

void exec_print_output(struct json *j, const struct exec_output *output, size_t places[2])
{
	static const char *const names[] = { "stdout", "stderr" };
	for (int i = 0; i < 2; i++) {
		if (output->is_base64)
			json_base64(j, names[i], output->streams[i].data, output->streams[i].len);
		else
			json_str(j, names[i], output->streams[i]);
		if (places)
			places[i] = j->out->len - 1;
	}
	json_text(j, "encoding", output->is_base64 ? "base64" : "utf-8");
}

static void print_signal(struct json *j, int number)
{
	if (number)
		json_i64(j, "signal", number);
	else
		json_null(j, "signal");
}

void exec_print_result(struct json *j, const struct result *result,
	const struct exec_output *output, const char *limiter, size_t places[2])
{
	json_i64(j, "exit_code", result_exit_code(result));
	print_signal(j, result->signal);
	json_text(j, "reason", reason_name(result->reason));
	exec_print_output(j, output, places);
	json_bool(j, "truncated", result->truncated);
	json_u64(j, "duration_ms", result->duration_ms);
	json_u64(j, "cpu_ms", result->cpu_ms);
	json_u64(j, "max_rss_bytes", result->max_rss_bytes);
	json_text(j, "limits", limiter);
}

/* -- shown -- */

static void print_time(struct json *j, const char *key, int64_t unix_ms)
{
	char text[32];
	clock_format(text, unix_ms);
	json_text(j, key, unix_ms ? text : NULL);
}

static void print_end(struct json *j, const struct exec_record *e)
{
	static const char *const keys[] = { "exit_code", "signal", "reason" };
	static const char *const usage[] = { "duration_ms", "cpu_ms", "max_rss_bytes" };
	const uint64_t used[] = { e->result.duration_ms, e->result.cpu_ms,
		e->result.max_rss_bytes };
	bool has_ended = e->state == EXEC_ENDED;
	/* One that never started has an exit code, but didn't end for any reason. */
	if (has_ended && !e->error_exit_code) {
		json_i64(j, "exit_code", result_exit_code(&e->result));
		print_signal(j, e->result.signal);
		json_text(j, "reason", reason_name(e->result.reason));
	} else {
		for (int i = 0; i < 3; i++)
			if (i == 0 && has_ended)
				json_i64(j, keys[i], e->error_exit_code);
			else
				json_null(j, keys[i]);
	}
	json_u64(j, "output_bytes", e->output_bytes);
	for (int i = 0; i < 3; i++)
		if (has_ended)
			json_u64(j, usage[i], used[i]);
		else
			json_null(j, usage[i]);
}

void exec_print(struct json *j, const char *key, const struct exec_record *e)
{
	json_object(j, key);
	json_text(j, "id", e->id);
	json_text(j, "workspace", e->workspace);
	json_text(j, "state", exec_state_names[e->state]);
	json_array(j, "argv");
	for (size_t i = 0; i < e->argv.count; i++)
		json_text(j, NULL, e->argv.items[i]);
	json_end(j);
	json_text(j, "cwd", e->cwd);
	json_bool(j, "background", e->background);
	json_bool(j, "tty", e->tty);
	print_time(j, "started_at", e->started_ms);
	print_time(j, "ended_at", e->ended_ms);
	print_end(j, e);
	json_text(j, "error", e->error);
	json_end(j);
}

/* -- for the store -- */

static const char *name_of_reason(int value)
{
	return value >= 0 && value < REASON_COUNT ? reason_name((enum reason)value) : NULL;
}

static const struct document_field result_document[] = {
#define FIELD(kind, name)                                                                          \
	{                                                                                          \
#name, kind, offsetof(struct result, name), NULL, name_of_reason                   \
	}
	FIELD(DOCUMENT_NAME, reason),
	FIELD(DOCUMENT_INT, exit_status),
	FIELD(DOCUMENT_INT, signal),
	FIELD(DOCUMENT_COUNT, duration_ms),
	FIELD(DOCUMENT_COUNT, cpu_ms),
	FIELD(DOCUMENT_COUNT, max_rss_bytes),
	FIELD(DOCUMENT_BOOL, truncated),
#undef FIELD
	{ 0 },
};
static const struct document_field exec_document[] = {
#define FIELD(kind, name)                                                                          \
	{                                                                                          \
#name, kind, offsetof(struct exec_record, name), result_document, NULL             \
	}
	FIELD(DOCUMENT_TEXTS, argv),
	FIELD(DOCUMENT_TEXT, cwd),
	FIELD(DOCUMENT_BOOL, background),
	FIELD(DOCUMENT_BOOL, tty),
	FIELD(DOCUMENT_OBJECT, result),
	FIELD(DOCUMENT_COUNT, output_bytes),
	FIELD(DOCUMENT_COUNT, output_dropped),
	FIELD(DOCUMENT_TEXT, error),
	FIELD(DOCUMENT_INT, error_exit_code),
	FIELD(DOCUMENT_COUNT, timeout_ms),
	FIELD(DOCUMENT_COUNT, cpu_time_ms),
	FIELD(DOCUMENT_COUNT, output_cap_bytes),
#undef FIELD
	{ 0 },
};

void exec_print_document(const struct exec_record *e, struct buf *out)
{
	document_print(exec_document, e, out);
}

int exec_parse_document(
	struct str text, struct arena *arena, struct exec_record *e, struct error *err)
{
	struct exec_record read = *e;
	if (document_parse(exec_document, text, arena, &read, err))
		return -1;
	*e = read;
	return 0;
}
