/* What sources.json says of a command: package managers, git, languages, URLs. */
#include "base/path.h"
#include "model/policy/internal.h"
#include "model/policy/sources_internal.h"

static void deny(struct judge *j, const char *subject, const struct error *err)
{
	judge_step(j, subject, POLICY_DENY, NULL, arena_printf(j->arena, "sources: %s", err->text));
}

static void ask(struct judge *j, const char *subject, const char *reason)
{
	judge_step(j, subject, POLICY_ASK, NULL, arena_printf(j->arena, "sources: %s", reason));
}

static bool has_word(const char *words, const char *word)
{
	struct str rest = str_from(words), one;

	while (str_next(&rest, ' ', &one))
		if (str_is(one, word))
			return true;
	return false;
}

/* The words that make a program install or run packages; "" where each call does. `whole` are
 * those that install what a file of the project lists. */
static const struct installer {
	const char *program, *verbs, *whole;
} installers[] = {
	{ "pip", "install download wheel", NULL },
	{ "uv", "install add run sync lock tool build", "sync lock" },
	{ "uvx", "", NULL },
	{ "pipx", "install run inject upgrade", NULL },
	{ "poetry", "add install update lock", "install update lock" },
	{ "pdm", "add install update lock sync", "install update lock sync" },
	{ "pipenv", "install sync lock update", "sync lock update" },
	{ "easy_install", "", NULL },
	{ "conda", "install create update env", "env" },
	{ "npm",
		"install i in ins add ci exec x create init update up upgrade rebuild link "
		"install-test it",
		"ci rebuild" },
	{ "npx", "", NULL },
	{ "pnpm", "install i add dlx exec create update up", "install i update up" },
	{ "pnpx", "", NULL },
	{ "yarn", "install add dlx create up upgrade global", "install up upgrade" },
	{ "bun", "install i add x create update a c", "install i update" },
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

static void judge_url(struct judge *j, const char *subject, const char *program, const char *url)
{
	const struct sources *sources = j->request->sources;
	struct error err;

	if (strncmp(url, "git+", 4) == 0 || strncmp(url, "git://", 6) == 0) {
		if (sources_check_remote(
			    sources, strncmp(url, "git+", 4) == 0 ? url + 4 : url, &err) < 0)
			deny(j, subject, &err);
		else
			ask(j, subject, "a package of a repository isn't known by its name");
	} else if (sources_check_registry(sources, program, url, &err) < 0) {
		deny(j, subject, &err);
	}
}

/* One name of an operand, without its version. */
static void judge_name(struct judge *j, const char *subject, const char *program, const char *word)
{
	const struct sources *sources = j->request->sources;
	size_t skipped = word[0] == '@' ? 1 : 0;
	size_t len =
		skipped + strcspn(word + skipped, manager_is_python(program) ? "<>=!~;[@( " : "@");
	struct error err;

	if (sources_check_package(sources, program, arena_bytes(j->arena, word, len), &err) < 0)
		deny(j, subject, &err);
}

/* An operand: one package, or the alias and the package of npm. */
static void judge_package(
	struct judge *j, const char *subject, const char *program, const char *word)
{
	bool is_python = manager_is_python(program);
	const char *alias = is_python ? NULL : strstr(word, "npm:");

	judge_name(j, subject, program, word);
	if (alias)
		judge_name(j, subject, program, alias + 4);
	if (word[0] == '.' || word[0] == '/' || word[0] == '~' || strstr(word, "file:") ||
		(alias && strstr(alias + 4, "npm:")) ||
		(is_python && (strchr(word, '/') || strstr(word, ".whl") || strstr(word, ".tar.") ||
				      strstr(word, ".zip"))))
		ask(j, subject, "a package of a file isn't known by its name");
	else if (!is_python && word[0] != '@' && strchr(word, '/') && !alias)
		ask(j, subject, "a package of a repository isn't known by its name");
}

/* Options whose value is a file that lists packages or sources. */
static bool is_file_option(const char *word)
{
	static const char *const names[] = { "--requirement", "--requirements", "--constraint",
		"--editable", "--find-links", "--overrides", "--with-requirements",
		"--with-editable", "--env-file", "--config-file", "--userconfig", "--globalconfig",
		"--group", "--file", "--prefix-path", "--project", "--directory", "--prefix",
		"--cwd", "--config" };

	if (word[0] != '-' || !word[1])
		return false;
	if (word[1] != '-')
		return strchr("rcefC", word[1]) != NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(word) > 3 && strncmp(names[i], word, strcspn(word, "=")) == 0)
			return true;
	return false;
}

static void judge_installed(struct judge *j, const char *subject, const char *program,
	const struct installer *installer, const shell_words *words, size_t at)
{
	const struct sources_manager *manager = sources_find_manager(j->request->sources, program);
	bool is_listed = manager && (manager->has_registries || manager->blocked.count);
	size_t packages = 0;
	bool is_whole = false;

	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;
		const char *url = text ? url_in(j->arena, text) : NULL;

		if (!text && is_listed) {
			/* name[extra] is a pattern that mostly stands for itself. */
			const struct str source = words->items[at].source;

			judge_package(j, subject, program,
				arena_bytes(j->arena, source.data, source.len));
			ask(j, subject, "a package that is expanded isn't known");
		} else if (url) {
			judge_url(j, subject, program, url);
			packages++;
		} else if (text && text[0] == '-') {
			if (is_file_option(text) && is_listed)
				ask(j, subject, "packages of a file aren't known");
			packages += is_file_option(text);
		} else if (text && installer->whole && has_word(installer->whole, text)) {
			is_whole = true;
		} else if (text && !has_word(installer->verbs, text) && strcmp(text, "pip") != 0) {
			judge_package(j, subject, program, text);
			packages++;
		}
	}
	if (is_listed && (is_whole || !packages))
		ask(j, subject, "packages of a file of the project aren't known");
}

static void judge_manager(struct judge *j, const char *subject, const char *program,
	const shell_words *words, size_t at)
{
	const struct sources *sources = j->request->sources;
	const struct installer *installer = find_installer(program);
	const struct sources_manager *manager = sources_find_manager(sources, program);
	bool installs = installer && !installer->verbs[0];
	struct error err;

	if (!installer)
		return;
	/* `yarn` alone installs. */
	installs |= strcmp(program, "yarn") == 0 && at == words->count;
	for (size_t i = at; i < words->count && !installs; i++)
		installs = words->items[i].literal
				   ? has_word(installer->verbs, words->items[i].literal)
				   : true;
	if ((installs || manager) && sources_check_manager(sources, program, &err) < 0) {
		deny(j, subject, &err);
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
			judge_url(j, subject, program, url);
	}
}

static void judge_remote(struct judge *j, const char *subject, const char *text, bool is_first)
{
	const struct sources *sources = j->request->sources;
	struct error err;

	if (text[0] == '-') {
		text = strchr(text, '=');
		if (!text)
			return;
		text++;
	} else if (!is_first && !strstr(text, "://") && !strstr(text, "::") && !strchr(text, '@')) {
		return;
	}
	if (sources_check_remote(sources, text, &err) < 0)
		deny(j, subject, &err);
}

static void judge_git_remotes(
	struct judge *j, const char *subject, const shell_words *words, size_t at)
{
	static const char verbs[] =
		"clone fetch pull push ls-remote remote submodule archive "
		"bundle subtree lfs request-pull fetch-pack send-pack http-fetch";
	const struct sources *sources = j->request->sources;
	bool is_remote = false, is_all = false, is_first = true;
	struct error err;

	if (sources->has_git && !sources->git_is_enabled) {
		sources_check_remote(sources, "", &err);
		deny(j, subject, &err);
		return;
	}
	for (; sources->has_git && sources->has_remotes && at < words->count; at++) {
		const char *text = words->items[at].literal;

		if (!text) {
			if (is_remote)
				ask(j, subject, "a remote that is expanded isn't known");
			continue;
		}
		if (strcasestr(text, "insteadof")) {
			fail(&err, ERR_DENIED, "git.allowed_remotes: '%s' rewrites remotes", text);
			deny(j, subject, &err);
		} else if (!is_remote && text[0] != '-' && has_word(verbs, text)) {
			is_remote = true;
			is_all = strcmp(text, "clone") == 0 || strcmp(text, "remote") == 0 ||
				 strcmp(text, "submodule") == 0;
		} else if (is_remote) {
			judge_remote(j, subject, text, is_all || is_first);
			is_first &= text[0] == '-';
		}
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
			sources_check_domain(j->request->sources, url.host, &err) < 0)
			deny(j, subject, &err);
	}
}

void judge_sources(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	const char *name = path_basename(words->items[first].literal);
	size_t at = first + 1;
	struct error err;

	if (!j->request->sources)
		return;
	if (sources_check_program(j->request->sources, words->items[first].literal, &err) < 0)
		deny(j, subject, &err);
	if (has_word("curl wget http https aria2c axel lynx w3m", name))
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
			if (module && module[0])
				judge_manager(j, subject, module, words, i + 1);
		}
	judge_manager(j, subject, name, words, at);
}
