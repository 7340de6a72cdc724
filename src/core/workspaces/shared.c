#include "core/workspaces/shared.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "core/internal.h"
#include "sandbox/plan/grants.h"

static int open_trees(const struct core *core, int *fd, struct error *err)
{
	return home_open_directory(&core->home, "trees", fd, err);
}

static bool has_attached(const struct core_workspace *w, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < w->model.attach.count; i++)
		if (!strncmp(w->model.attach.items[i], name, len) &&
			w->model.attach.items[i][len] == ':')
			return true;
	return false;
}

int core_tree_create(
	const struct request *request, struct core *core, const char *name, struct error *err)
{
	auto_close int trees = -1;
	if (access_check(core, request, VERB_TREE_CREATE, NULL, err) ||
		grant_check_tree(name, err) || open_trees(core, &trees, err))
		return -1;
	if (mkdirat(trees, name, 0755) == 0)
		return fsync(trees) ? fail_errno(err, "make the shared tree '%s'", name) : 0;
	return errno == EEXIST ? fail_hint(err, ERR_CONFLICT, "choose another name",
					 "the shared tree '%s' already exists", name)
			       : fail_errno(err, "make the shared tree '%s'", name);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct shared_tree *)a)->name, ((const struct shared_tree *)b)->name);
}

int core_tree_list(const struct request *request, struct core *core, struct arena *arena,
	shared_tree_list *trees, struct error *err)
{
	auto_close int fd = -1;
	struct dirent *entry;
	if (access_check(core, request, VERB_TREE_LIST, NULL, err) || open_trees(core, &fd, err))
		return -1;
	auto_walk DIR *dir = walk_open(fd, ".");
	while ((entry = walk_next(dir))) {
		struct shared_tree tree = { .name = arena_text(arena, entry->d_name) };
		if (entry->d_name[0] == '.')
			continue;
		for (const struct core_workspace *w = core->newest; w; w = w->older)
			if (has_attached(w, tree.name))
				vec_push(arena, &tree.workspaces,
					(const char *)arena_text(arena, w->model.name));
		vec_push(arena, trees, tree);
	}
	if (trees->count)
		qsort(trees->items, trees->count, sizeof *trees->items, compare_names);
	return 0;
}

int core_tree_remove(
	const struct request *request, struct core *core, const char *name, struct error *err)
{
	char gone[8 + ID_LEN], id[ID_LEN + 1];
	auto_close int trees = -1;
	if (access_check(core, request, VERB_TREE_REMOVE, NULL, err) ||
		grant_check_tree(name, err) || open_trees(core, &trees, err))
		return -1;
	for (const struct core_workspace *w = core->newest; w; w = w->older)
		if (has_attached(w, name))
			return fail_hint(err, ERR_CONFLICT, "remove these workspaces first",
				"workspace '%s' has the shared tree '%s' attached", w->model.name,
				name);
	id_make(id);
	str_format(gone, sizeof gone, ".del-%s", id);
	fault_point("core_tree_remove");
	/* A command may have taken the rights that a move needs. If there is no such tree, the move
	 * says so. */
	(void)!path_grant_access(trees, name);
	if (renameat(trees, name, core->workspaces, gone))
		return errno == ENOENT ? fail_hint(err, ERR_NOT_FOUND, "carrel tree ls lists them",
						 "there is no shared tree '%s'", name)
				       : fail_errno(err, "remove the shared tree '%s'", name);
	trees_clean_later(core);
	return 0;
}
