/* Sandboxes: begun, answered for when they are up, ended, and every trace of them removed. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fault.h"
#include "base/fd.h"
#include "launch/handover.h"
#include "launch/internal.h"
#include "sandbox/native/held.h"
#include "proc/measure.h"

struct sandbox {
	struct launcher *launcher;
	char id[ID_LEN + 1];
	char request_id[ID_LEN + 1]; /* of the request that waits for it */
	pid_t pid;
	int setup; /* while it starts; else -1 */
	bool is_up, has_failed;
	struct start_parts parts;
	uint64_t start_tag, end_tag; /* of START and END that are to be answered; or 0 */
	int status;
	struct error *failure; /* why it didn't come up */
	struct sandbox *newer, *older;
	struct sandbox *next_killed;
	bool is_killed;
	struct count *count; /* of what it holds of the disk, while that is counted */
};

static void stop_counting(struct sandbox *sandbox, bool tell);

static struct str pid_key(const struct sandbox *sandbox)
{
	return (struct str){ (const char *)&sandbox->pid, sizeof sandbox->pid };
}

static struct sandbox *find_by_pid(const struct launcher *launcher, pid_t pid)
{
	return map_get(&launcher->sandboxes.pids, (struct str){ (const char *)&pid, sizeof pid });
}

/* The kernel kills the rest of the pid namespace; SIGCHLD reports the end. */
static void kill_sandbox(struct sandbox *sandbox)
{
	struct sandboxes *all = &sandbox->launcher->sandboxes;
	if (sandbox->is_killed || sandbox->pid <= 0)
		return;
	sandbox->parts.isolation->end(sandbox->pid);
	sandbox->is_killed = true;
	sandbox->next_killed = all->killed;
	all->killed = sandbox;
}

static void forget_killed(struct sandbox *sandbox)
{
	struct sandbox **at = &sandbox->launcher->sandboxes.killed;
	while (*at && *at != sandbox)
		at = &(*at)->next_killed;
	if (*at)
		*at = sandbox->next_killed;
}

void sandboxes_reap_killed(struct launcher *launcher)
{
	struct sandbox *next;
	for (struct sandbox *at = launcher->sandboxes.killed; at; at = next) {
		next = at->next_killed;
		launcher_reap(launcher, at->pid);
	}
}

static void set_request(struct sandbox *sandbox, const struct launch_message *head)
{
	str_copy(sandbox->request_id, sizeof sandbox->request_id, head->request_id);
}

static void log_sandbox(const struct sandbox *sandbox, enum log_level level, const char *message,
	const struct error *err)
{
	launcher_log(sandbox->launcher, level, message, sandbox->id, sandbox->request_id, err);
}

/* ---- known ones ---- */

static struct sandbox *sandboxes_add(struct launcher *launcher, const struct launch_message *head)
{
	struct sandboxes *all = &launcher->sandboxes;
	struct sandbox *sandbox = xzalloc(sizeof *sandbox);
	*sandbox = (struct sandbox){
		.launcher = launcher, .setup = -1, .start_tag = head->tag, .older = all->newest
	};
	str_copy(sandbox->id, sizeof sandbox->id, head->id);
	set_request(sandbox, head);
	*(all->newest ? &all->newest->newer : &all->oldest) = sandbox;
	all->newest = sandbox;
	map_add(&all->ids, str_from(sandbox->id), sandbox);
	return sandbox;
}

static void sandboxes_forget(struct sandbox *sandbox)
{
	struct sandboxes *all = &sandbox->launcher->sandboxes;
	if (all->list_next == sandbox)
		all->list_next = sandbox->newer;
	*(sandbox->newer ? &sandbox->newer->older : &all->newest) = sandbox->older;
	*(sandbox->older ? &sandbox->older->newer : &all->oldest) = sandbox->newer;
	map_remove(&all->ids, str_from(sandbox->id));
	stop_counting(sandbox, false);
	free(sandbox->failure);
	free(sandbox);
}

static void stop_receiving(struct sandbox *sandbox)
{
	if (sandbox->setup < 0)
		return;
	loop_unwatch(sandbox->launcher->loop, sandbox->setup);
	fd_close(&sandbox->setup);
	sandbox->launcher->sandboxes.starting--;
}

/* ---- the end of one ---- */

/* The last process of the sandbox is gone: releases what the sandbox held, answers START and END,
 * and tells core of an end that core did not ask for. */
static void sandboxes_finish(struct sandbox *sandbox)
{
	struct launcher *launcher = sandbox->launcher;
	struct launch_message ended = { .type = LAUNCH_ENDED, .value = sandbox->status };
	memcpy(ended.id, sandbox->id, sizeof ended.id);
	stop_counting(sandbox, true);
	start_release(launcher, sandbox->id, &sandbox->parts);
	if (sandbox->start_tag && sandbox->failure)
		link_send_failed(launcher, sandbox->start_tag, sandbox->failure);
	else if (sandbox->start_tag)
		link_refuse(launcher, sandbox->start_tag, ERR_CANCELED,
			"the sandbox was ended while it started");
	fault_point("launch_end_before_reply");
	if (sandbox->end_tag || !sandbox->has_failed) {
		ended.tag = sandbox->end_tag;
		link_send(launcher, &ended, NULL, 0, NULL, 0);
	}
	log_sandbox(sandbox, LOG_LEVEL_INFO, "sandbox ended", NULL);
	sandboxes_forget(sandbox);
	sandboxes_go_on(launcher); /* a list may have waited for this end */
	launcher_check_end(launcher);
}

static void fail_start(struct sandbox *sandbox, const struct error *err)
{
	sandbox->launcher->sandboxes.failed++;
	sandbox->has_failed = true;
	sandbox->failure = xzalloc(sizeof *sandbox->failure);
	*sandbox->failure = *err;
	log_sandbox(sandbox, LOG_LEVEL_WARN, "sandbox failed to start", err);
}

/* It died while it started: it may have said why. */
static void receive_last(struct sandbox *sandbox)
{
	struct error err;
	int seen[LAUNCH_FD_MAX];
	if (sandbox->setup < 0)
		return;
	int got = sandbox->parts.isolation->receive(sandbox->setup, seen, &err);
	stop_receiving(sandbox);
	if (sandbox->end_tag)
		return;
	if (got >= 0)
		fail(&err, ERR_CANCELED, "the sandbox was killed while it started");
	for (int i = 0; got > 0 && i < LAUNCH_FD_MAX; i++)
		fd_close(&seen[i]);
	fail_start(sandbox, &err);
}

bool sandbox_died(struct launcher *launcher, pid_t pid, int status)
{
	struct sandbox *sandbox = find_by_pid(launcher, pid);
	if (!sandbox)
		return false;
	receive_last(sandbox);
	if (sandbox->is_killed)
		forget_killed(sandbox);
	map_remove(&launcher->sandboxes.pids, pid_key(sandbox));
	if (sandbox->is_up)
		launcher->sandboxes.up--;
	sandbox->status = status;
	sandboxes_finish(sandbox);
	return true;
}

/* ---- the start of one ---- */

static void send_up(struct sandbox *sandbox, uint32_t type, uint64_t tag, int seen[LAUNCH_FD_MAX])
{
	struct launch_message head = {
		.type = type, .tag = tag, .value = (int32_t)sandbox->parts.limiter
	};
	int packed[LAUNCH_FD_MAX], count = 0;
	struct error err;
	memcpy(head.id, sandbox->id, sizeof head.id);
	if (start_open_counters(sandbox->launcher, &sandbox->parts, seen, &err))
		log_sandbox(sandbox, LOG_LEVEL_WARN, "a control group can't be watched", &err);
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		if (seen[i] >= 0) {
			head.present |= 1u << i;
			packed[count++] = seen[i];
		}
	link_send(sandbox->launcher, &head, NULL, 0, packed, count);
	for (int i = 0; i < count; i++)
		fd_close(&packed[i]);
}

static void on_setup(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct sandbox *sandbox = ctx;
	struct sandboxes *all = &sandbox->launcher->sandboxes;
	struct error err;
	int seen[LAUNCH_FD_MAX];
	int got = sandbox->parts.isolation->receive(fd, seen, &err);
	if (got == 0)
		return;
	stop_receiving(sandbox);
	if (got < 0) {
		fail_start(sandbox, &err);
		kill_sandbox(sandbox);
		return;
	}
	sandbox->is_up = true;
	all->up++;
	all->started++;
	log_sandbox(sandbox, LOG_LEVEL_INFO, "sandbox is up", NULL);
	fault_point("launch_started_before_reply");
	send_up(sandbox, LAUNCH_STARTED, sandbox->start_tag, seen);
	sandbox->start_tag = 0;
}

void sandbox_start(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	struct sandboxes *all = &launcher->sandboxes;
	const struct launch_message *head = &packet->head;
	struct error err;
	if (map_get(&all->ids, str_from(head->id))) {
		link_refuse(launcher, head->tag, ERR_CONFLICT,
			"the sandbox already exists, or is ending");
		return;
	}
	struct sandbox *sandbox = sandboxes_add(launcher, head);
	fault_point("launch_start_before_clone");
	int failed = start_begin(
		launcher, packet, fds, &sandbox->parts, &sandbox->pid, &sandbox->setup, &err);
	if (!failed) {
		map_add(&all->pids, pid_key(sandbox), sandbox);
		all->starting++;
		if (!loop_watch(launcher->loop, sandbox->setup, EPOLLIN, on_setup, sandbox, &err))
			return;
		fail_start(sandbox, &err);
		kill_sandbox(sandbox);
		return;
	}
	fail_start(sandbox, &err);
	sandboxes_finish(sandbox);
}

/* ---- on demand ---- */

void sandbox_end(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	const struct launch_message *head = &packet->head;
	struct sandbox *sandbox = map_get(&launcher->sandboxes.ids, str_from(head->id));
	if (!sandbox || sandbox->end_tag) {
		link_refuse(launcher, head->tag, sandbox ? ERR_CONFLICT : ERR_NOT_FOUND,
			sandbox ? "the sandbox is already being ended"
				: "there is no such sandbox");
		return;
	}
	sandbox->end_tag = head->tag;
	set_request(sandbox, head);
	kill_sandbox(sandbox);
}

/* ---- the disk space that it holds outside its tree ---- */

struct count {
	struct sandbox *sandbox;
	uint64_t tag;
	struct held_look look;
	struct held held;
	struct measure measure;
};

static void free_count(struct sandbox *sandbox)
{
	struct count *count = sandbox->count;
	sandbox->count = NULL;
	fd_close(&count->look.proc);
	free(count);
}

/* Core is gone, or the sandbox is. */
static void stop_counting(struct sandbox *sandbox, bool tell)
{
	if (!sandbox->count)
		return;
	uint64_t tag = sandbox->count->tag;
	measure_stop(&sandbox->count->measure);
	free_count(sandbox);
	if (tell)
		link_refuse(sandbox->launcher, tag, ERR_NOT_FOUND, "the sandbox has ended");
}

static uint64_t find_held(void *ctx)
{
	struct count *count = ctx;
	const struct held_look *look = &count->look;
	held_count(look->proc, look->places, look->place_count, &count->held);
	return 0;
}

static void on_held(void *ctx, bool ok, uint64_t none)
{
	struct count *count = ctx;
	struct sandbox *sandbox = count->sandbox;
	struct launch_message head = { .type = LAUNCH_HELD_ARE,
		.tag = count->tag,
		.held = { count->held.bytes, count->held.hidden, count->held.written,
			count->held.has_written } };
	struct error err;
	memcpy(head.id, sandbox->id, sizeof head.id);
	free_count(sandbox);
	if (ok) {
		link_send(sandbox->launcher, &head, NULL, 0, NULL, 0);
		return;
	}
	fail(&err, ERR_UNAVAILABLE, "the files of sandbox '%s' can't be counted", sandbox->id);
	link_send_failed(sandbox->launcher, head.tag, &err);
}

static int begin_count(struct sandbox *sandbox, struct count *count, struct error *err)
{
	bool has_dir;
	if (grants_have_dir(sandbox->launcher, sandbox->id, &has_dir, err))
		return -1;
	return sandbox->parts.isolation->measure(sandbox->pid, !has_dir, &count->look, err);
}

void sandbox_count_held(
	struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	const struct launch_message *head = &packet->head;
	struct sandbox *sandbox = map_get(&launcher->sandboxes.ids, str_from(head->id));
	struct error err;
	if (!sandbox || !sandbox->is_up || sandbox->is_killed || sandbox->count) {
		bool is_counted = sandbox && sandbox->count;
		link_refuse(launcher, head->tag, is_counted ? ERR_CONFLICT : ERR_NOT_FOUND,
			is_counted ? "the files of the sandbox are already being counted"
				   : "there is no such sandbox");
		return;
	}
	struct count *count = xzalloc(sizeof *count);
	*count = (struct count){ .sandbox = sandbox, .tag = head->tag, .look = { .proc = -1 } };
	sandbox->count = count;
	if (begin_count(sandbox, count, &err)) {
		free_count(sandbox);
		link_send_failed(launcher, head->tag, &err);
		return;
	}
	count->measure = (struct measure){ .loop = launcher->loop,
		.find = find_held,
		.found = on_held,
		.ctx = count,
		.keep = { count->look.proc },
		.keep_count = 1,
		.detail = &count->held,
		.detail_len = sizeof count->held };
	measure_start(&count->measure);
}

void sandboxes_list(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	uint64_t tag = packet->head.tag;
	struct sandboxes *all = &launcher->sandboxes;
	if (all->list_tag) {
		link_refuse(launcher, tag, ERR_CONFLICT, "another list is being sent");
		return;
	}
	all->list_tag = tag;
	all->list_next = all->oldest;
	sandboxes_go_on(launcher);
}

/* No descriptor of theirs is kept: they are found again, one by one, as core takes them. */
void sandboxes_go_on(struct launcher *launcher)
{
	struct sandboxes *all = &launcher->sandboxes;
	struct error err;
	while (all->list_tag && link_has_room(launcher)) {
		struct sandbox *sandbox = all->list_next;
		if (!sandbox) {
			struct launch_message done = { .type = LAUNCH_DONE, .tag = all->list_tag };
			all->list_tag = 0;
			link_send(launcher, &done, NULL, 0, NULL, 0);
			return;
		}
		int seen[LAUNCH_FD_MAX];
		bool is_found =
			sandbox->is_up && !sandbox->parts.isolation->find(sandbox->pid, seen, &err);
		/* Core could do nothing with a sandbox that can't be looked into. */
		if (sandbox->is_up && !is_found && !sandbox->is_killed) {
			log_sandbox(
				sandbox, LOG_LEVEL_WARN, "a sandbox can't be looked into", &err);
			kill_sandbox(sandbox);
		}
		/* Core takes what is not in the list for ended, and may start it at once: the list
		 * waits for the end of such a sandbox, and of one whose start the core before had
		 * asked for. */
		if (!is_found && sandbox->is_killed)
			return;
		all->list_next = sandbox->newer;
		if (is_found)
			send_up(sandbox, LAUNCH_RUNNING, all->list_tag, seen);
	}
}

void sandboxes_forget_core(struct launcher *launcher)
{
	launcher->sandboxes.list_tag = 0;
	for (struct sandbox *at = launcher->sandboxes.oldest; at; at = at->newer) {
		bool is_starting = at->start_tag != 0;
		at->start_tag = at->end_tag = 0;
		stop_counting(at, false);
		/* The next core asks what runs, and must not be told of it later: not of its end,
		 * and not that it came up when it was already killed. */
		if (is_starting) {
			stop_receiving(at);
			kill_sandbox(at);
		}
		at->has_failed |= is_starting;
	}
}

void sandboxes_end_all(struct launcher *launcher)
{
	for (struct sandbox *at = launcher->sandboxes.oldest; at; at = at->newer)
		kill_sandbox(at);
}

bool sandboxes_are_gone(const struct launcher *launcher)
{
	return !launcher->sandboxes.oldest;
}

bool sandboxes_are_settled(const struct launcher *launcher)
{
	for (const struct sandbox *at = launcher->sandboxes.oldest; at; at = at->newer)
		if (!at->is_up || at->is_killed || at->count)
			return false;
	return true;
}

/* Its place in the list, as describe() of reload.c prints it. */
static int pin_index(const struct launcher *launcher, const struct pin *wanted)
{
	int index = 0;
	for (const struct pin *pin = launcher->pins; pin; pin = pin->next, index++)
		if (pin == wanted)
			return index;
	return -1;
}

void sandboxes_hand_over(struct launcher *launcher, struct arena *arena, struct handover *h)
{
	for (const struct sandbox *at = launcher->sandboxes.oldest; at; at = at->newer) {
		const struct start_parts *parts = &at->parts;
		struct handover_sandbox s = { .pid = at->pid,
			.isolation = parts->isolation->name,
			.limiter = parts->limiter,
			.uid = parts->uid,
			.has_socket = parts->has_socket,
			.has_cgroup = parts->has_cgroup,
			.has_cpu = parts->has_cpu,
			.cgroup = parts->cgroup };
		memcpy(s.id, at->id, sizeof s.id);
		for (size_t i = 0; i < LAUNCH_TREES_MAX; i++)
			s.pins[i] = pin_index(launcher, parts->environments[i]);
		vec_push(arena, &h->sandboxes, s);
	}
}

static int take_over(struct launcher *launcher, const struct handover_sandbox *s,
	struct pin *const *pins, struct error *err)
{
	struct launch_message head = { 0 };
	memcpy(head.id, s->id, sizeof head.id);
	struct sandbox *sandbox = sandboxes_add(launcher, &head);
	struct start_parts *parts = &sandbox->parts;
	sandbox->pid = s->pid;
	sandbox->is_up = true;
	launcher->sandboxes.up++;
	map_add(&launcher->sandboxes.pids, pid_key(sandbox), sandbox);
	*parts = (struct start_parts){ .limiter = s->limiter,
		.uid = s->uid,
		.has_socket = s->has_socket,
		.has_cgroup = s->has_cgroup,
		.has_cpu = s->has_cpu,
		.cgroup = s->cgroup };
	for (int i = 0; i < LAUNCH_FD_MAX; i++)
		parts->counters[i] = -1;
	for (size_t i = 0; i < LAUNCH_TREES_MAX; i++)
		if (s->pins[i] >= 0) {
			parts->environments[i] = pins[s->pins[i]];
			parts->environments[i]->users++;
		}
	if (s->uid)
		slots_keep(&launcher->slots, s->uid);
	return isolation_find(s->isolation, &parts->isolation, err);
}

int sandboxes_take_over(struct launcher *launcher, const struct handover *h, struct error *err)
{
	auto_free struct pin **pins = xzalloc((h->pins.count + 1) * sizeof *pins);
	for (size_t i = 0; i < h->pins.count; i++)
		pins[i] = pin_take_over(launcher, h->pins.items[i]);
	for (size_t i = 0; i < h->sandboxes.count; i++)
		if (take_over(launcher, &h->sandboxes.items[i], pins, err))
			return -1;
	return 0;
}

void sandboxes_init(struct launcher *launcher)
{
	map_init(&launcher->sandboxes.ids, NULL);
	map_init(&launcher->sandboxes.pids, NULL);
}

void sandboxes_done(struct launcher *launcher)
{
	struct sandbox *newer;
	for (struct sandbox *at = launcher->sandboxes.oldest; at; at = newer) {
		newer = at->newer;
		sandboxes_forget(at);
	}
	map_done(&launcher->sandboxes.ids);
	map_done(&launcher->sandboxes.pids);
}
