#include "doors/rest/relay.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include "base/foreign.h"

#define ROUNDS 8 /* reads of one side in a turn of the loop */
#define UNWATCHED UINT32_MAX

enum { CLIENT, INSIDE };
struct way {	    /* from one side to the other */
	char *data; /* what the other side has not taken, or NULL */
	size_t start, len;
	bool is_ended, is_shut; /* nothing more comes; and the other side was told */
};
struct relay {
	struct api *api;
	struct relay *next, **at;
	struct net_stream client;
	int socket;
	struct way ways[2]; /* by the side that sends */
	uint32_t events[2];
	struct share share;	    /* of the connections to ports */
	void (*on_left)(void *ctx); /* or NULL */
	void *left_ctx;
};

static int fd_of(const struct relay *relay, int side)
{
	return side == CLIENT ? relay->client.fd : relay->socket;
}

static void on_event(struct loop *loop, int fd, uint32_t events, void *ctx);

static void watch(struct relay *relay, int side, uint32_t events)
{
	struct loop *loop = relay->api->loop;
	int fd = fd_of(relay, side);
	if (relay->events[side] == events)
		return;
	if (events == UNWATCHED)
		loop_unwatch(loop, fd);
	else if (relay->events[side] == UNWATCHED)
		loop_watch(loop, fd, events, on_event, relay, NULL);
	else
		loop_change(loop, fd, events, NULL);
	relay->events[side] = events;
}

static void free_relay(struct relay *relay)
{
	*relay->at = relay->next;
	if (relay->next)
		relay->next->at = relay->at;
	share_release(&relay->share);
	for (int side = 0; side < 2; side++) {
		watch(relay, side, UNWATCHED);
		free(relay->ways[side].data);
	}
	relay->client.kind->close(&relay->client);
	foreign_close(&relay->socket);
	if (relay->on_left)
		relay->on_left(relay->left_ctx);
	free(relay);
}

/* Both sides see a reset: an end in good order would make half an answer look whole. */
static void break_relay(struct relay *relay)
{
	struct linger at_once = { .l_onoff = 1 };
	setsockopt(relay->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	setsockopt(relay->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	free_relay(relay);
}

static ssize_t receive(struct relay *relay, int side, char *data, size_t size)
{
	struct fd_message message;
	if (side == INSIDE)
		return recv(relay->socket, data, size, MSG_DONTWAIT);
	ssize_t got = relay->client.kind->receive(&relay->client, data, size, &message);
	fd_message_close(&message, 0);
	return got;
}

static ssize_t send_to(struct relay *relay, int side, const char *data, size_t len)
{
	struct iovec part = { (void *)(uintptr_t)data, len };
	if (side == INSIDE)
		return send(relay->socket, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	return relay->client.kind->send(&relay->client, &part, 1, NULL, 0, false);
}

/* How many of the bytes are taken now; -1: the connection is broken. */
static ssize_t pass(struct relay *relay, int from, const char *data, size_t len)
{
	ssize_t sent;
	do
		sent = send_to(relay, !from, data, len);
	while (sent < 0 && errno == EINTR);
	return sent < 0 && errno == EAGAIN ? 0 : sent;
}

static void keep(struct way *way, const char *data, size_t len)
{
	way->data = len ? malloc(len) : NULL;
	way->start = 0;
	way->len = len;
	if (!len)
		return;
	if (!way->data)
		abort();
	memcpy(way->data, data, len);
}

/* 1: nothing is kept any more, 0: the other side must take it first, -1: broken. */
static int flush(struct relay *relay, int from)
{
	struct way *way = &relay->ways[from];
	while (way->len) {
		ssize_t sent = pass(relay, from, way->data + way->start, way->len);
		if (sent <= 0)
			return (int)sent;
		way->start += (size_t)sent;
		way->len -= (size_t)sent;
	}
	free(way->data);
	way->data = NULL;
	return 1;
}

/* As flush, after one read; 0 too when there is nothing to read. */
static int fill(struct relay *relay, int from)
{
	struct way *way = &relay->ways[from];
	char *chunk = relay->api->relay_chunk;
	ssize_t got = receive(relay, from, chunk, RELAY_CHUNK);
	if (got < 0 && errno == EINTR)
		return 1;
	if (got < 0)
		return errno == EAGAIN ? 0 : -1;
	if (got == 0) {
		way->is_ended = true;
		return 1;
	}
	ssize_t sent = pass(relay, from, chunk, (size_t)got);
	if (sent < 0)
		return -1;
	keep(way, chunk + sent, (size_t)(got - sent));
	return sent == got;
}

/* false: broken. */
static bool pump(struct relay *relay, int from)
{
	struct way *way = &relay->ways[from];
	int went = flush(relay, from);
	for (int i = 0; i < ROUNDS && went == 1 && !way->is_ended; i++)
		went = fill(relay, from);
	if (went < 0)
		return false;
	if (!way->is_ended || way->len || way->is_shut)
		return true;
	if (from == CLIENT)
		shutdown(relay->socket, SHUT_WR);
	else
		relay->client.kind->end(&relay->client);
	way->is_shut = true;
	return true;
}

static void run(struct relay *relay)
{
	if (!pump(relay, CLIENT) || !pump(relay, INSIDE)) {
		break_relay(relay);
		return;
	}
	if (relay->ways[CLIENT].is_shut && relay->ways[INSIDE].is_shut) {
		free_relay(relay);
		return;
	}
	for (int side = 0; side < 2; side++) {
		const struct way *from = &relay->ways[side], *to = &relay->ways[!side];
		uint32_t events =
			(!from->is_ended && !from->len ? EPOLLIN : 0u) | (to->len ? EPOLLOUT : 0u);
		if (side == CLIENT && relay->client.wants_output)
			events |= EPOLLOUT;
		/* A side that is neither read nor written is not watched: epoll would report its
		 * error in every turn of the loop. */
		watch(relay, side, events ? events : UNWATCHED);
	}
}

static void on_event(struct loop *loop, int fd, uint32_t events, void *ctx)
{
	run(ctx);
}

void relay_start(struct api *api, struct net_stream *client, int socket, struct str from_client,
	struct str from_socket, const struct share *share, void (*left)(void *ctx), void *ctx)
{
	struct relay *relay = calloc(1, sizeof *relay);
	if (!relay || (!api->relay_chunk && !(api->relay_chunk = malloc(RELAY_CHUNK))))
		abort();
	*relay = (struct relay){ .api = api,
		.next = api->relays,
		.at = &api->relays,
		.client = *client,
		.socket = socket,
		.share = *share,
		.events = { UNWATCHED, UNWATCHED },
		.on_left = left,
		.left_ctx = ctx };
	if (relay->next)
		relay->next->at = &relay->next;
	api->relays = relay;
	keep(&relay->ways[CLIENT], from_client.data, from_client.len);
	keep(&relay->ways[INSIDE], from_socket.data, from_socket.len);
	run(relay);
}

void relays_stop(struct api *api)
{
	for (struct relay *relay = api->relays, *next; relay; relay = next) {
		next = relay->next;
		break_relay(relay);
	}
	free(api->relay_chunk);
	api->relay_chunk = NULL;
}
