"""The judge of commands against what they run: a part of `make test-judge`, always the same one."""
# security: policy
import pathlib
import sys

import pytest
from harness import CARREL, TREE

sys.path.insert(0, str(pathlib.Path(TREE) / "tests/judge"))
import compare  # noqa: E402

pytestmark = pytest.mark.once


def test_no_command_that_is_allowed_runs_or_writes_what_is_denied(tmp_path):
    tmp_path.chmod(0o755)
    maker = compare.Maker(1, compare.options_of_help())
    bad, allowed, caught, _ = compare.compare(CARREL, compare.build_recorder(tmp_path), maker.commands(400))
    assert bad == []
    assert allowed > 50 and caught > 0    # neither side is empty


def test_what_is_compared_would_be_seen(tmp_path):
    tmp_path.chmod(0o755)
    commands = ["factor 7", "env -ua factor", "sh -c factor", "echo x > /tmp/guard/x", "ls", "find . -exec factor {} +"]
    assert [any(result) for result in compare.ran(CARREL, compare.build_recorder(tmp_path), [["sh", one] for one in commands])] == [
        True, True, True, True, False, True]
