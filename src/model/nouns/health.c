#include "model/nouns/health.h"

#define AT(member) offsetof(struct health, member)
static const struct field health_rows[] = {
	{ "workspace", FIELD_TEXT, AT(workspace), "its id" },
	{ "name", FIELD_TEXT, AT(name) },
	{ "state", FIELD_CHOICE, AT(state), "before the check", .names = workspace_state_names },
	{ "healthy", FIELD_BOOLEAN, AT(is_healthy), "there are no issues" },
	{ "configured", FIELD_BOOLEAN, AT(configured), ".workspace_configured exists" },
	{ "python_venv", FIELD_BOOLEAN, AT(python_venv), ".venv exists and its Python runs" },
	{ "python_deps_installed", FIELD_BOOLEAN, AT(python_deps_installed),
		"every declared Python package was imported" },
	{ "node_modules", FIELD_BOOLEAN, AT(node_modules), "node_modules exists" },
	{ "node_deps_installed", FIELD_BOOLEAN, AT(node_deps_installed),
		"node_modules has every dependency of package.json" },
	{ "disk_usage", FIELD_INTEGER, AT(disk_usage), "bytes" },
	{ "disk_limit", FIELD_INTEGER, AT(disk_limit), "bytes" },
	{ "disk_limit_mechanism", FIELD_TEXT, AT(disk_mechanism), NULL, FIELD_NULLABLE },
	{ "environment", FIELD_TEXT, AT(environment), NULL, FIELD_NULLABLE },
	{ "node_environment", FIELD_TEXT, AT(node_environment), NULL, FIELD_NULLABLE },
	{ "environment_layers", FIELD_INTEGER, AT(layers), "layers of its environments" },
	{ "snapshot_layers", FIELD_INTEGER, AT(frozen_layers),
		"layers of snapshots and of its template" },
	{ "deep", FIELD_BOOLEAN, AT(is_deep), "files of layers were compared with their hashes" },
	{ "layers_active", FIELD_TEXTS, AT(layers_active), "of the isolation" },
	{ "issues", FIELD_TEXTS, AT(issues), "what is wrong; empty: nothing" },
};
const struct record health_record = { "WorkspaceHealth", NULL, RECORD_ROWS(health_rows),
	FIELD_OUT };
#undef AT

#define AT(member) offsetof(struct repair, member)
static const struct field repair_rows[] = {
	{ "done", FIELD_TEXTS, AT(done), "what was repaired" },
	{ "failed", FIELD_TEXTS, AT(failed), "what can't be repaired, and why" },
	{ "health", FIELD_OBJECT, AT(health), "afterwards", .object = &health_record },
};
const struct record repair_record = { "WorkspaceRepair", NULL, RECORD_ROWS(repair_rows),
	FIELD_OUT };
