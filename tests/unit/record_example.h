/* record_example.h -- rows of every kind, for the tests of model/records/record and its fuzz
 * target. */
#pragma once
#include <string.h>
#include "model/records/record.h"

struct example {
	const char *name;
	struct str input;
	uint64_t count, memory, wait_ms, cpus;
	bool flag, has_wait;
	int colour, sign;
	text_list words;
	pair_list labels;
	struct inner {
		const char *version;
		text_list packages;
	} python;
};

static inline int example_check_name(const char *text, struct error *err)
{
	return text[strspn(text, "abcdefghijklmnopqrstuvwxyz-")]
		       ? fail(err, ERR_INVALID, "'%s' is not a name", text)
		       : 0;
}

static inline int example_check_pair(const char *key, const char *value, struct error *err)
{
	return key[0] ? 0 : fail(err, ERR_INVALID, "a label may not be empty");
}

static const struct field_choice example_colours[] = { { "red", 1 }, { "green", 2 }, { 0 } };
static const struct field_choice example_signs[] = { { "TERM", 15 }, { "SIGTERM", 15 },
	{ "KILL", 9 }, { 0 } };

static const struct field example_inner_rows[] = {
	{ "version", FIELD_TEXT, offsetof(struct inner, version), "of Python", .least = 1 },
	{ "packages", FIELD_TEXTS, offsetof(struct inner, packages), NULL, .most = 3 },
};
static const struct record example_inner = { "Inner", NULL, RECORD_ROWS(example_inner_rows),
	FIELD_IN };

#define AT(member) offsetof(struct example, member)
static const struct field example_rows[] = {
	{ "name", FIELD_TEXT, AT(name), "its name", FIELD_REQUIRED, .least = 1, .most = 8,
		.pattern = "^[a-z-]+$", .check = example_check_name },
	{ "input", FIELD_BYTES, AT(input) },
	{ "count", FIELD_INTEGER, AT(count), .least = 1, .most = 10 },
	{ "flag", FIELD_BOOLEAN, AT(flag) },
	{ "memory", FIELD_SIZE, AT(memory), .least = 4 << 20 },
	{ "wait", FIELD_DURATION, AT(wait_ms), .least = 1, .most = 60000,
		.has = FIELD_HAS(struct example, has_wait) },
	{ "cpus", FIELD_CPUS, AT(cpus) },
	{ "colour", FIELD_CHOICE, AT(colour), .choices = example_colours },
	{ "sign", FIELD_NUMBERED, AT(sign), .least = 1, .most = 64, .choices = example_signs },
	{ "note", FIELD_SHOWN },
	{ "words", FIELD_TEXTS, AT(words), .least = 1, .most = 3 },
	{ "labels", FIELD_PAIRS, AT(labels), NULL, FIELD_NULLABLE, .most = 2,
		.check_pair = example_check_pair },
	{ "python", FIELD_SHORT, AT(python), .object = &example_inner },
	{ "inner", FIELD_OBJECT, AT(python), .object = &example_inner },
	{ "template", FIELD_ABSENT },
};
#undef AT
static const struct record example = { "Example", "Every kind.", RECORD_ROWS(example_rows),
	FIELD_IN };
