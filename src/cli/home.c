/* carrel home init: the home as a file system of its own, in one sparse file, where the kernel
 * keeps the disk limits of workspaces. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "format/json.h"
#include "format/quantity.h"
#include "linux/home.h"
#include "linux/home_image.h"

struct init_options {
	uint64_t size_bytes;
	const char *fs, *format;
};
static const struct arg_option init_table[] = {
	{ 0, "size", ARG_SIZE, offsetof(struct init_options, size_bytes), "SIZE",
		"maximum size of the home; the disk space is used as it fills", NULL, 0, 0 },
	{ 0, "fs", ARG_CHOICE, offsetof(struct init_options, fs), "btrfs|ext4",
		"the file system (btrfs); ext4 needs a kernel with project quotas", "btrfs|ext4", 0,
		0 },
	ARG_FORMAT_ROW(offsetof(struct init_options, format)),
};
static const struct arg_spec init_spec = {
	.command = "home init",
	.usage = "carrel home init --size SIZE [--fs btrfs|ext4] [-o json]",
	.about =
		"Makes a file system for the home ($CARREL_HOME, or /var/lib/carrel) in the sparse "
		"file\n$CARREL_HOME.img, so that the kernel enforces the disk limits of workspaces "
		"exactly. Needs root, and\na home that does not exist or is empty. Later commands "
		"of root mount it if it isn't mounted; it\nstays mounted when the daemon ends.",
	.options = init_table,
	.option_count = sizeof init_table / sizeof *init_table,
	.examples = "  carrel home init --size 50G\n"
		    "  carrel home init --size 50G --fs ext4\n",
};

static int check(const struct init_options *options, struct error *err)
{
	if (geteuid())
		return fail_hint(err, ERR_DENIED,
			"sudo carrel home init serves root's daemon; carrel doctor shows how the "
			"disk limits of your own daemon are enforced",
			"only root can make a file system for a home");
	if (!options->size_bytes)
		return fail_hint(
			err, ERR_INVALID, "carrel home init --size 50G", "--size is missing");
	if (options->size_bytes < HOME_IMAGE_BYTES_MIN)
		return fail(err, ERR_INVALID, "--size is too small; the minimum is 256M");
	return 0;
}

static const char *mechanism_name(enum quota_mechanism mechanism)
{
	return mechanism == QUOTA_QGROUP ? "btrfs-qgroup" : "project-quota";
}

static int print(const char *home, const char *image, const char *fs, uint64_t size_bytes,
	enum quota_mechanism mechanism, bool json)
{
	auto_buf struct buf out;
	struct json j;
	struct error err;
	char size[16];
	buf_init(&out, BUF_MAX_DEFAULT);
	quantity_format_size(size, size_bytes);
	if (json) {
		json_init(&j, &out, false);
		json_object(&j, NULL);
		json_text(&j, "home", home);
		json_text(&j, "image", image);
		json_text(&j, "fs", fs);
		json_u64(&j, "size_bytes", size_bytes);
		json_text(&j, "disk_limit_mechanism", mechanism_name(mechanism));
		json_end(&j);
		buf_char(&out, '\n');
	} else
		buf_printf(&out, "%s is a %s file system of %s in %s; disk limits are exact (%s)\n",
			home, fs, size, image, mechanism_name(mechanism));
	if (fd_write_full(STDOUT_FILENO, out.data, out.len) == (ssize_t)out.len)
		return 0;
	fail_errno(&err, "write standard output");
	return cli_fail(&err, false);
}

static int init(int argc, char **argv)
{
	struct init_options options = { 0 };
	auto_arena struct arena arena;
	enum quota_mechanism mechanism;
	const char *home, *image;
	text_list operands = { 0 };
	struct error err;
	uid_t uid;
	gid_t gid;
	bool help, json = args_want_json(argc, argv);
	arena_init(&arena);
	if (args_parse_mixed(&init_spec, argc, argv, &options, &arena, &operands, &help, &err))
		return cli_fail(&err, json);
	if (help) {
		args_print_help(&init_spec);
		return fflush(stdout) ? 125 : 0;
	}
	enum home_image_fs fs =
		options.fs && !strcmp(options.fs, "ext4") ? HOME_IMAGE_EXT4 : HOME_IMAGE_BTRFS;
	home_find_owner(&uid, &gid);
	if (args_check_operands(&init_spec, &operands, 0, 0, &err) || check(&options, &err) ||
		home_find_path(&arena, &home, &err) ||
		home_image_make(
			home, options.size_bytes, fs, uid, gid, &arena, &image, &mechanism, &err))
		return cli_fail(&err, json);
	return print(home, image, home_image_fs_name(fs), options.size_bytes, mechanism, json);
}

int cli_home(int argc, char **argv)
{
	struct error err;
	if (argc > 1 && !strcmp(argv[1], "init"))
		return init(argc - 1, argv + 1);
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		args_print_help(&init_spec);
		return fflush(stdout) ? 125 : 0;
	}
	fail_hint(&err, ERR_INVALID, "carrel home init --help",
		argc > 1 ? "unknown command 'home %s'" : "'home' needs a command",
		argc > 1 ? argv[1] : "");
	return cli_fail(&err, args_want_json(argc, argv));
}
