/* The cards of agents: public, and made to be cached. */
#include "api/a2a/a2a.h"
#include "base/hash.h"

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

static void print_security(struct json *j)
{
	json_object(j, "securitySchemes");
	json_object(j, "bearer");
	json_object(j, "httpAuthSecurityScheme");
	json_text(j, "scheme", "Bearer");
	json_end(j);
	json_end(j);
	json_end(j);
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

static void print_card(struct json *j, const struct a2a_agent *agent, const char *url)
{
	json_object(j, NULL);
	json_text(j, "name", agent->name);
	json_text(j, "description", agent->description);
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
	json_bool(j, "pushNotifications", false);
	json_bool(j, "extendedAgentCard", false);
	json_end(j);
	print_modes(j, "defaultInputModes", agent->kind == AGENT_COMMAND);
	print_modes(j, "defaultOutputModes", true);
	json_raw(j, "skills", agent->skills);
	if (agent->auth == AGENT_TOKEN)
		print_security(j);
	json_end(j);
}

static int answer_card(struct call *c, const struct a2a_agent *agent, struct error *err)
{
	struct str host = http_header(c->r, "host");
	char hash[2 * SHA256_LEN + 1];
	auto_buf struct buf body = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&body, false);

	if (!agent)
		return fail(err, ERR_NOT_FOUND, "there is no agent of that name");
	if (!host_is_plain(host))
		host = STR("localhost");
	print_card(&j, agent,
		arena_printf(&c->r->arena, "%s://%.*s/a2a/%s", c->r->peer.is_tls ? "https" : "http",
			(int)host.len, host.data, agent->name));
	buf_text(&body, "\n");
	sha256_of(body.data, body.len, hash);
	const char *tag = arena_printf(&c->r->arena, "\"%.32s\"", hash);
	const char *headers = arena_printf(&c->r->arena, CACHED "ETag: %s\r\n", tag);
	if (str_is(http_header(c->r, "if-none-match"), tag))
		call_respond(c, 304, NULL, headers, STR(""));
	else
		call_respond(
			c, 200, "application/json", headers, (struct str){ body.data, body.len });
	return 0;
}

int api_a2a_card(struct call *c, struct error *err)
{
	const struct agents *agents = agents_of(c->api->options.services);

	return answer_card(c, agents_look(agents, str_from(c->id)), err);
}

int api_a2a_default_card(struct call *c, struct error *err)
{
	return answer_card(c, agents_default(agents_of(c->api->options.services)), err);
}
