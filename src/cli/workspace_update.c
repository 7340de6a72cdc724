/* carrel update: PATCH of a workspace. */
#include <string.h>
#include "cli/cli.h"
#include "cli/remote.h"
#include "format/quantity.h"
#include "model/workspace.h"

struct update_options {
	struct remote_options remote;
	text_list labels, removed;
	const char *ttl, *idle_timeout;
	struct limits limits;
};
#define FIELD(name) offsetof(struct update_options, name)
/* An option that is absent changes nothing, so the defaults of `create` are not named here. */
static const struct arg_help helps[] = {
	{ "memory", "memory of all processes and tmpfs together" },
	{ "disk", "size of /workspace, /.cache and changes of /env" },
	{ "tmp", "size of /tmp and /dev/shm together" },
	{ "pids", "processes and threads" },
	{ "fds", "open files of a process" },
	{ "cpus", "number of CPUs, such as 0.5" },
	{ "cpu_time", "cpu time of one exec" },
	{ NULL, NULL },
};
static const struct arg_option table[] = {
	{ 'l', "label", ARG_LIST, FIELD(labels), "KEY=VALUE", "set a label; repeatable", NULL, 0,
		0 },
	{ 0, "remove-label", ARG_LIST, FIELD(removed), "KEY", "remove a label; repeatable", NULL, 0,
		0 },
	{ 0, "ttl", ARG_TEXT, FIELD(ttl), "TIME|none", "remove it after this time from now", NULL,
		0, 0 },
	{ 0, "idle-timeout", ARG_TEXT, FIELD(idle_timeout), "TIME|none",
		"suspend it when unused for this time", NULL, 0, 0 },
	{ .kind = ARG_RECORD, .offset = FIELD(limits), .record = &limits_record, .helps = helps },
	REMOTE_ROWS(FIELD),
};
#undef FIELD
static const struct arg_spec spec = {
	.command = "update",
	.usage = "carrel update NAME [options]",
	.about = "Changes a workspace. Options that are not given leave their settings unchanged. "
		 "Limits\n"
		 "can be changed only while no command runs in the workspace.",
	.options = table,
	.option_count = sizeof table / sizeof *table,
	.examples = "  carrel update demo --memory 4G --ttl 7d\n"
		    "  carrel update demo --label team=search --remove-label draft\n"
		    "  carrel update demo --idle-timeout none\n",
};

/* Nothing when it isn't given; null for "none". */
static int print_duration(
	struct json *j, const char *key, const char *option, const char *text, struct error *err)
{
	uint64_t ms;
	if (!text)
		return 0;
	if (!strcmp(text, "none")) {
		json_null(j, key);
		return 0;
	}
	if (quantity_parse_duration(text, &ms, err))
		return error_context(err, "--%s", option);
	json_u64(j, key, ms);
	return 0;
}

static int check_removed(const text_list *removed, struct error *err)
{
	for (size_t i = 0; i < removed->count; i++)
		if (workspace_check_label(removed->items[i], "", err))
			return error_context(err, "--remove-label");
	return 0;
}

static int print_request(const struct update_options *options, struct buf *out, struct error *err)
{
	static const struct limits none;
	struct json j;
	json_init(&j, out, false);
	json_object(&j, NULL);
	if (check_removed(&options->removed, err) ||
		remote_print_labels(&j, &options->labels, &options->removed, err) ||
		print_duration(&j, "ttl_ms", "ttl", options->ttl, err) ||
		print_duration(&j, "idle_timeout_ms", "idle-timeout", options->idle_timeout, err))
		return -1;
	if (memcmp(&options->limits, &none, sizeof none))
		record_print_given(&j, "limits", &limits_record, &options->limits);
	json_end(&j);
	return out->len > strlen("{}")
		       ? 0
		       : fail_hint(err, ERR_INVALID, "carrel update --help lists the options",
				 "no change was given");
}

int cli_update(int argc, char **argv)
{
	struct update_options options = { 0 };
	auto_remote struct remote remote = REMOTE_NONE;
	auto_buf struct buf body, out;
	struct remote_answer answer = { 0 };
	text_list operands = { 0 };
	struct error err;
	int code;
	buf_init(&body, BUF_MAX_DEFAULT);
	buf_init(&out, BUF_MAX_DEFAULT);
	if (!remote_parse(
		    &remote, &spec, argc, argv, &options, &options.remote, 1, 1, &operands, &code))
		return code;
	if (print_request(&options, &body, &err) || remote_open(&remote, &options.remote, &err) ||
		remote_call(&remote, "PATCH", remote_workspace_path(&remote, operands.items[0], ""),
			&body, &answer, &err))
		return cli_fail(&err, remote.json);
	if (remote.json)
		return remote_print_answer(&answer);
	const char *name = json_member_text(answer.value, "name");
	buf_printf(&out, "updated %s\n", name ? name : operands.items[0]);
	return remote_print(&out);
}
