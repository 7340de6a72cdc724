/* Operations on environments that are built. */
#include "model/operations/takes.h"

static const struct field environment_rows[] = {
	TEXT("name", NULL),
	TEXT("package_id", NULL, FIELD_NULLABLE),
	{ "state", FIELD_CHOICE, .names = NAMES("ready", "corrupt") },
	{ "created_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	{ "last_used_at", FIELD_TIME, 0, NULL, FIELD_NULLABLE },
	COUNT("use_count", NULL),
	COUNT("size_bytes", NULL),
	{ "kind", FIELD_CHOICE, .choices = packages_kinds },
	TEXT("python_version", NULL, FIELD_NULLABLE),
	TEXT("node_version", NULL, FIELD_NULLABLE),
	{ "installed_packages", FIELD_PAIRS, .help = "name: version" },
	{ "in_use", FIELD_BOOLEAN },
	TEXT("problem", NULL, FIELD_NULLABLE),
};
static const struct record environment_record = { "Environment", NULL,
	RECORD_ROWS(environment_rows), FIELD_OUT };

static const struct operation operations[] = {
	{ "GET", "/v1/environments", "listEnvironments", NULL, VERB_ENVIRONMENT_LIST,
		.summary = "List the environments that are built",
		.more = "Environments are shared, read-only sets of packages. A workspace names "
			"one in `environment`; `POST /v1/workspaces` with `python` or `node` "
			"builds one if needed.",
		PAGES, LISTED("Environments", environment_record, "Sorted by name.") },
	{ 0 },
};

static const struct operation_example examples[] = {
	{ "Environment",
		"{'name':'py312-4f1c','package_id':null,'state':'ready',"
		"'created_at':'2026-01-02T10:00:00.000Z',"
		"'last_used_at':'2026-01-02T10:05:00.000Z','use_count':4,'size_bytes':63963136,"
		"'kind':'python','python_version':'3.12.7','node_version':null,"
		"'installed_packages':{'pandas':'2.2.3'},'in_use':true,'problem':null}" },
	{ 0 },
};

const struct operation_table environment_operations = { "packages", operations, examples };
