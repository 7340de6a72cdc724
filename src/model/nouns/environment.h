/* environment.h -- an environment as plain data: its name, and what meta.json says. Pure.
 * 1. meta.json begins with last_used_at and use_count at fixed places and of fixed width
 * (ENV_META_USE_LEN bytes from the start), so that a use is one small write in place. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/vec.h"

#define ENV_NAME_MAX 160
#define ENV_META_USE_LEN 80
/* More are merged: the kernel mounts 500 in one overlay, and each one makes look-ups slower. */
#define ENV_LAYERS_MAX 400
#define ENV_LAYERS_MERGED 200	      /* how many are left then */
#define ENV_NO_REQUIREMENTS "no-deps" /* stands for the hash where there are none */

/* [A-Za-z0-9@._-]{1,100}, not beginning with '.' or '-'. */
bool env_package_id_is_valid(const char *text);
/* Also for names of environments, which are longer: at most ENV_NAME_MAX. */
bool env_name_is_valid(const char *text);
/* "{package_id}_{first 7 of sha256}", "…_no-deps" when sha256 is NULL or "no-deps", and "-py3.12"
 * when minor isn't NULL (a Python other than the default). */
const char *env_name_make(
	struct arena *arena, const char *package_id, const char *sha256, const char *minor);

/* A time as clock_format writes it (24 characters, UTC, milliseconds), converted to Unix time.
 * false: invalid. */
bool env_time_parse(const char *text, int64_t *unix_ms);

struct env_meta {
	const char *name, *package_id;
	const char *requirements_sha256; /* 64 hex, or "no-deps" */
	const char *created_at, *last_used_at;
	uint64_t use_count;
	uint64_t size_bytes;	    /* of all its layers' files */
	const char *kind;	    /* "node"; NULL: "python" */
	const char *python_version; /* "3.11.5"; this and the next two: of Python alone */
	const char *python;	    /* the interpreter on the host, e.g. /usr/bin/python3.11 */
	const char *python_prefix;  /* to be bound read-only inside; NULL: it lies in /usr */
	const char *node_version;   /* "22.11.0"; this and the next four: of Node alone */
	const char *node;	    /* the interpreter on the host; NULL: it is one of the tools */
	const char *runtime;	    /* what installed the packages: "bun", "npm" */
	bool allow_scripts;	    /* life-cycle scripts of packages were run */
	pair_list tools;	    /* name -> id of a layer that is mounted beside its own */
	const char *fingerprint;    /* hash of everything else that was asked for: indexes, flags,
				     * editables */
	bool system_site_packages;
	bool has_notes; /* requirements.txt has lines that stand for options */
	double build_seconds;
	pair_list packages;  /* installed_packages: normalised name and version, sorted by name */
	text_list layers;    /* ids, topmost first */
	text_list editables; /* paths on the host, and inside: the same */
	text_list indexes;   /* where from, credentials removed */
};
/* ---- kinds ---- */

/* Every kind, the default first. The tables of kinds in other rooms are made from this list:
 * envs/kind.h, core/packages/packages_internal.h. */
#define ENV_KIND_LIST(X)                                                                           \
	X(PYTHON, python)                                                                          \
	X(NODE, node)
#define ENV_KIND_ID(id, name) ENV_KIND_##id,
enum env_kind_id { ENV_KIND_LIST(ENV_KIND_ID) ENV_KINDS };
/* What a program knows of a kind without opening an environment. */
struct env_kind_row {
	const char *name;      /* in meta.json, requests, rows and messages */
	const char *manager;   /* what installs its packages, as sources.json names it */
	const char *needed[3]; /* fields of meta.json that must be there; ends with NULL */
	/* true: its interpreter and tools may be layers (env_meta.tools). false: its interpreter is
	 * a program of the host, which may need a prefix and editable projects. */
	bool has_tools;
	size_t interpreter; /* offset in env_meta of its path on the host */
};
extern const struct env_kind_row env_kind_rows[ENV_KINDS];
/* The environments of a workspace, one of each kind at most. The first place may have one of
 * another kind: a request names any environment there, and it stays until packages are installed.
 */
struct environment_names {
	const char *of[ENV_KINDS]; /* by enum env_kind_id; NULL: none */
};
void environment_names_copy(
	struct arena *arena, const struct environment_names *from, struct environment_names *to);
bool environment_names_are_same(
	const struct environment_names *a, const struct environment_names *b);
/* NULL: there is none of that name. */
const struct env_kind_row *env_kind_row_find(const char *name);
const struct env_kind_row *env_kind_row_of(const struct env_meta *meta);
/* The path of the interpreter on the host, or NULL. */
const char *env_meta_interpreter(const struct env_meta *meta);
void env_meta_set_interpreter(struct env_meta *meta, const char *path);

/* The version of a package in a list of name -> version, which may be NULL; NULL: it has none. */
const char *env_package_version(const pair_list *packages, const char *name);
/* The id of layer `index`: its own layers, then those of its tools. */
const char *env_meta_layer(const struct env_meta *meta, size_t index);
/* As meta.json has it: last_used_at and use_count, the seed's other fields, ours. What is printed
 * is parsed to the same again, provided that texts are UTF-8 (others come out with U+FFFD) and
 * build_seconds whole milliseconds. Aborts at a last_used_at that isn't a time: a bug. */
void env_meta_print(const struct env_meta *meta, struct buf *out);
/* ERR_CORRUPT names the field, or line and column. Unknown fields are passed over. Names, hashes,
 * layer ids and times are checked, paths are absolute. */
int env_meta_parse(struct str text, struct arena *arena, struct env_meta *meta, struct error *err);
/* The first ENV_META_USE_LEN bytes of meta.json for these values (a count of more than 10^15 - 1
 * stays there). */
void env_meta_print_use(
	const char *last_used_at, uint64_t use_count, char out[ENV_META_USE_LEN + 1]);
