"""A page with xterm.js, in a real browser, drives a command in a workspace: the example of docs/websocket.md as it stands there."""
import functools
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import threading

import pytest
from daemons import serving_anew
from doors import open_door
from harness import PATH, TREE
from rest import created

PACKAGES = ("playwright-core", "@xterm/xterm")
PAGE = """<!doctype html>
<link rel="stylesheet" href="node_modules/@xterm/xterm/css/xterm.css">
<script src="node_modules/@xterm/xterm/lib/xterm.js"></script>
<script>{example}</script>
<div id="terminal"></div>
"""
DRIVER = r"""
const { chromium } = require("playwright-core");
const [page_url, host, workspace, token] = process.argv.slice(2);
(async () => {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage();
  await page.goto(page_url);
  await page.evaluate((all) => openTerminal(document.getElementById("terminal"), ...all), [host, workspace, token]);
  const shows = (text) => page.waitForFunction(
    (text) => document.querySelector(".xterm-rows")?.innerText.replaceAll("\u00a0", " ").includes(text), text, { timeout: 120000 });
  await shows("$");
  await page.click(".xterm");
  await page.keyboard.type("echo $((6 * 7)) $(stty size)\n");
  await shows("42 24 80");
  await page.keyboard.type("exit 3\n");
  await shows("[exit code 3]");
  await browser.close();
  console.log("seen");
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.fixture
def site(tmp_path):
    """A directory with the page, and the URL at which it is served."""
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", tmp_path, *PACKAGES], capture_output=True,
                          text=True, timeout=300, env={**os.environ, "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt"})
    if done.returncode:
        pytest.skip(f"npm can't install here: {done.stderr[:200]}")
    example, = re.findall(r"```js\n(.*?)```", (TREE / "docs/websocket.md").read_text(), re.DOTALL)
    (tmp_path / "index.html").write_text(PAGE.format(example=example.replace("wss://", "ws://")))
    (tmp_path / "driver.js").write_text(DRIVER)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.skipif(not shutil.which("chromium", path=PATH), reason="no chromium")
def test_a_page_drives_a_terminal(site):
    directory, url = site
    with serving_anew() as daemon:
        pathlib.Path(daemon.env["CARREL_HOME"], "config.yaml").write_text(f'serve:\n  origins: ["{url}"]\n')
        door = open_door(daemon)
        with created(daemon, env={"PS1": "$ "}) as workspace:
            host, port = door.address()
            done = subprocess.run(["node", "driver.js", url + "/", f"{host}:{port}", workspace["id"], door.token], cwd=directory,
                                  capture_output=True, text=True, timeout=240)
            assert done.returncode == 0 and done.stdout.strip() == "seen", done.stdout + done.stderr
