/* hosts.h -- where an index keeps its files: often another host than its own. Asked of the index
 * itself (the links on the page of one project), in a sandbox, and kept for a day in
 * <home>/tools/.known/<hash of the address>. */
#pragma once
#include "base/vec.h"
#include "envs/python/index.h"
#include "envs/python/interpreter.h"
#include "envs/runner.h"

#define FILE_HOSTS_MAX 16 /* of one index */

struct file_host {
	const char *host; /* lower case */
	uint16_t port;
};
typedef VEC(struct file_host) file_hosts;

/* Adds the file hosts of all indexes to *hosts, without the indexes' own hosts. The operator has
 * not named them: the forwarder must not let them resolve to private addresses. A host reached by
 * http is added only when its index is http, too. projects (ends with NULL; may be NULL): projects
 * whose pages are tried when the index has no page of pip. A job with forward set must reach the
 * indexes. */
int index_file_hosts(const struct home *home, const struct runner *runner,
	const struct index_set *indexes, const struct interpreter *python,
	const char *const *projects, struct arena *arena, file_hosts *hosts, struct error *err);
/* "host" or "host:port" (443), as config.yaml's file_hosts has it. ERR_INVALID. */
int file_host_parse(
	const char *text, struct arena *arena, struct file_host *host, struct error *err);
