#include "envs/python/sdist.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "envs/python/explain.h"
#include "envs/python/jobs.h"
#include "envs/python/known.h"
#include "envs/python/scripts.h"
#include "envs/python/uv.h"
#include "envs/python/uv_run.h"
#include "format/packages/requirements.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define REQUIRES_MAX 200
#define WHEELS "wheels"
#define TREE (ENV_INSIDE "/.tree")
#define OUT (ENV_INSIDE "/.out")
#define PROJECT_INSIDE "/project"

struct work {		      /* one package under way */
	struct making making; /* the caller's, with a stage of our own */
	struct env_wanted wanted;
	struct env_request request;
	const struct sdist *sdist;
	const char *what;	   /* its name, for messages */
	struct layer_stage source; /* holds the archive; no code of it ever sees it writable */
	const char *archive;	   /* its name there */
	text_list requires;
};

static int failed(struct work *work, enum build_failure failure, struct error *err)
{
	error_context(err, "build '%s'", work->what);
	if (!err->hint[0])
		error_hint(err, "carrel env show --log %s prints its output", work->wanted.name);
	return build_failed(work->making.problem, failure,
		work->sdist->package ? work->sdist->package->name : NULL);
}

/* Runs one of our scripts in the current stage and reads its answer. */
static int run_script(struct work *work, struct job *job, struct answer *answer, struct error *err)
{
	struct job_result result = { 0 };
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	auto_buf struct buf errors = buf_empty(OUTPUT_MAX);
	if (making_run(&work->making, job, &out, &errors, &result, err) < 0)
		return -1;
	if (result.reason == REASON_TIMEOUT)
		return making_timeout(&work->making, err);
	if (result.reason == REASON_DISK_LIMIT) {
		making_too_large(&work->making, err);
		return failed(work, BUILD_DENIED, err);
	}
	if (result.reason != REASON_EXITED || result.exit_code != 0) {
		job_explain(job, &result, buf_str(&errors), err);
		return failed(
			work, err->code == ERR_DISK_FULL ? BUILD_DISK_FULL : BUILD_FAILED, err);
	}
	if (answer_parse(buf_str(&out), work->making.arena, answer, err) < 0)
		return failed(work, BUILD_FAILED, err);
	return 0;
}

/* A fresh stage in place of the one that was used. */
static int change_stage(struct work *work, struct error *err)
{
	layer_stage_done(&work->making.store->layers, &work->making.stage, NULL);
	return making_stage(&work->making, err);
}

/* ---- the archive ---- */
/* Checked again outside: what lies there is what the lock means. */
static int check_archive(struct work *work, struct error *err)
{
	const struct lock_package *package = work->sdist->package;
	struct arena *arena = work->making.arena;
	char sha256[2 * SHA256_LEN + 1];
	if (strchr(work->archive, '/'))
		return fail(err, ERR_FAILED, "its file has the name '%s'", work->archive);
	auto_leave const struct home *home = home_entered(work->making.store->home);
	auto_close int fd =
		openat(work->source.fd, arena_printf(arena, STAGE_ROOT "/%s", work->archive),
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || known_hash_file(fd, sha256) < 0)
		return fail_errno(err, "read '%s'", work->archive);
	for (size_t i = 0; i < package->hashes.count; i++)
		if (strcmp(package->hashes.items[i], arena_printf(arena, "sha256:%s", sha256)) == 0)
			return 0;
	return fail(err, ERR_DENIED, "hash mismatch: '%s' is sha256:%s", work->archive, sha256);
}

static int fetch(struct work *work, struct error *err)
{
	const struct lock_package *package = work->sdist->package;
	struct arena *arena = work->making.arena;
	text_list args = { 0 };
	struct answer answer = { 0 };
	struct job job;
	vec_push(arena, &args, "fetch");
	vec_push(arena, &args, package->name);
	vec_push(arena, &args, ENV_INSIDE);
	vec_push(arena, &args, "-");
	for (size_t i = 0; i < package->hashes.count; i++)
		if (strncmp(package->hashes.items[i], "sha256:", 7) == 0)
			vec_push(arena, &args, package->hashes.items[i] + 7);
	vec_push(arena, &args, NULL);
	script_job(&job, arena, &work->wanted.python, script_index, false, args.items);
	job_reach_indexes(&job, arena, &work->wanted.indexes);
	if (run_script(work, &job, &answer, err) < 0)
		return -1;
	work->archive = answer_get(&answer, "file");
	/* From here on the stage is `source`. */
	work->source = work->making.stage;
	work->making.stage = LAYER_STAGE_NONE;
	if (!work->archive)
		return fail(err, ERR_FAILED, "no file was downloaded"),
		       failed(work, BUILD_FAILED, err);
	return check_archive(work, err) < 0 ? failed(work, BUILD_HASH_MISMATCH, err) : 0;
}

/* Shows the sources, read-only, where the scripts take them from. */
static const char *show_source(struct work *work, struct job *job)
{
	struct arena *arena = work->making.arena;
	if (work->sdist->project) {
		job_bind(job, arena, work->sdist->project, PROJECT_INSIDE);
		return PROJECT_INSIDE;
	}
	job_bind(job, arena,
		arena_printf(arena, "%s/" STAGE_ROOT "/%s", work->source.path, work->archive),
		"/sdist");
	return "/sdist";
}

/* ---- what the build needs ---- */
static int judge(struct work *work, const char *text, struct error *err)
{
	requirement_list list = { 0 };
	if (requirements_parse(str_from(text), work->making.arena, &list, err) < 0) {
		error_context(err, "a build requirement");
		return failed(work, BUILD_INVALID, err);
	}
	for (size_t i = 0; i < list.count; i++) {
		if (list.items[i].kind != REQUIREMENT_PACKAGE) {
			fail(err, ERR_DENIED,
				"its build requires '%s', which names no package of the index",
				list.items[i].text);
			return failed(work, BUILD_DENIED, err);
		}
		if (policy_judge_name(&work->making.store->config, list.items[i].name,
			    arena_printf(
				    work->making.arena, "a build requirement of '%s'", work->what),
			    work->making.problem, err) < 0)
			return -1;
	}
	return 0;
}

static int add_requires(struct work *work, const struct answer *answer, struct error *err)
{
	for (size_t i = 0; i < answer->lines.count; i++) {
		if (strcmp(answer->lines.items[i].key, "requires") != 0)
			continue;
		if (work->requires.count == REQUIRES_MAX) {
			fail(err, ERR_LIMIT, "its build requires more than %d packages",
				REQUIRES_MAX);
			return failed(work, BUILD_DENIED, err);
		}
		if (judge(work, answer->lines.items[i].value, err) < 0)
			return -1;
		vec_push(work->making.arena, &work->requires, answer->lines.items[i].value);
	}
	return 0;
}

static int read_requires(struct work *work, struct error *err)
{
	const char *args[] = { "requires", work->sdist->project ? PROJECT_INSIDE : "/sdist", NULL };
	struct answer answer = { 0 };
	struct job job;
	script_job(&job, work->making.arena, &work->wanted.python, script_pep517, true, args);
	show_source(work, &job);
	if (change_stage(work, err) < 0 || run_script(work, &job, &answer, err) < 0)
		return -1;
	return add_requires(work, &answer, err);
}

/* What they required in turn is judged when it is there: none of it has run yet. */
static int judge_installed(struct work *work, struct error *err)
{
	struct making *making = &work->making;
	const char *site = arena_printf(
		making->arena, STAGE_ROOT "/lib/python%s/site-packages", work->wanted.python.minor);
	auto_leave const struct home *home = home_entered(making->store->home);
	auto_close int dir = path_open_nolinks(making->stage.fd, site, O_RDONLY | O_DIRECTORY, 0);
	text_list names = { 0 };
	if (dir < 0 || file_names(dir, ".", making->arena, &names) < 0)
		return fail(err, ERR_FAILED, "its build requirements can't be read"),
		       failed(work, BUILD_FAILED, err);
	for (size_t i = 0; i < names.count; i++) {
		size_t len = strlen(names.items[i]), end = strlen(".dist-info");
		const char *dash = len > end ? memrchr(names.items[i], '-', len - end) : NULL;
		if (dash && strcmp(names.items[i] + len - end, ".dist-info") == 0 &&
			policy_judge_name(&making->store->config,
				requirement_normalize_name(
					making->arena, (struct str){ names.items[i],
							       (size_t)(dash - names.items[i]) }),
				arena_printf(making->arena, "for the build of '%s'", work->what),
				making->problem, err) < 0)
			return -1;
	}
	return 0;
}

/* Wheels only, into a stage where nothing has run. */
static int install_requires(struct work *work, struct error *err)
{
	static const char *const arguments[] = { "pip", "install", "--no-build", "--python",
		ENV_PYTHON, "-r", ENV_INPUT("requires.txt"), NULL };
	const char *needs_build;
	struct uv_job uv;
	if (work->requires.count == 0)
		return 0;
	auto_buf struct buf text = buf_empty(OUTPUT_MAX);
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	for (size_t i = 0; i < work->requires.count; i++)
		buf_printf(&text, "%s\n", work->requires.items[i]);
	if (making_reach(&work->making, err) < 0 ||
		making_put(&work->making, "requires.txt", buf_str(&text), err) < 0)
		return -1;
	making_uv(&work->making, &uv, arguments);
	making_cut_off(&work->making, &uv);
	if (making_run_uv(&work->making, &uv, &out, &needs_build, err) < 0) {
		if (needs_build)
			error_hint(err, "what a build requires is installed from wheels only");
		return error_context(err, "what the build of '%s' requires", work->what);
	}
	return judge_installed(work, err);
}

/* ---- the backend ---- */
static void close_network(struct work *work)
{
	const struct build_network *network = work->making.builder->network;
	network->close(network->ctx);
	work->making.is_reaching = false;
}

static int copy_project(struct work *work, struct error *err)
{
	const char *args[] = { "copy", PROJECT_INSIDE, TREE, NULL };
	struct answer answer = { 0 };
	struct job job;
	script_job(&job, work->making.arena, &work->wanted.python, script_pep517, true, args);
	show_source(work, &job);
	return run_script(work, &job, &answer, err);
}

/* One round in a fresh stage: what it requires is fetched, the network closed, the backend run. */
static int go_round(struct work *work, bool ask, struct answer *answer, struct error *err)
{
	struct arena *arena = work->making.arena;
	struct interpreter inside = work->wanted.python;
	const char *project = work->sdist->project;
	bool is_editable = project && !work->sdist->is_whole;
	const char *args[] = { "build", is_editable ? "editable" : "wheel",
		project ? "-" : "/sdist", project ? project : TREE, OUT, ask ? "ask" : "go", NULL };
	struct job job;
	if (change_stage(work, err) < 0 || install_requires(work, err) < 0)
		return -1;
	close_network(work);
	inside.path = ENV_INSIDE "/bin/python";
	script_job(&job, arena, &inside, script_pep517, true, args);
	if (project) {
		if (copy_project(work, err) < 0)
			return -1;
		vec_push(arena, &job.binds,
			(struct job_bind){ arena_printf(arena, "%s/" STAGE_ROOT "/.tree",
						   work->making.stage.path),
				project, true });
	} else {
		show_source(work, &job);
	}
	job_set_env(&job, arena, "PATH", ENV_INSIDE "/bin:/usr/local/bin:/usr/bin:/bin");
	job_set_env(&job, arena, "VIRTUAL_ENV", ENV_INSIDE);
	job_set_env(&job, arena, "SOURCE_DATE_EPOCH", arena_printf(arena, "%d", LAYER_MTIME));
	return run_script(work, &job, answer, err);
}

/* ---- the wheel ---- */
bool wheel_name_parse(
	const char *file, struct arena *arena, const char **name, const char **version)
{
	struct str rest = str_from(file), piece, pieces[6];
	size_t count = 0;
	if (rest.len < 5 || rest.len > 255 || strcmp(file + rest.len - 4, ".whl") != 0 ||
		strspn(file,
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+!-") !=
			rest.len)
		return false;
	rest.len -= 4;
	while (str_next(&rest, '-', &piece)) {
		if (count == 6 || piece.len == 0)
			return false;
		pieces[count++] = piece;
	}
	if (count < 5 || !requirement_name_is_valid(pieces[0]))
		return false;
	*name = requirement_normalize_name(arena, pieces[0]);
	*version = arena_bytes(arena, pieces[1].data, pieces[1].len);
	return true;
}

/* "1.0+local.1" is "1.0_local.1" in some wheels' names. */
static bool version_is_same(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !(strchr("+_-.", *a) && strchr("+_-.", *b)))
			return false;
	return *a == *b;
}

static int check_wheel(struct work *work, struct built_wheel *wheel, struct error *err)
{
	const struct lock_package *package = work->sdist->package;
	if (!wheel->file ||
		!wheel_name_parse(wheel->file, work->making.arena, &wheel->name, &wheel->version))
		return fail(err, ERR_FAILED, "the build produced no wheel");
	if (package && (strcmp(wheel->name, package->name) != 0 ||
			       !version_is_same(wheel->version, package->version)))
		return fail(err, ERR_DENIED, "the build produced '%s', not %s %s", wheel->file,
			package->name, package->version);
	return 0;
}

/* A plain file with no other name, which nothing writes to any more. */
static int take_wheel(struct work *work, int to, struct built_wheel *wheel, struct error *err)
{
	auto_leave const struct home *home = home_entered(work->making.store->home);
	const char *from = arena_printf(work->making.arena, STAGE_ROOT "/.out/%s", wheel->file);
	auto_close int dir = -1;
	struct stat stat;
	auto_close int fd =
		path_open_nolinks(work->making.stage.fd, from, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 || fstat(fd, &stat) < 0)
		return fail_errno(err, "wheel '%s'", wheel->file);
	if (!S_ISREG(stat.st_mode) || stat.st_nlink != 1)
		return fail(err, ERR_DENIED, "'%s' is not a regular file", wheel->file);
	/* Holes counted: they are read like anything else. */
	if ((uint64_t)stat.st_size > work->making.store->config.max_install_bytes)
		return making_too_large(&work->making, err);
	if (known_hash_file(fd, wheel->sha256) < 0)
		return fail_errno(err, "read '%s'", wheel->file);
	if (path_make_directories(to, WHEELS, 0755, &dir, err) < 0)
		return -1;
	if (fchmod(fd, 0644) < 0 || renameat(work->making.stage.fd, from, dir, wheel->file) < 0)
		return fail_errno(err, "keep '%s'", wheel->file);
	return 0;
}

/* ---- all of it ---- */
static int build(struct work *work, const struct layer_stage *to, struct built_wheel *wheel,
	struct error *err)
{
	struct answer answer = { 0 };
	size_t asked;
	if (work->sdist->package && (making_reach(&work->making, err) < 0 ||
					    change_stage(work, err) < 0 || fetch(work, err) < 0))
		return -1;
	if (read_requires(work, err) < 0)
		return -1;
	asked = work->requires.count;
	if (go_round(work, true, &answer, err) < 0 || add_requires(work, &answer, err) < 0)
		return -1;
	/* What the backend wants besides is installed where nothing of it has run. */
	if (work->requires.count > asked && go_round(work, false, &answer, err) < 0)
		return -1;
	*wheel = (struct built_wheel){ .file = answer_get(&answer, "wheel") };
	if (check_wheel(work, wheel, err) < 0 || take_wheel(work, to->fd, wheel, err) < 0)
		return failed(work, err->code == ERR_LIMIT ? BUILD_DENIED : BUILD_FAILED, err);
	wheel->path = arena_printf(work->making.arena, "%s/" WHEELS "/%s", to->path, wheel->file);
	return 0;
}

int sdist_build(struct making *making, const struct sdist *sdist, const struct layer_stage *to,
	struct built_wheel *wheel, struct error *err)
{
	struct work work = { .making = *making,
		.wanted = *making->wanted,
		.request = *making->wanted->request,
		.sdist = sdist,
		.what = sdist->package ? sdist->package->name : sdist->project,
		.source = LAYER_STAGE_NONE };
	struct built_wheel built;
	/* Its build sees what it requires and nothing of the host's. */
	work.request.system_site_packages = false;
	work.wanted.request = &work.request;
	work.making.wanted = &work.wanted;
	work.making.stage = LAYER_STAGE_NONE;
	int result = build(&work, to, &built, err);
	close_network(&work);
	layer_stage_done(&making->store->layers, &work.making.stage, NULL);
	layer_stage_done(&making->store->layers, &work.source, NULL);
	making->is_reaching = false;
	making->uv = work.making.uv;
	making->wanted->indexes = work.wanted.indexes;
	if (result == 0)
		*wheel = built;
	return result;
}
