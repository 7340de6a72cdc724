/* sources.json, and what it says of names, URLs and commands. The input is "SOURCES\0TEXT". */
#include <string.h>
#include "fuzz.h"
#include "policy/policy.h"
#include "policy/sources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *end = size ? memchr(data, '\0', size) : NULL;
	auto_arena struct arena arena;
	struct sources sources;
	struct policy policy;
	struct policy_verdict verdict;
	struct error err;

	arena_init(&arena);
	if (!end || size > 8192)
		return 0;
	struct str text = { (const char *)data, (size_t)(end - (const char *)data) };
	const char *what = arena_bytes(&arena, end + 1, size - text.len - 1);
	if (sources_parse("s", text, &arena, &sources, &err) < 0) {
		check(err.text[0]);
		return 0;
	}
	sources_check_manager(&sources, what, &err);
	sources_check_package(&sources, "pip", what, &err);
	sources_check_package(&sources, "npm", what, &err);
	sources_check_registry(&sources, "pip", what, &err);
	sources_check_domain(&sources, what, &err);
	sources_check_remote(&sources, what, &err);
	sources_check_program(&sources, what, &err);
	struct policy_request request = { SHELL_BASH, "/w", "/w", &arena, &sources };
	policy_init(&policy, &arena);
	policy_judge_script(&policy, &request, str_from(what), &verdict);
	check(verdict.trail.count > 0);
	return 0;
}
