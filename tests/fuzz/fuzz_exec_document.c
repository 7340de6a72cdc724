/* An exec's document: damage is an error with a name; what is read and printed
 * reads as the same, and can be shown. */
#include <string.h>
#include "model/nouns/exec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	auto_buf struct buf once, twice, shown;
	struct exec_record e = { .state = EXEC_ENDED };
	struct error err = { 0 };
	struct json j;

	buf_init(&once, BUF_MAX_DEFAULT);
	buf_init(&twice, BUF_MAX_DEFAULT);
	buf_init(&shown, BUF_MAX_DEFAULT);
	if (record_read_kept(
		    &exec_fields, (struct str){ (const char *)data, size }, &arena, &e, &err)) {
		check(err.code == ERR_CORRUPT && err.text[0] && !strchr(err.text, '\n'));
		return 0;
	}
	check(e.argv.items && !e.argv.items[e.argv.count]);
	check(e.result.reason < REASON_COUNT && e.error_exit_code >= 0);
	record_print_kept(&exec_fields, &e, &once);
	check(!record_read_kept(
		&exec_fields, (struct str){ once.data, once.len }, &arena, &e, &err));
	record_print_kept(&exec_fields, &e, &twice);
	check(!strcmp(once.data, twice.data));
	j = json_to(&shown, false);
	exec_print(&j, NULL, &e);
	json_finish(&j);
	return 0;
}
