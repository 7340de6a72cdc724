#include "doors/authenticate.h"

#include "base/clock.h"
#include "core/access/access.h"
#include "doors/handshake.h"

/* The value of the one Authorization header, or what a browser can offer instead of it; data NULL:
 * there is none. */
static int find_authorization(struct http_request *r, struct str *header, struct error *err)
{
	size_t count = 0;
	struct str offered = handshake_bearer(r, &count);
	for (size_t i = 0; i < r->headers.count; i++)
		count += str_is(r->headers.items[i].name, "authorization");
	if (count > 1) /* another reader might take the other one */
		return fail(err, ERR_UNAUTHENTICATED, "the Authorization header is given twice");
	*header = offered.data ? offered : http_header(r, "authorization");
	return 0;
}

static int count_request(struct api *api, struct http_request *r, const struct principal *principal,
	struct error *err)
{
	char name[PRINCIPAL_NAME_SIZE];
	r->holder = arena_text(&r->arena, access_name(principal, name));
	return visits_ask(&api->visits, r->visit, r->holder, clock_monotonic_ms(), err);
}

int authenticate_unix(
	void *ctx, struct http_request *r, const struct principal **principal, struct error *err)
{
	struct api *api = ctx;
	const struct access_from from = { .uid = r->peer.uid };
	struct str header;
	if (front_check(&api->front, r, err) || find_authorization(r, &header, err))
		return -1;
	if (header.data ? access_token(api->core, header, &from, &r->arena, principal, err)
			: access_peer(api->core, from.uid, &r->arena, principal, err))
		return -1;
	return count_request(api, r, *principal, err);
}

int authenticate_credential(struct api *api, struct http_request *r,
	const struct principal **principal, struct error *err)
{
	const struct access_from from = { .uid = ACCESS_NO_UID, .address = r->peer.address };
	struct str header;
	if (find_authorization(r, &header, err))
		return -1;
	if (header.data)
		return access_token(api->core, header, &from, &r->arena, principal, err);
	enum token_scope scope;
	bool is_known =
		r->peer.subject && front_knows_subject(&api->front, r->peer.subject, &scope);
	if (is_known && !front_is_of_page(r)) {
		*principal = access_subject(r->peer.subject, scope, &from, &r->arena);
		return 0;
	}
	if (route_is_open(r)) {
		*principal = access_nobody();
		return 0;
	}
	return access_none(api->core, &from,
		is_known ? "a certificate alone is not enough for a page: send a token, too"
		: r->peer.subject
			? arena_printf(&r->arena,
				  "access.subjects does not list '%s', and no token was sent",
				  r->peer.subject)
			: "a token is needed: `Authorization: Bearer TOKEN`",
		err);
}

int authenticate_tcp(
	void *ctx, struct http_request *r, const struct principal **principal, struct error *err)
{
	struct api *api = ctx;
	int checked = front_check(&api->front, r, err);
	if (checked > 0)
		call_respond(call_new(api, r), 204, NULL, front_preflight_headers, STR(""));
	if (checked)
		return checked;
	if (door_of(r)->login(api, r, principal, err))
		return -1;
	if (*principal == access_nobody())
		return 0;
	return count_request(api, r, *principal, err);
}
