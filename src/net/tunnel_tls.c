#include "net/tunnel_tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

#define HANDSHAKE_MS 10000
#define NAMES_SHOWN 4

struct tunnel_tls {
	SSL_CTX *context;
	SSL *ssl;
	X509 *refused; /* the server's certificate, when it is not accepted */
	char name[256];
	short read_wants, write_wants;
};

/* ---- what is trusted ---- */

/* The last reason that OpenSSL has, which is then forgotten. */
static const char *reason(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;
	ERR_clear_error();
	return text ? text : "unknown reason";
}

static bool is_address(const char *name)
{
	unsigned char bytes[16];
	return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

static int load_authorities(SSL_CTX *context, const char *ca, struct error *err)
{
	if (!ca) {
		SSL_CTX_set_default_verify_paths(context);
		return 0;
	}
	if (access(ca, R_OK))
		return fail_errno(err, "read the authorities '%s'", ca);
	return SSL_CTX_load_verify_file(context, ca) == 1
		       ? 0
		       : fail_hint(err, ERR_INVALID,
				 "a file of authorities has certificates in PEM: -----BEGIN "
				 "CERTIFICATE-----",
				 "read the authorities '%s': %s", ca, reason());
}

/* Keeps a certificate that is not accepted: a connection that failed doesn't have it any more. */
static int on_verified(int is_accepted, X509_STORE_CTX *store)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tunnel_tls *tls = SSL_get_app_data(ssl);
	X509 *leaf = X509_STORE_CTX_get0_cert(store);
	if (!is_accepted && !tls->refused && leaf && X509_up_ref(leaf))
		tls->refused = leaf;
	return is_accepted;
}

static int expect_name(struct tunnel_tls *tls)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
	SSL_set_app_data(tls->ssl, tls);
	SSL_set_verify(tls->ssl, SSL_VERIFY_PEER, on_verified);
	if (is_address(tls->name))
		return X509_VERIFY_PARAM_set1_ip_asc(param, tls->name);
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return X509_VERIFY_PARAM_set1_host(param, tls->name, 0) &&
	       SSL_set_tlsext_host_name(tls->ssl, tls->name);
}

int tunnel_tls_new(
	const struct uri_base *base, const char *ca, struct tunnel_tls **tls, struct error *err)
{
	struct tunnel_tls *made = xzalloc(sizeof *made);
	str_format(made->name, sizeof made->name, "%.*s", (int)base->name.len, base->name.data);
	made->context = SSL_CTX_new(TLS_client_method());
	if (!made->context || !SSL_CTX_set_min_proto_version(made->context, TLS1_2_VERSION)) {
		tunnel_tls_free(made);
		return fail(err, ERR_FAILED, "set TLS up: %s", reason());
	}
	SSL_CTX_set_options(made->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(
		made->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (load_authorities(made->context, ca, err)) {
		tunnel_tls_free(made);
		return -1;
	}
	made->ssl = SSL_new(made->context);
	if (!made->ssl || !expect_name(made)) {
		tunnel_tls_free(made);
		return fail(err, ERR_FAILED, "set TLS up: %s", reason());
	}
	*tls = made;
	return 0;
}

void tunnel_tls_free(struct tunnel_tls *tls)
{
	if (!tls)
		return;
	X509_free(tls->refused);
	SSL_free(tls->ssl);
	SSL_CTX_free(tls->context);
	free(tls);
}

/* ---- why a certificate is not accepted ---- */

static void print_names(X509 *certificate, struct buf *out)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	int count = names ? sk_GENERAL_NAME_num(names) : 0;
	for (int i = 0; i < count && i < NAMES_SHOWN; i++) {
		const GENERAL_NAME *one = sk_GENERAL_NAME_value(names, i);
		const ASN1_STRING *text = one->type == GEN_DNS	   ? one->d.dNSName
					  : one->type == GEN_IPADD ? one->d.iPAddress
								   : NULL;
		char address[INET6_ADDRSTRLEN] = "";
		if (!text)
			continue;
		const unsigned char *data = ASN1_STRING_get0_data(text);
		int len = ASN1_STRING_length(text);
		if (one->type == GEN_IPADD && (len == 4 || len == 16))
			inet_ntop(len == 4 ? AF_INET : AF_INET6, data, address, sizeof address);
		buf_text(out, out->len ? ", " : "");
		if (one->type == GEN_IPADD)
			buf_text(out, address);
		else
			buf_append(out, data, (size_t)len);
	}
	if (count > NAMES_SHOWN)
		buf_text(out, ", ...");
	if (!out->len)
		buf_text(out, "no name");
	GENERAL_NAMES_free(names);
}

static void print_day(const ASN1_TIME *time, char out[16])
{
	struct tm day;
	out[0] = 0;
	if (ASN1_TIME_to_tm(time, &day))
		strftime(out, 16, "%Y-%m-%d", &day);
}

static int tunnel_tls_refuse(
	struct tunnel_tls *tls, long why, const char *authority, struct error *err)
{
	X509 *certificate = tls->refused;
	char day[16] = "";
	auto_buf struct buf names = buf_empty(1024);
	switch (why) {
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		return fail_hint(err, ERR_DENIED,
			"if you trust it: carrel context add NAME --host URL --ca FILE, or "
			"CARREL_CA=FILE, with the certificate of its authority",
			"the certificate of '%s' is from an unknown authority", authority);
	case X509_V_ERR_CERT_HAS_EXPIRED:
		if (certificate)
			print_day(X509_get0_notAfter(certificate), day);
		return fail_hint(err, ERR_DENIED,
			"its operator has to renew it; check the clock of this machine too",
			"the certificate of '%s' has expired%s%s", authority, day[0] ? " on " : "",
			day);
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return fail_hint(err, ERR_DENIED, "check the clock of this machine",
			"the certificate of '%s' is not valid yet", authority);
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		if (certificate)
			print_names(certificate, &names);
		return fail_hint(err, ERR_DENIED, "use a name of the certificate in the URL",
			"the certificate of '%s' is for another name: %s", authority, names.data);
	default:
		return fail(err, ERR_DENIED, "the certificate of '%s' is not accepted: %s",
			authority, X509_verify_cert_error_string(why));
	}
}

/* ---- the handshake ---- */

static int tunnel_tls_explain(
	struct tunnel_tls *tls, int kind, const char *authority, struct error *err)
{
	long why = SSL_get_verify_result(tls->ssl);
	int code = ERR_GET_REASON(ERR_peek_error());
	if (why != X509_V_OK)
		return tunnel_tls_refuse(tls, why, authority, err);
	if (code == SSL_R_WRONG_VERSION_NUMBER || code == SSL_R_HTTP_REQUEST)
		return fail_hint(err, ERR_UNAVAILABLE, "use http:// if that is what it speaks",
			"the server at '%s' does not speak TLS", authority);
	if (code == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION || code == SSL_R_UNSUPPORTED_PROTOCOL)
		return fail(err, ERR_UNAVAILABLE, "the server at '%s' has no TLS 1.2 or later",
			authority);
	if (code == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
		return fail(err, ERR_DENIED, "the server at '%s' wants a certificate of the client",
			authority);
	if (kind == SSL_ERROR_SYSCALL || code == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return fail(err, ERR_UNAVAILABLE,
			"the server at '%s' closed the connection during the TLS handshake",
			authority);
	return fail(err, ERR_UNAVAILABLE, "TLS with '%s': %s", authority, reason());
}

int tunnel_tls_connect(struct tunnel_tls *tls, int fd, const char *authority, struct error *err)
{
	uint64_t end_ms = clock_monotonic_ms() + HANDSHAKE_MS;
	SSL_set_fd(tls->ssl, fd);
	for (;;) {
		ERR_clear_error();
		int done = SSL_connect(tls->ssl);
		if (done == 1)
			return 0;
		int kind = SSL_get_error(tls->ssl, done);
		if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE)
			return tunnel_tls_explain(tls, kind, authority, err);
		uint64_t now_ms = clock_monotonic_ms();
		struct pollfd ready = { fd, kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, 0 };
		if (now_ms >= end_ms || poll(&ready, 1, (int)(end_ms - now_ms)) == 0)
			return fail(err, ERR_UNAVAILABLE,
				"the server at '%s' does not answer the TLS handshake", authority);
	}
}

/* ---- bytes ---- */

/* Of a call that moved nothing: the result as read(2) and write(2) have it. */
static ssize_t nothing(struct tunnel_tls *tls, int result, short *wants)
{
	int kind = SSL_get_error(tls->ssl, result);
	*wants = kind == SSL_ERROR_WANT_READ ? POLLIN : kind == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
	if (*wants) {
		errno = EAGAIN;
		return -1;
	}
	/* An end without a close_notify, too: the lengths of HTTP say whether all was there. */
	if (kind == SSL_ERROR_ZERO_RETURN || kind == SSL_ERROR_SYSCALL ||
		ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return 0;
	errno = EPROTO;
	return -1;
}

ssize_t tunnel_tls_read(struct tunnel_tls *tls, void *data, size_t size)
{
	size_t got;
	ERR_clear_error();
	tls->read_wants = 0;
	int result = SSL_read_ex(tls->ssl, data, size, &got);
	return result == 1 ? (ssize_t)got : nothing(tls, result, &tls->read_wants);
}

ssize_t tunnel_tls_write(struct tunnel_tls *tls, const void *data, size_t len)
{
	size_t sent;
	ERR_clear_error();
	tls->write_wants = 0;
	int result = SSL_write_ex(tls->ssl, data, len, &sent);
	if (result == 1)
		return (ssize_t)sent;
	ssize_t moved = nothing(tls, result, &tls->write_wants);
	if (moved == 0)
		errno = EPIPE;
	return -1;
}

void tunnel_tls_end(struct tunnel_tls *tls)
{
	ERR_clear_error();
	SSL_shutdown(tls->ssl);
}

bool tunnel_tls_pending(const struct tunnel_tls *tls)
{
	return SSL_pending(tls->ssl) > 0;
}

short tunnel_tls_events(const struct tunnel_tls *tls)
{
	return (short)((tls->read_wants & POLLOUT) | (tls->write_wants & POLLIN));
}
