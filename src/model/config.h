/* config.h -- $CARREL_HOME/config.yaml, checked. Pure: text in, values out. One table says every
 *key, its kind, range and default; an unknown key or a wrong value is ERR_INVALID and names line
 *and key.
 *
 *	environments:
 *	  max_envs: 50
 *	  max_bytes: 10G
 *	  ttl: 30d			# unused for so long: removed; 0 never (default)
 *	  eviction: lru			# lru, lfu, fifo
 *	  min_free_bytes: 500M		# build nothing when less is free
 *	  install_timeout: 300s
 *	  max_install_bytes: 12G		# of one build
 *	  exclude_newer: 2026-01-01	# cut-off date for resolving
 *	  require_hashes: false
 *	  allow_build: false
 *	  allow_urls: false		# URLs, paths, -e in requirement files
 *	  allow_options: false		# index and option lines in requirement files
 *	  allowed_packages: []		# when not empty: only these, dependencies too
 *	  blocked_packages: [os-sys, setup-tools-rust]
 *	  index: URL			# else the clients' own configuration
 *	  extra_indexes: []
 *	  trusted_hosts: []
 *	  file_hosts: []		# host or host:port that the index sends downloads to; else
 *					# asked of it
 *	  python: "3.12"		# the default interpreter
 *	system:
 *	  show: []			# host paths shown read-only in every sandbox
 *	  landlock: all			# or writes: Landlock judges no reading, which is faster
 *	store:
 *	  url: sqlite:carrel.db		# the database of the daemon: a file of the home
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/eviction.h"

struct config {
	uint64_t max_envs, max_bytes, ttl_ms, min_free_bytes, install_timeout_ms, max_install_bytes;
	enum eviction_policy eviction;
	const char *exclude_newer, *index, *python; /* NULL: not set */
	bool require_hashes, allow_build, allow_urls, allow_options;
	text_list allowed_packages, blocked_packages, extra_indexes, trusted_hosts, file_hosts;
	bool landlock_writes;
	const char *store_url;
	text_list show; /* absolute and plain; not looked at on the host */
};
void config_defaults(struct config *config);
/* `text` of config.yaml over the defaults, whatever *config held. Nothing, or null for a key,
 * leaves its default. Package names come out normalised (PEP 503), texts live in the arena.
 * ERR_INVALID: "line 3: environments.max_envs: …", with the nearest key as the hint for one that
 * isn't known. */
int config_parse(struct str text, struct arena *arena, struct config *config, struct error *err);
/* "environments.max_envs" and so on, in the order of the table; NULL after the last. */
const char *config_key(size_t index);
