/* Our own programs, started as locked roles (proc/role.h): one row each. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/hash.h"
#include "build/process.h"
#include "egress/egress.h"
#include "launch/internal.h"
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

static const struct {
	const char *name; /* argv[0], by which carreld knows which role it is */
	void (*died)(struct launcher *launcher, int status);
	/* Changes what it is given; NULL: carreld with the home. */
	int (*describe)(struct arena *arena, struct role_start *start, struct error *err);
} rows[ROLE_COUNT] = {
	[ROLE_CORE] = { "carreld", link_core_died, NULL },
	[ROLE_WRITER] = { "carrel-writer", writer_died, NULL },
	[ROLE_AUDIT] = { "carrel-audit", audit_died, NULL },
	[ROLE_EGRESS] = { EGRESS_ARGV0, egress_died, describe_egress },
};

/* Tells core that the blob store is not the home's own, and whether it is the one it was before. As
 * a hash: core needs to know no address. "": the home's own. */
static const char *blob_source(const struct config *config, struct arena *arena)
{
	char hash[2 * SHA256_LEN + 1];
	if (!config || !strcmp(config->blob_url, "dir"))
		return "";
	const char *text = arena_printf(arena, "%s %s", config->blob_url,
		config->blob_endpoint ? config->blob_endpoint : "");
	sha256_of(text, strlen(text), hash);
	return arena_text(arena, hash);
}

/* "refuse", "drop", "off": what core and the process that writes the audit log go by. */
static const char *audit_mode(const struct config *config)
{
	if (config && !config->audit_enabled)
		return "off";
	return config && config->audit_drops ? "drop" : "refuse";
}

/* Root and the owner may do everything, unless the configuration says otherwise: a later entry of
 * the list holds. */
static int list_uids(
	const struct launcher *launcher, struct arena *arena, const char **list, struct error *err)
{
	const struct config *config = launcher->options->config;
	auto_buf struct buf out = buf_empty(65536);
	buf_printf(&out, "0:admin,%u:admin,%u:admin", (unsigned)launcher->home->uid,
		(unsigned)getuid());
	for (size_t i = 0; config && i < config->access_uids.count; i++) {
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
		buf_printf(&out, ",%u:%s", (unsigned)uid, pair->value);
	}
	*list = arena_text(arena, out.data);
	return 0;
}

/* "3:unix,8:tls": where core finds its listeners, and what they are. */
static const char *list_listeners(const struct launcher *launcher, struct arena *arena)
{
	const struct launch_options *options = launcher->options;
	auto_buf struct buf out = buf_empty(4096);
	buf_printf(&out, "%d:unix", LAUNCH_ROLE_LISTENER);
	for (size_t i = 0; i < options->also_count; i++) {
		int family = AF_UNIX;
		socklen_t len = sizeof family;
		getsockopt(options->also[i].fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
		buf_printf(&out, ",%d:%s", launcher->link.also_fd + (int)i,
			family == AF_UNIX	   ? "unix"
			: options->tls.certificate ? "tls"
						   : "tcp");
	}
	return arena_text(arena, out.data);
}

/* Tells times of before and after a reboot apart; "" where the kernel hides it. */
static const char *boot_id(struct arena *arena)
{
	char text[64];
	ssize_t len = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
	struct str id = str_trim((struct str){ text, len > 0 ? (size_t)len : 0 });
	return arena_bytes(arena, id.data, id.len);
}

/* Core gives the site's own proxies to egress. */
static char *proxy_variable(struct arena *arena, const char *name, const char *other)
{
	const char *value = getenv(name);
	if (!value || !value[0])
		value = getenv(other);
	return arena_printf(arena, "%s=%s", name, value ? value : "");
}

int launcher_start_role(
	struct launcher *launcher, enum role which, const int *fds, int fd_count, struct error *err)
{
	const struct launch_options *options = launcher->options;
	const struct config *config = options->config;
	auto_arena struct arena arena = { 0 };
	auto_close int pidfd = -1;
	char *const argv[] = { arena_text(&arena, rows[which].name), NULL };
	const char *uids;
	if (list_uids(launcher, &arena, &uids, err))
		return -1;
	/* A fault that a test asks for happens in the first core and its writers only. */
	const char *fault = launcher->link.is_restart ? NULL : getenv("CARREL_FAULT");
	char *const env[] = { arena_printf(&arena, "CARREL_HOME=%s", launcher->home->path),
		arena_printf(&arena, "CARREL_LOG=%s", launcher->log.json ? "json" : "text"),
		arena_printf(&arena, "CARREL_LOG_LEVEL=%s", log_level_names[launcher->log.least]),
		arena_printf(&arena, "CARREL_UIDS=%s", uids),
		arena_printf(&arena, "CARREL_LISTEN=%s", list_listeners(launcher, &arena)),
		arena_printf(&arena, "CARREL_FIRST=%d",
			!launcher->link.is_restart && !options->handover),
		arena_printf(&arena, "CARREL_SERVE=%s",
			config ? serve_settings_print(&config->serve, &arena) : ""),
		arena_printf(&arena, "CARREL_BOOT=%s", boot_id(&arena)),
		arena_printf(&arena, "CARREL_APPROVAL_MS=%llu",
			(unsigned long long)(config ? config->approval_ttl_ms : 0)),
		arena_printf(&arena, "CARREL_APPROVALS_SELF=%d", config && config->approvals_self),
		arena_printf(&arena, "CARREL_WEBHOOK=%d", config && config->webhook),
		arena_printf(&arena, "CARREL_GIVE_BACK_MS=%llu",
			(unsigned long long)options->release_after_ms),
		arena_printf(&arena, "CARREL_CAPTURED_BYTES=%llu",
			(unsigned long long)options->captured_bytes),
		arena_printf(&arena, "CARREL_LANDLOCK=%s",
			config && config->landlock_writes ? "writes" : "all"),
		arena_printf(
			&arena, "CARREL_STORE=%s", config ? config->store_url : "sqlite:carrel.db"),
		arena_printf(&arena, "CARREL_ARCHIVES=%s%s%s",
			config && config->archive_on_remove ? "remove," : "",
			config && config->archive_on_expiry ? "expire," : "",
			config && config->archive_gzip ? "gzip," : ""),
		arena_printf(&arena, "CARREL_SNAPSHOTS=%d", !config || config->use_snapshots),
		arena_printf(&arena, "CARREL_AUTO_REPAIR=%d", !config || config->auto_repair),
		arena_printf(&arena, "CARREL_BLOB_SOURCE=%s", blob_source(config, &arena)),
		arena_printf(&arena, "CARREL_AUDIT=%s", audit_mode(config)),
		arena_printf(&arena, "CARREL_AUDIT_FILE_BYTES=%llu",
			(unsigned long long)(config ? config->audit_max_file_bytes : 0)),
		arena_printf(&arena, "CARREL_AUDIT_BYTES=%llu",
			(unsigned long long)(config ? config->audit_max_bytes : 0)),
		arena_printf(&arena, "CARREL_CONFIG_DIGEST=%s", config ? config->digest : ""),
		arena_printf(&arena, "CARREL_TOOLS=%s",
			config ? tool_settings_print(&config->tools, &arena) : ""),
		arena_printf(&arena, "CARREL_EGRESS=%s",
			config ? network_settings_print(&config->egress, &arena) : ""),
		proxy_variable(&arena, "https_proxy", "HTTPS_PROXY"),
		proxy_variable(&arena, "http_proxy", "HTTP_PROXY"),
		proxy_variable(&arena, "all_proxy", "ALL_PROXY"),
		proxy_variable(&arena, "no_proxy", "NO_PROXY"),
		fault ? arena_printf(&arena, "CARREL_FAULT=%s", fault) : NULL, NULL };
	const struct role_path root[] = { { launcher->home->path, ROLE_READ | ROLE_WRITE } };
	struct role_start start = { .program = options->carreld,
		.argv = argv,
		.env = env,
		.uid = geteuid() == 0 ? launcher->home->uid : (uid_t)-1,
		.gid = launcher->home->gid,
		.fd_count = fd_count,
		.log = launcher->log.fd,
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
			rows[i].died(launcher, status);
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
