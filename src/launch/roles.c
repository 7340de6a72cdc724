/* Our own programs, started as locked roles (proc/role.h): one row each. */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/hash.h"
#include "egress/egress.h"
#include "envs/builder/process.h"
#include "launch/internal.h"
#include "model/settings/role_settings.h"
#include "proc/role.h"

#define UID_OVERFLOW 65534u

/* Egress has no file of the home, and the network. */
static int describe_egress(struct arena *arena, struct role_start *start, struct error *err)
{
	char program[PATH_MAX];
	if (build_find_program(program, err))
		return -1;
	start->program = arena_text(arena, program);
	egress_describe(start);
	return 0;
}

/* Tells core that the blob store is not the home's own, and whether it is the one it was before. As
 * a hash: core needs to know no address. NULL: the home's own. */
static const char *blob_source(const struct config *config, struct arena *arena)
{
	char hash[2 * SHA256_LEN + 1];
	if (!strcmp(config->blob_url, "dir"))
		return NULL;
	const char *text = arena_printf(arena, "%s %s", config->blob_url,
		config->blob_endpoint ? config->blob_endpoint : "");
	sha256_of(text, strlen(text), hash);
	return arena_text(arena, hash);
}

/* Root and the owner may do everything, unless the configuration says otherwise: a later entry of
 * the list holds. */
static int list_uids(const struct launcher *launcher, const struct config *config,
	struct arena *arena, pair_list *list, struct error *err)
{
	const uid_t owners[] = { 0, launcher->home->uid, getuid() };
	for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
		vec_push(arena, list,
			(struct text_pair){
				arena_printf(arena, "%u", (unsigned)owners[i]), "admin" });
	for (size_t i = 0; i < config->access_uids.count; i++) {
		const struct text_pair *pair = &config->access_uids.items[i];
		uint64_t uid;
		uid_t found;
		gid_t group;
		if (!str_to_u64(str_from(pair->key), &uid) || uid > UINT32_MAX) {
			if (!home_find_user(pair->key, &found, &group))
				return fail(err, ERR_INVALID,
					"access.uids: there is no user '%s' in /etc/passwd",
					pair->key);
			uid = found;
		}
		/* In a user namespace the kernel shows every other user as this one. */
		if (uid == UID_OVERFLOW)
			return fail(err, ERR_INVALID,
				"access.uids: uid %u stands for users that can't be told apart",
				UID_OVERFLOW);
		vec_push(arena, list,
			(struct text_pair){
				arena_printf(arena, "%u", (unsigned)uid), pair->value });
	}
	return 0;
}

/* Where core finds its listeners, and what they are. */
static void list_listeners(const struct launcher *launcher, struct arena *arena, pair_list *list)
{
	const struct launch_options *options = launcher->options;
	vec_push(arena, list,
		(struct text_pair){ arena_printf(arena, "%d", LAUNCH_ROLE_LISTENER), "unix" });
	for (size_t i = 0; i < options->also_count; i++) {
		int family = AF_UNIX;
		socklen_t len = sizeof family;
		getsockopt(options->also[i].fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
		vec_push(arena, list,
			(struct text_pair){
				arena_printf(arena, "%d", launcher->link.also_fd + (int)i),
				family == AF_UNIX	   ? "unix"
				: options->tls.certificate ? "tls"
							   : "tcp" });
	}
}

/* Tells times of before and after a reboot apart; NULL where the kernel hides it. */
static const char *boot_id(struct arena *arena)
{
	char text[64];
	ssize_t len = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
	struct str id = str_trim((struct str){ text, len > 0 ? (size_t)len : 0 });
	return id.len ? arena_bytes(arena, id.data, id.len) : NULL;
}

static int fill_core(const struct launcher *launcher, const struct config *config,
	struct arena *arena, struct role_settings *settings, struct error *err)
{
	const struct launch_options *options = launcher->options;
	settings->store_url = config->store_url;
	settings->is_first = !launcher->link.is_restart && !options->handover;
	list_listeners(launcher, arena, &settings->listeners);
	settings->boot = boot_id(arena);
	settings->blob_source = blob_source(config, arena);
	settings->config_digest = config->digest;
	settings->approval_ttl_ms = config->approval_ttl_ms;
	settings->approvals_self = config->approvals_self;
	settings->has_webhook = config->webhook != NULL;
	settings->release_after_ms = options->release_after_ms;
	settings->captured_bytes = options->captured_bytes;
	settings->use_snapshots = config->use_snapshots;
	settings->auto_repair = config->auto_repair;
	settings->landlock_writes = config->landlock_writes;
	settings->archive_on_remove = config->archive_on_remove;
	settings->archive_on_expiry = config->archive_on_expiry;
	settings->archive_gzip = config->archive_gzip;
	settings->audit_enabled = config->audit_enabled;
	settings->audit_drops = config->audit_drops;
	settings->serve = config->serve;
	settings->egress = config->egress;
	settings->tools = config->tools;
	return list_uids(launcher, config, arena, &settings->uids, err);
}

static int fill_writer(const struct launcher *launcher, const struct config *config,
	struct arena *arena, struct role_settings *settings, struct error *err)
{
	settings->store_url = config->store_url;
	return 0;
}

static int fill_audit(const struct launcher *launcher, const struct config *config,
	struct arena *arena, struct role_settings *settings, struct error *err)
{
	settings->audit_drops = config->audit_drops;
	settings->audit_max_file_bytes = config->audit_max_file_bytes;
	settings->audit_max_bytes = config->audit_max_bytes;
	return 0;
}

static const struct {
	const char *name; /* argv[0], by which carreld knows which role it is */
	void (*died)(struct launcher *launcher, enum role which, int status);
	/* Its part of the settings; NULL: it has none. */
	int (*fill)(const struct launcher *launcher, const struct config *config,
		struct arena *arena, struct role_settings *settings, struct error *err);
	/* Changes what it is given; NULL: carreld with the home. */
	int (*describe)(struct arena *arena, struct role_start *start, struct error *err);
} rows[ROLE_COUNT] = {
	[ROLE_CORE] = { "carreld", link_core_died, fill_core, NULL },
	[ROLE_WRITER] = { "carrel-writer", writer_died, fill_writer, NULL },
	[ROLE_AUDIT] = { "carrel-audit", writer_died, fill_audit, NULL },
	[ROLE_EGRESS] = { EGRESS_ARGV0, egress_died, NULL, describe_egress },
};

/* Core gives the site's own proxies to egress. */
static char *proxy_variable(struct arena *arena, const char *name, const char *other)
{
	const char *value = getenv(name);
	if (!value || !value[0])
		value = getenv(other);
	return arena_printf(arena, "%s=%s", name, value ? value : "");
}

static int print_settings(const struct launcher *launcher, enum role which, struct arena *arena,
	const char **text, struct error *err)
{
	struct config defaults;
	const struct config *config = launcher->options->config;
	struct role_settings settings = { .home = launcher->home->path,
		.log_is_json = launcher->log.json,
		.log_level = log_level_names[launcher->log.least] };
	if (!config) {
		config_defaults(&defaults);
		config = &defaults;
	}
	if (rows[which].fill(launcher, config, arena, &settings, err))
		return -1;
	*text = role_settings_print(&settings, arena);
	return 0;
}

int launcher_start_role(
	struct launcher *launcher, enum role which, const int *fds, int fd_count, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int pidfd = -1;
	char *const argv[] = { arena_text(&arena, rows[which].name), NULL };
	const char *settings = NULL;
	if (rows[which].fill && print_settings(launcher, which, &arena, &settings, err))
		return -1;
	/* A fault that a test asks for happens in the first core and its writers only. */
	const char *fault = launcher->link.is_restart ? NULL : getenv("CARREL_FAULT");
	char *const env[] = { proxy_variable(&arena, "https_proxy", "HTTPS_PROXY"),
		proxy_variable(&arena, "http_proxy", "HTTP_PROXY"),
		proxy_variable(&arena, "all_proxy", "ALL_PROXY"),
		proxy_variable(&arena, "no_proxy", "NO_PROXY"),
		fault ? arena_printf(&arena, "CARREL_FAULT=%s", fault) : NULL, NULL };
	const struct role_path root[] = { { launcher->home->path, ROLE_READ | ROLE_WRITE } };
	struct role_start start = { .program = launcher->options->carreld,
		.argv = argv,
		.env = env,
		.uid = geteuid() == 0 ? launcher->home->uid : (uid_t)-1,
		.gid = launcher->home->gid,
		.fd_count = fd_count,
		.log = launcher->log.fd,
		.settings = settings,
		.root = root,
		.root_count = 1 };
	for (int i = 0; i < fd_count; i++)
		start.fds[i] = fds[i];
	if (rows[which].describe && rows[which].describe(&arena, &start, err))
		return -1;
	return role_start(&start, &launcher->roles[which], &pidfd, err);
}

bool role_died(struct launcher *launcher, pid_t pid, int status)
{
	for (enum role i = 0; i < ROLE_COUNT; i++)
		if (launcher->roles[i] == pid) {
			launcher->roles[i] = 0;
			rows[i].died(launcher, i, status);
			return true;
		}
	return false;
}

void role_kill(struct launcher *launcher, enum role which)
{
	if (launcher->roles[which])
		kill(launcher->roles[which], SIGKILL);
}

void role_explain_end(int status, struct error *err)
{
	if (WIFSIGNALED(status))
		fail(err, ERR_FAILED, "ended by signal %d", WTERMSIG(status));
	else
		fail(err, ERR_FAILED, "ended with exit code %d", WEXITSTATUS(status));
}
