/* environments.c -- the environment of a workspace: found or built, and kept from being evicted
 * while a workspace has it. Building is `carrel env build`, run by the launcher; what it prints is
 * read here. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "core/health_internal.h"
#include "core/internal.h"
#include "format/json_read.h"

#define PACKAGE_ID "run" /* as `carrel run` calls them: one environment for both */
#define ANSWER_MAX ((size_t)4 << 20)
/* Of a START, for the frozen layers of a workspace: below the environment, and below /workspace. */
#define FROZEN_STRINGS (2 * WORKSPACE_LAYERS_MAX + 8)
#define FROZEN_BYTES (FROZEN_STRINGS * (LAUNCH_FROZEN_LEN + 1))

struct env_pin {
	int fd; /* meta.json, locked shared */
	struct arena arena;
	struct env_meta meta; /* as it was read from there */
	unsigned users;
	char name[];
};

struct preparation {
	struct core_workspace *w;
	environment_fn *done;
	void *ctx;
	int answer; /* memfd: stdout of the build */
	char request_id[ID_LEN + 1];
};

static bool has_recipe(const struct workspace *model)
{
	return model->python || model->requirements || model->packages.count ||
	       model->build_options.count || model->is_context;
}

bool environment_is_asked(const struct workspace *model)
{
	return model->environment || has_recipe(model);
}

/* ---- pins: one a name, shared by all workspaces that have it ---- */

/* What the launcher takes: it ends a core that says anything else. */
static int check_meta(const struct env_meta *meta, struct error *err)
{
	size_t count = 5 + meta->editables.count + meta->layers.count;
	size_t bytes = strlen(meta->name) + strlen(meta->python) + PATH_MAX +
		       meta->layers.count * (LAYER_ID_LEN + 1);
	bool is_plain = path_is_normal(meta->python) &&
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

static int pin(struct core_workspace *w, const char *name, struct error *err)
{
	struct core *core = w->core;
	struct env_pin *pin = map_get(&core->pins, str_from(name));
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
		return -1;
	}
	if (is_new)
		map_add(&core->pins, str_from(pin->name), pin);
	if (w->pin != pin) {
		environment_release(w);
		w->pin = pin;
		pin->users++;
	}
	return 0;
}

void environment_keep(struct core_workspace *w)
{
	struct error ignored; /* the first command looks again, and says what is wrong */
	const char *name = w->model.environment;
	if (!name || w->pin)
		return;
	w->pin = map_get(&w->core->pins, str_from(name));
	if (w->pin)
		w->pin->users++;
	else
		pin(w, name, &ignored);
}

void environment_release(struct core_workspace *w)
{
	struct env_pin *pin = w->pin;
	w->pin = NULL;
	if (!pin || --pin->users)
		return;
	map_remove(&w->core->pins, str_from(pin->name));
	free_pin(pin);
}

size_t environment_describe(const struct core_workspace *w, struct launch_message *head,
	const char *strings[LAUNCH_STRINGS_MAX], int *fd)
{
	const struct env_meta *meta = w->pin ? &w->pin->meta : NULL;
	size_t count = 0;
	if (!meta || !w->model.environment)
		return 0;
	strings[count++] = meta->name;
	strings[count++] = meta->python;
	strings[count++] = meta->python_prefix ? meta->python_prefix : "";
	for (size_t i = 0; i < meta->editables.count; i++)
		strings[count++] = meta->editables.items[i];
	strings[count++] = "";
	for (size_t i = 0; i < w->model.layers.count; i++)
		strings[count++] = w->model.layers.items[i];
	for (size_t i = 0; i < meta->layers.count; i++)
		strings[count++] = meta->layers.items[i];
	strings[count++] = "";
	head->value = 1;
	*fd = w->pin->fd;
	return count;
}

/* ---- building ---- */

static void finish(struct preparation *p, const struct error *err)
{
	struct core_workspace *w = p->w;
	p->done(p->ctx, err);
	fd_close(&p->answer);
	free(p);
	core_release(w);
}

/* What `env build -o json` said: an environment, or why there is none. */
static int read_answer(struct preparation *p, int exit_code, const char **name, struct arena *arena,
	struct error *err)
{
	struct json_value *answer;
	char *text = arena_alloc(arena, ANSWER_MAX);
	ssize_t len = pread(p->answer, text, ANSWER_MAX, 0);
	struct error why = { 0 };
	if (len < 0 || json_read((struct str){ text, (size_t)len }, arena, &answer, &why))
		return fail(err, ERR_FAILED,
			"the environment could not be built: carrel-build ended with code %d and "
			"printed no result",
			exit_code);
	const struct json_value *error = json_member(answer, "error");
	const char *message = json_member_text(error, "message");
	const char *hint = json_member_text(error, "hint");
	*name = json_member_text(answer, "name");
	if (!error && exit_code == 0 && *name)
		return 0;
	fail(err, error_code_from_name(json_member_text(error, "code"), ERR_FAILED), "%s",
		message ? message : "the environment could not be built");
	return hint ? error_hint(err, "%s", hint) : -1;
}

static void on_built(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct preparation *p = ctx;
	struct core_workspace *w = p->w;
	auto_arena struct arena arena = { 0 };
	const char *name = NULL;
	struct error err;
	w->build_tag = 0;
	bool is_built = packet && packet->head.type == LAUNCH_BUILT;
	if (!is_built)
		launcher_failure(packet, &err);
	if (!is_built || read_answer(p, packet->head.value, &name, &arena, &err) ||
		pin(w, name, &err)) {
		finish(p, &err);
		return;
	}
	if (!w->model.environment || strcmp(w->model.environment, name))
		w->model.environment = arena_text(&w->arena, name);
	finish(p, NULL);
}

/* The launcher passes on a file or packages: what was given as both is one file. Requirements alone
 * stay as they are, byte for byte: the hash of them is in the environment's name. */
static int open_requirements(const struct workspace *model, int *out, struct error *err)
{
	auto_buf struct buf text = buf_empty(ANSWER_MAX);
	if (!model->requirements) {
		*out = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return *out < 0 ? fail_errno(err, "open '/dev/null'") : 0;
	}
	buf_text(&text, model->requirements);
	if (model->packages.count && text.len && text.data[text.len - 1] != '\n')
		buf_char(&text, '\n');
	for (size_t i = 0; i < model->packages.count; i++)
		buf_printf(&text, "%s\n", model->packages.items[i]);
	auto_close int fd = memfd_create("requirements", MFD_CLOEXEC);
	if (fd < 0 || fd_write_full(fd, text.data, text.len) != (ssize_t)text.len ||
		lseek(fd, 0, SEEK_SET))
		return fail_errno(err, "store the requirements");
	*out = take_fd(&fd);
	return 0;
}

static int open_streams(struct preparation *p, int *input, int *errors, struct error *err)
{
	if (open_requirements(&p->w->model, input, err))
		return -1;
	p->answer = memfd_create("answer", MFD_CLOEXEC);
	*errors = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (p->answer < 0 || *errors < 0)
		return fail_errno(err, "create a file for the output of carrel-build");
	return 0;
}

static int build(struct preparation *p, struct error *err)
{
	const struct workspace *model = &p->w->model;
	struct launch_message head = { .type = LAUNCH_BUILD };
	const char *strings[LAUNCH_STRINGS_MAX];
	size_t count = 0, bytes = 0;
	auto_arena struct arena arena = { 0 };
	text_list words;
	auto_close int input = -1;
	auto_close int errors = -1;
	strings[count++] = PACKAGE_ID;
	strings[count++] = model->python ? model->python : "";
	words = workspace_copy_texts(&arena, &model->build_options);
	for (size_t i = 0; !model->requirements && i < model->packages.count; i++)
		vec_push(
			&arena, &words, arena_printf(&arena, "--pip=%s", model->packages.items[i]));
	for (size_t i = 0; i < words.count; i++) {
		if (count == LAUNCH_STRINGS_MAX ||
			(bytes += strlen(words.items[i]) + 1) > LAUNCH_BODY_MAX - 4096)
			return fail_hint(
				err, ERR_LIMIT, "use 'requirements' instead", "too many packages");
		strings[count++] = words.items[i];
	}
	if (open_streams(p, &input, &errors, err))
		return -1;
	memcpy(head.request_id, p->request_id, sizeof head.request_id);
	const int fds[] = { input, p->answer, errors };
	p->w->build_tag =
		launcher_ask(&p->w->core->launcher, &head, strings, count, fds, 3, on_built, p);
	return 0;
}

uint64_t environment_verify(struct core_workspace *w, bool repairs, int answer, launcher_fn *done,
	void *ctx, struct error *err)
{
	struct launch_message head = { .type = LAUNCH_VERIFY, .value = repairs };
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0) {
		fail_errno(err, "open '/dev/null'");
		return 0;
	}
	const int fds[] = { null, answer, null };
	return launcher_ask(&w->core->launcher, &head, &w->model.environment, 1, fds, 3, done, ctx);
}

const struct env_meta *environment_meta(const struct core_workspace *w)
{
	return w->pin ? &w->pin->meta : NULL;
}

void environment_cancel(struct core_workspace *w)
{
	struct launch_message head = { .type = LAUNCH_CANCEL, .other = w->build_tag };
	if (w->build_tag)
		launcher_ask(&w->core->launcher, &head, NULL, 0, NULL, 0, NULL, NULL);
}

void environment_prepare(
	struct core_workspace *w, const char *request_id, environment_fn *done, void *ctx)
{
	auto_arena struct arena arena = { 0 };
	const char *name = NULL;
	struct error err;
	if (!environment_is_asked(&w->model)) {
		done(ctx, NULL);
		return;
	}
	if (w->model.environment) {
		if (!env_resolve(&w->core->envs, w->model.environment, &arena, &name, &err) &&
			!pin(w, name, &err)) {
			if (strcmp(name, w->model.environment))
				w->model.environment = arena_text(&w->arena, name);
			done(ctx, NULL);
			return;
		}
		if (!has_recipe(&w->model) ||
			(err.code != ERR_NOT_FOUND && err.code != ERR_CORRUPT)) {
			done(ctx, &err);
			return;
		}
	}
	struct preparation *p = xzalloc(sizeof *p);
	*p = (struct preparation){ .w = w, .done = done, .ctx = ctx, .answer = -1 };
	str_copy(p->request_id, sizeof p->request_id, request_id ? request_id : "");
	core_hold(w);
	if (build(p, &err))
		finish(p, &err);
}
