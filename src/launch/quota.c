/* Disk limits that the kernel keeps, where it does. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "launch/internal.h"
#include "linux/disk_quota.h"

#define TRIAL ".quota" /* not a valid id, so it can't clash */
#define BYTES_A_FILE 4096
#define FILES_LEAST 1024

/* By trying it once, on a directory beside those that it is about. */
static enum quota_mechanism find_mechanism(struct launcher *launcher)
{
	char why[QUOTA_WHY_LEN] = "";
	struct error err;
	auto_close int workspaces = -1;
	enum quota_mechanism found = QUOTA_COUNTED;
	if (home_open_directory(launcher->home, "workspaces", &workspaces, &err))
		return QUOTA_COUNTED;
	home_enter(launcher->home);
	unlinkat(workspaces, TRIAL, AT_REMOVEDIR);
	if (!mkdirat(workspaces, TRIAL, 0700)) {
		auto_close int trial = fd_open_directory(workspaces, TRIAL);
		if (trial >= 0)
			found = quota_probe(trial, why);
		unlinkat(workspaces, TRIAL, AT_REMOVEDIR);
	}
	home_leave(launcher->home);
	fail(&err, ERR_UNAVAILABLE, "%s", why);
	launcher_log(launcher, LOG_LEVEL_INFO,
		found == QUOTA_COUNTED ? "disk limits are enforced by counting"
				       : "disk limits are enforced by the file system",
		NULL, NULL, why[0] ? &err : NULL);
	return found;
}

/* Made here, because a role may make no subvolume; limited while it is empty. */
static int make_limited(struct launcher *launcher, const struct launch_message *head,
	enum quota_mechanism *used, struct error *err)
{
	uint64_t bytes = head->limits.disk_bytes, files = bytes / BYTES_A_FILE;
	auto_close int workspaces = -1, dir = -1;
	if (home_open_directory(launcher->home, "workspaces", &workspaces, err))
		return -1;
	home_enter(launcher->home);
	if (!quota_make_directory(workspaces, head->id, 0700, *used))
		dir = fd_open_directory(workspaces, head->id);
	int failed = dir < 0 ? fail_errno(err, "make the directory 'workspaces/%s'", head->id) : 0;
	if (!failed && quota_limit(dir, launcher->quota, bytes,
			       !bytes		     ? 0
			       : files < FILES_LEAST ? FILES_LEAST
						     : files,
			       err)) {
		failed = err->code == ERR_UNAVAILABLE ? 0 : -1;
		*used = QUOTA_COUNTED;
		if (!failed)
			launcher_log(launcher, LOG_LEVEL_WARN,
				"a disk limit is enforced by counting", head->id, head->request_id,
				err);
	}
	home_leave(launcher->home);
	return failed;
}

void quota_answer(struct launcher *launcher, const struct launch_packet *packet, const int *fds)
{
	const struct launch_message *head = &packet->head;
	struct launch_message done = { .type = LAUNCH_DONE, .tag = head->tag };
	struct error err;
	if (!launcher->has_quota)
		launcher->quota = find_mechanism(launcher);
	launcher->has_quota = true;
	enum quota_mechanism used = launcher->quota;
	if (make_limited(launcher, head, &used, &err)) {
		launcher_log(launcher, LOG_LEVEL_WARN, "a workspace can't be made", head->id,
			head->request_id, &err);
		link_send_failed(launcher, head->tag, &err);
		return;
	}
	done.value = (int32_t)used;
	link_send(launcher, &done, NULL, 0, NULL, 0);
}
