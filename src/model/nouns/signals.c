#include "model/nouns/signals.h"

#include <signal.h>

#define SIGNAL(name)                                                                               \
	{ #name, SIG##name },                                                                      \
	{                                                                                          \
		"SIG" #name, SIG##name                                                             \
	}
const struct field_choice signal_choices[] = {
	SIGNAL(HUP),
	SIGNAL(INT),
	SIGNAL(QUIT),
	SIGNAL(ILL),
	SIGNAL(TRAP),
	SIGNAL(ABRT),
	SIGNAL(BUS),
	SIGNAL(FPE),
	SIGNAL(KILL),
	SIGNAL(USR1),
	SIGNAL(SEGV),
	SIGNAL(USR2),
	SIGNAL(PIPE),
	SIGNAL(ALRM),
	SIGNAL(TERM),
	SIGNAL(CHLD),
	SIGNAL(CONT),
	SIGNAL(STOP),
	SIGNAL(TSTP),
	SIGNAL(TTIN),
	SIGNAL(TTOU),
	SIGNAL(URG),
	SIGNAL(XCPU),
	SIGNAL(XFSZ),
	SIGNAL(VTALRM),
	SIGNAL(PROF),
	SIGNAL(WINCH),
	SIGNAL(IO),
	SIGNAL(PWR),
	SIGNAL(SYS),
	{ 0 },
};
