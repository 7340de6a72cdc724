/* node_package.h -- package.json, and the locks of bun (bun.lock) and npm (package-lock.json): what
 * is asked for, and what it was resolved to. Pure.
 * 1. A package comes from the registry, by name and range: git, URLs, files, links, workspaces and
 * aliases are ERR_DENIED.
 * 2. Of a lock every package has a version and a SHA-512: one without is ERR_DENIED.
 * 3. Errors name the package in the text, and in *package where there is one. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

#define NODE_PACKAGE_JSON_MAX ((size_t)1 << 20)
#define NODE_LOCK_MAX ((size_t)32 << 20)
#define NODE_NAME_MAX 214 /* npm's own limit */

struct node_spec {
	const char *name, *range;
};
typedef VEC(struct node_spec) node_specs;
struct node_locked {
	const char *name, *version;
	const char *integrity; /* NULL: it comes in the file of another package */
	const char *address;   /* of its file; NULL or empty: the registry says it */
};
typedef VEC(struct node_locked) node_lock;

/* "name", "@scope/name" */
bool node_name_is_valid(const char *text);
/* "axios", "typescript@5", "@types/node@^22"; without a range: "latest". */
int node_spec_parse(
	const char *text, struct arena *arena, struct node_spec *spec, struct error *err);
/* A package.json of these specs. */
void package_json_print(const node_specs *specs, struct arena *arena, struct str *text);
/* Of a package.json, *kept is what decides what is installed, and nothing else (no scripts, no
 * configuration); *specs are its direct dependencies. */
int package_json_read(struct str text, struct arena *arena, node_specs *specs, struct str *kept,
	const char **package, struct error *err);
/* All packages of a lock, sorted by name, version and address, each once. *is_npm: it is
 * a package-lock.json. */
int node_lock_read(struct str text, struct arena *arena, node_lock *lock, bool *is_npm,
	const char **package, struct error *err);
/* ERR_DENIED when the address of a package is that of another package's file: a client takes the
 * file that the address and the hash name, whatever the package is called. Of a lock that was
 * given; what a registry says of its own packages is its business. */
int node_lock_check_addresses(const node_lock *lock, const char **package, struct error *err);
/* A bun.lock as JSON: bun writes a comma after the last member. */
struct str node_lock_without_commas(struct str text, struct arena *arena);
