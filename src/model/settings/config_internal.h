/* config_internal.h -- kinds of values of config.yaml: how each is read, and shown again. Private
 * to this room. */
#pragma once
#include "format/text/json.h"
#include "format/text/yaml.h"
#include "model/settings/config.h"

struct config_key {
	const char *name; /* "section.key" */
	size_t offset;
	const struct config_kind *kind; /* of the value, or of the items of a list or map */
	bool is_list;
	bool is_map;	      /* its own keys are read one by one, into a pair_list */
	uint64_t least, most; /* of a number; 0 is also allowed where has_none */
	bool has_none;
};
/* A value in the file, and where what it means goes. */
struct config_place {
	const struct config_key *key;
	const struct yaml_value *value;
	void *out; /* in struct config */
	struct arena *arena;
	struct error *err;
	const char *map_key; /* is_map: the key above the value */
};
struct config_kind {
	/* Reads text to place->out, or fails with what is wrong; the caller says where. */
	int (*read)(const struct config_place *place, const char *text);
	/* As the member `value`, as the file could have it; NULL: always in a list or map. */
	void (*print)(struct json *j, const struct config_kind *kind, const void *at);
	const char *const *words; /* one of these, or NULL; NULL at their end */
};
extern const struct config_kind config_count, config_size, config_duration, config_bool,
	config_policy, config_date, config_python, config_source, config_url, config_host,
	config_package, config_path, config_landlock, config_store, config_blob, config_region,
	config_archive_format, config_on_full, config_user, config_range, config_port,
	config_address, config_decision, config_listen, config_name, config_origin, config_subject,
	config_word, config_domain, config_log, config_log_level;
