#include "envs/python/inputs.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "envs/build.h"
#include "envs/python/wheelhouse.h"
#include "format/packages/pylock.h"
#include "format/packages/pyproject.h"

enum purpose { FOR_REQUIREMENTS, FOR_CONSTRAINTS };

struct source { /* a file that is being read, innermost first */
	const struct source *outer;
	const char *path;
	struct stat st;
	int depth;
};

struct gatherer {
	const struct env_request *request;
	struct arena *arena;
	struct env_wanted *wanted;
	size_t files;
	const char **links; /* what each --find-links holds, "" for a URL */
	bool is_plain;	    /* all of it is one requirements file without anything special */
	bool has_project;   /* some file takes --extra and --group */
	struct error *err;
};

/* ---- reading ---- */

static int read_all(
	int fd, const char *path, struct arena *arena, struct str *text, struct error *err)
{
	/* Not by its size: it may be a pipe (process substitution). */
	if (fcntl(fd, F_SETFL, 0) < 0)
		return fail_errno(err, "read '%s'", path);
	auto_buf struct buf all = buf_empty(REQUIREMENTS_MAX + 65536);
	for (;;) {
		char *room = buf_reserve(&all, 65536);
		ssize_t got = room ? fd_read_full(fd, room, 65536) : 0;
		if (got < 0)
			return fail_errno(err, "read '%s'", path);
		if (!room || all.len + (size_t)got > REQUIREMENTS_MAX)
			return fail(err, ERR_INVALID, "'%s' is larger than %zu MB", path,
				REQUIREMENTS_MAX >> 20);
		buf_grew(&all, (size_t)got);
		if (got == 0)
			break;
	}
	if (str_utf8_prefix(all.data, all.len) != all.len)
		return fail(err, ERR_INVALID, "'%s' is not UTF-8", path);
	*text = buf_copy(arena, &all);
	return 0;
}

static int open_file(const char *path, int *fd, struct stat *st, struct error *err)
{
	auto_close int opened = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (opened < 0 || fstat(opened, st) < 0)
		return fail_errno(err, "open '%s'", path);
	*fd = take_fd(&opened);
	return 0;
}

int inputs_read_file(const char *path, struct arena *arena, struct str *text, struct error *err)
{
	auto_close int fd = -1;
	struct stat st;
	if (open_file(path, &fd, &st, err) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
		return fail(err, ERR_INVALID, "'%s' is not a regular file", path);
	return read_all(fd, path, arena, text, err);
}

/* Whether `uid` can search the directories above the open file. The user's groups are not known:
 * a directory that only a group may search counts as closed. */
static bool is_reachable_for(int fd, uid_t uid)
{
	char link[32], path[PATH_MAX];
	struct stat st;
	str_format(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof path - 1);
	if (len <= 0)
		return false;
	path[len] = 0;
	for (char *end; (end = strrchr(path, '/')) && end != path;) {
		*end = 0;
		if (stat(path, &st) < 0 || !(st.st_mode & (st.st_uid == uid ? S_IXUSR : S_IXOTH)))
			return false;
	}
	return true;
}

/* The owner of the including file decides what is read, so it must be readable for that owner:
 * another user's file may not make root read what that user can't. */
static int check_included(struct gatherer *g, const struct source *source, int fd)
{
	const struct source *outer = source->outer;
	uid_t owner = outer->st.st_uid;
	bool is_allowed = owner == 0 || owner == geteuid() || owner == source->st.st_uid ||
			  (source->st.st_mode & S_IROTH && is_reachable_for(fd, owner));
	if (!S_ISREG(source->st.st_mode))
		return fail(g->err, ERR_INVALID, "'%s' is not a regular file", source->path);
	if (!is_allowed)
		return fail(g->err, ERR_DENIED,
			"'%s' is not readable for the owner of '%s', which includes it",
			source->path, outer->path);
	for (; outer; outer = outer->outer)
		if (outer->st.st_dev == source->st.st_dev && outer->st.st_ino == source->st.st_ino)
			return fail_hint(g->err, ERR_INVALID, "remove one of the -r or -c lines",
				"'%s' includes itself", source->path);
	if (source->depth > INPUTS_DEPTH_MAX)
		return fail(g->err, ERR_LIMIT, "'%s': files are nested more than %d deep",
			source->path, INPUTS_DEPTH_MAX);
	return 0;
}

static int read_source(struct gatherer *g, struct source *source, struct str *text)
{
	auto_close int fd = -1;
	if (++g->files > INPUTS_FILES_MAX)
		return fail(g->err, ERR_LIMIT, "'%s': more than %d files", source->path,
			INPUTS_FILES_MAX);
	if (open_file(source->path, &fd, &source->st, g->err) < 0)
		return -1;
	if (S_ISDIR(source->st.st_mode))
		return fail_hint(g->err, ERR_INVALID,
			"name a file in it; --pip ./DIRECTORY installs a project",
			"'%s' is a directory", source->path);
	if (source->outer && check_included(g, source, fd) < 0)
		return -1;
	return read_all(fd, source->path, g->arena, text, g->err);
}

/* ---- variables ---- */

static const char *find_variable(const char *name)
{
	return getenv(name);
}

/* The values that are in `text`, but not in `shown`. */
static void note_secrets(struct gatherer *g, const struct requirement *r)
{
	const char *at = r->shown;
	while (strcmp(r->text, r->shown) != 0 && (at = strstr(at, "${"))) {
		size_t len = strcspn(at + 2, "}");
		const char *value = getenv(arena_bytes(g->arena, at + 2, len));
		if (value && strlen(value) >= INPUTS_SECRET_MIN)
			vec_push(g->arena, &g->wanted->secrets, value);
		at += 2;
	}
}

/* ---- requirement files ---- */

static int gather(
	struct gatherer *g, const char *path, enum purpose purpose, const struct source *outer);

static bool is_option(const struct requirement *r, const char *option)
{
	return r->kind == REQUIREMENT_OPTION && strcmp(r->option, option) == 0;
}

/* file: NULL for what the command line names. */
static int add(struct gatherer *g, enum purpose purpose, struct requirement *r, const char *file)
{
	const char *place = file ? file : "--constraint-line";
	r->file = file;
	if (r->has_variables) {
		g->is_plain = false;
		note_secrets(g, r);
	}
	if (purpose == FOR_REQUIREMENTS) {
		g->wanted->is_pre |= is_option(r, "--pre");
		vec_push(g->arena, &g->wanted->requirements, *r);
		return 0;
	}
	if (r->kind != REQUIREMENT_PACKAGE)
		return fail(g->err, ERR_DENIED,
			"%s: line %d: '%s': a constraint names a package and its versions", place,
			r->line, r->shown);
	if (r->hashes.count > 0)
		return fail(g->err, ERR_INVALID,
			"%s: line %d: '%s': hashes belong in a requirements file", place, r->line,
			r->name);
	vec_push(g->arena, &g->wanted->constraints, *r);
	return 0;
}

static const char *beside(struct gatherer *g, const char *file, const char *path)
{
	size_t directory = (size_t)(path_basename(file) - file);
	if (path_is_absolute(path))
		return path;
	return arena_printf(g->arena, "%.*s%s", (int)directory, file, path);
}

static int include(struct gatherer *g, const struct requirement *r, enum purpose purpose,
	const struct source *source)
{
	const char *path = r->value;
	bool is_constraint = is_option(r, "--constraint");
	if (strstr(path, "://"))
		return fail(g->err, ERR_DENIED, "%s, line %d: '%s': only a file can be included",
			source->path, r->line, r->shown);
	if (purpose == FOR_CONSTRAINTS && !is_constraint)
		return fail(g->err, ERR_INVALID,
			"%s, line %d: a constraints file includes constraints only", source->path,
			r->line);
	g->is_plain = false;
	if (gather(g, beside(g, source->path, path), is_constraint ? FOR_CONSTRAINTS : purpose,
		    source) < 0)
		return error_context(g->err, "%s, line %d", source->path, r->line);
	return 0;
}

static int gather_plain(
	struct gatherer *g, struct str text, enum purpose purpose, const struct source *source)
{
	requirement_variable_fn *find = g->request->is_self_contained ? NULL : find_variable;
	requirement_list list = { 0 };
	if (requirements_parse_with(text, find, g->arena, &list, g->err) < 0)
		return error_context(g->err, "%s", source->path);
	for (size_t i = 0; i < list.count; i++) {
		struct requirement *r = &list.items[i];
		bool includes = !g->request->is_self_contained &&
				(is_option(r, "--requirement") || is_option(r, "--constraint"));
		if ((includes ? include(g, r, purpose, source) : add(g, purpose, r, source->path)) <
			0)
			return -1;
	}
	return 0;
}

/* ---- files in other formats ---- */

static int add_lines(
	struct gatherer *g, const requirement_lines *lines, enum purpose purpose, const char *file)
{
	for (size_t i = 0; i < lines->count; i++) {
		requirement_list one = { 0 };
		int line = lines->items[i].line;
		if (requirements_parse(str_from(lines->items[i].text), g->arena, &one, g->err) < 0)
			return error_context(g->err, "%s, line %d", file, line);
		if (one.count != 1 || one.items[0].option)
			return fail(
				g->err, ERR_INVALID, "%s, line %d: not a requirement", file, line);
		one.items[0].line = line;
		if (add(g, purpose, &one.items[0], file) < 0)
			return -1;
	}
	return 0;
}

static int gather_pyproject(struct gatherer *g, struct str text, const struct source *source)
{
	struct pyproject found = { 0 };
	if (pyproject_read(
		    text, &g->request->extras, &g->request->groups, g->arena, &found, g->err) < 0)
		return error_context(g->err, "%s", source->path);
	g->has_project = true;
	return add_lines(g, &found.dependencies, FOR_REQUIREMENTS, source->path) < 0 ||
			       add_lines(g, &found.constraints, FOR_CONSTRAINTS, source->path) < 0
		       ? -1
		       : 0;
}

static int gather_pylock(struct gatherer *g, struct str text, const struct source *source)
{
	requirement_lines lines = { 0 };
	if (pylock_requirements(text, g->arena, &lines, g->err) < 0)
		return error_context(g->err, "%s", source->path);
	return add_lines(g, &lines, FOR_REQUIREMENTS, source->path);
}

static int gather_uv_lock(struct gatherer *g, struct str text, const struct source *source)
{
	struct source project = { .path = beside(g, source->path, "pyproject.toml") };
	if (g->wanted->uv_lock.len > 0)
		return fail(
			g->err, ERR_INVALID, "'%s': only one uv.lock can be given", source->path);
	if (read_source(g, &project, &g->wanted->uv_project) < 0)
		return error_context(g->err, "%s needs the pyproject.toml beside it", source->path);
	g->wanted->uv_lock = text;
	g->has_project = true;
	return 0;
}

typedef int gather_fn(struct gatherer *g, struct str text, const struct source *source);

struct file_format {
	const char *name;  /* of the file; '*' stands for any text */
	gather_fn *gather; /* NULL: not supported, for `reason` */
	const char *reason, *hint;
};
#define POETRY "poetry export -f requirements.txt -o requirements.txt"
#define PIPENV "pipenv requirements > requirements.txt"
#define NOT_A_LIST                                                                                 \
	"it is not a list of requirements: they are known only after a build of the project"
static const struct file_format formats[] = {
	{ "pyproject.toml", gather_pyproject, NULL, NULL },
	{ "pylock.toml", gather_pylock, NULL, NULL },
	{ "pylock.*.toml", gather_pylock, NULL, NULL },
	{ "uv.lock", gather_uv_lock, NULL, NULL },
	{ "poetry.lock", NULL, "only Poetry reads this format, uv does not", POETRY },
	{ "Pipfile", NULL, "only Pipenv reads this format, uv does not", PIPENV },
	{ "Pipfile.lock", NULL, "only Pipenv reads this format, uv does not", PIPENV },
	{ "setup.py", NULL, NOT_A_LIST, "--pip DIRECTORY or --editable DIRECTORY" },
	{ "setup.cfg", NULL, NOT_A_LIST, "--pip DIRECTORY or --editable DIRECTORY" },
	{ "environment.y*ml", NULL, "environments of Conda are not supported",
		"list the packages of the index in requirements.txt" },
};

/* NULL: a requirements file. */
static const struct file_format *find_format(const char *file)
{
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (fnmatch(formats[i].name, path_basename(file), 0) == 0)
			return &formats[i];
	return NULL;
}

static int gather(
	struct gatherer *g, const char *path, enum purpose purpose, const struct source *outer)
{
	struct source source = {
		.outer = outer, .path = path, .depth = outer ? outer->depth + 1 : 0
	};
	const struct file_format *format =
		purpose == FOR_REQUIREMENTS && !outer ? find_format(path) : NULL;
	struct str text;
	if (read_source(g, &source, &text) < 0)
		return -1;
	if (!format) {
		if (!outer && purpose == FOR_REQUIREMENTS)
			g->wanted->text = text;
		return gather_plain(g, text, purpose, &source);
	}
	g->is_plain = false;
	if (!format->gather)
		return fail_hint(
			g->err, ERR_INVALID, format->hint, "'%s': %s", path, format->reason);
	return format->gather(g, text, &source);
}

/* ---- the command line ---- */

static int compare_specs(const void *a, const void *b)
{
	const struct requirement *left = a, *right = b;
	return strcmp(left->shown, right->shown);
}

static int parse_spec(
	struct gatherer *g, const char *option, const char *spec, struct requirement *found)
{
	requirement_list one = { 0 };
	if (strpbrk(spec, "\n\r") || str_utf8_prefix(spec, strlen(spec)) != strlen(spec))
		return fail(g->err, ERR_INVALID, "%s '%s' is not one line", option, spec);
	if (requirements_parse(str_from(spec), g->arena, &one, g->err) < 0) {
		/* 'requests rich': several names in one argument. */
		if (strchr(spec, ' ') && !strpbrk(spec, "<>=!~;@[("))
			error_hint(g->err, "repeat %s for each package", option);
		return error_context(g->err, "%s '%s'", option, spec);
	}
	if (one.count != 1)
		return fail(g->err, ERR_INVALID, "%s '%s' names no package", option, spec);
	*found = one.items[0];
	return 0;
}

/* Sorted, so that their order doesn't matter; each parsed alone, so that an error names it. */
static int gather_specs(struct gatherer *g)
{
	size_t count = g->request->pip.count;
	struct requirement *specs = arena_array(g->arena, count + 1, sizeof *specs);
	for (size_t i = 0; i < count; i++)
		if (parse_spec(g, "--pip", g->request->pip.items[i], &specs[i]) < 0)
			return -1;
	qsort(specs, count, sizeof *specs, compare_specs);
	for (size_t i = 0; i < count; i++)
		if (add(g, FOR_REQUIREMENTS, &specs[i], NULL) < 0)
			return -1;
	return 0;
}

static int gather_constraints(struct gatherer *g)
{
	const struct env_request *request = g->request;
	struct requirement r;
	for (size_t i = 0; i < request->constraint_files.count; i++)
		if (gather(g, request->constraint_files.items[i], FOR_CONSTRAINTS, NULL) < 0)
			return -1;
	for (size_t i = 0; i < request->constraint_lines.count; i++) {
		const char *line = request->constraint_lines.items[i];
		if (parse_spec(g, "--constraint-line", line, &r) < 0 ||
			add(g, FOR_CONSTRAINTS, &r, NULL) < 0)
			return -1;
	}
	return 0;
}

const char *inputs_cuda_driver(const struct env_request *request, struct arena *arena)
{
	struct error ignored;
	struct str text;
	if (!request->torch_backend || strcmp(request->torch_backend, "auto") != 0 ||
		inputs_read_file("/sys/module/nvidia/version", arena, &text, &ignored) < 0)
		return "";
	text = str_trim(text);
	return arena_bytes(arena, text.data, text.len);
}

/* ---- the text that stands for all of it ---- */

static void add_note(struct buf *out, const char *what, const char *value)
{
	buf_printf(out, "# %s %s\n", what, value);
}

static const char *hash_text(struct arena *arena, struct str text)
{
	return sha256_text_of(text.data, text.len, arena);
}

static void add_notes(struct gatherer *g, struct buf *out)
{
	const struct env_request *request = g->request;
	const struct env_wanted *wanted = g->wanted;
	for (size_t i = 0; i < wanted->constraints.count; i++)
		add_note(out, "constraint:", wanted->constraints.items[i].shown);
	if (wanted->uv_lock.len > 0) {
		add_note(out, "uv.lock", hash_text(g->arena, wanted->uv_lock));
		add_note(out, "pyproject.toml", hash_text(g->arena, wanted->uv_project));
		for (size_t i = 0; i < request->extras.count; i++)
			add_note(out, "--extra", request->extras.items[i]);
		for (size_t i = 0; i < request->groups.count; i++)
			add_note(out, "--group", request->groups.items[i]);
	}
	if (request->is_pre)
		buf_text(out, "# --pre\n");
	if (request->torch_backend)
		add_note(out, "--torch-backend",
			arena_printf(g->arena, "%s %s", request->torch_backend,
				inputs_cuda_driver(request, g->arena)));
	for (size_t i = 0; i < wanted->locals.count; i++)
		local_print(&wanted->locals.items[i], out);
	if (wanted->wheels_sha256)
		add_note(out, "--wheels", wanted->wheels_sha256);
	for (size_t i = 0; i < request->find_links.count; i++)
		add_note(out, "--find-links",
			arena_printf(g->arena, "%s %s",
				index_redact(g->arena, request->find_links.items[i]), g->links[i]));
}

static int gather_locals(struct gatherer *g)
{
	const struct env_request *request = g->request;
	g->links = arena_array(g->arena, request->find_links.count + 1, sizeof *g->links);
	for (size_t i = 0; i < request->locals.count; i++) {
		struct env_local local;
		if (local_look(request->locals.items[i], g->arena, &local, g->err) < 0)
			return error_context(g->err, "--pip");
		vec_push(g->arena, &g->wanted->locals, local);
	}
	for (size_t i = 0; i < request->find_links.count; i++) {
		const char *link = request->find_links.items[i];
		g->links[i] = "";
		if (path_is_absolute(link) &&
			local_digest_tree(link, false, g->arena, &g->links[i], g->err) < 0)
			return error_context(g->err, "--find-links");
	}
	return 0;
}

static int gather_wheels(struct gatherer *g)
{
	const struct env_request *request = g->request;
	struct env_wanted *wanted = g->wanted;
	if (!request->wheels)
		return 0;
	if (request->locals.count + request->editables.count + request->find_links.count > 0 ||
		request->torch_backend || wanted->uv_lock.len > 0)
		return fail(g->err, ERR_INVALID,
			"--wheels takes requirements alone: no path, --editable, --find-links, "
			"--torch-backend or uv.lock");
	if (wanted->requirements.count == 0)
		return fail(g->err, ERR_INVALID, "--wheels: there are no requirements for them");
	return wheelhouse_read(request->wheels, g->arena, &wanted->wheels_lock,
		       &wanted->wheels_sha256, g->err) < 0
		       ? error_context(g->err, "--wheels")
		       : 0;
}

static int make_text(struct gatherer *g)
{
	const struct env_request *request = g->request;
	struct env_wanted *wanted = g->wanted;
	auto_buf struct buf out = buf_empty(REQUIREMENTS_MAX);
	for (size_t i = 0; i < wanted->requirements.count; i++)
		buf_printf(&out, "%s\n", wanted->requirements.items[i].shown);
	size_t plain = out.len;
	add_notes(g, &out);
	if (out.overflow)
		return fail(g->err, ERR_INVALID, "the requirements take more than %zu MB",
			REQUIREMENTS_MAX >> 20);
	if (request->requirement_files.count + request->pip.count + request->locals.count == 0)
		return 0;
	wanted->has_notes = out.len > plain;
	wanted->lines = (struct str){ arena_bytes(g->arena, out.data, plain), plain };
	if (out.len == plain && request->requirement_files.count == 0)
		wanted->text =
			str_trim(wanted->lines); /* of --pip alone: without the last newline */
	else if (out.len > plain || !g->is_plain)
		wanted->text = buf_copy(g->arena, &out);
	else
		wanted->lines = wanted->text;
	wanted->requirements_sha256 = hash_text(g->arena, wanted->text);
	return 0;
}

int inputs_read(const struct env_request *request, struct arena *arena, struct env_wanted *wanted,
	struct error *err)
{
	struct gatherer g = { .request = request,
		.arena = arena,
		.wanted = wanted,
		.is_plain = request->requirement_files.count == 1 && request->pip.count == 0,
		.err = err };
	*wanted = (struct env_wanted){ .request = request,
		.text = STR(""),
		.lines = STR(""),
		.requirements_sha256 = "no-deps",
		.is_pre = request->is_pre };
	for (size_t i = 0; i < request->requirement_files.count; i++)
		if (gather(&g, request->requirement_files.items[i], FOR_REQUIREMENTS, NULL) < 0)
			return -1;
	if (gather_specs(&g) < 0 || gather_constraints(&g) < 0 || gather_locals(&g) < 0 ||
		gather_wheels(&g) < 0)
		return -1;
	if (!g.has_project && (request->extras.count > 0 || request->groups.count > 0))
		return fail_hint(err, ERR_INVALID, "-r pyproject.toml, or -r uv.lock",
			"--extra and --group choose from a pyproject.toml, and none is given");
	return make_text(&g);
}
