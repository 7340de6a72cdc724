#include "net/tls_make.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include "base/buf.h"
#include "base/str.h"
#include "format/http/uri.h"
#include "format/network/inet_address.h"

#define DAY_SECONDS (24L * 3600)
#define CA_DAYS 3652
#define CLOCK_SKEW_SECONDS 3600L

/* What is made here and freed at the end, whatever happens. */
struct made {
	X509 *ca, *server;
	EVP_PKEY *ca_key, *server_key;
};

static int fail_make(struct error *err, const char *what)
{
	char why[256] = "unknown error";
	unsigned long code = ERR_peek_last_error();
	if (code)
		ERR_error_string_n(code, why, sizeof why);
	ERR_clear_error();
	return fail(err, ERR_FAILED, "%s: %s", what, why);
}

static int add_extension(X509 *certificate, X509 *issuer, int id, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
	int ok = extension && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return ok ? 0 : -1;
}

static X509 *tls_make_begin(const char *subject, EVP_PKEY *key, long days)
{
	unsigned char serial[16];
	X509 *made = X509_new();
	BIGNUM *number = NULL;
	bool ok = made && RAND_bytes(serial, sizeof serial) == 1;
	serial[0] &= 0x7f;
	ok = ok && (number = BN_bin2bn(serial, sizeof serial, NULL)) &&
	     BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made)) &&
	     X509_set_version(made, X509_VERSION_3) == 1 &&
	     X509_gmtime_adj(X509_getm_notBefore(made), -CLOCK_SKEW_SECONDS) &&
	     X509_gmtime_adj(X509_getm_notAfter(made), days * DAY_SECONDS) &&
	     X509_set_pubkey(made, key) == 1 &&
	     X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8,
		     (const unsigned char *)subject, -1, -1, 0) == 1;
	BN_free(number);
	if (ok)
		return made;
	X509_free(made);
	return NULL;
}

static int make_ca(struct made *made, struct error *err)
{
	made->ca_key = EVP_EC_gen("P-256");
	made->ca = made->ca_key ? tls_make_begin("Carrel CA", made->ca_key, CA_DAYS) : NULL;
	if (!made->ca || X509_set_issuer_name(made->ca, X509_get_subject_name(made->ca)) != 1 ||
		add_extension(
			made->ca, made->ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
		add_extension(made->ca, made->ca, NID_key_usage, "critical,keyCertSign,cRLSign") ||
		add_extension(made->ca, made->ca, NID_subject_key_identifier, "hash") ||
		!X509_sign(made->ca, made->ca_key, EVP_sha256()))
		return fail_make(err, "make a CA");
	return 0;
}

static int read_ca(const struct tls_wanted *wanted, struct made *made, struct error *err)
{
	BIO *ca = BIO_new_mem_buf(wanted->ca, -1), *key = BIO_new_mem_buf(wanted->ca_key, -1);
	made->ca = PEM_read_bio_X509(ca, NULL, NULL, NULL);
	made->ca_key = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);
	BIO_free(ca);
	BIO_free(key);
	if (!made->ca || !made->ca_key || X509_check_private_key(made->ca, made->ca_key) != 1)
		return fail_make(err, "read the CA");
	return 0;
}

/* "DNS:localhost,IP:127.0.0.1". */
static int list_names(const text_list *names, struct buf *out, struct error *err)
{
	for (size_t i = 0; i < names->count; i++) {
		union inet_address address;
		struct str text = str_from(names->items[i]), host;
		uint16_t port;
		bool is_address = inet_address_parse_host(text, &address);
		if (!is_address && (!uri_parse_host(text, &host, &port) || port ||
					   host.len != text.len || text.len > 253))
			return fail(err, ERR_INVALID, "'%s' is not the name or address of a host",
				names->items[i]);
		buf_printf(out, "%s%s:%s", out->len ? "," : "", is_address ? "IP" : "DNS",
			names->items[i]);
	}
	return 0;
}

static int make_server(const struct tls_wanted *wanted, struct made *made, struct error *err)
{
	auto_buf struct buf names = buf_empty(TLS_NAMES_MAX * 300);
	char subject[65];
	if (!wanted->names.count || wanted->names.count > TLS_NAMES_MAX)
		return fail(err, ERR_INVALID, "1 to %d names are needed", TLS_NAMES_MAX);
	if (list_names(&wanted->names, &names, err))
		return -1;
	str_format(subject, sizeof subject, "%s", wanted->names.items[0]);
	made->server_key = EVP_EC_gen("P-256");
	made->server = made->server_key
			       ? tls_make_begin(subject, made->server_key, (long)wanted->days)
			       : NULL;
	if (!made->server ||
		X509_set_issuer_name(made->server, X509_get_subject_name(made->ca)) != 1 ||
		add_extension(made->server, made->ca, NID_basic_constraints, "critical,CA:FALSE") ||
		add_extension(made->server, made->ca, NID_key_usage, "critical,digitalSignature") ||
		add_extension(made->server, made->ca, NID_ext_key_usage, "serverAuth") ||
		add_extension(made->server, made->ca, NID_subject_key_identifier, "hash") ||
		add_extension(made->server, made->ca, NID_authority_key_identifier, "keyid") ||
		add_extension(made->server, made->ca, NID_subject_alt_name, names.data) ||
		!X509_sign(made->server, made->ca_key, EVP_sha256()))
		return fail_make(err, "make a certificate");
	return 0;
}

static const char *tls_make_text_of(BIO *out, struct arena *arena)
{
	char *data;
	long len = BIO_get_mem_data(out, &data);
	const char *text = arena_bytes(arena, data, (size_t)len);
	BIO_free(out);
	return text;
}

static const char *print_certificate(X509 *certificate, struct arena *arena)
{
	BIO *out = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(out, certificate);
	return tls_make_text_of(out, arena);
}

static const char *print_key(EVP_PKEY *key, struct arena *arena)
{
	BIO *out = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
	return tls_make_text_of(out, arena);
}

int tls_make(const struct tls_wanted *wanted, struct arena *arena, struct tls_made *out,
	struct error *err)
{
	struct made made = { 0 };
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	ERR_clear_error();
	int failed = (wanted->ca ? read_ca(wanted, &made, err) : make_ca(&made, err)) ||
		     make_server(wanted, &made, err);
	if (!failed)
		*out = (struct tls_made){ print_certificate(made.ca, arena),
			print_key(made.ca_key, arena), print_certificate(made.server, arena),
			print_key(made.server_key, arena) };
	X509_free(made.ca);
	X509_free(made.server);
	EVP_PKEY_free(made.ca_key);
	EVP_PKEY_free(made.server_key);
	return failed ? -1 : 0;
}
