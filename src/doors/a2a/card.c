/* The cards of agents: public, and made to be cached. */
#include "base/clock.h"
#include "base/hash.h"
#include "doors/a2a/a2a.h"
#include "doors/authenticate.h"

#define CACHED "Cache-Control: public, max-age=300\r\nVary: Host\r\n"

static bool host_is_plain(struct str host)
{
	for (size_t i = 0; i < host.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_",
			    host.data[i]))
			return false;
	return host.len;
}

static void print_interface(
	struct json *j, const char *url, const char *binding, const char *version)
{
	json_object(j, NULL);
	json_text(j, "url", url);
	json_text(j, "protocolBinding", binding);
	json_text(j, "protocolVersion", version);
	json_end(j);
}

static void print_modes(struct json *j, const char *key, bool has_data)
{
	json_array(j, key);
	json_text(j, NULL, "text/plain");
	if (has_data)
		json_text(j, NULL, "application/json");
	json_end(j);
}

/* is_required: by every operation, and not by the extended card alone. */
static void print_security(struct json *j, bool is_required)
{
	json_object(j, "securitySchemes");
	json_object(j, "bearer");
	json_object(j, "httpAuthSecurityScheme");
	json_text(j, "scheme", "Bearer");
	json_end(j);
	json_end(j);
	json_end(j);
	if (!is_required)
		return;
	json_array(j, "securityRequirements");
	json_object(j, NULL);
	json_object(j, "schemes");
	json_object(j, "bearer");
	json_array(j, "list");
	json_end(j);
	json_end(j);
	json_end(j);
	json_end(j);
	json_end(j);
}

/* Both lists are JSON. */
static void print_skills(struct json *j, const char *skills, const char *more, struct arena *arena)
{
	bool has_both = skills[1] != ']' && more && more[1] != ']';
	if (!more || more[1] == ']')
		json_raw(j, "skills", skills);
	else if (!has_both)
		json_raw(j, "skills", more);
	else
		json_raw(j, "skills",
			arena_printf(arena, "%.*s,%s", (int)strlen(skills) - 1, skills, more + 1));
}

/* is_extended: for a client that has shown who it is. */
static void print_card(struct json *j, const char *key, const struct a2a_agent *agent,
	const char *url, bool is_extended, struct arena *arena)
{
	const struct agent_extended *extended = is_extended ? &agent->extended : NULL;
	json_object(j, key);
	json_text(j, "name", agent->name);
	json_text(j, "description",
		extended && extended->description ? extended->description : agent->description);
	json_text(j, "version", agent->version);
	json_array(j, "supportedInterfaces");
	print_interface(j, url, "JSONRPC", "1.0");
	print_interface(j, url, "HTTP+JSON", "1.0");
	print_interface(j, url, "JSONRPC", "0.3");
	json_end(j);
	/* For clients of 0.3. */
	json_text(j, "url", url);
	json_text(j, "preferredTransport", "JSONRPC");
	json_text(j, "protocolVersion", "0.3.0");
	json_object(j, "capabilities");
	json_bool(j, "streaming", true);
	json_bool(j, "pushNotifications", a2a_has_push(agent));
	json_bool(j, "extendedAgentCard", agent->has_extended);
	json_end(j);
	if (agent->has_extended) /* in 0.3 */
		json_bool(j, "supportsAuthenticatedExtendedCard", true);
	print_modes(j, "defaultInputModes", agent->kind == AGENT_COMMAND);
	print_modes(j, "defaultOutputModes", true);
	print_skills(j, agent->skills, extended ? extended->skills : NULL, arena);
	if (agent->auth == AGENT_TOKEN)
		print_security(j, true);
	else if (agent->has_extended)
		print_security(j, false);
	json_end(j);
}

static const char *url_of(struct call *c, const struct a2a_agent *agent)
{
	struct str host = http_header(c->r, "host");
	if (!host_is_plain(host))
		host = STR("localhost");
	return arena_printf(&c->r->arena, "%s://%.*s/a2a/%s", c->r->peer.is_tls ? "https" : "http",
		(int)host.len, host.data, agent->name);
}

/* A date has no parts of a second: of two cards of one second, the earlier one is dated at its
 * beginning and the later one at its end. So an equal date means an equal card. */
struct card_date {
	char text[40];
	bool is_exact; /* no earlier card has had it */
};

static struct card_date date_of(const struct a2a_agent *agent)
{
	int64_t changed_s = (agent->changed_ms + 999) / 1000, now_s = clock_now_ms() / 1000;
	struct card_date date = { .is_exact = changed_s <= now_s };
	/* A date may not be later than that of the answer. */
	clock_format_http(date.text, (date.is_exact ? changed_s : now_s) * 1000);
	return date;
}

/* The tag decides alone where a client sends both (RFC 9110, 13.2.2). */
static bool is_unchanged(const struct call *c, const char *tag, const struct card_date *date)
{
	struct str known = http_header(c->r, "if-none-match");
	if (known.data)
		return str_is(known, tag);
	return date->is_exact && str_is(http_header(c->r, "if-modified-since"), date->text);
}

static int answer_card(struct call *c, const struct a2a_agent *agent)
{
	const struct card_date date = date_of(agent);
	char hash[2 * SHA256_LEN + 1];
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);
	print_card(&j, NULL, agent, url_of(c, agent), false, &c->r->arena);
	buf_text(&body, "\n");
	sha256_of(body.data, body.len, hash);
	const char *tag = arena_printf(&c->r->arena, "\"%.32s\"", hash);
	const char *headers = arena_printf(
		&c->r->arena, CACHED "ETag: %s\r\nLast-Modified: %s\r\n", tag, date.text);
	if (is_unchanged(c, tag, &date))
		call_respond(c, 304, NULL, headers, STR(""));
	else
		call_respond(
			c, 200, "application/json", headers, (struct str){ body.data, body.len });
	return 0;
}

int a2a_card(struct call *c, struct error *err)
{
	const struct a2a_agent *agent =
		agents_look(agents_of(c->api->options.services), str_from(c->id));
	return agent ? answer_card(c, agent) : agents_missing(c->id, err);
}

int a2a_default_card(struct call *c, struct error *err)
{
	const struct a2a_agent *agent = agents_default(agents_of(c->api->options.services));
	return agent ? answer_card(c, agent)
		     : fail_hint(err, ERR_NOT_FOUND, "carrel agent ls lists agents",
			       "there is no default agent");
}

/* ---- the extended card ---- */

/* An agent without authentication has clients without a name: they show one for this. */
static int find_reader(struct a2a *a, const struct request **request, struct error *err)
{
	struct call *c = a->call;
	const struct principal *principal;
	*request = c->request;
	if (!access_is_client(*request, a->name))
		return 0;
	if (authenticate_credential(c->api, c->r, &principal, err))
		return -1;
	*request = access_request(principal, A2A_DOOR, access_id(c->request), &c->r->arena);
	return 0;
}

static bool has_credential(const struct http_request *r)
{
	return http_header(r, "authorization").data || r->peer.subject;
}

void a2a_extended_card(struct a2a *a)
{
	const struct request *request;
	const struct a2a_agent *agent;
	const char *key;
	struct error err;
	if (!a->agent->has_extended) {
		a2a_fail(a, A2A_NO_EXTENDED_CARD, "this agent has no extended card");
		return;
	}
	if (access_is_client(a->call->request, a->name) && !has_credential(a->call->r)) {
		a2a_fail(a, A2A_NO_EXTENDED_CARD,
			"the extended card of this agent is for clients with a token alone");
		return;
	}
	if (find_reader(a, &request, &err) ||
		agents_get(request, a->agents, a->name, &agent, &err)) {
		call_problem(a->call, &err);
		return;
	}
	struct json *j = a2a_begin(a, &key);
	print_card(j, key, agent, url_of(a->call, agent), true, &a->call->r->arena);
	a2a_send(a);
}
