/* The tables of operations, in the order of /openapi.json. */
#include "model/operations/operation.h"

static const struct field page_rows[] = { PAGE_ROWS };
const struct record page_query_record = { "", NULL, RECORD_ROWS(page_rows), FIELD_IN };

extern const struct operation_table daemon_operations, environment_operations, template_operations,
	tree_operations, approval_operations, agent_operations, token_operations, code_operations,
	case_operations, tool_operations, workspace_operations, archive_operations,
	export_operations, agent_package_operations, deployment_operations, upkeep_operations,
	snapshot_operations, usage_operations, package_operations, exec_operations, file_operations,
	port_operations, event_operations;

const struct operation_table *const operation_tables[] = { &daemon_operations,
	&environment_operations, &template_operations, &tree_operations, &approval_operations,
	&agent_operations, &token_operations, &code_operations, &case_operations, &tool_operations,
	&workspace_operations, &archive_operations, &export_operations, &agent_package_operations,
	&deployment_operations, &upkeep_operations, &snapshot_operations, &usage_operations,
	&package_operations, &exec_operations, &file_operations, &port_operations,
	&event_operations, NULL };

typedef bool match_fn(const struct operation *row, const char *text);

static const struct operation *find(match_fn *fits, const char *text)
{
	for (const struct operation_table *const *table = operation_tables; *table; table++)
		for (const struct operation *row = (*table)->rows; row->method; row++)
			if (fits(row, text))
				return row;
	return NULL;
}

static bool has_name(const struct operation *row, const char *name)
{
	return !strcmp(row->name, name);
}

const struct operation *operation_find(const char *name)
{
	return find(has_name, name);
}

static bool has_command(const struct operation *row, const char *command)
{
	return row->command && !strcmp(row->command, command);
}

const struct operation *operation_of_command(const char *command)
{
	return find(has_command, command);
}
