/* What sources.json says of one manager, package, registry, domain, remote or program. */
#include "base/path.h"
#include "format/packages/requirements.h"
#include "policy/internal.h"
#include "policy/sources_internal.h"

/* Programs that install packages: the manager, whose entry holds for those that have none of their
 * own. */
static const struct manager {
	const char *name, *programs;
	bool is_python;
} managers[] = {
	{ "pip", "pip3 pip-sync pipx uv uvx poetry pdm pipenv easy_install", true },
	{ "conda", "mamba micromamba", true },
	{ "npm", "npx bun bunx pnpm pnpx yarn corepack deno" },
	{ "gem", "bundle" },
	{ "apt", "apt-get aptitude dpkg" },
	{ "dnf", "yum rpm" },
	{ "dotnet", "nuget" },
	{ "cargo", "" },
	{ "go", "" },
	{ "composer", "" },
	{ "apk", "" },
	{ "pacman", "" },
	{ "brew", "" },
	{ "cpan", "" },
	{ "luarocks", "" },
	{ "mvn", "" },
	{ "gradle", "" },
};

/* pip3.11 is pip3. */
static const char *usual_name(const char *name)
{
	bool is_pip = strncmp(name, "pip", 3) == 0 && name[3] &&
		      !name[3 + strspn(name + 3, "0123456789.")];
	return is_pip ? "pip3" : name;
}

static const struct manager *find_manager(const char *program)
{
	const char *name = usual_name(program);
	for (size_t i = 0; i < sizeof managers / sizeof *managers; i++)
		if (strcmp(name, managers[i].name) == 0 || words_have(managers[i].programs, name))
			return &managers[i];
	return NULL;
}

bool manager_is_known(const char *name)
{
	return find_manager(name) != NULL;
}

bool manager_is_python(const char *name)
{
	const struct manager *manager = find_manager(name);
	return manager && manager->is_python;
}

static const struct sources_manager *find_entry(const struct sources *sources, const char *name)
{
	for (size_t i = 0; i < sources->managers.count; i++)
		if (strcmp(sources->managers.items[i].name, name) == 0)
			return &sources->managers.items[i];
	return NULL;
}

const struct sources_manager *sources_find_manager(
	const struct sources *sources, const char *program)
{
	const struct manager *manager = find_manager(program);
	const struct sources_manager *own = find_entry(sources, program);
	if (own || !manager)
		return own;
	own = find_entry(sources, usual_name(program));
	return own ? own : find_entry(sources, manager->name);
}

int sources_check_manager(const struct sources *sources, const char *program, struct error *err)
{
	const struct sources_manager *manager = sources_find_manager(sources, program);
	if (!sources->has_managers || (manager && manager->is_enabled))
		return 0;
	if (!manager)
		return fail(err, ERR_DENIED, "package_managers doesn't list '%s'", program);
	return fail(err, ERR_DENIED, "package_managers.%s is disabled", manager->name);
}

int sources_check_package(
	const struct sources *sources, const char *program, const char *package, struct error *err)
{
	const struct sources_manager *manager = sources_find_manager(sources, program);
	auto_arena struct arena arena = { 0 };
	if (sources_check_manager(sources, program, err) < 0)
		return -1;
	if (!manager || !manager->blocked.count)
		return 0;
	const char *name = manager_is_python(manager->name)
				   ? requirement_normalize_name(&arena, str_from(package))
				   : sources_lower(&arena, package);
	const char *blocked = map_get(&manager->blocked, str_from(name));
	if (!blocked)
		return 0;
	return fail(err, ERR_DENIED, "package_managers.%s.blocked_packages has '%s'", manager->name,
		blocked);
}

/* Whether `url` is the registry's, or below it. */
static bool is_beneath(const struct url *url, const struct url *registry)
{
	size_t len = strlen(registry->path);
	while (len > 0 && registry->path[len - 1] == '/')
		len--;
	return strcmp(url->scheme, registry->scheme) == 0 &&
	       strcmp(url->host, registry->host) == 0 && url->port == registry->port &&
	       strncmp(url->path, registry->path, len) == 0 &&
	       (url->path[len] == '/' || !url->path[len]);
}

bool sources_url_is_beneath(const char *url, const char *registry)
{
	auto_arena struct arena arena;
	struct url given, listed;
	arena_init(&arena);
	return url_parse(&arena, url, &given) && url_parse(&arena, registry, &listed) &&
	       is_beneath(&given, &listed);
}

int sources_check_registry(
	const struct sources *sources, const char *program, const char *url, struct error *err)
{
	const struct sources_manager *manager = sources_find_manager(sources, program);
	auto_arena struct arena arena;
	struct url given, registry;
	arena_init(&arena);
	if (sources_check_manager(sources, program, err) < 0)
		return -1;
	if (!manager || !manager->has_registries)
		return 0;
	bool is_url = url_parse(&arena, url, &given);
	for (size_t i = 0; is_url && i < manager->registries.count; i++)
		if (url_parse(&arena, manager->registries.items[i].url, &registry) &&
			is_beneath(&given, &registry))
			return 0;
	return fail(err, ERR_DENIED, "package_managers.%s.registries doesn't list '%s'",
		manager->name, is_url && !given.has_user ? url : "that URL");
}

static bool domain_matches(const char *pattern, const char *host)
{
	size_t len = strlen(pattern), host_len = strlen(host);
	if (strcmp(pattern, "*") == 0)
		return true;
	if (pattern[0] != '*')
		return strcasecmp(pattern, host) == 0;
	return host_len > len - 1 && strcasecmp(host + host_len - (len - 1), pattern + 1) == 0;
}

int sources_check_domain(const struct sources *sources, const char *host, struct error *err)
{
	char name[256];
	size_t len = strlen(host);
	if (!sources->has_web)
		return 0;
	if (!sources->web_is_enabled)
		return fail(err, ERR_DENIED, "web_access is disabled");
	if (!str_copy(name, sizeof name, host))
		return fail(err, ERR_DENIED, "the name of the host is too long");
	if (len > 1 && name[len - 1] == '.')
		name[len - 1] = '\0';
	for (size_t i = 0; i < sources->blocked_domains.count; i++)
		if (domain_matches(sources->blocked_domains.items[i], name))
			return fail(err, ERR_DENIED, "web_access.blocked_domains has '%s'",
				sources->blocked_domains.items[i]);
	for (size_t i = 0; i < sources->allowed_domains.count; i++)
		if (domain_matches(sources->allowed_domains.items[i], name))
			return 0;
	return fail(err, ERR_DENIED, "web_access.allowed_domains doesn't list '%s'", name);
}

static bool remote_matches(struct arena *arena, const char *pattern, const struct url *url)
{
	struct url wanted;
	bool is_open;
	if (strcmp(pattern, "*") == 0)
		return true;
	return url_parse(arena, pattern, &wanted) && strcmp(wanted.scheme, url->scheme) == 0 &&
	       domain_matches(wanted.host, url->host) && wanted.port == url->port &&
	       (!wanted.path[1] || match_star(wanted.path, url->path, false, &is_open));
}

int sources_check_remote(const struct sources *sources, const char *remote, struct error *err)
{
	auto_arena struct arena arena;
	struct url url;
	bool is_odd;
	arena_init(&arena);
	if (!sources->has_git)
		return 0;
	if (!sources->git_is_enabled)
		return fail(err, ERR_DENIED, "git is disabled");
	if (!sources->has_remotes)
		return 0;
	if (!url_parse_remote(&arena, remote, &url, &is_odd)) {
		if (is_odd)
			return fail(
				err, ERR_DENIED, "git.allowed_remotes: '%s' is not a URL", remote);
		return 0; /* a path, or the name of a remote that was judged when it was added */
	}
	for (size_t i = 0; i < sources->allowed_remotes.count; i++)
		if (remote_matches(&arena, sources->allowed_remotes.items[i], &url))
			return 0;
	return fail(err, ERR_DENIED, "git.allowed_remotes doesn't list '%s'",
		url.has_user && strcmp(url.scheme, "ssh") != 0 ? url.host : remote);
}

/* Programs that run programs of a language. "python" is python, python3, python3.11 … */
static const struct {
	const char *language, *programs;
} languages[] = {
	{ "python", "python pypy ipython" },
	{ "node", "node nodejs tsx ts-node" },
	{ "javascript", "node nodejs bun deno tsx ts-node" },
	{ "typescript", "node nodejs bun deno tsx ts-node" },
	{ "bun", "bun bunx" },
	{ "deno", "deno" },
	{ "bash", "bash sh dash rbash" },
	{ "sh", "sh dash" },
	{ "shell", "bash sh dash rbash" },
	{ "zsh", "zsh" },
	{ "fish", "fish" },
	{ "ksh", "ksh mksh" },
	{ "csh", "csh tcsh" },
	{ "ruby", "ruby irb" },
	{ "perl", "perl" },
	{ "php", "php" },
	{ "java", "java javac jshell" },
	{ "lua", "lua luajit" },
	{ "r", "R Rscript" },
	{ "julia", "julia" },
	{ "go", "go" },
	{ "rust", "rustc cargo" },
	{ "c", "gcc cc clang tcc" },
	{ "c++", "g++ c++ clang++" },
	{ "tcl", "tclsh wish expect" },
	{ "guile", "guile" },
	{ "ocaml", "ocaml" },
	{ "haskell", "ghc ghci runghc" },
	{ "erlang", "erl escript" },
	{ "elixir", "elixir iex" },
	{ "swift", "swift" },
	{ "scala", "scala" },
	{ "kotlin", "kotlin" },
	{ "groovy", "groovy" },
	{ "dotnet", "dotnet" },
	{ "powershell", "pwsh" },
};
#define LANGUAGES (sizeof languages / sizeof *languages)

static size_t without_version(const char *name)
{
	size_t len = strlen(name);
	while (len > 0 && (name[len - 1] == '.' || (name[len - 1] >= '0' && name[len - 1] <= '9')))
		len--;
	return len;
}

bool language_is_known(const char *name)
{
	size_t len = without_version(name);
	for (size_t i = 0; i < LANGUAGES; i++)
		if (strlen(languages[i].language) == len &&
			strncasecmp(languages[i].language, name, len) == 0)
			return true;
	return false;
}

/* "3.11" of a listed language holds for python, python3 and python3.11. */
static bool version_fits(const char *listed, const char *program)
{
	size_t len = strlen(program);
	return !listed[0] || !program[0] ||
	       (strncmp(listed, program, len) == 0 && (!listed[len] || listed[len] == '.')) ||
	       (strncmp(program, listed, strlen(listed)) == 0 && program[strlen(listed)] == '.');
}

int sources_check_program(const struct sources *sources, const char *program, struct error *err)
{
	const char *name = path_basename(program);
	size_t len = without_version(name);
	bool is_language = false;
	if (!sources->has_languages)
		return 0;
	for (size_t i = 0; i < sources->interpreters.count; i++)
		if (strcmp(sources->interpreters.items[i].value, program) == 0)
			return 0;
	for (size_t i = 0; i < LANGUAGES; i++) {
		if (!words_have_part(languages[i].programs, name, len))
			continue;
		is_language = true;
		for (size_t k = 0; k < sources->languages.count; k++) {
			const char *listed = sources->languages.items[k];
			size_t listed_len = without_version(listed);
			if (strlen(languages[i].language) == listed_len &&
				strncasecmp(listed, languages[i].language, listed_len) == 0 &&
				version_fits(listed + listed_len, name + len))
				return 0;
		}
	}
	if (!is_language)
		return 0;
	return fail(err, ERR_DENIED, "runtime.languages has no language of '%s'", name);
}
