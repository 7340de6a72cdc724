"""A small WebSocket client on a plain socket: it can also break the protocol."""
import base64
import contextlib
import hashlib
import json
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
PROTOCOL = "carrel.exec.v1"
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(opcode, data=b"", fin=True, mask=b"\1\2\3\4", length=None, reserved=0):
    """One frame as a client sends it; mask None: as it may not. length: what its head says."""
    length = len(data) if length is None else length
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    bit = 0x80 if mask else 0
    if length < 126:
        head += bytes([bit | length])
    elif length < 1 << 16:
        head += bytes([bit | 126]) + struct.pack("!H", length)
    else:
        head += bytes([bit | 127]) + struct.pack("!Q", length)
    if not mask:
        return head + data
    key = (mask * (len(data) // 4 + 1))[:len(data)]
    masked = int.from_bytes(data, "big") ^ int.from_bytes(key, "big")
    return head + mask + masked.to_bytes(len(data), "big")


class Refused(Exception):
    """The handshake was answered with something else than 101."""

    def __init__(self, status, headers, body):
        super().__init__(status, body)
        self.status, self.headers, self.body = status, headers, body


class WebSocket:
    def __init__(self, daemon, path, protocols=(PROTOCOL,), headers=(), timeout=60):
        connection = daemon.connection(timeout=timeout)
        connection.connect()
        self.sock, self.early, self.code, self.reason = connection.sock, b"", None, None
        key = base64.b64encode(os.urandom(16))
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: keep-alive, Upgrade",
                 f"Sec-WebSocket-Key: {key.decode()}", "Sec-WebSocket-Version: 13", *headers]
        if protocols:
            lines.append("Sec-WebSocket-Protocol: " + ", ".join(protocols))
        self.sock.sendall("\r\n".join(lines + ["", ""]).encode())
        while b"\r\n\r\n" not in self.early:
            self.fill()
        head, self.early = self.early.split(b"\r\n\r\n", 1)
        first, *rest = head.decode().split("\r\n")
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
        if " 101 " not in first:
            body = self.take(int(self.headers.get("content-length", 0)))
            self.sock.close()
            raise Refused(int(first.split()[1]), self.headers, json.loads(body or b"null"))
        wanted = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        assert self.headers["sec-websocket-accept"] == wanted, self.headers
        assert self.headers["sec-websocket-protocol"] == PROTOCOL, self.headers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    # ---- out ----

    def send(self, data):
        self.sock.sendall(data)

    def text(self, kind, **members):
        self.send(frame(TEXT, json.dumps({"type": kind, **members}).encode()))

    def start(self, *argv, **members):
        self.text("start", **({"argv": argv} if argv else {}), **members)
        return self

    def stdin(self, data):
        self.send(frame(BINARY, b"\0" + data))

    def close(self, code=1000):
        self.send(frame(CLOSE, struct.pack("!H", code)))

    # ---- in ----

    def fill(self):
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError(self.early)
        self.early += data

    def take(self, size):
        while len(self.early) < size:
            self.fill()
        data, self.early = self.early[:size], self.early[size:]
        return data

    def frame(self):
        """The next frame: its opcode and data."""
        first, length = self.take(2)
        assert first & 0x70 == 0 and length < 128, "reserved bits, or a mask"
        if length == 126:
            length, = struct.unpack("!H", self.take(2))
        elif length == 127:
            length, = struct.unpack("!Q", self.take(8))
        return first & 15, self.take(length)

    def message(self):
        """The next message: an object, or (stream, bytes). None: the daemon has closed, with self.code."""
        while True:
            opcode, data = self.frame()
            if opcode == PING:
                self.send(frame(PONG, data))
            elif opcode == TEXT:
                return json.loads(data)
            elif opcode == BINARY:
                return data[0], data[1:]
            elif opcode == CLOSE:
                self.code, = struct.unpack("!H", data[:2]) if data else (None,)
                self.reason = data[2:].decode()
                with contextlib.suppress(OSError):
                    self.send(frame(CLOSE, data[:2]))
                return None

    def until(self, kind):
        """The next object of that type; output before it is kept in self.output."""
        self.output = {1: b"", 2: b""}
        while True:
            got = self.message()
            assert got is not None, f"closed with {self.code} {self.reason!r} before {kind!r}"
            if isinstance(got, tuple):
                self.output[got[0]] += got[1]
            elif got["type"] == kind:
                return got
            else:
                assert got["type"] not in ("error", "exit"), got

    def seen(self, end):
        """What comes on stdout up to these bytes; nothing else may come."""
        data = b""
        while not data.endswith(end):
            stream, piece = self.message()
            assert stream == 1, piece
            data += piece
        return data

    def closing(self):
        """What comes up to the Close of the daemon, after which it ends the connection."""
        messages = []
        while (got := self.message()) is not None:
            messages.append(got)
        try:
            while self.sock.recv(4096):
                pass
        except ConnectionError:
            pass
        return messages
