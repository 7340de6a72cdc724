/* What every sandbox shows of the host: which names are in the list, and which never are. */
/* security: files */
#include <string.h>
#include "sandbox/plan/system.h"
#include "unit.h"

static const struct plan_system_place *place(const char *directory)
{
	const struct plan_system_place *found = plan_system_places;
	while (found->directory && strcmp(found->directory, directory))
		found++;
	assert_non_null(found->directory);
	return found;
}

static void test_names_are_sorted_so_that_each_is_found(void **state)
{
	for (const struct plan_system_place *p = plan_system_places; p->directory; p++)
		for (size_t i = 0; i < p->count; i++) {
			assert_true(plan_system_place_has(p, p->names[i]));
			if (i > 0)
				assert_true(strcmp(p->names[i - 1], p->names[i]) < 0);
		}
}

static void test_configuration_that_programs_need_is_listed(void **state)
{
	static const char *const needed[] = { "ImageMagick-6", "ImageMagick-7", "alternatives",
		"chromium.d", "emacs", "fonts", "java-17-openjdk", "libreoffice", "manpath.config",
		"mime.types", "php", "texmf", "xml" };
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		assert_true(plan_system_place_has(place("/etc"), needed[i]));
	assert_true(plan_system_place_has(place("/var/lib"), "texmf"));
	assert_true(plan_system_place_has(place("/var/cache"), "fontconfig"));
}

static void test_secrets_and_the_identity_of_the_host_are_not_listed(void **state)
{
	static const char *const closed[] = { "", "apt", "cron.d", "environment", "fstab",
		"gitconfig", "group", "gshadow", "hostname", "hosts", "krb5.keytab", "letsencrypt",
		"machine-id", "mysql", "netplan", "network", "NetworkManager", "npmrc", "odbc.ini",
		"pam.d", "passwd", "passwd-", "pip.conf", "postgresql", "profile", "redis",
		"resolv.conf", "shadow", "shadow-", "ssh", "ssl", "subuid", "sudoers", "sudoers.d",
		"wgetrc", "wireguard" };
	for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
		assert_false(plan_system_place_has(place("/etc"), closed[i]));
	assert_false(plan_system_place_has(place("/var/lib"), "postgresql"));
	assert_false(plan_system_place_has(place("/var/lib"), "docker"));
}

static void test_operator_shows_neither_secrets_nor_the_sandboxs_own(void **state)
{
	static const char *const closed[] = { "/", "/etc", "/var", "/etc/shadow", "/etc/ssh",
		"/etc/ssh/sshd_config", "/etc/ssl", "/etc/ssl/private/key", "/root", "/root/.ssh",
		"/run", "/run/docker.sock", "/proc", "/dev/kvm", "/sys/fs", "/tmp/x", "/workspace",
		"/env/lib", "/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/etc/machine-id" };
	static const char *const open[] = { "/opt", "/opt/tool", "/srv/data", "/etc/debian_version",
		"/etc/gitconfig", "/var/lib/dpkg", "/home/alice/tools", "/etcetera", "/runner" };
	struct error err;
	for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
		assert_int_equal(plan_system_check_shown(closed[i], &err), -1);
	for (size_t i = 0; i < sizeof open / sizeof *open; i++)
		assert_int_equal(plan_system_check_shown(open[i], &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_sorted_so_that_each_is_found),
		cmocka_unit_test(test_configuration_that_programs_need_is_listed),
		cmocka_unit_test(test_operator_shows_neither_secrets_nor_the_sandboxs_own),
		cmocka_unit_test(test_secrets_and_the_identity_of_the_host_are_not_listed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
