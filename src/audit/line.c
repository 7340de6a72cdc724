#include "audit/line.h"

#include "base/clock.h"

#define SEQ "{\"seq\":"
#define PREV ",\"prev\":\""
#define HASH ",\"hash\":\""
#define TIME ",\"time\":\""
#define TYPE "\",\"type\":\""
#define LEN(text) (sizeof(text) - 1)
#define PREV_LEN (LEN(PREV) + AUDIT_HASH_LEN + 1)
#define HASH_LEN (LEN(HASH) + AUDIT_HASH_LEN + 2)

void audit_link_init(struct audit_link *link)
{
	link->seq = 0;
	memset(link->hash, '0', AUDIT_HASH_LEN);
	link->hash[AUDIT_HASH_LEN] = 0;
}

void audit_body_begin(struct json *j, const struct audit_body *body)
{
	char time[32];
	clock_format(time, body->time_ms);
	json_object(j, NULL);
	json_text(j, "time", time);
	json_text(j, "type", body->type);
	json_text(j, "principal", body->principal);
	json_text(j, "workspace", body->workspace);
	json_text(j, "workspace_name", body->workspace_name);
	json_text(j, "request_id", body->request_id);
	json_text(j, "door", body->door);
	if (body->address)
		json_text(j, "address", body->address);
	json_object(j, "data");
}

void audit_body_end(struct json *j)
{
	json_end(j);
	json_end(j);
}

void audit_line_print(struct audit_link *last, struct str body, struct buf *out)
{
	size_t at = out->len;
	last->seq++;
	buf_printf(out, SEQ "%llu,", (unsigned long long)last->seq);
	buf_append(out, body.data + 1, body.len - 2);
	buf_printf(out, PREV "%s\"", last->hash);
	sha256_of(out->data + at, out->len - at, last->hash);
	buf_printf(out, HASH "%s\"}\n", last->hash);
}

static bool is_hex(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (str_hex_digit(text.data[i]) < 0)
			return false;
	return true;
}

bool audit_line_read(struct str text, struct audit_line *line)
{
	struct str digits, rest;
	char hash[AUDIT_HASH_LEN + 1];
	if (text.len < LEN(SEQ) + PREV_LEN + HASH_LEN || !str_starts_with(text, SEQ))
		return false;
	const char *end = text.data + text.len;
	struct str tail = { end - HASH_LEN, HASH_LEN }, link = { tail.data - PREV_LEN, PREV_LEN };
	struct str own = { tail.data + LEN(HASH), AUDIT_HASH_LEN };
	line->prev = (struct str){ link.data + LEN(PREV), AUDIT_HASH_LEN };
	str_cut((struct str){ text.data + LEN(SEQ), text.len - LEN(SEQ) }, ',', &digits, &rest);
	if (!str_starts_with(tail, HASH) || memcmp(end - 2, "\"}", 2) ||
		!str_starts_with(link, PREV) || tail.data[-1] != '"' || !is_hex(own) ||
		!is_hex(line->prev) || !str_to_u64(digits, &line->link.seq) || !line->link.seq)
		return false;
	memcpy(line->link.hash, own.data, AUDIT_HASH_LEN);
	line->link.hash[AUDIT_HASH_LEN] = 0;
	sha256_of(text.data, (size_t)(tail.data - text.data), hash);
	line->is_hash_right = !memcmp(hash, own.data, AUDIT_HASH_LEN);
	return true;
}

static struct str after(struct str text, const char *head)
{
	const char *at = memmem(text.data, text.len, head, strlen(head));
	if (!at)
		return (struct str){ text.data, 0 };
	at += strlen(head);
	return (struct str){ at, (size_t)(text.data + text.len - at) };
}

static struct str until_quote(struct str text)
{
	struct str value, rest;
	return str_cut(text, '"', &value, &rest) ? value : (struct str){ text.data, 0 };
}

struct str audit_line_time(struct str text)
{
	return until_quote(after(text, TIME));
}

struct str audit_line_type(struct str text)
{
	return until_quote(after(text, TYPE));
}
