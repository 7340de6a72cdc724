/* /v1/exports, /v1/packages: exported environments and agent packages in the blob store */
#include <string.h>
#include "core/state/exports.h"
#include "doors/rest/handlers.h"
#include "doors/rest/body_pipe.h"

static void on_listed(void *ctx, const export_rows *rows, const struct error *err)
{
	struct call *c = pending_end(ctx);
	if (c && err)
		call_problem(c, err);
	else if (c)
		call_send_array(
			c, &export_record, rows->items, rows->count, sizeof *rows->items, true);
}

static int list(struct call *c, const struct stored_kind *kind)
{
	core_list_stored(c->request, c->api->core, kind, on_listed, pending_begin(c));
	return 0;
}

static int api_export_list(struct call *c, struct error *err)
{
	return list(c, &stored_environments);
}

static int api_package_list(struct call *c, struct error *err)
{
	return list(c, &stored_packages);
}

static void on_removed(void *ctx, const export_rows *rows, const struct error *err)
{
	pending_answer_done(ctx, err);
}

static int remove_one(struct call *c, const struct stored_kind *kind)
{
	core_remove_stored(c->request, c->api->core, kind, c->id, on_removed, pending_begin(c));
	return 0;
}

static int api_export_delete(struct call *c, struct error *err)
{
	return remove_one(c, &stored_environments);
}

static int api_package_delete(struct call *c, struct error *err)
{
	return remove_one(c, &stored_packages);
}

static void on_got(void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err)
{
	pending_answer_file(ctx, "application/x-tar", fd, size, err);
}

static void on_package(
	void *ctx, int fd, uint64_t size, const char *sha256, const struct error *err)
{
	pending_answer_file(ctx, "application/octet-stream", fd, size, err);
}

static int api_export_get(struct call *c, struct error *err)
{
	core_get_stored(
		c->request, c->api->core, &stored_environments, c->id, on_got, pending_begin(c));
	return 0;
}

static int api_package_get(struct call *c, struct error *err)
{
	core_get_stored(
		c->request, c->api->core, &stored_packages, c->id, on_package, pending_begin(c));
	return 0;
}

static int put_environment(const struct request *request, struct core *core, const char *name,
	const char *sha256, job_fn *done, void *ctx, struct upload **upload, struct error *err)
{
	return core_put_stored(
		request, core, &stored_environments, name, sha256, done, ctx, upload, err);
}

static int put_package(const struct request *request, struct core *core, const char *name,
	const char *sha256, job_fn *done, void *ctx, struct upload **upload, struct error *err)
{
	return core_put_stored(
		request, core, &stored_packages, name, sha256, done, ctx, upload, err);
}

static int api_export_put(struct call *c, struct error *err)
{
	return call_upload(c, put_environment, err);
}

static int api_package_put(struct call *c, struct error *err)
{
	return call_upload(c, put_package, err);
}

const struct handler exports_handlers[] = { { "listExports", api_export_list },
	{ "getExport", api_export_get }, { "putExport", api_export_put },
	{ "removeExport", api_export_delete }, { "listAgentPackages", api_package_list },
	{ "getAgentPackage", api_package_get }, { "putAgentPackage", api_package_put },
	{ "removeAgentPackage", api_package_delete }, { 0 } };
