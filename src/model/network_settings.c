#include "model/network_settings.h"

#include <string.h>
#include "base/buf.h"
#include "base/str.h"

/* Neither hosts nor addresses have blanks or '='. */
const char *network_settings_print(const struct network_settings *s, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);

	for (size_t i = 0; i < s->hosts.count; i++)
		buf_printf(&out, "host=%s=%s ", s->hosts.items[i].key, s->hosts.items[i].value);
	for (size_t i = 0; i < s->ranges.count; i++)
		buf_printf(&out, "range=%s ", s->ranges.items[i]);
	for (size_t i = 0; i < s->port_count; i++)
		buf_printf(&out, "port=%u ", s->ports[i]);
	buf_printf(&out, "bandwidth=%llu connections=%llu idle_ms=%llu",
		(unsigned long long)s->bandwidth, (unsigned long long)s->connections,
		(unsigned long long)s->idle_ms);
	return arena_bytes(arena, out.data, out.len);
}

static bool take_number(struct network_settings *s, struct str name, struct str value)
{
	uint64_t number;

	if (!str_to_u64(value, &number))
		return false;
	if (str_is(name, "bandwidth"))
		s->bandwidth = number;
	else if (str_is(name, "connections"))
		s->connections = number;
	else if (str_is(name, "idle_ms"))
		s->idle_ms = number;
	else if (str_is(name, "port") && number > 0 && number <= UINT16_MAX &&
		 s->port_count < NETWORK_SETTINGS_PORTS_MAX)
		s->ports[s->port_count++] = (uint16_t)number;
	else
		return false;
	return true;
}

static bool take_word(struct network_settings *s, struct str word, struct arena *arena)
{
	struct str name, value, host, address;

	if (!str_cut(word, '=', &name, &value))
		return false;
	if (str_is(name, "range")) {
		vec_push(arena, &s->ranges, arena_bytes(arena, value.data, value.len));
		return true;
	}
	if (!str_is(name, "host"))
		return take_number(s, name, value);
	if (!str_cut(value, '=', &host, &address))
		return false;
	vec_push(arena, &s->hosts,
		(struct text_pair){ arena_bytes(arena, host.data, host.len),
			arena_bytes(arena, address.data, address.len) });
	return true;
}

int network_settings_parse(
	const char *text, struct arena *arena, struct network_settings *settings, struct error *err)
{
	struct network_settings found = { 0 };
	struct str rest = str_from(text), word;

	while (str_next(&rest, ' ', &word))
		if (word.len && !take_word(&found, word, arena))
			return fail(err, ERR_INVALID, "invalid setting '%.*s'", (int)word.len,
				word.data);
	*settings = found;
	return 0;
}
