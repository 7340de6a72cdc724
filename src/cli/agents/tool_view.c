#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "cli/agents/tool.h"
#include "model/agents/tool.h"

#define LINK_PREFIX "venv_"

struct view {
	struct command *command;
	const char *home;
	pair_list links; /* name and target */
};

static void add_link(void *ctx, const struct json_value *item)
{
	struct view *view = ctx;
	struct arena *arena = &view->command->arena;
	const char *name = json_member_text(item, "name");
	const char *state = json_member_text(item, "state");
	const char *environment = json_member_text(item, "environment");
	if (!name || !state || strcmp(state, "active") != 0 || !environment)
		return;
	bool is_package = str_starts_with(str_from(name), TOOL_PACKAGE_PREFIX);
	vec_push(arena, &view->links,
		(struct text_pair){
			arena_printf(arena, "%s%s", is_package ? "" : LINK_PREFIX, name),
			arena_printf(arena, "%s/envs/%s", view->home, environment) });
}

/* Where a link of that name leads; NULL: it isn't a link. */
static const char *read_link(int dir, const char *name, char out[PATH_MAX])
{
	ssize_t len = readlinkat(dir, name, out, PATH_MAX - 1);
	if (len < 0)
		return NULL;
	out[len] = '\0';
	return out;
}

static bool is_wanted(const struct view *view, const char *name)
{
	for (size_t i = 0; i < view->links.count; i++)
		if (!strcmp(view->links.items[i].key, name))
			return true;
	return false;
}

static void remove_stale(const struct view *view, int dir)
{
	const char *inside = arena_printf(&view->command->arena, "%s/envs/", view->home);
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	DIR *all = copy >= 0 ? fdopendir(copy) : NULL;
	char target[PATH_MAX];
	struct dirent *entry;
	if (!all) {
		fd_close(&copy);
		return;
	}
	while ((entry = readdir(all))) {
		struct str name = str_from(entry->d_name);
		if ((str_starts_with(name, LINK_PREFIX) ||
			    str_starts_with(name, TOOL_PACKAGE_PREFIX)) &&
			!is_wanted(view, entry->d_name) && read_link(dir, entry->d_name, target) &&
			str_starts_with(str_from(target), inside))
			unlinkat(dir, entry->d_name, 0);
	}
	closedir(all);
}

/* Replaced by a rename: a reader finds the old one or the new one. */
static int make_link(int dir, const struct text_pair *link, struct error *err)
{
	char target[PATH_MAX], temporary[TOOL_NAME_MAX + 32];
	const char *there = read_link(dir, link->key, target);
	if (there && !strcmp(there, link->value))
		return 0;
	if (!there && !faccessat(dir, link->key, F_OK, AT_SYMLINK_NOFOLLOW))
		return fail(err, ERR_CONFLICT, "VENV_BASE: '%s' is not a link", link->key);
	str_format(temporary, sizeof temporary, ".%s.%d", link->key, (int)getpid());
	if (symlinkat(link->value, dir, temporary))
		return fail_errno(err, "VENV_BASE: make the link '%s'", link->key);
	if (renameat(dir, temporary, dir, link->key)) {
		fail_errno(err, "VENV_BASE: make the link '%s'", link->key);
		unlinkat(dir, temporary, 0);
		return -1;
	}
	return 0;
}

int tool_view_update(struct command *command, struct error *err)
{
	const char *base = getenv("VENV_BASE");
	struct view view = { .command = command };
	if (!base || !base[0])
		return 0;
	if (command->remote.is_far || command->remote.host) {
		cli_say("VENV_BASE: the environments are on the daemon's machine: no links are "
			"kept");
		return 0;
	}
	if (cli_open_home(command, err))
		return -1;
	view.home = command->home.path;
	if (remote_each(&command->remote, "/v1/tools", add_link, &view, err))
		return -1;
	if (mkdir(base, 0755) && errno != EEXIST)
		return fail_errno(err, "VENV_BASE: make '%s'", base);
	auto_close int dir = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "VENV_BASE: open '%s'", base);
	remove_stale(&view, dir);
	for (size_t i = 0; i < view.links.count; i++)
		if (make_link(dir, &view.links.items[i], err))
			return -1;
	return 0;
}
