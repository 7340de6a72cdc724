"""kill -9 of core while it makes or removes an access token."""
# security: authority
import contextlib
import http.client

import pytest

pytestmark = pytest.mark.needs_faults


def killed(make_daemon, point, ask):
    """A daemon whose first core ends itself at that point."""
    daemon = make_daemon(env={"CARREL_FAULT": f"{point}:1"})
    with daemon.new_core(), contextlib.suppress(OSError, http.client.HTTPException):
        ask(daemon)
    return daemon


def tokens(daemon):
    return daemon.get("/v1/tokens").json()["items"]


def test_a_token_that_nobody_was_told_can_be_removed(make_daemon):
    daemon = killed(make_daemon, "core_token_created", lambda daemon: daemon.post("/v1/tokens", {}))
    (left,) = tokens(daemon)
    assert daemon.delete(f"/v1/tokens/{left['id']}").status == 204
    assert tokens(daemon) == []


def test_a_removal_that_was_cut_off_can_be_done_again(make_daemon):
    made = {}

    def ask(daemon):
        made.update(daemon.post("/v1/tokens", {}).json())
        daemon.delete(f"/v1/tokens/{made['id']}")
    daemon = killed(make_daemon, "core_token_removed", ask)
    assert [token["id"] for token in tokens(daemon)] == [made["id"]]
    assert daemon.delete(f"/v1/tokens/{made['id']}").status == 204
    assert daemon.get("/v1/workspaces", headers={"Authorization": f"Bearer {made['text']}"}).status == 401
