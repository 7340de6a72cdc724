"""A daemon on another machine, as the command line of this one sees it: a URL, a token, and a home that isn't the daemon's."""
import contextlib

from daemons import new_directory, remove
from harness import Carrel


class Far(Carrel):
    """As a function it is the CLI with that daemon. What else tests want of a daemon is the daemon's own."""

    def __init__(self, daemon, home, path=None, **env):
        super().__init__(home)
        self.daemon, self.path = daemon, str(path or self.path)
        self.env.update(env)

    def __getattr__(self, name):
        return getattr(self.daemon, name)


@contextlib.contextmanager
def far_from(daemon, url, token, path=None, **env):
    home = new_directory()
    try:
        yield Far(daemon, home, path, CARREL_HOST=url, CARREL_TOKEN=token, **env)
        assert not (home / "carrel/run/carrel.sock").exists(), "a daemon was started here"
    finally:
        remove(home)
