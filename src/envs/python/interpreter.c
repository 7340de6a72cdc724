#include "envs/python/interpreter.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/walk.h"
#include "envs/python/known.h"
#include "envs/python/scripts.h"
#include "trees/layers/store.h"

#define ROOM "pythons"
#define DEFAULT_PYTHON "/usr/bin/python3"
#define OLDEST_MINOR 8
#define LOOK_TIMEOUT_MS 20000

/* ---- versions ---- */
struct version {
	unsigned part[3];
	int count; /* of parts that are said */
};

/* "3", "3.12" or "3.12.1", to the end of the text or to one of `ends`. */
static bool parse_version(const char *text, const char *ends, struct version *version)
{
	*version = (struct version){ 0 };
	for (;;) {
		uint64_t number;
		size_t len = strspn(text, "0123456789");
		if (len == 0 || len > 4 || (len > 1 && *text == '0') || version->count == 3)
			return false;
		str_to_u64((struct str){ text, len }, &number);
		version->part[version->count++] = (unsigned)number;
		text += len;
		if (*text == '\0' || strchr(ends, *text))
			return true;
		if (*text++ != '.')
			return false;
	}
}

enum match { NO, MAYBE, YES };

static enum match match_version(const struct interpreter *it, const struct version *wanted)
{
	struct version has;
	parse_version(it->version, "", &has);
	for (int i = 0; i < wanted->count; i++) {
		if (i >= has.count)
			return MAYBE; /* only the interpreter itself can tell */
		if (has.part[i] != wanted->part[i])
			return NO;
	}
	return YES;
}

/* ---- one file ---- */
static const char *parent(struct arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash > path ? arena_bytes(arena, path, (size_t)(slash - path)) : "/";
}

/* Its "3.12" by the file's name (python3.12), else by the one standard library beside it. NULL: no.
 */
static const char *find_minor(struct arena *arena, const char *path)
{
	const char *name = path_basename(path), *found = NULL;
	struct version version;
	if (strncmp(name, "python", 6) == 0 && parse_version(name + 6, "", &version) &&
		version.count == 2)
		return arena_text(arena, name + 6);
	const char *lib = arena_printf(arena, "%s/lib", parent(arena, parent(arena, path)));
	auto_walk DIR *dir = opendir(lib);
	for (struct dirent *entry; (entry = walk_next(dir));)
		if (strncmp(entry->d_name, "python3.", 8) == 0 &&
			parse_version(entry->d_name + 6, "", &version)) {
			if (found) {
				found = NULL;
				break;
			}
			found = arena_text(arena, entry->d_name + 6);
		}
	return found;
}

static bool prefix_is_in_usr(const char *prefix)
{
	return strcmp(prefix, "/usr") == 0 || strcmp(prefix, "/usr/local") == 0;
}

/* Fills in the kept answer of an earlier interpreter_look. */
static bool recall(const struct home *home, struct interpreter *it, struct arena *arena)
{
	struct answer answer;
	struct version version;
	if (!known_read(home, ROOM, it->identity, arena, &answer, NULL))
		return false;
	const char *text = answer_get(&answer, "version"), *tag = answer_get(&answer, "tag"),
		   *prefix = answer_get(&answer, "prefix");
	if (!text || !tag || !prefix || !parse_version(text, "", &version) || version.count != 3 ||
		!path_is_normal(prefix))
		return false;
	/* Checked again because it is bound: the kept file could have been changed. */
	if (!prefix_is_in_usr(prefix) &&
		strcmp(prefix, parent(arena, parent(arena, it->path))) != 0)
		return false;
	it->version = text;
	it->minor = arena_printf(arena, "%u.%u", version.part[0], version.part[1]);
	it->tag = tag;
	it->prefix = prefix;
	it->in_usr = prefix_is_in_usr(prefix);
	return true;
}

/* What can be said of the file at `path` without running it. `hint`: a version that the name of its
 * directory has, or NULL. */
static int examine(const struct home *home, const char *path, const char *hint, struct arena *arena,
	struct interpreter *out, struct error *err)
{
	char real[PATH_MAX], identity[KNOWN_IDENTITY_LEN + 1];
	struct stat stat_buf;
	struct version version;
	struct interpreter it = { 0 };
	if (!realpath(path, real) || stat(real, &stat_buf) < 0)
		return fail_errno(err, "Python '%s'", path);
	if (!S_ISREG(stat_buf.st_mode) || access(real, X_OK) < 0)
		return fail(err, ERR_INVALID, "'%s' is not executable", path);
	known_identity(real, &stat_buf, identity);
	it.path = arena_text(arena, real);
	it.identity = arena_text(arena, identity);
	if (recall(home, &it, arena)) {
		*out = it;
		return 0;
	}
	if (!known_is_elf(real))
		return fail_hint(err, ERR_INVALID, "name the interpreter itself, not a shim",
			"'%s' is a script, not an executable", path);
	if (access(arena_printf(arena, "%s/pyvenv.cfg", parent(arena, parent(arena, real))),
		    F_OK) == 0)
		return fail_hint(err, ERR_INVALID, "name the interpreter it was made from",
			"'%s' belongs to a virtual environment", path);
	it.minor = find_minor(arena, real);
	if (!it.minor)
		it.minor = "3";
	size_t len = strlen(it.minor);
	bool fits = hint && strncmp(hint, it.minor, len) == 0 && hint[len] == '.';
	it.version = fits ? hint : it.minor;
	parse_version(it.minor, "", &version);
	if (version.count == 2 && (version.part[0] != 3 || version.part[1] < OLDEST_MINOR))
		return fail(
			err, ERR_INVALID, "'%s' isn't a Python 3.%d or later", path, OLDEST_MINOR);
	*out = it;
	return 0;
}

/* ---- all of them ---- */
struct finder {
	const struct home *home;
	struct arena *arena;
	const char *minor; /* only this one: nothing else is looked at. NULL: all */
	interpreter_list *list;
	const char *beneath; /* the real file must lie there, or NULL */
};

static void consider(struct finder *finder, const char *path, const char *hint)
{
	struct interpreter it;
	if (examine(finder->home, path, hint, finder->arena, &it, NULL) < 0)
		return;
	if (finder->minor && strcmp(finder->minor, it.minor) != 0)
		return;
	if (finder->beneath && !path_is_beneath(it.path, finder->beneath))
		return;
	for (size_t i = 0; i < finder->list->count; i++)
		if (strcmp(finder->list->items[i].path, it.path) == 0)
			return;
	vec_push(finder->arena, finder->list, it);
}

/* Names in a directory, sorted by bytes; none when it can't be read. */
static text_list list_names(struct arena *arena, const char *path, const char *beginning)
{
	text_list names = { 0 };
	auto_walk DIR *dir = opendir(path);
	for (struct dirent *entry; (entry = walk_next(dir));)
		if (entry->d_name[0] != '.' &&
			strncmp(entry->d_name, beginning, strlen(beginning)) == 0)
			vec_push(arena, &names, arena_text(arena, entry->d_name));
	text_list_sort(&names);
	return names;
}

static void look_in_bin(struct finder *finder, const char *bin, const char *hint)
{
	struct arena *arena = finder->arena;
	if (finder->minor) {
		consider(finder, arena_printf(arena, "%s/python%s", bin, finder->minor), hint);
		consider(finder, arena_printf(arena, "%s/python3", bin), hint);
		return;
	}
	text_list names = list_names(arena, bin, "python3");
	for (size_t i = 0; i < names.count; i++) {
		struct version version; /* leaves out python3-config and the like */
		if (parse_version(names.items[i] + 6, "", &version))
			consider(finder, arena_printf(arena, "%s/%s", bin, names.items[i]), hint);
	}
}

const char *interpreter_version_in(struct arena *arena, const char *name)
{
	struct version version;
	const char *text = name + strcspn(name, "0123456789");
	if ((text > name && text[-1] != '-') || !parse_version(text, "-+", &version))
		return NULL;
	return version.count != 3 ? NULL
				  : arena_printf(arena, "%u.%u.%u", version.part[0],
					    version.part[1], version.part[2]);
}

struct install {
	const char *name, *version;
};

static int compare_installs(const void *a, const void *b)
{
	const struct install *x = a, *y = b;
	if (!x->version || !y->version)
		return (y->version != NULL) - (x->version != NULL);
	return strverscmp(y->version, x->version);
}

/* Directories that hold one Python each, the newest first. */
static void look_in_installs(struct finder *finder, const char *path)
{
	struct arena *arena = finder->arena;
	text_list names = list_names(arena, path, "");
	VEC(struct install) installs = { 0 };
	for (size_t i = 0; i < names.count; i++) {
		const char *version = interpreter_version_in(arena, names.items[i]);
		size_t len = finder->minor ? strlen(finder->minor) : 0;
		if (version && len > 0 &&
			(strncmp(version, finder->minor, len) != 0 || version[len] != '.'))
			continue;
		vec_push(arena, &installs, (struct install){ names.items[i], version });
	}
	if (installs.count > 0)
		qsort(installs.items, installs.count, sizeof *installs.items, compare_installs);
	for (size_t i = 0; i < installs.count; i++)
		look_in_bin(finder, arena_printf(arena, "%s/%s/bin", path, installs.items[i].name),
			installs.items[i].version);
}

static const char *from_environment(
	struct arena *arena, const char *variable, const char *base, const char *below)
{
	const char *set = getenv(variable), *top = base ? getenv(base) : NULL;
	if (set && path_is_absolute(set))
		return set;
	return top && path_is_absolute(top) ? arena_printf(arena, "%s/%s", top, below) : NULL;
}

static void find_all(struct finder *finder)
{
	struct arena *arena = finder->arena;
	const char *pyenv = from_environment(arena, "PYENV_ROOT", "HOME", ".pyenv");
	const char *managed = from_environment(arena, "UV_PYTHON_INSTALL_DIR", NULL, NULL);
	const char *data = from_environment(arena, "XDG_DATA_HOME", "HOME", ".local/share");
	const char *path = getenv("PATH");
	look_in_bin(finder, "/usr/bin", NULL);
	look_in_bin(finder, "/usr/local/bin", NULL);
	if (pyenv)
		look_in_installs(finder, arena_printf(arena, "%s/versions", pyenv));
	if (!managed && data)
		managed = arena_printf(arena, "%s/uv/python", data);
	if (managed)
		look_in_installs(finder, managed);
	/* The owner of the home may have fewer rights than the caller: follow no link out. */
	finder->beneath = finder->home->path;
	look_in_installs(finder, arena_printf(arena, "%s/" ROOM, finder->home->path));
	finder->beneath = NULL;
	struct str rest = str_from(path ? path : ""), piece;
	while (str_next(&rest, ':', &piece))
		if (piece.len > 0 && piece.data[0] == '/')
			look_in_bin(finder, arena_bytes(arena, piece.data, piece.len), NULL);
}

void interpreters_find(const struct home *home, struct arena *arena, interpreter_list *list)
{
	interpreter_list found = { 0 };
	find_all(&(struct finder){ home, arena, NULL, &found, NULL });
	*list = found;
}

/* ---- one of them ---- */
int interpreter_absent(
	const struct home *home, const char *what, struct arena *arena, struct error *err)
{
	interpreter_list list;
	auto_buf struct buf text = buf_empty(ERROR_HINT_SIZE);
	interpreters_find(home, arena, &list);
	for (size_t i = 0; i < list.count; i++) {
		const char *next = arena_printf(arena, "%s%s (%s)",
			i ? ", " : "found: ", list.items[i].version, list.items[i].path);
		/* Whole entries only, with room for the count of the others. */
		if (text.len + strlen(next) + sizeof ", and 1000 more" >= ERROR_HINT_SIZE) {
			buf_printf(&text, ", and %zu more", list.count - i);
			break;
		}
		buf_text(&text, next);
	}
	fail(err, ERR_NOT_FOUND, "no Python%s%s on this host", *what ? " " : "", what);
	return error_hint(
		err, "%s", list.count > 0 ? text.data : "install one, e.g. package python3");
}

static bool is_too_old(const struct version *wanted)
{
	return wanted->part[0] < 3 ||
	       (wanted->part[0] == 3 && wanted->count > 1 && wanted->part[1] < OLDEST_MINOR);
}

static int choose_version(const struct home *home, const struct version *wanted, const char *text,
	struct arena *arena, struct interpreter *out, struct error *err)
{
	interpreter_list list = { 0 };
	const struct interpreter *best = NULL;
	const char *minor = wanted->count > 1
				    ? arena_printf(arena, "%u.%u", wanted->part[0], wanted->part[1])
				    : NULL;
	find_all(&(struct finder){ home, arena, minor, &list, NULL });
	for (size_t i = 0; i < list.count; i++) {
		const struct interpreter *it = &list.items[i];
		enum match match = match_version(it, wanted);
		/* The first that fits; where any 3 will do, the newest. */
		if (match == YES && (!best || match_version(best, wanted) == MAYBE ||
					    (!minor && strverscmp(it->version, best->version) > 0)))
			best = it;
		else if (match == MAYBE && !best)
			best = it;
	}
	if (!best && is_too_old(wanted))
		return fail_hint(err, ERR_INVALID,
			"choose a later version, or none for the default",
			"Python %s is too old: 3.%d is the minimum", text, OLDEST_MINOR);
	if (!best)
		return interpreter_absent(home, text, arena, err);
	*out = *best;
	return 0;
}

/* What NULL gives: quick when it is /usr/bin/python3. */
static int choose_default(const struct home *home, const char *configured, struct arena *arena,
	struct interpreter *out, struct error *err);

static int choose_named(const struct home *home, const char *wanted, const char *configured,
	struct arena *arena, struct interpreter *out, struct error *err)
{
	struct version version;
	struct interpreter usual = { .version = "" };
	const char *text = strncmp(wanted, "python", 6) == 0 ? wanted + 6 : wanted;
	if (strchr(wanted, '/'))
		return examine(home, wanted, NULL, arena, out, err);
	if (!parse_version(text, "", &version))
		return fail_hint(err, ERR_INVALID,
			"give a version such as 3.12 or 3.12.1, or a path",
			"'%s' is not a version of Python", wanted);
	if (choose_default(home, configured, arena, &usual, NULL) == 0 &&
		match_version(&usual, &version) == YES) {
		*out = usual;
		return 0;
	}
	return choose_version(home, &version, text, arena, out, err);
}

static int choose_default(const struct home *home, const char *configured, struct arena *arena,
	struct interpreter *out, struct error *err)
{
	if (configured) {
		if (choose_named(home, configured, NULL, arena, out, err) < 0)
			return error_context(err, "the configured Python");
		return 0;
	}
	if (examine(home, DEFAULT_PYTHON, NULL, arena, out, NULL) == 0)
		return 0;
	return choose_version(home, &(struct version){ { 3 }, 1 }, "3", arena, out, err);
}

int interpreter_choose(const struct home *home, const char *wanted, const char *configured,
	struct arena *arena, struct interpreter *out, bool *is_default, struct error *err)
{
	struct interpreter it, usual;
	bool is_usual = true;
	if (!wanted) {
		if (choose_default(home, configured, arena, &it, err) < 0)
			return -1;
	} else {
		if (choose_named(home, wanted, configured, arena, &it, err) < 0)
			return -1;
		is_usual = choose_default(home, configured, arena, &usual, NULL) == 0 &&
			   strcmp(usual.path, it.path) == 0;
	}
	*out = it;
	*is_default = is_usual;
	return it.tag ? 0 : fail(err, ERR_UNAVAILABLE, "'%s' has not been examined yet", it.path);
}

/* ---- asked itself ---- */
/* Everything that runs with this interpreter sees its prefix. It must be the directory of a Python
 * alone, and never contain a user's home or carrel's. */
static int check_prefix(const struct home *home, const char *prefix, const char *minor,
	struct arena *arena, struct error *err)
{
	const char *user = getenv("HOME");
	if (prefix_is_in_usr(prefix))
		return 0;
	bool is_wide = !strchr(prefix + 1, '/') || path_is_beneath(home->path, prefix) ||
		       (user && path_is_normal(user) && path_is_beneath(user, prefix));
	if (is_wide)
		return fail_hint(err, ERR_DENIED,
			"install it in a directory of its own, or use another with --python",
			"prefix '%s' contains more than a Python: sandboxes would see all of it",
			prefix);
	if (access(arena_printf(arena, "%s/lib/python%s/os.py", prefix, minor), R_OK) < 0 &&
		access(arena_printf(arena, "%s/lib64/python%s/os.py", prefix, minor), R_OK) < 0)
		return fail(err, ERR_INVALID, "no standard library below its prefix '%s'", prefix);
	return 0;
}

int interpreter_check_prefix(const struct home *home, const char *path, const char *prefix,
	struct arena *arena, struct error *err)
{
	const char *minor = find_minor(arena, path);
	if (strcmp(prefix, parent(arena, parent(arena, path))) != 0)
		return fail(err, ERR_DENIED, "'%s' is not the prefix of '%s'", prefix, path);
	return check_prefix(home, prefix, minor ? minor : "3", arena, err);
}

static bool is_word(const char *text)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	return text && *text && strlen(text) < 64 && strspn(text, allowed) == strlen(text);
}

static int take_answer(const struct home *home, const struct answer *answer, struct interpreter *it,
	struct arena *arena, struct error *err)
{
	const char *version = answer_get(answer, "version"), *prefix = answer_get(answer, "prefix");
	const char *implementation = answer_get(answer, "implementation");
	const char *abi = answer_get(answer, "abi"), *magic = answer_get(answer, "magic");
	const char *platform = answer_get(answer, "platform"), *usual;
	struct version parts;
	if (!version || !parse_version(version, "", &parts) || parts.count != 3 || !prefix ||
		!path_is_normal(prefix) || !is_word(implementation) || !is_word(abi) ||
		!is_word(magic) || !is_word(platform))
		return fail(err, ERR_INVALID, "it does not respond as Python does");
	if (parts.part[0] != 3 || parts.part[1] < OLDEST_MINOR)
		return fail(err, ERR_INVALID, "it is Python %s; 3.%d or later is needed", version,
			OLDEST_MINOR);
	/* Only the directory above its bin was visible to it. */
	usual = parent(arena, parent(arena, it->path));
	if (!prefix_is_in_usr(prefix) && strcmp(prefix, usual) != 0)
		return fail(err, ERR_INVALID, "its prefix is '%s', not '%s'", prefix, usual);
	it->version = version;
	it->minor = arena_printf(arena, "%u.%u", parts.part[0], parts.part[1]);
	if (check_prefix(home, prefix, it->minor, arena, err) < 0)
		return -1;
	it->tag = arena_printf(arena, "%s-%s-%s-%s", implementation, abi, magic, platform);
	it->prefix = prefix;
	it->in_usr = prefix_is_in_usr(prefix);
	if (!it->in_usr || !path_is_beneath(it->path, "/usr")) {
		/* It compiles the bytecode of layers, and its description of itself is not
		 * trusted: use its layers for this interpreter only. */
		char place[KNOWN_IDENTITY_LEN + 1];
		known_identity_of_text(prefix, place);
		it->tag = arena_printf(arena, "%s-%.16s", it->tag, place);
	}
	return 0;
}

static int ask(const struct runner *runner, const struct job *job, struct arena *arena,
	struct answer *answer, struct error *err)
{
	bool ended_well;
	auto_buf struct buf out = buf_empty(ANSWER_MAX);
	if (job_try(runner, job, &out, &ended_well, err) < 0)
		return -1;
	if (ended_well && answer_parse(buf_str(&out), arena, answer, err) == 0)
		return 0;
	if (err)
		err->code = ERR_INVALID;
	return -1;
}

int interpreter_look(const struct home *home, const struct runner *runner, struct interpreter *it,
	struct arena *arena, struct error *err)
{
	struct interpreter asked = *it;
	struct answer answer = { 0 };
	struct job job;
	asked.prefix = parent(arena, parent(arena, it->path));
	asked.in_usr = prefix_is_in_usr(asked.prefix) || strcmp(asked.prefix, "/") == 0;
	if (!asked.in_usr) {
		/* The prefix is checked before it is shown to the interpreter. */
		const char *minor = find_minor(arena, it->path);
		if (check_prefix(home, asked.prefix, minor ? minor : "3", arena, err) < 0)
			return error_context(err, "Python '%s'", it->path);
	}
	script_job(&job, arena, &asked, script_look, false, NULL);
	job.timeout_ms = LOOK_TIMEOUT_MS;
	if (ask(runner, &job, arena, &answer, err) < 0 ||
		take_answer(home, &answer, &asked, arena, err) < 0)
		return error_context(err, "Python '%s'", it->path);
	const char *text = arena_printf(arena, "version %s\ntag %s\nprefix %s\npath %s\n",
		asked.version, asked.tag, asked.prefix, asked.path);
	if (known_write(home, ROOM, asked.identity, str_from(text), err) < 0)
		return -1;
	*it = asked;
	return 0;
}

/* Its prefix is <home>/layers/<id>/tree. */
const char *interpreter_layer(const struct interpreter *it, struct arena *arena)
{
	const char *tree = it->prefix && !it->in_usr ? strrchr(it->prefix, '/') : NULL;
	size_t before = strlen("/layers/") + LAYER_ID_LEN;
	if (!tree || strcmp(tree, "/tree") != 0 || (size_t)(tree - it->prefix) < before ||
		strncmp(tree - before, "/layers/", strlen("/layers/")) != 0)
		return NULL;
	const char *id = arena_bytes(arena, tree - LAYER_ID_LEN, LAYER_ID_LEN);
	return layer_id_is_valid(id) ? id : NULL;
}

void interpreter_bind(const struct interpreter *it, struct arena *arena, struct job *job)
{
	if (it->prefix && !it->in_usr)
		vec_push(arena, &job->binds, (struct job_bind){ it->prefix, it->prefix, false });
}
