/* Programs that read directories with all that is in them, of which a rule may deny a part. */
#include "policy/internal.h"

#include "base/path.h"

/* Each operand may be a directory that is read. Of other programs only an operand that is one by
 * its spelling is taken for such: "." or "..", also at its end, or what ends in '/'. */
static const struct walker {
	const char *name;
	const char *list;    /* options for which files of a list are read */
	const char *letters; /* the same as letters */
	const char
		*otherwise; /* letters without one of which it reads no directory: tar's "cruAd" */
	bool reads_cwd;	    /* without an operand */
} walkers[] = {
	{ "tar", "--files-from", "T", "cruAd", false },
	{ "bsdtar", "--files-from", "T", "cru", false },
	{ "rsync", "--files-from", NULL, NULL, false },
	{ "zip", "--names-stdin", "@", NULL, false },
	{ "7z", NULL, NULL, NULL, false },
	{ "7za", NULL, NULL, NULL, false },
	{ "7zr", NULL, NULL, NULL, false },
	{ "scp", NULL, NULL, NULL, false },
	{ "pax", NULL, NULL, NULL, true },
	{ "cpio", "--create --pass-through", "op", NULL, false },
	{ "ack", "--files-from", "x", NULL, true },
	{ "ugrep", "--from", NULL, NULL, true },
	{ "ug", "--from", NULL, NULL, true },
	{ "rgrep", NULL, NULL, NULL, true },
	{ "mksquashfs", NULL, NULL, NULL, false },
	{ "genisoimage", "-path-list", NULL, NULL, false },
	{ "xorriso", "-path-list", NULL, NULL, false },
};

static void ask_below(struct judge *j, unsigned operations, const char *dir, const char *shown)
{
	for (unsigned operation = POLICY_READ; operation <= POLICY_DELETE; operation <<= 1)
		if ((operations & operation) &&
			pattern_is_forbidden(
				j, (enum policy_operation)operation, pattern_below(j->arena, dir)))
			judge_ask(j, file_subject(j, (enum policy_operation)operation, shown),
				"a rule forbids a file in that directory");
}

static void judge_text_below(struct judge *j, unsigned operations, const char *text)
{
	if (!judge_spend(j, 8 + strlen(text) / 4))
		return;
	if (text[0] != '/' && j->is_moved) {
		ask_below(j, operations, "/", text);
		return;
	}
	const char *dir = path_normalize(j->arena, j->request->cwd, text);
	ask_below(j, operations, dir, dir);
	if (text[0] != '/' && j->moved_to) {
		dir = path_normalize(j->arena, j->moved_to, text);
		ask_below(j, operations, dir, dir);
	}
}

void judge_tree(struct judge *j, unsigned operations, const struct shell_word *word)
{
	if (!j->policy->has_file_rules)
		return;
	if (word->literal) {
		judge_text_below(j, operations, word->literal);
		return;
	}
	const char *pattern = j->is_moved ? NULL : pattern_of(j, j->request->cwd, word);
	const char *shown = arena_bytes(j->arena, word->source.data, word->source.len);
	ask_below(j, operations, pattern ? pattern : "/", shown);
	if (j->moved_to && (pattern = pattern_of(j, j->moved_to, word)))
		ask_below(j, operations, pattern, shown);
}

static bool is_directory(const struct shell_word *word)
{
	const char *text = word->literal;
	size_t len = text ? strlen(text) : 0;
	if (!len || text[len - 1] == '/')
		return len > 0;
	const char *name = path_basename(text);
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* The value of --option=VALUE, or of -C/VALUE; NULL: none. */
static const char *value_of(const char *option)
{
	const char *value = strchr(option, '=');
	return value ? value + 1 : strchr(option, '/');
}

/* Letters of an option, also of one without '-', as tar takes them first. */
static bool has_letter(
	const struct walker *walker, const shell_words *words, size_t first, const char *letters)
{
	bool is_tar = walker->otherwise != NULL;
	for (size_t i = first + 1; i < words->count; i++) {
		const char *text = words->items[i].literal;
		if (!text && word_may_be_option(&words->items[i]))
			return true;
		if (text && text[0] == '-' && text[1] != '-' && strpbrk(text + 1, letters))
			return true;
		if (text && is_tar && i == first + 1 && text[0] != '-' && strpbrk(text, letters))
			return true;
		/* --create, --append, --update, --concatenate, --diff */
		if (text && is_tar && strncmp(text, "--", 2) == 0 && text[2] &&
			strchr("acdu", text[2]))
			return true;
	}
	return false;
}

static bool takes_list(const struct walker *walker, const shell_words *words, size_t first)
{
	struct str rest = walker->list ? str_from(walker->list) : STR(""), option;
	while (str_next(&rest, ' ', &option))
		for (size_t i = first + 1; i < words->count; i++) {
			const char *text = words->items[i].literal;
			size_t len = text ? strcspn(text, "=") : 0;
			if (len > 3 && len <= option.len && memcmp(option.data, text, len) == 0)
				return true;
		}
	return walker->letters && has_letter(walker, words, first, walker->letters);
}

static void judge_walker(
	struct judge *j, const struct walker *walker, const shell_words *words, size_t first)
{
	unsigned operands = 0;
	if (takes_list(walker, words, first))
		ask_below(j, POLICY_READ, "/", "the files of a list");
	if (walker->otherwise && !has_letter(walker, words, first, walker->otherwise))
		return;
	for (size_t i = first + 1; i < words->count; i++) {
		const struct shell_word *word = &words->items[i];
		bool is_option = word->literal && word->literal[0] == '-';
		const char *value = is_option ? value_of(word->literal) : NULL;
		operands += !is_option;
		if (value)
			judge_text_below(j, POLICY_READ, value);
		else if (!is_option)
			judge_tree(j, POLICY_READ, word);
	}
	if (operands <= 1 && walker->reads_cwd)
		judge_text_below(j, POLICY_READ, ".");
}

void judge_walks(struct judge *j, const shell_words *words, size_t first)
{
	const char *name = path_basename(words->items[first].literal);
	for (size_t i = 0; i < sizeof walkers / sizeof *walkers; i++)
		if (strcmp(name, walkers[i].name) == 0) {
			judge_walker(j, &walkers[i], words, first);
			return;
		}
	for (size_t i = first + 1; i < words->count; i++)
		if (is_directory(&words->items[i]))
			judge_tree(j, POLICY_READ, &words->items[i]);
}
