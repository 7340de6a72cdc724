#include "sandbox/plan/launch.h"

#include "base/path.h"
#include "format/http/blob_words.h"
#include "model/nouns/environment.h"
#include "sandbox/plan/grants.h"
#include "sandbox/plan/plan.h"

#define FDS_PRESENT (-1)
#define FDS_TREES (-2)
#define TREE_TEXTS 4 /* before its editables, layers and tools */
#define LAYER_HEX 64

/* What a message of each type may have. Everything else in it is 0. */
enum {
	TO_LAUNCHER = 1,
	HAS_ID = 2,
	HAS_OTHER = 4,
	HAS_VALUE = 8,
	HAS_ERROR = 16,
	HAS_PRESENT = 32,
	HAS_LIMITS = 64,
	HAS_STATS = 128,
	HAS_HELD = 256,
	HAS_FLAGS = 512,
	MAY_BE_UNASKED = 1024 /* tag 0 */
};
struct shape {
	uint32_t type;
	unsigned has;
	uint32_t strings_least, strings_most;
	int fds; /* exactly; FDS_PRESENT: one a bit of `present`; FDS_TREES: one an environment */
};
static const struct shape shapes[] = {
	{ LAUNCH_START, TO_LAUNCHER | HAS_ID | HAS_OTHER | HAS_VALUE | HAS_LIMITS | HAS_FLAGS, 0,
		LAUNCH_STRINGS_MAX, FDS_TREES },
	{ LAUNCH_END, TO_LAUNCHER | HAS_ID, 0, 0, 0 },
	{ LAUNCH_LIST, TO_LAUNCHER, 0, 0, 0 },
	{ LAUNCH_BUILD, TO_LAUNCHER, 2, LAUNCH_STRINGS_MAX, 3 },
	{ LAUNCH_VERIFY, TO_LAUNCHER | HAS_VALUE, 1, 1, 3 },
	{ LAUNCH_REGISTRIES, TO_LAUNCHER, 0, 0, 3 },
	{ LAUNCH_CANCEL, TO_LAUNCHER | HAS_OTHER | MAY_BE_UNASKED, 0, 0, 0 },
	{ LAUNCH_QUOTA, TO_LAUNCHER | HAS_ID | HAS_LIMITS, 0, 0, 0 },
	{ LAUNCH_STATS, TO_LAUNCHER, 0, 0, 0 },
	{ LAUNCH_HELD, TO_LAUNCHER | HAS_ID, 0, 0, 0 },
	{ LAUNCH_WRITER, TO_LAUNCHER, 0, 0, 0 },
	{ LAUNCH_TREE, TO_LAUNCHER, 1, LAUNCH_STRINGS_MAX, 3 },
	{ LAUNCH_BLOB, TO_LAUNCHER, 2, BLOB_WORDS_MAX, 2 },
	{ LAUNCH_GRANT, TO_LAUNCHER | HAS_ID | HAS_PRESENT, 0, 3 * GRANTS_MAX, FDS_PRESENT },
	{ LAUNCH_EGRESS, TO_LAUNCHER, 0, 0, 0 },
	{ LAUNCH_REVOKE, TO_LAUNCHER | HAS_ID, 0, 0, 0 },
	{ LAUNCH_AUDIT, TO_LAUNCHER, 0, 0, 0 },
	{ LAUNCH_WEBHOOK, TO_LAUNCHER, 1, 1, 2 },
	{ LAUNCH_STARTED, HAS_ID | HAS_VALUE | HAS_PRESENT, 0, 0, FDS_PRESENT },
	{ LAUNCH_RUNNING, HAS_ID | HAS_VALUE | HAS_PRESENT, 0, 0, FDS_PRESENT },
	{ LAUNCH_ENDED, HAS_ID | HAS_VALUE | MAY_BE_UNASKED, 0, 0, 0 },
	{ LAUNCH_BUILT, HAS_VALUE, 0, 0, 0 },
	{ LAUNCH_DONE, HAS_VALUE, 0, 0, 0 },
	{ LAUNCH_FAILED, HAS_ERROR, 2, 2, 0 },
	{ LAUNCH_STATS_ARE, HAS_STATS, 0, 0, 0 },
	{ LAUNCH_HELD_ARE, HAS_ID | HAS_HELD, 0, 0, 0 },
	{ LAUNCH_WRITER_STARTED, HAS_PRESENT, 0, 0, FDS_PRESENT },
	{ LAUNCH_AUDIT_STARTED, HAS_PRESENT, 0, 0, FDS_PRESENT },
	{ LAUNCH_EGRESS_STARTED, HAS_PRESENT, 0, 0, FDS_PRESENT },
	{ LAUNCH_CERTIFICATES, MAY_BE_UNASKED, 3, 3, 0 },
};

uint64_t launch_pack_ports(const uint16_t *ports, size_t count)
{
	uint64_t packed = 0;
	for (size_t i = 0; i < count && i < PLAN_PORTS_MAX; i++)
		packed |= (uint64_t)ports[i] << 16 * i;
	return packed;
}

size_t launch_unpack_ports(uint64_t packed, uint16_t *ports)
{
	size_t count = 0;
	for (; packed; packed >>= 16)
		if ((uint16_t)packed)
			ports[count++] = (uint16_t)packed;
	return count;
}

static const struct shape *find_shape(uint32_t type)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		if (shapes[i].type == type)
			return &shapes[i];
	return NULL;
}

int launch_encode(const struct launch_message *head, const char *const *strings, size_t count,
	struct buf *out, struct error *err)
{
	struct launch_message packet = *head;
	size_t len = 0;
	if (count > LAUNCH_STRINGS_MAX)
		return fail(err, ERR_LIMIT, "%zu strings are too many for one message (at most %d)",
			count, LAUNCH_STRINGS_MAX);
	for (size_t i = 0; i < count; i++)
		len += strlen(strings[i]) + 1;
	if (len > LAUNCH_BODY_MAX)
		return fail(err, ERR_LIMIT, "%zu bytes are too many for one message (at most %d)",
			len, LAUNCH_BODY_MAX);
	packet.magic = LAUNCH_MAGIC;
	packet.string_count = (uint32_t)count;
	packet.body_len = (uint32_t)len;
	buf_append(out, &packet, sizeof packet);
	for (size_t i = 0; i < count; i++)
		buf_append(out, strings[i], strlen(strings[i]) + 1);
	return out->overflow ? fail(err, ERR_LIMIT, "the message is too long") : 0;
}

static int corrupt(struct error *err, const char *what)
{
	return fail(err, ERR_CORRUPT, "invalid message of another role: %s", what);
}

static bool is_zero(const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((const char *)data)[i])
			return false;
	return true;
}

/* A text in an array of its own: ended, and nothing behind its end. */
static bool is_text(const char *data, size_t size)
{
	size_t len = strnlen(data, size);
	return len < size && is_zero(data + len, size - len);
}

/* Of the log alone, and clients may choose it (net/http.h): no more than that it is harmless there.
 */
static bool is_request_id(const char *text)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	return strspn(text, allowed) == strlen(text);
}

static int check_ids(
	const struct launch_message *head, const struct shape *shape, struct error *err)
{
	if (!is_text(head->id, sizeof head->id) ||
		!is_text(head->request_id, sizeof head->request_id))
		return corrupt(err, "an unterminated id");
	if (shape->has & HAS_ID ? !id_is_valid(head->id) : head->id[0] != 0)
		return corrupt(err, "an invalid id, or an id where none is expected");
	if (!is_request_id(head->request_id))
		return corrupt(err, "an invalid request id");
	return 0;
}

/* Bounds against overflow; plan_build checks the ranges. */
static bool limits_are_sane(const struct limits *limits)
{
	for (size_t i = 0; i < limit_count; i++)
		if (limit_get(limits, &limit_rows[i]) > limit_rows[i].most)
			return false;
	return true;
}

static int check_fields(
	const struct launch_message *head, const struct shape *shape, struct error *err)
{
	const struct {
		unsigned kind;
		const void *data;
		size_t size;
	} fields[] = { { HAS_OTHER, &head->other, sizeof head->other },
		{ HAS_VALUE, &head->value, sizeof head->value },
		{ HAS_ERROR, &head->error_code, sizeof head->error_code },
		{ HAS_PRESENT, &head->present, sizeof head->present },
		{ HAS_LIMITS, &head->limits, sizeof head->limits },
		{ HAS_STATS, &head->stats, sizeof head->stats },
		{ HAS_HELD, &head->held, sizeof head->held },
		{ HAS_FLAGS, &head->flags, sizeof head->flags } };
	if (!head->tag && !(shape->has & MAY_BE_UNASKED))
		return corrupt(err, "no tag");
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (!(shape->has & fields[i].kind) && !is_zero(fields[i].data, fields[i].size))
			return corrupt(err, "a field that its type must not have");
	if (head->flags & ~LAUNCH_FLAGS_ALL || head->held.has_written > 1)
		return corrupt(err, "a field out of range");
	if (head->type == LAUNCH_START && head->other && !(head->flags & LAUNCH_NETWORK))
		return corrupt(err, "ports without a network");
	if (shape->has & HAS_ERROR &&
		(head->error_code == ERR_NONE || head->error_code >= ERR_CODE_COUNT))
		return corrupt(err, "an invalid error");
	if (head->present >> LAUNCH_FD_MAX)
		return corrupt(err, "unknown descriptors");
	if (!limits_are_sane(&head->limits))
		return corrupt(err, "limits out of range");
	return 0;
}

/* body_len bytes that are string_count texts, and the points where they begin. */
static int cut_strings(const char *body, struct launch_packet *packet, struct error *err)
{
	size_t at = 0, len = packet->head.body_len;
	for (uint32_t i = 0; i < packet->head.string_count; i++) {
		const char *end = at < len ? memchr(body + at, 0, len - at) : NULL;
		if (!end)
			return corrupt(err, "fewer strings than its header says");
		packet->strings[i] = body + at;
		at = (size_t)(end - body) + 1;
	}
	return at == len ? 0 : corrupt(err, "bytes after its last string");
}

static bool is_layer(const char *text)
{
	return strlen(text) == LAYER_HEX && strspn(text, "0123456789abcdef") == LAYER_HEX;
}

bool launch_layer_is_frozen(const char *name)
{
	return !strncmp(name, LAUNCH_FROZEN, sizeof LAUNCH_FROZEN - 1) &&
	       id_is_valid(name + sizeof LAUNCH_FROZEN - 1);
}

/* The strings from *at up to an empty one, which is passed over. false: none is empty. */
static bool cut_list(
	const struct launch_packet *packet, size_t *at, const char *const **list, size_t *count)
{
	*list = packet->strings + *at;
	for (size_t i = *at; i < packet->head.string_count; i++)
		if (!packet->strings[i][0]) {
			*count = i - *at;
			*at = i + 1;
			return true;
		}
	return false;
}

static int check_environment(const struct launch_tree *tree, struct error *err)
{
	if (!env_name_is_valid(tree->name))
		return corrupt(err, "an invalid name of an environment");
	const struct env_kind_row *kind = env_kind_row_find(tree->kind);
	if (!kind)
		return corrupt(err, "an unknown kind of environment");
	if (((!kind->has_tools || tree->python[0]) && !path_is_normal(tree->python)) ||
		(tree->prefix[0] && !path_is_normal(tree->prefix)))
		return corrupt(err, "an interpreter without an absolute, plain path");
	if (kind->has_tools ? tree->prefix[0] || tree->editable_count : tree->tool_count != 0)
		return corrupt(err, "an environment with parts of another kind");
	for (size_t i = 0; i < tree->tool_count; i += 2)
		if (i + 1 == tree->tool_count || !env_name_is_valid(tree->tools[i]) ||
			!is_layer(tree->tools[i + 1]))
			return corrupt(err, "an invalid tool");
	for (size_t i = 0; i < tree->editable_count; i++)
		if (!path_is_normal(tree->editables[i]))
			return corrupt(err, "an editable project without an absolute, plain path");
	return 0;
}

static int check_tree(const struct launch_packet *packet, size_t index, struct error *err)
{
	const struct launch_tree *tree = &packet->trees[index];
	for (size_t i = 0; i < index; i++)
		if (!strcmp(packet->trees[i].name, tree->name) ||
			!strcmp(packet->trees[i].kind, tree->kind))
			return corrupt(err, "a tree that is named twice");
	size_t frozen = 0;
	while (frozen < tree->layer_count && launch_layer_is_frozen(tree->layers[frozen]))
		frozen++;
	for (size_t i = frozen; i < tree->layer_count; i++)
		if (!tree->name[0] || !is_layer(tree->layers[i]))
			return corrupt(err, "an invalid layer id");
	if (frozen == (tree->name[0] ? tree->layer_count : 0))
		return corrupt(err, "a tree without layers");
	if (tree->name[0])
		return check_environment(tree, err);
	if (tree->kind[0] || tree->python[0] || tree->prefix[0] || tree->editable_count ||
		tree->tool_count)
		return corrupt(err, "a workspace with an interpreter or with projects");
	return 0;
}

/* The trees of a START, and how many descriptors belong to them. */
static int cut_trees(struct launch_packet *packet, int *fds, struct error *err)
{
	const struct launch_message *head = &packet->head;
	size_t at = 0;
	if (head->value < 0 || head->value > LAUNCH_TREES_MAX)
		return corrupt(err, "too many trees");
	for (packet->tree_count = 0; packet->tree_count < (size_t)head->value;) {
		struct launch_tree *tree = &packet->trees[packet->tree_count];
		if (head->string_count - at < TREE_TEXTS)
			return corrupt(err, "a tree that is cut off");
		tree->name = packet->strings[at];
		tree->kind = packet->strings[at + 1];
		tree->python = packet->strings[at + 2];
		tree->prefix = packet->strings[at + 3];
		at += TREE_TEXTS;
		if (!cut_list(packet, &at, &tree->editables, &tree->editable_count) ||
			!cut_list(packet, &at, &tree->layers, &tree->layer_count) ||
			!cut_list(packet, &at, &tree->tools, &tree->tool_count))
			return corrupt(err, "a tree that is cut off");
		if (check_tree(packet, packet->tree_count++, err))
			return -1;
		*fds += tree->name[0] != 0;
	}
	for (packet->denial_count = 0; at < head->string_count; at++) {
		struct error why;
		if (packet->denial_count == PLAN_DENIALS_MAX ||
			denial_parse(packet->strings[at], &packet->denials[packet->denial_count++],
				&why))
			return corrupt(err, "an invalid or superfluous denied path");
	}
	return 0;
}

bool launch_tree_name_is_valid(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyz0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZ-.";
	size_t len = strlen(name);
	return len && len <= LAUNCH_TREE_NAME_MAX && strspn(name, allowed) == len &&
	       name[0] != '.' && name[0] != '-';
}

/* The verb is looked up by the process that does it. */
static int check_tree_job(const struct launch_packet *packet, struct error *err)
{
	for (uint32_t i = 0; i < packet->head.string_count; i++)
		if ((i == 0 || packet->strings[i][0]) &&
			!launch_tree_name_is_valid(packet->strings[i]))
			return corrupt(err, "an invalid name for work on trees");
	return 0;
}

static int check_blob(const struct launch_packet *packet, struct error *err)
{
	enum blob_verb verb;
	const char *key;
	struct blob_words words;
	struct error why;
	if (blob_words_read(packet->strings, packet->head.string_count, &verb, &key, &words, &why))
		return corrupt(err, why.text);
	return 0;
}

static int check_grant(const struct launch_packet *packet, struct error *err)
{
	const char *const *texts = packet->strings;
	if (packet->head.present > 1 || packet->head.string_count % 3)
		return corrupt(err, "mounts that are cut off");
	for (uint32_t i = 0; i < packet->head.string_count; i += 3)
		if (grant_check_tree(texts[i], err) || plan_check_target(texts[i + 1], err) ||
			(strcmp(texts[i + 2], "ro") != 0 && strcmp(texts[i + 2], "rw") != 0))
			return corrupt(err, "an invalid shared tree");
	return 0;
}

int launch_decode(const char *data, size_t len, bool to_launcher, int fd_count,
	struct launch_packet *packet, struct error *err)
{
	struct launch_message *head = &packet->head;
	if (len < sizeof *head)
		return corrupt(err, "too short");
	memcpy(head, data, sizeof *head);
	const struct shape *shape = find_shape(head->type);
	if (head->magic != LAUNCH_MAGIC || !shape || !!(shape->has & TO_LAUNCHER) != to_launcher)
		return corrupt(err, "unknown type");
	if (head->body_len > LAUNCH_BODY_MAX || len - sizeof *head != head->body_len)
		return corrupt(err, "its length differs from its header");
	if (head->string_count < shape->strings_least || head->string_count > shape->strings_most)
		return corrupt(err, "the wrong number of strings");
	if (check_ids(head, shape, err) || check_fields(head, shape, err))
		return -1;
	if (cut_strings(data + sizeof *head, packet, err))
		return -1;
	int fds = shape->fds >= 0 ? shape->fds : __builtin_popcount(head->present);
	packet->tree_count = packet->denial_count = 0;
	if (shape->fds == FDS_TREES && cut_trees(packet, &fds, err))
		return -1;
	if (head->type == LAUNCH_TREE && check_tree_job(packet, err))
		return -1;
	if (head->type == LAUNCH_BLOB && check_blob(packet, err))
		return -1;
	if (head->type == LAUNCH_WEBHOOK && !id_is_valid(packet->strings[0]))
		return corrupt(err, "an invalid id of an approval");
	if (head->type == LAUNCH_GRANT && check_grant(packet, err))
		return -1;
	return fd_count == fds ? 0 : corrupt(err, "the wrong descriptors");
}
