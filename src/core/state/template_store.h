/* template_store.h -- finds templates: in the blob store of a home (workspace-templates/NAME.yaml),
 * or among the copies of those that another store has (core/state/template_fetch.h); then among
 * those that carreld ships; and merges what they extend. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "blob/blob.h"
#include "core/state/shipped.h"
#include "model/nouns/template.h"

#define TEMPLATE_PREFIX "workspace-templates/"

/* `home`: descriptor of the home; -1: none, and only what is shipped is found. ERR_NOT_FOUND: the
 * hint names the nearest one. */
int template_find(int home, const char *name, struct arena *arena, struct template_shown *out,
	struct error *err);
/* The same of a text that isn't kept (yet), and counts in place of the one that has its name. */
int template_look(int home, struct str yaml, struct arena *arena, struct template_shown *out,
	struct error *err);

/* For core/state/templates.c and core/state/template_fetch.c: */
/* That of the home, or the copies of templates that lie outside (core/state/template_fetch.h). */
int template_blobs(int home, struct blob_store *store, struct error *err);
const char *template_key(struct arena *arena, const char *name);
const char *template_key_name(struct arena *arena, const char *key); /* or NULL */
const struct shipped_template *template_shipped(const char *name);   /* or NULL */
/* Of all there are, sorted. */
int template_names(int home, struct arena *arena, text_list *names, struct error *err);
/* Of ERR_NOT_FOUND: hints at the nearest name there is, unless *err has a hint. */
void template_hint(int home, const char *name, struct arena *arena, struct error *err);
