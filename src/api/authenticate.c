#include "api/authenticate.h"

#include "core/access.h"

/* The value of the one Authorization header; data NULL: there is none. */
static int find_authorization(const struct http_request *r, struct str *header, struct error *err)
{
	size_t count = 0;

	for (size_t i = 0; i < r->headers.count; i++)
		count += str_is(r->headers.items[i].name, "authorization");
	if (count > 1) /* another reader might take the other one */
		return fail(err, ERR_UNAUTHENTICATED, "the Authorization header is given twice");
	*header = http_header(r, "authorization");
	return 0;
}

int authenticate_unix(
	void *ctx, struct http_request *r, const struct principal **principal, struct error *err)
{
	const struct api *api = ctx;
	const struct access_from from = { .uid = r->peer.uid };
	struct str header;

	if (find_authorization(r, &header, err))
		return -1;
	return header.data ? access_token(api->core, header, &from, &r->arena, principal, err)
			   : access_peer(api->core, from.uid, &r->arena, principal, err);
}
