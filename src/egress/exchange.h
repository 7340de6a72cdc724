/* exchange.h -- HTTP requests of a connection, one after the other, and their answers. */
#pragma once
#include "egress/internal.h"

struct exchange {
	struct forward_request request; /* the strings are views of c->in */
	struct forward_body body;	/* of the request */
	bool is_active;			/* a request is under way */
	bool is_head;			/* HEAD: the answer has no body */
	bool is_upgrade;
	bool keeps;	     /* the client's connection */
	bool keeps_upstream; /* as the answer says */
	bool is_reused;	     /* the upstream connection has answered a request before */
	enum { ANSWER_HEAD, ANSWER_BODY, ANSWER_REST, ANSWER_DONE } answer;
	struct forward_body answer_body;
	struct buf head;  /* of the answer, as far as it has come */
	struct buf again; /* the request, to be sent once more on a new connection */
	unsigned served;
};
/* Where the next request of the connection is read to. */
struct forward_request *exchange_request(struct connection *c);
bool exchange_has_served(const struct connection *c);
