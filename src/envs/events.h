/* events.h -- what happens to environments, as the first seed's log has it: one JSON object a line.
 * Every event goes to <home>/audit/envs.jsonl (rotated at 16 MB to envs.jsonl.1), and to `sink`,
 * which is stdout with `--events`. Every line has "event", "level" and "time".
 * Statuses ("fetching_uv", "resolving", "building_env", "building_wheels", "installing_deps",
 * "running_scripts", "building_layers", "ready", "failed") are events of that name. */
#pragma once
#include "base/error.h"
#include "linux/home.h"
#include "model/nouns/environment.h"

struct events {
	const struct home *home;
	int sink; /* a descriptor, or -1 */
};
void events_status(const struct events *events, const char *status, const char *venv);
/* While a job runs; to the sink only. */
void events_progress(const struct events *events, const char *status, const char *venv,
	uint64_t packages_done, uint64_t packages, uint64_t bytes, double bytes_per_second);
void events_creating(const struct events *events, const struct env_meta *meta);
void events_installing(
	const struct events *events, const char *venv, const char *requirements_file);
void events_installed(const struct events *events, const struct env_meta *meta, double seconds);
void events_reused(const struct events *events, const struct env_meta *meta, double age_hours);
void events_evicted(const struct events *events, const struct env_meta *meta, const char *reason);
/* The index didn't answer: attempt number `attempt` of `attempts` follows. */
void events_retrying(const struct events *events, const char *venv, int attempt, int attempts);
/* code: of enum build_failure or error_code_name. */
void events_failed(const struct events *events, const char *venv, const char *code,
	const char *package, const struct error *why);
