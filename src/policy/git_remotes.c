/* What sources.json says of the remotes of git: addresses in arguments, and those that names stand
 * for in the configuration of a repository. */
#include "base/path.h"
#include "policy/install_internal.h"

#define LEVELS_MAX 12 /* directories above, in which a repository is looked for */

/* Commands that reach a remote, or that say what one is. */
enum verb_names {
	BY_FIRST,   /* its first operand is a remote; without one, a remote of the branch */
	BY_ALL,	    /* each operand may be one */
	BY_ADDRESS, /* each operand may be an address, none a name */
	BY_WORDS,   /* each operand that is certainly an address */
	BY_MODULES, /* remotes of submodules */
};
static const struct verb {
	const char *name;
	enum verb_names names;
} verbs[] = {
	{ "push", BY_FIRST },
	{ "fetch", BY_FIRST },
	{ "pull", BY_FIRST },
	{ "ls-remote", BY_FIRST },
	{ "fetch-pack", BY_FIRST },
	{ "send-pack", BY_FIRST },
	{ "http-fetch", BY_ALL },
	{ "http-push", BY_ALL },
	{ "clone", BY_ADDRESS },
	{ "remote", BY_ALL },
	{ "submodule", BY_MODULES },
	{ "subtree", BY_ALL },
	{ "lfs", BY_ALL },
	{ "archive", BY_WORDS },
	{ "bundle", BY_WORDS },
	{ "request-pull", BY_ALL },
	{ "config", BY_WORDS },
	{ "svn", BY_ALL },
};

struct asked { /* one call of git */
	struct judge *j;
	const char *subject;
	const struct verb *verb;
	text_list operands;
	bool is_everything; /* --all, --multiple: several remotes */
	bool is_recursive;  /* submodules as well */
	struct places places;
	const char *git_dir; /* --git-dir, or NULL */
	bool is_denied;
};

static void judge_address(struct asked *a, const char *address)
{
	struct error err;
	if (a->is_denied || judge_check_remote(a->j, address, &err) == 0)
		return;
	sources_deny(a->j, a->subject, &err);
	a->is_denied = true;
}

static bool is_address(const char *text)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
	return strstr(text, "://") || strstr(text, "::") ||
	       (colon && strchr(text, '@') && (!slash || slash > colon));
}

/* ---- configurations ---- */

typedef VEC(const git_entries *) config_list;

/* NULL: it isn't there, or it was asked for. */
static const git_entries *read_config(struct asked *a, const char *path)
{
	struct judge *j = a->j;
	struct policy_input *input = input_read(j, a->subject, path, false);
	if (!input)
		return NULL;
	if (j->others_than_git)
		sources_ask(j, a->subject, "a command beside it may change '%s'", path);
	if (!input_parse_git(j, input))
		return NULL;
	if (!input->problem)
		return &input->entries;
	sources_ask(j, a->subject, "'%s' isn't understood: %s", path, input->problem);
	return NULL;
}

static void add_config(struct asked *a, const char *path, config_list *configs)
{
	const git_entries *entries = read_config(a, path);
	if (entries)
		vec_push(a->j->arena, configs, entries);
}

/* Whether there is such a file, or directory; WANTED: it isn't known. */
static enum policy_input_state look(struct asked *a, const char *dir, const char *name)
{
	struct judge *j = a->j;
	const struct policy_input *input = policy_inputs_want(
		j->request->inputs, POLICY_INPUT_FILE, path_normalize(j->arena, dir, name));
	return input ? input->state : POLICY_INPUT_WANTED;
}

/* Those of the repository at `dir`, or above it; true: it was found. */
static bool add_repository(struct asked *a, const char *dir, config_list *configs)
{
	struct judge *j = a->j;
	for (unsigned level = 0; level < LEVELS_MAX; level++) {
		enum policy_input_state git = look(a, dir, ".git");
		enum policy_input_state head = look(a, dir, "HEAD");
		size_t before = configs->count;
		if (git == POLICY_INPUT_WANTED || head == POLICY_INPUT_WANTED)
			return false;
		if (git == POLICY_INPUT_UNREAD) { /* a directory */
			add_config(a, path_normalize(j->arena, dir, ".git/config"), configs);
			add_config(
				a, path_normalize(j->arena, dir, ".git/config.worktree"), configs);
			return configs->count > before;
		}
		/* A file that names the repository; a repository without files. */
		if (git == POLICY_INPUT_READ || head != POLICY_INPUT_MISSING || !dir[1])
			return false;
		dir = path_normalize(j->arena, "/", arena_printf(j->arena, "%s/..", dir));
	}
	return false;
}

static void read_configs(struct asked *a, bool needs_repository, config_list *configs)
{
	struct judge *j = a->j;
	const char *home = j->request->home;
	bool is_found = false;
	if (home) {
		add_config(a, path_normalize(j->arena, home, ".gitconfig"), configs);
		add_config(a, path_normalize(j->arena, home, ".config/git/config"), configs);
	}
	if (!needs_repository)
		return;
	if (a->git_dir) {
		struct places places = places_of(j, a->git_dir);
		for (size_t i = 0; i < places.count; i++) {
			size_t before = configs->count;
			add_config(a, path_normalize(j->arena, places.dirs[i], "config"), configs);
			is_found |= configs->count > before;
		}
	}
	for (size_t i = 0; !a->git_dir && i < a->places.count; i++)
		is_found |= add_repository(a, a->places.dirs[i], configs);
	if (!is_found)
		sources_ask(j, a->subject, "the repository's configuration isn't known");
}

/* What makes an address another one, or hides a part of the configuration. */
static void judge_rewrites(struct asked *a, const config_list *configs)
{
	for (size_t i = 0; i < configs->count; i++)
		for (size_t k = 0; k < configs->items[i]->count; k++) {
			const struct git_entry *entry = &configs->items[i]->items[k];
			const char *why = NULL;
			if (strcmp(entry->section, "url") == 0)
				why = "the configuration of git rewrites addresses";
			else if (strncmp(entry->section, "include", 7) == 0)
				why = "the configuration of git includes another file";
			else if (strcmp(entry->section, "remote") == 0 &&
				 strcmp(entry->key, "vcs") == 0)
				why = "a remote is reached by a program of its own";
			if (why)
				sources_ask(a->j, a->subject, "%s", why);
		}
}

/* The addresses of a remote; "" of all remotes. *refused: how many of them aren't allowed. */
static size_t count_addresses(
	struct asked *a, const config_list *configs, const char *name, size_t *refused)
{
	size_t found = 0;
	*refused = 0;
	for (size_t i = 0; i < configs->count; i++)
		for (size_t k = 0; k < configs->items[i]->count && judge_spend(a->j, 2); k++) {
			const struct git_entry *entry = &configs->items[i]->items[k];
			bool is_remote = strcmp(entry->section, "remote") == 0 &&
					 (strcmp(entry->key, "url") == 0 ||
						 strcmp(entry->key, "pushurl") == 0);
			/* A branch may name an address as its remote. */
			bool is_branch = !name[0] && strcmp(entry->section, "branch") == 0 &&
					 strstr(entry->key, "remote") && is_address(entry->value);
			struct error err;
			if (!is_branch &&
				!(is_remote && (!name[0] || strcmp(entry->subsection, name) == 0)))
				continue;
			found++;
			*refused += judge_check_remote(a->j, entry->value, &err) < 0;
		}
	return found;
}

static void judge_named(struct asked *a, const config_list *configs, const char *name)
{
	size_t refused = 0, found = count_addresses(a, configs, name, &refused);
	struct error err;
	if (refused) {
		fail(&err, ERR_DENIED,
			"git.allowed_remotes doesn't list the address of remote '%s'", name);
		sources_deny(a->j, a->subject, &err);
		a->is_denied = true;
	} else if (!found && !strchr(name, '/') && strcmp(name, ".") != 0 &&
		   a->j->request->inputs) {
		sources_ask(a->j, a->subject, "the address of remote '%s' isn't known", name);
	}
}

/* The remote of the branch, which isn't known, or several. */
static void judge_some(struct asked *a, const config_list *configs)
{
	size_t refused = 0, found = count_addresses(a, configs, "", &refused);
	struct error err;
	if (found && refused == found) {
		fail(&err, ERR_DENIED, "git.allowed_remotes lists no remote of this repository");
		sources_deny(a->j, a->subject, &err);
		a->is_denied = true;
	} else if (refused) {
		sources_ask(a->j, a->subject,
			"git.allowed_remotes doesn't list each remote of this repository");
	}
}

/* .gitmodules, and what of it is configured. */
static void judge_modules(struct asked *a, const config_list *configs)
{
	config_list modules = { 0 };
	for (size_t i = 0; i < configs->count; i++)
		vec_push(a->j->arena, &modules, configs->items[i]);
	for (size_t i = 0; i < a->places.count; i++)
		add_config(
			a, path_normalize(a->j->arena, a->places.dirs[i], ".gitmodules"), &modules);
	for (size_t i = 0; i < modules.count; i++)
		for (size_t k = 0; k < modules.items[i]->count; k++) {
			const struct git_entry *entry = &modules.items[i]->items[k];
			if (strcmp(entry->section, "submodule") != 0 ||
				strcmp(entry->key, "url") != 0)
				continue;
			judge_address(a, entry->value);
			if (!is_address(entry->value))
				sources_ask(a->j, a->subject,
					"a submodule whose address is relative isn't known");
		}
	if (modules.count == configs->count)
		sources_ask(a->j, a->subject, "the submodules of the repository aren't known");
}

/* ---- arguments ---- */

/* Options of git itself whose value is the next word. */
static size_t skip_globals(struct asked *a, const shell_words *words, size_t at)
{
	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;
		const char *next = at + 1 < words->count ? words->items[at + 1].literal : NULL;
		if (!text || text[0] != '-')
			return at;
		if (strcmp(text, "-C") == 0) {
			const char *dir = next ? next : "";
			for (size_t i = 0; i < a->places.count; i++)
				a->places.dirs[i] =
					path_normalize(a->j->arena, a->places.dirs[i], dir);
			if (!next || next[0] == '/' || !a->places.count)
				a->places = next ? places_of(a->j, next) : (struct places){ 0 };
			at++;
		} else if (strcmp(text, "--git-dir") == 0) {
			a->git_dir = next ? next : "";
			at++;
		} else if (strncmp(text, "--git-dir=", 10) == 0) {
			a->git_dir = text + 10;
		} else if (words_have("-c --work-tree --namespace --super-prefix "
				      "--config-env --exec-path --attr-source",
				   text)) {
			at++;
		}
	}
	return at;
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	return NULL;
}

static void take_words(struct asked *a, const shell_words *words, size_t at)
{
	static const char with_value[] =
		"--depth --deepen --shallow-since --shallow-exclude --refmap -j --jobs -o "
		"--push-option --server-option --negotiation-tip --upload-pack --receive-pack "
		"--exec -s --strategy -X --strategy-option --filter -u --branch -b --origin "
		"--template --reference --separate-git-dir --sort";
	bool is_push = strcmp(a->verb->name, "push") == 0;
	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;
		const char *value = text ? strchr(text, '=') : NULL;
		if (!text)
			continue; /* asked for already */
		if (text[0] != '-') {
			vec_push(a->j->arena, &a->operands, text);
		} else if (strcmp(text, "--repo") == 0 && at + 1 < words->count &&
			   words->items[at + 1].literal) {
			vec_push(a->j->arena, &a->operands, words->items[++at].literal);
		} else if (strncmp(text, "--repo=", 7) == 0 || strncmp(text, "--remote=", 9) == 0) {
			vec_push(a->j->arena, &a->operands, value + 1);
			a->is_everything = true;
		} else if (value) {
			judge_address(a, value + 1);
		} else if (strncmp(text, "--recurs", 8) == 0) {
			a->is_recursive = true;
		} else if (strcmp(text, "--all") == 0 || strcmp(text, "--multiple") == 0) {
			a->is_everything |= !is_push;
		} else if (words_have(with_value, text) && !(is_push && strcmp(text, "-u") == 0)) {
			at++; /* push -u takes none */
		}
	}
}

/* "host:path", which git takes for an address, too */
static bool may_be_address(const char *text)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
	return is_address(text) || (colon && (!slash || slash > colon));
}

static void judge_operands_of(struct asked *a, const config_list *configs)
{
	enum verb_names names = a->verb->names;
	for (size_t i = 0; i < a->operands.count && !a->is_denied; i++) {
		const char *text = a->operands.items[i];
		bool is_first = names == BY_FIRST && i == 0;
		size_t refused;
		if (is_address(text) || is_first || (names != BY_FIRST && names != BY_WORDS))
			judge_address(a, text);
		if (may_be_address(text) || names == BY_WORDS || names == BY_ADDRESS)
			continue;
		/* Other operands may be names of remotes. */
		if (is_first || count_addresses(a, configs, text, &refused))
			judge_named(a, configs, text);
	}
}

static bool needs_repository(const struct asked *a)
{
	/* add and set-url say what a remote is, and reach none. */
	if (strcmp(a->verb->name, "remote") == 0)
		return a->operands.count && words_have("update show prune", a->operands.items[0]);
	if (a->verb->names == BY_FIRST)
		return !a->operands.count || a->is_everything ||
		       !may_be_address(a->operands.items[0]);
	return a->verb->names == BY_ALL || a->verb->names == BY_MODULES ||
	       (a->verb->names == BY_WORDS && a->is_everything);
}

static void judge_verb(struct asked *a)
{
	bool has_repository = needs_repository(a);
	config_list configs = { 0 };
	if (a->j->request->inputs && strcmp(a->verb->name, "config") != 0) {
		read_configs(a, has_repository, &configs);
		judge_rewrites(a, &configs);
	}
	judge_operands_of(a, &configs);
	if (a->is_denied || !a->j->request->inputs)
		return;
	bool is_update = strcmp(a->verb->name, "remote") == 0 && has_repository &&
			 strcmp(a->operands.items[0], "update") == 0;
	if (is_update || a->is_everything || (a->verb->names == BY_FIRST && !a->operands.count) ||
		strcmp(a->verb->name, "lfs") == 0)
		judge_some(a, &configs);
	if (a->verb->names == BY_MODULES)
		judge_modules(a, &configs);
	else if (a->is_recursive)
		sources_ask(a->j, a->subject, "the submodules of the repository aren't known");
}

void judge_git_remotes(struct judge *j, const char *subject, const shell_words *words, size_t at)
{
	const struct sources *sources = j->request->sources;
	struct asked a = { .j = j, .subject = subject, .places = places_of(j, ".") };
	struct error err;
	if (sources->has_git && !sources->git_is_enabled) {
		sources_check_remote(sources, "", &err);
		sources_deny(j, subject, &err);
		return;
	}
	if (!sources->has_git || !sources->has_remotes)
		return;
	for (size_t i = at; i < words->count; i++)
		if (words->items[i].literal && strcasestr(words->items[i].literal, "insteadof")) {
			fail(&err, ERR_DENIED, "git.allowed_remotes: '%s' rewrites remotes",
				words->items[i].literal);
			sources_deny(j, subject, &err);
			return;
		}
	at = skip_globals(&a, words, at);
	if (at >= words->count)
		return;
	a.verb = words->items[at].literal ? find_verb(words->items[at].literal) : NULL;
	if (!a.verb && words->items[at].literal)
		return;
	for (size_t i = at; i < words->count; i++)
		if (!words->items[i].literal) {
			sources_ask(j, subject, "a remote that is expanded isn't known");
			break;
		}
	if (!a.verb)
		return;
	take_words(&a, words, at + 1);
	judge_verb(&a);
}
