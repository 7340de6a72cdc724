/* limits.h -- what a sandbox may use. A limit counts for the whole sandbox, never per process. 0
 * means none (only where said). A limit is a member here and a row in limits.c: options, REST,
 * plan, what is shown and what is stored follow from the row. */
#pragma once
#include "base/error.h"
#include "model/records/record.h"

#define LIMIT_MEMORY_DEFAULT (2ull << 30)
#define LIMIT_DISK_DEFAULT (1ull << 30)
#define LIMIT_PIDS_DEFAULT 1024 /* threads count too: a Node process has a dozen */
#define LIMIT_FDS_DEFAULT 1024
#define LIMIT_OUTPUT_CAPTURED_DEFAULT (64ull << 20)
#define LIMIT_MEMORY_LEAST (4ull << 20) /* below this not even a shell starts */

struct limits {
	uint64_t memory_bytes;
	uint64_t disk_bytes; /* 0: none (only with --dir) */
	uint64_t tmp_bytes;  /* a tmpfs counts as memory: half of that when not given */
	uint64_t pids, fds;
	uint64_t millicpus;    /* 0: none */
	uint64_t cpu_time_ms;  /* 0: none */
	uint64_t timeout_ms;   /* 0: none */
	uint64_t output_bytes; /* 0: none */
};
/* As they are shown. */
struct limits_shown {
	struct limits limits;
	const char *mechanism; /* by what they are kept: "cgroup-v1" …; NULL: by nothing now */
};
extern const struct record limits_record; /* of either */
/* The rows that are limits: each a uint64_t. */
extern const struct field *const limit_rows;
extern const size_t limit_count;
uint64_t *limit_at(struct limits *limits, const struct field *row);
uint64_t limit_get(const struct limits *limits, const struct field *row);

/* ERR_INVALID names a limit that is given (not 0) and out of range. */
int limits_check(const struct limits *limits, struct error *err);
/* Limits that weren't given (0) get their defaults, tmp_bytes half of the memory; cpus, cpu time,
 * timeout and output stay without. ERR_INVALID as above; nothing is changed then. */
int limits_fill(struct limits *limits, struct error *err);
/* Those of `change` that were given; tmp_bytes follows the memory when it isn't. As above. */
int limits_change(struct limits *limits, const struct limits *change, struct error *err);
