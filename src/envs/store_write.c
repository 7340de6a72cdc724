/* Environments made: everything is on disk before it gets its name. */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/fault.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/path.h"
#include "base/str.h"
#include "envs/kind.h"
#include "envs/store.h"
#include "envs/store_internal.h"
#include "trees/layers/stage.h"

#define LAUNCHER_MAX 16384

/* ---- bin/<command> ---- */

/* As one word of a shell. */
static void quote(struct buf *out, const char *text)
{
	buf_char(out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			buf_text(out, "'\\''");
		else
			buf_char(out, *text);
	buf_char(out, '\'');
}

/* The carrel beside this executable, or just its name. */
static void find_carrel(char *out, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", out, size - sizeof "carrel");
	if (len > 0) {
		out[len] = 0;
		size_t directory = (size_t)(path_basename(out) - out);
		str_copy(out + directory, size - directory, "carrel");
		if (!access(out, X_OK))
			return;
	}
	str_copy(out, size, "carrel");
}

/* The same text for all environments: each finds its name by where it lies, also behind links to
 * it. Not --dir / : the whole host is nothing to show. An executable that was moved since is looked
 * for on PATH. */
static void print_launcher(
	const struct env_store *store, const struct env_kind *kind, struct buf *out)
{
	char carrel[4096 + 16];
	find_carrel(carrel, sizeof carrel);
	buf_text(out, "#!/bin/sh\n# A command of the environment that this lies in, in a sandbox.\n"
		      "self=$0\n"
		      "while [ ! -f \"${self%/*}/../" ENVS_META "\" ] && [ -L \"$self\" ]; do\n"
		      "\ttarget=$(readlink \"$self\")\n"
		      "\tcase $target in\n\t/*) self=$target ;;\n"
		      "\t*) self=${self%/*}/$target ;;\n\tesac\ndone\n"
		      "name=$(cd \"${self%/*}/..\" && pwd -P) || exit 125\n"
		      "name=${name##*/}\nCARREL_HOME=");
	quote(out, store->home->path);
	buf_text(out, "\nexport CARREL_HOME\ncarrel=");
	quote(out, carrel);
	buf_printf(out,
		"\n[ -x \"$carrel\" ] || carrel=carrel\n"
		"terminal=\n[ -t 0 ] && [ -t 1 ] && terminal=-it\n"
		"set -- -- %s \"$@\"\n"
		"case $PWD in\n"
		"/) ;;\n"
		"/workspace* | /env* | /usr/* | /lib* | /bin* | /sbin* | /etc/* | /dev/* | "
		"/proc/* | *:*)\n\tset -- --dir . \"$@\" ;;\n"
		"# Also where it is here, to be read: programs pass absolute paths.\n"
		"*) set -- --dir . -v \"$PWD:$PWD:ro\" \"$@\" ;;\n"
		"esac\n"
		"exec \"$carrel\" run $terminal --env \"$name\" \"$@\"\n",
		kind->command);
}

/* ---- the directory ---- */

#define DRAFT_FILES 6
struct draft {
	char directory[sizeof ENVS_NEW + ID_LEN];
	char old[sizeof ENVS_OLD + ID_LEN];
	int dir, bin;
	int files[DRAFT_FILES];
	size_t file_count;
	bool has_one_journal;
};

static void draft_done(struct draft *draft)
{
	for (size_t i = 0; i < draft->file_count; i++)
		fd_close(&draft->files[i]);
	fd_close(&draft->bin);
	fd_close(&draft->dir);
}

static int make_directories(const struct env_store *store, struct draft *draft, struct error *err)
{
	char id[ID_LEN + 1];
	int made = 0;
	while (made == 0) {
		id_make(id);
		str_format(draft->directory, sizeof draft->directory, ENVS_NEW "%s", id);
		str_format(draft->old, sizeof draft->old, ENVS_OLD "%s", id);
		made = fault_fails("envs.make")
			       ? -1
			       : directory_make_locked(store->dir, draft->directory, &draft->dir);
	}
	if (made < 0 || mkdirat(draft->dir, "bin", 0700))
		return fail_errno(err, "make a directory in '%s/envs'", store->home->path);
	draft->bin = fd_open_directory(draft->dir, "bin");
	if (draft->bin < 0)
		return fail_errno(
			err, "open '%s/envs/%s/bin'", store->home->path, draft->directory);
	return 0;
}

/* Begins to write it out at once: sync_files waits for what is left of that. */
static int write_file(struct draft *draft, int dir, const char *name, mode_t mode, struct str text,
	struct error *err)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return fail_errno(err, "make '%s' of an environment", name);
	draft->files[draft->file_count++] = fd;
	if (fault_fails("envs.write") ||
		fd_write_full(fd, text.data, text.len) != (ssize_t)text.len)
		return fail_errno(err, "write '%s' of an environment", name);
	(void)!sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

/* A lock is the largest of its files, and on disk already: a name costs nothing. */
static bool link_lock(
	const struct env_store *store, const struct env_files *files, const struct draft *draft)
{
	char path[256];
	return files->lock_kept && str_format(path, sizeof path, "locks/%s", files->lock_kept) &&
	       !linkat(store->home->dir, path, draft->dir, "lock.txt", 0);
}

static bool is_whole(int dir, const char *name, size_t len)
{
	struct stat st;
	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       (size_t)st.st_size == len;
}

/* A text that other environments have, too, gets one more name: it is on disk already, and needs no
 * sync of its own. false: it has to be written. */
static bool link_shared(int shared, int dir, const char *name, mode_t mode, struct str text)
{
	char hex[2 * SHA256_LEN + 1];
	struct sha256 hash;
	sha256_init(&hash);
	sha256_add(&hash, &mode, sizeof mode);
	sha256_add(&hash, text.data, text.len);
	sha256_end_hex(&hash, hex);
	if (!is_whole(shared, hex, text.len) && file_replace(shared, hex, mode, text, true))
		return false;
	return !linkat(shared, hex, dir, name, 0);
}

static int write_files(const struct env_store *store, const struct env_meta *meta,
	const struct env_files *files, struct draft *draft, struct error *err)
{
	auto_close int shared = -1;
	const struct env_kind *kind = env_kind_of(meta);
	auto_buf struct buf text = buf_empty(ENVS_META_MAX);
	auto_buf struct buf launcher = buf_empty(LAUNCHER_MAX);
	print_launcher(store, kind, &launcher);
	env_meta_print(meta, &text);
	if (text.overflow || launcher.overflow)
		return fail(err, ERR_LIMIT, "the description of environment '%s' is too large",
			meta->name);
	/* First: it is written to disk while the others are linked. */
	if (envs_open_directory(store, ENVS_SHARED, &shared, err) ||
		write_file(draft, draft->dir, ENVS_META, 0600, buf_str(&text), err))
		return -1;
	struct str command = { launcher.data, launcher.len };
	if (files->requirements.len &&
		!link_shared(shared, draft->dir, "requirements.txt", 0600, files->requirements) &&
		write_file(draft, draft->dir, "requirements.txt", 0600, files->requirements, err))
		return -1;
	if (files->lock.len && !link_lock(store, files, draft) &&
		write_file(draft, draft->dir, "lock.txt", 0600, files->lock, err))
		return -1;
	if (files->log.len && write_file(draft, draft->dir, "build.log", 0600, files->log, err))
		return -1;
	if (!link_shared(shared, draft->bin, kind->command, 0700, command) &&
		write_file(draft, draft->bin, kind->command, 0700, command, err))
		return -1;
	fault_point("envs.meta");
	if ((kind->command_alias && symlinkat(kind->command, draft->bin, kind->command_alias)) ||
		symlinkat(ENVS_META, draft->dir, ".pixell_venv_metadata.json"))
		return fail_errno(err, "make a link of environment '%s'", meta->name);
	return 0;
}

bool envs_journal_is_there(const char *journal_task)
{
	return journal_task[0] >= '1' && journal_task[0] <= '9';
}

/* Whether all changes of names are in one journal, in their order: then the sync of the name that
 * was changed last has everything before it on disk as well. */
static bool has_one_journal(int dir)
{
	struct statfs fs;
	struct stat st;
	char path[64], device[256];
	if (fstatfs(dir, &fs) || fstat(dir, &st))
		return false;
	if (fs.f_type == XFS_SUPER_MAGIC)
		return true;
	if (fs.f_type != EXT4_SUPER_MAGIC)
		return false;
	/* ext2 has the same number, and an ext4 can be without a journal. */
	str_format(path, sizeof path, "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	ssize_t len = readlink(path, device, sizeof device - 1);
	if (len <= 0)
		return false;
	device[len] = 0;
	str_format(path, sizeof path, "/sys/fs/ext4/%.32s/journal_task", path_basename(device));
	auto_close int task = open(path, O_RDONLY | O_CLOEXEC);
	char text[16] = "";
	return task >= 0 && read(task, text, sizeof text - 1) > 0 && envs_journal_is_there(text);
}

/* With one journal it is enough that the content is written before the directory gets its name:
 * blocks and sizes of these files are in the journal before that name then, and the sync after it
 * has both on disk. */
static int sync_files(const struct draft *draft, struct error *err)
{
	const unsigned wait =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	for (size_t i = 0; i < draft->file_count; i++) {
		int fd = draft->files[i];
		if (fault_fails("envs.sync") ||
			(draft->has_one_journal ? sync_file_range(fd, 0, 0, wait) : fsync(fd)))
			return fail_errno(err, "sync an environment");
	}
	if (!draft->has_one_journal && (fsync(draft->bin) || fsync(draft->dir)))
		return fail_errno(err, "sync an environment");
	return 0;
}

static int rename_directory(int dir, const char *from, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, dir, from, dir, to, flags);
}

/* Gives the draft its name. What had it is set aside, as draft->old; *is_replaced. */
static int publish(const struct env_store *store, const char *name, struct draft *draft,
	bool *is_replaced, struct error *err)
{
	if (fault_fails("envs.rename"))
		return fail_errno(err, "name environment '%s'", name);
	*is_replaced = false;
	if (!rename_directory(store->dir, draft->directory, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EEXIST ||
		rename_directory(store->dir, draft->directory, name, RENAME_EXCHANGE))
		return fail_errno(err, "name environment '%s'", name);
	fault_point("envs.exchanged");
	/* The other one isn't locked by us: it may have been swept already. */
	*is_replaced = !renameat(store->dir, draft->directory, store->dir, draft->old);
	if (!*is_replaced && errno != ENOENT)
		return fail_errno(err, "set the replaced environment '%s' aside", name);
	return 0;
}

/* ---- .current ---- */

static int write_current(const struct env_store *store, const struct env_meta *meta,
	bool *is_written, struct error *err)
{
	char there[ENV_NAME_MAX + 1], id[ID_LEN + 1], temporary[sizeof ENVS_NEW + ID_LEN];
	auto_close int dir = -1;
	*is_written = false;
	if (envs_open_directory(store, ENVS_CURRENT, &dir, err))
		return -1;
	ssize_t len = readlinkat(dir, meta->package_id, there, sizeof there);
	if (len >= 0 && (size_t)len == strlen(meta->name) &&
		!memcmp(there, meta->name, (size_t)len))
		return 0;
	id_make(id);
	str_format(temporary, sizeof temporary, ENVS_NEW "%s", id);
	if (fault_fails("envs.current") || symlinkat(meta->name, dir, temporary))
		return fail_errno(
			err, "record that '%s' is now '%s'", meta->package_id, meta->name);
	if (renameat(dir, temporary, dir, meta->package_id)) {
		fail_errno(err, "record that '%s' is now '%s'", meta->package_id, meta->name);
		unlinkat(dir, temporary, 0);
		return -1;
	}
	if (fsync(dir))
		return fail_errno(err, "sync '%s/envs/" ENVS_CURRENT "'", store->home->path);
	*is_written = true;
	return 0;
}

static int check_names(const struct env_meta *meta, struct error *err)
{
	if (envs_check_name(meta->name, err))
		return -1;
	if (!env_package_id_is_valid(meta->package_id))
		return fail(err, ERR_INVALID, "'%s' is not a package id", meta->package_id);
	return 0;
}

int env_select(const struct env_store *store, const struct env_meta *meta, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	bool is_written;
	return check_names(meta, err) ? -1 : write_current(store, meta, &is_written, err);
}

/* ---- the whole ---- */

static void forget_failure(const struct env_store *store, const char *name)
{
	char path[ENVS_PATH_MAX];
	str_format(path, sizeof path, ENVS_FAILED "/%s.log", name);
	unlinkat(store->dir, path, 0);
}

static int write_environment(const struct env_store *store, const struct env_meta *meta,
	const struct env_files *files, struct draft *draft, struct error *err)
{
	bool is_replaced, is_selected, is_gone;
	struct error unimportant;
	draft->has_one_journal = has_one_journal(store->dir);
	if (make_directories(store, draft, err) || write_files(store, meta, files, draft, err) ||
		sync_files(draft, err) || publish(store, meta->name, draft, &is_replaced, err)) {
		/* After a failed sync as well: nothing of it is known to be on disk. What was
		 * exchanged already and is in use stays, and goes with the next collection. */
		envs_retire(store, draft->directory, &is_gone, &unimportant);
		return -1;
	}
	if (write_current(store, meta, &is_selected, err))
		return -1;
	/* With one journal, what was synced for .current came after the name. */
	bool is_on_disk = draft->has_one_journal && is_selected;
	if (fault_fails("envs.directory") || (!is_on_disk && fsync(store->dir)))
		return fail_errno(err, "sync '%s/envs'", store->home->path);
	forget_failure(store, meta->name);
	fault_point("envs.old");
	if (is_replaced)
		envs_retire(store, draft->old, &is_gone, &unimportant);
	return 0;
}

int env_write(const struct env_store *store, const struct env_meta *meta,
	const struct env_files *files, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	struct draft draft = { .dir = -1, .bin = -1 };
	if (check_names(meta, err))
		return -1;
	int failed = write_environment(store, meta, files, &draft, err);
	draft_done(&draft);
	return failed ? error_context(err, "environment '%s'", meta->name) : 0;
}

int env_keep_log(const struct env_store *store, const char *name, struct str log, struct error *err)
{
	auto_leave const struct home *home = home_entered(store->home);
	char path[ENVS_PATH_MAX];
	auto_close int dir = -1;
	if (envs_check_name(name, err) || envs_open_directory(store, ENVS_FAILED, &dir, err))
		return -1;
	str_format(path, sizeof path, "%s.log", name);
	if (file_replace(dir, path, 0600, log, false))
		return fail_errno(err, "keep the log of environment '%s'", name);
	return 0;
}
