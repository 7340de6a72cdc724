/* context_file.h -- the daemons that a user has given names: contexts.json in ~/.config/carrel (or
 * $XDG_CONFIG_HOME/carrel).
 * 1. The file has mode 0600: it holds tokens, which are never printed. It is replaced as a whole.
 * 2. The context `local` is not in it: the daemon of this home. It is the current one when no other
 * is. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"

#define CONTEXT_LOCAL "local"
#define CONTEXTS_MAX 256

struct context {
	const char *name;
	const char *host;  /* as --host takes it; a path is absolute */
	const char *token; /* or NULL */
	const char *ca;	   /* absolute path of the authorities' certificates, or NULL */
};
typedef VEC(struct context) context_list;
struct contexts {
	const char *path;    /* of the file */
	const char *current; /* a name in the list, or NULL: local */
	context_list list;
};
/* The list is empty when the user has no file. ERR_CORRUPT: the file is malformed. */
int contexts_read(struct arena *arena, struct contexts *contexts, struct error *err);
/* Reads them under a lock, has them changed, and writes them if `change` returned 0. */
int contexts_change(struct arena *arena,
	int (*change)(void *ctx, struct contexts *contexts, struct error *err), void *ctx,
	struct error *err);
/* NULL: there is none of that name. */
struct context *contexts_find(const struct contexts *contexts, const char *name);
/* ERR_NOT_FOUND for a name that there isn't, with a hint. */
int contexts_missing(const char *name, struct error *err);

/* Which daemon a command uses. */
struct host_choice {
	const char *host;  /* NULL: the daemon of this home */
	const char *by;	   /* what chose it: "--host", "CARREL_HOST", "context 'lab'"; or NULL */
	const char *token; /* of the context that was chosen, or NULL */
};
/* --host, else CARREL_HOST, else the current context; "local" is the daemon of this home. When it
 * is a URL, connections can be made afterwards (relay_use). */
int host_choose(
	const char *given, struct arena *arena, struct host_choice *choice, struct error *err);
