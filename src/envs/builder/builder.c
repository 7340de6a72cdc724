#include "envs/builder/builder.h"

#include <signal.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/str.h"

#define TELL_MS 500
#define PATIENCE 4 /* number of signals that end it in any state */

/* ---- an end that is wanted ---- */

static volatile int interrupted;
static volatile int is_only_reading; /* nothing is under way that would have to be undone */

static void on_signal(int signo)
{
	if (is_only_reading)
		_exit(128 + signo);
	if (++interrupted < PATIENCE)
		return;
	signal(signo, SIG_DFL);
	raise(signo);
}

/* What is ignored stays so: nohup means it. */
void build_catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal }, old;
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

static void on_closed_pipe(int signo)
{
}

/* By a handler: what is ignored would stay so in the programs of a build. */
void build_ignore_closed_pipes(void)
{
	struct sigaction action = { .sa_handler = on_closed_pipe, .sa_flags = SA_RESTART };
	sigaction(SIGPIPE, &action, NULL);
}

bool build_is_interrupted(void)
{
	return interrupted != 0;
}

void build_begins(void)
{
	is_only_reading = 0;
}

/* ---- how far it is ---- */

/* With --events, twice a second: most new phases are events of their own already. */
static void tell(struct build_site *site, uint64_t bytes, bool is_new)
{
	const struct events *events = &site->store->events;
	uint64_t now_ms = clock_monotonic_ms();
	if (is_new)
		site->told_ms = now_ms;
	bool is_due = is_new ? site->tells_phases : now_ms - site->told_ms >= TELL_MS;
	if (events->sink < 0 || !site->venv || !is_due)
		return;
	site->told_ms = now_ms;
	events_progress(
		events, site->phase, site->venv, site->done, site->total, bytes, site->shown.rate);
}

static void show(void *ctx, const char *phase, uint64_t done, uint64_t total, uint64_t bytes)
{
	struct build_site *site = ctx;
	bool is_new = strcmp(site->phase, phase) != 0;
	is_only_reading = strcmp(phase, "verifying") == 0;
	str_copy(site->phase, sizeof site->phase, phase);
	site->done = done;
	site->total = total;
	progress_show(&site->shown, phase, done, total, bytes);
	tell(site, bytes, is_new);
}

static void say_retrying(void *ctx, int attempt, int attempts)
{
	struct build_site *site = ctx;
	char text[96];
	str_format(text, sizeof text, "the index does not respond; trying again (%d of %d)",
		attempt, attempts);
	progress_say(&site->shown, text);
}

static void say(void *ctx, const char *text)
{
	struct build_site *site = ctx;
	progress_say(&site->shown, text);
}

/* While a job runs only the numbers change. */
static void tick(void *ctx)
{
	struct build_site *site = ctx;
	const struct build_network *network = &site->jobs.network;
	const struct env_progress *progress = &site->progress;
	if (!site->phase[0])
		return;
	uint64_t bytes = network->bytes(network->ctx), limit = 0, unpacked = 0;
	if (progress->count)
		site->done = progress->count(progress->count_ctx);
	if (progress->unpacked)
		unpacked = progress->unpacked(progress->count_ctx, &limit);
	progress_unpacked(&site->shown, unpacked, limit);
	progress_show(&site->shown, site->phase, site->done, site->total, bytes);
	tell(site, bytes, false);
}

void build_site_init(
	struct build_site *site, const struct env_store *store, enum progress_kind kind)
{
	*site = (struct build_site){ .store = store,
		.progress = { .ctx = site, .show = show, .retrying = say_retrying, .say = say } };
	progress_init(&site->shown, kind, STDERR_FILENO);
	jobs_init(&site->jobs, &store->layers);
	site->jobs.runner.tick = tick;
	site->jobs.runner.tick_ctx = site;
	site->jobs.runner.interrupted = &interrupted;
	site->builder =
		(struct builder){ store, &site->jobs.runner, &site->jobs.network, &site->progress };
}

void build_site_done(struct build_site *site)
{
	progress_finish(&site->shown);
	if (site->store)
		jobs_done(&site->jobs);
}
