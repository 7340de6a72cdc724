/* The list of doors. A protocol is added by a folder and a row here. */
#include "doors/door.h"

static const struct door *const doors[] = { &a2a_door, &rest_door };

const struct door *door_of(const struct http_request *r)
{
	size_t i = 0;
	while (!doors[i]->match(r))
		i++;
	return doors[i];
}
