/* What git would obey: the configurations of the user and of each repository that it may find from
 * where it runs, and the hooks beside them. A repository that came in an archive, or lies in a
 * directory without a name of its own (a bare one), names programs as any other does.
 * 1. All repositories at and above a directory are judged, not the nearest one: whether git takes
 * a directory for a repository isn't decided twice.
 * 2. Paths are those that git sees: where one of them is a link, a person is asked. */
#include "base/path.h"
#include "policy/git_keys.h"
#include "policy/install_internal.h"
#include "policy/shapes.h"

#define LEVELS_MAX 16 /* directories above the one where git runs */
#define COMMON_MAX 3  /* repositories that name another one as theirs */

struct asked { /* one call of git */
	struct judge *j;
	const char *subject, *verb;
	bool reaches;	      /* a remote */
	bool has_promisor;    /* objects that are missing are fetched at any time */
	struct places places; /* where it runs */
	text_list paths;      /* remotes on this machine */
};

#define ask(a, ...) judge_ask((a)->j, (a)->subject, __VA_ARGS__)

/* The input once it is read; NULL: it is missing, or was asked for. *is_missing tells which. */
static struct policy_input *look(
	struct asked *a, enum policy_input_kind kind, const char *path, bool *is_missing)
{
	struct judge *j = a->j;
	struct policy_input *input = policy_inputs_want(j->request->inputs, kind, path);
	*is_missing = input && input->state == POLICY_INPUT_MISSING;
	if (!judge_spend(j, 8 + j->request->inputs->count))
		return NULL;
	if (input && input->state == POLICY_INPUT_READ)
		return input;
	if (input && input->state == POLICY_INPUT_WANTED)
		judge_wait(j, a->subject, arena_printf(j->arena, "git reads '%s'", path));
	else if (!*is_missing)
		ask(a, "git may obey '%s', which can't be read", path);
	return NULL;
}

static const char *join(struct asked *a, const char *dir, const char *name)
{
	return path_normalize(a->j->arena, dir, name);
}

/* The type of a path; "missing", or NULL: it was asked for. */
static const char *type_of(struct asked *a, const char *path)
{
	bool is_missing;
	struct policy_input *input = look(a, POLICY_INPUT_TYPE, path, &is_missing);
	return input ? input->text.data : is_missing ? "missing" : NULL;
}

/* Whether `name` is among the names of a directory. */
static bool has_name(struct str names, const char *name)
{
	struct str one;
	while (str_next(&names, '\n', &one))
		if (str_is(one, name))
			return true;
	return false;
}

/* The one line of a file, with its blanks. NULL: none. */
static const char *line_of(struct asked *a, const struct policy_input *input)
{
	struct str text = input->text;
	while (text.len && strchr("\r\n", text.data[text.len - 1]))
		text.len--;
	return text.len && text.len < 4096 && !memchr(text.data, '\n', text.len) &&
			       !memchr(text.data, '\0', text.len)
		       ? arena_bytes(a->j->arena, text.data, text.len)
		       : NULL;
}

/* Whether ".." comes behind a name, which may be that of a link. */
static bool climbs_behind_name(const char *path)
{
	while (strncmp(path, "../", 3) == 0)
		path += 3;
	return strcmp(path, "..") != 0 && strstr(path, "..");
}

/* ---- one configuration ---- */

static const char *name_key(struct asked *a, const struct git_entry *entry)
{
	return arena_printf(a->j->arena, "%s%s%.80s.%s", entry->section,
		entry->subsection[0] ? "." : "", entry->subsection, entry->key);
}

static void judge_entry(struct asked *a, const char *path, const struct git_entry *entry)
{
	bool is_url = strcmp(entry->section, "remote") == 0 &&
		      (strcmp(entry->key, "url") == 0 || strcmp(entry->key, "pushurl") == 0);
	if (!git_key_is_harmless(entry, a->verb))
		ask(a, "'%s' sets %s, which may run a program", path, name_key(a, entry));
	a->has_promisor |= strcasecmp(entry->key, "promisor") == 0 ||
			   strcasecmp(entry->key, "partialclone") == 0 ||
			   strcasecmp(entry->key, "partialclonefilter") == 0;
	if (is_url && !git_address_is_far(entry->value))
		vec_push(a->j->arena, &a->paths, entry->value);
}

bool input_parse_git(struct judge *j, struct policy_input *input)
{
	struct error err;
	if (input->is_parsed)
		return true;
	if (!judge_spend(j, input->text.len / 2))
		return false;
	input->is_parsed = true;
	if (git_config_parse(input->text, j->request->inputs->arena, &input->entries, &err) < 0)
		input->problem = arena_text(j->request->inputs->arena, err.text);
	return true;
}

static void judge_file(struct asked *a, const char *path)
{
	struct judge *j = a->j;
	bool is_missing;
	struct policy_input *input = look(a, POLICY_INPUT_FILE, path, &is_missing);
	if (!input || !input_parse_git(j, input))
		return;
	if (input->problem)
		ask(a, "'%s' isn't understood: %s", path, input->problem);
	for (size_t i = 0; !input->problem && i < input->entries.count && judge_spend(j, 64); i++)
		judge_entry(a, path, &input->entries.items[i]);
}

/* ---- one repository ---- */

static bool is_sample(struct str name)
{
	static const char end[] = ".sample";
	size_t len = sizeof end - 1;
	return name.len > len && memcmp(name.data + name.len - len, end, len) == 0;
}

static void judge_hooks(struct asked *a, const char *dir)
{
	bool is_missing;
	struct policy_input *input = look(a, POLICY_INPUT_NAMES, dir, &is_missing);
	struct str rest, one;
	if (!input)
		return;
	rest = input->text;
	while (str_next(&rest, '\n', &one))
		if (one.len && !is_sample(one))
			ask(a, "'%s/%.*s' is a hook, which git runs", dir, (int)one.len, one.data);
}

/* Git runs itself in the trees of submodules, by configurations of their own. Their entries have a
 * mode that nothing else has; bytes that look like it are asked for, too. */
static void judge_index(struct asked *a, const char *path)
{
	static const char mode[] = { 0, 0, (char)0xe0, 0 };
	bool is_missing;
	struct policy_input *input = look(a, POLICY_INPUT_FILE, path, &is_missing);
	if (!input || !judge_spend(a->j, input->text.len / 8))
		return;
	if (memmem(input->text.data, input->text.len, mode, sizeof mode))
		ask(a, "'%s' has a submodule, whose configuration git obeys", path);
}

/* A path that leads through links isn't the one that is read here. */
static void judge_links(struct asked *a, const char *path)
{
	for (unsigned level = 0; path[1] && level < LEVELS_MAX; level++) {
		const char *type = type_of(a, path);
		if (type && strcmp(type, "directory") != 0 && strcmp(type, "missing") != 0)
			ask(a, "git may obey '%s', which is a %s", path, type);
		path = join(a, path, "..");
	}
	if (path[1])
		ask(a, "it isn't known which repository git finds");
}

/* A rebase that was begun: `exec` in its list runs a program. */
static void judge_todo(struct asked *a, const char *path)
{
	static const char harmless[] =
		"pick p reword r edit e squash s fixup f drop d noop break b label l reset t "
		"merge m update-ref u";
	bool is_missing;
	struct policy_input *input = look(a, POLICY_INPUT_FILE, path, &is_missing);
	struct str rest, line;
	if (!input || !judge_spend(a->j, input->text.len / 2))
		return;
	rest = input->text;
	while (str_next(&rest, '\n', &line)) {
		size_t len = 0;
		line = str_trim(line);
		while (len < line.len && line.data[len] != ' ' && line.data[len] != '\t')
			len++;
		if (len && line.data[0] != '#' && !words_have_part(harmless, line.data, len))
			ask(a, "'%s' has '%.*s', which may run a program", path,
				(int)(len < 40 ? len : 40), line.data);
	}
}

/* Remotes as git kept them once; its template still makes such a directory. */
static void judge_old_remotes(struct asked *a, const char *dir)
{
	bool is_missing;
	struct policy_input *input = look(a, POLICY_INPUT_NAMES, dir, &is_missing);
	if (input && input->text.len)
		ask(a, "'%s' has remotes, which aren't read", dir);
}

static void judge_git_dir(struct asked *a, const char *dir, unsigned depth);

/* The directory that a file names, relative to `from`. */
static void judge_named(struct asked *a, const char *from, const char *name, unsigned depth)
{
	const char *dir = name ? join(a, from, name) : NULL;
	if (!dir || depth > COMMON_MAX || climbs_behind_name(name)) {
		ask(a, "it isn't known which repository git finds");
		return;
	}
	judge_links(a, dir);
	judge_git_dir(a, dir, depth);
}

/* What lies in a directory that is a repository, or may become one. */
static void judge_git_dir(struct asked *a, const char *dir, unsigned depth)
{
	static const char *const old[] = { "remotes", "branches" };
	bool is_missing;
	struct policy_input *input = look(a, POLICY_INPUT_NAMES, dir, &is_missing);
	if (!input)
		return;
	struct str names = input->text, rest = names, one;
	if (has_name(names, "config"))
		judge_file(a, join(a, dir, "config"));
	if (has_name(names, "config.worktree"))
		judge_file(a, join(a, dir, "config.worktree"));
	/* Without a slash it may be a link to a directory. */
	if (has_name(names, "hooks") || has_name(names, "hooks/"))
		judge_hooks(a, join(a, dir, "hooks"));
	if (has_name(names, "index"))
		judge_index(a, join(a, dir, "index"));
	while (str_next(&rest, '\n', &one))
		if (str_starts_with(one, "sharedindex."))
			judge_index(a, join(a, dir, arena_bytes(a->j->arena, one.data, one.len)));
	if (strcmp(a->verb, "rebase") == 0 && has_name(names, "rebase-merge/"))
		judge_todo(a, join(a, dir, "rebase-merge/git-rebase-todo"));
	else if (strcmp(a->verb, "rebase") == 0 && has_name(names, "rebase-merge"))
		ask(a, "'%s/rebase-merge' isn't a directory", dir);
	for (size_t i = 0; a->reaches && i < sizeof old / sizeof *old; i++)
		if (has_name(names, old[i]) ||
			has_name(names, arena_printf(a->j->arena, "%s/", old[i])))
			judge_old_remotes(a, join(a, dir, old[i]));
	if (has_name(names, "modules") || has_name(names, "modules/"))
		ask(a, "'%s/modules' has submodules, whose configuration git obeys", dir);
	if (!has_name(names, "commondir"))
		return;
	input = look(a, POLICY_INPUT_FILE, join(a, dir, "commondir"), &is_missing);
	if (input)
		judge_named(a, dir, line_of(a, input), depth + 1);
}

/* ".git": a directory, or a file that names one. */
static void judge_dot_git(struct asked *a, const char *path, const char *above)
{
	const char *type = type_of(a, path), *line;
	bool is_missing;
	if (!type || strcmp(type, "missing") == 0)
		return;
	if (strcmp(type, "directory") == 0) {
		judge_git_dir(a, path, 0);
		return;
	}
	if (strcmp(type, "file") != 0) {
		ask(a, "git may obey '%s', which is a %s", path, type);
		return;
	}
	struct policy_input *input = look(a, POLICY_INPUT_FILE, path, &is_missing);
	line = input ? line_of(a, input) : NULL;
	if (!input)
		return;
	if (!line || strncmp(line, "gitdir: ", 8) != 0)
		ask(a, "'%s' isn't understood", path);
	else
		judge_named(a, above, line + 8, 0);
}

/* A directory that git may take for a repository, or for one's working tree. */
static void judge_level(struct asked *a, const char *dir)
{
	const char *head = type_of(a, join(a, dir, "HEAD"));
	judge_dot_git(a, join(a, dir, ".git"), dir);
	if (head && strcmp(head, "missing") != 0)
		judge_git_dir(a, dir, 0);
}

/* ---- where git looks ---- */

/* Whether git surely takes `dir`/.git for the repository, whatever else is written. */
static bool is_top(struct asked *a, const char *dir)
{
	const char *git = join(a, dir, ".git"), *type = type_of(a, git), *line;
	bool is_missing;
	if (!type || strcmp(type, "directory") != 0)
		return type && strcmp(type, "file") == 0;
	struct policy_input *names = look(a, POLICY_INPUT_NAMES, git, &is_missing);
	struct policy_input *head = look(a, POLICY_INPUT_FILE, join(a, git, "HEAD"), &is_missing);
	if (!names || !head)
		return false;
	line = line_of(a, head);
	return line && has_name(names->text, "objects/") && has_name(names->text, "refs/") &&
	       (strncmp(line, "ref: refs/", 10) == 0 ||
		       (strlen(line) == 40 && !line[strspn(line, "0123456789abcdef")]));
}

/* is_left: nothing runs there, unless the script can't leave it. */
static void judge_place(struct asked *a, const char *dir, bool is_left)
{
	if (a->j->checkouts && !is_left && !is_top(a, dir))
		ask(a, "a command before it may bring a repository to '%s'", dir);
	judge_links(a, dir);
	for (unsigned level = 0; level < LEVELS_MAX && dir[1]; level++) {
		judge_level(a, dir);
		dir = join(a, dir, "..");
	}
	judge_level(a, "/");
}

static void judge_user(struct asked *a)
{
	static const char *const own[] = { ".gitconfig", ".config/git/config" };
	judge_file(a, "/etc/gitconfig");
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		judge_file(a, join(a, a->j->request->home ? a->j->request->home : "/", own[i]));
}

/* ---- remotes ---- */

/* A repository on this machine: a push runs its hooks, a fetch is served by its configuration. */
static void judge_path_at(struct asked *a, const char *dir, const char *path)
{
	static const char *const suffixes[] = { "", ".git" };
	for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
		const char *at = join(a, dir, arena_printf(a->j->arena, "%s%s", path, suffixes[k]));
		const char *type = type_of(a, at);
		if (!type || (strcmp(type, "directory") != 0 && strcmp(type, "link") != 0))
			continue;
		judge_links(a, at);
		judge_level(a, at);
	}
}

/* A relative path begins where git runs, or at the top of the working tree. */
static void judge_path_of(struct asked *a, const char *path)
{
	if (strncmp(path, "file://", 7) == 0)
		path += 7;
	if (climbs_behind_name(path))
		ask(a, "it isn't known which repository '%s' is", path);
	if (path[0] == '/') {
		judge_path_at(a, "/", path);
		return;
	}
	for (size_t i = 0; i < a->places.count; i++) {
		const char *dir = a->places.dirs[i];
		for (unsigned level = 0; level < LEVELS_MAX && dir[1]; level++) {
			judge_path_at(a, dir, path);
			dir = join(a, dir, "..");
		}
	}
}

/* The first operand, or --repo. */
static void judge_remote_words(struct asked *a, const struct shape_reading *reading)
{
	for (size_t i = 0; i < reading->items.count; i++) {
		const struct shape_item *item = &reading->items.items[i];
		const char *text = item->value.literal;
		if (!item->is_operand && item->effect != 'g')
			continue;
		if (text && !git_address_is_far(text))
			judge_path_of(a, text);
		if (item->is_operand)
			return;
	}
}

/* `git remote` names remotes, and mostly reaches none. */
static bool reaches_remote(const struct asked *a, const shell_words *words, size_t at)
{
	static const char remotes[] = "fetch pull push ls-remote clone";
	static const char harmless[] = "add remove rm rename get-url set-url -v --verbose";
	const char *next = at + 1 < words->count ? words->items[at + 1].literal : "-v";
	return words_have(remotes, a->verb) ||
	       (strcmp(a->verb, "remote") == 0 && !words_have(harmless, next));
}

static void judge_reached(struct asked *a, const shell_words *words, size_t at)
{
	struct judge *j = a->j;
	const char *home = j->request->home ? j->request->home : "/";
	const char *ssh = type_of(a, join(a, home, ".ssh/config"));
	struct shape_reading reading;
	if (ssh && strcmp(ssh, "missing") != 0)
		ask(a, "'.ssh/config' may name a program, which ssh runs");
	if (strcmp(a->verb, "remote") == 0)
		return;
	const struct shape *git = shape_find(j->arena, "git");
	shape_read(j->arena, shape_find_sub(j->arena, git, a->verb), words, at, &reading);
	judge_remote_words(a, &reading);
}

/* Of configurations: their paths are relative to the working tree. */
static void judge_paths(struct asked *a)
{
	size_t count = a->paths.count;
	for (size_t i = 0; i < count && (a->reaches || a->has_promisor); i++)
		if (a->paths.items[i][0] == '/' || strncmp(a->paths.items[i], "file:///", 8) == 0)
			judge_path_of(a, a->paths.items[i]);
		else
			ask(a, "it isn't known which repository '%s' is", a->paths.items[i]);
}

/* ---- arguments ---- */

/* Where -C leads; no place: it isn't known. */
static void move(struct asked *a, const struct shell_word *word)
{
	const char *to = word->literal;
	if (!to || climbs_behind_name(to)) {
		a->places.count = 0;
		return;
	}
	for (size_t i = 0; i < a->places.count && strstr(to, ".."); i++)
		judge_links(a, a->places.dirs[i]);
	if (to[0] == '/')
		a->places = (struct places){ { path_normalize(a->j->arena, "/", to) }, 1 };
	for (size_t i = 0; i < a->places.count; i++)
		a->places.dirs[i] = join(a, a->places.dirs[i], to);
}

static void judge_git(struct asked *a, const shell_words *words, size_t at)
{
	static const char made[] = "clone init";
	struct judge *j = a->j;
	if (j->others_than_git || j->others_piped ||
		(j->command && order_writes_within(j->command)))
		ask(a, "a command beside it may change the configuration of git");
	a->reaches = reaches_remote(a, words, at);
	judge_user(a);
	for (size_t i = 0; i < a->places.count && !words_have(made, a->verb); i++)
		judge_place(
			a, a->places.dirs[i], j->begins_moved && a->places.count == 2 && i == 0);
	if (a->reaches)
		judge_reached(a, words, at);
	judge_paths(a);
}

void judge_git_config(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	struct asked a = { .j = j, .subject = subject, .places = places_of(j, ".") };
	struct shape_reading reading;
	/* A policy that asks about nothing leaves what runs to the sandbox. */
	if (strcmp(path_basename(words->items[first].literal), "git") != 0 || !j->request->inputs ||
		j->policy->never_asks)
		return;
	const struct shape *git = shape_find(j->arena, "git");
	shape_read(j->arena, git, words, first, &reading);
	if (reading.unknown || reading.end >= words->count)
		return; /* asked for, or it prints its version */
	a.verb = words->items[reading.end].literal;
	if (!a.verb || !shape_find_sub(j->arena, git, a.verb) || strcmp(a.verb, "version") == 0)
		return;
	for (size_t i = 0; i < reading.items.count; i++)
		if (reading.items.items[i].effect == 'C')
			move(&a, &reading.items.items[i].value);
	if (a.places.count)
		judge_git(&a, words, reading.end);
	else
		ask(&a, "it isn't known in which directory git runs");
}
