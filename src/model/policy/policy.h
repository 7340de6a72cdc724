/* policy.h -- judges what an agent asks for by rules: deny first, then allow, else ask. Pure.
 * 1. A rule that can't be read is an error when it is loaded, never left out.
 * 2. A script is allowed only if each of its commands, assignments, redirections and expansions
 * is; it is denied if any of them is. What the shell grammar doesn't understand is at least asked
 * for.
 * 3. A rule never matches text that the shell would still expand: such a word can't satisfy an
 * allow rule, and where it might be what a deny rule names, a person is asked.
 * 4. The judge is for people. What a program does once it runs is the sandbox's matter. */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "format/shell/shell.h"

/* In order of strictness: of two decisions the greater one holds. */
enum policy_decision { POLICY_ALLOW, POLICY_ASK, POLICY_DENY };
enum policy_kind { POLICY_SHELL, POLICY_FILE, POLICY_NETWORK };
enum policy_operation { POLICY_READ = 1, POLICY_WRITE = 2, POLICY_DELETE = 4 };

struct policy_rule {
	enum policy_kind kind;
	enum policy_decision decision;
	const char *text;    /* as written */
	text_list words;     /* SHELL; none: any command */
	bool is_prefix;	     /* SHELL: more words may follow */
	unsigned operations; /* FILE: policy_operation */
	const char *glob;    /* FILE: absolute, normal; ** crosses '/', * and ? do not */
	const char *host;    /* NETWORK: a name, "*.name" or "*" */
	unsigned port;	     /* NETWORK; 0: 80 and 443 */
};
struct policy {
	VEC(struct policy_rule) rules;
	enum policy_decision otherwise; /* where no rule matches: POLICY_ASK unless set */
	bool has_file_rules;
	struct map by_word; /* the first word of SHELL rules: struct policy_bucket */
	struct arena *arena;
};
struct policy_places { /* what rules name by variable; NULL: a rule that names it is an error */
	const char *workspace;	/* ${WORKSPACE} */
	const char *context_id; /* ${CONTEXT_ID} */
	const char *home;	/* ~ */
};
void policy_init(struct policy *policy, struct arena *arena);
/* Adds one rule. ERR_INVALID says what is wrong with it. */
int policy_add_rule(struct policy *policy, enum policy_decision decision, const char *text,
	const struct policy_places *places, struct error *err);
/* Adds the rules of a settings.json: {"permissions": {"allow": […], "deny": […], "ask": […]}}.
 * ERR_INVALID names the list, the rule's place in it and its text. */
int policy_add_settings(struct policy *policy, struct str json, const struct policy_places *places,
	struct error *err);

struct policy_step { /* one line of the trail */
	const char
		*subject; /* a simple command as written, "file(read:/x)", "network(outbound:x)" */
	const char *rule; /* the rule that decided, as written; NULL: none */
	const char *reason; /* why, where no rule did; NULL otherwise */
	enum policy_decision decision;
};
struct policy_verdict {
	enum policy_decision decision;
	VEC(struct policy_step) trail;
};
struct policy_request {
	enum shell_dialect dialect;
	const char *cwd;  /* absolute and normal */
	const char *home; /* for ~ */
	struct arena *arena;
};
/* A script as `sh -c` or `bash -c` gets it. */
void policy_judge_script(const struct policy *policy, const struct policy_request *request,
	struct str script, struct policy_verdict *verdict);
/* A command that runs without a shell. */
void policy_judge_argv(const struct policy *policy, const struct policy_request *request,
	const text_list *argv, struct policy_verdict *verdict);
/* `path` is absolute; made normal by text. */
void policy_judge_file(const struct policy *policy, const struct policy_request *request,
	enum policy_operation operation, const char *path, struct policy_verdict *verdict);
/* `host` is a name in lower case, or an address. */
void policy_judge_network(const struct policy *policy, const struct policy_request *request,
	const char *host, unsigned port, struct policy_verdict *verdict);

const char *policy_decision_name(enum policy_decision decision);
