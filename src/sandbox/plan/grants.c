#include "sandbox/plan/grants.h"

#include "base/path.h"
#include "sandbox/plan/plan.h"

#define TREE_NAME_MAX 64
#define TEXTS 6 /* of one grant */

static const char *const kinds[GRANT_KIND_COUNT] = { "dir", "bind", "tree" };

int grant_check_tree(const char *name, struct error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);
	if (!len || len > TREE_NAME_MAX || strspn(name, allowed) != len || strchr("._-", name[0]))
		return fail_hint(err, ERR_INVALID,
			"1 to 64 of a-z, 0-9 and ._-, the first a letter or a digit",
			"invalid name of a tree: '%.80s'", name);
	return 0;
}

int grant_parse_tree(const char *text, struct arena *arena, struct grant *grant, struct error *err)
{
	struct plan_bind bind = { 0 };
	struct error why;
	if (plan_parse_bind(text, arena, &bind, &why))
		return fail_hint(err, ERR_INVALID, "--attach skills:/workspace/skills:ro",
			"--attach '%s' is not NAME:PATH[:ro] with an absolute path inside", text);
	if (grant_check_tree(bind.source, err))
		return error_context(err, "--attach '%s'", text);
	*grant = (struct grant){ GRANT_TREE, bind.source, bind.target, bind.read_only, 0, 0 };
	return 0;
}

const char *grant_link(const struct grant *grant, const char *root)
{
	static const char skills[] = ".solven/skills/";
	if (!path_is_beneath(grant->target, root))
		return NULL;
	const char *path = grant->target + strlen(root);
	path += path[0] == '/';
	const char *skill = path + sizeof skills - 1;
	bool is_skill =
		!strncmp(path, skills, sizeof skills - 1) && skill[0] && !strchr(skill, '/');
	return is_skill || !strcmp(path, ".ticket") ? path : NULL;
}

void grants_encode(const struct grant *grants, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct grant *grant = &grants[i];
		buf_printf(out, "%s%c%s%c%s%c%s%c%llu%c%llu%c", kinds[grant->kind], 0,
			grant->source, 0, grant->target, 0, grant->read_only ? "ro" : "rw", 0,
			(unsigned long long)grant->device, 0, (unsigned long long)grant->inode, 0);
	}
}

static int corrupt(struct error *err, const char *what)
{
	return fail(err, ERR_CORRUPT, "invalid list of mounts: %s", what);
}

static int check(const struct grant *grant, size_t index, struct error *err)
{
	if (grant->kind == GRANT_TREE ? grant_check_tree(grant->source, err) != 0
				      : !path_is_normal(grant->source) || !grant->source[1])
		return corrupt(err, "a source that is not an absolute, plain path");
	if (grant->kind == GRANT_DIR && (index || strcmp(grant->target, PLAN_WORKSPACE) != 0))
		return corrupt(err, "a directory for /workspace in another place");
	if (grant->kind == GRANT_DIR && grant->read_only)
		return corrupt(err, "a read-only /workspace");
	return plan_check_target(grant->target, err) ||
			       (grant->kind != GRANT_DIR &&
				       path_is_beneath(PLAN_WORKSPACE, grant->target))
		       ? corrupt(err, "a target where nothing can be mounted")
		       : 0;
}

static int decode_one(
	const char *texts[TEXTS], struct grant *grant, size_t index, struct error *err)
{
	int kind = 0;
	while (kind < GRANT_KIND_COUNT && strcmp(texts[0], kinds[kind]) != 0)
		kind++;
	*grant = (struct grant){
		.source = texts[1], .target = texts[2], .read_only = !strcmp(texts[3], "ro")
	};
	if (kind == GRANT_KIND_COUNT || (!grant->read_only && strcmp(texts[3], "rw") != 0) ||
		!str_to_u64(str_from(texts[4]), &grant->device) ||
		!str_to_u64(str_from(texts[5]), &grant->inode))
		return corrupt(err, "an unknown word");
	grant->kind = (enum grant_kind)kind;
	return check(grant, index, err);
}

int grants_decode(
	struct str text, struct grant grants[GRANTS_MAX], size_t *count, struct error *err)
{
	size_t at = 0, found = 0;
	if (text.len > GRANTS_BYTES_MAX || (text.len && text.data[text.len - 1]))
		return corrupt(err, "it is too long, or cut off");
	while (at < text.len) {
		const char *texts[TEXTS];
		if (found == GRANTS_MAX)
			return corrupt(err, "too many mounts");
		for (int i = 0; i < TEXTS; i++) {
			if (at >= text.len)
				return corrupt(err, "it is cut off");
			texts[i] = text.data + at;
			at += strlen(texts[i]) + 1;
		}
		if (decode_one(texts, &grants[found], found, err))
			return -1;
		found++;
	}
	*count = found;
	return 0;
}
