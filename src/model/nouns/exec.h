/* exec.h -- one command run in a sandbox, as plain data. Pure. */
#pragma once
#include "base/id.h"
#include "base/vec.h"
#include "model/nouns/limits.h"
#include "model/nouns/result.h"
#include "model/nouns/workspace.h"

enum exec_state {
	EXEC_STARTING,
	EXEC_RUNNING,
	EXEC_ENDED,
	EXEC_WAITING, /* for an approval */
	EXEC_STATE_COUNT
};
extern const char *const exec_state_names[EXEC_STATE_COUNT + 1]; /* "starting" …, NULL */

/* When its policy asks for an approval. */
enum exec_approval {
	EXEC_APPROVAL_WAIT,   /* the caller waits with it */
	EXEC_APPROVAL_RETURN, /* it waits in the background, and the caller doesn't */
	EXEC_APPROVAL_COUNT
};
extern const char *const exec_approval_names[EXEC_APPROVAL_COUNT + 1]; /* "wait" …, NULL */
enum exec_policy {
	EXEC_POLICY_ENFORCE,
	EXEC_POLICY_LEARN, /* runs, and says which rules it would need */
	EXEC_POLICY_COUNT
};
extern const char *const exec_policy_names[EXEC_POLICY_COUNT + 1]; /* "enforce" …, NULL */

/* What is asked for. */
struct exec_spec {
	const char *id; /* that it gets (of id_make: a key of idempotency knows it before), or NULL:
			   one is made */
	text_list argv; /* items[count] is NULL; a shell `command` is {"/bin/sh","-c",command}
				 already */
	const char *command;   /* as it was asked for, or NULL */
	const char *cwd;       /* absolute, or from the workspace's directory on; NULL: that one */
	pair_list env;	       /* on top of the workspace's */
	struct str stdin_text; /* all of stdin, when has_stdin_text */
	bool has_stdin_text;
	bool open_stdin; /* stdin is fed by exec_write_stdin until it is ended there; else empty */
	bool tty;
	uint64_t rows, columns; /* of the terminal, below 65536; 0: 24 x 80 */
	bool background;
	uint64_t timeout_ms;   /* 0: the default: none in the background or with a terminal */
	uint64_t cpu_time_ms;  /* 0: none */
	uint64_t output_bytes; /* cap of all output; 0: none */
	const char *user;      /* no other than the sandbox's own, or NULL */
	int approval;	       /* enum exec_approval */
	int policy;	       /* enum exec_policy */
};
/* As a client sends it; argv and command as they are given: one of them. */
extern const struct record exec_spec_record;
/* Completes one that was read: argv of a shell command, has_stdin_text. */
void exec_spec_expand(struct exec_spec *spec, struct arena *arena);
/* Of an exec that is neither in the background nor has a terminal. */
#define EXEC_TIMEOUT_DEFAULT_MS 300000

/* What is known of one, wherever it is shown, and what the store keeps of a background one. */
struct exec_record {
	char id[ID_LEN + 1], workspace[ID_LEN + 1];
	enum exec_state state;
	text_list argv;
	const char *cwd;
	bool background, tty;
	int64_t started_ms, ended_ms; /* Unix time; 0: not yet */
	struct result result;	      /* when ended */
	uint64_t output_bytes;	      /* so far; background: in the spool */
	uint64_t output_dropped;      /* of output_bytes: not kept */
	const char *error;	      /* why it could not start, or how its end was lost; NULL */
	int error_exit_code;	      /* 126, 127, 125 when it could not start, else 0 */
	uint64_t timeout_ms, cpu_time_ms, output_cap_bytes; /* as in force; 0: none */
};
extern const struct record exec_fields;
/* How many of the oldest bytes of its two streams are dropped when more than `cap` bytes are kept:
 * three quarters of the cap stay, and of these the shorter stream has as much as it needs, up to
 * half. Nothing is dropped within the cap. */
void exec_rotate(const uint64_t kept[2], uint64_t cap, uint64_t drop[2]);
/* What isn't known before the end is null until then. One that never started has error_exit_code as
 * its exit_code, and no signal and no reason. */
void exec_print(struct json *j, const char *key, const struct exec_record *e);
void exec_print_members(struct json *j, const struct exec_record *e); /* into an open object */
/* Captured streams as they are shown: as text, or both as base64, when one isn't UTF-8 or when JSON
 * would make more than 64 KiB, and more than twice their bytes, of them. The bytes stay the
 * caller's. */
struct exec_output {
	struct str streams[2]; /* stdout, stderr */
	bool is_base64;
};
/* measures: of the whole streams. truncated: an incomplete character at the end is left out. */
struct exec_output exec_output_of(
	struct str out, struct str errors, const struct json_measure measures[2], bool truncated);
struct exec_output exec_output_whole(struct str out, struct str errors, bool truncated);
/* "stdout", "stderr" and "encoding" into an open object. */
void exec_print_output(struct json *j, const struct exec_output *output);
/* The members of design.md's result object into an open object: id (unless NULL), exit_code …
 * limits. places (or NULL): where the streams end in j's buffer, before the closing quote. */
extern const struct record result_record;
void exec_print_result(struct json *j, const char *id, const struct result *result,
	const struct exec_output *output, const char *limiter, size_t places[2]);
