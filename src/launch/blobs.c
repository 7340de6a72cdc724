/* Operations on the blob store for core: carrel-blob, a role of its own each time. It alone has
 * the credentials of a bucket. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/vec.h"
#include "format/http/blob_name.h"
#include "launch/internal.h"
#include "model/settings/role_settings.h"

#define PROGRAM "carrel-blob"
#define STORE "the blob store"
#define DIRECTORY "blobs"

typedef VEC(char *) word_list;
typedef VEC(struct role_path) path_list;

/* What resolving and TLS read. */
static const char *const network_files[] = { "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hosts",
	"/etc/ssl", "/etc/pki", "/etc/ca-certificates" };
static const char *const passed[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN", "HTTPS_PROXY", "https_proxy", "http_proxy", "NO_PROXY", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "CARREL_FAULT" /* of tests */ };

static void add_network_files(struct arena *arena, path_list *root)
{
	for (size_t i = 0; i < sizeof network_files / sizeof *network_files; i++)
		vec_push(arena, root, (struct role_path){ network_files[i], ROLE_READ });
}

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
static int blobs_describe(const struct launcher *launcher, struct arena *arena,
	struct role_start *start, struct error *err)
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
	if (url.scheme == BLOB_S3)
		add_network_files(arena, &root);
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

/* carrel-blob beside our own programs. */
static const char *find_program(const struct launcher *launcher, struct arena *arena)
{
	const char *beside = launcher->options->carreld;
	return arena_printf(arena, "%.*s" PROGRAM, (int)(path_basename(beside) - beside), beside);
}

int blob_begin(struct launcher *launcher, const struct launch_packet *packet, const int *fds,
	pid_t *pid, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int pidfd = -1, credentials = -1;
	word_list argv = { 0 };
	vec_push(&arena, &argv, arena_text(&arena, PROGRAM));
	for (size_t i = 0; i < packet->head.string_count; i++)
		vec_push(&arena, &argv, arena_text(&arena, packet->strings[i]));
	vec_push(&arena, &argv, NULL);
	struct role_start start = job_role(launcher, find_program(launcher, &arena), fds, 2);
	start.argv = argv.items;
	if (job_check_fds(fds, 2, STORE, err) || blobs_describe(launcher, &arena, &start, err) ||
		open_credentials(launcher, &credentials, err))
		return -1;
	if (credentials >= 0)
		start.fds[start.fd_count++] = credentials;
	return role_start(&start, pid, &pidfd, err);
}

int webhook_begin(struct launcher *launcher, const struct launch_packet *packet, const int *fds,
	pid_t *pid, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_close int pidfd = -1, secret = -1;
	const struct config *config = launcher->options->config;
	char *argv[] = { arena_text(&arena, PROGRAM), arena_text(&arena, "webhook"), NULL };
	path_list root = { 0 };
	if (!config || !config->webhook)
		return fail(err, ERR_UNAVAILABLE, "no webhook is configured");
	/* Opened here: root's own file stays unreadable to the role's user. */
	secret = open(config->webhook_secret_file,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (secret < 0)
		return fail_errno(err, "open approvals.webhook_secret_file '%s'",
			config->webhook_secret_file);
	add_network_files(&arena, &root);
	const struct role_settings settings = { .webhook = config->webhook };
	struct role_start start = job_role(
		launcher, find_program(launcher, &arena), (int[]){ fds[0], fds[1], secret }, 3);
	start.argv = argv;
	start.env = make_env(false, &arena);
	start.settings = role_settings_print(&settings, &arena);
	start.has_network = true;
	start.root = root.items;
	start.root_count = root.count;
	return job_check_fds(fds, 2, STORE, err) ? -1 : role_start(&start, pid, &pidfd, err);
}
