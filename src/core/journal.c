#include "core/journal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/clock.h"
#include "format/json.h"

void journal_init(struct journal *journal, uint64_t first_id)
{
	*journal = (struct journal){ .first = first_id, .next = first_id };
	journal->ring = calloc(JOURNAL_KEPT, sizeof *journal->ring);
	if (!journal->ring)
		abort();
}

static void forget(struct event *event)
{
	free((void *)(uintptr_t)event->json.data);
	free((void *)(uintptr_t)event->workspace);
	*event = (struct event){ 0 };
}

void journal_done(struct journal *journal)
{
	for (size_t i = 0; journal->ring && i < JOURNAL_KEPT; i++)
		forget(&journal->ring[i]);
	free(journal->ring);
	*journal = (struct journal){ 0 };
}

static struct str print(
	uint64_t id, const char *type, const char *workspace, const char *name, va_list more)
{
	char time[32];
	const char *key;
	struct buf out = buf_empty(65536);
	struct json j = json_to(&out, false);
	clock_format_now(time);
	json_object(&j, NULL);
	json_u64(&j, "id", id);
	json_text(&j, "type", type);
	json_text(&j, "time", time);
	json_text(&j, "workspace", workspace);
	json_text(&j, "name", name);
	while ((key = va_arg(more, const char *))) {
		const char *text = va_arg(more, const char *);
		if (key[0] == '#')
			json_u64(&j, key + 1, strtoull(text, NULL, 10));
		else
			json_text(&j, key, text);
	}
	json_end(&j);
	return (struct str){ out.data, out.len };
}

/* A callback may remove any listener, so the list is walked by a cursor that journal_unlisten
 * moves. */
static void tell(struct journal *journal, const struct event *event)
{
	for (journal->cursor = journal->listeners; journal->cursor;) {
		struct journal_listener *listener = journal->cursor;
		journal->cursor = listener->next;
		listener->fn(listener->ctx, event);
	}
}

void journal_emit(
	struct journal *journal, const char *type, const char *workspace_id, const char *name, ...)
{
	va_list more;
	struct event *event = &journal->ring[journal->next % JOURNAL_KEPT];
	forget(event);
	va_start(more, name);
	*event = (struct event){ .id = journal->next,
		.type = type,
		.workspace = strdup(workspace_id),
		.json = print(journal->next, type, workspace_id, name, more) };
	va_end(more);
	if (!event->workspace)
		abort();
	journal->next++;
	if (journal->next - journal->first > JOURNAL_KEPT)
		journal->first = journal->next - JOURNAL_KEPT;
	if (journal->tap)
		journal->tap(journal->tap_ctx, type, workspace_id, name, event->json);
	tell(journal, event);
}

void journal_listen(struct journal *journal, struct journal_listener *listener, uint64_t after_id)
{
	uint64_t id = after_id + 1 > journal->first ? after_id + 1 : journal->first;
	listener->next = journal->listeners;
	journal->listeners = listener;
	if (!after_id)
		return;
	/* A listener that is full removes itself. */
	for (; id < journal->next && journal->listeners == listener; id++)
		listener->fn(listener->ctx, &journal->ring[id % JOURNAL_KEPT]);
}

void journal_unlisten(struct journal *journal, struct journal_listener *listener)
{
	if (journal->cursor == listener)
		journal->cursor = listener->next;
	for (struct journal_listener **at = &journal->listeners; *at; at = &(*at)->next)
		if (*at == listener) {
			*at = listener->next;
			return;
		}
}
