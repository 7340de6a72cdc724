#include "core/state/template_fetch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "core/blobs.h"
#include "core/state/internal.h"
#include "core/state/template_builds.h"
#include "core/state/template_store.h"
#include "core/state/templates.h"
#include "format/text/yaml_json.h"

#define SOURCE_FILE "source"
#define SOURCE_MAX 256
#define AT_ONCE 4  /* of the operations on the blob store that may run */
#define YOUNG_S 60 /* more than the clocks of two machines should differ */

/* An object that is fetched. */
struct wanted {
	struct template_fetch *fetch;
	const char *name;
	int64_t modified_s;
	int memory; /* what was read; -1: not begun */
};
struct template_fetch {
	struct core *core;
	struct arena arena;
	struct core_waiter *waiters;
	VEC(struct wanted) wanted;
	size_t begun, running;
	struct error err; /* the first one; code ERR_NONE: none */
	char request_id[ID_LEN + 1];
};

/* ---- copies ---- */

int template_copies_open(struct core *core, const char *source, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct str kept = { 0 };
	core->state->templates_outside = source && source[0];
	bool is_same =
		core->state->templates_outside &&
		!file_read_at(core->state->template_dir, SOURCE_FILE, SOURCE_MAX, &arena, &kept) &&
		str_is(kept, source);
	/* The name of the store last: until it is written, the copies are another store's. */
	if (!is_same && path_remove_tree(core->state->template_dir, BLOB_DIRECTORY, err))
		return error_context(err, "remove the copies of templates");
	if (!core->state->templates_outside) {
		unlinkat(core->state->template_dir, SOURCE_FILE, 0);
		return 0;
	}
	if ((mkdirat(core->state->template_dir, BLOB_DIRECTORY, 0700) && errno != EEXIST) ||
		(!is_same && file_replace(core->state->template_dir, SOURCE_FILE, 0600,
				     str_from(source), true)))
		return fail_errno(err, "make '%s/templates/" BLOB_DIRECTORY "'", core->home.path);
	return 0;
}

static void free_fetch(struct template_fetch *fetch)
{
	for (size_t i = 0; i < fetch->wanted.count; i++)
		fd_close(&fetch->wanted.items[i].memory);
	waiters_forget(fetch->waiters);
	arena_done(&fetch->arena);
	free(fetch);
}

void template_copies_close(struct core *core)
{
	if (core->state->template_fetch)
		free_fetch(core->state->template_fetch);
	waiters_forget(core->state->template_waiters);
	core->state->template_fetch = NULL;
	core->state->template_waiters = NULL;
}

/* modified_s 0: the next fetch gets it again. */
static int write_copy(
	struct core *core, const char *name, struct str yaml, int64_t modified_s, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_blob struct blob_store store = { 0 };
	const char *key = template_key(&arena, name);
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = modified_s } };
	const char *path = arena_printf(&arena, BLOB_DIRECTORY "/%s", key);
	if (template_blobs(core->home.dir, &store, err) ||
		blob_put_text(&store, key, yaml, false, err))
		return -1;
	return utimensat(core->state->template_dir, path, times, AT_SYMLINK_NOFOLLOW)
		       ? fail_errno(err, "set the time of a copy")
		       : 0;
}

void template_copy_put(struct core *core, const char *name, struct str yaml)
{
	struct error ignored;
	write_copy(core, name, yaml, 0, &ignored);
}

void template_copy_remove(struct core *core, const char *name)
{
	auto_arena struct arena arena = { 0 };
	auto_blob struct blob_store store = { 0 };
	struct error ignored;
	if (!template_blobs(core->home.dir, &store, &ignored))
		blob_delete(&store, template_key(&arena, name), &ignored);
	template_build_forget(core, name);
}

/* ---- fetching ---- */

static void begin(struct core *core, const char *request_id);

static void finish(struct template_fetch *fetch)
{
	struct core *core = fetch->core;
	struct core_waiter *waiters = fetch->waiters;
	struct error err = fetch->err;
	fetch->waiters = NULL;
	core->state->template_fetch = NULL;
	if (err.code)
		error_context(&err, "read the templates of the blob store");
	if (core->state->template_waiters)
		begin(core, fetch->request_id);
	free_fetch(fetch);
	waiters_call(&waiters, NULL, err.code ? &err : NULL);
}

static void get_more(struct template_fetch *fetch);

static int keep(struct wanted *wanted, struct error *err)
{
	struct template_fetch *fetch = wanted->fetch;
	auto_arena struct arena arena = { 0 };
	struct str text;
	bool is_young = clock_now_ms() / 1000 - wanted->modified_s < YOUNG_S;
	if (lseek(wanted->memory, 0, SEEK_SET) < 0 ||
		file_read(wanted->memory, YAML_JSON_MAX + 1, &arena, &text))
		return fail_errno(err, "read template '%s' from memory", wanted->name);
	fault_point("core_template_copy");
	return write_copy(fetch->core, wanted->name, text, is_young ? 0 : wanted->modified_s, err);
}

static void on_got(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct wanted *wanted = ctx;
	struct template_fetch *fetch = wanted->fetch;
	struct error why = { 0 };
	fetch->running--;
	if (err && err->code == ERR_NOT_FOUND) /* removed since it was listed */
		template_copy_remove(fetch->core, wanted->name);
	else if (err)
		why = *err;
	else
		keep(wanted, &why);
	if (why.code && !fetch->err.code)
		fetch->err = why;
	fd_close(&wanted->memory);
	get_more(fetch);
}

static void get_more(struct template_fetch *fetch)
{
	while (!fetch->err.code && fetch->begun < fetch->wanted.count && fetch->running < AT_ONCE) {
		struct wanted *wanted = &fetch->wanted.items[fetch->begun++];
		struct blob_order order = { .verb = BLOB_GET,
			.key = template_key(&fetch->arena, wanted->name),
			.words = blob_words_none(),
			.request_id = fetch->request_id };
		/* A longer template is refused by its reader, with its name. */
		order.words.len = YAML_JSON_MAX + 1;
		wanted->memory = memfd_create("template", MFD_CLOEXEC);
		if (wanted->memory < 0) {
			fail_errno(&fetch->err, "make a file for template '%s'", wanted->name);
			break;
		}
		order.data = wanted->memory;
		fetch->running++;
		blob_job_start(fetch->core, &order, on_got, wanted);
	}
	if (!fetch->running)
		finish(fetch);
}

static const struct blob_row *find_copy(const blob_rows *copies, const char *key)
{
	for (size_t i = 0; i < copies->count; i++)
		if (!strcmp(copies->items[i].key, key))
			return &copies->items[i];
	return NULL;
}

/* Notes what has changed. */
static int compare(struct template_fetch *fetch, const struct json_value *answer, struct error *err)
{
	struct core *core = fetch->core;
	const struct json_value *items = json_member(answer, "items");
	auto_blob struct blob_store store = { 0 };
	blob_rows copies = { 0 }, kept = { 0 };
	if (!items)
		return fail(err, ERR_FAILED, "the answer of the blob store is incomplete");
	if (template_blobs(core->home.dir, &store, err) ||
		blob_list(&store, TEMPLATE_PREFIX, &fetch->arena, &copies, err))
		return -1;
	for (const struct json_value *at = items->first; at; at = at->next) {
		const char *key = json_member_text(at, "key");
		const char *name = key ? template_key_name(&fetch->arena, key) : NULL;
		uint64_t size = 0, modified_s = 0;
		if (!name)
			continue;
		json_member_u64(at, "size", &size);
		json_member_u64(at, "modified_s", &modified_s);
		key = template_key(&fetch->arena, name);
		vec_push(&fetch->arena, &kept, (struct blob_row){ .key = key });
		if (kept.count > TEMPLATES_MAX)
			return fail(err, ERR_LIMIT, "there are more than %d", TEMPLATES_MAX);
		const struct blob_row *copy = find_copy(&copies, key);
		if (!copy || !modified_s || copy->size != size ||
			copy->modified_s != (int64_t)modified_s)
			vec_push(&fetch->arena, &fetch->wanted,
				(struct wanted){ fetch, name, (int64_t)modified_s, -1 });
	}
	for (size_t i = 0; i < copies.count; i++) {
		const char *name = template_key_name(&fetch->arena, copies.items[i].key);
		if (name && !find_copy(&kept, copies.items[i].key))
			template_copy_remove(core, name);
	}
	return 0;
}

static void on_listed(void *ctx, const struct json_value *answer, const struct error *err)
{
	struct template_fetch *fetch = ctx;
	if (err)
		fetch->err = *err;
	else
		compare(fetch, answer, &fetch->err);
	get_more(fetch);
}

static void begin(struct core *core, const char *request_id)
{
	struct template_fetch *fetch = xzalloc(sizeof *fetch);
	*fetch = (struct template_fetch){ .core = core, .waiters = core->state->template_waiters };
	core->state->template_waiters = NULL;
	core->state->template_fetch = fetch;
	str_copy(fetch->request_id, sizeof fetch->request_id, request_id ? request_id : "");
	struct blob_order order = { .verb = BLOB_LIST,
		.key = TEMPLATE_PREFIX,
		.words = blob_words_none(),
		.data = -1,
		.request_id = fetch->request_id };
	blob_job_start(core, &order, on_listed, fetch);
}

void template_fetch(struct core *core, const char *request_id, core_workspace_fn *done, void *ctx)
{
	waiter_append(&core->state->template_waiters, waiter_new(done, ctx, NULL, NULL));
	if (!core->state->template_fetch)
		begin(core, request_id);
}
