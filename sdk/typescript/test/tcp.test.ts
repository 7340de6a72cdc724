/* The client over TCP, with a token, and over TLS. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import net from "node:net";
import { after, test } from "node:test";
import { Carrel, ConnectionError, UnauthenticatedError } from "../src/index.js";
import { ownDaemon } from "./daemon.js";

test("a daemon is reached by its address and a token", async () => {
  const { carrel, home } = ownDaemon();
  const token = carrel("token", "create", "--scope", "admin").trim();
  carrel("serve", "--stop", "--force");
  carrel("serve", "--background", "--listen", "127.0.0.1:0");
  const [address] = /127\.0\.0\.1:\d+/.exec(readFileSync(`${home}/run/carrel.log`, "utf8")) ?? assert.fail("the log names no address");
  const host = `http://${address}`;
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

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

test("a certificate authority of the caller is trusted, and no other", { skip: !hasOpenssl }, async () => {
  const area = mkdtempSync("/var/tmp/carrel-sdk.");
  after(() => rmSync(area, { recursive: true }));
  const [key, cert] = [`${area}/key`, `${area}/cert`];
  const words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=test -addext subjectAltName=IP:127.0.0.1";
  execFileSync("openssl", [...words.split(" "), "-keyout", key, "-out", cert], { stdio: "ignore" });
  const server = https.createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) => response.end('{"status":"ok"}'));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `https://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  try {
    assert.equal((await new Carrel({ host, ca: cert }).health()).status, "ok");
    assert.equal((await new Carrel({ host, ca: readFileSync(cert, "utf8") }).health()).status, "ok");
    await assert.rejects(new Carrel({ host, retries: 0 }).health(), ConnectionError);
    process.env["CARREL_CA"] = cert;
    assert.equal((await new Carrel({ host }).health()).status, "ok");
  } finally {
    delete process.env["CARREL_CA"];
    server.close();
    server.closeAllConnections();
  }
});
