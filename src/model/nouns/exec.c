#include "base/str.h"
#include "model/nouns/exec.h"
#include "model/records/rows.h"

const char *const exec_state_names[EXEC_STATE_COUNT + 1] = {
	[EXEC_STARTING] = "starting",
	[EXEC_RUNNING] = "running",
	[EXEC_ENDED] = "ended",
	[EXEC_WAITING] = "waiting",
};

/* -- what is asked for -- */

const char *const exec_approval_names[EXEC_APPROVAL_COUNT + 1] = { "wait", "return", NULL };
const char *const exec_policy_names[EXEC_POLICY_COUNT + 1] = { "enforce", "learn", NULL };

#define TIME_MOST WORKSPACE_TIME_MOST
#define ARGV_MOST (1 << 20) /* as INIT_STRINGS_MAX; the kernel takes less */

static int check_user(const char *text, struct error *err)
{
	return strcmp(text, "agent") && strcmp(text, "1000")
		       ? fail_hint(err, ERR_INVALID, "leave it out",
				 "'%s' is not the sandbox's user, 'agent' (1000)", text)
		       : 0;
}

static int check_spec(const void *value, struct error *err)
{
	const struct exec_spec *spec = value;
	if (spec->argv.count && !spec->argv.items[0][0])
		return fail(err, ERR_INVALID, "argv[0]: may not be empty");
	if (spec->stdin_text.data && spec->open_stdin)
		return fail(err, ERR_INVALID, "'stdin' and 'open_stdin' are both given");
	return 0;
}

#define AT(member) offsetof(struct exec_spec, member)
static const struct field spec_limits_rows[] = {
	{ "cpu_time", FIELD_DURATION, AT(cpu_time_ms), "cpu time of all its processes", .least = 1,
		.most = TIME_MOST },
	{ "output", FIELD_SIZE, AT(output_bytes),
		"bytes of output; when not given: the workspace's limit, else 64M if it is "
		"captured "
		"or kept",
		.least = 1, .most = INT64_MAX / 4 },
};
static const struct record spec_limits = { "ExecLimits", NULL, RECORD_ROWS(spec_limits_rows),
	FIELD_IN };

static const struct field spec_rows[] = {
	ROW(TEXTS, argv, "the program and its arguments", FIELD_STRICT, .least = 1,
		.most = ARGV_MOST),
	ROW(TEXT, command, "for /bin/sh -c", FIELD_STRICT, .least = 1),
	ROW(TEXT, cwd,
		"absolute, or from the workspace's directory on, which it is when not given: "
		"/workspace, or / in view root",
		.least = 1, .most = 4095),
	ROW(PAIRS, env, "variables, on top of the workspace's", .most = WORKSPACE_ENV_MAX,
		.pattern = WORKSPACE_VARIABLE_PATTERN, .check_pair = workspace_check_variable),
	{ "stdin", FIELD_BYTES, AT(stdin_text), "the whole input: text, or {\"base64\": …}" },
	ROW(BOOLEAN, open_stdin, "stdin is fed by POST /v1/execs/{id}/stdin"),
	{ "timeout", FIELD_DURATION, AT(timeout_ms),
		"wall time; when not given: the workspace's limit, else 300 s; no limit with "
		"background or tty",
		.least = 1, .most = TIME_MOST },
	{ "limits", FIELD_OBJECT, 0, .object = &spec_limits },
	ROW(BOOLEAN, tty, "with a terminal of its own"),
	ROW(INTEGER, rows, "of the terminal; 24 when not given", .least = 1, .most = 65535),
	ROW(INTEGER, columns, "of the terminal; 80 when not given", .least = 1, .most = 65535),
	ROW(BOOLEAN, background,
		"respond as soon as the command runs; it continues without the client"),
	ROW(TEXT, user, "the user of the sandbox: agent, or 1000", .pattern = "^(agent|1000)$",
		.check = check_user),
	ROW(CHOICE, approval,
		"if the policy asks for an approval: wait for it (the default), or return 202; the "
		"command then waits as a background exec, without streams of the client",
		.names = exec_approval_names),
	ROW(CHOICE, policy,
		"learn (scope admin, text/event-stream): run what no rule denies, and send the "
		"rules that would allow it as the event learned",
		.names = exec_policy_names),
};
#undef AT
static const char *const spec_one_of[] = { "argv", "command", NULL };
const struct record exec_spec_record = { "ExecWanted", NULL, RECORD_ROWS(spec_rows), FIELD_IN,
	.check = check_spec, .one_of = spec_one_of };

void exec_spec_expand(struct exec_spec *spec, struct arena *arena)
{
	spec->has_stdin_text = spec->stdin_text.data != NULL;
	if (!spec->command)
		return;
	vec_push(arena, &spec->argv, "/bin/sh");
	vec_push(arena, &spec->argv, "-c");
	vec_push(arena, &spec->argv, spec->command);
	vec_push(arena, &spec->argv, NULL);
	spec->argv.count--;
}

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

struct result_shown {
	const char *id;
	int exit_code, signal;
	enum reason reason;
	struct field_stream streams[2];
	int is_base64;
	bool truncated;
	uint64_t duration_ms, cpu_ms, max_rss_bytes;
	const char *limiter;
};
#define AT(member) offsetof(struct result_shown, member)
static const char *const encodings[] = { "utf-8", "base64", NULL };
static const struct field result_rows[] = {
	ROW(TEXT, id, "of the exec"),
	ROW(INT, exit_code),
	ROW(INT, signal, NULL, FIELD_NULLABLE),
	ROW(CHOICE, reason, .names = reason_names),
	{ "stdout", FIELD_STREAM, AT(streams[0]) },
	{ "stderr", FIELD_STREAM, AT(streams[1]) },
	{ "encoding", FIELD_CHOICE, AT(is_base64), .names = encodings,
		.help = "encoding of stdout and stderr: base64 if one isn't UTF-8, or if JSON "
			"would need more than 64 KiB and more than twice their bytes" },
	ROW(BOOLEAN, truncated),
	ROW(INTEGER, duration_ms),
	ROW(INTEGER, cpu_ms),
	ROW(INTEGER, max_rss_bytes),
	{ "limits", FIELD_TEXT, AT(limiter), "the mechanism that enforced the limits",
		FIELD_NULLABLE },
};
#undef AT
const struct record result_record = { "Result", NULL, RECORD_ROWS(result_rows), FIELD_OUT };
static const struct record anonymous_result = { "Result", NULL, result_rows + 1,
	sizeof result_rows / sizeof *result_rows - 1, FIELD_OUT };
static const struct record output_record = { "Output", NULL, result_rows + 4, 3, FIELD_OUT };

static void show_output(
	struct result_shown *shown, const struct exec_output *output, size_t places[2])
{
	shown->is_base64 = output->is_base64;
	for (int i = 0; i < 2; i++)
		shown->streams[i] = (struct field_stream){ output->streams[i], output->is_base64,
			places ? &places[i] : NULL };
}

void exec_print_output(struct json *j, const struct exec_output *output)
{
	struct result_shown shown = { 0 };
	show_output(&shown, output, NULL);
	record_print_members(j, &output_record, &shown);
}

void exec_print_result(struct json *j, const char *id, const struct result *result,
	const struct exec_output *output, const char *limiter, size_t places[2])
{
	struct result_shown shown = { .id = id,
		.exit_code = result_exit_code(result),
		.signal = result->signal,
		.reason = result->reason,
		.truncated = result->truncated,
		.duration_ms = result->duration_ms,
		.cpu_ms = result->cpu_ms,
		.max_rss_bytes = result->max_rss_bytes,
		.limiter = limiter };
	show_output(&shown, output, places);
	record_print_members(j, id ? &result_record : &anonymous_result, &shown);
}

/* -- the exec -- */

/* The rows of what is shown are about this one; those of what is kept about its first member. */
struct exec_shown {
	struct exec_record record;
	bool has_ended, has_result; /* an exec that never started has an exit code, but no reason */
	int exit_code, signal;
};
#define AT(member) offsetof(struct result, member)
static const struct field kept_result_rows[] = {
	ROW(CHOICE, reason, .names = reason_names),
	ROW(INT, exit_status),
	ROW(INT, signal),
	ROW(INTEGER, duration_ms),
	ROW(INTEGER, cpu_ms),
	ROW(INTEGER, max_rss_bytes),
	ROW(BOOLEAN, truncated),
};
#undef AT
static const struct record kept_result = { "KeptResult", NULL, RECORD_ROWS(kept_result_rows),
	FIELD_KEPT };

#define AT(member) offsetof(struct exec_record, member)
#define SHOWN(member) offsetof(struct exec_shown, member)
#define ENDED FIELD_OUT | FIELD_NULLABLE, .has = FIELD_HAS(struct exec_shown, has_ended)
#define BOTH FIELD_OUT | FIELD_KEPT
static const struct field exec_rows[] = {
	ROW(ID, id, NULL, FIELD_OUT | FIELD_COLUMN),
	ROW(ID, workspace, "its id", FIELD_OUT | FIELD_COLUMN),
	ROW(CHOICE, state, NULL, FIELD_OUT | FIELD_COLUMN, .names = exec_state_names),
	ROW(TEXTS, argv, NULL, BOTH),
	ROW(TEXT, cwd, NULL, BOTH | FIELD_NULLABLE),
	ROW(BOOLEAN, background, NULL, BOTH),
	ROW(BOOLEAN, tty, NULL, BOTH),
	{ "started_at", FIELD_TIME, AT(started_ms), NULL, FIELD_OUT | FIELD_NULLABLE | FIELD_COLUMN,
		.kept = "started_ms" },
	{ "ended_at", FIELD_TIME, AT(ended_ms), NULL, FIELD_OUT | FIELD_NULLABLE | FIELD_COLUMN,
		.kept = "ended_ms" },
	{ "exit_code", FIELD_INT, SHOWN(exit_code), NULL, ENDED },
	{ "signal", FIELD_INT, SHOWN(signal), NULL, FIELD_OUT | FIELD_NULLABLE },
	{ "reason", FIELD_CHOICE, SHOWN(record.result.reason), NULL, FIELD_OUT | FIELD_NULLABLE,
		.has = FIELD_HAS(struct exec_shown, has_result), .names = reason_names },
	ROW(OBJECT, result, NULL, FIELD_KEPT, .object = &kept_result),
	ROW(INTEGER, output_bytes, NULL, BOTH),
	ROW(INTEGER, output_dropped, NULL, FIELD_KEPT),
	{ "output_dropped_bytes", FIELD_INTEGER, AT(output_dropped),
		"how many of output_bytes are not kept: the oldest, of a background exec that has "
		"written more than its limit",
		FIELD_OUT },
	{ "duration_ms", FIELD_INTEGER, AT(result.duration_ms), NULL, ENDED },
	{ "cpu_ms", FIELD_INTEGER, AT(result.cpu_ms), NULL, ENDED },
	{ "max_rss_bytes", FIELD_INTEGER, AT(result.max_rss_bytes), NULL, ENDED },
	ROW(TEXT, error, NULL, BOTH | FIELD_NULLABLE),
	ROW(INT, error_exit_code, NULL, FIELD_KEPT),
	ROW(INTEGER, timeout_ms, NULL, FIELD_KEPT),
	ROW(INTEGER, cpu_time_ms, NULL, FIELD_KEPT),
	ROW(INTEGER, output_cap_bytes, NULL, FIELD_KEPT),
};
const struct record exec_fields = { "Exec", NULL, RECORD_ROWS(exec_rows) };

void exec_rotate(const uint64_t kept[2], uint64_t cap, uint64_t drop[2])
{
	int longer = kept[1] > kept[0];
	uint64_t most = cap - cap / 4;
	uint64_t shorter = kept[!longer] < most / 2 ? kept[!longer] : most / 2;
	drop[0] = drop[1] = 0;
	if (kept[0] + kept[1] <= cap)
		return;
	drop[!longer] = kept[!longer] - shorter;
	if (kept[longer] > most - shorter)
		drop[longer] = kept[longer] - (most - shorter);
}

void exec_print_members(struct json *j, const struct exec_record *e)
{
	bool has_ended = e->state == EXEC_ENDED, has_result = has_ended && !e->error_exit_code;
	struct exec_shown shown = { *e, has_ended, has_result,
		has_result ? result_exit_code(&e->result) : e->error_exit_code,
		has_result ? e->result.signal : 0 };
	record_print_members(j, &exec_fields, &shown);
}

void exec_print(struct json *j, const char *key, const struct exec_record *e)
{
	json_object(j, key);
	exec_print_members(j, e);
	json_end(j);
}
