/* The seam below the client: one request, one reply; one WebSocket. Here with fetch and WebSocket alone, as every runtime has
 * them; node.ts has the other one, for what these can't reach. */
import { chunksOf, join, toText } from "./bytes.js";
import { ConnectionError } from "./errors.js";

/** @internal */
export interface WireRequest {
  method: string;
  /** Encoded, with its query. */
  path: string;
  headers: Record<string, string>;
  body?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  signal?: AbortSignal | undefined;
}

/** The head of a response; one of the functions reads its body. @internal */
export interface Reply {
  status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  bytes(): Promise<Uint8Array>;
  /** As they come; a reader that stops ends the request. */
  chunks(): AsyncIterable<Uint8Array>;
  /** For callers that want what fetch gives. */
  response(): Response;
}

/** Messages of a WebSocket. @internal */
export interface Channel {
  /** Resolves when more may be sent. */
  send(message: string | Uint8Array): Promise<void>;
  /** The next message; undefined: it was closed. Throws when the connection was lost. */
  receive(): Promise<string | Uint8Array | undefined>;
  close(code: number): void;
}

/** Bytes of a TCP connection. @internal */
export interface RawConnection {
  /** Resolves when more may be written. */
  write(data: Uint8Array): Promise<void>;
  /** No more is written. */
  end(): void;
  close(): void;
  chunks(): AsyncIterable<Uint8Array>;
}

/** Why a protocol was not changed. Status 0: only a request can tell. @internal */
export class Refusal {
  constructor(
    readonly status: number,
    readonly text: string,
  ) {}
}

/** @internal */
export interface Transport {
  /** Throws ConnectionError, or the reason of the signal. */
  request(request: WireRequest): Promise<Reply>;
  /** A WebSocket of that protocol. Throws as `request` does. */
  socket(path: string, protocol: string, token: string | undefined, signal?: AbortSignal): Promise<Channel | Refusal>;
  /** The connection itself, after a change to that protocol. undefined: this runtime can't. */
  raw?(path: string, protocol: string, headers: Record<string, string>, signal?: AbortSignal): Promise<RawConnection | Refusal>;
  /** Idle connections are closed. */
  close(): void;
}

/** What keeps bun's fetch from ending a command that is silent for five minutes, and what reaches unix sockets there. @internal */
export type FetchExtras = { unix?: string; tls?: { ca: string }; timeout?: false };

/* Nothing was sent when one of these is the reason. */
const NOT_SENT = /^(ECONNREFUSED|ENOENT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket)$/;

/** @internal */
export function connectionError(where: string, error: unknown): ConnectionError {
  const causes = [error, (error as { cause?: unknown } | null)?.cause] as { code?: unknown; message?: unknown }[];
  const code = causes.map((cause) => cause?.code).find((found) => typeof found === "string") as string | undefined;
  const reason = causes.map((cause) => cause?.message).filter((text) => typeof text === "string" && text).pop();
  return new ConnectionError(`${where}: ${String(reason ?? code ?? error)}`, !code || !NOT_SENT.test(code), error);
}

/** Sent with a body that comes piece by piece. */
function streamOf(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel(reason) {
      await iterator.return?.(reason);
    },
  });
}

class FetchReply implements Reply {
  readonly status: number;

  constructor(
    private readonly inner: Response,
    private readonly where: string,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.status = inner.status;
  }

  header(name: string): string | null {
    return this.inner.headers.get(name);
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    if (!this.inner.body) return;
    try {
      yield* chunksOf(this.inner.body);
    } catch (error) {
      throw this.signal?.aborted ? this.signal.reason : connectionError(this.where, error);
    }
  }

  async bytes(): Promise<Uint8Array> {
    const pieces = [];
    for await (const piece of this.chunks()) pieces.push(piece);
    return join(pieces);
  }

  async text(): Promise<string> {
    return toText(await this.bytes());
  }

  response(): Response {
    return this.inner;
  }
}

/** @internal */
export class FetchTransport implements Transport {
  constructor(
    private readonly base: string,
    private readonly fetch: typeof globalThis.fetch,
    private readonly extras: FetchExtras,
  ) {}

  async request({ method, path, headers, body, signal }: WireRequest): Promise<Reply> {
    const isWhole = body === undefined || typeof body === "string" || body instanceof Uint8Array;
    const init = {
      ...this.extras,
      method,
      headers,
      redirect: "manual",
      body: isWhole ? body : streamOf(body),
      ...(isWhole ? {} : { duplex: "half" }),
      ...(signal ? { signal } : {}),
    } as RequestInit;
    try {
      return new FetchReply(await this.fetch(this.base + path, init), this.base, signal);
    } catch (error) {
      throw signal?.aborted ? signal.reason : connectionError(this.base, error);
    }
  }

  socket(path: string, protocol: string, token: string | undefined, signal?: AbortSignal): Promise<Channel | Refusal> {
    return openSocket(this.base, path, protocol, token, signal);
  }

  close(): void {
    /* fetch has no idle connections that could be closed. */
  }
}

/** With the WebSocket of the runtime, which can't send `Authorization` and can't say why it was refused. @internal */
export async function openSocket(
  base: string,
  path: string,
  protocol: string,
  token: string | undefined,
  signal: AbortSignal | undefined,
): Promise<Channel | Refusal> {
  signal?.throwIfAborted();
  const socket = new WebSocket(base.replace(/^http/, "ws") + path, token ? [protocol, `carrel.bearer.${token}`] : [protocol]);
  socket.binaryType = "arraybuffer";
  const queue = new MessageQueue();
  socket.addEventListener("message", ({ data }: MessageEvent<string | ArrayBuffer>) =>
    queue.push(typeof data === "string" ? data : new Uint8Array(data)),
  );
  socket.addEventListener("close", ({ code }: CloseEvent) =>
    queue.end(code === 1006 ? new ConnectionError(`${base}: the connection was lost`, true) : undefined),
  );
  const abort = () => {
    queue.end(signal?.reason as Error);
    socket.close();
  };
  signal?.addEventListener("abort", abort, { once: true });
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.addEventListener("open", () => resolve(true));
    socket.addEventListener("close", () => resolve(false));
    socket.addEventListener("error", () => resolve(false));
  });
  signal?.throwIfAborted();
  if (!isOpen) return new Refusal(0, "");
  return {
    async send(message) {
      if (socket.readyState !== WebSocket.OPEN) throw new ConnectionError(`${base}: the connection was closed`, true);
      socket.send(message as string);
      /* No event tells when it has been sent. */
      while (socket.bufferedAmount > QUEUE_BYTES && socket.readyState === WebSocket.OPEN)
        await new Promise((resolve) => setTimeout(resolve, 5));
    },
    receive: () => queue.next(),
    close(code) {
      signal?.removeEventListener("abort", abort);
      socket.close(code);
    },
  };
}

/** More than this of messages that wait, and the sender is held up where that is possible. @internal */
export const QUEUE_BYTES = 1 << 20;

/** Messages that came and were not yet asked for. @internal */
export class MessageQueue {
  /** Bytes that wait. */
  waiting = 0;
  private readonly messages: (string | Uint8Array)[] = [];
  private readers: { resolve(message: string | Uint8Array | undefined): void; reject(error: unknown): void }[] = [];
  private isOver = false;
  private failure: unknown;

  constructor(private readonly taken: () => void = () => undefined) {}

  push(message: string | Uint8Array): void {
    if (this.isOver) return;
    const reader = this.readers.shift();
    if (reader) {
      reader.resolve(message);
      return;
    }
    this.messages.push(message);
    this.waiting += message.length;
  }

  /** No more comes; with a reason, readers learn it after the messages that came before. */
  end(failure?: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    this.failure = failure;
    for (const reader of this.readers.splice(0)) failure ? reader.reject(failure) : reader.resolve(undefined);
  }

  next(): Promise<string | Uint8Array | undefined> {
    const message = this.messages.shift();
    if (message !== undefined) {
      this.waiting -= message.length;
      this.taken();
      return Promise.resolve(message);
    }
    if (this.isOver) return this.failure ? Promise.reject(this.failure) : Promise.resolve(undefined);
    return new Promise((resolve, reject) => this.readers.push({ resolve, reject }));
  }
}
