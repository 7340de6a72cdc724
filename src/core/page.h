/* page.h -- a list that is shown page by page, the newest object first. Times of creation are
 * unique in a list, so they serve as cursors. */
#pragma once
#include "base/error.h"

#define CORE_CURSOR_SIZE 24
struct core_page {
	size_t limit, count;
	uint64_t before; /* the cursor: objects made earlier are shown */
	int64_t last_ms;
	char *next; /* the cursor for more, or "" */
};
/* cursor: `next` of the page before, or NULL. ERR_INVALID: an invalid cursor. */
int core_page_begin(struct core_page *page, const char *cursor, size_t limit,
	char next[CORE_CURSOR_SIZE], struct error *err);
/* Whether an object that is to be shown lies on this page; asked in the order of the list. */
bool core_page_takes(struct core_page *page, int64_t created_ms);
/* Nothing more lies on it. */
static inline bool core_page_is_full(const struct core_page *page)
{
	return page->next[0];
}
