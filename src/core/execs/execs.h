/* execs.h -- commands in workspaces: captured, streamed, handed over, or in the background.
 * 1. A background exec's row is in the store before exec `started` is called; its exit is
 * acknowledged to init (INIT_ACK) only after it is in the store: no exit is lost by a crash, none
 * is made up.
 * 2. A foreground exec lives as long as its listener wants: exec_detach, or the death of core, ends
 * it (`canceled`).
 * 3. Nothing a sandbox says is believed unchecked: an init that lies (unknown id, impossible
 * status, malformed packet) is ended with its sandbox, and what ran there is `canceled` with an
 * error that says so.
 * 4. The command's own end is the end: what it left running keeps no caller waiting. On a limit, a
 * cancel or a timeout its whole process group is killed, and everything in the sandbox when no
 * other exec runs there. If it doesn't end by that within seconds, its sandbox is ended.
 * 5. Output goes to the listener as it comes, none while it is paused; background output to
 * <home>/run/execs/<id>.{out,err} (both in one file `.out` with a terminal), opened O_APPEND here.
 * Past its cap the oldest part is dropped, and offsets keep their meaning (docs/design/0012).
 * 6. Captured output of all execs together is at most captured_max of core_options; each may have
 * its first EXEC_CAPTURED_SURE bytes in any case. One that needs more ends with `output_limit`. */
#pragma once
#include "base/buf.h"
#include "core/core.h"
#include "model/nouns/exec.h"

#define EXEC_CAPTURED_SURE 65536

enum exec_mode {
	EXEC_CAPTURED,	 /* output kept in `captured` until `ended` */
	EXEC_STREAMED,	 /* output passed to listener.output */
	EXEC_HANDED,	 /* the caller's own three descriptors (checked: pipe or /dev/null) */
	EXEC_HANDED_PTY, /* a terminal is made; its master is exec_terminal when `started` comes */
	EXEC_SPOOLED,	 /* background */
};
/* Its streams are the caller's: what it writes doesn't pass through core. */
static inline bool exec_is_handed(enum exec_mode mode)
{
	return mode == EXEC_HANDED || mode == EXEC_HANDED_PTY;
}
struct core_exec; /* private to this folder */
struct exec_listener {
	void (*started)(
		void *ctx, struct core_exec *e); /* or NULL; not called when it can't start */
	void (*output)(void *ctx, struct core_exec *e, int stream, struct str data);
	/* Its last call. err: it could not be started (ERR_COMMAND_NOT_FOUND, ERR_NOT_EXECUTABLE,
	 * …). e is valid until this returns. */
	void (*ended)(void *ctx, struct core_exec *e, const struct error *err);
	void *ctx;
	/* Or NULL: it waits for an approval, exec_approval; a background one whose listener has no
	 * such function calls `started`. */
	void (*waiting)(void *ctx, struct core_exec *e);
};
/* More than half of captured_max is in use. */
bool exec_captured_is_short(const struct core *core);
/* What a captured exec wrote; it counts towards captured_max until it is released.
 * measures: what its JSON form needs to know, kept as bytes come, so that nothing has to walk over
 * all of it at the end. */
struct exec_captured {
	struct core *core;
	struct buf streams[2]; /* stdout, stderr */
	struct json_measure measures[2];
};
void exec_captured_done(struct exec_captured *captured);
/* fds: of EXEC_HANDED, stay the caller's. ERR_INVALID, ERR_DENIED (a descriptor that may not be
 * handed in), ERR_CONFLICT (handed streams, and the workspace limits output but spec doesn't),
 * ERR_LIMIT (256 run here already), ERR_UNAVAILABLE (stopping). An exec that has to be approved and
 * whose spec says EXEC_APPROVAL_RETURN becomes a background one: `waiting` is told, and its streams
 * are a background one's. *exec is valid until its listener's
 * `ended` returns; background ones longer: by id. */
core_verb int exec_start(const struct request *request, struct core_workspace *w,
	const struct exec_spec *spec, enum exec_mode mode, const int fds[3],
	const struct exec_listener *listener, struct core_exec **exec, struct error *err);
/* The listener is not called again. Foreground: it is killed (`canceled`); background: goes on. */
void exec_detach(struct core_exec *exec);
/* EXEC_STREAMED: no output is read while paused (a slow client). */
void exec_pause(struct core_exec *exec, bool paused);
/* What it waits for; NULL: for no approval. Valid until the next turn of the loop. */
struct approval;
const struct approval *exec_approval(const struct core_exec *exec);
/* What is shown of it: the record, valid until the next turn of the loop. */
const struct exec_record *exec_record_of(const struct core_exec *exec);
/* By what its sandbox keeps limits ("cgroup-v1" …), or NULL. */
const char *exec_limiter(const struct core_exec *exec);
/* EXEC_HANDED_PTY: the terminal's master, which stays core's (dup it); else -1. */
int exec_terminal(const struct core_exec *exec);
/* In `ended`: what was captured; it stays the exec's. */
const struct exec_captured *exec_captured_of(const struct core_exec *exec);
/* In `ended`: moves the captured output to the caller, who calls exec_captured_done. */
struct exec_captured exec_take_captured(struct core_exec *exec);
/* ERR_NOT_FOUND: unknown (or ended long ago). */
core_verb int exec_find(const struct request *request, struct core *core, const char *id,
	struct core_exec **exec, struct error *err);
/* To its process group; ERR_CONFLICT: it has ended; ERR_UNAVAILABLE: it has not started yet. */
core_verb int exec_signal(
	const struct request *request, struct core_exec *exec, int signo, struct error *err);
/* Ends it with reason `canceled` in any state: an exec that waits never starts. No-op after its
 * end. */
core_verb int exec_cancel(const struct request *request, struct core_exec *exec, struct error *err);
/* As exec_signal with SIGKILL, for a client that handed in the streams and enforces the limit
 * `reason` itself: the exec's record gets that reason. ERR_INVALID: another signal, or streams that
 * are core's. */
core_verb int exec_end_for(const struct request *request, struct core_exec *exec, int signo,
	enum reason reason, struct error *err);
/* data may be taken in part: *taken; then wait for room with exec_await_stdin. end: close stdin
 * after all of data was taken (terminal: ^D). ERR_CONFLICT: ended, or its stdin isn't open. */
core_verb int exec_write_stdin(const struct request *request, struct core_exec *exec,
	struct str data, bool end, size_t *taken, struct error *err);
struct exec_writer {
	void (*drained)(void *ctx); /* once: there is room, or it has ended (the next write says) */
	void *ctx;
	struct exec_writer *next;
};
void exec_await_stdin(struct core_exec *exec, struct exec_writer *writer);
void exec_unawait_stdin(struct core_exec *exec, struct exec_writer *writer);
core_verb int exec_resize(const struct request *request, struct core_exec *exec, uint16_t rows,
	uint16_t columns, struct error *err);
/* Of a workspace (NULL: of all), newest first; the ended background ones included. */
core_verb int exec_list(const struct request *request, struct core *core, struct core_workspace *w,
	void (*fn)(void *ctx, struct core_exec *e), void *ctx, struct error *err);
/* Background output: opens the spool of `stream` (1, 2) for reading; ERR_NOT_FOUND. The file grows
 * while the exec runs; listen for more with exec_follow. */
core_verb int exec_open_output(const struct request *request, struct core_exec *exec, int stream,
	int *fd, struct error *err);
/* Where what is kept of that file begins: 0, unless the oldest output was dropped. */
uint64_t exec_output_first(int fd);
struct exec_follower {
	/* It has started, or there may be more to read; has_ended: nothing comes after it, and e
	 * may be gone at the next turn of the loop. Of a foreground exec only its end is told. */
	void (*more)(void *ctx, bool has_ended);
	void *ctx;
	struct exec_follower *next;
};
void exec_follow(struct core_exec *exec, struct exec_follower *follower);
void exec_unfollow(struct core_exec *exec, struct exec_follower *follower);

/* ---- for core itself ---- */
/* captured_max: 0 for the default. run: <home>/run, stays the caller's. */
int execs_open(struct core *core, uint64_t captured_max, int run, struct error *err);
void execs_close(struct core *core); /* after execs_done, when nobody holds captured output */
uint64_t execs_captured_bytes(const struct core *core);
int execs_null(const struct core *core); /* /dev/null */
/* How many of a workspace have not ended; *one: the last of them. with_waiting: also those that
 * init has not yet. */
size_t execs_count_open(
	const struct core_workspace *w, bool with_waiting, const struct exec_record **one);
/* Ends those that wait for a sandbox, and has those that end with the present one say why. */
void execs_end_with(struct core_workspace *w, const char *why);
/* Those of its sandbox say this as their error, unless they have one. */
void execs_explain(struct core_workspace *w, const char *why);
/* Judges the command that waits for this approval, with further rules. false: none waits. */
struct policy_verdict;
bool execs_judge_asked(const struct core *core, const struct approval *approval,
	const text_list *rules, struct arena *arena, struct policy_verdict *verdict);
