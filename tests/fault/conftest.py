"""The fixtures are in tests/daemons.py, which says what each is for."""
from daemons import daemon, furnished_home, make_daemon, nothing_survives, own_daemon, pytest_runtest_makereport  # noqa: F401
