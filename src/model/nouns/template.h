/* template.h -- YAML from which workspaces are made, as plain data. Pure: format/text/yaml_json.h
 * makes the values that are read here, of YAML and JSON alike.
 *
 *	version: "1.0"
 *	name: data
 *	description: pandas, and a folder for results
 *	extends: default		# a template whose values hold where this one has none
 *	python:
 *	  version: "3.12"
 *	  dependencies: [pandas>=2.1.0]
 *	nodejs:
 *	  version: "20"
 *	  runtime: bun
 *	  dependencies: {axios: ^1.6.0}
 *	system:
 *	  shell: /bin/bash
 *	  editor: nano
 *	security:
 *	  network_enabled: false
 *	  filesystem_readonly: [/usr, /lib]
 *	  filesystem_writable: [/workspace, /tmp]
 *	limits: {memory: 1G, cpu_time: 30s}
 *	network: {mode: list, allow: [example.com, "*.example.org:8443"], deny: []}
 *	env: {NAME: value}
 *	labels: {team: data}
 *	files: {notes/README.md: "text"}
 *	view: root			# or workspace
 *	attach: ["skills:/workspace/skills:ro"]
 *	settings: {permissions: {allow: ["shell(ls:*)"], deny: []}}
 *	ttl: 7d
 *	idle_timeout: 30m
 *
 * 1. A value that is 0, NULL or empty wasn't given.
 * 2. `security` claims what the sandbox does anyway: a path that it can't keep read-only, or can't
 * make writable, is an error when the template is checked, never ignored. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "model/nouns/limits.h"
#include "model/nouns/workspace.h"
#include "model/records/record.h"

#define TEMPLATE_NAME_MAX 64
#define TEMPLATE_DEPENDENCIES_MAX 500
#define TEMPLATE_FILES_MAX 64
#define TEMPLATE_FILE_BYTES_MAX (64 << 10)
#define TEMPLATE_FILES_BYTES_MAX (192 << 10) /* of all files together */
#define TEMPLATE_EXTENDS_MAX 8		     /* templates in a chain */

struct template
{
	const char *version, *name, *description, *extends;
	struct template_python {
		const char *version;
		text_list dependencies;
	} python;
	struct template_node {
		const char *version;
		int runtime; /* 0: not given */
		pair_list dependencies;
	} nodejs;
	struct template_system {
		const char *shell, *editor;
	} programs;
	struct template_security {
		bool network_enabled, has_network_enabled;
		text_list readonly, writable;
	} security;
	struct limits_shown limits; /* the mechanism is NULL */
	struct workspace_network network;
	pair_list env, labels, files;
	int view; /* 0: not given; else 1 + enum workspace_view */
	text_list attach;
	uint64_t ttl_ms, idle_timeout_ms;
	const char *settings, *sources; /* JSON */
};
extern const struct record template_record;

/* Where it comes from, and what is told of it besides its values. */
struct template_shown {
	struct template model; /* resolved */
	const char *origin;    /* "shipped", "user" */
	const char *sha256;    /* of what was resolved */
	text_list warnings;
	const char *yaml; /* as it is kept; NULL in a list */
};
void template_print(struct json *j, const char *key, const struct template_shown *shown);

/* ERR_INVALID: 1 to 64 of a-z, 0-9 and '-', not '-' first. */
int template_check_name(const char *name, struct error *err);
/* For rows of other files, too: a requirement of Python; path and text of a file of a workspace. */
int template_check_requirement(const char *text, struct error *err);
int template_check_file(const char *key, const char *value, struct error *err);
/* Of values that were read from YAML or JSON. ERR_INVALID names the key, and the line of YAML. */
int template_read(const struct json_value *value, struct arena *arena, struct template *out,
	struct error *err);
/* What *child extends: values that it doesn't give are those of *base. Dependencies, variables,
 * labels and files are merged, by name; name, description and version are the child's. */
void template_extend(struct template *child, const struct template *base, struct arena *arena);
/* Of one that extends nothing any more: what the values can't say one by one. *warnings gets what
 * has no effect in this version. */
int template_check(
	const struct template *t, struct arena *arena, text_list *warnings, struct error *err);
/* Of everything but name and description, so that it changes when what is built of it does. */
void template_hash(const struct template *t, char out[2 * SHA256_LEN + 1]);

/* What a client asked for, filled in by a template: explicit values win. Texts are shared. */
void template_apply(const struct template *t, struct arena *arena, struct workspace *wanted);

/* The network that it gives a workspace which asks for *network: the lists of both together, unless
 * the workspace wants none. */
void template_network(
	const struct template *t, struct arena *arena, struct workspace_network *network);
/* Its nodejs.runtime: "bun", "npm"; NULL: not given. */
const char *template_runtime(const struct template *t);
/* The files that a workspace begins with, path and content: pyproject.toml, package.json,
 * .gitignore, .workspace_configured and those of `files`, which replace the others. */
#define TEMPLATE_MARKER ".workspace_configured"
void template_files(const struct template *t, struct arena *arena, pair_list *files);
