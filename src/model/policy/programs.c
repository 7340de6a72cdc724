/* Arguments of usual programs that run other programs, and variables that change what runs. */
#include "model/policy/internal.h"

#include "base/buf.h"
#include "base/path.h"

bool variable_is_dangerous(const char *name)
{
	static const char *const names[] = { "PATH", "IFS", "ENV", "BROWSER", "HOME", "SHELL",
		"SHELLOPTS", "CDPATH", "GLOBIGNORE", "FIGNORE", "PROMPT_COMMAND", "POSIXLY_CORRECT",
		"NODE_OPTIONS", "NODE_PATH", "CLASSPATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
		"JDK_JAVA_OPTIONS", "JAVA_HOME", "MAVEN_OPTS", "GRADLE_OPTS", "RUBYOPT", "RUBYLIB",
		"GEM_HOME", "GEM_PATH", "LESSOPEN", "LESSCLOSE", "LESS", "LESSKEY", "TAR_OPTIONS",
		"TAPE", "RSYNC_RSH", "CVS_RSH", "GREP_OPTIONS", "MAKEFLAGS", "MFLAGS", "RUSTC",
		"CC", "CXX", "LANG", "LANGUAGE", "OPENSSL_CONF", "OPENSSL_MODULES",
		"OPENSSL_ENGINES", "GCONV_PATH", "NLSPATH", "LOCPATH", "TZDIR", "HOSTALIASES",
		"RES_OPTIONS", "LOCALDOMAIN", "TMPDIR", "TERMINFO", "TERMINFO_DIRS", "TERMCAP",
		"ZDOTDIR", "OPTIND", "EXECIGNORE", "FPATH", "HISTFILE", "INPUTRC", "MANPATH",
		"INFOPATH", "AWKPATH", "AWKLIBPATH", "CURL_HOME", "WGETRC", "SYSTEM_WGETRC",
		"NETRC", "KUBECONFIG", "VIRTUAL_ENV", "SUDO_ASKPASS", "FCEDIT", "TMOUT", "MAIL",
		"MAILPATH", "NO_PROXY", "no_proxy", "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY",
		"FTP_PROXY", "http_proxy", "https_proxy", "ftp_proxy", "all_proxy" };
	static const char *const prefixes[] = { "LD_", "DYLD_", "GIT_", "PYTHON", "PERL", "BASH",
		"LC_", "PS", "npm_config_", "NPM_", "PNPM_", "YARN_", "BUN_", "DENO_", "PIP_",
		"PIPENV_", "POETRY_", "PDM_", "COREPACK_", "UV_", "SSH_", "CARGO_", "RUSTC_",
		"RUSTUP_", "GO", "CGO_", "CONDA_", "XDG_", "DOCKER_", "MALLOC_", "GLIBC_", "GTK_",
		"QT_" };
	size_t len = name ? strlen(name) : 0;

	if (!name)
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return (len >= 5 && strcmp(name + len - 5, "PAGER") == 0) ||
	       (len >= 6 && strcmp(name + len - 6, "EDITOR") == 0) || strcmp(name, "VISUAL") == 0;
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
	{ "go", "-exec" },
	{ "go", "-toolexec" },
	{ "go", "-vettool" },
	{ "gcc", "-wrapper" },
	{ "cc", "-wrapper" },
	{ "g++", "-wrapper" },
	{ "make", "--eval" },
	{ "make", "-E" },
	{ "gmake", "--eval" },
	{ "gmake", "-E" },
	{ "sftp", "-D" },
	{ "wget", "--use-askpass" },
	{ "tcpdump", "-z" },
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
		 * glued on; "-exec" is a long one with one dash. */
		if (len > 2 && option[1] != '-' && strcspn(text, "=") == len &&
			strncmp(option, text, len) == 0)
			return true;
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

/* Options of git and its subcommands that run programs, take another configuration, or write
 * files. Without a subcommand: those before it. */
static const struct {
	const char *subcommands, *option;
} git_options[] = {
	{ NULL, "-c" },
	{ NULL, "--config-env" },
	{ NULL, "--exec-path" },
	{ NULL, "--git-dir" },
	{ NULL, "--work-tree" },
	{ NULL, "--paginate" },
	{ NULL, "-p" },
	{ NULL, "--attr-source" },
	{ NULL, "--html-path" },
	{ "clone", "-c" },
	{ "clone", "--config" },
	{ "clone", "-u" },
	{ "clone init commit", "--template" },
	{ "commit", "-t" },
	{ "clone fetch pull ls-remote fetch-pack", "--upload-pack" },
	{ "push send-pack", "--receive-pack" },
	{ "push send-pack archive rebase", "--exec" },
	{ "archive", "--remote" },
	{ "rebase", "-x" },
	{ "*", "--ext-diff" },
	{ "*", "--textconv" },
	{ "*", "--output" },
	{ "archive format-patch", "-o" },
	{ "format-patch", "--output-directory" },
	{ "grep", "-O" },
	{ "grep", "--open-files-in-pager" },
	{ "difftool mergetool", "-x" },
	{ "difftool", "--extcmd" },
	{ "log show diff", "--show-signature" },
	{ "merge rebase pull", "-s" },
	{ "merge rebase pull", "--strategy" },
	{ "merge commit tag rebase", "-S" },
	{ "merge commit tag rebase", "--gpg-sign" },
	{ "diff log show", "-O" },
};

static bool has_name(const char *names, const char *name)
{
	struct str rest = str_from(names), one;

	while (str_next(&rest, ' ', &one))
		if (str_is(one, name) || str_is(one, "*"))
			return true;
	return false;
}

static bool git_is_dangerous(const char *subcommand, const char *text)
{
	for (size_t i = 0; i < sizeof git_options / sizeof *git_options; i++) {
		const char *option = git_options[i].option, *of = git_options[i].subcommands;

		if (of ? !subcommand || !has_name(of, subcommand) : subcommand != NULL)
			continue;
		if (option[1] == '-'
				? strlen(text) > 3 && strncmp(option, text, strcspn(text, "=")) == 0
				: text[1] != '-' && strchr(text + 1, option[1]) != NULL)
			return true;
	}
	return false;
}

/* The subcommand's place; words->count: none, or one that isn't known. */
static size_t git_subcommand(const shell_words *words, size_t at)
{
	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;

		if (!text)
			return words->count;
		if (text[0] != '-')
			return at;
		if (strcmp(text, "-C") == 0 || strcmp(text, "-c") == 0 ||
			strcmp(text, "--git-dir") == 0 || strcmp(text, "--work-tree") == 0 ||
			strcmp(text, "--namespace") == 0 || strcmp(text, "--config-env") == 0 ||
			strcmp(text, "--attr-source") == 0 || strcmp(text, "--super-prefix") == 0)
			at++;
	}
	return at;
}

static void judge_git(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	size_t at = git_subcommand(words, first + 1);
	const char *subcommand = at < words->count ? words->items[at].literal : NULL;
	bool reads_files = false;

	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;

		if (text && strcmp(text, "--") == 0 && i > at)
			break;
		if (!text && word_may_be_option(&words->items[i]))
			judge_step(j, subject, POLICY_ASK, NULL,
				"an expanded word may be an option of 'git'");
		else if (text && text[0] == '-' && text[1] &&
			 git_is_dangerous(i > at ? subcommand : NULL, text))
			judge_step(j, subject, POLICY_ASK, NULL,
				arena_printf(j->arena,
					"option '%s' of 'git' can run programs or write files",
					text));
		else if (text && (strstr(text, "::") || strstr(text, "ProxyCommand")) &&
			 text[0] != ':' &&
			 has_name("clone fetch pull push remote ls-remote submodule",
				 subcommand ? subcommand : ""))
			judge_step(j, subject, POLICY_ASK, NULL, "a remote that runs a program");
		reads_files |= text && strcmp(text, "--no-index") == 0;
	}
	for (size_t k = 0; subcommand && k < sizeof git_asked / sizeof *git_asked; k++)
		if (strcmp(subcommand, git_asked[k]) == 0)
			judge_step(j, subject, POLICY_ASK, NULL,
				arena_printf(j->arena, "'git %s' can run programs", subcommand));
	for (size_t i = at + 1; reads_files && i < words->count; i++)
		if (!words->items[i].literal || words->items[i].literal[0] != '-')
			judge_path(j, POLICY_READ, &words->items[i]);
	/* The directory of a clone */
	const char *last = words->items[words->count - 1].literal;
	if (subcommand && strcmp(subcommand, "clone") == 0 && words->count > at + 2 && last &&
		last[0] != '-' && !strstr(last, "://"))
		judge_path(j, POLICY_WRITE, &words->items[words->count - 1]);
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
	else {
		const char *within = j->within;

		j->within = within ? arena_printf(j->arena, "%s, find", within) : "find";
		judge_simple(j, &command);
		j->within = within;
	}
	j->depth--;
	return at;
}

static void judge_find(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	static const char *const runs[] = { "-exec", "-execdir", "-ok", "-okdir" };
	size_t paths = first + 1;

	for (; paths < words->count && words->items[paths].literal; paths++) {
		const char *text = words->items[paths].literal;

		if (strncmp(text, "-O", 2) != 0 && strcmp(text, "-H") != 0 &&
			strcmp(text, "-L") != 0 && strcmp(text, "-P") != 0)
			break;
	}
	while (paths < words->count && !word_may_be_option(&words->items[paths]) &&
		!(words->items[paths].literal && strpbrk(words->items[paths].literal, "()!")))
		judge_path(j, POLICY_READ, &words->items[paths++]);
	for (size_t i = paths; i < words->count; i++) {
		const char *text = words->items[i].literal ? words->items[i].literal : "";

		for (size_t k = 0; k < 4; k++)
			if (strcmp(text, runs[k]) == 0) {
				/* in the directory of each file */
				j->is_moved |= strstr(text, "dir") != NULL;
				i = judge_find_command(j, subject, words, i + 1);
			}
		if (strcmp(text, "-delete") == 0)
			judge_step(j, subject, POLICY_ASK, NULL,
				"'find -delete' deletes what it finds");
		if (strncmp(text, "-fprint", 7) == 0 || strcmp(text, "-fls") == 0 ||
			strcmp(text, "-files0-from") == 0)
			judge_step(j, subject, POLICY_ASK, NULL,
				"'find' writes or reads another file");
	}
}

/* After the part of a sed script up to an unescaped delimiter; NULL: none, or seds differ on where
 * it ends, as the delimiter stands in brackets. */
static const char *sed_part(const char *at, char delimiter)
{
	for (; *at && *at != '\n'; at++) {
		const char *close = *at == '[' ? strchr(at + 1, ']') : NULL;

		if (*at == delimiter)
			return at + 1;
		if (*at == '\\' && at[1])
			at++;
		else if (close && memchr(at, delimiter, (size_t)(close - at)))
			return NULL;
	}
	return NULL;
}

/* 5, $, /re/, 1~2; NULL: not understood. */
static const char *sed_address(const char *at)
{
	if (*at == '/') {
		at = sed_part(at + 1, '/');
		return at && *at == 'I' ? at + 1 : at;
	}
	return *at == '$' ? at + 1 : at + strspn(at, "0123456789~+");
}

/* A script of sed that can only print, delete and substitute. */
static bool sed_is_harmless(const char *script)
{
	const char *at = sed_address(script);

	if (at && *at == ',')
		at = sed_address(at + 1);
	if (!at)
		return false;
	at += strspn(at, " !");
	if (*at == 's' || *at == 'y') {
		bool is_list = *at == 'y';
		char delimiter = at[1];

		if (!delimiter || strchr(" \\\n;", delimiter))
			return false;
		at = sed_part(at + 2, delimiter);
		at = at ? sed_part(at, delimiter) : NULL;
		return at && !at[is_list ? 0 : strspn(at, "gpiI0123456789")];
	}
	return *at && strchr("pdqD=nNPGhHgx", *at) && !at[1];
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
				strstr(text, "ARGV") || strstr(text, "ARGC") ||
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
