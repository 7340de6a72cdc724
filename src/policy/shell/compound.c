#include "policy/shell/internal.h"

/* A list that isn't empty, up to `closing`, which is read. */
int shell_read_body(struct shell_parser *p, struct shell_command *command, const char *closing)
{
	struct shell_list *list;
	if (shell_read_list(p, &list) < 0)
		return -1;
	if (!list->commands.count)
		return shell_unknown(p, "a command is missing before '%s'", closing);
	vec_push(p->arena, &command->bodies, list);
	if (strcmp(closing, ")") != 0) {
		const char *word = shell_next_word(p);
		if (!word || strcmp(word, closing) != 0)
			return shell_unknown(p, "'%s' is missing", closing);
	}
	return shell_accept(p, closing) ? 0 : shell_unknown(p, "'%s' is missing", closing);
}

static int read_group(struct shell_parser *p, struct shell_command *command)
{
	command->kind = SHELL_GROUP;
	shell_skip(p, 1);
	return shell_read_body(p, command, "}");
}

static int read_evaluation(struct shell_parser *p, struct shell_command *command)
{
	struct shell_word word = { 0 };
	if (p->dialect != SHELL_BASH)
		return shell_unknown(p, "'((' that shells read differently");
	shell_skip(p, 2);
	command->kind = SHELL_EVALUATION;
	if (shell_read_arithmetic(p, &word) < 0)
		return -1;
	vec_push(p->arena, &command->words, word);
	return 0;
}

static int read_subshell(struct shell_parser *p, struct shell_command *command)
{
	if (shell_look(p, 1) == '(')
		return read_evaluation(p, command);
	command->kind = SHELL_SUBSHELL;
	shell_skip(p, 1);
	return shell_read_body(p, command, ")");
}

static int read_if(struct shell_parser *p, struct shell_command *command)
{
	command->kind = SHELL_IF;
	shell_skip(p, 2);
	for (;;) {
		struct shell_list *list;
		const char *word;
		if (shell_read_body(p, command, "then") < 0 || shell_read_list(p, &list) < 0)
			return -1;
		if (!list->commands.count)
			return shell_unknown(p, "a command is missing after 'then'");
		vec_push(p->arena, &command->bodies, list);
		word = shell_next_word(p);
		if (word && strcmp(word, "fi") == 0) {
			shell_skip(p, 2);
			return 0;
		}
		if (word && strcmp(word, "else") == 0) {
			shell_skip(p, 4);
			return shell_read_body(p, command, "fi");
		}
		if (!word || strcmp(word, "elif") != 0)
			return shell_unknown(p, "'fi' is missing");
		shell_skip(p, 4);
	}
}

static int read_loop(struct shell_parser *p, struct shell_command *command)
{
	command->kind = shell_current(p) == 'w' ? SHELL_WHILE : SHELL_UNTIL;
	shell_skip(p, 5);
	return shell_read_body(p, command, "do") < 0 ? -1 : shell_read_body(p, command, "done");
}

/* "do … done" after separators. */
static int read_do(struct shell_parser *p, struct shell_command *command)
{
	const char *word;
	shell_skip_blanks(p);
	if (shell_current(p) == ';' && shell_look(p, 1) != ';')
		shell_skip(p, 1);
	if (shell_skip_lines(p) < 0)
		return -1;
	word = shell_next_word(p);
	if (!word || strcmp(word, "do") != 0)
		return shell_unknown(p, "'do' is missing");
	shell_skip(p, 2);
	return shell_read_body(p, command, "done");
}

static int read_arithmetic_for(struct shell_parser *p, struct shell_command *command)
{
	struct shell_word word = { 0 };
	if (p->dialect != SHELL_BASH || shell_look(p, 1) != '(')
		return shell_unknown(p, "a name is missing after 'for'");
	shell_skip(p, 2);
	command->kind = SHELL_ARITHMETIC_FOR;
	if (shell_read_arithmetic(p, &word) < 0)
		return -1;
	vec_push(p->arena, &command->words, word);
	return read_do(p, command);
}

static int read_name(struct shell_parser *p, struct shell_command *command)
{
	struct shell_word name;
	if (!shell_is_name_start(shell_current(p)))
		return shell_unknown(p, "a name is missing");
	if (shell_read_word(p, &name) < 0)
		return -1;
	for (const char *c = name.is_bare ? name.literal : "-"; *c; c++)
		if (!shell_is_name((unsigned char)*c))
			return shell_unknown(p, "a name is missing");
	vec_push(p->arena, &command->words, name);
	return 0;
}

/* for name [in word…]; do … done */
static int read_items(struct shell_parser *p, struct shell_command *command)
{
	struct shell_word item;
	const char *word;
	shell_skip_blanks(p);
	if (read_name(p, command) < 0)
		return -1;
	shell_skip_blanks(p);
	if (shell_current(p) == '\n' && shell_skip_lines(p) < 0)
		return -1;
	word = shell_next_word(p);
	if (!word || strcmp(word, "in") != 0)
		return read_do(p, command);
	shell_skip(p, 2);
	for (;;) {
		shell_skip_blanks(p);
		if (shell_at_redirect(p))
			return shell_unknown(p, "a redirection within 'for'");
		int c = shell_current(p);
		if (c == ';' || c == '\n')
			return read_do(p, command);
		if (shell_read_word(p, &item) < 0)
			return -1;
		vec_push(p->arena, &command->words, item);
	}
}

static int read_for(struct shell_parser *p, struct shell_command *command)
{
	shell_skip(p, 3);
	shell_skip_blanks(p);
	if (shell_current(p) == '(')
		return read_arithmetic_for(p, command);
	command->kind = SHELL_FOR;
	return read_items(p, command);
}

static int read_select(struct shell_parser *p, struct shell_command *command)
{
	shell_skip(p, 6);
	command->kind = SHELL_SELECT;
	return read_items(p, command);
}

/* [(] pattern [| pattern]… ) */
static int read_patterns(struct shell_parser *p, struct shell_command *command)
{
	struct shell_word pattern;
	if (shell_accept(p, "("))
		shell_skip_blanks(p);
	for (;;) {
		if (shell_read_word(p, &pattern) < 0)
			return -1;
		vec_push(p->arena, &command->words, pattern);
		shell_skip_blanks(p);
		if (shell_accept(p, ")"))
			return 0;
		if (!shell_accept(p, "|"))
			return shell_unknown(p, "')' is missing after a pattern");
		shell_skip_blanks(p);
	}
}

/* ;; and, in bash, ;& and ;;&. *is_last: none, so that esac has to follow. */
static int read_branch_end(struct shell_parser *p, bool *is_last)
{
	*is_last = false;
	if (shell_accept(p, ";;")) {
		if (shell_current(p) != '&')
			return shell_skip_lines(p);
		if (p->dialect != SHELL_BASH)
			return shell_unknown(p, "';;&' that shells read differently");
		shell_skip(p, 1);
		return shell_skip_lines(p);
	}
	if (shell_current(p) == ';')
		return shell_unknown(p, "';' that shells read differently");
	*is_last = true;
	return 0;
}

static int read_case(struct shell_parser *p, struct shell_command *command)
{
	struct shell_word subject;
	bool is_last = false;
	const char *word;
	command->kind = SHELL_CASE;
	shell_skip(p, 4);
	shell_skip_blanks(p);
	if (shell_read_word(p, &subject) < 0)
		return -1;
	vec_push(p->arena, &command->words, subject);
	if (shell_skip_lines(p) < 0)
		return -1;
	word = shell_next_word(p);
	if (!word || strcmp(word, "in") != 0)
		return shell_unknown(p, "'in' is missing after 'case'");
	shell_skip(p, 2);
	if (shell_skip_lines(p) < 0)
		return -1;
	for (;;) {
		struct shell_list *list;
		word = shell_next_word(p);
		if (word && strcmp(word, "esac") == 0) {
			shell_skip(p, 4);
			return 0;
		}
		if (is_last)
			return shell_unknown(p, "'esac' is missing");
		if (read_patterns(p, command) < 0 || shell_read_list(p, &list) < 0)
			return -1;
		vec_push(p->arena, &command->bodies, list);
		if (read_branch_end(p, &is_last) < 0)
			return -1;
	}
}

int shell_read_function_body(struct shell_parser *p, struct shell_command *command)
{
	struct shell_command *body = arena_alloc(p->arena, sizeof *body);
	struct shell_list *list = arena_alloc(p->arena, sizeof *list);
	bool is_read = false;
	if (shell_skip_lines(p) < 0)
		return -1;
	body->line = shell_line(p);
	const char *word = shell_current(p) == '(' ? "(" : shell_next_word(p);
	if (word && shell_read_compound(p, word, body, &is_read) < 0)
		return -1;
	if (!is_read)
		return shell_unknown(p, "the body of a function isn't a compound command");
	vec_push(p->arena, &list->commands, body);
	vec_push(p->arena, &command->bodies, list);
	command->kind = SHELL_FUNCTION;
	return 0;
}

/* function name [()] { … } */
static int read_function(struct shell_parser *p, struct shell_command *command)
{
	shell_skip(p, 8);
	shell_skip_blanks(p);
	if (read_name(p, command) < 0)
		return -1;
	shell_skip_blanks(p);
	if (shell_accept(p, "(")) {
		shell_skip_blanks(p);
		if (!shell_accept(p, ")"))
			return shell_unknown(p, "')' is missing");
	}
	return shell_read_function_body(p, command);
}

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; text && i < count; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

static int read_operand(struct shell_parser *p, struct shell_command *command)
{
	struct shell_word word;
	if (shell_skip_lines(p) < 0)
		return -1;
	if (shell_ends_word(shell_current(p)) || shell_read_word(p, &word) < 0)
		return shell_unknown(p, "a condition that isn't known");
	vec_push(p->arena, &command->words, word);
	return 0;
}

/* After the first operand of a term. */
static int read_comparison(struct shell_parser *p, struct shell_command *command)
{
	static const char *const binary[] = { "=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le",
		"-gt", "-ge", "-nt", "-ot", "-ef" };
	const struct shell_word *operator;
	if (shell_accept(p, "<") || shell_accept(p, ">"))
		return read_operand(p, command);
	if (read_operand(p, command) < 0)
		return -1;
	operator= & command->words.items[command->words.count - 1];
	if (!operator->is_bare || !is_one_of(operator->literal, binary,
		    sizeof binary / sizeof *binary))
		return shell_unknown(p, "a condition that isn't known");
	bool is_regular = strcmp(operator->literal, "=~") == 0;
	if (read_operand(p, command) < 0)
		return -1;
	int c = shell_current(p);
	if (is_regular && c != ' ' && c != '\t' && c != '\n')
		return shell_unknown(p, "a regular expression that isn't quoted");
	return 0;
}

static bool at_condition_end(struct shell_parser *p)
{
	const char *next = shell_next_word(p);
	int c = shell_current(p);
	return (next && strcmp(next, "]]") == 0) || c == ')' ||
	       ((c == '&' || c == '|') && shell_look(p, 1) == c);
}

static int read_terms(struct shell_parser *p, struct shell_command *command);

/* [!] ( … ), [!] -x word, or [!] word [operator word] */
static int read_term(struct shell_parser *p, struct shell_command *command)
{
	const struct shell_word *first;
	const char *next;
	if (shell_skip_lines(p) < 0)
		return -1;
	while ((next = shell_next_word(p)) && strcmp(next, "!") == 0) {
		shell_skip(p, 1);
		if (shell_skip_lines(p) < 0)
			return -1;
	}
	if (shell_accept(p, "(")) {
		if (shell_enter(p) < 0 || read_terms(p, command) < 0)
			return -1;
		p->depth--;
		return shell_accept(p, ")") ? 0 : shell_unknown(p, "')' is missing");
	}
	if (at_condition_end(p) || read_operand(p, command) < 0)
		return shell_unknown(p, "a condition that isn't known");
	first = &command->words.items[command->words.count - 1];
	bool is_unary = first->is_bare && first->literal[0] == '-' && first->literal[1] &&
			!first->literal[2];
	shell_skip_blanks(p);
	if (at_condition_end(p))
		return is_unary ? shell_unknown(p, "an operand is missing") : 0;
	return is_unary ? read_operand(p, command) : read_comparison(p, command);
}

static int read_terms(struct shell_parser *p, struct shell_command *command)
{
	do {
		if (read_term(p, command) < 0 || shell_skip_lines(p) < 0)
			return -1;
	} while (shell_accept(p, "&&") || shell_accept(p, "||"));
	return 0;
}

/* [[ … ]]: the words are the operands and the operators between. */
static int read_condition(struct shell_parser *p, struct shell_command *command)
{
	const char *next;
	command->kind = SHELL_CONDITION;
	shell_skip(p, 2);
	if (read_terms(p, command) < 0)
		return -1;
	next = shell_next_word(p);
	if (!next || strcmp(next, "]]") != 0)
		return shell_unknown(p, "']]' is missing");
	shell_skip(p, 2);
	return 0;
}

static const struct {
	const char *word;
	int (*read)(struct shell_parser *p, struct shell_command *command);
	bool is_bash; /* in dash, a command's name */
} compounds[] = {
	{ "(", read_subshell, false },
	{ "{", read_group, false },
	{ "if", read_if, false },
	{ "while", read_loop, false },
	{ "until", read_loop, false },
	{ "for", read_for, false },
	{ "case", read_case, false },
	{ "select", read_select, true },
	{ "function", read_function, true },
	{ "[[", read_condition, true },
};

int shell_read_compound(
	struct shell_parser *p, const char *word, struct shell_command *command, bool *is_read)
{
	for (size_t i = 0; i < sizeof compounds / sizeof *compounds; i++) {
		if (strcmp(word, compounds[i].word) != 0)
			continue;
		if (compounds[i].is_bash && p->dialect != SHELL_BASH)
			return shell_unknown(p, "'%s' that shells read differently", word);
		if (shell_enter(p) < 0 || compounds[i].read(p, command) < 0)
			return -1;
		p->depth--;
		*is_read = true;
		break;
	}
	while (*is_read) {
		shell_skip_blanks(p);
		if (!shell_at_redirect(p))
			break;
		if (shell_read_redirect(p, command) < 0)
			return -1;
	}
	int c = *is_read ? shell_current(p) : -1;
	if (c >= 0 && !memchr("\n;&|)", c, 5) && !shell_next_word(p))
		return shell_unknown(p, "unexpected text after a compound command");
	return 0;
}
