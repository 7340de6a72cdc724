"""carrel install and uninstall: packages of a workspace that is there, idle or busy, and pyproject.toml."""
import contextlib
import pathlib
import signal
import subprocess
import threading

import pytest
from daemons import new_directory, nothing_survives, remove, serving  # noqa: F401
from harness import PATH, copy_home, eventually
from index_server import Index
from rest import Events
from terminals import terminal
from wheels import wheel
from workspaces import created, json_of

SEED = '[project]\nname = "workspace"\nversion = "0.1.0"\nrequires-python = ">={}"\ndependencies = [\n    "{}",\n]\n'


def package(name, version, **how):
    """A package directory with a module that another version doesn't have."""
    return wheel(name, version, {f"{name}/__init__.py": f"VERSION = {version!r}\n", f"{name}/only_{version[0]}.py": "x = 1\n"}, **how)


@pytest.fixture(scope="module")
def site(template):
    """(a daemon, the index that it builds from)."""
    directory = new_directory()
    copy_home(template[1], directory / "carrel")
    try:
        with Index() as index:
            index.add(package("alpha", "1.0"), package("alpha", "2.0"), wheel("beta", requires=["gamma"]), wheel("gamma"),
                      wheel("space-one", files={"space/one.py": "x = 1\n"}), wheel("space-two", files={"space/two.py": "x = 2\n"}),
                      wheel("clash", requires=["alpha<2"]), wheel("tool", scripts={"tool": "tool:main"}, files={
                          "tool.py": "def main():\n    print('tool runs')\n"}))
            env = {"PATH": f"{template[0]}:{PATH}", "UV_DEFAULT_INDEX": index.url, "PIP_INDEX_URL": index.url}
            with serving(directory, env=env) as daemon:
                daemon.index = index
                yield daemon
    finally:
        remove(directory)


def python(site, name, script, code=0):
    done = site("exec", name, "--", "python", "-c", script)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout


def install(site, name, *packages, verb="install", code=0):
    done = site(verb, "-o", "json", name, *packages, timeout=120)
    assert (done.returncode, done.stderr) == (code, ""), (done.stdout, done.stderr)
    return json_of(done)


def project(site, name):
    answer = site.get(f"/v1/workspaces/{name}/files/pyproject.toml")
    return answer.body.decode() if answer.status == 200 else None


def put(site, name, text, path="pyproject.toml"):
    assert site.request("PUT", f"/v1/workspaces/{name}/files/{path}", text.encode()).status in (200, 201)


def packages(site, name):
    answer = site.get(f"/v1/workspaces/{name}/packages")
    assert answer.status == 200, answer
    return {item["name"]: item for item in answer.json()["items"]}


@contextlib.contextmanager
def running(site, name, script):
    """A Python that runs in the workspace, in the background; it ends when /workspace/end is there."""
    wait = "\nimport os, time\nopen('/workspace/up', 'w').close()\nwhile not os.path.exists('/workspace/end'): time.sleep(0.01)\n"
    start = site.post(f"/v1/workspaces/{name}/exec", {"argv": ["python", "-c", script + wait], "background": True})
    assert start.status == 201, start
    exec_id = start.json()["id"]
    up = site.post(f"/v1/workspaces/{name}/exec", {"command": "until [ -e up ]; do sleep 0.01; done; rm up"})
    assert up.json()["exit_code"] == 0, up
    yield exec_id
    put(site, name, "", "end")
    site.get(f"/v1/execs/{exec_id}/output?follow", headers={"Accept": "text/event-stream"})
    assert site.delete(f"/v1/workspaces/{name}/files/end").status == 204


def test_packages_come_and_go_in_an_idle_workspace(site):
    with created(site, "--pip", "gamma") as name:
        minor = python(site, name, "import sys; print('%d.%d' % sys.version_info[:2])").strip()
        said = install(site, name, "alpha==1.0", "beta")
        assert [item["name"] for item in said["installed"]] == ["alpha", "beta"] and said["removed"] == []
        assert (said["live"], said["persisted"]) == (False, True)
        assert python(site, name, "import alpha.only_1, beta, gamma; print(alpha.VERSION)") == "1.0\n"
        assert project(site, name) == SEED.format(minor, 'gamma",\n    "alpha==1.0",\n    "beta')     # gamma was declared before
        assert said["environment"] == json_of(site("info", name, "-o", "json"))["environment"]
        listed = packages(site, name)
        assert listed["alpha"] == {"name": "alpha", "version": "1.0", "kind": "python", "requested": True, "source": "environment"}
        # Another version takes the place of the first one, here and in the file.
        done = site("install", name, "alpha>=2")
        assert done.stdout == "- alpha 1.0\n+ alpha 2.0\n", done.stderr
        assert python(site, name, "import alpha.only_2; print(alpha.VERSION)") == "2.0\n"
        python(site, name, "import alpha.only_1", code=1)
        assert '    "alpha>=2",\n' in project(site, name)
        # What isn't needed any more goes with what is uninstalled; gamma was asked for.
        done = site("uninstall", name, "beta", "alpha")
        assert done.stdout == "- alpha 2.0\n- beta 1.0\n", done.stderr
        python(site, name, "import alpha", code=1)
        assert python(site, name, "import gamma; print(gamma.VERSION)") == "1.0\n"
        assert 'dependencies = [\n    "gamma",\n]\n' in project(site, name)
        install(site, name, "gamma", verb="uninstall")
        assert "dependencies = [\n]\n" in project(site, name)
        assert set(packages(site, name)) <= {"pip", "setuptools"}
        assert python(site, name, "import sys; print(sys.prefix)") == "/env\n"


def test_a_workspace_without_an_environment_gets_one(site):
    with created(site) as name:
        assert packages(site, name) == {}
        said = install(site, name, "tool", "--no-persist")
        assert said["persisted"] is False and project(site, name) is None
        assert site("exec", name, "--", "tool").stdout == "tool runs\n"
        assert site("exec", name, "--", "readlink", ".venv").stdout == "/env\n"


def test_an_environment_given_by_name_is_the_start_of_another(site):
    made = site("env", "build", "named", "--index", site.index.url, "--pip", "gamma", "-o", "json", timeout=120)
    assert made.returncode == 0, made.stderr
    with created(site, "--env", json_of(made)["name"]) as name:
        install(site, name, "alpha")
        assert python(site, name, "import alpha, gamma; print(alpha.VERSION)") == "2.0\n"


def test_a_running_python_finds_what_is_installed(site):
    """The sandbox goes on, and the next one has the files from the layers: the copies are gone."""
    script = """
import importlib, os, time
import gamma
held = open(gamma.__file__)
def wait(name):
    while not os.path.exists('/workspace/' + name): time.sleep(0.01)
try: import alpha
except ImportError: print('none', flush=True)
open('/workspace/tried', 'w').close()
wait('installed')
import alpha.only_1
print(alpha.VERSION, flush=True)
open('/workspace/imported', 'w').close()
wait('removed')
print(held.read().strip(), flush=True)
"""
    with created(site, "--pip", "gamma") as name:
        with running(site, name, "import threading\ndef work():\n    " + script.strip().replace("\n", "\n    ") +
                     "\nthreading.Thread(target=work).start()\n") as exec_id:
            def until(path):
                assert site("exec", name, "--", "sh", "-c", f"until [ -e {path} ]; do sleep 0.01; done").returncode == 0
            until("tried")
            said = install(site, name, "alpha==1.0", "tool")
            assert said["live"] is True
            put(site, name, "", "installed")
            until("imported")
            assert site("exec", name, "--", "tool").stdout == "tool runs\n"
            assert packages(site, name)["alpha"]["source"] == "environment"
            # Another version while it runs: the files of the old one are gone.
            assert install(site, name, "alpha==2.0")["live"] is True
            assert python(site, name, "import alpha.only_2; print(alpha.VERSION)") == "2.0\n"
            python(site, name, "import alpha.only_1", code=1)
            assert "alpha" in packages(site, name) and packages(site, name)["alpha"]["version"] == "2.0"
            assert install(site, name, "gamma", "tool", verb="uninstall")["live"] is True
            python(site, name, "import gamma", code=1)
            assert site("exec", name, "--", "sh", "-c", "tool").returncode == 127
            put(site, name, "", "removed")
            until("removed")
        output = site.get(f"/v1/execs/{exec_id}/output").body.decode()
        assert output == "none\n1.0\nVERSION = '1.0'\n", output
        install(site, name, "space-one")     # ends the sandbox
        assert python(site, name, "import alpha.only_2, space.one; print(alpha.VERSION)") == "2.0\n"
        for gone in ("gamma", "tool", "alpha.only_1"):
            python(site, name, f"import {gone}", code=1)
        assert python(site, name, "import os; print([n for d, _, f in os.walk('/env') for n in f if os.stat(d).st_mode & 0o170000 == 0o020000])") == "[]\n"
        upper = site.home / "carrel/workspaces" / json_of(site("info", name, "-o", "json"))["id"] / "env/upper"
        left = [path for path in upper.rglob("*") if not path.is_dir() and "__pycache__" not in path.parts]
        assert left == []


def test_what_a_command_installed_stays_and_gives_way_to_an_install_of_it(site):
    with created(site, "--pip", "space-one") as name:
        for wheel_of in (package("alpha", "1.0"), wheel("own"), wheel("space-two", files={"space/two.py": "x = 2\n"})):
            assert site.request("PUT", f"/v1/workspaces/{name}/files/{wheel_of.filename}", wheel_of.data).status == 201
        python(site, name, """
import glob, sys, zipfile
site = [path for path in sys.path if path.startswith('/env/') and path.endswith('site-packages')][0]
for name in glob.glob('/workspace/*.whl'):
    zipfile.ZipFile(name).extractall(site)
""")
        assert packages(site, name)["own"]["source"] == "workspace"
        install(site, name, "beta")
        assert python(site, name, "import alpha.only_1, own, beta, space.one, space.two; print(alpha.VERSION)") == "1.0\n"
        # Installed by carrel, the command's own copy gives way: one version is there, whole.
        install(site, name, "alpha==2.0")
        assert python(site, name, "import alpha.only_2, own, space.two; print(alpha.VERSION)") == "2.0\n"
        python(site, name, "import alpha.only_1", code=1)
        versions = "import importlib.metadata as m; print([d.version for d in m.distributions() if d.name == 'alpha'])"
        assert python(site, name, versions) == "['2.0']\n"
        # A package of a layer that a command deleted comes back when it is installed again.
        python(site, name, "import alpha, shutil, glob, os; d = os.path.dirname(alpha.__file__); shutil.rmtree(d); "
                           "[shutil.rmtree(p) for p in glob.glob(d + '-*')]")
        python(site, name, "import alpha", code=1)
        install(site, name, "alpha==2.0")
        assert python(site, name, "import alpha.only_2, own; print(alpha.VERSION)") == "2.0\n"


VERSION = "import alpha; print(alpha.VERSION)"
ALL_VERSIONS = "import importlib.metadata as m; print([d.version for d in m.distributions() if d.name == 'alpha'])"


def snapshot(site, name):
    made = site.post(f"/v1/workspaces/{name}/snapshots", {}, timeout=120)
    assert made.status == 201, made
    return made.json()["id"]


def rollback(site, name, to):
    answer = site.post(f"/v1/workspaces/{name}/rollback", {"snapshot": to, "when_busy": "wait"}, timeout=120)
    assert answer.status == 200, answer


def forked(site, name, **how):
    made = site.post(f"/v1/workspaces/{name}/fork", how, timeout=120)
    assert made.status == 201, made
    return made.json()["items"][0]["name"]


def frozen(site, name):
    """The files of /env in the frozen layers of a workspace."""
    state = site.home / "carrel"
    row = site.get(f"/v1/workspaces/{name}/snapshots").json()["items"]
    return [path for one in row for path in (state / "layers").glob("snap-*/env/**/*")
            if not path.is_dir() and "__pycache__" not in path.parts] if row else []


def test_a_snapshot_has_the_packages_of_its_time(site):
    """While something runs, too: the copies that a live install made are not frozen."""
    with created(site, "--pip", "gamma") as name:
        install(site, name, "alpha==1.0")
        first = snapshot(site, name)
        with running(site, name, "import gamma"):
            assert install(site, name, "alpha==2.0")["live"] is True
            second = snapshot(site, name)
            assert frozen(site, name) == []
            assert python(site, name, VERSION) == "2.0\n"
        third = snapshot(site, name)
        assert frozen(site, name) == []
        forks = [forked(site, name, snapshot=first), forked(site, name, snapshot=second), forked(site, name)]
        for fork, version in zip(forks, "122"):
            assert python(site, fork, VERSION) == f"{version}.0\n"
            assert site("rm", fork).returncode == 0
        rollback(site, name, first)
        assert python(site, name, VERSION) == "1.0\n" and python(site, name, ALL_VERSIONS) == "['1.0']\n"
        rollback(site, name, third)
        assert python(site, name, VERSION) == "2.0\n" and python(site, name, ALL_VERSIONS) == "['2.0']\n"
        install(site, name, "alpha", verb="uninstall")
        python(site, name, VERSION, code=1)


def test_frozen_files_of_a_package_give_way_to_an_install(site):
    """What a command installed or deleted before a snapshot lies in a frozen layer, which never changes."""
    with created(site, "--pip", "gamma") as name:
        own = package("alpha", "1.0")
        put(site, name, "", "x")
        assert site.request("PUT", f"/v1/workspaces/{name}/files/{own.filename}", own.data).status == 201
        unpack = ("import sys, zipfile; zipfile.ZipFile('/workspace/%s').extractall("
                  "[p for p in sys.path if p.startswith('/env/') and p.endswith('site-packages')][0])" % own.filename)
        python(site, name, unpack)
        python(site, name, "import gamma, os, glob, shutil; os.unlink(gamma.__file__); "
                           "[shutil.rmtree(p) for p in glob.glob(os.path.dirname(gamma.__file__) + '/gamma-*')]")
        assert python(site, name, VERSION) == "1.0\n"
        python(site, name, "import gamma", code=1)
        first = snapshot(site, name)
        install(site, name, "alpha==2.0", "gamma")
        for _ in range(2):      # now, and above a second frozen layer
            assert python(site, name, "import gamma, alpha.only_2; print(alpha.VERSION)") == "2.0\n"
            assert python(site, name, ALL_VERSIONS) == "['2.0']\n"
            python(site, name, "import alpha.only_1", code=1)
            second = snapshot(site, name)
        with running(site, name, "import gamma"):
            assert install(site, name, "alpha", verb="uninstall")["live"] is True
            python(site, name, "import alpha", code=1)
        snapshot(site, name)
        python(site, name, "import alpha", code=1)
        assert python(site, name, "import gamma") == "" and python(site, name, ALL_VERSIONS) == "[]\n"
        for to, version in ((first, "1.0"), (second, "2.0")):
            rollback(site, name, to)
            assert python(site, name, VERSION) == f"{version}\n" and python(site, name, ALL_VERSIONS) == f"['{version}']\n"


@pytest.mark.once
def test_errors_leave_the_workspace_as_it_was(site):
    text = '# mine\n[project]\nname = "x"\ndependencies = ["gamma"] # all\n'
    with created(site, "--pip", "gamma", "--pip", "alpha>=2") as name:
        put(site, name, text)
        before = site.get(f"/v1/workspaces/{name}").json()["environment"]
        for words, says in ((["no-such-package-1"], "no-such-package-1"), (["clash"], "clash"), (["./x.whl"], "x.whl"),
                            (["-e."], "-e."), (["alpha @ https://x.example/a.whl"], "alpha")):
            done = site("install", name, "--", *words, timeout=120)
            assert done.returncode == 125 and says in done.stderr and "hint: " in done.stderr, done.stderr
        for words, says in ((["beta"], "not installed by carrel"), (["alpha>=2"], "only the name")):
            done = site("uninstall", name, *words)
            assert done.returncode == 125 and says in done.stderr, done.stderr
        assert project(site, name) == text
        put(site, name, "[project\n")
        done = site("install", name, "beta")
        assert done.returncode == 125 and "pyproject.toml: line 1" in done.stderr, done.stderr
        assert site.get(f"/v1/workspaces/{name}").json()["environment"] == before
        assert set(packages(site, name)) >= {"gamma", "alpha"} and "beta" not in packages(site, name)
        put(site, name, text)
        install(site, name, "beta")
        assert project(site, name) == text.replace('["gamma"]', '["gamma", "beta"]')
        done = site("uninstall", name, "gamma")
        assert done.returncode == 0 and "gamma" in packages(site, name)    # beta needs it
        assert project(site, name) == text.replace('["gamma"]', '["beta"]')
        site.index.misbehave("/simple/tool", "404")
        done = site("install", name, "tool", timeout=180)
        site.index.behave()
        assert done.returncode == 125 and "tool" not in packages(site, name), done.stderr


@pytest.mark.once
def test_what_does_not_resolve_leaves_no_workspace(site):
    template = "version: '1.0'\nname: unresolved\npython:\n  dependencies: [no-such-package-1]\n"
    assert site.post("/v1/templates", {"yaml": template}).status == 201
    before = site.get("/v1/workspaces").json()["items"]
    for options in (["--pip", "no-such-package-1"], ["--pip", "clash", "--pip", "alpha>=2"], ["--template", "unresolved"]):
        done = site("create", "left-behind", *options, timeout=180)
        assert done.returncode == 125 and ("clash" if "clash" in options else "no-such-package-1") in done.stderr, done.stderr
        assert site.get("/v1/workspaces").json()["items"] == before
    assert site.delete("/v1/templates/unresolved").status == 204


@pytest.mark.once
def test_installs_at_once_are_done_one_after_the_other(site):
    with created(site) as name:
        answers = {}

        def add(word):
            answers[word] = site.post(f"/v1/workspaces/{name}/packages", {"packages": [word]}, timeout=180).status
        threads = [threading.Thread(target=add, args=[word]) for word in ("alpha==1.0", "space-one", "space-two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(answers.values()) == {200}, answers
        assert python(site, name, "import alpha.only_1, space.one, space.two; print('all')") == "all\n"
        assert all(f'"{word}"' in project(site, name) for word in answers)


@pytest.mark.once
def test_a_new_daemon_goes_on_with_what_was_installed(site):
    with created(site, "--pip", "gamma") as name:
        with running(site, name, "import gamma"):
            assert install(site, name, "alpha==1.0")["live"] is True
            python(site, name, "import alpha; open(alpha.__file__, 'a').write('OWN = 1\\n')")
        assert site.stop_serving() == 0
        site.start_serving()
        # What a command changed after the install stays on top of the layers.
        assert python(site, name, "import alpha.only_1, gamma; print(alpha.VERSION, alpha.OWN)") == "1.0 1\n"
        assert {"alpha", "gamma"} <= set(packages(site, name))


def most_memory(site):
    status = pathlib.Path(f"/proc/{site.core_pid()}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def test_a_forged_record_costs_core_little(site):
    """What a command wrote into a RECORD is read by core: it must neither fill core's memory nor keep it busy for long."""
    forge = """
import os, sysconfig
site = sysconfig.get_paths()["purelib"]
for i in range(20):
    os.mkdir(f"{site}/alpha-0.{i}.dist-info")
    if i:
        os.link(f"{site}/alpha-0.0.dist-info/RECORD", f"{site}/alpha-0.{i}.dist-info/RECORD")
    else:
        open(f"{site}/alpha-0.0.dist-info/RECORD", "w").write("".join(f"a{n},,\\n" for n in range(600000)))
"""
    with created(site, "--pip", "alpha==1.0") as name, running(site, name, forge):
        core, before = site.core_pid(), most_memory(site)
        said = install(site, name, "alpha==2.0")
        assert said["live"] and site.core_pid() == core and most_memory(site) < before + (128 << 20)
        assert python(site, name, "import alpha.only_2") == ""


def test_view_root_has_its_environment_at_venv(site):
    """Built for /env, and found at /.venv: activated, installed into, kept by a snapshot."""
    with created(site, "--view", "root", "--pip", "alpha==1.0") as name:
        assert python(site, name, "import sys, alpha; print(sys.prefix, alpha.VERSION)") == "/.venv 1.0\n"
        done = site("exec", name, "--", "sh", "-c", "command -v python; readlink /.venv; pip --version >/dev/null && pip list | grep -c alpha")
        assert done.stdout.split() == ["/.venv/bin/python", "/env", "1"], done
        assert "alpha" not in site("diff", name).stdout
        install(site, name, "beta")
        assert python(site, name, "import alpha, beta, gamma; print(alpha.VERSION)") == "1.0\n"
        assert "beta" in project(site, name)
        fork = site("fork", name).stdout.strip()
        assert python(site, fork, "import alpha, beta; print('both')") == "both\n"
        assert site("rm", fork).returncode == 0
        assert site("health", name).returncode == 0


@pytest.mark.once
def test_a_template_that_builds_shows_progress_and_is_canceled_by_an_interrupt(site, tmp):
    (tmp / "slow.yaml").write_text('version: "1.0"\nname: slow\npython:\n  dependencies: [delta]\n')
    assert site("template", "add", tmp / "slow.yaml").returncode == 0
    site.index.add(wheel("delta"))
    site.index.misbehave("/simple/delta/", "hang")
    with terminal(site, "create", "never", "--template", "slow") as term:
        term.expect("making the environment")
        assert eventually(lambda: "/simple/delta/" in site.index.requests, 60)
        term.send("\x03")
        assert "no workspace was created" in term.rest()
        assert term.process.returncode == 130
    assert "never" not in site("ls").stdout
    site.index.behave()
    # The name is free when the build has ended; nothing else is in the way.
    assert eventually(lambda: site("create", "never", "--template", "slow", timeout=120).returncode == 0, 120)
    assert python(site, "never", "import delta; print('there')") == "there\n"
    assert site("rm", "never").returncode == 0
    assert site("template", "rm", "slow").returncode == 0


def stages(stderr):
    """What a build shows of itself."""
    return [line for line in stderr.splitlines() if not line.startswith("carrel: built ")]


def test_create_and_install_show_the_stages_of_a_build(site):
    """On lines, as env build does: each builds what was never built."""
    site.index.add(*(wheel(name) for name in ("lined-one", "lined-two", "lined-three")))
    built = site("env", "build", "lined", "--pip", "lined-one", timeout=120)
    shown = stages(built.stderr)
    assert built.returncode == 0 and shown[0] == "carrel: making the environment" and len(shown) > 3, built.stderr
    made = site("create", "lined", "--pip", "lined-two", timeout=120)
    assert (made.returncode, made.stdout, stages(made.stderr)) == (0, "lined\n", shown), made.stderr
    more = site("install", "lined", "lined-three", timeout=120)
    assert (more.returncode, more.stdout) == (0, "+ lined-three 1.0\n") and stages(more.stderr) == shown, more.stderr
    assert site("rm", "lined").returncode == 0


@pytest.mark.once
def test_a_bar_shows_how_many_packages_are_there(site):
    site.index.add(wheel("barred", requires=["barred-slow"]), wheel("barred-slow"))
    site.index.misbehave("/files/barred_slow", "held")
    events = Events(site, "/v1/events")
    try:
        with terminal(site, "create", "barred", "--pip", "barred") as term:
            term.expect(r"installing \[[#.]+\] \d/2 packages")
            site.index.freed.set()
            last = term.rest()
            assert term.process.returncode == 0 and last.endswith("\r\x1b[Kbarred\r\n"), last
        seen = [event["data"] for event in events.until("workspace.ready") if event["event"] == "environment.progress"]
    finally:
        site.index.behave()
        events.close()
    assert {(event["name"], len(event["request_id"])) for event in seen} == {("barred", 20)}, seen
    assert {"stage": "installing_deps", "packages": 2}.items() <= next(e for e in seen if e["stage"] == "installing_deps").items()
    assert seen[0]["stage"] == "building_env" and seen[-1]["stage"] == "ready", seen
    assert site("rm", "barred").returncode == 0


def test_only_listed_indexes_are_used(site):
    """registries of sources.json bound the index of builds; a manager that is disabled or not listed installs nothing."""
    def pip(**more):
        return {"package_managers": {"pip": more}}

    def create(name, sources, **body):
        return site.post("/v1/workspaces", {"name": name, "sources": sources, **body})

    refused = [(pip(registries=["https://index.example/simple"]), site.index.url), (pip(registries=[]), "leaves no index"),
               (pip(enabled=False), "package_managers.pip is disabled"), ({"package_managers": {"npm": {}}}, "doesn't list 'pip'")]
    before = len(site.index.requests)
    for sources, why in refused:
        answer = create("bound", sources, python={"packages": ["gamma"]})
        assert answer.status == 403 and answer.json()["code"] == "denied" and why in answer.json()["detail"], (sources, answer)
        assert create("bound", sources).status == 201  # without packages there is nothing to build
        told = site.post("/v1/workspaces/bound/packages", {"packages": ["gamma"]})
        assert told.status == 403 and why in told.json()["detail"], (sources, told)
        assert site("rm", "bound").returncode == 0
    assert len(site.index.requests) == before
    assert create("bound", pip(registries=[site.index.url]), python={"packages": ["gamma"]}).status == 201
    assert python(site, "bound", "import gamma; print(1)") == "1\n"
    assert site("rm", "bound").returncode == 0
    done = site("env", "build", "x", "--pip", "gamma", "--index", site.index.url, "--allow-index", "https://index.example/")
    assert done.returncode == 125 and f"index {site.index.url} is not among the allowed ones" in done.stderr, done



@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_install_changes_nothing_and_leaves_nothing_in_use(site, signo):
    """The index hangs: only an end of the build lets the next install begin before the build gives up."""
    with created(site, "--pip", "beta") as name:
        before = packages(site, name)
        site.index.misbehave("/simple/alpha/", "hang")
        try:
            site.index.requests.clear()
            with subprocess.Popen([site.path, "install", name, "alpha"], env=site.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) as process:
                assert eventually(lambda: "/simple/alpha/" in site.index.requests)
                process.send_signal(signo)
                out, said = process.communicate(timeout=60)
            assert (process.returncode, out) == (130, "") and "carrel: interrupted: the change of packages is canceled" in said, said
            said = set()        # the build takes a moment to end; what is in use refuses the change, and says by what

            def is_free():
                done = site("update", name, "--memory", "1G")
                said.add(done.stderr.partition("\n")[0])
                return done.returncode == 0
            assert eventually(is_free, 30), said
            assert said <= {"", f"carrel: workspace '{name}' is in use: packages of it are being installed or removed"}, said
            assert packages(site, name) == before
        finally:
            site.index.behave()
        assert install(site, name, "space-one")["installed"]      # not alpha: the next test would find it installed
