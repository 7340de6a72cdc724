"""The fixtures are in tests/daemons.py and tests/s3.py, which say what each is for."""
from daemons import daemon, furnished_home, make_daemon, nothing_survives, own_daemon, pytest_runtest_makereport  # noqa: F401
from s3 import bucket, far, near  # noqa: F401
