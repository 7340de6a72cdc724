/* archive.h -- whole trees in and out as tar or tar.zst, in locked children: what parses an archive
 * has no rights but one empty directory's descriptor, and core's memory never holds more than a
 * pipe.
 * 1. In: refused are absolute names, "..", what lies beneath a link (links themselves come in as
 * they are, wherever they lead), devices, fifos, sockets, setuid and setgid bits, security, trusted
 * and overlay xattrs, hard links to what isn't in the archive (format/archived.h); caps on bytes
 * (the workspace's free disk), entries (1,000,000), depth (100), name length, ratio (200 : 1 beyond
 * 64 MB), cpu time (10 minutes), wall time (an hour) and memory. Owners and other xattrs are
 * dropped, directories are the owner's to write. Of names that come twice the last one counts.
 * 2. All is unpacked in workspaces/<id>/.in and, when it is whole, moved into place by a second
 * child: directories are merged, files and links replaced, no link of the tree is followed. A
 * directory where something else is, or the other way round, is ERR_CONFLICT. A refused archive
 * changes nothing.
 * 3. Out: files, directories and links (hard links once, holes as holes); sockets, fifos and
 * devices are left out. Nothing is followed. A file that shrinks while it is read is ERR_CONFLICT.
 * 4. A job holds the workspace until `done`, or archive_cancel. */
#pragma once
#include "core/core.h"

enum archive_format { ARCHIVE_TAR, ARCHIVE_TAR_ZST };
struct archive_job;
typedef void archive_fn(void *ctx, const struct error *err); /* NULL: done */
/* Packs the tree at `path` (a directory: what is in it; a file: itself). *fd: read the archive here
 * until end of file (non-blocking); done, before or after that, says whether it was whole. fd is
 * yours. */
core_verb int archive_out(const struct request *request, struct core_workspace *w, const char *path,
	enum archive_format format, int *fd, archive_fn *done, void *ctx, struct archive_job **job,
	struct error *err);
/* Unpacks into directory `path` (made when it isn't there). *fd: write the archive there
 * (non-blocking), close it at its end; done says how it went. EPIPE: it was refused, done comes.
 * The format is recognised. An upload that was cut short is for archive_cancel: the end of fd is
 * taken for the end of the archive. */
core_verb int archive_in(const struct request *request, struct core_workspace *w, const char *path,
	int *fd, archive_fn *done, void *ctx, struct archive_job **job, struct error *err);
/* Ends the child, undoes what it began (what is being moved into place already gets there); done
 * isn't called. */
void archive_cancel(struct archive_job *job);
