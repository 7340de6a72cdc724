/* Files of a workspace: whatever lies in the tree, nothing leads out of it, and nothing waits. */
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include "base/clock.h"
#include "core/files.h"
#include "files_fixture.h"

static struct file_info info;
static int fd;

static void assert_refused(const char *path, enum error_code code)
{
	err = (struct error){ 0 };
	if (files_open(&request_system, &w, path, &arena, &fd, &info, &err) == 0)
		fail_msg("'%s' was opened", path);
	if (err.code != code)
		fail_msg("'%s': %s (%s)", path, error_code_name(err.code), err.text);
	assert_non_null(strstr(err.text, path));
}

static void assert_opens(const char *path, const char *content)
{
	char text[64];

	if (files_open(&request_system, &w, path, &arena, &fd, &info, &err) < 0)
		fail_msg("'%s': %s", path, err.text);
	ssize_t len = fd_read_full(fd, text, sizeof text - 1);
	assert_true(len >= 0);
	text[len] = '\0';
	close(fd);
	assert_string_equal(text, content);
	assert_int_equal(info.size, strlen(content));
}

static int told;
static bool told_created;
static void on_written(void *ctx, bool created, const struct error *failed)
{
	told = failed ? -1 : 1;
	told_created = created;
	if (failed)
		err = *failed;
	loop_stop(core.loop);
}

static int end_write(struct file_write *write, bool *created)
{
	told = 0;
	files_finish_write(write, on_written, NULL);
	assert_int_equal(told, 0);
	assert_int_equal(loop_run(core.loop, &(struct error){ 0 }), 0);
	assert_int_not_equal(told, 0);
	*created = told_created;
	return told < 0 ? -1 : 0;
}

static int write_all(const char *path, unsigned mode, bool make, const char *text, bool *created)
{
	struct file_write *write;

	if (files_begin_write(
		    &request_system, &w, path, mode, make ? WRITE_PARENTS : 0, &write, &err) < 0)
		return -1;
	if (files_write(write, text, strlen(text), &err) < 0) {
		files_abort_write(write);
		return -1;
	}
	return end_write(write, created);
}

/* -- reading -- */

static void what_is_inside_opens_through_links_too(void **state)
{
	put_dir(upper, "d");
	put_file(upper, "d/f", "inside");
	put_link("d/f", upper, "relative");
	put_link("../d/f", upper, "d/up");
	put_link("/workspace/d/f", upper, "absolute");
	put_link("/workspace/d", upper, "dir");
	put_link("//workspace//dir/./up", upper, "chain");
	put_link("/workspace", upper, "root");
	static const char *const paths[] = { "d/f", "/workspace/d/f", "./d//f", "relative", "d/up",
		"absolute", "dir/f", "dir/up", "chain", "root/root/dir/up", "/workspace/root/d/f" };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_opens(paths[i], "inside");
}

static void what_leads_out_is_denied(void **state)
{
	char absolute[96];

	put_dir(upper, "d");
	str_format(absolute, sizeof absolute, "%s/out/secret", area);
	put_link(absolute, upper, "absolute");
	put_link("/etc/passwd", upper, "passwd");
	put_link("/env", upper, ".venv");
	put_link("/proc/self/fd/0", upper, "magic");
	put_link("/proc/self/root/etc/passwd", upper, "magic2");
	put_link("../../../out/secret", upper, "relative");
	put_link("../../../../out/secret", upper, "d/relative");
	put_link("..", upper, "parent");
	put_link("/workspace/../etc/passwd", upper, "winding");
	put_link("/workspace/d/../../etc/passwd", upper, "winding2");
	put_link("/workspaces", upper, "almost");
	put_link("passwd", upper, "chain");
	static const char *const paths[] = { "absolute", "passwd", ".venv/bin/python", "magic",
		"magic2", "relative", "d/relative", "parent/x", "winding", "winding2", "almost",
		"chain" };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_refused(paths[i], ERR_DENIED);
}

static void paths_that_are_none_are_invalid(void **state)
{
	static char longest[5000], part[300];

	memset(longest, 'a', sizeof longest - 1);
	for (size_t i = 50; i < sizeof longest - 1; i += 50)
		longest[i] = '/';
	memset(part, 'a', sizeof part - 1);
	static const char *const paths[] = { "../x", "a/../b", "..", "/..", "/workspace/../x",
		longest, part };
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		err = (struct error){ 0 };
		assert_int_equal(
			files_open(&request_system, &w, paths[i], &arena, &fd, &info, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	put_link("loop", upper, "loop");
	assert_refused("loop", ERR_INVALID);
	assert_refused("absent", ERR_NOT_FOUND);
	assert_refused("absent/too", ERR_NOT_FOUND);
	/* The host's own are not meant: these are names of the workspace. */
	assert_refused("/etc/passwd", ERR_NOT_FOUND);
	assert_refused("/workspacex", ERR_NOT_FOUND);
}

static void fifos_sockets_and_devices_are_never_opened(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	bool created;

	assert_int_equal(mkfifoat(upper, "fifo", 0644), 0);
	auto_close int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	str_format(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", upper);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof address), 0);
	put_dir(upper, "d");
	put_link("fifo", upper, "link");
	static const char *const paths[] = { "fifo", "socket", "d", "", "link", "device" };
	size_t count = 5;
	if (mknodat(upper, "device", S_IFCHR | 0666, makedev(1, 5)) == 0)
		count++;
	for (size_t i = 0; i < count; i++) {
		assert_refused(paths[i], ERR_INVALID);
		err = (struct error){ 0 };
		assert_int_equal(write_all(paths[i], 0, false, "x", &created), -1);
		assert_true(err.code == ERR_INVALID || err.code == ERR_CONFLICT);
	}
	assert_int_equal(count_in(), 0);
	for (size_t i = 0; i < count; i++) {
		if (!paths[i][0])
			continue;
		assert_int_equal(files_move(&request_system, &w, paths[i], "moved", &err), 0);
		assert_int_equal(
			files_remove(&request_system, &w, "moved", false, NULL, NULL, &err), 0);
	}
}

static void deep_directories_are_reached(void **state)
{
	char path[1024] = "";

	for (int i = 0; i < 300; i++)
		str_format(path + 2 * i, sizeof path - 2 * (size_t)i, "d/");
	bool created;
	assert_int_equal(files_mkdir(&request_system, &w, path, &created, &err), 0);
	assert_true(created);
	str_format(path + 600, sizeof path - 600, "f");
	assert_int_equal(write_all(path, 0, false, "deep", &created), 0);
	assert_opens(path, "deep");
	put_link("d", upper, "l");
	path[0] = 'l';
	assert_opens(path, "deep");
	assert_int_equal(files_remove(&request_system, &w, "d", true, NULL, NULL, &err), 1);
	assert_false(is_there(upper, "d"));
	assert_in_empties();
}

/* -- races -- */

static void a_directory_that_is_swapped_with_a_link_never_leads_out(void **state)
{
	struct file_write *write;
	int opened = 0, created_count = 0;
	bool created;

	put_dir(upper, "swap");
	put_file(upper, "swap/secret", "mine");
	put_link("../../../out", upper, "evil");
	pid_t pid = start_swapping();
	uint64_t end = clock_monotonic_ms() + 1500;
	while (clock_monotonic_ms() < end || !opened || !created_count) {
		char text[16] = "";

		if (files_open(&request_system, &w, "swap/secret", &arena, &fd, &info, &err) == 0) {
			assert_int_equal(fd_read_full(fd, text, sizeof text), 4);
			close(fd);
			opened++;
		}
		if (files_begin_write(
			    &request_system, &w, "swap/made", 0, WRITE_PARENTS, &write, &err) == 0)
			created_count += end_write(write, &created) == 0;
		files_mkdir(&request_system, &w, "swap/dir", &created, &err);
		files_remove(&request_system, &w, "swap/dir", true, NULL, NULL, &err);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(is_there(out, "made") || is_there(out, "dir"));
	assert_in_empties();
}

static void a_file_that_is_swapped_with_a_fifo_keeps_nobody_waiting(void **state)
{
	put_file(upper, "swap", "mine");
	assert_int_equal(mkfifoat(upper, "evil", 0644), 0);
	pid_t pid = start_swapping();
	uint64_t end = clock_monotonic_ms() + 500;
	alarm(60);
	while (clock_monotonic_ms() < end) {
		if (files_open(&request_system, &w, "swap", &arena, &fd, &info, &err) < 0)
			continue;
		struct stat st;
		assert_int_equal(fstat(fd, &st), 0);
		assert_true(S_ISREG(st.st_mode));
		close(fd);
	}
	alarm(0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* -- listing -- */

static void listings_are_sorted_and_paged(void **state)
{
	file_infos infos = { 0 };
	const char *next;

	put_file(upper, "b", "12");
	put_dir(upper, "a");
	put_link("/etc", upper, "c");
	put_file(upper, "\xff\n%", "");
	assert_int_equal(
		files_list(&request_system, &w, "", NULL, 2, &arena, &infos, &next, &err), 0);
	assert_int_equal(infos.count, 2);
	assert_string_equal(infos.items[0].name, "a");
	assert_string_equal(infos.items[0].type, "directory");
	assert_int_equal(infos.items[1].size, 2);
	assert_string_equal(next, "b");
	assert_int_equal(
		files_list(&request_system, &w, "/workspace", next, 1, &arena, &infos, &next, &err),
		0);
	assert_string_equal(infos.items[0].link, "/etc");
	assert_int_equal(
		files_list(&request_system, &w, "", next, 1, &arena, &infos, &next, &err), 0);
	assert_string_equal(infos.items[0].name, "\xff\n%");
	assert_null(next);
	assert_int_equal(
		files_list(&request_system, &w, "", "%FF%0A%25", 1, &arena, &infos, &next, &err),
		0);
	assert_int_equal(infos.count, 0);
	assert_int_equal(
		files_list(&request_system, &w, "", "%F", 1, &arena, &infos, &next, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(
		files_list(&request_system, &w, "b", NULL, 1, &arena, &infos, &next, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(
		files_list(&request_system, &w, "c", NULL, 1, &arena, &infos, &next, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
}

static void a_cursor_of_bytes_that_are_no_text_goes_on_behind_them(void **state)
{
	file_infos infos = { 0 };
	const char *next;

	put_file(upper, "\xfe\n%", "");
	put_file(upper, "\xff", "");
	assert_int_equal(
		files_list(&request_system, &w, "", NULL, 1, &arena, &infos, &next, &err), 0);
	assert_string_equal(next, "%FE%0A%25");
	assert_int_equal(
		files_list(&request_system, &w, "", next, 1, &arena, &infos, &next, &err), 0);
	assert_string_equal(infos.items[0].name, "\xff");
}

static void names_of_any_bytes_print_as_json(void **state)
{
	auto_buf struct buf text;
	struct json j;

	put_file(upper, "a\n\"\xff", "");
	assert_int_equal(files_stat(&request_system, &w, "a\n\"\xff", &arena, &info, &err), 0);
	info.modified_ms = 0;
	buf_init(&text, 4096);
	json_init(&j, &text, false);
	file_print(&j, NULL, &info);
	json_finish(&j);
	assert_string_equal(text.data,
		"{\"name\":\"a\\n\\\"\xef\xbf\xbd\",\"name_base64\":\"YQoi/"
		"w==\",\"type\":\"file\",\"size\":0,\"mode\":\"0644\","
		"\"modified_at\":\"1970-01-01T00:00:00.000Z\",\"link\":null}");
	assert_int_equal(files_stat(&request_system, &w, "", &arena, &info, &err), 0);
	assert_string_equal(info.name, "workspace");
	assert_string_equal(info.type, "directory");
}

static void directories_of_more_than_a_hundred_thousand_entries_are_a_limit(void **state)
{
	file_infos infos = { 0 };
	const char *next;

	put_dir(upper, "many");
	int many = open_dir(upper, "many");
	uint64_t before = clock_process_cpu_us();
	/* Names are quicker to make than files are; one file of ext4 has 65,000 at most. */
	for (int i = 0; i < FILES_ENTRIES_MAX; i++) {
		char name[16], first[16];

		str_format(name, sizeof name, "%06d", i);
		str_format(first, sizeof first, "%06d", i - i % 50000);
		if (i % 50000 == 0)
			put_file(many, name, "");
		else
			assert_int_equal(linkat(many, first, many, name, 0), 0);
	}
	uint64_t made_us = clock_process_cpu_us() - before;
	assert_int_equal(
		files_list(&request_system, &w, "many", "099990", 100, &arena, &infos, &next, &err),
		0);
	assert_int_equal(infos.count, 9);
	assert_int_equal(
		files_list(&request_system, &w, "many", NULL, 100, &arena, &infos, &next, &err), 0);
	assert_string_equal(next, "000099");
	put_file(many, "one too many", "");
	close(many);
	assert_int_equal(
		files_list(&request_system, &w, "many", NULL, 100, &arena, &infos, &next, &err),
		-1);
	assert_int_equal(err.code, ERR_LIMIT);
	/* At once, whatever it holds: name by name it would be as much work as making them was. */
	before = clock_process_cpu_us();
	assert_int_equal(files_remove(&request_system, &w, "many", true, NULL, NULL, &err), 1);
	assert_true(clock_process_cpu_us() - before < made_us / 4);
	assert_in_empties();
}

/* -- writing -- */

static void writing_replaces_and_says_so(void **state)
{
	struct stat st;
	bool created = false;

	assert_int_equal(write_all("f", 0, false, "one", &created), 0);
	assert_true(created);
	assert_content(upper, "f", "one");
	assert_int_equal(fstatat(upper, "f", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	auto_close int reader = openat(upper, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fchmodat(upper, "f", 0750, 0), 0);
	assert_int_equal(write_all("/workspace/f", 0, false, "two", &created), 0);
	assert_false(created);
	assert_content(upper, "f", "two");
	assert_int_equal(fstatat(upper, "f", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0750);
	char old[8] = "";
	assert_int_equal(fd_read_full(reader, old, sizeof old), 3);
	assert_string_equal(old, "one");
	assert_int_equal(write_all("f", 06711, false, "", &created), 0);
	assert_int_equal(fstatat(upper, "f", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0711);
	assert_int_equal(count_in(), 0);
}

static void parents_are_made_when_asked_for(void **state)
{
	bool created;

	assert_int_equal(write_all("a/b/f", 0, false, "x", &created), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(write_all("a/b/f", 0, true, "x", &created), 0);
	assert_content(upper, "a/b/f", "x");
	put_link("/workspace/a/new", upper, "dangling");
	assert_int_equal(write_all("dangling/f", 0, true, "y", &created), 0);
	assert_content(upper, "a/new/f", "y");
	assert_int_equal(write_all("a/b/f/g", 0, true, "x", &created), -1);
	assert_int_equal(files_mkdir(&request_system, &w, "a/b", &created, &err), 0);
	assert_false(created);
	assert_int_equal(files_mkdir(&request_system, &w, "a/b/f", &created, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	put_link("../../../out", upper, "evil");
	assert_int_equal(write_all("evil/f", 0, true, "x", &created), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(files_mkdir(&request_system, &w, "evil/d", &created, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(write_all("evil", 0, false, "x", &created), -1);
	assert_int_equal(err.code, ERR_DENIED);
}

static void writing_through_a_link_writes_where_it_leads(void **state)
{
	bool created;

	put_file(upper, "f", "old");
	put_link("f", upper, "l");
	put_link("absent", upper, "dangling");
	assert_int_equal(write_all("l", 0, false, "new", &created), 0);
	assert_false(created);
	assert_content(upper, "f", "new");
	assert_int_equal(write_all("dangling", 0, false, "made", &created), 0);
	assert_true(created);
	assert_content(upper, "absent", "made");
	assert_int_equal(files_stat(&request_system, &w, "l", &arena, &info, &err), 0);
	assert_string_equal(info.type, "link");
	assert_string_equal(info.link, "f");
}

static void what_is_aborted_leaves_nothing(void **state)
{
	struct file_write *write;

	assert_int_equal(files_begin_write(&request_system, &w, "f", 0, 0, &write, &err), 0);
	assert_int_equal(files_write(write, "half", 4, &err), 0);
	assert_int_equal(w.users, 1);
	files_abort_write(write);
	files_abort_write(NULL);
	assert_false(is_there(upper, "f"));
	assert_int_equal(count_in(), 0);
	assert_int_equal(w.model.disk_usage_bytes, 0);
}

static void the_workspaces_limit_counts_what_is_being_written(void **state)
{
	struct file_write *one, *two;
	bool created;

	w.model.limits.disk_bytes = 1000;
	w.model.disk_usage_bytes = 900;
	assert_int_equal(files_begin_write(&request_system, &w, "one", 0, 0, &one, &err), 0);
	assert_int_equal(files_begin_write(&request_system, &w, "two", 0, 0, &two, &err), 0);
	assert_int_equal(files_write(one, area, 60, &err), 0);
	assert_int_equal(files_write(two, area, 60, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	files_abort_write(one);
	assert_int_equal(files_write(two, area, 60, &err), 0);
	assert_int_equal(end_write(two, &created), 0);
	assert_int_equal(w.model.disk_usage_bytes, 960);
	/* What is removed makes room. */
	w.model.disk_usage_bytes = 100000;
	assert_int_equal(files_remove(&request_system, &w, "two", false, NULL, NULL, &err), 0);
	assert_int_equal(w.model.disk_usage_bytes, 100000 - 4096);
	put_dir(upper, "d");
	put_file(upper, "d/f", "x");
	assert_int_equal(files_remove(&request_system, &w, "d", true, NULL, NULL, &err), 1);
	assert_in_empties();
	assert_true(w.model.disk_usage_bytes <= 100000 - 3 * 4096);
	w.model.disk_usage_bytes = 960;
	/* A quota of the kernel's counts by itself. */
	w.model.disk_mechanism = "project-quota";
	assert_int_equal(files_begin_write(&request_system, &w, "one", 0, 0, &one, &err), 0);
	assert_int_equal(files_write(one, area, 60, &err), 0);
	files_abort_write(one);
}

static void a_directory_that_came_meanwhile_is_a_conflict(void **state)
{
	struct file_write *write;
	bool created;

	assert_int_equal(files_begin_write(&request_system, &w, "f", 0, 0, &write, &err), 0);
	put_dir(upper, "f");
	assert_int_equal(end_write(write, &created), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(count_in(), 0);
	/* And a parent that went. */
	put_dir(upper, "d");
	assert_int_equal(files_begin_write(&request_system, &w, "d/f", 0, 0, &write, &err), 0);
	assert_int_equal(unlinkat(upper, "d", AT_REMOVEDIR), 0);
	assert_int_equal(end_write(write, &created), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(count_in(), 0);
}

static void writes_of_any_size_are_finished_by_a_child(void **state)
{
	static char data[300000];
	static const size_t sizes[] = { 0, 10, sizeof data };
	struct file_write *write;
	bool created;

	memset(data, 'x', sizeof data);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(
			files_begin_write(&request_system, &w, "f", 0600, 0, &write, &err), 0);
		assert_int_equal(files_write(write, data, sizes[i], &err), 0);
		assert_int_equal(end_write(write, &created), 0);
		assert_int_equal(created, i == 0);
		assert_int_equal(files_stat(&request_system, &w, "f", &arena, &info, &err), 0);
		assert_int_equal(info.size, sizes[i]);
		assert_int_equal(info.mode, 0600);
	}
	assert_int_equal(count_in(), 0);
}

/* -- moving and removing -- */

static void moving_replaces_files_and_follows_no_last_link(void **state)
{
	put_file(upper, "f", "f");
	put_file(upper, "g", "g");
	put_dir(upper, "d");
	put_file(upper, "d/x", "x");
	put_dir(upper, "empty");
	put_link("../../../out/secret", upper, "evil");
	put_link("../../../out", upper, "evildir");
	assert_int_equal(files_move(&request_system, &w, "f", "g", &err), 0);
	assert_content(upper, "g", "f");
	assert_int_equal(files_move(&request_system, &w, "g", "d", &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(files_move(&request_system, &w, "empty", "d", &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(files_move(&request_system, &w, "d", "g", &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(files_move(&request_system, &w, "d", "d/e", &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(files_move(&request_system, &w, "d", "", &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(files_move(&request_system, &w, "absent", "y", &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(files_move(&request_system, &w, "evildir/secret", "y", &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(files_move(&request_system, &w, "g", "evildir/y", &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(files_move(&request_system, &w, "evil", "moved", &err), 0);
	assert_int_equal(files_move(&request_system, &w, "g", "moved", &err), 0);
	assert_content(upper, "moved", "f");
	assert_int_equal(files_move(&request_system, &w, "d", "empty", &err), 0);
	assert_content(upper, "empty/x", "x");
}

static void removing_follows_nothing(void **state)
{
	put_link("../../../out", upper, "evil");
	put_dir(upper, "d");
	put_link("../../../../out", upper, "d/evil");
	put_file(upper, "d/f", "");
	assert_int_equal(files_remove(&request_system, &w, "d", false, NULL, NULL, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(files_remove(&request_system, &w, "", true, NULL, NULL, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(
		files_remove(&request_system, &w, "/workspace/", true, NULL, NULL, &err), -1);
	assert_int_equal(files_remove(&request_system, &w, "absent", true, NULL, NULL, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(
		files_remove(&request_system, &w, "evil/secret", true, NULL, NULL, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(files_remove(&request_system, &w, "evil", true, NULL, NULL, &err), 0);
	assert_int_equal(files_remove(&request_system, &w, "d", true, NULL, NULL, &err), 1);
	assert_false(is_there(upper, "evil") || is_there(upper, "d"));
	assert_in_empties();
}

static void what_a_crash_left_is_swept(void **state)
{
	int dir = open_dir(core.workspaces, w.model.id);

	files_sweep(&w);
	put_dir(dir, ".in");
	put_dir(dir, ".in/half");
	put_file(dir, ".in/half/f", "x");
	put_file(dir, ".in/other", "x");
	put_link("../../../out", dir, ".in/evil");
	close(dir);
	files_sweep(&w);
	assert_in_empties();
}

int main(void)
{
#define with_workspace(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		with_workspace(what_is_inside_opens_through_links_too),
		with_workspace(what_leads_out_is_denied),
		with_workspace(paths_that_are_none_are_invalid),
		with_workspace(fifos_sockets_and_devices_are_never_opened),
		with_workspace(deep_directories_are_reached),
		with_workspace(a_directory_that_is_swapped_with_a_link_never_leads_out),
		with_workspace(a_file_that_is_swapped_with_a_fifo_keeps_nobody_waiting),
		with_workspace(listings_are_sorted_and_paged),
		with_workspace(a_cursor_of_bytes_that_are_no_text_goes_on_behind_them),
		with_workspace(names_of_any_bytes_print_as_json),
		with_workspace(directories_of_more_than_a_hundred_thousand_entries_are_a_limit),
		with_workspace(writing_replaces_and_says_so),
		with_workspace(parents_are_made_when_asked_for),
		with_workspace(writing_through_a_link_writes_where_it_leads),
		with_workspace(what_is_aborted_leaves_nothing),
		with_workspace(the_workspaces_limit_counts_what_is_being_written),
		with_workspace(a_directory_that_came_meanwhile_is_a_conflict),
		with_workspace(writes_of_any_size_are_finished_by_a_child),
		with_workspace(moving_replaces_files_and_follows_no_last_link),
		with_workspace(removing_follows_nothing),
		with_workspace(what_a_crash_left_is_swept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
