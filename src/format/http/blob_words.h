/* blob_words.h -- what carrel-blob is asked, as words: VERB KEY [WORD]... Pure.
 *	size=N sha256=HEX new		of put: what is expected; never replace an object
 *	zstd, gzip			of put: the data is a tar archive, which is compressed
 *	offset=N len=N sha256=HEX	of get
 *	plain				of get: what is compressed is decompressed */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "format/http/blob_name.h"

enum blob_verb { BLOB_PUT, BLOB_GET, BLOB_HEAD, BLOB_LIST, BLOB_DELETE, BLOB_VERB_COUNT };
enum blob_pack { BLOB_PACK_NONE, BLOB_PACK_ZSTD, BLOB_PACK_GZIP };
#define BLOB_WORDS_MAX 8
struct blob_words {
	uint64_t size;	    /* UINT64_MAX: unknown */
	const char *sha256; /* or NULL */
	bool only_new;
	uint64_t offset, len;  /* len UINT64_MAX: to the end */
	bool is_zstd, is_gzip; /* one of them at most */
	bool is_plain;
};
struct blob_words blob_words_none(void);
/* The words of an operation, for blob_words_read. */
void blob_words_write(enum blob_verb verb, const char *key, const struct blob_words *words,
	struct arena *arena, text_list *out);
/* ERR_INVALID: an unknown word, or one that the verb doesn't take. *key and *words point into the
 * texts. */
int blob_words_read(const char *const *texts, size_t count, enum blob_verb *verb, const char **key,
	struct blob_words *words, struct error *err);
