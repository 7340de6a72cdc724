#include "cli/plain.h"
#include "cli/removal.h"
#include "model/operations/operation.h"

const struct arg_option plain_ids_table[] = {
	{ 'q', "quiet", ARG_FLAG, AT(quiet), NULL, "ids only" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_option plain_names_table[] = {
	{ 'q', "quiet", ARG_FLAG, AT(quiet), NULL, "names only" },
	{ ARG_FROM(remote_rows) },
};
const struct arg_option plain_rm_table[] = { REMOVAL_FORCE_ROW, { ARG_FROM(remote_rows) } };

static const struct operation *operation_of(const struct command *command)
{
	const struct arg_spec *spec = command->spec;
	const struct operation *operation =
		spec->asks ? operation_find(spec->asks) : operation_of_command(spec->command);
	if (!operation)
		abort();
	return operation;
}

/* ---- what options gave ---- */

/* Whether what an option gives is what a row takes: others are the command's own. */
static bool fits(const struct field *row, const struct arg_option *option)
{
	switch (option->kind) {
	case ARG_FLAG:
		return row->kind == FIELD_BOOLEAN;
	case ARG_TEXT:
	case ARG_CHOICE:
		return row->kind == FIELD_TEXT || row->kind == FIELD_CHOICE;
	case ARG_LIST:
		return row->kind == FIELD_TEXTS;
	case ARG_RECORD:
	case ARG_ROWS:
		return false;
	default:
		return row->kind != FIELD_TEXT;
	}
}

/* The row of a record that has the name of an option; NULL: there is none. */
static const struct field *row_of(const struct record *record, const struct arg_option *option)
{
	char name[64];
	str_copy(name, sizeof name, option->name ? option->name : "");
	for (char *c = name; *c; c++)
		*c = *c == '-' ? '_' : *c;
	for (size_t i = 0; record && i < record->count; i++)
		if (!strcmp(record->rows[i].name, name) &&
			field_is(record, &record->rows[i], FIELD_IN))
			return fits(&record->rows[i], option) ? &record->rows[i] : NULL;
	return NULL;
}

struct gathering {
	struct command *command;
	const struct record *record;
	struct json *j;	  /* of a body */
	const char *path; /* of a query */
};

static void add_parameter(struct gathering *g, const char *name, const char *value)
{
	struct remote *remote = &g->command->remote;
	g->path = arena_printf(remote->arena, "%s%c%s=%s", g->path,
		strchr(g->path, '?') ? '&' : '?', name, remote_escape(remote, value));
}

static void take_parameter(void *ctx, const struct arg_option *option)
{
	struct gathering *g = ctx;
	const void *value = (const char *)&g->command->options + option->offset;
	const struct field *row = row_of(g->record, option);
	if (!row)
		return;
	const text_list *list = value;
	if (option->kind == ARG_LIST)
		for (size_t i = 0; i < list->count; i++)
			add_parameter(g, row->name, list->items[i]);
	else if (option->kind == ARG_FLAG && *(const bool *)value)
		add_parameter(g, row->name, "true");
	else if ((option->kind == ARG_TEXT || option->kind == ARG_CHOICE) &&
		 *(const char *const *)value)
		add_parameter(g, row->name, *(const char *const *)value);
	else if (option->kind == ARG_COUNT && *(const uint64_t *)value)
		add_parameter(g, row->name,
			arena_printf(&g->command->arena, "%" PRIu64, *(const uint64_t *)value));
}

static void take_member(void *ctx, const struct arg_option *option)
{
	struct gathering *g = ctx;
	const void *value = (const char *)&g->command->options + option->offset;
	const struct field *row = row_of(g->record, option);
	if (!row)
		return;
	const struct field_name name = field_name(row, FIELD_OUT);
	const text_list *list = value;
	switch (option->kind) {
	case ARG_FLAG:
		if (*(const bool *)value)
			json_bool(g->j, name.text, true);
		break;
	case ARG_TEXT:
	case ARG_CHOICE:
		if (*(const char *const *)value)
			json_text(g->j, name.text, *(const char *const *)value);
		break;
	case ARG_LIST:
		if (list->count)
			json_texts(g->j, name.text, list);
		break;
	default:
		if (*(const uint64_t *)value)
			json_u64(g->j, name.text, *(const uint64_t *)value);
	}
}

/* ---- one request ---- */

const char *plain_path(struct command *command, const char *id)
{
	const struct operation *operation = operation_of(command);
	const char *braces = strstr(operation->path, "{id}");
	struct gathering g = { .command = command, .record = operation->query };
	g.path = operation->path;
	if (braces)
		g.path = arena_printf(&command->arena, "%.*s%s%s", (int)(braces - operation->path),
			operation->path, remote_escape(&command->remote, id),
			braces + strlen("{id}"));
	args_each(command->spec, take_parameter, &g);
	if (operation->query && command->spec->sends && command->operands.count > 1)
		add_parameter(&g, command->spec->sends, command->operands.items[1]);
	return g.path;
}

static const struct field *find_row(const struct record *record, struct str name)
{
	const struct field *row = record->rows;
	while (!str_is(name, row->name))
		row++;
	return row;
}

void plain_print(struct command *command, struct json *j)
{
	const struct operation *operation = operation_of(command);
	struct gathering g = { .command = command, .record = operation->takes, .j = j };
	struct str rest = str_from(command->spec->sends ? command->spec->sends : ""), name;
	size_t at = strstr(operation->path, "{id}") != NULL;
	const text_list *operands = &command->operands;
	for (; at < operands->count && str_next(&rest, ' ', &name); at++) {
		const struct field *row = find_row(operation->takes, name);
		const text_list others = { operands->items + at, operands->count - at, 0 };
		if (row->kind == FIELD_TEXTS)
			json_texts(j, row->name, &others);
		else
			json_text(j, row->name, operands->items[at]);
	}
	args_each(command->spec, take_member, &g);
}

int plain_ask_with(struct command *command, plain_more_fn *more, const void *ctx,
	struct remote_answer *answer, struct error *err)
{
	const struct operation *operation = operation_of(command);
	const struct arg_spec *spec = command->spec;
	const text_list *operands = &command->operands;
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	if (spec->check && spec->check(operands->items[0], err))
		return -1;
	json_object(&j, NULL);
	if (operation->takes)
		plain_print(command, &j);
	if (more && more(ctx, &j, err))
		return -1;
	json_end(&j);
	if (spec->cancels)
		command->remote.cancels = spec->cancels;
	if (spec->afterwards)
		command->remote.interrupted_hint = spec->afterwards;
	return remote_call(&command->remote, operation->method,
		plain_path(command, operands->count ? operands->items[0] : NULL),
		operation->takes ? &body : NULL, answer, err);
}

int plain_ask(struct command *command, struct remote_answer *answer, struct error *err)
{
	return plain_ask_with(command, NULL, NULL, answer, err);
}

int plain_show(struct command *command, const struct remote_answer *answer)
{
	const struct arg_spec *spec = command->spec;
	const char *text = json_member_text(answer->value, spec->prints ? spec->prints : "name");
	int code = spec->show ? spec->show(command, answer->value) : 0;
	if (command->json) {
		buf_clear(&command->out);
		remote_print_answer(answer, &command->out);
	} else if (!spec->show) {
		buf_text(&command->out, text ? text : "");
		buf_end_line(&command->out);
	}
	return code;
}

int plain_run(struct command *command, struct error *err)
{
	struct remote_answer answer = { 0 };
	return plain_ask(command, &answer, err) ? -1 : plain_show(command, &answer);
}

int plain_each(struct command *command, const char *done, struct error *err)
{
	const struct operation *operation = operation_of(command);
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	cli_ones all = { 0 };
	json_object(&j, NULL);
	if (operation->takes)
		plain_print(command, &j);
	json_end(&j);
	if (remote_open(&command->remote, err))
		return -1;
	for (size_t i = 0; i < command->operands.count; i++) {
		struct cli_one one = { .name = command->operands.items[i] };
		one.has_failed = remote_call(&command->remote, operation->method,
			plain_path(command, one.name), operation->takes ? &body : NULL, NULL,
			&one.err);
		vec_push(&command->arena, &all, one);
	}
	return cli_print_ones(command, &all, done, 0, err);
}

/* ---- ls, rm ---- */

int plain_list(struct command *command, struct error *err)
{
	const struct arg_spec *spec = command->spec;
	return listing_print_records(
		command, spec->record, spec->key, plain_path(command, NULL), err);
}

int plain_remove(struct command *command, struct error *err)
{
	const struct arg_spec *spec = command->spec;
	const text_list *names = &command->operands;
	const char *path = operation_of(command)->path;
	for (size_t i = 0; spec->check && i < names->count; i++)
		if (spec->check(names->items[i], err))
			return -1;
	path = arena_printf(&command->arena, "%.*s", (int)(strstr(path, "/{id}") - path), path);
	return removal_run(command, path, names, spec->removal, NULL, err);
}
