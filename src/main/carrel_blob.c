/* carrel-blob -- one operation on the blob store, or one call of the webhook, for core: a role
 * (proc/role.h) that the launcher starts anew each time, since it is the only program with libcurl,
 * and the only one besides egress with a network.
 *	carrel-blob put|get|head|list|delete KEY [WORD]...
 *	carrel-blob webhook	the data is the body, the credentials are the secret
 * Descriptors: 3 the data, 4 where the answer goes (one JSON object), 5 a file with credentials.
 * The words are those of format/http/blob_words.h. Stdin (model/settings/role_settings.h) says
 * where the store
 *is, or where the call goes; AWS_* may have credentials. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "blob/blob.h"
#include "blob/squeeze.h"
#include "blob/webhook.h"
#include "format/http/blob_words.h"
#include "format/http/webhook.h"
#include "format/text/ini.h"
#include "format/text/json.h"
#include "linux/child.h"
#include "linux/seccomp.h"
#include "model/settings/role_settings.h"
#include "proc/role.h"

enum { FD_DATA = 3, FD_ANSWER, FD_CREDENTIALS };
#define CREDENTIALS_MAX 65536
#define BODY_MAX ((size_t)8 << 20) /* of a webhook call */
#define ANSWER_MAX ((size_t)64 << 20)
#define DATA_MAX ((rlim_t)1 << 30) /* of memory: a part of an upload, lists */

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] ? value : NULL;
}

/* ---- where the store is ---- */

/* "[default] aws_access_key_id = ...", as the tools of AWS keep it. */
/* Keys as format/text/ini.h has them: '_' is '-'. */
static int read_credentials(
	struct arena *arena, struct blob_credentials *credentials, struct error *err)
{
	static const struct {
		const char *key;
		size_t offset;
	} keys[] = {
		{ "aws-access-key-id", offsetof(struct blob_credentials, key_id) },
		{ "aws-secret-access-key", offsetof(struct blob_credentials, secret) },
		{ "aws-session-token", offsetof(struct blob_credentials, token) },
	};
	struct str text;
	ini_list entries = { 0 };
	struct error ignored;
	if (fcntl(FD_CREDENTIALS, F_GETFD) < 0)
		return 0;
	if (file_read(FD_CREDENTIALS, CREDENTIALS_MAX, arena, &text))
		return fail_errno(err, "read the file of blob.credentials");
	/* Its own message may quote a line. */
	if (ini_parse(text, arena, &entries, &ignored))
		return fail(err, ERR_INVALID, "the file of blob.credentials is not an INI file");
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const char *value = ini_find(&entries, "default", keys[i].key);
		if (value)
			*(const char **)((char *)credentials + keys[i].offset) = value;
	}
	return 0;
}

static int read_settings(const struct role_settings *told, struct arena *arena,
	struct blob_settings *settings, struct error *err)
{
	*settings = (struct blob_settings){ .endpoint = told->blob_endpoint,
		.region = told->blob_region,
		.path_style = told->blob_path_style,
		.stall_ms = told->blob_timeout_ms,
		.credentials = { setting("AWS_ACCESS_KEY_ID"), setting("AWS_SECRET_ACCESS_KEY"),
			setting("AWS_SESSION_TOKEN") } };
	if (blob_url_parse(told->blob_url ? told->blob_url : "dir", arena, &settings->url, err))
		return -1;
	return settings->url.scheme == BLOB_S3
		       ? read_credentials(arena, &settings->credentials, err)
		       : 0;
}

/* A directory needs no network, a bucket no file. The filter of sandboxes allows sockets of the
 * Internet, the one of roles doesn't. */
static int lock_in_network(struct error *err)
{
	if (getuid() == 0 || geteuid() == 0)
		return fail(err, ERR_DENIED, "a role must not run as root");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return fail_errno(err, "lock the process that reaches the network");
	if (child_limit(RLIMIT_CORE, 0, err) || (!IS_SANITIZED && child_limit_data(DATA_MAX, err)))
		return -1;
	return seccomp_load(0, err);
}

static int lock_in(const struct blob_settings *settings, const char *home, struct error *err)
{
	const struct role_path paths[] = { { settings->url.path ? settings->url.path : home,
		ROLE_READ | ROLE_WRITE } };
	struct role_lock lock = { .paths = paths, .path_count = 1, .may_fork = true };
	return settings->url.scheme == BLOB_S3 ? lock_in_network(err) : role_lock(&lock, err);
}

/* ---- operations ---- */

struct operation {
	const struct blob_store *store;
	const char *key;
	struct blob_words words;
	struct arena *arena;
	struct json *out;
};

static void print_info(const struct operation *operation, const struct blob_info *info)
{
	json_u64(operation->out, "size", info->size);
	json_i64(operation->out, "modified_s", info->modified_s);
	if (info->sha256[0])
		json_text(operation->out, "sha256", info->sha256);
}

static int end_squeeze(void *ctx, struct error *err)
{
	return squeeze_end(ctx, err);
}

static int run_put(const struct operation *operation, struct error *err)
{
	const struct blob_words *words = &operation->words;
	struct blob_put put = { FD_DATA, words->size, words->sha256, words->only_new };
	struct blob_info info;
	struct squeeze squeeze = { CHILD_NONE, -1 };
	if (words->is_zstd || words->is_gzip) {
		if (squeeze_pack(FD_DATA, words->is_zstd ? BLOB_PACK_ZSTD : BLOB_PACK_GZIP,
			    &squeeze, err))
			return -1;
		put.from = squeeze.fd;
		put.end = end_squeeze;
		put.ctx = &squeeze;
	}
	int failed = blob_put(operation->store, operation->key, &put, &info, err);
	child_kill(&squeeze.child);
	fd_close(&squeeze.fd);
	if (failed)
		return -1;
	print_info(operation, &info);
	return 0;
}

/* What was fetched is checked before its last bytes are decompressed or not: whoever reads them
 * waits for the answer. */
static int get_plain(const struct operation *operation, struct blob_get *get,
	struct blob_info *info, struct error *err)
{
	struct squeeze squeeze = { CHILD_NONE, -1 };
	struct error why;
	if (squeeze_unpack(FD_DATA, &squeeze, err))
		return -1;
	get->to = squeeze.fd;
	int failed = blob_get(operation->store, operation->key, get, info, err);
	fd_close(&squeeze.fd);
	/* A child that fails also breaks the pipe: its reason comes first. */
	if (squeeze_end(&squeeze, &why) && (!failed || err->sys_errno == EPIPE)) {
		*err = why;
		return -1;
	}
	return failed;
}

static int run_get(const struct operation *operation, struct error *err)
{
	const struct blob_words *words = &operation->words;
	struct blob_get get = { FD_DATA, words->offset, words->len, words->sha256 };
	struct blob_info info;
	if (words->is_plain ? get_plain(operation, &get, &info, err)
			    : blob_get(operation->store, operation->key, &get, &info, err))
		return -1;
	print_info(operation, &info);
	return 0;
}

static int run_head(const struct operation *operation, struct error *err)
{
	struct blob_info info;
	if (blob_head(operation->store, operation->key, &info, err))
		return -1;
	print_info(operation, &info);
	return 0;
}

static int run_list(const struct operation *operation, struct error *err)
{
	blob_rows rows;
	if (blob_list(operation->store, operation->key, operation->arena, &rows, err))
		return -1;
	json_array(operation->out, "items");
	for (size_t i = 0; i < rows.count; i++) {
		json_object(operation->out, NULL);
		json_text(operation->out, "key", rows.items[i].key);
		json_u64(operation->out, "size", rows.items[i].size);
		json_i64(operation->out, "modified_s", rows.items[i].modified_s);
		json_end(operation->out);
	}
	json_end(operation->out);
	return 0;
}

static int run_delete(const struct operation *operation, struct error *err)
{
	return blob_delete(operation->store, operation->key, err);
}

static int (*const runs[BLOB_VERB_COUNT])(const struct operation *, struct error *) = {
	[BLOB_PUT] = run_put,
	[BLOB_GET] = run_get,
	[BLOB_HEAD] = run_head,
	[BLOB_LIST] = run_list,
	[BLOB_DELETE] = run_delete,
};

static int run(int argc, char **argv, const struct role_settings *told, struct arena *arena,
	struct json *out, struct error *err)
{
	struct blob_settings settings;
	auto_blob struct blob_store store = { 0 };
	auto_close int home = -1;
	const char *path = told->home;
	struct operation operation = { .store = &store, .arena = arena, .out = out };
	enum blob_verb verb;
	if (blob_words_read((const char *const *)argv + 1, argc > 0 ? (size_t)argc - 1 : 0, &verb,
		    &operation.key, &operation.words, err) ||
		read_settings(told, arena, &settings, err) ||
		lock_in(&settings, path ? path : "/", err))
		return -1;
	if (settings.url.scheme == BLOB_DIR && !settings.url.path) {
		home = open(path ? path : "", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (home < 0)
			return fail_errno(err, "open the home '%s'", path ? path : "");
	}
	if (blob_open(&settings, home, &blob_s3_backend, &store, err))
		return -1;
	return runs[verb](&operation, err);
}

static int run_webhook(
	const struct role_settings *told, struct arena *arena, struct json *out, struct error *err)
{
	const char *url = told->webhook;
	struct str body, secret;
	uint64_t timeout_ms =
		told->webhook_timeout_ms ? told->webhook_timeout_ms : WEBHOOK_TIMEOUT_MS;
	long status = 0;
	if (!url)
		return fail(err, ERR_INVALID, "no webhook is configured");
	if (lock_in_network(err))
		return -1;
	if (file_read(FD_CREDENTIALS, WEBHOOK_SECRET_MOST + 1, arena, &secret))
		return fail_errno(err, "read the file of approvals.webhook_secret_file");
	secret = str_trim(secret);
	if (secret.len < WEBHOOK_SECRET_LEAST || secret.len > WEBHOOK_SECRET_MOST)
		return fail(err, ERR_INVALID,
			"the file of approvals.webhook_secret_file must have %d to %d bytes",
			WEBHOOK_SECRET_LEAST, WEBHOOK_SECRET_MOST);
	if (file_read(FD_DATA, BODY_MAX, arena, &body))
		return fail_errno(err, "read the body of the webhook call");
	if (webhook_post(url, secret, body, timeout_ms, &status, err))
		return -1;
	json_i64(out, "status", status);
	return 0;
}

static void print_error(struct json *out, const struct error *err)
{
	json_object(out, "error");
	json_text(out, "code", error_code_name(err->code));
	json_text(out, "message", err->text);
	json_text(out, "hint", err->hint[0] ? err->hint : NULL);
	json_end(out);
}

int main(int argc, char **argv)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text = buf_empty(ANSWER_MAX);
	struct json out = json_to(&text, false);
	struct error err;
	if (fcntl(FD_DATA, F_GETFD) < 0 || fcntl(FD_ANSWER, F_GETFD) < 0)
		return 125; /* started by hand */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	json_object(&out, NULL);
	bool is_webhook = argc == 2 && !strcmp(argv[1], "webhook");
	struct role_settings told;
	int failed = role_settings_read(STDIN_FILENO, &arena, &told, &err) ||
		     (is_webhook ? run_webhook(&told, &arena, &out, &err)
				 : run(argc, argv, &told, &arena, &out, &err));
	if (failed)
		print_error(&out, &err);
	json_end(&out);
	json_finish(&out);
	bool is_told = !text.overflow &&
		       fd_write_full(FD_ANSWER, text.data, text.len) == (ssize_t)text.len;
	return failed || !is_told ? 1 : 0;
}
