/* repair_files.c -- the files of a package are those of its layer again: what a command has put on
 * top of them in the upper of its environment is removed. */
#include <fcntl.h>
#include "base/fd.h"
#include "base/path.h"
#include "core/packages/checkup.h"
#include "envs/kind.h"

static const struct env_meta *meta_of(const struct core_workspace *w, const struct env_kind *kind)
{
	for (size_t slot = 0; slot < ENV_KINDS; slot++)
		if (environment_kind(w, slot) == kind)
			return environment_pinned(w, slot);
	return NULL;
}

int repair_restore(const struct core_workspace *w, const struct env_kind *kind, const char *package,
	struct error *err)
{
	const struct core *core = w->core;
	const struct env_meta *meta = meta_of(w, kind);
	auto_arena struct arena arena = { 0 };
	char path[ID_LEN + 32];
	int found = 0;
	str_format(path, sizeof path, "%s/%s", w->model.id, kind->part->upper);
	auto_close int upper = path_open_nolinks(core->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
	if (upper < 0)
		return fail_errno(err, "open '%s'", path);
	for (size_t i = 0; meta && i < meta->layers.count; i++) {
		struct manifest manifest;
		if (layer_read(&core->envs.layers, meta->layers.items[i], &arena, &manifest, err))
			return -1;
		int restored = kind->restore(upper, &manifest, package, err);
		if (restored < 0)
			return -1;
		found |= restored;
	}
	return found;
}
