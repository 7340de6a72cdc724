"""The audit log: what is recorded, how it is read, and what a verifier says of it."""
# security: audit
import json
import os
import pathlib
import subprocess

import pytest

from daemons import configure
from harness import descendants, eventually
from rest import Events, problem


def make(daemon, **body):
    answer = daemon.post("/v1/workspaces", body)
    assert answer.status == 201, answer
    return answer.json()


def lines(daemon, query=""):
    answer = daemon.get("/v1/audit" + query)
    assert answer.status == 200, answer
    return [json.loads(line) for line in answer.body.splitlines()]


def log(daemon):
    return pathlib.Path(daemon.env["CARREL_HOME"], "audit")


def verify(daemon, *options):
    done = daemon("audit", "--verify", "-o", "json", *options)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def used(daemon):
    """A daemon where a little of everything was done in a workspace."""
    name = make(daemon, name="seen")["name"]
    url = f"/v1/workspaces/{name}"
    assert daemon.post(url + "/exec", {"argv": ["sh", "-c", "exit 3", "--password", "hunter2"],
                                       "env": {"API_TOKEN": "abc123", "PLAIN": "shown"}, "cwd": "/tmp"}).status == 200
    assert daemon.request("PUT", url + "/files/dir/a", b"12345").status == 201
    assert daemon.get(url + "/files/dir/a").body == b"12345"
    assert daemon.delete(url + "/files/dir/a").status == 204
    assert daemon.post(url + "/exec", {"argv": ["no-such-command", "https://me:secret@host/?token=abc123"]}).status == 200
    assert daemon.post(url + "/snapshots", {}).status == 201
    assert daemon.delete(url).status == 204
    return daemon


def test_every_change_is_recorded_with_its_caller(used):
    found = {line["type"]: line for line in lines(used, "?workspace=seen")}
    assert {"workspace.create", "workspace.created", "exec.start", "exec.end", "file.write", "file.read", "file.remove",
            "snapshot.create", "workspace.snapshot", "workspace.remove", "workspace.deleted"} <= set(found)
    for kind in ("workspace.create", "exec.start", "exec.end", "file.write", "workspace.remove"):
        assert found[kind]["principal"] == f"uid {os.getuid()}" and found[kind]["door"] == "rest", found[kind]
        assert found[kind]["request_id"], found[kind]
    assert found["file.write"]["data"] == {"path": "/workspace/dir/a", "bytes": 5} or found["file.write"]["data"]["bytes"] == 5
    assert found["file.read"]["data"]["bytes"] == 5 and found["file.remove"]["data"]["path"].endswith("dir/a")
    first = lines(used)[0]
    assert first["type"] == "daemon.start" and len(first["data"]["config_sha256"]) == 64


def test_a_command_is_recorded_with_its_arguments_and_its_end(used):
    start, failed = lines(used, "?workspace=seen&type=exec.start")
    end, failure = lines(used, "?workspace=seen&type=exec.end")
    assert start["data"]["argv"][:3] == ["sh", "-c", "exit 3"] and start["data"]["cwd"] == "/tmp"
    assert start["data"]["exec"] == end["data"]["exec"]
    assert end["data"]["reason"] == "exited" and end["data"]["exit_code"] == 3 and end["data"]["max_rss_bytes"] > 0
    assert failure["data"]["exit_code"] == 127 and "No such file" in failure["data"]["error"], failure


def test_no_secret_is_in_the_files(used):
    assert lines(used)      # comes when all that was done is written
    text = b"".join(path.read_bytes() for path in log(used).glob("*.jsonl"))
    for secret in (b"hunter2", b"abc123", b"me:secret"):
        assert secret not in text
    assert b"PLAIN=shown" in text and b"https://***@host/?token=***" in text


def test_an_unknown_workspace_and_a_wrong_time_are_refused(used):
    problem(used.post("/v1/workspaces/nowhere/exec", {"argv": ["true"]}), 404, "not_found")
    assert lines(used, "?type=audit.read") == []
    assert used.get("/v1/audit?since=yesterday").status == 400


def test_the_log_is_chained_and_clean(used):
    all_ = lines(used)
    assert [line["seq"] for line in all_] == list(range(1, len(all_) + 1))
    assert all(b["prev"] == a["hash"] for a, b in zip(all_, all_[1:]))
    code, verdict = verify(used)
    assert code == 0 and verdict["clean"] and verdict["findings"] == [] and verdict["lines"] >= len(all_), verdict
    head = used("audit", "--head").stdout.strip()
    seq, hash_ = head.split(":")
    assert lines(used)[int(seq) - 1]["hash"] == hash_
    assert verify(used, "--against", head)[0] == 0
    code, verdict = verify(used, "--against", f"{seq}:{'0' * 64}")
    assert code == 1 and verdict["findings"][0]["kind"] == "against"


def test_lines_are_chosen_by_time_and_type(used):
    all_ = lines(used)
    assert [line["seq"] for line in lines(used, f"?since={all_[3]['time']}")][-1] >= all_[-1]["seq"]
    assert lines(used, "?since=1h&type=exec") == [line for line in lines(used) if line["type"].startswith("exec.")]
    assert lines(used, "?until=2020-01-01") == []
    text = used("audit", "--type", "exec.end", "--workspace", "seen").stdout
    assert len(text.splitlines()) == 2 and "exit_code=3" in text
    shown = used("audit", "--type", "exec", "-o", "json").stdout.splitlines()
    assert [json.loads(line) for line in shown] == lines(used, "?type=exec")


def test_logins_are_recorded_and_the_log_is_not_for_everybody(used):
    token = used.post("/v1/tokens", {"scope": "user"}).json()
    bearer = {"Authorization": "Bearer " + token["text"]}
    problem(used.request("GET", "/v1/audit", headers=bearer), 403, "denied", "admin")
    assert used.request("GET", "/v1/audit", headers={"Authorization": "Bearer crl_" + "0" * 40}).status == 401
    first, refused = lines(used, "?type=login")
    assert first["type"] == "login.token" and first["data"]["token"] == token["id"]
    assert refused["type"] == "login.refused" and refused["data"]["error"]
    denied = lines(used, "?type=access.refused")[-1]
    assert denied["principal"] == "token " + token["id"] and denied["data"]["verb"] == "audit.read", denied
    assert {"token.create"} <= {line["type"] for line in lines(used, "?type=token")}
    assert token["text"].encode() not in b"".join(path.read_bytes() for path in log(used).glob("*.jsonl"))


@pytest.mark.once
def test_what_a_policy_says_is_recorded_with_its_trail(used):
    settings = {"permissions": {"allow": ["shell(echo:*)"], "deny": ["shell(curl:*)"]}}
    sources = {"package_managers": {"pip": {"enabled": True, "blocked_packages": ["subprocess32"]}}}
    make(used, name="judged", settings=settings, sources=sources)
    url = "/v1/workspaces/judged/exec"
    assert used.post(url, {"command": "echo hi"}).status == 200
    problem(used.post(url, {"command": "echo hi; curl x"}), 403, "denied")
    start = lines(used, "?workspace=judged&type=exec.start")
    assert len(start) == 1 and start[0]["data"]["trail"][0]["rule"] == "shell(echo:*)", start
    refused = lines(used, "?workspace=judged&type=policy.refused")
    assert len(refused) == 1 and refused[0]["principal"] == f"uid {os.getuid()}"
    assert any(step.get("rule") == "shell(curl:*)" for step in refused[0]["data"]["trail"]), refused
    problem(used.post("/v1/workspaces/judged/packages", {"packages": ["subprocess32"]}), 403, "denied")
    assert "subprocess32" in lines(used, "?workspace=judged&type=policy.refused")[-1]["data"]["error"]["message"]


@pytest.mark.once
def test_lines_become_events_of_ocsf(used):
    done = used("audit", "--format", "ocsf")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {1007, 1001, 6003, 6002} <= {event["class_uid"] for event in events}
    for event in events:
        assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
        assert event["category_uid"] == event["class_uid"] // 1000 and event["metadata"]["version"]
        assert event["time"] > 1_600_000_000_000 and event["severity_id"]
    launch = next(event for event in events if event["type_uid"] == 100701)
    assert launch["process"]["cmd_line"].startswith("sh -c exit 3") and launch["actor"]["user"]["uid"] == str(os.getuid())


def test_a_reader_follows_what_is_written(used):
    stream = Events(used, "/v1/audit?follow=true&type=daemon", {"Accept": "text/event-stream"})
    try:
        assert stream.until("audit")[0]["data"]["type"] == "daemon.start"
    finally:
        stream.close()
    follower = subprocess.Popen([used.path, "audit", "-f", "--type", "file.write", "-o", "json"], env=used.env,
                                stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(follower.stdout.readline())["type"] == "file.write"
        name = make(used)["name"]
        assert used.request("PUT", f"/v1/workspaces/{name}/files/later", b"x").status == 201
        assert json.loads(follower.stdout.readline())["data"]["path"].endswith("later")
    finally:
        follower.kill()
        follower.wait()


@pytest.mark.once
def test_the_verifier_names_what_was_done_to_the_files(own_daemon):
    daemon = own_daemon
    for n in range(4):
        make(daemon, name=f"w{n}")
    daemon.stop_serving()
    file = next(log(daemon).glob("*.jsonl"))
    owner, original = file.stat(), file.read_bytes()
    whole = original.splitlines(keepends=True)
    assert verify(daemon)[0] == 0

    def kinds(content):
        file.write_bytes(content)
        os.chown(file, owner.st_uid, owner.st_gid)
        code, verdict = verify(daemon)
        assert code == 1 and not verdict["clean"], verdict
        return {finding["kind"] for finding in verdict["findings"]}, verdict["findings"][0]

    found, first = kinds(original.replace(b"w1", b"w7", 1))
    assert found == {"changed"} and first["file"] == file.name and first["line"] == first["seq"], first
    assert "gap" in kinds(b"".join(whole[:3] + whole[4:]))[0]
    assert "reordered" in kinds(b"".join(whole[:2] + [whole[3], whole[2]] + whole[4:]))[0]
    assert kinds(b"".join(whole[:-2]))[0] == {"cut"}
    assert kinds(original[:-40])[0] == {"cut"}
    assert "malformed" in kinds(b"".join(whole[:2] + [b"{}\n"] + whole[2:]))[0]
    found, first = kinds(b"".join(whole[:-1]))
    assert found == {"cut"} and first["last_seq"] == len(whole)
    # The daemon goes on behind the cut, and says what it found.
    daemon.start_serving()
    recovered = next(line for line in lines(daemon) if line["type"] == "audit.recovered")
    assert recovered["data"]["missing_from"] == len(whole) == recovered["data"]["missing_to"]
    code, verdict = verify(daemon)
    assert code == 1 and {finding["kind"] for finding in verdict["findings"]} == {"gap"}, verdict
    assert any(note["kind"] == "recorded" for note in verdict["notes"])
    assert "seq" in daemon("audit", "--verify").stdout


@pytest.mark.once
def test_files_are_rotated_and_pruned(own_daemon):
    daemon = configure(own_daemon, "audit:\n  max_file_bytes: 4K\n  max_bytes: 12K\n")
    name = make(daemon)["name"]
    for n in range(40):
        assert daemon.request("PUT", f"/v1/workspaces/{name}/files/f{n}", b"x").status == 201
    assert eventually(lambda: lines(daemon)[0]["seq"] > 1)
    code, verdict = verify(daemon)
    assert code == 0, verdict
    assert [note["kind"] for note in verdict["notes"]] == ["pruned"] and verdict["files"] > 1
    assert any(line["type"] == "audit.pruned" for line in lines(daemon))
    oldest = sorted(log(daemon).glob("*.jsonl"))[1]
    daemon.stop_serving()
    oldest.unlink()
    code, verdict = verify(daemon)
    assert code == 1 and verdict["findings"][0]["kind"] == "removed_file", verdict


def test_the_process_that_writes_is_locked_in_and_no_sandbox_sees_the_log(used):
    pid = next(pid for pid, (_, name) in descendants(used.process.pid).items() if name == "carrel-audit")
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and int(status["CapEff"], 16) == 0
    assert int(status["Uid"].split()[0]) != 0
    for path in log(used).iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    name = make(used)["name"]
    seen = used.post(f"/v1/workspaces/{name}/exec", {"argv": ["ls", str(log(used))]}).json()
    assert seen["exit_code"] != 0 and "No such file" in seen["stderr"], seen


@pytest.mark.once
def test_the_log_can_be_off(own_daemon):
    daemon = configure(own_daemon, "audit:\n  enabled: false\n")
    before = sum(path.stat().st_size for path in log(daemon).glob("*.jsonl"))
    make(daemon)
    problem(daemon.get("/v1/audit"), 503, "unavailable", "audit log is off")
    assert sum(path.stat().st_size for path in log(daemon).glob("*.jsonl")) == before


def test_options_that_can_not_be_combined(used):
    assert used("audit", "--verify", "--follow").returncode == 125
    assert used("audit", "--against", "1:2").returncode == 125
    assert used("audit", "--verify", "--against", "x").returncode == 125
    assert used("audit", "-o", "xml").returncode == 125
