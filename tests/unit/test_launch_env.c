/* Environments and builds for core: an upper that stays, what is in use is held, builds are our own
 * program's and end when they are told to. */
/* security: daemon */
#include "envs/store.h"
#include <sys/xattr.h>
#include "trees/layers/stage.h"
#include "launch_fixture.h"

static struct error err;
#define assert_ok(call)                                                                            \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s:%d: %s", __FILE__, __LINE__, err.text);                       \
	} while (0)

/* ---- an environment of one layer, whose file `who` says who it is ---- */

static void put_environment(struct fixture *f, const char *name, const char *who)
{
	struct env_store envs;
	struct layer_stage stage;
	assert_ok(env_store_open(&f->home, &f->arena, &envs, &err));
	assert_ok(layer_stage_make(&envs.layers, &f->arena, &stage, &err));
	home_enter(&f->home);
	assert_int_equal(mkdirat(stage.fd, "d", 0700), 0);
	assert_int_equal(mkdirat(stage.fd, "d/tree", 0755), 0);
	int fd = openat(stage.fd, "d/tree/who", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(fd_write_full(fd, who, strlen(who)), strlen(who));
	close(fd);
	home_leave(&f->home);
	struct layer_draft draft = {
		.path = "d", .kind = "python-wheel", .name = "a", .version = "1"
	};
	assert_ok(layers_publish(&envs.layers, stage.fd, &draft, 1, NULL, NULL, &err));
	struct env_meta meta = { .name = name,
		.package_id = "agent",
		.requirements_sha256 =
			"a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9",
		.created_at = "2026-01-01T00:00:00.000Z",
		.last_used_at = "2026-01-01T00:00:00.000Z",
		.python_version = "3.11.2",
		.python = "/bin/sh",
		.fingerprint = "f" };
	vec_push(&f->arena, &meta.layers, arena_text(&f->arena, draft.id));
	struct env_files files = { STR("a==1\n"), STR("a==1\n"), STR("log\n") };
	assert_ok(env_write(&envs, &meta, &files, &err));
	assert_ok(layer_stage_done(&envs.layers, &stage, &err));
	env_store_done(&envs);
}

static int remove_environment(struct fixture *f, const char *name)
{
	struct env_store envs;
	assert_ok(env_store_open(&f->home, &f->arena, &envs, &err));
	int failed = env_remove(&envs, name, false, &err);
	env_store_done(&envs);
	return failed;
}

#define ENVIRONMENT "agent_0123abcd"

/* Asks as core does; fd: the environment's lock. */
static uint64_t ask_with_environment(
	struct fixture *f, const char *id, const struct env_meta *meta, int fd)
{
	struct launch_message head = { .type = LAUNCH_START };
	const char *strings[LAUNCH_STRINGS_MAX] = { meta->name, "python", meta->python,
		meta->python_prefix ? meta->python_prefix : "" };
	size_t count = 4;
	for (size_t i = 0; i < meta->editables.count; i++)
		strings[count++] = meta->editables.items[i];
	strings[count++] = "";
	for (size_t i = 0; i < meta->layers.count; i++)
		strings[count++] = meta->layers.items[i];
	strings[count++] = "";
	strings[count++] = ""; /* no tools */
	head.value = 1;
	str_copy(head.id, sizeof head.id, id);
	return say_full(f, &head, strings, count, &fd, 1);
}

static int use_environment(struct fixture *f, struct env_meta *meta)
{
	struct env_store envs;
	int fd;
	assert_ok(env_store_open(&f->home, &f->arena, &envs, &err));
	assert_ok(env_use(&envs, ENVIRONMENT, &f->arena, meta, &fd, &err));
	env_store_done(&envs);
	return fd;
}

static int start_with_environment(struct fixture *f, const char *id)
{
	struct env_meta meta;
	auto_close int fd = use_environment(f, &meta);
	hear_answer(f, ask_with_environment(f, id, &meta, fd), LAUNCH_STARTED);
	return connect_to_init(f, id);
}

static void what_is_changed_in_an_environment_stays_with_its_workspace(void **state)
{
	struct fixture *f = *state;
	const char *one = make_workspace(f), *two = make_workspace(f);
	char text[256];
	put_environment(f, ENVIRONMENT, "layer\n");
	auto_close int first = start_with_environment(f, one);
	auto_close int second = start_with_environment(f, two);
	assert_int_equal(sh(first, "cat /env/who; echo mine >/env/who; echo new >/env/new", text,
				 sizeof text),
		0);
	assert_string_equal(text, "layer\n");
	assert_int_equal(sh(second, "cat /env/who; ls /env", text, sizeof text), 0);
	assert_string_equal(text, "layer\nwho\n");
	end_sandbox(f, one);
	auto_close int again = start_with_environment(f, one);
	assert_int_equal(sh(again, "cat /env/who /env/new", text, sizeof text), 0);
	assert_string_equal(text, "mine\nnew\n");
	struct stat st;
	assert_int_equal(
		stat(arena_printf(&f->arena, "%s/home/workspaces/%s/env/upper/new", f->area, one),
			&st),
		0);
	assert_int_equal(st.st_uid, f->home.uid);
}

static void freeze(struct fixture *f, const char *layer, const char *part, const char *text)
{
	make_directory(f, arena_printf(&f->arena, "layers/%s/%s", layer, part));
	const char *path =
		arena_printf(&f->arena, "%s/home/layers/%s/%s/who", f->area, layer, part);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchown(fd, f->home.uid, f->home.gid), 0);
}

#define UPPER_LAYER "snap-0123456789abcdefghij"
#define LOWER_LAYER "snap-1123456789abcdefghij"

/* Layers below a workspace and its environment: the uppers have what was changed. */
static void a_workspace_can_have_layers(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	struct launch_message head = { .type = LAUNCH_START, .value = 2 };
	struct env_meta meta;
	struct stat st;
	char text[256];
	put_environment(f, ENVIRONMENT, "layer\n");
	auto_close int fd = use_environment(f, &meta);
	const char *strings[] = { "", "", "", "", "", UPPER_LAYER, LOWER_LAYER, "", "", meta.name,
		"python", meta.python, "", "", UPPER_LAYER, LOWER_LAYER, meta.layers.items[0], "",
		"" };
	const size_t count = sizeof strings / sizeof *strings;
	str_copy(head.id, sizeof head.id, id);
	freeze(f, LOWER_LAYER, "workspace", "lower\n");
	hear_answer(f, say_full(f, &head, strings, count, &fd, 1), LAUNCH_FAILED);
	freeze(f, UPPER_LAYER, "env", "installed\n"); /* nothing of /workspace */
	hear_answer(f, say_full(f, &head, strings, count, &fd, 1), LAUNCH_STARTED);
	auto_close int init = connect_to_init(f, id);
	assert_int_equal(sh(init, "cat /workspace/who /env/who; echo mine >/workspace/who; ls -A",
				 text, sizeof text),
		0);
	assert_string_equal(text, "lower\ninstalled\nwho\n");
	end_sandbox(f, id);
	assert_int_equal(
		stat(arena_printf(&f->arena, "%s/home/workspaces/%s/upper/who", f->area, id), &st),
		0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_uid, f->home.uid);
}

/* The marks that a command sets are ordinary attributes of its own files. */
static void no_command_sets_marks_of_overlays(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	struct launch_message head = { .type = LAUNCH_START };
	char text[256];
	str_copy(head.id, sizeof head.id, id);
	hear_answer(f, say_full(f, &head, NULL, 0, NULL, 0), LAUNCH_STARTED);
	auto_close int init = connect_to_init(f, id);
	assert_int_equal(sh(init,
				 "mkdir d; python3 -c 'import os;"
				 "os.setxattr(\"d\", \"user.overlay.opaque\", b\"y\")' 2>&1 |"
				 " tail -n 1",
				 text, sizeof text),
		0);
	end_sandbox(f, id);
	const char *path = arena_printf(&f->arena, "%s/home/workspaces/%s/upper/d", f->area, id);
	assert_int_equal(getxattr(path, "user.overlay.opaque", text, sizeof text), -1);
}

static void an_environment_is_held_while_a_sandbox_uses_it(void **state)
{
	struct fixture *f = *state;
	const char *one = make_workspace(f), *two = make_workspace(f);
	char text[256];
	put_environment(f, ENVIRONMENT, "old\n");
	auto_close int first = start_with_environment(f, one);
	assert_int_equal(remove_environment(f, ENVIRONMENT), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	/* Replaced meanwhile: who has the old one keeps it, who comes gets the new one. */
	put_environment(f, ENVIRONMENT, "new\n");
	auto_close int second = start_with_environment(f, two);
	assert_int_equal(sh(first, "cat /env/who", text, sizeof text), 0);
	assert_string_equal(text, "old\n");
	assert_int_equal(sh(second, "cat /env/who", text, sizeof text), 0);
	assert_string_equal(text, "new\n");
	end_sandbox(f, one);
	assert_int_equal(remove_environment(f, ENVIRONMENT), -1);
	end_sandbox(f, two);
	assert_ok(remove_environment(f, ENVIRONMENT));
}

/* Neither what lies in meta.json nor who holds its locks is anything to the launcher. */
static void the_launcher_neither_reads_an_environment_nor_waits_for_it(void **state)
{
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	const char *path =
		arena_printf(&f->arena, "%s/home/envs/" ENVIRONMENT "/meta.json", f->area);
	struct env_meta meta;
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char text[64];
	put_environment(f, ENVIRONMENT, "layer\n");
	auto_close int fd = use_environment(f, &meta);
	auto_close int other = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(other, 0), 0);
	assert_int_equal(write(other, "[[[[", 4), 4);
	close(take_fd(&fd));
	assert_int_equal(fcntl(other, F_OFD_SETLK, &all), 0);
	hear_answer(f, ask_with_environment(f, id, &meta, other), LAUNCH_STARTED);
	auto_close int init = connect_to_init(f, id);
	assert_int_equal(sh(init, "cat /env/who", text, sizeof text), 0);
	assert_string_equal(text, "layer\n");
}

static void what_core_says_of_an_environment_is_checked(void **state)
{
	static const char *missing =
		"a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9";
	struct fixture *f = *state;
	const char *id = make_workspace(f);
	struct env_meta meta, changed;
	put_environment(f, ENVIRONMENT, "layer\n");
	auto_close int fd = use_environment(f, &meta);
	auto_close int foreign = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
	auto_close int device = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		int wrong = i ? foreign : device;
		if (i && f->home.uid == 0)
			continue;
		hear_answer(f, ask_with_environment(f, id, &meta, wrong), LAUNCH_FAILED);
		assert_int_equal(f->packet.head.error_code, ERR_DENIED);
	}
	changed = meta;
	changed.layers.items = &missing;
	hear_answer(f, ask_with_environment(f, id, &changed, fd), LAUNCH_FAILED);
	/* A prefix that isn't a Python's own directory. */
	changed = meta;
	changed.python = "/etc/ssl/python3";
	changed.python_prefix = "/etc";
	hear_answer(f, ask_with_environment(f, id, &changed, fd), LAUNCH_FAILED);
	/* As root: a project that root hasn't named. */
	if (f->home.is_foreign) {
		changed = meta;
		vec_push(&f->arena, &changed.editables, "/root");
		hear_answer(f, ask_with_environment(f, id, &changed, fd), LAUNCH_FAILED);
		assert_int_equal(f->packet.head.error_code, ERR_DENIED);
	}
	hear_answer(f, ask_with_environment(f, id, &meta, fd), LAUNCH_STARTED);
}

/* ---- builds: `self` is a script that says what it was called with ---- */

static int setup_build(void **state)
{
	/* Two steps: the script must be there when the launcher starts. */
	static char path[96];
	str_copy(path, sizeof path, "/var/tmp/carrel-test-self-XXXXXX");
	int fd = mkstemp(path);
	const char *script = "#!/bin/sh\ntrap 'exit 130' TERM\n"
			     "echo \"$*\"; echo \"$CARREL_HOME\" >&2; cat\n"
			     "case \"$*\" in\n"
			     "*sleepy*) sleep 300 & wait;;\n"
			     "esac\n"
			     "exit 7\n";
	if (fd < 0 || fd_write_full(fd, script, strlen(script)) < 0 || fchmod(fd, 0755))
		return -1;
	close(fd);
	launcher_self = path;
	return setup(state);
}

static int teardown_build(void **state)
{
	unlink(launcher_self);
	launcher_self = NULL;
	return teardown(state);
}

struct streams {
	int in, out, errors; /* our ends */
};

static uint64_t ask_build(struct fixture *f, const char *const *strings, size_t count,
	bool has_file, struct streams *streams)
{
	struct launch_message head = { .type = LAUNCH_BUILD };
	int in[2] = { open("/dev/null", O_RDONLY | O_CLOEXEC), -1 }, out[2], errors[2];
	if (has_file) {
		close(in[0]);
		assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	}
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
	uint64_t tag = say_full(f, &head, strings, count, (int[]){ in[0], out[1], errors[1] }, 3);
	close(in[0]);
	close(out[1]);
	close(errors[1]);
	*streams = (struct streams){ in[1], out[0], errors[0] };
	return tag;
}

static const char *read_end(struct fixture *f, int fd)
{
	char *text = arena_alloc(&f->arena, 4096);
	ssize_t len = fd_read_full(fd, text, 4095);
	assert_true(len >= 0);
	close(fd);
	return text;
}

static void a_build_is_our_program_with_the_descriptors_of_core(void **state)
{
	struct fixture *f = *state;
	struct streams streams;
	const char *const words[] = { "agent", "3.12", "--pip=requests>=2", "--pip=--index=evil",
		"--allow-build" };
	uint64_t tag = ask_build(f, words, 5, false, &streams);
	assert_string_equal(read_end(f, streams.out),
		"env build --format=json --events --self-contained --python=3.12 --pip=requests>=2 "
		"--pip=--index=evil --allow-build -- agent\n");
	assert_string_equal(
		read_end(f, streams.errors), arena_printf(&f->arena, "%s/home\n", f->area));
	assert_int_equal(hear_answer(f, tag, LAUNCH_BUILT)->value, 7);
	tag = ask_build(f, (const char *const[]){ "agent", "" }, 2, true, &streams);
	assert_int_equal(write(streams.in, "rich\n", 5), 5);
	close(streams.in);
	assert_string_equal(read_end(f, streams.out),
		"env build --format=json --events --self-contained --requirements=/dev/stdin -- "
		"agent\nrich\n");
	close(streams.errors);
	assert_int_equal(hear_answer(f, tag, LAUNCH_BUILT)->value, 7);
}

static void a_verification_names_an_environment_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	struct launch_message head = { .type = LAUNCH_VERIFY };
	static const char *const wrong[] = { "../agent", "--repair", "" };
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int repairs = 0; repairs < 2; repairs++) {
		int out[2];
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
		head.value = repairs;
		uint64_t tag = say_full(f, &head, (const char *const[]){ "agent_no-deps" }, 1,
			(int[]){ null, out[1], null }, 3);
		close(out[1]);
		assert_string_equal(read_end(f, out[0]),
			repairs ? "env verify --format=json --repair agent_no-deps\n"
				: "env verify --format=json -- agent_no-deps\n");
		hear_answer(f, tag, LAUNCH_BUILT);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		uint64_t tag = say_full(f, &head, &wrong[i], 1, (int[]){ null, null, null }, 3);
		hear_answer(f, tag, LAUNCH_FAILED);
		assert_int_equal(f->packet.head.error_code, ERR_INVALID);
	}
}

static void a_build_that_would_read_what_core_cant_is_refused(void **state)
{
	struct fixture *f = *state;
	struct streams streams;
	struct launch_message head = { .type = LAUNCH_BUILD };
	const char *const words[] = { "agent", "/usr/bin/evil" };
	uint64_t tag = ask_build(f, words, 2, false, &streams);
	hear_answer(f, tag, LAUNCH_FAILED);
	assert_int_equal(f->packet.head.error_code, ERR_INVALID);
	/* A word of `env build` that a client may not give. */
	tag = ask_build(
		f, (const char *const[]){ "agent", "", "--index=http://evil" }, 3, false, &streams);
	hear_answer(f, tag, LAUNCH_FAILED);
	assert_int_equal(f->packet.head.error_code, ERR_DENIED);
	auto_close int shadow = open("/etc/shadow", O_PATH | O_CLOEXEC);
	auto_close int writable = open("/dev/zero", O_WRONLY | O_CLOEXEC);
	for (int i = 0; i < 2; i++) {
		int fds[] = { i ? writable : shadow, streams.out, streams.errors };
		tag = say_full(f, &head, (const char *const[]){ "agent", "" }, 2, fds, 3);
		hear_answer(f, tag, LAUNCH_FAILED);
		assert_int_equal(f->packet.head.error_code, ERR_DENIED);
	}
	close(streams.out);
	close(streams.errors);
}

static void a_build_that_is_cancelled_ends_with_all_that_it_started(void **state)
{
	struct fixture *f = *state;
	struct streams streams;
	char line[256];
	const char *const words[] = { "sleepy", "" };
	struct launch_message cancel = { .type = LAUNCH_CANCEL };
	uint64_t tag = ask_build(f, words, 2, false, &streams);
	assert_true(read(streams.errors, line, sizeof line) > 0); /* it runs */
	cancel.other = tag;
	say_full(f, &cancel, NULL, 0, NULL, 0);
	assert_int_equal(hear_answer(f, tag, LAUNCH_BUILT)->value, 130);
	/* Its own child held the pipe. */
	read_end(f, streams.out);
	close(streams.errors);
	/* One of a core that is gone isn't wanted any more. */
	tag = ask_build(f, words, 2, false, &streams);
	assert_true(read(streams.errors, line, sizeof line) > 0);
	assert_int_equal(
		send(f->core, STAND_IN_DIE, sizeof STAND_IN_DIE, 0), (ssize_t)sizeof STAND_IN_DIE);
	read_end(f, streams.out);
	close(streams.errors);
	connect_to_core(f);
	hear_answer(f, say(f, LAUNCH_LIST, NULL), LAUNCH_DONE);
}

int main(int argc, char **argv)
{
	STAND_IN_MAIN(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define BUILD_TEST(name) cmocka_unit_test_setup_teardown(name, setup_build, teardown_build)
	const struct CMUnitTest tests[] = {
		TEST(what_is_changed_in_an_environment_stays_with_its_workspace),
		TEST(a_workspace_can_have_layers),
		TEST(no_command_sets_marks_of_overlays),
		TEST(an_environment_is_held_while_a_sandbox_uses_it),
		TEST(the_launcher_neither_reads_an_environment_nor_waits_for_it),
		TEST(what_core_says_of_an_environment_is_checked),
		BUILD_TEST(a_build_is_our_program_with_the_descriptors_of_core),
		BUILD_TEST(a_verification_names_an_environment_and_nothing_else),
		BUILD_TEST(a_build_that_would_read_what_core_cant_is_refused),
		BUILD_TEST(a_build_that_is_cancelled_ends_with_all_that_it_started),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
