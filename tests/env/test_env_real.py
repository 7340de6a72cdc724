"""Real packages, from the index this host is configured for: they import, and run their basics. Each set is built once
for all workers; two that need it at once are two builders of one set."""
import json
import subprocess

import pytest
from envs import other_pythons

SETS = {
    "requests": ["requests"],
    "fastapi": ["fastapi", "uvicorn", "pydantic", "httpx"],
    "pandas": ["pandas", "numpy", "matplotlib"],
    "langgraph": ["langgraph", "langchain-core", "a2a-sdk"],
}
PROGRAMS = {
    "requests": """
        import http.server, threading, requests
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200); self.end_headers(); self.wfile.write(b'{"path": "%s"}' % self.path.encode())
            def log_message(self, *_): pass
        server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        answer = requests.get(f'http://127.0.0.1:{server.server_port}/hello', timeout=60)
        print(answer.status_code, answer.json()['path'])
        """,
    "fastapi": """
        import uvicorn
        from fastapi import FastAPI
        from fastapi.testclient import TestClient
        from pydantic import BaseModel
        class Item(BaseModel):
            name: str
            count: int = 1
        app = FastAPI()
        @app.post('/items/{number}')
        def create(number: int, item: Item): return {'number': number, 'name': item.name, 'count': item.count}
        client = TestClient(app)
        print(client.post('/items/7', json={'name': 'x'}).json(), client.post('/items/a', json={}).status_code)
        """,
    "uvicorn": """
        import asyncio, httpx, uvicorn
        async def app(scope, receive, send):
            await send({'type': 'http.response.start', 'status': 200, 'headers': []})
            await send({'type': 'http.response.body', 'body': b'served'})
        async def main():
            server = uvicorn.Server(uvicorn.Config(app, port=8123, log_level='error', lifespan='off'))
            task = asyncio.create_task(server.serve())
            while not server.started: await asyncio.sleep(0.01)
            async with httpx.AsyncClient() as client: print((await client.get('http://127.0.0.1:8123/')).text)
            server.should_exit = True
            await task
        asyncio.run(main())
        """,
    "pandas": """
        import pandas, numpy
        frame = pandas.DataFrame({'kind': ['a', 'b', 'a'], 'value': [1.5, 2.0, 3.5]})
        print(frame.groupby('kind')['value'].sum().to_dict(), float(numpy.linalg.det(numpy.eye(3))))
        frame.to_csv('out.csv', index=False)
        print(len(pandas.read_csv('out.csv')))
        """,
    "matplotlib": """
        import matplotlib
        matplotlib.use('Agg')
        import matplotlib.pyplot as plot, numpy
        x = numpy.linspace(0, 6, 100)
        plot.plot(x, numpy.sin(x)); plot.title('sine'); plot.savefig('plot.png')
        print('saved')
        """,
    "langgraph": """
        from typing import TypedDict
        from langchain_core.messages import AIMessage, HumanMessage
        from langchain_core.runnables import RunnableLambda
        from langgraph.graph import END, START, StateGraph
        import a2a.types
        class State(TypedDict):
            count: int
            messages: list
        graph = StateGraph(State)
        graph.add_node('think', lambda state: {'count': state['count'] + 1, 'messages': state['messages'] + [AIMessage('step')]})
        graph.add_edge(START, 'think')
        graph.add_conditional_edges('think', lambda state: END if state['count'] >= 3 else 'think')
        result = graph.compile().invoke({'count': 0, 'messages': [HumanMessage('go')]})
        print(result['count'], len(result['messages']), RunnableLambda(str.upper).invoke('done'))
        """,
}
OUTPUT = {
    "requests": "200 /hello\n", "fastapi": "{'number': 7, 'name': 'x', 'count': 1} 422\n", "uvicorn": "served\n",
    "pandas": "{'a': 5.0, 'b': 2.0} 1.0\n3\n", "matplotlib": "saved\n", "langgraph": "3 4 DONE\n",
}
NEEDS = {"uvicorn": "fastapi", "matplotlib": "pandas"}


def build(real, which, *args):
    return real.build(which, *(word for spec in SETS[which] for word in ("--pip", spec)), *args, timeout=400)


def runs(real, name, which, tmp):
    program = tmp / "program.py"
    program.write_text("\n".join(line[8:] for line in PROGRAMS[which].splitlines()))
    out = real.inside(name, "python", program.name, options=["--dir", tmp], timeout=120)
    assert out == OUTPUT[which]


# As a plain user, the set with compiled code and a server is enough.
def sets(names):
    return [name if name == "fastapi" else pytest.param(name, marks=pytest.mark.once) for name in names]


@pytest.mark.parametrize("which", sets(PROGRAMS))
def test_real_packages_run(real, tmp, which):
    found = build(real, NEEDS.get(which, which))
    runs(real, found["name"], which, tmp)
    if which == "matplotlib":
        assert (tmp / "plot.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_one_composed_of_what_is_there_names_the_index_too(real):
    first = build(real, "requests")
    second = real.build("composed", "--pip", "requests")
    assert first["indexes"] and second["indexes"] == first["indexes"]


@pytest.mark.parametrize("which", sets(SETS))
def test_real_packages_verify(real, which):
    name = build(real, which)["name"]
    assert real.json("verify", name, timeout=120)["ok"]
    assert "No broken requirements" in real.inside(name, "pip", "check")


@pytest.mark.skipif(not other_pythons(), reason="no other Python than /usr/bin/python3 that this user may run")
@pytest.mark.parametrize("which", sets(["requests", "fastapi", "uvicorn"]))
def test_real_packages_run_with_another_python(real, tmp, which):
    minor, path = other_python()
    found = build(real, NEEDS.get(which, which), "--python", path)
    assert found["python_version"].startswith(minor + ".") and found["name"].endswith(f"-py{minor}")
    runs(real, found["name"], which, tmp)


def other_python():
    """One that current packages are made for, if there is such a one."""
    found = other_pythons()
    return next(((minor, found[minor]) for minor in ("3.12", "3.13", "3.10") if minor in found), sorted(found.items())[-1])


def test_grpcio_of_two_versions_at_once(real):
    """The case the seed begins with."""
    script = ("import sys, grpc\nfrom concurrent import futures\nserver = grpc.server(futures.ThreadPoolExecutor(1))\n"
              "port = server.add_insecure_port('127.0.0.1:0'); server.start()\nprint(grpc.__version__, port > 0, flush=True)\nsys.stdin.read()\nserver.stop(None)")
    a = real.build("agent-a@1.0.0", "--pip", "grpcio==1.60.1", timeout=300)
    b = real.build("agent-b@1.0.0", "--pip", "grpcio==1.73.1", timeout=300)
    assert (a["installed_packages"]["grpcio"], b["installed_packages"]["grpcio"]) == ("1.60.1", "1.73.1")
    with real.start("run", "-i", "--env", a["name"], "--", "python", "-c", script, stdin=subprocess.PIPE) as one, \
            real.start("run", "-i", "--env", b["name"], "--", "python", "-c", script, stdin=subprocess.PIPE) as two:
        assert (one.stdout.readline(), two.stdout.readline()) == ("1.60.1 True\n", "1.73.1 True\n")
        one.communicate("", timeout=60), two.communicate("", timeout=60)
    # As the seed has it: by the path of each one's Python.
    for found, version in ((a, "1.60.1"), (b, "1.73.1")):
        done = subprocess.run([f"{found['path']}/bin/python", "-c", "import grpc; print(grpc.__version__)"], env=real.env,
                              capture_output=True, text=True, timeout=60)
        assert done.stdout == f"{version}\n", done.stderr


def test_a_further_environment_is_small(real):
    """Of the fastapi set: 64 kB at most."""
    first = build(real, "fastapi")
    found = real.build("further", *(word for spec in SETS["fastapi"] for word in ("--pip", spec)))
    assert found["layers"] == first["layers"], "composed from what is there"
    used = subprocess.run(["du", "-s", "-B1", found["path"]], capture_output=True, text=True).stdout
    assert int(used.split()[0]) <= 64 << 10


def test_the_default_index_is_written_down(real):
    """Whatever this host is configured for: an address, without credentials."""
    found = build(real, "requests")
    assert len(found["indexes"]) == 1 and "://" in found["indexes"][0] and "@" not in json.dumps(found["indexes"])
