#include "api/call.h"

void stream_add(struct call *c, struct stream *stream, void (*stop)(struct stream *stream))
{
	struct stream **first = &c->api->streams;

	*stream = (struct stream){ .call = c, .stop = stop, .next = *first, .at = first };
	if (*first)
		(*first)->at = &stream->next;
	*first = stream;
}

void stream_remove(struct stream *stream)
{
	if (!stream->at)
		return;
	*stream->at = stream->next;
	if (stream->next)
		stream->next->at = stream->at;
	stream->at = NULL;
}

void streams_stop(struct api *api)
{
	while (api->streams) {
		struct stream *stream = api->streams;

		stream_remove(stream);
		stream->stop(stream);
	}
}
