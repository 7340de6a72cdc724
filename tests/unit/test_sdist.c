/* Sources to wheels: names of wheels, and archives that try to lead out of themselves. */
/* security: packages */
#include <fcntl.h>
#include <stdio.h>
#include "base/path.h"
#include "envs/python/scripts.h"
#include "envs/python/sdist.h"
#include "stand_in.h"
#include "unit.h"

static void a_wheel_is_known_by_its_name(void **state)
{
	auto_arena struct arena arena = { 0 };
	const char *name, *version;
	const char *wrong[] = { "", ".whl", "a.whl", "a-1-py3-none.whl", "a-1-py3-none-any.zip",
		"a--py3-none-any.whl", "a-1-2-3-py3-none-any.whl", "../a-1-py3-none-any.whl",
		"a-1-py3-none-any.whl\n.whl", "-1-py3-none-any.whl" };

	assert_true(wheel_name_parse(
		"Zope.Interface_x-1.0+l-py3-none-any.whl", &arena, &name, &version));
	assert_string_equal(name, "zope-interface-x");
	assert_string_equal(version, "1.0+l");
	assert_true(wheel_name_parse("a-1-2-py3-none-any.whl", &arena, &name, &version));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(wheel_name_parse(wrong[i], &arena, &name, &version));
}

/* Makes <root>/a.tar as `code` says (t is the open archive), and unpacks it as a build does. */
static int unpack(struct arena *arena, const char *root, const char *code, struct error *err)
{
	struct stand_in self = { .arena = arena };
	struct runner runner = { .ctx = &self, .run = stand_in_run };
	struct interpreter python = { .path = "/usr/bin/python3", .in_usr = true };
	const char *archive = arena_printf(arena, "%s/a.tar", root);
	const char *make = arena_printf(arena,
		"import io, sys, tarfile\n"
		"t = tarfile.open(sys.argv[1], 'w')\n"
		"def f(name, data=b'x', **more):\n"
		"    i = tarfile.TarInfo(name)\n"
		"    i.size = len(data)\n"
		"    for k in more: setattr(i, k, more[k])\n"
		"    t.addfile(i, io.BytesIO(data))\n"
		"%s\nt.close()\n",
		code);
	auto_buf struct buf out;
	struct job job;

	buf_init(&out, 1 << 20);
	script_job(&job, arena, &python, make, false, (const char *const[]){ archive, NULL });
	assert_int_equal(job_run(&runner, &job, &out, err), 0);
	script_job(&job, arena, &python, script_pep517, true,
		(const char *const[]){ "build", "wheel", archive,
			arena_printf(arena, "%s/tree", root), arena_printf(arena, "%s/out", root),
			"go", NULL });
	return job_run(&runner, &job, &out, err);
}

static void an_archive_that_leads_out_is_refused(void **state)
{
	static const char *const codes[] = {
		"f('a/../../evil')",
		"f('/tmp/evil')",
		"f('a/l', b'', type=tarfile.SYMTYPE, linkname='../..')",
		"f('a/l', b'', type=tarfile.SYMTYPE, linkname='/etc')",
		"f('a/d/x'); f('a/l', b'', type=tarfile.SYMTYPE, linkname='d'); f('a/l/y')",
		"f('a/p', b'', type=tarfile.FIFOTYPE)",
	};
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (access("/usr/bin/python3", X_OK) < 0)
		skip();
	for (size_t i = 0; i <= sizeof codes / sizeof *codes; i++) {
		auto_arena struct arena arena = { 0 };
		struct error err = { 0 };
		char root[] = "/tmp/test_sdist.XXXXXX";
		/* Last, one that is well: it fails later, for want of its backend. */
		bool is_well = i == sizeof codes / sizeof *codes;
		assert_non_null(mkdtemp(root));
		assert_int_equal(unpack(&arena, root,
					 is_well ? "f('a/pyproject.toml', b'[build-system]\\n"
						   "requires = []\\nbuild-backend = \"none_such\"')"
						 : codes[i],
					 &err),
			-1);
		assert_true((strstr(err.text, "none_such") != NULL) == is_well);
		assert_true((strstr(err.text, "in the archive") != NULL) == !is_well);
		assert_int_equal(path_remove_tree(tmp, path_basename(root), NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wheel_is_known_by_its_name),
		cmocka_unit_test(an_archive_that_leads_out_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
