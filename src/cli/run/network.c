#include "cli/run/network.h"

#include <poll.h>
#include <sys/epoll.h>
#include "base/clock.h"
#include "base/fd.h"
#include "envs/builder/process.h"
#include "envs/registries.h"
#include "linux/home.h"
#include "proc/loop.h"

#define PATIENCE_MS 10000

/* ---- options ---- */

/* Checked. Where none is given *network is empty. */
static int read_options(
	const struct options *options, struct workspace_network *network, struct error *err)
{
	*network = (struct workspace_network){
		.mode = options->net, .allow = options->allow_domains, .deny = options->deny_domains
	};
	for (size_t i = 0; i < network->allow.count; i++)
		if (workspace_check_allow(network->allow.items[i], err))
			return error_context(err, "--allow-domain");
	for (size_t i = 0; i < network->deny.count; i++)
		if (workspace_check_deny(network->deny.items[i], err))
			return error_context(err, "--deny-domain");
	return 0;
}

int network_print_options(const struct options *options, struct json *j, struct error *err)
{
	struct workspace_network network;
	if (read_options(options, &network, err))
		return -1;
	if (network.mode || network.allow.count || network.deny.count)
		record_print_given(j, "network", &workspace_network_record, &network);
	return 0;
}

/* ---- carrel run ---- */

static void take_texts(
	const struct json_value *answer, const char *key, struct arena *arena, text_list *texts)
{
	const struct json_value *at = json_member_first(answer, key);
	for (; at; at = at->next)
		if (at->kind == JSON_STRING)
			vec_push(arena, texts, at->string.data);
}

/* carrel-build asks the clients, and the index where its files are. */
static int ask_registries(
	struct command *command, struct registries_found *found, struct error *err)
{
	struct arena *arena = &command->arena;
	struct json_value *answer;
	auto_buf struct buf said = buf_empty(BUF_MAX_DEFAULT);
	char *const argv[] = { arena_text(arena, BUILD_PROGRAM), arena_text(arena, "registries"),
		arena_text(arena, "--format=json"), NULL };
	int code;
	if (build_run(argv, &said, &code, err))
		return -1;
	if (code || json_read((struct str){ said.data, said.len }, arena, &answer, err))
		return fail_hint(err, ERR_UNAVAILABLE,
			"carrel env registries shows why; --allow-domain HOST names a host",
			"the package indexes of this host are not known");
	*found = (struct registries_found){ 0 };
	take_texts(answer, "indexes", arena, &found->indexes);
	take_texts(answer, "hosts", arena, &found->hosts);
	take_texts(answer, "variables", arena, &found->variables);
	return 0;
}

/* What is known already is found without another process. */
static int find_registries(struct command *command, struct run_network *network, struct error *err)
{
	struct registries_found found;
	if (cli_open_store(command, err))
		return -1;
	const struct builder quick = { .store = &command->store };
	if (registries_find(&quick, &command->arena, &found, err) &&
		ask_registries(command, &found, err))
		return -1;
	network->registries = found.variables;
	network->indexes = found.indexes;
	network->hosts = found.hosts;
	return 0;
}

/* As core does for a workspace. */
static int settle_network(const struct policy_stack *policies, struct arena *arena,
	struct run_network *network, struct error *err)
{
	struct workspace_network *asked = &network->asked;
	policy_stack_bounds(policies, arena, &network->bounds);
	if (!asked->mode && !asked->allow.count && !asked->deny.count)
		policy_stack_domains(policies, arena, &asked->allow);
	if (workspace_network_settle(asked, err))
		return -1;
	if (network_bounds_close(&network->bounds))
		*asked = (struct workspace_network){ .mode = network_mode_name(NETWORK_NONE) };
	return 0;
}

int run_network_prepare(struct command *command, const struct policy_stack *policies,
	struct run_network *network, struct plan_options *options, struct error *err)
{
	if (read_options(&command->options, &network->asked, err) ||
		settle_network(policies, &command->arena, network, err))
		return -1;
	network->plan = (struct plan_network){ .mode = workspace_network_mode(&network->asked),
		.allow = network->asked.allow,
		.deny = network->asked.deny };
	plan_network_ports(&network->asked.allow, &command->arena, &network->plan);
	options->network = &network->plan;
	if (workspace_network_has_registries(&network->asked) &&
		find_registries(command, network, err))
		return -1;
	const struct policy_registries found = { network->registries, network->indexes,
		network->hosts };
	struct policy_registries left = policy_stack_registries(policies, &found, &command->arena);
	network->registries = left.variables;
	network->indexes = left.indexes;
	network->hosts = left.hosts;
	policy_stack_meter(policies, &left, &command->arena, &network->meter);
	plan_network_ports(&network->indexes, &command->arena, &network->plan);
	plan_network_ports(&network->hosts, &command->arena, &network->plan);
	options->registries = &network->registries;
	return 0;
}

static int post_rules(struct run_network *network, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const struct network_settings *settings = network->settings;
	uint16_t ports[NETWORK_SETTINGS_PORTS_MAX];
	struct egress_rules rules = { .mode = network->plan.mode,
		.deny = network->asked.deny,
		.trust = network->indexes,
		.ports = ports,
		.port_count = network_settings_ports(settings, ports),
		.hosts = settings->hosts,
		.ranges = settings->ranges,
		.bounds = network->bounds,
		.meter = network->meter };
	for (size_t i = 0; i < network->asked.allow.count; i++)
		if (strcmp(network->asked.allow.items[i], WORKSPACE_REGISTRIES) != 0)
			vec_push(&arena, &rules.allow, network->asked.allow.items[i]);
	for (size_t i = 0; i < network->hosts.count; i++)
		vec_push(&arena, &rules.allow, network->hosts.items[i]);
	return egress_post_rules(&network->egress, &rules, err);
}

int run_network_begin(
	struct run_network *network, const struct network_settings *settings, struct error *err)
{
	if (!plan_network_has_names(&network->plan))
		return 0;
	network->settings = settings;
	network->policy = (struct egress_policy){ .limits = { .connections = settings->connections,
							  .idle_ms = settings->idle_ms,
							  .bandwidth = settings->bandwidth },
		.is_settled = 1 };
	if (forward_proxies_find(&network->policy.proxies, err) ||
		build_find_program(network->program, err))
		return error_context(err, "open the network");
	return 0;
}

static void note_failure(struct run_network *network, const struct error *err)
{
	if (!network->has_failed)
		network->failure = *err;
	network->has_failed = true;
}

static int start_role(struct run_network *network, struct error *err)
{
	uid_t uid;
	gid_t gid;
	home_find_owner(&uid, &gid);
	if (egress_start(network->program, uid, gid, &network->role, err) ||
		egress_begin(network->role.service, &network->policy, &network->egress, err) ||
		post_rules(network, err))
		return -1;
	network->due = 2;
	/* The last first: the role answers a query that waits as soon as it has the resolver's
	 * socket, and with an IPv6 address only if it has the sockets of names by then. */
	for (size_t i = network->listener_count; i--; network->due++) {
		const struct run_listener *listener = &network->listeners[i];
		if (egress_post_listener(&network->egress, listener->kind, listener->fd, err))
			return -1;
	}
	return 0;
}

static void close_listeners(struct run_network *network)
{
	while (network->listener_count)
		fd_close(&network->listeners[--network->listener_count].fd);
}

static void on_first_connection(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct run_network *network = ctx;
	struct error err;
	for (size_t i = 0; i < network->listener_count; i++)
		loop_unwatch(loop, network->listeners[i].fd);
	if (start_role(network, &err))
		note_failure(network, &err);
	/* The role has its own. Without a role the connections that wait are reset. */
	close_listeners(network);
}

void run_network_listening(
	void *ctx, struct loop *loop, const struct plan_listener *listener, int fd)
{
	static const enum egress_listener kinds[] = { [LISTENER_PROXY] = EGRESS_PROXY,
		[LISTENER_RESOLVER] = EGRESS_RESOLVER,
		[LISTENER_RESOLVER_TCP] = EGRESS_RESOLVER,
		[LISTENER_NAMES] = EGRESS_NAMES };
	struct run_network *network = ctx;
	auto_close int inside = fd;
	struct error err;
	if (loop_watch(loop, inside, EPOLLIN, on_first_connection, network, &err)) {
		note_failure(network, &err);
		return;
	}
	network->listeners[network->listener_count++] =
		(struct run_listener){ kinds[listener->kind], take_fd(&inside) };
}

/* The answers to everything that was posted; the last one has the counters. */
static int read_answers(struct run_network *network, struct error *err)
{
	uint64_t until = clock_monotonic_ms() + PATIENCE_MS;
	struct egress_news news;
	while (network->due) {
		int got = egress_read(&network->egress, &news, err);
		if (got < 0)
			return -1;
		if (got == 0) {
			struct pollfd channel = { .fd = network->egress.channel, .events = POLLIN };
			uint64_t now = clock_monotonic_ms();
			if (now >= until)
				return fail(
					err, ERR_UNAVAILABLE, "the egress process does not answer");
			poll(&channel, 1, (int)(until - now));
			continue;
		}
		if (news.is_record)
			continue;
		if (news.failure.code)
			note_failure(network, &news.failure);
		network->status = news.status;
		network->due--;
	}
	return 0;
}

int run_network_end(struct run_network *network, struct error *err)
{
	bool is_used = network->role.pid > 0 && !network->has_failed;
	if (is_used && egress_post_look(&network->egress, err))
		return -1;
	network->due += is_used;
	if (is_used && read_answers(network, err))
		return -1;
	if (network->has_failed) {
		*err = network->failure;
		return error_context(err, "the network of the command");
	}
	return 0;
}

void run_network_done(struct run_network *network)
{
	close_listeners(network);
	egress_drop(&network->egress);
	egress_stop(&network->role);
}

void run_network_print(const struct run_network *network, struct json *j)
{
	const struct egress_status *status = &network->status;
	json_object(j, "network");
	json_text(j, "mode", network_mode_name(network->plan.mode));
	json_u64(j, "connections", status->connections);
	json_u64(j, "refused", status->refused);
	json_u64(j, "failed", status->failed);
	json_u64(j, "received_bytes", status->bytes_in);
	json_u64(j, "sent_bytes", status->bytes_out);
	if (status->last_refused[0])
		json_text(j, "last_refused", status->last_refused);
	if (status->last_failure[0])
		json_text(j, "last_failure", status->last_failure);
	json_end(j);
}

/* "example.com" of "example.com:443", which its entry needs no port for. */
static void print_entry(char out[NETWORK_HOST_SIZE + 8], const char *target)
{
	size_t len = strlen(target);
	str_copy(out, NETWORK_HOST_SIZE + 8, target);
	if ((len > 4 && strcmp(target + len - 4, ":443") == 0) ||
		(len > 3 && strcmp(target + len - 3, ":80") == 0))
		*strrchr(out, ':') = '\0';
}

void run_network_explain(const struct run_network *network, char *const *argv)
{
	const struct egress_status *status = &network->status;
	char entry[NETWORK_HOST_SIZE + 8];
	if (!plan_network_has_names(&network->plan)) {
		if (network_is_wanted(argv))
			cli_say("hint: this sandbox has no network: --allow-domain registries lets "
				"it reach package indexes, --net open all public hosts");
		return;
	}
	if (status->last_refused[0]) {
		print_entry(entry, status->last_refused);
		cli_say("hint: refused: %s; allow it with --allow-domain %s", status->last_refused,
			entry);
	} else if (status->last_failure[0])
		cli_say("hint: not reached: %s", status->last_failure);
}

/* ---- which commands get a network ---- */

static const struct network_client {
	const char *name;
	const char *verbs; /* that need one; "": all do */
} clients[] = {
	{ "pip", "install download index" },
	{ "pip3", "install download index" },
	{ "uv", "add install sync lock" },
	{ "uvx", "" },
	{ "npm", "install i ci add update view publish" },
	{ "npx", "" },
	{ "bun", "install i add update" },
	{ "bunx", "" },
	{ "pnpm", "install i add update" },
	{ "yarn", "install add upgrade" },
	{ "cargo", "install fetch update add search build" },
	{ "go", "get install mod" },
	{ "git", "clone fetch pull push ls-remote" },
	{ "curl", "" },
	{ "wget", "" },
	{ "apt", "install update" },
	{ "apt-get", "install update" },
};

static bool has_word(const char *words, struct str word)
{
	struct str rest = str_from(words), one;
	while (str_next(&rest, ' ', &one))
		if (str_equal(one, word))
			return true;
	return false;
}

static const struct network_client *find_client(struct str word)
{
	const char *slash = memrchr(word.data, '/', word.len);
	if (slash)
		word = (struct str){ slash + 1, (size_t)(word.data + word.len - slash - 1) };
	for (size_t i = 0; i < sizeof clients / sizeof *clients; i++)
		if (str_is(word, clients[i].name))
			return &clients[i];
	return NULL;
}

bool network_is_wanted(char *const *argv)
{
	const struct network_client *client = NULL;
	for (; *argv; argv++) {
		/* A text of `sh -c` has several. */
		const char *at = *argv;
		while (*(at += strspn(at, " \t\n;|&()\"'"))) {
			struct str word = { at, strcspn(at, " \t\n;|&()\"'") };
			if (client && has_word(client->verbs, word))
				return true;
			const struct network_client *found = find_client(word);
			if (found && !found->verbs[0])
				return true;
			client = found ? found : client;
			at += word.len;
		}
	}
	return false;
}
