/* carrel serve: the daemon of a home, until it is told to end. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/path.h"
#include "cli/daemon/daemon.h"
#include "cli/daemon/listen.h"
#include "cli/run/policy_file.h"
#include "launch/handover.h"
#include "launch/launch.h"
#include "envs/shown.h"
#include "linux/capability.h"
#include "linux/child.h"
#include "linux/home.h"
#include "linux/namespace.h"

#define STOP_MS 30000 /* more than the launcher's patience with a core (launch/link.c) */
#define READY_MS 30000
#define RELOAD_MS 60000
#define CARRELD "carreld"
#define BASE_VARIABLE "CARREL_SERVE_DIR" /* of our own, for the next program */

int cli_find_programs(char self[PATH_MAX], char carreld[PATH_MAX], struct error *err)
{
	static const char *const places[] = { "", "../lib/carrel/", "../libexec/",
		"../libexec/carrel/" };
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, PATH_MAX - 1);
	if (len < 0)
		return fail_errno(err, "read '/proc/self/exe'");
	self[len] = 0;
	int dir = (int)(path_basename(self) - self);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (str_format(path, sizeof path, "%.*s%s" CARRELD, dir, self, places[i]) &&
			!access(path, X_OK) && realpath(path, carreld))
			return 0;
	return fail_hint(err, ERR_NOT_FOUND, "install carrel and carreld together: make install",
		"'" CARRELD "' is neither in '%.*s' nor in its ../lib/carrel or ../libexec",
		dir > 1 ? dir - 1 : dir, self);
}

/* What was typed holds instead of what the file says, key by key. */
void serve_take_options(
	const struct options *o, const char *base, struct arena *arena, struct config *config)
{
	const struct {
		const char *typed, *key, *option;
		const char **value;
		bool is_path;
	} texts[] = {
		{ o->tls_certificate, "serve.tls_cert", "--tls-cert", &config->tls_cert, true },
		{ o->tls_key, "serve.tls_key", "--tls-key", &config->tls_key, true },
		{ o->tls_client_ca, "serve.tls_client_ca", "--tls-client-ca",
			&config->tls_client_ca, true },
		{ o->log_format, "serve.log", "--log", &config->log_format, false },
		{ o->log_level, "serve.log_level", "--log-level", &config->log_level, false },
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].typed) {
			*texts[i].value = texts[i].is_path
						  ? path_normalize(arena, base, texts[i].typed)
						  : texts[i].typed;
			config_override(config, texts[i].key, texts[i].option, arena);
		}
	if (o->listens.count) {
		config->listen = o->listens;
		config_override(config, "serve.listen", "--listen", arena);
	}
	if (o->insecure) {
		config->insecure = true;
		config_override(config, "serve.insecure", "--insecure", arena);
	}
	if (o->idle_sandbox_ms) {
		config->idle_sandbox_ms = o->idle_sandbox_ms;
		config_override(config, "serve.idle_sandbox", "--idle-sandbox", arena);
	}
	if (o->captured_bytes) {
		config->captured_bytes = o->captured_bytes;
		config_override(config, "serve.captured_output", "--captured-output", arena);
	}
}

struct server {
	const struct options *options;
	const char *base; /* directory of relative paths */
	struct arena *arena;
	struct home *home;
	struct listeners listeners;
	struct launch_tls tls;
	bool is_shared; /* users besides the owner may connect to unix sockets */
	int lock;
	const struct handover *handover; /* or NULL: it begins */
};

/* A new listener, to be opened; NULL with *err: too many listeners. */
static struct listener *add_listener(struct server *server, struct error *err)
{
	struct listeners *all = &server->listeners;
	if (all->count == LISTENERS_MAX) {
		fail(err, ERR_LIMIT, "at most %d sockets can be served", LISTENERS_MAX);
		return NULL;
	}
	struct listener *listener = &all->items[all->count++];
	*listener = (struct listener)LISTENER_NONE;
	listener->is_shared = server->is_shared;
	return listener;
}

static int open_listener(struct server *server, const char *text, struct error *err)
{
	struct listen_address address;
	struct listener *listener;
	if (listen_parse(text, server->base, server->arena, &address, err) ||
		!(listener = add_listener(server, err)))
		return -1;
	return address.path ? listen_open(server->home, address.path, listener, err)
			    : listen_open_tcp(&address.tcp, listener, err);
}

/* Commands of this host use the first unix socket: keep it first. */
static int put_unix_first(struct server *server, struct error *err)
{
	struct listeners *all = &server->listeners;
	size_t first = 0;
	while (first < all->count && all->items[first].is_tcp)
		first++;
	if (first == all->count) {
		struct listener *own = add_listener(server, err);
		if (!own || listen_open(server->home, NULL, own, err))
			return -1;
	}
	struct listener moved = all->items[first];
	for (; first > 0; first--)
		all->items[first] = all->items[first - 1];
	all->items[0] = moved;
	for (size_t i = 0; i < all->count; i++)
		all->items[i].name = path_basename(all->items[i].path);
	return 0;
}

static int open_server(struct server *server, const struct config *config, struct error *err)
{
	const text_list *wanted = &config->listen;
	int taken = listen_take(&server->listeners, err);
	if (taken < 0 || daemon_lock(server->home, &server->lock, err))
		return -1;
	if (taken && server->options->listens.count)
		return fail(err, ERR_INVALID,
			"--listen can't be combined with a passed socket (LISTEN_FDS)");
	for (size_t i = 0; i < wanted->count; i++)
		if (open_listener(server, wanted->items[i], err))
			return -1;
	if (put_unix_first(server, err))
		return -1;
	return 0;
}

/* What this process had before it executed this program. */
static int take_server(struct server *server, struct error *err)
{
	const struct handover *handover = server->handover;
	struct listeners *all = &server->listeners;
	if (listen_take_over(&handover->listener, &all->items[all->count++], err))
		return -1;
	for (size_t i = 0; i < handover->also.count; i++)
		if (listen_take_over(&handover->also.items[i], &all->items[all->count++], err))
			return -1;
	server->lock = handover->lock;
	return capability_keep_over_exec(false, err);
}

/* carreld must be of the same version: they share messages and descriptors. */
static int check_version(const char *carreld, struct error *err)
{
	char said[64] = "";
	struct child child;
	if (child_fork(&child, CHILD_PIPE, SIGKILL, err))
		return -1;
	if (child.pid == 0) {
		if (dup2(child.pipe, STDOUT_FILENO) >= 0)
			execl(carreld, CARRELD, "--version", (char *)NULL);
		_exit(127);
	}
	auto_close int pipe = take_fd(&child.pipe);
	ssize_t len = fd_read_full(pipe, said, sizeof said - 1);
	int status = child_wait(&child);
	struct str version = str_trim((struct str){ said, len > 0 ? (size_t)len : 0 });
	if (status)
		return fail(err, ERR_FAILED, "'%s' does not start", carreld);
	if (!str_is(version, CARREL_VERSION))
		return fail_hint(err, ERR_CONFLICT, "install carrel and carreld together",
			"'%s' is version %.*s, and carrel is version %s", carreld, (int)version.len,
			version.data, CARREL_VERSION);
	return 0;
}

/* Before the sockets are there: as listen_check judges those that will be. */
static int check_exposure(
	const struct server *server, const struct config *config, struct error *err)
{
	const text_list *wanted = &config->listen;
	struct listeners all = { 0 };
	for (size_t i = 0; i < wanted->count && all.count < LISTENERS_MAX; i++) {
		struct listen_address address;
		if (listen_parse(wanted->items[i], server->base, server->arena, &address, err))
			return -1;
		struct listener *l = &all.items[all.count++];
		str_copy(l->path, sizeof l->path, wanted->items[i]);
		l->is_exposed = !address.path && !inet_address_is_loopback(&address.tcp);
	}
	return listen_check(&all, server->tls.certificate, config->insecure, err);
}

static int find_tls(struct server *server, const struct config *config, struct error *err)
{
	struct launch_tls *tls = &server->tls;
	*tls = (struct launch_tls){ config->tls_cert, config->tls_key, config->tls_client_ca };
	if (!tls->certificate != !tls->key || (tls->client_ca && !tls->certificate))
		return fail_hint(err, ERR_INVALID,
			"carrel tls init makes a certificate and its key",
			"TLS needs both a certificate (--tls-cert) and its key (--tls-key)");
	return launch_tls_check(tls, err);
}

static int read_config(struct server *server, struct config *config, struct error *err)
{
	if (shown_read(server->home->path, server->arena, config, err))
		return -1;
	serve_take_options(server->options, server->base, server->arena, config);
	return 0;
}

/* Whether this program could go on in the place of the daemon that started it. */
static int check(struct server *server, struct command *command, struct error *err)
{
	char self[PATH_MAX], carreld[PATH_MAX];
	struct config config;
	struct policy_operator policy;
	if (cli_find_programs(self, carreld, err) || check_version(carreld, err) ||
		read_config(server, &config, err) ||
		policy_file_operator(&config, server->arena, &policy, err) ||
		find_tls(server, &config, err) || check_exposure(server, &config, err))
		return -1;
	buf_text(&command->out, HANDOVER_OK);
	return 0;
}

static void describe_listeners(const struct server *server, struct launch_listener *out)
{
	for (size_t i = 0; i < server->listeners.count; i++) {
		const struct listener *from = &server->listeners.items[i];
		out[i] = (struct launch_listener){ from->fd, from->path, from->dir, from->is_own };
	}
}

static int announce(const struct server *server, const struct config *config, struct error *err)
{
	const struct daemon_said said = { .socket = server->listeners.items[0].path,
		.digest = config->digest,
		.base = server->base };
	return daemon_announce(server->lock, &said, err);
}

/* `ready` as in launch_options. *code is the exit code, once there is one. */
static int serve(struct server *server, int ready, int *code, struct error *err)
{
	char self[PATH_MAX], carreld[PATH_MAX];
	struct log_losses losses = { 0 };
	struct config config;
	/* Check the configuration before listening: clients must not connect to a daemon that then
	 * fails to start. */
	struct policy_operator policy;
	if (cli_find_programs(self, carreld, err) || read_config(server, &config, err) ||
		policy_file_operator(&config, server->arena, &policy, err) ||
		find_tls(server, &config, err) || check_exposure(server, &config, err))
		return -1;
	server->is_shared = config.access_uids.count > 0;
	if (server->handover ? take_server(server, err) : open_server(server, &config, err))
		return -1;
	if (listen_check(&server->listeners, server->tls.certificate, config.insecure, err) ||
		announce(server, &config, err))
		return -1;
	/* Holding the lock: of two daemons that start at once, only the one that serves publishes
	 * its policy. */
	if (policy_file_publish(server->home, &config, server->arena, err))
		return -1;
	/* The namespaces of a plain user's sandboxes are then ours and core's alike: core may look
	 * at what is in them, to count memory that processes share once. */
	if (geteuid() != 0 && !server->handover && namespace_enter_own(err))
		return -1;
	auto_close int notify = server->handover ? server->handover->notify : listen_notifier();
	struct launch_listener listeners[LISTENERS_MAX];
	describe_listeners(server, listeners);
	const struct launch_options options = {
		.home = server->home,
		.listener = listeners[0],
		.also = listeners + 1,
		.also_count = server->listeners.count - 1,
		.tls = server->tls,
		.handover = server->handover,
		.lock = server->lock,
		.carreld = carreld,
		.self = self,
		.ready = ready,
		.notify = notify,
		.release_after_ms = config.idle_sandbox_ms,
		.captured_bytes = config.captured_bytes,
		.config = &config,
		.log = { .fd = STDERR_FILENO,
			.json = !strcmp(config.log_format, "json"),
			.least = log_level_of(config.log_level, LOG_LEVEL_INFO),
			.role = "launcher",
			.losses = &losses },
	};
	for (size_t i = 0; i < server->listeners.count; i++)
		log_record(&options.log, LOG_LEVEL_INFO, "listening", "socket",
			server->listeners.items[i].path, (const char *)NULL);
	*code = launch_serve(&options);
	return 0;
}

/* The socket goes first: a command that finds none waits for the lock. */
static void close_server(struct server *server)
{
	for (size_t i = 0; i < server->listeners.count; i++)
		listen_done(server->home, &server->listeners.items[i]);
	daemon_retire(server->lock);
	fd_close(&server->lock);
}

/* One that has grown too long is put aside here, or by core while it runs (core/log.c). */
static int open_log(const struct home *home, int *log, struct error *err)
{
	struct stat st;
	auto_close int run = -1;
	if (home_open_directory(home, "run", &run, err))
		return -1;
	home_enter(home);
	if (!fstatat(run, "carrel.log", &st, AT_SYMLINK_NOFOLLOW) &&
		st.st_size > LOG_FILE_BYTES_MAX)
		renameat(run, "carrel.log", run, "carrel.log.1");
	home_leave(home);
	return daemon_open_file(home, "carrel.log", O_WRONLY | O_APPEND | O_CREAT, log, err);
}

static int leave_terminal(const struct home *home, struct error *err)
{
	auto_close int log = -1;
	if (open_log(home, &log, err))
		return -1;
	if (child_leave_streams(STDERR_FILENO) || dup2(log, STDERR_FILENO) < 0 || chdir("/"))
		return fail_errno(err, "detach from the terminal");
	umask(022);
	return 0;
}

/* The daemon itself. Writes to `ready` when it serves (one byte) or fails to start (a struct
 * error). */
static _Noreturn void be_background(struct server *server, int ready)
{
	struct error err = { 0 };
	int code = 125;
	setsid();
	struct child child; /* not the leader of the session: no terminal becomes ours */
	if (child_fork(&child, 0, 0, &err) || child.pid)
		_exit(child.pid < 0 ? 125 : 0);
	if (leave_terminal(server->home, &err) || serve(server, ready, &code, &err))
		(void)!fd_write_full(ready, &err, sizeof err);
	close_server(server);
	_exit(code);
}

/* What a line of the log is about: the error that it names, else all of it. */
static struct str reason_of(struct str line)
{
	static const char key[] = " error=\"";
	const char *at = memmem(line.data, line.len, key, sizeof key - 1);
	if (!at || line.data[line.len - 1] != '"')
		return line;
	at += sizeof key - 1;
	return (struct str){ at, (size_t)(line.data + line.len - 1 - at) };
}

/* The hint of that line, which stands before its error; "": it has none. */
static struct str hint_of(struct str line)
{
	static const char key[] = " hint=\"", end[] = "\" error=\"";
	const char *at = memmem(line.data, line.len, key, sizeof key - 1);
	const char *behind = memmem(line.data, line.len, end, sizeof end - 1);
	if (!at || !behind || at + sizeof key - 1 > behind)
		return STR("");
	at += sizeof key - 1;
	return (struct str){ at, (size_t)(behind - at) };
}

/* The last line of its log, when there is no other reason to show. That core has ended is not a
 * reason. */
static int quote_log(const struct home *home, struct error *err)
{
	static const char ended[] = "core has ended";
	char text[4096] = "";
	auto_close int log = -1;
	daemon_open_file(home, "carrel.log", O_RDONLY, &log, err);
	off_t end = lseek(log, 0, SEEK_END);
	off_t from = end > (off_t)sizeof text ? end - (off_t)sizeof text : 0;
	ssize_t len = end > 0 ? pread(log, text, sizeof text, from) : 0;
	struct str rest = { text, len > 0 ? (size_t)len : 0 }, line, last = STR("nothing");
	struct str hint = STR("");
	while (str_next(&rest, '\n', &line))
		if (str_trim(line).len && !memmem(line.data, line.len, ended, sizeof ended - 1)) {
			last = reason_of(line);
			hint = hint_of(line);
		}
	fail(err, ERR_FAILED, "the daemon of '%s' did not start: %.*s", home->path, (int)last.len,
		last.data);
	if (hint.len)
		return error_hint(err, "%.*s", (int)hint.len, hint.data);
	return error_hint(err, "see its log: %s/run/carrel.log", home->path);
}

static int await_ready(const struct home *home, int ready, struct error *err)
{
	struct error told;
	struct pollfd wait = { .fd = ready, .events = POLLIN };
	int found;
	do
		found = poll(&wait, 1, READY_MS);
	while (found < 0 && errno == EINTR);
	if (found != 1)
		return fail_hint(err, ERR_UNAVAILABLE, "see its log: run/carrel.log in the home",
			"the daemon of '%s' did not start serving within %d s", home->path,
			READY_MS / 1000);
	ssize_t len = fd_read_full(ready, &told, sizeof told);
	if (len == sizeof told) {
		*err = told;
		return -1;
	}
	return len == 1 ? 0 : quote_log(home, err);
}

static int start_background(struct server *server, struct error *err)
{
	struct child child;
	if (child_fork(&child, CHILD_PIPE, 0, err))
		return error_context(err, "start a daemon");
	if (child.pid == 0)
		be_background(server, child.pipe);
	auto_close int in = take_fd(&child.pipe);
	child_wait(&child);
	return await_ready(server->home, in, err);
}

/* The workspaces in which something runs, as far as the daemon can be asked. */
static void note_running(void *ctx, const struct json_value *item)
{
	struct command *command = ctx;
	const char *name = json_member_text(item, "name");
	if (name)
		vec_push(&command->arena, &command->operands,
			(const char *)arena_text(&command->arena, name));
}

static int check_idle(struct command *command, struct error *err)
{
	struct error unasked;
	char socket[4096];
	pid_t pid;
	auto_buf struct buf names = buf_empty(512);
	if (command->options.force ||
		daemon_find(&command->home, &pid, socket, sizeof socket, &unasked) != 1 ||
		!socket[0])
		return 0;
	command->remote.host = socket;
	if (remote_each(&command->remote, "/v1/workspaces?state=running", note_running, command,
		    &unasked)) {
		remote_close(&command->remote);
		if (unasked.code == ERR_UNAVAILABLE)
			return 0; /* it is about to start or to end */
		*err = unasked;
		error_hint(err, "carrel serve --stop --force stops the daemon all the same");
		return error_context(err, "ask the daemon what runs");
	}
	remote_close(&command->remote);
	size_t count = command->operands.count;
	for (size_t i = 0; i < count && i < 8; i++)
		buf_printf(&names, "%s'%s'", i ? ", " : "", command->operands.items[i]);
	if (!count)
		return 0;
	return fail_hint(err, ERR_CONFLICT,
		"carrel serve --stop --force ends them; carrel serve --reload does not",
		"commands run in %zu workspace%s: %s%s", count, count == 1 ? "" : "s", names.data,
		count > 8 ? ", ..." : "");
}

static int reload(struct command *command, struct error *err)
{
	pid_t pid;
	if (daemon_reload(&command->home, RELOAD_MS, &pid, err))
		return -1;
	if (!pid)
		return fail_hint(err, ERR_NOT_FOUND, "carrel serve starts one",
			"no daemon runs on '%s'", command->home.path);
	buf_printf(&command->out,
		command->json ? "{\"reloaded\":true,\"pid\":%d}\n"
			      : "reloaded the daemon (pid %d)\n",
		(int)pid);
	return 0;
}

static int stop(struct command *command, struct error *err)
{
	pid_t pid;
	if (check_idle(command, err))
		return -1;
	if (daemon_stop(&command->home, STOP_MS, &pid, err))
		return -1;
	if (command->json)
		buf_printf(&command->out, "{\"stopped\":%s,\"pid\":%d}\n", pid ? "true" : "false",
			(int)pid);
	else if (pid)
		buf_printf(&command->out, "stopped the daemon (pid %d)\n", (int)pid);
	else
		buf_printf(&command->out, "no daemon runs on '%s'\n", command->home.path);
	return 0;
}

/* The directory that this daemon was started in: one in the background leaves it, and a reload
 * reads the options once more. */
static int find_base(struct server *server, struct error *err)
{
	char here[PATH_MAX];
	const char *known = getenv(BASE_VARIABLE);
	if (!getcwd(here, sizeof here))
		return fail_errno(err, "find the working directory");
	bool is_again = getenv(HANDOVER_VARIABLE) && known && known[0] == '/';
	server->base = arena_text(server->arena, is_again ? known : here);
	setenv(BASE_VARIABLE, server->base, 1);
	unsetenv("CARREL_TOKEN"); /* no build needs it */
	return 0;
}

/* Before the home is opened: what was typed wrong changes nothing. */
static int check_listens(const struct server *server, struct error *err)
{
	const text_list *listens = &server->options->listens;
	struct listen_address address;
	for (size_t i = 0; i < listens->count; i++)
		if (listen_parse(listens->items[i], server->base, server->arena, &address, err))
			return -1;
	return 0;
}

static int run(struct command *command, struct error *err)
{
	struct options *options = &command->options;
	struct server server = {
		.options = options, .arena = &command->arena, .home = &command->home, .lock = -1
	};
	int code = 0;
	if (find_base(&server, err) || check_listens(&server, err))
		return -1;
	if (options->stop + options->reload + (options->listens.count || options->background) > 1)
		return fail(err, ERR_INVALID,
			"--stop and --reload can't be combined with each other, --listen or "
			"--background");
	if (options->force && !options->stop)
		return fail(err, ERR_INVALID, "--force is for --stop");
	if ((options->stop || options->reload) &&
		remote_refuse_far(&command->remote,
			options->stop ? "serve --stop" : "serve --reload",
			"run it on that machine; CARREL_HOST=local stands for the daemon of this "
			"home",
			err))
		return -1;
	bool is_check = handover_is_check();
	if (cli_open_home(command, err))
		return -1;
	if (options->stop)
		return stop(command, err);
	if (options->reload)
		return reload(command, err);
	if (is_check)
		return check(&server, command, err);
	struct handover handover;
	int taken = handover_take(server.arena, &handover, err);
	if (taken < 0)
		return -1;
	server.handover = taken ? &handover : NULL;
	if (options->background && !taken)
		return start_background(&server, err);
	if (serve(&server, -1, &code, err))
		code = -1;
	close_server(&server);
	return code;
}

static const struct arg_option table[] = {
	{ 0, "listen", ARG_LIST, AT(listens), "ADDRESS",
		"unix:PATH or ADDRESS:PORT to serve on, repeatable (the home's run/carrel.sock)" },
	{ 0, "tls-cert", ARG_TEXT, AT(tls_certificate), "FILE",
		"TLS on TCP addresses: the certificate, PEM; read again when it changes" },
	{ 0, "tls-key", ARG_TEXT, AT(tls_key), "FILE", "its key, PEM" },
	{ 0, "tls-client-ca", ARG_TEXT, AT(tls_client_ca), "FILE",
		"clients need a certificate of this CA, PEM" },
	{ 0, "insecure", ARG_FLAG, AT(insecure), NULL,
		"let other hosts reach a TCP address without TLS" },
	{ 0, "idle-sandbox", ARG_DURATION, AT(idle_sandbox_ms), "TIME",
		"end a workspace's sandbox after this time without an exec (5m)", NULL, 100 },
	{ 0, "captured-output", ARG_SIZE, AT(captured_bytes), "SIZE",
		"total size of captured output kept for REST responses (128M)", NULL, 1 << 20 },
	{ 0, "log", ARG_CHOICE, AT(log_format), "text|json", "format of log lines", "text|json" },
	{ 0, "log-level", ARG_CHOICE, AT(log_level), "LEVEL",
		"lowest level that is logged: debug (every request), info, warn or error (info)",
		"debug|info|warn|error" },
	{ 0, "stop", ARG_FLAG, AT(stop), NULL,
		"end the daemon of this home, and wait until it has ended; refused while commands "
		"run" },
	{ 0, "force", ARG_FLAG, AT(force), NULL, "with --stop: end commands that run" },
	{ 0, "reload", ARG_FLAG, AT(reload), NULL,
		"have the daemon of this home execute its program anew, after an upgrade; commands "
		"in the background go on" },
	{ 0, "background", ARG_FLAG, AT(background), NULL,
		"return as soon as it serves; it logs to run/carrel.log in the home" },
	{ 'o', "format", ARG_CHOICE, AT(format), "text|json",
		"output format of --stop, --reload and errors", "text|json" },
};
const struct arg_spec cli_serve = {
	.command = "serve",
	.summary = "run the daemon that serves workspaces over REST",
	.group = GROUP_DAEMON,
	.about = "Serves the workspaces of this home by a REST API on a unix socket, and over TCP "
		 "if --listen says so. Runs in the foreground; commands that need a daemon start "
		 "one in the background.",
	ARG_TABLE(table),
	.examples = "  carrel serve\n"
		    "  carrel serve --listen unix:/run/carrel/api.sock --log json\n"
		    "  carrel serve --listen 127.0.0.1:7070\n"
		    "  carrel serve --listen 0.0.0.0:7443 --tls-cert server.pem --tls-key key.pem\n"
		    "  carrel serve --stop\n"
		    "  carrel serve --reload\n",
	.run = run,
};
