#include "envs/builder/environment.h"

#include <sys/stat.h>
#include "base/path.h"
#include "envs/kind.h"
#include "linux/overlay.h"
#include "sandbox/native/host.h"

/* What of `path` lies in the home, whose own path may have links in it; NULL: it isn't there. */
static const char *name_in_home(const struct home *home, const char *path)
{
	size_t len = strlen(home->path);
	return path_is_beneath(path, home->path) && path[len] ? path + len + 1 : NULL;
}

static bool is_reached_by_link(
	const struct home *home, const char *given, const char *name, const char *real)
{
	char base[PATH_MAX];
	size_t len;
	if (!name)
		return strcmp(given, real) != 0;
	if (!realpath(home->path, base))
		return true;
	len = strlen(base);
	return !path_is_beneath(real, base) || !real[len] || strcmp(real + len + 1, name) != 0;
}

int environment_look_at_source(const struct home *home, struct plan_bind *bind, const char *what,
	struct arena *arena, struct error *err)
{
	const char *given = bind->source, *name = name_in_home(home, given);
	if (host_look_at_source(bind, what, arena, err))
		return -1;
	if ((name || bind->kind == PATH_DIRECTORY) &&
		is_reached_by_link(home, given, name, bind->source))
		return fail(err, ERR_DENIED, "%s '%s' is reached through a link to '%s'", what,
			given, bind->source);
	if (name) {
		bind->source = home->path;
		bind->beneath = name;
		bind->owner_uid = home->uid;
		bind->owner_gid = home->gid;
	} else {
		bind->beneath = bind->source + 1;
		bind->source = "/";
	}
	return 0;
}

/* A directory of the home for this one sandbox, gone with it. */
static int make_upper(struct environment_mount *mount, struct arena *arena, struct error *err)
{
	const struct home *home = mount->layers->home;
	if (layer_stage_make(mount->layers, arena, &mount->upper, err))
		return -1;
	auto_leave const struct home *in = home_entered(home);
	if (mkdirat(mount->upper.fd, "upper", 0755) || mkdirat(mount->upper.fd, "work", 0755))
		return fail_errno(err, "make an upper in '%s'", mount->upper.path);
	mount->plan.upper = mount->upper.path + strlen(home->path) + 1; /* it lies in the home */
	return 0;
}

int environment_mount(const struct layer_store *layers, const struct env_meta *meta,
	const char *upper, struct arena *arena, struct plan_options *options,
	struct environment_mount *mount, struct error *err)
{
	const struct home *home = layers->home;
	const struct env_kind *kind = env_kind_of(meta);
	env_paths paths = { 0 };
	*mount = (struct environment_mount){ .layers = layers,
		.plan = { .target = kind->target,
			.again = kind->again,
			.variables = kind->variables,
			.programs = kind->programs,
			.has_interpreter = kind->has_interpreter,
			.base = home->path,
			.layers = "layers",
			.upper = upper,
			.owner_uid = home->uid,
			.owner_gid = home->gid },
		.upper = LAYER_STAGE_NONE };
	for (size_t i = 0; i < meta->layers.count; i++)
		vec_push(arena, &mount->plan.lowers,
			arena_printf(arena, "%s/tree", meta->layers.items[i]));
	if (!upper && !overlay_takes_tmpfs() && make_upper(mount, arena, err))
		return -1;
	if (kind->list_paths(home, meta, arena, &paths, err))
		return -1;
	for (size_t i = 0; i < paths.count; i++) {
		const struct env_path *path = &paths.items[i];
		struct plan_bind bind = { .source = path->path,
			.target = path->target ? path->target : path->path,
			.read_only = true,
			.is_environment = true,
			.is_tool = path->target != NULL };
		if (environment_look_at_source(home, &bind, path->what, arena, err))
			return -1;
		vec_push(arena, &options->binds, bind);
	}
	vec_push(arena, &options->environments, &mount->plan);
	return 0;
}

void environment_unmount(struct environment_mount *mount)
{
	struct error ignored; /* what stays is swept by the next build */
	if (mount->layers)
		layer_stage_done(mount->layers, &mount->upper, &ignored);
}
