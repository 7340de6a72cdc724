/* policy_file.h -- the settings.json and sources.json that a user names, and the policy of the
 * operator's config.yaml. */
#pragma once
#include "cli/cli.h"
#include "linux/home.h"
#include "model/settings/config.h"

extern const struct arg_option policy_file_rows[2]; /* -s, --sources */

/* The file's JSON without blanks. An error names the file and what is wrong in it. */
int policy_file_settings(
	const char *path, struct arena *arena, const char **json, struct error *err);
int policy_file_sources(
	const char *path, struct arena *arena, const char **json, struct error *err);
/* What -s and --sources say, as members of a request; may_remove: "none" is null. */
int policy_file_print(struct json *j, const struct options *options, bool may_remove,
	struct arena *arena, struct error *err);
/* What a workspace that was shown has of a policy, and which of its file rules are only judged, and
 * no mounts; NULL: it has none. */
const char *policy_file_describe(const struct json_value *w, struct arena *arena);
/* Reads the operator's files and checks them. */
struct policy_operator {
	const char *settings, *sources; /* JSON, or NULL */
	const char *otherwise;		/* "ask" …, or NULL */
};
int policy_file_operator(const struct config *config, struct arena *arena,
	struct policy_operator *policy, struct error *err);
/* Puts them where core reads them at its start (core/access/policies.h). */
int policy_file_publish(const struct home *home, const struct config *config, struct arena *arena,
	struct error *err);
