"""The fixtures are in tests/daemons.py, which says what each is for."""
from daemons import nothing_survives  # noqa: F401
