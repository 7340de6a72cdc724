#include "cli/columns.h"

#include <unistd.h>
#include "base/clock.h"
#include "format/text/quantity.h"
#include "linux/pty.h"

#define CELL_SIZE 1024

void columns_add(struct columns *columns, const char *const *cells)
{
	char shown[CELL_SIZE];
	for (unsigned i = 0; i < columns->count; i++) {
		str_printable(
			shown, sizeof shown, str_from(cells[i] && cells[i][0] ? cells[i] : "-"));
		vec_push(columns->arena, &columns->cells, arena_text(columns->arena, shown));
	}
}

static const char *number_text(
	struct arena *arena, const struct field *row, const struct json_value *v)
{
	char size[16];
	if (v->kind != JSON_NUMBER || (v->is_integer && v->integer < 0))
		return NULL;
	if (!v->is_integer || row->kind == FIELD_CPUS)
		return arena_printf(arena, "%g", v->number);
	uint64_t number = (uint64_t)v->integer;
	if (row->kind == FIELD_SIZE) {
		quantity_format_size(size, number);
		return arena_text(arena, size);
	}
	if (row->kind != FIELD_DURATION)
		return arena_printf(arena, "%" PRIu64, number);
	return number % 1000 ? arena_printf(arena, "%" PRIu64 "ms", number)
			     : arena_printf(arena, "%" PRIu64 "s", number / 1000);
}

/* "memory 2.0G, cpu-time 30s": numbers that there are, by the names of their options. */
static const char *object_text(
	struct arena *arena, const struct record *record, const struct json_value *object)
{
	const char *joined = "";
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		const struct json_value *v = json_member(object, field_name(row, FIELD_OUT).text);
		const char *text =
			v && field_is(record, row, FIELD_OUT) ? number_text(arena, row, v) : NULL;
		struct field_name name = field_name(row, FIELD_IN);
		for (char *c = name.text; *c; c++)
			*c = *c == '_' ? '-' : *c;
		if (text)
			joined = arena_printf(
				arena, "%s%s%s %s", joined, joined[0] ? ", " : "", name.text, text);
	}
	return joined;
}

/* {"K":"V",...} as K=V,K=V; a value that is null as (hidden). */
static const char *pairs_text(struct arena *arena, const struct json_value *object)
{
	const char *joined = "";
	if (object->kind != JSON_OBJECT)
		return joined;
	for (const struct json_value *item = object->first; item; item = item->next)
		joined = arena_printf(arena, "%s%s%s=%s", joined, joined[0] ? "," : "",
			item->key.data, item->kind == JSON_STRING ? item->string.data : "(hidden)");
	return joined;
}

void columns_format_age(char out[32], const char *time, int64_t now_ms)
{
	static const struct {
		int64_t ms;
		const char *unit;
	} units[] = { { 365ll * 86400000, "y" }, { 86400000, "d" }, { 3600000, "h" },
		{ 60000, "m" }, { 1000, "s" } };
	int64_t then;
	bool is_time = time && env_time_parse(time, &then);
	int64_t age = is_time ? env_age_ms(time, now_ms) : 0;
	str_copy(out, 32, is_time ? "now" : "-");
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (age >= units[i].ms) {
			str_format(out, 32, "%lld%s ago", (long long)(age / units[i].ms),
				units[i].unit);
			return;
		}
}

const char *columns_age(struct arena *arena, const char *time)
{
	char age[32];
	columns_format_age(age, time, clock_now_ms());
	return arena_bytes(arena, age, strcspn(age, " "));
}

const char *columns_list(struct arena *arena, const struct json_value *array)
{
	const char *joined = "";
	for (const struct json_value *item = array ? array->first : NULL; item; item = item->next)
		if (item->kind == JSON_STRING)
			joined = arena_printf(
				arena, "%s%s%s", joined, joined[0] ? ", " : "", item->string.data);
	return joined;
}

const char *columns_text(
	struct arena *arena, const struct field *row, const struct json_value *object)
{
	const struct field_name name = field_name(row, FIELD_OUT);
	const struct json_value *v = json_member(object, name.text);
	if (!v || v->kind == JSON_NULL)
		return NULL;
	switch (row->kind) {
	case FIELD_BOOLEAN:
		return v->boolean ? "yes" : "no";
	case FIELD_TIME:
		return columns_age(arena, json_member_text(object, name.text));
	case FIELD_PAIRS:
		return pairs_text(arena, v);
	case FIELD_TEXTS:
		return columns_list(arena, v);
	case FIELD_OBJECT:
		return object_text(arena, row->object, v);
	default:
		return v->kind == JSON_NUMBER ? number_text(arena, row, v)
					      : json_member_text(object, name.text);
	}
}

static const struct field *find_column(const struct record *record, unsigned place)
{
	for (size_t i = 0; i < record->count; i++)
		if (record->rows[i].column == place &&
			field_is(record, &record->rows[i], FIELD_OUT))
			return &record->rows[i];
	return NULL;
}

/* The columns that a record has, and one more with that head, or NULL: sets count and numbers, and
 * adds the heads. */
static void begin_columns(
	struct columns *columns, const struct record *record, const char *last_head)
{
	const char *heads[COLUMNS_MAX];
	const struct field *row;
	columns->count = columns->numbers = 0;
	while (columns->count < COLUMNS_MAX && (row = find_column(record, columns->count + 1))) {
		if (row->kind == FIELD_SIZE || row->kind == FIELD_INTEGER)
			columns->numbers |= 1u << columns->count;
		heads[columns->count++] = row->head;
	}
	if (last_head)
		heads[columns->count++] = last_head;
	columns_add(columns, heads);
}

/* One line of what an object shows. name: in place of its own, or of that of its workspace; NULL:
 * none. last: what the further column has. */
static void add_object(struct columns *columns, const struct record *record,
	const struct json_value *object, const char *name, const char *last)
{
	const char *cells[COLUMNS_MAX];
	for (unsigned i = 0; i < columns->count; i++) {
		const struct field *row = find_column(record, i + 1);
		bool is_name = row && name &&
			       (!strcmp(row->name, "name") || !strcmp(row->name, "workspace_name"));
		cells[i] = is_name ? name : row ? columns_text(columns->arena, row, object) : last;
	}
	columns_add(columns, cells);
}

/* Characters, not bytes: names may be in any script. */
static size_t width_of(const char *text)
{
	size_t width = 0;
	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static void print_spaces(struct buf *out, size_t count)
{
	while (count--)
		buf_char(out, ' ');
}

/* As much of `text` as `room` columns hold, with an ellipsis where that isn't all. */
static void print_cut(struct buf *out, const char *text, size_t room)
{
	const char *end = text;
	if (width_of(text) <= room) {
		buf_text(out, text);
		return;
	}
	for (size_t width = 0; width < room; width++)
		do
			end++;
		while (((unsigned char)*end & 0xc0) == 0x80);
	buf_append(out, text, (size_t)(end - text));
	buf_text(out, "…");
}

/* The columns of standard output, or 0 when that is not a terminal. */
static unsigned columns_width(void)
{
	struct pty_size size = { 0, 0 };
	struct error err;
	return isatty(STDOUT_FILENO) && !pty_get_size(STDOUT_FILENO, &size, &err) ? size.columns
										  : 0;
}

void columns_print(const struct columns *columns, struct buf *out)
{
	size_t widths[COLUMNS_MAX] = { 0 }, before = 1; /* the ellipsis has room, too */
	for (size_t i = 0; i < columns->cells.count; i++) {
		size_t width = width_of(columns->cells.items[i]);
		if (width > widths[i % columns->count])
			widths[i % columns->count] = width;
	}
	for (unsigned i = 0; i + 1 < columns->count; i++)
		before += widths[i] + 2;
	/* On a window too narrow for the others it is shown as it is. */
	size_t room = columns->width > before + 8 ? columns->width - before : (size_t)-1;
	for (size_t i = 0; i < columns->cells.count; i++) {
		unsigned column = (unsigned)(i % columns->count);
		const char *cell = columns->cells.items[i];
		bool is_number = columns->numbers >> column & 1,
		     is_last = column + 1 == columns->count;
		size_t space = widths[column] - width_of(cell);
		if (is_number)
			print_spaces(out, space);
		if (is_last)
			print_cut(out, cell, room);
		else
			buf_text(out, cell);
		if (!is_number && !is_last)
			print_spaces(out, space);
		buf_text(out, is_last ? "\n" : "  ");
	}
}

static void add_item(void *ctx, const struct json_value *item)
{
	struct listing *listing = ctx;
	if (listing->is_wanted && !listing->is_wanted(listing->command, item))
		return;
	if (listing->command->json)
		json_copy(&listing->command->value, NULL, item);
	else
		listing->add(listing, item);
}

int listing_print(struct listing *listing, const char *path, struct error *err)
{
	struct command *command = listing->command;
	listing->columns.width = columns_width();
	if (command->json)
		json_array(&command->value, NULL);
	if (remote_each(&command->remote, path, add_item, listing, err))
		return -1;
	if (command->json)
		json_end(&command->value);
	else
		columns_print(&listing->columns, &command->out);
	return 0;
}

static void add_record(struct listing *listing, const struct json_value *item)
{
	const char *key = json_member_text(item, listing->key);
	const char *name = listing->name
				   ? listing->name(listing, item)
				   : workspace_names_find(&listing->names, item, "workspace", NULL);
	if (listing->command->options.quiet)
		buf_printf(&listing->command->out, "%s\n", key ? key : "-");
	else
		add_object(&listing->columns, listing->record, item, name,
			listing->text ? listing->text(listing->command, item) : NULL);
}

int listing_print_named(struct listing *listing, const char *path, struct error *err)
{
	struct command *command = listing->command;
	listing->columns.arena = &command->arena;
	listing->add = add_record;
	if (!command->options.quiet)
		begin_columns(&listing->columns, listing->record, listing->head);
	if (listing->is_of_workspaces && !command->json && !command->options.quiet &&
		workspace_names_read(&listing->names, &command->remote, true, err))
		return -1;
	return listing_print(listing, path, err);
}

int listing_print_records(struct command *command, const struct record *record, const char *key,
	const char *path, struct error *err)
{
	struct listing listing = { .command = command, .record = record, .key = key };
	return listing_print_named(&listing, path, err);
}
