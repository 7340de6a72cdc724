/* shipped.h -- the templates that are part of carreld: the files in core/state/templates. */
#pragma once

struct shipped_template {
	const char *name; /* NULL ends the list */
	const char *text; /* YAML */
	size_t len;
};
extern const struct shipped_template shipped_templates[];
