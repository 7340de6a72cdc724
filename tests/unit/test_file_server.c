/* The file server, as core uses it, but outside of a sandbox: what it answers and what it leaves.
 * That links and races lead nowhere else is the sandbox's work (tests/api). */
/* security: files */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "format/archives/tar.h"
#include "linux/fd_message.h"
#include "sandbox/files/server.h"
#include "tree_fixture.h"
#include "unit.h"

#define STAGE ".carrel-stage"

static char area[64];
static int top = -1, channel = -1;
static pid_t server;

/* The latest answer. */
static struct {
	struct file_reply reply;
	char infos[1 << 20];
	size_t len;
	uint32_t count;
	int fd;
	struct error err;
} got;

static int set_up(void **state)
{
	int ends[2];
	snprintf(area, sizeof area, "/tmp/carrel-test-agent-XXXXXX");
	assert_non_null(mkdtemp(area));
	top = open(area, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	server = fork();
	assert_true(server >= 0);
	if (server == 0) {
		close(ends[0]);
		signal(SIGPIPE, SIG_IGN);
		umask(0);
		if (fchdir(top) == 0)
			file_server_run(ends[1]);
		_exit(0);
	}
	close(ends[1]);
	channel = ends[0];
	got.fd = -1;
	return 0;
}

static int tear_down(void **state)
{
	struct error err;
	int status = -1;
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd_close(&got.fd);
	fd_close(&channel);
	fd_close(&top);
	waitpid(server, &status, 0);
	assert_int_equal(status, 0);
	return path_remove_tree(tmp, path_basename(area), &err);
}
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- asking ---- */

static void send_request(
	const struct file_request *asked, const char *path, const char *text, int fd)
{
	struct file_request request = *asked;
	request.magic = FILE_MAGIC;
	request.path_len = (uint32_t)strlen(path) + 1;
	request.text_len = text ? (uint32_t)strlen(text) + 1 : 0;
	struct iovec iov[3] = { { &request, sizeof request }, { (void *)path, request.path_len },
		{ (void *)text, request.text_len } };
	assert_true(fd_message_send(channel, iov, 3, &fd, fd >= 0, 0) > 0);
}

/* One packet; the kind of it. */
static uint32_t receive(void)
{
	static char data[FILE_PACKET_MAX];
	struct fd_message message;
	ssize_t len = fd_message_receive(channel, data, sizeof data, 0, &message);
	assert_true(len >= (ssize_t)sizeof got.reply);
	memcpy(&got.reply, data, sizeof got.reply);
	assert_int_equal(got.reply.magic, FILE_MAGIC);
	assert_true(message.fd_count <= 1);
	if (message.fd_count)
		got.fd = message.fds[0];
	if (got.reply.kind == FILE_FAILED) {
		memcpy(&got.err, data + sizeof got.reply, sizeof got.err);
	} else {
		memcpy(got.infos + got.len, data + sizeof got.reply,
			(size_t)len - sizeof got.reply);
		got.len += (size_t)len - sizeof got.reply;
		got.count += got.reply.count;
	}
	return got.reply.kind;
}

static void forget(void)
{
	fd_close(&got.fd);
	got.len = got.count = 0;
	got.err.code = ERR_NONE;
}

/* The code of the answer. */
static enum error_code ask_with(
	struct file_request request, const char *path, const char *text, int fd)
{
	forget();
	send_request(&request, path, text, fd);
	while (receive() == FILE_PART)
		;
	return got.err.code;
}

static enum error_code ask(enum file_verb verb, const char *path)
{
	return ask_with((struct file_request){ .verb = verb }, path, NULL, -1);
}

static struct file_entry info_at(size_t index, char name[NAME_MAX + 1], char link[PATH_MAX])
{
	struct file_entry info;
	const char *at = got.infos;
	assert_true(index < got.count);
	for (size_t i = 0;; i++, at += sizeof info + info.name_len + info.link_len) {
		memcpy(&info, at, sizeof info);
		if (i < index)
			continue;
		str_format(name, NAME_MAX + 1, "%.*s", (int)info.name_len, at + sizeof info);
		str_format(link, PATH_MAX, "%.*s", (int)info.link_len,
			at + sizeof info + info.name_len);
		return info;
	}
}

static struct file_entry only_info(void)
{
	char name[NAME_MAX + 1], link[PATH_MAX];
	assert_int_equal(got.count, 1);
	return info_at(0, name, link);
}

/* ---- files ---- */

/* How many names a directory has; none of them is ours. */
static uint32_t count_names(const char *path)
{
	char name[NAME_MAX + 1], link[PATH_MAX];
	assert_int_equal(
		ask_with((struct file_request){ .verb = FILE_LIST, .limit = 1000 }, path, NULL, -1),
		ERR_NONE);
	for (uint32_t i = 0; i < got.count; i++) {
		info_at(i, name, link);
		assert_int_not_equal(strncmp(name, ".carrel-", 8), 0);
	}
	return got.count;
}

static void test_a_file_is_shown_and_opened(void **state)
{
	char name[NAME_MAX + 1], link[PATH_MAX], data[8] = "";
	write_file(top, "f", "text", 0640);
	assert_int_equal(symlinkat("f", top, "l"), 0);
	assert_int_equal(ask(FILE_STAT, "f"), ERR_NONE);
	assert_int_equal(only_info().size, 4);
	assert_int_equal(only_info().mode, S_IFREG | 0640);
	assert_int_equal(ask(FILE_STAT, "l"), ERR_NONE);
	assert_true(S_ISLNK(info_at(0, name, link).mode));
	assert_string_equal(link, "f");
	assert_int_equal(ask(FILE_OPEN, "l"), ERR_NONE);
	assert_int_equal(read(got.fd, data, sizeof data), 4);
	assert_string_equal(data, "text");
	assert_int_equal(ask(FILE_STAT, "none"), ERR_NOT_FOUND);
	assert_int_equal(ask(FILE_OPEN, "."), ERR_INVALID);
	assert_int_equal(ask(FILE_LIST, "f"), ERR_INVALID);
	assert_int_equal(ask(FILE_OPEN, "f/x"), ERR_INVALID);
}

static void test_what_could_block_is_not_opened(void **state)
{
	assert_int_equal(mkfifoat(top, "fifo", 0600), 0);
	assert_int_equal(symlinkat("fifo", top, "l"), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(ask(FILE_OPEN, i ? "l" : "fifo"), ERR_INVALID);
		assert_int_equal(ask(FILE_CREATE, i ? "l" : "fifo"), ERR_INVALID);
		assert_int_equal(ask(FILE_PACK, i ? "l" : "fifo"), ERR_INVALID);
	}
	assert_int_equal(ask(FILE_OPEN, "/dev/null"), ERR_INVALID);
	assert_int_equal(ask(FILE_REMOVE, "fifo"), ERR_NONE);
	assert_false(is_there(top, "fifo"));
}

static void test_a_listing_is_sorted_and_paged(void **state)
{
	char name[NAME_MAX + 1], link[PATH_MAX], path[16];
	assert_int_equal(mkdirat(top, "d", 0755), 0);
	for (int i = 999; i >= 0; i--) {
		str_format(path, sizeof path, "d/%03d", i);
		write_file(top, path, "", 0600);
	}
	assert_int_equal(count_names("d"), 1000); /* more than a packet holds */
	for (uint32_t i = 0; i < 1000; i++) {
		info_at(i, name, link);
		str_format(path, sizeof path, "%03u", i);
		assert_string_equal(name, path);
	}
	assert_false(got.reply.flags & FILE_MORE);
	struct file_request page = { .verb = FILE_LIST, .limit = 2 };
	assert_int_equal(ask_with(page, "d", "996", -1), ERR_NONE);
	assert_int_equal(got.count, 3);
	assert_true(got.reply.flags & FILE_MORE);
	assert_int_equal(info_at(2, name, link).mode, 0);
	assert_string_equal(name, "998");
	assert_int_equal(ask_with(page, "d", "998", -1), ERR_NONE);
	assert_int_equal(got.count, 1);
	assert_false(got.reply.flags & FILE_MORE);
}

/* ---- writing ---- */

/* A file without a name, with this text. */
static int create(const char *path, unsigned flags, const char *text)
{
	assert_int_equal(ask_with((struct file_request){ .verb = FILE_CREATE, .flags = flags },
				 path, NULL, -1),
		ERR_NONE);
	int fd = got.fd;
	got.fd = -1;
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static enum error_code commit(const char *path, unsigned flags, unsigned mode, int fd)
{
	return ask_with((struct file_request){ .verb = FILE_COMMIT, .flags = flags, .mode = mode },
		path, STAGE, fd);
}

static void test_writing_replaces_and_says_so(void **state)
{
	auto_close int first = create("d/e/f", FILE_PARENTS, "one");
	assert_int_equal(count_names("d/e"), 0);
	assert_int_equal(commit("d/e/f", 0, 0, first), ERR_NONE);
	assert_true(got.reply.flags & FILE_CREATED);
	assert_int_equal(only_info().size, 3);
	assert_file(top, "d/e/f", "one", 0644);
	assert_int_equal(fchmodat(top, "d/e/f", 0750, 0), 0);
	auto_close int second = create("d/e/f", 0, "second");
	assert_int_equal(commit("d/e/f", 0, 0, second), ERR_NONE);
	assert_false(got.reply.flags & FILE_CREATED);
	assert_file(top, "d/e/f", "second", 0750);
	auto_close int third = create("d/e/f", 0, "3");
	assert_int_equal(commit("d/e/f", 0, 06711, third), ERR_NONE);
	assert_file(top, "d/e/f", "3", 0711); /* no setuid bit comes of it */
	assert_int_equal(count_names("d/e"), 1);
}

static void test_what_is_committed_twice_is_there_once(void **state)
{
	auto_close int fd = create("f", FILE_NEW, "x");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(commit("f", FILE_NEW, 0600, fd), ERR_NONE);
		assert_true(got.reply.flags & FILE_CREATED);
	}
	assert_int_equal(count_names("."), 1);
	auto_close int late = create("g", FILE_NEW, "late");
	write_file(top, "g", "first", 0600);
	assert_int_equal(commit("g", FILE_NEW, 0600, late), ERR_CONFLICT);
	assert_file(top, "g", "first", 0600);
	assert_int_equal(ask_with((struct file_request){ .verb = FILE_CREATE, .flags = FILE_NEW },
				 "g", NULL, -1),
		ERR_CONFLICT);
}

static void test_a_commit_that_was_cut_short_is_finished_by_the_next(void **state)
{
	char file[32];
	for (int is_gone = 0; is_gone < 2; is_gone++) {
		auto_close int fd = create("f", 0, "new");
		if (!is_gone)
			write_file(top, "f", "old", 0600);
		str_format(file, sizeof file, "/proc/self/fd/%d", fd);
		assert_int_equal(linkat(AT_FDCWD, file, top, STAGE, AT_SYMLINK_FOLLOW), 0);
		assert_int_equal(commit("f", 0, 0600, fd), ERR_NONE);
		assert_file(top, "f", "new", 0600);
		assert_int_equal(count_names("."), 1);
		assert_int_equal(ask(FILE_REMOVE, "f"), ERR_NONE);
	}
}

static void test_writing_through_a_link_writes_where_it_leads(void **state)
{
	assert_int_equal(mkdirat(top, "d", 0755), 0);
	assert_int_equal(symlinkat("../e", top, "d/l"), 0);
	assert_int_equal(symlinkat("loop", top, "loop"), 0);
	auto_close int fd = create("d/l", 0, "x");
	assert_int_equal(commit("d/l", 0, 0, fd), ERR_NONE);
	assert_file(top, "e", "x", 0644);
	assert_true(S_ISLNK(only_info().mode));
	assert_int_equal(ask(FILE_CREATE, "loop"), ERR_INVALID);
	assert_int_equal(ask(FILE_CREATE, "d"), ERR_CONFLICT);
	assert_int_equal(ask(FILE_CREATE, "none/f"), ERR_NOT_FOUND);
	auto_close int late = create("new", 0, "x");
	assert_int_equal(mkdirat(top, "new", 0755), 0);
	assert_int_equal(commit("new", 0, 0, late), ERR_CONFLICT);
}

/* ---- directories ---- */

static enum error_code move(const char *from, const char *to)
{
	return ask_with((struct file_request){ .verb = FILE_MOVE }, from, to, -1);
}

static void test_directories_are_made_moved_and_removed(void **state)
{
	struct file_request all = { .verb = FILE_REMOVE, .flags = FILE_RECURSIVE };
	assert_int_equal(ask(FILE_MKDIR, "a/b/c"), ERR_NONE);
	assert_true(got.reply.flags & FILE_CREATED);
	assert_int_equal(ask(FILE_MKDIR, "a/b/c"), ERR_NONE);
	assert_false(got.reply.flags & FILE_CREATED);
	write_file(top, "f", "f", 0600);
	write_file(top, "a/g", "g", 0600);
	assert_int_equal(ask(FILE_MKDIR, "f"), ERR_CONFLICT);
	assert_int_equal(ask(FILE_MKDIR, "f/x"), ERR_INVALID);
	assert_int_equal(move("f", "a/b"), ERR_CONFLICT);
	assert_int_equal(move("a", "a/b/x"), ERR_INVALID);
	assert_int_equal(move("none", "x"), ERR_NOT_FOUND);
	assert_int_equal(move("f", "a/g"), ERR_NONE);
	assert_file(top, "a/g", "f", 0600);
	assert_int_equal(ask(FILE_REMOVE, "a"), ERR_CONFLICT);
	assert_int_equal(symlinkat("a", top, "l"), 0);
	assert_int_equal(ask_with(all, "l", NULL, -1), ERR_NONE);
	assert_true(is_there(top, "a/g"));
	assert_int_equal(fchmodat(top, "a/b", 0, 0), 0);
	assert_int_equal(ask_with(all, "a", NULL, -1), ERR_NONE);
	assert_int_equal(count_names("."), 0);
	assert_int_equal(ask_with(all, "a", NULL, -1), ERR_NOT_FOUND);
}

/* ---- archives ---- */

static void add_to(struct buf *out, struct tar_entry entry, const char *text)
{
	struct error err;
	entry.size = entry.kind == TAR_FILE ? strlen(text) : 0;
	assert_int_equal(tar_write_entry(out, &entry, &err), 0);
	buf_append(out, text, (size_t)entry.size);
	tar_write_padding(out, entry.size);
}

static enum error_code unpack(struct buf *archive, const char *path, uint64_t limit)
{
	int ends[2];
	struct file_request request = { .verb = FILE_UNPACK, .limit = limit };
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) >= (int)archive->len);
	forget();
	send_request(&request, path, STAGE, ends[0]);
	close(ends[0]);
	assert_int_equal(write(ends[1], archive->data, archive->len), archive->len);
	close(ends[1]);
	while (receive() == FILE_PART)
		;
	assert_false(is_there(top, STAGE));
	return got.err.code;
}

static void test_a_tree_goes_out_and_comes_in_again(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	auto_buf struct buf archive;
	struct stat st, other;
	int ends[2];
	assert_int_equal(ask(FILE_MKDIR, "t/sub"), ERR_NONE);
	write_file(top, "t/sub/f", "text", 0750);
	assert_int_equal(linkat(top, "t/sub/f", top, "t/hard", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", top, "t/out"), 0);
	assert_int_equal(mkfifoat(top, "t/fifo", 0600), 0);
	write_file(top, "t/hole", "begin", 0600);
	auto_close int hole = openat(top, "t/hole", O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(hole, "end", 3, 5 << 20), 3);
	assert_int_equal(ftruncate(hole, 9 << 20), 0);
	assert_int_equal(utimensat(top, "t/sub/f", old, 0), 0);
	assert_int_equal(utimensat(top, "t/sub", old, 0), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
	assert_int_equal(
		ask_with((struct file_request){ .verb = FILE_PACK }, "t", NULL, ends[1]), ERR_NONE);
	close(ends[1]);
	buf_init(&archive, 1 << 20);
	ssize_t len;
	while ((len = read(ends[0], buf_reserve(&archive, 65536), 65536)) > 0)
		buf_grew(&archive, (size_t)len);
	close(ends[0]);
	assert_in_range(archive.len, 1024, 65536); /* holes are left out */
	assert_int_equal(unpack(&archive, "new/place", 1 << 20), ERR_NONE);
	assert_file(top, "new/place/sub/f", "text", 0750);
	assert_false(is_there(top, "new/place/fifo"));
	assert_int_equal(fstatat(top, "new/place/sub/f", &st, 0), 0);
	assert_int_equal(fstatat(top, "new/place/hard", &other, 0), 0);
	assert_int_equal(st.st_ino, other.st_ino);
	assert_int_equal(st.st_mtime, 1000);
	assert_int_equal(fstatat(top, "new/place/sub", &st, 0), 0);
	assert_int_equal(st.st_mtime, 1000);
	assert_int_equal(fstatat(top, "new/place/hole", &st, 0), 0);
	assert_int_equal(st.st_size, 9 << 20);
	assert_true(st.st_blocks * 512 < 1 << 20);
}

static void test_what_may_not_come_in_changes_nothing(void **state)
{
	static const struct {
		struct tar_entry entries[3];
		enum error_code code;
	} cases[] = {
		{ { { TAR_FILE, "/abs" } }, ERR_DENIED },
		{ { { TAR_FILE, "a/../../x" } }, ERR_DENIED },
		{ { { TAR_SYMLINK, "l", "/tmp" }, { TAR_FILE, "l/x" } }, ERR_DENIED },
		{ { { TAR_DIRECTORY, "d" }, { TAR_SYMLINK, "d", "x" } }, ERR_INVALID },
		{ { { TAR_SYMLINK, "l", "kept" }, { TAR_HARDLINK, "h", "l" } }, ERR_DENIED },
		{ { { TAR_HARDLINK, "h", "kept" } }, ERR_DENIED },
		{ { { TAR_FILE, "su", .mode = 04755 } }, ERR_DENIED },
		{ { { TAR_DIRECTORY, "kept" } }, ERR_CONFLICT },
		{ { { TAR_FILE, "there" } }, ERR_CONFLICT },
	};
	write_file(top, "kept", "kept", 0600);
	assert_int_equal(mkdirat(top, "there", 0700), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		auto_buf struct buf archive;
		buf_init(&archive, 1 << 20);
		add_to(&archive, (struct tar_entry){ TAR_FILE, "fine", .mode = 0600 }, "fine");
		for (size_t n = 0; n < 3 && cases[i].entries[n].name; n++)
			add_to(&archive, cases[i].entries[n], "");
		tar_write_end(&archive);
		assert_int_equal(unpack(&archive, ".", 1 << 20), cases[i].code);
		assert_int_equal(count_names("."), 2);
		assert_file(top, "kept", "kept", 0600);
	}
}

static void test_an_archive_that_is_cut_too_large_or_canceled_changes_nothing(void **state)
{
	struct file_request cancel = { .magic = FILE_MAGIC, .verb = FILE_CANCEL },
			    request = { .verb = FILE_UNPACK, .limit = 1 << 20 };
	auto_buf struct buf archive;
	int ends[2];
	buf_init(&archive, 1 << 20);
	add_to(&archive, (struct tar_entry){ TAR_FILE, "d/f", .mode = 0600 }, "fine");
	assert_int_equal(unpack(&archive, "new", 1 << 20), ERR_INVALID); /* without its end */
	tar_write_end(&archive);
	assert_int_equal(unpack(&archive, "new", 4096), ERR_LIMIT);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	forget();
	send_request(&request, "new", STAGE, ends[0]);
	assert_int_equal(receive(), FILE_PART);
	close(ends[0]);
	assert_int_equal(write(ends[1], archive.data, archive.len), archive.len);
	assert_int_equal(send(channel, &cancel, sizeof cancel, 0), sizeof cancel);
	close(ends[1]);
	assert_int_equal(receive(), FILE_FAILED);
	assert_int_equal(got.err.code, ERR_CANCELED);
	assert_int_equal(count_names("."), 0);
	assert_int_equal(unpack(&archive, "new", 8192), ERR_NONE);
	assert_file(top, "new/d/f", "fine", 0600);
	assert_in_range(got.reply.bytes, 4096, 8192);
}

static void test_what_a_dead_agent_left_is_tidied(void **state)
{
	assert_int_equal(ask(FILE_MKDIR, "a/" STAGE "/d"), ERR_NONE);
	assert_int_equal(
		ask_with((struct file_request){ .verb = FILE_TIDY }, "a/b/c", STAGE, -1), ERR_NONE);
	assert_int_equal(count_names("a"), 0);
	assert_int_equal(
		ask_with((struct file_request){ .verb = FILE_TIDY }, "a", "../a", -1), ERR_INVALID);
}

static void test_an_archive_whose_agent_was_killed_is_unpacked_by_the_next(void **state)
{
	auto_buf struct buf archive;
	buf_init(&archive, 1 << 20);
	add_to(&archive, (struct tar_entry){ .name = "f", .mode = 0644 }, "text");
	tar_write_end(&archive);
	assert_int_equal(mkdirat(top, STAGE, 0700), 0);
	write_file(top, STAGE "/half", "of another one", 0644);
	assert_int_equal(unpack(&archive, ".", 1 << 20), ERR_NONE);
	assert_file(top, "f", "text", 0644);
	assert_false(is_there(top, "half"));
	assert_false(is_there(top, STAGE));
}

static void test_what_is_no_request_ends_the_server(void **state)
{
	struct file_request request = {
		.magic = FILE_MAGIC, .verb = FILE_VERB_COUNT, .path_len = 1
	};
	char byte;
	assert_int_equal(send(channel, &request, sizeof request, 0), sizeof request);
	assert_int_equal(recv(channel, &byte, 1, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILE_TEST(test_a_file_is_shown_and_opened),
		FILE_TEST(test_what_could_block_is_not_opened),
		FILE_TEST(test_a_listing_is_sorted_and_paged),
		FILE_TEST(test_writing_replaces_and_says_so),
		FILE_TEST(test_what_is_committed_twice_is_there_once),
		FILE_TEST(test_a_commit_that_was_cut_short_is_finished_by_the_next),
		FILE_TEST(test_writing_through_a_link_writes_where_it_leads),
		FILE_TEST(test_directories_are_made_moved_and_removed),
		FILE_TEST(test_a_tree_goes_out_and_comes_in_again),
		FILE_TEST(test_what_may_not_come_in_changes_nothing),
		FILE_TEST(test_an_archive_that_is_cut_too_large_or_canceled_changes_nothing),
		FILE_TEST(test_what_a_dead_agent_left_is_tidied),
		FILE_TEST(test_an_archive_whose_agent_was_killed_is_unpacked_by_the_next),
		FILE_TEST(test_what_is_no_request_ends_the_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
