#include "model/nouns/health.h"
#include "model/records/rows.h"

#define AT(member) offsetof(struct health, member)
static const struct field health_rows[] = {
	ROW(TEXT, workspace, "its id"),
	ROW(TEXT, name),
	ROW(CHOICE, state, "before the check", .names = workspace_state_names),
	{ "healthy", FIELD_BOOLEAN, AT(is_healthy), "there are no issues" },
	ROW(BOOLEAN, configured, ".workspace_configured exists"),
	ROW(BOOLEAN, python_venv, ".venv exists and its Python runs"),
	ROW(BOOLEAN, python_deps_installed, "every declared Python package was imported"),
	ROW(BOOLEAN, node_modules, "node_modules exists"),
	ROW(BOOLEAN, node_deps_installed, "node_modules has every dependency of package.json"),
	ROW(INTEGER, disk_usage, "bytes"),
	ROW(INTEGER, disk_limit, "bytes"),
	{ "disk_limit_mechanism", FIELD_TEXT, AT(disk_mechanism), NULL, FIELD_NULLABLE },
	{ "environment", FIELD_TEXT, AT(environments.of[ENV_KIND_PYTHON]), NULL, FIELD_NULLABLE },
	{ "node_environment", FIELD_TEXT, AT(environments.of[ENV_KIND_NODE]), NULL,
		FIELD_NULLABLE },
	{ "environment_layers", FIELD_INTEGER, AT(layers), "layers of its environments" },
	{ "snapshot_layers", FIELD_INTEGER, AT(frozen_layers),
		"layers of snapshots and of its template" },
	{ "deep", FIELD_BOOLEAN, AT(is_deep), "files of layers were compared with their hashes" },
	ROW(TEXTS, layers_active, "of the isolation"),
	ROW(TEXTS, issues, "what is wrong; empty: nothing"),
};
const struct record health_record = { "WorkspaceHealth", NULL, RECORD_ROWS(health_rows),
	FIELD_OUT };
#undef AT

#define AT(member) offsetof(struct repair, member)
static const struct field repair_rows[] = {
	ROW(TEXTS, done, "what was repaired"),
	ROW(TEXTS, failed, "what can't be repaired, and why"),
	ROW(OBJECT, health, "afterwards", .object = &health_record),
};
const struct record repair_record = { "WorkspaceRepair", NULL, RECORD_ROWS(repair_rows),
	FIELD_OUT };
