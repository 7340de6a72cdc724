/* Archives that go out, and the process that works on them. */
#include "archive_fixture.h"

/* -- out, and in again -- */

static void a_tree_goes_out_and_comes_in_again(void **state)
{
	static const enum archive_format formats[] = { ARCHIVE_TAR, ARCHIVE_TAR_ZST };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;

	put_dir(upper, "d");
	put_dir(upper, "d/empty");
	put_file(upper, "d/f", "content");
	assert_int_equal(fchmodat(upper, "d/f", 0751, 0), 0);
	assert_int_equal(linkat(upper, "d/f", upper, "hard", 0), 0);
	put_link("d/f", upper, "link");
	put_link("/env", upper, ".venv");
	put_file(upper, "not \xff utf-8", "b");
	put_file(upper, "n\xc3\xb6n", "u");
	auto_close int sparse = openat(upper, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(pwrite(sparse, "end", 3, 50 << 20), 3);
	assert_int_equal(ftruncate(sparse, 100 << 20), 0);
	assert_int_equal(mkfifoat(upper, "fifo", 0644), 0);
	auto_close int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	str_format(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/socket", upper);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof address), 0);
	for (size_t i = 0; i < 2; i++) {
		char to[16], path[64];

		str_format(to, sizeof to, "copy%zu", i);
		assert_int_equal(receive("", formats[i]), ERR_NONE);
		assert_true(tar.len < 100000);
		if (send_archive(to, tar.data, tar.len) != ERR_NONE)
			fail_msg("%s", err.text);
		auto_close int copy = open_dir(upper, to);
		assert_content(copy, "d/f", "content");
		assert_content(copy, "link", "content");
		assert_content(copy, "not \xff utf-8", "b");
		assert_content(copy, "n\xc3\xb6n", "u");
		assert_true(is_there(copy, "d/empty") && is_there(copy, ".venv"));
		assert_false(is_there(copy, "fifo") || is_there(copy, "socket"));
		assert_int_equal(fstatat(copy, "d/f", &st, 0), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0751);
		assert_int_equal(st.st_nlink, 2);
		assert_int_equal(fstatat(copy, "sparse", &st, 0), 0);
		assert_int_equal(st.st_size, 100 << 20);
		assert_true(st.st_blocks < 1000);
		str_format(path, sizeof path, "%s/sparse", to);
		auto_close int again = openat(upper, path, O_RDONLY | O_CLOEXEC);
		char end[4] = "";
		assert_int_equal(pread(again, end, 3, 50 << 20), 3);
		assert_string_equal(end, "end");
		close(copy);
		copy = -1;
		assert_int_equal(path_remove_tree(upper, to, &err), 0);
	}
	assert_in_empties();
}

static void one_file_goes_out_by_its_name(void **state)
{
	put_dir(upper, "d");
	put_file(upper, "d/f", "content");
	put_link("d/f", upper, "link");
	put_link("/etc/passwd", upper, "evil");
	assert_int_equal(mkfifoat(upper, "fifo", 0644), 0);
	assert_int_equal(receive("link", ARCHIVE_TAR), ERR_NONE);
	assert_int_equal(send_archive("copy", tar.data, tar.len), ERR_NONE);
	assert_content(upper, "copy/f", "content");
	assert_int_equal(receive("evil", ARCHIVE_TAR), ERR_DENIED);
	assert_int_equal(receive("fifo", ARCHIVE_TAR), ERR_INVALID);
	assert_int_equal(receive("absent", ARCHIVE_TAR), ERR_NOT_FOUND);
	/* An empty directory is an archive, too. */
	put_dir(upper, "empty");
	assert_int_equal(receive("empty", ARCHIVE_TAR_ZST), ERR_NONE);
	assert_int_equal(send_archive("", tar.data, tar.len), ERR_NONE);
}

static void a_file_that_shrinks_makes_the_archive_unwhole(void **state)
{
	struct archive_job *job;
	char data[65536];
	int fd;

	auto_close int large = openat(upper, "large", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	memset(data, 'x', sizeof data);
	for (int i = 0; i < 100; i++)
		assert_int_equal(write(large, data, sizeof data), sizeof data);
	is_done = false;
	assert_int_equal(
		archive_out(&request_system, &w, "", ARCHIVE_TAR, &fd, on_done, NULL, &job, &err),
		0);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_true(read(fd, data, 1) == 1);
	assert_int_equal(ftruncate(large, 10), 0);
	while (read(fd, data, sizeof data) > 0)
		;
	close(fd);
	wait_for_done();
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_non_null(strstr(err.text, "large"));
}

static void a_link_that_takes_a_directorys_place_isnt_followed_out(void **state)
{
	put_dir(upper, "swap");
	put_file(upper, "swap/secret", "mine");
	put_link("../../../out", upper, "evil");
	pid_t pid = start_swapping();
	uint64_t end = clock_monotonic_ms() + 1000;
	while (clock_monotonic_ms() < end) {
		assert_int_equal(receive("", ARCHIVE_TAR), ERR_NONE);
		tar.data[tar.len - 1] = '\0';
		assert_null(memmem(tar.data, tar.len, "secretsecret", 12));
		static const char content[] = "secret\0";
		for (size_t at = 0; at + 512 <= tar.len; at += 512)
			assert_int_not_equal(memcmp(tar.data + at, content, 8), 0);
		buf_clear(&tar);
		add_file("swap/made", "x");
		add_file("evil/made", "x");
		add_end();
		send_archive("", tar.data, tar.len);
		assert_false(is_there(out, "made"));
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_in_empties();
}

/* -- ends -- */

static void a_cancelled_job_leaves_nothing_and_says_nothing(void **state)
{
	struct archive_job *job;
	int fd;

	put_file(upper, "f", "x");
	add_file("half", "x");
	add_file("half/2", "x");
	calls = 0;
	assert_int_equal(archive_in(&request_system, &w, "", &fd, on_done, NULL, &job, &err), 0);
	assert_int_equal(write(fd, tar.data, 700), 700);
	assert_int_equal(w.users, 1);
	archive_cancel(job);
	close(fd);
	assert_int_equal(
		archive_out(&request_system, &w, "", ARCHIVE_TAR, &fd, on_done, NULL, &job, &err),
		0);
	archive_cancel(job);
	close(fd);
	archive_cancel(NULL);
	assert_in_empties();
	assert_int_equal(calls, 0);
	assert_int_equal(count_upper(), 1);
}

/* The latest one: those that removed leftovers may still be there, as zombies. */
static pid_t find_child(void)
{
	char path[64], text[512];
	long pid = -1;

	str_format(path, sizeof path, "/proc/self/task/%d/children", getpid());
	if (fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0)
		return -1;
	for (char *at = text, *end; strtol(at, &end, 10) > 0; at = end)
		pid = strtol(at, NULL, 10);
	return (pid_t)pid;
}

static void a_child_that_is_killed_is_a_failure(void **state)
{
	struct archive_job *job;
	int fd;

	is_done = false;
	add_file("f", "x");
	assert_int_equal(archive_in(&request_system, &w, "", &fd, on_done, NULL, &job, &err), 0);
	assert_int_equal(write(fd, tar.data, 600), 600);
	pid_t pid = find_child();
	if (pid <= 0) {
		archive_cancel(job);
		close(fd);
		skip(); /* this kernel doesn't tell */
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	wait_for_done();
	close(fd);
	assert_int_equal(err.code, ERR_FAILED);
	assert_in_empties();
	assert_int_equal(count_upper(), 0);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
#define with_workspace(test) cmocka_unit_test_setup_teardown(test, begin, finish)
	const struct CMUnitTest tests[] = {
		with_workspace(a_tree_goes_out_and_comes_in_again),
		with_workspace(one_file_goes_out_by_its_name),
		with_workspace(a_file_that_shrinks_makes_the_archive_unwhole),
		with_workspace(a_link_that_takes_a_directorys_place_isnt_followed_out),
		with_workspace(a_cancelled_job_leaves_nothing_and_says_nothing),
		with_workspace(a_child_that_is_killed_is_a_failure),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
