/* Servers in a workspace, by their port. */
import "./dispose.js";
import { toBytes } from "./bytes.js";
import type { Http } from "./http.js";
import { targetOf } from "./http.js";
import type { RawConnection } from "./transport.js";

/** What a request to a server in a workspace takes, as `fetch` does. */
export interface PortRequest {
  /** Default: GET. */
  method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | undefined;
  /** Headers for the server. */
  headers?: Record<string, string> | undefined;
  /** The body. */
  body?: string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string> | undefined;
  /** Ends the request. */
  signal?: AbortSignal | undefined;
}

/** A TCP connection to a server in a workspace. */
export class Connection implements AsyncIterable<Uint8Array> {
  private reading: AsyncIterator<Uint8Array> | undefined;

  /** @internal */
  constructor(private readonly inner: RawConnection) {}

  /** Sends bytes; text is sent as UTF-8. */
  async write(data: string | Uint8Array): Promise<void> {
    await this.inner.write(typeof data === "string" ? toBytes(data) : data);
  }

  /** The next bytes; undefined: the server sends no more. */
  async read(): Promise<Uint8Array | undefined> {
    this.reading ??= this.inner.chunks()[Symbol.asyncIterator]();
    const { done, value } = await this.reading.next();
    return done ? undefined : value;
  }

  /** All that comes. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (let data = await this.read(); data; data = await this.read()) yield data;
  }

  /** Tells the server that no more is sent. */
  end(): void {
    this.inner.end();
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    this.inner.close();
  }

  /** As {@link Connection.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** A port of this host that leads to one of a workspace. */
export class Forward {
  /** @internal */
  constructor(
    /** The address that it listens on. */
    readonly host: string,
    /** The port that it listens on. */
    readonly port: number,
    private readonly stop: () => Promise<void>,
  ) {}

  /** Ends it, and its connections. */
  async close(): Promise<void> {
    await this.stop();
  }

  /** As {@link Forward.close}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

const operationOf = {
  GET: "forwardPortGet",
  POST: "forwardPortPost",
  PUT: "forwardPortPut",
  PATCH: "forwardPortPatch",
  DELETE: "forwardPortDelete",
} as const;

/** @internal */
export function fetchPort(http: Http, id: string, port: number, target: string, request: PortRequest): Promise<Response> {
  const [path = "", query] = target.replace(/^\//, "").split(/\?(.*)/s);
  const call = { id, port, path, data: request.body, headers: request.headers, signal: request.signal };
  return http.forward(operationOf[request.method ?? "GET"], call, query);
}

const surfaceOf = {
  rest: { GET: "forwardRestGet", POST: "forwardRestPost", PUT: "forwardRestPut", PATCH: "forwardRestPatch", DELETE: "forwardRestDelete" },
  a2a: { GET: "forwardA2aGet", POST: "forwardA2aPost", PUT: "forwardA2aPut", PATCH: "forwardA2aPatch", DELETE: "forwardA2aDelete" },
  ui: { GET: "forwardUiGet", POST: "forwardUiPost", PUT: "forwardUiPut", PATCH: "forwardUiPatch", DELETE: "forwardUiDelete" },
} as const;

/** @internal */
export function fetchSurface(http: Http, id: string, surface: keyof typeof surfaceOf, target: string, request: PortRequest): Promise<Response> {
  const [path = "", query] = target.replace(/^\//, "").split(/\?(.*)/s);
  const call = { id, path, data: request.body, headers: request.headers, signal: request.signal };
  return http.forward(surfaceOf[surface][request.method ?? "GET"], call, query);
}

/** @internal */
export async function connectPort(http: Http, id: string, port: number, signal?: AbortSignal): Promise<RawConnection> {
  return http.raw(targetOf("forwardPortGet", { id, port, path: "" }), "carrel-tcp", signal);
}

/** @internal */
export async function forwardPort(http: Http, id: string, port: number, host: string, localPort: number): Promise<Forward> {
  const { listen } = await import("./node.js");
  const server = await listen(host, localPort, () => connectPort(http, id, port));
  return new Forward(server.host, server.port, () => server.close());
}
