/* The rules of policies: as text in messages, and read once for all policies that share them. */
#include <arpa/inet.h>
#include "egress/internal.h"

#define RANGES_MAX 256
#define HOSTS_MAX 4096

void address_print(const union address *address, char out[48])
{
	out[0] = '\0';
	if (address->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->ipv4.sin_addr, out, 48);
	else if (address->any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &address->ipv6.sin6_addr, out, 48);
}

bool address_read(const char *text, union address *out)
{
	union address address = { 0 };
	if (inet_pton(AF_INET, text, &address.ipv4.sin_addr) == 1)
		address.any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &address.ipv6.sin6_addr) == 1)
		address.any.sa_family = AF_INET6;
	else
		return false;
	*out = address;
	return true;
}

/* ---- writing ---- */

/* A line end in an entry would be an entry of its own; one that has it is invalid anyway. */
static void write_line(struct buf *out, const char *word, const char *text)
{
	buf_printf(out, "%s ", word);
	for (; *text; text++)
		buf_char(out, *text == '\n' ? '\r' : *text);
	buf_char(out, '\n');
}

static void write_lines(struct buf *out, const char *word, const text_list *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		write_line(out, word, texts->items[i]);
}

void rules_write(const struct egress_rules *rules, struct buf *out)
{
	write_line(out, "mode", network_mode_name(rules->mode));
	for (size_t i = 0; i < rules->port_count; i++)
		buf_printf(out, "port %u\n", rules->ports[i]);
	for (size_t i = 0; i < rules->hosts.count; i++) {
		write_line(out, "host", rules->hosts.items[i].key);
		write_line(out, "at", rules->hosts.items[i].value);
	}
	write_lines(out, "range", &rules->ranges);
	write_lines(out, "allow", &rules->allow);
	write_lines(out, "deny", &rules->deny);
	write_lines(out, "trust", &rules->trust);
	for (size_t i = 0; i < rules->bounds.count; i++) {
		const struct network_bound *bound = &rules->bounds.items[i];
		write_line(out, "bound", bound->has_allow ? "list" : "open");
		write_lines(out, "within", &bound->allow);
		write_lines(out, "without", &bound->deny);
	}
	if (!rules->meter.bytes)
		return;
	buf_printf(out, "meter %llu\n", (unsigned long long)rules->meter.bytes);
	write_lines(out, "metered", &rules->meter.of);
	write_lines(out, "unmetered", &rules->meter.but);
}

/* ---- reading ---- */

struct reader {
	struct rules *rules;
	enum network_mode mode;
	uint16_t ports[NETWORK_PORTS_MAX];
	struct network_defaults defaults;
	text_list hosts;
	const char *host;	    /* that the next `at` is for */
	struct network_list *bound; /* that the next `within` and `without` are for */
};

static int read_mode(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	return network_mode_parse(text, &r->mode, err);
}

static int read_port(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	uint64_t port;
	if (!str_to_u64(str_from(text), &port) || !port || port > UINT16_MAX)
		return fail(err, ERR_INVALID, "invalid port '%s'", text);
	if (r->defaults.port_count == NETWORK_PORTS_MAX)
		return fail(err, ERR_LIMIT, "more than %d ports", NETWORK_PORTS_MAX);
	r->ports[r->defaults.port_count++] = (uint16_t)port;
	return 0;
}

static int read_host(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	char host[HOST_SIZE];
	if (r->hosts.count == HOSTS_MAX)
		return fail(err, ERR_LIMIT, "more than %d hosts with an address", HOSTS_MAX);
	if (network_normalize(str_from(text), host, err) < 0)
		return error_context(err, "the host '%s'", text);
	r->host = arena_text(&r->rules->arena, host);
	vec_push(&r->rules->arena, &r->hosts, r->host);
	return 0;
}

static int read_at(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	union address *address = arena_alloc(&r->rules->arena, sizeof *address);
	if (!r->host || !address_read(text, address))
		return fail(err, ERR_INVALID, "invalid address '%s' of the host '%s'", text,
			r->host ? r->host : "");
	map_set(&r->rules->hosts, str_from(r->host), address);
	r->host = NULL;
	return 0;
}

static int read_range(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	struct rules *rules = r->rules;
	if (rules->range_count == RANGES_MAX)
		return fail(err, ERR_LIMIT, "more than %d address ranges", RANGES_MAX);
	if (!rules->ranges)
		rules->ranges = arena_array(&rules->arena, RANGES_MAX, sizeof *rules->ranges);
	if (address_range_parse(str_from(text), &rules->ranges[rules->range_count], err) < 0)
		return -1;
	rules->range_count++;
	return 0;
}

static int add_entry(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	struct rules *rules = r->rules;
	/* What the list depends on has come: it is written first. */
	if (!rules->list.arena) {
		r->defaults.ports = r->ports;
		r->defaults.hosts = &r->hosts;
		if (network_list_init(&rules->list, &rules->arena, r->mode, &r->defaults, err) < 0)
			return -1;
	}
	return text ? network_list_add(&rules->list, effect, text, err) : 0;
}

static int read_bound(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	if (strcmp(text, "list") != 0 && strcmp(text, "open") != 0)
		return fail(err, ERR_INVALID, "malformed rules of a policy");
	/* The list that is bound must be there. */
	if (add_entry(r, NETWORK_ALLOW, NULL, err) < 0)
		return -1;
	return network_list_bind(&r->rules->list, strcmp(text, "list") == 0, &r->bound, err);
}

static int add_to_bound(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	return r->bound ? network_list_add(r->bound, effect, text, err)
			: fail(err, ERR_INVALID, "malformed rules of a policy");
}

static int read_meter(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	struct network_list *list = &r->rules->metered;
	if (!str_to_u64(str_from(text), &r->rules->meter) || list->arena)
		return fail(err, ERR_INVALID, "malformed rules of a policy");
	if (network_list_init(list, &r->rules->arena, NETWORK_LIST, NULL, err) < 0)
		return -1;
	list->is_bound = true;
	return 0;
}

static int add_metered(
	struct reader *r, enum network_effect effect, const char *text, struct error *err)
{
	return r->rules->metered.arena ? network_list_add(&r->rules->metered, effect, text, err)
				       : fail(err, ERR_INVALID, "malformed rules of a policy");
}

static int read_line(struct reader *r, struct str line, struct error *err)
{
	static const struct {
		const char *word;
		int (*read)(struct reader *r, enum network_effect effect, const char *text,
			struct error *err);
		enum network_effect effect;
	} words[] = { { "allow", add_entry, NETWORK_ALLOW }, { "deny", add_entry, NETWORK_DENY },
		{ "trust", add_entry, NETWORK_TRUST }, { "host", read_host }, { "at", read_at },
		{ "range", read_range }, { "port", read_port }, { "mode", read_mode },
		{ "bound", read_bound }, { "within", add_to_bound, NETWORK_ALLOW },
		{ "without", add_to_bound, NETWORK_DENY }, { "meter", read_meter },
		{ "metered", add_metered, NETWORK_ALLOW },
		{ "unmetered", add_metered, NETWORK_DENY } };
	struct str word, rest;
	if (!str_cut(line, ' ', &word, &rest) || memchr(line.data, '\0', line.len))
		return fail(err, ERR_INVALID, "malformed rules of a policy");
	/* The text of a line is copied where it stays; here it needs its NUL. */
	char *text = arena_bytes(&r->rules->arena, rest.data, rest.len);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_is(word, words[i].word))
			return words[i].read(r, words[i].effect, text, err);
	return fail(err, ERR_INVALID, "malformed rules of a policy");
}

static int read_rules(struct rules *rules, struct str text, struct error *err)
{
	struct reader reader = { .rules = rules };
	struct str line;
	map_init(&rules->hosts, &rules->arena);
	while (str_next(&text, '\n', &line))
		if (read_line(&reader, line, err) < 0)
			return -1;
	if (reader.host)
		return fail(err, ERR_INVALID, "the host '%s' has no address", reader.host);
	return add_entry(&reader, NETWORK_ALLOW, NULL, err);
}

static void free_rules(struct rules *rules)
{
	arena_done(&rules->arena);
	free(rules);
}

int rules_get(struct rules **all, struct str text, struct rules **out, struct error *err)
{
	struct sha256 hash;
	unsigned char key[SHA256_LEN];
	sha256_init(&hash);
	sha256_add(&hash, text.data, text.len);
	sha256_end(&hash, key);
	struct rules *rules = *all;
	while (rules && memcmp(rules->key, key, sizeof key) != 0)
		rules = rules->next;
	if (!rules) {
		rules = xzalloc(sizeof *rules);
		memcpy(rules->key, key, sizeof key);
		if (read_rules(rules, text, err) < 0) {
			free_rules(rules);
			return -1;
		}
		rules->next = *all;
		*all = rules;
	}
	rules->users++;
	*out = rules;
	return 0;
}

void rules_release(struct rules **all, struct rules *rules)
{
	if (!rules || --rules->users)
		return;
	while (*all != rules)
		all = &(*all)->next;
	*all = rules->next;
	free_rules(rules);
}
