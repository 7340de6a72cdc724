/* carrel run --template: carreld reads the YAML, as a locked role without network; what it says is
 * put under the options that were typed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/template.h"
#include "format/json_read.h"
#include "model/template.h"
#include "proc/role.h"

#define ANSWER_MAX ((size_t)4 << 20)

static bool is_path(const char *text)
{
	return strchr(text, '/') || strchr(text, '.') || !strcmp(text, "-");
}

/* What the role reads: the text of a file, or nothing when it is to find a name. */
static int open_input(const char *asked, struct arena *arena, int *fd, struct error *err)
{
	struct str text = STR("");
	if (is_path(asked) && template_read_file(asked, arena, &text, err))
		return -1;
	auto_close int made = memfd_create("template", MFD_CLOEXEC);
	if (made < 0 || fd_write_full(made, text.data, text.len) != (ssize_t)text.len ||
		lseek(made, 0, SEEK_SET))
		return fail_errno(err, "pass the template on");
	*fd = take_fd(&made);
	return 0;
}

static int start(const char *asked, int input, int answer, struct arena *arena, pid_t *pid,
	struct error *err)
{
	char self[PATH_MAX], carreld[PATH_MAX];
	struct error no_home;
	const char *home = NULL;
	uid_t uid;
	gid_t gid;
	auto_close int pidfd = -1;
	auto_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0)
		return fail_errno(err, "open '/dev/null'");
	if (cli_find_programs(self, carreld, err))
		return -1;
	if (home_find_path(arena, &home, &no_home))
		home = "";
	home_find_owner(&uid, &gid);
	char *const argv[] = { arena_text(arena, "carrel-template"), NULL };
	char *const env[] = { arena_printf(arena, "CARREL_HOME=%s", home),
		arena_printf(arena, "CARREL_TEMPLATE=%s", is_path(asked) ? "" : asked), NULL };
	const struct role_path root[] = { { home, ROLE_READ } };
	const struct role_start role = { .program = carreld,
		.argv = argv,
		.env = env,
		.uid = geteuid() == 0 ? uid : (uid_t)-1,
		.gid = gid,
		.fds = { input, answer },
		.fd_count = 2,
		.log = null,
		.root = root,
		.root_count = home[0] ? 1 : 0 };
	return role_start(&role, pid, &pidfd, err);
}

/* {"template": {…}, "warnings": […]}, or {"error": {…}}. */
static int read_answer(int fd, struct arena *arena, struct template *t, struct error *err)
{
	struct json_value *value;
	struct str text;
	if (lseek(fd, 0, SEEK_SET) || file_read(fd, ANSWER_MAX, arena, &text) ||
		json_read(text, arena, &value, err))
		return fail(err, ERR_FAILED, "carreld could not read the template");
	const struct json_value *error = json_member(value, "error");
	const char *hint = json_member_text(error, "hint"),
		   *message = json_member_text(error, "message");
	const struct json_value *found = json_member(value, "template");
	if (error) {
		fail(err, error_code_from_name(json_member_text(error, "code"), ERR_FAILED), "%s",
			message ? message : "carreld could not read the template");
		return hint ? error_hint(err, "%s", hint) : -1;
	}
	if (!found)
		return fail(err, ERR_FAILED, "carreld printed no template");
	template_say_warnings(value);
	return template_read(found, arena, t, err);
}

static int resolve(const char *asked, struct arena *arena, struct template *t, struct error *err)
{
	auto_close int input = -1;
	auto_close int answer = memfd_create("answer", MFD_CLOEXEC);
	pid_t pid;
	int status;
	if (answer < 0)
		return fail_errno(err, "make a file for the template");
	if ((!is_path(asked) && template_check_name(asked, err)) ||
		open_input(asked, arena, &input, err) ||
		start(asked, input, answer, arena, &pid, err))
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!read_answer(answer, arena, t, err))
		return 0;
	return is_path(asked) && err->code == ERR_INVALID ? error_context(err, "%s", asked) : -1;
}

/* Variables of a template come first: of one that is set twice the last one counts. */
static void set_variables(struct options *options, const pair_list *env, struct arena *arena)
{
	text_list all = { 0 };
	for (size_t i = 0; i < env->count; i++)
		vec_push(arena, &all,
			arena_printf(arena, "%s=%s", env->items[i].key, env->items[i].value));
	for (size_t i = 0; i < options->variables.count; i++)
		vec_push(arena, &all, options->variables.items[i]);
	options->variables = all;
}

int template_use(struct options *options, struct arena *arena, struct error *err)
{
	struct template t;
	if (!options->template)
		return 0;
	if (resolve(options->template, arena, &t, err))
		return error_context(err, "--template");
	struct workspace wanted = { .limits = options->limits,
		.environment = options->environment,
		.attach = options->attach,
		.network = { .mode = options->net,
			.allow = options->allow_domains,
			.deny = options->deny_domains },
		.python = options->env.python,
		.requirements = options->env.requirement_files.count ? "" : NULL,
		.packages = options->env.pip,
		.node = { .version = options->env.node.version,
			.package_json = options->env.requirement_files.count ? "" : NULL,
			.packages = options->env.node.packages } };
	template_apply(&t, arena, &wanted);
	options->limits = wanted.limits;
	options->env.python = wanted.python;
	options->env.pip = wanted.packages;
	options->env.node.version = wanted.node.version;
	options->env.node.packages = wanted.node.packages;
	if (!options->env.node.runtime && wanted.node.packages.count)
		options->env.node.runtime = template_runtime(&t);
	options->attach = wanted.attach;
	options->net = wanted.network.mode;
	options->allow_domains = wanted.network.allow;
	options->deny_domains = wanted.network.deny;
	options->template_settings = wanted.policy.template_settings;
	options->template_sources = wanted.policy.template_sources;
	if (!options->view)
		options->view = workspace_view_names[wanted.view];
	set_variables(options, &wanted.env, arena);
	return 0;
}
