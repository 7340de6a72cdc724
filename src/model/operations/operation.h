/* operation.h -- what can be asked of the daemon: a row for each operation, in a file for each
 * noun. Routes of REST, /openapi.json with the clients that are made from it, and the plain part of
 * the command line come from these rows; scope and audit are those of the verb. Pure data.
 * 1. A row has a name of its own. Beside its functions the door for REST names that, and nothing
 * else of the operation (doors/rest/handlers.h).
 * 2. Every record that is sent or answered as a whole has an example in the table of its noun
 * (tests/unit/test_openapi.c). */
#pragma once
#include "model/operations/verb.h"
#include "model/records/record.h"

enum {
	ROUTE_STREAMED = 1,	/* the body is taken piece by piece */
	ROUTE_KEYED = 2,	/* takes Idempotency-Key */
	ROUTE_LOCATION = 4,	/* 201 has a Location */
	ROUTE_BARE = 8,		/* not about state: answered at any time */
	ROUTE_OPTIONAL = 16,	/* the body may be left out */
	ROUTE_EVENTS = 32,	/* takes Last-Event-ID */
	ROUTE_RANGE = 64,	/* takes Range */
	ROUTE_NEW = 128,	/* takes If-None-Match: * */
	ROUTE_RAW = 256,	/* any query and headers: they are another server's */
	ROUTE_OPEN = 512,	/* answered without a principal, too: for probes */
	ROUTE_WORKSPACE = 1024, /* {id} is a workspace, which is looked up before anything else */
};

struct operation_answer {
	int status;
	const char *type;	     /* content type, or NULL: no body */
	const struct record *record; /* of JSON; NULL: bytes or text */
	const char *about;
};

struct operation {
	const char *method;  /* "*": any */
	const char *path;    /* {id} and {port} are one segment, {path} all that follow */
	const char *name;    /* operationId: unique, and how a door names what serves it */
	const char *command; /* of carrel that asks for it: "snapshot create"; or NULL */
	enum verb verb;	     /* of core, or VERB_NONE */
	const char *summary; /* one line */
	const char *more;    /* several sentences */
	unsigned flags;
	const struct record *query; /* or NULL: none */
	size_t query_size;	    /* of the struct */
	const struct record *takes; /* a body of JSON, or NULL */
	size_t takes_size;
	const char *takes_type;		    /* of ROUTE_STREAMED */
	struct operation_answer answers[5]; /* ended by status 0 */
	unsigned short errors[8];	    /* besides those that every route has */
};

/* Of a schema, by its name: as JSON with ' for ". */
struct operation_example {
	const char *schema, *text;
};

struct operation_table {
	const char *tag;			  /* in /openapi.json */
	const struct operation *rows;		  /* ended by a method of NULL */
	const struct operation_example *examples; /* ended by a schema of NULL; or NULL */
};
extern const struct operation_table *const operation_tables[]; /* ended by NULL */

/* By its name; by its command. NULL: there is none. */
const struct operation *operation_find(const char *name);
const struct operation *operation_of_command(const char *command);

/* ---- what rows share ---- */
#define WORKSPACE "/v1/workspaces/{id}"
#define EXEC "/v1/execs/{id}"
#define DEPLOYMENT "/v1/deployments/{id}"
#define TYPE_JSON "application/json"
#define TYPE_BYTES "application/octet-stream"
#define TYPE_EVENTS "text/event-stream"
#define TYPE_TEXT "text/plain; charset=utf-8"
#define TYPE_TAR "application/x-tar"
#define QUERY(rows, type)                                                                          \
	.query = &(const struct record){ "", NULL, RECORD_ROWS(rows), FIELD_IN },                  \
	.query_size = sizeof(type)
#define TAKES(record, type) .takes = &record, .takes_size = sizeof(type)
#define PAGES .query = &page_query_record, .query_size = sizeof(struct page_query)
#define ANSWER(...) .answers = { { __VA_ARGS__ } }
/* Errors of what changes something, and of what makes something, for which there may be no room. */
#define CHANGES .errors = { 409, 507 }
#define MAKES .errors = { 409, 429, 507 }
#define REMOVED ANSWER(204, NULL, NULL, "It was removed.")
#define DONE ANSWER(204, NULL, NULL, "Done.")
#define STORED ANSWER(201, NULL, NULL, "It was stored.")
#define SHOWN(record, about) ANSWER(200, TYPE_JSON, &record, about)
/* A request that is passed on. */
#define FORWARDED                                                                                  \
	.flags = ROUTE_STREAMED | ROUTE_RAW, .takes_type = "*/*", .errors = { 409, 429, 502 },     \
	.answers = { { 101, NULL, NULL,                                                            \
			     "The protocol was changed: by the server, as for WebSocket, or, "     \
			     "with `Upgrade: carrel-tcp`, to the bytes of a TCP connection to "    \
			     "the port." },                                                        \
		{ 200, "*/*", NULL, "The response of the server, whatever its status." } }
/* A page of records. */
#define PAGE_OF(schema, item)                                                                      \
	&(const struct record)                                                                     \
	{                                                                                          \
		schema, NULL,                                                                      \
			(const struct field[]){ { "items", FIELD_OBJECTS, .object = &item },       \
				{ "next_cursor", FIELD_TEXT, 0, "null: no more pages",             \
					FIELD_NULLABLE } },                                        \
			2, FIELD_OUT                                                               \
	}
#define LISTED(schema, item, about) ANSWER(200, TYPE_JSON, PAGE_OF(schema, item), about)

/* What a list is asked for; the query of every list begins with it. */
struct page_query {
	uint64_t limit; /* 0: LIMIT_DEFAULT */
	const char *cursor;
};
#define LIMIT_DEFAULT 100
#define LIMIT_MOST 1000
#define PAGE_ROWS                                                                                  \
	{ "limit", FIELD_INTEGER, offsetof(struct page_query, limit),                              \
		"items at most; 100 when not given", .least = 1, .most = LIMIT_MOST },             \
	{                                                                                          \
		"cursor", FIELD_TEXT, offsetof(struct page_query, cursor),                         \
			"next_cursor of the page before", .least = 1                               \
	}
extern const struct record page_query_record;

/* Rows of a record that is only described: what has it is printed member by member. */
#define TEXT(name, ...)                                                                            \
	{                                                                                          \
		name, FIELD_TEXT, 0, __VA_ARGS__                                                   \
	}
#define COUNT(name, ...)                                                                           \
	{                                                                                          \
		name, FIELD_INTEGER, 0, __VA_ARGS__                                                \
	}

/* Of a FIELD_CHOICE that is only described. */
#define NAMES(...)                                                                                 \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

/* ---- answers that several operations have ---- */
extern const struct record problem_record, applied_change_record;
extern const struct field_choice problem_codes[]; /* every error_code_name */
/* stream_records.c: the data of server-sent events */
extern const struct record event_record, exec_event_record, output_event_record, audit_line_record;
