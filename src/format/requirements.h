/* requirements.h -- requirement files taken apart as pip reads them, far enough to judge them: what
 * each line is, which package it names, which hashes it has. Pure. What isn't understood is an
 * error, never passed on; nor is what pip and uv would read in two ways (control characters, a
 * comment that ends with a backslash, two options on one line). Whoever passes requirements on
 * passes `text`, a line each, not the file: then what was judged is what is read.
 * Comments, blank lines, backslash continuation and ${VAR} (refused) are as in pip. */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

enum requirement_kind {
	REQUIREMENT_PACKAGE,  /* name[extras] specifiers ; marker --hash=… */
	REQUIREMENT_URL,      /* name @ url, a bare url, a git+… */
	REQUIREMENT_PATH,     /* ./x, ../x, /x, x.whl, x.tar.gz, file:, name @ file: */
	REQUIREMENT_EDITABLE, /* -e, --editable */
	REQUIREMENT_OPTION,   /* -r, -c, -i, --index-url, --extra-index-url, --find-links … */
};
struct requirement {
	enum requirement_kind kind;
	int line;	  /* where it begins, from 1 */
	const char *text; /* the logical line: continuation joined, comment gone, trimmed */
	const char *name; /* PACKAGE, and URL or PATH where there is one: normalised; else NULL */
	const char *specifier; /* what follows the name and extras, before marker and hashes; "" */
	const char *marker;    /* PACKAGE and "name @ url": what follows the ';', or NULL */
	const char *option;    /* OPTION, EDITABLE: "--index-url"; else NULL */
	bool is_pinned;	       /* == or === with no wildcard, and nothing else */
	VEC(const char *) hashes; /* "sha256:…", lower case */
};
typedef VEC(struct requirement) requirement_list;

#define REQUIREMENTS_MAX ((size_t)4 << 20)
/* ERR_INVALID names the line: "line 3: …"; ERR_LIMIT: too large, or more than 20,000. Names,
 * extras, specifiers, markers and hashes are checked for their grammar (PEP 508, PEP 440). */
int requirements_parse(
	struct str text, struct arena *arena, requirement_list *list, struct error *err);
/* PEP 503: lower case, runs of [-_.] become one '-'. */
const char *requirement_normalize_name(struct arena *arena, struct str name);
bool requirement_name_is_valid(struct str name);
