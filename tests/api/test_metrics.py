"""/metrics: the text format to the letter, and numbers that are true."""
import re
import shutil
import subprocess

import pytest

from harness import NOT_AHEAD, eventually
from rest import created, workspace  # noqa: F401

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL})(?:,{LABEL})*)\}})? (\S+)")


def scrape(daemon):
    """{(name, labels): value}; every line must be as the format (0.0.4) has it."""
    answer = daemon.get("/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = answer.body.decode()
    assert text.endswith("\n") and "\n\n" not in text
    samples, types, helped, family = {}, {}, set(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family, about = line[7:].split(" ", 1)
            assert family not in helped and about, line
            helped.add(family)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == family and name not in types and kind in ("counter", "gauge", "histogram", "untyped"), line
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name = match[1]
            # A family stands together, under its own head.
            parts = [family + end for end in ("_bucket", "_sum", "_count")] if types[family] == "histogram" else [family]
            assert name in parts, line
            labels = tuple(sorted((key, re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value))
                                  for key, value in re.findall(LABEL, match[2] or "")))
            assert (name, labels) not in samples, line
            samples[name, labels] = float(match[match.lastindex])
    assert helped == set(types)
    check_types(samples, types)
    return samples


def check_types(samples, types):
    for name, kind in types.items():
        assert (kind == "counter") == name.endswith("_total"), name
        if kind == "histogram":
            buckets = [value for (sample, _), value in samples.items() if sample == name + "_bucket"]
            bounds = [dict(labels)["le"] for (sample, labels) in samples if sample == name + "_bucket"]
            assert bounds[-1] == "+Inf" and [float(bound) for bound in bounds] == sorted(float(bound) for bound in bounds)
            assert buckets == sorted(buckets) and buckets[-1] == samples[name + "_count", ()]
            assert samples[name + "_sum", ()] >= 0
        elif kind != "untyped":
            assert not name.endswith(("_count", "_sum", "_bucket")), name


def test_the_format_is_kept_and_what_happens_is_counted(daemon):
    with created(daemon, limits=NOT_AHEAD) as made:
        count_what_happens(daemon, made["id"])


def count_what_happens(daemon, workspace):
    before = scrape(daemon)
    daemon.post(f"/v1/workspaces/{workspace}/exec", {"command": "echo 12345"})
    daemon.post(f"/v1/workspaces/{workspace}/exec", {"command": "exit 3"})
    daemon.post(f"/v1/workspaces/{workspace}/exec", {"command": "sleep 9", "timeout": "50ms"})
    daemon.post(f"/v1/workspaces/{workspace}/exec", {"argv": ["no-such"]})
    daemon.request("PUT", f"/v1/workspaces/{workspace}/files/f", b"x" * 1000)
    daemon.get(f"/v1/workspaces/{workspace}/files/f", headers={"Range": "bytes=0-99"})
    after = scrape(daemon)
    grew = lambda name, **labels: after[name, tuple(sorted(labels.items()))] - before[name, tuple(sorted(labels.items()))]
    assert grew("carrel_execs_total", reason="exited") == 3 and grew("carrel_execs_total", reason="timeout") == 1
    assert grew("carrel_exec_failures_total") == 1 and grew("carrel_exec_duration_seconds_count") == 4
    assert grew("carrel_exec_output_bytes_total") == 6 + len("carrel: run 'no-such': No such file or directory\n")
    assert grew("carrel_sandbox_starts_total") == 1 and grew("carrel_sandbox_start_duration_seconds_count") == 1
    assert grew("carrel_file_written_bytes_total") == 1000 and grew("carrel_file_read_bytes_total") == 100
    assert after["carrel_workspaces", (("state", "ready"),)] == 1 == after["carrel_sandboxes", (("state", "up"),)]
    assert after["carrel_execs_running", ()] == 0 and after["carrel_http_connections", ()] >= 1


def test_creates_and_removes_are_counted(daemon):
    before = scrape(daemon)
    with created(daemon, name="counted"):
        daemon.post("/v1/workspaces", {"name": "counted"})
    after = scrape(daemon)
    for name in ("creates", "create_failures", "removes"):
        assert after[f"carrel_workspace_{name}_total", ()] - before[f"carrel_workspace_{name}_total", ()] == 1


def test_levels_of_pools_and_environments_are_there(daemon):
    for pool in ("netns", "cgroup"):        # of which the launcher tells, when it gets to it
        assert eventually(lambda: ("carrel_pool_ready", (("pool", pool),)) in scrape(daemon))
    samples = scrape(daemon)
    for name in ("par_venv_cache_size_bytes", "par_venv_count", "par_venv_build_duration_seconds_count"):
        assert samples[name, ()] == 0


@pytest.mark.parametrize("context_id", ["plain", 'a"b\\c\nd', "ünï ☃"])
def test_contexts_have_the_names_of_the_seed(daemon, context_id):
    labels = {"context_id": context_id, "agent": "coder", "namespace": "team1"}
    with created(daemon, labels=labels) as workspace:
        daemon.request("PUT", f"/v1/workspaces/{workspace['id']}/files/f", b"x" * 50000)
        # Blocks that are just being written to the disk are in no measure.
        assert eventually(lambda: daemon.get(f"/v1/workspaces/{workspace['id']}?measure").json()["disk_usage_bytes"] >= 50000)
        samples, key = scrape(daemon), tuple(sorted(labels.items()))
        assert samples["kagenti_context_workspace_bytes", key] >= 50000
        assert abs(samples["kagenti_context_last_accessed_timestamp", key] - samples["carrel_start_time_seconds", ()]) < 3600
    assert ("kagenti_context_workspace_bytes", key) not in scrape(daemon)


def test_promtool_finds_no_fault(daemon, workspace):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("no promtool here: it comes with Prometheus")
    daemon.post(f"/v1/workspaces/{workspace}/exec", {"argv": ["true"]})
    done = subprocess.run([promtool, "check", "metrics"], input=daemon.get("/metrics").body, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
