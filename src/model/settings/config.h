/* config.h -- reads and checks $CARREL_HOME/config.yaml. Pure: text in, values out. One table
 * lists every key, its kind, range and default; an unknown key or an invalid value is ERR_INVALID,
 * with line and key in the text.
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
 *	  allow_scripts: false		# workspaces may ask for install scripts of Node packages
 *	  allow_urls: false		# URLs, paths, -e in requirement files
 *	  allow_options: false		# index and option lines in requirement files
 *	  allowed_packages: []		# when not empty: only these, dependencies too
 *	  blocked_packages: [os-sys, setup-tools-rust]
 *	  index: URL			# default: that of uv or pip
 *	  extra_indexes: []
 *	  trusted_hosts: []
 *	  file_hosts: []		# host or host:port of the index's download links; default:
 *					# found by asking the index
 *	  python: "3.12"		# the default interpreter
 *	  python_mirror: URL		# where Pythons that the host lacks are downloaded from
 *	  python_downloads: URL		# the list of them, with their hashes; default: uv's own
 *	system:
 *	  show: []			# host paths shown read-only in every sandbox
 *	  landlock: all			# or writes: Landlock restricts writes only, which is faster
 *	store:
 *	  url: sqlite:carrel.db		# the database of the daemon: a file of the home
 *	workspaces:
 *	  use_snapshots: true		# build templates once, into layers
 *	  auto_repair: true		# repair what keeps a workspace from starting
 *	blob:
 *	  url: dir			# the blob store: dir, dir:/PATH or s3://BUCKET/PREFIX
 *	  endpoint: URL			# of the S3 server; default: that of the region
 *	  region: us-east-1
 *	  path_style: false		# the bucket in the path, not in the host's name
 *	  timeout: 60s			# no byte for so long: the transfer is tried again
 *	  credentials: /PATH		# INI file; default: AWS_* of carrel serve
 *	audit:
 *	  enabled: true			# record who did what
 *	  on_full: refuse		# or drop: when the disk is full
 *	  max_file_bytes: 64M		# of one file
 *	  max_bytes: 1G			# of all files: older ones are removed
 *	access:
 *	  uids:				# what local users may do: admin, user, reviewer or none
 *	    alice: user			# by name or number; root and the owner: admin
 *	  subjects:			# and bearers of client certificates
 *	    "CN=ci,O=Lab": user		# admin, user or reviewer
 *	serve:				# where and whom the daemon serves
 *	  listen: []			# unix:/PATH or ADDRESS:PORT; read at the start
 *	  tls_cert: /PATH		# TLS on TCP: certificate, key, CA of clients (PEM)
 *	  tls_key: /PATH
 *	  tls_client_ca: /PATH
 *	  insecure: false		# TCP beyond this host without TLS
 *	  hosts: []			# names that clients reach it by, as in the header Host
 *	  origins: []			# of web pages that may ask: https://app.example
 *	  proxies: []			# addresses or ranges whose X-Forwarded-* counts
 *	  connections: 1000		# of one principal at once
 *	  rate: 0			# requests a second of one principal; 0: no limit
 *	  idle_sandbox: 5m		# without a command for so long: the sandbox is ended
 *	  captured_output: 128M		# of all execs, kept for REST responses
 *	  log: text			# or json
 *	  log_level: info		# debug (every request), info, warn or error
 *	egress:				# networks of sandboxes
 *	  hosts: {}			# name: address, or a list of them; asked before DNS
 *	  allow_ranges: []		# private ranges that names may resolve to: 10.1.0.0/16
 *	  ports: [80, 443]		# of entries that name none
 *	  bandwidth: 0			# bytes a second of one sandbox; 0: no limit
 *	  connections: 256		# of one sandbox at once
 *	  idle_timeout: 120s		# a connection without a byte ends
 *	approvals:
 *	  ttl: 1h			# unanswered for so long: denied
 *	  self: false			# the requester may answer, too
 *	  webhook: URL			# gets a POST for each request and answer
 *	  webhook_secret_file: /PATH	# the key that signs them
 *	archives:
 *	  on_remove: false		# carrel rm archives a workspace first
 *	  on_expiry: false		# and so does the end of its time to live
 *	  format: tar.zst		# or tar.gz
 *	policy:
 *	  settings: /PATH		# a settings.json that holds in all workspaces
 *	  sources: /PATH		# and a sources.json
 *	  default: ask			# where no rule matches: ask, deny or allow
 *	tools:
 *	  generator: []			# the command that writes code and tests of a tool
 *	  generator_domains: []		# that it may reach
 *	  generator_timeout: 120s
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"
#include "model/agents/tool_spec.h"
#include "model/nouns/eviction.h"
#include "model/settings/network_settings.h"
#include "model/settings/serve_settings.h"

struct json;
struct config_from {	    /* where the value of a key comes from; all 0: the default */
	int line;	    /* of the file */
	const char *option; /* of carrel serve, a literal */
};

struct config {
	uint64_t max_envs, max_bytes, ttl_ms, min_free_bytes, install_timeout_ms, max_install_bytes;
	enum eviction_policy eviction;
	const char *exclude_newer, *index, *python;   /* NULL: not set */
	const char *python_mirror, *python_downloads; /* the same */
	bool require_hashes, allow_build, allow_scripts, allow_urls, allow_options;
	text_list allowed_packages, blocked_packages, extra_indexes, trusted_hosts, file_hosts;
	bool landlock_writes;
	const char *store_url;
	bool use_snapshots, auto_repair;
	const char *blob_url, *blob_endpoint, *blob_region, *blob_credentials; /* NULL: not set */
	bool blob_path_style, archive_on_remove, archive_on_expiry, archive_gzip;
	uint64_t blob_timeout_ms;
	bool audit_enabled, audit_drops;
	uint64_t audit_max_file_bytes, audit_max_bytes;
	char digest[2 * SHA256_LEN + 1]; /* of the text that was read */
	pair_list access_uids;		 /* user or uid -> "admin", "user", "reviewer", "none" */
	uint64_t approval_ttl_ms;
	bool approvals_self;
	const char *webhook, *webhook_secret_file; /* NULL: not set */
	struct network_settings egress;
	text_list listen; /* as in cli/daemon/listen.h */
	uint64_t idle_sandbox_ms, captured_bytes;
	const char *log_format, *log_level; /* never NULL */
	bool insecure;
	const char *tls_cert, *tls_key, *tls_client_ca; /* paths; NULL: not set */
	struct serve_settings serve;
	const char *policy_settings, *policy_sources; /* paths; NULL: not set */
	const char *policy_default;		      /* "ask", "deny", "allow"; NULL: not set */
	struct tool_settings tools;
	text_list show;		  /* absolute and normal; existence on the host isn't checked */
	struct config_from *from; /* by index of config_key; NULL: all are defaults */
};
void config_defaults(struct config *config);
/* Sets *config to the defaults, overridden by the `text` of config.yaml; an empty text and a null
 * value leave the default. Package names are normalised (PEP 503), texts live in the arena.
 * ERR_INVALID: "line 3: environments.max_envs: …"; for an unknown key the hint is the nearest one.
 */
int config_parse(struct str text, struct arena *arena, struct config *config, struct error *err);
/* "environments.max_envs" and so on, in the order of the table; NULL after the last. */
const char *config_key(size_t index);
struct config_from config_from(const struct config *config, size_t index);
/* The caller has set the member of that key because `option` was given. */
void config_override(
	struct config *config, const char *name, const char *option, struct arena *arena);
/* As the member "value" of an open object, as the file could have it; an URL without its password.
 */
void config_print_value(struct json *j, const struct config *config, size_t index);
