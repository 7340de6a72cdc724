/* Reads options as programs read them, by the rows of known shapes. */
#include "policy/shapes.h"

#include "base/map.h"
#include "base/path.h"
#include "policy/shape_rows.h"

/* Longer bundles of letters aren't read: nobody writes them. */
#define LETTERS_MAX 64

static void add_names(struct map *by_name, const struct shape *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct str rest = str_from(rows[i].names), name;
		while (str_next(&rest, ' ', &name))
			map_add(by_name, name, (void *)&rows[i]);
	}
}

/* A script asks for each of its words, and there are hundreds of names. */
static const struct shape *find_exact(const char *name)
{
	static struct map by_name;
	if (!by_name.count) {
		map_init(&by_name, NULL);
		add_names(&by_name, shape_rows, shape_row_count);
		add_names(&by_name, shape_git_rows, shape_git_row_count);
	}
	return map_get(&by_name, str_from(name));
}

const struct shape *shape_find(struct arena *arena, const char *name)
{
	const char *base = path_basename(name);
	const struct shape *shape = find_exact(base);
	size_t len = strlen(base);
	/* gcc-12, x86_64-linux-gnu-gcc-12, gawk-5.2.1 */
	while (len && strchr("0123456789.", base[len - 1]))
		len--;
	if (shape || !len || (!base[len] && !strstr(base, "-linux-gnu")))
		return shape;
	const char *bare = arena_bytes(arena, base, len - (base[len - 1] == '-'));
	const char *triplet = strstr(bare, "-linux-gnu");
	const char *dash = triplet ? strchr(triplet + strlen("-linux"), '-') : NULL;
	dash = dash ? strchr(dash + 1, '-') : NULL;
	return find_exact(dash ? dash + 1 : bare);
}

const struct shape *shape_find_sub(
	struct arena *arena, const struct shape *program, const char *subcommand)
{
	size_t len = strcspn(program->names, " ");
	if (strpbrk(subcommand, " /"))
		return NULL;
	return find_exact(arena_printf(arena, "%.*s/%s", (int)len, program->names, subcommand));
}

bool shape_has_subcommands(const struct shape *shape)
{
	return strcmp(shape->operands, "/") == 0;
}

bool shape_is_wrapper(const struct shape *shape)
{
	return strchr(shape->operands, '>') != NULL;
}

bool shape_option(const struct shape *shape, struct str name, char *kind, char *effect)
{
	struct str rest = str_from(shape->options), token, names, one;
	while (name.len && str_next(&rest, ' ', &token)) {
		size_t len = 0;
		while (len < token.len && !strchr("=?:,", token.data[len]))
			len++;
		names = (struct str){ token.data, len };
		while (str_next(&names, '|', &one)) {
			if (!str_equal(one, name))
				continue;
			*kind = len < token.len && token.data[len] != ',' ? token.data[len] : 0;
			*effect = len + 1 < token.len ? token.data[len + 1] : 0;
			return true;
		}
	}
	return false;
}

struct reader {
	struct arena *arena;
	const struct shape *shape;
	const shell_words *words;
	size_t at;
	struct shape_reading *reading;
};

static void is_unknown(struct reader *r, const char *reason)
{
	if (!r->reading->unknown)
		r->reading->unknown = reason;
}

static void is_unknown_expansion(struct reader *r)
{
	is_unknown(r, arena_printf(r->arena, "an expanded word may be an option of '%.*s'",
			      (int)strcspn(r->shape->names, " "), r->shape->names));
}

static void is_unknown_option(struct reader *r)
{
	is_unknown(r, arena_printf(r->arena, "'%.*s' isn't among the known shapes of '%.*s'",
			      (int)(r->words->items[r->at].source.len < 80
					      ? r->words->items[r->at].source.len
					      : 80),
			      r->words->items[r->at].source.data,
			      (int)strcspn(r->shape->names, " "), r->shape->names));
}

/* A command in the words up to ';'. */
static void take_command(struct reader *r, struct shape_item *item)
{
	item->from = r->at + 1;
	while (r->at + 1 < r->words->count) {
		const struct shell_word *word = &r->words->items[++r->at];
		const char *text = word->literal;
		if (!text && word_may_end_command(word))
			is_unknown_expansion(r);
		if (text && strcmp(text, ";") == 0) {
			item->to = r->at;
			return;
		}
	}
	item->to = r->words->count;
}

/* Adds an option; glued: the rest of its word that may be its value, or NULL. */
static void take_option(struct reader *r, char kind, char effect, const char *glued, bool is_letter)
{
	struct shape_item item = { .effect = effect, .has_value = true };
	/* Some programs take -f=FILE for -f FILE, and others for the file "=FILE". */
	if (kind && kind != ':' && glued &&
		!(effect && effect != 'q' && is_letter && glued[0] == '=')) {
		item.value.literal = glued;
		item.value.source = str_from(glued);
	} else if ((kind == '=' || kind == ':') && !glued && r->at + 1 < r->words->count) {
		item.value = r->words->items[++r->at];
		if (word_splits(&item.value))
			is_unknown_expansion(r);
	} else if ((kind && kind != '?') || glued) {
		is_unknown_option(r);
		return;
	} else {
		item.has_value = false;
	}
	if (effect == 'X')
		take_command(r, &item);
	vec_push(r->arena, &r->reading->items, item);
}

static bool take_name(struct reader *r, const char *name)
{
	size_t len = strcspn(name, "=");
	char kind, effect;
	if (len < 2 || !shape_option(r->shape, (struct str){ name, len }, &kind, &effect)) {
		if (r->shape->style == SHAPE_NEGATED && strncmp(name, "no-", 3) == 0 && len > 4 &&
			!name[len] &&
			shape_option(r->shape, (struct str){ name + 3, len - 3 }, &kind, &effect)) {
			take_option(r, 0, 0, NULL, false);
			return true;
		}
		return false;
	}
	take_option(r, kind, effect, name[len] ? name + len + 1 : NULL, false);
	return true;
}

static void take_letters(struct reader *r, const char *letters)
{
	char kind, effect;
	if (!letters[strspn(letters, "0123456789")] &&
		shape_option(r->shape, STR("NUM"), &kind, &effect))
		return;
	for (size_t count = 0; *letters; letters++) {
		if (count++ == LETTERS_MAX ||
			!shape_option(r->shape, (struct str){ letters, 1 }, &kind, &effect)) {
			is_unknown_option(r);
			return;
		}
		/* gcc bundles no letters: what follows is a value. */
		if (kind || effect == 'X' || r->shape->style == SHAPE_DASH) {
			take_option(r, kind, effect, letters[1] ? letters + 1 : NULL, true);
			return;
		}
		take_option(r, 0, effect, NULL, true);
	}
}

/* tar's first word: the values of its letters are the next words, in order. */
static void take_old_letters(struct reader *r, const char *letters)
{
	char kind, effect;
	for (size_t count = 0; *letters && !r->reading->unknown; letters++)
		if (count++ < LETTERS_MAX &&
			shape_option(r->shape, (struct str){ letters, 1 }, &kind, &effect))
			take_option(r, kind == '?' ? 0 : kind, effect, NULL, true);
		else
			is_unknown_option(r);
}

static void take_operand(struct reader *r, const struct shell_word *word)
{
	vec_push(r->arena, &r->reading->items,
		(struct shape_item){ .is_operand = true, .value = *word });
}

static void take_pair(struct reader *r, const char *text)
{
	size_t len = strcspn(text, "=");
	char kind, effect;
	if (text[len] && shape_option(r->shape, (struct str){ text, len }, &kind, &effect))
		take_option(r, kind, effect, text + len + 1, false);
	else
		is_unknown_option(r);
}

static void take_word(struct reader *r, const char *text)
{
	if (r->shape->style == SHAPE_PAIRS)
		take_pair(r, text);
	else if (text[1] == '-' && take_name(r, text + 2))
		return;
	else if (r->shape->style == SHAPE_DASH && take_name(r, text + 1))
		return;
	else if (text[1] == '-')
		is_unknown_option(r);
	else
		take_letters(r, text + 1);
}

void shape_read(struct arena *arena, const struct shape *shape, const shell_words *words,
	size_t first, struct shape_reading *reading)
{
	struct reader r = { arena, shape, words, first + 1, reading };
	bool is_over = false;
	*reading = (struct shape_reading){ 0 };
	if (shape->style == SHAPE_TAR && r.at < words->count && !words->items[r.at].literal)
		is_unknown_expansion(&r);
	if (shape->style == SHAPE_TAR && r.at < words->count && words->items[r.at].literal &&
		words->items[r.at].literal[0] != '-') {
		take_old_letters(&r, words->items[r.at].literal);
		r.at++;
	}
	for (; r.at < words->count; r.at++) {
		const struct shell_word *word = &words->items[r.at];
		const char *text = word->literal;
		bool is_operand = is_over || (text && shape->style != SHAPE_PAIRS &&
						     (text[0] != '-' || !text[1]));
		/* No option follows the first operand of such a program. */
		if (!text && !is_over &&
			(shape->style == SHAPE_FIRST ? word_may_begin_option(word)
						     : word_may_be_option(word)))
			is_unknown_expansion(&r);
		if (text && !is_operand && strcmp(text, "--") == 0) {
			is_over = true;
		} else if (is_operand || !text) {
			if (shape->style == SHAPE_FIRST)
				break;
			take_operand(&r, word);
		} else {
			take_word(&r, text);
		}
	}
	reading->end = r.at < words->count ? r.at : words->count;
}
