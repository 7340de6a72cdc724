#include "policy/shell/internal.h"

static const struct operator
{
	const char *text;
	enum shell_redirect_kind kind;
	bool is_bash;
}
operators[] = {
	/* the longest first */
	{ "&>>", SHELL_APPEND_BOTH, true },
	{ "&>", SHELL_WRITE_BOTH, true },
	{ "<<<", SHELL_HERESTRING, true },
	{ "<<-", SHELL_HEREDOC, false },
	{ "<<", SHELL_HEREDOC, false },
	{ "<&", SHELL_COPY_IN, false },
	{ "<>", SHELL_READ_WRITE, false },
	{ "<", SHELL_READ, false },
	{ ">>", SHELL_APPEND, false },
	{ ">&", SHELL_COPY_OUT, false },
	{ ">|", SHELL_CLOBBER, false },
	{ ">", SHELL_WRITE, false },
};

/* How many digits come next, and what comes after them: *ahead. */
static size_t digits(const struct shell_parser *p, struct shell_parser *ahead)
{
	size_t count = 0;
	int c;
	*ahead = *p;
	while ((c = shell_current(ahead)) >= '0' && c <= '9') {
		ahead->at++;
		count++;
	}
	return count;
}

bool shell_at_redirect(struct shell_parser *p)
{
	struct shell_parser ahead;
	size_t count = digits(p, &ahead);
	int c = shell_current(&ahead), next = shell_look(&ahead, 1);
	if (c == '&' && count == 0) /* dash reads "& >" */
		return next == '>';
	if (c != '<' && c != '>')
		return false;
	return next != '(' || count > 0 || p->dialect != SHELL_BASH;
}

static int read_fd(struct shell_parser *p, int *fd)
{
	struct shell_parser ahead;
	size_t count = digits(p, &ahead);
	*fd = -1;
	if (count > 3)
		return shell_unknown(p, "a descriptor of more than three digits");
	for (*fd = count ? 0 : -1; count > 0; count--) {
		*fd = *fd * 10 + shell_look(p, 0) - '0';
		shell_skip(p, 1);
	}
	return 0;
}

/* bash takes the digits of ">3<f" for the descriptor of the next redirection. */
static int check_target(struct shell_parser *p, const struct shell_redirect *redirect)
{
	const char *text = redirect->target.literal;
	int c = shell_current(p);
	if ((c == '<' || c == '>') && text && !text[strspn(text, "0123456789")])
		return shell_unknown(p, "digits between two redirections");
	return 0;
}

/* Digits or "-" after <& and >&; bash alone takes a file after >&. */
static int check_copy(struct shell_parser *p, struct shell_redirect *redirect)
{
	const char *text = redirect->target.literal;
	size_t count = text ? strspn(text, "0123456789") : 0;
	if (text && (strcmp(text, "-") == 0 || (count > 0 && count <= 3 && text[count] == '\0')))
		return 0;
	if (redirect->kind == SHELL_COPY_OUT && p->dialect == SHELL_BASH && redirect->fd < 0 &&
		text && count == 0 && text[0] != '-' && text[0]) {
		redirect->kind = SHELL_WRITE_BOTH;
		return 0;
	}
	return shell_unknown(p, "a descriptor that isn't a number");
}

int shell_read_redirect(struct shell_parser *p, struct shell_command *command)
{
	struct shell_redirect redirect = { 0 };
	const struct operator* operator= operators;
	if (read_fd(p, &redirect.fd) < 0)
		return -1;
	while (!shell_accept(p, operator->text))
		operator++; /* "<" or ">" comes next: shell_at_redirect */
	if (operator->is_bash && p->dialect != SHELL_BASH)
		return shell_unknown(p, "'%s' that shells read differently", operator->text);
	redirect.kind = operator->kind;
	if (redirect.kind == SHELL_HEREDOC) {
		struct shell_pending pending = { .command = command,
			.redirect = command->redirects.count,
			.strips_tabs = operator->text[2] == '-' };
		if (shell_read_delimiter(p, &pending) < 0)
			return -1;
		vec_push(p->arena, &p->pending, pending);
	} else {
		shell_skip_blanks(p);
		if (shell_read_word(p, &redirect.target) < 0 || check_target(p, &redirect) < 0)
			return -1;
		if ((redirect.kind == SHELL_COPY_IN || redirect.kind == SHELL_COPY_OUT) &&
			check_copy(p, &redirect) < 0)
			return -1;
	}
	vec_push(p->arena, &command->redirects, redirect);
	return 0;
}
