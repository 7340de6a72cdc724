/* Hints name commands at the command line and routes over REST. */
#include <string.h>
#include "base/str.h"
#include "doors/call.h"
#include "model/hint.h"
#include "unit.h"

static void commands_become_routes(void **state)
{
	static const struct {
		const char *hint, *rest;
	} cases[] = {
		{ "carrel ls lists them", "GET /v1/workspaces lists them" },
		{ "carrel snapshot ls lists their ids", "GET /v1/snapshots lists their ids" },
		{ "carrel snapshot ls demo lists them",
			"GET /v1/workspaces/demo/snapshots lists them" },
		{ "carrel snapshot ls and carrel ls list what there is",
			"GET /v1/snapshots and GET /v1/workspaces list what there is" },
		{ "carrel repair demo", "POST /v1/workspaces/demo/repair" },
		{ "start a server there first: carrel exec -d",
			"start a server there first: POST /v1/workspaces/{id}/exec with "
			"\"background\"" },
		{ "carrel info a -o json shows its settings; carrel policy explain -s FILE -- CMD "
		  "shows which rule decides each part",
			"GET /v1/workspaces/a shows its settings; 'trail' shows which rule decides "
			"each part" },
		{ "carrel tool show slug lists its versions",
			"GET /v1/tools/slug/versions lists its versions" },
		{ "carrel deploy FILE stores a package", "PUT /v1/packages/{id} stores a package" },
		{ "carrel deployment show web says why", "GET /v1/deployments/web says why" },
		/* Neither a command that has no route, nor other words. */
		{ "carrel env verify --repair x", "carrel env verify --repair x" },
		{ "carrel lsx", "carrel lsx" },
		{ "this carrel reads version 1", "this carrel reads version 1" },
		{ "carrel repair", "carrel repair" },
		{ "", "" },
	};
	char out[ERROR_HINT_SIZE];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		hint_for_rest(cases[i].hint, out);
		assert_string_equal(out, cases[i].rest);
	}
}

static void a_long_hint_is_cut(void **state)
{
	char hint[ERROR_HINT_SIZE] = "carrel repair ", out[ERROR_HINT_SIZE];

	memset(hint + strlen(hint), 'x', sizeof hint - 1 - strlen(hint));
	hint_for_rest(hint, out);
	assert_true(strlen(out) < sizeof out);
	assert_true(str_starts_with(str_from(out), "POST /v1/workspaces/xxx"));
}

/* The route of a row: its method and path, which lead to a route. */
static void routes_of_hints_exist(void **state)
{
	for (size_t i = 0; i < hint_row_count; i++) {
		static struct http_request r;
		struct str rest = str_from(hint_rows[i].route), method, path;
		struct call c = { .r = &r, .door = &rest_door };
		struct error err = { 0 };
		const char *allow;

		str_cut(rest, ' ', &method, &path);
		str_cut(path, ' ', &path, &rest);
		str_cut(path, '?', &path, &rest);
		if (!str_starts_with(path, "/v1/"))
			continue;
		r = (struct http_request){ .method = method, .path = path };
		arena_init(&r.arena);
		/* {id} and % are one segment; % alone isn't encoded properly. */
		int status = route_find(&c, &allow, &err);
		if (status && status != 400)
			fail_msg("%s leads nowhere: %s", hint_rows[i].route, err.text);
		arena_done(&r.arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_become_routes),
		cmocka_unit_test(a_long_hint_is_cut),
		cmocka_unit_test(routes_of_hints_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
