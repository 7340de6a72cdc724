#include "core/workspaces/registries.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "core/internal.h"
#include "core/workspaces/networks.h"

#define FRESH_MS (24ull * 3600 * 1000)
#define AGAIN_MS 60000 /* after a failure */

struct question {
	struct core *core;
	int answer;
};

/* A list of texts of the answer, copied. */
static void take_texts(const struct json_value *list, struct arena *arena, text_list *out)
{
	*out = (text_list){ 0 };
	for (const struct json_value *at = list ? list->first : NULL; at; at = at->next)
		if (at->kind == JSON_STRING)
			vec_push(arena, out, arena_text(arena, at->string.data));
}

static void take_answer(struct registries *registries, const struct json_value *answer)
{
	arena_done(&registries->arena);
	arena_init(&registries->arena);
	take_texts(json_member(answer, "indexes"), &registries->arena, &registries->indexes);
	take_texts(json_member(answer, "hosts"), &registries->arena, &registries->hosts);
	take_texts(json_member(answer, "variables"), &registries->arena, &registries->variables);
}

/* What could not be found out is asked again by a later start. */
static void settle(struct registries *registries, bool has_failed)
{
	registries->at_ms = clock_monotonic_ms() - (has_failed ? FRESH_MS - AGAIN_MS : 0);
	registries->is_known = true;
	registries->is_asking = false;
	waiters_call(&registries->waiters, NULL, NULL);
}

static void on_answer(void *ctx, const struct launch_packet *packet, const int *fds)
{
	struct question *question = ctx;
	struct registries *registries = &question->core->networks->registries;
	auto_arena struct arena arena = { 0 };
	auto_close int answer = question->answer;
	struct json_value *value;
	struct error err;
	int failed = packet && packet->head.type == LAUNCH_BUILT
			     ? job_read_answer(answer, packet->head.value,
				       "the process that looks for package indexes", &arena, &value,
				       &err)
			     : launcher_failure(packet, &err);
	if (!failed)
		take_answer(registries, value);
	else
		log_record(&question->core->log, LOG_LEVEL_WARN,
			"the package indexes of this host are not known", "error", err.text, NULL);
	free(question);
	settle(registries, failed);
}

static void ask(struct core *core)
{
	struct registries *registries = &core->networks->registries;
	struct launch_message head = { .type = LAUNCH_REGISTRIES };
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	auto_close int answer = memfd_create("registries", MFD_CLOEXEC);
	if (null < 0 || answer < 0) {
		settle(registries, true);
		return;
	}
	struct question *question = xzalloc(sizeof *question);
	const int fds[] = { null, answer, null };
	registries->is_asking = true;
	*question = (struct question){ core, take_fd(&answer) };
	launcher_ask(&core->launcher, &head, NULL, 0, fds, 3, on_answer, question);
}

void registries_learn(struct core_workspace *w, core_workspace_fn *done, void *ctx)
{
	struct registries *registries = &w->core->networks->registries;
	if (registries->is_known && clock_monotonic_ms() - registries->at_ms < FRESH_MS) {
		done(ctx, w, NULL);
		return;
	}
	waiter_append(&registries->waiters, waiter_new(done, ctx, w, NULL));
	if (!registries->is_asking)
		ask(w->core);
}
