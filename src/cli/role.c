#include "cli/role.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "cli/cli.h"

#define ANSWER_MAX ((size_t)4 << 20)

static int start(const struct role_question *question, int answer, struct arena *arena, pid_t *pid,
	struct error *err)
{
	static char *const no_env[] = { NULL };
	static const struct role_settings none;
	char self[PATH_MAX], carreld[PATH_MAX];
	uid_t uid;
	gid_t gid;
	auto_close int pidfd = -1;
	auto_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0)
		return fail_errno(err, "open '/dev/null'");
	if (cli_find_programs(self, carreld, err))
		return -1;
	home_find_owner(&uid, &gid);
	char *const argv[] = { arena_text(arena, question->name), NULL };
	struct role_start role = { .program = carreld,
		.argv = argv,
		.env = no_env,
		.settings =
			role_settings_print(question->settings ? question->settings : &none, arena),
		.uid = geteuid() == 0 ? uid : (uid_t)-1,
		.gid = gid,
		.fds = { question->input, answer },
		.fd_count = 2,
		.log = null,
		.root = question->root,
		.root_count = question->root_count };
	for (int i = 0; i < question->more_count; i++)
		role.fds[role.fd_count++] = question->more[i];
	return role_start(&role, pid, &pidfd, err);
}

static int read_answer(const struct role_question *question, int fd, struct arena *arena,
	const struct json_value **answer, struct error *err)
{
	struct json_value *value;
	struct str text;
	if (lseek(fd, 0, SEEK_SET) || file_read(fd, ANSWER_MAX, arena, &text) ||
		json_read(text, arena, &value, err))
		return fail(err, ERR_FAILED, "%s", question->failure);
	const struct json_value *error = json_member(value, "error");
	const char *message = json_member_text(error, "message");
	const char *hint = json_member_text(error, "hint");
	*answer = value;
	if (!error)
		return 0;
	fail(err, error_code_from_name(json_member_text(error, "code"), ERR_FAILED), "%s",
		message ? message : question->failure);
	return hint ? error_hint(err, "%s", hint) : -1;
}

int role_ask(const struct role_question *question, struct arena *arena,
	const struct json_value **answer, struct error *err)
{
	auto_close int fd = memfd_create("answer", MFD_CLOEXEC);
	pid_t pid;
	int status;
	if (fd < 0)
		return fail_errno(err, "make a file for the answer of carreld");
	if (start(question, fd, arena, &pid, err))
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return read_answer(question, fd, arena, answer, err);
}

int role_text(const char *data, size_t len, int *fd, struct error *err)
{
	auto_close int made = memfd_create("question", MFD_CLOEXEC);
	if (made < 0 || fd_write_full(made, data, len) != (ssize_t)len || lseek(made, 0, SEEK_SET))
		return fail_errno(err, "make a file for carreld");
	*fd = take_fd(&made);
	return 0;
}
