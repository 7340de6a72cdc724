/* workspace.h -- a workspace as plain data: what it was asked to be, and what it is. Pure.
 * 1. A name is [a-z0-9][a-z0-9-]{0,63}; never one that is shaped like an id (id_is_valid). Rows of
 * earlier versions may have one that begins with '-': those are loaded as they are. A foreign id of
 * any characters is its context_id, and finds the workspace like its name does.
 * 2. Labels decide nothing. Whose a workspace is, and its context, is in its owner
 * (docs/design/0065-whose-a-workspace-is.md); wherever labels are shown or filtered, its members
 * stand there under the names in owner_labels (workspace_labels.c).
 * 3. All texts live in the arena that the creator of the struct passed. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "base/vec.h"
#include "model/network/network.h"
#include "model/nouns/environment.h"
#include "model/nouns/limits.h"
#include "model/records/record.h"

#define WORKSPACE_NAME_MAX 64
#define WORKSPACE_LABELS_MAX 64
#define WORKSPACE_LABEL_KEY_MAX 128
#define WORKSPACE_LABEL_VALUE_MAX 1024
#define WORKSPACE_CONTEXT_LABEL "context_id"
#define WORKSPACE_AGENT_LABEL "agent"
#define WORKSPACE_NAMESPACE_LABEL "namespace"
#define WORKSPACE_SERVICE_LABEL "carrel.service"
#define WORKSPACE_RESERVED_LABELS "carrel." /* no client sets a label that begins so */
#define WORKSPACE_AGENTS "agents"	    /* the service of contexts of agents */
#define WORKSPACE_DEPLOYMENTS "deployments" /* and of surfaces */
#define WORKSPACE_PUSH "push"		    /* notifications are posted from it */
#define WORKSPACE_LABEL_PATTERN "^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$"
#define WORKSPACE_VARIABLE_PATTERN "^[^=\\x00]+$"
#define WORKSPACE_ENV_MAX 1024
#define WORKSPACE_MOUNTS_MAX 16 /* dir, mounts and attach together */
#define WORKSPACE_BASE_NONE "-"
#define WORKSPACE_LAYERS_MAX 100 /* frozen ones; what they are merged into stays far below */
#define WORKSPACE_POLICY_BYTES_MAX (1 << 20) /* of settings or sources, without blanks */
#define WORKSPACE_RULES_MAX 1000
#define WORKSPACE_TIME_MOST (36525ull * 24 * 3600 * 1000)

enum workspace_state {
	WORKSPACE_CREATING,
	WORKSPACE_READY,     /* usable, nothing runs in it */
	WORKSPACE_RUNNING,   /* the same, and something does: only shown, never stored */
	WORKSPACE_SUSPENDED, /* idle_timeout passed; the next exec resumes it */
	WORKSPACE_FAILED,    /* error says why; can be removed */
	WORKSPACE_DELETING,
	WORKSPACE_STATE_COUNT
};
extern const char *const workspace_state_names[WORKSPACE_STATE_COUNT + 1]; /* …, NULL */

/* Where its tree is seen inside: at /workspace, or as / itself. */
enum workspace_view { VIEW_WORKSPACE, VIEW_ROOT, VIEW_COUNT };
extern const char *const workspace_view_names[VIEW_COUNT + 1]; /* …, NULL */
/* NULL, and what is none: the first. */
enum workspace_view workspace_view_find(const char *name);

/* What its sandboxes may reach. `allow` and `deny` are entries of model/network/network.h; of
 * `allow` also WORKSPACE_REGISTRIES: the hosts of the package indexes that the host's own clients
 * use. */
struct workspace_network {
	const char *mode; /* of network_mode_name; NULL: not given */
	text_list allow, deny;
	struct workspace_traffic { /* of its connections; shown only */
		uint64_t connections, refused, failed, bytes_in, bytes_out;
	} traffic;
	text_list bounded_by; /* shown only */
};
#define WORKSPACE_REGISTRIES "registries"
#define WORKSPACE_HOSTS_MAX 1024 /* of each list */
/* What isn't given counts as none. */
enum network_mode workspace_network_mode(const struct workspace_network *network);
/* A mode that isn't given is list when something is allowed, else none. ERR_INVALID: a list that
 * its mode does not use. */
int workspace_network_settle(struct workspace_network *network, struct error *err);
/* Whether its list names WORKSPACE_REGISTRIES. */
bool workspace_network_has_registries(const struct workspace_network *network);
/* What is wrong with an entry of `allow`, or of `deny`. ERR_INVALID names it. */
int workspace_check_allow(const char *entry, struct error *err);
int workspace_check_deny(const char *entry, struct error *err);
int workspace_check_mode(const char *mode, struct error *err);
void workspace_copy_network(
	struct arena *arena, const struct workspace_network *from, struct workspace_network *to);
/* Its rows, IN and OUT, for other nouns that have one. */
extern const struct record workspace_network_record;

struct workspace_node {
	const char *version;	  /* "22", */
	const char *package_json; /* text of a package.json, */
	const char *lock;	  /* of its lock, */
	text_list packages;	  /* and packages; NULL or empty: not asked for */
	text_list options;	  /* words of `carrel env build`, as build_options */
};

/* Its part of the policy (core/access/policies.h), as JSON; NULL: none. */
struct workspace_policy {
	const char *settings, *sources;			  /* its own */
	const char *template_settings, *template_sources; /* of its template, when it was made */
	text_list rules; /* that reviewers have added: allow rules of every policy */
};

/* Whose it is. Set when it is made, by core and services; a client may give context_id, agent and
 * namespace of a workspace without a service then, as labels. Never read from what others wrote. */
struct workspace_owner {
	const char *service; /* which one made it; NULL: none, it is a client's */
	const char *agent, *namespace;
	const char *context_id;		 /* finds it, and is ${CONTEXT_ID} in its rules */
	const char *package_id;		 /* its environment of Python is named after it */
	const char *task;		 /* id, of a throw-away workspace */
	const char *deployment, *role;	 /* id, and what of the deployment it is */
	const char *case_id;		 /* of a case, and of its cells */
	const char *tool, *tool_version; /* name */
};

/* An environment was replaced: what lies on top of it was made on the one before, and the files of
 * some packages there give way (their names). NULL and empty: it is settled. */
struct workspace_unsettled {
	const char *before;
	text_list forced;
};

struct workspace {
	char id[ID_LEN + 1];
	const char *name;
	enum workspace_state state;
	int64_t created_ms, last_used_ms; /* Unix time */
	int64_t expires_ms;		  /* 0: never */
	uint64_t ttl_ms, idle_timeout_ms; /* 0: none */
	struct workspace_owner owner;
	pair_list labels, env; /* env: for every exec */
	struct limits limits;  /* as in force: defaults filled in */
	struct environment_names environments;
	const char *python;	    /* what that of Python was made of: version or path, */
	const char *requirements;   /* text of a requirements file, */
	text_list packages;	    /* and packages; NULL or empty: not asked for */
	text_list build_options;    /* how it is built: words of `carrel env build` that
				     * workspace_build_option_is_valid allows */
	const char *template;	    /* name, or NULL */
	text_list warnings;	    /* of its template, when it was made */
	struct workspace_node node; /* what the environment of Node was made of */
	struct workspace_unsettled unsettled[ENV_KINDS];
	struct workspace_network network;
	text_list layers; /* frozen ones below its uppers, topmost first: "snap-<id>" */
	/* The topmost of these when it was made; WORKSPACE_BASE_NONE: there was none; NULL: not
	 * known. */
	const char *base;
	const char *dir;	    /* directory of the host at /workspace, or NULL */
	text_list mounts;	    /* "SRC:DST[:ro]" of the host */
	text_list attach;	    /* "NAME:PATH[:ro]": shared trees */
	const char *snapshot;	    /* id of the one that its state is based on, or NULL */
	const char *from;	    /* of a creation: a snapshot or workspace whose state it gets */
	uint64_t snapshot_version;  /* of the newest there was; 0: none */
	enum workspace_view view;   /* fixed when it is created */
	bool has_view;		    /* of a creation: it was asked for */
	bool ptrace;		    /* debuggers work in its sandboxes */
	bool is_context;	    /* --context: the fifth seed's layout */
	uint64_t disk_usage_bytes;  /* as last measured */
	const char *disk_mechanism; /* "project-quota", "btrfs-qgroup", "counted" */
	struct workspace_policy policy;
	const char *error; /* or NULL */
};

/* ERR_INVALID says what a name must be. */
int workspace_check_name(const char *name, struct error *err);
/* "brave-lamp-4821"-like: two words and digits; the caller looks whether it is free. */
void workspace_make_name(char out[WORKSPACE_NAME_MAX + 1]);
/* A label that a client gives. Key: [A-Za-z0-9][A-Za-z0-9_./-]*, not of WORKSPACE_RESERVED_LABELS;
 * value: any UTF-8 without NUL. */
int workspace_check_label(const char *key, const char *value, struct error *err);
/* The same of a template: one context would be that of each workspace. */
int workspace_check_template_label(const char *key, const char *value, struct error *err);
/* As it is shown, or NULL. */
const char *workspace_label(const struct workspace *w, const char *key);
/* All that are shown: those of its owner first. Values are those of w. */
pair_list workspace_labels(const struct workspace *w, struct arena *arena);
/* Of a workspace that is to be made: labels that stand for members of its owner leave the list,
 * which is copied. Those that a client may give become its owner's, unless a service makes it.
 * ERR_INVALID: a value of its owner. */
int workspace_take_labels(struct workspace *wanted, struct arena *arena, struct error *err);
/* Of an archive or a fork: the same leave the list, and nothing comes of them. Names what has left,
 * each once; those without a meaning together as WORKSPACE_RESERVED_LABELS. */
void workspace_drop_labels(struct workspace *w, struct arena *arena, text_list *dropped);
/* A copy for an archive, which points at *w: nobody's, with the labels that a client may give. */
struct workspace workspace_unowned(const struct workspace *w, struct arena *arena);
/* What of a change may be merged into its labels; a value NULL: removed. ERR_INVALID: one that
 * would change what is its owner's, and what says so of it stays as it is. */
int workspace_change_labels(const struct workspace *w, const pair_list *change, struct arena *arena,
	pair_list *changed, struct error *err);
/* Of what others make of it: description without authority; nothing of one that a service made. */
void workspace_copy_owner(
	struct arena *arena, const struct workspace *from, struct workspace_owner *to);
/* All of it. */
struct workspace_owner workspace_keep_owner(
	struct arena *arena, const struct workspace_owner *owner);
/* Whether its ttl runs from its last use on: contexts of agents. Else from its creation on. */
bool workspace_ttl_is_idle(const struct workspace *w);
/* By what a context finds it: its context_id; of a context of an agent AGENT/CONTEXT, so that
 * agents can't take names of each other, or of other workspaces. NULL: it has none. In the
 * arena. */
const char *workspace_context_key(const struct workspace *w, struct arena *arena);
/* "AGENT/CONTEXT" of a context of an agent, by the values that are shown; else NULL. In the arena.
 */
const char *workspace_context_name(
	struct arena *arena, const char *service, const char *agent, const char *context);
/* Whether `word` ("--allow-build", …) may be passed to a build on behalf of a client: no word that
 * names a file of the host, an index or another environment. */
bool workspace_build_option_is_valid(const char *word);
/* The one word that names a file: {"package_json", "lock"} on stdin, in place of requirements. */
#define WORKSPACE_ALLOW_SCRIPTS "--allow-scripts"
#define WORKSPACE_NODE_INPUT "--package-json=/dev/stdin"
/* Deep copies into arena; of texts items[count] is NULL. */
struct workspace_policy workspace_copy_policy(
	struct arena *arena, const struct workspace_policy *from);
/* Settings as a rule's author wrote them: the text of a settings.json. ERR_INVALID names the rule.
 * Both are defined where rules are read (policy/texts.c): here they are texts. */
int workspace_check_settings(const char *json, struct error *err);
int workspace_check_sources(const char *json, struct error *err); /* of a sources.json */
/* `key` may be the name of a variable. */
int workspace_check_variable(const char *key, const char *value, struct error *err);

/* Whether its value is hidden wherever the workspace is shown: the name has a word such as TOKEN or
 * PASS in it, or the value is a URL with a login. Commands in the workspace can read it. */
bool workspace_variable_is_secret(const char *key, const char *value);
/* Each variable once (of one that is set twice the last one counts), secrets with value NULL. */
pair_list workspace_shown_env(struct arena *arena, const pair_list *env);

/* Its fields: as a client asks for it, as it is shown (by workspace_print), as it is kept. */
extern const struct record workspace_record;
/* What is to be changed of one. */
struct workspace_network_change {
	bool has_mode, has_allow, has_deny;
	const char *mode;
	text_list allow, deny; /* in place of the lists that there are */
};
struct workspace_change {
	bool has_labels, has_env, has_limits, has_ttl, has_idle_timeout, has_network, has_settings,
		has_sources;
	struct workspace_network_change network;
	pair_list labels, env; /* value NULL: removed */
	struct limits limits;  /* of 0: as it is */
	uint64_t ttl_ms, idle_timeout_ms;
	const char *settings, *sources; /* JSON; NULL: removed */
};
extern const struct record workspace_change_record;

/* What is known of a workspace only while the daemon runs. */
#define WORKSPACE_USES_MAX 8 /* that are listed */
struct workspace_now {
	enum workspace_state state; /* as shown: running instead of ready while something runs */
	bool is_warm;		    /* a sandbox is held */
	const char *limiter;	    /* "cgroup-v1" … of that sandbox, or NULL */
	bool landlock_writes;	    /* Landlock judges no reading: layer "landlock_writes" */
	struct workspace_traffic traffic;	 /* since the daemon began */
	const struct workspace_network *network; /* as its policies let it be; NULL: as its record
						  * says */
	int64_t expires_ms; /* at the earliest, while it is used; 0: as its record says */
	const char *uses[WORKSPACE_USES_MAX]; /* that are under way, besides execs; NULL: none */
	bool is_brief; /* one of many: the texts of its policies are left out */
};
/* The names of the layers of its isolation (namespaces, seccomp, landlock, …). */
void workspace_list_active(const struct workspace_now *now, struct arena *arena, text_list *layers);
/* The object of design.md, wherever one is shown. A limit that there isn't is null; the limiter is
 * limits.mechanism. layers_active: the names of the layers of isolation (namespaces, seccomp,
 * landlock, …). */
void workspace_print(struct json *j, const char *key, const struct workspace *w,
	const struct workspace_now *now);

/* .context.json as the fifth seed shows it: of its owner; context_id else the name. */
void workspace_print_context(const struct workspace *w, struct buf *out);
