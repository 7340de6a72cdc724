"""carrel install --node, killed at each of its steps: the workspace has the package or it hasn't, whole, and a second try
succeeds."""
# security: packages
import json
import shutil

import pytest
from daemons import nothing_survives  # noqa: F401
from harness import PATH
from killed_installs import W, kept, run, stopped_daemon, test_killed_while_nothing_runs, test_killed_while_something_runs  # noqa: F401

pytestmark = [pytest.mark.needs_faults,
              pytest.mark.skipif(not shutil.which("node", path=PATH) or not shutil.which("npm", path=PATH), reason="no node, no npm")]
NAMES = "console.log(require('fs').readdirSync('node_modules').filter(name => name[0] != '.').join())"


@pytest.fixture(scope="module")
def stopped(template, node_home, registry):
    registry.add("alpha", "1.0.0", {"index.js": "module.exports = require('./part') + require('two')\n", "part.js": "module.exports = 'alpha '\n"},
                 dependencies={"two": "^1"})
    with stopped_daemon(node_home / "carrel", {"PATH": f"{template[0]}:{PATH}", "npm_config_registry": registry.url}, {"node": {"packages": ["two"]}},
                        {"kind": "node", "packages": ["alpha"]}, ["node", "-e"], is_whole, leave=("run", "audit")) as daemon:
        yield daemon


def is_whole(daemon):
    names = run(daemon, NAMES)["stdout"]
    assert names in ("two\n", "alpha,two\n")
    if names == "two\n":
        return False
    assert run(daemon, "console.log(require('alpha'))")["stdout"] == "alpha two\n"
    declared = json.loads(daemon.get(f"{W}/files/package.json").body)["dependencies"]
    return declared == {"alpha": "^1.0.0", "two": "^1.1.0"}
