/* Push notification configs of a task, for both bindings. */
#include "doors/a2a/a2a.h"

struct change {
	struct pending op;
	struct a2a a;
};

static struct change *change_new(struct a2a *a)
{
	struct change *change = pending_new(a->call, sizeof *change);
	change->a = *a;
	change->a.agent = NULL; /* may be gone by then */
	return change;
}

bool a2a_has_push(const struct a2a_agent *agent)
{
	return !agent->has_push || agent->push.count;
}

bool a2a_refuses_push(struct a2a *a)
{
	if (a2a_has_push(a->agent))
		return false;
	a2a_fail(a, A2A_NO_PUSH, "this agent sends no push notifications");
	return true;
}

/* The task's id: 0.3 calls it `id`, and the config's `pushNotificationConfigId`. NULL: there is
 * none, or the agent pushes nothing, and that was answered. */
static const char *task_of(struct a2a *a)
{
	const char *id = json_member_text(a->params, a->is_old ? "id" : "taskId");
	if (a2a_refuses_push(a))
		return NULL;
	if (!id || !id[0]) {
		a2a_fail(a, A2A_PARAMS,
			a->is_old ? "'id' must be the id of a task"
				  : "'taskId' must be the id of a task");
		return NULL;
	}
	return id;
}

static const char *config_of(struct a2a *a)
{
	const char *id = json_member_text(a->params, a->is_old ? "pushNotificationConfigId" : "id");
	return id && id[0] ? id : NULL;
}

/* Clients without a name see each other's configs: tokens prove to a receiver that this is us. */
static void print_config(
	const struct a2a *a, struct json *j, const char *key, const struct push_config *config)
{
	struct push_config shown = *config;
	if (access_is_client(a->call->request, a->name))
		shown.token = NULL;
	push_config_print(j, key, &shown, a->is_old);
}

static void on_set(void *ctx, const struct push_config *config, const struct error *err)
{
	struct change *change = ctx;
	struct a2a a = change->a;
	if (!pending_end(&change->op))
		return;
	if (err) {
		a2a_fail_with(&a, err, A2A_UNSUPPORTED);
		return;
	}
	const char *key;
	struct json *j = a2a_begin(&a, &key);
	print_config(&a, j, key, config);
	a2a_send(&a);
}

void a2a_set_push(struct a2a *a)
{
	const struct json_value *value =
		a->is_old ? json_member(a->params, "pushNotificationConfig") : a->params;
	const char *task = json_member_text(a->params, "taskId"); /* in 0.3, too */
	struct push_config given;
	struct error err;
	if (a2a_refuses_push(a))
		return;
	if (!task || !task[0])
		a2a_fail(a, A2A_PARAMS, "'taskId' must be the id of a task");
	else if (push_config_read(value, a->is_old, &given, &err))
		a2a_fail_with(a, &err, A2A_UNSUPPORTED);
	else
		push_config_set(
			a->call->request, a->agents, a->name, task, &given, on_set, change_new(a));
}

void a2a_get_push(struct a2a *a)
{
	const char *task = task_of(a), *id = config_of(a), *key;
	const struct push_config *config;
	struct error err;
	if (!task)
		return;
	if (!id && !a->is_old) {
		a2a_fail(a, A2A_PARAMS, "'id' must be the id of a push notification config");
		return;
	}
	if (push_config_get(a->call->request, a->agents, a->name, task, id, &config, &err)) {
		a2a_fail_with(a, &err, A2A_UNSUPPORTED);
		return;
	}
	struct json *j = a2a_begin(a, &key);
	print_config(a, j, key, config);
	a2a_send(a);
}

static void print_item(void *ctx, const struct push_config *config)
{
	const struct a2a *a = ctx;
	print_config(a, &a->call->json, NULL, config);
}

void a2a_list_pushes(struct a2a *a)
{
	const char *task = task_of(a), *key;
	struct error err;
	if (!task)
		return;
	struct json *j = a2a_begin(a, &key);
	if (!a->is_old)
		json_object(j, key);
	json_array(j, a->is_old ? key : "configs");
	if (push_config_list(a->call->request, a->agents, a->name, task, print_item, a, &err)) {
		buf_done(&a->call->out);
		a2a_fail_with(a, &err, A2A_UNSUPPORTED);
		return;
	}
	json_end(j);
	if (!a->is_old) {
		json_text(j, "nextPageToken", "");
		json_end(j);
	}
	a2a_send(a);
}

static void on_deleted(void *ctx, const struct push_config *config, const struct error *err)
{
	struct change *change = ctx;
	struct a2a a = change->a;
	const char *key;
	if (!pending_end(&change->op))
		return;
	if (err) {
		a2a_fail_with(&a, err, A2A_UNSUPPORTED);
		return;
	}
	struct json *j = a2a_begin(&a, &key);
	if (a.is_http) {
		json_object(j, NULL);
		json_end(j);
	} else {
		json_null(j, key);
	}
	a2a_send(&a);
}

void a2a_delete_push(struct a2a *a)
{
	const char *task = task_of(a), *id = config_of(a);
	if (!task)
		return;
	if (!id)
		a2a_fail(a, A2A_PARAMS,
			a->is_old ? "'pushNotificationConfigId' must be the id of a config"
				  : "'id' must be the id of a push notification config");
	else
		push_config_delete(
			a->call->request, a->agents, a->name, task, id, on_deleted, change_new(a));
}
