"""Runs the tests of a tool twice, in order and in reverse order, each time in a process and a directory of its own.

Exit codes: 0 both have passed, 1 a test has failed, 5 there is no test, 6 they pass in one order alone, 7 no verdict.
"""
import os
import shutil
import sys
import tempfile

import pytest

FAILED, NONE, ORDER, LOST = 1, 5, 6, 7


class Plugin:
    def __init__(self, is_reverse):
        self.is_reverse = is_reverse
        self.passed = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.is_reverse:
            items.reverse()

    def pytest_runtest_logreport(self, report):
        self.passed += report.when == "call" and report.passed


def run(is_reverse, verdict):
    """In a child: the exit code of pytest, or NONE when nothing has passed, is written to `verdict`."""
    here = tempfile.mkdtemp(prefix="run-")
    for name in ("tool.py", "test_tool.py"):
        shutil.copy(os.path.join("/workspace", name), here)
    os.chdir(here)
    sys.path[0] = here
    plugin = Plugin(is_reverse)
    code = int(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir=.", "test_tool.py"], [plugin]))
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(verdict, b"%d" % (NONE if code == 0 and not plugin.passed else code))


def main():
    codes = []
    sys.dont_write_bytecode = True
    for is_reverse in (False, True):
        print("--- in reverse order" if is_reverse else "--- in order", flush=True)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            try:
                run(is_reverse, writer)
            finally:
                os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        os.set_blocking(reader, False)
        try:
            code = os.read(reader, 16)
        except BlockingIOError:  # a process that a test left has the pipe
            code = b""
        os.close(reader)
        codes.append(int(code) if code.isdigit() else LOST)
        if codes[-1]:
            break
    if codes == [0, 0]:
        return 0
    if codes[-1] in (NONE, LOST):
        return codes[-1]
    return ORDER if len(codes) == 2 else FAILED


sys.exit(main())
