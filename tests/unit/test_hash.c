/* SHA-256: both implementations give what the standard and sha256sum give. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "base/fd.h"
#include "base/hash.h"
#include "unit.h"

typedef void init_function(struct sha256 *s);
static init_function *const inits[] = { sha256_init, sha256_init_portable };

static void digest(init_function *init, const void *data, size_t len, char hex[65])
{
	struct sha256 s;
	unsigned char out[SHA256_LEN];

	init(&s);
	sha256_add(&s, data, len);
	sha256_end(&s, out);
	sha256_hex(out, hex);
}

static void published_vectors_come_out(void **state)
{
	static const char *const vectors[][2] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
		  "klmnopqrlmnopqrsmnopqrstnopqrstu",
			"cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	char hex[65];

	for (int i = 0; i < 2; i++) {
		for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++) {
			digest(inits[i], vectors[v][0], strlen(vectors[v][0]), hex);
			assert_string_equal(hex, vectors[v][1]);
		}
	}
}

static void a_million_letters_come_out_in_any_pieces(void **state)
{
	char piece[1000], hex[65];

	memset(piece, 'a', sizeof piece);
	for (int i = 0; i < 2; i++) {
		struct sha256 s;
		unsigned char out[SHA256_LEN];
		size_t left = 1000000;

		inits[i](&s);
		for (size_t len = 0; left > 0; len = (len + 37) % sizeof piece) {
			size_t now = len < left ? len : left;

			sha256_add(&s, piece, now);
			left -= now;
		}
		sha256_end(&s, out);
		sha256_hex(out, hex);
		assert_string_equal(
			hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
}

static void both_implementations_agree_on_every_length(void **state)
{
	unsigned char data[1024];
	char a[65], b[65];

	assert_int_equal(getrandom(data, sizeof data, 0), sizeof data);
	for (size_t len = 0; len <= sizeof data; len++) {
		/* From its end, so that the sanitizer sees a read past it, and unaligned. */
		digest(sha256_init, data + sizeof data - len, len, a);
		digest(sha256_init_portable, data + sizeof data - len, len, b);
		assert_string_equal(a, b);
	}
}

/* So that the tests above are known to have tested two things. */
static void the_cpus_instructions_are_used_where_there_are(void **state)
{
	static char text[1 << 16];
	struct sha256 best, portable;

#ifndef __x86_64__
	skip();
#endif
	/* The first CPU of the list is enough. */
	int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	assert_true(fd_read_full(fd, text, sizeof text - 1) > 0);
	close(fd);
	sha256_init(&best);
	sha256_init_portable(&portable);
	assert_int_equal(best.compress != portable.compress, strstr(text, " sha_ni") != NULL);
}

/* The first 64 characters that sha256sum prints for data; false when there is no such program. */
static bool ask_sha256sum(const void *data, size_t len, char hex[65])
{
	int in[2], out[2], status;

	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp("sha256sum", "sha256sum", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	signal(SIGPIPE, SIG_IGN);
	ssize_t put = fd_write_full(in[1], data, len);
	close(in[1]);
	ssize_t got = fd_read_full(out[0], hex, 64);
	close(out[0]);
	hex[64] = '\0';
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return false;
	assert_int_equal(put, (ssize_t)len);
	assert_int_equal(got, 64);
	return true;
}

static void sha256sum_agrees_on_random_lengths(void **state)
{
	static unsigned char data[200000];
	uint32_t lengths[24];
	char theirs[65], ours[65];

	assert_int_equal(getrandom(data, sizeof data, 0), sizeof data);
	assert_int_equal(getrandom(lengths, sizeof lengths, 0), sizeof lengths);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		/* Half of them short, where the padding is. */
		size_t len = lengths[i] % (i % 2 ? sizeof data : 300);

		if (!ask_sha256sum(data, len, theirs))
			skip();
		for (int k = 0; k < 2; k++) {
			digest(inits[k], data, len, ours);
			assert_string_equal(ours, theirs);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors_come_out),
		cmocka_unit_test(a_million_letters_come_out_in_any_pieces),
		cmocka_unit_test(both_implementations_agree_on_every_length),
		cmocka_unit_test(the_cpus_instructions_are_used_where_there_are),
		cmocka_unit_test(sha256sum_agrees_on_random_lengths),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
