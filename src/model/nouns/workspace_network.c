/* The network of a workspace, as it is asked for and shown. */
#include "model/nouns/workspace.h"
#include "model/records/rows.h"

enum network_mode workspace_network_mode(const struct workspace_network *network)
{
	enum network_mode mode = NETWORK_NONE;
	struct error ignored; /* what is kept has been checked */
	if (network->mode && network_mode_parse(network->mode, &mode, &ignored) < 0)
		mode = NETWORK_NONE;
	return mode;
}

int workspace_check_mode(const char *mode, struct error *err)
{
	enum network_mode ignored;
	return network_mode_parse(mode, &ignored, err);
}

int workspace_check_allow(const char *entry, struct error *err)
{
	return strcmp(entry, WORKSPACE_REGISTRIES) == 0
		       ? 0
		       : network_check_entry(NETWORK_ALLOW, entry, err);
}

int workspace_check_deny(const char *entry, struct error *err)
{
	return network_check_entry(NETWORK_DENY, entry, err);
}

int workspace_network_settle(struct workspace_network *network, struct error *err)
{
	if (!network->mode)
		network->mode =
			network_mode_name(network->allow.count ? NETWORK_LIST : NETWORK_NONE);
	if (workspace_network_mode(network) != NETWORK_NONE)
		return 0;
	if (network->allow.count || network->deny.count)
		return fail_hint(err, ERR_INVALID, "choose the mode list or open",
			"'%s' is %s, but the mode of the network is none",
			network->allow.count ? network->allow.items[0] : network->deny.items[0],
			network->allow.count ? "allowed" : "denied");
	return 0;
}

bool workspace_network_has_registries(const struct workspace_network *network)
{
	for (size_t i = 0; i < network->allow.count; i++)
		if (strcmp(network->allow.items[i], WORKSPACE_REGISTRIES) == 0)
			return true;
	return false;
}

void workspace_copy_network(
	struct arena *arena, const struct workspace_network *from, struct workspace_network *to)
{
	struct workspace_network copy = { .mode = arena_text(arena, from->mode),
		.allow = text_list_copy(arena, &from->allow),
		.deny = text_list_copy(arena, &from->deny) };
	*to = copy;
}

#define AT(member) offsetof(struct workspace_network, member)
#define SHOWN (FIELD_OUT | FIELD_OPTIONAL)
static const struct field rows[] = {
	ROW(TEXT, mode,
		"none: only loopback; list: the hosts of `allow`; open: all public hosts. Default: "
		"list when something is allowed, else none",
		.pattern = "^(none|list|open)$", .check = workspace_check_mode),
	ROW(TEXTS, allow,
		"host, *.host, either with :port, or an address; registries: the package indexes "
		"that the host's clients are configured with",
		.most = WORKSPACE_HOSTS_MAX, .check = workspace_check_allow),
	ROW(TEXTS, deny, "the same; wins over `allow`", .most = WORKSPACE_HOSTS_MAX,
		.check = workspace_check_deny),
	{ "connections", FIELD_INTEGER, AT(traffic.connections), "since the daemon began", SHOWN },
	{ "refused", FIELD_INTEGER, AT(traffic.refused), "by the lists", SHOWN },
	{ "failed", FIELD_INTEGER, AT(traffic.failed), "allowed, but not reached", SHOWN },
	{ "received", FIELD_SIZE, AT(traffic.bytes_in), NULL, SHOWN },
	{ "sent", FIELD_SIZE, AT(traffic.bytes_out), NULL, SHOWN },
	ROW(TEXTS, bounded_by,
		"policies that let only a part of it be reached; mode none then: nothing", SHOWN),
};
const struct record workspace_network_record = { "Network",
	"What its sandboxes may reach; they have no other network.", RECORD_ROWS(rows),
	FIELD_IN | FIELD_OUT, .wanted = "NetworkWanted" };
