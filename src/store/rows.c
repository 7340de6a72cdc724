/* Nouns as rows, by their records. */
#include "base/hash.h"
#include "store/backend.h"

const struct store_table store_workspaces = { "workspaces", &workspace_record,
	sizeof(struct workspace) };
const struct store_table store_execs = { "execs", &exec_fields, sizeof(struct exec_record),
	&store_workspaces };
const struct store_table store_snapshots = { "snapshots", &snapshot_record,
	sizeof(struct snapshot) };
const struct store_table store_tokens = { "tokens", &token_record, sizeof(struct token) };
const struct store_table store_approvals = { "approvals", &approval_record,
	sizeof(struct approval) };
const struct store_table store_cases = { "cases", &case_record, sizeof(struct eval_case) };
const struct store_table store_cells = { "cells", &cell_record, sizeof(struct cell) };
const struct store_table store_agents = { "agents", &agent_record, sizeof(struct a2a_agent) };
const struct store_table store_tasks = { "tasks", &task_record, sizeof(struct task) };
const struct store_table store_push_configs = { "push_configs", &push_config_record,
	sizeof(struct push_config), &store_tasks };
const struct store_table store_tools = { "tools", &tool_record, sizeof(struct tool) };
const struct store_table store_deployments = { "deployments", &deployment_record,
	sizeof(struct deployment) };
const struct store_table *const store_tables[STORE_TABLE_COUNT + 1] = { &store_workspaces,
	&store_execs, &store_snapshots, &store_tokens, &store_approvals, &store_cases, &store_cells,
	&store_agents, &store_tasks, &store_push_configs, &store_tools, &store_deployments, NULL };

const struct field *store_column(const struct store_table *table, size_t i)
{
	for (size_t at = 0; at < table->record->count; at++)
		if ((table->record->rows[at].flags & FIELD_COLUMN) && i-- == 0)
			return &table->record->rows[at];
	return NULL;
}

void row_show(const struct store_table *table, const void *object, struct store_row *row)
{
	const struct field *column;
	size_t texts = 0, times = 0;
	*row = (struct store_row){ 0 };
	for (size_t i = 0; (column = store_column(table, i)); i++) {
		const void *at = (const char *)object + column->offset;
		if (column->kind == FIELD_TIME)
			row->numbers[times++] = *(const int64_t *)at;
		else if (column->kind == FIELD_ID)
			row->texts[texts++] = at;
		else if (column->kind == FIELD_CHOICE)
			row->texts[texts++] = column->names[*(const int *)at];
		else
			row->texts[texts++] = *(const char *const *)at;
	}
}

static void add_text(struct sha256 *hash, const char *text, size_t len)
{
	sha256_add(hash, text, len);
	sha256_add(hash, "", 1);
}

int64_t row_sum(const struct store_table *table, const struct store_row *row)
{
	unsigned char digest[SHA256_LEN];
	struct sha256 hash;
	uint64_t sum = 0;
	sha256_init(&hash);
	add_text(&hash, table->name, strlen(table->name) - 1); /* "workspace" */
	for (int i = 0; i < STORE_TEXTS && row->texts[i]; i++)
		add_text(&hash, row->texts[i], strlen(row->texts[i]));
	for (int i = 0; i < STORE_SUM; i++) {
		char number[24];
		str_format(number, sizeof number, "%lld", (long long)row->numbers[i]);
		add_text(&hash, number, strlen(number));
	}
	sha256_add(&hash, row->bytes.data, row->bytes.len);
	sha256_end(&hash, digest);
	for (int i = 0; i < 8; i++)
		sum = sum << 8 | digest[i];
	return sum ? (int64_t)sum : 1;
}

/* The index of `text` in names, or -1. */
static int find_name(const char *const *names, const char *text)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], text))
			return i;
	return -1;
}

static int read_column(const struct field *column, const char *text, void *at, struct error *err)
{
	if (column->kind == FIELD_ID) {
		if (!id_is_valid(text))
			return fail(err, ERR_CORRUPT, "invalid %s '%s'", column->name, text);
		str_copy(at, ID_LEN + 1, text);
	} else if (column->kind == FIELD_CHOICE) {
		int value = find_name(column->names, text);
		if (value < 0)
			return fail(err, ERR_CORRUPT, "unknown %s '%s'", column->name, text);
		*(int *)at = value;
	} else {
		*(const char **)at = text;
	}
	return 0;
}

int row_read(const struct store_table *table, const struct store_row *row, struct arena *arena,
	void *object, struct error *err)
{
	const struct field *column;
	size_t texts = 0, times = 0;
	if (row->numbers[STORE_SUM] && row_sum(table, row) != row->numbers[STORE_SUM])
		return fail(err, ERR_CORRUPT, "its checksum is wrong");
	memset(object, 0, table->size);
	for (size_t i = 0; (column = store_column(table, i)); i++) {
		void *at = (char *)object + column->offset;
		if (column->kind == FIELD_TIME)
			*(int64_t *)at = row->numbers[times++];
		else if (read_column(column, row->texts[texts++], at, err))
			return -1;
	}
	return record_read_kept(table->record, row->bytes, arena, object, err);
}

int row_load(int table, const struct store_row *row, const char *file, struct arena *arena,
	void **object, struct error *err)
{
	const struct store_table *of = store_tables[table];
	*object = arena_alloc(arena, of->size);
	if (row_read(of, row, arena, *object, err))
		return error_context(err, "%.*s '%s' in %s", (int)strlen(of->name) - 1, of->name,
			row->texts[0], file);
	return 0;
}
