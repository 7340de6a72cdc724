#include "core/access/audit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "audit/serve.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "core/access/audit_records.h"
#include "core/internal.h"

#define QUEUE_MAX ((size_t)64 << 20) /* records beyond it are dropped, whatever is configured */
#define BEHIND_MAX ((size_t)4 << 20) /* bytes that could not be sent yet */
#define AWAY_MAX_MS 5000	     /* of the process that writes */
#define START_AGAIN_MS 200
#define END_MS 5000

struct audit {
	struct core *core;
	bool drops;
	int socket;		/* or -1 */
	bool has_begun;		/* the process has opened the log */
	bool was_begun;		/* this one, or one before it */
	uint64_t away_ms;	/* monotonic: since then it is not there; 0: it is */
	struct buf out;		/* messages that are not known to be written */
	size_t sent;		/* bytes of it */
	uint64_t number, shift; /* of the last message; ahead of the seq of its line */
	uint64_t taken, records, dropped, dropped_told, role_dropped;
	struct audit_report report;
	size_t report_len; /* of it, received */
	struct buf body;
	struct loop_timer *again;
	struct audit_reading *readings;
	int dir; /* <home>/audit */
};

/* ---- the process ---- */

static void end_process(struct audit *a)
{
	if (a->socket >= 0)
		loop_unwatch(a->core->loop, a->socket);
	fd_close(&a->socket);
	a->has_begun = false;
	if (!a->away_ms)
		a->away_ms = clock_monotonic_ms();
}

static void ask_for_process(struct loop *loop, void *ctx);

static void on_socket(struct loop *loop, int fd, uint32_t events, void *ctx);

static int use_socket(struct audit *a, int socket, struct error *err)
{
	a->socket = socket;
	a->sent = a->report_len = 0;
	a->role_dropped = 0;
	if (loop_watch(a->core->loop, socket, EPOLLIN | EPOLLOUT | EPOLLET, on_socket, a, err)) {
		fd_close(&a->socket);
		return -1;
	}
	return 0;
}

static void ask_later(struct audit *a)
{
	if (!a->again)
		a->again = loop_after(a->core->loop, START_AGAIN_MS, ask_for_process, a);
}

static void on_started(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct audit *a = ctx;
	struct error err;
	bool is_started = packet && packet->head.type == LAUNCH_AUDIT_STARTED && fds[0] >= 0;
	if (!packet) /* the launcher is gone, and core ends */
		return;
	if (!is_started)
		launcher_failure(packet, &err);
	if (!is_started || use_socket(a, fds[0], &err)) {
		log_record(&a->core->log, LOG_LEVEL_ERROR,
			"the process that writes the audit log can't be started", "error", err.text,
			NULL);
		ask_later(a);
	}
}

static void ask_for_process(struct loop *loop, void *ctx)
{
	struct audit *a = ctx;
	struct launch_message head = { .type = LAUNCH_AUDIT };
	a->again = NULL;
	launcher_ask(&a->core->launcher, &head, NULL, 0, NULL, 0, on_started, a);
}

/* ---- records out ---- */

static void send_records(struct audit *a)
{
	while (a->has_begun && a->sent < a->out.len) {
		ssize_t len = send(a->socket, a->out.data + a->sent, a->out.len - a->sent,
			MSG_DONTWAIT | MSG_NOSIGNAL);
		if (len < 0) /* full; or gone, which on_socket finds out */
			return;
		a->sent += (size_t)len;
	}
}

/* The message at `at` of the queue. */
static struct audit_message message_at(const struct audit *a, size_t at)
{
	struct audit_message head;
	memcpy(&head, a->out.data + at, sizeof head);
	return head;
}

/* Forgets messages up to that number. */
static void forget_taken(struct audit *a, uint64_t number)
{
	size_t at = 0;
	while (at < a->out.len) {
		struct audit_message head = message_at(a, at);
		if (head.number > number)
			break;
		at += sizeof head + head.len;
	}
	buf_drop_front(&a->out, at);
	a->sent -= at < a->sent ? at : a->sent;
	if (number > a->taken)
		a->taken = number;
}

struct audit_actor audit_actor(const struct request *request)
{
	struct audit_actor actor = { .door = request->door };
	char name[PRINCIPAL_NAME_SIZE];
	str_copy(actor.principal, sizeof actor.principal, access_name(request->principal, name));
	str_copy(actor.request_id, sizeof actor.request_id, request->id);
	if (request->principal->address)
		str_copy(actor.address, sizeof actor.address, request->principal->address);
	return actor;
}

/* The workspace that a record is about, which may be gone; NULL: none. */
struct audit_object {
	const char *id, *name;
};
static const struct audit_object nothing;

static void begin_body(struct audit *a, struct json *j, const struct audit_actor *actor,
	const char *type, const struct audit_object *object)
{
	const struct audit_body body = { .time_ms = clock_now_ms(),
		.type = type,
		.principal = actor->principal,
		.workspace = object->id,
		.workspace_name = object->name,
		.request_id = actor->request_id[0] ? actor->request_id : NULL,
		.door = actor->door,
		.address = actor->address[0] ? actor->address : NULL };
	buf_clear(&a->body);
	*j = json_to(&a->body, false);
	audit_body_begin(j, &body);
}

/* Puts the body that was printed into the queue; is_first: before all others. */
static void queue_body(struct audit *a, bool is_first)
{
	struct audit_message head = { .len = (uint32_t)a->body.len, .number = ++a->number };
	if (a->out.len + a->body.len > QUEUE_MAX) {
		a->number--;
		a->dropped++;
		return;
	}
	if (!is_first) {
		buf_append(&a->out, &head, sizeof head);
		buf_append(&a->out, a->body.data, a->body.len);
		return;
	}
	auto_buf struct buf behind = buf_empty(SIZE_MAX);
	buf_append(&behind, a->out.data, a->out.len);
	buf_clear(&a->out);
	buf_append(&a->out, &head, sizeof head);
	buf_append(&a->out, a->body.data, a->body.len);
	buf_append(&a->out, behind.data, behind.len);
}

void audit_write(const struct core *core, const struct request *request, const char *type,
	const struct core_workspace *w, void (*print)(struct json *j, const void *ctx),
	const void *ctx)
{
	if (!core->audit)
		return;
	struct audit_actor actor = audit_actor(request);
	audit_write_as(core, &actor, type, w, print, ctx);
}

void audit_leave_out(const struct core *core)
{
	if (core->audit)
		core->audit->dropped++;
}

static void write_record(struct audit *a, const struct audit_actor *actor, const char *type,
	const struct audit_object *object, void (*print)(struct json *j, const void *ctx),
	const void *ctx)
{
	struct json j;
	begin_body(a, &j, actor, type, object);
	if (print)
		print(&j, ctx);
	audit_body_end(&j);
	if (a->body.overflow) {
		begin_body(a, &j, actor, type, object);
		json_bool(&j, "is_too_large", true);
		audit_body_end(&j);
	}
	a->records++;
	queue_body(a, false);
	send_records(a);
}

void audit_write_as(const struct core *core, const struct audit_actor *actor, const char *type,
	const struct core_workspace *w, void (*print)(struct json *j, const void *ctx),
	const void *ctx)
{
	const struct audit_object object = { w ? w->model.id : NULL, w ? w->model.name : NULL };
	if (core->audit)
		write_record(core->audit, actor, type, &object, print, ctx);
}

void audit_write_event(const struct core *core, const char *type, const char *workspace,
	const char *name, void (*print)(struct json *j, const void *ctx), const void *ctx)
{
	const struct audit_object object = { workspace[0] ? workspace : NULL,
		workspace[0] ? name : NULL };
	const struct audit_actor actor = audit_actor(&request_system);
	if (core->audit)
		write_record(core->audit, &actor, type, &object, print, ctx);
}

/* ---- reports in ---- */

static void print_found(struct json *j, const void *ctx)
{
	const struct audit_found *found = ctx;
	json_u64(j, "torn_bytes", found->torn_bytes);
	json_u64(j, "unsigned_lines", found->unsigned_lines);
	json_u64(j, "missing_from", found->missing_from);
	json_u64(j, "missing_to", found->missing_to);
	json_text(j, "damage", found->damage[0] ? found->damage : NULL);
}

static bool is_worth_telling(const struct audit_found *found)
{
	return found->torn_bytes || found->unsigned_lines || found->missing_from ||
	       found->damage[0];
}

/* The log is open. What the process before had written is known by its number; everything else is
 * sent again, behind a record of what was found. */
static void begin_sending(struct audit *a, const struct audit_report *report)
{
	struct json j;
	uint64_t next = report->next;
	if (a->was_begun)
		forget_taken(a, report->next - 1 + a->shift);
	if (is_worth_telling(&report->found)) {
		const struct audit_actor actor = audit_actor(&request_system);
		begin_body(a, &j, &actor, "audit.recovered", &nothing);
		print_found(&j, &report->found);
		audit_body_end(&j);
		a->records++;
		queue_body(a, true);
		if (report->found.missing_from || report->found.damage[0])
			log_record(&a->core->log, LOG_LEVEL_ERROR,
				"the audit log is damaged: carrel audit --verify says how", NULL);
	}
	for (size_t at = 0; at < a->out.len;) {
		struct audit_message head = message_at(a, at);
		head.number = next++;
		memcpy(a->out.data + at, &head, sizeof head);
		at += sizeof head + head.len;
	}
	/* Readers wait for numbers of before. */
	for (struct audit_reading *r = a->readings; r; r = r->next)
		if (!r->is_ready)
			r->awaited = next - 1;
	a->number = next - 1;
	a->taken = report->next - 1;
	a->shift = 0;
	a->sent = 0;
	a->has_begun = a->was_begun = true;
	a->away_ms = 0;
	send_records(a);
}

struct range {
	uint64_t from, to;
};

static void print_range(struct json *j, const void *ctx)
{
	const struct range *range = ctx;
	json_u64(j, "first_seq", range->from);
	json_u64(j, "last_seq", range->to);
}

static void print_count(struct json *j, const void *ctx)
{
	json_u64(j, "count", *(const uint64_t *)ctx);
}

static void tell_changes(struct audit *a, const struct audit_report *before)
{
	const struct audit_report *now = &a->report;
	if (now->sys_errno && !before->sys_errno)
		log_record(&a->core->log, LOG_LEVEL_ERROR, "the audit log can't be written",
			"error", now->error, NULL);
	else if (!now->sys_errno && before->sys_errno)
		log_record(&a->core->log, LOG_LEVEL_INFO, "the audit log is written again", NULL);
	a->dropped += now->dropped - a->role_dropped;
	a->role_dropped = now->dropped;
	if (!now->sys_errno && a->dropped > a->dropped_told) {
		uint64_t count = a->dropped - a->dropped_told;
		a->dropped_told = a->dropped;
		audit_write(a->core, &request_system, "audit.dropped", NULL, print_count, &count);
	}
	if (!now->is_first && now->pruned > before->pruned) {
		struct range range = { before->pruned + 1, now->pruned };
		audit_write(a->core, &request_system, "audit.pruned", NULL, print_range, &range);
	}
}

static void call_readers(struct audit *a)
{
	for (struct audit_reading *r = a->readings, *next; r; r = next) {
		next = r->next;
		bool is_due = r->awaited <= a->taken || a->report.sys_errno;
		if ((!r->is_ready && is_due) || (r->is_ready && r->follows)) {
			r->is_ready = true;
			r->ready(r->ctx);
		}
	}
}

static void take_report(struct audit *a, const struct audit_report *report)
{
	struct audit_report before = a->report;
	a->report = *report;
	if (report->is_first)
		begin_sending(a, report);
	else if (report->taken) {
		forget_taken(a, report->taken);
		a->shift = report->taken - (report->next - 1);
	}
	tell_changes(a, &before);
	call_readers(a);
}

static void on_socket(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	struct audit *a = ctx;
	static struct audit_report in;
	for (;;) {
		ssize_t len = recv(
			fd, (char *)&in + a->report_len, sizeof in - a->report_len, MSG_DONTWAIT);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (len <= 0) {
			log_record(&a->core->log, LOG_LEVEL_WARN,
				"the process that writes the audit log has ended", NULL);
			end_process(a);
			ask_for_process(loop, a);
			return;
		}
		a->report_len += (size_t)len;
		if (a->report_len == sizeof in) {
			a->report_len = 0;
			in.error[sizeof in.error - 1] = 0;
			in.found.damage[sizeof in.found.damage - 1] = 0;
			take_report(a, &in);
		}
	}
	send_records(a);
}

/* ---- the check ---- */

int audit_check(const struct core *core, struct error *err)
{
	const struct audit *a = core->audit;
	static const char hint[] = "free space there (removals still work), or set audit.on_full: "
				   "drop in config.yaml";
	if (!a || a->drops)
		return 0;
	if (a->report.sys_errno)
		return fail_hint(err, ERR_UNAVAILABLE, hint,
			"the audit log in '%s/audit' can't be written, and %llu bytes are free "
			"there: %s",
			core->home.path, (unsigned long long)a->report.free_bytes, a->report.error);
	if (a->out.len - a->sent > BEHIND_MAX)
		return fail_hint(err, ERR_UNAVAILABLE, "try again in a moment",
			"the audit log in '%s/audit' is %zu bytes behind: its disk is too slow",
			core->home.path, a->out.len - a->sent);
	if (a->away_ms && clock_monotonic_ms() - a->away_ms > AWAY_MAX_MS)
		return fail(err, ERR_UNAVAILABLE,
			"the process that writes the audit log in '%s/audit' can't be started",
			core->home.path);
	return 0;
}

struct audit_numbers audit_count(const struct core *core)
{
	const struct audit *a = core->audit;
	if (!a)
		return (struct audit_numbers){ 0 };
	return (struct audit_numbers){ a->records, a->dropped, a->report.sys_errno != 0 };
}

/* ---- reading ---- */

int audit_read_begin(const struct request *request, struct core *core,
	const struct audit_filter *filter, struct audit_reading *reading, struct error *err)
{
	struct audit *a = core->audit;
	if (access_check(core, request, VERB_AUDIT_READ, NULL, err))
		return -1;
	if (!a)
		return fail_hint(err, ERR_UNAVAILABLE, "set audit.enabled: true in config.yaml",
			"the audit log is off");
	if (audit_reader_open(a->dir, filter, &reading->reader, err))
		return -1;
	reading->core = core;
	reading->awaited = a->number;
	reading->is_ready = reading->follows = false;
	reading->next = a->readings;
	a->readings = reading;
	return 0;
}

bool audit_read_is_ready(struct audit_reading *reading)
{
	const struct audit *a = reading->core->audit;
	reading->is_ready |= a->has_begun && (reading->awaited <= a->taken || a->report.sys_errno);
	return reading->is_ready;
}

void audit_read_follow(struct audit_reading *reading)
{
	reading->follows = true;
}

void audit_read_end(struct audit_reading *reading)
{
	if (!reading->core)
		return;
	struct audit_reading **at = &reading->core->audit->readings;
	while (*at && *at != reading)
		at = &(*at)->next;
	if (*at)
		*at = reading->next;
	audit_reader_close(reading->reader);
	reading->core = NULL;
}

/* ---- the beginning and the end ---- */

int audit_open(struct core *core, int socket, bool drops, struct error *err)
{
	struct audit *a = xzalloc(sizeof *a);
	a->core = core;
	a->drops = drops;
	a->socket = a->dir = -1;
	a->away_ms = clock_monotonic_ms();
	buf_init(&a->out, SIZE_MAX / 4);
	buf_init(&a->body, AUDIT_BODY_MAX);
	core->audit = a;
	if (home_open_directory(&core->home, "audit", &a->dir, err))
		return -1;
	core->journal.tap = audit_event;
	core->journal.tap_ctx = core;
	return use_socket(a, socket, err);
}

void audit_close(struct core *core)
{
	struct audit *a = core->audit;
	if (!a)
		return;
	core->journal.tap = NULL;
	/* The last records: the process that takes them may still be starting. */
	uint64_t end = clock_monotonic_ms() + END_MS;
	while (a->socket >= 0 && a->sent < a->out.len && clock_monotonic_ms() < end) {
		struct pollfd ready = { .fd = a->socket,
			.events = (short)(POLLIN | (a->has_begun ? POLLOUT : 0)) };
		poll(&ready, 1, 100);
		on_socket(core->loop, a->socket, 0, a);
	}
	if (a->again)
		loop_cancel(core->loop, a->again);
	if (a->socket >= 0)
		loop_unwatch(core->loop, a->socket);
	fd_close(&a->socket);
	fd_close(&a->dir);
	buf_done(&a->out);
	buf_done(&a->body);
	free(a);
	core->audit = NULL;
}
