"""The fixtures are in tests/daemons.py, which says what each is for."""
import pathlib

from daemons import daemon, make_daemon, nothing_survives, own_daemon, pytest_runtest_makereport  # noqa: F401
from harness import SANITIZED

HERE = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(config, items):
    """Fault points are in the sanitised programs: that the shipped ones leave their tests out is no skip."""
    left_out = [item for item in items if HERE in item.path.parents and item.get_closest_marker("needs_faults") and not SANITIZED]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
