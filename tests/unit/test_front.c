/* What is asked of a request by TCP: names, origins, and the clients of proxies. */
/* security: doors */
#include "doors/front.h"

#include "arena_fixture.h"

static struct front front;

static int open_it(void **state)
{
	static const char *hosts[] = { "desk.example", "192.0.2.9" };
	static const char *origins[] = { "https://app.example" };
	static const char *proxies[] = { "10.0.0.0/8", "::1" };
	static struct text_pair subjects[] = { { "CN=ci,O=A Lab", "user" } };
	const struct serve_settings settings = { .hosts = { hosts, 2, 2 },
		.origins = { origins, 1, 1 },
		.proxies = { proxies, 2, 2 },
		.subjects = { subjects, 1, 1 },
		.connections = 7 };
	struct error err;
	return set_up(state) || front_init(&front, &settings, &err);
}

static int close_it(void **state)
{
	front_done(&front);
	return tear_down(state);
}

static void names_of_the_daemon(void **state)
{
	static const struct {
		const char *host;
		bool is_known;
	} rows[] = { { "desk.example", true }, { "DESK.example.:80", true },
		{ "192.0.2.9:443", true }, { "localhost", true }, { "10.1.1.1", true },
		{ "[::ffff:10.1.1.1]:7070", true }, { "10.1.1.2", false },
		{ "a.desk.example", false }, { "desk.example.evil.example", false },
		{ "desk.example@evil.example", false }, { "", false }, { "[::1]", false },
		{ "desk.example,evil.example", false }, { "localhost.evil.example", false } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (front_knows_host(&front, str_from(rows[i].host), "10.1.1.1") !=
			rows[i].is_known)
			fail_msg("'%s'", rows[i].host);
}

static void origins_are_compared_whole(void **state)
{
	assert_true(front_allows_origin(&front, STR("https://app.example")));
	assert_false(front_allows_origin(&front, STR("https://app.example:444")));
	assert_false(front_allows_origin(&front, STR("http://app.example")));
	assert_false(front_allows_origin(&front, STR("https://app.example.evil.example")));
	assert_false(front_allows_origin(&front, STR("null")));
	assert_true(serve_origin_is_valid("http://localhost:3000"));
	assert_false(serve_origin_is_valid("https://App.example"));
	assert_false(serve_origin_is_valid("https://app.example/"));
	assert_false(serve_origin_is_valid("https://a@app.example"));
	assert_false(serve_origin_is_valid("*"));
}

static void only_listed_proxies_are_believed(void **state)
{
	static const struct {
		const char *from, *list, *client;
	} rows[] = { { "10.0.0.1", "192.0.2.1", "192.0.2.1" },
		{ "10.0.0.1", "198.51.100.1, 192.0.2.1:4711", "192.0.2.1" },
		{ "10.0.0.1", "198.51.100.1 , 10.9.9.9", "198.51.100.1" },
		{ "::1", "[2001:db8::7]:80", "2001:db8::7" },
		{ "::1", "::ffff:192.0.2.3", "192.0.2.3" }, { "10.0.0.1", "", "10.0.0.1" },
		{ "10.0.0.1", "x, ", "10.0.0.1" },
		{ "10.0.0.1", "198.51.100.1, unknown", "10.0.0.1" },
		{ "10.0.0.1", "unknown, 10.2.2.2", "10.2.2.2" },
		{ "10.0.0.1", "10.2.2.2", "10.2.2.2" },
		{ "192.0.2.5", "198.51.100.1", "192.0.2.5" } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(
			front_client(&front, rows[i].from, str_from(rows[i].list), &arena),
			rows[i].client);
	assert_string_equal(
		front_client(&front, "10.0.0.1", (struct str){ 0 }, &arena), "10.0.0.1");
}

static struct http_request request_of(const char *path, const char *query)
{
	struct http_request r = {
		.method = STR("GET"), .path = str_from(path), .query = str_from(query)
	};
	arena_init(&r.arena);
	return r;
}

static void tokens_in_urls_are_found(void **state)
{
	static const struct {
		const char *path, *query;
		bool is_found;
	} rows[] = { { "/v1/workspaces", "token=x", true }, { "/v1/workspaces", "a&TOKEN", true },
		{ "/v1/execs/x/output", "a=b&access_token=x", true },
		{ "/v1/workspaces", "%74oken=x", true }, { "/v1/workspaces", "tokens=x", false },
		{ "/v1/workspaces", "a=token", false },
		{ "/v1/workspaces/w/files/ports/8000/x", "token=x", true },
		{ "/v1/workspaces/w/ports", "token=x", true },
		{ "/v1/workspaces/w/ports/8000/x", "token=x", false } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct http_request r = request_of(rows[i].path, rows[i].query);
		if (front_has_token_in_url(&r) != rows[i].is_found)
			fail_msg("%s?%s", rows[i].path, rows[i].query);
		arena_done(&r.arena);
	}
}

static void add(struct http_request *r, const char *name, const char *value)
{
	if (value)
		vec_push(&r->arena, &r->headers,
			(struct http_header){ str_from(name), str_from(value) });
}

static void requests_of_pages_are_told_from_others(void **state)
{
	static const struct {
		const char *site, *referer, *origin;
		bool is_of_page;
	} rows[] = { { NULL, NULL, NULL, false }, { "none", NULL, NULL, false },
		{ "same-origin", NULL, NULL, true }, { "same-site", NULL, NULL, true },
		{ "cross-site", NULL, NULL, true }, { "?", NULL, NULL, true },
		{ NULL, "https://desk.example/v1/workspaces/w/ports/8000/", NULL, true },
		/* This one is checked by the list. */
		{ "cross-site", NULL, "https://app.example", false } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct http_request r = request_of("/v1/workspaces", "");
		add(&r, "sec-fetch-site", rows[i].site);
		add(&r, "referer", rows[i].referer);
		add(&r, "origin", rows[i].origin);
		if (front_is_of_page(&r) != rows[i].is_of_page)
			fail_msg("row %zu", i);
		arena_done(&r.arena);
	}
}

static void a_proxy_is_believed_by_all_its_headers(void **state)
{
	static const char *const from[] = { "10.0.0.1", "192.0.2.5" };
	for (size_t i = 0; i < 2; i++) {
		struct http_request r = request_of("/v1/workspaces", "");
		struct error err;
		r.peer = (struct http_peer){
			.kind = HTTP_PEER_TCP, .address = from[i], .local = "10.1.1.1"
		};
		add(&r, "host", "localhost");
		add(&r, "x-forwarded-for", "198.51.100.1");
		add(&r, "x-forwarded-for", "");
		add(&r, "x-forwarded-for", "192.0.2.1");
		add(&r, "x-forwarded-proto", "https");
		add(&r, "x-forwarded-host", "desk.example:8443");
		assert_int_equal(front_check(&front, &r, &err), 0);
		assert_string_equal(r.peer.address, i ? from[i] : "192.0.2.1");
		assert_int_equal(r.peer.is_tls, i == 0);
		assert_true(i ? !r.peer.host.data : str_is(r.peer.host, "desk.example:8443"));
		arena_done(&r.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_of_the_daemon, open_it, close_it),
		cmocka_unit_test_setup_teardown(origins_are_compared_whole, open_it, close_it),
		cmocka_unit_test_setup_teardown(
			only_listed_proxies_are_believed, open_it, close_it),
		cmocka_unit_test_setup_teardown(tokens_in_urls_are_found, open_it, close_it),
		cmocka_unit_test_setup_teardown(
			requests_of_pages_are_told_from_others, open_it, close_it),
		cmocka_unit_test_setup_teardown(
			a_proxy_is_believed_by_all_its_headers, open_it, close_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
