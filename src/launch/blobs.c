/* Operations on the blob store for core: carrel-blob, a role of its own each time. It alone has
 * the credentials of a bucket. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/vec.h"
#include "format/http/blob_name.h"
#include "launch/internal.h"
#include "model/settings/role_settings.h"
#include "proc/role.h"

#define BLOBS_MAX 16
#define WEBHOOKS_MAX 4
#define PROGRAM "carrel-blob"
#define DIRECTORY "blobs"

typedef VEC(char *) word_list;
typedef VEC(struct role_path) path_list;

/* What resolving and TLS read. */
static const char *const network_files[] = { "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hosts",
	"/etc/ssl", "/etc/pki", "/etc/ca-certificates" };
static const char *const passed[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN", "HTTPS_PROXY", "https_proxy", "http_proxy", "NO_PROXY", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "CARREL_FAULT" /* of tests */ };

/* has_store: the credentials of the store, too. */
static char **make_env(bool has_store, struct arena *arena)
{
	word_list env = { 0 };
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
		const char *value = getenv(passed[i]);
		if (value && value[0] && (has_store || strncmp(passed[i], "AWS_", 4) != 0))
			vec_push(arena, &env, arena_printf(arena, "%s=%s", passed[i], value));
	}
	vec_push(arena, &env, NULL);
	return env.items;
}

/* What it is told about the store at `url`. */
static const char *print_store(const struct config *config, const char *url, struct arena *arena)
{
	struct role_settings settings = { .blob_url = url };
	if (config) {
		settings.blob_endpoint = config->blob_endpoint;
		settings.blob_region = config->blob_region;
		settings.blob_path_style = config->blob_path_style;
		settings.blob_timeout_ms = config->blob_timeout_ms;
	}
	return role_settings_print(&settings, arena);
}

/* Checked here: carrel-blob does not see the parent directory. The directory is not created,
 * because root's launcher would create it as root's. */
static int check_directory(const struct launcher *launcher, const char *path, struct error *err)
{
	struct stat st;
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return 0;
	fail(err, ERR_UNAVAILABLE, "blob.url: there is no directory '%s'", path);
	if (geteuid())
		return error_hint(err, "mkdir -m 700 %s", path);
	return error_hint(err, "install -d -m 700 -o %u %s", (unsigned)launcher->home->uid, path);
}

/* A directory's process sees that directory alone, a bucket's process the network. */
static int describe(const struct launcher *launcher, struct arena *arena, struct role_start *start,
	struct error *err)
{
	const struct config *config = launcher->options->config;
	const char *text = config ? config->blob_url : "dir";
	struct blob_url url;
	path_list root = { 0 };
	if (blob_url_parse(text, arena, &url, err))
		return -1;
	if (url.scheme == BLOB_DIR) {
		if (url.path && check_directory(launcher, url.path, err))
			return -1;
		if (!url.path)
			url.path = arena_printf(arena, "%s/" DIRECTORY, launcher->home->path);
		text = arena_printf(arena, "dir:%s", url.path);
		vec_push(arena, &root, (struct role_path){ url.path, ROLE_READ | ROLE_WRITE });
	}
	for (size_t i = 0;
		url.scheme == BLOB_S3 && i < sizeof network_files / sizeof *network_files; i++)
		vec_push(arena, &root, (struct role_path){ network_files[i], ROLE_READ });
	start->has_network = url.scheme == BLOB_S3;
	start->root = root.items;
	start->root_count = root.count;
	start->env = make_env(true, arena);
	start->settings = print_store(config, text, arena);
	return 0;
}

/* Opened here: root's own file stays unreadable to the role's user. */
static int open_credentials(const struct launcher *launcher, int *fd, struct error *err)
{
	const struct config *config = launcher->options->config;
	const char *path = config ? config->blob_credentials : NULL;
	if (!path)
		return 0;
	*fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return *fd < 0 ? fail_errno(err, "open blob.credentials '%s'", path) : 0;
}

static int check_fds(const int fds[2], struct error *err)
{
	for (int i = 0; i < 2; i++) {
		int flags = fcntl(fds[i], F_GETFL);
		if (flags < 0 || flags & O_PATH)
			return fail(err, ERR_DENIED, "invalid descriptors for the blob store");
	}
	return 0;
}

/* carrel-blob beside our own programs. */
static const char *find_program(const struct launcher *launcher, struct arena *arena)
{
	const char *beside = launcher->options->carreld;
	return arena_printf(arena, "%.*s" PROGRAM, (int)(path_basename(beside) - beside), beside);
}

static int begin(struct launcher *launcher, const struct launch_packet *packet, const int fds[2],
	pid_t *pid, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int pidfd = -1, credentials = -1;
	word_list argv = { 0 };
	if (jobs_count(launcher, JOB_BLOB) >= BLOBS_MAX)
		return fail(
			err, ERR_LIMIT, "%d operations on the blob store run already", BLOBS_MAX);
	vec_push(&arena, &argv, arena_text(&arena, PROGRAM));
	for (size_t i = 0; i < packet->head.string_count; i++)
		vec_push(&arena, &argv, arena_text(&arena, packet->strings[i]));
	vec_push(&arena, &argv, NULL);
	struct role_start start = { .program = find_program(launcher, &arena),
		.argv = argv.items,
		.uid = geteuid() == 0 ? launcher->home->uid : (uid_t)-1,
		.gid = launcher->home->gid,
		.fds = { fds[0], fds[1] },
		.fd_count = 2,
		.log = launcher->log.fd };
	if (check_fds(fds, err) || describe(launcher, &arena, &start, err) ||
		open_credentials(launcher, &credentials, err))
		return -1;
	if (credentials >= 0)
		start.fds[start.fd_count++] = credentials;
	return role_start(&start, pid, &pidfd, err);
}

/* ---- the webhook ---- */

static int begin_webhook(struct launcher *launcher, const int fds[2], pid_t *pid, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int pidfd = -1, secret = -1;
	const struct config *config = launcher->options->config;
	char *argv[] = { arena_text(&arena, PROGRAM), arena_text(&arena, "webhook"), NULL };
	path_list root = { 0 };
	if (!config || !config->webhook)
		return fail(err, ERR_UNAVAILABLE, "no webhook is configured");
	if (jobs_count(launcher, JOB_WEBHOOK) >= WEBHOOKS_MAX)
		return fail(err, ERR_LIMIT, "%d webhook calls run already", WEBHOOKS_MAX);
	/* Opened here: root's own file stays unreadable to the role's user. */
	secret = open(config->webhook_secret_file,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (secret < 0)
		return fail_errno(err, "open approvals.webhook_secret_file '%s'",
			config->webhook_secret_file);
	for (size_t i = 0; i < sizeof network_files / sizeof *network_files; i++)
		vec_push(&arena, &root, (struct role_path){ network_files[i], ROLE_READ });
	const struct role_settings settings = { .webhook = config->webhook };
	const struct role_start start = { .program = find_program(launcher, &arena),
		.argv = argv,
		.env = make_env(false, &arena),
		.settings = role_settings_print(&settings, &arena),
		.uid = geteuid() == 0 ? launcher->home->uid : (uid_t)-1,
		.gid = launcher->home->gid,
		.fds = { fds[0], fds[1], secret },
		.fd_count = 3,
		.has_network = true,
		.root = root.items,
		.root_count = root.count,
		.log = launcher->log.fd };
	return check_fds(fds, err) ? -1 : role_start(&start, pid, &pidfd, err);
}

void webhook_start(struct launcher *launcher, const struct launch_packet *packet, const int fds[2])
{
	const struct launch_message *head = &packet->head;
	struct error err;
	pid_t pid = 0;
	if (begin_webhook(launcher, fds, &pid, &err)) {
		launcher_log(launcher, LOG_LEVEL_WARN, "a webhook call failed to start", NULL,
			head->request_id, &err);
		link_send_failed(launcher, head->tag, &err);
		return;
	}
	job_add(launcher, JOB_WEBHOOK, pid, head->tag);
}

void blob_start(struct launcher *launcher, const struct launch_packet *packet, const int fds[2])
{
	const struct launch_message *head = &packet->head;
	struct error err;
	pid_t pid = 0;
	if (begin(launcher, packet, fds, &pid, &err)) {
		launcher_log(launcher, LOG_LEVEL_WARN,
			"an operation on the blob store failed to start", NULL, head->request_id,
			&err);
		link_send_failed(launcher, head->tag, &err);
		return;
	}
	job_add(launcher, JOB_BLOB, pid, head->tag);
}
