/* Certificate, key and CA of clients for TLS: read here, because core can't read a key of root's,
 * and looked at again while the daemon runs, so that a renewed one needs no restart. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"
#include "launch/internal.h"

#define LOOK_MS 1000
#define FILE_MAX 16000 /* three of them fit into a message */

/* One file as a text in `arena`. */
static int read_one(const char *path, struct arena *arena, const char **text,
	struct file_identity *identity, struct error *err)
{
	struct stat st;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st))
		return fail_errno(err, "open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return fail(err, ERR_INVALID, "'%s' is not a regular file", path);
	if (st.st_size > FILE_MAX)
		return fail(err, ERR_LIMIT, "'%s' has more than %d bytes", path, FILE_MAX);
	char *data = arena_alloc(arena, FILE_MAX + 1);
	ssize_t len = fd_read_full(fd, data, FILE_MAX);
	if (len < 0)
		return fail_errno(err, "read '%s'", path);
	data[len] = 0;
	if (strlen(data) != (size_t)len || !strstr(data, "-----BEGIN "))
		return fail(err, ERR_INVALID, "'%s' is not a PEM file", path);
	*text = data;
	*identity = (struct file_identity){ st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec,
		st.st_mtim.tv_nsec };
	return 0;
}

static int read_all(const struct launch_tls *tls, struct arena *arena, const char *texts[3],
	struct file_identity identities[3], struct error *err)
{
	const char *const paths[] = { tls->certificate, tls->key, tls->client_ca };
	for (size_t i = 0; i < 3; i++) {
		texts[i] = "";
		identities[i] = (struct file_identity){ 0 };
		if (paths[i] && read_one(paths[i], arena, &texts[i], &identities[i], err))
			return -1;
	}
	return 0;
}

static void wipe(const char *const texts[3])
{
	for (size_t i = 0; i < 3; i++)
		explicit_bzero((char *)(uintptr_t)texts[i], strlen(texts[i]));
}

int launch_tls_check(const struct launch_tls *tls, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	const char *texts[3];
	struct file_identity identities[3];
	if (!tls->certificate)
		return 0;
	if (read_all(tls, &arena, texts, identities, err))
		return -1;
	wipe(texts);
	return 0;
}

/* Whether one of the files is another one than that which core has, or can't be looked at. */
static bool have_changed(const struct launcher *launcher)
{
	const struct launch_tls *tls = &launcher->options->tls;
	const char *const paths[] = { tls->certificate, tls->key, tls->client_ca };
	struct stat st;
	for (size_t i = 0; i < 3; i++) {
		const struct file_identity *known = &launcher->certificates.identities[i];
		if (paths[i] && (stat(paths[i], &st) || st.st_dev != known->device ||
					st.st_ino != known->inode || st.st_size != known->size ||
					st.st_mtim.tv_sec != known->seconds ||
					st.st_mtim.tv_nsec != known->nanoseconds))
			return true;
	}
	return false;
}

static void on_look(struct loop *loop, void *ctx)
{
	struct launcher *launcher = ctx;
	launcher->certificates.timer = NULL;
	if (have_changed(launcher))
		certificates_send(launcher);
	else
		launcher->certificates.timer = loop_after(loop, LOOK_MS, on_look, launcher);
}

void certificates_send(struct launcher *launcher)
{
	auto_arena struct arena arena = { 0 };
	struct certificates *known = &launcher->certificates;
	const char *texts[3];
	struct file_identity identities[3];
	struct error err;
	if (!launcher->options->tls.certificate)
		return;
	loop_cancel(launcher->loop, known->timer);
	known->timer = loop_after(launcher->loop, LOOK_MS, on_look, launcher);
	/* One that is just being replaced: core goes on with what it has. */
	if (read_all(&launcher->options->tls, &arena, texts, identities, &err)) {
		if (strcmp(known->said, err.text) != 0)
			launcher_log(launcher, LOG_LEVEL_WARN, "certificates can't be read", NULL,
				NULL, &err);
		str_copy(known->said, sizeof known->said, err.text);
		return;
	}
	known->said[0] = 0;
	memcpy(known->identities, identities, sizeof identities);
	const struct launch_message head = { .type = LAUNCH_CERTIFICATES };
	link_send(launcher, &head, texts, 3, NULL, 0);
	wipe(texts);
}

void certificates_done(struct launcher *launcher)
{
	loop_cancel(launcher->loop, launcher->certificates.timer);
	launcher->certificates.timer = NULL;
}
