/* Packets between parent and child before carrel-init takes over the socket. */
#include <errno.h>
#include "linux/fd_message.h"
#include "sandbox/start.h"

int setup_send(int socket, struct setup_message *message, const int *fds, int count)
{
	int packed[SETUP_FD_MAX], packed_count = 0;
	message->present = 0;
	for (int i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		message->present |= 1u << i;
		packed[packed_count++] = fds[i];
	}
	struct iovec part = { message, sizeof *message };
	ssize_t sent = fd_message_send(socket, &part, 1, packed, packed_count, 0);
	return sent == (ssize_t)sizeof *message ? 0 : -1;
}

int setup_receive(int socket, bool wait, struct setup_message *message, int fds[SETUP_FD_MAX])
{
	struct fd_message came;
	for (int i = 0; i < SETUP_FD_MAX; i++)
		fds[i] = -1;
	ssize_t got;
	/* A peer that died with unread packets leaves one ECONNRESET in front of what it said. */
	do
		got = fd_message_receive(
			socket, message, sizeof *message, wait ? 0 : MSG_DONTWAIT, &came);
	while (got < 0 && errno == ECONNRESET);
	if (got <= 0)
		return got == 0 ? 0 : -1;
	int taken = 0;
	bool is_whole = got == (ssize_t)sizeof *message;
	for (int i = 0; i < SETUP_FD_MAX; i++)
		if (is_whole && message->present & 1u << i && taken < came.fd_count)
			fds[i] = came.fds[taken++];
	fd_message_close(&came, taken);
	if (!is_whole || message->magic != SETUP_MAGIC) {
		errno = EPROTO;
		return -1;
	}
	return 1;
}
