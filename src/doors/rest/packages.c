/* /v1/workspaces/{id}/packages */
#include "core/packages/packages.h"
#include "doors/rest/handlers.h"

static void print_pairs(struct json *j, const char *key, const pair_list *pairs)
{
	json_array(j, key);
	for (size_t i = 0; i < pairs->count; i++) {
		json_object(j, NULL);
		json_text(j, "name", pairs->items[i].key);
		json_text(j, "version", pairs->items[i].value);
		json_end(j);
	}
	json_end(j);
}

static void on_changed(void *ctx, const struct packages_result *result, const struct error *err)
{
	struct json *j = pending_print(ctx, err);
	if (!j)
		return;
	json_object(j, NULL);
	json_text(j, "environment", result->environment);
	print_pairs(j, "installed", &result->installed);
	print_pairs(j, "removed", &result->removed);
	json_bool(j, "live", result->is_live);
	json_bool(j, "persisted", result->is_persisted);
	json_end(j);
	pending_send(ctx, 200, NULL);
}

static int api_packages_change(struct call *c, struct error *err)
{
	const struct packages_body *body = c->body;
	struct packages_wanted wanted = { .packages = body->packages,
		.is_removal = c->which,
		.kind = &env_kind_rows[body->kind],
		.persists = !body->has_persist || body->persist };
	struct pending *op = pending_begin(c);
	pending_cancels(op, packages_change(c->request, c->workspace, &wanted, on_changed, op));
	return 0;
}

static void on_listed(void *ctx, const struct packages_listed *listed, const struct error *err)
{
	struct json *j = pending_print(ctx, err);
	if (!j)
		return;
	json_object(j, NULL);
	json_array(j, "items");
	for (size_t i = 0; i < listed->packages.count; i++) {
		const struct package *package = &listed->packages.items[i];
		json_object(j, NULL);
		json_text(j, "name", package->name);
		json_text(j, "version", package->version);
		json_text(j, "kind", package->kind->name);
		json_bool(j, "requested", package->is_requested);
		json_text(j, "source", package->is_environment ? "environment" : "workspace");
		json_end(j);
	}
	json_end(j);
	json_null(j, "next_cursor");
	json_end(j);
	pending_send(ctx, 200, NULL);
}

static int api_packages_list(struct call *c, struct error *err)
{
	packages_list(c->request, c->workspace, on_listed, pending_begin(c));
	return 0;
}

const struct handler packages_handlers[] = { { "listPackages", api_packages_list },
	{ "installPackages", api_packages_change, false },
	{ "uninstallPackages", api_packages_change, true }, { 0 } };
