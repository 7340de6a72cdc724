#include "services/apkg_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <string.h>
#include "base/buf.h"
#include "base/str.h"
#include "format/archived.h"
#include "model/apkg.h"
#include "services/deployment_internal.h"

#define TEXT_MAX ((size_t)256 << 10)
#define BYTES_MAX ((uint64_t)4 << 30)
#define FILES_MAX 100000

struct reading {
	struct archive *in, *out; /* out: or NULL */
	struct arena *arena;
	struct buf manifest, requirements;
	bool has_requirements;
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
	/* The same bytes, whoever packs them, and when. */
	if (r->out) {
		archive_entry_set_pathname(entry, place.path);
		archive_entry_set_mtime(entry, 315619200, 0); /* 1980-01-02: the first of zip */
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

static int convert(struct reading *r, int from, struct json *j, struct error *err)
{
	struct archive_entry *entry;
	struct apkg apkg;
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
	if (got != ARCHIVE_EOF)
		return fail_archive(r->in, err);
	if (!r->manifest.len)
		return fail(err, ERR_INVALID, "the package has no %s", APKG_FILE);
	if (apkg_parse((struct str){ r->manifest.data, r->manifest.len }, r->arena, &apkg, err))
		return -1;
	if (r->out && archive_write_close(r->out) != ARCHIVE_OK)
		return fail_archive(r->out, err);
	print(r, &apkg, j);
	return 0;
}

int apkg_convert(int from, int to, const char *format, struct arena *arena, struct json *j,
	struct error *err)
{
	struct reading r = { .in = archive_read_new(), .arena = arena };
	buf_init(&r.manifest, TEXT_MAX);
	buf_init(&r.requirements, TEXT_MAX);
	int failed = (to >= 0 && open_writer(&r, to, format, err)) || convert(&r, from, j, err);
	buf_done(&r.manifest);
	buf_done(&r.requirements);
	archive_read_free(r.in);
	archive_write_free(r.out);
	return failed ? -1 : 0;
}
