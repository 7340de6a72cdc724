"""Runs the tests of a tool twice, in order and in reverse order, or the tests of code once. Each run is a process of its own.

Exit codes: 0 all have passed, 1 a test has failed, 5 there is no test, 6 they pass in one order alone, 7 a test has ended the process,
8 a test has ended the run before the others, 9 the tool has no function run.
"""
import binascii
import importlib
import signal
import tempfile
import traceback

import pytest

FAILED, NONE, ORDER, LOST, STOPPED, UNCALLABLE = 1, 5, 6, 7, 8, 9


class Plugin:
    def __init__(self, is_reverse):
        self.is_reverse = is_reverse
        self.wanted, self.ended, self.passed = set(), set(), 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.is_reverse:
            items.reverse()

    def pytest_collection_finish(self, session):
        self.wanted = {item.nodeid for item in session.items}

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed
        if report.when == "teardown":
            self.ended.add(report.nodeid)

    def judge(self, code):
        if code:
            return code
        return NONE if not self.passed else STOPPED if self.wanted - self.ended else 0


def judge_module():
    """What a call needs, of the module that the tests have imported; tests may pass without it."""
    try:
        return 0 if callable(getattr(importlib.import_module("tool"), "run", None)) else UNCALLABLE
    except BaseException:
        traceback.print_exc()
        return FAILED


def run(here, tests, is_reverse, is_tool, verdict):
    """In a child: its number and the verdict are written to `verdict`, unless a test ends the process."""
    child = os.getpid()
    os.chdir(here)
    sys.path.insert(0, here)
    plugin = Plugin(is_reverse)
    # No settings but these: neither those of a directory above nor what an earlier run has left.
    code = int(pytest.main(["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir=.", "--confcutdir=.", tests], [plugin]))
    code = plugin.judge(code) or (judge_module() if is_tool else 0)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.getpid() == child:  # not of a process that a test has forked
        os.write(verdict, b"%d %d" % (child, code))


def run_apart(here, tests, is_reverse, is_tool):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        try:
            if is_tool:
                keep_environment()
            run(here, tests, is_reverse, is_tool, writer)
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    os.set_blocking(reader, False)
    try:
        words = os.read(reader, 64).split()
    except BlockingIOError:  # a process that a test has left has the pipe
        words = []
    os.close(reader)
    return int(words[1]) if len(words) == 2 and words[0] == b"%d" % child and words[1].isdigit() else LOST


def end_all():
    """What a test has left running is no part of the next run."""
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass


def write(here, name, text):
    with open(os.path.join(here, name), "wb") as out:
        out.write(binascii.a2b_base64(text))


def test_code(tests):
    """The tests lie beside the code, which has been run."""
    sys.exit(run_apart(os.getcwd(), binascii.a2b_base64(tests).decode(), False, False))


def test_tool(code, tests):
    codes = []
    for is_reverse in (False, True):
        print("--- in reverse order" if is_reverse else "--- in order", flush=True)
        here = tempfile.mkdtemp(prefix="run-")
        write(here, "tool.py", code)
        write(here, "test_tool.py", tests)
        codes.append(run_apart(here, "test_tool.py", is_reverse, True))
        end_all()
        if codes[-1]:
            break
    if codes == [0, 0]:
        sys.exit(0)
    if codes[-1] in (NONE, LOST, STOPPED, UNCALLABLE):
        sys.exit(codes[-1])
    sys.exit(ORDER if len(codes) == 2 else FAILED)


