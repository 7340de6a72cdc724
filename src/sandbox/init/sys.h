/* sys.h -- the kernel without libc: system calls by number, results as the kernel gives them
 * (-errno). Types and constants come from libc's headers, code doesn't. */
#pragma once
#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long sys3(long nr, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
static inline long sys6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

static inline long sys3(long nr, long a, long b, long c)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
}
#else
#error "x86-64 and aarch64 only"
#endif

#define SYS(nr, a, b, c) sys3(__NR_##nr, (long)(a), (long)(b), (long)(c))
#define SYS6(nr, a, b, c, d, e, f)                                                                 \
	sys6(__NR_##nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline _Noreturn void sys_exit(int code)
{
	for (;;)
		SYS(exit_group, code, 0, 0);
}

/* clone(2) with CLONE_VM and a stack of its own for the child, so that nothing the child does can
 * touch the caller's frame: it runs fn(arg), which must not return. *ours is set with CLONE_PIDFD
 * or CLONE_PARENT_SETTID, *theirs is cleared with CLONE_CHILD_CLEARTID. `stack_top` is aligned
 * to 16.
 */
static inline long sys_clone(
	unsigned long flags, void *stack_top, int *ours, int *theirs, void (*fn)(void *), void *arg)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = (long)theirs;
	register long r8 __asm__("r8") = 0;
	long result;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[arg], %%rdi\n\t"
			 "call *%[fn]\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(result)
			 : "a"((long)__NR_clone), "D"(flags), "S"(stack_top), "d"(ours), "r"(r10),
			 "r"(r8), [fn] "r"(fn), [arg] "r"(arg)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = __NR_clone;
	register long x0 __asm__("x0") = (long)flags;
	register long x1 __asm__("x1") = (long)stack_top;
	register long x2 __asm__("x2") = (long)ours;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = (long)theirs;
	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x0, %[arg]\n\t"
			 "blr %[fn]\n\t"
			 "brk #1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), [fn] "r"(fn), [arg] "r"(arg)
			 : "memory");
	return x0;
#endif
}
