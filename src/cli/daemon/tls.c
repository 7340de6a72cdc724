/* carrel tls init: a CA and a certificate for a first start. carreld makes them, as a locked role:
 * this program links no OpenSSL. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/role.h"

#define DAYS 397 /* as long as browsers take */
#define PEM_MAX 65536
#define CA "ca.pem"
#define CA_KEY "ca-key.pem"
#define CERTIFICATE "server.pem"
#define KEY "server-key.pem"

static int find_directory(struct command *command, const char **path, struct error *err)
{
	char here[PATH_MAX];
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	if (command->operands.count) {
		if (!getcwd(here, sizeof here))
			return fail_errno(err, "find the working directory");
		*path = path_normalize(&command->arena, here, command->operands.items[0]);
	} else if (geteuid() == 0) {
		*path = "/etc/carrel/tls";
	} else if (config && config[0] == '/') {
		*path = arena_printf(&command->arena, "%s/carrel/tls", config);
	} else if (home && home[0] == '/') {
		*path = arena_printf(&command->arena, "%s/.config/carrel/tls", home);
	} else {
		return fail_hint(err, ERR_INVALID, "carrel tls init DIR", "HOME is not set");
	}
	return 0;
}

static int open_directory(const char *path, int *dir, struct error *err)
{
	char made[PATH_MAX];
	bool fits = str_copy(made, sizeof made, path);
	for (char *at = made + 1; fits && (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(made, 0755);
		*at = '/';
	}
	mkdir(made, 0700);
	*dir = fits ? open(made, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return *dir < 0 ? fail_errno(err, "make the directory") : 0;
}

/* ---- what carreld is asked, and answers ---- */

static void list_names(struct command *command, struct json *j)
{
	char name[256] = "";
	const text_list *typed = &command->options.names;
	json_array(j, "names");
	for (size_t i = 0; i < typed->count; i++)
		json_text(j, NULL, typed->items[i]);
	if (!gethostname(name, sizeof name - 1) && name[0] && strcmp(name, "localhost") != 0)
		json_text(j, NULL, name);
	json_text(j, NULL, "localhost");
	json_text(j, NULL, "127.0.0.1");
	json_text(j, NULL, "::1");
	json_end(j);
}

static int print_question(struct command *command, int dir, struct buf *out, struct error *err)
{
	struct json j = json_to(out, false);
	struct str ca, key;
	bool is_there = !faccessat(dir, CA, F_OK, 0) || !faccessat(dir, CERTIFICATE, F_OK, 0);
	if (is_there && !command->options.renew)
		return fail_hint(err, ERR_CONFLICT,
			"--renew makes a new certificate of the same CA; carrel tls init DIR",
			"there is a certificate already");
	json_object(&j, NULL);
	list_names(command, &j);
	json_u64(&j, "days", command->options.count ? command->options.count : DAYS);
	if (command->options.renew) {
		if (file_read_at(dir, CA, PEM_MAX, &command->arena, &ca) ||
			file_read_at(dir, CA_KEY, PEM_MAX, &command->arena, &key))
			return fail_errno(err, "read " CA " and " CA_KEY);
		json_text(&j, "ca", ca.data);
		json_text(&j, "ca_key", key.data);
	}
	json_end(&j);
	json_finish(&j);
	return 0;
}

static int ask(struct command *command, const struct buf *text, const struct json_value **value,
	struct error *err)
{
	auto_close int input = -1;
	if (role_text(text->data, text->len, &input, err))
		return -1;
	const struct role_question question = { .name = "carrel-tls",
		.failure = "carreld could not make a certificate",
		.input = input };
	return role_ask(&question, &command->arena, value, err);
}

/* ---- the files ---- */

/* Keys first: a certificate without its key would be found by a daemon that looks for a change. */
static int write_files(int dir, const struct json_value *value, bool is_renewed, struct error *err)
{
	static const struct {
		const char *member, *name;
		mode_t mode;
		bool is_ca;
	} rows[] = { { "ca_key", CA_KEY, 0600, true }, { "ca", CA, 0644, true },
		{ "key", KEY, 0600, false }, { "certificate", CERTIFICATE, 0644, false } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *text = json_member_text(value, rows[i].member);
		if (rows[i].is_ca && is_renewed)
			continue;
		if (!text)
			return fail(err, ERR_FAILED, "carreld made no '%s'", rows[i].member);
		if (file_replace(dir, rows[i].name, rows[i].mode, str_from(text), true))
			return fail_errno(err, "write '%s'", rows[i].name);
	}
	return 0;
}

static void print(struct command *command, const char *path)
{
	static const char *const members[][2] = { { "ca", CA }, { "ca_key", CA_KEY },
		{ "certificate", CERTIFICATE }, { "key", KEY } };
	struct json j = json_to(&command->out, false);
	if (!command->json) {
		buf_printf(&command->out,
			"%s has a certificate of its own CA. Serve with it:\n"
			"  carrel serve --listen 0.0.0.0:7443 --tls-cert %s/" CERTIFICATE
			" --tls-key %s/" KEY "\n"
			"Names that clients use, besides localhost and addresses, stand in "
			"config.yaml"
			":\n"
			"  serve: {hosts: [HOST]}\n"
			"Copy %s/" CA " to clients, which trust it:\n"
			"  carrel context add NAME --host https://HOST:7443 --token-file FILE "
			"--ca " CA "\n"
			"  curl --cacert " CA " -H 'Authorization: Bearer TOKEN' "
			"https://HOST:7443/v1/workspaces\n"
			"Keep %s/" CA_KEY " secret: who has it can pose as this daemon.\n",
			path, path, path, path, path);
		return;
	}
	json_object(&j, NULL);
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		json_text(&j, members[i][0],
			arena_printf(&command->arena, "%s/%s", path, members[i][1]));
	json_end(&j);
	json_finish(&j);
	buf_char(&command->out, '\n');
}

static int run_init(struct command *command, struct error *err)
{
	auto_close int dir = -1;
	auto_buf struct buf question = buf_empty(8 * PEM_MAX);
	const struct json_value *value;
	const char *path;
	if (find_directory(command, &path, err))
		return -1;
	if (open_directory(path, &dir, err) || print_question(command, dir, &question, err) ||
		ask(command, &question, &value, err) ||
		write_files(dir, value, command->options.renew, err))
		return error_context(err, "%s", path);
	print(command, path);
	return 0;
}

static const struct arg_option init_table[] = {
	{ 0, "name", ARG_LIST, AT(names), "HOST",
		"a name or address that clients connect to, besides this host's own; repeatable" },
	{ 0, "days", ARG_COUNT, AT(count), "N", "how long the certificate is valid (397)", NULL, 1,
		3650 },
	{ 0, "renew", ARG_FLAG, AT(renew), NULL, "make a new certificate of the CA that is there" },
	{ 'o', "format", ARG_CHOICE, AT(format), "text|json", "output format", "text|json" },
};
static const struct arg_spec init_spec = {
	.command = "tls init",
	.summary = "make a CA and a certificate for carrel serve",
	.usage = "[DIR] [options]",
	.about = "Makes a CA of its own and a certificate for this host, for a first start with "
		 "TLS, in DIR (/etc/carrel/tls for root, ~/.config/carrel/tls for others), and "
		 "prints how to use them.",
	ARG_TABLE(init_table),
	.examples = "  carrel tls init --name desk.example\n"
		    "  carrel tls init --renew --name desk.example\n",
	.run = run_init,
};

static const struct arg_spec *const commands[] = { &init_spec, NULL };
const struct arg_spec cli_tls = {
	.command = "tls",
	.summary = "make certificates for carrel serve",
	.group = GROUP_DAEMON,
	.about = "Certificates of the daemon's TCP addresses.",
	.commands = commands,
};
