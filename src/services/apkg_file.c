#include "services/apkg_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "format/archives/archived.h"
#include "model/agents/apkg.h"
#include "services/deployment_internal.h"

#define TEXT_MAX ((size_t)256 << 10)
#define BYTES_MAX ((uint64_t)4 << 30)
#define FILES_MAX 100000
#define FIRST_TIME 315619200 /* 1980-01-02: the first of zip */

struct reading {
	struct archive *in, *out; /* out: or NULL */
	struct arena *arena;
	struct buf manifest, requirements;
	bool has_requirements, has_venv;
	bool is_venv_new; /* one is added: that of the directory is left out */
	uint64_t files, bytes;
};

static int fail_archive(struct archive *archive, struct error *err)
{
	const char *why = archive_error_string(archive);
	return fail(err, ERR_INVALID, "this is not an agent package (zip, tar.gz, tar.zst): %s",
		why ? why : "unknown");
}

/* The same rules as when it is unpacked: nothing is packed that a daemon would refuse. */
static int judge(struct archive_entry *entry, struct archived_place *place, struct error *err)
{
	const char *link = archive_entry_symlink(entry);
	unsigned type = archive_entry_filetype(entry);
	struct tar_entry member = { .kind = archive_entry_hardlink(entry) ? TAR_HARDLINK
					    : type == AE_IFREG		  ? TAR_FILE
					    : type == AE_IFDIR		  ? TAR_DIRECTORY
					    : type == AE_IFLNK		  ? TAR_SYMLINK
									  : TAR_OTHER,
		.name = archive_entry_pathname(entry),
		.link = link ? link : archive_entry_hardlink(entry),
		.mode = archive_entry_perm(entry) };
	if (!member.name)
		return fail(err, ERR_INVALID, "an entry has no name");
	if (member.kind == TAR_SYMLINK || member.kind == TAR_HARDLINK)
		return fail(err, ERR_DENIED, "'%.256s' is a link: packages have files alone",
			member.name);
	return archived_judge(&member, ARCHIVED_DEPTH_MAX, place, err);
}

static int copy_data(struct reading *r, struct buf *text, struct error *err)
{
	const void *data;
	size_t len;
	la_int64_t at;
	int got;
	while ((got = archive_read_data_block(r->in, &data, &len, &at)) == ARCHIVE_OK) {
		r->bytes += len;
		if (r->bytes > BYTES_MAX)
			return fail(err, ERR_LIMIT, "the package has more than 4 GB");
		if (text)
			buf_append(text, data, len);
		if (r->out && archive_write_data(r->out, data, len) < 0)
			return fail_archive(r->out, err);
	}
	if (got != ARCHIVE_EOF)
		return fail_archive(r->in, err);
	return text && text->overflow ? fail(err, ERR_LIMIT, "a text of the package is too long")
				      : 0;
}

static int take_entry(struct reading *r, struct archive_entry *entry, struct error *err)
{
	struct archived_place place;
	struct buf *text = NULL;
	if (judge(entry, &place, err))
		return -1;
	if (++r->files > FILES_MAX)
		return fail(err, ERR_LIMIT, "the package has more than %d files", FILES_MAX);
	if (!strcmp(place.path, APKG_FILE))
		text = &r->manifest;
	if (!strcmp(place.path, APKG_REQUIREMENTS)) {
		text = &r->requirements;
		r->has_requirements = true;
	}
	if (!strcmp(place.path, APKG_VENV)) {
		if (r->is_venv_new)
			return 0;
		r->has_venv = true;
	}
	/* The same bytes, whoever packs them, and when. */
	if (r->out) {
		archive_entry_set_pathname(entry, place.path);
		archive_entry_set_mtime(entry, FIRST_TIME, 0);
		archive_entry_unset_atime(entry);
		archive_entry_unset_ctime(entry);
		archive_entry_set_uid(entry, 0);
		archive_entry_set_gid(entry, 0);
		archive_entry_set_uname(entry, NULL);
		archive_entry_set_gname(entry, NULL);
		if (place.path[0] && archive_write_header(r->out, entry) != ARCHIVE_OK)
			return fail_archive(r->out, err);
	}
	return copy_data(r, text, err);
}

static void print(const struct reading *r, const struct apkg *apkg, struct json *j)
{
	json_text(j, "name", apkg->name);
	json_text(j, "version", apkg->version);
	json_text(j, "description", apkg->description);
	json_text(j, "python_version", apkg->runtime.python_version);
	json_array(j, "surfaces");
	for (int i = 0; i < SURFACE_COUNT; i++)
		if (apkg->surfaces[i].is_there)
			json_text(j, NULL, surface_names[i]);
	json_end(j);
	json_text(j, "requirements", r->has_requirements ? r->requirements.data : NULL);
	json_u64(j, "files", r->files);
	json_u64(j, "size_bytes", r->bytes);
	json_bool(j, "prebuilt", r->has_venv);
}

static int open_writer(struct reading *r, int to, const char *format, struct error *err)
{
	bool is_zip = !strcmp(format, "zip"), is_gzip = !strcmp(format, "tar.gz");
	r->out = archive_write_new();
	if ((is_zip ? archive_write_set_format_zip(r->out)
		    : archive_write_set_format_pax_restricted(r->out)) != ARCHIVE_OK ||
		(!is_zip && (is_gzip ? archive_write_add_filter_gzip(r->out)
				     : archive_write_add_filter_zstd(r->out)) != ARCHIVE_OK) ||
		(is_gzip && archive_write_set_options(r->out, "gzip:!timestamp") != ARCHIVE_OK) ||
		archive_write_set_bytes_in_last_block(r->out, 1) != ARCHIVE_OK ||
		archive_write_open_fd(r->out, to) != ARCHIVE_OK)
		return fail_archive(r->out, err);
	return 0;
}

static int take_all(struct reading *r, int from, struct error *err)
{
	struct archive_entry *entry;
	int got;
	if (archive_read_support_filter_zstd(r->in) != ARCHIVE_OK ||
		archive_read_support_filter_gzip(r->in) != ARCHIVE_OK ||
		archive_read_support_format_zip_streamable(r->in) != ARCHIVE_OK ||
		archive_read_support_format_tar(r->in) != ARCHIVE_OK ||
		archive_read_open_fd(r->in, from, 65536) != ARCHIVE_OK)
		return fail_archive(r->in, err);
	while ((got = archive_read_next_header(r->in, &entry)) == ARCHIVE_OK)
		if (take_entry(r, entry, err))
			return -1;
	return got != ARCHIVE_EOF ? fail_archive(r->in, err) : 0;
}

/* The environment as a tar.gz of the same bytes whoever makes it, then as a member. */
static int add_venv(struct reading *r, const int env[2], struct error *err)
{
	struct reading inner = { .in = archive_read_new(), .arena = r->arena };
	char piece[65536];
	struct stat st;
	ssize_t got;
	int failed = open_writer(&inner, env[1], "tar.gz", err) || take_all(&inner, env[0], err) ||
		     (archive_write_close(inner.out) != ARCHIVE_OK && fail_archive(inner.out, err));
	archive_read_free(inner.in);
	archive_write_free(inner.out);
	if (failed)
		return error_context(err, APKG_VENV);
	if (fstat(env[1], &st) || lseek(env[1], 0, SEEK_SET))
		return fail_errno(err, "read " APKG_VENV);
	struct archive_entry *entry = archive_entry_new();
	archive_entry_set_pathname(entry, APKG_VENV);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, st.st_size);
	archive_entry_set_mtime(entry, FIRST_TIME, 0);
	failed = archive_write_header(r->out, entry) != ARCHIVE_OK;
	while (!failed && (got = fd_read_full(env[1], piece, sizeof piece)) > 0)
		failed = archive_write_data(r->out, piece, (size_t)got) != got;
	archive_entry_free(entry);
	r->files++;
	r->bytes += (uint64_t)st.st_size;
	r->has_venv = true;
	return failed ? fail_archive(r->out, err) : 0;
}

static int convert(struct reading *r, int from, const int env[2], struct json *j, struct error *err)
{
	struct apkg apkg;
	if (take_all(r, from, err) || (r->is_venv_new && add_venv(r, env, err)))
		return -1;
	if (!r->manifest.len)
		return fail(err, ERR_INVALID, "the package has no %s", APKG_FILE);
	if (apkg_parse((struct str){ r->manifest.data, r->manifest.len }, r->arena, &apkg, err))
		return -1;
	if (r->out && archive_write_close(r->out) != ARCHIVE_OK)
		return fail_archive(r->out, err);
	print(r, &apkg, j);
	return 0;
}

int apkg_convert(int from, int to, const char *format, const int env[2], struct arena *arena,
	struct json *j, struct error *err)
{
	struct reading r = {
		.in = archive_read_new(), .arena = arena, .is_venv_new = to >= 0 && env[0] >= 0
	};
	buf_init(&r.manifest, TEXT_MAX);
	buf_init(&r.requirements, TEXT_MAX);
	int failed =
		(to >= 0 && open_writer(&r, to, format, err)) || convert(&r, from, env, j, err);
	buf_done(&r.manifest);
	buf_done(&r.requirements);
	archive_read_free(r.in);
	archive_write_free(r.out);
	return failed ? -1 : 0;
}
