#include "model/settings/network_settings.h"

#include "base/str.h"
#include "model/records/record.h"
#include "model/records/rows.h"

#define AT(member) offsetof(struct network_settings, member)
static const struct field rows[] = {
	ROW(PAIRS, hosts),
	ROW(TEXTS, ranges),
	ROW(TEXTS, ports),
	ROW(SIZE, bandwidth, .most = INT64_MAX),
	ROW(INTEGER, connections, .most = INT64_MAX),
	{ "idle", FIELD_DURATION, AT(idle_ms), .most = INT64_MAX },
};
#undef AT
const struct record network_settings_record = { "NetworkSettings", NULL, RECORD_ROWS(rows),
	FIELD_KEPT };

bool network_settings_port(const char *text, uint16_t *port)
{
	uint64_t number;
	if (!str_to_u64(str_from(text), &number) || number == 0 || number > UINT16_MAX)
		return false;
	*port = (uint16_t)number;
	return true;
}

size_t network_settings_ports(
	const struct network_settings *settings, uint16_t ports[NETWORK_SETTINGS_PORTS_MAX])
{
	size_t count = 0;
	for (size_t i = 0; i < settings->ports.count && count < NETWORK_SETTINGS_PORTS_MAX; i++)
		count += network_settings_port(settings->ports.items[i], &ports[count]);
	return count;
}
