#include "cli/run/policy_file.h"

#include <fcntl.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "model/nouns/workspace.h"
#include "policy/policy.h"
#include "policy/stack.h"
#include "sandbox/plan/denials.h"

#define PUBLISHED "policy.json" /* as core/access/policies.h, whose room isn't ours */
#define FILE_MAX_BYTES (4 * (size_t)WORKSPACE_POLICY_BYTES_MAX) /* with blanks and comments */

const struct arg_option policy_file_rows[2] = {
	{ 's', "settings", ARG_TEXT, AT(settings), "FILE",
		"judge commands and files by the rules of this settings.json", .least = 1 },
	{ 0, "sources", ARG_TEXT, AT(sources), "FILE",
		"install, reach, clone and run only what this sources.json has", .least = 1 },
};

static int compact(const char *path, struct str text, struct arena *arena, const char **json,
	struct error *err)
{
	auto_buf struct buf out = buf_empty(WORKSPACE_POLICY_BYTES_MAX);
	struct json j = json_to(&out, false);
	struct json_value *value;
	if (json_read(text, arena, &value, err))
		return -1;
	if (value->kind != JSON_OBJECT)
		return fail(err, ERR_INVALID, "'%s' is not an object", path);
	json_copy(&j, NULL, value);
	if (out.overflow)
		return fail(err, ERR_LIMIT, "'%s' has more than %d bytes", path,
			WORKSPACE_POLICY_BYTES_MAX);
	*json = arena_bytes(arena, out.data, out.len);
	return 0;
}

static int read_text(const char *path, struct arena *arena, struct str *text, struct error *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || file_read(fd, FILE_MAX_BYTES, arena, text))
		return fail_errno(err, "read '%s'", path);
	return 0;
}

int policy_file_settings(
	const char *path, struct arena *arena, const char **json, struct error *err)
{
	static const struct policy_places places = { "/workspace", "context", "/workspace" };
	struct policy_file file = { .name = path };
	struct policy policy;
	policy_init(&policy, arena);
	return read_text(path, arena, &file.text, err) ||
			       policy_add_file(&policy, &file, &places, err) ||
			       compact(path, file.text, arena, json, err)
		       ? -1
		       : 0;
}

int policy_file_sources(const char *path, struct arena *arena, const char **json, struct error *err)
{
	struct sources sources;
	struct str text;
	return read_text(path, arena, &text, err) ||
			       sources_parse(path, text, arena, &sources, err) ||
			       compact(path, text, arena, json, err)
		       ? -1
		       : 0;
}

int policy_file_print(struct json *j, const struct options *options, bool may_remove,
	struct arena *arena, struct error *err)
{
	const struct {
		const char *key, *path;
		int (*read)(const char *path, struct arena *arena, const char **json,
			struct error *err);
	} files[] = { { "settings", options->settings, policy_file_settings },
		{ "sources", options->sources, policy_file_sources } };
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		const char *json;
		if (!files[i].path)
			continue;
		if (may_remove && !strcmp(files[i].path, "none")) {
			json_null(j, files[i].key);
			continue;
		}
		if (files[i].read(files[i].path, arena, &json, err))
			return -1;
		json_raw(j, files[i].key, json);
	}
	return 0;
}

/* The JSON of the member, if it is an object; else NULL. */
static const char *member_json(const struct json_value *w, const char *name, struct arena *arena)
{
	const struct json_value *value = json_member(w, name);
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&out, false);
	if (!value || value->kind != JSON_OBJECT)
		return NULL;
	json_copy(&j, NULL, value);
	return arena_bytes(arena, out.data, out.len);
}

const char *policy_file_describe(const struct json_value *w, struct arena *arena)
{
	static const char *const names[] = { "template_settings", "template_sources", "settings",
		"sources" };
	static const text_list no_rules;
	const char *context = json_member_text(w, "name");
	const struct policy_places places = { "/workspace", context ? context : "context",
		"/workspace" };
	const struct policy_layer layers[] = {
		{ "", member_json(w, names[0], arena), NULL, false },
		{ "", member_json(w, names[2], arena), NULL, false },
	};
	struct policy_stack stack;
	plan_denials denials = { 0 };
	text_list judged = { 0 };
	struct error ignored;
	const char *text = NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (json_member(w, names[i]))
			text = arena_printf(
				arena, "%s%s%s", text ? text : "", text ? ", " : "", names[i]);
	if (!text || policy_stack_build(
			     &stack, layers, 2, &no_rules, POLICY_ASK, &places, arena, &ignored))
		return text;
	denials_of(&stack, arena, &denials, &judged);
	for (size_t i = 0; i < judged.count; i++)
		text = arena_printf(
			arena, "%s%s%s", text, i ? ", " : "; judged only: ", judged.items[i]);
	return text;
}

int policy_file_operator(const struct config *config, struct arena *arena,
	struct policy_operator *policy, struct error *err)
{
	*policy = (struct policy_operator){ .otherwise = config->policy_default };
	if (config->policy_settings &&
		policy_file_settings(config->policy_settings, arena, &policy->settings, err))
		return error_context(err, "policy.settings of config.yaml");
	if (config->policy_sources &&
		policy_file_sources(config->policy_sources, arena, &policy->sources, err))
		return error_context(err, "policy.sources of config.yaml");
	return 0;
}

int policy_file_publish(const struct home *home, const struct config *config, struct arena *arena,
	struct error *err)
{
	struct policy_operator policy;
	auto_close int run = -1;
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&out, false);
	if (policy_file_operator(config, arena, &policy, err) ||
		home_open_directory(home, "run", &run, err))
		return -1;
	auto_leave const struct home *entered = home_entered(home);
	if (!policy.settings && !policy.sources && !policy.otherwise)
		return unlinkat(run, PUBLISHED, 0) && errno != ENOENT
			       ? fail_errno(err, "remove 'run/" PUBLISHED "'")
			       : 0;
	json_object(&j, NULL);
	json_text(&j, "settings", policy.settings);
	json_text(&j, "sources", policy.sources);
	json_text(&j, "default", policy.otherwise);
	json_end(&j);
	if (file_replace(run, PUBLISHED, 0600, (struct str){ out.data, out.len }, true))
		return fail_errno(err, "write 'run/" PUBLISHED "'");
	return 0;
}
