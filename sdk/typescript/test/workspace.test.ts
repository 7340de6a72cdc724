/* The client against a real daemon, which it starts itself. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import {
  ApprovalRequiredError,
  Carrel,
  CommandFailedError,
  ConflictError,
  DeniedError,
  InvalidError,
  NotFoundError,
  UnauthenticatedError,
  type Workspace,
} from "../src/index.js";
import { firstOf, ownDaemon } from "./daemon.js";

const { home } = ownDaemon();
const carrel = new Carrel();
let workspace: Workspace;

before(async () => {
  workspace = await carrel.create({ name: "shared", labels: { keep_this: "a_b" }, env: { some_name: "x y" }, ttl: 3600, memory: "512M" });
});
after(() => carrel.close());

test("two clients that find no daemon start one", async () => {
  const [one, other] = await Promise.all([carrel.health(), new Carrel().health()]);
  assert.deepEqual([one.status, other.status], ["ok", "ok"]);
});

test("names are those of the language, and data keeps its own", async () => {
  const info = await workspace.refresh();
  assert.deepEqual(info.labels, { keep_this: "a_b" });
  assert.deepEqual(info.env, { some_name: "x y" });
  assert.equal(info.limits.memoryBytes, 512 << 20);
  const left = Date.parse(info.expiresAt ?? "") - Date.parse(info.createdAt);
  assert.ok(left > 3_590_000 && left <= 3_600_000, String(left));
  const changed = await workspace.update({ labels: { keep_this: null, other_one: "1" }, ttl: null });
  assert.deepEqual([changed.labels, changed.expiresAt], [{ other_one: "1" }, null]);
  assert.deepEqual((await carrel.list({ label: "other_one=1" })).map((found) => found.name), ["shared"]);
  assert.equal((await carrel.get("shared")).id, workspace.id);
});

test("a command ends with a result", async () => {
  const result = await workspace.run('printf "$some_name"; echo err >&2; exit 3');
  assert.deepEqual([result.exitCode, result.stdout, result.stderr, result.reason, result.ok], [3, "x y", "err\n", "exited", false]);
  const bytes = await workspace.exec(["head", "-c", "3"], { stdin: new Uint8Array([255, 0, 65, 66]), cwd: "/tmp", env: { A: "b" } });
  assert.deepEqual([...bytes.stdoutBytes], [255, 0, 65]);
  await assert.rejects(workspace.run("echo why >&2; exit 4", { check: true }), (error: CommandFailedError) => {
    assert.deepEqual([error.name, error.exitCode, error.code], ["CommandFailedError", 4, "command_failed"]);
    return /exit code 4: why/.test(error.message);
  });
  assert.equal((await workspace.run("sleep 60", { timeout: 0.05 })).reason, "timeout");
});

test("output comes as it is written", async () => {
  const stream = workspace.stream("echo one; echo two >&2; cat", { stdin: "three" });
  const seen = { stdout: "", stderr: "" };
  for await (const output of stream) seen[output.stream] += output.text;
  assert.deepEqual([seen, (await stream.result()).exitCode], [{ stdout: "one\nthree", stderr: "two\n" }, 0]);
  const pieces: string[] = [];
  const result = await workspace.run("echo out; echo err >&2", { onStdout: (text) => pieces.push(text), onStderr: (text) => pieces.push(text) });
  assert.deepEqual([pieces.sort(), result.stdout, result.stderr], [["err\n", "out\n"], "out\n", "err\n"]);
});

test("a signal ends a command, and leaving a stream does", async () => {
  const controller = new AbortController();
  const running = workspace.run("echo up; sleep 1000", { signal: controller.signal, onStdout: () => controller.abort(new Error("enough")) });
  await assert.rejects(running, /enough/);
  await assert.rejects(workspace.run("true", { signal: controller.signal }), /enough/);
  const stream = workspace.stream("echo up; sleep 1000");
  for await (const _ of stream) break;
  const ended = async (id: string) => (await (await carrel.execs.get(id)).wait()).reason;
  assert.equal(await ended(stream.id), "canceled");
});

test("a command in the background goes on", async () => {
  const job = await workspace.start("read line; echo got $line; exit 5", { openStdin: true });
  await job.write("this\n", { eof: true });
  let text = "";
  for await (const output of job.logs()) text += output.text;
  assert.deepEqual([text, (await job.wait()).exitCode], ["got this\n", 5]);
  assert.equal(new TextDecoder().decode(await job.output({ offset: 4 })), "this\n");
  const other = await workspace.start(["sleep", "1000"]);
  await other.signal("TERM");
  assert.equal((await other.wait()).signal, 15);
  assert.deepEqual((await workspace.execs()).map((found) => found.id).slice(0, 2), [other.id, job.id]);
});

test("a session is talked to", async () => {
  await using session = await workspace.session("stty size; read line; echo got $line; stty size; exit 7", { tty: true, rows: 30, columns: 100 });
  let text = "";
  const until = async (wanted: RegExp) => {
    while (!wanted.test(text)) text += (await session.read())?.text ?? assert.fail(text);
  };
  await until(/30 100/);
  await session.resize(31, 101);
  await session.write("this\r");
  await until(/got this/);
  await until(/31 101/);
  assert.equal((await session.result()).exitCode, 7);
  const streams = await workspace.session(["sh", "-c", "cat; echo end >&2; kill -INT $$; sleep 1000"]);
  const seen = { stdout: 0, stderr: "" };
  await streams.write(new Uint8Array(300_000));
  await streams.closeStdin();
  for await (const output of streams) output.stream === "stdout" ? (seen.stdout += output.data.length) : (seen.stderr += output.text);
  const { signal, id } = await streams.result();
  assert.deepEqual([seen, signal, id], [{ stdout: 300_000, stderr: "end\n" }, 2, streams.id]);
});

test("a session attaches to a command, which outlives it", async () => {
  const job = await workspace.start("while read line; do echo got $line; done", { openStdin: true });
  const session = await job.attach();
  await session.write("one\n");
  assert.equal((await session.read())?.text, "got one\n");
  await session.close();
  const again = await job.attach();
  await again.write("two\n");
  await again.closeStdin();
  let text = "";
  for await (const output of again) text += output.text;
  assert.match(text, /got two\n$/);
  assert.equal((await again.result()).exitCode, 0);
  await assert.rejects(carrel.get("nothing").then((none) => none.session("true")), NotFoundError);
});

test("files are written, read, listed, moved and packed", async () => {
  const { files } = workspace;
  assert.equal((await files.write("d/ä b?#%.txt", "text", { mode: 0o640 })).mode, "0640");
  assert.equal(await files.readText("d/ä b?#%.txt"), "text");
  await assert.rejects(files.write("d/ä b?#%.txt", "", { existOk: false }), ConflictError);
  assert.equal(new TextDecoder().decode(await files.read("/workspace/d/ä b?#%.txt", { start: 1, end: 3 })), "ex");
  async function* pieces() {
    for (let i = 0; i < 4; i++) yield new Uint8Array(100_000).fill(i);
  }
  assert.equal((await files.write("d/big", pieces())).size, 400_000);
  assert.equal(await files.size("d/big"), 400_000);
  let sum = 0;
  for await (const piece of files.stream("d/big")) sum += piece.length;
  assert.equal(sum, 400_000);
  await files.mkdir("d/e/f");
  await files.move("d/big", "d/e/f/big");
  assert.deepEqual((await files.list("d/e/f")).map((entry) => [entry.name, entry.type]), [["big", "file"]]);
  assert.deepEqual([await files.exists("d/big"), (await files.stat("d/e")).type], [false, "directory"]);
  await files.unpack(files.pack("d"), "copy");
  assert.equal((await files.stat("copy/e/f/big")).size, 400_000);
  await files.remove("copy", { recursive: true });
  writeFileSync(`${home}/up`, "of the host");
  await files.upload(`${home}/up`, "up");
  await files.download("up", `${home}/down`);
  assert.equal(readFileSync(`${home}/down`, "utf8"), "of the host");
  async function* endless() {
    for (;;) yield new Uint8Array(65536);
  }
  await assert.rejects(files.write("/usr/bin/x", endless()), { name: /Error$/, code: /invalid|denied|conflict/ });
  await assert.rejects(files.readText("copy"), (error: NotFoundError) => error instanceof NotFoundError && error.status === 404 && !!error.requestId);
});

test("states are kept, compared, left and taken over", async () => {
  await using source = await carrel.create();
  await source.run("echo 1 > a; echo 2 > b");
  const first = await source.snapshot({ tag: "first", note: "of the test" });
  await source.run("echo 3 > a; rm b; echo 4 > c");
  assert.deepEqual((await source.diff()).map(({ change, path }) => change + path), ["Ma", "Db", "Ac"]);
  assert.deepEqual((await source.diff({ paths: ["a", "b"], snapshot: "first" })).length, 2);
  assert.match(await source.patch({ paths: ["c"] }), /\+4/);
  let bytes = 0;
  for await (const piece of source.changes()) bytes += piece.length;
  assert.ok(bytes >= 1024);
  await using target = await source.fork({ snapshot: "first" });
  assert.equal((await source.apply(target, { dryRun: true, paths: ["c"] })).changes[0]?.result, "pending");
  assert.equal((await source.apply(target)).applied, 3);
  assert.equal(await target.files.readText("a"), "3\n");
  await target.files.write("c", "mine");
  await source.files.write("c", "theirs");
  await assert.rejects(source.apply(target, { paths: ["c"] }), (error: ConflictError) => error.changes[0]?.result === "conflict");
  await source.rollback(first.id);
  assert.equal(await source.files.readText("b"), "2\n");
  assert.deepEqual((await source.snapshots()).map(({ version, automatic }) => [version, automatic]), [[2, true], [1, false]]);
  assert.equal((await carrel.snapshots.verify(first.id)).ok, true);
  const made = await source.forks(2, { name: "many" });
  assert.deepEqual(made.map(({ name }) => name), ["many-1", "many-2"]);
  await Promise.all(made.map((one) => one.remove()));
});

test("a workspace rests, is checked, and is archived", async () => {
  const old = await carrel.create({ name: "old" });
  await old.files.write("a", "kept");
  assert.deepEqual([(await old.suspend()).state, (await old.resume()).state], ["suspended", "ready"]);
  assert.equal((await old.health()).healthy, true);
  assert.deepEqual((await old.repair()).failed, []);
  assert.equal((await old.verify()).ok, true);
  assert.equal((await old.metrics()).name, "old");
  const archive = await old.archive();
  assert.ok((await carrel.archives.list()).some(({ name }) => name === archive.name));
  await using again = await carrel.archives.restore(archive.name, { name: "again" });
  assert.equal(await again.files.readText("a"), "kept");
  await carrel.archives.remove(archive.name);
  await assert.rejects(old.refresh(), NotFoundError);
});

/* A server that answers when its client has sent all. */
const HALF = `import socket
connection = socket.create_server(("127.0.0.1", 8001)).accept()[0]
connection.sendall(b"%d bytes" % len(b"".join(iter(lambda: connection.recv(100), b""))))`;

test("a server in a workspace is reached", async () => {
  const server = await workspace.start(["python3", "-u", "-m", "http.server", "8000", "-d", "/tmp"]);
  while (!(await workspace.ports()).some(({ port }) => port === 8000)) assert.equal((await server.refresh()).state, "running");
  const answer = await workspace.fetch(8000, "/?x=1");
  assert.deepEqual([answer.status, /Directory listing/.test(await answer.text())], [200, true]);
  assert.equal((await workspace.fetch(8000, "/none", { method: "POST", body: "x" })).status, 501);
  await using connection = await workspace.connect(8000);
  await connection.write("GET / HTTP/1.0\r\n\r\n");
  let text = "";
  for await (const piece of connection) text += new TextDecoder().decode(piece);
  assert.match(text, /^HTTP\/1.0 200 OK/);
  const half = await workspace.start(["python3", "-c", HALF]);
  while (!(await workspace.ports()).some(({ port }) => port === 8001)) assert.equal((await half.refresh()).state, "running");
  await using closing = await workspace.connect(8001);
  await closing.write("abc");
  closing.end();
  assert.equal(new TextDecoder().decode(await closing.read()), "3 bytes");
  await using local = await workspace.forward(8000);
  assert.equal((await fetch(`http://127.0.0.1:${local.port}/`)).status, 200);
  await server.kill();
});

test("events are seen, from now on or from the beginning", async () => {
  const ending = new AbortController();
  const seen = firstOf(carrel.events({ signal: ending.signal }), ({ type }) => type === "workspace.deleted");
  /* Whatever comes first, a subscription or a removal: one of them is seen. */
  const made = await carrel.create();
  const own: string[] = [];
  const watching = (async () => {
    for await (const { type } of made.events({ after: 0 })) own.push(type);
  })();
  await firstOf(made.events({ after: 0 }), ({ type }) => type === "workspace.created");
  await made.remove();
  await watching;
  assert.deepEqual([own[0], own.at(-1)], ["workspace.created", "workspace.deleted"]);
  await firstOf(carrel.events({ after: 0, workspace: "shared" }), (event) => event.type === "workspace.created");
  ending.abort(new Error("enough"));
  await seen.catch((error: Error) => assert.equal(error.message, "enough"));
});

test("the same key creates once", async () => {
  const idempotencyKey = randomUUID();
  const [one, other] = [await carrel.create({ idempotencyKey }), await carrel.create({ idempotencyKey })];
  assert.equal(one.id, other.id);
  const runs = await Promise.all([1, 2].map(() => workspace.run("echo x >> count", { idempotencyKey })));
  assert.equal(runs[0]?.id, runs[1]?.id);
  assert.equal(await workspace.files.readText("count"), "x\n");
  await one.remove();
});

test("a reviewer approves, and a token is bound", async () => {
  await using asked = await carrel.create({ settings: { permissions: { allow: ["shell(echo:*)"], ask: ["shell(factor:*)"], deny: ["shell(curl:*)"] } } });
  const { text, id } = await carrel.tokens.create({ scope: "reviewer", ttl: 60 });
  const reviewer = new Carrel({ token: text });
  const running = asked.run("factor 6", { onWaiting: (approval) => void reviewer.approvals.approve(approval, { note: "fine" }) });
  assert.equal((await running).stdout, "6: 2 3\n");
  const waiting = await asked.run("factor 7", { approval: "return" }).catch((error: ApprovalRequiredError) => error);
  assert.ok(waiting instanceof ApprovalRequiredError && waiting.approval?.suggestedRules, String(waiting));
  assert.deepEqual((await reviewer.approvals.list({ state: "pending" })).map((one) => one.id), [waiting.approval?.id]);
  await reviewer.approvals.deny(waiting.approval?.id ?? "");
  assert.equal((await (await carrel.execs.get(waiting.execId ?? "")).wait()).reason, "denied");
  await assert.rejects(asked.run("curl x"), (error: DeniedError) => error instanceof DeniedError && error.exitCode === 126 && error.trail.length > 0);
  await assert.rejects(reviewer.create(), DeniedError);
  await carrel.tokens.remove(id);
  await assert.rejects(reviewer.approvals.list().page(), UnauthenticatedError);
  assert.equal((await firstOf(carrel.audit({ workspace: asked.id, follow: true }), ({ type }) => type === "policy.refused")).workspaceName, asked.name);
});

test("templates, trees and other lists", async () => {
  assert.equal((await carrel.templates.add("name: mine\ndescription: of the test\n")).name, "mine");
  assert.equal((await carrel.templates.get("mine")).description, "of the test");
  assert.equal((await carrel.templates.add({ name: "other", idleTimeoutMs: 1000 }, { check: true })).idleTimeoutMs, 1000);
  await carrel.templates.remove("mine");
  await assert.rejects(carrel.templates.add("name: NO"), InvalidError);
  await carrel.trees.create("shelf");
  assert.deepEqual((await carrel.trees.list()).map(({ name }) => name), ["shelf"]);
  await carrel.trees.remove("shelf");
  assert.deepEqual(await carrel.environments.list(), []);
  assert.deepEqual((await carrel.metrics()).map(({ name }) => name).includes("shared"), true);
  assert.match(await carrel.prometheus(), /^# HELP/);
  assert.equal((await workspace.packages()).length, 0);
});
