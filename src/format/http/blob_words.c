#include "format/http/blob_words.h"

#include "base/str.h"

#define SHA256_HEX 64

static const char *const verb_names[BLOB_VERB_COUNT] = { "put", "get", "head", "list", "delete" };

enum kind { NUMBER, HASH, FLAG };
static const struct word {
	const char *name;
	size_t offset;
	enum kind kind;
	unsigned verbs; /* bits */
} word_table[] = {
#define AT(field) offsetof(struct blob_words, field)
	{ "size", AT(size), NUMBER, 1 << BLOB_PUT },
	{ "sha256", AT(sha256), HASH, 1 << BLOB_PUT | 1 << BLOB_GET },
	{ "new", AT(only_new), FLAG, 1 << BLOB_PUT },
	{ "zstd", AT(is_zstd), FLAG, 1 << BLOB_PUT },
	{ "gzip", AT(is_gzip), FLAG, 1 << BLOB_PUT },
	{ "plain", AT(is_plain), FLAG, 1 << BLOB_GET },
	{ "offset", AT(offset), NUMBER, 1 << BLOB_GET },
	{ "len", AT(len), NUMBER, 1 << BLOB_GET },
#undef AT
};
#define WORD_COUNT (sizeof word_table / sizeof *word_table)

struct blob_words blob_words_none(void)
{
	return (struct blob_words){ .size = UINT64_MAX, .len = UINT64_MAX };
}

void blob_words_write(enum blob_verb verb, const char *key, const struct blob_words *words,
	struct arena *arena, text_list *out)
{
	const struct blob_words none = blob_words_none();
	vec_push(arena, out, verb_names[verb]);
	vec_push(arena, out, key);
	for (size_t i = 0; i < WORD_COUNT; i++) {
		const struct word *word = &word_table[i];
		const void *value = (const char *)words + word->offset;
		const void *usual = (const char *)&none + word->offset;
		if (!(word->verbs & 1u << verb))
			continue;
		if (word->kind == NUMBER && *(const uint64_t *)value != *(const uint64_t *)usual)
			vec_push(arena, out,
				arena_printf(arena, "%s=%llu", word->name,
					(unsigned long long)*(const uint64_t *)value));
		if (word->kind == HASH && *(const char *const *)value)
			vec_push(arena, out,
				arena_printf(
					arena, "%s=%s", word->name, *(const char *const *)value));
		if (word->kind == FLAG && *(const bool *)value)
			vec_push(arena, out, word->name);
	}
}

static bool is_sha256(const char *text)
{
	return strlen(text) == SHA256_HEX && strspn(text, "0123456789abcdef") == SHA256_HEX;
}

static bool read_word(const char *text, enum blob_verb verb, struct blob_words *words)
{
	for (size_t i = 0; i < WORD_COUNT; i++) {
		const struct word *word = &word_table[i];
		size_t len = strlen(word->name);
		void *value = (char *)words + word->offset;
		if (strncmp(text, word->name, len) != 0 || !(word->verbs & 1u << verb))
			continue;
		if (word->kind == FLAG && !text[len])
			return *(bool *)value = true;
		if (text[len] != '=')
			continue;
		const char *given = text + len + 1;
		if (word->kind == NUMBER)
			return str_to_u64(str_from(given), value);
		if (word->kind == HASH && is_sha256(given)) {
			*(const char **)value = given;
			return true;
		}
	}
	return false;
}

int blob_words_read(const char *const *texts, size_t count, enum blob_verb *verb, const char **key,
	struct blob_words *words, struct error *err)
{
	struct blob_words read = blob_words_none();
	enum blob_verb found = 0;
	if (count < 2 || count > BLOB_WORDS_MAX)
		return fail(
			err, ERR_INVALID, "an operation of the blob store has %zu words", count);
	while (found < BLOB_VERB_COUNT && strcmp(texts[0], verb_names[found]) != 0)
		found++;
	if (found == BLOB_VERB_COUNT)
		return fail(err, ERR_INVALID, "unknown operation '%s' of the blob store", texts[0]);
	if (found == BLOB_LIST ? !blob_prefix_is_valid(texts[1]) : !blob_key_is_valid(texts[1]))
		return fail(err, ERR_INVALID, "invalid object key '%s'", texts[1]);
	for (size_t i = 2; i < count; i++)
		if (!read_word(texts[i], found, &read))
			return fail(err, ERR_INVALID, "invalid word '%s' of operation '%s'",
				texts[i], texts[0]);
	if (read.is_zstd && read.is_gzip)
		return fail(err, ERR_INVALID, "both zstd and gzip");
	*verb = found;
	*key = texts[1];
	*words = read;
	return 0;
}
