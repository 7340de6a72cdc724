#include "format/network/tls_hello.h"

#define RECORD_HEADER 5
#define RECORD_MAX 16384
#define MESSAGE_HEADER 4
#define NAME_MAX_LEN 253
#define LABEL_MAX_LEN 63
enum { RECORD_HANDSHAKE = 22, MESSAGE_CLIENT_HELLO = 1, NAME_HOST = 0 };
enum { EXTENSION_NAME = 0, EXTENSION_PRE_SHARED_KEY = 41 };

/* Bytes that are left to read. `is_short` stays set after a read past the end. */
struct reader {
	const uint8_t *data;
	size_t len;
	bool is_short;
};

static struct reader read_bytes(struct reader *from, size_t len)
{
	struct reader piece = { from->data, len, false };
	if (from->is_short || len > from->len) {
		from->is_short = true;
		return (struct reader){ from->data, 0, true };
	}
	from->data += len;
	from->len -= len;
	return piece;
}

static unsigned read_number(struct reader *from, size_t width)
{
	struct reader piece = read_bytes(from, width);
	unsigned value = 0;
	for (size_t i = 0; i < piece.len; i++)
		value = value << 8 | piece.data[i];
	return value;
}

/* A vector: its length in `width` bytes, then its bytes. */
static struct reader read_vector(struct reader *from, size_t width)
{
	return read_bytes(from, read_number(from, width));
}

static int read_host(struct reader name, char out[TLS_HELLO_NAME_SIZE], struct error *err)
{
	size_t label = 0;
	if (name.len && name.data[name.len - 1] == '.')
		name.len--;
	if (!name.len || name.len > NAME_MAX_LEN)
		return fail(err, ERR_INVALID, "a server name has 1 to %d bytes", NAME_MAX_LEN);
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = name.data[i];
		if (c >= 'A' && c <= 'Z')
			c = (uint8_t)(c - 'A' + 'a');
		bool is_word =
			(c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
		if (!is_word && c != '.')
			return fail(err, ERR_INVALID, "byte 0x%02x in the server name", c);
		if (c == '.' ? label == 0 : label == LABEL_MAX_LEN)
			return fail(err, ERR_INVALID, "a label of a server name has 1 to %d bytes",
				LABEL_MAX_LEN);
		label = c == '.' ? 0 : label + 1;
		out[i] = (char)c;
	}
	out[name.len] = '\0';
	return label ? 0 : fail(err, ERR_INVALID, "the server name ends in an empty label");
}

static int read_names(struct reader extension, struct tls_hello *hello, struct error *err)
{
	struct reader names = read_vector(&extension, 2);
	unsigned kind = read_number(&names, 1);
	struct reader name = read_vector(&names, 2);
	if (extension.is_short || names.is_short || extension.len)
		return fail(err, ERR_INVALID, "malformed list of server names");
	if (kind != NAME_HOST)
		return fail(err, ERR_INVALID, "a server name that is not a host name");
	if (names.len)
		return fail(err, ERR_INVALID, "several server names");
	return read_host(name, hello->sni, err);
}

/* Encrypted ClientHello, its drafts, and the encrypted server name before them. */
static bool is_encrypted(unsigned type)
{
	return (type >= 0xfe08 && type <= 0xfe0d) || type == 0xfd00 || type == 0xffce;
}

static int read_extensions(struct reader extensions, struct tls_hello *hello, struct error *err)
{
	uint8_t seen[65536 / 8] = { 0 };
	while (extensions.len) {
		unsigned type = read_number(&extensions, 2);
		struct reader extension = read_vector(&extensions, 2);
		if (extensions.is_short)
			return fail(err, ERR_INVALID, "an extension that is cut off");
		if (seen[type / 8] & 1u << type % 8)
			return fail(err, ERR_INVALID, "extension %u comes twice", type);
		seen[type / 8] |= (uint8_t)(1u << type % 8);
		if (type == EXTENSION_NAME && read_names(extension, hello, err) < 0)
			return -1;
		if (type == EXTENSION_PRE_SHARED_KEY && extensions.len)
			return fail(err, ERR_INVALID, "extensions behind pre_shared_key");
		hello->has_ech |= is_encrypted(type);
	}
	return 0;
}

static int read_hello(struct reader body, struct tls_hello *hello, struct error *err)
{
	unsigned version = read_number(&body, 2);
	read_bytes(&body, 32); /* random */
	struct reader session = read_vector(&body, 1), ciphers = read_vector(&body, 2);
	struct reader compressions = read_vector(&body, 1);
	if (body.is_short)
		return fail(err, ERR_INVALID, "a ClientHello that is cut off");
	if (version < 0x0301 || version > 0x0303)
		return fail(err, ERR_INVALID, "version 0x%04x in a ClientHello", version);
	if (session.len > 32 || !ciphers.len || ciphers.len % 2 || !compressions.len)
		return fail(err, ERR_INVALID, "malformed ClientHello");
	if (!body.len)
		return 0; /* as before TLS 1.2: no extension at all */
	struct reader extensions = read_vector(&body, 2);
	if (body.is_short || body.len)
		return fail(err, ERR_INVALID, "malformed list of extensions");
	return read_extensions(extensions, hello, err);
}

/* The header of one record: the length of its bytes, 0 when the header isn't whole, or -1. */
static int read_record(struct reader *from, struct error *err)
{
	if (from->len && from->data[0] != RECORD_HANDSHAKE)
		return fail(err, ERR_INVALID, "not a TLS handshake");
	if (from->len > 1 && from->data[1] != 3)
		return fail(err, ERR_INVALID, "unknown version of TLS records");
	if (from->len < RECORD_HEADER)
		return 0;
	read_number(from, 3);
	unsigned len = read_number(from, 2);
	if (!len || len > RECORD_MAX)
		return fail(err, ERR_INVALID, "a TLS record of %u bytes", len);
	return (int)len;
}

/* The length of the message with its header, judged as soon as its bytes are there: a client that
 * speaks something else, or too much, is not waited for. 0: more bytes are needed. */
static int read_message(const uint8_t *message, size_t len, struct error *err)
{
	struct reader reader = { message, len, false };
	if (len && message[0] != MESSAGE_CLIENT_HELLO)
		return fail(err, ERR_INVALID, "a TLS handshake that begins with another message");
	if (len < MESSAGE_HEADER)
		return 0;
	read_number(&reader, 1);
	unsigned body = read_number(&reader, 3);
	if (body > TLS_HELLO_MAX - RECORD_HEADER - MESSAGE_HEADER)
		return fail(err, ERR_LIMIT, "a ClientHello of more than %d bytes", TLS_HELLO_MAX);
	return (int)body + MESSAGE_HEADER;
}

int tls_hello_parse(struct str bytes, struct tls_hello *out, struct error *err)
{
	uint8_t message[TLS_HELLO_MAX];
	size_t given = bytes.len < TLS_HELLO_MAX ? bytes.len : TLS_HELLO_MAX, len = 0;
	struct reader rest = { (const uint8_t *)bytes.data, given, false };
	while (rest.len) {
		int record = read_record(&rest, err);
		if (record < 0)
			return -1;
		if (!record)
			break;
		size_t want = (size_t)record, have = want < rest.len ? want : rest.len;
		if (have)
			memcpy(message + len, read_bytes(&rest, have).data, have);
		len += have;
		int whole = read_message(message, len, err);
		if (whole < 0)
			return -1;
		if (!whole || len + (want - have) < (size_t)whole)
			continue;
		/* This record holds the end of the hello. */
		if (len + (want - have) > (size_t)whole)
			return fail(err, ERR_INVALID, "bytes behind the ClientHello in its record");
		if (have < want)
			break;
		struct tls_hello hello = { .len = given - rest.len };
		struct reader body = { message + MESSAGE_HEADER, len - MESSAGE_HEADER, false };
		if (read_hello(body, &hello, err) < 0)
			return -1;
		*out = hello;
		return 1;
	}
	return given < TLS_HELLO_MAX
		       ? 0
		       : fail(err, ERR_LIMIT, "a ClientHello of more than %d bytes", TLS_HELLO_MAX);
}
