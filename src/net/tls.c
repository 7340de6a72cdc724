#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>
#include "base/arena.h"
#include "base/fd.h"

#define RECORD_MAX NET_RECEIVE_LEAST /* bytes of a record, without its frame */
#define SUBJECT_MAX 512
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20" /* of TLS 1.2 */

struct tls {
	SSL_CTX *context;
};
struct tls_state { /* of a connection */
	SSL *ssl;
	char *subject;
	bool is_broken; /* nothing more can be sent */
};

/* ---- certificates ---- */

static int fail_tls(struct error *err, const char *what)
{
	char why[256] = "unknown error";
	unsigned long code = ERR_peek_last_error();
	if (code)
		ERR_error_string_n(code, why, sizeof why);
	ERR_clear_error();
	return fail(err, ERR_INVALID, "%s: %s", what, why);
}

/* A key that has a password can't be asked for it here. */
static int no_password(char *out, int size, int is_writing, void *ctx)
{
	return -1;
}

static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
	const unsigned char *in, unsigned in_len, void *ctx)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;
	if (SSL_select_next_proto(&chosen, out_len, ours, sizeof ours - 1, in, in_len) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static X509 *read_certificate(BIO *in)
{
	return PEM_read_bio_X509(in, NULL, no_password, NULL);
}

/* Whether the file ended where the last certificate was read: behind one that is damaged others
 * would be left out, and clients would find fault with a chain that is here. */
static bool is_at_end(void)
{
	unsigned long code = ERR_peek_last_error();
	return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

static int use_certificate(SSL_CTX *context, struct str pem, struct error *err)
{
	BIO *in = BIO_new_mem_buf(pem.data, (int)pem.len);
	X509 *own = read_certificate(in), *next;
	int ok = own && SSL_CTX_use_certificate(context, own) == 1;
	X509_free(own);
	while (ok && (next = read_certificate(in))) {
		ok = SSL_CTX_add0_chain_cert(context, next) == 1;
		if (!ok)
			X509_free(next);
	}
	BIO_free(in);
	if (!ok || !is_at_end())
		return fail_tls(err, "the certificate can't be used");
	ERR_clear_error(); /* of the end of the file */
	return 0;
}

static int use_key(SSL_CTX *context, struct str pem, struct error *err)
{
	BIO *in = BIO_new_mem_buf(pem.data, (int)pem.len);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, no_password, NULL);
	int ok = key && SSL_CTX_use_PrivateKey(context, key) == 1;
	EVP_PKEY_free(key);
	BIO_free(in);
	if (!ok)
		return fail_tls(err, "the key can't be used with the certificate");
	return SSL_CTX_check_private_key(context) == 1
		       ? 0
		       : fail_tls(err, "the key is not that of the certificate");
}

static int use_client_ca(SSL_CTX *context, struct str pem, struct error *err)
{
	BIO *in = BIO_new_mem_buf(pem.data, (int)pem.len);
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	size_t count = 0;
	X509 *ca;
	bool ok = true;
	while (ok && (ca = read_certificate(in))) {
		ok = X509_STORE_add_cert(store, ca) == 1 && SSL_CTX_add_client_CA(context, ca) == 1;
		X509_free(ca);
		count++;
	}
	BIO_free(in);
	if (!ok || !count || !is_at_end())
		return fail_tls(err, "the CA of clients can't be used");
	ERR_clear_error();
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

static int configure(SSL_CTX *context, const struct tls_files *files, struct error *err)
{
	static const unsigned char session[] = "carrel";
	SSL_CTX_set_options(context,
		SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* tickets do */
	SSL_CTX_set_max_early_data(context, 0);
	SSL_CTX_set_default_passwd_cb(context, no_password);
	SSL_CTX_set_alpn_select_cb(context, select_protocol, NULL);
	if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
		SSL_CTX_set_cipher_list(context, CIPHERS) != 1 ||
		SSL_CTX_set_num_tickets(context, 1) != 1 ||
		SSL_CTX_set_session_id_context(context, session, sizeof session - 1) != 1)
		return fail_tls(err, "set up TLS");
	if (use_certificate(context, files->certificate, err) || use_key(context, files->key, err))
		return -1;
	return files->client_ca.len ? use_client_ca(context, files->client_ca, err) : 0;
}

int tls_renew(struct tls *tls, const struct tls_files *files, struct error *err)
{
	SSL_CTX *context;
	/* No openssl.cnf: it is the host's, and not in the root of this process. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	ERR_clear_error();
	context = SSL_CTX_new(TLS_server_method());
	if (!context)
		return fail_tls(err, "set up TLS");
	if (configure(context, files, err)) {
		SSL_CTX_free(context);
		return -1;
	}
	SSL_CTX_free(tls->context); /* connections that use it hold it */
	tls->context = context;
	return 0;
}

int tls_new(const struct tls_files *files, struct tls **tls, struct error *err)
{
	struct tls *made = xzalloc(sizeof *made);
	if (tls_renew(made, files, err)) {
		free(made);
		return -1;
	}
	*tls = made;
	return 0;
}

void tls_free(struct tls *tls)
{
	if (tls)
		SSL_CTX_free(tls->context);
	free(tls);
}

/* ---- the stream ---- */

static void find_subject(struct net_stream *s)
{
	struct tls_state *state = s->state;
	X509 *peer = SSL_get0_peer_certificate(state->ssl);
	if (!peer || SSL_get_verify_result(state->ssl) != X509_V_OK)
		return;
	BIO *out = BIO_new(BIO_s_mem());
	char *text;
	if (out && X509_NAME_print_ex(out, X509_get_subject_name(peer), 0, XN_FLAG_RFC2253) > 0) {
		long len = BIO_get_mem_data(out, &text);
		if (len > 0 && len <= SUBJECT_MAX)
			state->subject = strndup(text, (size_t)len);
	}
	BIO_free(out);
	s->subject = state->subject;
}

/* errno for what SSL_read or SSL_write returned; 0: the peer has ended. */
static int tls_explain(struct net_stream *s, int result, bool is_reading)
{
	struct tls_state *state = s->state;
	int saved = errno;
	switch (SSL_get_error(state->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		/* Without renegotiation no sending waits for the peer. */
		return is_reading ? EAGAIN : EPROTO;
	case SSL_ERROR_WANT_WRITE:
		s->wants_output = is_reading;
		return EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		state->is_broken = true;
		return saved ? saved : ECONNRESET;
	default:
		state->is_broken = true;
		return EPROTO;
	}
}

static ssize_t tls_receive(
	struct net_stream *s, void *data, size_t size, struct fd_message *message)
{
	struct tls_state *state = s->state;
	size_t taken = 0;
	int got;
	message->fd_count = 0;
	message->is_cut = message->has_lost_fds = false;
	s->wants_output = false;
	do {
		bool is_new = !SSL_is_init_finished(state->ssl);
		ERR_clear_error();
		errno = 0;
		got = SSL_read(state->ssl, (char *)data + taken, (int)(size - taken));
		if (is_new && SSL_is_init_finished(state->ssl))
			find_subject(s);
		if (got > 0)
			taken += (size_t)got;
		/* A full record is seldom the last one. */
	} while (got == RECORD_MAX && size - taken >= RECORD_MAX);
	if (taken)
		return (ssize_t)taken;
	int why = tls_explain(s, got, true);
	if (!why)
		return 0;
	errno = why;
	return -1;
}

static ssize_t write_some(struct net_stream *s, const char *data, size_t len)
{
	struct tls_state *state = s->state;
	ERR_clear_error();
	errno = 0;
	int sent = SSL_write(state->ssl, data, (int)(len < RECORD_MAX ? len : RECORD_MAX));
	if (sent > 0)
		return sent;
	int why = tls_explain(s, sent, false);
	errno = why ? why : EPIPE;
	return -1;
}

/* Head and body go in one record, where they fit. */
static ssize_t send_parts(struct net_stream *s, const struct iovec *parts, size_t part_count,
	const int *fds, int fd_count, bool more)
{
	static char joined[RECORD_MAX];
	size_t len = 0, sent = 0;
	if (part_count != 1) {
		for (size_t i = 0; i < part_count && len < sizeof joined; i++) {
			size_t room = sizeof joined - len;
			size_t piece = parts[i].iov_len < room ? parts[i].iov_len : room;
			memcpy(joined + len, parts[i].iov_base, piece);
			len += piece;
		}
		return write_some(s, joined, len);
	}
	while (sent < parts->iov_len) {
		ssize_t got =
			write_some(s, (const char *)parts->iov_base + sent, parts->iov_len - sent);
		if (got < 0)
			return sent ? (ssize_t)sent : -1;
		sent += (size_t)got;
	}
	return (ssize_t)sent;
}

static ssize_t send_file(struct net_stream *s, int file, off_t *at, size_t len)
{
	static char data[4 * RECORD_MAX];
	ssize_t got = pread(file, data, len < sizeof data ? len : sizeof data, *at);
	if (got <= 0)
		return got;
	const struct iovec part = { data, (size_t)got };
	ssize_t sent = send_parts(s, &part, 1, NULL, 0, false);
	if (sent > 0)
		*at += sent;
	return sent;
}

/* Once only: the peer is told that what it has is whole. */
static void tell_end(struct tls_state *state)
{
	if (state->is_broken || !SSL_is_init_finished(state->ssl) ||
		(SSL_get_shutdown(state->ssl) & SSL_SENT_SHUTDOWN))
		return;
	ERR_clear_error();
	SSL_shutdown(state->ssl);
	ERR_clear_error();
}

static void tls_end(struct net_stream *s)
{
	tell_end(s->state);
	shutdown(s->fd, SHUT_WR);
}

static void close_stream(struct net_stream *s)
{
	struct tls_state *state = s->state;
	struct linger linger = { 0 };
	socklen_t len = sizeof linger;
	/* A connection that is to be reset must not look whole. */
	if (getsockopt(s->fd, SOL_SOCKET, SO_LINGER, &linger, &len) || !linger.l_onoff)
		tell_end(state);
	SSL_free(state->ssl);
	free(state->subject);
	free(state);
	s->state = NULL;
	s->subject = NULL;
	fd_close(&s->fd);
}

void tls_open(void *ctx, int fd, struct net_stream *stream)
{
	static const struct net_stream_kind kind = { tls_receive, send_parts, send_file, tls_end,
		close_stream };
	const struct tls *tls = ctx;
	struct tls_state *state = calloc(1, sizeof *state);
	if (!state || !(state->ssl = SSL_new(tls->context)) || SSL_set_fd(state->ssl, fd) != 1)
		abort();
	SSL_set_accept_state(state->ssl);
	*stream = (struct net_stream){ .kind = &kind, .fd = fd, .state = state, .is_tls = true };
}
