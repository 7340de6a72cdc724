/* environment.c -- what bench/environments.py can't time from outside, in the library's own code:
 *	environment mount NAME		the overlay of that environment's layers, as a sandbox has
 *it environment compose PKG...	an environment of these packages, whose layers are there Requests
 *and answers are as in spawn.c: a line on stdin, "<ns before> <ns after> 0" on stdout.
 * 1. mount: the word is what the clock runs for: "overlay" (two directories, the overlay, and its
 * place in the tree) or "upper" (the tmpfs on top of it, too). Namespaces are made once, and so is
 * the view of the layers: idmapped when root asks, as in `carrel run`.
 * 2. compose: the word is a package_id of which there is no environment yet. The clock runs for
 *what `carrel env build` does between reading its arguments and printing the name. The store is
 *that of $CARREL_HOME. Whatever fails is said on stderr and ends the process with 1. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "envs/build.h"
#include "linux/mount.h"
#include "linux/namespace.h"
#include "linux/overlay.h"

struct site {
	struct arena arena;
	struct home home;
	struct env_store store;
};
/* One request: the clock's two readings. */
typedef int serve_fn(
	void *ctx, const char *word, uint64_t *before, uint64_t *after, struct error *err);

static int open_site(struct site *site, struct error *err)
{
	const char *path;

	arena_init(&site->arena);
	if (home_find_path(&site->arena, &path, err) ||
		home_open(path, &site->arena, &site->home, err))
		return -1;
	return env_store_open(&site->home, &site->arena, &site->store, err);
}

static int serve(serve_fn *one, void *ctx, struct error *err)
{
	char line[256];

	while (fgets(line, sizeof line, stdin)) {
		uint64_t before = 0, after = 0;

		line[strcspn(line, "\n")] = 0;
		if (one(ctx, line, &before, &after, err))
			return error_context(err, "'%s'", line);
		printf("%llu %llu 0\n", (unsigned long long)before, (unsigned long long)after);
		if (fflush(stdout))
			return fail_errno(err, "answer");
	}
	return 0;
}

/* -- mount -- */

struct scene {
	const struct home *home;
	uid_t uid; /* outside: whom the sandbox's user is */
	gid_t gid;
	struct overlay overlay;
};

static int open_layers(const struct scene *scene, int *layers, struct error *err)
{
	const struct home *home = scene->home;
	struct mount_change change = { .propagation = MS_PRIVATE, .recursive = true };
	auto_close int userns = -1, tree = -1;
	char path[4096];

	if (!str_format(path, sizeof path, "%s/layers", home->path))
		return fail(err, ERR_LIMIT, "'%s' is too long", home->path);
	if (mount_clone(AT_FDCWD, path, &tree, err) || mount_change(tree, "", &change, err))
		return -1;
	if (home->is_foreign) {
		if (namespace_make_idmap(
			    home->uid, home->gid, scene->uid, scene->gid, &userns, err))
			return -1;
		change = (struct mount_change){ .set = MOUNT_ATTR_IDMAP, .idmap = userns };
		if (mount_change(tree, "", &change, err))
			return -1;
	}
	*layers = take_fd(&tree);
	return 0;
}

static int make_upper(struct error *err)
{
	static const char *const options[] = { "size", "16777216", "mode", "0755", NULL };
	auto_close int tree = -1;

	if (mount_make("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &tree, err))
		return -1;
	return mount_attach(tree, AT_FDCWD, "top", err);
}

static int make_overlay(const struct scene *scene, struct error *err)
{
	auto_close int tree = -1;

	if (mkdir(scene->overlay.upper, 0755) || mkdir(scene->overlay.work, 0755))
		return fail_errno(err, "make the upper");
	if (overlay_make(&scene->overlay, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &tree, err))
		return -1;
	return mount_attach(tree, AT_FDCWD, "env", err);
}

static int mount_one(
	void *ctx, const char *word, uint64_t *before, uint64_t *after, struct error *err)
{
	const struct scene *scene = ctx;
	struct stat st;

	*before = clock_monotonic_ns();
	if (make_upper(err))
		return -1;
	if (strcmp(word, "upper") != 0)
		*before = clock_monotonic_ns();
	if (make_overlay(scene, err))
		return -1;
	*after = clock_monotonic_ns();
	if (lstat("env/bin/python", &st))
		return fail_errno(err, "look for Python in the environment");
	if (umount2("env", 0) || umount2("top", 0))
		return fail_errno(err, "unmount");
	return 0;
}

/* A directory of our own to work in, which nobody else sees: /tmp is covered. */
static int enter_scene(const struct scene *scene, int layers, struct error *err)
{
	static const char *const options[] = { "mode", "0755", NULL };
	auto_close int tree = -1, view = layers;

	if (view < 0 && open_layers(scene, &view, err))
		return -1;
	if (mount_make("tmpfs", options, 0, &tree, err) ||
		mount_attach(tree, AT_FDCWD, "/tmp", err))
		return -1;
	if (chdir("/tmp") || mkdir("layers", 0755) || mkdir("top", 0755) || mkdir("env", 0755))
		return fail_errno(err, "make the mount points");
	return mount_attach(view, AT_FDCWD, "layers", err);
}

/* In the namespaces: never returns. */
static void play(struct scene *scene, int layers, int ready)
{
	const struct namespace_ids own = { 0, scene->uid, 0, scene->gid };
	struct error err;
	char go;
	int failed;

	if (scene->home->is_foreign)
		failed = read(ready, &go, 1) != 1 ? fail(&err, ERR_FAILED, "no id maps") : 0;
	else
		failed = namespace_write_maps(0, &own, true, &err);
	if (!failed && scene->home->is_foreign && (setresgid(0, 0, 0) || setresuid(0, 0, 0)))
		failed = fail_errno(&err, "become the sandbox's user");
	if (failed || enter_scene(scene, layers, &err) || serve(mount_one, scene, &err)) {
		fprintf(stderr, "environment: %s\n", err.text);
		_exit(1);
	}
	_exit(0);
}

static int run_scene(struct scene *scene, int *exit_code, struct error *err)
{
	const struct namespace_ids ids = { 0, scene->uid, 0, scene->gid };
	auto_close int layers = -1, pidfd = -1, ready = -1, go = -1;
	int ends[2], status;
	pid_t pid;

	if (scene->home->is_foreign && open_layers(scene, &layers, err))
		return -1;
	if (pipe2(ends, O_CLOEXEC))
		return fail_errno(err, "make a pipe");
	ready = ends[0];
	go = ends[1];
	if (namespace_clone(CLONE_NEWUSER | CLONE_NEWNS, -1, &pidfd, &pid, err))
		return -1;
	if (pid == 0) {
		fd_close(&go);
		play(scene, layers, ready);
	}
	int failed = scene->home->is_foreign ? namespace_write_maps(pid, &ids, true, err) : 0;
	if (!failed && scene->home->is_foreign && write(go, "", 1) != 1)
		failed = fail_errno(err, "start");
	fd_close(&go);
	if (failed)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return fail_errno(err, "wait");
	*exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	return failed;
}

static int serve_mounts(struct site *site, const char *text, int *exit_code, struct error *err)
{
	bool is_root = site->home.is_foreign;
	VEC(const char *) lowers = { 0 };
	struct env_meta meta;
	const char *name;

	if (!overlay_takes_tmpfs())
		return fail(err, ERR_UNAVAILABLE, "a tmpfs can't be an upper on this kernel");
	if (env_resolve(&site->store, text, &site->arena, &name, err) ||
		env_read(&site->store, name, &site->arena, &meta, err))
		return -1;
	for (size_t i = 0; i < meta.layers.count; i++)
		vec_push(&site->arena, &lowers,
			arena_printf(&site->arena, "%s/tree", meta.layers.items[i]));
	struct scene scene = { .home = &site->home,
		/* Root's sandboxes have ids of their own, not the home's. */
		.uid = is_root ? site->home.uid + 1 : geteuid(),
		.gid = is_root ? site->home.gid + 1 : getegid(),
		.overlay = { .layers = "layers",
			.lowers = lowers.items,
			.lower_count = lowers.count,
			.upper = "top/upper",
			.work = "top/work",
			.is_throwaway = true,
			.scratch = "top/scratch" } };
	return run_scene(&scene, exit_code, err);
}

/* -- compose -- */

struct order {
	struct env_store *store;
	char **packages;
};

static int compose_one(
	void *ctx, const char *word, uint64_t *before, uint64_t *after, struct error *err)
{
	const struct order *order = ctx;
	auto_arena struct arena arena;
	struct env_request request = { .package_id = word };
	struct env_wanted wanted = { 0 };
	struct build_problem problem;
	struct env_meta meta;
	bool was_there = false;

	arena_init(&arena);
	for (char **package = order->packages; *package; package++)
		vec_push(&arena, &request.pip, *package);
	*before = clock_monotonic_ns();
	if (env_request_prepare(order->store, &request, &arena, &wanted, &problem, err))
		return -1;
	int made = env_compose(order->store, &wanted, &arena, &meta, &was_there, &problem, err);
	*after = clock_monotonic_ns();
	if (made < 0)
		return -1;
	if (!made || was_there)
		return fail(err, ERR_FAILED,
			made ? "that environment was there" : "something has to be built");
	return 0;
}

int main(int argc, char **argv)
{
	struct site site = { .home = { .dir = -1 },
		.store = { .dir = -1, .layers = { .dir = -1 } } };
	struct error err;
	int code = 0, failed;

	if (argc < 3 || (strcmp(argv[1], "mount") != 0 && strcmp(argv[1], "compose") != 0)) {
		fprintf(stderr, "usage: environment mount NAME | environment compose PKG...\n");
		return 2;
	}
	failed = open_site(&site, &err);
	if (!failed && strcmp(argv[1], "mount") == 0) {
		failed = serve_mounts(&site, argv[2], &code, &err);
	} else if (!failed) {
		struct order order = { &site.store, argv + 2 };
		failed = serve(compose_one, &order, &err);
	}
	if (failed)
		fprintf(stderr, "environment: %s\n", err.text);
	env_store_done(&site.store);
	home_done(&site.home);
	arena_done(&site.arena);
	return failed ? 1 : code;
}
