/* sources_internal.h -- what the files of sources.json and of the judge share. */
#pragma once
#include "policy/sources.h"

struct url { /* parts in lower case but the path, which is made normal */
	const char *scheme, *host, *path;
	unsigned port; /* 0: that of the scheme */
	bool has_user;
};
/* scheme://[user@]host[:port][/path]; with `*` anywhere. false: it isn't one, or it has bytes that
 * readers of URLs take for different things (blanks, backslashes, control characters, %2f). */
bool url_parse(struct arena *arena, const char *text, struct url *url);
/* What git takes for a remote. false: a path of this machine, or a name. *is_odd: neither, such as
 * "ext::sh -c …". */
bool url_parse_remote(struct arena *arena, const char *text, struct url *url, bool *is_odd);

char *sources_lower(struct arena *arena, const char *text);
bool manager_is_known(const char *name);
bool manager_is_python(const char *name); /* its packages have Python's names */
/* "python", "python3.11"; "node" … */
bool language_is_known(const char *name);
