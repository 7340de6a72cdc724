/* apkg.h -- agent.yaml of an agent package, as plain data. Pure: format/text/yaml_json.h makes the
 * values that are read here.
 *
 *	name: greeter
 *	version: 1.0.0
 *	description: greets
 *	runtime: {python_version: "3.12", env_manager: venv}
 *	rest:
 *	  module: app.main:app		# uvicorn; or command: a line for the shell
 *	  health: /healthz		# a path that has to answer 2xx or 3xx
 *	  limits: {memory: 512M}
 *	  env: {GREETING: hello}
 *	a2a:
 *	  module: app.grpc_server:serve	# called without arguments; or command
 *	  health: grpc			# grpc.health.v1 has to answer SERVING
 *	ui:
 *	  path: ui			# a directory of static files; or command
 *
 * 1. A surface listens on 127.0.0.1 at its port, which the variable PORT names.
 * 2. Without `health` a surface is healthy when it answers: HTTP with a status below 500, gRPC with
 * anything. `tcp`: when its port can be connected to. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "model/nouns/limits.h"
#include "model/records/record.h"

#define APKG_FILE "agent.yaml"
#define APKG_REQUIREMENTS "requirements.txt"
#define APKG_VENV "package.venv.tar.gz" /* lock.txt and wheels/, of `carrel env wheels` */
#define APKG_START_TIMEOUT_MS 60000

enum surface_kind { SURFACE_REST, SURFACE_A2A, SURFACE_UI, SURFACE_COUNT };
extern const char *const surface_names[SURFACE_COUNT + 1]; /* "rest" …, NULL */

struct apkg_surface {
	bool is_there;
	const char *module, *command, *path; /* one of them */
	uint64_t port;			     /* 0: its default */
	const char *health;		     /* "/path", "grpc", "tcp"; NULL: not given */
	uint64_t start_timeout_ms;
	struct limits_shown limits; /* the mechanism is NULL */
	pair_list env;
};
struct apkg {
	const char *name, *version, *description;
	struct apkg_runtime {
		const char *python_version;
		int env_manager; /* 0: venv, 1: conda */
	} runtime;
	struct apkg_surface surfaces[SURFACE_COUNT];
};
extern const struct record apkg_record;

/* ERR_INVALID names the key, and the line of the YAML. */
int apkg_read(
	const struct json_value *value, struct arena *arena, struct apkg *out, struct error *err);
uint16_t apkg_port(const struct apkg *agent, enum surface_kind kind);
/* The words of its command, inside; items[count] is NULL. */
text_list apkg_command(const struct apkg *agent, enum surface_kind kind, struct arena *arena);
/* Of {agentAppId} and {version}: as of environments, so that {id}@{version} names one. */
int apkg_check_id(const char *text, struct error *err);
