#include "policy/internal.h"

#include "base/buf.h"
#include "base/path.h"
#include "format/text/json.h"
#include "model/network/network.h"

static void keep_step(struct judge *j, struct policy_step step)
{
	struct policy_verdict *verdict = j->verdict;
	step.within = j->within;
	/* A step that changes the decision is always in the trail. */
	if (verdict->trail.count < POLICY_TRAIL_MAX || step.decision > verdict->decision)
		vec_push(j->arena, &verdict->trail, step);
	if (step.decision > verdict->decision)
		verdict->decision = step.decision;
}

static void push_step(struct judge *j, const struct policy_step *given)
{
	struct policy_step step = *given;
	if (j->policy->denies_asks && step.decision == POLICY_ASK)
		step.decision = POLICY_DENY;
	keep_step(j, step);
}

void judge_wait(struct judge *j, const char *subject, const char *reason)
{
	if (judge_spend(j, 8))
		keep_step(
			j, (struct policy_step){ .subject = subject,
				   .reason = reason,
				   .decision = j->policy->never_asks ? POLICY_ALLOW : POLICY_ASK });
}

void judge_give_up(struct judge *j, const char *reason)
{
	push_step(j,
		&(struct policy_step){ .subject = "", .decision = POLICY_ASK, .reason = reason });
}

bool judge_spend(struct judge *j, size_t steps)
{
	if (!j->is_spent && j->work->left > steps && j->arena->size <= j->size_max) {
		j->work->left -= steps;
		return true;
	}
	j->work->left = 0;
	if (!j->is_spent)
		judge_give_up(j, "it takes too much work to judge");
	j->is_spent = true;
	return false;
}

static void add_step(struct judge *j, const struct policy_step *given)
{
	struct policy_step step = *given;
	judge_spend(j, 8);
	if (j->policy->never_asks && step.decision == POLICY_ASK && !step.by)
		step.decision = POLICY_ALLOW;
	push_step(j, &step);
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

void judge_ask(struct judge *j, const char *subject, const char *reason, ...)
{
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	va_list args;
	va_start(args, reason);
	buf_vprintf(&text, reason, args);
	va_end(args);
	judge_step(j, subject, POLICY_ASK, NULL, arena_bytes(j->arena, text.data, text.len));
}

/* Whether a suggestion is a rule, and for what was asked alone: a path may have stars in it. */
static bool is_rule(const char *text)
{
	if (strncmp(text, "file(", 5) == 0 && (strpbrk(text, "*?") || strstr(text, "${")))
		return false;
	return rule_check_text(text, NULL) == 0;
}

void judge_open_step(struct judge *j, const char *subject, enum policy_decision decision,
	const char *reason, const char *suggestion)
{
	add_step(j, &(struct policy_step){ .subject = subject,
			    .reason = reason,
			    .decision = decision,
			    .suggestion = suggestion && is_rule(suggestion) ? suggestion : NULL });
}

void judge_words(struct judge *j, const char *subject, const shell_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		for (size_t k = 0; k < words->items[i].parts.count && !j->is_spent; k++) {
			const struct shell_part *part = &words->items[i].parts.items[k];
			if (part->is_evaluated)
				judge_ask(j, subject,
					"arithmetic on the value of a variable can run commands");
			if (part->is_assigned && variable_is_dangerous(part->text))
				judge_ask(j, subject, "'%s' changes what runs", part->text);
			judge_words(j, subject, &part->words);
		}
}

/* [[ … ]]: the operators that compare numbers evaluate their operands; -v expands a subscript. */
static bool condition_evaluates(const struct shell_command *command)
{
	static const char evaluating[] = "-eq -ne -lt -le -gt -ge -v -R";
	for (size_t i = 0; i < command->words.count; i++)
		if (words_have_part(evaluating, command->words.items[i].source.data,
			    command->words.items[i].source.len))
			return true;
	return false;
}

static int judge_command(void *ctx, const struct shell_command *command)
{
	struct judge *j = ctx;
	const char *name = command->words.count ? command->words.items[0].literal : NULL;
	/* Bounded time: commands that weren't judged can't be allowed. */
	if (j->is_spent)
		return 1;
	if (j->verdict->trail.count + 1 >= POLICY_TRAIL_MAX) {
		judge_give_up(j, "the script has too many commands");
		return 1;
	}
	if (command->kind == SHELL_SIMPLE) {
		judge_simple(j, command);
		return 0;
	}
	/* A compound command is shown by its beginning: what is in it has steps of its own. */
	size_t len = command->source.len < 200 ? command->source.len : 200;
	const char *subject = arena_bytes(j->arena, command->source.data, len);
	judge_words(j, subject, &command->words);
	for (size_t i = 0; i < command->redirects.count; i++)
		judge_redirect(j, subject, &command->redirects.items[i]);
	if (command->kind == SHELL_CONDITION && condition_evaluates(command))
		judge_ask(j, subject, "a comparison of numbers can run commands");
	if ((command->kind == SHELL_FOR || command->kind == SHELL_SELECT) &&
		variable_is_dangerous(name))
		judge_ask(j, subject, "'%s' changes what runs", name);
	return 0;
}

struct moves { /* of a script */
	struct judge *judge;
	size_t count;
	const char *to; /* the directory of the first one; NULL: not known */
};

/* Text that `eval` or `trap` runs: it may change the directory, also for what stands before it, in
 * a loop or a function. */
static bool may_move(const shell_words *words, size_t from)
{
	static const char *const parts[] = { "cd", "pushd", "popd", "chdir", "\\", "'", "\"", "$" };
	for (size_t i = from; i < words->count; i++)
		for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
			if (!words->items[i].literal || strstr(words->items[i].literal, parts[k]))
				return true;
	return false;
}

/* Commands after which a relative path means another file. */
static int find_move(void *ctx, const struct shell_command *command)
{
	static const char movers[] = "cd pushd popd chdir";
	struct moves *moves = ctx;
	const shell_words *words = &command->words;
	bool is_text = false; /* the words behind the first eval were looked at */
	for (size_t i = 0; i < words->count && command->kind == SHELL_SIMPLE; i++) {
		const char *name = words->items[i].literal;
		if (!is_text && words_have("eval trap", name)) {
			is_text = true;
			moves->count += may_move(words, i + 1) ? 2 : 0;
		}
		if (!words_have(movers, name))
			continue;
		moves->count++;
		const char *to = words->items[words->count - 1].literal;
		const char *option = words->count == 3 ? words->items[1].literal : NULL;
		/* With -P, ".." behind a link leads elsewhere. */
		bool is_plain = words->count == 2 || words_have("-- -L", option) ||
				(words_have("-P", option) && to && !strstr(to, ".."));
		if (i == 0 && strcmp(name, "cd") == 0 && is_plain && to && to[0] && to[0] != '-')
			moves->to = to;
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
	const struct shell_command *first = list->commands.items[0];
	j->begins_moved = j->depth == 1 && first->kind == SHELL_SIMPLE && !first->is_piped &&
			  first->words.count && first->words.items[0].literal &&
			  strcmp(first->words.items[0].literal, "cd") == 0;
}

void judge_script(struct judge *j, enum shell_dialect dialect, struct str script)
{
	const struct shell_list *list;
	struct error err;
	bool is_understood = false;
	if (++j->depth > POLICY_DEPTH_MAX || script.len > POLICY_SCRIPT_MAX) {
		judge_give_up(j, script.len > POLICY_SCRIPT_MAX
					 ? "the script is too long"
					 : "scripts in scripts are nested too deep");
		j->depth--;
		return;
	}
	if (!judge_spend(j, 1 + script.len)) {
		j->depth--;
		return;
	}
	is_understood = shell_parse(script, dialect, j->arena, &list, &err) == 0;
	if (!is_understood && err.code == ERR_LIMIT)
		judge_give_up(j, arena_text(j->arena, err.text));
	else if (!is_understood)
		judge_ask(j,
			arena_bytes(j->arena, script.data, script.len < 200 ? script.len : 200),
			"not understood: %s", err.text);
	/* Where /bin/sh is bash, it runs what is denied. */
	if (!is_understood && dialect == SHELL_SH && err.code != ERR_LIMIT)
		is_understood = shell_parse(script, SHELL_BASH, j->arena, &list, &err) == 0;
	if (is_understood) {
		note_moves(j, list);
		order_note_script(j, script, list);
		shell_visit(list, judge_command, j);
	}
	j->depth--;
}

void policy_judge_script(const struct policy *policy, const struct policy_request *request,
	struct str script, struct policy_verdict *verdict)
{
	struct judge j = judge_begin(policy, request, verdict);
	judge_script(&j, request->dialect, script);
	if (!verdict->trail.count)
		judge_step(&j, "", policy->otherwise.shell, NULL, "no command");
}

void policy_judge_argv(const struct policy *policy, const struct policy_request *request,
	const text_list *argv, struct policy_verdict *verdict)
{
	struct judge j = judge_begin(policy, request, verdict);
	struct shell_command command = { .kind = SHELL_SIMPLE, .line = 1 };
	auto_buf struct buf source = buf_empty(BUF_MAX_DEFAULT);
	for (size_t i = 0; i < argv->count; i++) {
		struct shell_word word = { .literal = argv->items[i],
			.source = str_from(argv->items[i]) };
		vec_push(j.arena, &word.parts,
			(struct shell_part){
				.kind = SHELL_TEXT, .is_quoted = true, .text = word.literal });
		vec_push(j.arena, &command.words, word);
		buf_printf(&source, "%s%s", i ? " " : "", argv->items[i]);
	}
	command.source = (struct str){ arena_bytes(j.arena, source.data, source.len), source.len };
	if (judge_spend(&j, 1 + source.len))
		judge_simple(&j, &command);
}

void policy_judge_file(const struct policy *policy, const struct policy_request *request,
	enum policy_operation operation, const char *path, struct policy_verdict *verdict)
{
	struct judge j = judge_begin(policy, request, verdict);
	file_judge(&j, operation, path_normalize(j.arena, request->cwd, path), true);
}

/* OPERATIONS:PATH */
static int judge_file_subject(struct judge *j, struct str text, struct error *err)
{
	struct str names, rest;
	unsigned operations;
	if (!str_cut(text, ':', &names, &rest) || !rest.len)
		return fail(err, ERR_INVALID, "file(%.*s) names no file", (int)text.len, text.data);
	if (policy_operations_parse(names, &operations, err) < 0)
		return -1;
	const char *path = arena_bytes(j->arena, rest.data, rest.len);
	if (path[0] == '~' && (path[1] == '/' || !path[1]) && j->request->home)
		path = arena_printf(j->arena, "%s%s", j->request->home, path + 1);
	for (unsigned operation = POLICY_READ; operation <= POLICY_DELETE; operation <<= 1)
		if (operations & operation)
			file_judge(j, (enum policy_operation)operation,
				path_normalize(j->arena, j->request->cwd, path), true);
	return 0;
}

int policy_judge_subject(const struct policy *policy, const struct policy_request *request,
	const char *subject, struct policy_verdict *verdict, struct error *err)
{
	size_t len = strlen(subject);
	if (len && subject[len - 1] != ')')
		return fail(err, ERR_INVALID, "'%s' has no ')' at its end", subject);
	if (strncmp(subject, "file(", 5) == 0) {
		struct judge j = judge_begin(policy, request, verdict);
		return judge_file_subject(&j, (struct str){ subject + 5, len - 6 }, err);
	}
	if (strncmp(subject, "network(outbound:", 17) == 0 && len > 18 && subject[17] != '*') {
		struct str target = { subject + 17, len - 18 };
		char host[NETWORK_HOST_SIZE];
		struct error invalid;
		uint16_t port;
		if (network_authority_parse(target, 443, host, &port, &invalid) == 0) {
			policy_judge_network(policy, request, host, port, verdict);
			return 0;
		}
		/* No rule can allow a host that isn't in its normal form. */
		struct judge j = judge_begin(policy, request, verdict);
		judge_step(&j, arena_text(j.arena, subject), POLICY_DENY, NULL,
			arena_text(j.arena, invalid.text));
		return 0;
	}
	return fail(err, ERR_INVALID,
		"'%s' isn't file(read|write|delete|*:PATH) or network(outbound:HOST[:PORT])",
		subject);
}

void policy_judge_tree(const struct policy *policy, const struct policy_request *request,
	enum policy_operation operation, const char *path, struct policy_verdict *verdict)
{
	struct judge j = judge_begin(policy, request, verdict);
	const char *normal = path_normalize(j.arena, request->cwd, path);
	const struct policy_rule *by;
	enum policy_decision decision = match_file(&j, operation, normal, &by);
	if (decision == POLICY_ALLOW)
		decision = match_files_below(&j, operation, normal, &by);
	judge_step(&j,
		file_subject(
			&j, operation, arena_printf(j.arena, "%s/**", normal[1] ? normal : "")),
		decision, decision == POLICY_ASK ? NULL : by,
		decision == POLICY_ASK ? "a rule may forbid a file below it, or none allows it"
		: by		       ? NULL
				       : "no rule matches");
}

void policy_judge_variables(const struct policy *policy, const struct policy_request *request,
	const pair_list *variables, struct policy_verdict *verdict)
{
	struct judge j = judge_begin(policy, request, verdict);
	for (size_t i = 0; i < variables->count && judge_spend(&j, 128); i++)
		if (variables->items[i].value && variable_is_dangerous(variables->items[i].key))
			judge_ask(&j,
				arena_printf(j.arena, "%s=%s", variables->items[i].key,
					variables->items[i].value),
				"the variable changes what runs");
}

void policy_print_trail(struct json *j, const char *key, const struct policy_verdict *verdict)
{
	json_array(j, key);
	for (size_t i = 0; i < verdict->trail.count; i++) {
		const struct policy_step *step = &verdict->trail.items[i];
		json_object(j, NULL);
		json_text(j, "subject", step->subject);
		json_text(j, "decision", policy_decision_name(step->decision));
		json_text(j, "rule", step->rule);
		json_text(j, "reason", step->reason);
		json_end(j);
	}
	json_end(j);
}
