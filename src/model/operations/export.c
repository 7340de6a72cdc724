/* Operations on files of the blob store: exported environments, agent packages. */
#include "model/nouns/archive.h"
#include "model/operations/takes.h"

static const struct operation operations[] = {
	{ "GET", "/v1/exports", "listExports", NULL, VERB_ENVIRONMENT_LIST,
		.summary = "List exported environments of the blob store",
		.more = "Environments that were exported to the blob store.", PAGES,
		LISTED("Exports", export_record, "By name.") },
	{ "GET", "/v1/exports/{id}", "getExport", "env import", VERB_ENVIRONMENT_IMPORT,
		.summary = "Fetch an exported environment",
		.more = "For `carrel env import` on another machine.",
		ANSWER(200, TYPE_TAR, NULL, "As carrel env export wrote it."), .errors = { 507 } },
	{ "PUT", "/v1/exports/{id}", "putExport", "env export", VERB_ENVIRONMENT_EXPORT,
		.summary = "Store an exported environment, or replace the one of that name",
		.more = "The body is what `carrel env export` wrote.", .flags = ROUTE_STREAMED,
		UPLOADS, .takes_type = TYPE_BYTES, STORED, .errors = { 429, 507 } },
	{ "DELETE", "/v1/exports/{id}", "removeExport", NULL, VERB_ENVIRONMENT_REMOVE,
		.summary = "Remove an exported environment",
		.more = "Environments that were imported from it stay.", REMOVED },
	{ 0 },
};

static const struct operation agent_package_rows[] = {
	{ "GET", "/v1/packages", "listAgentPackages", "package ls", VERB_PACKAGE_LIST,
		.summary = "List agent packages of the blob store",
		.more = "Packages that deployments can name as `blob:NAME`.", PAGES,
		LISTED("AgentPackages", export_record, "By name.") },
	{ "GET", "/v1/packages/{id}", "getAgentPackage", NULL, VERB_PACKAGE_GET,
		.summary = "Fetch an agent package", .more = "The bytes as they were stored.",
		ANSWER(200, TYPE_BYTES, NULL, "The package."), .errors = { 507 } },
	{ "PUT", "/v1/packages/{id}", "putAgentPackage", NULL, VERB_PACKAGE_PUT,
		.summary = "Store an agent package, or replace the one of that name",
		.more = "A zip, tar.gz or tar.zst with agent.yaml, as `carrel package build` "
			"writes it. Nothing of it is looked at before it is deployed.",
		.flags = ROUTE_STREAMED, UPLOADS, .takes_type = TYPE_BYTES, STORED,
		.errors = { 429, 507 } },
	{ "DELETE", "/v1/packages/{id}", "removeAgentPackage", "package rm", VERB_PACKAGE_REMOVE,
		.summary = "Remove an agent package",
		.more = "Deployments that were made of it stay.", REMOVED },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Export", "{'name':'py312-4f1c.tar','created_at':'2026-01-02T10:00:00.000Z',"
		    "'size_bytes':18231000}" },
	{ 0 },
};

const struct operation_table export_operations = { "packages", operations, examples };
const struct operation_table agent_package_operations = { "deployments", agent_package_rows };
