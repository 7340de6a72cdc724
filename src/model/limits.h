/* limits.h -- what a sandbox may use. A limit counts for the whole sandbox, never per process. 0
 * means none (only where said). */
#pragma once
#include <stdint.h>
#include "base/error.h"

#define LIMIT_MEMORY_DEFAULT (2ull << 30)
#define LIMIT_DISK_DEFAULT (1ull << 30)
#define LIMIT_TMP_DEFAULT(memory_bytes) ((memory_bytes) / 2) /* a tmpfs counts as memory */
#define LIMIT_PIDS_DEFAULT 1024 /* threads count too: a Node process has a dozen */
#define LIMIT_FDS_DEFAULT 1024
#define LIMIT_OUTPUT_CAPTURED_DEFAULT (64ull << 20)
#define LIMIT_MEMORY_LEAST (4ull << 20) /* below this not even a shell starts */

struct limits {
	uint64_t memory_bytes;
	uint64_t disk_bytes; /* 0: none (only with --dir) */
	uint64_t tmp_bytes;
	uint64_t pids, fds;
	uint64_t millicpus;    /* 0: none */
	uint64_t cpu_time_ms;  /* 0: none */
	uint64_t timeout_ms;   /* 0: none */
	uint64_t output_bytes; /* 0: none */
};
