#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "launch/parts.h"

static struct pin *find(const struct launcher *launcher, const struct stat *st)
{
	for (struct pin *known = launcher->pins; known; known = known->next)
		if (known->device == st->st_dev && known->inode == st->st_ino)
			return known;
	return NULL;
}

int pin_take(struct launcher *launcher, int fd, struct pin **pin, struct error *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return fail_errno(err, "look at meta.json of an environment");
	if (!S_ISREG(st.st_mode) || st.st_uid != launcher->home->uid)
		return fail(err, ERR_DENIED,
			"meta.json of an environment does not belong to the home's owner");
	struct pin *found = find(launcher, &st);
	if (found) {
		found->users++;
		*pin = found;
		return 0;
	}
	auto_close int held = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (held < 0)
		return fail_errno(err, "keep meta.json of an environment open");
	struct pin *made = calloc(1, sizeof *made);
	if (!made)
		abort();
	*made = (struct pin){ take_fd(&held), st.st_dev, st.st_ino, 1, launcher->pins };
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
	fd_close(&pin->fd);
	free(pin);
}
