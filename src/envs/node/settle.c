/* Packages of Node that frozen layers hide. */
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "base/fd.h"
#include "envs/node/units.h"
#include "envs/settle.h"
#include "format/packages/node_package.h"

#define COMMANDS ".bin"

/* A package that the frozen layers have, or have deleted, is copied whole: its directory in the
 * upper hides theirs. */
static int show_unit(
	const struct settling *s, int tree, const struct node_unit *unit, struct error *err)
{
	struct stack_entry seen;
	auto_stack struct stack_dir parent = { 0 };
	auto_stack struct stack_dir own = { 0 };
	auto_close int dir = -1;
	if (settle_look(&s->stack, unit->path, &seen, &parent, err))
		return -1;
	if (seen.dir >= 0 && seen.layer == 0) /* a command's own, or copied before */
		return 0;
	if (seen.is_there && seen.layer > s->frozen)
		return 0;
	if (unit->entries.items[0]->kind != MANIFEST_DIRECTORY)
		return settle_copy_in(s, tree, unit->path, err);
	int made = settle_make_directory(s, str_from(unit->path), &dir, err);
	if (made)
		return made < 0 ? -1 : 0;
	if (fsetxattr(dir, UPPER_OPAQUE, "y", 1, 0))
		return fail_errno(err, "hide '%s' of a frozen layer", unit->path);
	for (size_t i = 1; i < unit->entries.count; i++) {
		const struct manifest_entry *entry = unit->entries.items[i];
		auto_close int below = -1;
		if (entry->kind == MANIFEST_DIRECTORY
				? settle_make_directory(s, str_from(entry->path), &below, err) < 0
				: settle_copy_in(s, tree, entry->path, err))
			return -1;
	}
	return 0;
}

/* Commands of packages that are gone. */
static int hide_commands(struct settling *s, struct error *err)
{
	struct arena *arena = s->arena;
	auto_stack struct stack_dir commands = { 0 };
	text_list names = { 0 };
	if (stack_enter(&s->below, COMMANDS, &commands, err) ||
		stack_names(&commands, 0, commands.count, arena, &names, err))
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		struct manifest_entry link = { .kind = MANIFEST_LINK };
		struct node_unit unit = { .path = arena_printf(
						  arena, COMMANDS "/%s", names.items[i]) };
		struct stack_entry seen;
		char target[PATH_MAX];
		if (stack_look(&commands, names.items[i], &seen, err))
			return -1;
		ssize_t len = seen.is_there ? readlinkat(seen.dir, names.items[i], target,
						      sizeof target - 1)
					    : -1;
		if (len < 0)
			continue;
		target[len] = 0;
		link.target = target;
		vec_push(arena, &unit.entries, (const struct manifest_entry *)&link);
		int shown = map_get(&s->forced, str_from(node_unit_package(&unit, arena)))
				    ? settle_is_outdated(s, unit.path, err)
				    : 0;
		if (shown < 0 || (shown && settle_hide(s, unit.path, err)))
			return -1;
	}
	return 0;
}

static int read_units(
	const struct settling *s, const text_list *ids, struct map *units, struct error *err)
{
	map_init(units, s->arena);
	for (size_t i = 0; i < ids->count; i++)
		if (node_units_read(s->layers, ids->items[i], s->arena, units, err) &&
			err->code != ERR_NOT_FOUND)
			return -1;
	return 0;
}

int env_node_unshadow(struct settling *s, struct error *err)
{
	struct map before, after;
	const struct node_unit *unit;
	if (read_units(s, &s->change->before, &before, err) ||
		read_units(s, &s->change->after, &after, err) || hide_commands(s, err))
		return -1;
	for (size_t i = 0; i < s->change->forced.count; i++) {
		const char *name = s->change->forced.items[i];
		if (!node_name_is_valid(name) || map_get(&after, str_from(name)))
			continue;
		int shown = settle_is_outdated(s, name, err);
		if (shown < 0 || (shown && settle_hide(s, name, err)))
			return -1;
	}
	for (size_t at = 0; (unit = map_next(&after, &at));) {
		const char *package = node_unit_package(unit, s->arena);
		bool is_wanted = map_get(&s->forced, str_from(package)) ||
				 !node_units_equal(unit, map_get(&before, str_from(unit->path)));
		/* An environment of Node is one layer. */
		if (is_wanted && show_unit(s, s->fds[s->count - 1], unit, err))
			return -1;
	}
	return 0;
}
