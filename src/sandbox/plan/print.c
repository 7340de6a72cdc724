#include "format/text/json.h"
#include "sandbox/plan/plan.h"

const char *plan_limiter_name(enum plan_limiter limiter)
{
	static const char *const names[] = { "cgroup-v1", "cgroup-v2", "watchdog" };
	return names[limiter];
}

static void print_limit(struct json *j, const char *key, uint64_t value)
{
	if (value)
		json_u64(j, key, value);
	else
		json_null(j, key);
}

static void print_flags(struct json *j, const char *key, unsigned flags, const char *const names[])
{
	json_array(j, key);
	for (int i = 0; names[i]; i++)
		if (flags & 1u << i && names[i][0])
			json_text(j, NULL, names[i]);
	json_end(j);
}

static void print_tree(struct json *j, const char *key, const struct plan_tree *tree)
{
	json_object(j, key);
	json_text(j, "target", tree->target);
	json_text(j, "base", tree->base);
	json_text(j, "layers", tree->layers);
	json_texts(j, "lowers", &tree->lowers);
	json_text(j, "upper", tree->upper);
	json_end(j);
}

static void print_network(struct json *j, const struct plan_network *network)
{
	static const char *const kinds[] = { "proxy", "resolver", "resolver_tcp", "names" };
	json_text(j, "network", network->forward ? "forward" : network_mode_name(network->mode));
	json_texts(j, "network_allow", &network->allow);
	json_texts(j, "network_deny", &network->deny);
	json_array(j, "network_listeners");
	for (size_t i = 0; i < network->listeners.count; i++) {
		json_object(j, NULL);
		json_text(j, "kind", kinds[network->listeners.items[i].kind]);
		json_u64(j, "port", network->listeners.items[i].port);
		json_end(j);
	}
	json_end(j);
}

static void print_identity(struct json *j, const struct plan *plan)
{
	json_object(j, "identity");
	json_bool(j, "privileged", plan->privileged);
	json_u64(j, "uid", plan->inside_uid);
	json_u64(j, "gid", plan->inside_gid);
	json_u64(j, "outside_uid", plan->outside_uid);
	json_u64(j, "outside_gid", plan->outside_gid);
	json_end(j);
}

static void print_root(struct json *j, const struct plan *plan)
{
	static const char *const kinds[] = { "directory", "link", "file" };
	json_object(j, "root");
	json_u64(j, "size_bytes", plan->root_bytes);
	json_u64(j, "inodes", plan->root_inodes);
	json_array(j, "nodes");
	for (size_t i = 0; i < plan->nodes.count; i++) {
		const struct plan_node *node = &plan->nodes.items[i];
		json_object(j, NULL);
		json_text(j, "kind", kinds[node->kind]);
		json_text(j, "path", node->path);
		if (node->text)
			json_text(j, node->kind == NODE_LINK ? "target" : "content", node->text);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void print_mounts(struct json *j, const struct plan *plan)
{
	static const char *const kinds[] = { "bind", "scratch", "tmpfs", "proc", "devpts",
		"overlay", "again", "packages", "views" };
	static const char *const flags[] = { "ro", "nodev", "noexec", "", "staging", NULL };
	json_array(j, "mounts");
	for (size_t i = 0; i < plan->mounts.count; i++) {
		const struct plan_mount *mount = &plan->mounts.items[i];
		json_object(j, NULL);
		json_text(j, "kind", kinds[mount->kind]);
		json_text(j, "target", mount->target);
		if (mount->source)
			json_text(j, "source", mount->source);
		if (mount->beneath)
			json_text(j, "beneath", mount->beneath);
		print_flags(j, "flags", mount->flags, flags);
		if (mount->idmap) {
			json_object(j, "idmap");
			json_u64(j, "owner_uid", mount->owner_uid);
			json_u64(j, "owner_gid", mount->owner_gid);
			json_end(j);
		}
		if (mount->kind == MOUNT_OVERLAY) {
			json_texts(j, "lowers", &mount->tree->lowers);
			json_text(j, "upper", mount->upper);
		}
		if (mount->kind == MOUNT_TMPFS) {
			json_u64(j, "size_bytes", mount->size_bytes);
			json_u64(j, "inodes", mount->inodes);
		}
		json_end(j);
	}
	json_end(j);
}

static void print_views(struct json *j, const struct plan *plan)
{
	json_array(j, "views");
	for (size_t i = 0; i < plan->views.count; i++) {
		json_object(j, NULL);
		json_text(j, "path", plan->views.items[i].path);
		json_text(j, "content", plan->views.items[i].text);
		json_end(j);
	}
	json_end(j);
}

static void print_landlock(struct json *j, const struct plan *plan)
{
	static const char *const access[] = { "read", "execute", "write", "device", "", "truncate",
		NULL };
	json_object(j, "landlock");
	json_u64(j, "abi", (uint64_t)plan->landlock_abi);
	json_text(j, "judges", plan->landlock_writes ? "writes" : "all");
	json_array(j, "rules");
	for (size_t i = 0; i < plan->rules.count; i++) {
		const struct plan_rule *rule = &plan->rules.items[i];
		json_object(j, NULL);
		json_text(j, "path", rule->path);
		print_flags(j, "access", rule->access, access);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void print_limits(struct json *j, const struct plan *plan)
{
	const struct limits *limits = &plan->limits;
	json_object(j, "limits");
	json_text(j, "kept_by", plan_limiter_name(plan->limiter));
	for (size_t i = 0; i < limit_count; i++) {
		uint64_t value = limit_get(limits, &limit_rows[i]);
		print_limit(j, field_name(&limit_rows[i], FIELD_KEPT).text, value);
		if (limit_rows[i].offset == offsetof(struct limits, disk_bytes))
			json_text(j, "disk_kept_by",
				plan->counted_disk ? "counted"
				: value		   ? "tmpfs"
						   : NULL);
	}
	json_object(j, "rlimits");
	for (size_t i = 0; i < plan->rlimits.count; i++)
		json_u64(j, plan->rlimits.items[i].name, plan->rlimits.items[i].value);
	json_end(j);
	json_end(j);
}

static void print_command(struct json *j, const struct plan *plan)
{
	static const char *const kinds[] = { "handed", "relayed", "captured", "tty", "empty" };
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	json_object(j, "command");
	json_array(j, "argv");
	for (char *const *arg = plan->argv; arg && *arg; arg++)
		json_text(j, NULL, *arg);
	json_end(j);
	json_text(j, "cwd", plan->cwd);
	json_texts(j, "env", &plan->env);
	json_u64(j, "umask", plan->umask);
	json_bool(j, "tty", plan->tty);
	for (int i = 0; i < 3; i++)
		json_text(j, names[i],
			i == 2 && plan->merged ? "with stdout" : kinds[plan->streams[i]]);
	json_end(j);
}

static void print_denials(struct json *j, const struct plan *plan)
{
	json_array(j, "denied");
	for (size_t i = 0; i < plan->denials.count; i++) {
		json_object(j, NULL);
		json_text(j, "path", plan->denials.items[i].path);
		json_text(j, "access", plan_denied_names[plan->denials.items[i].what]);
		json_end(j);
	}
	json_end(j);
}

void plan_print(const struct plan *plan, struct buf *out)
{
	static const char *const namespaces[] = { "user", "mount", "pid", "net", "ipc", "uts",
		"cgroup", NULL };
	static const char *const filters[] = { "landlock", "seccomp", "observe", NULL };
	struct json j = json_to(out, true);
	json_object(&j, NULL);
	json_text(&j, "isolation", plan->isolation);
	json_text(&j, "hostname", plan->hostname);
	print_network(&j, &plan->network);
	print_flags(&j, "namespaces", plan->namespaces, namespaces);
	print_identity(&j, plan);
	print_tree(&j, "workspace", plan->workspace);
	if (plan->scratch)
		json_text(&j, "scratch", plan->scratch);
	json_array(&j, "environments");
	for (size_t i = 0; i < plan->environments.count; i++)
		print_tree(&j, NULL, plan->environments.items[i]);
	json_end(&j);
	print_root(&j, plan);
	if (plan->covers.count)
		json_texts(&j, "covers", &plan->covers);
	print_mounts(&j, plan);
	print_views(&j, plan);
	json_texts(&j, "masked", &plan->masks);
	json_texts(&j, "read_only", &plan->read_only);
	if (plan->denials.count)
		print_denials(&j, plan);
	print_landlock(&j, plan);
	print_flags(&j, "filters", plan->filters, filters);
	json_text(&j, "seccomp", plan->seccomp);
	if (plan->judged)
		json_bool(&j, "judged", true);
	json_bool(&j, "ptrace", plan->ptrace);
	if (plan->filters & FILTER_OBSERVE)
		json_bool(&j, "observe", true);
	json_bool(&j, "setgid", plan->setgid);
	json_bool(&j, "memfd", plan->memfd);
	json_text(&j, "capabilities", plan->capabilities);
	json_bool(&j, "no_new_privs", plan->no_new_privs);
	print_limits(&j, plan);
	print_command(&j, plan);
	json_end(&j);
	buf_char(out, '\n');
}
