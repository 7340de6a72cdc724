/* Percent-encoding: what is decoded and encoded again decodes to the same, and parameters lie in
 * their query. */
#include <string.h>
#include "format/http/uri.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size }, decoded, again, rest = text, name, value;
	auto_arena struct arena arena;

	arena_init(&arena);
	for (int is_query = 0; is_query < 2; is_query++) {
		if (!uri_decode(&arena, text, is_query, &decoded))
			continue;
		check(decoded.len <= size && strlen(decoded.data) == decoded.len);
		const char *encoded = uri_encode(&arena, decoded, is_query);
		check(uri_decode(&arena, str_from(encoded), is_query, &again));
		check(str_equal(decoded, again));
	}
	while (uri_next_parameter(&rest, &name, &value)) {
		check(name.data >= text.data && name.data + name.len <= text.data + size);
		check(name.len + value.len > 0 || text.len > 0);
		check(!memchr(name.data, '&', name.len));
	}
	if (uri_is_authority(text))
		check(!size || (!memchr(data, ' ', size) && !memchr(data, '@', size) &&
				       !memchr(data, '\0', size) && !memchr(data, '/', size)));
	uint16_t port;
	if (uri_parse_host(text, &name, &port))
		check(name.len > 0 && name.data >= text.data &&
			name.data + name.len <= text.data + size);
	const char *url = arena_bytes(&arena, text.data, text.len);
	struct uri parts;
	if (uri_split(url, &parts))
		check(parts.scheme.len + parts.user.len + parts.host.len <= strlen(url) &&
			!memchr(parts.host.data, '/', parts.host.len));
	struct uri_base base;
	if (uri_parse_base(url, &base))
		check(base.name.len > 0 && base.port > 0 &&
			base.authority.data + base.authority.len <= url + strlen(url) &&
			uri_is_authority(base.authority));
	return 0;
}
