/* The client against servers that misbehave. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { after, test } from "node:test";
import { Carrel, ConnectionError, InvalidError, UnavailableError } from "../src/index.js";
import { firstOf } from "./daemon.js";

interface Seen {
  method: string;
  url: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}
type Handler = (seen: Seen, response: http.ServerResponse, count: number) => void;

/** A server whose handler answers; what it was asked is kept. */
async function serving(handler: Handler, use: (host: string, asked: Seen[]) => Promise<void>, listen: object = { host: "127.0.0.1", port: 0 }) {
  const asked: Seen[] = [];
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      const seen = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body };
      handler(seen, response, asked.push(seen));
    });
  });
  await new Promise<void>((resolve) => server.listen(listen, resolve));
  const address = server.address();
  try {
    await use(typeof address === "string" ? `unix:${address}` : `http://127.0.0.1:${(address as net.AddressInfo).port}`, asked);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const json = (response: http.ServerResponse, status: number, value: object, headers: http.OutgoingHttpHeaders = {}) =>
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(value));
const workspace = { id: "w1", name: "one", labels: {}, limits: {} };
const problem = { status: 503, code: "unavailable", detail: "busy", hint: "later", request_id: "r1" };

test("what can be sent twice is sent again, with the same key", () =>
  serving(
    (_, response, count) => {
      if (count === 1) response.destroy();
      else if (count === 2) json(response, 503, problem, { "Retry-After": "0" });
      else json(response, 201, workspace);
    },
    async (host, asked) => {
      assert.equal((await new Carrel({ host, token: "t" }).create({ name: "one" })).name, "one");
      assert.deepEqual(new Set(asked.map(({ headers }) => headers["idempotency-key"])).size, 1);
      assert.deepEqual([asked.length, asked[2]?.headers["authorization"], asked[2]?.body], [3, "Bearer t", '{"name":"one"}']);
    },
  ));

test("what may have been done is not sent again", () =>
  serving(
    ({ method }, response, count) => {
      if (method === "GET") json(response, 200, workspace);
      else if (count === 2) json(response, 429, { ...problem, code: "limit" }, { "Retry-After": "0" });
      else response.destroy();
    },
    async (host, asked) => {
      const found = await new Carrel({ host }).get("one");
      await assert.rejects(found.run("true"), (error: ConnectionError) => error instanceof ConnectionError && error.sent);
      assert.equal(asked.filter(({ method }) => method === "POST").length, 2, "once too fast, once lost");
    },
  ));

test("retries end, and the problem is thrown", () =>
  serving(
    (_, response) => json(response, 503, problem, { "Retry-After": "0" }),
    async (host, asked) => {
      await assert.rejects(new Carrel({ host, retries: 1 }).health(), (error: UnavailableError) => {
        assert.deepEqual([error.name, error.hint, error.requestId, error.message], ["UnavailableError", "later", "r1", "busy (later)"]);
        return true;
      });
      assert.equal(asked.length, 2);
    },
  ));

test("an error that is not of the daemon is one, too", () =>
  serving(
    (_, response) => response.writeHead(502).end("<html>bad gateway"),
    (host) => assert.rejects(new Carrel({ host }).health(), /502.*bad gateway/),
  ));

test("events go on where the connection was lost", () =>
  serving(
    ({ headers }, response) => {
      const after = Number(headers["last-event-id"] ?? 40);
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      if (after === 40) response.write(`id: 40\n\n:\n\n`);
      response.write(`id: ${after + 1}\nevent: exec.ended\ndata: {"id":${after + 1},"type":"exec.ended","exit_code":2}\n\nid: 9`, () => response.destroy());
    },
    async (host, asked) => {
      const found = await firstOf(new Carrel({ host }).events(), (event) => "id" in event && event.id === 43);
      assert.equal(found.type === "exec.ended" && found.exitCode, 2);
      assert.deepEqual(asked.map(({ headers }) => headers["last-event-id"]), [undefined, "41", "42"]);
    },
  ));

test("fetch alone is enough", () =>
  serving(
    (_, response) => json(response, 200, { status: "ok" }),
    async (host, asked) => {
      const used: string[] = [];
      const carrel = new Carrel({ host, token: "t", fetch: (url, init) => (used.push(String(url)), fetch(url, init)) });
      assert.equal((await carrel.ready()).status, "ok");
      assert.deepEqual([used, asked[0]?.headers["authorization"]], [[`${host}/readyz`], "Bearer t"]);
      const aborted = AbortSignal.abort(new Error("enough"));
      await assert.rejects(carrel.ready({ signal: aborted }), /enough/);
    },
  ));

test("addresses are checked, and none is guessed", async () => {
  for (const host of ["example.com", "ftp://x", "http://u:p@x", "https://x/path"]) assert.throws(() => new Carrel({ host }), InvalidError);
  await assert.rejects(new Carrel({ host: "unix:/nowhere/carrel.sock" }).health(), (error: ConnectionError) => !error.sent);
});

test("a socket is reached whose path is too long for an address", async () => {
  const area = mkdtempSync("/var/tmp/carrel-sdk.");
  after(() => rmSync(area, { recursive: true }));
  const deep = `${area}/${"d".repeat(100)}`;
  mkdirSync(deep);
  /* The server has the same limit. */
  const before = process.cwd();
  process.chdir(deep);
  await serving(
    (_, response) => json(response, 200, { status: "ok" }),
    async () => {
      process.chdir(before);
      assert.equal((await new Carrel({ host: `${deep}/s` }).health()).status, "ok");
    },
    { path: "s" },
  );
});

/** A server of one WebSocket on a unix socket: `talk` gets what the client sends, as frames. */
async function webSocket(area: string, talk: (socket: net.Socket) => void, use: (carrel: Carrel) => Promise<void>) {
  const server = http.createServer((_, response) => json(response, 200, workspace));
  const open: net.Socket[] = [];
  server.on("upgrade", (request, socket: net.Socket) => {
    open.push(socket);
    const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n` +
        "Sec-WebSocket-Protocol: carrel.exec.v1\r\n\r\n",
    );
    socket.on("error", () => undefined);
    talk(socket);
  });
  await new Promise<void>((resolve) => server.listen(`${area}/ws`, resolve));
  try {
    await use(new Carrel({ host: `unix:${area}/ws` }));
  } finally {
    server.close();
    server.closeAllConnections();
    for (const socket of open) socket.destroy();
    rmSync(`${area}/ws`, { force: true });
  }
}

const frame = (first: number, data: string | Buffer) => Buffer.concat([Buffer.from([first, data.length]), Buffer.from(data)]);

test("WebSocket messages are put together, pings answered, and a lost connection told", async () => {
  const area = mkdtempSync("/var/tmp/carrel-sdk.");
  after(() => rmSync(area, { recursive: true }));
  const received: Buffer[] = [];
  const good = (socket: net.Socket) => {
    socket.on("data", (data: Buffer) => received.push(data));
    const bytes = Buffer.concat([
      frame(0x81, '{"type":"started","exec":"e1"}'),
      frame(0x02, Buffer.from([1, 65])),
      frame(0x89, "ping"),
      frame(0x80, "BC"),
      frame(0x81, '{"type":"exit","id":"e1","exit_code":3,"reason":"exited"}'),
      frame(0x88, Buffer.from([3, 232])),
    ]);
    /* After the message that starts the command. */
    socket.once("data", () => bytes.forEach((byte) => socket.write(Buffer.from([byte]))));
  };
  await webSocket(area, good, async (carrel) => {
    const session = await (await carrel.get("one")).session("true");
    const texts: string[] = [];
    for await (const { text } of session) texts.push(text);
    assert.deepEqual([texts, (await session.result()).exitCode, session.id], [["ABC"], 3, "e1"]);
    const sent = Buffer.concat(received);
    assert.deepEqual([sent[0], (sent[1] ?? 0) & 0x80], [0x81, 0x80]);
  });
  const bad: [Buffer, RegExp][] = [
    [frame(0xc1, "x"), /invalid WebSocket frame/],
    [Buffer.from([0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0]), /invalid WebSocket frame/],
    [frame(0x88, Buffer.from([3, 243])), /closed before the command ended/],
    [Buffer.alloc(0), /connection was lost/],
  ];
  for (const [bytes, reason] of bad)
    await webSocket(
      area,
      (socket) => socket.write(bytes, () => bytes.length === 0 && socket.destroy()),
      async (carrel) => {
        const session = await (await carrel.get("one")).session("true");
        await assert.rejects(session.result(), reason);
      },
    );
});
