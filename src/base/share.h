/* share.h -- what the principals of a daemon have together of something scarce, and how much of it
 * each may hold: one alone can't keep the others from it.
 * 1. What is checked may be held at once; nothing is checked when it is held, so that what was
 * begun can go on.
 * 2. A name costs memory only while it has joined. */
#pragma once
#include "base/error.h"
#include "base/map.h"

struct shares {
	const char *noun; /* "running tasks" */
	const char *hint;
	size_t all, each;   /* the limits: of all names together, of one name */
	size_t held;	    /* by all */
	struct map holders; /* by their names */
};
struct share_holder;
struct share { /* what one object holds; zeroed: it has not joined */
	struct shares *shares;
	struct share_holder *holder;
	size_t held;
};
void shares_init(
	struct shares *shares, const char *noun, const char *hint, size_t all, size_t each);
void shares_done(struct shares *shares); /* when all were released */
/* Whether `name` may hold `more` on top. ERR_LIMIT. name NULL: unknown, only the limit of all
 * applies. */
int shares_check(const struct shares *shares, const char *name, size_t more, struct error *err);
/* Something of it has joined. */
bool shares_has(const struct shares *shares, const char *name);
/* Makes `share` one of `name`; it holds nothing yet. */
void share_join(struct shares *shares, const char *name, struct share *share);
const char *share_name(const struct share *share); /* as it joined; NULL: none, or not known */
void share_add(struct share *share, size_t more);  /* no-op before share_join */
void share_clear(struct share *share);		   /* it holds nothing; it is still joined */
void share_release(struct share *share);	   /* releases all and leaves; idempotent */
