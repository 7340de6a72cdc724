#include "model/policy/internal.h"

#include "base/path.h"

static void add_step(struct judge *j, const struct policy_step *given)
{
	struct policy_step step = *given;

	if (j->policy->never_asks && step.decision == POLICY_ASK && !step.by)
		step.decision = POLICY_ALLOW;
	if (j->policy->denies_asks && step.decision == POLICY_ASK)
		step.decision = POLICY_DENY;
	step.within = j->within;
	vec_push(j->arena, &j->verdict->trail, step);
	if (step.decision > j->verdict->decision)
		j->verdict->decision = step.decision;
}

void judge_step(struct judge *j, const char *subject, enum policy_decision decision,
	const struct policy_rule *by, const char *reason)
{
	add_step(j, &(struct policy_step){ .subject = subject,
			    .by = by,
			    .rule = by ? by->text : NULL,
			    .reason = reason,
			    .decision = decision });
}

void judge_open_step(struct judge *j, const char *subject, enum policy_decision decision,
	const char *reason, const char *suggestion)
{
	add_step(j, &(struct policy_step){ .subject = subject,
			    .reason = reason,
			    .decision = decision,
			    .suggestion = suggestion });
}

void judge_words(struct judge *j, const char *subject, const shell_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		for (size_t k = 0; k < words->items[i].parts.count; k++) {
			const struct shell_part *part = &words->items[i].parts.items[k];

			if (part->is_evaluated)
				judge_step(j, subject, POLICY_ASK, NULL,
					"arithmetic on the value of a variable can run commands");
			if (part->is_assigned && variable_is_dangerous(part->text))
				judge_step(j, subject, POLICY_ASK, NULL,
					arena_printf(
						j->arena, "'%s' changes what runs", part->text));
			judge_words(j, subject, &part->words);
		}
}

static const char *subject_of(struct judge *j, const struct shell_command *command)
{
	return arena_bytes(j->arena, command->source.data, command->source.len);
}

/* [[ … ]]: the operators that compare numbers evaluate their operands; -v expands a subscript. */
static void judge_condition(struct judge *j, const struct shell_command *command)
{
	static const char *const evaluating[] = { "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v",
		"-R" };

	for (size_t i = 0; i < command->words.count; i++)
		for (size_t k = 0; k < sizeof evaluating / sizeof *evaluating; k++)
			if (str_is(command->words.items[i].source, evaluating[k]))
				judge_step(j, subject_of(j, command), POLICY_ASK, NULL,
					"a comparison of numbers can run commands");
}

static int judge_command(void *ctx, const struct shell_command *command)
{
	struct judge *j = ctx;
	const char *name = command->words.count ? command->words.items[0].literal : NULL;

	if (command->kind == SHELL_SIMPLE) {
		judge_simple(j, command);
		return 0;
	}
	judge_words(j, subject_of(j, command), &command->words);
	for (size_t i = 0; i < command->redirects.count; i++)
		judge_redirect(j, subject_of(j, command), &command->redirects.items[i]);
	if (command->kind == SHELL_CONDITION)
		judge_condition(j, command);
	if ((command->kind == SHELL_FOR || command->kind == SHELL_SELECT) &&
		variable_is_dangerous(name))
		judge_step(j, subject_of(j, command), POLICY_ASK, NULL,
			arena_printf(j->arena, "'%s' changes what runs", name));
	return 0;
}

struct moves { /* of a script */
	struct judge *judge;
	size_t count;
	const char *to; /* the directory of the first one; NULL: not known */
};

/* Commands after which a relative path means another file. */
static int find_move(void *ctx, const struct shell_command *command)
{
	static const char *const movers[] = { "cd", "pushd", "popd", "chdir" };
	struct moves *moves = ctx;
	const shell_words *words = &command->words;

	for (size_t i = 0; i < words->count && command->kind == SHELL_SIMPLE; i++)
		for (size_t k = 0; k < sizeof movers / sizeof *movers; k++) {
			const char *name = words->items[i].literal;

			if (!name || strcmp(name, movers[k]) != 0)
				continue;
			moves->count++;
			if (i == 0 && words->count == 2 && k == 0 && words->items[1].literal &&
				words->items[1].literal[0] != '-' && words->items[1].literal[0])
				moves->to = words->items[1].literal;
		}
	return 0;
}

static void note_moves(struct judge *j, const struct shell_list *list)
{
	struct moves moves = { .judge = j };

	shell_visit(list, find_move, &moves);
	if (!moves.count)
		return;
	if (moves.count == 1 && moves.to && !j->is_moved && !j->moved_to)
		j->moved_to = path_normalize(j->arena, j->request->cwd, moves.to);
	else
		j->is_moved = true;
}

void judge_script(struct judge *j, enum shell_dialect dialect, struct str script)
{
	const struct shell_list *list;
	struct error err;
	bool is_understood = false;

	if (++j->depth > POLICY_DEPTH_MAX) {
		judge_step(j, "", POLICY_ASK, NULL, "scripts in scripts are nested too deep");
		j->depth--;
		return;
	}
	is_understood = shell_parse(script, dialect, j->arena, &list, &err) == 0;
	if (!is_understood)
		judge_step(j,
			arena_bytes(j->arena, script.data, script.len < 200 ? script.len : 200),
			POLICY_ASK, NULL, arena_printf(j->arena, "not understood: %s", err.text));
	/* Where /bin/sh is bash, it runs what is denied. */
	if (!is_understood && dialect == SHELL_SH)
		is_understood = shell_parse(script, SHELL_BASH, j->arena, &list, &err) == 0;
	if (is_understood) {
		note_moves(j, list);
		shell_visit(list, judge_command, j);
	}
	j->depth--;
}

void policy_judge_script(const struct policy *policy, const struct policy_request *request,
	struct str script, struct policy_verdict *verdict)
{
	struct judge j = {
		.policy = policy, .request = request, .verdict = verdict, .arena = request->arena
	};

	*verdict = (struct policy_verdict){ .decision = POLICY_ALLOW };
	judge_script(&j, request->dialect, script);
	if (!verdict->trail.count)
		judge_step(&j, "", policy->otherwise.shell, NULL, "no command");
}

void policy_judge_argv(const struct policy *policy, const struct policy_request *request,
	const text_list *argv, struct policy_verdict *verdict)
{
	struct judge j = {
		.policy = policy, .request = request, .verdict = verdict, .arena = request->arena
	};
	struct shell_command command = { .kind = SHELL_SIMPLE, .line = 1 };
	const char *source = "";

	*verdict = (struct policy_verdict){ .decision = POLICY_ALLOW };
	for (size_t i = 0; i < argv->count; i++) {
		struct shell_word word = { .literal = argv->items[i],
			.source = str_from(argv->items[i]) };

		vec_push(j.arena, &word.parts,
			(struct shell_part){
				.kind = SHELL_TEXT, .is_quoted = true, .text = word.literal });
		vec_push(j.arena, &command.words, word);
		source =
			i ? arena_printf(j.arena, "%s %s", source, argv->items[i]) : argv->items[i];
	}
	command.source = str_from(source);
	judge_simple(&j, &command);
}

void policy_judge_file(const struct policy *policy, const struct policy_request *request,
	enum policy_operation operation, const char *path, struct policy_verdict *verdict)
{
	struct judge j = {
		.policy = policy, .request = request, .verdict = verdict, .arena = request->arena
	};
	const char *normal = path_normalize(j.arena, request->cwd, path);
	const struct policy_rule *by;

	*verdict = (struct policy_verdict){ .decision = POLICY_ALLOW };
	enum policy_decision decision = match_file(policy, operation, normal, &by);
	const char *subject = file_subject(&j, operation, normal);
	if (by || decision == POLICY_ALLOW)
		judge_step(&j, subject, decision, by, by ? NULL : "no rule matches");
	else
		judge_open_step(&j, subject, decision, "no rule matches", subject);
}

int policy_judge_subject(const struct policy *policy, const struct policy_request *request,
	const char *subject, struct policy_verdict *verdict, struct error *err)
{
	static const struct {
		const char *prefix;
		enum policy_operation operation;
	} files[] = { { "file(read:", POLICY_READ }, { "file(write:", POLICY_WRITE },
		{ "file(delete:", POLICY_DELETE } };
	size_t len = strlen(subject);

	if (len && subject[len - 1] != ')')
		return fail(err, ERR_INVALID, "'%s' has no ')' at its end", subject);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		size_t begin = strlen(files[i].prefix);

		if (strncmp(subject, files[i].prefix, begin) != 0)
			continue;
		const char *path = arena_bytes(request->arena, subject + begin, len - begin - 1);
		if (path[0] == '~' && (path[1] == '/' || !path[1]) && request->home)
			path = arena_printf(request->arena, "%s%s", request->home, path + 1);
		if (!path[0])
			return fail(err, ERR_INVALID, "'%s' names no file", subject);
		policy_judge_file(policy, request, files[i].operation, path, verdict);
		return 0;
	}
	if (strncmp(subject, "network(outbound:", 17) == 0) {
		struct policy_rule target = { 0 };

		if (rule_set_host(request->arena, (struct str){ subject + 17, len - 18 }, &target,
			    err) < 0 ||
			target.host[0] == '*')
			return fail(err, ERR_INVALID, "'%s' names no host", subject);
		policy_judge_network(
			policy, request, target.host, target.port ? target.port : 443, verdict);
		return 0;
	}
	return fail(err, ERR_INVALID,
		"'%s' isn't file(read|write|delete:PATH) or network(outbound:HOST[:PORT])",
		subject);
}
