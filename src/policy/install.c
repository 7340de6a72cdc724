/* What sources.json says of a command: package managers, git, languages, URLs. */
#include "base/path.h"
#include "policy/install_internal.h"

void sources_deny(struct judge *j, const char *subject, const struct error *err)
{
	judge_step(j, subject, POLICY_DENY, NULL, arena_printf(j->arena, "sources: %s", err->text));
}

/* A URL of a list is parsed and compared. */
static bool spend_on_list(struct judge *j, size_t count, const char *text)
{
	return judge_spend(j, 16 + count * 64 + strlen(text));
}

int judge_check_package(
	struct judge *j, const char *program, const char *package, struct error *err)
{
	if (!spend_on_list(j, 0, package))
		return 0;
	return sources_check_package(j->request->sources, program, package, err);
}

int judge_check_registry(struct judge *j, const char *program, const char *url, struct error *err)
{
	const struct sources_manager *manager = sources_find_manager(j->request->sources, program);
	if (!spend_on_list(j, manager ? manager->registries.count : 0, url))
		return 0;
	return sources_check_registry(j->request->sources, program, url, err);
}

int judge_check_remote(struct judge *j, const char *remote, struct error *err)
{
	if (!spend_on_list(j, j->request->sources->allowed_remotes.count, remote))
		return 0;
	return sources_check_remote(j->request->sources, remote, err);
}

int judge_check_domain(struct judge *j, const char *host, struct error *err)
{
	const struct sources *sources = j->request->sources;
	if (!judge_spend(j, 4 + sources->blocked_domains.count + sources->allowed_domains.count))
		return 0;
	return sources_check_domain(sources, host, err);
}

/* The words that make a program install or run packages; "" where each call does. `whole` are
 * those that install what a file of the project lists; with `project`, that is installed as well as
 * the packages that are named. */
static const struct installer {
	const char *program, *verbs, *whole, *project;
} installers[] = {
	{ "pip", "install download wheel", NULL, NULL },
	{ "pip-sync", "", NULL, NULL },
	{ "uv", "install add remove run sync lock tool build", "sync lock",
		"add remove run build" },
	{ "uvx", "", NULL },
	{ "pipx", "install run inject upgrade", NULL },
	{ "poetry", "add install update lock sync", "install update lock sync", "add" },
	{ "pdm", "add install update lock sync", "install update lock sync" },
	{ "pipenv", "install sync lock update", "sync lock update" },
	{ "easy_install", "", NULL },
	{ "conda", "install create update env", "env" },
	{ "npm",
		"install i in ins inst insta instal isnt isnta isntal isntall add ci exec x create "
		"init innit update up upgrade udpate rebuild rb link ln install-test it "
		"clean-install "
		"install-clean isntall-clean ic install-ci-test cit clean-install-test sit dedupe "
		"ddp audit prune",
		"ci rebuild rb clean-install install-clean isntall-clean ic install-ci-test cit "
		"clean-install-test sit dedupe ddp audit prune",
		"install i in ins inst insta instal isnt isnta isntal isntall add update up "
		"upgrade udpate install-test it link ln" },
	{ "npx", "", NULL },
	{ "pnpm", "install i add dlx exec create update up ci fetch dedupe deploy rebuild import",
		"install i update up ci fetch dedupe deploy rebuild import", "add" },
	{ "pnpx", "", NULL },
	{ "yarn",
		"install add dlx create up upgrade global import workspace workspaces dedupe "
		"rebuild",
		"install up upgrade import workspace workspaces dedupe rebuild", "add" },
	{ "bun", "install i add x create update a c ci", "install i update ci", "add a" },
	{ "bunx", "", NULL },
	{ "deno", "install add", NULL },
	{ "corepack", "", NULL },
	{ "cargo", "install add update fetch", "update fetch" },
	{ "go", "get install mod", "mod" },
	{ "gem", "install update fetch", NULL },
	{ "bundle", "install update add", "install update" },
	{ "composer", "require install update", "install update" },
	{ "apt", "install download source reinstall", NULL },
	{ "dpkg", "-i --install", NULL },
	{ "apk", "add", NULL },
	{ "dnf", "install reinstall download", NULL },
	{ "pacman", "-S -Sy -Syu -U", NULL },
	{ "brew", "install", NULL },
	{ "cpan", "", NULL },
	{ "luarocks", "install", NULL },
	{ "dotnet", "add tool", NULL },
	{ "nuget", "install", NULL },
};

static const struct installer *find_installer(const char *name)
{
	static const struct {
		const char *name, *like;
	} others[] = { { "apt-get", "apt" }, { "aptitude", "apt" }, { "mamba", "conda" },
		{ "micromamba", "conda" }, { "yum", "dnf" }, { "rpm", "dpkg" } };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strcmp(name, others[i].name) == 0)
			name = others[i].like;
	if (strncmp(name, "pip", 3) == 0 && !name[3 + strspn(name + 3, "0123456789.")])
		name = "pip";
	for (size_t i = 0; i < sizeof installers / sizeof *installers; i++)
		if (strcmp(name, installers[i].program) == 0)
			return &installers[i];
	return NULL;
}

/* The URL in a word: "--index-url=https://…", "name@https://…". */
static const char *url_in(struct arena *arena, const char *word)
{
	const char *at = strstr(word, "://"), *begin = at;
	if (!at)
		return NULL;
	while (begin > word && (begin[-1] == '+' || begin[-1] == '-' || begin[-1] == '.' ||
				       (begin[-1] >= '0' && begin[-1] <= '9') ||
				       ((begin[-1] | 0x20) >= 'a' && (begin[-1] | 0x20) <= 'z')))
		begin--;
	/* -ihttps://…: the letter of an option */
	if (begin == word + 1 && word[0] == '-')
		begin++;
	return arena_bytes(arena, begin, strcspn(begin, "# \t,;"));
}

void sources_judge_url(struct judge *j, const char *subject, const char *program, const char *url)
{
	struct error err;
	if (strncmp(url, "git+", 4) == 0 || strncmp(url, "git://", 6) == 0) {
		if (judge_check_remote(j, strncmp(url, "git+", 4) == 0 ? url + 4 : url, &err) < 0)
			sources_deny(j, subject, &err);
		else
			sources_ask(
				j, subject, "a package of a repository isn't known by its name");
	} else if (judge_check_registry(j, program, url, &err) < 0) {
		sources_deny(j, subject, &err);
	}
}

/* One package without its version, or several with commas between: --with 'a, b' */
static void judge_name(struct judge *j, const char *subject, const char *program, const char *word)
{
	const char *ends = manager_is_python(program) ? "<>=!~;[@( ," : "@,";
	for (; *word && judge_spend(j, 8); word += *word == ',') {
		word += strspn(word, " \t");
		size_t skipped = word[0] == '@' ? 1 : 0;
		size_t len = skipped + strcspn(word + skipped, ends);
		struct error err;
		if (judge_check_package(j, program, arena_bytes(j->arena, word, len), &err) < 0)
			sources_deny(j, subject, &err);
		word += strcspn(word, ",");
	}
}

/* An operand: one package, or the alias and the package of npm. */
static void judge_package(
	struct judge *j, struct project *project, const char *word, bool is_python)
{
	const char *subject = project->subject, *program = project->program;
	const char *alias = is_python ? NULL : strstr(word, "npm:");
	bool is_archive = is_python && (strstr(word, ".whl") || strstr(word, ".tar.") ||
					       strstr(word, ".zip") || strstr(word, ".tgz"));
	judge_name(j, subject, program, word);
	if (alias)
		judge_name(j, subject, program, alias + 4);
	if (is_python && !is_archive && !strstr(word, "file:") &&
		(word[0] == '.' || word[0] == '/' || strchr(word, '/')))
		vec_push(j->arena, &project->trees, word);
	else if (word[0] == '.' || word[0] == '/' || word[0] == '~' || strstr(word, "file:") ||
		 strstr(word, "link:") || (alias && strstr(alias + 4, "npm:")) || is_archive)
		sources_ask(j, subject, "a package of a file isn't known by its name");
	else if (!is_python && word[0] != '@' && strchr(word, '/') && !alias)
		sources_ask(j, subject, "a package of a repository isn't known by its name");
}

/* Options whose value is a file or directory. */
enum file_option {
	OPTION_NONE,
	OPTION_LIST,	  /* of packages or constraints */
	OPTION_TREE,	  /* a directory that is installed */
	OPTION_DIRECTORY, /* of the project */
	OPTION_GROUP,	  /* packages of the project */
	OPTION_UNKNOWN,	  /* it isn't known what it does to what is installed */
	OPTION_OTHER,	  /* of another kind */
};
static const struct {
	const char *name;
	char letter;
	bool is_python;
	enum file_option option;
} file_options[] = {
	{ "--requirement", 'r', true, OPTION_LIST },
	{ "--requirements", 'r', true, OPTION_LIST },
	{ "--with-requirements", 0, true, OPTION_LIST },
	{ "--constraint", 'c', true, OPTION_LIST },
	{ "--constraints", 'c', true, OPTION_LIST },
	{ "--build-constraint", 'b', true, OPTION_LIST },
	{ "--build-constraints", 'b', true, OPTION_LIST },
	{ "--override", 0, true, OPTION_LIST },
	{ "--overrides", 0, true, OPTION_LIST },
	{ "--excludes", 0, true, OPTION_LIST },
	{ "--editable", 'e', true, OPTION_TREE },
	{ "--with-editable", 0, true, OPTION_TREE },
	{ "--find-links", 'f', true, OPTION_UNKNOWN },
	{ "--group", 0, true, OPTION_GROUP },
	{ "--project", 0, true, OPTION_DIRECTORY },
	{ "--script", 's', true, OPTION_UNKNOWN },
	{ "--env-file", 0, true, OPTION_UNKNOWN },
	{ "--pip-args", 0, true, OPTION_UNKNOWN },
	{ "--config-file", 0, true, OPTION_UNKNOWN },
	{ "--file", 0, true, OPTION_UNKNOWN },
	{ "--prefix-path", 0, true, OPTION_UNKNOWN },
	{ "--prefix", 0, true, OPTION_UNKNOWN },
	{ "--directory", 'C', true, OPTION_DIRECTORY },
	{ "--index-url", 'i', true, OPTION_UNKNOWN },
	{ "--target", 't', true, OPTION_OTHER },
	{ "--prefix", 'C', false, OPTION_DIRECTORY },
	{ "--cwd", 0, false, OPTION_DIRECTORY },
	{ "--dir", 0, false, OPTION_DIRECTORY },
	{ "--userconfig", 0, false, OPTION_UNKNOWN },
	{ "--globalconfig", 0, false, OPTION_UNKNOWN },
	{ "--config", 'c', false, OPTION_UNKNOWN },
	{ "--use-yarnrc", 0, false, OPTION_UNKNOWN },
	{ "--lockfile-dir", 0, false, OPTION_UNKNOWN },
};
#define FILE_OPTIONS (sizeof file_options / sizeof *file_options)

/* -Ur FILE, -rFILE: letters that take no value may come first. *value: the rest of the word, or
 * NULL: the next word. */
static enum file_option find_letter(const char *word, bool is_python, const char **value)
{
	static const char alone[] = "UIqvVhnDgPBEOSd";
	for (const char *at = word + 1; *at; at++) {
		for (size_t i = 0; i < FILE_OPTIONS; i++)
			if (file_options[i].letter == *at &&
				file_options[i].is_python == is_python) {
				*value = at[1] ? at + 1 + (at[1] == '=') : NULL;
				return file_options[i].option;
			}
		if (!strchr(alone, *at))
			break;
	}
	return OPTION_NONE;
}

static enum file_option find_option(const char *word, bool is_python, const char **value)
{
	size_t len = strcspn(word, "=");
	enum file_option found = OPTION_NONE;
	if (word[0] != '-' || !word[1])
		return OPTION_NONE;
	if (word[1] != '-')
		return find_letter(word, is_python, value);
	*value = word[len] ? word + len + 1 : NULL;
	/* Resolves abbreviations; an ambiguous one is unknown. */
	for (size_t i = 0; i < FILE_OPTIONS && len > 3; i++) {
		if (file_options[i].is_python != is_python ||
			strncmp(file_options[i].name, word, len) != 0)
			continue;
		if (!file_options[i].name[len])
			return file_options[i].option;
		found = found == OPTION_NONE || found == file_options[i].option
				? file_options[i].option
				: OPTION_UNKNOWN;
	}
	return found;
}

static void take_option(
	struct judge *j, struct project *project, enum file_option option, const char *value)
{
	switch (option) {
	case OPTION_LIST:
		vec_push(j->arena, &project->lists, value);
		break;
	case OPTION_TREE:
		vec_push(j->arena, &project->trees, value);
		break;
	case OPTION_DIRECTORY:
		project->places = places_of(j, value);
		break;
	case OPTION_GROUP: /* "group", or "path:group" */
		if (strchr(value, ':'))
			vec_push(j->arena, &project->lists,
				(const char *)arena_bytes(j->arena, value, strcspn(value, ":")));
		else
			vec_push(j->arena, &project->lists, "pyproject.toml");
		break;
	case OPTION_UNKNOWN:
		sources_ask(j, project->subject, "packages of a file aren't known");
		break;
	default:
		break;
	}
}

/* A word that isn't an option. false: a verb. */
static bool take_operand(struct judge *j, struct project *project,
	const struct installer *installer, const char *text, bool is_python)
{
	size_t len = strlen(text);
	if (installer->whole && words_have(installer->whole, text)) {
		project->reads_project = true;
		return false;
	}
	if (words_have(installer->verbs, text) || strcmp(text, "pip") == 0) {
		project->reads_project |=
			installer->project && words_have(installer->project, text);
		return false;
	}
	if (is_python && len > 3 && strcmp(text + len - 3, ".py") == 0)
		vec_push(j->arena, &project->scripts, text);
	else
		judge_package(j, project, text, is_python);
	return true;
}

/* uv pip sync FILE, uv pip compile FILE: its operands are files. */
static bool takes_files(const shell_words *words, size_t at)
{
	bool is_pip = false;
	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;
		if (text && is_pip && (strcmp(text, "sync") == 0 || strcmp(text, "compile") == 0))
			return true;
		is_pip |= text && strcmp(text, "pip") == 0;
	}
	return false;
}

/* An option, with its value where it has one that matters. The place of its last word. */
static size_t judge_option(struct judge *j, struct project *project, const shell_words *words,
	size_t at, bool is_listed)
{
	const char *text = words->items[at].literal, *value = NULL;
	enum file_option option = find_option(text, manager_is_python(project->program), &value);
	const char *url = url_in(j->arena, text);
	bool names_packages =
		option == OPTION_LIST || option == OPTION_TREE || option == OPTION_GROUP;
	if (option != OPTION_NONE && !value && at + 1 < words->count) {
		value = words->items[++at].literal;
		url = value ? url_in(j->arena, value) : NULL;
		if (!value) /* it is expanded */
			sources_ask(j, project->subject, "a file that is expanded isn't known");
	}
	if (url) {
		sources_judge_url(j, project->subject, project->program, url);
		if (option == OPTION_LIST)
			sources_ask(j, project->subject, "packages at an address aren't known");
	} else if (option == OPTION_NONE && strchr(text, '=')) {
		/* As an operand: a path, a repository or an alias is asked about. */
		const char *name = strchr(text, '=') + 1;
		bool is_python = manager_is_python(project->program);
		if (words_have_part(
			    is_python ? "--from --spec" : "--package -p", text, strcspn(text, "=")))
			judge_package(j, project, name, is_python);
		else
			judge_name(j, project->subject, project->program, name);
	} else if (value && is_listed) {
		take_option(j, project, option, value);
	}
	project->is_named |= names_packages;
	return at;
}

/* npm takes the beginning of a verb for it. */
static bool is_abbreviated(const struct installer *installer, const shell_words *words, size_t at)
{
	struct str rest = str_from(installer->verbs), verb;
	const char *text = NULL;
	for (; at < words->count && !text; at++)
		if (words->items[at].literal && words->items[at].literal[0] != '-')
			text = words->items[at].literal;
	while (text && strlen(text) > 1 && strcmp(installer->program, "npm") == 0 &&
		str_next(&rest, ' ', &verb))
		if (str_starts_with(verb, text))
			return true;
	return false;
}

static void judge_installed(struct judge *j, const char *subject, const char *program,
	const struct installer *installer, const shell_words *words, size_t at)
{
	const struct sources_manager *manager = sources_find_manager(j->request->sources, program);
	bool is_listed = manager && (manager->has_registries || manager->blocked.count);
	bool is_python = manager_is_python(program);
	bool has_files = strcmp(program, "pip-sync") == 0 ||
			 (strcmp(program, "uv") == 0 && takes_files(words, at));
	struct project project = { .subject = subject,
		.program = program,
		.places = places_of(j, "."),
		.reads_project = is_abbreviated(installer, words, at) };
	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;
		const char *url = text ? url_in(j->arena, text) : NULL;
		if (!text) {
			/* name[extra] is a pattern that mostly stands for itself. */
			const struct str source = words->items[at].source;
			if (!is_listed)
				continue;
			judge_package(j, &project, arena_bytes(j->arena, source.data, source.len),
				is_python);
			sources_ask(j, subject, "a package that is expanded isn't known");
		} else if (text[0] == '-' && text[1]) {
			at = judge_option(j, &project, words, at, is_listed);
		} else if (url) {
			sources_judge_url(j, subject, program, url);
			project.is_named = true;
		} else if (has_files && !words_have("pip sync compile", text)) {
			vec_push(j->arena, &project.lists, text);
			project.is_named = true;
		} else {
			project.is_named |= take_operand(j, &project, installer, text, is_python);
		}
	}
	if (strcmp(program, "pip-sync") == 0 && !project.lists.count)
		vec_push(j->arena, &project.lists, "requirements.txt");
	/* Without a name, it is the project's packages. `sync` of uv pip is none of those. */
	project.reads_project = !has_files && (project.reads_project || !project.is_named);
	if (is_listed)
		judge_project(j, &project);
}

/* `yarn` alone installs, whatever its options are. */
static bool has_operand(const shell_words *words, size_t at)
{
	for (; at < words->count; at++) {
		const char *text = words->items[at].literal, *value = NULL;
		if (!text || text[0] != '-')
			return true;
		at += find_option(text, false, &value) != OPTION_NONE && !value;
	}
	return false;
}

static void judge_manager(struct judge *j, const char *subject, const char *program,
	const shell_words *words, size_t at)
{
	const struct sources *sources = j->request->sources;
	const struct installer *installer = find_installer(program);
	const struct sources_manager *manager = sources_find_manager(sources, program);
	bool installs = installer && !installer->verbs[0];
	struct error err;
	if (!installer || !judge_spend(j, 8 * (words->count - at)))
		return;
	installs |= (strcmp(program, "yarn") == 0 && !has_operand(words, at)) ||
		    is_abbreviated(installer, words, at);
	for (size_t i = at; i < words->count && !installs; i++)
		installs = words->items[i].literal
				   ? words_have(installer->verbs, words->items[i].literal)
				   : true;
	if ((installs || manager) && sources_check_manager(sources, program, &err) < 0) {
		sources_deny(j, subject, &err);
		return;
	}
	if (installs) {
		judge_installed(j, subject, program, installer, words, at);
		return;
	}
	for (size_t i = at; i < words->count; i++) { /* pip config set global.index-url … */
		const char *text = words->items[i].literal;
		const char *url = text ? url_in(j->arena, text) : NULL;
		if (url)
			sources_judge_url(j, subject, program, url);
	}
}

/* Clients whose URLs are in their arguments. */
static void judge_web(struct judge *j, const char *subject, const shell_words *words, size_t at)
{
	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;
		const char *given = text ? url_in(j->arena, text) : NULL;
		struct error err;
		struct url url;
		if (given && url_parse(j->arena, given, &url) &&
			judge_check_domain(j, url.host, &err) < 0)
			sources_deny(j, subject, &err);
	}
}

void judge_sources(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	const char *name = path_basename(words->items[first].literal);
	size_t at = first + 1;
	struct error err;
	if (!j->request->sources)
		return;
	const struct sources *sources = j->request->sources;
	if (!judge_spend(j, 16 + sources->interpreters.count + 4 * sources->languages.count))
		return;
	if (sources_check_program(sources, words->items[first].literal, &err) < 0)
		sources_deny(j, subject, &err);
	if (words_have("curl wget http https aria2c axel lynx w3m", name))
		judge_web(j, subject, words, at);
	if (strcmp(name, "git") == 0)
		judge_git_remotes(j, subject, words, at);
	/* python -m pip, node's npm by its file */
	if (strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0)
		for (size_t i = at; i < words->count; i++) {
			const char *text = words->items[i].literal;
			const char *module = NULL;
			if (text && text[0] == '-' && text[1] != '-' && strchr(text, 'm'))
				module = strchr(text, 'm') + 1;
			if (module && !module[0])
				module = i + 1 < words->count ? words->items[++i].literal : NULL;
			if (module && module[0]) /* also pip.__main__ and pip._internal */
				judge_manager(j, subject,
					arena_bytes(j->arena, module, strcspn(module, ".")), words,
					i + 1);
		}
	judge_manager(j, subject, name, words, at);
}
