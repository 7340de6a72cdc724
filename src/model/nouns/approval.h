/* approval.h -- a question put to a person: may this command run? Pure.
 * 1. It holds the bytes that will run, not a rendering of them: the exec that waits is made from
 * these. Where one of argv, command and cwd isn't UTF-8, all three are kept and shown as base64,
 * and `encoding` says so.
 * 2. A pending approval becomes approved, denied or expired once, and stays so. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/vec.h"
#include "model/nouns/exec.h"
#include "model/records/record.h"

#define APPROVAL_BYTES_MAX (256u << 10) /* of argv, command and cwd; and of input and variables */
#define APPROVAL_STEPS_MAX 64		/* of the trail that are kept */
#define APPROVAL_NOTE_MAX 1000
#define APPROVAL_RULES_MAX 16 /* that one answer may add */
#define APPROVAL_TTL_DEFAULT_MS 3600000ull

enum approval_state {
	APPROVAL_PENDING,
	APPROVAL_APPROVED,
	APPROVAL_DENIED,
	APPROVAL_EXPIRED,
	APPROVAL_STATE_COUNT
};
extern const char *const approval_state_names[APPROVAL_STATE_COUNT + 1]; /* "pending" …, NULL */
enum approval_encoding { APPROVAL_UTF8, APPROVAL_BASE64 };

struct approval {
	char id[ID_LEN + 1], workspace[ID_LEN + 1];
	enum approval_state state;
	const char *workspace_name, *exec; /* exec: its id */
	text_list argv;			   /* as it is shown; empty: `command` */
	const char *command;		   /* for the shell, as it is shown; or NULL */
	const char *cwd;		   /* or NULL: the workspace's directory */
	pair_list env;			   /* as it is shown; value NULL: hidden */
	const char *input;		   /* its stdin, as it is shown; or NULL */
	bool open_stdin, tty;
	enum approval_encoding encoding;
	const char *trail;			/* JSON: [{"subject","rule","reason","decision"}] */
	bool trail_is_cut;			/* steps were left out, the allowed ones first */
	const char *requested_by, *answered_by; /* principals; answered_by NULL: nobody has */
	const char *note; /* of the answer, or why it has expired; NULL: none */
	text_list rules;  /* that the answer added */
	/* The rules that an answer with `always` adds, exactly these; or why there are none. */
	text_list suggested;
	const char *always_refused;
	const char *spec; /* JSON: what else an exec needs that outlives core; NULL: it doesn't */
	int64_t created_ms, expires_ms, answered_ms; /* Unix time; 0: not yet */
	uint64_t ttl_ms, began_ms;		     /* began_ms: monotonic, of creation */
	const char *boot;			     /* id of the boot that began_ms is of */
};
extern const struct record policy_step_record; /* schema only */
extern const struct record approval_record;

/* What is asked: fills argv (or command), cwd, env, input, encoding and, with is_kept, spec; all in
 * the arena.
 * ERR_LIMIT: longer than APPROVAL_BYTES_MAX. policy_fill_approval adds why it is asked. */
int approval_describe(struct approval *approval, const struct exec_spec *spec, bool is_kept,
	struct arena *arena, struct error *err);
/* The exec of an approval with `spec`: the same bytes. Texts are in the arena. ERR_CORRUPT. */
int approval_read_spec(const struct approval *approval, struct arena *arena, struct exec_spec *spec,
	struct error *err);
/* How long it stays pending from now on, at a start of core. Within one boot a wall clock that was
 * set changes nothing; after another boot it counts, and keeps nothing for longer than ttl_ms. */
uint64_t approval_left_ms(
	const struct approval *approval, const char *boot, int64_t now_ms, uint64_t monotonic_ms);
/* Appends words as a person can read and a shell would take them: a word that isn't plain is
 * quoted, with what can't be seen or changes the direction of text as \xNN. */
void approval_print_words(const char *const *words, size_t count, struct buf *out);

/* What a reviewer says. */
struct approval_answer {
	int decision; /* APPROVAL_APPROVED or APPROVAL_DENIED */
	bool always;
	const char *note; /* or NULL */
};
extern const struct record approval_answer_record;
