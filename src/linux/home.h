/* home.h -- $CARREL_HOME: where everything that stays lies, and the one uid it all belongs to.
 * 1. Everything below it belongs to one owner: the caller, or, when root calls, user `carrel` (uid
 * 64199 when there is none).
 * 2. Root reads and writes there between home_enter and home_leave only, with the owner's rights: a
 * link there leads root nowhere the owner couldn't go. */
#pragma once
#include "base/arena.h"
#include "base/error.h"

struct home {
	const char *path; /* absolute, normal */
	int dir;	  /* O_PATH, or -1 */
	uid_t uid;
	gid_t gid;
	bool is_foreign; /* the caller is root, the owner isn't */
};

/* $CARREL_HOME, else /var/lib/carrel for root, else ${XDG_DATA_HOME:-$HOME/.local/share}/carrel.
 * ERR_INVALID: it isn't an absolute path, or there is no HOME. */
int home_find_path(struct arena *arena, const char **path, struct error *err);
/* Who root's home belongs to: user `carrel`, or 64199. */
void home_find_owner(uid_t *uid, gid_t *gid);
/* A user of /etc/passwd; false: there is none of that name. */
bool home_find_user(const char *name, uid_t *uid, gid_t *gid);
/* Opens the home, making it (0700; its parents 0755) when it isn't there; root mounts its image
 * first, if it has one (home_image.h). home_done follows. ERR_DENIED: it belongs to another user,
 * also when root calls; or it is world-writable. */
int home_open(const char *path, struct arena *arena, struct home *home, struct error *err);
void home_done(struct home *home);

/* From here on the file system sees the owner (setfsuid, setfsgid), until home_leave. A no-op when
 * the owner is the caller. Calls nest: the outermost home_leave ends it. */
void home_enter(const struct home *home);
void home_leave(const struct home *home);
/* The same until the end of the block: auto_leave const struct home *home = home_entered(…); */
const struct home *home_entered(const struct home *home);
void home_leave_block(const struct home **home);
#define auto_leave __attribute__((cleanup(home_leave_block)))
/* home_leave lets the group stay, for the next home_enter: for who makes files elsewhere. */
void home_leave_group(void);
/* Opens the directory `name` below the home read-only, creating it (0700) if missing; *fd is yours
 * to close. Calls home_enter and home_leave itself. */
int home_open_directory(const struct home *home, const char *name, int *fd, struct error *err);

/* Records a host path that root gave on a command line as trusted. Other paths stored in the home
 * could have been changed by its owner, and root's sandboxes must not show the owner files that the
 * owner couldn't read. The record is a file of root's below the home, which the owner can remove
 * but not create. Call it outside of home_enter. */
int home_vouch(const struct home *home, const char *path, struct error *err);
/* Always true when the owner is the caller. */
bool home_is_vouched(const struct home *home, const char *path);
