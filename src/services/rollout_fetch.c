/* rollout_fetch.c -- a package from a URL: downloaded by a program in a throw-away workspace that
 * reaches the host of the URL alone, through egress as any workspace. */
#include "base/fault.h"
#include "base/fd.h"
#include "core/state/exports.h"
#include "format/http/uri.h"
#include "services/deployment_internal.h"

#define FETCHED "package.apkg"
#define FETCH_TIMEOUT_MS 600000

static int make_desk(struct rollout *rollout, struct desk *desk, struct error *err)
{
	struct revision_state *r = rollout->revision;
	struct workspace wanted = { .network = { .mode = "list" },
		.owner = rollout_owner(r, "download") };
	struct uri parts; /* valid: the model has checked it */
	uri_split(r->model.package_url, &parts);
	const char *host = arena_bytes(&r->arena, parts.host.data, parts.host.len);
	vec_push(&r->arena, &wanted.network.allow, host);
	fault_point("deployment_step");
	env_begin_early(rollout);
	return rollout_create(rollout, rollout->fiber, desk, &wanted, err);
}

/* Why the program failed: what it wrote last, or that its time was up. */
static int explain(const struct revision_state *r, const struct desk *desk, struct error *err)
{
	const struct buf *text = &desk->captured.streams[1];
	size_t len = text->len && text->data[text->len - 1] == '\n' ? text->len - 1 : text->len;
	struct str why = len ? (struct str){ text->data, len > 300 ? 300 : len }
			     : str_from("the download was ended");
	return fail(err, ERR_UNAVAILABLE, "fetch '%.200s': %.*s", r->model.package_url,
		(int)why.len, why.data);
}

static int download(struct rollout *rollout, struct desk *desk, struct error *err)
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
	const struct revision_state *r = rollout->revision;
	const char *words[] = { "python3", "-c", script, r->model.package_url, NULL };
	const struct exec_spec spec = { .argv = { words, 4, 4 }, .timeout_ms = FETCH_TIMEOUT_MS };
	fault_point("deployment_step");
	if (desk_run(rollout->fiber, desk, &spec, err))
		return -1;
	return result_exit_code(&desk->result) ? explain(r, desk, err) : 0;
}

static int keep(struct rollout *rollout, struct desk *desk, struct error *err)
{
	struct revision_state *r = rollout->revision;
	auto_close int fd = -1;
	fault_point("deployment_step");
	if (desk_open(rollout->fiber, desk, FETCHED, &fd, err))
		return -1;
	fault_point("deployment_step");
	core_keep_stored(core_system(), r->deployment->all->service.core, &stored_packages,
		rollout_package_name(r), fd, r->model.wanted_sha256, rollout_take_package, rollout);
	return fiber_wait(rollout->fiber, err);
}

int fetch_package(struct rollout *rollout, struct error *err)
{
	struct desk desk;
	int failed = make_desk(rollout, &desk, err) || download(rollout, &desk, err) ||
		     keep(rollout, &desk, err);
	rollout_drop_desk(rollout, &desk);
	return failed ? -1 : 0;
}
