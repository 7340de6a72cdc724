/* rollout_fetch.c -- a package from a URL: downloaded by a program in a throw-away workspace that
 * reaches the host of the URL alone, through egress as any workspace. */
#include <errno.h>
#include <string.h>
#include "base/fd.h"
#include "core/files/files.h"
#include "format/http/uri.h"
#include "services/deployment_internal.h"

#define FETCHED "package.apkg"
#define FETCH_TIMEOUT_MS 600000

static struct core *core_of(const struct revision_state *r)
{
	return r->deployment->all->service.core;
}

static void on_made(void *ctx, struct core_workspace *w, const struct error *err)
{
	struct revision_state *r = ctx;
	if (w)
		memcpy(r->fetch, core_model(w)->id, sizeof r->fetch);
	if (rollout_resume(r, err))
		rollout_next(r);
}

void fetch_make(struct revision_state *r)
{
	struct workspace wanted = { .network = { .mode = "list" },
		.owner = rollout_owner(r, "download") };
	struct uri parts; /* valid: the model has checked it */
	uri_split(r->model.package_url, &parts);
	const char *host = arena_bytes(&r->arena, parts.host.data, parts.host.len);
	vec_push(&r->arena, &wanted.network.allow, host);
	env_begin_early(r);
	r->is_waiting = true;
	core_create(revision_request(r, &r->arena), core_of(r), &wanted, on_made, r);
}

/* Why the program failed: what it wrote last, or that its time was up. */
static void explain(struct revision_state *r, struct core_exec *e, struct error *err)
{
	const struct buf *text = &exec_captured_of(e)->streams[1];
	size_t len = text->len && text->data[text->len - 1] == '\n' ? text->len - 1 : text->len;
	struct str why = len ? (struct str){ text->data, len > 300 ? 300 : len }
			     : str_from("the download was ended");
	fail(err, ERR_UNAVAILABLE, "fetch '%.200s': %.*s", r->model.package_url, (int)why.len,
		why.data);
}

static void on_ended(void *ctx, struct core_exec *e, const struct error *err)
{
	struct revision_state *r = ctx;
	struct error why;
	r->fetching = NULL;
	if (!err && result_exit_code(&exec_record_of(e)->result)) {
		explain(r, e, &why);
		err = &why;
	}
	if (rollout_resume(r, err))
		rollout_next(r);
}

void fetch_run(struct revision_state *r)
{
	static const char script[] =
		"import shutil, sys, urllib.request\n"
		"try:\n"
		"    with urllib.request.urlopen(sys.argv[1], timeout=60) as source:\n"
		"        with open('" FETCHED "', 'wb') as out:\n"
		"            shutil.copyfileobj(source, out)\n"
		"except (OSError, ValueError) as e:\n"
		"    why = f'{e} ({e.url})' if hasattr(e, 'url') else str(e)\n"
		"    sys.exit(''.join(c if ' ' <= c <= '~' else '?' for c in why))\n";
	auto_arena struct arena arena = { 0 };
	const struct exec_listener listener = { .ended = on_ended, .ctx = r };
	struct exec_spec spec = { .timeout_ms = FETCH_TIMEOUT_MS };
	struct core_workspace *w;
	struct error err;
	const char *const words[] = { "python3", "-c", script, r->model.package_url, NULL };
	for (size_t i = 0; i < 5; i++)
		vec_push(&arena, &spec.argv, words[i]);
	spec.argv.count--;
	if (core_find(core_system(), core_of(r), r->fetch, &w, &err) ||
		exec_start(core_system(), w, &spec, EXEC_CAPTURED, NULL, &listener, &r->fetching,
			&err)) {
		rollout_fail(r, &err);
		return;
	}
	r->is_waiting = true;
}

static void on_opened(void *ctx, const struct files_answer *answer, const struct error *err)
{
	struct revision_state *r = ctx;
	if (!err)
		r->package = answer->fd;
	if (rollout_resume(r, err))
		rollout_next(r);
}

void fetch_open(struct revision_state *r)
{
	const struct files_request what = { .verb = FILES_OPEN, .path = FETCHED };
	struct core_workspace *w;
	struct error err;
	if (core_find(core_system(), core_of(r), r->fetch, &w, &err)) {
		rollout_fail(r, &err);
		return;
	}
	r->is_waiting = true;
	files_do(core_system(), w, &what, on_opened, r);
}

void fetch_end(struct revision_state *r)
{
	if (r->fetching) {
		exec_detach(r->fetching);
		r->fetching = NULL;
		r->is_waiting = false;
	}
	if (r->fetch[0])
		revision_drop_workspace(r, r->fetch);
	r->fetch[0] = 0;
}
