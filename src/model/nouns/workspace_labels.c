/* workspace_labels.c -- the labels of a workspace: those that clients give, and those that its
 * owner is shown as. */
#include "base/str.h"
#include "model/nouns/workspace.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* In the order in which they are shown. */
static const struct owner_label {
	const char *label;
	size_t offset;
	bool is_given; /* by a client, when it makes the workspace */
} owner_labels[] = {
#define AT(member) offsetof(struct workspace_owner, member)
	{ WORKSPACE_CONTEXT_LABEL, AT(context_id), true },
	{ WORKSPACE_AGENT_LABEL, AT(agent), true },
	{ WORKSPACE_NAMESPACE_LABEL, AT(namespace), true },
	{ WORKSPACE_SERVICE_LABEL, AT(service) },
	{ "carrel.task", AT(task) },
	{ "carrel.deployment", AT(deployment) },
	{ "carrel.role", AT(role) },
	{ "carrel.case", AT(case_id) },
	{ "carrel.tool", AT(tool) },
	{ "carrel.tool-version", AT(tool_version) },
	{ "package_id", AT(package_id) },
#undef AT
};

static const struct owner_label *find_row(const char *key)
{
	for (size_t i = 0; i < COUNT(owner_labels); i++)
		if (!strcmp(owner_labels[i].label, key))
			return &owner_labels[i];
	return NULL;
}

static const char **member_of(struct workspace_owner *owner, const struct owner_label *row)
{
	return (const char **)((char *)owner + row->offset);
}

static const char *value_of(const struct workspace_owner *owner, const struct owner_label *row)
{
	return *(const char *const *)((const char *)owner + row->offset);
}

static bool is_reserved(const char *key)
{
	return str_starts_with(str_from(key), WORKSPACE_RESERVED_LABELS);
}

/* ---- checks ---- */

static int check_value(const char *key, const char *value, struct error *err)
{
	size_t len = strlen(value);
	if (len > WORKSPACE_LABEL_VALUE_MAX)
		return fail(err, ERR_INVALID,
			"the value of label '%s' has %zu bytes; at most %d are kept", key, len,
			WORKSPACE_LABEL_VALUE_MAX);
	return str_utf8_prefix(value, len) == len
		       ? 0
		       : fail(err, ERR_INVALID, "the value of label '%s' is not UTF-8", key);
}

int workspace_check_label(const char *key, const char *value, struct error *err)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_./-";
	size_t len = strlen(key);
	if (len == 0 || len > WORKSPACE_LABEL_KEY_MAX || strspn(key, allowed) != len ||
		strchr("_./-", key[0]))
		return fail_hint(err, ERR_INVALID,
			"1 to 128 of A-Z, a-z, 0-9 and _./-, the first a letter or a digit",
			"'%.128s' is not the key of a label", key);
	if (is_reserved(key))
		return fail_hint(err, ERR_INVALID, "choose another name",
			"the label '%s' can't be set: names that begin with '%s' are those of "
			"Carrel's services",
			key, WORKSPACE_RESERVED_LABELS);
	return check_value(key, value, err);
}

int workspace_check_template_label(const char *key, const char *value, struct error *err)
{
	if (!strcmp(key, WORKSPACE_CONTEXT_LABEL))
		return fail_hint(err, ERR_INVALID,
			"give it to the workspace: carrel create --label",
			"the label '%s' can't be set by a template", key);
	return workspace_check_label(key, value, err);
}

/* ---- as they are shown ---- */

static const char *find_plain(const struct workspace *w, const char *key)
{
	for (size_t i = 0; i < w->labels.count; i++)
		if (!strcmp(w->labels.items[i].key, key))
			return w->labels.items[i].value;
	return NULL;
}

const char *workspace_label(const struct workspace *w, const char *key)
{
	const struct owner_label *row = find_row(key);
	const char *value = row ? value_of(&w->owner, row) : NULL;
	return value || is_reserved(key) ? value : find_plain(w, key);
}

pair_list workspace_labels(const struct workspace *w, struct arena *arena)
{
	pair_list shown = { 0 };
	for (size_t i = 0; i < COUNT(owner_labels); i++) {
		const char *value = value_of(&w->owner, &owner_labels[i]);
		if (value)
			vec_push(arena, &shown,
				((struct text_pair){ owner_labels[i].label, value }));
	}
	for (size_t i = 0; i < w->labels.count; i++) {
		struct text_pair pair = w->labels.items[i];
		const struct owner_label *row = find_row(pair.key);
		if (!is_reserved(pair.key) && !(row && value_of(&w->owner, row)))
			vec_push(arena, &shown, pair);
	}
	return shown;
}

/* ---- into its owner ---- */

int workspace_take_labels(struct workspace *wanted, struct arena *arena, struct error *err)
{
	const pair_list given = wanted->labels;
	struct workspace_owner *owner = &wanted->owner;
	bool is_client = !owner->service;
	wanted->labels = (pair_list){ 0 };
	for (size_t i = 0; i < given.count; i++) {
		const struct owner_label *row = find_row(given.items[i].key);
		bool is_member = row && (row->is_given || value_of(owner, row));
		if (is_member && row->is_given && is_client)
			*member_of(owner, row) = given.items[i].value;
		else if (!is_member)
			vec_push(arena, &wanted->labels, given.items[i]);
	}
	for (size_t i = 0; i < COUNT(owner_labels); i++) {
		const char *value = value_of(owner, &owner_labels[i]);
		if (value && check_value(owner_labels[i].label, value, err))
			return -1;
	}
	return 0;
}

static void add_once(struct arena *arena, text_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], text))
			return;
	vec_push(arena, list, text);
}

void workspace_drop_labels(struct workspace *w, struct arena *arena, text_list *dropped)
{
	const pair_list given = w->labels;
	w->labels = (pair_list){ 0 };
	for (size_t i = 0; i < given.count; i++) {
		const struct owner_label *row = find_row(given.items[i].key);
		if ((row && row->is_given) || is_reserved(given.items[i].key))
			add_once(arena, dropped, row ? row->label : WORKSPACE_RESERVED_LABELS);
		else
			vec_push(arena, &w->labels, given.items[i]);
	}
}

struct workspace workspace_unowned(const struct workspace *w, struct arena *arena)
{
	const pair_list shown = workspace_labels(w, arena);
	struct workspace copy = *w;
	copy.owner = (struct workspace_owner){ 0 };
	copy.labels = (pair_list){ 0 };
	for (size_t i = 0; i < shown.count; i++)
		if (!is_reserved(shown.items[i].key))
			vec_push(arena, &copy.labels, shown.items[i]);
	return copy;
}

int workspace_change_labels(const struct workspace *w, const pair_list *change, struct arena *arena,
	pair_list *changed, struct error *err)
{
	*changed = (pair_list){ 0 };
	for (size_t i = 0; i < change->count; i++) {
		const struct text_pair pair = change->items[i];
		const struct owner_label *row = find_row(pair.key);
		const char *is = row ? value_of(&w->owner, row) : NULL;
		if (workspace_check_label(pair.key, pair.value ? pair.value : "", err))
			return -1;
		if (is && pair.value && !strcmp(is, pair.value))
			continue; /* sent back as it was shown */
		if (is || (row && row->is_given && pair.value))
			return fail_hint(err, ERR_INVALID,
				"make another workspace: its creation may set the label",
				"the label '%s' can't be changed after the creation of a workspace",
				pair.key);
		vec_push(arena, changed, pair);
	}
	return 0;
}

void workspace_copy_owner(
	struct arena *arena, const struct workspace *from, struct workspace_owner *to)
{
	*to = (struct workspace_owner){ 0 };
	if (from->owner.service)
		return;
	to->agent = arena_text(arena, from->owner.agent);
	to->namespace = arena_text(arena, from->owner.namespace);
}

struct workspace_owner workspace_keep_owner(
	struct arena *arena, const struct workspace_owner *owner)
{
	struct workspace_owner kept = { 0 };
	for (size_t i = 0; i < COUNT(owner_labels); i++)
		*member_of(&kept, &owner_labels[i]) =
			arena_text(arena, value_of(owner, &owner_labels[i]));
	return kept;
}

/* ---- contexts ---- */

bool workspace_ttl_is_idle(const struct workspace *w)
{
	return w->owner.service && !strcmp(w->owner.service, WORKSPACE_AGENTS);
}

const char *workspace_context_name(
	struct arena *arena, const char *service, const char *agent, const char *context)
{
	bool is_agents = service && !strcmp(service, WORKSPACE_AGENTS);
	return is_agents && agent && context ? arena_printf(arena, "%s/%s", agent, context) : NULL;
}

const char *workspace_context_key(const struct workspace *w, struct arena *arena)
{
	const struct workspace_owner *owner = &w->owner;
	const char *name =
		workspace_context_name(arena, owner->service, owner->agent, owner->context_id);
	return name ? name : owner->context_id;
}
