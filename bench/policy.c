/* How long the judge takes for one request, in nanoseconds: "NAME P50 P99" for each case. */
#include <stdio.h>
#include <stdlib.h>
#include "base/clock.h"
#include "policy/policy.h"

#define REPEATS 64 /* of one sample: a clock costs as much as a short request */

static const struct policy_places places = { .workspace = "/workspace", .home = "/workspace" };

static void add(struct policy *policy, enum policy_decision decision, const char *text)
{
	struct error err;

	if (policy_add_rule(policy, decision, text, &places, &err) < 0) {
		fprintf(stderr, "%s: %s\n", text, err.text);
		exit(1);
	}
}

/* The rules of an agent that works on files. */
static void add_usual(struct policy *policy)
{
	static const char *const allow[] = { "shell(grep:*)", "shell(sed:*)", "shell(awk:*)",
		"shell(find:*)", "shell(cat:*)", "shell(head:*)", "shell(sort:*)", "shell(ls:*)",
		"shell(echo:*)", "shell(python3:*)", "shell(pip install:*)", "shell(bash:*)",
		"shell(git status:*)", "shell(git log:*)", "shell(git diff:*)",
		"file(read:${WORKSPACE}/**)", "file(write:${WORKSPACE}/**)",
		"network(outbound:*.good.example)" };
	static const char *const deny[] = { "shell(rm -rf /:*)", "shell(sudo:*)", "shell(curl:*)",
		"file(read:/etc/shadow)", "file(write:/etc/**)", "network(outbound:bad.example)" };

	for (size_t i = 0; i < sizeof allow / sizeof *allow; i++)
		add(policy, POLICY_ALLOW, allow[i]);
	for (size_t i = 0; i < sizeof deny / sizeof *deny; i++)
		add(policy, POLICY_DENY, deny[i]);
}

static void add_many(struct policy *policy, size_t count)
{
	char text[128];

	for (size_t i = 0; i < count; i++) {
		switch (i % 4) { /* a format has to be a literal */
		case 0:
			str_format(text, sizeof text, "shell(tool%zu:*)", i);
			break;
		case 1:
			str_format(text, sizeof text, "shell(git verb%zu:*)", i);
			break;
		case 2:
			str_format(text, sizeof text, "file(read:/srv/d%zu/**)", i);
			break;
		default:
			str_format(text, sizeof text, "network(outbound:h%zu.example)", i);
		}
		add(policy, i % 3 ? POLICY_ALLOW : POLICY_DENY, text);
	}
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void judge(const struct policy *policy, const char *command, bool is_script)
{
	auto_arena struct arena arena;
	struct policy_request request = { SHELL_SH, "/workspace", "/workspace", &arena, NULL };
	struct policy_verdict verdict;
	struct error err;

	arena_init(&arena);
	if (is_script)
		policy_judge_script(policy, &request, str_from(command), &verdict);
	else
		policy_judge_subject(policy, &request, command, &verdict, &err);
}

static void measure(const struct policy *policy, const char *name, const char *command,
	bool is_script, size_t samples)
{
	double *times = xzalloc(samples * sizeof *times);

	for (size_t i = 0; i < samples; i++) {
		uint64_t began = clock_monotonic_ns();

		for (int k = 0; k < REPEATS; k++)
			judge(policy, command, is_script);
		times[i] = (double)(clock_monotonic_ns() - began) / REPEATS;
	}
	qsort(times, samples, sizeof *times, compare);
	printf("%s %.0f %.0f\n", name, times[samples / 2], times[samples * 99 / 100]);
	free(times);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *command;
		bool is_script;
	} cases[] = {
		{ "short", "ls -la src", true },
		{ "usual", "cd src && grep -rn 'def main' . | head -n 20", true },
		{ "git", "git -C sub log --oneline -n 5 -- a.py", true },
		{ "pipeline",
			"find . -name '*.py' -type f | xargs grep -l foo | sort | head -5 >out.txt "
			"2>&1",
			true },
		{ "script",
			"set -e\nfor f in a b c; do\n  if [ -f \"$f\" ]; then\n    cat \"$f\" | "
			"sed 's/a/b/g' >\"out/$f\"\n  else\n    echo \"no $f\"\n  fi\ndone\nbash "
			"-c 'ls; "
			"grep x a'\n",
			true },
		{ "file", "file(read:/workspace/src/a/b/c.py)", false },
		{ "network", "network(outbound:x.good.example:443)", false },
	};
	size_t samples = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
	static const size_t counts[] = { 0, 10000 };

	for (size_t n = 0; n < 2; n++) {
		auto_arena struct arena arena;
		struct policy policy;

		arena_init(&arena);
		policy_init(&policy, &arena);
		add_usual(&policy);
		add_many(&policy, counts[n]);
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			char name[64];

			str_format(name, sizeof name, "%s/%zu", cases[i].name, counts[n]);
			measure(&policy, name, cases[i].command, cases[i].is_script, samples);
		}
	}
	return 0;
}
