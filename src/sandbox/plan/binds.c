#include "base/path.h"
#include "sandbox/plan/plan.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

int plan_check_target(const char *target, struct error *err)
{
	static const char *const closed[] = { "/proc", "/dev", "/sys" };
	if (!path_is_normal(target))
		return fail(err, ERR_INVALID,
			"'%s' is not an absolute, plain path inside the sandbox", target);
	if (!strcmp(target, "/"))
		return fail(err, ERR_INVALID, "nothing can be mounted over '/'");
	for (size_t i = 0; i < COUNT(closed); i++)
		if (path_is_beneath(target, closed[i]))
			return fail(err, ERR_INVALID,
				"nothing can be mounted at '%s': %s is part of the sandbox", target,
				closed[i]);
	return 0;
}

int plan_parse_bind(
	const char *text, struct arena *arena, struct plan_bind *bind, struct error *err)
{
	size_t len = strlen(text);
	bool read_only = len > 3 && !strcmp(text + len - 3, ":ro");
	if (read_only || (len > 3 && !strcmp(text + len - 3, ":rw")))
		len -= 3;
	const char *colon = memrchr(text, ':', len);
	if (!colon || colon == text || colon == text + len - 1)
		return fail_hint(err, ERR_INVALID, "-v /data/set:/workspace/set:ro",
			"-v '%s' is not SRC:DST[:ro]", text);
	const char *target = arena_bytes(arena, colon + 1, len - (size_t)(colon + 1 - text));
	if (!strchr(target, '/'))
		return fail(err, ERR_INVALID,
			"-v '%s': '%s' is neither ro nor rw, nor a path inside", text, target);
	if (plan_check_target(target, err))
		return error_context(err, "-v '%s'", text);
	bind->source = arena_bytes(arena, text, (size_t)(colon - text));
	bind->target = target;
	bind->read_only = read_only;
	return 0;
}
