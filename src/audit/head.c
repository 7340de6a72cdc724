#include "audit/head.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "format/http/sigv4.h"
#include "format/text/json_read.h"

#define KEY_NAME "key"
#define MAC ",\"mac\":\""

static int make_key(int dir, struct audit_key *key, struct error *err)
{
	if (getrandom(key->bytes, sizeof key->bytes, 0) != sizeof key->bytes)
		return fail_errno(err, "get random bytes for the key of the audit log");
	/* Under another name first: a key that a crash cut would sign nothing that can be checked.
	 */
	if (file_replace(dir, KEY_NAME, 0600, (struct str){ (char *)key->bytes, sizeof key->bytes },
		    true) ||
		fsync(dir))
		return fail_errno(err, "make the key of the audit log 'audit/" KEY_NAME "'");
	key->is_there = true;
	return 0;
}

int audit_key_open(int dir, bool is_made, struct audit_key *key, bool *is_new, struct error *err)
{
	*key = (struct audit_key){ 0 };
	*is_new = false;
	auto_close int fd = openat(dir, KEY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		*is_new = is_made;
		return is_made ? make_key(dir, key, err) : 0;
	}
	if (fd < 0)
		return fail_errno(err, "open the key of the audit log 'audit/" KEY_NAME "'");
	if (fd_read_full(fd, key->bytes, sizeof key->bytes) != sizeof key->bytes)
		return fail(err, ERR_CORRUPT, "'audit/" KEY_NAME "' is not a key of %d bytes",
			AUDIT_KEY_LEN);
	key->is_there = true;
	return 0;
}

static void sign(const struct audit_key *key, struct str text, char out[AUDIT_HASH_LEN + 1])
{
	unsigned char mac[SHA256_LEN];
	hmac_sha256(key->bytes, sizeof key->bytes, text.data, text.len, mac);
	sha256_hex(mac, out);
}

void audit_head_print(const struct audit_head *head, const struct audit_key *key, struct buf *out)
{
	char time[32], mac[AUDIT_HASH_LEN + 1];
	size_t at = out->len;
	clock_format(time, head->time_ms);
	buf_printf(out,
		"{\"seq\":%llu,\"hash\":\"%s\",\"file\":\"%s\",\"offset\":%llu,\"pruned_seq\":%llu,"
		"\"pruned_hash\":\"%s\",\"time\":\"%s\"",
		(unsigned long long)head->last.seq, head->last.hash, head->file,
		(unsigned long long)head->offset, (unsigned long long)head->pruned.seq,
		head->pruned.hash, time);
	sign(key, (struct str){ out->data + at, out->len - at }, mac);
	buf_printf(out, MAC "%s\"}", mac);
	while (out->len - at < AUDIT_HEAD_SIZE - 1)
		buf_char(out, ' ');
	buf_char(out, '\n');
}

static bool read_link(
	const struct json_value *value, const char *seq, const char *hash, struct audit_link *link)
{
	const char *text = json_member_text(value, hash);
	if (!json_member_u64(value, seq, &link->seq) || !text || strlen(text) != AUDIT_HASH_LEN)
		return false;
	memcpy(link->hash, text, sizeof link->hash);
	return true;
}

enum audit_head_state audit_head_read(
	struct str text, const struct audit_key *key, struct audit_head *head)
{
	auto_arena struct arena arena = { 0 };
	struct json_value *value;
	struct error ignored;
	char mac[AUDIT_HASH_LEN + 1];
	const char *end = memmem(text.data, text.len, MAC, sizeof MAC - 1);
	uint64_t first;
	*head = (struct audit_head){ 0 };
	audit_link_init(&head->last);
	audit_link_init(&head->pruned);
	if (!end || json_read(text, &arena, &value, &ignored))
		return HEAD_INVALID;
	const char *file = json_member_text(value, "file"), *given = json_member_text(value, "mac");
	if (!file || !given || strlen(given) != AUDIT_HASH_LEN ||
		(*file && !audit_file_first(file, &first)) ||
		!read_link(value, "seq", "hash", &head->last) ||
		!read_link(value, "pruned_seq", "pruned_hash", &head->pruned) ||
		!json_member_u64(value, "offset", &head->offset))
		return HEAD_INVALID;
	str_copy(head->file, sizeof head->file, file);
	if (!key->is_there)
		return HEAD_UNCHECKED;
	sign(key, (struct str){ text.data, (size_t)(end - text.data) }, mac);
	return strcmp(mac, given) ? HEAD_INVALID : HEAD_SIGNED;
}

enum audit_head_state audit_head_load(int dir, const struct audit_key *key, struct audit_head *head,
	char out[AUDIT_HEAD_SIZE + 1])
{
	*head = (struct audit_head){ 0 };
	audit_link_init(&head->last);
	audit_link_init(&head->pruned);
	out[0] = 0;
	auto_close int fd = openat(dir, "head", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return HEAD_MISSING;
	ssize_t len = fd_read_full(fd, out, AUDIT_HEAD_SIZE);
	out[len > 0 ? len : 0] = 0;
	return len > 0 ? audit_head_read((struct str){ out, (size_t)len }, key, head)
		       : HEAD_MISSING;
}

void audit_file_name(uint64_t first, char out[AUDIT_NAME_LEN + 1])
{
	str_format(out, AUDIT_NAME_LEN + 1, "%020llu.jsonl", (unsigned long long)first);
}

bool audit_file_first(const char *name, uint64_t *first)
{
	char expected[AUDIT_NAME_LEN + 1];
	if (strlen(name) != AUDIT_NAME_LEN || !str_to_u64((struct str){ name, 20 }, first))
		return false;
	audit_file_name(*first, expected);
	return *first && !strcmp(name, expected);
}
