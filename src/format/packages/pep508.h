/* pep508.h -- the grammar of one dependency (PEP 508) with its versions (PEP 440): name[extras]
 * specifiers ; marker, or name[extras] @ url ; marker. Pure; views into the text. */
#pragma once
#include "base/str.h"

struct pep508 {
	struct str name;      /* as written */
	struct str extras;    /* between the brackets; empty when there are none */
	struct str specifier; /* as written, parentheses included; empty when there is none */
	struct str url;	      /* empty when it isn't "name @ url" */
	struct str marker;    /* after the ';'; empty when there is none */
	bool is_pinned;	      /* one specifier, == without a wildcard or === */
};
/* false: not a valid requirement; *reason (static) says why. */
bool pep508_parse(struct str text, struct pep508 *out, const char **reason);
bool pep508_marker_is_valid(struct str text, const char **reason);
