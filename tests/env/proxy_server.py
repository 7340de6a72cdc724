"""An HTTP proxy on 127.0.0.1 that takes CONNECT alone, for tests: it notes what it is asked."""
import base64
import contextlib
import socket
import threading


class Proxy:
    """`credentials`: "user:password" that it wants; `answer`: what it says instead of connecting."""

    def __init__(self, credentials=None, answer=None):
        self.credentials, self.answer = credentials, answer
        self.asked = []         # "host:port" of each CONNECT
        self.server = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.host = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.handle, args=(self.server.accept()[0],), daemon=True).start()

    def handle(self, client):
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                more = client.recv(4096)
                if not more:
                    return
                head += more
            lines = head.decode().split("\r\n")
            method, target, _ = lines[0].split()
            assert method == "CONNECT", lines[0]
            wanted = self.credentials and "Basic " + base64.b64encode(self.credentials.encode()).decode()
            if wanted and f"Proxy-Authorization: {wanted}" not in lines:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            self.asked.append(target)
            if self.answer:
                client.sendall(self.answer)
                return
            host, _, port = target.rpartition(":")
            with socket.create_connection((host, int(port)), 20) as upstream:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=self.copy, args=(upstream, client), daemon=True)
                back.start()
                self.copy(client, upstream)
                back.join()

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)
