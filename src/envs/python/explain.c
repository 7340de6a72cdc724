/* Why a build failed: from what uv printed, how a job ended, and what the forwarder knows. */

#include "envs/python/explain.h"
#include "format/text/quantity.h"

void making_refused(const struct making *making, char out[320])
{
	const struct build_network *network = making->builder->network;
	network->refused(network->ctx, out);
	if (making->torch_host && strcmp(out, making->torch_host) == 0)
		out[0] = '\0';
}

int making_timeout(struct making *making, struct error *err)
{
	uint64_t limit_ms = making->store->config.install_timeout_ms;
	bool is_whole = limit_ms % 1000 == 0;
	/* A host that can't be reached explains the delay better. */
	if (making_unreachable(making, err))
		return -1;
	fail_hint(err, ERR_LIMIT,
		"--timeout, or install_timeout in config.yaml, gives it more time",
		"environment '%s' was not built within %llu %s", making->wanted->name,
		(unsigned long long)(is_whole ? limit_ms / 1000 : limit_ms), is_whole ? "s" : "ms");
	return build_failed(making->problem, BUILD_TIMEOUT, NULL);
}

int making_too_large(struct making *making, struct error *err)
{
	char limit[16];
	quantity_format_size(limit, making->store->config.max_install_bytes);
	fail_hint(err, ERR_LIMIT, "a higher max_install_bytes in config.yaml allows it",
		"the packages of environment '%s' take more than %s", making->wanted->name, limit);
	return build_failed(making->problem, BUILD_DENIED, NULL);
}

/* The host that could not be reached ("host:port") and the reason. false: there is none. */
static bool find_failure(
	const struct making *making, char why[BUILD_NETWORK_FAILURE_SIZE], const char **reason)
{
	const struct build_network *network = making->builder->network;
	char *colon;
	why[0] = '\0';
	if (network->failed)
		network->failed(network->ctx, why);
	colon = strstr(why, ": ");
	if (!colon)
		return false;
	*colon = '\0';
	*reason = colon + 2;
	return true;
}

bool making_is_unresolved(const struct making *making)
{
	char why[BUILD_NETWORK_FAILURE_SIZE];
	const char *reason;
	return find_failure(making, why, &reason) &&
	       strncmp(reason, "can't be resolved", strlen("can't be resolved")) == 0;
}

/* The address of the index at "host:port" as it was configured, without credentials; else NULL. */
static const char *find_index_at(const struct making *making, const char *where)
{
	const struct index_set *indexes = &making->wanted->indexes;
	for (size_t i = 0; i <= indexes->extra.count; i++) {
		const char *url = i ? indexes->extra.items[i - 1] : indexes->index;
		const char *host = url ? wheel_url_host(url, making->arena) : NULL;
		if (host && strcasecmp(host, where) == 0)
			return index_redact(making->arena, url);
	}
	return NULL;
}

int making_unreachable(struct making *making, struct error *err)
{
	char why[BUILD_NETWORK_FAILURE_SIZE];
	const char *reason;
	if (!find_failure(making, why, &reason))
		return 0;
	if (making_is_unresolved(making)) {
		const char *index = find_index_at(making, why);
		if (index)
			fail(err, ERR_UNAVAILABLE, "the host name of index %s %s", index, reason);
		else
			fail(err, ERR_UNAVAILABLE, "the file host %s %s", why, reason);
		error_hint(err, "check the address and the name server, and try again");
		build_failed(making->problem, BUILD_NETWORK, NULL);
		return 1;
	}
	fail_hint(err, ERR_UNAVAILABLE, "check the connection and the index address, and try again",
		"the index at %s can't be reached: %s", why, reason);
	build_failed(making->problem, BUILD_NETWORK, NULL);
	return 1;
}

static enum error_code code_of(enum build_failure failure)
{
	static const enum error_code codes[BUILD_FAILURE_COUNT] = {
		[BUILD_NOT_FOUND] = ERR_NOT_FOUND,
		[BUILD_VERSION_NOT_FOUND] = ERR_NOT_FOUND,
		[BUILD_CONFLICT] = ERR_INVALID,
		[BUILD_HASH_MISMATCH] = ERR_DENIED,
		[BUILD_NETWORK] = ERR_UNAVAILABLE,
		[BUILD_TIMEOUT] = ERR_LIMIT,
		[BUILD_DISK_FULL] = ERR_DISK_FULL,
		[BUILD_INVALID] = ERR_INVALID,
		[BUILD_DENIED] = ERR_DENIED,
		[BUILD_FAILED] = ERR_FAILED,
		[BUILD_CANCELED] = ERR_CANCELED,
	};
	return codes[failure];
}

/* The one package of the lock that is named in what uv said, or NULL. */
static const struct lock_package *find_mentioned(const struct making *making)
{
	const struct lock_package *found = NULL;
	for (size_t i = 0; i < making->packages.count; i++) {
		const struct lock_package *package = &making->packages.items[i];
		if (!strstr(making->said,
			    arena_printf(making->arena, "%s==%s", package->name, package->version)))
			continue;
		if (found)
			return NULL;
		found = package;
	}
	return found;
}

int making_explain_uv(struct making *making, const struct uv_error *said, struct error *err)
{
	const struct lock_package *mentioned = find_mentioned(making);
	char refused[320] = "";
	if (said->needs_build) {
		fail_hint(err, ERR_DENIED,
			making->wanted->allow_build
				? "--no-cache looks for new versions"
				: "--allow-build builds it, in a sandbox without network; or "
				  "choose a version that has a wheel",
			"package '%s' has no wheel for Python %s, only sources", said->needs_build,
			making->wanted->python.version);
		return build_failed(making->problem, BUILD_DENIED, said->needs_build);
	}
	making_refused(making, refused);
	if (refused[0] != '\0' &&
		(said->failure == BUILD_NETWORK || said->failure == BUILD_DENIED ||
			said->failure == BUILD_FAILED)) {
		fail_hint(err, ERR_DENIED,
			"if the index keeps its files there, add the host to file_hosts in "
			"config.yaml",
			"the index sends downloads to '%s', which is not one of its hosts",
			refused);
		return build_failed(making->problem, BUILD_NETWORK, said->package);
	}
	if (said->failure == BUILD_NETWORK && making_unreachable(making, err))
		return -1;
	const char *package = said->package;
	if (!package && mentioned)
		package = mentioned->name;
	fail_hint(err, code_of(said->failure), said->suggestion ? said->suggestion : "", "%s",
		said->message);
	/* Every error names what it is about: the package, or the index that can't be reached. */
	if (package && !strstr(said->message, package))
		error_context(err, "%s", package);
	if (said->failure == BUILD_NETWORK)
		error_context(err, "index %s",
			index_redact(making->arena, making->wanted->indexes.index));
	return build_failed(making->problem, said->failure, package);
}

int making_explain_end(struct making *making, const struct job_result *result, struct error *err)
{
	switch (result->reason) {
	case REASON_EXITED:
		return 0;
	case REASON_TIMEOUT:
		return making_timeout(making, err);
	case REASON_DISK_LIMIT:
		return making_too_large(making, err);
	case REASON_MEMORY_LIMIT:
		fail(err, ERR_LIMIT, "uv needed more memory than a build may have");
		return build_failed(making->problem, BUILD_FAILED, NULL);
	case REASON_CANCELED:
		return run_canceled(making->run, err);
	default:
		fail(err, ERR_FAILED, "uv was killed");
		return build_failed(making->problem, BUILD_FAILED, NULL);
	}
}
