/* /metrics: Prometheus' text format, 0.0.4. */
#include "doors/rest/handlers.h"
#include "net/websocket.h"

/* ---- counters of core->metrics, one row each ---- */

#define AT(member) offsetof(struct metrics, member)
static const struct {
	const char *name, *help;
	size_t offset;
} counters[] = {
	{ "carrel_workspace_creates_total", "Workspaces created.", AT(creates) },
	{ "carrel_workspace_create_failures_total", "Workspaces that could not be created.",
		AT(create_failures) },
	{ "carrel_workspace_removes_total", "Workspaces removed.", AT(removes) },
	{ "carrel_workspace_expirations_total", "Workspaces removed because their ttl had passed.",
		AT(expired) },
	{ "carrel_workspace_suspensions_total",
		"Workspaces suspended, on demand or by their idle_timeout.", AT(suspended) },
	{ "carrel_workspace_resumptions_total", "Workspaces resumed.", AT(resumed) },
	{ "carrel_sandbox_starts_total", "Sandboxes started.", AT(sandbox_starts) },
	{ "carrel_sandbox_start_failures_total", "Sandboxes that could not be started.",
		AT(sandbox_start_failures) },
	{ "carrel_sandboxes_given_back_total", "Sandboxes ended because they were idle.",
		AT(released) },
	{ "carrel_exec_failures_total", "Execs that could not be started.", AT(exec_failures) },
	{ "carrel_exec_output_bytes_total", "Output of execs that went through the daemon.",
		AT(output_bytes) },
	{ "carrel_file_read_bytes_total", "Bytes of files that were read.", AT(file_read_bytes) },
	{ "carrel_file_written_bytes_total", "Bytes of files that were written.",
		AT(file_written_bytes) },
	{ "carrel_egress_connections_total", "Connections of sandboxes to allowed hosts.",
		AT(egress_opened) },
	{ "carrel_egress_refused_total",
		"Connections and names of sandboxes that were refused by their lists.",
		AT(egress_refused) },
	{ "carrel_egress_failed_total", "Allowed connections of sandboxes that failed.",
		AT(egress_failed) },
	{ "carrel_egress_received_bytes_total", "Bytes that sandboxes received.",
		AT(egress_bytes_in) },
	{ "carrel_egress_sent_bytes_total", "Bytes that sandboxes sent.", AT(egress_bytes_out) },
};
static const struct {
	const char *name, *help;
	size_t offset;
} histograms[] = {
	{ "carrel_workspace_create_duration_seconds", "Time to create a workspace.",
		AT(create_seconds) },
	{ "carrel_sandbox_start_duration_seconds", "Time to start a sandbox.",
		AT(sandbox_start_seconds) },
	{ "carrel_exec_duration_seconds", "Execs from request to end.", AT(exec_seconds) },
	{ "carrel_exec_overhead_seconds", "Execs from request to the message that spawns them.",
		AT(exec_overhead_seconds) },
	{ "carrel_store_commit_duration_seconds", "Commits of the database.",
		AT(store_commit_seconds) },
};
#undef AT
#define EACH(i, array)                                                                             \
	size_t i = 0;                                                                              \
	i < sizeof(array) / sizeof *(array);                                                       \
	i++

static void print_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_value(
	struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
	print_head(out, name, type, help);
	buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

/* One series of a metric: NAME{LABEL="OF"} VALUE. */
static void print_labeled(
	struct buf *out, const char *name, const char *label, const char *of, uint64_t value)
{
	buf_printf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, of, value);
}

static void print_label(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			buf_char(out, '\\');
		if (*value == '\n')
			buf_text(out, "\\n");
		else
			buf_char(out, *value);
	}
	buf_char(out, '"');
}

static void print_histogram(
	struct buf *out, const char *name, const char *help, const struct histogram *h)
{
	uint64_t sum = 0;
	print_head(out, name, "histogram", help);
	for (int i = 0; i < METRICS_BUCKETS; i++) {
		sum += h->counts[i];
		buf_printf(
			out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, metrics_bounds_s[i], sum);
	}
	buf_printf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, h->count);
	buf_printf(out, "%s_sum %.9g\n%s_count %" PRIu64 "\n", name, h->sum_s, name, h->count);
}

static void print_core(struct buf *out, const struct metrics *metrics)
{
	for (EACH(i, counters))
		print_value(out, counters[i].name, "counter", counters[i].help,
			*(const uint64_t *)((const char *)metrics + counters[i].offset));
	print_head(out, "carrel_execs_total", "counter", "Execs that have ended, by reason.");
	for (int i = 0; i < REASON_COUNT; i++)
		print_labeled(
			out, "carrel_execs_total", "reason", reason_names[i], metrics->execs[i]);
	for (EACH(i, histograms))
		print_histogram(out, histograms[i].name, histograms[i].help,
			(const struct histogram *)((const char *)metrics + histograms[i].offset));
}

/* ---- gauges of the current state ---- */

static void print_states(
	struct buf *out, const struct core_numbers *numbers, const struct log_losses *losses)
{
	print_head(out, "carrel_workspaces", "gauge", "Workspaces by state.");
	for (int i = 0; i < WORKSPACE_STATE_COUNT; i++)
		print_labeled(out, "carrel_workspaces", "state", workspace_state_names[i],
			numbers->workspaces[i]);
	print_head(out, "carrel_sandboxes", "gauge", "Sandboxes by state.");
	print_labeled(out, "carrel_sandboxes", "state", "starting", numbers->sandboxes_starting);
	print_labeled(out, "carrel_sandboxes", "state", "up", numbers->sandboxes_up);
	print_labeled(out, "carrel_sandboxes", "state", "ending", numbers->sandboxes_ending);
	print_value(out, "carrel_log_lines_lost_total", "counter",
		"Log lines of core that couldn't be written because the reader is slow or the disk "
		"is full.",
		losses ? losses->ever : 0);
	print_value(
		out, "carrel_execs_running", "gauge", "Execs that are running.", numbers->execs);
	print_value(out, "carrel_captured_output_bytes", "gauge",
		"Bytes of captured output that are kept until they are answered.",
		numbers->captured_bytes);
	print_value(out, "carrel_audit_records_total", "counter", "Records of the audit log.",
		numbers->audit_records);
	print_value(out, "carrel_audit_dropped_total", "counter",
		"Records that the audit log has no line of, because it could not be written.",
		numbers->audit_dropped);
	print_value(out, "carrel_audit_failing", "gauge", "1 while the audit log can't be written.",
		numbers->is_audit_failing);
	print_value(out, "carrel_workspace_bytes", "gauge",
		"Bytes on disk of all workspaces, as last measured.", numbers->disk_bytes);
}

static void print_context_labels(struct buf *out, const char *name, const struct workspace *w)
{
	const struct text_pair labels[] = { { WORKSPACE_CONTEXT_LABEL, w->owner.context_id },
		{ WORKSPACE_AGENT_LABEL, w->owner.agent },
		{ WORKSPACE_NAMESPACE_LABEL, w->owner.namespace } };
	buf_printf(out, "%s{", name);
	for (EACH(i, labels)) {
		if (i)
			buf_char(out, ',');
		print_label(out, labels[i].key, labels[i].value ? labels[i].value : "");
	}
	buf_text(out, "} ");
}

static const char context_bytes[] = "kagenti_context_workspace_bytes",
		  context_used[] = "kagenti_context_last_accessed_timestamp";

static void print_context_bytes(void *ctx, struct core_workspace *w)
{
	print_context_labels(ctx, context_bytes, core_model(w));
	buf_printf(ctx, "%" PRIu64 "\n", core_model(w)->disk_usage_bytes);
}

static void print_context_used(void *ctx, struct core_workspace *w)
{
	print_context_labels(ctx, context_used, core_model(w));
	buf_printf(ctx, "%.3f\n", (double)core_model(w)->last_used_ms / 1000);
}

/* Metrics under the names that kagenti uses: one series per workspace with a context_id. */
static void print_contexts(struct buf *out, const struct call *c)
{
	struct core_filter all = { .only_contexts = true, .state = -1, .limit = SIZE_MAX };
	char next[CORE_CURSOR_SIZE];
	struct error err;
	print_head(out, context_bytes, "gauge", "Disk usage of the workspace of a context.");
	core_list(c->request, c->api->core, &all, print_context_bytes, out, next, &err);
	print_head(out, context_used, "gauge",
		"Last use of the workspace of a context, in Unix time.");
	core_list(c->request, c->api->core, &all, print_context_used, out, next, &err);
}

static void print_levels(struct buf *out, const struct core_levels *levels)
{
	print_head(out, "carrel_pool_ready", "gauge", "Items in the launcher's pools.");
	print_labeled(out, "carrel_pool_ready", "pool", "netns", levels->netns_ready);
	print_labeled(out, "carrel_pool_ready", "pool", "cgroup", levels->cgroups_ready);
	print_head(out, "carrel_pool_misses_total", "counter", "How often a pool was empty.");
	print_labeled(out, "carrel_pool_misses_total", "pool", "netns", levels->netns_missed);
	print_labeled(out, "carrel_pool_misses_total", "pool", "cgroup", levels->cgroups_missed);
	print_value(out, "carrel_launcher_sandboxes", "gauge", "Sandboxes of the launcher.",
		levels->sandboxes);
	print_value(out, "carrel_launcher_sandboxes_starting", "gauge",
		"Sandboxes that the launcher is starting.", levels->starting);
}

static void print_environments(struct buf *out, const struct call *c)
{
	struct error err;
	auto_buf struct buf text = buf_empty(BUF_MAX_DEFAULT);
	if (core_print_environment_metrics(c->request, c->api->core, &text, &err))
		log_record(c->api->options.log, LOG_LEVEL_WARN,
			"the environments could not be counted", "error", err.text, NULL);
	else
		buf_append(out, text.data, text.len);
}

static void print_all(struct buf *out, const struct call *c, const struct core_numbers *numbers,
	const struct core_levels *levels)
{
	print_head(out, "carrel_build_info", "gauge", "The running version.");
	buf_text(out, "carrel_build_info{version=\"" CARREL_VERSION "\"} 1\n");
	print_head(out, "carrel_start_time_seconds", "gauge",
		"Start time of the daemon, in Unix time.");
	buf_printf(out, "carrel_start_time_seconds %.3f\n",
		(double)numbers->metrics.started_ms / 1000);
	print_value(out, "carrel_http_connections", "gauge", "Open connections.",
		http_server_connections(c->api->server));
	print_value(out, "carrel_websockets", "gauge", "Open WebSockets of execs.",
		websocket_count(c->api->websockets));
	print_states(out, numbers, c->api->options.log->losses);
	print_core(out, &numbers->metrics);
	print_contexts(out, c);
	if (levels)
		print_levels(out, levels);
	print_environments(out, c);
	services_print_metrics(c->api->options.services, out);
}

/* ---- the request, answered when the launcher has reported its levels ---- */

static void on_levels(void *ctx, const struct core_levels *levels)
{
	struct call *c = ctx;
	struct core_numbers numbers;
	struct error err;
	c->priv = NULL;
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	if (core_count(c->request, c->api->core, &numbers, &err)) {
		call_problem(c, &err);
		return;
	}
	print_all(&out, c, &numbers, levels);
	call_respond(c, 200, "text/plain; version=0.0.4; charset=utf-8", NULL,
		(struct str){ out.data, out.len });
}

static void on_gone(struct call *c)
{
	core_forget_levels(c->priv);
}

static int api_metrics(struct call *c, struct error *err)
{
	struct core_question *question;
	if (core_ask_levels(c->request, c->api->core, on_levels, c, &question, err))
		return -1;
	c->priv = question;
	c->gone = on_gone;
	return 0;
}

const struct handler metrics_handlers[] = { { "metrics", api_metrics }, { 0 } };
