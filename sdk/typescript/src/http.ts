/* Requests by the name of their operation: paths, bodies and results by the tables of generated.ts; retries; the daemon that is
 * started when there is none. */
import { bodyOf, type Bytes } from "./bytes.js";
import { ConnectionError, InvalidError, problemOf } from "./errors.js";
import { operations, type Operations } from "./generated.js";
import { decode, encode } from "./shapes.js";
import { FetchTransport, Refusal, type Channel, type RawConnection, type Reply, type Transport, type WireRequest } from "./transport.js";

/** What every call takes. */
export interface CallOptions {
  /** Ends the call, which then throws the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** What a call that creates something takes. */
export interface CreateOptions extends CallOptions {
  /** With the same key and the same values, the daemon answers as the first time, for 24 hours. */
  idempotencyKey?: string | undefined;
}

/** Where the daemon is, and how to talk to it. */
export interface CarrelOptions {
  /**
   * `https://HOST:PORT`, `http://HOST:PORT`, `unix:PATH` or the path of a socket. Default: `CARREL_HOST`, or the daemon of this
   * user, which is started when there is none.
   */
  host?: string | undefined;
  /** An access token. Default: `CARREL_TOKEN`; a unix socket needs none. */
  token?: string | undefined;
  /** For https: the certificate authority, as PEM text or the path of a file. Default: `CARREL_CA`, or those of the runtime. */
  ca?: string | undefined;
  /** How often a request is sent again that can be sent twice, when the connection fails or the daemon is busy. Default: 2. */
  retries?: number | undefined;
  /** Whether a local daemon is started when there is none. Default: true, if no host is given. */
  start?: boolean | undefined;
  /** The program that is started for it. Default: `CARREL_PROGRAM`, or `carrel` of the `PATH`. */
  program?: string | undefined;
  /** Instead of the runtime's, for proxies and tests. Can't be combined with a unix socket or `ca`. */
  fetch?: typeof globalThis.fetch | undefined;
}

/** The parameters of an operation. @internal */
export type Call<K extends keyof Operations> = Operations[K]["path"] &
  CreateOptions & { query?: Operations[K]["query"] | undefined; body?: Operations[K]["body"] };

/** A request that isn't only JSON. @internal */
export interface OpenCall {
  id?: string | undefined;
  path?: string | undefined;
  port?: number | undefined;
  query?: object | undefined;
  json?: unknown;
  data?: Bytes | undefined;
  headers?: Record<string, string> | undefined;
  key?: string | undefined;
  signal?: AbortSignal | undefined;
  /** false: a daemon that was stopped stays so. */
  mayStart?: boolean | undefined;
}

const LONGEST_WAIT_MS = 10_000;
const LOCAL = "run/carrel.sock";

interface Place {
  socket?: string;
  url?: URL;
  /** The home of the daemon that may be started. */
  home?: string;
}

function findHome(env: Record<string, string | undefined>, uid: number): string {
  if (env["CARREL_HOME"]) return env["CARREL_HOME"];
  if (uid === 0) return "/var/lib/carrel";
  if (env["XDG_DATA_HOME"]?.startsWith("/")) return `${env["XDG_DATA_HOME"]}/carrel`;
  return `${env["HOME"] ?? ""}/.local/share/carrel`;
}

function findPlace(host: string | undefined, env: Record<string, string | undefined>, uid: number): Place {
  if (!host) {
    const home = findHome(env, uid);
    return { socket: `${home}/${LOCAL}`, home };
  }
  if (host.startsWith("unix:")) return { socket: host.slice(5).replace(/^\/\/(?=\/)/, "") };
  if (/^[./]/.test(host)) return { socket: host };
  const url = readUrl(host);
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search)
    throw invalid(`host '${host}' is not https://HOST:PORT, http://HOST:PORT, unix:PATH or the path of a socket`);
  if (url.username || url.password) throw invalid("a token does not belong into the host: use `token` or CARREL_TOKEN");
  return { url };
}

function readUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/** @internal */
export function invalid(detail: string): InvalidError {
  return new InvalidError({ status: 0, code: "invalid", detail });
}

/* Percent-encoded. URL parsers resolve the segments "." and "..", also encoded ones, but not those of a path without slashes. */
function encodePath(path: string): string {
  if (/(^|\/)\.\.?(\/|$)/.test(path)) return encodeURIComponent(path.startsWith("/") ? path : `./${path}`);
  return path.split("/").map(encodeURIComponent).join("/");
}

/** @internal */
export function targetOf(operation: keyof Operations, call: OpenCall): string {
  const path = operations[operation].path
    .replace("{id}", () => encodeURIComponent(call.id ?? ""))
    .replace("{port}", () => String(call.port))
    .replace("{path}", () => encodePath(call.path ?? ""));
  const query = [];
  for (const [name, value] of Object.entries(call.query ?? {}))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null && one !== false)
        query.push(`${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}=${one === true ? "1" : encodeURIComponent(String(one))}`);
  return query.length ? `${path}?${query.join("&")}` : path;
}

/** A key that no other request has. @internal */
export function newKey(): string {
  return globalThis.crypto?.randomUUID?.() ?? `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
}

/** Throws the signal's reason when it comes first. @internal */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}

/** @internal */
export class Http {
  private transport: Promise<Transport> | undefined;
  private starting: Promise<void> | undefined;
  private home: string | undefined;
  private token: string | undefined;
  private readonly retries: number;

  constructor(private readonly options: CarrelOptions) {
    this.retries = options.retries ?? 2;
    this.token = options.token;
    /* What is wrong with the address is said at once. */
    if (options.host) findPlace(options.host, {}, -1);
  }

  private connect(): Promise<Transport> {
    return (this.transport ??= this.makeTransport());
  }

  private async makeTransport(): Promise<Transport> {
    const { fetch } = this.options;
    const node = "process" in globalThis ? await import("./node.js") : undefined;
    const { env, uid } = node?.surroundings() ?? { env: {}, uid: -1 };
    this.token ??= env["CARREL_TOKEN"] || undefined;
    const { socket, url, home } = findPlace(this.options.host || env["CARREL_HOST"], env, uid);
    if (this.options.start !== false) this.home = home;
    const ca = this.options.ca ?? (url?.protocol === "https:" && !fetch ? env["CARREL_CA"] || undefined : undefined);
    if (fetch || !node) {
      if (!url || ca !== undefined) throw invalid("fetch reaches a host by http:// and https:// only, and can't be given a certificate authority");
      return new FetchTransport(url.origin, fetch ?? globalThis.fetch, {});
    }
    return new node.NodeTransport({
      ...(socket === undefined ? {} : { socket }),
      ...(url ? { url } : {}),
      ...(ca === undefined ? {} : { ca: node.readAuthority(ca) }),
    });
  }

  async close(): Promise<void> {
    const transport = this.transport;
    this.transport = undefined;
    (await transport?.catch(() => undefined))?.close();
  }

  /** By a request that is done with at once: whether a daemon answers. */
  private async answers(transport: Transport): Promise<boolean> {
    try {
      const reply = await transport.request({ method: "GET", path: operations.readyz.path, headers: {} });
      await reply.bytes();
      return true;
    } catch (error) {
      if (error instanceof ConnectionError) return false;
      throw error;
    }
  }

  /* One at a time, whoever waits for it. */
  private async start(transport: Transport, home: string): Promise<void> {
    this.starting ??= (async () => {
      const { startDaemon, surroundings } = await import("./node.js");
      const program = this.options.program ?? (surroundings().env["CARREL_PROGRAM"] || "carrel");
      await startDaemon(program, home, () => this.answers(transport));
    })().finally(() => (this.starting = undefined));
    await this.starting;
  }

  private headers(extra: Record<string, string>): Record<string, string> {
    return this.token ? { Authorization: `Bearer ${this.token}`, ...extra } : extra;
  }

  /* Sends it until there is a response that is worth reading. */
  private async send(request: WireRequest, canRepeat: boolean, mayStart = true): Promise<Reply> {
    const transport = await this.connect();
    request.headers = this.headers(request.headers);
    const isWhole = request.body === undefined || typeof request.body === "string" || request.body instanceof Uint8Array;
    for (let attempt = 0; ; attempt++) {
      let wait = Math.random() * 100 * 2 ** attempt;
      try {
        const reply = await transport.request(request);
        const after = reply.status === 429 || reply.status === 503 ? reply.header("retry-after") : null;
        /* A request that came too fast was not looked at. */
        const mayRepeat = isWhole && (canRepeat || reply.status === 429);
        if (after === null || attempt >= this.retries || !mayRepeat) return reply;
        await reply.bytes();
        wait += Math.min(Number(after) * 1000 || 0, LONGEST_WAIT_MS);
      } catch (error) {
        if (!(error instanceof ConnectionError) || !isWhole) throw error;
        if (!error.sent && mayStart && this.home !== undefined) {
          mayStart = false;
          attempt--;
          await this.start(transport, this.home);
          continue;
        }
        if (attempt >= this.retries || (error.sent && !canRepeat)) throw error;
      }
      await sleep(wait, request.signal);
    }
  }

  /** An operation with JSON, or nothing, in both directions. */
  async call<K extends keyof Operations>(operation: K, call: Call<K>): Promise<Operations[K]["result"]> {
    return (await this.callWithStatus(operation, call))[1];
  }

  /** The same, for operations whose result depends on the status. */
  async callWithStatus<K extends keyof Operations>(operation: K, call: Call<K>): Promise<[number, Operations[K]["result"]]> {
    const { results } = operations[operation];
    const { body, idempotencyKey, ...rest } = call as OpenCall & CreateOptions & { body?: unknown };
    const reply = await this.open(operation, { ...rest, json: body, key: idempotencyKey, headers: { Accept: "application/json" } });
    const text = await reply.text();
    if (!text) return [reply.status, undefined as Operations[K]["result"]];
    return [reply.status, decode(results?.[reply.status] ?? "", JSON.parse(text)) as Operations[K]["result"]];
  }

  /** The head of a response of 2xx; others are thrown. */
  async open(operation: keyof Operations, call: OpenCall): Promise<Reply> {
    const { method, keyed, body: schema } = operations[operation];
    const headers: Record<string, string> = { ...call.headers };
    let body: WireRequest["body"];
    if (call.data !== undefined) {
      body = bodyOf(call.data);
      headers["Content-Type"] ??= "application/octet-stream";
    } else if (call.json !== undefined) {
      body = JSON.stringify(schema ? encode(schema, call.json) : call.json);
      headers["Content-Type"] = "application/json";
    }
    if (call.key !== undefined && keyed) headers["Idempotency-Key"] = call.key;
    const canRepeat = method !== "POST" && method !== "PATCH" ? true : headers["Idempotency-Key"] !== undefined;
    const request: WireRequest = { method, path: targetOf(operation, call), headers, body, signal: call.signal };
    const reply = await this.send(request, canRepeat, call.mayStart);
    if (reply.status >= 200 && reply.status < 300) return reply;
    throw problemOf(reply.status, await reply.text());
  }

  /** A request to a server in a workspace, whose response is passed on as it is. */
  async forward(operation: keyof Operations, call: OpenCall, query: string | undefined): Promise<Response> {
    const { method } = operations[operation];
    const body = call.data === undefined ? undefined : bodyOf(call.data);
    const path = targetOf(operation, call) + (query === undefined ? "" : `?${query}`);
    const request = { method, path, headers: { ...call.headers }, body, signal: call.signal };
    return (await this.send(request, false)).response();
  }

  /** A WebSocket. `probe` is a request that fails for the same reason, for runtimes that don't tell it. */
  async socket(path: string, protocol: string, probe: () => Promise<unknown>, signal?: AbortSignal): Promise<Channel> {
    const transport = await this.connect();
    const opened = await this.orStart(transport, () => transport.socket(path, protocol, this.token, signal));
    if (!(opened instanceof Refusal)) return opened;
    if (opened.status) throw problemOf(opened.status, opened.text);
    await probe();
    throw new ConnectionError("the WebSocket was refused", true);
  }

  /** Another protocol on a connection of its own. */
  async raw(path: string, protocol: string, signal?: AbortSignal): Promise<RawConnection> {
    const transport = await this.connect();
    if (!transport.raw) throw invalid("this needs the modules of Node, and no `fetch` of your own");
    const opened = await this.orStart(transport, () => transport.raw?.(path, protocol, this.headers({}), signal) as Promise<RawConnection | Refusal>);
    if (opened instanceof Refusal) throw problemOf(opened.status, opened.text);
    return opened;
  }

  private async orStart<T>(transport: Transport, open: () => Promise<T>): Promise<T> {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof ConnectionError) || error.sent || this.home === undefined) throw error;
      await this.start(transport, this.home);
      return open();
    }
  }
}
