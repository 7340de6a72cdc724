#include "format/network/dns.h"

#define HEADER 12
#define LABEL_MAX_LEN 63
#define NAME_MAX_LEN 253
#define CLASS_IN 1
#define TYPE_OPT 41
#define EDNS_HEADER 11
#define QUESTION_POINTER 0xc00c /* the name at the beginning of the question */
enum { FLAG_RESPONSE = 0x8000, FLAG_OPCODE = 0x7800, FLAG_WANTED = 0x0100, FLAG_OFFERED = 0x0080 };

static uint16_t number_at(struct str bytes, size_t at)
{
	return (uint16_t)((uint8_t)bytes.data[at] << 8 | (uint8_t)bytes.data[at + 1]);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* The name at *at, which moves behind it. false: malformed. */
static bool read_name(struct str packet, size_t *at, char out[DNS_NAME_SIZE])
{
	size_t len = 0;
	bool is_host = true;
	for (;;) {
		if (*at >= packet.len)
			return false;
		size_t label = (uint8_t)packet.data[(*at)++];
		if (!label)
			break;
		/* A larger byte would be a pointer, or a kind of label that nobody uses. */
		if (label > LABEL_MAX_LEN || label > packet.len - *at ||
			len + (len > 0) + label > NAME_MAX_LEN)
			return false;
		if (len)
			out[len++] = '.';
		for (size_t i = 0; i < label; i++) {
			char c = packet.data[*at + i];
			if (c >= 'A' && c <= 'Z')
				c = (char)(c - 'A' + 'a');
			is_host = is_host && is_word(c);
			out[len++] = c;
		}
		*at += label;
	}
	out[is_host ? len : 0] = '\0';
	return true;
}

/* EDNS, at the end of the packet: its options are passed over. */
static int read_edns(struct str packet, size_t at, struct dns_query *query)
{
	if (packet.len - at < EDNS_HEADER || packet.data[at] ||
		number_at(packet, at + 1) != TYPE_OPT)
		return DNS_MALFORMED;
	if (number_at(packet, at + 9) != packet.len - at - EDNS_HEADER)
		return DNS_MALFORMED;
	query->has_edns = true;
	return packet.data[at + 6] ? DNS_VERSION : DNS_OK;
}

int dns_parse(struct str packet, struct dns_query *out)
{
	size_t at = HEADER;
	*out = (struct dns_query){ 0 };
	if (packet.len < HEADER || number_at(packet, 2) & FLAG_RESPONSE)
		return -1;
	out->id = number_at(packet, 0);
	out->flags = number_at(packet, 2);
	if (out->flags & FLAG_OPCODE)
		return DNS_UNKNOWN;
	uint16_t extra = number_at(packet, 10);
	if (packet.len > DNS_QUERY_MAX || number_at(packet, 4) != 1 || number_at(packet, 6) ||
		number_at(packet, 8) || extra > 1)
		return DNS_MALFORMED;
	if (!read_name(packet, &at, out->name) || packet.len - at < 4) {
		out->name[0] = '\0';
		return DNS_MALFORMED;
	}
	out->type = number_at(packet, at);
	uint16_t class = number_at(packet, at + 2);
	at += 4;
	int code = extra ? read_edns(packet, at, out) : at < packet.len ? DNS_MALFORMED : DNS_OK;
	if (code == DNS_MALFORMED) {
		out->name[0] = '\0';
		return code;
	}
	out->question = (struct str){ packet.data + HEADER, at - HEADER };
	return code == DNS_OK && class != CLASS_IN ? DNS_UNKNOWN : code;
}

static void put_number(struct buf *out, uint16_t value)
{
	buf_char(out, (char)(value >> 8));
	buf_char(out, (char)value);
}

void dns_write(const struct dns_query *query, enum dns_code code, const uint8_t *address,
	uint32_t ttl_s, struct buf *out)
{
	bool has_answer = code == DNS_OK && address;
	uint16_t flags = (query->flags & (FLAG_OPCODE | FLAG_WANTED)) | FLAG_RESPONSE |
			 FLAG_OFFERED | ((uint16_t)code & 0xf);
	put_number(out, query->id);
	put_number(out, flags);
	put_number(out, query->question.len ? 1 : 0);
	put_number(out, has_answer);
	put_number(out, 0);
	put_number(out, query->has_edns);
	if (query->question.len)
		buf_append(out, query->question.data, query->question.len);
	if (has_answer) {
		uint16_t len = query->type == DNS_A ? 4 : 16;
		put_number(out, QUESTION_POINTER);
		put_number(out, query->type);
		put_number(out, CLASS_IN);
		put_number(out, (uint16_t)(ttl_s >> 16));
		put_number(out, (uint16_t)ttl_s);
		put_number(out, len);
		buf_append(out, address, len);
	}
	if (query->has_edns) {
		buf_char(out, '\0');
		put_number(out, TYPE_OPT);
		put_number(out, DNS_QUERY_MAX);
		put_number(out, (uint16_t)((uint16_t)code >> 4 << 8)); /* the rest of the code */
		put_number(out, 0);
		put_number(out, 0);
	}
}

int dns_take_frame(struct str bytes, struct str *message, struct str *rest)
{
	if (bytes.len < 2)
		return 0;
	size_t len = number_at(bytes, 0);
	if (len < HEADER || len > DNS_QUERY_MAX)
		return -1;
	if (bytes.len < 2 + len)
		return 0;
	*message = (struct str){ bytes.data + 2, len };
	*rest = (struct str){ bytes.data + 2 + len, bytes.len - 2 - len };
	return 1;
}

void dns_put_frame(struct str message, struct buf *out)
{
	put_number(out, (uint16_t)message.len);
	buf_append(out, message.data, message.len);
}
