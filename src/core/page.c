#include "core/page.h"

#include "base/str.h"

int core_page_begin(struct core_page *page, const char *cursor, size_t limit,
	char next[CORE_CURSOR_SIZE], struct error *err)
{
	*page = (struct core_page){ .limit = limit, .before = UINT64_MAX, .next = next };
	next[0] = '\0';
	return cursor && !str_to_u64(str_from(cursor), &page->before)
		       ? fail(err, ERR_INVALID, "invalid cursor '%s'", cursor)
		       : 0;
}

bool core_page_takes(struct core_page *page, int64_t created_ms)
{
	if ((uint64_t)created_ms >= page->before || core_page_is_full(page))
		return false;
	if (page->count++ == page->limit) {
		str_format(page->next, CORE_CURSOR_SIZE, "%lld", (long long)page->last_ms);
		return false;
	}
	page->last_ms = created_ms;
	return true;
}
