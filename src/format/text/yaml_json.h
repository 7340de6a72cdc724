/* yaml_json.h -- YAML by libyaml, as the tree of values that json_read.h makes of JSON: the same
 * record tables read both. Only carreld links libyaml. Pure; everything lives in the arena.
 * 1. Every value has its line, that of its key in a map.
 * 2. Plain scalars are those of YAML 1.2's core schema as far as JSON has them: null, true and
 * false, decimal numbers, text. A plain scalar that readers of YAML take for different things (yes,
 * on, 0x10, 010, 1_000, .inf) is an error that asks for quotes.
 * 3. An alias is a copy of its anchor's value, and counts as all of it. Tags, merge keys (<<), keys
 * that aren't text, a key given twice and a second document are errors. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "format/text/json_read.h"

#define YAML_JSON_MAX ((size_t)256 << 10)      /* bytes of text */
#define YAML_JSON_VALUES_MAX ((size_t)4 << 10) /* values in it, aliases counted in full */
#define YAML_JSON_DEPTH_MAX 16
#define YAML_JSON_KEY_MAX 1024 /* bytes of a key */
#define YAML_JSON_ANCHORS_MAX 64

/* *value is null when the text holds nothing but comments. ERR_INVALID: "line 3: …"; ERR_LIMIT:
 * more than one of the maxima above. */
int yaml_json_read(
	struct str text, struct arena *arena, struct json_value **value, struct error *err);
