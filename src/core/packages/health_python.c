/* health_python.c -- whether the Python of a workspace imports what was declared: by its own
 * interpreter, in its own sandbox. */
#include <unistd.h>
#include "base/fd.h"
#include "core/packages/checkup.h"
#include "core/packages/internal.h"
#include "core/waits.h"
#include "format/text/json_read.h"

#define PROBE_MS 300000
#define PROBE_OUTPUT (1u << 20)

/* Reads requirement lines from stdin and the dependencies of pyproject.toml; its arguments are the
 * names of all packages of the environment. A module is found from the files that a distribution
 * has installed, and is imported in a process of its own: one that crashes or exits ends nothing
 * else. Of the packages of the environment that are installed, all files must be there. */
static const char script[] =
	"import importlib.metadata as md, json, os, re, signal, sys\n"
	"norm = lambda n: re.sub('[-_.]+', '-', n).lower()\n"
	"known = set(sys.argv[1:])\n"
	"lines = sys.stdin.read().splitlines()\n"
	"trouble = ''\n"
	"try:\n"
	"    import tomllib\n"
	"    with open(os.path.join(os.environ.get('HOME', '/workspace'), 'pyproject.toml'), 'rb') "
	"as f:\n"
	"        more = tomllib.load(f).get('project', {}).get('dependencies', [])\n"
	"except (ImportError, OSError):\n" /* a file that can't be opened was found before */
	"    more = []\n"
	"except Exception as e:\n"
	"    more, trouble = [], str(e)[:300]\n"
	"wanted = {}\n"
	"for line in lines + [one for one in more if isinstance(one, str)]:\n"
	"    m = "
	"re.match(r'\\s*([A-Za-z0-9][A-Za-z0-9._-]*)\\s*(\\[[^]]*\\])?\\s*($|[<>=!~;@#(\\\\])', "
	"line)\n"
	"    if m and not (';' in line and norm(m[1]) not in known):\n"
	"        wanted[norm(m[1])] = (m[1], line.strip())\n"
	"def modules(dist):\n"
	"    found, plain = set(), set()\n"
	"    for f in dist.files or ():\n"
	"        p = f.parts\n"
	"        if '..' in p or not p or p[0].endswith(('.dist-info', '.egg-info', '.data')):\n"
	"            continue\n"
	"        if p[-1] == '__init__.py' or re.match(r'__init__\\..*so$', p[-1]):\n"
	"            found.add(p[:-1])\n"
	"        elif len(p) == 1 and re.search(r'\\.(py|so)$', p[0]):\n"
	"            plain.add((p[0].split('.')[0],))\n"
	"    found = {p for p in found if p and all(x.isidentifier() for x in p)}\n"
	"    tops = {p for p in found if not any(p[:i] in found for i in range(1, len(p)))} | "
	"plain\n"
	"    tops = {p for p in tops if p[0].isidentifier()}\n"
	"    aside = {'tests', 'test', 'docs', 'examples', 'benchmarks', 'scripts'}\n"
	"    mine = {p for p in tops if p[0] not in aside and not p[-1].startswith('_')} or tops\n"
	"    return sorted('.'.join(p) for p in mine)[:20]\n"
	"def attempt(names):\n"
	"    r, w = os.pipe()\n"
	"    pid = os.fork()\n"
	"    if not pid:\n"
	"        try:\n"
	"            null = os.open(os.devnull, os.O_RDWR)\n"
	"            for fd in (0, 1, 2):\n"
	"                os.dup2(null, fd)\n"
	"            signal.alarm(60)\n"
	"            for name in names:\n"
	"                __import__(name)\n"
	"            os.write(w, b'ok')\n"
	"        except BaseException as e:\n"
	"            os.write(w, f'{type(e).__name__}: {e}'[:300].encode('utf-8', 'replace'))\n"
	"        os._exit(0)\n"
	"    os.close(w)\n"
	"    with os.fdopen(r, 'rb') as f:\n"
	"        said = f.read().decode('utf-8', 'replace')\n"
	"    status = os.waitpid(pid, 0)[1]\n"
	"    return None if said == 'ok' else said or f'ended by signal {status & 127}'\n"
	"bad = []\n"
	"for key, (name, line) in sorted(wanted.items()):\n"
	"    try:\n"
	"        dist = md.distribution(name)\n"
	"    except Exception:\n"
	"        bad.append([name, 'not installed', line])\n"
	"        continue\n"
	"    names = modules(dist)\n"
	"    why = attempt(names) if names else None\n"
	"    if why:\n"
	"        bad.append([name, why, line])\n"
	"told = {norm(one[0]) for one in bad}\n"
	"for name in sorted(known - told):\n"
	"    try:\n"
	"        dist = md.distribution(name)\n"
	"        gone = [str(f) for f in dist.files or () if '__pycache__' not in f.parts and not "
	"os.path.lexists(f.locate())]\n"
	"    except Exception:\n"
	"        continue\n" /* removed as a whole, which is anybody's right */
	"    if gone:\n"
	"        bad.append([name, 'lacks', gone[0][:300]])\n"
	"json.dump({'checked': len(wanted), 'bad': bad, 'trouble': trouble}, sys.stdout)\n";

static void read_probe(struct checkup *c, struct str text)
{
	struct json_value *value;
	struct error err;
	uint64_t checked;
	const struct json_value *bad;
	if (json_read(text, &c->arena, &value, &err) ||
		!json_member_u64(value, "checked", &checked) ||
		!(bad = json_member(value, "bad")) || bad->kind != JSON_ARRAY) {
		checkup_find(c, FINDING_PYTHON, NULL, "Python in the workspace printed no result");
		return;
	}
	const char *trouble = json_member_text(value, "trouble");
	if (trouble && trouble[0])
		checkup_find(c, FINDING_OTHER, NULL, "pyproject.toml can't be read: %s", trouble);
	c->health.python_deps_installed = true;
	for (const struct json_value *at = bad->first; at; at = at->next) {
		const struct json_value *name = at->first, *why = name ? name->next : NULL;
		if (!why || name->kind != JSON_STRING || why->kind != JSON_STRING)
			continue;
		c->health.python_deps_installed = false;
		const struct json_value *line = why->next;
		if (!strcmp(why->string.data, "not installed"))
			checkup_find(c, FINDING_PACKAGE, name->string.data,
				"Python package '%s' is not installed", name->string.data);
		else if (!strcmp(why->string.data, "lacks"))
			checkup_find(c, FINDING_PACKAGE, name->string.data,
				"Python package '%s' lacks its file '%s'", name->string.data,
				line && line->kind == JSON_STRING ? line->string.data : "");
		else
			checkup_find(c, FINDING_PACKAGE, name->string.data,
				"Python package '%s' can't be imported: %s", name->string.data,
				why->string.data);
		if (c->found.count && line && line->kind == JSON_STRING &&
			strcmp(why->string.data, "lacks") != 0)
			c->found.items[c->found.count - 1].wanted = line->string.data;
	}
}

static void on_ended(void *ctx, struct core_exec *e, const struct error *err)
{
	struct checkup *c = ctx;
	c->probe = e;
	fiber_continue(c->fiber, err);
}

static void read_end(struct checkup *c, struct core_exec *e)
{
	const struct result *result = &exec_record_of(e)->result;
	if (result->reason == REASON_EXITED && !result->exit_status) {
		const struct buf *out = &exec_captured_of(e)->streams[0];
		read_probe(c, (struct str){ out->data ? out->data : "", out->len });
		return;
	}
	c->health.python_venv = false;
	checkup_find(c, FINDING_PYTHON, NULL,
		"Python in the workspace does not run: it ended with %s %d",
		result->reason == REASON_EXITED ? "exit code" : reason_names[result->reason],
		result->reason == REASON_EXITED ? result->exit_status : result->signal);
}

/* What was declared: at the creation, or when the environment was built. */
static void print_requirements(struct checkup *c, struct buf *out)
{
	const struct workspace *model = &c->w->model;
	struct error ignored;
	if (model->requirements)
		buf_printf(out, "%s\n", model->requirements);
	for (size_t i = 0; i < model->packages.count; i++)
		buf_printf(out, "%s\n", model->packages.items[i]);
	if (!out->len)
		env_read_file(&c->w->core->envs, model->environments.of[ENV_KIND_PYTHON],
			"requirements.txt", out, &ignored);
}

void checkup_import(struct checkup *c)
{
	const struct env_meta *meta = pin_meta(c->w->packages->pins[ENV_KIND_PYTHON]);
	const struct exec_listener listener = { .ended = on_ended, .ctx = c };
	text_list argv = { 0 };
	struct text_pair env[] = { { "PYTHONDONTWRITEBYTECODE", "1" } };
	struct error err;
	struct core_exec *probe;
	if (!c->w->model.environments.of[ENV_KIND_PYTHON] || !meta)
		return;
	auto_buf struct buf requirements = buf_empty(BUF_MAX_DEFAULT);
	print_requirements(c, &requirements);
	vec_push(&c->arena, &argv, "/env/bin/python3");
	vec_push(&c->arena, &argv, "-c");
	vec_push(&c->arena, &argv, script);
	for (size_t i = 0; i < meta->packages.count; i++)
		vec_push(&c->arena, &argv, meta->packages.items[i].key);
	/* Not in /workspace: a file there could be taken for a module. */
	const struct exec_spec spec = { .argv = argv,
		.cwd = "/",
		.env = { env, 1, 1 },
		.has_stdin_text = true,
		.stdin_text = { requirements.data ? requirements.data : "", requirements.len },
		.timeout_ms = PROBE_MS,
		.output_bytes = PROBE_OUTPUT };
	if (exec_start(
		    &request_system, c->w, &spec, EXEC_CAPTURED, NULL, &listener, &probe, &err)) {
		checkup_find(c, FINDING_OTHER, NULL, "Python can't be started: %s", err.text);
		return;
	}
	if (!fiber_wait(c->fiber, &err)) {
		read_end(c, c->probe);
		return;
	}
	c->health.python_venv = false;
	checkup_find(c, FINDING_PYTHON, NULL, "Python venv missing: %s", err.text);
}
