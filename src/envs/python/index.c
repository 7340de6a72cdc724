#include "envs/python/index.h"
#include <unistd.h>
#include "base/path.h"
#include "format/http/uri.h"
#include "format/packages/netrc.h"
#include "format/text/ini.h"
#include "format/text/toml_lite.h"

#define URL_MAX 2048

/* The settings of one place: the command line, the variables of one client, a file. */
struct source {
	const char *name; /* for messages: "--index", "UV_INDEX_URL", "/etc/pip.conf" */
	const char *index, *certificates;
	text_list extra, trusted_hosts;
};

struct finder {
	struct arena *arena;
	struct index_set *set;
	const char *certificates_from;
	bool has_extra, has_hosts; /* some source has named them already */
};

static bool is_host(struct str text)
{
	struct str name;
	uint16_t port;
	return uri_parse_host(text, &name, &port);
}

const char *index_redact(struct arena *arena, const char *url)
{
	const char *last = strrchr(url, '@');
	struct uri parts;
	if (!last)
		return arena_text(arena, url);
	if (!uri_split(url, &parts))
		return arena_printf(arena, "***%s", last);
	bool is_valid = is_host(parts.host);
	if (is_valid && parts.host.data == parts.user.data)
		return arena_text(arena, url); /* the '@' is in its path */
	/* A password with a '/' that wasn't escaped: then all up to the last '@' may be secret. */
	return arena_printf(arena, "%.*s***@%s", (int)parts.scheme.len, url,
		is_valid ? parts.host.data : last + 1);
}

static int check_url(const char *url, const char *from, struct arena *arena, struct error *err)
{
	struct uri parts;
	bool is_plain = true;
	for (const char *c = url; *c; c++)
		is_plain = is_plain && (unsigned char)*c > 0x20 && (unsigned char)*c < 0x7f;
	if (is_plain && strlen(url) <= URL_MAX &&
		(strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) &&
		uri_split(url, &parts) && is_host(parts.host))
		return 0;
	return fail_hint(err, ERR_INVALID, "an index is given as https://host/path",
		"%s: '%.200s' is not an http or https URL with a host", from,
		index_redact(arena, url));
}

#define BLANKS " \t\r\n"
/* Adds the pieces of `words` to *list; `names` allows uv's name=url. */
static void add_words(
	struct arena *arena, text_list *list, const char *words, const char *separators, bool names)
{
	while (words && *(words += strspn(words, separators))) {
		size_t len = strcspn(words, separators);
		char *word = arena_bytes(arena, words, len);
		size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789-_.");
		if (names && name > 0 && word[name] == '=')
			word += name + 1;
		vec_push(arena, list, word);
		words += len;
	}
}

/* The first source that names an index decides: later sources add no extra indexes, or a file could
 * add an index beside the one that was asked for. */
static int take_urls(struct finder *f, const struct source *s, struct error *err)
{
	if (f->set->index)
		return 0;
	for (size_t i = 0; i < s->extra.count && !f->has_extra; i++) {
		if (check_url(s->extra.items[i], s->name, f->arena, err) < 0)
			return -1;
		vec_push(f->arena, &f->set->extra, s->extra.items[i]);
	}
	f->has_extra = f->set->extra.count > 0;
	if (s->index && check_url(s->index, s->name, f->arena, err) < 0)
		return -1;
	f->set->index = s->index;
	return 0;
}

static int take_source(struct finder *f, const struct source *s, struct error *err)
{
	if (take_urls(f, s, err) < 0)
		return -1;
	for (size_t i = 0; i < s->trusted_hosts.count && !f->has_hosts; i++) {
		if (!is_host(str_from(s->trusted_hosts.items[i])))
			return fail(err, ERR_INVALID, "%s: '%.200s' is not a host or host:port",
				s->name, s->trusted_hosts.items[i]);
		vec_push(f->arena, &f->set->trusted_hosts, s->trusted_hosts.items[i]);
	}
	f->has_hosts = f->set->trusted_hosts.count > 0;
	if (!f->set->certificates && s->certificates && s->certificates[0]) {
		f->set->certificates = s->certificates;
		f->certificates_from = s->name;
	}
	return 0;
}

/* A variable that is set to something. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] ? value : NULL;
}

static int take_asked(struct finder *f, const struct index_asked *asked,
	const struct config *config, struct error *err)
{
	struct source line = { .name = asked->index		? "--index"
				       : asked->extra.count > 0 ? "--extra-index"
								: "--trusted-host",
		.index = asked->index,
		.extra = asked->extra,
		.trusted_hosts = asked->trusted_hosts };
	struct source file = { .name = "config.yaml",
		.index = config->index,
		.extra = config->extra_indexes,
		.trusted_hosts = config->trusted_hosts };
	return take_source(f, &line, err) < 0 || take_source(f, &file, err) < 0 ? -1 : 0;
}

static int take_variables(struct finder *f, struct error *err)
{
	struct source certificates = { .name = "SSL_CERT_FILE" };
	struct source uv = { .name = "UV_DEFAULT_INDEX" }, pip = { .name = "PIP_INDEX_URL" };
	text_list first = { 0 };
	certificates.certificates = variable("SSL_CERT_FILE");
	add_words(f->arena, &first, variable("UV_DEFAULT_INDEX"), BLANKS, true);
	if (first.count > 0) {
		uv.index = first.items[0];
	} else {
		uv.name = variable("UV_INDEX_URL") ? "UV_INDEX_URL" : "UV_INDEX";
		uv.index = variable("UV_INDEX_URL");
	}
	add_words(f->arena, &uv.extra, variable("UV_INDEX"), BLANKS, true);
	add_words(f->arena, &uv.extra, variable("UV_EXTRA_INDEX_URL"), BLANKS, false);
	add_words(f->arena, &uv.trusted_hosts, variable("UV_INSECURE_HOST"), BLANKS ",", false);
	pip.index = variable("PIP_INDEX_URL");
	if (!pip.index)
		pip.name = "PIP_EXTRA_INDEX_URL";
	add_words(f->arena, &pip.extra, variable("PIP_EXTRA_INDEX_URL"), BLANKS, false);
	add_words(f->arena, &pip.trusted_hosts, variable("PIP_TRUSTED_HOST"), BLANKS ",", false);
	pip.certificates = variable("PIP_CERT");
	if (take_source(f, &certificates, err) < 0 || take_source(f, &uv, err) < 0)
		return -1;
	return take_source(f, &pip, err);
}

/* *text is empty when there is no such file, or the caller may not read it: the clients pass over
 * it, too, unless it is `named` by a variable. */
static int read_file(
	const char *path, bool named, struct arena *arena, struct str *text, struct error *err)
{
	*text = STR("");
	return named || access(path, R_OK) == 0 ? inputs_read_file(path, arena, text, err) : 0;
}

/* One [[index]] table. */
struct toml_index {
	int instance;
	const char *url;
	bool is_default, is_explicit;
};

static void end_index(struct finder *f, struct source *s, struct toml_index *index)
{
	if (index->url && index->is_default)
		s->index = index->url;
	/* An explicit index serves only packages that name it. */
	else if (index->url && !index->is_explicit)
		vec_push(f->arena, &s->extra, index->url);
	*index = (struct toml_index){ 0 };
}

static void read_toml(struct finder *f, const toml_list *list, struct source *s)
{
	struct toml_index index = { 0 };
	const char *plain = NULL;
	for (size_t i = 0; i < list->count; i++) {
		const struct toml_entry *e = &list->items[i];
		bool is_ours = !e->table[0] || strcmp(e->table, "pip") == 0;
		bool is_true = !e->is_string && strcmp(e->text, "true") == 0;
		if (e->instance != index.instance)
			end_index(f, s, &index);
		if (strcmp(e->table, "index") == 0) {
			index.instance = e->instance;
			if (strcmp(e->key, "url") == 0 && e->is_string)
				index.url = e->text;
			else if (strcmp(e->key, "default") == 0)
				index.is_default = is_true;
			else if (strcmp(e->key, "explicit") == 0)
				index.is_explicit = is_true;
		} else if (is_ours && e->is_string && strcmp(e->key, "index-url") == 0) {
			plain = e->text; /* [pip] follows the top level and overrides it */
		} else if (is_ours && e->is_string && strcmp(e->key, "extra-index-url") == 0) {
			vec_push(f->arena, &s->extra, e->text);
		} else if (is_ours && e->is_string && strcmp(e->key, "allow-insecure-host") == 0) {
			vec_push(f->arena, &s->trusted_hosts, e->text);
		}
	}
	end_index(f, s, &index);
	if (!s->index)
		s->index = plain;
}

static int take_toml(struct finder *f, const char *path, bool named, struct error *err)
{
	struct source s = { .name = path };
	struct str text;
	toml_list list;
	if (read_file(path, named, f->arena, &text, err) < 0)
		return -1;
	if (toml_parse(text, f->arena, &list, err) < 0)
		return error_context(err, "%s", path);
	read_toml(f, &list, &s);
	return take_source(f, &s, err);
}

static int take_ini(struct finder *f, const char *path, bool named, struct error *err)
{
	/* [install] overrides [global]. */
	static const char *const sections[] = { "install", "global" };
	struct source s = { .name = path };
	struct str text;
	ini_list list;
	if (read_file(path, named, f->arena, &text, err) < 0)
		return -1;
	if (ini_parse(text, f->arena, &list, err) < 0)
		return error_context(err, "%s", path);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		if (!s.index)
			s.index = ini_find(&list, sections[i], "index-url");
		if (s.index && !s.index[0])
			s.index = NULL;
		if (!s.certificates)
			s.certificates = ini_find(&list, sections[i], "cert");
		if (s.extra.count == 0)
			add_words(f->arena, &s.extra,
				ini_find(&list, sections[i], "extra-index-url"), BLANKS, false);
		if (s.trusted_hosts.count == 0)
			add_words(f->arena, &s.trusted_hosts,
				ini_find(&list, sections[i], "trusted-host"), BLANKS ",", false);
	}
	return take_source(f, &s, err);
}

typedef int take_file(struct finder *f, const char *path, bool named, struct error *err);

/* The files of one client, the caller's before the host's. `paths`: "~/" is the caller's home,
 * "@/" its directory of configuration. */
static int take_files(
	struct finder *f, take_file *take, const char *const *paths, struct error *err)
{
	const char *config = variable("XDG_CONFIG_HOME"), *home = variable("HOME");
	if (config && !path_is_absolute(config))
		config = NULL;
	if (home && !path_is_absolute(home))
		home = NULL;
	if (!config && home)
		config = arena_printf(f->arena, "%s/.config", home);
	for (; *paths; paths++) {
		const char *path = *paths, *top = *path == '@' ? config : home;
		if (*path != '/' && !top)
			continue;
		if (*path != '/')
			path = arena_printf(f->arena, "%s%s", top, path + 1);
		if (take(f, path, false, err) < 0)
			return -1;
	}
	return 0;
}

static int take_uv_files(struct finder *f, struct error *err)
{
	static const char *const paths[] = { "@/uv/uv.toml", "/etc/xdg/uv/uv.toml",
		"/etc/uv/uv.toml", NULL };
	const char *named = variable("UV_CONFIG_FILE"), *none = variable("UV_NO_CONFIG");
	if (none && strcmp(none, "0") != 0 && strcasecmp(none, "false") != 0)
		return 0;
	return named ? take_toml(f, named, true, err) : take_files(f, take_toml, paths, err);
}

static int take_pip_files(struct finder *f, struct error *err)
{
	static const char *const paths[] = { "@/pip/pip.conf", "~/.pip/pip.conf", "/etc/pip.conf",
		"/etc/xdg/pip/pip.conf", NULL };
	const char *named = variable("PIP_CONFIG_FILE");
	if (named && strcmp(named, "/dev/null") == 0)
		return 0;
	if (named && take_ini(f, named, true, err) < 0)
		return -1;
	return take_files(f, take_ini, paths, err);
}

static int find_certificates(struct finder *f, struct error *err)
{
	static const char *const usual[] = { "/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
		NULL };
	struct index_set *set = f->set;
	if (set->certificates) {
		if (access(set->certificates, R_OK) < 0)
			return fail_errno(err, "%s: read the certificates '%s'",
				f->certificates_from, set->certificates);
		return 0;
	}
	for (const char *const *path = usual; *path && !set->certificates; path++) {
		if (access(*path, R_OK) == 0)
			set->certificates = *path;
	}
	return 0;
}

int index_find(const struct index_asked *asked, const struct config *config, struct arena *arena,
	struct index_set *set, struct error *err)
{
	struct index_set found = { 0 };
	struct finder f = { .arena = arena, .set = &found };
	if (take_asked(&f, asked, config, err) < 0 || take_variables(&f, err) < 0 ||
		take_uv_files(&f, err) < 0 || take_pip_files(&f, err) < 0 ||
		find_certificates(&f, err) < 0)
		return -1;
	*set = found;
	return 0;
}

const char *index_default_in_help(struct str help, struct arena *arena)
{
	static const char phrase[] = "(by default: <";
	const char *at = help.len > 0 ? memmem(help.data, help.len, phrase, strlen(phrase)) : NULL;
	struct str url, rest;
	if (!at)
		return NULL;
	at += strlen(phrase);
	if (!str_cut((struct str){ at, (size_t)(help.data + help.len - at) }, '>', &url, &rest) ||
		url.len > URL_MAX || memchr(url.data, '\0', url.len))
		return NULL;
	const char *text = arena_bytes(arena, url.data, url.len);
	return check_url(text, "help", arena, NULL) == 0 ? text : NULL;
}

/* ---- credentials, from where pip and uv look for them: netrc files and keyrings ---- */

struct login {
	struct arena *arena;
	struct str netrc;
	index_password_fn *ask;
	void *ctx;
};

static bool wants_keyring(void)
{
	const char *uv = getenv("UV_KEYRING_PROVIDER"), *pip = getenv("PIP_KEYRING_PROVIDER");
	return (uv && strcmp(uv, "subprocess") == 0) || (pip && strcmp(pip, "subprocess") == 0);
}

/* *user is escaped already. */
static bool find_login(const struct login *login, const struct uri *parts, const char **user,
	const char **password)
{
	struct arena *arena = login->arena;
	struct str name;
	uint16_t port;
	if (memchr(parts->user.data, ':', parts->user.len) ||
		!uri_parse_host(parts->host, &name, &port))
		return false;
	const char *host = arena_bytes(arena, name.data, name.len);
	if (parts->user.len == 0) {
		if (!netrc_find(login->netrc, host, arena, user, password))
			return false;
		*user = uri_encode(arena, str_from(*user), false);
		return true;
	}
	*user = arena_bytes(arena, parts->user.data, parts->user.len);
	*password = NULL;
	/* keyring would take a name that begins with '-' for an option, such as --keyring-path. */
	if (login->ask && wants_keyring() && parts->user.data[0] != '-') {
		const char *bare = arena_printf(arena, "%.*s%s", (int)parts->scheme.len,
			parts->scheme.data, parts->host.data);
		*password = login->ask(login->ctx, bare, *user, arena);
		if (!*password)
			*password = login->ask(login->ctx, host, *user, arena);
	}
	return *password != NULL;
}

static void log_in(
	const struct login *login, struct index_set *set, const char *url, text_list *secrets)
{
	const char *user, *password;
	struct uri parts;
	if (!url || !uri_split(url, &parts) || !find_login(login, &parts, &user, &password))
		return;
	const char *escaped = uri_encode(login->arena, str_from(password), false);
	if (strlen(password) >= INPUTS_SECRET_MIN) {
		vec_push(login->arena, secrets, password);
		vec_push(login->arena, secrets, escaped);
	}
	vec_push(login->arena, &set->logins,
		(struct index_login){
			url, arena_printf(login->arena, "%.*s%s:%s@%s", (int)parts.scheme.len, url,
				     user, escaped, parts.host.data) });
}

int index_netrc(struct arena *arena, struct str *text, struct error *err)
{
	const char *named = getenv("NETRC"), *home = getenv("HOME");
	struct error ignored;
	*text = STR("");
	if (named && *named)
		return inputs_read_file(named, arena, text, err) < 0
			       ? error_context(err, "the variable NETRC")
			       : 0;
	/* A file that is missing or unreadable is ignored, as pip does. */
	if (home && path_is_absolute(home) &&
		inputs_read_file(arena_printf(arena, "%s/.netrc", home), arena, text, &ignored) < 0)
		*text = STR("");
	return 0;
}

int index_log_in(struct index_set *set, index_password_fn *ask, void *ctx, struct arena *arena,
	text_list *secrets, struct error *err)
{
	struct login login = { .arena = arena, .ask = ask, .ctx = ctx };
	if (index_netrc(arena, &login.netrc, err) < 0)
		return -1;
	set->logins.count = 0;
	log_in(&login, set, set->index, secrets);
	for (size_t i = 0; i < set->extra.count; i++)
		log_in(&login, set, set->extra.items[i], secrets);
	return 0;
}

const char *index_full(const struct index_set *set, const char *url)
{
	for (size_t i = 0; i < set->logins.count; i++)
		if (strcmp(set->logins.items[i].url, url) == 0)
			return set->logins.items[i].full;
	return url;
}
