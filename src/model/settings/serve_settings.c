#include "model/settings/serve_settings.h"

#include "base/str.h"
#include "format/http/uri.h"
#include "model/records/record.h"
#include "model/records/rows.h"

bool serve_origin_is_valid(const char *text)
{
	struct uri parts;
	struct str name;
	uint16_t port;
	for (const char *c = text; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			return false;
	return uri_split(text, &parts) && !parts.user.len &&
	       (str_is(parts.scheme, "https://") || str_is(parts.scheme, "http://")) &&
	       parts.scheme.len + parts.host.len == strlen(text) &&
	       uri_parse_host(parts.host, &name, &port);
}

#define AT(member) offsetof(struct serve_settings, member)
static const struct field rows[] = {
	ROW(TEXTS, hosts),
	ROW(TEXTS, origins),
	ROW(TEXTS, proxies),
	ROW(INTEGER, connections, .most = INT64_MAX),
	ROW(INTEGER, rate, .most = INT64_MAX),
	ROW(PAIRS, subjects),
};
#undef AT
const struct record serve_settings_record = { "ServeSettings", NULL, RECORD_ROWS(rows),
	FIELD_KEPT };
