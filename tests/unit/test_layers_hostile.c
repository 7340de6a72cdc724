/* Trees that a hostile build left: what no layer may hold is refused and named, the rest is made
 * plain, and nothing leads out. */
/* security: packages */
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include "layers_fixture.h"

static void assert_refused(const char *part)
{
	struct layer_draft draft = draft_of("d", NULL);

	assert_fails(
		layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_DENIED, part);
	assert_int_equal(count_layers(), 0);
	home_enter(&home);
	int failed = path_remove_tree(stage.fd, "d", &err);
	home_leave(&home);
	assert_int_equal(failed, 0);
	put_tree("d", "text");
}

static void put_hard_link(const char *from, const char *to)
{
	home_enter(&home);
	int failed = linkat(stage.fd, from, stage.fd, to, 0);
	home_leave(&home);
	assert_int_equal(failed, 0);
}

static void what_is_no_file_directory_or_link_is_refused(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_close int unix_socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	put_tree("d", "text");
	home_enter(&home);
	mkfifoat(stage.fd, "d/tree/lib/pipe", 0600);
	home_leave(&home);
	assert_refused("'lib/pipe' is a fifo");
	/* A second name outside of the draft, also beside one inside. */
	put_hard_link("d/tree/lib/a.py", "outside");
	assert_refused("'lib/a.py' has another name outside of the layer");
	put_hard_link("d/tree/lib/a.py", "d/tree/lib/b.py");
	put_hard_link("d/tree/lib/a.py", "beyond");
	assert_refused("has another name outside of the layer");
	str_format(address.sun_path, sizeof address.sun_path, "%s/sock", root);
	assert_int_equal(bind(unix_socket, (struct sockaddr *)&address, sizeof address), 0);
	if (geteuid() == 0) {
		assert_int_equal(renameat(AT_FDCWD, address.sun_path, stage.fd, "d/tree/sock"), 0);
		assert_refused("'sock' is a socket");
		if (mknodat(stage.fd, "d/tree/null", S_IFCHR | 0666, makedev(0, 0)) == 0)
			assert_refused("'null' is a character device");
		int fd = openat(stage.fd, "d/tree/roots", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		fd_close(&fd);
		if (home.uid != 0)
			assert_refused("'roots' belongs to another user");
	}
	put_file("d/manifest", "mine", 0644);
	assert_refused("'manifest' beside its tree");
}

static void a_file_may_have_several_names_in_one_layer(void **state)
{
	struct layer_draft draft = draft_of("d", NULL);
	layer_damages damages = { 0 };

	put_tree("d", "text");
	put_hard_link("d/tree/lib/a.py", "d/tree/lib/b.py");
	put_hard_link("d/tree/lib/a.py", "d/tree/bin/c.py");
	put_hard_link("d/tree/bin/run", "d/tree/lib/run");
	assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
	assert_whole(draft.id);
	/* One more, elsewhere: through it all three would be changed. */
	home_enter(&home);
	int failed = linkat(store.dir, arena_printf(&arena, "%s/tree/lib/b.py", draft.id), stage.fd,
		"outside", 0);
	home_leave(&home);
	assert_int_equal(failed, 0);
	assert_ok(layer_verify(&store, draft.id, &arena, &damages, &err));
	assert_int_equal(damages.count, 3);
	assert_string_equal(damages.items[0].path, "bin/c.py");
	assert_non_null(strstr(damages.items[0].what, "has another name outside of the layer"));
}

static void links_lead_inside_or_to_where_they_may(void **state)
{
	static const struct {
		const char *kind, *target;
		bool is_allowed;
	} cases[] = {
		{ "python-wheel", "a.py", true },
		{ "python-wheel", "../bin/run", true },
		{ "python-wheel", "./../bin//run", true },
		{ "python-wheel", "..", true },
		{ "python-wheel", "nowhere/x", true },
		{ "python-wheel", "...", true },
		{ "python-wheel", "../..", false },
		{ "python-wheel", "../../../etc/passwd", false },
		{ "python-wheel", "a/../../../x", false },
		{ "python-wheel", "a/../b", false }, /* a may be a link itself */
		{ "python-wheel", "/env/bin/python", true },
		{ "python-wheel", "/usr/bin/python3", true },
		{ "python-wheel", "/usr", true },
		{ "python-wheel", "/usr/../etc/passwd", false },
		{ "python-wheel", "/usrx", false },
		{ "python-wheel", "/etc/passwd", false },
		{ "python-wheel", "/", false },
		{ "python-wheel", "/proc/self/root", false },
		{ "python", "/opt/python/bin/python3.12", true },
		{ "python", "/opt/../etc", false },
		{ "python", "../../x", false },
		{ "node", "/opt/x", false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *path = arena_printf(&arena, "d%zu", i);
		struct layer_draft draft = draft_of(path, NULL);

		draft.kind = cases[i].kind;
		put_tree(path, "text");
		put_link(cases[i].target, arena_printf(&arena, "%s/tree/lib/link", path));
		if (cases[i].is_allowed) {
			assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
			assert_whole(draft.id);
			continue;
		}
		assert_fails(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err),
			ERR_DENIED, "'lib/link' is a link to");
	}
}

static void a_draft_or_tree_that_is_a_link_is_not_followed(void **state)
{
	struct layer_draft draft = draft_of("d", NULL);

	put_tree("real", "text");
	put_link("real", "d");
	assert_fails(
		layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_INVALID, "d");
	put_directory("e");
	put_link("../real/tree", "e/tree");
	draft.path = "e";
	assert_fails(
		layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_INVALID, "tree");
	draft.path = "../x";
	assert_fails(
		layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_DENIED, "x");
	draft.path = "real";
	draft.name = "a b";
	assert_fails(
		layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_INVALID, "a b");
}

static void names_of_any_bytes_come_through(void **state)
{
	static const char *const names[] = { "new\nline", "sp ace", "per%cent", "\xff\xfe", "-rf",
		"\x7f", "..." };
	struct layer_draft draft = draft_of("d", NULL);
	struct manifest manifest = { 0 };

	put_tree("d", "text");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		put_file(arena_printf(&arena, "d/tree/lib/%s", names[i]), "", 0644);
		put_link(names[i], arena_printf(&arena, "d/tree/bin/%s", names[i]));
	}
	assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
	assert_whole(draft.id);
	assert_ok(layer_read(&store, draft.id, &arena, &manifest, &err));
	assert_int_equal(manifest.entries.count, 8 + 14);
}

static void trees_that_are_too_deep_are_refused_and_go(void **state)
{
	struct layer_draft draft = draft_of("d", NULL);

	put_tree("d", "text");
	home_enter(&home);
	int at = openat(stage.fd, "d/tree", O_PATH | O_CLOEXEC);
	for (int i = 0; i < 600; i++) {
		mkdirat(at, "x", 0700);
		int next = openat(at, "x", O_PATH | O_CLOEXEC);
		close(at);
		at = next;
	}
	home_leave(&home);
	close(at);
	assert_fails(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_LIMIT,
		"deeper than");
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	struct layer_draft draft = draft_of("d", NULL);
	char name[201];

	memset(name, 'n', 200);
	name[200] = '\0';
	put_tree("d", "text");
	home_enter(&home);
	int at = openat(stage.fd, "d/tree", O_PATH | O_CLOEXEC);
	for (int i = 0; i < 20; i++) {
		mkdirat(at, name, 0700);
		int next = openat(at, name, O_PATH | O_CLOEXEC);
		close(at);
		at = next;
	}
	home_leave(&home);
	close(at);
	assert_fails(
		layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_LIMIT, "nnn");
}

static void a_file_of_holes_is_refused_before_it_is_read(void **state)
{
	struct layer_draft draft = draft_of("d", NULL);

	put_tree("d", "text");
	put_file("d/tree/holes", "", 0644);
	home_enter(&home);
	int fd = openat(stage.fd, "d/tree/holes", O_WRONLY | O_CLOEXEC);
	int failed = ftruncate(fd, (off_t)1 << 40);
	home_leave(&home);
	fd_close(&fd);
	assert_int_equal(failed, 0);
	assert_fails(
		layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err), ERR_LIMIT, "holes");
}

static void directories_without_rights_are_opened(void **state)
{
	struct layer_draft draft = draft_of("d", NULL);

	put_tree("d", "text");
	set_mode("d/tree/lib/empty", 0000);
	set_mode("d/tree/lib", 0000);
	set_mode("d/tree/bin", 0444);
	set_mode("d/tree", 0000);
	assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
	assert_whole(draft.id);
	assert_string_equal(draft.id, publish_one("d2", "text", NULL));
}

static bool has_attributes(void)
{
	bool is_done = fsetxattr(stage.fd, "user.test", "1", 1, 0) == 0;

	if (is_done)
		fremovexattr(stage.fd, "user.test");
	return is_done;
}

static void set_attribute(int dir, const char *path, const char *name)
{
	home_enter(&home);
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	int failed = fsetxattr(fd, name, "y", 1, 0);
	home_leave(&home);
	fd_close(&fd);
	assert_int_equal(failed, 0);
}

static void attributes_are_dropped_and_those_of_overlayfs_refused(void **state)
{
	layer_damages damages = { 0 };

	if (!has_attributes())
		skip();
	put_tree("d", "text");
	set_attribute(stage.fd, "d/tree/lib", "user.overlay.opaque");
	assert_refused("'lib' has a mark of overlayfs");
	set_attribute(stage.fd, "d/tree/lib/a.py", "user.overlay.metacopy");
	assert_refused("'lib/a.py' has a mark of overlayfs");
	set_attribute(stage.fd, "d/tree", "user.overlay.opaque");
	assert_refused("'.' has a mark of overlayfs");
	put_tree("e", "text");
	set_attribute(stage.fd, "e/tree/lib", "user.mine");
	set_attribute(stage.fd, "e/tree/lib/a.py", "user.mine");
	struct layer_draft draft = draft_of("e", NULL);
	assert_ok(layers_publish(&store, stage.fd, &draft, 1, NULL, NULL, &err));
	assert_whole(draft.id);
	set_attribute(store.dir, arena_printf(&arena, "%s/tree/lib/a.py", draft.id), "user.late");
	assert_ok(layer_verify(&store, draft.id, &arena, &damages, &err));
	assert_int_equal(damages.count, 1);
	assert_string_equal(damages.items[0].path, "lib/a.py");
}

int main(void)
{
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		test(what_is_no_file_directory_or_link_is_refused),
		test(a_file_may_have_several_names_in_one_layer),
		test(links_lead_inside_or_to_where_they_may),
		test(a_draft_or_tree_that_is_a_link_is_not_followed),
		test(names_of_any_bytes_come_through),
		test(trees_that_are_too_deep_are_refused_and_go),
		test(a_path_that_is_too_long_is_refused),
		test(a_file_of_holes_is_refused_before_it_is_read),
		test(directories_without_rights_are_opened),
		test(attributes_are_dropped_and_those_of_overlayfs_refused),
	};

	return cmocka_run_group_tests_name("layers_hostile", tests, NULL, NULL);
}
