#include "base/fault.h"

#ifdef CARREL_FAULTS
#include <signal.h>
#include <unistd.h>
#include "base/str.h"

#define FAULT_WAIT (-1)

static const struct {
	const char *name;
	int value;
} errors[] = { { "WAIT", FAULT_WAIT }, { "ENOSPC", ENOSPC }, { "EIO", EIO }, { "EROFS", EROFS },
	{ "EDQUOT", EDQUOT } };

/* Whether `name` is due now; *error is 0 when the process is to be killed. */
static bool is_due(const char *name, int *error)
{
	static uint64_t passed; /* of the one fault that is asked for */
	const char *text = getenv("CARREL_FAULT");
	struct str rest, head, number, error_name;
	uint64_t due;
	if (!text)
		return false;
	str_cut(str_from(text), ':', &head, &rest);
	str_cut(rest, ':', &number, &error_name);
	if (!str_is(head, name) || !str_to_u64(number, &due) || ++passed != due)
		return false;
	*error = 0;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (str_is(error_name, errors[i].name))
			*error = errors[i].value;
	return true;
}

/* PID 1 of a pid namespace (a role is one) can't be killed from inside; a trap ends it too. */
static void die(void)
{
	kill(getpid(), SIGKILL);
	__builtin_trap();
}

static void on_go_on(int signo)
{
}

/* PID 1 of a pid namespace can't stop itself, but can be continued from outside. */
static void wait_outside(void)
{
	signal(SIGCONT, on_go_on);
	pause();
	signal(SIGCONT, SIG_DFL);
}

void fault_point(const char *name)
{
	int error;
	if (!is_due(name, &error))
		return;
	if (!error)
		die();
	if (error == FAULT_WAIT)
		wait_outside();
}

bool fault_fails(const char *name)
{
	int error;
	if (!is_due(name, &error))
		return false;
	if (!error)
		die();
	errno = error;
	return true;
}
#endif
