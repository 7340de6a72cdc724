/* policy.h -- judges what an agent asks for by rules: deny first, then allow, else ask. Pure.
 * 1. A rule that can't be read is an error when it is loaded, never left out.
 * 2. A script is allowed only if each of its commands, assignments, redirections and expansions
 * is; it is denied if any of them is. What the shell grammar doesn't understand is at least asked
 * for.
 * 3. A rule never matches text that the shell would still expand: such a word can't satisfy an
 * allow rule, and where it might be what a deny rule names, a person is asked.
 * 4. The judge is for people. What a program does once it runs is the sandbox's matter. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/decision.h"
#include "model/network/network.h"
#include "policy/shell/shell.h"

enum policy_kind { POLICY_SHELL, POLICY_FILE, POLICY_NETWORK };
enum policy_operation { POLICY_READ = 1, POLICY_WRITE = 2, POLICY_DELETE = 4 };

struct policy_rule {
	enum policy_kind kind;
	enum policy_decision decision;
	const char *text;     /* as written */
	const char *file;     /* where it was read; NULL: not from a file that has a name */
	int line;	      /* there; 0: not known */
	text_list words;      /* SHELL; none: any command, or `wildcard` */
	bool is_prefix;	      /* SHELL: more words may follow */
	const char *wildcard; /* SHELL of Claude Code: * matches any text; or NULL */
	unsigned operations;  /* FILE: policy_operation */
	const char *glob;     /* FILE: absolute, normal; ** crosses '/', * and ? do not */
	const char *fixed;  /* FILE: the directory, or file, of the glob's part without wildcards */
	bool is_with_below; /* FILE: a directory that matches stands for all below it */
	const char *host;   /* NETWORK: a name, "*.name" or "*" */
	unsigned port;	    /* NETWORK; 0: 80 and 443 */
	bool is_any_port;   /* NETWORK: whatever the port is */
};
#define POLICY_RULES_MAX 32768 /* what more takes too long to be compiled, and too much memory */
struct policy_defaults {       /* where no rule matches */
	enum policy_decision shell, read, write, remove, network;
};
enum policy_format {	      /* of a settings file */
	POLICY_FORMAT_ANY,    /* known by its shape */
	POLICY_FORMAT_CARREL, /* shell(…), file(…), network(…) */
	POLICY_FORMAT_CLAUDE, /* Claude Code: Bash(…), Read(…), Edit(…), WebFetch(…) */
	POLICY_FORMAT_SRT,    /* sandbox-runtime: network, filesystem */
};
struct policy {
	VEC(struct policy_rule) rules;
	struct policy_defaults otherwise; /* POLICY_ASK each, unless set */
	bool has_file_rules;
	const char *workspace; /* where redirections need no file rule; NULL: nowhere */
	bool never_asks;  /* srt: a command that isn't understood runs; the sandbox confines it */
	bool denies_asks; /* Claude Code's mode dontAsk */
	/* Claude Code: reading below `directories` needs no rule, commands that only read don't
	 * either, and an allowed command may use any file that no rule denies or asks for, but
	 * redirects its output below `directories` only. */
	bool is_claude;
	bool accepts_edits; /* Claude Code's mode acceptEdits: writing below `directories` */
	text_list directories;
	struct map by_word;	/* SHELL: the first word, or the first two: struct policy_bucket */
	struct map by_dir;	/* FILE: `fixed` */
	VEC(size_t) forbidding; /* FILE: the rules that deny or ask */
	struct map by_host;	/* NETWORK: `host` */
	struct arena *arena;
};
struct policy_places { /* what rules name by variable; NULL: a rule that names it is an error */
	const char *workspace;	/* ${WORKSPACE} */
	const char *context_id; /* ${CONTEXT_ID} */
	const char *home;	/* ~ */
	const char *cwd;	/* relative paths of Claude Code and srt; NULL: the workspace */
	const char *settings;	/* the directory of the file, for /path of Claude Code; or NULL */
};
void policy_init(struct policy *policy, struct arena *arena);
/* What holds where no rule matches, for all kinds. */
void policy_set_default(struct policy *policy, enum policy_decision decision);
/* "read", "write|delete", "*" (all three) to its policy_operation. ERR_INVALID names the one that
 * isn't known. */
int policy_operations_parse(struct str names, unsigned *operations, struct error *err);
/* Adds one rule, in Carrel's syntax. ERR_INVALID says what is wrong with it. */
int policy_add_rule(struct policy *policy, enum policy_decision decision, const char *text,
	const struct policy_places *places, struct error *err);

#define POLICY_SETTINGS_MAX ((size_t)4 << 20) /* bytes of a file */
struct policy_problem {			      /* a rule that can't be read */
	int line;
	const char *text;
};
typedef VEC(struct policy_problem) policy_problems;
struct policy_file {
	const char *name; /* for errors and trails, or NULL */
	struct str text;
	enum policy_format format;
	policy_problems *problems; /* NULL; else rules that can't be read are added here and left
				      out: for a checker, never for a judge */
};
/* Adds the rules of a settings file. ERR_INVALID names the file, the line, the list, the rule's
 * place in it and its text: "settings.json:12: permissions.deny[1]: 'x': …"; an unknown key is
 * named too. ERR_LIMIT: too large. On failure the policy holds a part of the rules. */
int policy_add_file(struct policy *policy, const struct policy_file *file,
	const struct policy_places *places, struct error *err);
/* The same for a text without a name, of any format. */
int policy_add_settings(struct policy *policy, struct str json, const struct policy_places *places,
	struct error *err);
/* "carrel", "claude", "srt" to its format; false: another name. */
bool policy_format_from_name(const char *name, enum policy_format *format);

struct policy_step { /* one line of the trail */
	const char
		*subject; /* a simple command as written, "file(read:/x)", "network(outbound:x)" */
	const char *rule; /* the rule that decided, as written; NULL: none */
	const char *reason; /* why, where no rule did; NULL otherwise */
	enum policy_decision decision;
	const struct policy_rule *by; /* the rule of `rule`; NULL: none */
	const char *within;	/* "timeout, env": what it was looked through; NULL: nothing */
	const char *suggestion; /* a rule that would allow it; NULL: no rule can */
};
struct policy_verdict {
	enum policy_decision decision;
	VEC(struct policy_step) trail;
};
/* What a judgement may take at most. It is counted, not timed: the same question gets the same
 * verdict on any machine. Beyond it a person is asked. */
#define POLICY_WORK_MAX ((size_t)2 << 20) /* steps of about 10 ns */
#define POLICY_MEMORY_MAX ((size_t)24 << 20)
#define POLICY_TRAIL_MAX 4096 /* steps of a trail; what follows is asked for */
struct policy_work {
	size_t left;
};
struct sources;
struct policy_inputs;
struct policy_request {
	enum shell_dialect dialect;
	const char *cwd;  /* absolute and normal */
	const char *home; /* for ~ */
	struct arena *arena;
	const struct sources *sources; /* what may be installed, reached and run; NULL: anything */
	/* Files that were read for the judge, and those that it wants (inputs.h). NULL: none can be
	 * read. */
	struct policy_inputs *inputs;
	/* What is left for this judgement, which others may share. NULL: POLICY_WORK_MAX. */
	struct policy_work *work;
	const struct network_opened *opened; /* of addresses that aren't public; NULL: none */
	bool has_terminal; /* the command has one: what is typed there isn't judged */
};
/* A script as `sh -c` or `bash -c` gets it. With SHELL_SH, one that only bash understands is asked
 * for at least, and denied where bash would run what is denied. */
void policy_judge_script(const struct policy *policy, const struct policy_request *request,
	struct str script, struct policy_verdict *verdict);
/* A command that runs without a shell. */
void policy_judge_argv(const struct policy *policy, const struct policy_request *request,
	const text_list *argv, struct policy_verdict *verdict);
/* `path` is absolute; made normal by text. */
void policy_judge_file(const struct policy *policy, const struct policy_request *request,
	enum policy_operation operation, const char *path, struct policy_verdict *verdict);
/* `path` and everything below it. */
void policy_judge_tree(const struct policy *policy, const struct policy_request *request,
	enum policy_operation operation, const char *path, struct policy_verdict *verdict);
/* Variables that a command is started with. */
void policy_judge_variables(const struct policy *policy, const struct policy_request *request,
	const pair_list *variables, struct policy_verdict *verdict);
/* `host` is a name in lower case, or an address. What rules allow is denied all the same where
 * egress refuses its address. */
void policy_judge_network(const struct policy *policy, const struct policy_request *request,
	const char *host, unsigned port, struct policy_verdict *verdict);

/* A request in the syntax of a rule: "file(read:/a)", "network(outbound:host:port)". ERR_INVALID:
 * it isn't one. A port that isn't given is 443. */
int policy_judge_subject(const struct policy *policy, const struct policy_request *request,
	const char *subject, struct policy_verdict *verdict, struct error *err);

/* The rules that would allow what the verdict asks for, appended to *rules where they aren't there
 * yet. What no rule can allow has none. */
void policy_suggest(const struct policy_verdict *verdict, struct arena *arena, text_list *rules);

/* `*` and `?` stop at '/', `**` doesn't. Takes one of *steps for each byte that it compares; false
 * when none is left. */
bool glob_matches(const char *glob, const char *path, size_t *steps);
/* [{"subject","decision","rule","reason"}, …] */
struct json;
void policy_print_trail(struct json *j, const char *key, const struct policy_verdict *verdict);
