#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/fd.h"
#include "linux/pty.h"

int pty_open(int dir, int *master, int *terminal, struct error *err)
{
	auto_close int made = openat(dir, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (made < 0)
		return fail_errno(err, "open ptmx");
	int locked = 0;
	if (ioctl(made, TIOCSPTLCK, &locked) < 0)
		return fail_errno(err, "unlock the pseudo terminal");
	int peer = ioctl(made, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (peer < 0)
		return fail_errno(err, "open the pseudo terminal");
	*master = take_fd(&made);
	*terminal = peer;
	return 0;
}

int pty_get_size(int fd, struct pty_size *size, struct error *err)
{
	struct winsize got;
	if (ioctl(fd, TIOCGWINSZ, &got) < 0)
		return fail_errno(err, "get the size of the terminal");
	*size = (struct pty_size){ .rows = got.ws_row, .columns = got.ws_col };
	return 0;
}

int pty_set_size(int fd, struct pty_size size, struct error *err)
{
	struct winsize want = { .ws_row = size.rows, .ws_col = size.columns };
	if (ioctl(fd, TIOCSWINSZ, &want) < 0)
		return fail_errno(err, "set the size of the terminal");
	return 0;
}

int pty_get_device(int fd, unsigned *device)
{
	return ioctl(fd, TIOCGDEV, device) < 0 ? -1 : 0;
}
