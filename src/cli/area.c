#include "cli/area.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/walk.h"
#include "sandbox/plan/plan.h"
#include "trees/stacks/apply.h"
#include "trees/stacks/snapshots.h"

#define ROOT_PLACE "/var/tmp"
#define USER_PLACE "reviews" /* in the home, which is the caller's alone */
#define TARGET "target"	     /* a file: the directory that is changed */
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Of a process that was killed: what it had begun to apply is undone. */
static void recover(int place, const char *name)
{
	auto_arena struct arena arena = { 0 };
	struct stat st;
	struct error err;
	struct str target;
	auto_close int area = openat(place, name, DIRECTORY);
	if (area < 0 || fstat(area, &st) || st.st_uid != geteuid() ||
		flock(area, LOCK_EX | LOCK_NB) ||
		file_read_at(area, TARGET, PATH_MAX, &arena, &target))
		return;
	auto_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int dir = path_open_nolinks(root, target.data + 1, O_RDONLY | O_DIRECTORY, 0);
	if (dir >= 0 && apply_recover(dir, area, target.data, &err)) {
		cli_say("warning: %s", err.text);
		return;
	}
	path_remove_tree(place, name, &err);
}

static void recover_all(const char *path)
{
	auto_close int place = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_walk DIR *walk = place < 0 ? NULL : walk_open(place, ".");
	struct dirent *entry;
	while ((entry = walk_next(walk)))
		if (!strncmp(entry->d_name, AREA_PREFIX, strlen(AREA_PREFIX)))
			recover(place, entry->d_name);
}

int area_find_place(struct area *area, struct command *command, struct error *err)
{
	auto_close int dir = -1;
	area->place = ROOT_PLACE;
	if (geteuid() == 0 || command->options.plan)
		return 0;
	if (cli_open_home(command, err) ||
		home_open_directory(&command->home, USER_PLACE, &dir, err))
		return -1;
	area->place = arena_printf(&command->arena, "%s/" USER_PLACE, command->home.path);
	return 0;
}

int area_make(struct area *area, const char *target, struct error *err)
{
	char path[PATH_MAX];
	recover_all(area->place);
	str_format(path, sizeof path, "%s/" AREA_PREFIX "XXXXXX", area->place);
	if (!mkdtemp(path))
		return fail_errno(err, "make a directory in '%s'", area->place);
	str_copy(area->name, sizeof area->name, path_basename(path));
	area->fd = open(path, DIRECTORY);
	if (area->fd < 0 || flock(area->fd, LOCK_EX | LOCK_NB))
		return fail_errno(err, "open '%s'", path);
	if (file_create(area->fd, TARGET, 0600, str_from(target)))
		return fail_errno(err, "write to '%s'", path);
	return 0;
}

void area_done(struct area *area)
{
	struct error err;
	auto_close int place =
		area->name[0] ? open(area->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (place >= 0 && path_remove_tree(place, area->name, &err))
		cli_say("warning: '%s/%s' could not be removed: %s", area->place, area->name,
			err.text);
	area->name[0] = 0;
	fd_close(&area->fd);
}

const char *area_protection(const char *path, char change, mode_t after, bool is_meta)
{
	for (const char *const *name = plan_protected_names; *name; name++) {
		/* A repository directory is created and used; files that git obeys in it have
		 * entries of their own. A link or a file `.git` would lead to a repository
		 * elsewhere. */
		bool is_kept = change == SNAPSHOT_ADDED ? S_ISDIR(after) : is_meta;
		if (!strcmp(*name, ".git") ? !strcmp(path, *name) && !is_kept
					   : path_is_beneath(path, *name))
			return "protected: see --writable-config";
	}
	return NULL;
}
