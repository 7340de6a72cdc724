/* environment.h -- an environment as plain data: its name, and what meta.json says. Pure.
 * 1. meta.json begins with last_used_at and use_count at fixed places and of fixed width
 * (ENV_META_USE_LEN bytes from the start), so that a use is one small write in place. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"

#define ENV_NAME_MAX 160
#define ENV_META_USE_LEN 80

/* [A-Za-z0-9@._-]{1,100}, not beginning with '.' or '-'. */
bool env_package_id_is_valid(const char *text);
/* Also for names of environments, which are longer: at most ENV_NAME_MAX. */
bool env_name_is_valid(const char *text);
/* "{package_id}_{first 7 of sha256}", "…_no-deps" when sha256 is NULL, and "-py3.12" when minor isn't
 * NULL (a Python other than the default). */
const char *env_name_make(
	struct arena *arena, const char *package_id, const char *sha256, const char *minor);

struct env_package {
	const char *name, *version; /* normalised name */
};
struct env_editable {
	const char *path; /* on the host, and inside: the same */
};
struct env_meta {
	const char *name, *package_id;
	const char *requirements_sha256; /* 64 hex, or "no-deps" */
	const char *created_at, *last_used_at;
	uint64_t use_count;
	uint64_t size_bytes;	    /* of all its layers' files */
	const char *python_version; /* "3.11.5" */
	const char *python;	    /* the interpreter on the host, e.g. /usr/bin/python3.11 */
	const char *python_prefix;  /* to be bound read-only inside; NULL: it lies in /usr */
	const char *fingerprint;    /* hash of everything else that was asked for: indexes, flags, editables */
	bool system_site_packages;
	double build_seconds;
	VEC(struct env_package) packages;   /* installed_packages, sorted by name */
	VEC(const char *) layers;	    /* ids, topmost first */
	VEC(struct env_editable) editables;
	VEC(const char *) indexes;	    /* where from, credentials removed */
};
/* As meta.json has it, one line a field, fields of the seed first. */
void env_meta_print(const struct env_meta *meta, struct buf *out);
/* ERR_CORRUPT names the field. Unknown fields are passed over. */
int env_meta_parse(struct str text, struct arena *arena, struct env_meta *meta, struct error *err);
/* The first ENV_META_USE_LEN bytes of meta.json for these values. */
void env_meta_print_use(const char *last_used_at, uint64_t use_count, char out[ENV_META_USE_LEN + 1]);
