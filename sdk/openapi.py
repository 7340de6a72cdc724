"""/openapi.json of a carrel: fetch(carrel) starts a daemon on a home of its own, asks it, and ends it."""
import contextlib
import http.client
import json
import os
import socket
import subprocess
import tempfile


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def fetch(carrel):
    with tempfile.TemporaryDirectory(prefix="carrel-sdk.", dir="/var/tmp") as directory:
        home = os.path.join(directory, "home")
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": directory, "CARREL_HOME": home}
        subprocess.run([carrel, "serve", "--background"], env=env, check=True, stdin=subprocess.DEVNULL)
        try:
            with contextlib.closing(Connection(os.path.join(home, "run/carrel.sock"))) as connection:
                connection.request("GET", "/openapi.json")
                return json.loads(connection.getresponse().read())
        finally:
            subprocess.run([carrel, "serve", "--stop", "--force"], env=env, check=True, stdout=subprocess.DEVNULL)
