"""carrel case run: a suite side by side, its results on disk, interruptions, and what goes on after them."""
# security: services
import contextlib
import html.parser
import http.server
import json
import pathlib
import shutil
import signal
import subprocess
import threading
import xml.etree.ElementTree as xml

import pytest
from daemons import furnished_daemon as daemon, make_furnished as make_daemon  # noqa: F401
from harness import eventually
from rest import Events

TREE = pathlib.Path(__file__).parents[2]
CHEAP = "id: {name}\nharness: {harness}\ngraders:\n- {{type: command, run: 'test \"$(cat answer)\" = {name}'}}\n"


def write(directory, name, harness="printf $CARREL_CASE > answer", more=""):
    path = directory / f"{name}.yaml"
    path.write_text(CHEAP.format(name=name, harness=harness) + more)
    return path


@pytest.fixture
def start():
    """Starts commands, which are killed after the test if they are still there."""
    with contextlib.ExitStack() as stack:
        yield lambda daemon, *words: stack.enter_context(daemon.start(*words))


def workspaces(daemon):
    return [one["id"] for one in daemon.get("/v1/workspaces?label=carrel.service=cases").json()["items"]]


def lines(out):
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


@pytest.mark.once
def test_graders_that_did_not_pass_are_named(daemon, tmp_path):
    case = tmp_path / "named.yaml"
    case.write_text("id: named\nharness: 'true'\ngraders:\n- {type: command, name: good, run: 'true'}\n"
                    "- {type: command, name: '<style>', run: 'false'}\n- {type: command, run: 'exit 2'}\n")
    run = daemon("case", "run", "--out", tmp_path / "out", case)
    [result] = lines(tmp_path / "out")
    names = [step["name"] for step in result["steps"] if not step["passed"]]
    cause = "grader " + ", ".join(f"'{name}'" for name in names)
    assert run.returncode == 1 and len(names) == 2 and result["reason"] == "grader", run
    assert f"  by {cause}\n" in run.stderr and cause in run.stdout and "'&lt;style&gt;'" in (tmp_path / "out/report.html").read_text(), run


@pytest.mark.once
def test_a_suite_of_twenty_cases_two_at_once(daemon, tmp_path):
    cases = [write(tmp_path, f"case-{n:02}", *(["exit 3"] if n == 7 else [])) for n in range(20)]
    out = tmp_path / "out"
    run = daemon("case", "run", "-j", "2", "--out", out, *cases)
    assert run.returncode == 1 and run.stdout.splitlines()[-1] == f"20 cells, 19 passed; results in {out}", run
    assert "case-07     0/1" in run.stdout and run.stdout.count("1/1") == 19 and "by harness" in run.stderr
    results = lines(out)
    assert len(results) == 20 and {one["case"] for one in results if one["state"] == "failed"} == {"case-07"}
    assert workspaces(daemon) == [] and daemon.get("/v1/cases").json()["items"] == []
    suites = xml.parse(out / "junit.xml").getroot()
    assert len(suites) == 20 and [suite.get("name") for suite in suites if suite.get("failures") != "0"] == ["case-07"]
    report = (out / "report.html").read_text()
    assert "19 of 20 cells passed" in report and "http://" not in report and "https://" not in report and "<script" not in report
    assert (out / "case-03/1/diff.patch").read_text().count("+case-03") == 1
    assert json.loads((out / "case-03/1/env.json").read_text())["CARREL_CASE"] == "case-03"
    for result in results:      # nothing is run again, but the one that is new
        assert result["key"] and result["steps"][0]["type"] == "harness"
    again = daemon("case", "run", "-j", "2", "--out", out, "--resume", "-o", "json", *cases, write(tmp_path, "new"))
    assert again.returncode == 1 and json.loads(again.stdout)["passed"] == 20
    assert [one["cell"] for one in lines(out)[:20]] == [one["cell"] for one in results] and len(lines(out)) == 21


class Tags(html.parser.HTMLParser):
    """The elements of a page, with the names of their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.found, self.attributes, self.text = set(), set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


HOSTILE = """id: hostile
harness: |
  echo '<script>document.title="owned"</script><img src=x onerror="document.title=1">"><svg onload=alert(1)>'
  printf '\\033[1;31mred\\033[0m\\033[K \\000\\377 </pre></details></body>\\n'
  echo '<script>document.title="owned"</script>' > '<img src=x onerror=alert(1)>.html'
graders:
- {type: command, name: '<b onmouseover=alert(1)>name', run: "echo '<!--'; exit 1"}
- {type: command, name: last, run: "echo the last one"}
"""


@pytest.mark.once
@pytest.mark.shipped
def test_the_report_shows_everything_and_runs_nothing(daemon, tmp_path):
    hostile, broken, out = tmp_path / "hostile.yaml", write(tmp_path, "broken", more="setup: {run: [echo what it said; exit 3]}\n"), tmp_path / "out"
    hostile.write_text(HOSTILE)
    run = daemon("case", "run", hostile, broken, write(tmp_path, "good"), "--repeat", "2", "-j", "2", "--out", out)
    assert run.returncode == 1 and len(lines(out)) == 6, run
    text = (out / "report.html").read_text()
    page = Tags(text)
    for words in ("2 of 6 cells passed", "100 %", "0/2", "repeat 2", '<script>document.title="owned"</script>', "\nred ",
                  "<b onmouseover=alert(1)>name", "+++ b/<img src=x onerror=alert(1)>.html", "the last one", "what it said", "+good", "0.0"):
        assert words in page.text, words
    assert page.found <= {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "div", "table", "tr", "th", "td", "a", "meter",
                          "details", "summary", "span", "b", "code", "pre"}, page.found
    assert page.attributes <= {"lang", "charset", "name", "content", "http-equiv", "class", "href", "id", "value", "open"}, page.attributes
    xml.parse(out / "junit.xml")
    if not shutil.which("chromium"):
        pytest.skip("no chromium")
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/chromium", "--virtual-time-budget=1000", "--dump-dom"]
    shown = subprocess.run([*words, f"file://{out}/report.html"], capture_output=True, text=True, timeout=120, check=True).stdout
    seen = Tags(shown)
    assert "<title>Results of cases</title>" in shown and seen.found - {"tbody"} == page.found and "the last one" in seen.text


@pytest.mark.once
def test_two_cells_run_at_once(daemon, start, tmp_path):
    case = write(tmp_path, "wait", "while ! test -e go; do sleep 0.02; done; printf wait > answer")
    events = Events(daemon, "/v1/events")
    run = start(daemon, "case", "run", case, "-j", "2", "--repeat", "3", "--out", tmp_path / "out")
    running = set()
    for event in events:
        if event["event"] == "cell.harness":
            running.add(event["data"]["workspace"])
        if len(running) == 2:
            break
    assert len(daemon.get("/v1/cases").json()["items"]) == 1      # two cells of it run, none has ended
    for workspace in running:
        assert daemon.request("PUT", f"/v1/workspaces/{workspace}/files/go", b"", {"Content-Type": "application/octet-stream"}).status == 201
    third = next(event for event in events if event["event"] == "cell.harness" and event["data"]["workspace"] not in running)
    daemon.request("PUT", f"/v1/workspaces/{third['data']['workspace']}/files/go", b"", {"Content-Type": "application/octet-stream"})
    events.close()
    assert run.wait(60) == 0 and len(lines(tmp_path / "out")) == 3


@pytest.mark.once
@pytest.mark.shipped
def test_the_example_with_an_editable_install(daemon, tmp_path):
    """A src layout whose package needs werkzeug, which needs markupsafe; and the host's interpreter."""
    run = daemon("case", "run", *sorted((TREE / "examples/cases").glob("*.yaml")), "-j", "2", "--out", tmp_path / "out", timeout=600)
    assert run.returncode == 0 and "3 cells, 3 passed" in run.stdout, run
    results = {one["case"]: one for one in lines(tmp_path / "out")}
    assert results["digits"]["variables"]["VIRTUAL_ENV"] == "/env" and "VIRTUAL_ENV" not in results["host"]["variables"]
    assert "3 passed" in results["digits"]["steps"][1]["output"]
    assert results["escape"]["diff"].count("\n+") == 4 and "egg-info" not in results["escape"]["diff"]
    assert workspaces(daemon) == []


@pytest.mark.once
@pytest.mark.shipped
def test_the_packages_of_the_host_are_found_when_asked_for(daemon, tmp_path):
    """Both have the same environment; only one looks beyond it."""
    text = "import sys; print(sum('dist-packages' in one or one.startswith('/usr/lib/python3') and 'site-packages' in one for one in sys.path))"
    for name, more in (("sees", ", system_site_packages: true"), ("blind", "")):
        write(tmp_path, name, f"python3 -c \"{text}\" > found; grep -q include-system-site-packages /env/pyvenv.cfg; printf {name} > answer",
              f"environment: {{requirements: [six]{more}}}\n")
    out = tmp_path / "out"
    run = daemon("case", "run", tmp_path / "sees.yaml", tmp_path / "blind.yaml", "--out", out, timeout=600)
    assert run.returncode == 0, run
    found = {one["case"]: int(one["diff"].split("+++ b/found")[1].split("\n+")[1].split("\n")[0]) for one in lines(out)}
    assert found["blind"] == 0 and found["sees"] > 0, found


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_cleans_up_and_a_resume_continues(daemon, start, tmp_path, signo):
    quick, slow = write(tmp_path, "quick"), write(tmp_path, "slow", "test -e fast || sleep 1000; printf slow > answer")
    out = tmp_path / "out"
    assert daemon("create", "mine").returncode == 0
    events = Events(daemon, "/v1/events")
    run = start(daemon, "case", "run", quick, slow, "--out", out)
    events.until("cell.passed")
    events.until("cell.harness")
    run.send_signal(signo)
    assert run.wait(60) == 130
    canceled = events.until("cell.canceled")[-1]["data"]
    events.close()
    assert canceled["name"] == "slow" and workspaces(daemon) == [] and daemon.get("/v1/cases").json()["items"] == []
    assert [one["name"] for one in daemon.get("/v1/workspaces").json()["items"]] == ["mine"] and daemon("rm", "mine").returncode == 0
    done = lines(out)
    assert [one["case"] for one in done] == ["quick"] and (out / "report.html").exists()
    with open(out / "results.jsonl", "a") as file:      # as a crash leaves it
        file.write('{"case": "slow", "rep')
    resumed = daemon("case", "run", quick, slow, "--out", out, "--resume", "--harness", "printf $CARREL_CASE > answer")
    assert resumed.returncode == 0 and len(lines(out)) == 3     # another harness: both are run
    again = daemon("case", "run", quick, slow, "--out", out, "--resume", "--harness", "printf $CARREL_CASE > answer")
    assert again.returncode == 0 and len(lines(out)) == 3


@pytest.mark.once
def test_a_changed_source_is_run_again(daemon, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "text").write_text("src")
    case = write(tmp_path, "src", "cp text answer", "source: source\n")
    out = tmp_path / "out"
    for text, count in (("src", 1), ("src", 1), ("other", 2)):
        if (source / "text").read_text() != text:
            (source / "text").write_text(text)
        run = daemon("case", "run", case, "--out", out, "--resume")
        assert run.returncode == (0 if text == "src" else 1) and len(lines(out)) == count, run
    missing = daemon("case", "run", write(tmp_path, "none", more="source: nowhere\n"), "--out", tmp_path / "o2")
    assert missing.returncode == 125 and "nowhere" in missing.stderr


@pytest.mark.once
def test_sandboxes_are_kept_when_asked_for(daemon, tmp_path):
    run = daemon("case", "run", write(tmp_path, "kept"), "--keep-sandboxes", "--out", tmp_path / "out")
    assert run.returncode == 0
    cell = lines(tmp_path / "out")[0]
    assert daemon("exec", cell["workspace"], "--", "cat", "answer").stdout == "kept"
    listed = json.loads(daemon("case", "ls", "-o", "json").stdout)
    assert [one["name"] for one in listed] == ["kept"] and "kept" in daemon("case", "ls").stdout
    assert daemon("case", "rm", listed[0]["id"]).stdout == f"removed {listed[0]['id']}\n"
    assert workspaces(daemon) == []


@pytest.mark.once
def test_wrong_files_run_nothing(daemon, tmp_path):
    good, wrong = write(tmp_path, "good"), write(tmp_path, "wrong", more="colour: red\n")
    run = daemon("case", "run", good, wrong, "--out", tmp_path / "out")
    assert run.returncode == 125 and f"{wrong}: line 5: unknown key 'colour'" in run.stderr
    assert not (tmp_path / "out").exists() and workspaces(daemon) == []
    twice = tmp_path / "twice.yaml"
    twice.write_text(good.read_text())
    assert "have the same id 'good'" in daemon("case", "run", good, twice).stderr
    assert daemon("case", "run", good, "--out", tmp_path / "out").returncode == 0
    there = daemon("case", "run", good, "--out", tmp_path / "out")
    assert there.returncode == 125 and "--resume" in there.stderr


def test_a_killed_core_costs_only_time(own_daemon, start, tmp_path):
    daemon = own_daemon
    # Of its first run it hangs; nothing in the cell tells it from the second, so the test lets the second go on.
    case = write(tmp_path, "hangs", "while ! test -e go; do sleep 0.02; done; printf hangs > answer")
    events = Events(daemon, "/v1/events")
    run = start(daemon, "case", "run", case, "--out", tmp_path / "out")
    first = events.until("cell.harness")[-1]["data"]["workspace"]
    events.close()
    daemon.kill_core()

    def running():
        listed = [daemon.get(f"/v1/cases/{one['id']}/cells").json() for one in daemon.get("/v1/cases").json()["items"]]
        cells = [cell for found in listed for cell in found.get("items", ())]      # a case may just be removed
        return [cell["workspace"] for cell in cells if cell["state"] == "harness" and cell["workspace"] != first]
    [second] = eventually(running)
    assert daemon.request("PUT", f"/v1/workspaces/{second}/files/go", b"", {"Content-Type": "application/octet-stream"}).status == 201
    assert run.wait(60) == 0
    result, = lines(tmp_path / "out")
    assert result["state"] == "passed" and eventually(lambda: workspaces(daemon) == [])


class Liar(http.server.BaseHTTPRequestHandler):
    """Answers as a daemon that says another case than the one it was sent."""

    def answer(self):
        self.server.asked.append((self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0))))
        body = json.dumps(self.server.case).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *args):
        pass


@pytest.mark.once
def test_a_daemon_chooses_no_file_that_is_sent_nor_a_directory_that_is_written(carrel, tmp_path):
    """It reads the YAML for the client, and may be another machine's."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/key").write_text("do-not-send-this")
    (tmp_path / "site").mkdir()
    case = tmp_path / "c.yaml"
    case.write_text("id: honest\nsource: 'site'   # of the project\nenv: {data_source: secrets}\nharness: 'true'\ngraders: [{type: command, run: 'true'}]\n")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar) as liar:
        threading.Thread(target=liar.serve_forever, daemon=True).start()
        try:
            env = {"CARREL_HOST": f"http://127.0.0.1:{liar.server_port}"}
            for name, source, words in (("honest", "secrets", "'secrets', which the file doesn't name"), ("honest", "/etc", "'/etc'"), ("honest", ".", "'.'"),
                                        ("honest", "site/../secrets", "'site/../secrets'"), ("honest", "sit", "'sit'"), ("../../escaped", "site", "not a case"),
                                        (".ssh", None, "not a case")):
                liar.case, liar.asked = {"id": "x" * 20, "name": name, "source": source, "state": "created", "workspace": "y" * 20}, []
                done = carrel("case", "run", case, "--out", tmp_path / "out", env=env, timeout=60)
                assert done.returncode == 125 and words in done.stderr, done.stderr
                assert [what[:2] for what in liar.asked if what[0] != "GET"] == [("POST", "/v1/cases")], liar.asked
        finally:
            liar.shutdown()
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())
