/* package_names_internal.h -- what the readers of package_names.h share. */
#pragma once
#include "policy/readers/package_names.h"

struct reading {
	struct arena *arena;
	struct package_names *names;
	size_t count; /* of everything that was added */
};
void names_add(struct reading *r, text_list *list, const char *text, size_t len);
/* "name", "@scope/name", with what follows it: a version, extras, a marker. */
void names_add_package(struct reading *r, const char *text);
void names_add_unknown(struct reading *r, const char *why);
/* The first URL in the text. false: there is none. */
bool names_add_url(struct reading *r, const char *text);
void names_add_spec(struct reading *r, const char *spec);

/* package_names_node.c */
int names_read_package_json(struct reading *r, struct str text, struct error *err);
int names_read_npm_lock(struct reading *r, struct str text, struct error *err);
int names_read_bun_lock(struct reading *r, struct str text, struct error *err);
int names_read_yarn_lock(struct reading *r, struct str text, struct error *err);
int names_read_pnpm_lock(struct reading *r, struct str text, struct error *err);
