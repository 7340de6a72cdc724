"""Tests that pretend, and tools that change themselves: no pass without a whole run, and what is called is what was tested."""
# security: services
import pytest
from daemons import furnished_daemon as daemon  # noqa: F401
from test_tools import call, forge  # noqa: F401

CODE = "left = 0\n\n\ndef run(**more):\n    return 1\n"
LUCKY = "import tool\n\n\ndef test_one():\n    tool.left = 1\n\n\ndef test_two():\n    assert tool.left\n"
# What a first run leaves where the second one, or pytest, might look for it.
SORTED = "def pytest_collection_modifyitems(items):\n    items.sort(key=lambda item: item.name)\n"
PLANTED = (f"import pathlib, sys\nfor place in ('/tmp', '/workspace', str(pathlib.Path(__file__).parent)):\n    pathlib.Path(place, 'conftest.py').write_text({SORTED!r})\n"
           "    for name in ('pytest.ini', 'tox.ini'):\n        pathlib.Path(place, name).write_text('[pytest]\\naddopts = -p conftest -k test_one\\n')\n")
TWO = "def test_a():\n    pass\n\n\ndef test_b():\n    {}\n\n\ndef test_c():\n    pass\n"


@pytest.mark.once
@pytest.mark.parametrize("tests, error", [
    ("import os\n\n\n" + TWO.format("os._exit(0)"), "has ended the process"),
    ("import os\n\n\n" + TWO.format("print('3 passed in 0.01s', flush=True); os._exit(0)"), "has ended the process"),
    ("import sys\n\n\n" + TWO.format("sys.exit(0)"), "tests have failed"),
    ("import sys\n\n\ndef test():\n    pass\n\n\nsys.exit(0)\n", "tests have failed"),
    ("import pytest\n\n\n" + TWO.format("pytest.exit('enough', returncode=0)"), "before all tests were run"),
    ("import pytest\n\npytest.exit('enough', returncode=0)\n", "tests have failed"),
    # A process that a test has forked passes, the process of the run itself doesn't.
    ("import os\n\n\ndef test():\n    child = os.fork()\n    if child:\n        os.waitpid(child, 0)\n    assert not child\n", "tests have failed"),
    ("import os\n\n\ndef test():\n    child = os.fork()\n    if child:\n        os.waitpid(child, 0)\n        os._exit(0)\n", "has ended the process"),
    ("import os, signal\n\n\ndef test():\n    os.kill(os.getppid(), signal.SIGKILL)\n", "ended: signaled"),
    (PLANTED + LUCKY, "in the reverse order"),
    ("import pathlib, sysconfig\n\n\ndef test():\n    pathlib.Path(sysconfig.get_path('purelib'), 'helper.py').write_text('x = 1')\n    import helper\n", "tests have failed"),
])
def test_a_run_that_was_cut_short_or_prepared_is_no_pass(forge, tests, error):  # noqa: F811
    made = forge("pretends", CODE, tests)
    assert made["state"] == "dormant" and error in made["error"], made


def test_what_the_first_run_leaves_is_gone_in_the_second(daemon, forge):  # noqa: F811
    code = "import os\n\n\ndef run():\n    return [name for name in os.listdir('/proc') if name.isdigit() and b'987654' in open(f'/proc/{name}/cmdline', 'rb').read()]\n"
    leave = "import subprocess\nimport pathlib\nimport tool\n\n\ndef test():\n    assert not tool.run()\n    subprocess.Popen(['sleep', '987654'], start_new_session=True)\n"
    # The module and the tests themselves are as they were, whatever was written over them.
    spoil = "    for place in (tool.__file__, __file__, '/workspace/tool.py', '/workspace/test_tool.py'):\n        pathlib.Path(place).write_text('raise SystemExit(1)')\n"
    assert forge("leaves", code, leave + spoil)["state"] == "active"
    assert call(daemon, "leaves")["result"] == []


def test_a_call_changes_nothing_of_what_is_called_next(daemon, forge):  # noqa: F811
    code = ("import glob, json, multiprocessing, os, pathlib, sysconfig\n\n\ndef run(do=None):\n    refused = []\n    if do == 'spoil':\n"
            "        pure = sysconfig.get_path('purelib')\n"
            "        for path in (__file__, '/workspace/tool.py', '/workspace/json.py', '/workspace/.tool/call.py', '/workspace/sitecustomize.py',\n"
            "                     pure + '/sitecustomize.py', pure + '/evil.pth', pure + '/pytest/__init__.py', '/env/pyvenv.cfg', '/workspace/.venv/evil'):\n"
            "            try:\n                os.makedirs(os.path.dirname(path), exist_ok=True)\n                pathlib.Path(path).write_text('import sys; sys.exit(3)')\n"
            "            except OSError:\n                refused.append(path.startswith(('/env', '/workspace/.venv')))\n"
            "        for path in glob.glob(pure + '/*.dist-info/RECORD') + ['/env/bin/python3']:\n            for change in (os.unlink, lambda one: os.rename(one, '/workspace/x'), lambda one: os.truncate(one, 0)):\n"
            "                try:\n                    change(path)\n                    refused.append(False)\n                except OSError:\n                    refused.append(True)\n"
            "        return all(refused) and len(refused)\n"
            "    if do == 'spawn':\n        with multiprocessing.get_context('spawn').Pool(1) as pool:\n            return pool.map(double, [1, 2])\n"
            "    return 'tested'\n\n\ndef double(x):\n    return 2 * x\n")
    tests = "import tool\n\n\ndef test():\n    assert tool.run() == 'tested' and tool.run('spawn') == [2, 4]\n"
    made = forge("spoiler", code, tests)
    assert made["state"] == "active", made
    spoiled = call(daemon, "spoiler", do="spoil")
    assert spoiled["ok"] and spoiled["result"] > 10, spoiled
    assert call(daemon, "spoiler")["result"] == "tested"
    assert call(daemon, "spoiler", do="spawn")["result"] == [2, 4]
    left = daemon.post(f"/v1/workspaces/{made['workspace']}/exec", {"command": "ls -d /tmp/tool-*"}).json()
    assert not left["stdout"], left
