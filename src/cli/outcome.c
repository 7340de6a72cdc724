#include "cli/outcome.h"

#include "base/str.h"
#include "cli/cli.h"
#include "format/quantity.h"
#include "model/exec.h"

/* A limit as it was typed, or would be. */
static void format_limit(char out[32], enum reason reason, const struct limits *limits)
{
	char size[16];
	const uint64_t sizes[REASON_COUNT] = { [REASON_MEMORY_LIMIT] = limits->memory_bytes,
		[REASON_OUTPUT_LIMIT] = limits->output_bytes,
		[REASON_DISK_LIMIT] = limits->disk_bytes };
	uint64_t ms = reason == REASON_TIMEOUT ? limits->timeout_ms : limits->cpu_time_ms;
	quantity_format_size(size, sizes[reason]);
	if (sizes[reason])
		str_copy(out, 32, size);
	else if (ms % 1000)
		str_format(out, 32, "%llums", (unsigned long long)ms);
	else
		str_format(out, 32, "%llus", (unsigned long long)ms / 1000);
}

void outcome_explain(const struct result *result, const struct limits *limits)
{
	static const struct {
		const char *before, *after; /* the limit stands between them */
	} texts[REASON_COUNT] = {
		[REASON_TIMEOUT] = { "was ended: timeout, after ", " (--timeout)" },
		[REASON_CPU_LIMIT] = { "was ended: cpu_limit, after ",
			" of cpu time (--cpu-time)" },
		[REASON_MEMORY_LIMIT] = { "was ended: memory_limit, more than ", " (--memory)" },
		[REASON_OUTPUT_LIMIT] = { "was ended: output_limit, more than ", " (--output)" },
		[REASON_DISK_LIMIT] = { "failed: disk_limit, /workspace is full at ", " (--disk)" },
		[REASON_CANCELED] = { "was ended: canceled", NULL },
	};
	char limit[32] = "";
	if (!texts[result->reason].before)
		return;
	if (texts[result->reason].after)
		format_limit(limit, result->reason, limits);
	if (result->reason == REASON_CPU_LIMIT && !limits->cpu_time_ms)
		cli_say("the command was ended: cpu_limit, it kept running although --cpus paused "
			"it");
	else
		cli_say("the command %s%s%s", texts[result->reason].before, limit,
			texts[result->reason].after ? texts[result->reason].after : "");
}

void outcome_print(const struct result *result, const struct buf *out, const struct buf *errors,
	const char *limiter, struct buf *text)
{
	struct exec_output output = exec_output_whole((struct str){ out->data, out->len },
		(struct str){ errors->data, errors->len }, result->truncated);
	struct json j = json_to(text, false);
	json_object(&j, NULL);
	exec_print_result(&j, NULL, result, &output, limiter, NULL);
	json_end(&j);
	buf_char(text, '\n');
}
