"""A daemon that also serves TCP: what its tests share."""
import contextlib
import http.client
import json
import re

from daemons import Answer


class Door:
    """The TCP address of a daemon. Asks with its token unless headers say otherwise."""

    def __init__(self, daemon, token, context=None):
        self.daemon, self.token, self.context = daemon, token, context

    def address(self, index=0):
        """(host, port), of the addresses that the last start has printed."""
        log = self.daemon.log()
        log = log[log.rindex("/carrel.sock"):]      # which is printed first
        found = re.findall(r'listening.*socket="?\[?([0-9a-f.:]+?)\]?:([0-9]+)"?[ \n]', log)
        return found[index][0], int(found[index][1])

    def connection(self, index=0, timeout=60):
        host, port = self.address(index)
        if self.context:
            return http.client.HTTPSConnection(host, port, timeout=timeout, context=self.context)
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, index=0, bearer=True):
        headers = dict(headers or {})
        if bearer:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        with contextlib.closing(self.connection(index)) as connection:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())

    def get(self, path, **how):
        return self.request("GET", path, **how)

    def post(self, path, body=None, **how):
        return self.request("POST", path, body, **how)


def open_door(daemon, *options, listen=("127.0.0.1:0",), context=None):
    """Makes a token, and serves anew: also at these addresses."""
    answer = daemon.post("/v1/tokens", {"scope": "admin", "name": "door"})
    assert answer.status == 201, answer
    daemon.stop_serving()
    daemon.log_path.write_text("")
    daemon.options += tuple(word for one in listen for word in ("--listen", one)) + options
    daemon.start_serving()
    return Door(daemon, answer.json()["text"], context)
