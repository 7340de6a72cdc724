#include "format/http/forwarded.h"

bool forwarded_last(struct str list, union inet_address *address, struct str *rest)
{
	const char *comma = list.len ? memrchr(list.data, ',', list.len) : NULL;
	size_t before = comma ? (size_t)(comma - list.data) : 0;
	struct str item = comma ? (struct str){ comma + 1, list.len - before - 1 } : list;
	item = str_trim(item);
	if (!item.len || !(inet_address_parse_host(item, address) ||
				 (item.data[0] != ':' && !str_starts_with(item, "localhost") &&
					 inet_address_parse(item, address))))
		return false;
	*rest = (struct str){ list.data, before };
	return true;
}
