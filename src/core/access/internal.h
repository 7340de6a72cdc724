/* internal.h -- what core keeps to decide who may do what. Private to this folder. */
#pragma once
#include "base/last_use.h"
#include "core/access/access.h"
#include "core/internal.h"

#define WRONG_TOKENS_SLOTS 64

struct access {
	struct {				/* of the operator (config.yaml) */
		const char *settings, *sources; /* JSON, or NULL */
		enum policy_decision otherwise;
		bool has_default; /* `otherwise` also holds in workspaces without settings */
	} policy;
	struct compiled_policies { /* of policies_compiled.c */
		struct map by_key;
		struct last_use_list used;
		struct loop_timer *surplus;
	} compiled;
	struct core_uid uids[CORE_UIDS_MAX]; /* of access_peer */
	int uid_count;
	struct map tokens; /* by the hash of their texts */
	struct core_token *newest_token;
	struct wrong_tokens { /* recent logins with a wrong token, by a hash of the address */
		uint64_t at_ms;
		unsigned count;
	} wrong_tokens[WRONG_TOKENS_SLOTS];
	struct map approvals; /* by id */
	struct core_approval *newest_approval, *oldest_approval;
	size_t approval_bytes;
	uint64_t approval_ttl_ms;
	bool approvals_self;	   /* whoever asked may answer */
	const char *boot;	   /* id of this boot of the host; or NULL */
	struct webhooks *webhooks; /* of webhooks.c; NULL: none is configured */
};
