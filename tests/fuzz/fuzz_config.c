/* config.yaml: values in range, or an error that names its line. */
#include <string.h>
#include "model/settings/config.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct config config = { .max_envs = UINT64_MAX };
	struct error err = { 0 };

	if (config_parse((struct str){ (const char *)data, size }, &arena, &config, &err) < 0) {
		check(err.code == ERR_INVALID || err.code == ERR_LIMIT);
		check(strncmp(err.text, "line ", 5) == 0 && config.max_envs == UINT64_MAX);
		return 0;
	}
	check(config.max_envs >= 1 && config.max_envs <= 1000000);
	check(config.max_bytes >= 1 << 20 && config.max_install_bytes >= 1 << 20);
	check(config.ttl_ms == 0 || config.ttl_ms >= 1000);
	check(config.install_timeout_ms >= 1000 && config.install_timeout_ms <= 86400000);
	check(config.eviction < EVICT_POLICY_COUNT);
	for (size_t i = 0; i < config.blocked_packages.count; i++)
		check(!strpbrk(config.blocked_packages.items[i], "_. ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
	return 0;
}
