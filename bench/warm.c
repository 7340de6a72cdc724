/* warm.c -- the stop-watch of the daemon's section of bench/run: one resident process that does the
 *same job on several roads and times each. Arguments: the daemon's socket, a workspace that runs
 *there, and the socket of a carrel-init whose core stands still (SIGSTOP), so that this process is
 *its master. Request, one line on stdin: a road, a tab, an absolute path of a program. Answer:
 *"<ns>", or "- <why>". spawn	vfork, exec, wait4 of the program, /dev/null for its streams: what
 *all others are compared with
 *	init	one INIT_SPAWN with three descriptors to carrel-init, until its INIT_EXITED
 *	http	POST /v1/workspaces/NAME/exec on one kept connection, output captured, until the
 *whole answer is here
 *	life	POST /v1/workspaces, one exec of the program there, DELETE; on the same connection
 *	start	the same, with another limit than the workspace that is made ahead
 *	listed	the same as start, with a network that has a list
 *	create	POST /v1/workspaces alone; the workspace stays
 *	health	GET /healthz */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/str.h"
#include "sandbox/native/init_client.h"

extern char **environ;

struct roads {
	int http, init, null;
	const char *workspace;
	uint64_t next_id;
	char answer[1 << 16];
	const char *body;
};

static const char *why;

static int connect_to(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0 || !str_copy(address.sun_path, sizeof address.sun_path, path) ||
		connect(fd, (struct sockaddr *)&address, sizeof address)) {
		fprintf(stderr, "warm: connect to %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return fd;
}

static int by_spawn(struct roads *roads, const char *program)
{
	int status;
	char *words[] = { (char *)(uintptr_t)program, NULL };
	pid_t pid = vfork();
	if (pid == 0) {
		execve(program, words, environ);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	why = "it failed";
	return status == 0 ? 0 : -1;
}

static int by_init(struct roads *roads, const char *program)
{
	const char *const argv[] = { program, NULL }, *const env[] = { "PATH=/usr/bin:/bin", NULL };
	struct init_spawn spawn = { argv, env, "/workspace",
		INIT_NO_PIDFD | INIT_NO_STARTED | INIT_ATTACHED }; /* as core does */
	const int fds[3] = { roads->null, roads->null, roads->null };
	uint64_t id = roads->next_id++;
	struct init_reply reply;
	struct error err;
	int pidfd, got;
	why = "init did not answer as it should";
	if (init_client_spawn(roads->init, id, &spawn, fds, &err))
		return -1;
	do {
		struct pollfd wait = { .fd = roads->init, .events = POLLIN };
		poll(&wait, 1, 5000);
		got = init_client_receive(roads->init, &reply, &pidfd, &err);
	} while (got == INIT_CLIENT_NOTHING);
	if (got != INIT_CLIENT_REPLY || reply.type != INIT_EXITED || reply.id != id ||
		reply.value != 0)
		return -1;
	return 0;
}

/* One request and its whole answer; the status. */
static int call(struct roads *roads, const char *method, const char *path, const char *body)
{
	char request[4096];
	size_t len = 0;
	int size = snprintf(request, sizeof request,
		"%s %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n%s",
		method, path, strlen(body), body);
	why = "the daemon did not answer as it should";
	if (size >= (int)sizeof request || write(roads->http, request, (size_t)size) != size)
		return -1;
	for (;;) {
		ssize_t got =
			read(roads->http, roads->answer + len, sizeof roads->answer - 1 - len);
		if (got <= 0)
			return -1;
		len += (size_t)got;
		roads->answer[len] = 0;
		const char *end = strstr(roads->answer, "\r\n\r\n");
		const char *length = strcasestr(roads->answer, "content-length:");
		size_t wanted = length && length < end ? strtoul(length + 15, NULL, 10) : 0;
		if (end && len >= (size_t)(end + 4 - roads->answer) + wanted) {
			roads->body = end + 4;
			return (int)strtol(roads->answer + 9, NULL, 10);
		}
	}
}

static int exec_in(struct roads *roads, const char *workspace, const char *program)
{
	char path[256], body[512];
	snprintf(path, sizeof path, "/v1/workspaces/%s/exec", workspace);
	snprintf(body, sizeof body, "{\"argv\":[\"%s\"]}", program);
	return call(roads, "POST", path, body) == 200 && strstr(roads->body, "\"exit_code\":0,")
		       ? 0
		       : -1;
}

static int by_http(struct roads *roads, const char *program)
{
	return exec_in(roads, roads->workspace, program);
}

static int create(struct roads *roads, const char *body, char id[32])
{
	if (call(roads, "POST", "/v1/workspaces", body) != 201)
		return -1;
	const char *at = strstr(roads->body, "\"id\":\"");
	return at && sscanf(at + 6, "%20[0-9a-v]", id) == 1 ? 0 : -1;
}

static int live(struct roads *roads, const char *body, const char *program)
{
	char id[32], path[64];
	if (create(roads, body, id) || exec_in(roads, id, program))
		return -1;
	snprintf(path, sizeof path, "/v1/workspaces/%s", id);
	return call(roads, "DELETE", path, "") == 204 ? 0 : -1;
}

static int by_life(struct roads *roads, const char *program)
{
	return live(roads, "{}", program);
}

static int by_start(struct roads *roads, const char *program)
{
	return live(roads, "{\"limits\":{\"memory\":1073741824}}", program);
}

static int by_listed(struct roads *roads, const char *program)
{
	return live(roads,
		"{\"limits\":{\"memory\":1073741824},"
		"\"network\":{\"allow\":[\"a.example\",\"*.b.example\"]}}",
		program);
}

static int by_create(struct roads *roads, const char *program)
{
	char id[32];
	return create(roads, "{}", id);
}

static int by_health(struct roads *roads, const char *program)
{
	return call(roads, "GET", "/healthz", "") == 200 ? 0 : -1;
}

static const struct {
	const char *name;
	int (*take)(struct roads *roads, const char *program);
} table[] = {
	{ "spawn", by_spawn },
	{ "init", by_init },
	{ "http", by_http },
	{ "life", by_life },
	{ "start", by_start },
	{ "listed", by_listed },
	{ "create", by_create },
	{ "health", by_health },
};

static void answer(struct roads *roads, const char *road, const char *program, FILE *out)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (strcmp(table[i].name, road))
			continue;
		uint64_t before = clock_monotonic_ns();
		int failed = table[i].take(roads, program);
		uint64_t after = clock_monotonic_ns();
		if (failed)
			fprintf(out, "- %s: %s\n", road, why);
		else
			fprintf(out, "%llu\n", (unsigned long long)(after - before));
		return;
	}
	fprintf(out, "- no such road\n");
}

int main(int argc, char **argv)
{
	static struct roads roads = { .next_id = 1 };
	char line[1024];
	if (argc != 4)
		return 1;
	FILE *out = fdopen(fcntl(1, F_DUPFD_CLOEXEC, 10), "w");
	FILE *in = fdopen(fcntl(0, F_DUPFD_CLOEXEC, 10), "r");
	roads.null = open("/dev/null", O_RDWR | O_CLOEXEC);
	roads.http = connect_to(argv[1], SOCK_STREAM);
	roads.workspace = argv[2];
	roads.init = strcmp(argv[3], "-") ? connect_to(argv[3], SOCK_SEQPACKET) : -1;
	dup2(roads.null, 0);
	dup2(roads.null, 1);
	while (fgets(line, sizeof line, in)) {
		char *rest = line, *road = strsep(&rest, "\t\n"), *program = strsep(&rest, "\t\n");
		answer(&roads, road, program ? program : "", out);
		fflush(out);
	}
	return 0;
}
