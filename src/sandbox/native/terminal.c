#include "sandbox/native/terminal.h"

#include <signal.h>
#include <unistd.h>

/* What a command may change of the caller's terminal. Not the speed, the size of characters, or
 * what happens when the line is closed. */
#define INPUT_MODES (ICRNL | INLCR | IGNCR | IXON | IXANY | ISTRIP | BRKINT | IUTF8)
#define OUTPUT_MODES (OPOST | ONLCR | OCRNL)
#define LOCAL_MODES                                                                                \
	(ICANON | ISIG | IEXTEN | ECHO | ECHOE | ECHOK | ECHONL | ECHOCTL | ECHOKE | NOFLSH)

static bool are_equal(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
	       a->c_lflag == b->c_lflag && !memcmp(a->c_cc, b->c_cc, sizeof a->c_cc);
}

static bool is_foreground(const struct terminal *terminal)
{
	return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == getpgrp();
}

/* Another process may have become the foreground meanwhile: then this must not stop us. */
static void set_modes(int fd, const struct termios *modes)
{
	void (*handler)(int) = signal(SIGTTOU, SIG_IGN);
	(void)tcsetattr(fd, TCSANOW, modes);
	signal(SIGTTOU, handler);
}

bool terminal_may_read(struct terminal *terminal)
{
	struct termios now;
	if (!is_foreground(terminal) || tcgetattr(terminal->fd, &now))
		return false;
	if (terminal->is_set)
		return are_equal(&now, &terminal->set);
	if (!terminal->is_known)
		terminal->found = now;
	terminal->is_known = true;
	if (terminal->may_set && are_equal(&now, &terminal->found))
		return true;
	/* Without ICANON another program of the job reads keys; without ECHO one reads a password.
	 */
	return now.c_lflag & ICANON && (now.c_lflag & ECHO || !(terminal->found.c_lflag & ECHO));
}

/* Finds the modes to start from. false: they can't be set now, or another process has set them. */
static bool find_base(struct terminal *terminal, struct termios *base)
{
	struct termios now;
	if (!terminal->may_set || !is_foreground(terminal) || tcgetattr(terminal->fd, &now))
		return false;
	if (terminal->is_set && !are_equal(&now, &terminal->set))
		return false;
	*base = terminal->is_set ? terminal->found : now;
	return true;
}

static void set(struct terminal *terminal, const struct termios *base, const struct termios *want)
{
	if (terminal->is_set && are_equal(want, &terminal->set))
		return;
	set_modes(terminal->fd, want);
	terminal->found = *base;
	terminal->is_known = true;
	terminal->is_set = !tcgetattr(terminal->fd, &terminal->set); /* as the kernel took them */
}

void terminal_make_raw(struct terminal *terminal)
{
	struct termios base, raw;
	if (terminal->is_set || !find_base(terminal, &base))
		return;
	raw = base;
	cfmakeraw(&raw);
	set(terminal, &base, &raw);
}

static bool is_as_at_first(const struct termios *inside, const struct termios *initial)
{
	return !((inside->c_iflag ^ initial->c_iflag) & INPUT_MODES) &&
	       !((inside->c_oflag ^ initial->c_oflag) & OUTPUT_MODES) &&
	       !((inside->c_lflag ^ initial->c_lflag) & LOCAL_MODES) &&
	       !memcmp(inside->c_cc, initial->c_cc, sizeof inside->c_cc);
}

void terminal_follow(
	struct terminal *terminal, const struct termios *inside, const struct termios *initial)
{
	struct termios base, want;
	if (is_as_at_first(inside, initial)) {
		terminal_restore(terminal);
		return;
	}
	if (!find_base(terminal, &base))
		return;
	want = base;
	want.c_iflag = (base.c_iflag & ~(tcflag_t)INPUT_MODES) | (inside->c_iflag & INPUT_MODES);
	want.c_lflag = (base.c_lflag & ~(tcflag_t)LOCAL_MODES) | (inside->c_lflag & LOCAL_MODES);
	want.c_oflag &= ~(initial->c_oflag & ~inside->c_oflag & OUTPUT_MODES);
	memcpy(want.c_cc, inside->c_cc, sizeof want.c_cc);
	/* How many bytes a read inside waits for is a matter of the terminal inside. */
	want.c_cc[VMIN] = 1;
	want.c_cc[VTIME] = 0;
	set(terminal, &base, &want);
}

void terminal_restore(struct terminal *terminal)
{
	struct termios now;
	if (terminal->is_set && !tcgetattr(terminal->fd, &now) && are_equal(&now, &terminal->set))
		set_modes(terminal->fd, &terminal->found);
	terminal->is_set = false;
}

void terminal_continue(struct terminal *terminal)
{
	struct termios now;
	if (terminal->is_set && !tcgetattr(terminal->fd, &now) && !are_equal(&now, &terminal->set))
		terminal->is_set = false;
	terminal->is_known = terminal->is_set;
}

bool terminal_maps_newlines(int fd)
{
	struct termios now;
	return !tcgetattr(fd, &now) && now.c_oflag & OPOST && now.c_oflag & ONLCR;
}
