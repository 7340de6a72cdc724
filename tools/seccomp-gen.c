/* seccomp-gen.c -- turns linux/seccomp_rules.h into programs of classic BPF, when carrel is built:
 * one for each set of options of a sandbox, three for roles of our own.
 *
 * A program checks the architecture, then looks for the hot calls one by one, then for the others
 * in a balanced tree of `jge` over intervals of call numbers. Jumps are eight bits long, so the
 * tree is cut into sections: each holds a subtree, the tests of arguments for its calls, and
 * returns of its own. Only loads of number, architecture and arguments, `and`, jumps and returns
 * are used: those the kernel can evaluate when the filter is loaded, so that calls allowed whatever
 * their arguments skip the filter altogether. Fails, and with it the build, when a call is named
 * twice, a denial is for a call that no filter allows, or a jump is too long. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define ARCHITECTURE_MACRO "__x86_64__"
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define ARCHITECTURE_MACRO "__aarch64__"
#else
#error "no system call table for this architecture"
#endif

/* Newer than the headers of Debian 12; the same on every architecture. */
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_map_shadow_stack
#define __NR_map_shadow_stack 453
#endif
#ifndef __NR_futex_wake
#define __NR_futex_wake 454
#define __NR_futex_wait 455
#define __NR_futex_requeue 456
#endif
#ifndef __NR_mseal
#define __NR_mseal 462
#endif

/* The two flags of open that make its mode count (O_TMPFILE holds O_DIRECTORY too). */
#define CREATES (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))

/* As in linux/seccomp.h; the file that is written asserts it. */
enum { PTRACE = 1, SETGID = 2, MEMFD = 4, OPTION_SETS = 8, WHITEOUTS = 8 /* of no sandbox */ };
/* Whom a row is for: those below have it too. */
enum { FOR_ALL, FOR_ROLES, FOR_TREES };

struct call {
	const char *name;
	unsigned number;
	uint32_t action;
	unsigned option;  /* 0, or the one that `action` needs */
	uint32_t without; /* the action without it */
};

enum operation { TEST_BITS, TEST_IN, TEST_NOT_IN };
#define VALUES_MAX 8
#define TESTS_MAX 2
struct test {
	enum operation operation;
	unsigned word; /* of the arguments: two a piece, the low one first */
	uint32_t mask;
	unsigned count;
	uint32_t values[VALUES_MAX];
};
struct denial {
	const char *name;
	unsigned number;
	unsigned level;	  /* FOR_… */
	unsigned without; /* not with this option; 0: always */
	int error;
	const char *why;
	unsigned test_count;
	struct test tests[TESTS_MAX];
};

/* clang-format off */
#define COUNT(...) (sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define TESTS(...) (sizeof((struct test[]){ __VA_ARGS__ }) / sizeof(struct test))
#define BITS(arg, bits) { TEST_BITS, 2 * (arg), bits, 0, { 0 } }
#define MASKED_IN(arg, bits, ...) { TEST_IN, 2 * (arg), bits, COUNT(__VA_ARGS__), { __VA_ARGS__ } }
#define MASKED_NOT_IN(arg, bits, ...) \
	{ TEST_NOT_IN, 2 * (arg), bits, COUNT(__VA_ARGS__), { __VA_ARGS__ } }
#define UPPER_BITS(arg, bits) { TEST_BITS, 2 * (arg) + 1, bits, 0, { 0 } }
#define IN(arg, ...) MASKED_IN(arg, 0xffffffff, __VA_ARGS__)
#define NOT_IN(arg, ...) MASKED_NOT_IN(arg, 0xffffffff, __VA_ARGS__)
/* clang-format on */

/* The table is read several times, each time for one kind of row. */
#define ALLOW(call)
#define ALLOW_WITH(option, call, error, why)
#define REFUSE(call, why)
#define HOT(call)
#define DENY(...)
#define DENY_WITHOUT(...)
#define ROLE_ALLOW(call)
#define ROLE_REFUSE(call, why)
#define ROLE_DENY(...)
#define FORK_REFUSE(call, why)
#define TREE_ALLOW(call)
#define TREE_DENY(...)

#undef ALLOW
#undef ALLOW_WITH
#undef REFUSE
#undef ROLE_ALLOW
#define ALLOW(call) { #call, __NR_##call, SECCOMP_RET_ALLOW, 0, 0 },
#define ALLOW_WITH(option, call, error, why)                                                       \
	{ #call, __NR_##call, SECCOMP_RET_ALLOW, option, SECCOMP_RET_ERRNO | (error) },
#define REFUSE(call, why) { #call, __NR_##call, SECCOMP_RET_ERRNO | EPERM, 0, 0 },
/* For a sandbox it is a call that isn't there. */
#define ROLE_ALLOW(call) { #call, __NR_##call, SECCOMP_RET_ERRNO | ENOSYS, 0, 0 },
static struct call calls[] = {
#include "../src/linux/seccomp_rules.h"
};
#undef ALLOW
#undef ALLOW_WITH
#undef REFUSE
#undef ROLE_ALLOW
#define ALLOW(call)
#define ALLOW_WITH(option, call, error, why)
#define REFUSE(call, why)
#define ROLE_ALLOW(call)

#undef HOT
#define HOT(call) __NR_##call,
static const unsigned hot_calls[] = {
#include "../src/linux/seccomp_rules.h"
};
#undef HOT
#define HOT(call)

#undef DENY
#undef DENY_WITHOUT
#undef ROLE_DENY
#undef TREE_DENY
#define DENIAL(call, level, option, error, why, ...)                                               \
	{ #call, __NR_##call, level, option, error, why, TESTS(__VA_ARGS__), { __VA_ARGS__ } },
#define DENY(call, error, why, ...) DENIAL(call, FOR_ALL, 0, error, why, __VA_ARGS__)
#define DENY_WITHOUT(option, call, error, why, ...)                                                \
	DENIAL(call, FOR_ALL, option, error, why, __VA_ARGS__)
#define ROLE_DENY(call, error, why, ...) DENIAL(call, FOR_ROLES, 0, error, why, __VA_ARGS__)
#define TREE_DENY(call, error, why, ...) DENIAL(call, FOR_TREES, 0, error, why, __VA_ARGS__)
static const struct denial denials[] = {
#include "../src/linux/seccomp_rules.h"
};
#undef DENY
#undef DENY_WITHOUT
#undef ROLE_DENY
#undef TREE_DENY
#define DENY(...)
#define DENY_WITHOUT(...)
#define ROLE_DENY(...)
#define TREE_DENY(...)

#undef ROLE_ALLOW
#undef ROLE_REFUSE
#define ROLE_ALLOW(call) { #call, 0, SECCOMP_RET_ALLOW, 0, 0 },
#define ROLE_REFUSE(call, why) { #call, 0, SECCOMP_RET_ERRNO | EPERM, 0, 0 },
static const struct call role_changes[] = {
#include "../src/linux/seccomp_rules.h"
};
#undef ROLE_ALLOW
#undef ROLE_REFUSE
#define ROLE_ALLOW(call)
#define ROLE_REFUSE(call, why)

#undef FORK_REFUSE
#define FORK_REFUSE(call, why) { #call, 0, SECCOMP_RET_ERRNO | EPERM, 0, 0 },
static const struct call fork_changes[] = {
#include "../src/linux/seccomp_rules.h"
};
#undef FORK_REFUSE
#define FORK_REFUSE(call, why)

#undef TREE_ALLOW
#define TREE_ALLOW(call) { #call, 0, SECCOMP_RET_ALLOW, 0, 0 },
static const struct call tree_changes[] = {
#include "../src/linux/seccomp_rules.h"
};
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* An assembler: jumps name labels, which get their place when they are set. */
#define CODE_MAX 1024
#define NEXT 0 /* the label of the following instruction */
struct program {
	struct sock_filter code[CODE_MAX];
	unsigned true_label[CODE_MAX], false_label[CODE_MAX];
	unsigned length;
	unsigned place[CODE_MAX]; /* of each label */
	unsigned labels;
	uint32_t returns[16]; /* the returns used, and their labels */
	unsigned return_labels[16];
	unsigned return_count;
};

static void die(const char *what, const char *object)
{
	fprintf(stderr, "seccomp-gen: %s: %s\n", object, what);
	exit(1);
}

static unsigned label_new(struct program *p)
{
	if (++p->labels >= CODE_MAX)
		die("too many labels", "program");
	return p->labels;
}

static void label_set(struct program *p, unsigned label)
{
	p->place[label] = p->length;
}

static void emit(struct program *p, unsigned code, uint32_t k, unsigned if_true, unsigned if_false)
{
	if (p->length >= CODE_MAX)
		die("too long", "program");
	p->code[p->length] = (struct sock_filter){ (uint16_t)code, 0, 0, k };
	p->true_label[p->length] = if_true;
	p->false_label[p->length++] = if_false;
}

static void emit_load(struct program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, NEXT, NEXT);
}

/* The label of the shared `return action`. */
static unsigned return_label(struct program *p, uint32_t action)
{
	for (unsigned i = 0; i < p->return_count; i++)
		if (p->returns[i] == action)
			return p->return_labels[i];
	if (p->return_count == LENGTH(p->returns))
		die("too many different returns", "program");
	p->returns[p->return_count] = action;
	return p->return_labels[p->return_count++] = label_new(p);
}

/* Ends a section: the returns that it used. */
static void emit_returns(struct program *p)
{
	for (unsigned i = 0; i < p->return_count; i++) {
		label_set(p, p->return_labels[i]);
		emit(p, BPF_RET | BPF_K, p->returns[i], NEXT, NEXT);
	}
	p->return_count = 0;
}

static void emit_jump(struct program *p, unsigned label)
{
	emit(p, BPF_JMP | BPF_JA, 0, label, label);
}

static void finish(struct program *p)
{
	for (unsigned i = 0; i < p->length; i++) {
		if (BPF_CLASS(p->code[i].code) != BPF_JMP)
			continue;
		unsigned if_true = p->true_label[i] == NEXT ? i + 1 : p->place[p->true_label[i]];
		unsigned if_false = p->false_label[i] == NEXT ? i + 1 : p->place[p->false_label[i]];
		if (p->code[i].code == (BPF_JMP | BPF_JA)) {
			if (if_true <= i)
				die("jump backwards", "program");
			p->code[i].k = if_true - i - 1;
			continue;
		}
		/* The kernel's conditional jumps go forward and are eight bits long. */
		if (if_true <= i || if_false <= i || if_true - i > 256 || if_false - i > 256)
			die("jump too long", "program");
		p->code[i].jt = (uint8_t)(if_true - i - 1);
		p->code[i].jf = (uint8_t)(if_false - i - 1);
	}
}

/* What becomes of a call: `action`, or when `denied` isn't 0, what the denials of the call number
 * `denied - 1` say. */
struct target {
	uint32_t action;
	unsigned denied;
};
/* Numbers from `start` to the next interval's start have the target; its label is that of the
 * section being emitted. */
struct interval {
	unsigned start;
	struct target target;
	unsigned label;
};
struct intervals {
	struct interval list[2 * CODE_MAX];
	unsigned count;
};

static bool target_equal(struct target a, struct target b)
{
	return a.action == b.action && a.denied == b.denied;
}

static void interval_add(struct intervals *set, unsigned start, struct target target)
{
	if (set->count > 0 && set->list[set->count - 1].start == start)
		set->count--; /* the one before was empty */
	if (set->count > 0 && target_equal(set->list[set->count - 1].target, target))
		return;
	if (set->count == LENGTH(set->list))
		die("too many intervals", "program");
	set->list[set->count++] = (struct interval){ start, target, 0 };
}

static void emit_tree(struct program *p, const struct interval *list, unsigned count)
{
	unsigned half = count / 2;
	unsigned left = half == 1 ? list[0].label : NEXT;
	unsigned right = count - half == 1 ? list[half].label : label_new(p);
	emit(p, BPF_JMP | BPF_JGE | BPF_K, list[half].start, right, left);
	if (half > 1)
		emit_tree(p, list, half);
	if (count - half > 1) {
		label_set(p, right);
		emit_tree(p, list + half, count - half);
	}
}

static int call_compare(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	return (x->number > y->number) - (x->number < y->number);
}

/* Goes to `holds` when the test holds, else to `fails`. */
static void emit_test(struct program *p, const struct test *test, unsigned holds, unsigned fails)
{
	emit_load(p, offsetof(struct seccomp_data, args) + 4 * test->word);
	if (test->operation == TEST_BITS) {
		emit(p, BPF_JMP | BPF_JSET | BPF_K, test->mask, holds, fails);
		return;
	}
	if (test->mask != 0xffffffff)
		emit(p, BPF_ALU | BPF_AND | BPF_K, test->mask, NEXT, NEXT);
	bool in = test->operation == TEST_IN;
	for (unsigned i = 0; i < test->count; i++)
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, test->values[i], in ? holds : fails,
			i + 1 < test->count ? NEXT
			: in		    ? fails
					    : holds);
}

static bool denial_equal(const struct denial *a, const struct denial *b)
{
	return a->error == b->error && a->test_count == b->test_count &&
	       memcmp(a->tests, b->tests, sizeof(a->tests)) == 0;
}

/* Whom a program is for. */
struct variant {
	unsigned options;
	unsigned level; /* FOR_… */
};

static unsigned collect_denials(const struct variant *v, unsigned number, const struct denial **of)
{
	unsigned count = 0;
	for (unsigned i = 0; i < LENGTH(denials); i++) {
		const struct denial *d = &denials[i];
		if (d->number == number && d->level <= v->level && !(d->without & v->options))
			of[count++] = d;
	}
	return count;
}

/* Are the denials of call number a, in order, those of b? Then they share their code. */
static bool denials_equal(const struct variant *v, unsigned a, unsigned b)
{
	const struct denial *first[LENGTH(denials)], *second[LENGTH(denials)];
	unsigned count = collect_denials(v, a, first);
	if (count != collect_denials(v, b, second))
		return false;
	for (unsigned i = 0; i < count; i++)
		if (!denial_equal(first[i], second[i]))
			return false;
	return true;
}

static void emit_denials(struct program *p, const struct variant *v, unsigned number)
{
	const struct denial *of[LENGTH(denials)];
	unsigned count = collect_denials(v, number, of), allow = return_label(p, SECCOMP_RET_ALLOW);
	for (unsigned i = 0; i < count; i++) {
		unsigned next = i + 1 < count ? label_new(p) : allow;
		unsigned deny = return_label(p, SECCOMP_RET_ERRNO | (uint32_t)of[i]->error);
		for (unsigned t = 0; t < of[i]->test_count; t++) {
			unsigned holds = t + 1 < of[i]->test_count ? label_new(p) : deny;
			emit_test(p, &of[i]->tests[t], holds, next);
			if (holds != deny)
				label_set(p, holds);
		}
		if (next != allow)
			label_set(p, next);
	}
}

/* An allowed call with denials is judged by those of the first call that has the same. */
static struct target target_of(const struct variant *v, const struct call *call)
{
	const struct denial *of[LENGTH(denials)];
	bool has_option = !call->option || call->option & v->options;
	struct target target = { has_option ? call->action : call->without, 0 };
	if (target.action != SECCOMP_RET_ALLOW || !collect_denials(v, call->number, of))
		return target;
	for (unsigned i = 0; !target.denied; i++)
		if (denials_equal(v, calls[i].number, call->number))
			target.denied = calls[i].number + 1;
	return target;
}

#define SECTION_MAX 24 /* intervals; with their tests they stay within a jump */

/* A subtree, the tests of its calls, its returns. */
static void emit_section(
	struct program *p, const struct variant *v, struct interval *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned same = 0;
		while (!target_equal(list[same].target, list[i].target))
			same++;
		list[i].label = same < i		? list[same].label
				: list[i].target.denied ? label_new(p)
							: return_label(p, list[i].target.action);
	}
	emit_tree(p, list, count);
	for (unsigned i = 0; i < count; i++) {
		unsigned same = 0;
		while (!target_equal(list[same].target, list[i].target))
			same++;
		if (same < i || !list[i].target.denied)
			continue;
		label_set(p, list[i].label);
		emit_denials(p, v, list[i].target.denied - 1);
	}
	emit_returns(p);
}

static void emit_sections(
	struct program *p, const struct variant *v, struct interval *list, unsigned count)
{
	if (count <= SECTION_MAX) {
		emit_section(p, v, list, count);
		return;
	}
	unsigned half = count / 2, left = label_new(p), right = label_new(p);
	emit(p, BPF_JMP | BPF_JGE | BPF_K, list[half].start, NEXT, left);
	emit_jump(p, right);
	label_set(p, left);
	emit_sections(p, v, list, half);
	label_set(p, right);
	emit_sections(p, v, list + half, count - half);
}

/* Architecture, then the calls that are judged by argument and called often. */
static void emit_hot(struct program *p, const struct variant *v)
{
	unsigned labels[LENGTH(hot_calls)], others = label_new(p);
	emit_load(p, offsetof(struct seccomp_data, arch));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, NEXT,
		return_label(p, SECCOMP_RET_KILL_PROCESS));
	emit_load(p, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < LENGTH(hot_calls); i++)
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, hot_calls[i], labels[i] = label_new(p), NEXT);
	emit_jump(p, others);
	for (unsigned i = 0; i < LENGTH(hot_calls); i++) {
		label_set(p, labels[i]);
		emit_denials(p, v, hot_calls[i]);
	}
	emit_returns(p);
	label_set(p, others);
}

static bool is_hot(unsigned number)
{
	for (unsigned i = 0; i < LENGTH(hot_calls); i++)
		if (hot_calls[i] == number)
			return true;
	return false;
}

/* A number with the x32 bit is larger than all in the list and falls to ENOSYS. */
static void build(struct program *p, struct variant variant)
{
	const struct target unknown = { SECCOMP_RET_ERRNO | ENOSYS, 0 };
	static struct intervals set;
	set.count = 0;
	memset(p, 0, sizeof(*p));
	emit_hot(p, &variant);
	interval_add(&set, 0, unknown);
	for (unsigned i = 0; i < LENGTH(calls); i++) {
		if (i > 0 && calls[i].number == calls[i - 1].number)
			die("named twice", calls[i].name);
		struct target target = target_of(&variant, &calls[i]);
		if (is_hot(calls[i].number)) {
			if (target.action != SECCOMP_RET_ALLOW)
				die("hot, but not allowed", calls[i].name);
			target.denied = 0; /* decided by emit_hot already */
		}
		interval_add(&set, calls[i].number, target);
		interval_add(&set, calls[i].number + 1, unknown);
	}
	emit_sections(p, &variant, set.list, set.count);
	finish(p);
}

static void check_denials(void)
{
	for (unsigned d = 0; d < LENGTH(denials); d++) {
		bool allowed = false;
		for (unsigned i = 0; i < LENGTH(calls); i++)
			allowed |= calls[i].number == denials[d].number &&
				   calls[i].action == SECCOMP_RET_ALLOW;
		if (!allowed)
			die("denied by argument, but never allowed", denials[d].name);
	}
}

/* From here on, `name` is answered so. */
static void change(const char *name, uint32_t action)
{
	for (unsigned i = 0; i < LENGTH(calls); i++)
		if (!strcmp(calls[i].name, name)) {
			if (calls[i].action == action)
				die("is so already", name);
			calls[i].action = action;
			return;
		}
	die("not in the list", name);
}

static void print_program(FILE *out, const char *name, const struct program *p)
{
	fprintf(out, "static const struct sock_filter %s[%u] = {\n", name, p->length);
	for (unsigned i = 0; i < p->length; i++)
		fprintf(out, "\t{ 0x%02x, %u, %u, 0x%08x },\n", p->code[i].code, p->code[i].jt,
			p->code[i].jf, p->code[i].k);
	fprintf(out, "};\n");
}

int main(int argc, char **argv)
{
	static struct program program;
	char name[32];
	if (argc != 2)
		die("give the file to write", "arguments");
	qsort(calls, LENGTH(calls), sizeof(calls[0]), call_compare);
	check_denials();
	FILE *out = fopen(argv[1], "w");
	if (!out)
		die(strerror(errno), argv[1]);
	fprintf(out, "/* Made by tools/seccomp-gen.c from linux/seccomp_rules.h. */\n");
	fprintf(out, "#ifndef %s\n#error \"made for another architecture\"\n#endif\n",
		ARCHITECTURE_MACRO);
	fprintf(out,
		"_Static_assert(SECCOMP_WITH_PTRACE == %d && SECCOMP_WITH_SETGID == %d && "
		"SECCOMP_WITH_MEMFD == %d, \"options\");\n",
		PTRACE, SETGID, MEMFD);
	for (unsigned options = 0; options < OPTION_SETS; options++) {
		build(&program, (struct variant){ options, FOR_ALL });
		snprintf(name, sizeof(name), "filter_sandbox_%u", options);
		print_program(out, name, &program);
	}
	for (unsigned i = 0; i < LENGTH(role_changes); i++)
		change(role_changes[i].name, role_changes[i].action);
	build(&program, (struct variant){ MEMFD, FOR_ROLES });
	print_program(out, "filter_role", &program);
	for (unsigned i = 0; i < LENGTH(fork_changes); i++)
		change(fork_changes[i].name, fork_changes[i].action);
	build(&program, (struct variant){ MEMFD, FOR_ROLES });
	print_program(out, "filter_role_no_fork", &program);
	for (unsigned i = 0; i < LENGTH(tree_changes); i++)
		change(tree_changes[i].name, tree_changes[i].action);
	build(&program, (struct variant){ MEMFD | SETGID | WHITEOUTS, FOR_TREES });
	print_program(out, "filter_trees", &program);

	fprintf(out, "#define SANDBOX_FILTERS(PROGRAM)");
	for (unsigned options = 0; options < OPTION_SETS; options++)
		fprintf(out, " PROGRAM(filter_sandbox_%u),", options);
	fprintf(out, "\n");
	if (fclose(out) != 0)
		die(strerror(errno), argv[1]);
	return 0;
}
