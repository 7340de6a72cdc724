/* carreld -- the roles of the daemon, by their name in argv[0]: started by `carrel serve`, never by
 * hand. Each locks itself in, then serves. Core: the API on descriptor 3, the launcher on 4, the
 * writer on 6, the audit log on 7 (if it is on), more listeners after that; one byte to 5
 * when it does. The writer and the audit log: core on 3. What a role is told
 * (model/settings/role_settings.h) it reads from stdin. */
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "audit/serve.h"
#include "base/fd.h"
#include "base/file.h"
#include "client/relay.h"
#include "core/core.h"
#include "core/state/template_store.h"
#include "doors/api.h"
#include "format/text/yaml_json.h"
#include "model/settings/role_settings.h"
#include "net/tls.h"
#include "net/tls_make.h"
#include "net/tunnel.h"
#include "proc/role.h"
#include "services/apkg_file.h"
#include "services/services.h"
#include "store/store.h"

/* As enum launch_role_fd of launch/launch.h, whose room isn't ours. */
enum { FD_LISTENER = 3, FD_LAUNCHER, FD_READY, FD_WRITER, FD_AUDIT, FD_CORE = 3 };
#define LISTENERS_MAX 16 /* LAUNCH_LISTENERS_MAX */
#define LARGE_BYTES (256 << 10)
#define GRACE_MS 2000	 /* for what was begun, when it is told to end */
#define PATIENCE_MS 5000 /* for clients that don't send or take the rest, when all has ended */

struct daemon {
	struct loop *loop;
	struct core *core;
	struct services *services;
	struct api *api;
	struct loop_timer *grace;
	bool is_stopping, is_drained, has_stopped;
	bool is_leaving; /* a reload: what runs is the next core's */
	struct api_options *api_options;
	struct listening {
		int fd;
		bool is_tcp, is_tls;
	} listeners[LISTENERS_MAX];
	size_t listener_count;
	struct tls *tls; /* or NULL: the launcher has not sent certificates */
	const struct role_settings *settings;
	bool is_ready;	 /* core is; the API may wait for certificates */
	bool has_failed; /* to open the API, for `err` */
	struct error err;
};

static void end_when_done(struct daemon *daemon)
{
	if (daemon->is_drained && daemon->has_stopped)
		loop_stop(daemon->loop);
}

static void on_patience_over(struct loop *loop, void *ctx)
{
	loop_stop(loop);
}

static void on_stopped(void *ctx)
{
	struct daemon *daemon = ctx;
	daemon->has_stopped = true;
	loop_after(daemon->loop, PATIENCE_MS, on_patience_over, daemon);
	end_when_done(daemon);
}

/* What still runs is ended, and answered so. */
static void on_grace_over(struct loop *loop, void *ctx)
{
	struct daemon *daemon = ctx;
	daemon->grace = NULL;
	if (!daemon->is_leaving) {
		core_stop(daemon->core, on_stopped, daemon);
		return;
	}
	core_end_foreground(daemon->core);
	on_stopped(daemon);
}

static void on_drained(void *ctx)
{
	struct daemon *daemon = ctx;
	daemon->is_drained = true;
	if (daemon->grace) {
		loop_cancel(daemon->loop, daemon->grace);
		on_grace_over(daemon->loop, daemon);
	}
	end_when_done(daemon);
}

/* Nothing new is accepted, what was begun may end soon; at the second signal it may not. */
static void on_signal(struct loop *loop, const struct signalfd_siginfo *info, void *ctx)
{
	struct daemon *daemon = ctx;
	if (daemon->is_stopping || !daemon->api) {
		daemon->is_stopping = true;
		loop_stop(loop);
		return;
	}
	daemon->is_stopping = true;
	daemon->is_leaving = info->ssi_signo == SIGHUP;
	services_stop(daemon->services);
	core_begin_stop(daemon->core);
	daemon->grace = loop_after(loop, GRACE_MS, on_grace_over, daemon);
	api_drain(daemon->api, on_drained, daemon);
}

static int lock_in(const char *home, bool may_fork, struct error *err)
{
	const struct role_path paths[] = { { home, ROLE_READ | ROLE_WRITE } };
	struct role_lock lock = { .paths = paths, .path_count = 1, .may_fork = may_fork };
	return role_lock(&lock, err);
}

static int read_uids(const pair_list *uids, struct core_options *options, struct error *err)
{
	for (size_t i = 0; i < uids->count; i++) {
		const struct text_pair *pair = &uids->items[i];
		uint64_t uid;
		if (!str_to_u64(str_from(pair->key), &uid) || uid > UINT32_MAX ||
			options->uid_count == CORE_UIDS_MAX)
			return fail(err, ERR_INVALID, "uid '%s', or more than %d of them",
				pair->key, CORE_UIDS_MAX);
		struct core_uid *next = &options->uids[options->uid_count++];
		*next = (struct core_uid){ .uid = (uid_t)uid };
		for (size_t k = 0; k < TOKEN_SCOPE_COUNT; k++)
			if (!strcmp(pair->value, token_scope_names[k]))
				next->scopes = access_scopes((enum token_scope)k);
	}
	return 0;
}

/* *last: the highest descriptor. */
static int read_listeners(
	const pair_list *listeners, struct daemon *daemon, int *last, struct error *err)
{
	for (size_t i = 0; i < listeners->count; i++) {
		const char *kind = listeners->items[i].value;
		uint64_t fd;
		if (!str_to_u64(str_from(listeners->items[i].key), &fd) || fd < FD_LISTENER ||
			fd > INT16_MAX || daemon->listener_count == LISTENERS_MAX)
			return fail(err, ERR_INVALID, "listener '%s', or more than %d of them",
				listeners->items[i].key, LISTENERS_MAX);
		daemon->listeners[daemon->listener_count++] = (struct listening){ (int)fd,
			strcmp(kind, "unix") != 0, !strcmp(kind, "tls") };
		if ((int)fd > *last)
			*last = (int)fd;
	}
	return 0;
}

/* TCP without a token would refuse every client; the operator is told before one tries. */
static int check_token(const struct daemon *daemon, struct error *err)
{
	bool has_tcp = false;
	for (size_t i = 0; i < daemon->listener_count; i++)
		has_tcp |= daemon->listeners[i].is_tcp;
	if (!has_tcp || !daemon->settings->is_first || access_has_token(daemon->core))
		return 0;
	fail(err, ERR_INVALID, "TCP needs a token, and this home has none");
	/* Also where config.yaml lists TCP: a socket that is named replaces that list. */
	return error_hint(err,
		"make one first: carrel serve --background --listen unix:%s/run/carrel.sock; "
		"carrel token create; carrel serve --stop",
		daemon->settings->home);
}

static bool has_tls(const struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->listener_count; i++)
		if (daemon->listeners[i].is_tls)
			return true;
	return false;
}

static int listen_all(struct daemon *daemon, struct error *err)
{
	for (size_t i = 0; i < daemon->listener_count; i++) {
		const struct listening *l = &daemon->listeners[i];
		struct tls *tls = l->is_tls ? daemon->tls : NULL;
		if (l->is_tcp ? api_listen_tcp(daemon->api, l->fd, tls, err)
			      : api_listen_peers(daemon->api, l->fd, err))
			return -1;
	}
	return 0;
}

static void give_up(struct daemon *daemon)
{
	daemon->has_failed = true;
	loop_stop(daemon->loop);
}

/* Clients that connect earlier wait in the listener's queue: with socket activation, the first
 * client connects before the daemon is ready. */
static void open_api(struct daemon *daemon)
{
	if (!daemon->is_ready || daemon->api || daemon->has_failed ||
		(has_tls(daemon) && !daemon->tls))
		return;
	if (check_token(daemon, &daemon->err) ||
		api_open(daemon->api_options, &daemon->api, &daemon->err) ||
		listen_all(daemon, &daemon->err)) {
		give_up(daemon);
		return;
	}
	(void)!write(FD_READY, "", 1); /* EPIPE is fine: the reader is optional */
	close(FD_READY);
}

static void on_core_ready(struct loop *loop, void *ctx)
{
	struct daemon *daemon = ctx;
	daemon->api_options->core = daemon->core;
	daemon->api_options->loop = loop;
	daemon->api_options->services = daemon->services;
	services_start(daemon->services, daemon->core);
	daemon->is_ready = true;
	open_api(daemon);
}

/* The first ones must be good; later ones replace them, or are left. */
static void on_certificates(
	void *ctx, const char *certificate, const char *key, const char *client_ca)
{
	struct daemon *daemon = ctx;
	const struct log *log = daemon->api_options->log;
	const struct tls_files files = { str_from(certificate), str_from(key),
		str_from(client_ca) };
	struct error err;
	if (!daemon->tls) {
		if (tls_new(&files, &daemon->tls, &daemon->err))
			give_up(daemon);
		else
			open_api(daemon);
		return;
	}
	if (tls_renew(daemon->tls, &files, &err))
		log_record(log, LOG_LEVEL_WARN, "new certificates are not used", "error", err.text,
			NULL);
	else
		log_record(log, LOG_LEVEL_INFO, "certificates renewed", NULL);
}

static int serve(struct daemon *daemon, struct core_options *core, struct error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (loop_new(&daemon->loop, err) ||
		loop_signals(daemon->loop, &set, on_signal, daemon, err))
		return -1;
	const struct services_options options = { .tools = &daemon->settings->tools };
	daemon->services = services_new(daemon->loop, &options);
	core->row = services_take;
	core->row_ctx = daemon->services;
	if (core_open(core, daemon->loop, &daemon->core, err) || loop_run(daemon->loop, err))
		return -1;
	if (daemon->has_failed)
		*err = daemon->err;
	return daemon->has_failed ? -1 : 0;
}

/* Children never need them. */
static int check_fds(int last, struct error *err)
{
	for (int fd = FD_LISTENER; fd <= last; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC))
			return fail(err, ERR_INVALID, "carreld is started by `carrel serve`");
	return 0;
}

static int run_core(struct log *log, const struct role_settings *settings, struct error *err)
{
	struct api_options api = { .log = log, .settings = &settings->serve };
	struct daemon daemon = { .api_options = &api, .settings = settings };
	struct core_options core = { .launcher = FD_LAUNCHER,
		.writer = FD_WRITER,
		.audit = settings->audit_enabled ? FD_AUDIT : -1,
		.audit_drops = settings->audit_drops,
		.config_digest = settings->config_digest,
		.home = settings->home,
		.store_url = settings->store_url,
		.release_after_ms = settings->release_after_ms,
		.captured_max = settings->captured_bytes,
		.approval_ttl_ms = settings->approval_ttl_ms,
		.approvals_self = settings->approvals_self,
		.has_webhook = settings->has_webhook,
		.boot = settings->boot ? settings->boot : "",
		.blob_source = settings->blob_source,
		.use_snapshots = settings->use_snapshots,
		.auto_repair = settings->auto_repair,
		.keeps_spare = true,
		.archives_removed = settings->archive_on_remove,
		.archives_expired = settings->archive_on_expiry,
		.archives_gzip = settings->archive_gzip,
		.egress = &settings->egress,
		.landlock_writes = settings->landlock_writes,
		.log = *log,
		.ready = on_core_ready,
		.certificates = on_certificates,
		.ctx = &daemon };
	/* Large buffers are pages of their own: they grow without a copy and leave nothing behind
	 * when they are freed. */
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	int last = settings->audit_enabled ? FD_AUDIT : FD_WRITER;
	if (read_listeners(&settings->listeners, &daemon, &last, err) || check_fds(last, err) ||
		lock_in(settings->home, true, err) || read_uids(&settings->uids, &core, err) ||
		serve(&daemon, &core, err))
		return -1;
	/* What is written is told to jobs while all that they use is there. */
	core_flush(daemon.core);
	api_free(daemon.api);
	tls_free(daemon.tls);
	services_free(daemon.services);
	core_free(daemon.core);
	loop_free(daemon.loop);
	return 0;
}

static int run_writer(struct log *log, const struct role_settings *settings, struct error *err)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* EFBIG instead */
	const char *home = settings->home;
	if (check_fds(FD_CORE, err) || lock_in(home, false, err))
		return -1;
	auto_close int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s'", home);
	return store_serve(FD_CORE, dir, home, settings->store_url, err);
}

static int run_audit(struct log *log, const struct role_settings *settings, struct error *err)
{
	const struct audit_options options = { settings->audit_max_file_bytes,
		settings->audit_max_bytes };
	const char *home = settings->home;
	auto_close int dir = -1, home_dir = -1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* EFBIG instead */
	if (check_fds(FD_CORE, err) || lock_in(home, false, err))
		return -1;
	home_dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (home_dir < 0 || (mkdirat(home_dir, "audit", 0700) && errno != EEXIST))
		return fail_errno(err, "make '%s/audit'", home);
	dir = openat(home_dir, "audit", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return fail_errno(err, "open '%s/audit'", home);
	return audit_serve(FD_CORE, dir, &options, settings->audit_drops, err);
}

/* ---- roles that answer one question of carrel (cli/role.h) ---- */

enum { FD_INPUT = 3, FD_ANSWER, FD_OUTPUT, FD_ENV, FD_ENV_MADE };

/* Prints the members of the answer; an error is answered in their place. */
typedef int answer_fn(const struct role_settings *settings, struct arena *arena, struct json *out,
	struct error *err);

static int answer(answer_fn *fn, const struct role_settings *settings, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	struct json out = json_to(&text, false);
	struct error why;
	bool has_output = settings->package_format && settings->package_format[0];
	int last = settings->has_environment ? FD_ENV_MADE : has_output ? FD_OUTPUT : FD_ANSWER;
	if (check_fds(last, err) || lock_in(settings->home ? settings->home : "", false, err))
		return -1;
	json_object(&out, NULL);
	if (fn(settings, &arena, &out, &why)) {
		buf_clear(&text);
		out = json_to(&text, false);
		json_object(&out, NULL);
		json_object(&out, "error");
		json_text(&out, "code", error_code_name(why.code));
		json_text(&out, "message", why.text);
		json_text(&out, "hint", why.hint[0] ? why.hint : NULL);
		json_end(&out);
	}
	json_end(&out);
	json_finish(&out);
	return fd_write_full(FD_ANSWER, text.data, text.len) == (ssize_t)text.len
		       ? 0
		       : fail_errno(err, "write the answer");
}

/* For `carrel run --template`: the template that is named, or else the YAML that is the input. */
static int answer_template(const struct role_settings *settings, struct arena *arena,
	struct json *out, struct error *err)
{
	const char *name = settings->template, *home = settings->home ? settings->home : "";
	struct template_shown shown;
	struct str text;
	auto_close int dir = home[0] ? open(home, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (!name && file_read(FD_INPUT, YAML_JSON_MAX + 1, arena, &text))
		return fail_errno(err, "read the template");
	if (name ? template_find(dir, name, arena, &shown, err)
		 : template_look(dir, text, arena, &shown, err))
		return -1;
	record_print_given(out, "template", &template_record, &shown.model);
	json_texts(out, "warnings", &shown.warnings);
	return 0;
}

/* For `carrel tls init`: {"names","days","ca","ca_key"} is answered by
 * {"ca","ca_key","certificate","key"}. */
static int answer_tls(const struct role_settings *settings, struct arena *arena, struct json *out,
	struct error *err)
{
	struct tls_wanted wanted = { 0 };
	struct tls_made made;
	struct json_value *value;
	struct str text;
	if (file_read(FD_INPUT, YAML_JSON_MAX, arena, &text))
		return fail_errno(err, "read what is wanted");
	if (json_read(text, arena, &value, err))
		return -1;
	const struct json_value *name = json_member_first(value, "names");
	for (; name; name = name->next)
		if (name->kind == JSON_STRING)
			vec_push(arena, &wanted.names, name->string.data);
	if (!json_member_u64(value, "days", &wanted.days))
		return fail(err, ERR_INVALID, "days are missing");
	wanted.ca = json_member_text(value, "ca");
	wanted.ca_key = json_member_text(value, "ca_key");
	if (tls_make(&wanted, arena, &made, err))
		return -1;
	json_text(out, "ca", made.ca);
	json_text(out, "ca_key", made.ca_key);
	json_text(out, "certificate", made.certificate);
	json_text(out, "key", made.key);
	return 0;
}

/* For `carrel package`: what is in a package; with a format the package is written too; with an
 * environment the one that FD_ENV has, made in FD_ENV_MADE, is put into it. */
static int answer_package(const struct role_settings *settings, struct arena *arena,
	struct json *out, struct error *err)
{
	const char *format = settings->package_format ? settings->package_format : "";
	bool has_env = settings->has_environment;
	const int env[] = { has_env ? FD_ENV : -1, has_env ? FD_ENV_MADE : -1 };
	return apkg_convert(FD_INPUT, format[0] ? FD_OUTPUT : -1, format, env, arena, out, err);
}

static const struct role {
	const char *name, *log_name;
	int (*run)(struct log *log, const struct role_settings *settings, struct error *err);
	answer_fn *answer; /* in its place */
} roles[] = {
	{ "carreld", "core", run_core },
	{ "carrel-writer", "writer", run_writer },
	{ "carrel-template", "template", NULL, answer_template },
	{ "carrel-audit", "audit", run_audit },
	{ "carrel-tls", "tls", NULL, answer_tls },
	{ "carrel-package", "package", NULL, answer_package },
};

int main(int argc, char **argv)
{
	const struct role *role = roles;
	/* For `carrel serve`, before it executes another version of itself. */
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("%s\n", CARREL_VERSION);
		return 0;
	}
	struct log_losses losses = { 0 };
	struct error err;
	/* For `carrel` with a daemon on another machine (client/relay.h). */
	if (argc >= 3 && !strcmp(argv[1], "client"))
		return tunnel_run(argv[2], argv[3], RELAY_FD, &err) ? 125 : 0;
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (!strcmp(argv[0], roles[i].name))
			role = &roles[i];
	struct log log = { .fd = STDERR_FILENO,
		.role = role->log_name,
		.losses = &losses,
		.least = LOG_LEVEL_INFO };
	auto_arena struct arena arena = { 0 };
	struct role_settings settings;
	if (!role_settings_read(STDIN_FILENO, &arena, &settings, &err)) {
		log.json = settings.log_is_json;
		if (settings.log_level)
			log.least = log_level_of(settings.log_level, LOG_LEVEL_INFO);
		if (!(role->answer ? answer(role->answer, &settings, &err)
				   : role->run(&log, &settings, &err)))
			return 0;
	}
	/* The error last: `carrel serve` quotes it from there. */
	bool has_hint = err.hint[0] != 0;
	log_record(&log, LOG_LEVEL_ERROR, "cannot continue", has_hint ? "hint" : "error",
		has_hint ? err.hint : err.text, has_hint ? "error" : NULL, err.text, NULL);
	return 125;
}
