/* carrel home init: the home as a file system of its own, in one sparse file, where the kernel
 * keeps the disk limits of workspaces. */
#include <unistd.h>
#include "cli/cli.h"
#include "format/text/quantity.h"
#include "linux/home_image.h"

static const struct arg_option init_table[] = {
	{ 0, "size", ARG_SIZE, AT(size_bytes), "SIZE",
		"maximum size of the home; the disk space is used as it fills" },
	{ 0, "fs", ARG_CHOICE, AT(fs), "btrfs|ext4",
		"the file system (btrfs); ext4 needs a kernel with project quotas", "btrfs|ext4" },
	{ ARG_FROM(format_rows) },
};

static int check(const struct options *options, struct error *err)
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

static int run_init(struct command *command, struct error *err)
{
	const struct options *options = &command->options;
	enum home_image_fs fs =
		options->fs && !strcmp(options->fs, "ext4") ? HOME_IMAGE_EXT4 : HOME_IMAGE_BTRFS;
	enum quota_mechanism quota;
	const char *home, *image;
	char size[16];
	struct json *j = &command->value;
	uid_t uid;
	gid_t gid;
	home_find_owner(&uid, &gid);
	if (check(options, err) || home_find_path(&command->arena, &home, err) ||
		home_image_make(home, options->size_bytes, fs, uid, gid, &command->arena, &image,
			&quota, err))
		return -1;
	quantity_format_size(size, options->size_bytes);
	if (!command->json) {
		buf_printf(&command->out,
			"%s is a %s file system of %s in %s; disk limits are exact (%s)\n", home,
			home_image_fs_name(fs), size, image, quota_names[quota]);
		return 0;
	}
	json_object(j, NULL);
	json_text(j, "home", home);
	json_text(j, "image", image);
	json_text(j, "fs", home_image_fs_name(fs));
	json_u64(j, "size_bytes", options->size_bytes);
	json_text(j, "disk_limit_mechanism", quota_names[quota]);
	json_end(j);
	return 0;
}

static const struct arg_spec init_spec = {
	.command = "home init",
	.summary = "make the file system",
	.usage = "--size SIZE [--fs btrfs|ext4] [-o json]",
	.about =
		"Makes a file system for the home ($CARREL_HOME, or /var/lib/carrel) in the sparse "
		"file $CARREL_HOME.img, so that the kernel enforces the disk limits of workspaces "
		"exactly. Needs root, and a home that does not exist or is empty. Later commands "
		"of root mount it if it isn't mounted; it stays mounted when the daemon ends.",
	ARG_TABLE(init_table),
	.examples = "  carrel home init --size 50G\n"
		    "  carrel home init --size 50G --fs ext4\n",
	.run = run_init,
};
const struct arg_spec cli_home = {
	.command = "home",
	.summary = "give the home a file system with exact disk limits",
	.group = GROUP_DAEMON,
	.commands = (const struct arg_spec *const[]){ &init_spec, NULL },
};
