#include "base/last_use.h"

void last_use_remove(struct last_use *use)
{
	struct last_use_list *list = use->list;
	if (!list)
		return;
	*(use->newer ? &use->newer->older : &list->newest) = use->older;
	*(use->older ? &use->older->newer : &list->oldest) = use->newer;
	list->bytes -= use->bytes;
	*use = (struct last_use){ 0 };
}

void last_use_put(struct last_use_list *list, struct last_use *use, size_t bytes)
{
	last_use_remove(use);
	*use = (struct last_use){ .older = list->newest, .bytes = bytes, .list = list };
	*(use->older ? &use->older->newer : &list->oldest) = use;
	list->newest = use;
	list->bytes += bytes;
}

struct last_use *last_use_surplus(const struct last_use_list *list)
{
	return list->bytes > list->most ? list->oldest : NULL;
}
