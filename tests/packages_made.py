"""Agent packages for tests, made in memory."""
import hashlib
import io
import zipfile

SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == '/crash':
            os._exit(3)
        body = (os.environ.get('SAYS', 'hello') + ' ' + self.path + ' VERSION').encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        print('served', self.path, flush=True)
print('server of VERSION begins', flush=True)
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
"""

FASTAPI = """
import os
from fastapi import FastAPI
app = FastAPI()
@app.get('/healthz')
def health():
    return {'ok': True}
@app.get('/version')
def version():
    import fastapi
    return {'version': 'VERSION', 'fastapi': fastapi.__version__, 'python': os.sys.prefix}
"""


def make(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            # Of 1980: the same bytes each time.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def plain(version="1.0.0", rest="  command: python3 src/server.py\n", more="", server=SERVER):
    """A package without requirements."""
    return make({"agent.yaml": f"name: greeter\nversion: {version}\nrest:\n{rest}{more}",
                 "src/server.py": server.replace("VERSION", version), "ui/index.html": f"<h1>{version}</h1>"})


def sha256(data):
    return hashlib.sha256(data).hexdigest()


GRPC = """
import os
from concurrent import futures
import grpc
from grpc_health.v1 import health, health_pb2_grpc
def serve():
    server = grpc.server(futures.ThreadPoolExecutor(4))
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    server.add_insecure_port('127.0.0.1:' + os.environ['PORT'])
    server.start()
    print('grpcio', grpc.__version__, flush=True)
    return server
"""


def grpc(version):
    """A package whose A2A surface is a gRPC server with the health service, of that version of grpcio."""
    return make({"agent.yaml": "name: greeter\nversion: 1.0.0\na2a: {module: 'server:serve', health: grpc}\n",
                 "requirements.txt": f"grpcio=={version}\ngrpcio-health-checking=={version}\n", "src/server.py": GRPC})
