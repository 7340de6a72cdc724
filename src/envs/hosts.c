#include "envs/hosts.h"

#include <stdlib.h>

#include "base/str.h"
#include "envs/known.h"
#include "envs/scripts.h"
#include "envs/uv.h"

#define ROOM "tools"
#define FRESH_S 86400
#define ASK_TIMEOUT_MS 120000

static bool name_is_valid(struct str name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_:";

	if (name.len == 0 || name.len > 253)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (!strchr(allowed, name.data[i]) || !name.data[i])
			return false;
	return true;
}

static bool port_is_valid(struct str text, uint16_t *port)
{
	uint64_t number;

	if (!str_to_u64(text, &number) || number == 0 || number > UINT16_MAX)
		return false;
	*port = (uint16_t)number;
	return true;
}

int file_host_parse(
	const char *text, struct arena *arena, struct file_host *host, struct error *err)
{
	char *lower = arena_text(arena, text);
	struct str all = { lower, strlen(lower) }, name = all, port = STR("443");
	struct file_host found = { 0 };

	for (char *c = lower; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	if (*lower == '[') { /* [::1]:443 */
		if (!str_cut((struct str){ lower + 1, all.len - 1 }, ']', &name, &port))
			port = STR("no");
		else if (port.len == 0)
			port = STR("443");
		else
			port = port.data[0] == ':' ? (struct str){ port.data + 1, port.len - 1 }
						   : STR("no");
	} else if (strchr(lower, ':')) {
		str_cut(all, ':', &name, &port);
	}
	if (!name_is_valid(name) || !port_is_valid(port, &found.port))
		return fail(
			err, ERR_INVALID, "invalid host '%s': expected host or host:port", text);
	found.host = arena_bytes(arena, name.data, name.len);
	*host = found;
	return 0;
}

/* "https name 443" */
static void take_host(const char *value, bool index_is_http, struct arena *arena, file_hosts *hosts)
{
	struct str scheme, name, port, rest;
	struct file_host host;

	if (!str_cut(str_from(value), ' ', &scheme, &rest) || !str_cut(rest, ' ', &name, &port) ||
		!(str_is(scheme, "https") || (str_is(scheme, "http") && index_is_http)) ||
		!name_is_valid(name) || !port_is_valid(port, &host.port))
		return;
	host.host = arena_bytes(arena, name.data, name.len);
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
	auto_buf struct buf text;
	int count = 0;

	buf_init(&text, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < answer->lines.count; i++)
		if (strcmp(answer->lines.items[i].key, "host") != 0 || ++count <= FILE_HOSTS_MAX)
			buf_printf(&text, "%s %s\n", answer->lines.items[i].key,
				answer->lines.items[i].value);
	return known_write(home, ROOM, identity, (struct str){ text.data, text.len }, err);
}

static void identify(const char *url, char out[KNOWN_IDENTITY_LEN + 1])
{
	auto_buf struct buf text;

	buf_init(&text, BUF_MAX_DEFAULT);
	buf_printf(&text, "hosts of %s", url);
	known_identity_of_text(text.data, out);
}

static int of_one(const struct home *home, const struct runner *runner, const struct index_set *one,
	const struct interpreter *python, const char *const *projects, struct arena *arena,
	file_hosts *hosts, struct error *err)
{
	char identity[KNOWN_IDENTITY_LEN + 1];
	struct answer answer = { 0 }, asked;
	int64_t age_s = 0;
	size_t taken = 0;

	identify(one->index, identity);
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
