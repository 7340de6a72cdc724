/* What has to be shown so that a program finds a path of the host. */
#include <string.h>
#include "cli/daemon/diagnose.h"
#include "unit.h"

struct fixture {
	struct arena arena;
	struct plan plan;
};

static int setup(void **state)
{
	static struct fixture f;
	f = (struct fixture){ 0 };
	arena_init(&f.arena);
	static const char *const mounts[] = { "/usr", "/etc/fonts", "/var/lib/texmf",
		"/workspace" };
	for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++)
		vec_push(&f.arena, &f.plan.mounts, (struct plan_mount){ .target = mounts[i] });
	vec_push(&f.arena, &f.plan.nodes, (struct plan_node){ NODE_DIRECTORY, "/etc", NULL, 0755 });
	vec_push(&f.arena, &f.plan.nodes, (struct plan_node){ NODE_FILE, "/etc/hosts", "", 0644 });
	vec_push(&f.arena, &f.plan.nodes, (struct plan_node){ NODE_LINK, "/bin", "usr/bin", 0 });
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	arena_done(&((struct fixture *)*state)->arena);
	return 0;
}

static void what_is_shown_is_not_missed(void **state)
{
	struct fixture *f = *state;
	static const char *const shown[] = { "/usr/bin/ls", "/usr", "/bin/ls", "/etc", "/etc/hosts",
		"/etc/fonts/fonts.conf", "/var", "/var/lib", "/workspace/a", "/" };
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
		assert_null(missed_entry(&f->plan, shown[i], &f->arena));
}

static void an_entry_is_what_a_package_owns_whole(void **state)
{
	struct fixture *f = *state;
	static const char *const cases[][2] = { { "/etc/php/8.2/php.ini", "/etc/php" },
		{ "/etc/debian_version", "/etc/debian_version" },
		{ "/opt/tool/bin/x", "/opt/tool" }, { "/opt", "/opt" },
		{ "/var/lib/dpkg/info/a.list", "/var/lib/dpkg" },
		{ "/var/spool/mail/x", "/var/spool/mail" }, { "/etc/fontsy", "/etc/fontsy" },
		{ "/home/alice/.config/x", "/home/alice/.config/x" } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *entry = missed_entry(&f->plan, cases[i][0], &f->arena);
		assert_non_null(entry);
		assert_string_equal(entry, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_shown_is_not_missed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_entry_is_what_a_package_owns_whole, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
