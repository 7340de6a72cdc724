/* role.h -- one question to a locked role of carreld, which has the libraries that this program
 * doesn't link. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "format/text/json_read.h"
#include "model/settings/role_settings.h"
#include "proc/role.h"

struct role_question {
	const char *name;    /* of the role: "carrel-tls" */
	const char *failure; /* when it says nothing else: "carreld could not …" */
	const struct role_settings *settings; /* or NULL: it needs none */
	int input;			      /* its descriptor 3; 4 is its answer */
	const int *more;		      /* 5 and on */
	int more_count;
	const struct role_path *root; /* as in role_start */
	size_t root_count;
};
/* Runs the role to its end. *answer: the object that it wrote, in the arena; an object
 * {"error": {"code", "message", "hint"?}} is the error. */
int role_ask(const struct role_question *question, struct arena *arena,
	const struct json_value **answer, struct error *err);
/* A file of these bytes, to be read from its beginning: an input. */
int role_text(const char *data, size_t len, int *fd, struct error *err);
