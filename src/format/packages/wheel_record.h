/* wheel_record.h -- RECORD of a dist-info directory: a CSV of path, hash, size. Pure. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"

struct wheel_record {
	const char *path; /* as written, relative to site-packages; may begin with ../ */
	bool has_sha256;
	unsigned char sha256[SHA256_LEN];
	bool has_size;
	uint64_t size;
	struct str line; /* of the text, with its newline */
};
typedef VEC(struct wheel_record) wheel_record_list;
#define WHEEL_RECORD_MAX ((size_t)32 << 20)
/* ERR_CORRUPT names the line; ERR_LIMIT: larger than WHEEL_RECORD_MAX. Quoted fields as in RFC
 * 4180; a hash of another kind than sha256 counts as none. Paths hold no NUL and are not empty;
 * whether they lead out is the caller's to judge. */
int wheel_record_parse(
	struct str text, struct arena *arena, wheel_record_list *entries, struct error *err);
