/* tree_archive.h -- whole trees in and out as tar or tar.zst, in also as tar.gz or zip. A file
 * server in the sandbox packs and unpacks; zstd, gzip and zip are done by a locked child of core;
 * core's memory never holds more than a pipe.
 * 1. In: refused are absolute names, "..", what lies beneath a link (links themselves come in as
 * they are, wherever they lead), devices, fifos, sockets, setuid and setgid bits, security, trusted
 * and overlay xattrs, hard links to what isn't in the archive (format/archives/archived.h); caps on
 * bytes (the workspace's free disk), entries (1,000,000), depth (100), name length, ratio (200 : 1
 * beyond 64 MB) and time (an hour). Owners and other xattrs are dropped, directories are the
 * owner's to write. Of names that come twice the last one counts.
 * 2. All is unpacked in a directory of its own, `.carrel-<id>`, in the target or the directory
 * above it that is there, and moved into place when it is whole: directories are merged, files and
 * links replaced, no link of the tree is followed. A directory where something else is, or the
 * other way round, is ERR_CONFLICT. A refused archive changes nothing.
 * 3. Out: files, directories and links (hard links once, holes as holes); sockets, fifos and
 * devices are left out. Nothing is followed, no mount is entered. A file that shrinks while it is
 * read is ERR_CONFLICT.
 * 4. A job holds the workspace until `done`, or archive_cancel. */
#pragma once
#include "core/core.h"

enum archive_format { ARCHIVE_TAR, ARCHIVE_TAR_ZST };
struct archive_job;
struct archive_listener {
	/* The path is as it should be. fd is yours: read the archive here until end of file, or
	 * write it there and close it at its end (non-blocking). EPIPE: it was refused, done comes.
	 */
	void (*begun)(void *ctx, int fd);
	/* The job is over, and gone. err NULL: it was whole. Perhaps without begun. */
	void (*done)(void *ctx, const struct error *err);
	void *ctx;
};
/* Packs the tree at `path` (a directory: what is in it; a file: itself). done may come before the
 * end of fd was read. */
core_verb struct archive_job *archive_out(const struct request *request, struct core_workspace *w,
	const char *path, enum archive_format format, const struct archive_listener *listener);
/* Unpacks into directory `path` (made when it isn't there). The format is recognised. An upload
 * that was cut short is for archive_cancel: the end of fd is taken for the end of the archive. */
core_verb struct archive_job *archive_in(const struct request *request, struct core_workspace *w,
	const char *path, const struct archive_listener *listener);
/* Ends it and undoes what it began (what is being moved into place already gets there); the
 * listener isn't called any more. Before fd is closed. */
void archive_cancel(struct archive_job *job);
