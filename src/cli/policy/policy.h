/* policy.h -- what the commands of `carrel policy` share. */
#pragma once
#include "cli/cli.h"
#include "policy/policy.h"
#include "policy/sources.h"

/* Rows of several commands: --settings, --settings-format, --sources, -w, --home, --shell. */
extern const struct arg_option policy_rows[6];

/* What config.yaml says of the networks of sandboxes; nothing without a home. */
struct policy_network {
	struct network_defaults defaults;
	struct network_opened opened;
	text_list names; /* of opened.hosts */
	struct map hosts;
};
int policy_read_network(struct arena *arena, struct policy_network *network, struct error *err);
struct policy_rules { /* settings and sources, and where they hold */
	struct policy policy;
	struct sources sources;
	bool has_sources;
	struct policy_request request;
	struct policy_network network; /* of --network */
};
/* A file of this host, or standard input for "-": UTF-8 text of at most max bytes. */
int policy_read_file(
	const char *path, size_t max, struct arena *arena, struct str *text, struct error *err);
/* "decision" and "trail" into an open object. */
void policy_print_verdict(struct json *j, const struct policy_verdict *verdict);

/* Reads JSON lines and answers each with a line; returns as arg_spec.run does. */
int policy_stream(struct command *command, struct error *err);

extern const struct arg_spec policy_test_spec, policy_lint_spec, policy_learn_spec;
