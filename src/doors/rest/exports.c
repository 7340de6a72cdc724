/* /v1/exports, /v1/packages: exported environments and agent packages in the blob store */
#include "core/state/exports.h"
#include "doors/rest/handlers.h"
#include "doors/rest/body_pipe.h"

enum { ENVIRONMENTS, PACKAGES }; /* which */
static const struct stored_kind *const kinds[] = {
	[ENVIRONMENTS] = &stored_environments, [PACKAGES] = &stored_packages
};

static void on_listed(void *ctx, const export_rows *rows, const struct error *err)
{
	struct call *c = pending_end(ctx);
	if (c && err)
		call_problem(c, err);
	else if (c)
		call_send_array(
			c, &export_record, rows->items, rows->count, sizeof *rows->items, true);
}

static int api_stored_list(struct call *c, struct error *err)
{
	core_list_stored(c->request, c->api->core, kinds[c->which], on_listed, pending_begin(c));
	return 0;
}

static void on_removed(void *ctx, const export_rows *rows, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int api_stored_delete(struct call *c, struct error *err)
{
	core_remove_stored(
		c->request, c->api->core, kinds[c->which], c->id, on_removed, pending_begin(c));
	return 0;
}

static void on_got(void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err)
{
	const struct pending *op = ctx;
	pending_answer_file(
		ctx, op->call ? op->call->operation->answers[0].type : NULL, fd, size, err);
}

static int api_stored_get(struct call *c, struct error *err)
{
	core_get_stored(c->request, c->api->core, kinds[c->which], c->id, on_got, pending_begin(c));
	return 0;
}

static int put(struct call *c, const char *sha256, job_fn *done, void *ctx, struct upload **upload,
	struct error *err)
{
	return core_put_stored(
		c->request, c->api->core, kinds[c->which], c->id, sha256, done, ctx, upload, err);
}

static int api_stored_put(struct call *c, struct error *err)
{
	return call_upload(c, put, err);
}

const struct handler exports_handlers[] = { { "listExports", api_stored_list, ENVIRONMENTS },
	{ "getExport", api_stored_get, ENVIRONMENTS },
	{ "putExport", api_stored_put, ENVIRONMENTS },
	{ "removeExport", api_stored_delete, ENVIRONMENTS },
	{ "listAgentPackages", api_stored_list, PACKAGES },
	{ "getAgentPackage", api_stored_get, PACKAGES },
	{ "putAgentPackage", api_stored_put, PACKAGES },
	{ "removeAgentPackage", api_stored_delete, PACKAGES }, { 0 } };
