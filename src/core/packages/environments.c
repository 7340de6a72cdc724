/* environments.c -- the environments of a workspace, one of each kind at most: found or built, and
 * kept from being evicted while a workspace has them. Building is `carrel env build`, run by the
 * launcher; what it prints is read here, and how far it is by core/packages/build_progress.c. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/access/policies.h"
#include "core/internal.h"
#include "core/packages/build_progress.h"
#include "core/packages/checkup.h"
#include "core/packages/environments.h"
#include "core/packages/internal.h"
#include "core/packages/recipes.h"
#include "core/waits.h"
#include "envs/kind.h"
#include "format/text/json_read.h"

#define PACKAGE_ID "run"	     /* as `carrel run` calls them: one environment for both */
#define INPUT_MAX ((size_t)32 << 20) /* of a build */
/* Of a START, for what is there besides the environment with the most layers: the frozen layers of
 * a workspace, below each environment and below /workspace, and an environment of Node. */
#define FROZEN_STRINGS (3 * WORKSPACE_LAYERS_MAX + 32)
#define FROZEN_BYTES (FROZEN_STRINGS * (LAUNCH_FROZEN_LEN + 1))

struct env_pin {
	int fd; /* meta.json, locked shared */
	struct arena arena;
	struct env_meta meta; /* as it was read from there */
	unsigned users;
	char name[];
};

/* A search for an environment, or a build of it. */
struct preparation {
	struct fiber *fiber;
	struct core_workspace *w;
	size_t slot; /* of the environment */
	const struct workspace *recipe;
	const char *request_id;
	const char *wheels;		 /* a workspace, or NULL */
	int answer;			 /* memfd: stdout of the build */
	struct build_progress *progress; /* its stderr */
	int exit_code;			 /* of the build */
	uint64_t *tag;			 /* of the build under way; or 0 */
	bool was_cached;		 /* nothing had to be built */
};

static bool is_asked(const struct workspace *model, size_t slot)
{
	return model->environments.of[slot] || environment_recipes[slot]->is_given(model);
}

bool environment_is_asked(const struct workspace *model)
{
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (is_asked(model, i))
			return true;
	return false;
}

/* ---- pins: one a name, shared by all workspaces that have it ---- */

/* What the launcher takes: it ends a core that says anything else. */
static int check_meta(const struct env_meta *meta, struct error *err)
{
	const char *interpreter = env_meta_interpreter(meta);
	size_t count = 7 + meta->editables.count + meta->layers.count + 2 * meta->tools.count;
	size_t bytes = strlen(meta->name) + 2 * PATH_MAX +
		       (meta->layers.count + 2 * meta->tools.count) * (LAYER_ID_LEN + 1);
	bool is_plain = (!interpreter || path_is_normal(interpreter)) &&
			(!meta->python_prefix || path_is_normal(meta->python_prefix));
	for (size_t i = 0; i < meta->editables.count; i++) {
		is_plain &= path_is_normal(meta->editables.items[i]);
		bytes += strlen(meta->editables.items[i]) + 1;
	}
	if (!is_plain || !meta->layers.count)
		return fail_hint(err, ERR_CORRUPT, "build it again",
			"meta.json of environment '%s' has a path that isn't plain, or no layers",
			meta->name);
	if (count > LAUNCH_STRINGS_MAX - FROZEN_STRINGS || bytes > LAUNCH_BODY_MAX - FROZEN_BYTES)
		return fail(err, ERR_LIMIT,
			"environment '%s' has too many layers or editable projects for a sandbox",
			meta->name);
	return 0;
}

/* Reads the environment that has that name now, in place of the one that had it before. */
static int renew(struct core *core, const char *name, struct env_pin *pin, struct error *err)
{
	struct arena arena = { 0 };
	struct env_meta meta;
	int fd = -1;
	if (env_use(&core->envs, name, &arena, &meta, &fd, err) || check_meta(&meta, err)) {
		fd_close(&fd);
		arena_done(&arena);
		return -1;
	}
	fd_close(&pin->fd);
	arena_done(&pin->arena);
	pin->fd = fd;
	pin->arena = arena;
	pin->meta = meta;
	return 0;
}

static void free_pin(struct env_pin *pin)
{
	fd_close(&pin->fd);
	arena_done(&pin->arena);
	free(pin);
}

void environment_unpin(struct core *core, struct env_pin *pin)
{
	if (!pin || --pin->users)
		return;
	map_remove(&core->packages->pins, str_from(pin->name));
	free_pin(pin);
}

const struct env_meta *pin_meta(const struct env_pin *pin)
{
	return pin ? &pin->meta : NULL;
}

/* The pin of that name, which is the caller's to release. */
static struct env_pin *take_pin(struct core *core, const char *name, struct error *err)
{
	struct env_pin *pin = map_get(&core->packages->pins, str_from(name));
	bool is_new = !pin;
	if (is_new) {
		pin = xzalloc(sizeof *pin + strlen(name) + 1);
		memcpy(pin->name, name, strlen(name) + 1);
		pin->fd = -1;
		arena_init(&pin->arena);
	}
	bool is_known = !is_new && env_is_current(&core->envs, name, pin->fd);
	if (is_known ? env_check(&core->envs, &pin->meta, err) : renew(core, name, pin, err)) {
		if (is_new)
			free_pin(pin);
		return NULL;
	}
	if (is_new)
		map_add(&core->packages->pins, str_from(pin->name), pin);
	pin->users++;
	return pin;
}

/* Two of one kind would be mounted in one place, and share what is changed there. */
static int check_kinds(
	const struct core_workspace *w, size_t slot, const struct env_meta *meta, struct error *err)
{
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (i != slot && environment_kind(w, i) == env_kind_of(meta))
			return fail(err, ERR_INVALID,
				"environments '%s' and '%s' are both of %s: a workspace has one of "
				"each kind",
				w->packages->pins[i]->name, meta->name,
				env_kind_row_of(meta)->name);
	return 0;
}

static int pin(struct core_workspace *w, size_t slot, const char *name, struct error *err)
{
	struct env_pin *pin = take_pin(w->core, name, err);
	if (!pin)
		return -1;
	if (check_kinds(w, slot, &pin->meta, err)) {
		environment_unpin(w->core, pin);
		return -1;
	}
	environment_unpin(w->core, w->packages->pins[slot]);
	w->packages->pins[slot] = pin;
	return 0;
}

static struct env_pin *keep(struct core *core, const char *name)
{
	struct error ignored; /* the first command looks again, and says what is wrong */
	struct env_pin *pin = map_get(&core->packages->pins, str_from(name));
	if (!pin)
		return take_pin(core, name, &ignored);
	pin->users++;
	return pin;
}

void environments_keep(struct core_workspace *w)
{
	for (size_t i = 0; i < ENV_KINDS; i++) {
		const char *name = w->model.environments.of[i];
		if (name && !w->packages->pins[i])
			w->packages->pins[i] = keep(w->core, name);
	}
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (w->model.unsettled[i].before && !w->packages->before[i])
			w->packages->before[i] = keep(w->core, w->model.unsettled[i].before);
}

void environments_release(struct core_workspace *w)
{
	for (size_t i = 0; i < ENV_KINDS; i++) {
		environment_unpin(w->core, w->packages->pins[i]);
		environment_unpin(w->core, w->packages->before[i]);
		w->packages->pins[i] = w->packages->before[i] = NULL;
	}
}

void environments_sort(struct core_workspace *w)
{
	environments_keep(w);
	const struct env_kind *kind = environment_kind(w, 0);
	size_t own = kind ? (size_t)(kind->row - env_kind_rows) : 0;
	const char **names = w->model.environments.of;
	if (own == 0 || names[own])
		return;
	names[own] = names[0];
	names[0] = NULL;
	w->packages->pins[own] = w->packages->pins[0];
	w->packages->pins[0] = NULL;
}

const text_list *environment_layers(struct core_workspace *w, const struct env_kind *kind)
{
	environments_keep(w);
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (environment_kind(w, i) == kind)
			return &w->packages->pins[i]->meta.layers;
	return NULL;
}

bool environments_are_pinned(const struct core_workspace *w)
{
	for (size_t i = 0; i < ENV_KINDS; i++)
		if (w->packages->pins[i])
			return true;
	return false;
}

const struct env_kind *environment_kind(const struct core_workspace *w, size_t slot)
{
	return w->packages->pins[slot] ? env_kind_of(&w->packages->pins[slot]->meta) : NULL;
}

const struct env_meta *environment_pinned(const struct core_workspace *w, size_t slot)
{
	return w->packages->pins[slot] ? &w->packages->pins[slot]->meta : NULL;
}

static size_t add_texts(const char **strings, const text_list *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		strings[i] = texts->items[i];
	return texts->count;
}

static size_t describe(
	const struct core_workspace *w, const struct env_meta *meta, const char **strings)
{
	const char *interpreter = env_meta_interpreter(meta);
	size_t count = 0;
	strings[count++] = meta->name;
	strings[count++] = env_kind_row_of(meta)->name;
	strings[count++] = interpreter ? interpreter : "";
	strings[count++] = meta->python_prefix ? meta->python_prefix : "";
	count += add_texts(strings + count, &meta->editables);
	strings[count++] = "";
	count += add_texts(strings + count, &w->model.layers);
	count += add_texts(strings + count, &meta->layers);
	strings[count++] = "";
	/* The interpreter of Python is shown by its prefix. */
	for (size_t i = 0; env_kind_row_of(meta)->has_tools && i < meta->tools.count; i++) {
		strings[count++] = meta->tools.items[i].key;
		strings[count++] = meta->tools.items[i].value;
	}
	strings[count++] = "";
	return count;
}

size_t environments_describe(const struct core_workspace *w, struct launch_message *head,
	const char *strings[LAUNCH_STRINGS_MAX], int fds[ENV_KINDS], int *fd_count)
{
	size_t count = 0;
	for (size_t i = 0; i < ENV_KINDS; i++) {
		const struct env_pin *pin = w->packages->pins[i];
		if (!pin || !w->model.environments.of[i])
			continue;
		count += describe(w, &pin->meta, strings + count);
		head->value++;
		fds[(*fd_count)++] = pin->fd;
	}
	return count;
}

/* ---- building ---- */

/* What `env build -o json` said: an environment, or why there is none. */
static int read_answer(
	struct preparation *p, const char **name, struct arena *arena, struct error *err)
{
	struct json_value *answer;
	if (job_read_answer(p->answer, p->exit_code, "carrel-build", arena, &answer, err))
		return -1;
	*name = json_member_text(answer, "name");
	const struct json_value *built = json_member(answer, "built");
	p->was_cached = built && built->kind == JSON_BOOL && !built->boolean;
	return *name ? 0 : fail(err, ERR_FAILED, "the answer of carrel-build names no environment");
}

static void set_name(struct core_workspace *w, size_t slot, const char *name)
{
	const char **known = &w->model.environments.of[slot];
	if (!*known || strcmp(*known, name))
		*known = arena_text(&w->arena, name);
}

static void on_built(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct preparation *p = ctx;
	struct error err;
	bool is_built = packet && packet->head.type == LAUNCH_BUILT;
	if (is_built)
		p->exit_code = packet->head.value;
	else
		launcher_failure(packet, &err);
	fiber_continue(p->fiber, is_built ? NULL : &err);
}

/* A file of this text, to be read from its beginning. */
static int open_text(const struct buf *text, int *out, struct error *err)
{
	auto_close int fd = memfd_create("requirements", MFD_CLOEXEC);
	if (fd < 0 || fd_write_full(fd, text->data, text->len) != (ssize_t)text->len ||
		lseek(fd, 0, SEEK_SET))
		return fail_errno(err, "store the requirements");
	*out = take_fd(&fd);
	return 0;
}

static int open_requirements(const struct preparation *p, int *out, struct error *err)
{
	const struct environment_recipe *recipe = environment_recipes[p->slot];
	auto_buf struct buf text = buf_empty(INPUT_MAX);
	if (!recipe->has_input(p->recipe)) {
		*out = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return *out < 0 ? fail_errno(err, "open '/dev/null'") : 0;
	}
	recipe->print_input(p->recipe, &text);
	return open_text(&text, out, err);
}

static int open_streams(struct preparation *p, int *input, int *errors, struct error *err)
{
	if (open_requirements(p, input, err))
		return -1;
	p->answer = memfd_create("answer", MFD_CLOEXEC);
	if (p->answer < 0)
		return fail_errno(err, "create a file for the output of carrel-build");
	return build_progress_open(p->w, p->request_id, &p->progress, errors, err);
}

/* The indexes that the policies of the workspace leave to it. */
static int list_indexes(
	struct preparation *p, struct arena *arena, text_list *words, struct error *err)
{
	text_list urls = { 0 };
	if (!environment_recipes[p->slot]->has_packages(p->recipe))
		return 0;
	if (policies_indexes(p->w, &env_kind_rows[p->slot], arena, &urls, err))
		return -1;
	for (size_t i = 0; i < urls.count; i++)
		vec_push(arena, words,
			(const char *)arena_printf(arena, "--allow-index=%s", urls.items[i]));
	return 0;
}

/* The package that its environment is named after. */
static const char *package_of(const struct workspace *model)
{
	const char *id = model->owner.package_id;
	return id && env_package_id_is_valid(id) ? id : PACKAGE_ID;
}

/* Clients of the daemon name packages whose code would run as it is built: that is the operator's
 * to allow. */
static int check_scripts(const struct preparation *p, struct error *err)
{
	if (!environment_recipes[p->slot]->runs_scripts(p->recipe) ||
		p->w->core->envs.config.allow_scripts)
		return 0;
	return fail_hint(err, ERR_DENIED,
		"environments.allow_scripts: true in config.yaml allows them",
		"install scripts of Node packages are not allowed here");
}

static int ask_for_build(struct preparation *p, struct error *err)
{
	const struct workspace *model = p->recipe;
	struct launch_message head = { .type = LAUNCH_BUILD };
	const char *strings[LAUNCH_STRINGS_MAX];
	size_t count = 0, bytes = 0;
	auto_arena struct arena arena = { 0 };
	text_list words = { 0 };
	auto_close int input = -1;
	auto_close int errors = -1;
	if (check_scripts(p, err))
		return -1;
	strings[count++] = package_of(model);
	const struct environment_recipe *recipe = environment_recipes[p->slot];
	const char *python = recipe->python(model);
	strings[count++] = python ? python : "";
	recipe->list_words(model, &arena, &words);
	if (list_indexes(p, &arena, &words, err))
		return -1;
	if (p->wheels)
		vec_push(&arena, &words, arena_printf(&arena, BUILD_WHEELS "%s", p->wheels));
	for (size_t i = 0; i < words.count; i++) {
		if (count == LAUNCH_STRINGS_MAX ||
			(bytes += strlen(words.items[i]) + 1) > LAUNCH_BODY_MAX - 4096)
			return fail_hint(err, ERR_LIMIT, recipe->instead, "too many packages");
		strings[count++] = words.items[i];
	}
	if (open_streams(p, &input, &errors, err))
		return -1;
	str_copy(head.request_id, sizeof head.request_id, p->request_id);
	const int fds[] = { input, p->answer, errors };
	*p->tag = launcher_ask(&p->w->core->launcher, &head, strings, count, fds, 3, on_built, p);
	return 0;
}

static void cut_build(void *ctx)
{
	const struct preparation *p = ctx;
	environment_cancel_build(p->w->core, *p->tag);
}

static int build(struct preparation *p, const char **name, struct arena *arena, struct error *err)
{
	p->answer = -1;
	int failed = ask_for_build(p, err) || fiber_wait_or_cut(p->fiber, cut_build, p, err);
	*p->tag = 0;
	build_progress_close(take_ptr(p->progress));
	failed = failed || read_answer(p, name, arena, err);
	fd_close(&p->answer);
	return failed;
}

/* The environment that was built, which is the caller's to release. */
static struct env_pin *build_pin(struct preparation *p, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const char *name;
	return build(p, &name, &arena, err) ? NULL : take_pin(p->w->core, name, err);
}

uint64_t environment_verify(struct core *core, const char *name, bool repairs, int answer,
	launcher_fn *done, void *ctx, struct error *err)
{
	struct launch_message head = { .type = LAUNCH_VERIFY, .value = repairs };
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0) {
		fail_errno(err, "open '/dev/null'");
		return 0;
	}
	const int fds[] = { null, answer, null };
	return launcher_ask(&core->launcher, &head, &name, 1, fds, 3, done, ctx);
}

void environment_cancel_build(struct core *core, uint64_t tag)
{
	struct launch_message head = { .type = LAUNCH_CANCEL, .other = tag };
	if (tag)
		launcher_ask(&core->launcher, &head, NULL, 0, NULL, 0, NULL, NULL);
}

void environment_cancel(struct core_workspace *w)
{
	environment_cancel_build(w->core, w->packages->build);
}

/* One that exists. 0: it has to be built. */
static int find(struct preparation *p, struct error *err)
{
	struct core_workspace *w = p->w;
	const char *known = w->model.environments.of[p->slot], *name;
	auto_arena struct arena arena = { 0 };
	if (!known)
		return 0;
	if (!env_resolve(&w->core->envs, known, &arena, &name, err) &&
		!pin(w, p->slot, name, err)) {
		set_name(w, p->slot, name);
		return 1;
	}
	/* One that was evicted is built again in any case; one that is damaged is repaired so. */
	bool is_lost =
		err->code == ERR_NOT_FOUND || (err->code == ERR_CORRUPT && w->core->auto_repair);
	if (environment_recipes[p->slot]->is_given(&w->model) && is_lost)
		return 0;
	return err->code == ERR_CORRUPT ? error_hint(err, REPAIR_HINT, w->model.name) : -1;
}

static int find_or_build(struct preparation *p, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const char *name;
	int found = find(p, err);
	if (found)
		return found < 0 ? -1 : 0;
	if (build(p, &name, &arena, err) || pin(p->w, p->slot, name, err))
		return -1;
	set_name(p->w, p->slot, name);
	return 0;
}

int environment_prepare(
	struct fiber *fiber, struct core_workspace *w, const char *request_id, struct error *err)
{
	struct preparation p = { .fiber = fiber,
		.w = w,
		.recipe = &w->model,
		.request_id = request_id,
		.tag = &w->packages->build };
	for (; p.slot < ENV_KINDS; p.slot++)
		if (is_asked(&w->model, p.slot) && find_or_build(&p, err))
			return -1;
	return 0;
}

int environment_build(struct fiber *fiber, struct core_workspace *w, const struct workspace *recipe,
	size_t slot, const char *request_id, uint64_t *tag, struct env_pin **pin, struct error *err)
{
	struct preparation p = { .fiber = fiber,
		.w = w,
		.slot = slot,
		.recipe = recipe,
		.request_id = request_id,
		.tag = tag };
	*pin = build_pin(&p, err);
	return *pin ? 0 : -1;
}

/* ---- for no workspace yet ---- */

_Static_assert(sizeof ENVIRONMENT_WHEELS == sizeof BUILD_WHEELS_DIR, "the same name");

int environment_make(const struct request *request, struct fiber *fiber, struct core_workspace *w,
	const struct workspace *recipe, const char *wheels, struct environment_made *made,
	struct error *err)
{
	struct core *core = w->core;
	uint64_t tag = 0;
	struct preparation p = { .fiber = fiber,
		.w = w,
		.recipe = recipe,
		.request_id = "",
		.wheels = wheels,
		.tag = &tag };
	if (access_check(core, request, VERB_WORKSPACE_INSTALL, w, err))
		return fail_later(fiber, core);
	core_hold(w);
	struct env_pin *pin = build_pin(&p, err);
	bool is_denied = pin && policies_check_environment(w, pin_meta(pin), err);
	core_release(w);
	if (!pin || is_denied) {
		environment_unpin(core, pin);
		return -1;
	}
	*made = (struct environment_made){ pin, pin->name, p.was_cached };
	return 0;
}

void environment_release(struct core *core, struct env_pin *pin)
{
	environment_unpin(core, pin);
}
