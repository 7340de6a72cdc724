#include "model/nouns/limits.h"
#include "model/records/rows.h"

#define SIZE_MOST (INT64_MAX / 4)
#define TIME_MOST (36525ull * 24 * 3600 * 1000)
#define AT(member) offsetof(struct limits, member)
#define LIMIT (FIELD_USES | FIELD_NULLABLE)

static const struct field rows[] = {
	{ "memory", FIELD_SIZE, AT(memory_bytes),
		"memory of all processes and tmpfs together (default 2G)", LIMIT,
		.least = LIMIT_MEMORY_LEAST, .most = SIZE_MOST, .fallback = LIMIT_MEMORY_DEFAULT },
	{ "disk", FIELD_SIZE, AT(disk_bytes),
		"size of /workspace, /.cache and changes of /env (default 1G)", LIMIT,
		.least = 65536, .most = SIZE_MOST, .fallback = LIMIT_DISK_DEFAULT },
	{ "tmp", FIELD_SIZE, AT(tmp_bytes),
		"size of /tmp and /dev/shm together (default half of memory)", LIMIT,
		.least = 65536, .most = SIZE_MOST },
	ROW(INTEGER, pids, "processes and threads (default 1024)", LIMIT, .least = 1,
		.most = 4194304, .fallback = LIMIT_PIDS_DEFAULT),
	ROW(INTEGER, fds, "open files of a process (default 1024)", LIMIT, .least = 16,
		.most = 1048576, .fallback = LIMIT_FDS_DEFAULT),
	{ "cpus", FIELD_CPUS, AT(millicpus), "number of CPUs, such as 0.5 (default no limit)",
		LIMIT, .least = 10, .most = 4096000 },
	{ "cpu_time", FIELD_DURATION, AT(cpu_time_ms), "cpu time of one exec (default no limit)",
		LIMIT, .least = 1, .most = TIME_MOST },
	{ "timeout", FIELD_DURATION, AT(timeout_ms),
		"wall time of one exec, unless the exec sets its own", LIMIT, .least = 1,
		.most = TIME_MOST },
	{ "output", FIELD_SIZE, AT(output_bytes), "bytes of output of one exec", LIMIT, .least = 1,
		.most = SIZE_MOST },
	/* not limits */
	ROW_OF(limits_shown, TEXT, mechanism,
		"the mechanism that enforces them: cgroup-v1, cgroup-v2, watchdog; null: not warm",
		FIELD_OUT | FIELD_NULLABLE),
	{ "mechanism", FIELD_SHOWN, 0, "set in responses; ignored in requests", FIELD_IN },
};
const struct record limits_record = { "Limits", "The limits in force; null: no limit.",
	RECORD_ROWS(rows), .wanted = "LimitsWanted",
	.wanted_about = "Limits apply to the whole sandbox. Sizes are bytes or text such as "
			"\"512M\", durations text such as \"30s\". The limits in a response can be "
			"sent back unchanged." };
const struct field *const limit_rows = rows;
const size_t limit_count = sizeof rows / sizeof *rows - 2;

uint64_t limit_get(const struct limits *limits, const struct field *row)
{
	return *(const uint64_t *)(const void *)((const char *)limits + row->offset);
}

uint64_t *limit_at(struct limits *limits, const struct field *row)
{
	return (uint64_t *)(void *)((char *)limits + row->offset);
}

int limits_check(const struct limits *limits, struct error *err)
{
	for (size_t i = 0; i < limit_count; i++) {
		const struct field *row = &rows[i];
		uint64_t value = limit_get(limits, row);
		if (value && (value < row->least || value > row->most))
			return fail(err, ERR_INVALID,
				"the limit %s is from %" PRIu64 " to %" PRIu64 ", not %" PRIu64,
				field_name(row, FIELD_KEPT).text, row->least, row->most, value);
	}
	return 0;
}

int limits_fill(struct limits *limits, struct error *err)
{
	if (limits_check(limits, err))
		return -1;
	for (size_t i = 0; i < limit_count; i++)
		if (!limit_get(limits, &rows[i]))
			*limit_at(limits, &rows[i]) = rows[i].fallback;
	if (!limits->tmp_bytes)
		limits->tmp_bytes = limits->memory_bytes / 2;
	return 0;
}

int limits_change(struct limits *limits, const struct limits *change, struct error *err)
{
	struct limits next = *change;
	for (size_t i = 0; i < limit_count; i++)
		if (!limit_get(change, &rows[i]))
			*limit_at(&next, &rows[i]) = limit_get(limits, &rows[i]);
	if (change->memory_bytes)
		next.tmp_bytes = change->tmp_bytes;
	if (limits_fill(&next, err))
		return -1;
	*limits = next;
	return 0;
}
