#include "cli/run/run_policy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "base/walk.h"
#include "cli/run/policy_file.h"
#include "envs/shown.h"
#include "model/nouns/environment.h"
#include "policy/inputs.h"

static int read_operator(struct arena *arena, struct policy_operator *policy, struct error *err)
{
	struct config config;
	struct error none;
	const char *path;
	*policy = (struct policy_operator){ 0 };
	if (home_find_path(arena, &path, &none))
		return 0;
	return shown_read(path, arena, &config, err) ||
			       policy_file_operator(&config, arena, policy, err)
		       ? -1
		       : 0;
}

static int build_stack(struct command *command, enum workspace_view view,
	struct policy_stack *stack, struct error *err)
{
	static const text_list no_rules;
	const struct options *run = &command->options;
	struct arena *arena = &command->arena;
	const char *top = plan_view_path(view), *own = NULL, *own_sources = NULL;
	const struct policy_places places = { .workspace = top, .home = top };
	struct policy_operator operator;
	if (read_operator(arena, &operator, err) ||
		(run->settings && policy_file_settings(run->settings, arena, &own, err)) ||
		(run->sources && policy_file_sources(run->sources, arena, &own_sources, err)))
		return -1;
	const struct policy_layer layers[POLICY_STACK_MAX] = {
		{ "the operator's policy", operator.settings, operator.sources,
							      operator.otherwise != NULL,
			"the operator" },
		{ "settings of the template", run->template_settings, run->template_sources, false,
			"the template" },
		{ "the files of the command line", own, own_sources, false, "the command line" },
	};
	enum policy_decision otherwise = POLICY_ASK;
	if (operator.otherwise)
		policy_decision_from_name(operator.otherwise, &otherwise);
	return policy_stack_build(
		stack, layers, POLICY_STACK_MAX, &no_rules, otherwise, &places, arena, err);
}

/* ---- the user ---- */

static void print_words(struct buf *out, char *const *argv)
{
	for (; *argv; argv++) {
		buf_char(out, ' ');
		buf_quoted(out, str_from(*argv));
	}
	buf_char(out, '\n');
}

static void print_steps(struct buf *out, const struct policy_verdict *verdict)
{
	for (size_t i = 0; i < verdict->trail.count; i++) {
		const struct policy_step *step = &verdict->trail.items[i];
		buf_printf(out, "  %-5s  ", policy_decision_name(step->decision));
		buf_quoted(out, str_from(step->subject));
		if (step->rule || step->reason) {
			buf_text(out, step->rule ? "  rule " : "  ");
			buf_escaped(out, str_from(step->rule ? step->rule : step->reason));
		}
		buf_char(out, '\n');
	}
}

/* A line of the controlling terminal, never of the command's input, and nothing that was typed
 * before the question. */
static bool is_approved(const struct plan_options *options, const struct policy_verdict *verdict)
{
	auto_close int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	char line[16] = "";
	if (terminal < 0 || !isatty(terminal))
		return false;
	buf_text(&text, "carrel: the policy wants this command to be approved:\n ");
	print_words(&text, options->argv);
	buf_printf(&text, "  in %s\n", options->cwd ? options->cwd : plan_view_path(options->view));
	print_steps(&text, verdict);
	buf_text(&text, "Run it? [y/N] ");
	if (tcflush(terminal, TCIFLUSH) || fd_write_full(terminal, text.data, text.len) < 0)
		return false;
	ssize_t len;
	while ((len = read(terminal, line, sizeof line - 1)) < 0 && errno == EINTR)
		;
	struct str answer = str_trim((struct str){ line, len > 0 ? (size_t)len : 0 });
	return str_is(answer, "y") || str_is(answer, "Y") || str_is(answer, "yes");
}

static int refuse(const struct policy_verdict *verdict, bool was_asked, struct arena *arena,
	struct error *err)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	bool is_denied = verdict->decision == POLICY_DENY;
	print_steps(&text, verdict);
	(void)!fd_write_full(STDERR_FILENO, text.data, text.len);
	fail(err, ERR_POLICY, "%s: %s",
		is_denied   ? "denied"
		: was_asked ? "denied by the user"
			    : "denied, since it would have to be approved",
		policy_explain(verdict, arena));
	return is_denied || was_asked
		       ? -1
		       : error_hint(err, "--ask asks on the terminal; an allow rule allows it");
}

/* ---- the command ---- */

static void read_env(const text_list *given, struct arena *arena, pair_list *env)
{
	for (size_t i = 0; i < given->count; i++) {
		const char *pair = given->items[i];
		size_t len = strcspn(pair, "=");
		vec_push(arena, env,
			(struct text_pair){
				arena_bytes(arena, pair, len), pair + len + (pair[len] == '=') });
	}
}

int run_policy_environment(const struct policy_stack *stack, const struct env_meta *meta,
	struct arena *arena, struct error *err)
{
	const char *manager = env_kind_row_of(meta)->manager;
	text_list names = { 0 };
	for (size_t i = 0; i < meta->packages.count; i++)
		vec_push(arena, &names, meta->packages.items[i].key);
	return names.count && policy_stack_check_packages(
				      stack, manager, &names, meta->size_bytes, err)
		       ? error_context(err, "denied")
		       : 0;
}

/* A file of --dir, without following links: the command would see the same. Without --dir the
 * workspace is empty. Others, but what a sandbox has none of, aren't known. */
static int open_input(int dir, const char *top, const struct policy_input *input)
{
	static const int flags[] = { [POLICY_INPUT_FILE] = O_RDONLY | O_NONBLOCK | O_NOCTTY,
		[POLICY_INPUT_TYPE] = O_PATH | O_NOFOLLOW,
		[POLICY_INPUT_NAMES] = O_RDONLY | O_DIRECTORY };
	const char *path = input->path;
	if (!path_is_beneath(path, top)) {
		bool is_absent = !strchr(path + 1, '/') || path_is_beneath(path, "/env") ||
				 !strcmp(path, "/etc/gitconfig");
		errno = is_absent ? ENOENT : EACCES;
		return -1;
	}
	if (dir < 0) {
		errno = ENOENT;
		return -1;
	}
	const char *inside = path + strlen(top);
	inside += *inside == '/';
	return path_open_nolinks(dir, *inside ? inside : ".", flags[input->kind], 0);
}

static int read_names(int fd, struct arena *arena, struct str *text)
{
	auto_buf struct buf names = buf_empty(POLICY_INPUT_MAX);
	auto_walk DIR *walk = walk_from(dup(fd));
	struct dirent *entry;
	struct stat st;
	size_t count = 0;
	while (walk && (entry = walk_next(walk))) {
		if (++count > POLICY_INPUT_NAMES_MAX || strchr(entry->d_name, '\n') ||
			fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			return -1;
		buf_printf(&names, "%s%s\n", entry->d_name, S_ISDIR(st.st_mode) ? "/" : "");
	}
	*text = (struct str){ arena_bytes(arena, names.len ? names.data : "", names.len),
		names.len };
	return walk && !errno && !names.overflow ? 0 : -1;
}

static int read_input(int fd, enum policy_input_kind kind, struct arena *arena, struct str *text)
{
	struct stat st;
	switch (kind) {
	case POLICY_INPUT_FILE:
		return file_read(fd, POLICY_INPUT_MAX, arena, text);
	case POLICY_INPUT_TYPE:
		if (fstat(fd, &st))
			return -1;
		*text = str_from(path_type(st.st_mode));
		return 0;
	case POLICY_INPUT_NAMES:
		return read_names(fd, arena, text);
	}
	return -1;
}

static void read_inputs(const struct plan_options *options, struct policy_inputs *inputs)
{
	const char *top = plan_view_path(options->view);
	auto_close int dir =
		options->dir ? open(options->dir->source, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	struct policy_input *input;
	while ((input = policy_inputs_next(inputs))) {
		auto_close int fd = open_input(dir, top, input);
		struct str text;
		if (fd < 0)
			policy_inputs_fail(input,
				errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_DENIED);
		else if (read_input(fd, input->kind, inputs->arena, &text))
			policy_inputs_fail(input, ERR_LIMIT);
		else
			policy_inputs_give(inputs, input, text);
	}
}

int run_policy(struct command *command, struct plan_options *options, struct policy_stack *stack,
	struct error *err)
{
	const struct options *run = &command->options;
	struct arena *arena = &command->arena;
	struct policy_verdict verdict;
	text_list argv = { 0 };
	pair_list env = { 0 };
	if (build_stack(command, options->view, stack, err))
		return -1;
	if (!stack->count && run->ask)
		cli_say("--ask: no rules hold, so nothing is asked; -s FILE gives rules");
	if (!stack->count)
		return 0;
	options->judged = true;
	denials_of(stack, arena, &options->denials, NULL);
	options->limits.memory_bytes = policy_stack_limit_memory(stack,
		options->limits.memory_bytes ? options->limits.memory_bytes : LIMIT_MEMORY_DEFAULT);
	options->limits.timeout_ms = policy_stack_limit_time(stack, options->limits.timeout_ms);
	for (char *const *word = options->argv; *word; word++)
		vec_push(arena, &argv, (const char *)*word);
	read_env(&options->env, arena, &env);
	const char *top = plan_view_path(options->view);
	struct policy_inputs inputs = { .arena = arena };
	const struct policy_question question = { .argv = &argv,
		.env = &env,
		.cwd = options->cwd ? options->cwd : top,
		.home = top,
		.inputs = &inputs };
	if (run->plan)
		return 0;
	policy_stack_judge(stack, &question, arena, &verdict);
	while (verdict.decision == POLICY_ASK && policy_inputs_go_on(&inputs)) {
		read_inputs(options, &inputs);
		policy_stack_judge(stack, &question, arena, &verdict);
	}
	if (verdict.decision == POLICY_ALLOW)
		return 0;
	if (verdict.decision == POLICY_ASK && run->ask && is_approved(options, &verdict))
		return 0;
	return refuse(&verdict, run->ask, arena, err);
}
