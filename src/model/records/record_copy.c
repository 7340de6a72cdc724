/* A struct that outlives what it was read from. */
#include "model/records/record.h"

void record_copy_texts(const struct record *record, struct arena *arena, void *object)
{
	for (size_t i = 0; i < record->count; i++) {
		const struct field *row = &record->rows[i];
		void *at = (char *)object + row->offset;
		if (!(row->flags & FIELD_COLUMN) && !field_is(record, row, FIELD_KEPT))
			continue;
		switch (row->kind) {
		case FIELD_TEXT:
		case FIELD_JSON:
			*(const char **)at = arena_text(arena, *(const char **)at);
			break;
		case FIELD_TEXTS:
			*(text_list *)at = text_list_copy(arena, at);
			break;
		case FIELD_PAIRS:
			*(pair_list *)at = pair_list_copy(arena, at);
			break;
		case FIELD_OBJECT:
			record_copy_texts(row->object, arena, at);
			break;
		default: /* no pointer */
			break;
		}
	}
}
