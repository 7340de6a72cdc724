#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "envs/python/base.h"
#include "envs/python/internal.h"
#include "envs/store_internal.h"

#define LOCK_MAX ((size_t)64 << 20)

/* -- pip, and keys -- */

static const struct {
	unsigned minor_least; /* of Python 3 */
	const char *version, *hash;
} pips[] = {
	{ 10, "26.3", "sha256:f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13" },
	{ 9, "26.0.1", "sha256:bdb1b08f4274833d62c1aa29e20907365a2ceb950410df15fc9521bad440122b" },
	{ 0, "25.0.1", "sha256:c46efd13b6aa8279f33f2864459c8ce587ea6a1a59ee20de055868d8f7688f7f" },
};

const struct lock_package *pip_for(const char *minor, struct arena *arena)
{
	struct lock_package *pip = arena_alloc(arena, sizeof *pip);
	uint64_t number = 0;
	if (!str_starts_with(str_from(minor), "3.") || !str_to_u64(str_from(minor + 2), &number))
		number = 0;
	for (size_t i = 0; i < sizeof pips / sizeof *pips; i++) {
		if (number < pips[i].minor_least)
			continue;
		pip->name = "pip";
		pip->version = pips[i].version;
		vec_push(arena, &pip->hashes, pips[i].hash);
		break;
	}
	return pip;
}

const char *wheel_key(struct arena *arena, const struct lock_package *package, const char *tag,
	const struct index_set *built_from)
{
	auto_buf struct buf key = buf_empty(LOCK_MAX);
	buf_printf(&key, "wheel %s==%s", package->name, package->version);
	for (size_t i = 0; i < package->hashes.count; i++)
		buf_printf(&key, " %s", package->hashes.items[i]);
	buf_printf(&key, " %s%s", tag, built_from ? " built" : "");
	/* What its build requires has no hashes. */
	if (built_from && built_from->index)
		buf_printf(&key, " %s", index_redact(arena, built_from->index));
	for (size_t i = 0; built_from && i < built_from->extra.count; i++)
		buf_printf(&key, " %s", index_redact(arena, built_from->extra.items[i]));
	return arena_bytes(arena, key.data, key.len);
}

const char *plain_key(struct arena *arena, const struct lock_package *pip, const char *tag)
{
	return arena_printf(arena, "%s plain", wheel_key(arena, pip, tag, NULL));
}

/* -- locks -- */

int lock_load(const struct env_store *store, const char *key, struct arena *arena,
	lock_list *packages, struct str *text, struct error *err)
{
	lock_list parsed = { 0 };
	int found = lock_read(store, key, arena, text, err);
	if (found <= 0)
		return found;
	/* One that can't be read is made again. */
	if (lock_parse(*text, arena, &parsed, err) < 0)
		return 0;
	*packages = parsed;
	return 1;
}

/* -- layers by their keys -- */

/* The list of layers that this lock gave last, with their bytes: to be found without a key each. */
static const char *list_name(const struct env_wanted *wanted, struct arena *arena)
{
	return arena_printf(arena, "%s-%.16s", wanted->lock_key, wanted->fingerprint);
}

/* The hash that its first line begins with: the same requirements, resolved again, may have given
 * another lock. */
static const char *list_head(const lock_list *packages, struct arena *arena)
{
	struct sha256 hash;
	sha256_init(&hash);
	for (size_t i = 0; i < packages->count; i++) {
		const struct lock_package *package = &packages->items[i];
		sha256_add_text(&hash, package->name);
		sha256_add_text(&hash, package->version);
		for (size_t k = 0; k < package->hashes.count; k++)
			sha256_add_text(&hash, package->hashes.items[k]);
		sha256_add_text(&hash, "");
	}
	return sha256_end_text(&hash, arena);
}

/* Whether a list that has a pip without bytecode is out of date: there is a better one now. */
static bool has_better_pip(
	const struct env_store *store, const struct composition *c, struct arena *arena)
{
	const struct lock_package *pip = pip_for(c->wanted->python.minor, arena);
	char id[LAYER_ID_LEN + 1];
	struct error ignored;
	return layer_find(&store->layers, wheel_key(arena, pip, c->wanted->python.tag, NULL), id,
		       &ignored) == 0;
}

/* The default index, which only uv knows, follows the hash in the first line ("-": unknown). Then
 * "plain", if pip is that without bytecode, and "id bytes" lines, topmost first. 1: they are all
 * there. 0: look for each. */
static int find_listed(const struct env_store *store, struct composition *c, struct arena *arena,
	struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	struct env_meta *meta = c->meta;
	struct str rest, line, head, index, id, bytes;
	uint64_t total = 0, value;
	int found = lock_read(store, list_name(c->wanted, arena), arena, &rest, err);
	if (found <= 0)
		return found;
	if (!str_next(&rest, '\n', &line))
		return 0;
	str_cut(line, ' ', &head, &index);
	if (!str_is(head, list_head(c->packages, arena)))
		return 0;
	/* Older versions didn't name it. */
	if (!index.len && c->wanted->needs_lock && !c->wanted->indexes.index)
		return 0;
	meta->layers.count = 0;
	while (str_next(&rest, '\n', &line)) {
		if (str_is(line, "plain")) {
			c->is_pip_plain = true;
			continue;
		}
		if (!str_cut(line, ' ', &id, &bytes) || !str_to_u64(bytes, &value))
			return 0;
		const char *text = arena_bytes(arena, id.data, id.len);
		if (!layer_id_is_valid(text))
			return 0;
		vec_push(arena, &meta->layers, text);
		total += value;
	}
	meta->size_bytes = total;
	if (meta->layers.count == 0 || (c->is_pip_plain && has_better_pip(store, c, arena)))
		return 0;
	if (layers_check(&store->layers, meta->layers.items, meta->layers.count, err) < 0)
		return err->code == ERR_NOT_FOUND || err->code == ERR_CORRUPT ? 0 : -1;
	if (index.len && !str_is(index, "-"))
		c->index = arena_bytes(arena, index.data, index.len);
	return 1;
}

/* Adds the layer of that key to the list. 1, 0 when there is no such layer, or -1. */
static int add_layer(const struct env_store *store, struct composition *c, const char *key,
	struct arena *arena, struct error *err)
{
	char id[LAYER_ID_LEN + 1];
	if (layer_find(&store->layers, key, id, err) == 0) {
		vec_push(arena, &c->meta->layers, arena_text(arena, id));
		return 1;
	}
	return err->code == ERR_NOT_FOUND || err->code == ERR_CORRUPT ? 0 : -1;
}

/* Counts the bytes, and keeps the list for the next time. That it can't be written only costs time
 * then. */
static int keep_list(const struct env_store *store, const struct composition *c,
	struct arena *arena, struct error *err)
{
	struct env_meta *meta = c->meta;
	auto_buf struct buf text = buf_empty(LOCK_MAX);
	struct error ignored;
	buf_printf(&text, "%s %s\n%s", list_head(c->packages, arena), c->index ? c->index : "-",
		c->is_pip_plain ? "plain\n" : "");
	meta->size_bytes = 0;
	for (size_t i = 0; i < meta->layers.count; i++) {
		uint64_t bytes = 0;
		if (layer_add_bytes(store, meta->layers.items[i], &bytes, err) < 0)
			return -1;
		buf_printf(&text, "%s %llu\n", meta->layers.items[i], (unsigned long long)bytes);
		meta->size_bytes += bytes;
	}
	lock_keep(store, list_name(c->wanted, arena), buf_str(&text), &ignored);
	return 0;
}

static int find_package(const struct env_store *store, struct composition *c,
	const struct lock_package *package, struct arena *arena, struct error *err)
{
	const struct index_set *from = package->is_built ? &c->wanted->indexes : NULL;
	const char *key = wheel_key(arena, package, c->wanted->python.tag, from);
	int found = add_layer(store, c, key, arena, err);
	if (found == 0)
		vec_push(arena, &c->missing, package);
	return found;
}

/* The pip that we add: with bytecode, else without. */
static int find_pip(const struct env_store *store, struct composition *c, struct arena *arena,
	struct error *err)
{
	const char *tag = c->wanted->python.tag;
	const struct lock_package *pip = pip_for(c->wanted->python.minor, arena);
	int found = add_layer(store, c, wheel_key(arena, pip, tag, NULL), arena, err);
	if (found == 0 && !c->is_pip_compiled) {
		found = add_layer(store, c, plain_key(arena, pip, tag), arena, err);
		c->is_pip_plain = found == 1;
	}
	if (found == 0) {
		vec_push(arena, &c->missing, pip);
		c->pip = pip;
	}
	return found;
}

static int find_project(const struct env_store *store, struct composition *c,
	const struct env_project *project, struct arena *arena, struct error *err)
{
	int found = add_layer(store, c, project_key(c->wanted, project, arena), arena, err);
	if (found == 0)
		vec_push(arena, &c->missing_projects, project);
	return found;
}

/* Topmost first: what leads to editable projects, packages by name, then pip, then what makes it an
 * environment. */
static int find_each(const struct env_store *store, struct composition *c, struct arena *arena,
	struct error *err)
{
	const struct env_wanted *wanted = c->wanted;
	const char *base =
		interpreter_base_key(arena, &wanted->python, wanted->request->system_site_packages);
	const char *editable = editable_key(wanted, arena);
	int found;
	c->meta->layers.count = 0;
	c->missing.count = c->missing_projects.count = 0;
	c->pip = NULL;
	if ((found = editable ? add_layer(store, c, editable, arena, err) : 1) < 0)
		return -1;
	c->is_editable_missing = found == 0;
	for (size_t i = 0; i < wanted->projects.count; i++)
		if (wanted->projects.items[i].digest &&
			find_project(store, c, &wanted->projects.items[i], arena, err) < 0)
			return -1;
	for (size_t i = 0; i < c->packages->count; i++)
		if (find_package(store, c, &c->packages->items[i], arena, err) < 0)
			return -1;
	if (!lock_find(c->packages, "pip") && !c->is_without_pip &&
		find_pip(store, c, arena, err) < 0)
		return -1;
	if ((found = add_layer(store, c, base, arena, err)) < 0)
		return -1;
	c->is_base_missing = found == 0;
	return c->missing.count == 0 && c->missing_projects.count == 0 && !c->is_base_missing &&
	       !c->is_editable_missing;
}

int compose_layers(const struct env_store *store, struct composition *c, struct arena *arena,
	struct error *err)
{
	int found = c->is_part ? 0 : find_listed(store, c, arena, err);
	if (found != 0)
		return found;
	c->is_pip_plain = false;
	found = find_each(store, c, arena, err);
	if (found <= 0 || c->is_part)
		return found;
	found = merge_find(store, &c->meta->layers, &c->parts, arena, err);
	if (found <= 0)
		return found;
	if (c->wanted->indexes.index)
		c->index = index_redact(arena, c->wanted->indexes.index);
	else if (c->wanted->needs_lock) /* when it was resolved the index had been asked for */
		c->index = uv_known_index(store->home, &c->wanted->python, arena);
	if (keep_list(store, c, arena, err) == 0)
		return 1;
	return err->code == ERR_CORRUPT ? 0 : -1;
}

/* A lock lists packages in the order of their layers. */
static int compare_packages(const void *a, const void *b)
{
	const struct text_pair *one = a, *other = b;
	return strcmp(one->key, other->key);
}

void compose_meta(const struct env_wanted *wanted, const lock_list *packages, struct arena *arena,
	struct env_meta *meta)
{
	const struct env_request *request = wanted->request;
	char now[32];
	clock_format_now(now);
	*meta = (struct env_meta){ .name = wanted->name,
		.package_id = request->package_id,
		.requirements_sha256 = wanted->requirements_sha256,
		.created_at = arena_text(arena, now),
		.last_used_at = arena_text(arena, now),
		.use_count = 1,
		.python_version = wanted->python.version,
		.python = wanted->python.path,
		.python_prefix = wanted->python.in_usr ? NULL : wanted->python.prefix,
		.fingerprint = wanted->fingerprint,
		.system_site_packages = request->system_site_packages,
		.has_notes = wanted->has_notes };
	for (size_t i = 0; i < packages->count; i++)
		vec_push(arena, &meta->packages,
			(struct text_pair){ packages->items[i].name, packages->items[i].version });
	vec_sort(&meta->packages, compare_packages);
	for (size_t i = 0; i < request->editables.count; i++)
		vec_push(arena, &meta->editables, request->editables.items[i]);
	const char *interpreter = interpreter_layer(&wanted->python, arena);
	if (interpreter)
		vec_push(arena, &meta->tools, (struct text_pair){ "python", interpreter });
	compose_indexes(wanted, NULL, arena, meta);
}

void compose_indexes(const struct env_wanted *wanted, const char *known, struct arena *arena,
	struct env_meta *meta)
{
	const struct index_set *set = &wanted->indexes;
	meta->indexes.count = 0;
	if (wanted->request->wheels)
		return;
	if (set->index || known)
		vec_push(arena, &meta->indexes,
			set->index ? index_redact(arena, set->index) : known);
	for (size_t i = 0; i < set->extra.count; i++)
		vec_push(arena, &meta->indexes, index_redact(arena, set->extra.items[i]));
}

static int compose(const struct env_store *store, const struct env_wanted *wanted,
	struct arena *arena, struct env_meta *meta, struct str *lock, struct build_problem *problem,
	struct error *err)
{
	lock_list packages = { 0 };
	struct composition composition = { .meta = meta, .wanted = wanted, .packages = &packages };
	int found = 1;
	if (wanted->needs_lock)
		found = lock_load(store, wanted->lock_key, arena, &packages, lock, err);
	if (found <= 0)
		return found;
	if (policy_judge_lock(&store->config, &packages, problem, err) < 0)
		return -1;
	compose_meta(wanted, &packages, arena, meta);
	found = compose_layers(store, &composition, arena, err);
	if (found == 1)
		compose_indexes(wanted, composition.index, arena, meta);
	return found;
}

/* -- the kind -- */

static bool has_packages(const struct env_request *request)
{
	return request->pip.count || request->requirement_files.count;
}

static bool is_asked(const struct env_request *request)
{
	return has_packages(request) || request->extras.count || request->groups.count ||
	       request->constraint_files.count || request->constraint_lines.count ||
	       request->torch_backend || request->find_links.count || request->is_pre ||
	       request->python || request->allow_build;
}

static void narrow(struct env_request *request)
{
	request->node = (struct node_request){ 0 };
}

const struct env_reader env_python_reader = { is_asked, has_packages, narrow, python_prepare,
	compose };
