"""/openapi.json is true: checked by a validator, and by Schemathesis, which asks for everything it says in ways nobody would.

Both are programs of others, at a pinned version: tools/install-venv openapi."""
# security: doors
import asyncio
import contextlib
import json
import os
import subprocess
import threading

import pytest

from harness import programs_of
from rest import created

pytestmark = [pytest.mark.once, pytest.mark.shipped]

# Not: positive_data_acceptance (a schema can't say which commands there are), ensure_resource_availability (a key of
# idempotency gives the answer of a workspace that may be gone by then).
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
          "response_schema_conformance", "negative_data_rejection", "missing_required_header", "unsupported_method",
          "allow_header_conformance", "use_after_free", "ignored_auth")

CONFIG = """
base-url = "{url}"
[generation]
deterministic = true
database = "none"
max-examples = {examples}
allow-x00 = true
[phases.examples]
enabled = false
[phases.stateful]
enabled = false
[[operations]]
include-path-regex = "/(ports|rest|a2a|ui)/"
enabled = false
[[operations]]
include-path-regex = "^/v1/workspaces/\\\\{{id\\\\}}"
exclude-operation-id = "removeWorkspace"
parameters = {{ "path.id" = "{workspace}" }}
[[operations]]
include-path-regex = "^/v1/execs/\\\\{{id\\\\}}"
parameters = {{ "path.id" = "{exec}" }}
"""

# An environment takes seconds to build: what would be a good request for one is asked for without it. A command is
# given a second, one who waits for an exec no time; nothing is installed, archived or forked a hundred times. The workspace and the exec that all else is tried on must live on.
HOOKS = """
import os
import schemathesis

SMALL = 128

@schemathesis.hook
def before_load_schema(context, raw_schema):
    # Without bounds that take seconds to make a value for: test_large_bounds_hold tries those.
    def walk(value):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, (dict, list)):
                walk(item)
        for bound in ("maxLength", "maxItems", "maxProperties"):
            if isinstance(value, dict) and isinstance(value.get(bound), int) and value[bound] > SMALL:
                del value[bound]
    walk(raw_schema)

@schemathesis.hook
def before_call(context, case, kwargs):
    is_good = case.meta is None or case.meta.generation.mode.is_positive
    if is_good and isinstance(case.body, dict):
        for member in ("python", "node", "context", "environment"):
            case.body.pop(member, None)
        if "argv" in case.body or "command" in case.body:
            case.body.pop("timeout", None)
            case.body["timeout_ms"] = 1000
        if "package" in case.body:
            case.body["package"] = "x (this is no requirement)"
            case.body["requires"] = []
        elif "code" in case.body and case.path == "/v1/tools":
            case.body |= {"tests": "exit", "requires": [], "network": {}}
        elif "code" in case.body:
            for member in ("timeout", "tests", "tests_file", "packages", "network"):
                case.body.pop(member, None)
            case.body["code"] = "exit"
            case.body["timeout_ms"] = 1000
        if "signal" in case.body:
            case.body["signal"] = "WINCH"
        if "count" in case.body:
            case.body["count"] = 1
        if case.path.endswith("/packages"):
            case.body["packages"] = ["this is no requirement"]
        for member in ("force", "when_busy"):
            case.body.pop(member, None)
    for name in ("follow", "wait", "archive"):
        if case.query:
            case.query.pop(name, None)
    if case.method == "DELETE" and case.path_parameters.get("id") == os.environ["KEPT"] and "path" not in case.path_parameters:
        case.path_parameters["id"] = "another"
"""


@pytest.fixture(scope="session")
def tools():
    return programs_of("openapi")


@contextlib.contextmanager
def over_tcp(path):
    """A port of this machine that leads to the unix socket, byte by byte."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    port = []

    async def copy(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        with contextlib.suppress(OSError):
            inner_reader, inner_writer = await asyncio.open_unix_connection(path)
            await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))
        writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port.append(server.sockets[0].getsockname()[1])
        ready.set()

    def run():
        loop.create_task(main())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield f"http://127.0.0.1:{port[0]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_the_document_is_valid(daemon, tools, tmp_path):
    document = tmp_path / "openapi.json"
    document.write_bytes(daemon.get("/openapi.json").body)
    done = subprocess.run([tools / "openapi-spec-validator", document], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# Every example against its schema; of a stream, the data of its events.
EXAMPLES = """
import json, sys
from jsonschema import Draft202012Validator

document = json.load(open(sys.argv[1]))
count = 0

def check(value, schema, where):
    global count
    count += 1
    for error in Draft202012Validator({**schema, "components": document["components"]}).iter_errors(value):
        sys.exit(f"{where}: {error.json_path}: {error.message}")

def contents(operation):
    yield from operation.get("requestBody", {}).get("content", {}).items()
    for answer in operation["responses"].values():
        yield from answer.get("content", {}).items()

for path, operations in document["paths"].items():
    for operation in operations.values():
        for type, content in contents(operation):
            if "example" not in content:
                continue
            events = [content["example"]]
            if type == "text/event-stream":
                events = [json.loads(line[6:]) for line in content["example"].splitlines() if line.startswith("data: ")]
            for value in events:
                check(value, content["schema"], operation["operationId"])
for response in document["components"]["responses"].values():
    for content in response["content"].values():
        check(content["example"], content["schema"], "a problem")
print(count)
"""


def test_examples_fit_their_schemas(daemon, tools, tmp_path):
    document = tmp_path / "openapi.json"
    document.write_bytes(daemon.get("/openapi.json").body)
    done = subprocess.run([tools / "python", "-c", EXAMPLES, document], capture_output=True, text=True)
    assert done.returncode == 0 and int(done.stdout) > 100, done.stdout + done.stderr


def test_every_path_is_documented_with_its_methods(daemon):
    document = daemon.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        if "{port}" in path or path.endswith(("/rest/{path}", "/a2a/{path}", "/ui/{path}")):  # any method: it is up to the server
            continue
        answer = daemon.request("TRACE", path.replace("{id}", "x").replace("{path}", "x"))
        assert answer.status == 405
        allowed = {method.strip().lower() for method in answer.headers["Allow"].split(",")}
        assert set(operations) <= allowed <= set(operations) | {"head"}, path


# Schema, member, and the request in which a value of that member is sent. Those that are larger than Schemathesis is told.
LARGE = [
    ("TemplateAdded", "yaml", "/v1/templates", lambda value: {"yaml": value}),
    ("TemplateWanted", "description", "/v1/templates", lambda value: {"template": {"name": "large", "description": value}}),
    ("WorkspaceWanted", "env", "/v1/workspaces", lambda value: {"env": value}),
    ("WorkspaceWanted", "dir", "/v1/workspaces", lambda value: {"dir": "/" + value[1:]}),
    ("WorkspaceWanted", "from", "/v1/workspaces", lambda value: {"from": value}),
    ("Python", "version", "/v1/workspaces", lambda value: {"python": {"version": value}}),
    ("Python", "requirements", "/v1/workspaces", lambda value: {"python": {"requirements": value}}),
    ("Python", "packages", "/v1/workspaces", lambda value: {"python": {"packages": value}}),
    ("Python", "constraints", "/v1/workspaces", lambda value: {"python": {"constraints": value}}),
    ("Node", "packages", "/v1/workspaces", lambda value: {"node": {"packages": value}}),
    ("Node", "package_json", "/v1/workspaces", lambda value: {"node": {"package_json": value}}),
    ("Node", "lock", "/v1/workspaces", lambda value: {"node": {"package_json": "{}", "lock": value}}),
    ("SnapshotWanted", "note", "/v1/workspaces/desk/snapshots", lambda value: {"note": value}),
    ("PackagesWanted", "packages", "/v1/workspaces/desk/packages", lambda value: {"packages": value}),
    ("CodeWanted", "code", "/v1/code", lambda value: {"code": value}),
    ("CodeWanted", "tests", "/v1/code", lambda value: {"code": "1", "tests": value}),
    ("CodeWanted", "env", "/v1/code", lambda value: {"code": "1", "env": value}),
    ("ToolWanted", "code", "/v1/tools", lambda value: {"name": "x", "tests": "1", "code": value}),
    ("ToolWanted", "tests", "/v1/tools", lambda value: {"name": "x", "code": "1", "tests": value}),
    ("ToolWanted", "description", "/v1/tools", lambda value: {"name": "x", "code": "1", "tests": "1", "description": value}),
    ("ExecWanted", "cwd", "/v1/workspaces/desk/exec", lambda value: {"argv": ["true"], "cwd": value}),
    ("ExecWanted", "env", "/v1/workspaces/desk/exec", lambda value: {"argv": ["true"], "env": value}),
    ("ExecWanted", "argv", "/v1/workspaces/desk/exec", lambda value: {"argv": value}),
]


def test_large_bounds_hold(daemon):
    schemas = daemon.get("/openapi.json").json()["components"]["schemas"]
    make = {"maxLength": lambda n: "#" * n, "maxItems": lambda n: ["a"] * n, "maxProperties": lambda n: {f"A{i}": "" for i in range(n)}}
    with created(daemon, name="desk"):
        for schema, member, path, body in LARGE:
            [(bound, most)] = [(name, schemas[schema]["properties"][member][name]) for name in make if name in schemas[schema]["properties"][member]]
            answer = daemon.post(path, body(make[bound](most + 1)))
            assert answer.status in (400, 413), (schema, member, answer)


def test_schemathesis_finds_no_server_error_and_no_undocumented_answer(daemon, tools, tmp_path):
    (tmp_path / "hooks.py").write_text(HOOKS)
    with created(daemon) as workspace, over_tcp(str(daemon.socket)) as url:
        exec = daemon.post(f"/v1/workspaces/{workspace['id']}/exec", {"argv": ["cat"], "background": True, "open_stdin": True, "tty": True}).json()
        (tmp_path / "schemathesis.toml").write_text(CONFIG.format(
            url=url, workspace=workspace["id"], exec=exec["id"], examples=os.environ.get("SCHEMATHESIS_EXAMPLES", "1")))
        # Events have no end, and what has none can't be looked at whole.
        done = subprocess.run(
            [tools / "schemathesis", "--config-file", "schemathesis.toml", "run", url + "/openapi.json", "--checks", ",".join(CHECKS),
             "--exclude-operation-id", "events", "--exclude-operation-id", "workspaceEvents", "--no-color", "--continue-on-failure",
             "--request-timeout", "120", "--warnings", "off"],
            cwd=tmp_path, env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "KEPT": workspace["id"], "PYTHONPATH": str(tmp_path), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
            capture_output=True, text=True, timeout=1800)
        for left in daemon.get("/v1/workspaces?limit=1000").json()["items"]:
            daemon.delete(f"/v1/workspaces/{left['id']}")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert daemon.get("/readyz").status == 200 and "error" not in {line.split()[1] for line in daemon.log().splitlines() if len(line.split()) > 1}
