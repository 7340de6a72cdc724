/* Archives: what comes out doesn't depend on how the bytes were cut, is within its maxima, and is
 * read the same again after it was written. */
#include <string.h>
#include "base/path.h"
#include "format/archives/tar.h"
#include "fuzz.h"

struct seen {
	struct buf text; /* every entry and byte, as one text */
	int last;	 /* step, or -1 */
};

static void note_entry(struct seen *seen, const struct tar_entry *entry)
{
	check(strlen(entry->name) <= TAR_NAME_MAX && entry->name[0] && entry->mode <= 07777);
	check(!entry->link || strlen(entry->link) <= TAR_NAME_MAX);
	buf_printf(&seen->text, "\n%d %s %s %llu %o %lld\n", entry->kind, entry->name,
		entry->link ? entry->link : "", (unsigned long long)entry->size, entry->mode,
		(long long)entry->modified_s);
}

static void note_data(struct seen *seen, const struct tar_reader *reader, struct str bytes)
{
	check(bytes.len && reader->offset <= reader->entry.size &&
		bytes.len <= reader->entry.size - reader->offset);
	/* Where a piece begins depends on the cuts, where a byte lies doesn't. */
	for (size_t i = 0; i < bytes.len && seen->text.len < (1 << 20); i++)
		buf_printf(&seen->text, "%llu%c", (unsigned long long)(reader->offset + i),
			bytes.data[i] ? bytes.data[i] : '0');
}

static void read_all(const char *data, size_t size, size_t piece, struct seen *seen)
{
	struct tar_reader reader;
	struct error err = { 0 };
	int step = TAR_MORE;
	tar_reader_init(&reader);
	buf_init(&seen->text, BUF_MAX_DEFAULT);
	for (size_t at = 0; at < size && step == TAR_MORE;) {
		struct str input = { data + at, size - at < piece ? size - at : piece }, bytes;
		at += input.len;
		do {
			step = tar_read(&reader, &input, &bytes, &err);
			if (step == TAR_ENTRY)
				note_entry(seen, &reader.entry);
			if (step == TAR_DATA)
				note_data(seen, &reader, bytes);
		} while (step == TAR_ENTRY || step == TAR_DATA);
	}
	check(step >= 0 || err.code == ERR_CORRUPT || err.code == ERR_LIMIT ||
		err.code == ERR_UNAVAILABLE);
	check((tar_reader_finish(&reader, &err) == 0) == (step == TAR_END));
	seen->last = step;
	tar_reader_done(&reader);
}

/* Headers alone: what was read is written, and read again. */
static void check_written(const char *data, size_t size)
{
	struct tar_reader reader, again;
	struct error err;
	struct str input = { data, size }, bytes;
	int step;
	tar_reader_init(&reader);
	while ((step = tar_read(&reader, &input, &bytes, &err)) == TAR_ENTRY || step == TAR_DATA) {
		auto_buf struct buf out;
		buf_init(&out, BUF_MAX_DEFAULT);
		struct tar_entry *entry = &reader.entry;
		if (entry->link)
			path_link_stays(entry->name, entry->link);
		if (step == TAR_DATA || entry->kind == TAR_OTHER)
			continue;
		check(tar_write_entry(&out, entry, &err) == 0 && out.len % TAR_BLOCK == 0);
		struct str written = { out.data, out.len };
		tar_reader_init(&again);
		check(tar_read(&again, &written, &bytes, &err) == TAR_ENTRY && !written.len);
		check(again.entry.kind == entry->kind && again.entry.size == entry->size &&
			again.entry.mode == entry->mode &&
			again.entry.modified_s == entry->modified_s);
		check(!strcmp(again.entry.name, entry->name));
		check(!again.entry.link == !entry->link &&
			(!entry->link || !strcmp(again.entry.link, entry->link)));
		tar_reader_done(&again);
	}
	tar_reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const char *data = (const char *)bytes;
	struct seen whole, cut;
	read_all(data, size, size, &whole);
	read_all(data, size, 7, &cut);
	check(whole.last == cut.last && whole.text.len == cut.text.len &&
		!memcmp(whole.text.data, cut.text.data, whole.text.len));
	buf_done(&whole.text);
	buf_done(&cut.text);
	check_written(data, size);
	return 0;
}
