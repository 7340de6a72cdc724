/* The network of a sandbox: what listens on its loopback, and what tells programs of it. */
#include "base/str.h"
#include "sandbox/plan/plan.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443
#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define PROXY "http://127.0.0.1:" TEXT(PLAN_FORWARD_PORT)
#define LOCAL "localhost,127.0.0.1,::1"

bool plan_network_has_names(const struct plan_network *network)
{
	return network->mode != NETWORK_NONE;
}

static void add(struct arena *arena, struct plan_network *network, enum plan_listener_kind kind,
	uint16_t port)
{
	vec_push(arena, &network->listeners, (struct plan_listener){ kind, port });
}

void plan_add_listeners(struct arena *arena, struct plan_network *network)
{
	network->listeners.count = 0;
	if (network->forward || plan_network_has_names(network))
		add(arena, network, LISTENER_PROXY, PLAN_FORWARD_PORT);
	if (!plan_network_has_names(network))
		return;
	add(arena, network, LISTENER_RESOLVER, PLAN_RESOLVER_PORT);
	add(arena, network, LISTENER_RESOLVER_TCP, PLAN_RESOLVER_PORT);
	add(arena, network, LISTENER_NAMES, HTTP_PORT);
	add(arena, network, LISTENER_NAMES, HTTPS_PORT);
	for (size_t i = 0; i < network->ports.count; i++)
		add(arena, network, LISTENER_NAMES, network->ports.items[i]);
}

/* These listen already. */
static bool is_taken(const struct plan_network *network, uint16_t port)
{
	static const uint16_t own[] = { HTTP_PORT, HTTPS_PORT, PLAN_FORWARD_PORT,
		PLAN_RESOLVER_PORT };
	for (size_t i = 0; i < COUNT(own); i++)
		if (own[i] == port)
			return true;
	for (size_t i = 0; i < network->ports.count; i++)
		if (network->ports.items[i] == port)
			return true;
	return false;
}

void plan_network_ports(const text_list *allow, struct arena *arena, struct plan_network *network)
{
	for (size_t i = 0; i < allow->count && network->ports.count < PLAN_PORTS_MAX; i++) {
		const char *colon = strrchr(allow->items[i], ':');
		uint64_t port;
		if (colon && str_to_u64(str_from(colon + 1), &port) && port > 0 &&
			port <= UINT16_MAX && !is_taken(network, (uint16_t)port))
			vec_push(arena, &network->ports, (uint16_t)port);
	}
}

void plan_network_env(const struct plan_network *network, const text_list *registries,
	struct arena *arena, text_list *env)
{
	/* Without a network a second try only takes time. */
	static const char *const none[] = { "PIP_RETRIES=0", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"UV_HTTP_RETRIES=0", "npm_config_fetch_retries=0",
		"npm_config_update_notifier=false", "BUN_CONFIG_HTTP_RETRY_COUNT=0",
		"CARGO_NET_RETRY=0" };
	static const char *const some[] = { "HTTP_PROXY=" PROXY, "HTTPS_PROXY=" PROXY,
		"ALL_PROXY=" PROXY, "http_proxy=" PROXY, "https_proxy=" PROXY, "all_proxy=" PROXY,
		"NO_PROXY=" LOCAL, "no_proxy=" LOCAL, "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"npm_config_update_notifier=false" };
	bool has_none = !plan_network_has_names(network);
	const char *const *items = has_none ? none : some;
	/* A build says itself what its programs need. */
	for (size_t i = 0; !network->forward && i < (has_none ? COUNT(none) : COUNT(some)); i++)
		plan_set_env(arena, env, items[i]);
	for (size_t i = 0; registries && i < registries->count; i++)
		plan_set_env(arena, env, registries->items[i]);
}
