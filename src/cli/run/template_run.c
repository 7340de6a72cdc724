/* carrel run --template: carreld reads the YAML, as a locked role without network; what it says is
 * put under the options that were typed. */
#include "base/fd.h"
#include "cli/environments/template.h"
#include "cli/role.h"
#include "model/nouns/template.h"

static bool is_path(const char *text)
{
	return strchr(text, '/') || strchr(text, '.') || !strcmp(text, "-");
}

/* The role reads the text of a file, or nothing when it is to find a name in the home. It answers
 * {"template": {…}, "warnings": […]}. */
static int ask(
	const char *asked, struct arena *arena, const struct json_value **answer, struct error *err)
{
	struct str text = STR("");
	struct error no_home;
	const char *home = NULL;
	auto_close int input = -1;
	if (is_path(asked) && template_read_file(asked, arena, &text, err))
		return -1;
	if (role_text(text.data, text.len, &input, err))
		return -1;
	if (home_find_path(arena, &home, &no_home))
		home = "";
	const struct role_settings settings = { .home = home,
		.template = is_path(asked) ? NULL : asked };
	const struct role_path root[] = { { home, ROLE_READ } };
	const struct role_question question = { .name = "carrel-template",
		.failure = "carreld could not read the template",
		.settings = &settings,
		.input = input,
		.root = root,
		.root_count = home[0] ? 1 : 0 };
	return role_ask(&question, arena, answer, err);
}

static int read_template(
	const struct json_value *value, struct arena *arena, struct template *t, struct error *err)
{
	const struct json_value *found = json_member(value, "template");
	if (!found)
		return fail(err, ERR_FAILED, "carreld printed no template");
	template_say_warnings(value);
	return template_read(found, arena, t, err);
}

static int resolve(const char *asked, struct arena *arena, struct template *t, struct error *err)
{
	const struct json_value *answer;
	if (!is_path(asked) && template_check_name(asked, err))
		return -1;
	if (!ask(asked, arena, &answer, err) && !read_template(answer, arena, t, err))
		return 0;
	return is_path(asked) && err->code == ERR_INVALID ? error_context(err, "%s", asked) : -1;
}

/* Variables of the template come first: the last setting of a variable counts. */
static void set_variables(struct options *options, const pair_list *env, struct arena *arena)
{
	text_list all = { 0 };
	for (size_t i = 0; i < env->count; i++)
		vec_push(arena, &all,
			arena_printf(arena, "%s=%s", env->items[i].key, env->items[i].value));
	for (size_t i = 0; i < options->variables.count; i++)
		vec_push(arena, &all, options->variables.items[i]);
	options->variables = all;
}

int template_use(struct options *options, struct arena *arena, struct error *err)
{
	struct template t;
	if (!options->template)
		return 0;
	if (resolve(options->template, arena, &t, err))
		return error_context(err, "--template");
	struct workspace wanted = { .limits = options->limits,
		.environments.of[ENV_KIND_PYTHON] = options->environment,
		.attach = options->attach,
		.network = { .mode = options->net,
			.allow = options->allow_domains,
			.deny = options->deny_domains },
		.python = options->env.python,
		.requirements = options->env.requirement_files.count ? "" : NULL,
		.packages = options->env.pip,
		.node = { .version = options->env.node.version,
			.package_json = options->env.requirement_files.count ? "" : NULL,
			.packages = options->env.node.packages } };
	template_apply(&t, arena, &wanted);
	options->limits = wanted.limits;
	options->env.python = wanted.python;
	options->env.pip = wanted.packages;
	options->env.node.version = wanted.node.version;
	options->env.node.packages = wanted.node.packages;
	if (!options->env.node.runtime && wanted.node.packages.count)
		options->env.node.runtime = template_runtime(&t);
	options->attach = wanted.attach;
	options->net = wanted.network.mode;
	options->allow_domains = wanted.network.allow;
	options->deny_domains = wanted.network.deny;
	options->template_settings = wanted.policy.template_settings;
	options->template_sources = wanted.policy.template_sources;
	if (!options->view)
		options->view = workspace_view_names[wanted.view];
	set_variables(options, &wanted.env, arena);
	return 0;
}
