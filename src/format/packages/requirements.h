/* requirements.h -- parses requirement files as pip does, as far as policy needs it: the kind of
 * each line, its package and its hashes. Pure. An unknown line is an error, and so is a line that
 * pip and uv read differently (control characters, a comment that ends with a backslash, two
 * options on one line). Callers pass on the `text` of each requirement, never the file: uv then
 * reads exactly what was judged. Comments, blank lines, backslash continuation and ${VAR} are as in
 * pip. */
#pragma once
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
	const char *file; /* which file; set by the caller, NULL: none */
	const char *text; /* the logical line: continuation joined, comment gone, trimmed */
	/* The same for messages and files. Variables of a package's line are filled in; those of
	 * other lines, where they may be credentials, are not. */
	const char *shown;
	const char *name; /* PACKAGE, and URL or PATH where there is one: normalised; else NULL */
	const char *specifier; /* what follows the name and extras, before marker and hashes; "" */
	const char *marker;    /* PACKAGE and "name @ url": what follows the ';', or NULL */
	const char *option;    /* OPTION, EDITABLE: "--index-url"; else NULL */
	const char *value;     /* of the option, without quotes, or NULL */
	bool has_variables;    /* its line had ${NAME} */
	bool is_pinned;	       /* == or === with no wildcard, and nothing else */
	text_list hashes;      /* "sha256:…", lower case */
};
typedef VEC(struct requirement) requirement_list;

struct requirement_line { /* of a file in another format */
	const char *text;
	int line;
};
typedef VEC(struct requirement_line) requirement_lines;

#define REQUIREMENTS_MAX ((size_t)4 << 20)
/* ERR_INVALID names the line: "line 3: …"; ERR_LIMIT: too large, or more than 20,000. Names,
 * extras, specifiers, markers and hashes are checked for their grammar (PEP 508, PEP 440). */
int requirements_parse(
	struct str text, struct arena *arena, requirement_list *list, struct error *err);
/* The same, with ${NAME} ([A-Z0-9_]) replaced by its value. `find` returns NULL for a variable that
 * isn't set: ERR_INVALID. A value is never part of an error message. requirements_parse refuses
 * variables. */
typedef const char *requirement_variable_fn(const char *name);
int requirements_parse_with(struct str text, requirement_variable_fn *find, struct arena *arena,
	requirement_list *list, struct error *err);
/* PEP 503: lower case, runs of [-_.] become one '-'. */
const char *requirement_normalize_name(struct arena *arena, struct str name);
bool requirement_name_is_valid(struct str name);
