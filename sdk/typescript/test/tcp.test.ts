/* The client over TCP, with a token, and over TLS. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Carrel, ConnectionError, UnauthenticatedError } from "../src/index.js";
import { ownDaemon } from "./daemon.js";

/** Where the daemon says that it listens. */
function addressOf(home: string): string {
  const found = readFileSync(`${home}/run/carrel.log`, "utf8").match(/127\.0\.0\.1:\d+/g);
  return found?.at(-1) ?? assert.fail("the log names no address");
}

test("a daemon is reached by its address and a token", async () => {
  const { carrel, home } = ownDaemon();
  const token = carrel("token", "create", "--scope", "admin").trim();
  carrel("serve", "--stop", "--force");
  carrel("serve", "--background", "--listen", "127.0.0.1:0");
  const host = `http://${addressOf(home)}`;
  const far = new Carrel({ host, token });
  await using workspace = await far.create();
  assert.equal((await workspace.run("echo far")).stdout, "far\n");
  /* By the WebSocket of the runtime, where it has one; that can't tell why it was refused. */
  const session = await workspace.session("read line; echo got $line; exit 3");
  await session.write("this\n");
  assert.equal((await session.read())?.text, "got this\n");
  assert.equal((await session.result()).exitCode, 3);
  await using local = await workspace.forward(1);
  assert.equal(local.host, "127.0.0.1");
  const wrong = new Carrel({ host, token: `${token.slice(0, -1)}${token.endsWith("a") ? "b" : "a"}` });
  await assert.rejects(wrong.get(workspace.id), UnauthenticatedError);
  await assert.rejects(new Carrel({ host }).list().page(), UnauthenticatedError);
  await workspace.remove();
  await assert.rejects(workspace.session("true"), { code: "not_found" });
});

test("over TLS, the authority of the caller is trusted and no other", async () => {
  const { carrel, home } = ownDaemon();
  const token = carrel("token", "create", "--scope", "admin").trim();
  carrel("serve", "--stop", "--force");
  carrel("tls", "init", `${home}/tls`);
  const [cert, key, ca] = ["server.pem", "server-key.pem", "ca.pem"].map((name) => `${home}/tls/${name}`) as [string, string, string];
  carrel("serve", "--background", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key);
  const host = `https://${addressOf(home)}`;
  await using workspace = await new Carrel({ host, token, ca }).create();
  const session = await workspace.session(["cat"]);
  await session.write("secret");
  assert.equal((await session.read())?.text, "secret");
  await session.close();
  assert.equal((await new Carrel({ host, token, ca: readFileSync(ca, "utf8") }).get(workspace.id)).name, workspace.name);
  await assert.rejects(new Carrel({ host, token, retries: 0 }).get(workspace.id), ConnectionError);
  process.env["CARREL_CA"] = ca;
  assert.equal((await new Carrel({ host }).health()).status, "ok");
  delete process.env["CARREL_CA"];
});
