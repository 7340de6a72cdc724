#include "proc/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

/* Only pages that are touched cost memory. The guard is larger than any frame of ours. */
#define STACK_SIZE ((size_t)1 << 20)
#define GUARD_SIZE ((size_t)64 << 10)

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif

struct stack { /* as the address sanitizer knows it */
	const void *bottom;
	size_t size;
	void *fake;
};
struct fiber {
	fiber_fn *fn;
	void *ctx;
	void *mapping;		/* the guard, then the stack; this struct is at its top */
	ucontext_t here, there; /* of the fiber; of the code that runs it */
	struct stack own, outer;
	bool is_waiting, has_ended;
	bool is_answered; /* the operation has ended; `failure` then says how */
	bool is_canceled, is_cancellation_told;
	void (*cut)(void *ctx);
	void *cut_ctx;
	struct error failure; /* code 0: none */
};

/* ---- what the address sanitizer must know ---- */

static void announce_switch(struct stack *from, const struct stack *to)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(from ? &from->fake : NULL, to->bottom, to->size);
#else
	(void)from, (void)to;
#endif
}

/* from: the stack that was left, to be described; or NULL. */
static void confirm_switch(const struct stack *to, struct stack *from)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(
		to->fake, from ? &from->bottom : NULL, from ? &from->size : NULL);
#else
	(void)to, (void)from;
#endif
}

/* Blocks that only a waiting fiber names are no leaks. */
static void announce_stack(const struct stack *stack, bool is_new)
{
#ifdef __SANITIZE_ADDRESS__
	__asan_unpoison_memory_region(stack->bottom, stack->size);
	if (is_new)
		__lsan_register_root_region(stack->bottom, stack->size);
	else
		__lsan_unregister_root_region(stack->bottom, stack->size);
#else
	(void)stack, (void)is_new;
#endif
}

/* ---- the switch ---- */

/* swapcontext in two halves. The address sanitizer warns of swapcontext on standard error, and
 * waits there for ever if that is a pipe that nobody reads. */
static void switch_context(ucontext_t *from, const ucontext_t *to)
{
	volatile bool is_back = false;
	if (getcontext(from))
		abort();
	if (is_back)
		return;
	is_back = true;
	setcontext(to);
	abort();
}

static struct fiber *fiber_new(fiber_fn *fn, void *ctx)
{
	char *mapping = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapping == MAP_FAILED ||
		mprotect(mapping + GUARD_SIZE, STACK_SIZE, PROT_READ | PROT_WRITE))
		abort();
	size_t used = (sizeof(struct fiber) + 63) & ~(size_t)63;
	struct stack own = { .bottom = mapping + GUARD_SIZE, .size = STACK_SIZE };
	announce_stack(&own, true);
	struct fiber *fiber = (struct fiber *)(mapping + GUARD_SIZE + STACK_SIZE - used);
	*fiber = (struct fiber){ .fn = fn, .ctx = ctx, .mapping = mapping, .own = own };
	return fiber;
}

static void run(struct fiber *fiber)
{
	announce_switch(&fiber->outer, &fiber->own);
	switch_context(&fiber->there, &fiber->here);
	confirm_switch(&fiber->outer, NULL);
	if (!fiber->has_ended)
		return;
	announce_stack(&fiber->own, false);
	munmap(fiber->mapping, GUARD_SIZE + STACK_SIZE);
}

static void leave(struct fiber *fiber)
{
	announce_switch(fiber->has_ended ? NULL : &fiber->own, &fiber->outer);
	switch_context(&fiber->here, &fiber->there);
	confirm_switch(&fiber->own, &fiber->outer);
}

/* makecontext passes integers only: the two halves of the pointer. */
static void enter(unsigned high, unsigned low)
{
	struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | low);
	confirm_switch(&fiber->own, &fiber->outer);
	fiber->fn(fiber, fiber->ctx);
	fiber->has_ended = true;
	leave(fiber);
}

void fiber_start(fiber_fn *fn, void *ctx)
{
	struct fiber *fiber = fiber_new(fn, ctx);
	uintptr_t address = (uintptr_t)fiber;
	if (getcontext(&fiber->here))
		abort();
	fiber->here.uc_stack.ss_sp = (void *)fiber->own.bottom;
	fiber->here.uc_stack.ss_size = (size_t)((char *)fiber - (char *)fiber->own.bottom);
	makecontext(&fiber->here, (void (*)(void))enter, 2, (unsigned)(address >> 32),
		(unsigned)address);
	run(fiber);
}

/* ---- waits ---- */

void fiber_continue(void *ctx, const struct error *err)
{
	struct fiber *fiber = ctx;
	fiber->is_answered = true;
	fiber->failure = err ? *err : (struct error){ 0 };
	if (fiber->is_waiting)
		run(fiber);
}

static void cut_wait(struct fiber *fiber)
{
	void (*cut)(void *ctx) = fiber->cut;
	fiber->cut = NULL;
	if (cut)
		cut(fiber->cut_ctx);
}

int fiber_wait_or_cut(struct fiber *fiber, void (*cut)(void *ctx), void *ctx, struct error *err)
{
	fiber->cut = cut;
	fiber->cut_ctx = ctx;
	if (!fiber->is_answered && fiber->is_canceled && !fiber->is_cancellation_told)
		cut_wait(fiber);
	if (!fiber->is_answered) {
		fiber->is_waiting = true;
		leave(fiber);
		fiber->is_waiting = false;
	}
	fiber->cut = NULL;
	fiber->is_answered = false;
	bool is_canceled = fiber->is_canceled && !fiber->is_cancellation_told;
	fiber->is_cancellation_told = fiber->is_canceled;
	if (is_canceled)
		return fail(err, ERR_CANCELED, "canceled by the client");
	if (!fiber->failure.code)
		return 0;
	*err = fiber->failure;
	return -1;
}

int fiber_wait(struct fiber *fiber, struct error *err)
{
	return fiber_wait_or_cut(fiber, NULL, NULL, err);
}

void fiber_cancel(struct fiber *fiber)
{
	if (fiber->is_canceled)
		return;
	fiber->is_canceled = true;
	if (fiber->is_waiting && !fiber->is_answered)
		cut_wait(fiber);
}

void fiber_end_cancellation(struct fiber *fiber)
{
	fiber->is_canceled = fiber->is_cancellation_told = true;
}
