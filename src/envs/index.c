#include "envs/index.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "format/ini.h"
#include "format/toml_lite.h"

#define FILE_MAX (TOML_MAX < INI_MAX ? TOML_MAX : INI_MAX)
#define URL_MAX 2048

/* What one place says: the command line, a variable's kind, a file. */
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

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_';
}

/* host, host:port, [v6] or [v6]:port. */
static bool is_host(struct str text)
{
	size_t at = 0;

	if (str_starts_with(text, "[")) {
		while (at < text.len && text.data[at] != ']')
			at++;
		if (at < 3 || at == text.len ||
			strspn(text.data + 1, "0123456789abcdefABCDEF:.") != at - 1)
			return false;
		at++;
	} else {
		while (at < text.len && is_host_char(text.data[at]))
			at++;
		if (at == 0)
			return false;
	}
	if (at == text.len)
		return true;
	uint64_t port;
	return text.data[at] == ':' &&
	       str_to_u64((struct str){ text.data + at + 1, text.len - at - 1 }, &port) &&
	       port > 0 && port <= 65535;
}

/* Takes an URL apart: what is before user and host, user and password with their '@' (may be
 * empty), and the host with its port. false: it isn't of that form. */
static bool split_url(const char *url, struct str *user, struct str *host)
{
	const char *start = strstr(url, "://"), *at;

	if (!start)
		return false;
	start += 3;
	*host = (struct str){ start, strcspn(start, "/?#") };
	*user = (struct str){ start, 0 };
	at = host->len > 0 ? memrchr(start, '@', host->len) : NULL;
	if (at) {
		user->len = (size_t)(at + 1 - start);
		*host = (struct str){ at + 1, host->len - user->len };
	}
	return true;
}

const char *index_redact(struct arena *arena, const char *url)
{
	struct str user, host;
	const char *last = strrchr(url, '@');

	if (!last)
		return arena_text(arena, url);
	if (!split_url(url, &user, &host))
		return arena_printf(arena, "***%s", last);
	if (user.len == 0 && is_host(host))
		return arena_text(arena, url); /* the '@' is in its path */
	/* A password with a '/' that wasn't escaped: then all up to the last '@' may be secret. */
	if (!is_host(host))
		host.data = last + 1;
	return arena_printf(arena, "%.*s***@%s", (int)(user.data - url), url, host.data);
}

static int check_url(const char *url, const char *from, struct arena *arena, struct error *err)
{
	struct str user, host;
	bool is_plain = true;

	for (const char *c = url; *c; c++)
		is_plain = is_plain && (unsigned char)*c > 0x20 && (unsigned char)*c < 0x7f;
	if (is_plain && strlen(url) <= URL_MAX &&
		(strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) &&
		split_url(url, &user, &host) && is_host(host))
		return 0;
	return fail_hint(err, ERR_INVALID, "an index is given as https://host/path",
		"%s: '%.200s' is not an http or https URL with a host", from,
		index_redact(arena, url));
}

/* Adds the URLs in `words`, blanks or newlines between them; `names` allows uv's name=url. */
static void add_urls(struct source *s, struct arena *arena, const char *words, bool names)
{
	while (words && *(words += strspn(words, " \t\r\n"))) {
		size_t len = strcspn(words, " \t\r\n");
		char *word = arena_bytes(arena, words, len);
		size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789-_.");

		if (names && name > 0 && word[name] == '=')
			word += name + 1;
		vec_push(arena, &s->extra, word);
		words += len;
	}
}

static void add_hosts(struct source *s, struct arena *arena, const char *words)
{
	while (words && *(words += strspn(words, " \t\r\n,"))) {
		size_t len = strcspn(words, " \t\r\n,");

		vec_push(arena, &s->trusted_hosts, arena_bytes(arena, words, len));
		words += len;
	}
}

/* The first that names an index decides about it and what else to look in: what lies behind it
 * isn't added, or a file somewhere could slip an index beside the one that was asked for. */
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

static const char *strip_name(struct arena *arena, const char *value)
{
	struct source one = { 0 };

	add_urls(&one, arena, value, true);
	return one.extra.count > 0 ? one.extra.items[0] : NULL;
}

static int take_asked(struct finder *f, const struct index_asked *asked,
	const struct config *config, struct error *err)
{
	struct source line = { .name = "--index" }, file = { .name = "config.yaml" };

	line.index = asked->index;
	for (size_t i = 0; i < asked->extra.count; i++)
		vec_push(f->arena, &line.extra, asked->extra.items[i]);
	for (size_t i = 0; i < asked->trusted_hosts.count; i++)
		vec_push(f->arena, &line.trusted_hosts, asked->trusted_hosts.items[i]);
	if (!line.index)
		line.name = line.extra.count > 0 ? "--extra-index" : "--trusted-host";
	file.index = config->index;
	for (size_t i = 0; i < config->extra_indexes.count; i++)
		vec_push(f->arena, &file.extra, config->extra_indexes.items[i]);
	for (size_t i = 0; i < config->trusted_hosts.count; i++)
		vec_push(f->arena, &file.trusted_hosts, config->trusted_hosts.items[i]);
	return take_source(f, &line, err) < 0 || take_source(f, &file, err) < 0 ? -1 : 0;
}

static int take_variables(struct finder *f, struct error *err)
{
	struct source certificates = { .name = "SSL_CERT_FILE" };
	struct source uv = { .name = "UV_DEFAULT_INDEX" }, pip = { .name = "PIP_INDEX_URL" };

	certificates.certificates = variable("SSL_CERT_FILE");
	uv.index = strip_name(f->arena, variable("UV_DEFAULT_INDEX"));
	if (!uv.index) {
		uv.name = variable("UV_INDEX_URL") ? "UV_INDEX_URL" : "UV_INDEX";
		uv.index = variable("UV_INDEX_URL");
	}
	add_urls(&uv, f->arena, variable("UV_INDEX"), true);
	add_urls(&uv, f->arena, variable("UV_EXTRA_INDEX_URL"), false);
	add_hosts(&uv, f->arena, variable("UV_INSECURE_HOST"));
	pip.index = variable("PIP_INDEX_URL");
	if (!pip.index)
		pip.name = "PIP_EXTRA_INDEX_URL";
	add_urls(&pip, f->arena, variable("PIP_EXTRA_INDEX_URL"), false);
	add_hosts(&pip, f->arena, variable("PIP_TRUSTED_HOST"));
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
	/* O_NONBLOCK: a FIFO of that name must not hang us. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t len;

	*text = (struct str){ "", 0 };
	if (fd < 0 && !named && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_errno(err, "read '%s'", path);
	if (S_ISCHR(st.st_mode)) /* /dev/null says: none */
		return 0;
	if (!S_ISREG(st.st_mode))
		return named ? fail(err, ERR_INVALID, "'%s' is not a file", path) : 0;
	if ((uint64_t)st.st_size > FILE_MAX)
		return fail(err, ERR_LIMIT, "'%s' is larger than %zu bytes", path, FILE_MAX);
	char *data = arena_alloc(arena, (size_t)st.st_size + 1);
	len = fd_read_full(fd, data, (size_t)st.st_size);
	if (len < 0)
		return fail_errno(err, "read '%s'", path);
	*text = (struct str){ data, (size_t)len };
	return 0;
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
	/* An explicit one is for packages that name it: not ours to search. */
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
			plain = e->text; /* [pip] stands behind the top and counts more */
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
	/* [install] is the command's own and counts more. */
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
			add_urls(&s, f->arena, ini_find(&list, sections[i], "extra-index-url"),
				false);
		if (s.trusted_hosts.count == 0)
			add_hosts(&s, f->arena, ini_find(&list, sections[i], "trusted-host"));
	}
	return take_source(f, &s, err);
}

typedef int take_file(struct finder *f, const char *path, bool named, struct error *err);

/* The files of one client, the caller's before the host's. */
static int take_files(struct finder *f, take_file *take, const char *const *in_config,
	const char *const *in_home, const char *const *of_host, struct error *err)
{
	const char *config = variable("XDG_CONFIG_HOME"), *home = variable("HOME");

	if (config && !path_is_absolute(config))
		config = NULL;
	if (home && !path_is_absolute(home))
		home = NULL;
	if (!config && home)
		config = arena_printf(f->arena, "%s/.config", home);
	for (; config && *in_config; in_config++) {
		if (take(f, arena_printf(f->arena, "%s/%s", config, *in_config), false, err) < 0)
			return -1;
	}
	for (; home && *in_home; in_home++) {
		if (take(f, arena_printf(f->arena, "%s/%s", home, *in_home), false, err) < 0)
			return -1;
	}
	for (; *of_host; of_host++) {
		if (take(f, *of_host, false, err) < 0)
			return -1;
	}
	return 0;
}

static int take_uv_files(struct finder *f, struct error *err)
{
	static const char *const in_config[] = { "uv/uv.toml", NULL }, *const in_home[] = { NULL };
	static const char *const of_host[] = { "/etc/xdg/uv/uv.toml", "/etc/uv/uv.toml", NULL };
	const char *named = variable("UV_CONFIG_FILE"), *none = variable("UV_NO_CONFIG");

	if (none && strcmp(none, "0") != 0 && strcasecmp(none, "false") != 0)
		return 0;
	if (named)
		return take_toml(f, named, true, err);
	return take_files(f, take_toml, in_config, in_home, of_host, err);
}

static int take_pip_files(struct finder *f, struct error *err)
{
	static const char *const in_config[] = { "pip/pip.conf", NULL };
	static const char *const in_home[] = { ".pip/pip.conf", NULL };
	static const char *const of_host[] = { "/etc/pip.conf", "/etc/xdg/pip/pip.conf", NULL };
	const char *named = variable("PIP_CONFIG_FILE");

	if (named && strcmp(named, "/dev/null") == 0)
		return 0;
	if (named && take_ini(f, named, true, err) < 0)
		return -1;
	return take_files(f, take_ini, in_config, in_home, of_host, err);
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
