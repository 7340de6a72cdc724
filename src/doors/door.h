/* door.h -- a protocol that the daemon speaks by HTTP: a row of its own in door.c, and its routes.
 * Everything else in this room serves all of them. Private to this room.
 * 1. The first door whose `match` takes a request has it, whatever comes of it: no other is asked.
 * 2. A door looks for nothing in core but by verbs, as the principal that `login` has found. */
#pragma once
#include "net/http.h"

struct api;
struct call;
struct principal;
struct route;

struct door {
	const char *name;	 /* of records and logs; a literal */
	const char *name_of_cli; /* the same of what carrel itself asks; NULL: no other */
	/* By its host, its headers or its path; pure. */
	bool (*match)(const struct http_request *r);
	/* Who asks, by TCP. The principal lives in the request's arena. */
	int (*login)(struct api *api, struct http_request *r, const struct principal **principal,
		struct error *err);
	const struct route *(*routes)(void); /* ended by an operation of NULL */
	bool takes_last_slash;		     /* after any path */
	bool takes_any_body;		     /* of routes that name none */
	/* Answers with an error. headers: more of them, or NULL. */
	void (*refuse)(struct call *c, int status, const char *headers, const struct error *err);
};
extern const struct door rest_door, a2a_door;

/* Never NULL: what no other takes is REST's. */
const struct door *door_of(const struct http_request *r);
