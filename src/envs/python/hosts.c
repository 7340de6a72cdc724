#include "envs/python/hosts.h"

#include "envs/python/known.h"
#include "envs/python/scripts.h"
#include "envs/python/uv.h"
#include "format/http/uri.h"

#define ROOM "tools"
#define FRESH_S 86400
#define ASK_TIMEOUT_MS 120000

static struct file_host make_host(struct arena *arena, struct str name, uint16_t port)
{
	char *host = arena_bytes(arena, name.data, name.len);
	for (char *c = host; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
	return (struct file_host){ host, port };
}

int file_host_parse(
	const char *text, struct arena *arena, struct file_host *host, struct error *err)
{
	struct str name;
	uint16_t port;
	if (!uri_parse_host(str_from(text), &name, &port))
		return fail(
			err, ERR_INVALID, "invalid host '%s': expected host or host:port", text);
	*host = make_host(arena, name, port ? port : 443);
	return 0;
}

/* "https name 443"; a name with a colon is an IPv6 address. */
static void take_host(const char *value, bool index_is_http, struct arena *arena, file_hosts *hosts)
{
	struct str scheme, name, number, rest;
	uint16_t port;
	if (!str_cut(str_from(value), ' ', &scheme, &rest) || !str_cut(rest, ' ', &name, &number) ||
		!(str_is(scheme, "https") || (str_is(scheme, "http") && index_is_http)))
		return;
	bool is_v6 = memchr(name.data, ':', name.len);
	const char *text = arena_printf(arena, is_v6 ? "[%.*s]:%.*s" : "%.*s:%.*s", (int)name.len,
		name.data, (int)number.len, number.data);
	if (!uri_parse_host(str_from(text), &name, &port) || port == 0)
		return;
	struct file_host host = make_host(arena, name, port);
	if (!str_is(name, host.host)) /* scripts print lower case */
		return;
	for (size_t i = 0; i < hosts->count; i++)
		if (hosts->items[i].port == host.port &&
			strcmp(hosts->items[i].host, host.host) == 0)
			return;
	vec_push(arena, hosts, host);
}

static int ask(const struct runner *runner, const struct index_set *one,
	const struct interpreter *python, const char *const *projects, struct arena *arena,
	struct answer *answer, struct error *err)
{
	text_list args = { 0 };
	struct job job;
	vec_push(arena, &args, "hosts");
	vec_push(arena, &args, "pip");
	for (size_t i = 0; projects && projects[i] && i < 8; i++)
		vec_push(arena, &args, projects[i]);
	vec_push(arena, &args, NULL);
	script_job(&job, arena, python, script_index, false, args.items);
	job_reach_indexes(&job, arena, one);
	job.timeout_ms = ASK_TIMEOUT_MS;
	return script_run(runner, &job, arena, answer, err);
}

static int keep(const struct home *home, const char *identity, const struct answer *answer,
	struct error *err)
{
	int count = 0;
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	for (size_t i = 0; i < answer->lines.count; i++)
		if (strcmp(answer->lines.items[i].key, "host") != 0 || ++count <= FILE_HOSTS_MAX)
			buf_printf(&text, "%s %s\n", answer->lines.items[i].key,
				answer->lines.items[i].value);
	return known_write(home, ROOM, identity, buf_str(&text), err);
}

static int of_one(const struct home *home, const struct runner *runner, const struct index_set *one,
	const struct interpreter *python, const char *const *projects, struct arena *arena,
	file_hosts *hosts, struct error *err)
{
	char identity[KNOWN_IDENTITY_LEN + 1];
	struct answer answer = { 0 }, asked;
	int64_t age_s = 0;
	size_t taken = 0;
	known_identity_of_text(arena_printf(arena, "hosts of %s", one->index), identity);
	bool is_known = known_read(home, ROOM, identity, arena, &answer, &age_s) &&
			answer_get(&answer, "page");
	if (!is_known || age_s < 0 || age_s > FRESH_S) {
		if (!runner)
			return fail(err, ERR_NOT_FOUND, "the hosts of its files aren't known");
		if (ask(runner, one, python, projects, arena, &asked, err) == 0) {
			answer = asked;
			/* An index that has none of these pages may have one tomorrow. */
			if (answer_get(&answer, "page") && keep(home, identity, &answer, err) < 0)
				return -1;
		} else if (!is_known) {
			return error_context(err, "index %s", index_redact(arena, one->index));
		}
	}
	for (size_t i = 0; i < answer.lines.count; i++)
		if (strcmp(answer.lines.items[i].key, "host") == 0 && ++taken <= FILE_HOSTS_MAX)
			take_host(answer.lines.items[i].value,
				strncmp(one->index, "http://", 7) == 0, arena, hosts);
	return 0;
}

int index_file_hosts(const struct home *home, const struct runner *runner,
	const struct index_set *indexes, const struct interpreter *python,
	const char *const *projects, struct arena *arena, file_hosts *hosts, struct error *err)
{
	file_hosts found = *hosts;
	for (size_t i = 0; i <= indexes->extra.count; i++) {
		struct index_set one = *indexes;
		one.index = i ? indexes->extra.items[i - 1] : indexes->index;
		one.extra.count = 0;
		if (one.index &&
			of_one(home, runner, &one, python, projects, arena, &found, err) < 0)
			return -1;
	}
	*hosts = found;
	return 0;
}
