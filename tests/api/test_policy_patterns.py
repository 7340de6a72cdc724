"""A deny rule that is a pattern covers its matches in a warm workspace, from the next start of its sandbox on."""
# security: policy
from rest import created


def test_what_a_pattern_matches_is_covered_in_a_workspace(own_daemon):
    with created(own_daemon) as workspace:
        path = f"/v1/workspaces/{workspace['name']}"

        def run(script):
            return own_daemon.post(f"{path}/exec", {"command": script}).json()

        assert run("mkdir -p a/b; echo secret >a/b/k.pem; echo open >a/free; "
                   "echo 'print(open(\"a/b/k.pem\").read())' >show.py").get("exit_code") == 0
        rules = {"permissions": {"allow": ["shell(*)", "file(*:/**)"], "deny": ["file(read:${WORKSPACE}/**/*.pem)"]}}
        assert own_daemon.request("PATCH", path, {"settings": rules}).status == 200
        own_daemon.restart()
        shown = run("python3 show.py; cat a/free")
        assert shown["stdout"] == "open\n" and "Permission denied" in shown["stderr"], shown
