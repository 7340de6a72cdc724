#include "envs/python/uv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "envs/python/known.h"
#include "envs/python/scripts.h"
#include "trees/layers/stage.h"

#define TOOLS_DIR "tools"
#define DIRECTORY "uv-" UV_VERSION
#define PROGRAM_IN_WHEEL (DIRECTORY ".data/scripts/uv")
#define ASK_TIMEOUT_MS 20000
#define FETCH_TIMEOUT_MS 300000
#define FETCH_BYTES ((uint64_t)256 << 20)
#define OUTPUT_MAX ((size_t)16 << 20)

/* Hashes of UV_VERSION: of the wheel in the index, and of the program in the wheel. */
static const struct build {
	const char *machine;
	bool is_musl;
	const char *wheel_sha256, *program_sha256;
} builds[] = {
	{ "x86_64", false, "2c9bdc4a872b60a93c5f26c0791089ea11585a4f9d3b3c017d78eb8487505e25",
		"4b5e59bc557ff2cd70934beb59d0eaa92820702853d49f0066b50aa11a8f0c52" },
	{ "x86_64", true, "8b8ac028ae4ebb2a3f9d04907c61794f2cf8d7a7002bfbb4019a3dee28351fb2",
		"500c0ec54518b2a53380783586b75a79907d937d741ebb04236d90a50ed5ab26" },
	/* One for both libcs. */
	{ "aarch64", false, "a90f5d95716ab83091f0f73a8e7ec64e557abf2a28537fcd719b2ac88e6f725a",
		"f4752297fa474760b9db6586501db3ee5dd226ce49d9c0c23d6f47930d44f30e" },
	{ "aarch64", true, "a90f5d95716ab83091f0f73a8e7ec64e557abf2a28537fcd719b2ac88e6f725a",
		"f4752297fa474760b9db6586501db3ee5dd226ce49d9c0c23d6f47930d44f30e" },
};

void job_reach_indexes(struct job *job, struct arena *arena, const struct index_set *indexes)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	if (indexes->index)
		buf_printf(&text, "%s\n", index_full(indexes, indexes->index));
	for (size_t i = 0; i < indexes->extra.count; i++)
		buf_printf(&text, "%s\n", index_full(indexes, indexes->extra.items[i]));
	job_set_env(job, arena, "CARREL_INDEXES", text.data);
	buf_clear(&text);
	for (size_t i = 0; i < indexes->trusted_hosts.count; i++)
		buf_printf(&text, "%s\n", indexes->trusted_hosts.items[i]);
	job_set_env(job, arena, "CARREL_TRUSTED_HOSTS", text.data ? text.data : "");
	if (indexes->certificates) {
		job_bind(job, arena, indexes->certificates, CERTIFICATES_INSIDE);
		job_set_env(job, arena, "SSL_CERT_FILE", CERTIFICATES_INSIDE);
	}
	job->forward = true;
}

/* ---- uv on PATH or in the home ---- */
struct candidate {
	const char *path; /* real */
	char identity[KNOWN_IDENTITY_LEN + 1];
};
typedef VEC(struct candidate) candidate_list;

static bool examine(const char *path, struct arena *arena, struct candidate *out)
{
	char real[PATH_MAX];
	struct stat stat_buf;
	if (!realpath(path, real) || stat(real, &stat_buf) < 0 || !S_ISREG(stat_buf.st_mode) ||
		access(real, X_OK) < 0 || !known_is_elf(real))
		return false;
	out->path = arena_text(arena, real);
	known_identity(real, &stat_buf, out->identity);
	return true;
}

static candidate_list find_on_path(struct arena *arena)
{
	const char *path = getenv("PATH");
	struct str rest = str_from(path ? path : ""), piece;
	candidate_list found = { 0 };
	struct candidate one;
	while (str_next(&rest, ':', &piece))
		if (piece.len > 0 && piece.data[0] == '/' &&
			examine(arena_printf(arena, "%.*s/uv", (int)piece.len, piece.data), arena,
				&one))
			vec_push(arena, &found, one);
	return found;
}

/* Runs the uv at `path` with `args` in a sandbox; *out gets its output, or nothing when it failed.
 * -1: as job_try. */
static int ask(const struct runner *runner, const char *path, const char *const *args,
	struct arena *arena, struct buf *out, struct error *err)
{
	text_list argv = { 0 };
	struct job job = { .timeout_ms = ASK_TIMEOUT_MS };
	bool ended_well;
	vec_push(arena, &argv, UV_INSIDE);
	for (; *args; args++)
		vec_push(arena, &argv, *args);
	vec_push(arena, &argv, NULL);
	job.argv = argv.items;
	job_bind(&job, arena, path, UV_INSIDE);
	job_set_env(&job, arena, "UV_NO_CONFIG", "1");
	job_set_env(&job, arena, "UV_NO_CACHE", "1");
	if (job_try(runner, &job, out, &ended_well, err) < 0)
		return error_context(err, "'%s'", path);
	if (!ended_well)
		buf_clear(out);
	return 0;
}

/* "uv 0.13.7 (…)" -> "0.13.7"; "" for anything else. */
static const char *parse_version(struct str text, struct arena *arena)
{
	struct str head, rest, word;
	str_cut(text, '\n', &head, &rest);
	if (!str_starts_with(head, "uv "))
		return "";
	str_cut((struct str){ head.data + 3, head.len - 3 }, ' ', &word, &rest);
	for (size_t i = 0; i < word.len; i++)
		if (!strchr("0123456789.", word.data[i]) || word.len > 32)
			return "";
	return arena_bytes(arena, word.data, word.len);
}

/* Runs each program once and caches its version, also an empty one (not uv, or it failed). */
static int find_version(const struct home *home, const struct runner *runner,
	const struct candidate *candidate, struct arena *arena, const char **version,
	struct error *err)
{
	struct answer answer;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	if (known_read(home, TOOLS_DIR, candidate->identity, arena, &answer, NULL) &&
		answer_get(&answer, "version")) {
		*version = answer_get(&answer, "version");
		return 0;
	}
	if (ask(runner, candidate->path, (const char *const[]){ "--version", NULL }, arena, &out,
		    err) < 0)
		return -1;
	*version = parse_version(buf_str(&out), arena);
	return known_write(home, TOOLS_DIR, candidate->identity,
		str_from(arena_printf(arena, "version %s\n", *version)), err);
}

static bool find_in_tools(const struct home *home, struct arena *arena, struct uv *uv)
{
	struct stat stat;
	home_enter(home);
	bool is_there = fstatat(home->dir, UV_IN_HOME, &stat, AT_SYMLINK_NOFOLLOW) == 0;
	home_leave(home);
	if (!is_there || !S_ISREG(stat.st_mode))
		return false;
	uv->path = arena_printf(arena, "%s/" UV_IN_HOME, home->path);
	return true;
}

int uv_find_here(const struct home *home, const struct runner *runner, struct arena *arena,
	struct uv *uv, struct error *err)
{
	candidate_list list = find_on_path(arena);
	const char *version;
	for (size_t i = 0; i < list.count; i++) {
		if (find_version(home, runner, &list.items[i], arena, &version, err) < 0)
			return -1;
		if (strcmp(version, UV_VERSION) == 0) {
			uv->path = list.items[i].path;
			return 0;
		}
	}
	if (find_in_tools(home, arena, uv))
		return 0;
	return fail(err, ERR_NOT_FOUND, "uv %s not found", UV_VERSION);
}

/* ---- uv from the index ---- */
static const struct build *find_build(const struct interpreter *python)
{
	struct utsname host;
	bool is_musl = python->tag && strstr(python->tag, "musl");
	if (uname(&host) < 0)
		return NULL;
	for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
		if (strcmp(builds[i].machine, host.machine) == 0 && builds[i].is_musl == is_musl)
			return &builds[i];
	return NULL;
}

/* Checks the hash again, outside of the sandbox that wrote the file. */
static int check_program(int dir, const char *sha256, struct error *err)
{
	auto_close int fd = openat(dir, "uv", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[2 * SHA256_LEN + 1];
	struct stat stat;
	if (fd < 0 || known_hash_file(fd, text) < 0)
		return fail_errno(err, "uv");
	if (strcmp(text, sha256) != 0)
		return fail(err, ERR_CORRUPT, "uv has hash %s, not %s", text, sha256);
	if (fstat(fd, &stat) < 0 || ((stat.st_mode & 07777) != 0755 && fchmod(fd, 0755) < 0) ||
		fsync(fd) < 0)
		return fail_errno(err, "uv");
	return 0;
}

/* Moves uv from the stage to its place atomically. Another process may have been faster. */
static int move_in(int stage, int tools, const char *sha256, struct error *err)
{
	if (check_program(stage, sha256, err) < 0)
		return -1;
	if (mkdirat(stage, DIRECTORY, 0755) < 0)
		return fail_errno(err, "make %s", DIRECTORY);
	auto_close int inside = openat(stage, DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (inside < 0 || renameat(stage, "uv", inside, "uv") < 0 || fsync(inside) < 0)
		return fail_errno(err, "move uv");
	if (renameat(stage, DIRECTORY, tools, DIRECTORY) < 0 && errno != EEXIST &&
		errno != ENOTEMPTY)
		return fail_errno(err, "move %s", DIRECTORY);
	return fsync(tools) < 0 ? fail_errno(err, "sync tools") : 0;
}

static int fetch_into(const struct home *home, const struct layer_stage *stage,
	const struct runner *runner, const struct index_set *indexes,
	const struct interpreter *python, const struct build *build, struct arena *arena,
	struct error *err)
{
	auto_close int tools = -1;
	struct answer answer;
	struct job job;
	script_job(&job, arena, python, script_index, false,
		(const char *const[]){
			"fetch", "uv", "/env", PROGRAM_IN_WHEEL, build->wheel_sha256, NULL });
	job_reach_indexes(&job, arena, indexes);
	job.stage = stage->path;
	job.timeout_ms = FETCH_TIMEOUT_MS;
	job.disk_bytes = FETCH_BYTES;
	if (script_run(runner, &job, arena, &answer, err) < 0 ||
		home_open_directory(home, TOOLS_DIR, &tools, err) < 0)
		return -1;
	home_enter(home);
	int result = move_in(stage->fd, tools, build->program_sha256, err);
	home_leave(home);
	return result;
}

static int fetch(const struct home *home, const struct runner *runner,
	const struct index_set *indexes, const struct interpreter *python,
	const struct build *build, struct arena *arena, struct error *err)
{
	struct layer_store store;
	struct layer_stage stage = LAYER_STAGE_NONE;
	if (layer_store_open(home, &store, err) < 0)
		return -1;
	int result = layer_stage_make(&store, arena, &stage, err);
	if (result == 0)
		result = fetch_into(home, &stage, runner, indexes, python, build, arena, err);
	layer_stage_done(&store, &stage, NULL);
	layer_store_done(&store);
	return result;
}

int uv_find(const struct home *home, const struct runner *runner, const struct index_set *indexes,
	const struct interpreter *python, struct arena *arena, struct uv *uv, struct error *err)
{
	struct error why = { 0 };
	if (uv_find_here(home, runner, arena, uv, &why) == 0)
		return 0;
	if (why.code != ERR_NOT_FOUND) {
		if (err)
			*err = why;
		return -1;
	}
	const struct build *build = find_build(python);
	if (!build)
		return fail_hint(err, ERR_UNAVAILABLE, "put uv " UV_VERSION " on PATH",
			"uv %s isn't on PATH, and none can be fetched for this architecture",
			UV_VERSION);
	if (fetch(home, runner, indexes, python, build, arena, &why) < 0) {
		if (why.code != ERR_DISK_FULL && why.code != ERR_CORRUPT)
			why.code = ERR_UNAVAILABLE;
		error_context(&why, "uv %s isn't on PATH and can't be fetched", UV_VERSION);
		error_hint(&why, "put uv %s on PATH, or give an index that has it with --index",
			UV_VERSION);
		if (err)
			*err = why;
		return -1;
	}
	return find_in_tools(home, arena, uv)
		       ? 0
		       : fail(err, ERR_FAILED, "uv was removed after it was fetched");
}

/* ---- the default index ---- */
static bool find_any(const struct home *home, struct arena *arena, struct candidate *out)
{
	candidate_list list = find_on_path(arena);
	struct uv uv;
	if (list.count > 0) {
		*out = list.items[0];
		return true;
	}
	return find_in_tools(home, arena, &uv) && examine(uv.path, arena, out);
}

static int ask_uv(const struct runner *runner, const struct candidate *candidate,
	struct arena *arena, const char **url, struct error *err)
{
	const char *const args[] = { "pip", "install", "--help", NULL };
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	if (ask(runner, candidate->path, args, arena, &out, err) < 0)
		return -1;
	*url = index_default_in_help(buf_str(&out), arena);
	return 0;
}

static int ask_pip(const struct runner *runner, const struct interpreter *python,
	struct arena *arena, const char **url, struct error *err)
{
	struct answer answer;
	struct job job;
	bool ended_well;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	script_job(&job, arena, python, script_default_index, true, NULL);
	job.timeout_ms = ASK_TIMEOUT_MS;
	if (job_try(runner, &job, &out, &ended_well, err) < 0)
		return -1;
	if (ended_well && answer_parse(buf_str(&out), arena, &answer, NULL) == 0)
		*url = answer_get(&answer, "index");
	return 0;
}

static bool is_address(const char *url)
{
	return url && (strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0);
}

/* Finds the program that knows the default index: true and *candidate for uv, false for the pip of
 * this Python. `key`: where its answer is cached. */
static bool find_answerer(const struct home *home, const struct interpreter *python,
	struct arena *arena, struct candidate *candidate, char key[KNOWN_IDENTITY_LEN + 1])
{
	bool has_uv = find_any(home, arena, candidate);
	known_identity_of_text(arena_printf(arena, "default index of %s",
				       has_uv ? candidate->identity : python->identity),
		key);
	return has_uv;
}

static const char *read_index(const struct home *home, const char *key, struct arena *arena)
{
	struct answer answer;
	const char *found = NULL;
	if (known_read(home, TOOLS_DIR, key, arena, &answer, NULL))
		found = answer_get(&answer, "index");
	return is_address(found) ? found : NULL;
}

const char *uv_known_index(
	const struct home *home, const struct interpreter *python, struct arena *arena)
{
	struct candidate candidate;
	char key[KNOWN_IDENTITY_LEN + 1];
	find_answerer(home, python, arena, &candidate, key);
	return read_index(home, key, arena);
}

int uv_default_index(const struct home *home, const struct runner *runner,
	const struct interpreter *python, struct arena *arena, const char **url, struct error *err)
{
	struct candidate candidate;
	char key[KNOWN_IDENTITY_LEN + 1];
	bool has_uv = find_answerer(home, python, arena, &candidate, key);
	const char *found = read_index(home, key, arena);
	if (found) {
		*url = found;
		return 0;
	}
	if (has_uv && ask_uv(runner, &candidate, arena, &found, err) < 0)
		return -1;
	if (!is_address(found) && ask_pip(runner, python, arena, &found, err) < 0)
		return -1;
	if (!is_address(found))
		return fail_hint(err, ERR_UNAVAILABLE,
			"set one with --index URL, or in config.yaml",
			"no package index is configured for carrel, uv or pip");
	if (known_write(home, TOOLS_DIR, key, str_from(arena_printf(arena, "index %s\n", found)),
		    err) < 0)
		return -1;
	*url = found;
	return 0;
}
