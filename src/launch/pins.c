#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "launch/parts.h"

/* The environment of that name may have been replaced since it was pinned: then the old one lives
 * on for those who use it. */
static bool is_current(struct launcher *launcher, const struct pin *pin)
{
	char path[512];
	struct stat st;
	if (!str_format(path, sizeof path, "%s/meta.json", pin->name))
		return false;
	home_enter(launcher->home);
	int failed = fstatat(launcher->envs.dir, path, &st, AT_SYMLINK_NOFOLLOW);
	home_leave(launcher->home);
	return !failed && st.st_dev == pin->device && st.st_ino == pin->inode;
}

static void free_pin(struct pin *pin)
{
	fd_close(&pin->fd);
	arena_done(&pin->arena);
	free(pin);
}

int pin_take(struct launcher *launcher, const char *name, struct pin **pin, struct error *err)
{
	struct stat st;
	for (struct pin *known = launcher->pins; known; known = known->next)
		if (!strcmp(known->name, name) && is_current(launcher, known)) {
			known->users++;
			*pin = known;
			return 0;
		}
	struct pin *made = calloc(1, sizeof *made);
	if (!made)
		abort();
	made->fd = -1;
	made->users = 1;
	arena_init(&made->arena);
	made->name = arena_text(&made->arena, name);
	int failed = env_use(&launcher->envs, name, &made->arena, &made->meta, &made->fd, err);
	if (!failed && fstat(made->fd, &st))
		failed = fail_errno(err, "look at environment '%s'", name);
	if (failed) {
		free_pin(made);
		return -1;
	}
	made->device = st.st_dev;
	made->inode = st.st_ino;
	made->next = launcher->pins;
	launcher->pins = *pin = made;
	return 0;
}

void pin_give(struct launcher *launcher, struct pin *pin)
{
	if (!pin || --pin->users)
		return;
	struct pin **at = &launcher->pins;
	while (*at != pin)
		at = &(*at)->next;
	*at = pin->next;
	free_pin(pin);
}
