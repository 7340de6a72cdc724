/* The verb that brings the upper of an environment in line: opens the trees for envs/settle.h. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "envs/settle.h"
#include "launch/trees/tree_job.h"

static int read_list(const struct tree_job *job, const char *key, bool are_layers, text_list *list,
	struct error *err)
{
	const struct json_value *value = job->options ? json_member(job->options, key) : NULL;
	for (value = value ? value->first : NULL; value; value = value->next) {
		bool is_text = value->kind == JSON_STRING &&
			       strlen(value->string.data) == value->string.len;
		if (!is_text || (are_layers && !layer_id_is_valid(value->string.data)))
			return fail(err, ERR_INVALID, "'%s' has something else than names", key);
		vec_push(job->arena, list, (const char *)value->string.data);
	}
	return 0;
}

static int open_upper(const struct tree_job *job, const char *target,
	const struct workspace_part *part, int *fd, struct error *err)
{
	const char *path = arena_printf(job->arena, "%s/%s", target, part->upper);
	if (!strncmp(target, "snap-", 5)) {
		path = arena_printf(job->arena, "%s/%s", target, part->name);
		if (mkdirat(job->layers, path, 0755) && errno != EEXIST)
			return fail_errno(err, "make '%s'", path);
		return tree_open_part(job, target, part->name, fd, err);
	}
	*fd = path_open_nolinks(job->workspaces, path, O_RDONLY | O_DIRECTORY, 0);
	return *fd < 0 && errno != ENOENT ? fail_errno(err, "open '%s'", path) : 0;
}

static int open_trees(struct settling *s, struct tree_job *job, const text_list *frozen,
	const char *part, tree_fds *fds, struct error *err)
{
	const text_list *after = &s->change->after;
	vec_push(job->arena, fds, fcntl(s->upper, F_DUPFD_CLOEXEC, 3));
	if (tree_add_parts(job, frozen, part, fds, err) ||
		tree_add_parts(job, after, "tree", fds, err))
		return -1;
	s->frozen = frozen->count;
	s->fds = fds->items;
	s->count = fds->count;
	for (size_t i = 0; i < after->count; i++)
		if (s->fds[1 + frozen->count + i] < 0)
			return fail(err, ERR_CORRUPT, "layer '%s' has no files", after->items[i]);
	return 0;
}

/* KIND, a workspace or the frozen layer that was copied of it, the frozen layers below; options
 * {"before", "after": ids of layers, "forced": names of packages}. */
int tree_settle(struct tree_job *job, struct error *err)
{
	struct upper_change change = { 0 };
	struct home home = { 0 };
	const struct layer_store layers = { &home, job->layers };
	struct settling s = {
		.layers = &layers, .change = &change, .arena = job->arena, .upper = -1
	};
	const char *name, *target;
	if (tree_take_name(job, &name, err) || tree_take_name(job, &target, err))
		return -1;
	text_list frozen = tree_take_list(job);
	const struct env_kind *kind = env_kind_find(name);
	if (!kind || read_list(job, "before", true, &change.before, err) ||
		read_list(job, "after", true, &change.after, err) ||
		read_list(job, "forced", false, &change.forced, err))
		return kind ? -1 : fail(err, ERR_INVALID, "unknown kind '%s'", name);
	auto_close int upper = -1;
	if (open_upper(job, target, kind->part, &upper, err))
		return -1;
	if (upper < 0) /* nothing was changed */
		return 0;
	s.upper = upper;
	auto_fds tree_fds fds = { 0 };
	int failed = open_trees(&s, job, &frozen, kind->part->name, &fds, err) ||
		     env_settle(kind, &s, err);
	fault_point("tree_settled");
	if (!failed && syncfs(upper))
		failed = fail_errno(err, "write the changes of an environment to disk");
	return failed ? -1 : 0;
}
