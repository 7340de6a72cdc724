/* uv_error.h -- what uv said when it failed, as one of our codes. uv has no machine-readable form
 * of it, and its exit codes tell only that it failed: a table of phrases gives the code and the
 * hint, the message is mostly uv's own. Pure. */
#pragma once
#include "base/arena.h"
#include "base/str.h"

/* The stable codes of failed builds. */
enum build_failure {
	BUILD_NOT_FOUND,
	BUILD_VERSION_NOT_FOUND,
	BUILD_CONFLICT,
	BUILD_HASH_MISMATCH,
	BUILD_NETWORK,
	BUILD_TIMEOUT,
	BUILD_DISK_FULL,
	BUILD_INVALID,
	BUILD_DENIED,
	BUILD_FAILED,
	BUILD_CANCELED,
	BUILD_FAILURE_COUNT
};
extern const char *const build_failure_names[BUILD_FAILURE_COUNT]; /* "not_found" … */

struct uv_error {
	enum build_failure failure;
	const char *package;	 /* the one it is about ("requests", "requests==99.1"), or NULL */
	const char *message;	 /* one line, for people: which package, why */
	const char *suggestion;	 /* what to do; NULL: only the log tells */
	const char *needs_build; /* the package has no wheel and building is off; else NULL */
};
/* `text` is stderr of uv. */
void uv_error_classify(struct str text, struct arena *arena, struct uv_error *out);
