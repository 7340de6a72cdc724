/* tar.h -- tar archives: headers written, and a reader that is fed piece by piece. Pure.
 * 1. Written is ustar, with a pax header before an entry whose name, target, size, time or holes
 * ustar can't hold.
 * 2. Read are ustar, pax (path, linkpath, size, mtime and the names of extended attributes; other
 * keys mean nothing here), sparse files as pax has them (GNU's 1.0) and as GNU had them before,
 * GNU's long names and base-256 numbers, and what came before them. Other forms of sparse files are
 * refused.
 * 3. Names and targets come out as they stand in the archive, which may be an attacker's: who makes
 * files of them asks archived_judge first, and follows nothing. */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#define TAR_BLOCK 512
#define TAR_NAME_MAX 4095		/* bytes of a name or target */
#define TAR_EXTRA_MAX ((size_t)1 << 20) /* of one pax header */

enum tar_kind {
	TAR_FILE,
	TAR_DIRECTORY,
	TAR_SYMLINK,
	TAR_HARDLINK, /* link: the name of an entry before it */
	TAR_OTHER,    /* devices, fifos and unknown types */
};
struct tar_region { /* of a sparse file: where data is */
	uint64_t offset, len;
};
struct tar_entry {
	enum tar_kind kind;
	const char *name, *link; /* link NULL: none */
	uint64_t size;		 /* of TAR_FILE and TAR_OTHER; else 0 */
	unsigned mode;		 /* 07777 */
	int64_t modified_s;	 /* Unix time */
	/* For writing: its data is that of the regions alone, in order. */
	bool is_sparse;
	const struct tar_region *regions;
	size_t region_count;
};

/* Appends the header of an entry; size bytes (of a sparse one, those of its regions) follow for
 * TAR_FILE, then tar_write_padding of as many. TAR_OTHER
 * can't be written. ERR_LIMIT: a name or target longer than TAR_NAME_MAX. */
int tar_write_entry(struct buf *out, const struct tar_entry *entry, struct error *err);
void tar_write_padding(struct buf *out, uint64_t size);
void tar_write_end(struct buf *out);

enum tar_step {
	TAR_MORE,  /* all input is taken: feed more */
	TAR_ENTRY, /* reader->entry, valid until the next one */
	TAR_DATA,  /* *data: bytes of it, at least one, which begin at reader->offset; what lies
		      between them is zeros */
	TAR_END,   /* whole; what follows means nothing */
};
struct tar_reader {
	struct tar_entry entry;
	struct buf attributes; /* names of the entry's extended attributes, each with its NUL */
	uint64_t offset;       /* of the data in its file */
	/* private */
	uint64_t next_offset;
	char block[TAR_BLOCK];
	size_t have;	/* bytes of it */
	uint64_t left;	/* of the entry's data, */
	size_t padding; /* and what fills its last block */
	bool is_extra;	/* the data is a header's, kept in `extra` */
	char extra_type;
	unsigned zeros; /* blocks of the end that were seen */
	struct buf extra, name, link;
	bool is_named; /* attributes are those of the entry that was given out */
	bool has_name, has_link, has_size,
		has_time; /* given by an extended header before the entry */
	uint64_t size;
	int64_t modified_s;
	struct tar_sparse {
		bool is_asked;	  /* the next entry is sparse: an extra header said so, */
		bool is_map;	  /* its map is being read, */
		bool is_data;	  /* its data is */
		bool is_extended; /* GNU's own form: a block of the map comes first */
		uint64_t real;	  /* size with the holes */
		uint64_t awaits;  /* numbers of the map that are still to come */
		bool has_name, has_count, has_digit;
		uint64_t number;
		size_t at;	/* region */
		struct buf map; /* uint64_t: offset, length, … */
	} sparse;
};
void tar_reader_init(struct tar_reader *reader);
void tar_reader_done(struct tar_reader *reader);
/* The next thing in *input, which moves past what was taken: an enum tar_step, or -1. ERR_CORRUPT:
 * no tar archive, or none that is understood; ERR_LIMIT: a name or header over its maximum. */
int tar_read(struct tar_reader *reader, struct str *input, struct str *data, struct error *err);
/* The input is at its end: ERR_CORRUPT when the archive isn't. */
int tar_reader_finish(const struct tar_reader *reader, struct error *err);
