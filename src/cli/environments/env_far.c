/* carrel env ls and show with a daemon on another machine: what GET /v1/environments tells. */
#include "base/clock.h"
#include "cli/columns.h"
#include "cli/environments/env.h"
#include "format/text/quantity.h"

static const char *format_size(struct arena *arena, const struct json_value *item)
{
	uint64_t bytes;
	char size[16];
	if (!json_member_u64(item, "size_bytes", &bytes))
		return NULL;
	quantity_format_size(size, bytes);
	return arena_text(arena, size);
}

static const char *format_version(struct arena *arena, const struct json_value *item)
{
	const char *node = json_member_text(item, "node_version");
	return node ? arena_printf(arena, "node %s", node)
		    : json_member_text(item, "python_version");
}

static const char *format_age(struct arena *arena, const struct json_value *item, const char *key)
{
	char age[32];
	columns_format_age(age, json_member_text(item, key), clock_now_ms());
	return arena_text(arena, age);
}

static void add_line(struct listing *listing, const struct json_value *item)
{
	struct arena *arena = listing->columns.arena;
	const struct json_value *packages = json_member(item, "installed_packages");
	uint64_t uses = 0;
	json_member_u64(item, "use_count", &uses);
	columns_add(&listing->columns,
		(const char *[]){ json_member_text(item, "name"), format_version(arena, item),
			packages ? arena_printf(arena, "%zu", packages->count) : NULL,
			format_size(arena, item), format_age(arena, item, "created_at"),
			json_member_true(item, "in_use") ? "in use"
			: uses				 ? format_age(arena, item, "last_used_at")
							 : NULL,
			arena_printf(arena, "%" PRIu64, uses) });
}

int env_list_far(struct command *command, struct error *err)
{
	static const char *const heads[] = { "NAME", "VERSION", "PACKAGES", "SIZE", "CREATED",
		"LAST-USED", "USES" };
	struct listing listing = { .command = command,
		.columns = { .count = 7,
			.numbers = 1 << 2 | 1 << 3 | 1 << 6,
			.arena = &command->arena },
		.add = add_line };
	columns_add(&listing.columns, heads);
	return listing_print(&listing, "/v1/environments", err);
}

/* Its full name, or the latest of that package id. */
struct wanted {
	const char *name;
	const struct json_value *found;
};

static void look(void *ctx, const struct json_value *item)
{
	struct wanted *wanted = ctx;
	const char *name = json_member_text(item, "name"),
		   *id = json_member_text(item, "package_id");
	const char *made = json_member_text(item, "created_at");
	const char *before = wanted->found ? json_member_text(wanted->found, "created_at") : NULL;
	bool is_it = name && !strcmp(name, wanted->name);
	if (is_it || (id && !strcmp(id, wanted->name) &&
			     (!before || (made && strcmp(made, before) > 0))))
		wanted->found = item;
}

static void print_text(struct command *command, const struct json_value *item)
{
	static const char *const rows[][2] = { { "name", "name" }, { "package id", "package_id" },
		{ "state", "state" }, { "problem", "problem" }, { "kind", "kind" },
		{ "created", "created_at" }, { "last used", "last_used_at" } };
	struct buf *out = &command->out;
	const struct json_value *packages = json_member(item, "installed_packages");
	const char *version = format_version(&command->arena, item);
	const char *size = format_size(&command->arena, item);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (json_member_text(item, rows[i][1]))
			buf_printf(
				out, "%-13s %s\n", rows[i][0], json_member_text(item, rows[i][1]));
	buf_printf(out, "%-13s %s\n", "version", version ? version : "-");
	buf_printf(out, "%-13s %s\n", "size", size ? size : "-");
	const struct json_value *one = packages ? packages->first : NULL;
	for (bool is_first = true; one; one = one->next, is_first = false)
		if (one->kind == JSON_STRING)
			buf_printf(out, "%-13s %s==%s\n", is_first ? "packages" : "", one->key.data,
				one->string.data);
}

int env_show_far(struct command *command, struct error *err)
{
	struct wanted wanted = { .name = command->operands.items[0] };
	if (command->options.log && remote_refuse_far(&command->remote, "env show --log",
					    "run it on that machine", err))
		return -1;
	if (remote_each(&command->remote, "/v1/environments", look, &wanted, err))
		return -1;
	if (!wanted.found)
		return fail_hint(err, ERR_NOT_FOUND, "carrel env ls lists them",
			"there is no environment '%s'", wanted.name);
	if (command->json)
		json_copy(&command->value, NULL, wanted.found);
	else
		print_text(command, wanted.found);
	return 0;
}
