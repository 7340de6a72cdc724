/* carrel config: the settings of the operator. */
#include "cli/columns.h"
#include "cli/daemon/daemon.h"
#include "envs/shown.h"
#include "model/settings/config.h"

/* What holds, and the daemon that goes by it. */
struct in_force {
	struct config config;
	pid_t pid; /* of the daemon; 0: none runs */
	struct daemon_said said;
	bool has_changed; /* config.yaml, since that daemon has read it */
};

/* The options of the daemon hold as well. One of another version may have options that this
 * program doesn't know: what it can't read it doesn't guess. */
static int take_options(
	struct in_force *now, text_list *words, struct arena *arena, struct error *err)
{
	struct options options = { 0 };
	struct error why;
	int operands;
	bool help;
	size_t first = 0;
	while (first < words->count && strcmp(words->items[first], "serve") != 0)
		first++;
	vec_push(arena, words, NULL);
	words->count--;
	if (args_parse(&cli_serve, (int)(words->count - first), (char **)words->items + first,
		    &options, arena, &operands, &help, &why))
		return fail(err, ERR_UNAVAILABLE,
			"the options of the daemon (pid %d) can't be read: %s", (int)now->pid,
			why.text);
	serve_take_options(&options, now->said.base, arena, &now->config);
	return 0;
}

static int find(struct command *command, struct in_force *now, struct error *err)
{
	struct arena *arena = &command->arena;
	text_list words = { 0 };
	const char *home;
	if (home_find_path(arena, &home, err) || shown_read(home, arena, &now->config, err) ||
		daemon_look(home, arena, &now->pid, &now->said, &words, err))
		return -1;
	now->has_changed = now->pid && now->said.digest[0] &&
			   strcmp(now->said.digest, now->config.digest) != 0;
	return now->pid ? take_options(now, &words, arena, err) : 0;
}

/* Whether the operands name that key: itself, or its section; none name all. */
static bool is_asked(const text_list *operands, const char *key, bool *used)
{
	bool is_found = !operands->count;
	for (size_t i = 0; i < operands->count; i++) {
		size_t len = strlen(operands->items[i]);
		if (strncmp(key, operands->items[i], len) != 0 || (key[len] && key[len] != '.'))
			continue;
		is_found = true;
		used[i] = true;
	}
	return is_found;
}

static const char *print_from(struct config_from from, struct arena *arena)
{
	if (from.option)
		return arena_printf(arena, "serve %s", from.option);
	return from.line ? arena_printf(arena, "config.yaml:%d", from.line) : "default";
}

/* The value as one line: as it is in JSON, but for a text. */
static const char *print_value(const struct config *config, size_t index, struct arena *arena)
{
	auto_buf struct buf out = buf_empty(BUF_MAX_DEFAULT);
	struct json j = json_to(&out, false);
	struct json_value *read;
	struct error err;
	json_object(&j, NULL);
	config_print_value(&j, config, index);
	json_end(&j);
	json_finish(&j);
	if (json_read((struct str){ out.data, out.len }, arena, &read, &err))
		return NULL;
	const struct json_value *value = json_member(read, "value");
	if (value->kind == JSON_NULL)
		return NULL;
	return value->kind == JSON_STRING
		       ? value->string.data
		       : arena_bytes(arena, value->source.data, value->source.len);
}

static void print_json(struct json *j, const struct in_force *now, const bool *asked)
{
	json_object(j, NULL);
	json_array(j, "items");
	for (size_t i = 0; config_key(i); i++) {
		struct config_from from = config_from(&now->config, i);
		if (!asked[i])
			continue;
		json_object(j, NULL);
		json_text(j, "key", config_key(i));
		config_print_value(j, &now->config, i);
		json_text(j, "from", from.option ? "option" : from.line ? "file" : "default");
		if (from.line)
			json_i64(j, "line", from.line);
		else
			json_null(j, "line");
		json_text(j, "option", from.option);
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void print_table(struct command *command, const struct in_force *now, const bool *asked)
{
	struct arena *arena = &command->arena;
	struct columns columns = { .count = 3, .arena = arena };
	columns_add(&columns, (const char *const[]){ "KEY", "VALUE", "FROM" });
	for (size_t i = 0; config_key(i); i++)
		if (asked[i])
			columns_add(&columns,
				(const char *const[]){ config_key(i),
					print_value(&now->config, i, arena),
					print_from(config_from(&now->config, i), arena) });
	columns_print(&columns, &command->out);
}

static int run_show(struct command *command, struct error *err)
{
	const text_list *operands = &command->operands;
	struct in_force now = { 0 };
	size_t count = 0;
	while (config_key(count))
		count++;
	bool *asked = arena_array(&command->arena, count, sizeof *asked);
	bool *used = arena_array(&command->arena, operands->count + 1, sizeof *used);
	for (size_t i = 0; i < count; i++)
		asked[i] = is_asked(operands, config_key(i), used);
	for (size_t i = 0; i < operands->count; i++)
		if (!used[i])
			return fail_hint(err, ERR_NOT_FOUND, "carrel config show lists all keys",
				"there is no key '%s'", operands->items[i]);
	if (find(command, &now, err))
		return -1;
	if (now.has_changed)
		cli_say("config.yaml has changed since the daemon (pid %d) read it: that goes by "
			"the old one until carrel serve --reload",
			(int)now.pid);
	if (command->json)
		print_json(&command->value, &now, asked);
	else
		print_table(command, &now, asked);
	return 0;
}

static const struct arg_option show_table[] = { { ARG_FROM(format_rows) } };
static const struct arg_spec show_spec = {
	.command = "config show",
	.summary = "print what is in force, and where each value comes from",
	.usage = "[KEY...] [-o json]",
	.about = "Prints every key of config.yaml, or those that are named (a section: all of it), "
		 "with the value that is in force and where it comes from: the default, a line of "
		 "the file, or an option of the daemon that runs. Passwords of URLs are left out.",
	ARG_TABLE(show_table),
	.examples = "  carrel config show\n"
		    "  carrel config show serve environments.index\n",
	.run = run_show,
};
const struct arg_spec cli_config = {
	.command = "config",
	.summary = "show the operator's settings",
	.group = GROUP_DAEMON,
	.commands = (const struct arg_spec *const[]){ &show_spec, NULL },
};
