/* The messages between core and launcher, as bytes: what is taken and what ends the role that sent
 * it. */
/* security: daemon */
#include <string.h>
#include "sandbox/plan/launch.h"
#include "unit.h"

#define ID "0123456789abcdefghij"

static struct launch_packet packet;

static struct launch_message message(uint32_t type)
{
	struct launch_message head = { .type = type, .tag = 7 };
	if (type == LAUNCH_START || type == LAUNCH_END || type == LAUNCH_QUOTA ||
		type == LAUNCH_STARTED || type == LAUNCH_RUNNING || type == LAUNCH_ENDED ||
		type == LAUNCH_HELD || type == LAUNCH_HELD_ARE)
		memcpy(head.id, ID, sizeof head.id);
	if (type == LAUNCH_FAILED)
		head.error_code = ERR_LIMIT;
	return head;
}

/* Encodes, puts it on the heap at its very length, decodes. */
static int pass(const struct launch_message *head, const char *const *strings, size_t count,
	bool to_launcher, int fds, long cut)
{
	auto_buf struct buf out;
	struct error err = { 0 };
	static char *copy;
	buf_init(&out, 1 << 20);
	assert_int_equal(launch_encode(head, strings, count, &out, &err), 0);
	size_t len = (size_t)((long)out.len + cut);
	free(copy);
	copy = malloc(len + 1);
	memset(copy, 0x5a, len + 1);
	memcpy(copy, out.data, len < out.len ? len : out.len);
	int failed = launch_decode(copy, len, to_launcher, fds, &packet, &err);
	if (failed)
		assert_int_equal(err.code, ERR_CORRUPT);
	return failed;
}

static const char *const texts[] = { "myagent", "", "requests>=2", "rich" };

static void every_type_is_taken_in_its_own_direction_and_shape(void **state)
{
	static const struct {
		uint32_t type;
		bool to_launcher;
		size_t strings;
		int fds;
	} types[] = { { LAUNCH_START, true, 0, 0 }, { LAUNCH_END, true, 0, 0 },
		{ LAUNCH_LIST, true, 0, 0 }, { LAUNCH_BUILD, true, 4, 3 },
		{ LAUNCH_VERIFY, true, 1, 3 }, { LAUNCH_CANCEL, true, 0, 0 },
		{ LAUNCH_QUOTA, true, 0, 0 }, { LAUNCH_STATS, true, 0, 0 },
		{ LAUNCH_HELD, true, 0, 0 }, { LAUNCH_STARTED, false, 0, 0 },
		{ LAUNCH_RUNNING, false, 0, 0 }, { LAUNCH_ENDED, false, 0, 0 },
		{ LAUNCH_BUILT, false, 0, 0 }, { LAUNCH_DONE, false, 0, 0 },
		{ LAUNCH_FAILED, false, 2, 0 }, { LAUNCH_STATS_ARE, false, 0, 0 },
		{ LAUNCH_HELD_ARE, false, 0, 0 }, { LAUNCH_TREE, true, 2, 3 },
		{ LAUNCH_WRITER, true, 0, 0 }, { LAUNCH_WRITER_STARTED, false, 0, 0 },
		{ LAUNCH_AUDIT, true, 0, 0 }, { LAUNCH_AUDIT_STARTED, false, 0, 0 },
		{ LAUNCH_EGRESS, true, 0, 0 }, { LAUNCH_EGRESS_STARTED, false, 0, 0 },
		{ LAUNCH_REGISTRIES, true, 0, 3 } };
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct launch_message head = message(types[i].type);
		bool to = types[i].to_launcher;
		size_t count = types[i].strings;
		assert_int_equal(pass(&head, texts, count, to, types[i].fds, 0), 0);
		assert_int_equal(packet.head.type, types[i].type);
		assert_int_equal(packet.head.tag, 7);
		for (size_t k = 0; k < count; k++)
			assert_string_equal(packet.strings[k], texts[k]);
		assert_int_equal(pass(&head, texts, count, !to, types[i].fds, 0), -1);
		assert_int_equal(pass(&head, texts, count, to, types[i].fds + 1, 0), -1);
		assert_int_equal(pass(&head, texts, count, to, types[i].fds, 1), -1);
		assert_int_equal(pass(&head, texts, count, to, types[i].fds, -1), -1);
		head.type = 63;
		assert_int_equal(pass(&head, texts, count, to, types[i].fds, 0), -1);
	}
}

static void a_webhook_call_names_an_approval_and_nothing_else(void **state)
{
	static const char *const good[] = { ID, ID }, *const url[] = { "http://example/" };
	struct launch_message head = message(LAUNCH_WEBHOOK);
	assert_int_equal(pass(&head, good, 1, true, 2, 0), 0);
	assert_int_equal(pass(&head, good, 2, true, 2, 0), -1);
	assert_int_equal(pass(&head, good, 1, true, 3, 0), -1);
	assert_int_equal(pass(&head, NULL, 0, true, 2, 0), -1);
	assert_int_equal(pass(&head, url, 1, true, 2, 0), -1);
	assert_int_equal(pass(&head, good, 1, false, 2, 0), -1);
}

static void operations_of_the_blob_store_are_checked(void **state)
{
	static const char *const good[][3] = { { "put", "archives/a.tar.zst", "zstd" },
		{ "get", "archives/a.tar.zst", "plain" }, { "put", "a", "new" } };
	static const char *const bad[][3] = { { "put", "../a", "zstd" }, { "put", "/a", "zstd" },
		{ "put", ".new/a", "new" }, { "take", "a", "new" }, { "put", "a", "--help" },
		{ "get", "a", "sha256=0" }, { "put", "", "new" } };
	struct launch_message head = message(LAUNCH_BLOB);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(pass(&head, good[i], 3, true, 2, 0), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(pass(&head, bad[i], 3, true, 2, 0), -1);
	assert_int_equal(pass(&head, good[0], 3, false, 2, 0), -1);
	assert_int_equal(pass(&head, good[0], 3, true, 1, 0), -1);
	assert_int_equal(pass(&head, good[0], 1, true, 2, 0), -1);
}

static void descriptors_are_those_that_present_names(void **state)
{
	struct launch_message head = message(LAUNCH_STARTED);
	head.present = 1 << LAUNCH_FD_PROC | 1 << LAUNCH_FD_CPU;
	assert_int_equal(pass(&head, NULL, 0, false, 2, 0), 0);
	assert_int_equal(pass(&head, NULL, 0, false, 1, 0), -1);
	assert_int_equal(pass(&head, NULL, 0, false, 0, 0), -1);
	head.present = 1 << LAUNCH_FD_MAX;
	assert_int_equal(pass(&head, NULL, 0, false, 1, 0), -1);
}

static void a_field_of_another_type_is_refused(void **state)
{
	struct launch_message head = message(LAUNCH_END);
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		struct launch_message wrong = head;                                                \
		wrong.field = value;                                                               \
		assert_int_equal(pass(&wrong, NULL, 0, true, 0, 0), -1);                           \
	} while (0)
	assert_int_equal(pass(&head, NULL, 0, true, 0, 0), 0);
	REFUSED(tag, 0);
	REFUSED(other, 1);
	REFUSED(value, -1);
	REFUSED(flags, LAUNCH_PTRACE);
	REFUSED(error_code, ERR_LIMIT);
	REFUSED(present, 1);
	REFUSED(limits.pids, 1);
	REFUSED(stats.started, 1);
	REFUSED(id[0], 0);
	REFUSED(id[3], '/');
	REFUSED(id[3], 'A');
	REFUSED(id[ID_LEN], 'x');
	REFUSED(request_id[0], '\n');
	REFUSED(request_id[5], 'x');
	head = message(LAUNCH_LIST);
	REFUSED(id[0], 'a');
	head = message(LAUNCH_START);
	head.limits.memory_bytes = INT64_MAX / 4;
	assert_int_equal(pass(&head, NULL, 0, true, 0, 0), 0);
	head.limits.memory_bytes++;
	assert_int_equal(pass(&head, NULL, 0, true, 0, 0), -1);
	head = message(LAUNCH_START);
	head.other = launch_pack_ports((const uint16_t[]){ 8443, 22 }, 2);
	assert_int_equal(pass(&head, NULL, 0, true, 0, 0), -1);
	head.flags = LAUNCH_NETWORK;
	assert_int_equal(pass(&head, NULL, 0, true, 0, 0), 0);
	uint16_t ports[4];
	assert_int_equal(launch_unpack_ports(packet.head.other, ports), 2);
	assert_int_equal(ports[0], 8443);
	assert_int_equal(ports[1], 22);
	head = message(LAUNCH_FAILED);
	head.error_code = ERR_NONE;
	assert_int_equal(pass(&head, texts, 2, false, 0, 0), -1);
	head.error_code = ERR_CODE_COUNT;
	assert_int_equal(pass(&head, texts, 2, false, 0, 0), -1);
	head = message(LAUNCH_ENDED);
	head.tag = 0;
	assert_int_equal(pass(&head, NULL, 0, false, 0, 0), 0);
}

static void texts_are_as_many_as_the_type_has(void **state)
{
	struct launch_message head = message(LAUNCH_BUILD);
	assert_int_equal(pass(&head, texts, 1, true, 3, 0), -1);
	head = message(LAUNCH_FAILED);
	assert_int_equal(pass(&head, texts, 3, false, 0, 0), -1);
}

#define FROZEN "snap-0123456789abcdefghij"
#define LAYER "a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9a3f5b8c9d2e1f4a7b6c5d4e3f2a1b0c9"

static void an_environment_is_names_paths_and_layers_with_its_lock(void **state)
{
	const char *good[] = { "agent_1", "python", "/usr/bin/python3", "/opt/python", "/srv/one",
		"/srv/two", "", LAYER, LAYER, "", "" };
	struct launch_message head = message(LAUNCH_START);
	head.value = 1;
	assert_int_equal(pass(&head, good, 11, true, 1, 0), 0);
	assert_int_equal(packet.tree_count, 1);
	const struct launch_tree *got = &packet.trees[0];
	assert_string_equal(got->name, "agent_1");
	assert_string_equal(got->prefix, "/opt/python");
	assert_int_equal(got->editable_count, 2);
	assert_string_equal(got->editables[1], "/srv/two");
	assert_int_equal(got->layer_count, 2);
	assert_string_equal(got->layers[1], LAYER);
	assert_int_equal(pass(&head, good, 11, true, 0, 0), -1);
	for (size_t count = 0; count < 11; count++)
		assert_int_equal(pass(&head, good, count, true, 1, 0), -1);
	static const int counts[] = { -1, 0, 2, LAUNCH_TREES_MAX + 1, INT32_MAX, INT32_MIN };
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		head.value = counts[i];
		assert_int_equal(pass(&head, good, 11, true, 1, 0), -1);
	}
	static const struct {
		size_t at;
		const char *text;
	} bad[] = { { 0, "../etc" }, { 0, "" }, { 1, "" }, { 1, "node" }, { 1, "ruby" },
		{ 2, "python3" }, { 2, "" }, { 2, "/usr/../etc/x" }, { 3, "opt" }, { 3, "/opt/" },
		{ 4, "" }, { 5, "/srv/../root" }, { 7, "" }, { 8, "../../etc" }, { 8, LAYER "0" },
		{ 7, "A" LAYER }, { 9, LAYER }, { 10, "bun" } };
	head.value = 1;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const char *kept = good[bad[i].at];
		good[bad[i].at] = bad[i].text;
		assert_int_equal(pass(&head, good, 11, true, 1, 0), -1);
		good[bad[i].at] = kept;
	}
	good[3] = "";
	assert_int_equal(pass(&head, good, 11, true, 1, 0), 0);
	/* What was frozen comes first; packages there must be. */
	good[7] = FROZEN;
	assert_int_equal(pass(&head, good, 11, true, 1, 0), 0);
	good[8] = FROZEN;
	assert_int_equal(pass(&head, good, 11, true, 1, 0), -1);
	good[7] = LAYER;
	assert_int_equal(pass(&head, good, 11, true, 1, 0), -1);
}

static void a_start_names_its_trees_in_a_list(void **state)
{
	const char *all[] = { "agent_1", "python", "/usr/bin/python3", "", "", LAYER, "", "", "",
		"", "", "", "", FROZEN, FROZEN, "", "", "node_1", "node", "", "", "", LAYER, "",
		"bun", LAYER, "" };
	const size_t count = sizeof all / sizeof *all;
	struct launch_message head = message(LAUNCH_START);
	head.value = 3;
	assert_int_equal(pass(&head, all, count, true, 2, 0), 0);
	assert_int_equal(packet.tree_count, 3);
	assert_string_equal(packet.trees[1].name, "");
	assert_int_equal(packet.trees[1].layer_count, 2);
	assert_string_equal(packet.trees[2].name, "node_1");
	assert_int_equal(packet.trees[2].tool_count, 2);
	assert_string_equal(packet.trees[2].tools[1], LAYER);
	assert_int_equal(pass(&head, all, count, true, 3, 0), -1);
	all[17] = "agent_1";
	assert_int_equal(pass(&head, all, count, true, 2, 0), -1);
	all[17] = "node_1";
	/* Two of one kind would share what is changed in them. */
	all[18] = "python";
	assert_int_equal(pass(&head, all, count, true, 2, 0), -1);
	all[18] = "node";
	all[24] = "../bun";
	assert_int_equal(pass(&head, all, count, true, 2, 0), -1);
	all[24] = "bun";
	all[25] = "../../etc";
	assert_int_equal(pass(&head, all, count, true, 2, 0), -1);
	all[25] = LAYER;
	all[10] = "/usr/bin/python3";
	assert_int_equal(pass(&head, all, count, true, 2, 0), -1);
	all[10] = "";
	assert_int_equal(pass(&head, all, count, true, 2, 0), 0);
	static const char *const bad[] = { LAYER, "snap-", "snap-../../etc", FROZEN "0", ".empty" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		all[13] = bad[i];
		assert_int_equal(pass(&head, all, count, true, 2, 0), -1);
	}
}

static void what_is_too_much_is_not_encoded(void **state)
{
	struct launch_message head = message(LAUNCH_BUILD);
	static char word[LAUNCH_BODY_MAX + 1];
	const char *many[LAUNCH_STRINGS_MAX + 1], *one[] = { "p", "", word };
	auto_buf struct buf out;
	struct error err = { 0 };
	buf_init(&out, 1 << 20);
	for (size_t i = 0; i <= LAUNCH_STRINGS_MAX; i++)
		many[i] = "x";
	assert_int_equal(pass(&head, many, LAUNCH_STRINGS_MAX, true, 3, 0), 0);
	assert_int_equal(launch_encode(&head, many, LAUNCH_STRINGS_MAX + 1, &out, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	memset(word, 'a', LAUNCH_BODY_MAX - 4);
	assert_int_equal(pass(&head, one, 3, true, 3, 0), 0);
	memset(word, 'a', LAUNCH_BODY_MAX - 3);
	assert_int_equal(launch_encode(&head, one, 3, &out, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
}

static void every_byte_that_is_changed_keeps_texts_inside(void **state)
{
	struct launch_message head = message(LAUNCH_BUILD);
	auto_buf struct buf out;
	struct error err = { 0 };
	buf_init(&out, 1 << 20);
	assert_int_equal(launch_encode(&head, texts, 4, &out, &err), 0);
	for (size_t i = 0; i < out.len; i++) {
		for (int bit = 0; bit < 8; bit++) {
			char *copy = malloc(out.len);
			memcpy(copy, out.data, out.len);
			copy[i] = (char)(copy[i] ^ (1 << bit));
			if (!launch_decode(copy, out.len, true, 3, &packet, &err))
				for (uint32_t k = 0; k < packet.head.string_count; k++)
					assert_true(packet.strings[k] + strlen(packet.strings[k]) <
						    copy + out.len);
			free(copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_is_taken_in_its_own_direction_and_shape),
		cmocka_unit_test(a_webhook_call_names_an_approval_and_nothing_else),
		cmocka_unit_test(operations_of_the_blob_store_are_checked),
		cmocka_unit_test(descriptors_are_those_that_present_names),
		cmocka_unit_test(a_field_of_another_type_is_refused),
		cmocka_unit_test(texts_are_as_many_as_the_type_has),
		cmocka_unit_test(an_environment_is_names_paths_and_layers_with_its_lock),
		cmocka_unit_test(a_start_names_its_trees_in_a_list),
		cmocka_unit_test(what_is_too_much_is_not_encoded),
		cmocka_unit_test(every_byte_that_is_changed_keeps_texts_inside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
