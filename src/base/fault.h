/* fault.h -- named places where a test can end the process or make a call fail: CARREL_FAULT says
 * which, and which time it is passed. Only in builds for tests (-Dfaults=true, or any sanitizer);
 * nothing at all in others.
 *	CARREL_FAULT=layers.rename:2		SIGKILL to itself at the second passing
 *	CARREL_FAULT=layers.sync:1:ENOSPC	fault_fails() sets that errno and is true
 *	CARREL_FAULT=tree_merged:1:WAIT		fault_point() waits for SIGCONT
 * The errno may be ENOSPC, EIO or EROFS. */
#pragma once
#ifdef CARREL_FAULTS
void fault_point(const char *name);
bool fault_fails(const char *name);
#else
static inline void fault_point(const char *name)
{
}
static inline bool fault_fails(const char *name)
{
	return false;
}
#endif
/* An address sanitizer keeps what was freed, and reads an environment of its own. */
#ifdef __has_feature
#define IS_SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif
