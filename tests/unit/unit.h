/* unit.h -- what a unit test includes, after the headers it tests. */
#pragma once
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
/* cmocka's macro fail() hides our function of that name, and its fail_msg uses it. */
#undef fail
#undef fail_msg
#define fail_msg(...)                                                                              \
	do {                                                                                       \
		print_error(__VA_ARGS__);                                                          \
		print_error("\n");                                                                 \
		_fail(__FILE__, __LINE__);                                                         \
	} while (0)

/* Runs `...` in a child and asserts that it aborted. */
#define assert_aborts(...)                                                                         \
	do {                                                                                       \
		pid_t child_ = fork();                                                             \
		int status_ = 0;                                                                   \
		assert_true(child_ >= 0);                                                          \
		if (child_ == 0) {                                                                 \
			setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });                          \
			__VA_ARGS__;                                                               \
			_exit(0);                                                                  \
		}                                                                                  \
		assert_int_equal(waitpid(child_, &status_, 0), child_);                            \
		assert_true(WIFSIGNALED(status_));                                                 \
		assert_int_equal(WTERMSIG(status_), SIGABRT);                                      \
	} while (0)
