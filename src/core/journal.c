#include "core/journal.h"

#include "base/buf.h"
#include "base/clock.h"
#include "format/text/json.h"

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

/* One event for each listener that has not had all, until everybody has. A callback may remove any
 * listener: journal_unlisten moves the cursor. One that emits an event, or begins to listen, comes
 * back here, and the loop that called it goes on with that. */
static void tell(struct journal *journal)
{
	bool is_news = !journal->is_telling;
	while (is_news) {
		is_news = false;
		journal->is_telling = true;
		for (journal->cursor = journal->listeners; journal->cursor;) {
			struct journal_listener *listener = journal->cursor;
			journal->cursor = listener->next;
			if (listener->next_id < journal->first)
				listener->next_id = journal->first;
			if (listener->next_id == journal->next)
				continue;
			is_news = true;
			listener->fn(
				listener->ctx, &journal->ring[listener->next_id++ % JOURNAL_KEPT]);
		}
		journal->is_telling = false;
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
	tell(journal);
}

void journal_listen(struct journal *journal, struct journal_listener *listener, uint64_t after_id)
{
	listener->next_id = after_id && after_id < journal->next ? after_id + 1 : journal->next;
	listener->next = journal->listeners;
	journal->listeners = listener;
	tell(journal);
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
