/* What the arguments of programs run, read and write, by their known shapes. */
#include "policy/shapes.h"

#include "base/buf.h"
#include "base/path.h"

struct call { /* of a program that has a row */
	struct judge *j;
	const char *subject;
	const struct shape *shape;
	const shell_words *words;
	const char *directory; /* of tar's members, or NULL */
	/* What options say of the operands */
	bool reads_all, writes_all, deletes, has_program;
	bool writes_here, writes_elsewhere;
	bool creates, extracts, lists;
	bool edits, may_edit, has_text;
};

#define ask(c, ...) judge_ask((c)->j, (c)->subject, __VA_ARGS__)

/* ---- commands within arguments ---- */

/* The words as a command; words with `mark` become unknown words. */
static void judge_found_command(struct call *c, size_t from, size_t to, const char *mark, bool adds)
{
	struct judge *j = c->j;
	struct shell_command command = { .kind = SHELL_SIMPLE };
	auto_buf struct buf source = buf_empty(SHELL_SCRIPT_MAX);
	const char *within = j->within;
	size_t len = strcspn(c->shape->names, " ");
	for (size_t at = from; at < to; at++) {
		struct shell_word word = c->words->items[at];
		if (word.literal && strstr(word.literal, mark)) {
			word = (struct shell_word){ .source = word.source };
			adds = false;
		}
		vec_push(j->arena, &command.words, word);
		buf_printf(&source, "%s%.*s", source.len ? " " : "", (int)word.source.len,
			word.source.data);
	}
	if (adds)
		vec_push(j->arena, &command.words, (struct shell_word){ .source = STR("…") });
	command.source = (struct str){ arena_bytes(j->arena, source.data, source.len), source.len };
	if (from >= to) {
		ask(c, "it isn't known what that runs");
		return;
	}
	if (++j->depth > POLICY_DEPTH_MAX) {
		judge_give_up(j, "commands in commands are nested too deep");
	} else {
		j->within = arena_printf(j->arena, "%s%s%.*s", within ? within : "",
			within ? ", " : "", (int)len, c->shape->names);
		judge_simple(j, &command);
		j->within = within;
	}
	j->depth--;
}

/* ---- programs in arguments ---- */

/* After a bracket expression of a regular expression; NULL: it has the delimiter, or seds differ on
 * where it ends: `[\]`. */
static const char *sed_bracket(const char *at, char delimiter)
{
	const char *begin = at + 1;
	begin += *begin == '^';
	for (at = begin; *at && *at != '\n' && *at != delimiter; at++) {
		if (*at == ']' && at != begin)
			return at + 1;
		if (*at == '\\' && (at[1] == ']' || at[1] == delimiter))
			return NULL;
		if (*at != '[' || !at[1] || !strchr(":.=", at[1]))
			continue;
		size_t len = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz");
		/* Seds differ on where "[.", "[=" and a class without a name end. */
		if (at[1] != ':' || strncmp(at + len, ":]", 2) != 0 ||
			memchr(at, delimiter, len + 2))
			return NULL;
		at += len + 1;
	}
	return NULL;
}

/* After the part of a sed script up to an unescaped delimiter; NULL: none, or seds differ on where
 * it ends. */
static const char *sed_part(const char *at, char delimiter, bool is_regex)
{
	while (at && *at && *at != '\n') {
		if (*at == delimiter)
			return at + 1;
		if (*at == '\\' && at[1])
			at += 2;
		else if (is_regex && *at == '[')
			at = sed_bracket(at, delimiter);
		else
			at++;
	}
	return NULL;
}

/* 5, $, /re/, 1~2; NULL: not understood. */
static const char *sed_address(const char *at)
{
	if (*at == '/') {
		at = sed_part(at + 1, '/', true);
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
		if (!delimiter || strchr(" \\\n;[]^", delimiter))
			return false;
		at = sed_part(at + 2, delimiter, true);
		at = at ? sed_part(at, delimiter, false) : NULL;
		return at && !at[is_list ? 0 : strspn(at, "gpiI0123456789")];
	}
	return *at && strchr("pdqD=nNPGhHgx", *at) && !at[1];
}

static bool awk_is_harmless(const char *program)
{
	return !strstr(program, "system") && !strstr(program, "getline") &&
	       !strstr(program, "ARGV") && !strstr(program, "ARGC") && !strpbrk(program, "|>@\\");
}

static void judge_text(struct call *c, const struct shell_word *word)
{
	bool is_sed = strncmp(c->shape->names, "sed", 3) == 0;
	if (word->literal &&
		(is_sed ? sed_is_harmless(word->literal) : awk_is_harmless(word->literal)))
		return;
	ask(c, "%s",
		is_sed ? "a script of sed that may run programs or write files"
		       : "a program of awk that may run others or write files");
}

/* ---- files ---- */

static void judge_file(struct call *c, unsigned operations, const struct shell_word *word)
{
	if (word->literal && strcmp(word->literal, "-") == 0)
		return;
	if (operations & POLICY_READ)
		judge_path(c->j, POLICY_READ, word);
	if (operations & POLICY_WRITE)
		judge_output(c->j, POLICY_WRITE, word);
	if (operations & POLICY_DELETE)
		judge_output(c->j, POLICY_DELETE, word);
}

/* A directory with all that is in it. */
static void judge_directory(struct call *c, unsigned operations, const struct shell_word *word)
{
	judge_file(c, operations, word);
	if (c->j->policy->has_file_rules)
		judge_tree(c->j, operations, word);
}

static void judge_part(struct call *c, unsigned operations, const char *path)
{
	const struct shell_word word = { .literal = path, .source = str_from(path) };
	judge_file(c, operations, &word);
}

static unsigned operations_of(char effect)
{
	static const struct {
		char effect;
		unsigned operations;
	} effects[] = { { 'r', POLICY_READ }, { 'G', POLICY_READ }, { 'w', POLICY_WRITE },
		{ 'W', POLICY_WRITE }, { 'T', POLICY_WRITE }, { 'O', POLICY_WRITE },
		{ 'E', POLICY_READ }, { 'b', POLICY_READ | POLICY_WRITE },
		{ 'd', POLICY_READ | POLICY_WRITE | POLICY_DELETE } };
	for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
		if (effects[i].effect == effect)
			return effects[i].operations;
	return 0;
}

/* ---- options ---- */

static void note_option(struct call *c, char effect)
{
	c->reads_all |= effect == 'R' || effect == 'T';
	c->writes_all |= effect == 'V';
	c->deletes |= effect == 'Y';
	c->has_program |= effect == 'p';
	c->writes_here |= effect == '.';
	c->writes_elsewhere |= effect == 'W' || effect == 'O' || effect == 'h' || effect == 'D';
	c->creates |= effect == 'm';
	c->extracts |= effect == 'x';
	c->lists |= effect == 't';
	c->edits |= effect == 'j';
	c->may_edit |= effect == 'J';
	c->has_text |= effect && strchr("qQG", effect);
	c->j->is_moved |= effect == 'C';
}

/* The file that a value names: @FILE, NAME=@FILE;type=… of a form, or NAME@FILE; NULL: none. */
static const char *file_after(struct arena *arena, const char *value, char effect)
{
	const char *sign = value;
	if (effect == 'F') {
		sign = strchr(value, '=');
		sign = sign ? sign + 1 : "";
		return *sign && strchr("@<", *sign)
			       ? arena_bytes(arena, sign + 1, strcspn(sign + 1, ";"))
			       : NULL;
	}
	if (effect == 'N')
		sign += strcspn(sign, "=@");
	return *sign == '@' ? sign + 1 : NULL;
}

/* A part of a form that is one file: curl takes a list of several, quotes, blanks around the name,
 * and a file with headers. */
static bool form_is_harmless(const char *value)
{
	const char *sign = strchr(value, '=');
	const char *more = sign ? strchr(sign, ';') : NULL;
	bool is_file = sign && sign[1] && strchr("@<", sign[1]);
	return !(is_file && strpbrk(sign + 2, ",\"\\ \t\r\n")) && !(more && strpbrk(more, "@<"));
}

static bool value_is_harmless(char effect, const char *value)
{
	switch (effect) {
	case 'i':
		return !strpbrk(value, "/*");
	case 'c':
		return !strchr(value, ',');
	case '%':
		return !strstr(value, "%output") && value[0] != '@';
	case 'M':
		return strcmp(value, "-") != 0 && strncmp(value, "/dev/", 5) != 0 &&
		       strncmp(value, "/proc/", 6) != 0;
	case 'O':
	case 'W': /* a number after '#' is a part of the address to curl */
		return !strchr(value, '#');
	case 'F':
		return form_is_harmless(value);
	case 'Q':
		return strncmp(value, "amend:", 6) != 0 && strncmp(value, "reword:", 7) != 0;
	case 'P':
		return value[0] != 'i';
	case 'u':
		return !strpbrk(value, "{[");
	case 'g':
		return !strstr(value, "::");
	case 'A': /* tar takes HOST:FILE for a file of another host */
		return !strchr(value, ':');
	default:
		return true;
	}
}

static void judge_value(struct call *c, char effect, const struct shell_word *word)
{
	const char *value = word->literal, *path;
	/* "Header: $x" doesn't begin with '@', whatever $x is. */
	if (effect == '@' && !value && word->parts.count &&
		word->parts.items[0].kind == SHELL_TEXT && word->parts.items[0].text[0] &&
		word->parts.items[0].text[0] != '@')
		return;
	if (value ? !value_is_harmless(effect, value) : strchr("ic%MAFN@ugQP", effect) != NULL) {
		ask(c, "the value '%.*s' can run programs or name files",
			(int)(word->source.len < 80 ? word->source.len : 80), word->source.data);
		return;
	}
	switch (effect) {
	case 'p':
		judge_text(c, word);
		return;
	case 's':
		if (value)
			judge_script(c->j, SHELL_SH, str_from(value));
		else
			ask(c, "it isn't known which commands that runs");
		return;
	case '@':
	case 'F':
	case 'N':
		path = file_after(c->j->arena, value, effect);
		if (path)
			judge_part(c, POLICY_READ, path);
		return;
	case 'A':
		judge_file(c,
			c->creates || !(c->extracts || c->lists) ? POLICY_READ | POLICY_WRITE
								 : POLICY_READ,
			word);
		return;
	case 'D':
		judge_directory(c, c->extracts ? POLICY_WRITE : POLICY_READ, word);
		return;
	case 'O':
	case 'T':
		judge_directory(c, POLICY_WRITE, word);
		return;
	case 'f':
		if (!value || value[0] == '@' || strncasecmp(value, "file:", 5) == 0 ||
			strcspn(value, "{[") < strcspn(value, ":"))
			ask(c, "an address that may be a file");
		return;
	case 'M':
	case 'u':
		judge_file(c, POLICY_READ, word);
		return;
	default:
		judge_file(c, operations_of(effect), word);
	}
}

static void judge_option(struct call *c, const struct shape_item *item)
{
	if (item->effect == '!')
		ask(c, "an option that can run programs or write files");
	else if (item->effect == 'X')
		judge_found_command(c, item->from, item->to, "{", true);
	else if (item->has_value && item->effect)
		judge_value(c, item->effect, &item->value);
}

/* ---- operands ---- */

/* The letter of the operand at `k` of `count`. */
static char operand_letter(const char *spec, size_t k, size_t count)
{
	const char *last = strchr(spec, '$');
	spec += strspn(spec, ".:~%");
	if (last && k + 1 == count && count > 1)
		return last[1];
	for (; *spec && *spec != '$'; spec++) {
		if (*spec == '*')
			return spec[1];
		if (k-- == 0)
			return *spec;
	}
	return 0;
}

/* A variable that is set by make's command line; anything that could be a program's name isn't
 * harmless in one. */
static void judge_make_variable(struct call *c, const struct shell_word *word)
{
	static const char values[] = "yes no on off true false y n debug release Debug Release";
	static const char names[] = "PREFIX prefix DESTDIR BUILD VERSION ARCH CONFIG";
	const char *text = word->literal, *value = text ? strchr(text, '=') : NULL;
	if (!text) {
		ask(c, "an expanded word may set a variable of make");
		return;
	}
	if (!value)
		return;
	size_t len = (size_t)(value - text);
	if (!value[1 + strspn(value + 1, "0123456789")] || words_have(values, value + 1))
		return;
	if (words_have_part(names, text, len) && !value[1 + strcspn(value + 1, "$`;|&()<>\n\\ ")]) {
		if (value[1] == '/')
			judge_part(c, POLICY_WRITE, value + 1);
		return;
	}
	ask(c, "'%.*s' of make may name a program", (int)len, text);
}

static bool is_surely_path(const char *text)
{
	return !text || text[0] == '/' || strncmp(text, "../", 3) == 0 || strstr(text, "/../") ||
	       strcmp(text, "..") == 0;
}

static void judge_operand_of(struct call *c, char letter, const struct shell_word *word)
{
	const char *text = word->literal;
	switch (letter) {
	case 'p':
		judge_text(c, word);
		return;
	case 'g':
		if (!text || strstr(text, "::") || strstr(text, "ProxyCommand"))
			ask(c, "a remote that may run a program");
		return;
	case 'o':
		if (is_surely_path(text))
			judge_file(c, POLICY_READ, word);
		return;
	case 'k': /* @FILE has options */
	case 'K':
		if (!text || text[0] == '@')
			ask(c, "options that aren't written here");
		judge_file(c, letter == 'k' ? POLICY_READ : POLICY_READ | POLICY_WRITE, word);
		return;
	case 'l': /* commands of less */
		if (!text || text[0] == '+')
			ask(c, "a word that may be a command of 'less'");
		return;
	case 'v':
		judge_make_variable(c, word);
		return;
	case 'f':
		judge_value(c, 'f', word);
		return;
	case '!':
		ask(c, "it isn't known what that does");
		return;
	case 'O':
	case 'E':
		judge_directory(c, operations_of(letter), word);
		return;
	default:
		c->writes_elsewhere |= letter == 'W';
		judge_file(c, operations_of(letter), word);
	}
}

/* A member that tar creates an archive of, after -C. */
static void judge_member(struct call *c, const struct shell_word *word)
{
	if (!c->creates)
		return;
	if (strcmp(c->shape->names, "bsdtar") == 0 && (!word->literal || word->literal[0] == '@'))
		ask(c, "bsdtar takes the files that an archive, or a list, names");
	struct shell_word member = *word;
	if (c->directory && word->literal && word->literal[0] != '/')
		member.literal = arena_printf(c->j->arena, "%s/%s", c->directory, word->literal);
	judge_directory(c, POLICY_READ, &member);
}

static void judge_operand_at(struct call *c, const struct shell_word *word, size_t k, size_t count)
{
	const char *spec = c->shape->operands;
	char letter = operand_letter(spec, k, count);
	if (spec[0] == ':' && (!word->literal || strchr(word->literal, ':')))
		ask(c, "a file of another host, which a program is run for");
	if (c->shape->style == SHAPE_TAR && !spec[0])
		judge_member(c, word);
	else if (letter == 'p' && c->has_program)
		return; /* what the program reads */
	else if (c->writes_all)
		judge_file(c, POLICY_WRITE, word);
	else if (c->reads_all && letter != 'p')
		judge_file(c, POLICY_READ, word);
	else
		judge_operand_of(c, letter, word);
	if (c->deletes && k + 1 == count)
		judge_file(c, POLICY_DELETE, word);
}

/* Whether git opens an editor, which takes commands from its input: `:!CMD` of vi. */
static bool opens_editor(const struct call *c, const struct shape_reading *reading)
{
	const char *first = NULL;
	for (size_t i = 0; i < reading->items.count && !first; i++)
		if (reading->items.items[i].is_operand)
			first = reading->items.items[i].value.literal;
	if (c->edits) /* not `git stash show -p` */
		return !first || strcmp(c->shape->names, "git/stash") != 0 ||
		       strcmp(first, "show") != 0;
	return (c->may_edit || c->shape->operands[0] == '~') && !c->has_text;
}

/* %n of bash's printf sets the variable that is named after the format. */
static void judge_format(struct call *c, const struct shape_reading *reading)
{
	const char *at = reading->items.count ? reading->items.items[0].value.literal : "";
	bool sets = !at;
	while (at && !sets && (at = strchr(at, '%'))) {
		at++;
		at += strspn(at, " #+-'0123456789.*hjlqLtz");
		sets = *at == 'n';
		at += *at != '\0';
	}
	for (size_t i = 1; sets && i < reading->items.count; i++) {
		const char *name = reading->items.items[i].value.literal;
		if (!name || strchr(name, '[') || variable_is_dangerous(name))
			ask(c, "a format may set the variable that it names");
	}
}

/* Programs that copy into a directory, or fetch into one. */
static void judge_kept_names(struct call *c, const struct shape_reading *reading)
{
	static const char copying[] = "cp mv ln install rsync scp curl wget";
	const struct shape_item *last = NULL;
	const char *dir = NULL;
	size_t operands = 0;
	for (size_t i = 0; i < reading->items.count; i++) {
		const struct shape_item *item = &reading->items.items[i];
		operands += item->is_operand;
		if (item->is_operand)
			last = item;
		else if (item->effect == 'T' || item->effect == 'O')
			dir = item->value.literal;
	}
	if (operands == 1 && !dir && words_have("ln", c->shape->names) && last->value.literal)
		judge_part(c, POLICY_WRITE, kept_name(c->j, last->value.literal, false));
	/* wget decodes %2e, curl takes {.npmrc,x} for two addresses. */
	bool is_fetch = words_have("curl wget", c->shape->names);
	const char *unknown = !is_fetch ? NULL : strcmp(c->shape->names, "wget") == 0 ? "%" : "{[";
	bool is_last = !dir && operands > 1 && !is_fetch;
	if (is_last)
		dir = last->value.literal;
	if (!words_have(copying, c->shape->names) ||
		(is_fetch && !c->writes_here && !strchr(c->shape->operands, '.')))
		return;
	for (size_t i = 0; i < reading->items.count && !c->j->is_spent; i++) {
		const struct shape_item *item = &reading->items.items[i];
		if (item->is_operand && item->value.literal && !(is_last && item == last))
			judge_kept_name(c->j, dir ? dir : ".", item->value.literal, unknown);
	}
}

/* tar -C: each begins where the one before it led. No path is longer than 4,095 bytes. */
static void change_directory(struct call *c, const char *to)
{
	if (c->directory && to[0] != '/')
		to = arena_printf(c->j->arena, "%s/%s", c->directory, to);
	c->directory = to;
	if (strlen(to) < 4096)
		return;
	judge_give_up(c->j, "the name of a directory is too long");
	c->directory = "/";
}

/* Subcommands of this shape take what is theirs from a row of their own. */
static void judge_read(struct call *c, const struct shape_reading *reading)
{
	size_t count = 0, k = 0;
	for (size_t i = 0; i < reading->items.count; i++) {
		count += reading->items.items[i].is_operand;
		note_option(c, reading->items.items[i].effect);
	}
	if (opens_editor(c, reading))
		ask(c, "it opens an editor, which runs commands of its input");
	if (c->shape->operands[0] == '%')
		judge_format(c, reading);
	judge_kept_names(c, reading);
	for (size_t i = 0; i < reading->items.count && !c->j->is_spent; i++) {
		const struct shape_item *item = &reading->items.items[i];
		if (item->is_operand) {
			judge_operand_at(c, &item->value, k++, count);
			continue;
		}
		judge_option(c, item);
		if (item->effect == 'D' && !item->value.literal)
			ask(c, "it isn't known which directory that names");
		else if (item->effect == 'D')
			change_directory(c, item->value.literal);
	}
	if ((c->writes_here || c->extracts || strchr(c->shape->operands, '.')) &&
		!c->writes_elsewhere)
		judge_directory(c, POLICY_WRITE,
			&(const struct shell_word){ .literal = ".", .source = STR(".") });
}

/* ---- find ---- */

static bool is_expression(const struct shell_word *word)
{
	const char *text = word->literal;
	if (!text)
		return word_may_be_option(word);
	return text[0] == '-' ? text[1] != '\0' : strlen(text) == 1 && strchr("()!,", text[0]);
}

/* The command ends at ';', and at '+' behind "{}". Where finds differ on that, or a word may become
 * its end, the rest may be another command. */
static size_t find_command_end(struct call *c, size_t at)
{
	const shell_words *words = c->words;
	size_t begin = at;
	for (; at < words->count; at++) {
		const char *text = words->items[at].literal;
		const char *before = at > begin ? words->items[at - 1].literal : NULL;
		if (!text && word_may_end_command(&words->items[at]))
			ask(c, "an expanded word may end the command that 'find' runs");
		if (!text)
			continue;
		if (strcmp(text, ";") == 0)
			break;
		if (strcmp(text, "+") != 0)
			continue;
		if (before && strcmp(before, "{}") == 0)
			break;
		ask(c, "a '+' that isn't behind '{}' doesn't end the command that 'find' runs");
	}
	return at;
}

/* A value that may become several words, which then are a part of the expression: of *.py none can
 * be. */
static bool is_one_value(const struct shell_word *word)
{
	const struct shell_part *last =
		word->parts.count ? &word->parts.items[word->parts.count - 1] : NULL;
	bool is_pattern = false;
	for (size_t i = 0; i < word->parts.count; i++)
		is_pattern |= word->parts.items[i].kind == SHELL_PATTERN;
	return !word_splits(word) && (!is_pattern || !word_may_begin_option(word) ||
					     (last->kind == SHELL_TEXT && strchr(last->text, '.')));
}

static size_t judge_test(struct call *c, size_t at)
{
	static const char runs[] = "-exec -execdir -ok -okdir";
	const char *text = c->words->items[at].literal;
	char kind, effect;
	if (text && strlen(text) == 1 && strchr("()!,", text[0]))
		return at;
	if (words_have(runs, text)) {
		size_t end = find_command_end(c, at + 1);
		/* in the directory of each file */
		c->j->is_moved |= strstr(text, "dir") != NULL;
		judge_found_command(c, at + 1, end, "{}", false);
		return end;
	}
	if (!text || text[0] != '-' ||
		!shape_option(c->shape, str_from(text + 1), &kind, &effect) ||
		(kind && at + 1 >= c->words->count)) {
		if (text)
			ask(c, "'%s' isn't among the known shapes of 'find'", text);
		else
			ask(c, "an expanded word may be an option of 'find'");
		return at;
	}
	if (kind && !is_one_value(&c->words->items[at + 1]))
		ask(c, "an expanded word may be more of the expression of 'find'");
	if (kind && operations_of(effect))
		judge_file(c, operations_of(effect), &c->words->items[at + 1]);
	return at + (kind != 0);
}

static void judge_find(struct call *c, size_t first)
{
	size_t at = first + 1;
	for (; at < c->words->count && c->words->items[at].literal; at++) {
		const char *text = c->words->items[at].literal;
		if (strcmp(text, "-O1") != 0 && strcmp(text, "-O2") != 0 &&
			strcmp(text, "-O3") != 0 && strcmp(text, "-H") != 0 &&
			strcmp(text, "-L") != 0 && strcmp(text, "-P") != 0)
			break;
	}
	while (at < c->words->count && !is_expression(&c->words->items[at]))
		judge_file(c, POLICY_READ, &c->words->items[at++]);
	for (; at < c->words->count; at++)
		at = judge_test(c, at);
}

/* ---- any program that has a row ---- */

static void judge_call(struct call *c, size_t first)
{
	struct shape_reading reading;
	if (c->shape->style == SHAPE_FIND) {
		judge_find(c, first);
		return;
	}
	shape_read(c->j->arena, c->shape, c->words, first, &reading);
	if (reading.unknown)
		ask(c, "%s", reading.unknown);
	for (size_t i = reading.end; i < c->words->count && c->shape->style == SHAPE_FIRST &&
				     !shape_has_subcommands(c->shape);
		i++)
		vec_push(c->j->arena, &reading.items,
			(struct shape_item){ .is_operand = true, .value = c->words->items[i] });
	judge_read(c, &reading);
	if (!shape_has_subcommands(c->shape) || reading.end >= c->words->count)
		return;
	const char *name = c->words->items[reading.end].literal;
	const struct shape *sub = name ? shape_find_sub(c->j->arena, c->shape, name) : NULL;
	if (!sub) {
		ask(c, "'%.*s %.*s' isn't among the known shapes",
			(int)strcspn(c->shape->names, " "), c->shape->names,
			(int)c->words->items[reading.end].source.len,
			c->words->items[reading.end].source.data);
		return;
	}
	c->shape = sub;
	judge_call(c, reading.end);
}

void judge_shape_items(struct judge *j, const char *subject, const struct shape *shape,
	const shell_words *words, const struct shape_reading *reading)
{
	struct call c = { .j = j, .subject = subject, .shape = shape, .words = words };
	for (size_t i = 0; i < reading->items.count; i++) {
		note_option(&c, reading->items.items[i].effect);
		judge_option(&c, &reading->items.items[i]);
	}
}

/* Pagers and editors run what is typed: '!' of less, which git starts on a terminal. */
static bool takes_typed_commands(const struct call *c, size_t first)
{
	static const char pagers[] = "less man";
	static const char silent[] =
		"status rev-parse ls-files ls-tree fetch push clone init rm mv describe";
	static const char paged[] = "log diff show blame branch shortlog reflog grep";
	struct shape_reading reading;
	bool has_pager = true;
	if (words_have(pagers, c->shape->names))
		return true;
	if (strcmp(c->shape->names, "git") != 0)
		return false;
	shape_read(c->j->arena, c->shape, c->words, first, &reading);
	for (size_t i = first + 1; i < reading.end; i++) {
		const char *text = c->words->items[i].literal;
		has_pager &= !text || (strcmp(text, "-P") != 0 && strcmp(text, "--no-pager") != 0);
	}
	const char *verb =
		reading.end < c->words->count ? c->words->items[reading.end].literal : NULL;
	return !words_have(silent, verb) && (has_pager || !words_have(paged, verb));
}

void judge_program(struct judge *j, const char *subject, const shell_words *words, size_t first)
{
	const char *name = path_basename(words->items[first].literal);
	const char *option = first + 2 < words->count ? words->items[first + 1].literal : NULL;
	const char *module = option ? words->items[first + 2].literal : NULL;
	bool is_moved = j->is_moved;
	/* python -m venv */
	if (module && strncmp(name, "python", 6) == 0 && strcmp(option, "-m") == 0 &&
		(strcmp(module, "venv") == 0 || strcmp(module, "virtualenv") == 0)) {
		name = module;
		first += 2;
	}
	struct call c = {
		.j = j, .subject = subject, .shape = shape_find(j->arena, name), .words = words
	};
	if (!c.shape)
		return;
	if (j->request->has_terminal && takes_typed_commands(&c, first))
		ask(&c, "on a terminal it may run what is typed there");
	judge_call(&c, first);
	j->is_moved = is_moved;
}
