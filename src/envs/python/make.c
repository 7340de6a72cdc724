/* An environment of Python made: what isn't there is resolved, fetched and made into layers. */

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "envs/python/internal.h"
#include "envs/python/download.h"
#include "envs/python/explain.h"
#include "envs/python/hosts.h"
#include "envs/python/jobs.h"
#include "envs/python/progress.h"

#define MAKE_TRIES 4
#define PROJECTS 4 /* of which a page is looked at to learn where an index keeps its files */

/* -- what a build needs -- */

static int download_python(struct making *making, struct error *err)
{
	const struct env_store *store = making->store;
	struct env_wanted *wanted = making->wanted;
	if (uv_find_here(store->home, &making->runner, making->arena, &making->uv, err) < 0)
		return error_context(err, "download Python %s", wanted->python.minor);
	if (interpreter_install(making->builder, &making->uv, &wanted->indexes,
		    wanted->request->python, making->arena, err) < 0)
		return -1;
	if (interpreter_choose(store->home, wanted->request->python, store->config.python,
		    making->arena, &wanted->python, &wanted->python_is_default, err) < 0 &&
		err->code != ERR_UNAVAILABLE)
		return -1;
	return 0;
}

/* Chosen again once it is known: a full version may turn out to be another one's. */
static int look_at_python(struct making *making, struct error *err)
{
	struct env_wanted *wanted = making->wanted;
	const struct env_store *store = making->store;
	bool has_requirements = strcmp(wanted->requirements_sha256, "no-deps") != 0;
	if (wanted->python_is_known)
		return 0;
	if ((wanted->python_is_missing && download_python(making, err) < 0) ||
		interpreter_look(
			store->home, &making->runner, &wanted->python, making->arena, err) < 0 ||
		interpreter_choose(store->home, wanted->request->python, store->config.python,
			making->arena, &wanted->python, &wanted->python_is_default, err) < 0)
		return -1;
	wanted->python_is_known = true;
	wanted->name = env_name_make(making->arena, wanted->request->package_id,
		has_requirements ? wanted->requirements_sha256 : NULL,
		wanted->python_is_default ? NULL : wanted->python.minor);
	wanted_complete(store, wanted, making->arena);
	return 0;
}

/* An index that doesn't answer is uv's to explain: it asks again, and names the package. */
static int ask_file_hosts(
	struct making *making, const char *const *projects, file_hosts *hosts, struct error *err)
{
	struct error why = { 0 };
	if (index_file_hosts(making->store->home, &making->runner, &making->wanted->indexes,
		    &making->wanted->python, projects, making->arena, hosts, &why) == 0)
		return 0;
	buf_printf(&making->run->log, "where the index keeps its files: %s\n", why.text);
	if (clock_monotonic_ms() >= making->run->deadline_ms)
		return making_timeout(making, err);
	return making_is_unresolved(making) && making_unreachable(making, err) ? -1 : 0;
}

static int allow(struct making *making, const file_hosts *hosts, bool is_named, struct error *err)
{
	const struct build_network *network = making->builder->network;
	for (size_t i = 0; i < hosts->count; i++) {
		if (network->allow(network->ctx, hosts->items[i].host, hosts->items[i].port,
			    is_named, err) < 0)
			return -1;
	}
	return 0;
}

static int add_host_of(
	struct making *making, const char *where, file_hosts *hosts, struct error *err)
{
	struct file_host host;
	if (file_host_parse(where, making->arena, &host, err) < 0)
		return -1;
	vec_push(making->arena, hosts, host);
	return 0;
}

/* Of the configuration, of the requirements, and of --find-links. */
static int allow_written_hosts(struct making *making, struct error *err)
{
	const text_list *configured = &making->store->config.file_hosts;
	const requirement_list *list = &making->wanted->requirements;
	const struct env_request *request = making->wanted->request;
	file_hosts named = { 0 }, others = { 0 };
	for (size_t i = 0; i < configured->count; i++) {
		if (add_host_of(making, configured->items[i], &named, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < request->find_links.count; i++) {
		const char *link = request->find_links.items[i];
		if (!path_is_absolute(link) &&
			add_host_of(making, wheel_url_host(link, making->arena), &named, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < list->count; i++) {
		const char *url = wheel_url(&list->items[i], making->arena);
		if (url &&
			add_host_of(making, wheel_url_host(url, making->arena), &others, err) < 0)
			return -1;
	}
	return allow(making, &named, true, err) < 0 ? -1 : allow(making, &others, false, err);
}

static bool knows_file_hosts(struct making *making)
{
	file_hosts hosts = { 0 };
	struct error ignored;
	return making->store->config.file_hosts.count > 0 ||
	       index_file_hosts(making->store->home, NULL, &making->wanted->indexes,
		       &making->wanted->python, NULL, making->arena, &hosts, &ignored) == 0;
}

int making_allow_files(struct making *making, struct error *err)
{
	const struct build_network *network = making->builder->network;
	const requirement_list *list = &making->wanted->requirements;
	const char *projects[PROJECTS + 1] = { NULL };
	file_hosts hosts = { 0 };
	size_t count = 0;
	for (size_t i = 0; i < list->count && count < PROJECTS; i++) {
		if (list->items[i].name)
			projects[count++] = list->items[i].name;
	}
	if ((making->store->config.file_hosts.count == 0 &&
		    ask_file_hosts(making, projects, &hosts, err) < 0) ||
		allow(making, &hosts, false, err) < 0)
		return -1;
	return network->settle(network->ctx, err);
}

/* What is shown before goes on to be shown when uv is there already. */
static int find_uv(struct making *making, struct error *err)
{
	const struct env_store *store = making->store;
	struct env_wanted *wanted = making->wanted;
	struct error why = { 0 };
	if (uv_find_here(store->home, &making->runner, making->arena, &making->uv, &why) == 0)
		return 0;
	if (why.code == ERR_NOT_FOUND) {
		events_status(&store->events, "fetching_uv", wanted->name);
		making_show(making, "fetching_uv", 0, 0);
	}
	if (uv_find(store->home, &making->runner, &wanted->indexes, &wanted->python, making->arena,
		    &making->uv, err) == 0)
		return 0;
	if (err->code != ERR_UNAVAILABLE && clock_monotonic_ms() >= making->run->deadline_ms)
		return making_timeout(making, err);
	if (err->code != ERR_UNAVAILABLE || !making_unreachable(making, &why))
		return -1;
	*err = why;
	return error_context(err, "uv " UV_VERSION " isn't on PATH and can't be fetched");
}

/* Whether uv can begin to resolve while the index is asked for the hosts of its files: connections
 * to them wait in the forwarder until it is settled. Whatever else a build does first closes the
 * network in between, or must know which hosts are refused. */
static bool may_ask_later(struct making *making)
{
	const struct env_wanted *wanted = making->wanted;
	struct error ignored;
	return making->is_resolving && !wanted->allow_build && wanted->projects.count == 0 &&
	       wanted->locals.count == 0 && !wanted->request->torch_backend &&
	       uv_find_here(making->store->home, &making->runner, making->arena, &making->uv,
		       &ignored) == 0 &&
	       !knows_file_hosts(making);
}

/* Before any of them is reached. */
static int judge_indexes(struct making *making, struct error *err)
{
	const struct env_request *request = making->wanted->request;
	const struct index_set *indexes = &making->wanted->indexes;
	const text_list *lists[] = { &indexes->extra, &request->find_links };
	if (indexes->index && policy_judge_index(request, indexes->index, making->arena,
				      making->problem, err) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < lists[i]->count; k++)
			if (!path_is_absolute(lists[i]->items[k]) &&
				policy_judge_index(request, lists[i]->items[k], making->arena,
					making->problem, err) < 0)
				return -1;
	return 0;
}

int making_reach(struct making *making, struct error *err)
{
	const struct build_network *network = making->builder->network;
	const struct env_store *store = making->store;
	struct env_wanted *wanted = making->wanted;
	const struct runner *runner = &making->runner;
	struct error no_uv;
	if (making->is_reaching)
		return 0;
	/* Only to fetch uv. */
	if (wanted->request->wheels &&
		uv_find_here(store->home, runner, making->arena, &making->uv, &no_uv) == 0) {
		making->is_reaching = true;
		return 0;
	}
	if (!wanted->indexes.index && uv_default_index(store->home, runner, &wanted->python,
					      making->arena, &wanted->indexes.index, err) < 0)
		return -1;
	if (judge_indexes(making, err) < 0 ||
		index_log_in(&wanted->indexes, network->password, network->ctx, making->arena,
			&wanted->secrets, err) < 0 ||
		network->open(network->ctx, &wanted->indexes, err) < 0 ||
		allow_written_hosts(making, err) < 0)
		return -1;
	if (may_ask_later(making) && prepare_start(making, true)) {
		making->is_reaching = true;
		return 0;
	}
	if (making_allow_files(making, err) < 0 || find_uv(making, err) < 0 ||
		making_reach_torch(making, err) < 0)
		return -1;
	if (making->is_resolving)
		prepare_start(making, false);
	making->is_reaching = true;
	return 0;
}

int making_lock_layers(struct making *making, struct error *err)
{
	return making->run->layers >= 0
		       ? 0
		       : layer_store_lock(&making->store->layers, false, &making->run->layers, err);
}

/* -- layers -- */

void making_clean(struct making *making)
{
	const struct build_network *network = making->builder->network;
	struct error ignored;
	network->close(network->ctx);
	making->is_reaching = false;
	/* What can't be removed is swept by the next build. */
	layer_stage_done(&making->store->layers, &making->stage, &ignored);
	making->built.count = 0;
}

static int find_lock(struct making *making, struct error *err)
{
	struct env_wanted *wanted = making->wanted;
	int found = 0;
	if (!wanted->needs_lock) {
		making->run->lock = STR("");
		return 0;
	}
	if (!wanted->request->no_cache)
		found = lock_load(making->store, wanted->lock_key, making->arena, &making->packages,
			&making->run->lock, err);
	if (found < 0)
		return -1;
	if (found == 0) {
		making->is_resolving = true;
		int failed = making_reach(making, err) < 0 || making_stage(making, err) < 0 ||
			     making_resolve(making, err) < 0;
		making->is_resolving = false;
		return failed ? -1 : 0;
	}
	return policy_judge_lock(&making->store->config, &making->packages, making->problem, err);
}

int making_find_layers(struct making *making, struct error *err)
{
	struct composition *composition = &making->composition;
	*composition = (struct composition){ .meta = &making->run->meta,
		.wanted = making->wanted,
		.packages = &making->packages,
		.is_without_pip = making->is_without_pip || making->is_preparing,
		.is_pip_compiled = making->is_part && !making->is_pip_plain,
		.is_part = making->is_part || making->is_preparing };
	if (making_lock_layers(making, err) < 0)
		return -1;
	return compose_layers(making->store, composition, making->arena, err);
}

/* If layers are missing, waits for those being prepared in the background, then looks again. */
static int find_all(struct making *making, struct error *err)
{
	int found = making_find_layers(making, err);
	if (found <= 0 || !making->is_preparing)
		return found;
	fd_close(&making->run->layers);
	prepare_wait(making);
	return making_find_layers(making, err);
}

/* For the event: the file that was named first, or NULL. */
static const char *first_file(const struct env_request *request)
{
	return request->requirement_files.count > 0 ? request->requirement_files.items[0] : NULL;
}

/* The lock is not held while packages are fetched: who removes layers would wait as long. What was
 * there may be gone then, and is fetched, too. */
static int make_layers(struct making *making, struct error *err)
{
	int found;
	for (int tries = 0; (found = find_all(making, err)) == 0; tries++) {
		if (tries == MAKE_TRIES)
			return fail(err, ERR_CONFLICT,
				"layers of environment '%s' are removed while it is built",
				making->wanted->name);
		if (making->composition.parts.count > 0) {
			/* The lock stays: the parts are in no environment's list. */
			if (making_merge(making, err) < 0)
				return -1;
			making_clean(making);
			continue;
		}
		fd_close(&making->run->layers);
		if (making->stage.fd < 0 && making_stage(making, err) < 0)
			return -1;
		if (tries == 0)
			events_installing(&making->store->events, making->wanted->name,
				first_file(making->wanted->request));
		if (making_install(making, err) < 0)
			return -1;
		making_clean(making);
	}
	return found < 0 ? -1 : 0;
}

/* Without an index there is the pip that is there, or none. */
static bool has_pip(const struct making *making)
{
	const struct env_wanted *wanted = making->wanted;
	const struct lock_package *pip = pip_for(wanted->python.minor, making->arena);
	const char *const keys[] = { wheel_key(making->arena, pip, wanted->python.tag, NULL),
		plain_key(making->arena, pip, wanted->python.tag) };
	char id[LAYER_ID_LEN + 1];
	struct error ignored;
	return layer_find(&making->store->layers, keys[0], id, &ignored) == 0 ||
	       layer_find(&making->store->layers, keys[1], id, &ignored) == 0;
}

static int make(struct making *making, struct error *err)
{
	making->is_without_pip = making->wanted->request->wheels && !has_pip(making);
	if (find_lock(making, err) < 0)
		return -1;
	compose_meta(making->wanted, &making->packages, making->arena, &making->run->meta);
	if (make_layers(making, err) < 0)
		return -1;
	compose_indexes(
		making->wanted, making->composition.index, making->arena, &making->run->meta);
	return 0;
}

/* -- what the interface is -- */

struct making making_of(struct build_run *run)
{
	return (struct making){ .run = run,
		.builder = run->builder,
		.store = run->store,
		.wanted = run->wanted,
		.arena = run->arena,
		.problem = run->problem,
		.runner = run_runner(run),
		.stage = LAYER_STAGE_NONE };
}

int python_complete(struct build_run *run, struct error *err)
{
	struct making making = making_of(run);
	struct child asking = prepare_index(&making);
	int failed = look_at_python(&making, err);
	child_wait(&asking);
	return failed;
}

int python_make(struct build_run *run, struct error *err)
{
	struct making making = making_of(run);
	int failed = make(&making, err);
	if (failed)
		fd_close(&run->layers);
	prepare_wait(&making);
	making_clean(&making);
	return failed;
}
