/* Why a build of Node failed: by what bun, npm or our script printed, and by what the forwarder
 * knows. */
#include "base/clock.h"
#include "envs/node/internal.h"

struct cause {
	enum build_failure failure;
	enum error_code code;
	const char *message, *hint;
};
static const struct cause disk_full = { BUILD_DISK_FULL, ERR_DISK_FULL, "the disk is full", NULL };
static const struct cause altered = { BUILD_HASH_MISMATCH, ERR_DENIED,
	"a package is not what the registry or the lock says it is",
	"the registry serves a damaged or altered file: try again later, or use another version" };
static const struct cause no_version = { BUILD_VERSION_NOT_FOUND, ERR_NOT_FOUND,
	"there is no such version", "npm view PACKAGE versions lists them" };
static const struct cause no_tag = { BUILD_VERSION_NOT_FOUND, ERR_NOT_FOUND,
	"there is no such version or tag", "npm view PACKAGE versions lists them" };
static const struct cause no_node = { BUILD_VERSION_NOT_FOUND, ERR_NOT_FOUND,
	"there is no such version", "give another --node VERSION" };
static const struct cause no_package = { BUILD_NOT_FOUND, ERR_NOT_FOUND,
	"the registry has no such package", "check the name" };
static const struct cause no_tool = { BUILD_NOT_FOUND, ERR_NOT_FOUND,
	"the registry has no such package", "check the address of the registry" };
static const struct cause conflict = { BUILD_CONFLICT, ERR_INVALID,
	"the versions can't be installed together", "change the versions that are asked for" };
static const struct cause other_machine = { BUILD_FAILED, ERR_INVALID,
	"a package is not for this machine", NULL };
static const struct cause unfit_lock = { BUILD_CONFLICT, ERR_INVALID,
	"the lock doesn't fit package.json", "resolve again without the lock" };
static const struct cause no_network = { BUILD_NETWORK, ERR_UNAVAILABLE,
	"the registry can't be reached",
	"check the connection and the address of the registry, and try again" };

/* Phrases of bun, npm and our script. The first that is found decides. */
static const struct phrase {
	const char *text;
	const struct cause *cause;
	const char *before; /* the name of a package, or NULL: there is none */
} phrases[] = {
	{ "No space left", &disk_full, NULL },
	{ "NoSpaceLeft", &disk_full, NULL },
	{ "ENOSPC", &disk_full, NULL },
	{ "Integrity check failed", &altered, "tarball: " },
	{ "IntegrityCheckFailed", &altered, "tarball " },
	{ "EINTEGRITY", &altered, "extracting " },
	{ "No version matching", &no_version, "specifier \"" },
	{ "ETARGET", &no_version, "No matching version found for " },
	{ "not found, but package exists", &no_tag, "Package \"" },
	{ "is not in the registry", &no_node, NULL },
	{ " - 404", &no_package, "error: GET " },
	{ "E404", &no_package, "404  '" },
	{ "registry answered 404", &no_tool, NULL },
	{ "ERESOLVE", &conflict, NULL },
	{ "EBADPLATFORM", &other_machine, NULL },
	{ "lockfile had changes", &unfit_lock, NULL },
	{ "are in sync", &unfit_lock, NULL },
	{ "ConnectionRefused", &no_network, NULL },
	{ "ConnectionClosed", &no_network, NULL },
	{ "FailedToOpenSocket", &no_network, NULL },
	{ "can't be reached", &no_network, NULL },
	{ "ECONNRE", &no_network, NULL },
	{ "ETIMEDOUT", &no_network, NULL },
};

static const struct phrase *find_phrase(const char *said)
{
	for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
		if (strstr(said, phrases[i].text))
			return &phrases[i];
	return NULL;
}

/* The word that follows the phrase: a name, or the end of an address. NULL: none that is one. */
static const char *find_word(struct build_run *run, const struct phrase *phrase, const char *said)
{
	const char *at = phrase->before ? strstr(said, phrase->before) : NULL;
	if (!at)
		return NULL;
	at += strlen(phrase->before);
	char *word = arena_bytes(run->arena, at, strcspn(at, "\"' \t\r\n"));
	const char *url = run->wanted->node->registry.url;
	if (strncmp(word, url, strlen(url)) == 0)
		word += strlen(url);
	for (char *slash; (slash = strstr(word, "%2f")) || (slash = strstr(word, "%2F"));) {
		slash[0] = '/';
		memmove(slash + 1, slash + 3, strlen(slash + 3) + 1);
	}
	char *range = word[0] ? strchr(word + 1, '@') : NULL;
	if (range)
		*range = '\0';
	size_t len = strlen(word);
	if (len > 0 && word[len - 1] == '.')
		word[len - 1] = '\0';
	return node_name_is_valid(word) ? word : NULL;
}

/* Else the one package that was asked for and is named as "name@" or "/name/". */
static const char *find_package(
	struct build_run *run, const struct phrase *phrase, const char *said)
{
	const char *found = find_word(run, phrase, said);
	const node_specs *specs = &run->wanted->node->specs;
	for (size_t i = 0; !found && phrase->before && i < specs->count; i++) {
		const char *name = specs->items[i].name;
		if (strstr(said, arena_printf(run->arena, " %s@", name)) ||
			strstr(said, arena_printf(run->arena, "/%s/", name)))
			found = name;
	}
	return found;
}

/* The last line that says what is wrong. */
static const char *find_line(struct build_run *run, struct str said)
{
	struct str rest = said, line, found = { 0 };
	char *shown = arena_alloc(run->arena, 400);
	while (str_next(&rest, '\n', &line)) {
		line = str_trim(line);
		bool is_error =
			str_starts_with(line, "error:") || str_starts_with(line, "npm error");
		bool is_aside = str_starts_with(line, "npm error code") ||
				str_starts_with(line, "npm error A complete log");
		if (line.len > 0 && !is_aside && (!found.len || is_error))
			found = line;
	}
	str_printable(shown, 400, found);
	return shown;
}

static int unreachable(struct build_run *run, struct error *err)
{
	const struct build_network *network = run->builder->network;
	char why[BUILD_NETWORK_FAILURE_SIZE] = "";
	if (network->failed)
		network->failed(network->ctx, why);
	if (!why[0])
		return 0;
	fail_hint(err, ERR_UNAVAILABLE,
		"check the connection and the address of the registry, and try again",
		"the npm registry can't be reached: %s", why);
	build_failed(run->problem, BUILD_NETWORK, NULL);
	return 1;
}

int node_timeout(struct build_run *run, struct error *err)
{
	if (unreachable(run, err))
		return -1;
	fail_hint(err, ERR_LIMIT,
		"--timeout, or install_timeout in config.yaml, gives it more time",
		"environment '%s' was not built within %llu s", run->wanted->name,
		(unsigned long long)(run->store->config.install_timeout_ms / 1000));
	return build_failed(run->problem, BUILD_TIMEOUT, NULL);
}

int node_explain(struct build_run *run, const char *what, struct str said, struct error *err)
{
	const struct build_network *network = run->builder->network;
	const char *text = arena_bytes(run->arena, said.data ? said.data : "", said.len);
	const struct phrase *phrase = find_phrase(text);
	const struct cause *cause = phrase ? phrase->cause : NULL;
	char refused[320] = "";
	network->refused(network->ctx, refused);
	if (refused[0] &&
		(!cause || cause->failure == BUILD_NETWORK || cause->failure == BUILD_NOT_FOUND)) {
		fail_hint(err, ERR_DENIED, "only the registry itself is reached from a build",
			"a package is to be fetched from '%s', which is not the registry", refused);
		return build_failed(run->problem, BUILD_NETWORK, NULL);
	}
	if ((!cause || cause->failure == BUILD_NETWORK) && unreachable(run, err))
		return -1;
	if (!cause) {
		fail(err, ERR_FAILED, "%s failed: %s", what, find_line(run, said));
		return build_failed(run->problem, BUILD_FAILED, NULL);
	}
	const char *package = find_package(run, phrase, text);
	if (package)
		fail(err, cause->code, "package '%s': %s", package, cause->message);
	else
		fail(err, cause->code, "%s: %s", cause->message, find_line(run, said));
	if (cause->hint)
		error_hint(err, "%s", cause->hint);
	return build_failed(run->problem, cause->failure, package);
}
