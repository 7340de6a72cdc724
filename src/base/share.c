#include "base/share.h"

struct share_holder {
	size_t held, joined;
	char name[];
};

void shares_init(struct shares *shares, const char *noun, const char *hint, size_t all, size_t each)
{
	*shares = (struct shares){ .noun = noun, .hint = hint, .all = all, .each = each };
	map_init(&shares->holders, NULL);
}

void shares_done(struct shares *shares)
{
	map_done(&shares->holders);
}

int shares_check(const struct shares *shares, const char *name, size_t more, struct error *err)
{
	const struct share_holder *holder = name ? map_get(&shares->holders, str_from(name)) : NULL;
	size_t held = holder ? holder->held : 0;
	if (name && held + more > shares->each)
		return fail_hint(err, ERR_LIMIT, shares->hint,
			"%s has %zu %s, and %zu are the limit of one principal", name, held,
			shares->noun, shares->each);
	if (shares->held + more > shares->all)
		return fail_hint(err, ERR_LIMIT, shares->hint,
			"there are %zu %s, and %zu are the limit of all principals together",
			shares->held, shares->noun, shares->all);
	return 0;
}

bool shares_has(const struct shares *shares, const char *name)
{
	return map_get(&shares->holders, str_from(name ? name : ""));
}

void share_join(struct shares *shares, const char *name, struct share *share)
{
	const char *own = name ? name : "";
	struct share_holder *holder = map_get(&shares->holders, str_from(own));
	if (!holder) {
		size_t size = strlen(own) + 1;
		holder = calloc(1, sizeof *holder + size);
		if (!holder)
			abort();
		memcpy(holder->name, own, size);
		map_add(&shares->holders, str_from(holder->name), holder);
	}
	holder->joined++;
	*share = (struct share){ .shares = shares, .holder = holder };
}

const char *share_name(const struct share *share)
{
	return share->holder && share->holder->name[0] ? share->holder->name : NULL;
}

void share_add(struct share *share, size_t more)
{
	if (!share->holder)
		return;
	share->held += more;
	share->holder->held += more;
	share->shares->held += more;
}

void share_clear(struct share *share)
{
	if (!share->holder)
		return;
	share->holder->held -= share->held;
	share->shares->held -= share->held;
	share->held = 0;
}

void share_release(struct share *share)
{
	struct share_holder *holder = share->holder;
	if (!holder)
		return;
	share_clear(share);
	if (!--holder->joined) {
		map_remove(&share->shares->holders, str_from(holder->name));
		free(holder);
	}
	*share = (struct share){ 0 };
}
