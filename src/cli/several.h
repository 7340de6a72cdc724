/* several.h -- one verb on several things: one that fails keeps none of the others from it, and
 * what became of each is said. */
#pragma once
#include "cli/remote.h"

struct several_one {
	const char *name;
	bool has_failed;
	struct error err;
};
struct several {
	const char *done; /* "removed" */
	bool is_quiet;	  /* text names only those that failed */
	const char *key;  /* of one more number in the JSON, or NULL */
	uint64_t value;
};
/* One request for each name, made by `path`. The exit code: 0, or 125 when one has failed. JSON is
 * {"done":[NAME…],"failed":[{"name","error"}…]}; of a single one that failed it is its error. */
int several_call(struct remote *remote, const text_list *names, const char *method,
	const char *(*path)(struct remote *remote, const char *name), const struct buf *body,
	const struct several *several);
