"""A server that answers as a test tells it to, and remembers what it was asked."""
import contextlib
import socket
import threading
from typing import Callable, Iterator, List, Tuple

Answer = Callable[[socket.socket, int], None]


class Server:
    def __init__(self, answers: List[bytes]) -> None:
        self.answers = answers  # one for each request; b"": the connection is cut
        self.requests: List[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]

    def serve(self) -> None:
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            with connection:
                self.requests.append(read_request(connection))
                answer = self.answers.pop(0) if self.answers else b""
                if answer:
                    connection.sendall(answer)


def read_request(connection: socket.socket) -> str:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            break
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    size = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < size:
        body += connection.recv(65536)
    return (head + b"\r\n\r\n" + body).decode()


def response(status: int, body: str, kind: str = "application/json", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(body.encode())}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


@contextlib.contextmanager
def serving(*answers: bytes) -> Iterator[Server]:
    server = Server(list(answers))
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        thread.join(60)


def header(request: str, name: str) -> Tuple[str, ...]:
    return tuple(line.split(":", 1)[1].strip() for line in request.split("\r\n") if line.lower().startswith(name.lower() + ":"))
