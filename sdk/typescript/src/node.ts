/* What fetch and WebSocket can't do in Node: reach a unix socket, trust a certificate authority of the caller, wait longer than
 * five minutes for a response (fetch gives up then), send `Authorization` with a WebSocket, change to another protocol; and start a
 * daemon. The only file that uses modules of Node; bun has them too. */
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { closeSync, constants, createReadStream, createWriteStream, openSync, readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import tls from "node:tls";
import { join, toText } from "./bytes.js";
import { ConnectionError, UnavailableError } from "./errors.js";
import {
  connectionError,
  FetchTransport,
  MessageQueue,
  openSocket,
  QUEUE_BYTES,
  Refusal,
  type Channel,
  type RawConnection,
  type Reply,
  type Transport,
  type WireRequest,
} from "./transport.js";

const IDLE_MS = 4000; /* less than the daemon keeps a connection that is not used */
const HEAD_MAX = 65536;
const MESSAGE_MAX = 16 << 20;
const START_MS = 12000;
const isBun = "bun" in process.versions;

/** Where a daemon is: the path of its socket, or a URL. @internal */
export interface Target {
  socket?: string;
  url?: URL;
  ca?: string;
}

/** A certificate authority: PEM text, or the path of a file. @internal */
export function readAuthority(ca: string): string {
  return ca.includes("-----BEGIN") ? ca : readFileSync(ca, "utf8");
}

/** The environment, and the uid, of this process. @internal */
export function surroundings(): { env: Record<string, string | undefined>; uid: number } {
  return { env: process.env, uid: process.geteuid?.() ?? -1 };
}

/** A file of this host. @internal */
export function readPieces(file: string): AsyncIterable<Uint8Array> {
  return createReadStream(file, { highWaterMark: 1 << 18 });
}

/** @internal */
export function writePieces(file: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  return pipeline(pieces, createWriteStream(file));
}

/* An address has room for 107 bytes; a longer path is entered by its directory. */
function shorten(socket: string): { path: string; directory: number } {
  if (Buffer.byteLength(socket) <= 107) return { path: socket, directory: -1 };
  const directory = openSync(path.dirname(socket), constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${directory}/${path.basename(socket)}`, directory };
}

class NodeReply implements Reply {
  readonly status: number;

  constructor(
    private readonly inner: http.IncomingMessage,
    private readonly where: string,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.status = inner.statusCode ?? 0;
  }

  header(name: string): string | null {
    const value = this.inner.headers[name.toLowerCase()];
    return Array.isArray(value) ? value.join(", ") : (value ?? null);
  }

  private failure(error: unknown): unknown {
    return this.signal?.aborted ? this.signal.reason : connectionError(this.where, error);
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of this.inner) yield piece as Uint8Array;
    } catch (error) {
      throw this.failure(error);
    }
  }

  /* Without an iterator, which would cost more than the rest of a small request. */
  bytes(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const pieces: Uint8Array[] = [];
      this.inner.on("data", (piece: Uint8Array) => pieces.push(piece));
      this.inner.on("end", () => resolve(join(pieces)));
      this.inner.on("error", (error) => reject(this.failure(error)));
    });
  }

  async text(): Promise<string> {
    return toText(await this.bytes());
  }

  response(): Response {
    const headers = new Headers();
    for (let at = 0; at + 1 < this.inner.rawHeaders.length; at += 2)
      headers.append(this.inner.rawHeaders[at] as string, this.inner.rawHeaders[at + 1] as string);
    const isEmpty = [101, 204, 205, 304].includes(this.status);
    const body = isEmpty ? null : (Readable.toWeb(this.inner) as ReadableStream<Uint8Array>);
    if (isEmpty) this.inner.resume();
    return new Response(body, { status: this.status, statusText: this.inner.statusMessage ?? "", headers });
  }
}

/** @internal */
export class NodeTransport implements Transport {
  private readonly where: string;
  private readonly base: string;
  private readonly address: { path: string; directory: number } | undefined;
  private readonly agent: http.Agent | https.Agent;
  private readonly fetching: FetchTransport | undefined;

  constructor(private readonly target: Target) {
    const { socket, url, ca } = target;
    this.where = socket ?? url?.origin ?? "";
    this.base = url?.origin ?? "http://localhost";
    this.address = socket === undefined ? undefined : shorten(socket);
    const kept = { keepAlive: true, scheduling: "lifo", timeout: IDLE_MS } as const;
    this.agent =
      url?.protocol === "https:"
        ? new https.Agent({ ...kept, minVersion: "TLSv1.2", ...(ca === undefined ? {} : { ca }) })
        : new http.Agent(kept);
    if (isBun)
      this.fetching = new FetchTransport(this.base, globalThis.fetch, {
        timeout: false,
        ...(this.address ? { unix: this.address.path } : {}),
        ...(ca === undefined ? {} : { tls: { ca } }),
      });
  }

  request(request: WireRequest): Promise<Reply> {
    return this.fetching?.request(request) ?? this.send(request);
  }

  private send({ method, path: target, headers, body, signal }: WireRequest): Promise<Reply> {
    const { url } = this.target;
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      let isAnswered = false;
      const request = (url?.protocol === "https:" ? https : http).request({
        agent: this.agent,
        method,
        path: target,
        headers,
        ...(url ? { host: bare(url.hostname), port: url.port || undefined } : { socketPath: this.address?.path }),
      });
      const abort = () => request.destroy(new Error("aborted"));
      if (signal) {
        signal.addEventListener("abort", abort);
        request.on("close", () => signal.removeEventListener("abort", abort));
      }
      request.on("response", (message) => {
        isAnswered = true;
        /* A connection on which a request was not sent to its end can't be used for another one. */
        message.on("end", () => request.writableEnded || request.destroy());
        resolve(new NodeReply(message, this.where, signal));
      });
      request.on("error", (error) => reject(signal?.aborted ? signal.reason : connectionError(this.where, error)));
      if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
        request.end(body);
        return;
      }
      upload(request, body, () => isAnswered).catch((error: unknown) => {
        reject(signal?.aborted ? signal.reason : error);
        request.destroy();
      });
    });
  }

  async socket(target: string, protocol: string, token: string | undefined, signal?: AbortSignal): Promise<Channel | Refusal> {
    const isPlain = this.target.url && this.target.ca === undefined;
    if (isPlain && typeof globalThis.WebSocket === "function") return openSocket(this.base, target, protocol, token, signal);
    const key = randomBytes(16).toString("base64");
    const headers: Record<string, string> = { "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key, "Sec-WebSocket-Protocol": protocol };
    if (token) headers["Authorization"] = `Bearer ${token}`;
    const upgraded = await this.upgrade(target, "websocket", headers, signal);
    if (upgraded instanceof Refusal) return upgraded;
    const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
    if (upgraded.headers.get("sec-websocket-accept") === accept && upgraded.headers.get("sec-websocket-protocol") === protocol)
      return new WebSocketChannel(upgraded, this.where, signal);
    upgraded.socket.destroy();
    throw new ConnectionError(`${this.where}: the answer to the WebSocket handshake is wrong`, true);
  }

  async raw(target: string, protocol: string, headers: Record<string, string>, signal?: AbortSignal): Promise<RawConnection | Refusal> {
    const upgraded = await this.upgrade(target, protocol, headers, signal);
    return upgraded instanceof Refusal ? upgraded : new SocketConnection(upgraded, this.where, signal);
  }

  close(): void {
    this.agent.destroy();
    if (this.address && this.address.directory >= 0) closeSync(this.address.directory);
  }

  private connect(): net.Socket {
    const { url, ca } = this.target;
    if (!url) return net.connect({ path: this.address?.path as string, allowHalfOpen: true });
    const host = bare(url.hostname);
    if (url.protocol === "http:") return net.connect({ host, port: Number(url.port || 80), allowHalfOpen: true });
    return tls.connect({
      host,
      port: Number(url.port || 443),
      minVersion: "TLSv1.2",
      ...(net.isIP(host) ? {} : { servername: host }),
      ...(ca === undefined ? {} : { ca }),
    });
  }

  private upgrade(target: string, protocol: string, headers: Record<string, string>, signal?: AbortSignal): Promise<Upgraded | Refusal> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const socket = this.connect();
    const host = this.target.url?.host ?? "localhost";
    const lines = Object.entries({ Host: host, Connection: "Upgrade", Upgrade: protocol, ...headers });
    socket.write(`GET ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
    return new Promise((resolve, reject) => {
      let text = Buffer.alloc(0);
      const fail = (error: unknown) => {
        signal?.removeEventListener("abort", abort);
        socket.destroy();
        reject(signal?.aborted ? signal.reason : connectionError(this.where, error));
      };
      const abort = () => fail(undefined);
      const finish = (result: Upgraded | Refusal) => {
        signal?.removeEventListener("abort", abort);
        socket.removeAllListeners("data").removeAllListeners("error").removeAllListeners("end");
        socket.on("error", () => undefined);
        if (result instanceof Refusal) socket.destroy();
        else socket.pause();
        resolve(result);
      };
      signal?.addEventListener("abort", abort, { once: true });
      socket.on("error", fail);
      socket.on("end", () => finishEnd());
      const finishEnd = () => {
        const head = readHead(text);
        if (head && head.status !== 101) finish(new Refusal(head.status, head.rest.toString()));
        else fail(new Error("the connection ended before the response did"));
      };
      socket.on("data", (piece: Buffer) => {
        text = Buffer.concat([text, piece]);
        const head = readHead(text);
        if (!head) {
          if (text.length > HEAD_MAX) fail(new Error("the head of the response is too long"));
        } else if (head.status === 101) {
          finish({ socket, headers: head.headers, early: head.rest });
        } else if (head.rest.length >= Math.min(Number(head.headers.get("content-length") ?? HEAD_MAX), HEAD_MAX)) {
          finish(new Refusal(head.status, head.rest.toString()));
        }
      });
    });
  }
}

/* Of a URL: an IPv6 address has brackets there. */
const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");

async function upload(request: http.ClientRequest, body: AsyncIterable<Uint8Array>, isAnswered: () => boolean): Promise<void> {
  for await (const piece of body) {
    if (isAnswered() || request.destroyed) return; /* the daemon needs no more to refuse it */
    if (!request.write(piece)) await drained(request);
  }
  request.end();
}

function drained(stream: http.ClientRequest | net.Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done).off("close", done).off("response", done);
      resolve();
    };
    stream.on("drain", done).on("close", done).on("response", done);
  });
}

interface Upgraded {
  socket: net.Socket;
  headers: Map<string, string>;
  early: Buffer;
}

function readHead(text: Buffer): { status: number; headers: Map<string, string>; rest: Buffer } | undefined {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first, ...lines] = text.subarray(0, end).toString("latin1").split("\r\n");
  const headers = new Map(lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]));
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(first ?? "")?.[1] ?? 0), headers, rest: text.subarray(end + 4) };
}

/* ---- WebSocket (RFC 6455), as far as a client needs it ---- */

const CONTINUED = 0;
const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** A frame to the server, masked as it must be. */
function frameOf(opcode: number, data: Uint8Array): Buffer {
  const extra = data.length < 126 ? 0 : data.length < 65536 ? 2 : 8;
  const frame = Buffer.allocUnsafe(6 + extra + data.length);
  frame[0] = 0x80 | opcode;
  frame[1] = 0x80 | (extra === 0 ? data.length : extra === 2 ? 126 : 127);
  if (extra === 2) frame.writeUInt16BE(data.length, 2);
  else if (extra === 8) frame.writeBigUInt64BE(BigInt(data.length), 2);
  const mask = randomBytes(4);
  frame.set(mask, 2 + extra);
  for (let at = 0, to = 6 + extra; at < data.length; at++, to++) frame[to] = (data[at] as number) ^ (mask[at & 3] as number);
  return frame;
}

class WebSocketChannel implements Channel {
  private readonly queue: MessageQueue;
  private readonly socket: net.Socket;
  private input: Buffer;
  private parts: Buffer[] = [];
  private kind = 0;
  private isClosing = false;

  constructor(
    upgraded: Upgraded,
    private readonly where: string,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.socket = upgraded.socket;
    this.input = upgraded.early;
    this.queue = new MessageQueue(() => this.queue.waiting < QUEUE_BYTES && this.socket.resume());
    this.socket.on("data", (piece: Buffer) => {
      this.input = this.input.length ? Buffer.concat([this.input, piece]) : piece;
      this.read();
    });
    this.socket.on("end", () => this.socket.end());
    this.socket.on("close", () => {
      signal?.removeEventListener("abort", this.abort);
      this.queue.end(new ConnectionError(`${where}: the connection was lost`, true));
    });
    signal?.addEventListener("abort", this.abort, { once: true });
    this.read();
    this.socket.resume();
  }

  private readonly abort = (): void => {
    this.queue.end(this.signal?.reason);
    this.socket.destroy();
  };

  private fail(text: string): void {
    this.queue.end(new ConnectionError(`${this.where}: ${text}`, true));
    this.socket.destroy();
  }

  /* All frames that are whole. */
  private read(): void {
    for (;;) {
      const [first = 0, second = 0] = this.input;
      const extra = (second & 0x7f) === 127 ? 8 : (second & 0x7f) === 126 ? 2 : 0;
      if (this.input.length < 2 + extra) break;
      const length = extra === 8 ? Number(this.input.readBigUInt64BE(2)) : extra === 2 ? this.input.readUInt16BE(2) : second & 0x7f;
      if (first & 0x70 || second & 0x80 || length > MESSAGE_MAX) return this.fail("an invalid WebSocket frame came");
      if (this.input.length < 2 + extra + length) break;
      const data = this.input.subarray(2 + extra, 2 + extra + length);
      this.input = this.input.subarray(2 + extra + length);
      this.take(first & 0x0f, Boolean(first & 0x80), data);
    }
    if (this.queue.waiting >= QUEUE_BYTES) this.socket.pause();
  }

  private take(opcode: number, isLast: boolean, data: Buffer): void {
    if (opcode === PING) this.socket.write(frameOf(PONG, data));
    if (opcode === CLOSE) this.closed(data);
    if (opcode > BINARY) return;
    if (opcode !== CONTINUED) this.kind = opcode;
    this.parts.push(data);
    if (this.parts.reduce((sum, part) => sum + part.length, 0) > MESSAGE_MAX) this.fail("a WebSocket message is too long");
    if (!isLast) return;
    const whole = Buffer.concat(this.parts);
    this.parts = [];
    this.queue.push(this.kind === TEXT ? whole.toString() : new Uint8Array(whole.buffer, whole.byteOffset, whole.length));
  }

  private closed(data: Buffer): void {
    this.queue.end();
    if (!this.isClosing) this.socket.end(frameOf(CLOSE, data.subarray(0, 2)));
    else this.socket.end();
    this.isClosing = true;
  }

  async send(message: string | Uint8Array): Promise<void> {
    if (this.isClosing || this.socket.destroyed) throw new ConnectionError(`${this.where}: the connection was closed`, true);
    const frame = typeof message === "string" ? frameOf(TEXT, Buffer.from(message)) : frameOf(BINARY, message);
    if (!this.socket.write(frame)) await drained(this.socket);
  }

  receive(): Promise<string | Uint8Array | undefined> {
    return this.queue.next();
  }

  close(code: number): void {
    this.queue.end();
    if (this.isClosing || this.socket.destroyed) return;
    this.isClosing = true;
    const data = Buffer.alloc(2);
    data.writeUInt16BE(code);
    this.socket.end(frameOf(CLOSE, data));
    this.socket.resume();
    /* A daemon that does not answer must not keep the process. */
    this.socket.unref();
  }
}

/* ---- bytes of a port ---- */

class SocketConnection implements RawConnection {
  readonly socket: net.Socket;
  readonly early: Buffer;

  constructor(
    upgraded: Upgraded,
    private readonly where: string,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.socket = upgraded.socket;
    this.early = upgraded.early;
    const abort = () => this.socket.destroy(signal?.reason as Error);
    signal?.addEventListener("abort", abort, { once: true });
    this.socket.on("close", () => signal?.removeEventListener("abort", abort));
  }

  async write(data: Uint8Array): Promise<void> {
    if (this.socket.destroyed) throw new ConnectionError(`${this.where}: the connection was closed`, true);
    if (!this.socket.write(data)) await drained(this.socket);
  }

  end(): void {
    this.socket.end();
  }

  close(): void {
    this.socket.destroy();
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    if (this.early.length) yield this.early;
    try {
      for await (const piece of this.socket) yield piece as Buffer;
    } catch (error) {
      throw this.signal?.aborted ? this.signal.reason : connectionError(this.where, error);
    }
  }
}

/** Listens on this host and leads each connection to one that `open` opens. @internal */
export async function listen(
  host: string,
  port: number,
  open: () => Promise<RawConnection>,
): Promise<{ host: string; port: number; close(): Promise<void> }> {
  const connections = new Set<net.Socket>();
  const keep = (socket: net.Socket) => {
    connections.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => connections.delete(socket));
  };
  const server = net.createServer({ allowHalfOpen: true }, (local) => {
    keep(local);
    open().then(
      (opened) => {
        const { socket, early } = opened as SocketConnection;
        keep(socket);
        local.write(early);
        local.pipe(socket).pipe(local);
        local.on("close", () => socket.destroy());
        socket.on("close", () => local.destroy());
      },
      () => local.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  const address = server.address() as net.AddressInfo;
  return {
    host: address.address,
    port: address.port,
    async close() {
      for (const socket of connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/* ---- a daemon of this host ---- */

/** `carrel serve --background`, unless another process is starting one; then that one is waited for. @internal */
export async function startDaemon(program: string, home: string, ask: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + START_MS;
  const said = await serve(program, home);
  while (!(await ask())) {
    const isOther = /another daemon|starting a daemon/.test(said);
    if (!isOther || Date.now() > end) throw notStarted(said);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/* What it said on stderr. */
function serve(program: string, home: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ["serve", "--background"], {
      env: { ...process.env, CARREL_HOME: home },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.on("data", (piece: Buffer) => (said += piece.toString()));
    child.on("error", (error) => reject(connectionError(`start a daemon with '${program}'`, error)));
    child.on("close", () => resolve(said));
  });
}

function notStarted(said: string): UnavailableError {
  const line = (begin: string) => said.split("\n").filter((found) => found.startsWith(begin)).pop()?.slice(begin.length);
  return new UnavailableError({
    status: 0,
    code: "unavailable",
    detail: `start a daemon: ${line("carrel: ") ?? "it gave no reason"}`,
    hint: line("hint: ") ?? "carrel serve shows why",
  });
}
