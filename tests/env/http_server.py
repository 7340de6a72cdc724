"""HTTP servers on 127.0.0.1 for tests: they note what they are asked, and want a password if they are told to."""
import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 600       # a client that waits for its turn on a busy machine keeps its connection
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def send(self, status, mime, length, **headers):
        """The head of an answer; true when a body follows."""
        self.send_response(status)
        for name, value in {"Content-Type": mime, "Content-Length": str(length), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        return self.command != "HEAD"


class QuietServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, *_):
        pass        # a client that went away is no news


class Site:
    """Serves while it is entered; handler.server.site is it."""

    def __init__(self, handler):
        self.requests = []
        self.door = None        # what Authorization must say
        self.server = QuietServer(("127.0.0.1", 0), handler)
        self.server.site = self
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def admits(self, handler):
        return not self.door or handler.headers.get("Authorization") == self.door
