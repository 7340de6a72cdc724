/* settings_internal.h -- the formats of settings files. */
#pragma once
#include "policy/internal.h"
#include "policy/reader.h"

struct settings { /* what the readers of members get */
	struct policy *policy;
	const struct policy_places *places;
	/* Adds one rule of a list. */
	int (*add)(struct settings *s, enum policy_decision decision, const char *text,
		struct error *err);
	bool is_bypass_disabled;
	policy_problems *problems; /* or NULL */
};
int settings_read_list(struct reader *r, const struct json_value *list, const char *path,
	enum policy_decision decision, struct settings *s);
/* The rules of permissions.allow, .ask or .deny: the key is the decision. ctx: struct settings. */
int settings_read_rules(
	struct reader *r, const struct json_value *list, const char *path, void *ctx);
int settings_read_claude(struct reader *r, const struct json_value *object, struct settings *s);
int settings_read_srt(struct reader *r, const struct json_value *object, struct settings *s);
/* A path pattern with "~/", or relative to the working directory, as an absolute glob. */
int settings_expand(struct settings *s, const char *pattern, const char **glob, struct error *err);
const char *settings_cwd(const struct settings *s);
