/* error.h -- what went wrong, on the caller's stack.
 * 1. A function that can fail returns 0 or -1 and takes a `struct error *` last; outputs are
 * untouched on failure.
 * 2. The lowest level names the object; callers add what they were doing (error_context); the top
 * prints.
 * 3. Text and hint are one line each: control bytes in names are shown as \xNN. */
#pragma once

enum error_code {
	ERR_NONE,
	ERR_INVALID,   /* the caller's input is wrong */
	ERR_NOT_FOUND, /* the named object doesn't exist */
	ERR_CONFLICT,  /* the object exists already, or is busy */
	ERR_DENIED,    /* permission or policy */
	ERR_LIMIT,     /* a size or count is over its maximum */
	ERR_DISK_FULL,
	ERR_UNAVAILABLE, /* this host or build can't do it */
	ERR_CORRUPT,
	ERR_FAILED,	       /* anything else */
	ERR_COMMAND_NOT_FOUND, /* the command to run doesn't exist: exit code 127 */
	ERR_NOT_EXECUTABLE,    /* the command can't be executed: exit code 126 */
	ERR_CANCELED,	       /* canceled by a user or a client: exit code 130 */
	ERR_UNAUTHENTICATED,   /* the credential is wrong, or none was given */
	ERR_POLICY,	       /* `denied` by a rule of a policy or by a reviewer: exit code 126 */
	ERR_APPROVAL_REQUIRED, /* a policy wants a reviewer to be asked: exit code 126 */
	ERR_CODE_COUNT
};

#define ERROR_TEXT_SIZE 512
#define ERROR_HINT_SIZE 320

struct error {
	enum error_code code;
	int sys_errno; /* errno behind it, or 0 */
	char text[ERROR_TEXT_SIZE];
	char hint[ERROR_HINT_SIZE];
};

/* Each sets *err (err may be NULL) and returns -1. fail_errno takes errno as it stands, derives the
 * code from it and appends ": <reason>". fail_errno_code keeps the given code instead. */
int fail(struct error *err, enum error_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(3)));
int fail_hint(struct error *err, enum error_code code, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), nonnull(4)));
int fail_errno(struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));
int fail_errno_code(struct error *err, enum error_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(3)));

/* Puts "<context>: " before the text of an error already set; returns -1 so that it can end a
 * function. When both don't fit, the old text loses its front: its end is the reason. */
int error_context(struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));
/* Sets the hint (cut to fit); returns -1. */
int error_hint(struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));

/* Makes an error that another process sent as raw bytes safe: terminates its texts, replaces what
 * can't be shown, and an unknown code. Returns -1. */
int error_adopt(struct error *err);

/* The analyzer of `make lint` sees one file at a time: without this it takes their -1 for a 0. */
#if defined __clang_analyzer__ && !defined ERROR_IS_DEFINED_HERE
#define fail(...) ((fail)(__VA_ARGS__), -1)
#define fail_hint(...) ((fail_hint)(__VA_ARGS__), -1)
#define fail_errno(...) ((fail_errno)(__VA_ARGS__), -1)
#define fail_errno_code(...) ((fail_errno_code)(__VA_ARGS__), -1)
#define error_context(...) ((error_context)(__VA_ARGS__), -1)
#define error_hint(...) ((error_hint)(__VA_ARGS__), -1)
#define error_adopt(...) ((error_adopt)(__VA_ARGS__), -1)
#endif

/* The stable name used in JSON and REST ("not_found"), and the process exit code (125, 126, 127 or
 * 130).
 */
const char *error_code_name(enum error_code code);
int error_exit_code(enum error_code code);
/* The code of that name ("denied": ERR_DENIED); `otherwise` for another name, or NULL. */
enum error_code error_code_from_name(const char *name, enum error_code otherwise);
/* The code that stands for an errno value. */
enum error_code error_code_from_errno(int sys_errno);
