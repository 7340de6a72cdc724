/* Which files the usual programs read, write and delete, by their arguments. */
#include "policy/internal.h"

#include "base/path.h"

const char *file_subject(struct judge *j, enum policy_operation operation, const char *path)
{
	const char *name = operation == POLICY_READ    ? "read"
			   : operation == POLICY_WRITE ? "write"
						       : "delete";
	return arena_printf(j->arena, "file(%s:%s)", name, path);
}

/* Devices that hold nothing of anybody. */
static bool is_harmless(const char *path)
{
	static const char devices[] =
		"/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/stdin "
		"/dev/stdout /dev/stderr";
	return words_have(devices, path) || strncmp(path, "/dev/fd/", 8) == 0;
}

/* Files that name programs which git, shells and package managers run later. */
static bool is_startup_file(const char *path)
{
	static const char names[] =
		".bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile "
		".gitconfig .npmrc .yarnrc .yarnrc.yml .pypirc pip.conf .curlrc .wgetrc .inputrc "
		".vimrc .exrc .envrc .netrc .popt .git .config .zlogin .zlogout .kshrc .lesskey "
		".less .manpath .gdbinit .gdbearlyinit .lldbinit .nanorc .tmux.conf .screenrc "
		".emacs .pdbrc .pythonrc .Rprofile .sqliterc .psqlrc .hgrc .ackrc "
		"sitecustomize.py usercustomize.py";
	return words_have(names, path_basename(path)) || strstr(path, "/.git/") ||
	       strstr(path, "/.ssh/") || strstr(path, "/.config/");
}

/* Whether the path, which a rule allows to change, names programs that run later, and no rule that
 * allows it means such files. */
static bool is_startup(struct judge *j, const struct policy_rule *by,
	enum policy_operation operation, const char *path)
{
	const struct policy *policy = j->policy;
	if (!by || by->decision != POLICY_ALLOW || operation == POLICY_READ ||
		!is_startup_file(path))
		return false;
	for (size_t i = 0; i < policy->rules.count && judge_spend(j, 1); i++) {
		const struct policy_rule *r = &policy->rules.items[i];
		if (r->kind == POLICY_FILE && r->decision == POLICY_ALLOW &&
			(r->operations & operation) &&
			(is_startup_file(r->glob) || is_startup_file(r->fixed)) &&
			glob_covers(j, r->glob, path))
			return false;
	}
	return true;
}

void file_judge(struct judge *j, enum policy_operation operation, const char *path, bool is_open)
{
	const char *subject = file_subject(j, operation, path);
	const struct policy_rule *by;
	enum policy_decision decision = match_file(j, operation, path, &by);
	if (is_startup(j, by, operation, path))
		judge_ask(j, subject, "programs that run later are named there");
	else if (by || decision == POLICY_ALLOW)
		judge_step(j, subject, decision, by, by ? NULL : "no rule matches");
	else if (is_open)
		judge_open_step(j, subject, decision, "no rule matches", subject);
}

static void judge_one(struct judge *j, enum policy_operation operation, const char *path)
{
	if (!is_harmless(path))
		file_judge(j, operation, path, !j->policy->is_claude);
}

static void judge_text(struct judge *j, enum policy_operation operation, const char *text)
{
	if (!judge_spend(j, 8 + strlen(text) / 4))
		return;
	if (text[0] != '/' && j->is_moved) {
		judge_ask(j, file_subject(j, operation, text), "the script changes its directory");
		return;
	}
	judge_one(j, operation, path_normalize(j->arena, j->request->cwd, text));
	/* Before `cd`, and after it. */
	if (text[0] != '/' && j->moved_to)
		judge_one(j, operation, path_normalize(j->arena, j->moved_to, text));
}

static void judge_pattern_in(struct judge *j, enum policy_operation operation, const char *dir,
	const struct shell_word *word)
{
	const char *text = arena_bytes(j->arena, word->source.data, word->source.len);
	const char *pattern = pattern_of(j, dir, word);
	const struct policy_rule *by = NULL;
	enum policy_decision decision =
		pattern ? match_pattern(j, operation, pattern, &by) : POLICY_ASK;
	judge_step(j, file_subject(j, operation, text), decision, by,
		by ? NULL : "it isn't known which files that names");
}

/* A word with wildcards: each file that the shell may make of it. */
static void judge_pattern(
	struct judge *j, enum policy_operation operation, const struct shell_word *word)
{
	bool is_relative = word->source.len == 0 || word->source.data[0] != '/';
	if (is_relative && j->is_moved) {
		judge_ask(j,
			file_subject(j, operation,
				arena_bytes(j->arena, word->source.data, word->source.len)),
			"the script changes its directory");
		return;
	}
	judge_pattern_in(j, operation, j->request->cwd, word);
	if (is_relative && j->moved_to)
		judge_pattern_in(j, operation, j->moved_to, word);
}

void judge_path(struct judge *j, enum policy_operation operation, const struct shell_word *word)
{
	bool is_pattern = true;
	if (!j->policy->has_file_rules)
		return;
	if (word->literal) {
		judge_text(j, operation, word->literal);
		return;
	}
	for (size_t i = 0; i < word->parts.count; i++)
		is_pattern &= word->parts.items[i].kind == SHELL_TEXT ||
			      word->parts.items[i].kind == SHELL_PATTERN;
	if (word->parts.count && word->parts.items[0].kind == SHELL_TILDE &&
		word->parts.count == 2 && word->parts.items[1].kind == SHELL_TEXT &&
		word->parts.items[1].text[0] == '/' && j->request->home) {
		judge_text(j, operation,
			arena_printf(
				j->arena, "%s%s", j->request->home, word->parts.items[1].text));
	} else if (is_pattern && word->parts.count) {
		judge_pattern(j, operation, word);
	} else {
		judge_ask(j, arena_bytes(j->arena, word->source.data, word->source.len),
			"it isn't known which file that names");
	}
}

/* host/port, after /dev/tcp/ */
static void judge_connection(struct judge *j, const char *subject, const char *text)
{
	const char *slash = strchr(text, '/');
	const struct policy_rule *by = NULL;
	uint64_t port = 0;
	if (slash && str_to_u64(str_from(slash + 1), &port) && port <= 65535)
		match_network(j, arena_bytes(j->arena, text, (size_t)(slash - text)),
			(unsigned)port, &by);
	if (by && by->decision == POLICY_DENY)
		judge_step(j, subject, POLICY_DENY, by, NULL);
	else
		judge_ask(j, subject, "bash takes that file for a connection");
}

/* Whether a path lies below the working directories of Claude Code. */
static bool is_inside(struct judge *j, const char *text)
{
	const char *path = path_normalize(j->arena, j->request->cwd, text);
	for (size_t i = 0; i < j->policy->directories.count; i++)
		if (path_is_beneath(path, j->policy->directories.items[i]))
			return !((j->is_moved || j->moved_to) && text[0] != '/');
	return is_harmless(path);
}

/* Without any file rule, a redirection inside the workspace or /tmp follows the command. */
static void judge_unruled_in(
	struct judge *j, enum policy_operation operation, const char *dir, const char *text)
{
	const char *path = path_normalize(j->arena, dir, text);
	if (is_harmless(path) || path_is_beneath(path, "/tmp") ||
		(j->policy->workspace && path_is_beneath(path, j->policy->workspace)))
		return;
	judge_step(j, file_subject(j, operation, path), match_default(j->policy, operation, path),
		NULL, "it is outside of the workspace and /tmp, and there is no rule for files");
}

static void judge_unruled(struct judge *j, enum policy_operation operation, const char *text)
{
	if (!judge_spend(j, 8 + strlen(text) / 4))
		return;
	if (text[0] != '/' && j->is_moved) {
		judge_step(j, file_subject(j, operation, text),
			match_default(j->policy, operation, j->request->cwd), NULL,
			"the script changes its directory");
		return;
	}
	judge_unruled_in(j, operation, j->request->cwd, text);
	if (text[0] != '/' && j->moved_to)
		judge_unruled_in(j, operation, j->moved_to, text);
}

void judge_output(struct judge *j, enum policy_operation operation, const struct shell_word *target)
{
	if (j->policy->has_file_rules || j->policy->is_claude)
		judge_path(j, operation, target);
	else if (target->literal)
		judge_unruled(j, operation, target->literal);
	else
		judge_ask(j, arena_bytes(j->arena, target->source.data, target->source.len),
			"it isn't known which file that names");
}

void judge_redirect(struct judge *j, const char *subject, const struct shell_redirect *redirect)
{
	shell_words words = { (struct shell_word *)(uintptr_t)&redirect->target, 1, 1 };
	const char *text = redirect->target.literal;
	judge_words(j, subject, &words);
	switch (redirect->kind) {
	case SHELL_COPY_IN:
	case SHELL_COPY_OUT:
	case SHELL_HEREDOC:
	case SHELL_HERESTRING:
		return;
	default:
		break;
	}
	if (!text) {
		judge_ask(j, subject, "it isn't known which file a redirection names");
		return;
	}
	if (strncmp(text, "/dev/tcp/", 9) == 0 || strncmp(text, "/dev/udp/", 9) == 0) {
		judge_connection(j, subject, text + 9);
		return;
	}
	if (redirect->kind != SHELL_READ && j->policy->is_claude && !is_inside(j, text))
		judge_ask(j, subject, "a redirection writes outside of the working directories");
	if (redirect->kind == SHELL_READ || redirect->kind == SHELL_READ_WRITE)
		judge_output(j, POLICY_READ, &redirect->target);
	if (redirect->kind != SHELL_READ)
		judge_output(j, POLICY_WRITE, &redirect->target);
}

/* What a program does with the files that its arguments name. */
static const struct tool {
	const char *names;     /* separated by blanks */
	unsigned operations;   /* on all operands */
	unsigned last;	       /* on the last operand instead */
	unsigned skipped;      /* operands at the front that aren't files: a pattern, a mode */
	const char *unless;    /* letters of options that take the place of those: of -e */
	const char *valued;    /* letters of options that end a bundle: with a value */
	bool reads_cwd;	       /* without an operand */
	const char *recursive; /* letters of options that make it go into directories; "" always */
} tools[] = {
	{ "cat head tail tac wc nl sort cmp comm join paste cut fold rev less more "
	  "file stat od xxd hexdump strings base64 base32 md5sum sha1sum sha256sum "
	  "sha512sum cksum zcat readlink realpath",
		POLICY_READ },
	{ "uniq", POLICY_READ | POLICY_WRITE },
	{ "diff", POLICY_READ, .recursive = "r" },
	{ "ls dir tree du", POLICY_READ, .reads_cwd = true },
	{ "grep egrep fgrep", POLICY_READ, .skipped = 1, .unless = "ef", .valued = "ABCDdefm",
		.recursive = "rRd" },
	{ "rg", POLICY_READ, .skipped = 1, .unless = "ef", .valued = "efgtTABCmdrjME",
		.reads_cwd = true, .recursive = "" },
	{ "ag", POLICY_READ, .skipped = 1, .reads_cwd = true, .recursive = "" },
	{ "sed", POLICY_READ, .skipped = 1, .unless = "ef", .valued = "efil" },
	{ "awk gawk mawk nawk jq", POLICY_READ, .skipped = 1, .unless = "f" },
	{ "tee touch mkdir truncate", POLICY_WRITE },
	{ "chmod chown chgrp", POLICY_WRITE, .skipped = 1, .recursive = "R" },
	{ "cp", POLICY_READ, .last = POLICY_WRITE, .recursive = "rRa" },
	{ "install ln", POLICY_READ, .last = POLICY_WRITE },
	{ "mv", POLICY_READ | POLICY_DELETE, .last = POLICY_WRITE, .recursive = "" },
	{ "rm", POLICY_DELETE, .recursive = "rR" },
	{ "rmdir unlink", POLICY_DELETE },
	{ "shred", POLICY_WRITE | POLICY_DELETE },
};

static void judge_operations(struct judge *j, unsigned operations, const struct shell_word *word)
{
	for (unsigned operation = POLICY_READ; operation <= POLICY_DELETE; operation <<= 1)
		if (operations & operation)
			judge_path(j, (enum policy_operation)operation, word);
}

/* The value of --option=VALUE, or what follows the first '/' of -f/VALUE. */
static void judge_option(struct judge *j, unsigned operations, const struct shell_word *word)
{
	const char *value = strchr(word->literal, '=');
	struct shell_word path = { .source = word->source };
	if (value)
		value++;
	else if (word->literal[1] != '-')
		value = strchr(word->literal, '/');
	if (!value || !*value)
		return;
	path.literal = value;
	judge_operations(j, operations, &path);
}

static bool has_option(const shell_words *words, size_t first, const char *letters)
{
	for (size_t i = first + 1; letters && i < words->count; i++) {
		const char *text = words->items[i].literal;
		if (text && text[0] == '-' && text[1] && text[1] != '-' && strpbrk(text, letters))
			return true;
		/* Long ones may be abbreviated. */
		static const char *const long_ones[] = { "--regexp", "--file", "--expression",
			"--from-file" };
		size_t len = text ? strcspn(text, "=") : 0;
		for (size_t k = 0; len > 3 && k < sizeof long_ones / sizeof *long_ones; k++)
			if (strncmp(long_ones[k], text, len) == 0)
				return true;
	}
	return false;
}

/* sed -i, -ni, --in-place=.bak */
static bool edits_in_place(const shell_words *words, size_t first)
{
	for (size_t i = first + 1; i < words->count; i++)
		if (words->items[i].literal && strncmp(words->items[i].literal, "--i", 3) == 0)
			return true;
	return has_option(words, first, "i");
}

static bool is_recursive(const struct tool *tool, const shell_words *words, size_t first)
{
	if (!tool->recursive)
		return false;
	if (!tool->recursive[0])
		return true;
	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;
		if (!text && word_may_be_option(&words->items[i]))
			return true;
		if (!text)
			continue;
		if (text[0] == '-' && text[1] && text[1] != '-' && strpbrk(text, tool->recursive))
			return true;
		if (text[0] == '-' && text[1] == '-' &&
			(text[2] == 'r' || text[2] == 'd' || text[2] == 'a'))
			return true; /* --recursive, --dereference-recursive, --archive */
	}
	return false;
}

static void judge_operand(
	struct judge *j, unsigned operations, bool is_tree, const struct shell_word *word)
{
	judge_operations(j, operations, word);
	if (is_tree)
		judge_tree(j, operations, word);
}

/* Whether the word ends in -e, and the next one is a pattern or script: not in -fe or sed's -ie,
 * where 'e' is a value. */
static bool takes_text(const struct tool *tool, const char *option)
{
	size_t valued = tool->valued ? strcspn(option, tool->valued) : 0;
	return valued && option[1] != '-' && strcmp(option + valued, "e") == 0;
}

static void judge_tool(
	struct judge *j, const struct tool *tool, const shell_words *words, size_t first)
{
	size_t skipped = has_option(words, first, tool->unless) ? 0 : tool->skipped;
	const struct shell_word *last = NULL;
	bool is_over = false, is_tree = is_recursive(tool, words, first);
	unsigned operations = tool->operations;
	struct shell_word here = { .literal = ".", .source = STR(".") };
	if (strcmp(tool->names, "sed") == 0 && edits_in_place(words, first))
		operations |= POLICY_WRITE;
	for (size_t i = first + 1; i < words->count; i++) {
		const struct shell_word *word = &words->items[i];
		if (word->literal && strcmp(word->literal, "--") == 0 && !is_over) {
			is_over = true;
		} else if (word->literal && word->literal[0] == '-' && word->literal[1] &&
			   !is_over) {
			judge_option(j, operations | tool->last, word);
			i += takes_text(tool, word->literal);
		} else if (word->literal && strcmp(word->literal, "-") == 0) {
			continue;
		} else if (skipped > 0) {
			skipped--;
		} else {
			if (last)
				judge_operand(j, operations, is_tree, last);
			last = word;
		}
	}
	if (last)
		judge_operand(j, tool->last ? tool->last : operations, is_tree, last);
	else if ((tool->reads_cwd || is_tree) && j->policy->has_file_rules)
		judge_operand(j, POLICY_READ, is_tree, &here);
}

/* Options whose value is a file. */
static const struct file_option {
	const char *programs, *option;
	unsigned operations;
	const char *valued; /* of a letter in bundles (-rf FILE): the letters that end one */
} file_options[] = {
	{ "pip", "-t", POLICY_WRITE },
	{ "pip", "--target", POLICY_WRITE },
	{ "pip", "--prefix", POLICY_WRITE },
	{ "pip", "--root", POLICY_WRITE },
	{ "pip", "--log", POLICY_WRITE },
	{ "pip", "--report", POLICY_WRITE },
	{ "pip", "-d", POLICY_WRITE },
	{ "pip", "-r", POLICY_READ },
	{ "pip", "-c", POLICY_READ },
	{ "touch", "-r", POLICY_READ, "dt" },
	{ "touch", "--reference", POLICY_READ },
	{ "grep egrep fgrep rgrep", "-f", POLICY_READ, "ABCDdem" },
	{ "grep egrep fgrep rgrep", "--file", POLICY_READ },
	{ "strace", "-o", POLICY_WRITE, "abeEIOpPsSuUX" },
	{ "ltrace", "-o", POLICY_WRITE },
};

/* What follows the option in the word, "" if the next word is its value; NULL: it isn't there. */
static const char *after_option(const struct file_option *option, const char *text)
{
	size_t len = strlen(option->option);
	if (option->valued && text[0] == '-' && text[1] != '-') {
		const char *at = text + 1;
		while (*at && *at != option->option[1] && !strchr(option->valued, *at))
			at++;
		return *at == option->option[1] ? at + 1 : NULL;
	}
	if (strncmp(text, option->option, len) != 0)
		return NULL;
	if (option->option[1] != '-' || !text[len])
		return text + len;
	return text[len] == '=' ? text + len + 1 : NULL;
}

static void judge_file_options(
	struct judge *j, const char *program, const shell_words *words, size_t first, size_t end)
{
	for (size_t i = first + 1; i < end; i++) {
		const char *text = words->items[i].literal;
		for (size_t k = 0; text && k < sizeof file_options / sizeof *file_options; k++) {
			struct shell_word value = { .source = words->items[i].source };
			const char *after = words_have(file_options[k].programs, program)
						    ? after_option(&file_options[k], text)
						    : NULL;
			if (!after || (!after[0] && i + 1 >= words->count))
				continue;
			if (after[0])
				value.literal = after;
			else
				value = words->items[i + 1];
			judge_operations(j, file_options[k].operations, &value);
		}
	}
}

/* A word, or its part after '=', that is a file which a rule denies: whatever the program does
 * with it. */
static void judge_named_path(struct judge *j, const char *text)
{
	static const enum policy_operation operations[] = { POLICY_READ, POLICY_WRITE,
		POLICY_DELETE };
	const struct policy_rule *by;
	if (text[0] == '-' && text[1] && text[1] != '-' && strchr(text, '/'))
		text = strchr(text, '/'); /* -f/etc/shadow */
	if (!text[0] || text[0] == '-' || strlen(text) > 4000)
		return;
	const char *path = path_normalize(j->arena, j->request->cwd, text);
	for (size_t i = 0; i < 3; i++)
		if (match_file(j, operations[i], path, &by) == POLICY_DENY && by) {
			judge_step(j, file_subject(j, operations[i], path),
				i == 0 ? POLICY_DENY : POLICY_ASK, i == 0 ? by : NULL,
				i == 0 ? NULL : "it names a file that a rule denies");
			return;
		}
}

static void judge_named(struct judge *j, const char *text)
{
	for (int i = 0; text && i < 4; i++) {
		judge_named_path(j, text);
		text = strchr(text, '=');
		text = text ? text + 1 : NULL;
	}
}

void judge_wrapper_files(struct judge *j, const shell_words *words, size_t first, size_t end)
{
	if (!j->policy->has_file_rules)
		return;
	for (size_t i = first + 1; i < end; i++)
		if (words->items[i].literal)
			judge_named(j, words->items[i].literal);
}

void judge_script_path(struct judge *j, const char *subject, const struct shell_word *word)
{
	const char *text = word->literal;
	if (strncmp(text, "/dev/", 5) == 0 || strncmp(text, "/proc/", 6) == 0)
		judge_ask(j, subject, "commands come from its input");
	judge_path(j, POLICY_READ, word);
}

/* dd if=A of=B */
static void judge_dd(struct judge *j, const shell_words *words, size_t first)
{
	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;
		struct shell_word path = { .source = words->items[i].source };
		if (text && (strncmp(text, "if=", 3) == 0 || strncmp(text, "of=", 3) == 0)) {
			path.literal = text + 3;
			judge_path(j, text[0] == 'i' ? POLICY_READ : POLICY_WRITE, &path);
		}
	}
}

const char *kept_name(struct judge *j, const char *source, bool is_address)
{
	size_t len = is_address ? strcspn(source, "?#") : strlen(source);
	while (len && source[len - 1] == '/')
		len--;
	return len ? path_basename(arena_bytes(j->arena, source, len)) : "";
}

void judge_kept_name(struct judge *j, const char *dir, const char *source, const char *unknown)
{
	if (!j->policy->has_file_rules || !judge_spend(j, 8 + strlen(source) / 4))
		return;
	const char *name = kept_name(j, source, unknown != NULL);
	bool is_unknown = unknown && strpbrk(name, unknown);
	if (!is_unknown && !is_startup_file(name))
		return;
	/* Before it is joined: a long directory, and thousands of names. */
	if (!judge_spend(j, 8 + strlen(dir) / 4))
		return;
	const char *path = arena_printf(j->arena, "%s/%s", dir, name);
	if (is_unknown)
		judge_ask(j, file_subject(j, POLICY_WRITE, path),
			"it isn't known which name that file gets");
	else
		judge_text(j, POLICY_WRITE, path);
}

void judge_operands(struct judge *j, const shell_words *words, size_t first)
{
	const char *name = path_basename(words->items[first].literal);
	if (!j->policy->has_file_rules)
		return;
	judge_file_options(
		j, strncmp(name, "pip", 3) == 0 ? "pip" : name, words, first, words->count);
	if (strcmp(name, "dd") == 0)
		judge_dd(j, words, first);
	for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
		if (words_have(tools[i].names, name)) {
			judge_tool(j, &tools[i], words, first);
			/* Two directories are compared file by file. */
			if (strcmp(name, "diff") == 0)
				judge_walks(j, words, first);
			return;
		}
	if (strcmp(name, "echo") == 0 || strcmp(name, "printf") == 0 || strcmp(name, "find") == 0)
		return;
	judge_walks(j, words, first);
	for (size_t i = first + 1; i < words->count; i++)
		if (words->items[i].literal)
			judge_named(j, words->items[i].literal);
}
