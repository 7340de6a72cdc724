#include "envs/node/npm_registry.h"

#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/path.h"
#include "envs/logins.h"
#include "envs/python/inputs.h"
#include "envs/python/known.h"
#include "envs/python/scripts.h"
#include "format/http/uri.h"
#include "format/text/base64.h"

#define ROOM "tools"
#define URL_MAX 2048
#define ASK_TIMEOUT_MS 20000
#define LINES_MAX 65536
#define OUTPUT_MAX ((size_t)1 << 20)

typedef VEC(struct text_pair) npmrc_lines;

/* ---- addresses ---- */

static int check_url(const char *url, const char *from, struct error *err)
{
	struct uri parts;
	struct str name;
	uint16_t port;
	bool is_plain = strlen(url) <= URL_MAX;
	for (const char *c = url; *c; c++)
		is_plain = is_plain && (unsigned char)*c > 0x20 && (unsigned char)*c < 0x7f;
	if (is_plain && strchr(url, '@'))
		return fail_hint(err, ERR_INVALID,
			"put the credentials into ~/.npmrc, as //HOST/:_authToken=TOKEN",
			"%s: the address of the registry has credentials in it", from);
	if (is_plain && (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) &&
		uri_split(url, &parts) && uri_parse_host(parts.host, &name, &port))
		return 0;
	return fail_hint(err, ERR_INVALID, "a registry is given as https://host/path",
		"%s: the address of the registry is not an http or https URL with a host", from);
}

static const char *with_slash(struct arena *arena, const char *url)
{
	size_t len = strlen(url);
	return len > 0 && url[len - 1] == '/' ? url : arena_printf(arena, "%s/", url);
}

/* ---- npmrc ---- */

/* ${NAME} in a value is the variable, as npm takes it. */
static const char *expand(struct arena *arena, struct str value)
{
	auto_buf struct buf out = buf_empty(LINES_MAX);
	for (size_t i = 0; i < value.len; i++) {
		const char *end =
			value.data[i] == '$' && i + 1 < value.len && value.data[i + 1] == '{'
				? memchr(value.data + i, '}', value.len - i)
				: NULL;
		if (!end) {
			buf_char(&out, value.data[i]);
			continue;
		}
		const char *name =
			arena_bytes(arena, value.data + i + 2, (size_t)(end - value.data) - i - 2);
		const char *found = getenv(name);
		buf_text(&out, found ? found : "");
		i = (size_t)(end - value.data);
	}
	return arena_bytes(arena, out.data ? out.data : "", out.len);
}

/* "key = value" lines; the first of a key counts, so files are read in the order of their weight.
 */
static void read_npmrc(const char *path, struct arena *arena, npmrc_lines *lines)
{
	struct str text, line, key, value;
	struct error ignored;
	/* A file that is missing or unreadable is passed over, as npm does. */
	if (access(path, R_OK) != 0 || inputs_read_file(path, arena, &text, &ignored) < 0)
		return;
	while (str_next(&text, '\n', &line)) {
		line = str_trim(line);
		if (line.len == 0 || line.data[0] == '#' || line.data[0] == ';' ||
			!str_cut(line, '=', &key, &value))
			continue;
		key = str_trim(key);
		value = str_trim(value);
		if (value.len > 1 && value.data[0] == '"' && value.data[value.len - 1] == '"')
			value = (struct str){ value.data + 1, value.len - 2 };
		vec_push(arena, lines,
			(struct text_pair){
				arena_bytes(arena, key.data, key.len), expand(arena, value) });
	}
}

static const char *find_line(const npmrc_lines *lines, const char *key)
{
	for (size_t i = 0; i < lines->count; i++)
		if (strcmp(lines->items[i].key, key) == 0 && lines->items[i].value[0])
			return lines->items[i].value;
	return NULL;
}

static npmrc_lines read_files(struct arena *arena)
{
	static const char *const global[] = { "/usr/etc/npmrc", "/usr/local/etc/npmrc",
		"/etc/npmrc" };
	const char *home = getenv("HOME"), *user = getenv("NPM_CONFIG_USERCONFIG");
	npmrc_lines lines = { 0 };
	if (!user || !*user)
		user = getenv("npm_config_userconfig");
	if (user && *user)
		read_npmrc(user, arena, &lines);
	else if (home && path_is_absolute(home))
		read_npmrc(arena_printf(arena, "%s/.npmrc", home), arena, &lines);
	for (size_t i = 0; i < sizeof global / sizeof *global; i++)
		read_npmrc(global[i], arena, &lines);
	return lines;
}

/* ---- credentials and certificates ---- */

static bool is_secret(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f)
			return false;
	return *text;
}

/* npm's keys begin with the address, without its scheme: //host/path/:_authToken */
static void find_login(
	const npmrc_lines *lines, struct arena *arena, struct npm_registry *out, text_list *secrets)
{
	static const struct {
		const char *key, *scheme;
	} logins[] = { { "_authToken", "Bearer" }, { "_auth", "Basic" } };
	const char *place = strstr(out->url, "//");
	for (size_t i = 0; i < sizeof logins / sizeof *logins; i++) {
		const char *key = arena_printf(arena, "%s:%s", place, logins[i].key);
		const char *value = find_line(lines, key);
		if (!value || !is_secret(value))
			continue;
		out->npmrc = arena_printf(arena, "%s=%s\n", key, value);
		out->header = arena_printf(arena, "%s %s", logins[i].scheme, value);
		if (strlen(value) >= INPUTS_SECRET_MIN)
			vec_push(arena, secrets, value);
		return;
	}
}

/* _auth and _password are in base64; _auth is "user:password". */
static void add_decoded(struct arena *arena, const char *value, text_list *texts)
{
	struct str decoded, user, password;
	if (!base64_decode(str_from(value), arena, &decoded) ||
		memchr(decoded.data, '\0', decoded.len))
		return;
	login_add(arena, texts, "", decoded.data, "");
	if (str_cut(decoded, ':', &user, &password))
		login_add(arena, texts, "", password.data, "");
}

void npm_registry_logins(struct arena *arena, text_list *texts)
{
	static const char *const keys[] = { "_authToken", "_auth", "_password" };
	npmrc_lines lines = read_files(arena);
	for (size_t i = 0; i < lines.count; i++) {
		const struct text_pair *line = &lines.items[i];
		const char *colon = strrchr(line->key, ':');
		const char *key = colon ? colon + 1 : line->key;
		for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
			if (strcmp(key, keys[k]) != 0 || !is_secret(line->value))
				continue;
			login_add(arena, texts, arena_printf(arena, "%s=", line->key), line->value,
				"");
			if (k > 0)
				add_decoded(arena, line->value, texts);
		}
	}
}

static const char *find_certificates(const npmrc_lines *lines)
{
	const char *const named[] = { getenv("npm_config_cafile"), find_line(lines, "cafile"),
		getenv("NODE_EXTRA_CA_CERTS"), getenv("SSL_CERT_FILE"),
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (named[i] && path_is_absolute(named[i]) && access(named[i], R_OK) == 0)
			return named[i];
	return NULL;
}

int npm_registry_find(const char *asked, struct arena *arena, struct npm_registry *out,
	text_list *secrets, struct error *err)
{
	static const char *const variables[] = { "npm_config_registry", "NPM_CONFIG_REGISTRY",
		"BUN_CONFIG_REGISTRY" };
	npmrc_lines lines = read_files(arena);
	const char *url = asked, *from = "--registry";
	for (size_t i = 0; !url && i < sizeof variables / sizeof *variables; i++) {
		from = variables[i];
		url = getenv(from);
		url = url && *url ? url : NULL;
	}
	if (!url) {
		from = "npmrc";
		url = find_line(&lines, "registry");
	}
	*out = (struct npm_registry){ .npmrc = "", .certificates = find_certificates(&lines) };
	if (!url)
		return 0;
	if (check_url(url, from, err) < 0)
		return -1;
	out->url = with_slash(arena, url);
	find_login(&lines, arena, out, secrets);
	return 0;
}

/* ---- what npm takes by itself ---- */

/* The npm of the host, where every sandbox sees it. */
static bool find_npm(char script[PATH_MAX], struct stat *st)
{
	static const char *const places[] = { "/usr/bin/npm", "/usr/local/bin/npm" };
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (realpath(places[i], script) && path_is_beneath(script, "/usr") &&
			stat(script, st) == 0 && S_ISREG(st->st_mode))
			return true;
	return false;
}

static int ask(const struct runner *runner, const char *script, struct arena *arena,
	const char **url, struct error *err)
{
	const char *const argv[] = { "/usr/bin/env", "node", script, "config", "get", "registry",
		NULL };
	struct job job = { .argv = argv, .timeout_ms = ASK_TIMEOUT_MS };
	bool ended_well;
	auto_buf struct buf out = buf_empty(OUTPUT_MAX);
	job_set_env(&job, arena, "npm_config_update_notifier", "false");
	if (job_try(runner, &job, &out, &ended_well, err) < 0)
		return error_context(err, "ask '%s' for its registry", script);
	struct str said = str_trim(buf_str(&out));
	*url = ended_well && said.len > 0 ? arena_bytes(arena, said.data, said.len) : NULL;
	return 0;
}

int npm_registry_ask(const struct home *home, const struct runner *runner, struct arena *arena,
	struct npm_registry *out, struct error *err)
{
	char script[PATH_MAX], key[KNOWN_IDENTITY_LEN + 1], npm[KNOWN_IDENTITY_LEN + 1];
	struct answer answer;
	struct stat st;
	const char *url = NULL;
	if (!find_npm(script, &st))
		return fail_hint(err, ERR_UNAVAILABLE,
			"set one with --registry URL, or as registry=URL in ~/.npmrc",
			"no npm registry is configured, and there is no npm on this host to ask");
	known_identity(script, &st, npm);
	known_identity_of_text(arena_printf(arena, "registry of %s", npm), key);
	if (known_read(home, ROOM, key, arena, &answer, NULL))
		url = answer_get(&answer, "registry");
	if (!url && !runner)
		return fail(err, ERR_NOT_FOUND, "the registry isn't known");
	if (!url) {
		if (ask(runner, script, arena, &url, err) < 0)
			return -1;
		if (!url || check_url(url, script, err) < 0)
			return fail_hint(err, ERR_UNAVAILABLE,
				"set one with --registry URL, or as registry=URL in ~/.npmrc",
				"no npm registry is configured, and '%s' names none", script);
		if (known_write(home, ROOM, key,
			    str_from(arena_printf(arena, "registry %s\n", url)), err) < 0)
			return -1;
	}
	out->url = with_slash(arena, url);
	return 0;
}
