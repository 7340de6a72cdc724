#include "base/path.h"
#include "base/str.h"
#include "sandbox/plan/plan.h"

static int check_ids(const struct plan *plan, struct error *err)
{
	if (plan->inside_uid == 0 || plan->inside_gid == 0)
		return fail(err, ERR_INVALID, "a sandbox can't run as root inside");
	/* An unprivileged user maps their own id, which may be any number in their namespace. */
	if (plan->privileged && (plan->outside_uid == 0 || plan->outside_gid == 0))
		return fail(err, ERR_INVALID, "a sandbox can't run as root outside");
	return 0;
}

static int fail_hidden(const char *target, const char *hidden, struct error *err)
{
	fail(err, ERR_CONFLICT, "mount '%s' is given twice, or hides '%s'", target, hidden);
	if (!strcmp(target, PLAN_WORKSPACE))
		error_hint(err, "--dir PATH puts a directory there");
	return -1;
}

/* Of something below a directory, however deep: no part of it leads elsewhere. */
static bool is_plain_name(const char *name)
{
	char absolute[4096] = "/";
	return str_copy(absolute + 1, sizeof absolute - 1, name) && path_is_normal(absolute);
}

/* A lower is a plain name below the layers: no part of it leads elsewhere. */
static int check_overlay(const struct plan_mount *mount, struct error *err)
{
	const text_list *lowers = &mount->tree->lowers;
	if (!lowers->count || lowers->count > PLAN_LOWERS_MAX)
		return fail(err, ERR_LIMIT, "'%s' has %zu layers; there can be 1 to %d",
			mount->target, lowers->count, PLAN_LOWERS_MAX);
	if (lowers->count == 1 && !strcmp(lowers->items[0], PLAN_LAYERS_THEMSELVES))
		return 0;
	for (size_t i = 0; i < lowers->count; i++)
		if (!is_plain_name(lowers->items[i]) || strpbrk(lowers->items[i], ":,\\"))
			return fail(err, ERR_INVALID, "layer '%s' of '%s' is not a plain name",
				lowers->items[i], mount->target);
	return 0;
}

/* The owner of the home can replace a name there by a link at any time, and root would follow it.
 */
static int check_source(const struct plan *plan, const struct plan_mount *mount, struct error *err)
{
	if (!path_is_normal(mount->source))
		return fail(err, ERR_INVALID, "mount source '%s' is not an absolute, plain path",
			mount->source);
	if (mount->beneath && !is_plain_name(mount->beneath))
		return fail(err, ERR_INVALID, "'%s' in mount source '%s' is not a plain name",
			mount->beneath, mount->source);
	if (mount->beneath)
		return 0;
	if (!(mount->flags & MOUNT_USER))
		return 0;
	if (!plan->home && plan->privileged)
		return fail(err, ERR_INVALID,
			"mount source '%s' can't be checked: carrel's home is not known",
			mount->source);
	if (plan->home && path_is_beneath(mount->source, plan->home) &&
		strcmp(mount->source, plan->home) != 0)
		return fail(err, ERR_INVALID,
			"mount source '%s' is below carrel's home and would be opened by its path; "
			"links there must not be followed",
			mount->source);
	return 0;
}

/* Only an environment's overlay is shown a second time, and only below the workspace. */
static int check_again(const struct plan *plan, size_t index, struct error *err)
{
	const struct plan_mount *again = &plan->mounts.items[index];
	for (size_t i = 0; i < index; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		if (mount->kind == MOUNT_OVERLAY && !strcmp(mount->target, again->source) &&
			path_is_beneath(again->target, PLAN_WORKSPACE) &&
			strcmp(again->target, PLAN_WORKSPACE) != 0)
			return 0;
	}
	return fail(err, ERR_INVALID, "'%s' can't be mounted again at '%s'", again->source,
		again->target);
}

/* The layers of an overlay that was mounted just before, whose parts are there still. */
static int check_packages(const struct plan *plan, size_t index, struct error *err)
{
	const struct plan_mount *packages = &plan->mounts.items[index];
	const struct plan_mount *overlay = index ? packages - 1 : NULL;
	if (overlay && overlay->kind == MOUNT_OVERLAY && overlay->tree == packages->tree &&
		packages->tree->frozen < packages->tree->lowers.count &&
		packages->flags & MOUNT_RO && plan->judged)
		return 0;
	return fail(err, ERR_INVALID, "the package layers at '%s' are not those of an environment",
		packages->target);
}

/* The workspace in view root, a file system of its own: what was mounted before is put into it. */
static bool is_workspace_root(const struct plan *plan, const struct plan_mount *mount)
{
	return plan_has_root_view(plan) && !strcmp(mount->target, PLAN_ROOT) &&
	       (mount->kind == MOUNT_OVERLAY ? mount->tree == plan->workspace
					     : mount->kind == MOUNT_TMPFS);
}

static int check_mounts(const struct plan *plan, struct error *err)
{
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		bool is_root = is_workspace_root(plan, mount);
		if (!path_is_normal(mount->target) || (!strcmp(mount->target, "/") && !is_root))
			return fail(err, ERR_INVALID,
				"mount target '%s' is not an absolute, plain path", mount->target);
		if (mount->kind == MOUNT_BIND && check_source(plan, mount, err))
			return -1;
		if (mount->kind == MOUNT_TMPFS && (!mount->size_bytes || !mount->inodes))
			return fail(
				err, ERR_INVALID, "the tmpfs at '%s' has no size", mount->target);
		if (mount->kind == MOUNT_OVERLAY && check_overlay(mount, err))
			return -1;
		if (mount->kind == MOUNT_AGAIN && check_again(plan, i, err))
			return -1;
		if (mount->kind == MOUNT_PACKAGES && check_packages(plan, i, err))
			return -1;
		for (size_t j = 0; !is_root && j < i; j++) {
			const struct plan_mount *other = &plan->mounts.items[j];
			if (!(other->flags & MOUNT_STAGING) &&
				path_is_beneath(other->target, mount->target))
				return fail_hidden(mount->target, other->target, err);
		}
	}
	return 0;
}

/* What is counted is what the workspace shows, and of layers that isn't what was written. A daemon
 * counts by other means. */
static int check_disk(const struct plan *plan, struct error *err)
{
	if (plan->counted_disk && !plan->warm && plan->workspace->lowers.count)
		return fail(err, ERR_UNAVAILABLE,
			"a disk limit of '%s' can't be kept: it has layers",
			plan->workspace->target);
	return 0;
}

/* Sockets to egress exist only in the network modes that have them. */
static int check_network(const struct plan_network *network, struct error *err)
{
	bool has_names = plan_network_has_names(network);
	size_t own = has_names ? 5 : network->forward ? 1 : 0;
	if (network->ports.count > PLAN_PORTS_MAX)
		return fail(err, ERR_LIMIT, "a network has %zu ports; there can be at most %d",
			network->ports.count, PLAN_PORTS_MAX);
	if (network->listeners.count != own + network->ports.count ||
		(network->forward && has_names) || (network->ports.count && !has_names))
		return fail(err, ERR_INVALID, "the listeners of a network don't fit its mode");
	for (size_t i = 0; i < network->ports.count; i++)
		if (!network->ports.items[i])
			return fail(err, ERR_INVALID, "a network has the port 0");
	return 0;
}

/* A sandbox has every lock: a plan that lacks one is refused. */
static bool is_weak(const struct plan *plan)
{
	return plan->isolation && !strcmp(plan->isolation, PLAN_ISOLATION_LANDLOCK);
}

/* Without namespaces the kernel's two filters are all there is: nothing may be mounted, reach a
 * socket, stay, or hide what a mount would have hidden. */
static int check_weak(const struct plan *plan, struct error *err)
{
	if (plan->namespaces || plan->mounts.count || plan->nodes.count || plan->denials.count ||
		plan->environments.count || plan->network.listeners.count || plan->warm ||
		plan->ptrace || plan->landlock_writes || !plan->scratch ||
		!path_is_normal(plan->scratch) || strcmp(plan->seccomp, PLAN_NO_SOCKETS) != 0)
		return fail(err, ERR_INVALID,
			"a sandbox without namespaces can't have mounts, a network or a way to "
			"stay");
	return 0;
}

static int check_isolation(const struct plan *plan, struct error *err)
{
	const unsigned filters = FILTER_LANDLOCK | FILTER_SECCOMP;
	if (is_weak(plan) && check_weak(plan, err))
		return -1;
	if (!is_weak(plan) && plan->namespaces != NAMESPACE_ALL)
		return fail(err, ERR_INVALID, "a sandbox needs all namespaces of its own");
	if ((plan->filters & filters) != filters || !plan->no_new_privs)
		return fail(err, ERR_INVALID,
			"a sandbox needs Landlock, a system call filter and no_new_privs");
	if (strcmp(plan->capabilities, "none") != 0)
		return fail(err, ERR_INVALID, "a sandbox can't have the capabilities '%s'",
			plan->capabilities);
	return check_network(&plan->network, err);
}

static int check_denials(const struct plan *plan, struct error *err)
{
	if (plan->denials.count > PLAN_DENIALS_MAX)
		return fail(err, ERR_LIMIT, "%zu denied paths; there can be at most %d",
			plan->denials.count, PLAN_DENIALS_MAX);
	for (size_t i = 0; i < plan->denials.count; i++)
		if (denial_check(&plan->denials.items[i], err))
			return -1;
	return 0;
}

static int check_limits(const struct plan *plan, struct error *err)
{
	const struct limits *limits = &plan->limits;
	if (limits_check(limits, err))
		return -1;
	if (!limits->memory_bytes || (!limits->tmp_bytes && !is_weak(plan)) || !limits->pids ||
		!limits->fds)
		return fail(err, ERR_INVALID, "memory, tmp, pids and fds need a limit");
	return 0;
}

int plan_check(const struct plan *plan, struct error *err)
{
	if (check_ids(plan, err) || check_isolation(plan, err) || check_mounts(plan, err) ||
		check_denials(plan, err) || check_limits(plan, err) || check_disk(plan, err))
		return -1;
	if (!path_is_normal(plan->cwd))
		return fail(err, ERR_INVALID,
			"working directory '%s' is not an absolute, plain path", plan->cwd);
	if (plan->warm ? plan->argv != NULL : !plan->argv || !plan->argv[0] || !plan->argv[0][0])
		return fail_hint(err, ERR_INVALID, "carrel run [options] -- CMD [ARG...]",
			"no command was given");
	if (plan->landlock_abi < 1)
		return fail_hint(err, ERR_UNAVAILABLE,
			"carrel doctor shows the cause and how to change it",
			"Landlock is not available on this kernel");
	return 0;
}
