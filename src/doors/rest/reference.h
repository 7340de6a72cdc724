/* reference.h -- what /openapi.json and /docs say about operations and schemas besides the rows:
 * texts for people, tags, examples. Private to this room.
 * 1. Every route has a row in `operations`, and every schema that is sent or answered as a whole
 * has an example (tests/unit/test_openapi.c). */
#pragma once
#include <stddef.h>

struct tag {
	const char *name, *about;
};
extern const struct tag tags[];
extern const size_t tag_count;

struct operation_text {
	const char *name;  /* the route's */
	const char *tag;   /* of `tags` */
	const char *about; /* several sentences */
};
/* Never NULL: a route without a row is an error of the program. */
const struct operation_text *operation_text_of(const char *name);

/* The example of that schema, as JSON with ' for ", or NULL. */
const char *example_of(const char *schema);
/* Of a stream of events, or of lines of JSON: as it is sent; or NULL. */
const char *stream_example_of(const char *schema);
