"""A WebSocket (RFC 6455) of a client, without connection: bytes in, messages out."""
from __future__ import annotations

import base64
import hashlib
import os
import struct
from typing import Dict, Generator, Mapping, NamedTuple, Optional, Union

from .errors import ProtocolError

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MESSAGE_MOST = 16 << 20
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Closed(NamedTuple):
    """The other side has closed."""

    code: int
    reason: str


class Ping(NamedTuple):
    """To be answered by `pong`."""

    data: bytes


Message = Union[str, bytes, Ping, Closed]


def handshake(protocol: str) -> Dict[str, str]:
    """The headers that ask for an upgrade."""
    return {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Protocol": protocol}


def check_handshake(sent: Mapping[str, str], received: Mapping[str, str]) -> None:
    expected = base64.b64encode(hashlib.sha1(sent["Sec-WebSocket-Key"].encode() + GUID).digest()).decode()
    if received.get("sec-websocket-accept") != expected:
        raise ProtocolError("the answer to a WebSocket handshake has a wrong Sec-WebSocket-Accept")
    if received.get("sec-websocket-protocol") != sent["Sec-WebSocket-Protocol"]:
        raise ProtocolError(f"the daemon doesn't speak {sent['Sec-WebSocket-Protocol']}")


def masked(data: bytes, key: bytes) -> bytes:
    """XOR with the key, as one large number: a loop over bytes takes a hundred times as long."""
    if not data:
        return b""
    mask = (key * (len(data) // 4 + 1))[:len(data)]
    return (int.from_bytes(data, "little") ^ int.from_bytes(mask, "little")).to_bytes(len(data), "little")


def frame(kind: int, data: bytes) -> bytes:
    """One message in one frame, masked, as a client must."""
    size = len(data)
    key = os.urandom(4)
    if size < 126:
        head = struct.pack("!BB", 0x80 | kind, 0x80 | size)
    elif size < 65536:
        head = struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
    return head + key + masked(data, key)


def close_frame(code: int = 1000) -> bytes:
    return frame(CLOSE, struct.pack("!H", code))


class Reader:
    """Takes bytes from the server, gives messages."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._parts = bytearray()
        self._kind: Optional[int] = None  # of the message whose frames come

    def feed(self, data: bytes) -> Generator[Message, None, None]:
        self._rest += data
        while (message := self._next()) is not None:
            if message is not _MORE:
                yield message

    def _next(self) -> Optional[Message]:
        rest = self._rest
        if len(rest) < 2:
            return None
        first, second = rest[0], rest[1]
        if first & 0x70 or second & 0x80:
            raise ProtocolError("a WebSocket frame with reserved bits, or masked by the server")
        size, at = second & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(rest) < 2 + width:
                return None
            size, at = int.from_bytes(rest[2:2 + width], "big"), 2 + width
        if size + len(self._parts) > MESSAGE_MOST:
            raise ProtocolError(f"a WebSocket message of more than {MESSAGE_MOST >> 20} MB")
        if len(rest) < at + size:
            return None
        data = bytes(rest[at:at + size])
        del rest[:at + size]
        return self._take(first & 0x0F, bool(first & 0x80), data)

    def _take(self, kind: int, is_last: bool, data: bytes) -> Message:
        if kind >= CLOSE:
            if not is_last or len(data) > 125:
                raise ProtocolError("a control frame of a WebSocket that is fragmented or too long")
            return self._control(kind, data)
        if (kind == 0) == (self._kind is None) or kind > BINARY:
            raise ProtocolError(f"an unexpected WebSocket frame of kind {kind}")
        self._kind = kind or self._kind
        self._parts += data
        if not is_last:
            return _MORE
        whole, kind = bytes(self._parts), self._kind or BINARY
        self._parts.clear()
        self._kind = None
        if kind == BINARY:
            return whole
        try:
            return whole.decode()
        except UnicodeDecodeError:
            raise ProtocolError("a WebSocket text message that is not UTF-8") from None

    def _control(self, kind: int, data: bytes) -> Message:
        if kind == PING:
            return Ping(data)
        if kind == PONG:
            return _MORE
        code = struct.unpack("!H", data[:2])[0] if len(data) >= 2 else 1005
        return Closed(code, data[2:].decode(errors="replace"))


_MORE: Message = Ping(b"\0nothing yet")  # by identity: a frame that is no message of its own
