/* role_settings.h -- what a role of the daemon is told when it is started: one JSON document on its
 * stdin, with that role's part of the settings and nothing else. Pure, but for the reading.
 * 1. Who starts a role fills in what it needs; what is empty isn't in the document.
 * 2. Both ends are of one version: a member that a role doesn't know is an error. */
#pragma once
#include "model/settings/config.h"

struct role_settings {
	/* of every role that has a home, and writes a log */
	const char *home;
	bool log_is_json;
	const char *log_level; /* NULL: info */

	/* core's, and the writer's */
	const char *store_url;

	/* core's */
	bool is_first;	     /* of a daemon that begins */
	pair_list listeners; /* number of a descriptor -> "unix", "tcp" or "tls" */
	pair_list uids;	     /* uid -> "admin", "user", "reviewer" or "none"; a later one holds */
	const char *boot;    /* tells times of before and after a reboot apart; NULL: unknown */
	const char *blob_source; /* as in core/core.h; NULL: the home's own */
	const char *config_digest;
	uint64_t approval_ttl_ms, release_after_ms, captured_bytes;
	bool approvals_self, has_webhook;
	bool use_snapshots, auto_repair, landlock_writes;
	bool archive_on_remove, archive_on_expiry, archive_gzip;
	struct serve_settings serve;
	struct network_settings egress;
	struct tool_settings tools;

	/* core's, and the audit log's */
	bool audit_enabled, audit_drops;
	uint64_t audit_max_file_bytes, audit_max_bytes;

	/* of carrel-blob: where the store is, or where the webhook's call goes */
	const char *blob_url, *blob_endpoint, *blob_region, *webhook;
	bool blob_path_style;
	uint64_t blob_timeout_ms, webhook_timeout_ms;

	/* of questions of the command line */
	const char *template;	    /* its name; NULL: it is sent */
	const char *package_format; /* of the package that is written; NULL: none is */
	bool has_environment;	    /* which becomes part of the package */
};
/* The document, in the arena. */
const char *role_settings_print(const struct role_settings *settings, struct arena *arena);
/* From `fd`. ERR_INVALID: it wasn't started by who prints them. */
int role_settings_read(
	int fd, struct arena *arena, struct role_settings *settings, struct error *err);
