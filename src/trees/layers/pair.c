#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "linux/child.h"
#include "trees/layers/pair.h"

/* What both see, before the results. */
struct shared {
	size_t next;	/* the next job to be taken */
	int has_failed; /* 0, or the number of the process whose error this is */
	int is_child_done;
	struct error err;
};
/* Results begin where any type may. */
#define HEADER ((sizeof(struct shared) + 63) / 64 * 64)

static void work_on(struct pair *pair, struct shared *shared)
{
	size_t index;
	while (!__atomic_load_n(&shared->has_failed, __ATOMIC_RELAXED) &&
		(index = __atomic_fetch_add(&shared->next, 1, __ATOMIC_RELAXED)) < pair->count) {
		struct error err = { 0 };
		int nobody = 0;
		if (pair->work(pair->ctx, index, (char *)pair->results + index * pair->result_size,
			    &err) == 0)
			continue;
		/* Only the first error is kept; the parent reads it after the child's end. */
		if (__atomic_compare_exchange_n(&shared->has_failed, &nobody, 1, false,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			shared->err = err;
	}
}

_Noreturn static void be_child(struct pair *pair, struct shared *shared)
{
	work_on(pair, shared);
	__atomic_store_n(&shared->is_child_done, 1, __ATOMIC_RELEASE);
	_exit(0);
}

int pair_run(struct pair *pair, bool is_small, struct error *err)
{
	size_t size;
	struct child child = CHILD_NONE;
	pair->results = NULL;
	pair->mapped = 0;
	if (__builtin_mul_overflow(pair->count, pair->result_size, &size) ||
		__builtin_add_overflow(size, HEADER, &size))
		abort();
	struct shared *shared =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return fail_errno(err, "memory for %zu files", pair->count);
	pair->results = (char *)shared + HEADER;
	pair->mapped = size;
	if (!is_small) {
		if (child_fork(&child, 0, SIGKILL, err))
			return -1;
		if (child.pid == 0)
			be_child(pair, shared);
	}
	work_on(pair, shared);
	/* With SIGCHLD ignored there is no exit status: the child reports success itself. */
	child_wait(&child);
	if (shared->has_failed) {
		if (err)
			*err = shared->err;
		return -1;
	}
	if (!is_small && !__atomic_load_n(&shared->is_child_done, __ATOMIC_ACQUIRE))
		return fail(err, ERR_FAILED, "the second process was killed");
	return 0;
}

void pair_done(struct pair *pair)
{
	if (pair->mapped)
		munmap((char *)pair->results - HEADER, pair->mapped);
	pair->results = NULL;
	pair->mapped = 0;
}
