/* archive.h -- whole trees in and out as tar or tar.zst, in a locked child per transfer: what
 * parses an archive has no rights but one directory's descriptor, and core's memory never holds
 * more than a pipe.
 * 1. In: refused are absolute names, "..", links that lead out, devices, fifos, sockets, setuid and
 * setgid bits, security and overlay xattrs; caps on bytes (the workspace's free disk), entries
 * (1,000,000), depth (100), name length, ratio (200 : 1 beyond 64 MB) and time. All is unpacked
 * beside the tree (workspaces/<id>/.in-<id>) and moved into place when it is whole, entry by entry:
 * a refused archive changes nothing.
 * 2. Out: files, directories and links; sockets, fifos and devices are left out. Nothing is
 * followed. */
#pragma once
#include "core/core.h"

enum archive_format { ARCHIVE_TAR, ARCHIVE_TAR_ZST };
struct archive_job;
typedef void archive_fn(void *ctx, const struct error *err); /* NULL: done */
/* Packs the tree at `path` (a directory: what is in it; a file: itself). *fd: read the archive here
 * until end of file; done then says whether it was whole. fd is yours. */
int archive_out(struct core_workspace *w, const char *path, enum archive_format format, int *fd,
	archive_fn *done, void *ctx, struct archive_job **job, struct error *err);
/* Unpacks into directory `path` (made when it isn't there). *fd: write the archive there
 * (non-blocking), close it at its end; done says how it went. The format is recognised. */
int archive_in(struct core_workspace *w, const char *path, int *fd, archive_fn *done, void *ctx,
	struct archive_job **job, struct error *err);
/* Ends the child, undoes what it began; done isn't called. */
void archive_cancel(struct archive_job *job);
