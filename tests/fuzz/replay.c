/* Calls a fuzz target with every file of the directories given: its corpus as an ordinary test. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include "base/fd.h"
#include "fuzz.h"

#define INPUT_MAX (1 << 20)

static void replay_file(int dir, const char *name)
{
	static uint8_t input[INPUT_MAX];
	auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : fd_read_full(fd, input, sizeof input);

	check(len >= 0);
	/* Exactly as long as the input, so that the sanitizer sees a read past its end. */
	auto_free uint8_t *exact = malloc(len > 0 ? (size_t)len : 1);
	check(exact);
	memcpy(exact, input, (size_t)len);
	LLVMFuzzerTestOneInput(exact, (size_t)len);
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *corpus = opendir(argv[i]);
		struct dirent *entry;

		check(corpus);
		while ((entry = readdir(corpus))) {
			if (entry->d_name[0] == '.')
				continue;
			fprintf(stderr, "%s\n", entry->d_name);
			replay_file(dirfd(corpus), entry->d_name);
			count++;
		}
		closedir(corpus);
	}
	check(count > 0);
	return 0;
}
