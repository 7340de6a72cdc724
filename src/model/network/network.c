#include "model/network/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include "format/network/idna.h"

#define NAME_MAX_LEN 253
#define LABEL_MAX_LEN 63

/* ---- hosts ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* One label in its normal form, appended at out + *len. */
static int add_label(struct str label, char out[NETWORK_HOST_SIZE], size_t *len, struct error *err)
{
	char encoded[IDNA_LABEL_SIZE];
	bool is_ascii = true;
	for (size_t i = 0; i < label.len; i++)
		is_ascii = is_ascii && (unsigned char)label.data[i] < 0x80;
	if (!is_ascii) {
		if (!idna_encode(label, encoded))
			return fail_hint(err, ERR_INVALID, "write it as 'xn--...'",
				"a label of the host's name has letters without a clear ASCII "
				"form");
		label = str_from(encoded);
	}
	if (!label.len || label.len > LABEL_MAX_LEN)
		return fail(err, ERR_INVALID, "a label of a host's name has 1 to %d bytes",
			LABEL_MAX_LEN);
	if (*len + label.len > NAME_MAX_LEN)
		return fail(err, ERR_INVALID, "a host's name has 1 to %d bytes", NAME_MAX_LEN);
	for (size_t i = 0; i < label.len; i++) {
		char c = label.data[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (!is_word(c))
			return fail(
				err, ERR_INVALID, "byte 0x%02x in a host's name", (unsigned char)c);
		out[(*len)++] = c;
	}
	return 0;
}

/* Whether programs may read a name as an IPv4 address: its last label is a number. */
static bool is_numeric(const char *name)
{
	const char *last = strrchr(name, '.');
	last = last ? last + 1 : name;
	if (last[0] == '0' && last[1] == 'x')
		return last[2 + strspn(last + 2, "0123456789abcdef")] == '\0';
	return last[strspn(last, "0123456789")] == '\0';
}

static int parse_name(struct str name, char out[NETWORK_HOST_SIZE], struct error *err)
{
	size_t len = 0;
	struct str label;
	struct in_addr address;
	char shown[INET_ADDRSTRLEN];
	if (name.len && name.data[name.len - 1] == '.')
		name.len--;
	if (!name.len || name.len > 4 * NAME_MAX_LEN)
		return fail(err, ERR_INVALID, "a host's name has 1 to %d bytes", NAME_MAX_LEN);
	/* "a.." has lost one dot and still ends in one. */
	if (name.data[name.len - 1] == '.')
		return fail(err, ERR_INVALID, "a host's name ends in an empty label");
	for (struct str rest = name; str_next(&rest, '.', &label);) {
		if (len)
			out[len++] = '.';
		if (add_label(label, out, &len, err) < 0)
			return -1;
	}
	out[len] = '\0';
	if (out[0] == '-')
		return fail(err, ERR_INVALID, "a host's name begins with '-'");
	if (!is_numeric(out))
		return 0;
	/* One spelling an address, or two spellings of one would be judged differently. */
	if (inet_pton(AF_INET, out, &address) != 1 ||
		!inet_ntop(AF_INET, &address, shown, sizeof shown) || strcmp(out, shown) != 0)
		return fail(err, ERR_INVALID, "neither a name nor an IPv4 address as a.b.c.d");
	return 0;
}

static int parse_ipv6(struct str text, char out[NETWORK_HOST_SIZE], struct error *err)
{
	char copy[INET6_ADDRSTRLEN] = { 0 };
	struct in6_addr address;
	if (text.len >= sizeof copy || memchr(text.data, '\0', text.len))
		return fail(err, ERR_INVALID, "not an IPv6 address");
	memcpy(copy, text.data, text.len);
	if (inet_pton(AF_INET6, copy, &address) != 1 ||
		!inet_ntop(AF_INET6, &address, out, NETWORK_HOST_SIZE))
		return fail(err, ERR_INVALID, "not an IPv6 address");
	return 0;
}

int network_normalize(struct str name, char out[NETWORK_HOST_SIZE], struct error *err)
{
	char made[NETWORK_HOST_SIZE];
	bool has_brackets = name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']';
	int status;
	if (has_brackets)
		name = (struct str){ name.data + 1, name.len - 2 };
	if (has_brackets || (name.len && memchr(name.data, ':', name.len)))
		status = parse_ipv6(name, made, err);
	else
		status = parse_name(name, made, err);
	if (status == 0)
		memcpy(out, made, strlen(made) + 1);
	return status;
}

bool network_host_is_address(const char *host)
{
	return strchr(host, ':') || is_numeric(host);
}

static int parse_port(struct str text, uint16_t *port, struct error *err)
{
	uint64_t number;
	if (!str_to_u64(text, &number) || number == 0 || number > UINT16_MAX || text.data[0] == '0')
		return fail(err, ERR_INVALID, "a port is a number from 1 to 65535");
	*port = (uint16_t)number;
	return 0;
}

/* Cuts "host:port" and "[IPv6]:port". An IPv6 address without brackets has no port. */
static int split_port(struct str text, struct str *host, uint16_t *port, struct error *err)
{
	const char *end = text.len ? memrchr(text.data, ':', text.len) : NULL;
	const char *bracket = text.len ? memrchr(text.data, ']', text.len) : NULL;
	*host = text;
	*port = 0;
	if (!end || (bracket && bracket > end))
		return 0;
	if (!bracket && memchr(text.data, ':', (size_t)(end - text.data)))
		return 0;
	host->len = (size_t)(end - text.data);
	return parse_port((struct str){ end + 1, text.len - host->len - 1 }, port, err);
}

int network_authority_parse(struct str text, uint16_t default_port, char host[NETWORK_HOST_SIZE],
	uint16_t *port, struct error *err)
{
	struct str name;
	uint16_t number;
	if (split_port(text, &name, &number, err) < 0)
		return -1;
	/* Without brackets it can't be told where an address ends. */
	if (name.len && name.data[0] != '[' && memchr(name.data, ':', name.len))
		return fail(err, ERR_INVALID, "an IPv6 address without brackets");
	if (!number && !default_port)
		return fail(err, ERR_INVALID, "a host without its port");
	if (network_normalize(name, host, err) < 0)
		return -1;
	*port = number ? number : default_port;
	return 0;
}

int network_target_parse(
	struct str target, char host[NETWORK_HOST_SIZE], uint16_t *port, struct error *err)
{
	static const struct {
		const char *scheme;
		uint16_t port;
	} schemes[] = { { "https", 443 }, { "http", 80 }, { "wss", 443 }, { "ws", 80 } };
	struct str authority = target;
	uint16_t usual = 443;
	const char *end = target.len ? memmem(target.data, target.len, "://", 3) : NULL;
	for (size_t i = 0; i < target.len; i++)
		if ((unsigned char)target.data[i] <= ' ' || target.data[i] == 0x7f)
			return fail(err, ERR_INVALID, "a blank or control character in the target");
	if (end) {
		struct str scheme = { target.data, (size_t)(end - target.data) };
		usual = 0;
		for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
			if (scheme.len == strlen(schemes[i].scheme) &&
				!strncasecmp(scheme.data, schemes[i].scheme, scheme.len))
				usual = schemes[i].port;
		authority = (struct str){ end + 3, target.len - scheme.len - 3 };
		size_t len = 0;
		while (len < authority.len && !strchr("/?#", authority.data[len]))
			len++;
		authority.len = len;
	}
	/* Programs differ in which part of "a@b" and "a\b" is the host. */
	if (authority.len && (memchr(authority.data, '@', authority.len) ||
				     memchr(authority.data, '\\', authority.len)))
		return fail(err, ERR_INVALID, "a user name or a backslash before the host");
	return network_authority_parse(authority, usual, host, port, err);
}

/* ---- lists ---- */

static const char *const mode_names[NETWORK_MODE_COUNT] = { "none", "list", "open" };

const char *network_mode_name(enum network_mode mode)
{
	return (unsigned)mode < NETWORK_MODE_COUNT ? mode_names[mode] : "none";
}

int network_mode_parse(const char *text, enum network_mode *mode, struct error *err)
{
	char shown[64];
	for (int i = 0; i < NETWORK_MODE_COUNT; i++)
		if (!strcmp(text, mode_names[i])) {
			*mode = (enum network_mode)i;
			return 0;
		}
	str_printable(shown, sizeof shown, str_from(text));
	return fail(err, ERR_INVALID, "unknown network mode '%s': none, list or open", shown);
}

int network_list_init(struct network_list *list, struct arena *arena, enum network_mode mode,
	const struct network_defaults *defaults, struct error *err)
{
	static const uint16_t usual[] = { 80, 443 };
	bool has_ports = defaults && defaults->port_count;
	if (has_ports && defaults->port_count > NETWORK_PORTS_MAX)
		return fail(err, ERR_LIMIT, "more than %d ports", NETWORK_PORTS_MAX);
	*list = (struct network_list){ .mode = mode, .arena = arena };
	list->port_count = has_ports ? defaults->port_count : 2;
	memcpy(list->ports, has_ports ? defaults->ports : usual,
		list->port_count * sizeof *list->ports);
	map_init(&list->rules, arena);
	map_init(&list->known, arena);
	for (size_t i = 0; defaults && defaults->hosts && i < defaults->hosts->count; i++)
		map_set(&list->known, str_from(defaults->hosts->items[i]), list);
	return 0;
}

/* The key of an entry: "host", ".host" or "*". */
static int parse_entry(
	struct str entry, char key[NETWORK_HOST_SIZE + 1], uint16_t *port, struct error *err)
{
	struct str name;
	if (memmem(entry.data, entry.len, "://", 3) || memchr(entry.data, '/', entry.len))
		return fail(err, ERR_INVALID, "a host, not a URL or a path, is expected");
	if (split_port(entry, &name, port, err) < 0)
		return -1;
	if (str_is(name, "*")) {
		str_copy(key, NETWORK_HOST_SIZE, "*");
		return 0;
	}
	bool is_domain = str_starts_with(name, "*.");
	if (is_domain)
		name = (struct str){ name.data + 2, name.len - 2 };
	if (name.len && memchr(name.data, '*', name.len))
		return fail(err, ERR_INVALID, "'*' may stand only alone or before the first dot");
	key[0] = '.';
	if (network_normalize(name, key + is_domain, err) < 0)
		return -1;
	if (is_domain && network_host_is_address(key + 1))
		return fail(err, ERR_INVALID, "no name is below an address");
	return 0;
}

int network_list_add(
	struct network_list *list, enum network_effect effect, const char *entry, struct error *err)
{
	char key[NETWORK_HOST_SIZE + 1], shown[128];
	uint16_t port = 0;
	str_printable(shown, sizeof shown, str_from(entry));
	if (list->count == NETWORK_ENTRIES_MAX)
		return fail(err, ERR_LIMIT, "more than %d entries in a list of hosts",
			NETWORK_ENTRIES_MAX);
	if (parse_entry(str_from(entry), key, &port, err) < 0)
		return error_context(err, "the entry '%s' of a list of hosts", shown);
	struct network_rule *rule = arena_alloc(list->arena, sizeof *rule);
	*rule = (struct network_rule){ .text = arena_text(list->arena, entry),
		.port = port,
		.effect = effect,
		.next = map_get(&list->rules, str_from(key)) };
	map_set(&list->rules, str_from(key), rule);
	list->count++;
	return 0;
}

int network_list_bind(
	struct network_list *list, bool has_allow, struct network_list **added, struct error *err)
{
	struct network_list **last = &list->bound;
	size_t count = 0;
	for (; *last; last = &(*last)->bound)
		count++;
	if (count == NETWORK_BOUNDS_MAX)
		return fail(err, ERR_LIMIT, "a list of hosts has more than %d bounds",
			NETWORK_BOUNDS_MAX);
	struct network_list *bound = arena_alloc(list->arena, sizeof *bound);
	/* Without a list of its own it allows what it doesn't deny. */
	if (network_list_init(
		    bound, list->arena, has_allow ? NETWORK_LIST : NETWORK_OPEN, NULL, err) < 0)
		return -1;
	bound->is_bound = true;
	*last = *added = bound;
	return 0;
}

int network_check_entry(enum network_effect effect, const char *entry, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct network_list list;
	return network_list_init(&list, &arena, NETWORK_LIST, NULL, err) < 0 ||
			       network_list_add(&list, effect, entry, err) < 0
		       ? -1
		       : 0;
}

bool network_bounds_close(const network_bounds *bounds)
{
	for (size_t i = 0; i < bounds->count; i++) {
		const struct network_bound *bound = &bounds->items[i];
		if (bound->has_allow && !bound->allow.count)
			return true;
		for (size_t k = 0; k < bound->deny.count; k++)
			if (!strcmp(bound->deny.items[k], "*"))
				return true;
	}
	return false;
}

static int add_all(struct network_list *list, enum network_effect effect, const text_list *entries,
	struct error *err)
{
	for (size_t i = 0; entries && i < entries->count; i++)
		if (network_list_add(list, effect, entries->items[i], err) < 0)
			return -1;
	return 0;
}

int network_list_parse(struct arena *arena, const text_list *allow, const text_list *deny,
	const struct network_defaults *defaults, struct network_list *out, struct error *err)
{
	struct network_list list;
	if (network_list_init(&list, arena, NETWORK_LIST, defaults, err) < 0 ||
		add_all(&list, NETWORK_ALLOW, allow, err) < 0 ||
		add_all(&list, NETWORK_DENY, deny, err) < 0)
		return -1;
	*out = list;
	return 0;
}

/* ---- the decision ---- */

static bool is_below(const char *host, const char *domain)
{
	size_t len = strlen(host), below = strlen(domain);
	return len > below && host[len - below - 1] == '.' && !strcmp(host + len - below, domain);
}

/* Names that only a private network has. */
static bool is_private_name(const char *host)
{
	static const char *const domains[] = { "localhost", "localdomain", "local", "internal",
		"home.arpa" };
	if (!strchr(host, '.'))
		return true;
	for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
		if (is_below(host, domains[i]))
			return true;
	return false;
}

/* Names that every machine has for itself. */
static bool is_local_name(const char *host)
{
	static const char *const names[] = { "localhost", "localhost.localdomain", "localhost4",
		"localhost6", "localhost4.localdomain4", "localhost6.localdomain6", "ip6-localhost",
		"ip6-loopback" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(host, names[i]))
			return true;
	return is_below(host, "localhost");
}

static bool is_open_address(int family, const char *text, const struct network_opened *opened)
{
	union {
		struct sockaddr any;
		struct sockaddr_in ipv4;
		struct sockaddr_in6 ipv6;
	} address = { .any.sa_family = (sa_family_t)family };
	if (inet_pton(family, text,
		    family == AF_INET ? (void *)&address.ipv4.sin_addr
				      : (void *)&address.ipv6.sin6_addr) != 1)
		return false;
	return !address_is_closed(&address.any) ||
	       (opened && address_is_within(&address.any, opened->ranges, opened->range_count));
}

bool network_host_is_closed(const char *host, const struct network_opened *opened)
{
	if (opened && opened->hosts && map_get(opened->hosts, str_from(host)))
		return false;
	if (network_host_is_address(host))
		return !is_open_address(strchr(host, ':') ? AF_INET6 : AF_INET, host, opened);
	return is_local_name(host) && !is_open_address(AF_INET, "127.0.0.1", opened) &&
	       !is_open_address(AF_INET6, "::1", opened);
}

static bool is_default_port(const struct network_list *list, uint16_t port)
{
	for (size_t i = 0; i < list->port_count; i++)
		if (list->ports[i] == port)
			return true;
	return false;
}

struct search {
	const struct network_list *list;
	uint16_t port; /* 0: any */
	const struct network_rule *denied, *allowed, *near;
};

/* A trusted entry first, then one that names the port. */
static bool is_better(const struct network_rule *a, const struct network_rule *b)
{
	if (!b || (a->effect == NETWORK_TRUST) != (b->effect == NETWORK_TRUST))
		return !b || a->effect == NETWORK_TRUST;
	return a->port && !b->port;
}

static void look_at(struct search *search, const struct network_rule *rule)
{
	for (; rule; rule = rule->next) {
		bool is_port = !search->port ? !rule->port || rule->effect != NETWORK_DENY
			       : rule->port
				       ? rule->port == search->port
				       : rule->effect == NETWORK_DENY || search->list->is_bound ||
						 is_default_port(search->list, search->port);
		if (!is_port) {
			if (rule->effect != NETWORK_DENY && !search->near)
				search->near = rule;
		} else if (rule->effect == NETWORK_DENY) {
			search->denied = rule;
		} else if (is_better(rule, search->allowed)) {
			search->allowed = rule;
		}
	}
}

static void look_up(struct search *search, const char *host)
{
	static const struct network_rule open = { .text = "open" };
	const struct map *rules = &search->list->rules;
	const struct network_rule *any = map_get(rules, STR("*"));
	bool is_address = network_host_is_address(host);
	bool is_public = search->list->is_bound || /* the list that is bound decides on those */
			 (!is_address && (!is_private_name(host) ||
						 map_get(&search->list->known, str_from(host))));
	look_at(search, map_get(rules, str_from(host)));
	/* The first character of a host is no dot: a key with one is a domain's. */
	for (const char *dot = is_address ? NULL : strchr(host, '.'); dot;
		dot = strchr(dot + 1, '.'))
		look_at(search, map_get(rules, str_from(dot)));
	if (search->list->mode == NETWORK_OPEN && is_public)
		look_at(search, &open);
	if (is_public) {
		look_at(search, any);
		return;
	}
	for (; any; any = any->next) /* a denied `*` means everything */
		if (any->effect == NETWORK_DENY && (!any->port || any->port == search->port))
			search->denied = any;
}

static const struct network_rule *find_denial(
	const struct network_list *list, const char *host, uint16_t port)
{
	for (; list; list = list->bound) {
		struct search search = { .list = list, .port = port };
		look_up(&search, host);
		if (search.denied)
			return search.denied;
	}
	return NULL;
}

static bool is_within_bounds(const struct network_list *list, const char *host, uint16_t port)
{
	for (list = list->bound; list; list = list->bound) {
		struct search search = { .list = list, .port = port };
		look_up(&search, host);
		if (!search.allowed || search.denied)
			return false;
	}
	return true;
}

static bool is_host(const char *host)
{
	return host[0] && host[0] != '.' && host[0] != '*';
}

struct network_verdict network_decide(
	const struct network_list *list, const char *host, uint16_t port)
{
	struct search search = { .list = list, .port = port };
	if (list->mode == NETWORK_NONE || !port)
		return (struct network_verdict){ .reason = NETWORK_REASON_NONE };
	if (!is_host(host))
		return (struct network_verdict){ .reason = NETWORK_REASON_UNLISTED };
	const struct network_rule *denied = find_denial(list, host, port);
	if (denied)
		return (struct network_verdict){ .reason = NETWORK_REASON_DENIED,
			.rule = denied->text };
	look_up(&search, host);
	if (!search.allowed)
		return (struct network_verdict){ .reason = search.near ? NETWORK_REASON_PORT
								       : NETWORK_REASON_UNLISTED,
			.rule = search.near ? search.near->text : NULL };
	if (!is_within_bounds(list, host, port))
		return (struct network_verdict){ .reason = NETWORK_REASON_BOUND,
			.rule = search.allowed->text };
	return (struct network_verdict){ .is_allowed = true,
		.reason = NETWORK_REASON_LISTED,
		.rule = search.allowed->text,
		.has_named_port = search.allowed->port != 0,
		.is_trusted = search.allowed->effect == NETWORK_TRUST };
}

struct network_verdict network_judge(const struct network_list *list, const char *host,
	uint16_t port, const struct network_opened *opened)
{
	struct network_verdict verdict = network_decide(list, host, port);
	if (verdict.is_allowed && !verdict.is_trusted && network_host_is_closed(host, opened))
		return (struct network_verdict){ .reason = NETWORK_REASON_ADDRESS,
			.rule = verdict.rule };
	return verdict;
}

bool network_is_named(const struct network_list *list, const char *host)
{
	struct search search = { .list = list };
	if (list->mode == NETWORK_NONE || !is_host(host))
		return false;
	look_up(&search, host);
	return search.allowed && !search.denied && is_within_bounds(list, host, 0);
}

const char *network_reason_text(enum network_reason reason)
{
	static const char *const texts[] = {
		[NETWORK_REASON_LISTED] = "may be reached",
		[NETWORK_REASON_DENIED] = "is denied by the list of this sandbox",
		[NETWORK_REASON_UNLISTED] = "isn't a host that may be reached from here",
		[NETWORK_REASON_PORT] = "may not be reached on this port",
		[NETWORK_REASON_NONE] = "can't be reached: this sandbox has no network",
		[NETWORK_REASON_ADDRESS] = "is at an address that isn't public",
		[NETWORK_REASON_BOUND] = "isn't a host that the policy of this sandbox allows",
	};
	return (size_t)reason < sizeof texts / sizeof *texts ? texts[reason] : "is refused";
}
