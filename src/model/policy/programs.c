/* Arguments of usual programs that run other programs, and variables that change what runs. */
#include "model/policy/internal.h"

#include "base/buf.h"
#include "base/path.h"

bool variable_is_dangerous(const char *name)
{
	static const char *const names[] = { "PATH", "IFS", "ENV", "PAGER", "EDITOR", "VISUAL",
		"BROWSER", "HOME", "SHELL", "SHELLOPTS", "CDPATH", "GLOBIGNORE", "PROMPT_COMMAND",
		"NODE_OPTIONS", "NODE_PATH", "CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
		"JDK_JAVA_OPTIONS", "RUBYOPT", "RUBYLIB", "LESSOPEN", "LESSCLOSE", "TAR_OPTIONS",
		"MAKEFLAGS", "GOFLAGS", "RUSTC", "CC", "CXX", "LANG", "LANGUAGE", "OPENSSL_CONF",
		"GCONV_PATH", "HOSTALIASES", "TMPDIR", "TERMINFO", "ZDOTDIR", "OPTIND",
		"EXECIGNORE", "FPATH", "HISTFILE", "INPUTRC", "ALL_PROXY", "HTTP_PROXY",
		"HTTPS_PROXY", "http_proxy", "https_proxy", "all_proxy" };
	static const char *const prefixes[] = { "LD_", "DYLD_", "GIT_", "PYTHON", "PERL", "BASH",
		"LC_", "PS", "npm_config_", "NPM_CONFIG_", "PIP_", "UV_", "SSH_", "CARGO_",
		"RUSTC_", "MALLOC_", "GLIBC_" };
	size_t len = name ? strlen(name) : 0;

	if (!name)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return (len > 6 && strcmp(name + len - 6, "_PAGER") == 0) ||
	       (len > 7 && strcmp(name + len - 7, "_EDITOR") == 0);
}

bool word_may_be_option(const struct shell_word *word)
{
	if (word->literal)
		return word->literal[0] == '-';
	if (!word->parts.count)
		return true;
	const struct shell_part *first = &word->parts.items[0];
	if (first->kind == SHELL_TEXT && first->text[0])
		return first->text[0] == '-';
	return first->kind != SHELL_TILDE;
}

/* Options that run a program, read commands from a file, or write a file. */
static const struct {
	const char *program, *option;
} dangerous[] = {
	{ "git", "-c" },
	{ "git", "--config-env" },
	{ "git", "--exec-path" },
	{ "git", "--upload-pack" },
	{ "git", "--receive-pack" },
	{ "git", "-x" },
	{ "git", "--exec" },
	{ "git", "--ext-diff" },
	{ "git", "--textconv" },
	{ "git", "-O" },
	{ "git", "--open-files-in-pager" },
	{ "git", "--extcmd" },
	{ "git", "--template" },
	{ "git", "--output" },
	{ "git", "--config" },
	{ "git", "-u" },
	{ "git", "--paginate" },
	{ "git", "-p" },
	{ "git", "--attr-source" },
	{ "tar", "--to-command" },
	{ "tar", "-I" },
	{ "tar", "--use-compress-program" },
	{ "tar", "--checkpoint-action" },
	{ "tar", "-F" },
	{ "tar", "--info-script" },
	{ "tar", "--new-volume-script" },
	{ "tar", "--rsh-command" },
	{ "tar", "--rmt-command" },
	{ "tar", "-P" },
	{ "tar", "--absolute-names" },
	{ "sort", "--compress-program" },
	{ "sort", "-T" },
	{ "sort", "--temporary-directory" },
	{ "sort", "--files0-from" },
	{ "wc", "--files0-from" },
	{ "du", "--files0-from" },
	{ "rg", "--pre" },
	{ "rg", "--hostname-bin" },
	{ "rg", "-z" },
	{ "rg", "--search-zip" },
	{ "diff", "--to-file" },
	{ "diff", "--from-file" },
	{ "less", "-k" },
	{ "less", "--lesskey" },
	{ "zip", "-T" },
	{ "zip", "-TT" },
	{ "zip", "--unzip-command" },
	{ "man", "-P" },
	{ "man", "--pager" },
	{ "man", "-H" },
	{ "man", "--html" },
	{ "scp", "-S" },
	{ "scp", "-o" },
	{ "sftp", "-S" },
	{ "sftp", "-o" },
	{ "rsync", "-e" },
	{ "rsync", "--rsh" },
	{ "rsync", "--rsync-path" },
	{ "cp", "-t" },
	{ "cp", "--target-directory" },
	{ "mv", "-t" },
	{ "mv", "--target-directory" },
	{ "install", "-t" },
	{ "install", "--target-directory" },
	{ "ln", "-t" },
	{ "ln", "--target-directory" },
	{ "install", "--strip-program" },
	{ "split", "--filter" },
	{ "date", "-s" },
	{ "date", "--set" },
	{ "file", "-m" },
	{ "file", "--magic-file" },
	{ "file", "-C" },
	{ "file", "--compile" },
	{ "printf", "-v" },
	{ "tree", "--fromfile" },
};
static const char *const git_asked[] = { "config", "bisect", "filter-branch", "difftool",
	"mergetool", "submodule", "daemon", "shell", "upload-pack", "receive-pack", "remote-ext",
	"hook", "alias", "send-email", "instaweb", "web--browse", "archimport", "svn", "p4",
	"worktree", "maintenance", "credential" };

static bool is_dangerous(const char *program, const char *text)
{
	for (size_t i = 0; i < sizeof dangerous / sizeof *dangerous; i++) {
		const char *option = dangerous[i].option;
		size_t len = strlen(option);

		if (strcmp(dangerous[i].program, program) != 0)
			continue;
		/* Long options may be abbreviated; short ones are combined or have their value
		 * glued on. */
		if (option[1] == '-'
				? strlen(text) > 3 && strncmp(option, text, strcspn(text, "=")) == 0
				: len == 2 && text[1] != '-' && strchr(text + 1, option[1]) != NULL)
			return true;
	}
	return false;
}

/* Programs whose options can run others: a word that may become an option isn't known. */
static bool has_dangerous_options(const char *program)
{
	for (size_t i = 0; i < sizeof dangerous / sizeof *dangerous; i++)
		if (strcmp(dangerous[i].program, program) == 0)
			return true;
	return strcmp(program, "find") == 0 || strcmp(program, "sed") == 0 ||
	       strcmp(program, "awk") == 0 || strcmp(program, "gawk") == 0 ||
	       strcmp(program, "mawk") == 0;
}

static void judge_options(struct judge *j, const char *subject, const char *program,
	const shell_words *words, size_t first)
{
	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;

		if (text && strcmp(text, "--") == 0)
			return;
		if (!text && word_may_be_option(&words->items[i]))
			judge_step(j, subject, POLICY_ASK, NULL,
				arena_printf(j->arena, "an expanded word may be an option of '%s'",
					program));
		else if (text && text[0] == '-' && text[1] && is_dangerous(program, text))
			judge_step(j, subject, POLICY_ASK, NULL,
				arena_printf(j->arena,
					"option '%s' of '%s' can run programs or write files", text,
					program));
	}
}

static void judge_git(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	for (size_t i = first + 1; i < words->count; i++)
		for (size_t k = 0;
			words->items[i].literal && k < sizeof git_asked / sizeof *git_asked; k++)
			if (strcmp(words->items[i].literal, git_asked[k]) == 0) {
				judge_step(j, subject, POLICY_ASK, NULL,
					arena_printf(j->arena, "'git %s' can run programs",
						git_asked[k]));
				return;
			}
}

/* find … -exec CMD ;  The arguments in place of {} aren't known. */
static size_t judge_find_command(
	struct judge *j, const char *subject, const shell_words *words, size_t at)
{
	struct shell_command command = { .kind = SHELL_SIMPLE };
	auto_buf struct buf source = buf_empty(SHELL_SCRIPT_MAX);

	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;
		struct shell_word word = words->items[at];

		if (text && (strcmp(text, ";") == 0 || strcmp(text, "+") == 0))
			break;
		if (text && strstr(text, "{}"))
			word = (struct shell_word){ .source = word.source };
		vec_push(j->arena, &command.words, word);
		buf_printf(&source, "%s%.*s", source.len ? " " : "", (int)word.source.len,
			word.source.data);
	}
	command.source = (struct str){ arena_bytes(j->arena, source.data, source.len), source.len };
	if (!command.words.count)
		judge_step(j, subject, POLICY_ASK, NULL, "it isn't known what 'find' runs");
	else if (++j->depth > POLICY_DEPTH_MAX)
		judge_step(
			j, subject, POLICY_ASK, NULL, "commands in commands are nested too deep");
	else
		judge_simple(j, &command);
	j->depth--;
	return at;
}

static void judge_find(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const char *const runs[] = { "-exec", "-execdir", "-ok", "-okdir" };
	size_t paths = first + 1;

	while (paths < words->count && !word_may_be_option(&words->items[paths]) &&
		!(words->items[paths].literal && strpbrk(words->items[paths].literal, "()!")))
		judge_path(j, POLICY_READ, &words->items[paths++]);
	for (size_t i = paths; i < words->count; i++) {
		const char *text = words->items[i].literal ? words->items[i].literal : "";

		for (size_t k = 0; k < 4; k++)
			if (strcmp(text, runs[k]) == 0)
				i = judge_find_command(j, subject, words, i + 1);
		if (strcmp(text, "-delete") == 0)
			judge_step(j, subject, POLICY_ASK, NULL,
				"'find -delete' deletes what it finds");
		if (strncmp(text, "-fprint", 7) == 0 || strcmp(text, "-fls") == 0 ||
			strcmp(text, "-files0-from") == 0)
			judge_step(j, subject, POLICY_ASK, NULL,
				"'find' writes or reads another file");
	}
}

/* A script of sed that can only print, delete and substitute. */
static bool sed_is_harmless(const char *script)
{
	const char *at = script + strspn(script, "0123456789,$ ");

	if (*at == 's' && at[1] && !strchr(" \\\n", at[1])) {
		char delimiter = at[1];
		int seen = 0;

		for (at += 2; *at && seen < 2; at++) {
			if (*at == '\\' && at[1])
				at++;
			else if (*at == delimiter)
				seen++;
		}
		return seen == 2 && !at[strspn(at, "gpiI0123456789")];
	}
	if (*at == '/') {
		for (at++; *at && *at != '/'; at++)
			at += *at == '\\' && at[1];
		at += *at == '/';
	}
	at += strspn(at, " !I");
	return (*at == 'p' || *at == 'd' || *at == 'q' || *at == '=') && !at[1];
}

static void judge_sed(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	bool is_script_next = false, has_script = false;

	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;
		bool is_option = text && text[0] == '-' && text[1] && !is_script_next;

		if (is_option && (strncmp(text, "-f", 2) == 0 || strncmp(text, "--f", 3) == 0 ||
					 (text[1] == '-' && strchr(text, '=')) ||
					 (text[1] != '-' && strpbrk(text + 2, "ef")))) {
			judge_step(j, subject, POLICY_ASK, NULL,
				"a script of sed that isn't written here");
			has_script = true;
		} else if (is_option) {
			is_script_next = strcmp(text, "-e") == 0 ||
					 strcmp(text, "--expression") == 0 ||
					 (text[1] != '-' && text[strlen(text) - 1] == 'e');
			has_script |= is_script_next;
		} else if (is_script_next || !has_script) {
			if (!text || !sed_is_harmless(text))
				judge_step(j, subject, POLICY_ASK, NULL,
					"a script of sed that may run programs or write files");
			is_script_next = false;
			has_script = true;
		}
	}
}

static void judge_awk(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;

		if (text && text[0] == '-' && (text[1] == 'F' || text[1] == 'v')) {
			i += text[2] == '\0'; /* its value */
		} else if (text && text[0] == '-' && text[1]) {
			judge_step(j, subject, POLICY_ASK, NULL,
				"an option of awk that may load a program");
		} else {
			if (!text || strstr(text, "system") || strstr(text, "getline") ||
				strpbrk(text, "|>@") || strstr(text, "\\"))
				judge_step(j, subject, POLICY_ASK, NULL,
					"a program of awk that may run others or write files");
			return;
		}
	}
}

/* sort -o FILE, tee, uniq IN OUT are in files.c, except for the options. */
static void judge_sort(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;

		if (text && text[0] == '-' &&
			(strncmp(text, "--o", 3) == 0 || (text[1] != '-' && strchr(text, 'o'))))
			judge_step(j, subject, POLICY_ASK, NULL, "'sort -o' writes a file");
	}
}

void judge_program(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const struct {
		const char *name;
		void (*judge)(struct judge *j, const char *subject, const shell_words *words,
			size_t first);
	} programs[] = { { "git", judge_git }, { "find", judge_find }, { "sed", judge_sed },
		{ "awk", judge_awk }, { "gawk", judge_awk }, { "mawk", judge_awk },
		{ "sort", judge_sort } };
	const char *program = path_basename(words->items[first].literal);

	if (has_dangerous_options(program))
		judge_options(j, subject, program, words, first);
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		if (strcmp(program, programs[i].name) == 0)
			programs[i].judge(j, subject, words, first);
}
