/* netrc.h -- credentials of a host in a .netrc file: machine, default, login, account, password;
 * macdef is passed over, comments begin with '#' at the beginning of a word. Pure. */
#pragma once
#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

#define NETRC_MAX ((size_t)1 << 20)
/* The first entry for the host, else the default one. false: none, or one without a password. */
bool netrc_find(struct str text, const char *host, struct arena *arena, const char **login,
	const char **password);

struct netrc_login {
	const char *login, *password;
};
typedef VEC(struct netrc_login) netrc_logins;
/* Those of all entries that have a password. */
void netrc_list(struct str text, struct arena *arena, netrc_logins *logins);
